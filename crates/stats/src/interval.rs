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

    /// The interval with both ends moved away from the value by `factor`.
    #[must_use]
    pub fn stretched(self, factor: f64) -> Self {
        let end = |end: f64| if end.is_finite() { self.value + (end - self.value) * factor } else { end };
        Self { low: end(self.low), high: end(self.high), ..self }
    }

    /// The same on a logarithmic scale, for a positive value.
    #[must_use]
    pub fn stretched_log(self, factor: f64) -> Self {
        let end = |end: f64| if end > 0.0 { self.value * (end / self.value).powf(factor) } else { end };
        Self { low: end(self.low), high: end(self.high), ..self }
    }

    /// The interval extended so that it includes a number.
    #[must_use]
    pub fn including(self, number: f64) -> Self {
        Self { low: self.low.min(number), high: self.high.max(number), ..self }
    }

    /// The estimate scaled by a positive `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        debug_assert!(factor >= 0.0);
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}
