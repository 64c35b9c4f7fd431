//! The smallest detectable change, and the runs needed for a verdict.
//!
//! An inconclusive comparison needs more data; this module computes how much. All formulas are in terms of the log
//! ratio, whose standard error is that of [`Change`].
//!
//! - A change is *detected* if the interval excludes 1. The power is `P(T_f <= |ln ratio| / se - t_(1 - α/2, f))`, so
//!   the smallest detectable ratio has `|ln ratio| = (t_(1 - α/2, f) + t_(π, f)) · se`. This is the usual approximation
//!   of the power of a t test; at π = 0.8 it errs by less than one run.
//! - Equivalence within a tolerance τ is *shown* if the interval lies within `± ln(1 + τ)`. Both ends must, so the
//!   power is `P(T_f <= (ln(1 + τ) - ln ratio) / se - t) + P(T_f <= (ln(1 + τ) + ln ratio) / se - t) - 1`.
//! - With n runs per side `se^2 = (v_1 + v_2) / n`. v is the variance of one run's mean relative to the side's value,
//!   noise within the run included. Degrees of freedom are those of [`Change`] scaled by `(n - 1) / (N - 1)`, where N
//!   is the number of measured runs on the smaller side.

use crate::hierarchical::{Change, Spread};
use crate::permutation;
use crate::student;

/// Maximum of the runs per side that are suggested.
pub const MAX_RUNS: usize = 1_000;

/// The goal of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Significance level, two-sided: 0.05.
    pub alpha: f64,
    /// Probability of a verdict: 0.8.
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
    /// Distance in standard errors at which the power is reached.
    fn errors(&self, degrees: f64) -> f64 {
        student::quantile(1.0 - self.alpha / 2.0, degrees) + student::quantile(self.power, degrees)
    }

    /// The smallest detectable ratio above 1 (its inverse is the largest below), from the standard error of the log
    /// ratio and its degrees of freedom. Infinite if the error is.
    pub fn detectable_ratio(&self, log_standard_error: f64, degrees: f64) -> f64 {
        (self.errors(degrees) * log_standard_error).exp()
    }

    /// Whether either verdict, changed or equivalent, is reached with the power of the goal.
    fn reaches(&self, log_ratio: f64, error: f64, degrees: f64) -> bool {
        let quantile = student::quantile(1.0 - self.alpha / 2.0, degrees);
        let ends = |distance: f64| student::cumulative(distance / error - quantile, degrees);
        let (effect, tolerance) = (log_ratio.abs(), self.tolerance.ln_1p());
        let seen = ends(effect);
        let shown = ends(tolerance - effect) + ends(tolerance + effect) - 1.0;
        error == 0.0 || seen.max(shown) >= self.power
    }

    /// Runs per side needed for a verdict, changed or equivalent, whichever needs fewer.
    ///
    /// It assumes that the measured ratio is the true one, and is at least what a permutation test needs. `None`
    /// without a ratio, if the scatter of a side is unknown, or if [`MAX_RUNS`] are not enough.
    pub fn runs_needed(&self, change: &Change) -> Option<usize> {
        let ratio = change.ratio?.value;
        let have = change.spread_before.runs.min(change.spread_after.runs);
        if have < 2 {
            return None;
        }
        let relative = |spread: Spread, value: f64| (spread.between + spread.within) / (value * value);
        let variance = relative(change.spread_before, change.before) + relative(change.spread_after, change.after);
        let reaches = |runs: usize| {
            let degrees = change.degrees_of_freedom * (runs - 1) as f64 / (have - 1) as f64;
            self.reaches(ratio.ln(), (variance / runs as f64).sqrt(), degrees.max(1.0))
        };
        let least = permutation::least_runs(self.alpha)?.max(2);
        if !reaches(MAX_RUNS) {
            return None;
        }
        // A verdict reached with few runs is reached with more.
        let (mut low, mut high) = (least, MAX_RUNS);
        while low < high {
            let middle = usize::midpoint(low, high);
            if reaches(middle) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }

    /// Factor by which both sample counts of one run each must grow for a verdict, at least 1.
    ///
    /// The standard error is `se^2 = 1 / before + 1 / after`. `None` if a side has no samples or the factor exceeds
    /// 1,000.
    pub fn sample_factor(&self, before: u64, after: u64, ratio: f64) -> Option<f64> {
        if before == 0 || after == 0 || !(ratio > 0.0 && ratio.is_finite()) {
            return None;
        }
        let error = (1.0 / before as f64 + 1.0 / after as f64).sqrt();
        let reaches = |times: f64| self.reaches(ratio.ln(), error / times.sqrt(), f64::INFINITY);
        let (mut low, mut high) = (1.0, MAX_RUNS as f64);
        if reaches(low) || !reaches(high) {
            return reaches(low).then_some(low);
        }
        // A tenth of a percent is precise enough for a suggestion.
        while high / low > 1.001 {
            let middle = f64::midpoint(low, high);
            if reaches(middle) { high = middle } else { low = middle }
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

    /// The standard error of the log ratio of 4 + 4 runs of 100 ± 2 is about 0.0163; a t test detects much less than 10
    /// %.
    #[test]
    fn a_large_change_needs_as_many_runs_as_the_permutation_test() {
        let found = change(&[98.0, 100.0, 102.0], &[118.0, 120.0, 122.0]);
        assert_eq!(Goal::default().runs_needed(&found), Some(4));
    }

    #[test]
    fn the_number_of_runs_is_the_least_that_reaches_the_goal() {
        let found = change(&[95.0, 100.0, 105.0, 100.0], &[99.0, 104.0, 109.0, 104.0]);
        let goal = Goal { tolerance: 0.0, ..Goal::default() };
        let runs = goal.runs_needed(&found).unwrap();
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
        // Both ends must fit, each with half of the misses: 1.28 standard errors instead of 0.84.
        let wide = Goal { tolerance: 0.1, ..Goal::default() }.runs_needed(&found).unwrap();
        let narrow = Goal { tolerance: 0.02, ..Goal::default() }.runs_needed(&found).unwrap();
        assert!(4 <= wide && wide < narrow, "{wide} {narrow}");
    }

    #[test]
    fn more_than_a_thousand_runs_are_not_suggested() {
        let goal = Goal { tolerance: 0.0, ..Goal::default() };
        assert_eq!(goal.runs_needed(&change(&[50.0, 100.0, 150.0, 100.0], &[50.0, 100.0, 150.0, 100.001])), None);
        // A ratio equal to the tolerance supports neither verdict.
        assert_eq!(goal.runs_needed(&change(&[95.0, 105.0], &[95.0, 105.0])), None);
        assert_eq!(Goal::default().runs_needed(&change(&[100.0], &[100.0])), None);
        assert_eq!(Goal::default().runs_needed(&change(&[0.0; 3], &[1.0, 2.0, 3.0])), None);
    }

    /// 401 -> 380 is a ratio of 0.948. Detecting 5.2 % takes (2.8016 · 0.0716 / 0.0538)^2 times the samples.
    #[test]
    fn samples_needed_grow_with_the_square() {
        let times = Goal::default().sample_factor(401, 380, 380.0 / 401.0).unwrap();
        assert!((times - 13.9).abs() < 0.1, "{times}");
        assert_eq!(Goal::default().sample_factor(29, 120, 120.0 / 29.0), Some(1.0));
        assert_eq!(Goal::default().sample_factor(0, 5, f64::INFINITY), None);
        assert_eq!(Goal { tolerance: 0.0, ..Goal::default() }.sample_factor(7, 7, 1.0), None);
    }
}
