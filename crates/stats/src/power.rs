//! Which change would have been seen, and how many runs would tell.
//!
//! "Cannot tell" is no verdict on the program but on the measurement; what it needs is to be told how much more of it
//! would do. All of it is in terms of the logarithm of the ratio, whose standard error is that of [`Change`].
//!
//! - A change is *seen* with power π where `|ln ratio| >= (t_(1 - α/2, f) + t_(π, f)) · se`: the usual normal approximation of
//!   the power of a t test, with the quantiles of t (which errs by less than one run for π = 0.8).
//! - Equality within a tolerance τ is *shown* where the interval fits into it, with the same power:
//!   `ln(1 + τ) - |ln ratio| >= (t_(1 - α/2, f) + t_(π, f)) · se`.
//! - With n runs a side `se^2 = (v_1 + v_2) / n`, where v is the variance of one run's mean, noise within it included,
//!   relative to the side's value; degrees of freedom are those of [`Change`], `f (n - 1) / (N - 1)` for the N runs that
//!   there are (the smaller side).

use crate::hierarchical::{Change, Spread};
use crate::permutation;
use crate::student;

/// No more runs a side than this are ever asked for.
pub const MOST_RUNS: usize = 1_000;

/// What a comparison has to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Level of the test, two-sided: 0.05.
    pub alpha: f64,
    /// Probability of seeing what is there: 0.8.
    pub power: f64,
    /// Ratios from `1 / (1 + tolerance)` to `1 + tolerance` are equivalent: 0.05.
    pub tolerance: f64,
}

impl Default for Goal {
    fn default() -> Self {
        Self { alpha: 0.05, power: 0.8, tolerance: 0.05 }
    }
}

impl Goal {
    /// How many standard errors something has to be away.
    fn errors(&self, degrees: f64) -> f64 {
        student::quantile(1.0 - self.alpha / 2.0, degrees) + student::quantile(self.power, degrees)
    }

    /// The smallest ratio above 1 (and, inverted, the largest below) that would be seen with a standard error of the
    /// log ratio and its degrees of freedom. Infinite if the error is.
    pub fn detectable_ratio(&self, log_standard_error: f64, degrees: f64) -> f64 {
        (self.errors(degrees) * log_standard_error).exp()
    }

    /// The least number of runs a side that would tell that the number changed, or that it did not beyond the tolerance,
    /// supposing that the ratio is what was measured; whichever needs fewer. At least as many as a permutation test
    /// needs. `None` if there is no ratio, if a side's scatter is not known, or if [`MOST_RUNS`] would not do.
    pub fn runs_that_tell(&self, change: &Change) -> Option<usize> {
        let ratio = change.ratio?.value;
        let have = change.spread_before.runs.min(change.spread_after.runs);
        if have < 2 {
            return None;
        }
        let relative = |spread: Spread, value: f64| (spread.between + spread.within) / (value * value);
        let variance = relative(change.spread_before, change.before) + relative(change.spread_after, change.after);
        let effect = ratio.ln().abs();
        let margin = effect.max(self.tolerance.ln_1p() - effect);
        let tells = |runs: usize| {
            let degrees = change.degrees_of_freedom * (runs - 1) as f64 / (have - 1) as f64;
            self.errors(degrees.max(1.0)) * (variance / runs as f64).sqrt() <= margin
        };
        let least = permutation::least_runs(self.alpha)?.max(2);
        if !tells(MOST_RUNS) {
            return None;
        }
        // More runs tell whatever fewer do.
        let (mut low, mut high) = (least, MOST_RUNS);
        while low < high {
            let middle = usize::midpoint(low, high);
            if tells(middle) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }

    /// As [`runs_that_tell`](Self::runs_that_tell) for one run each with counts of samples: how many times as many
    /// samples on both sides would tell, by `se^2 = 1 / before + 1 / after`; at least 1. `None` if a side has no samples
    /// or a thousand times as many would not do.
    pub fn times_as_many(&self, before: u64, after: u64, ratio: f64) -> Option<f64> {
        let effect = ratio.ln().abs();
        let margin = effect.max(self.tolerance.ln_1p() - effect);
        let error = (1.0 / before as f64 + 1.0 / after as f64).sqrt();
        let times = (self.errors(f64::INFINITY) * error / margin).powi(2).max(1.0);
        (times <= MOST_RUNS as f64).then_some(times)
    }
}
