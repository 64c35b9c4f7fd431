//! [`Law`]: how a cost may depend on the size.

use std::fmt;

use strum::{EnumCount, VariantArray};

/// How a cost depends on the size n, beside a fixed part that does not grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumCount, VariantArray)]
pub enum Law {
    /// The same at each size.
    Constant,
    /// log n.
    Log,
    /// n^0.5.
    Root,
    /// n.
    Linear,
    /// n log n.
    LinearLog,
    /// n^1.5.
    ThreeHalves,
    /// n^2.
    Quadratic,
    /// n^3.
    Cubic,
    /// n to another power.
    Free,
}

impl Law {
    /// All laws, the slowest growth first.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// Its stable name, e.g. `n log n`. That of a free exponent is `n^k`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Log => "log n",
            Self::Root => "n^0.5",
            Self::Linear => "n",
            Self::LinearLog => "n log n",
            Self::ThreeHalves => "n^1.5",
            Self::Quadratic => "n^2",
            Self::Cubic => "n^3",
            Self::Free => "n^k",
        }
    }

    /// The power of n and that of log n; `None` if the data determine it.
    pub fn powers(self) -> Option<(f64, f64)> {
        match self {
            Self::Constant => Some((0.0, 0.0)),
            Self::Log => Some((0.0, 1.0)),
            Self::Root => Some((0.5, 0.0)),
            Self::Linear => Some((1.0, 0.0)),
            Self::LinearLog => Some((1.0, 1.0)),
            Self::ThreeHalves => Some((1.5, 0.0)),
            Self::Quadratic => Some((2.0, 0.0)),
            Self::Cubic => Some((3.0, 0.0)),
            Self::Free => None,
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A cost as a function of n, but for a factor: `offset + n^power (ln n)^logs`, with the growing part scaled to 1 at
/// the size `scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    pub power: f64,
    pub logs: f64,
    /// The fixed part over the growing part at the size `scale`.
    pub offset: f64,
    pub scale: f64,
}

impl Shape {
    /// ln of the growing part at `n`, relative to that at `scale`.
    pub fn ln_growing(power: f64, logs: f64, scale: f64, n: f64) -> f64 {
        let mut ln = power * (n / scale).ln();
        if logs > 0.0 {
            ln += logs * (n.ln() / scale.ln()).ln();
        }
        ln
    }

    /// ln of the cost at `n`, but for a constant.
    pub fn ln_at(&self, n: f64) -> f64 {
        let growing = Self::ln_growing(self.power, self.logs, self.scale, n).exp();
        (self.offset + growing).ln()
    }
}
