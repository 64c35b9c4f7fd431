//! [`Estimate`]: a number that was measured, and how well it is known.

/// A measured number with a confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Whether the interval is on one side of zero: the number is not zero by chance alone.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The estimate of the number times `factor`, a positive one.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        debug_assert!(factor >= 0.0);
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}
