//! Which change would have been seen, and how many runs would tell.
//!
//! "Cannot tell" is no verdict on the program but on the measurement; what it needs is to be told how much more of it
//! would do. All of it is in terms of the logarithm of the ratio, whose standard error is that of [`Change`].
//!
//! - A change is *seen* where the interval excludes 1: with power `P(T_f <= |ln ratio| / se - t_(1 - α/2, f))`, so that a ratio
//!   is detectable from `|ln ratio| = (t_(1 - α/2, f) + t_(π, f)) · se` on. That is the usual approximation of the power of a t
//!   test (it errs by less than one run for π = 0.8).
//! - Equality within a tolerance τ is *shown* where the interval lies within `± ln(1 + τ)`: with power
//!   `P(T_f <= (ln(1 + τ) - ln ratio) / se - t) + P(T_f <= (ln(1 + τ) + ln ratio) / se - t) - 1`, for both ends have to.
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

    /// Whether one of both verdicts is reached with the power asked for: that it changed, or that it did not.
    fn tells(&self, log_ratio: f64, error: f64, degrees: f64) -> bool {
        let quantile = student::quantile(1.0 - self.alpha / 2.0, degrees);
        let ends = |distance: f64| student::cumulative(distance / error - quantile, degrees);
        let (effect, tolerance) = (log_ratio.abs(), self.tolerance.ln_1p());
        let seen = ends(effect);
        let shown = ends(tolerance - effect) + ends(tolerance + effect) - 1.0;
        error == 0.0 || seen.max(shown) >= self.power
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
        let tells = |runs: usize| {
            let degrees = change.degrees_of_freedom * (runs - 1) as f64 / (have - 1) as f64;
            self.tells(ratio.ln(), (variance / runs as f64).sqrt(), degrees.max(1.0))
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
        if before == 0 || after == 0 || !(ratio > 0.0 && ratio.is_finite()) {
            return None;
        }
        let error = (1.0 / before as f64 + 1.0 / after as f64).sqrt();
        let tells = |times: f64| self.tells(ratio.ln(), error / times.sqrt(), f64::INFINITY);
        let (mut low, mut high) = (1.0, MOST_RUNS as f64);
        if tells(low) || !tells(high) {
            return tells(low).then_some(low);
        }
        // To a tenth of a percent: nobody measures 13.9 times as long.
        while high / low > 1.001 {
            let middle = f64::midpoint(low, high);
            if tells(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HierarchicalBootstrap, Run};

    fn change(before: &[f64], after: &[f64]) -> Change {
        let runs = |means: &[f64]| -> Vec<Run> {
            means.iter().map(|mean| Run { mean: *mean, residuals: Vec::new() }).collect()
        };
        let bootstrap = HierarchicalBootstrap::new(&vec![0; before.len()], &vec![0; after.len()], 100, 1);
        bootstrap.change(&runs(before), &runs(after), 0.95).unwrap()
    }

    /// exp((2.4469 + 0.9057) · 0.02), with scipy's quantiles of t at 6 degrees.
    #[test]
    fn the_detectable_ratio_is_some_standard_errors_away() {
        let goal = Goal::default();
        assert!((goal.detectable_ratio(0.02, 6.0) - 1.069_351_406_7).abs() < 1e-9);
        assert_eq!(goal.detectable_ratio(0.0, 6.0), 1.0);
        assert_eq!(goal.detectable_ratio(f64::INFINITY, 1.0), f64::INFINITY);
    }

    /// The standard error of the log ratio of 4 + 4 runs of 100 ± 2 is 0.0163 or so; of 10 % a test sees much less.
    #[test]
    fn a_large_change_needs_as_many_runs_as_the_permutation_test() {
        let found = change(&[98.0, 100.0, 102.0], &[118.0, 120.0, 122.0]);
        assert_eq!(Goal::default().runs_that_tell(&found), Some(4));
    }

    #[test]
    fn the_number_of_runs_is_the_least_that_reaches_the_goal() {
        let found = change(&[95.0, 100.0, 105.0, 100.0], &[99.0, 104.0, 109.0, 104.0]);
        let goal = Goal { tolerance: 0.0, ..Goal::default() };
        let runs = goal.runs_that_tell(&found).unwrap();
        let effect = 1.04_f64.ln();
        let variance = 50.0 / 3.0 * (1.0 / 100.0_f64.powi(2) + 1.0 / 104.0_f64.powi(2));
        let errors = |runs: usize| {
            let degrees = found.degrees_of_freedom * (runs - 1) as f64 / 3.0;
            (student::quantile(0.975, degrees) + student::quantile(0.8, degrees)) * (variance / runs as f64).sqrt()
        };
        assert!(errors(runs) <= effect && effect < errors(runs - 1), "{runs}");
        assert_eq!(runs, 18);
    }

    #[test]
    fn equal_sides_need_runs_until_the_interval_fits_into_the_tolerance() {
        let found = change(&[95.0, 100.0, 105.0, 100.0], &[95.0, 100.0, 105.0, 100.0]);
        // Both ends have to fit: Φ(2 · 0.0953 / ... ) with half of the misses on each side, not 0.84 but 1.28 errors.
        let wide = Goal { tolerance: 0.1, ..Goal::default() }.runs_that_tell(&found).unwrap();
        let narrow = Goal { tolerance: 0.02, ..Goal::default() }.runs_that_tell(&found).unwrap();
        assert!(4 <= wide && wide < narrow, "{wide} {narrow}");
    }

    #[test]
    fn what_a_thousand_runs_would_not_tell_is_not_promised() {
        let goal = Goal { tolerance: 0.0, ..Goal::default() };
        assert_eq!(goal.runs_that_tell(&change(&[50.0, 100.0, 150.0, 100.0], &[50.0, 100.0, 150.0, 100.001])), None);
        // A ratio of exactly the tolerance is neither side's.
        assert_eq!(goal.runs_that_tell(&change(&[95.0, 105.0], &[95.0, 105.0])), None);
        assert_eq!(Goal::default().runs_that_tell(&change(&[100.0], &[100.0])), None);
        assert_eq!(Goal::default().runs_that_tell(&change(&[0.0; 3], &[1.0, 2.0, 3.0])), None);
    }

    /// 401 -> 380 is a ratio of 0.948, or 5.2 % less: to see that takes (2.8016 · 0.0716 / 0.0538)^2 times as many.
    #[test]
    fn samples_that_would_tell_grow_with_the_square() {
        let times = Goal::default().times_as_many(401, 380, 380.0 / 401.0).unwrap();
        assert!((times - 13.9).abs() < 0.1, "{times}");
        assert_eq!(Goal::default().times_as_many(29, 120, 120.0 / 29.0), Some(1.0));
        assert_eq!(Goal::default().times_as_many(0, 5, f64::INFINITY), None);
        assert_eq!(Goal { tolerance: 0.0, ..Goal::default() }.times_as_many(7, 7, 1.0), None);
    }
}
