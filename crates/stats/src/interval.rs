//! [`Estimate`]: a number with a confidence interval.

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Whether the interval excludes zero.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The estimate scaled by a positive `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        debug_assert!(factor >= 0.0);
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}
