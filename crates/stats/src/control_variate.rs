//! [`adjusted_change`]: less scatter between runs, by a quantity that was measured beside and that a change cannot affect.
//!
//! The machine's speed differs from run to run, and with it every cost. Where the speed was measured beside, the part of the
//! scatter that it explains can be removed: a *control variate* (Lavenberg and Welch, *A Perspective on the Use of Control
//! Variables to Increase the Efficiency of Monte Carlo Simulations*, 1981), here by [analysis of covariance](Covariance).
//!
//! # Model
//! `y_i = m_s + b x_i + e_i` for run i of side s: y is the logarithm of a cost, x that of the covariate. The coefficient is
//! fitted within the sides, on both together: with deviations `u`, `v` of x, y from the means of their sides,
//! `b = sum u v / sum u^2`. Runs are moved to the mean x of all runs, `m_i exp(-b (x_i - x))`, each block of steps by the
//! covariate of its own time. The runs then go through the [hierarchical bootstrap](crate::hierarchical).
//!
//! # When
//! Of several covariates, the one with the smallest error of prediction counts, by generalised cross-validation (Craven and
//! Wahba, *Smoothing Noisy Data with Spline Functions*, 1979): `sum e^2 / (n - 3)^2` of n runs, against `sum v^2 / (n - 2)^2`
//! without a covariate. It is used if
//!
//! - that share is at most [`MOST_ERROR`](crate::covariance::MOST_ERROR), and leaving out each run in turn
//!   does not make it more than 1: no single run decides;
//! - the coefficient has the expected sign, and a size of at most [`LARGEST_SLOPE`](crate::covariance::LARGEST_SLOPE);
//! - there are [`LEAST_RUNS`] runs on each side;
//! - the interval becomes narrower.
//!
//! # Interval
//! The fit costs a degree of freedom, and the coefficient has an error. With n runs and a difference `d` of the sides' mean x,
//! the variance of the log ratio is that of the adjusted runs, times `(n - 2) / (n - 3)` and
//! `1 + d^2 / (sum u^2 (1 / n_1 + 1 / n_2))`. Student's t has one degree less.
//!
//! # p
//! A [permutation test](Permutations::test_covariance) that chooses the covariate and fits the coefficient again for each
//! split, used or not. If nothing changed, runs keep their x and y whatever their label is, so the test is exact. (A test of the
//! adjusted values alone would not be: with a covariate that explains half of the variance, it was significant in 6 to 7 % of
//! simulated comparisons without a change.)

use crate::covariance::{Covariance, Direction, Slope};
use crate::hierarchical::{Change, HierarchicalBootstrap, Run};
use crate::permutation::{PermutationTest, Permutations};
use crate::student;

/// Fewest runs on each side.
pub const LEAST_RUNS: usize = 4;

/// The logarithm of a covariate in one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Of the whole run.
    pub whole: f64,
    /// Of each of its blocks; empty if only the whole is known.
    pub blocks: Vec<f64>,
}

/// A covariate of all runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Covariate {
    /// Of the runs before.
    pub before: Vec<Reading>,
    /// Of the runs after.
    pub after: Vec<Reading>,
}

impl Covariate {
    fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.before.iter().chain(&self.after)
    }
}

/// A change, without the part of the scatter that something measured beside explains.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjusted {
    /// The change, at the mean covariate of all runs, or on the mean machine.
    pub change: Change,
    /// The test of the difference.
    pub test: PermutationTest,
    /// The covariate; `None` if none is used.
    pub by: Option<Adjustment>,
    /// The means of the runs before and after, as the change has them.
    pub means: [Vec<f64>; 2],
}

/// A covariate that is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    /// Which of the given covariates.
    pub covariate: usize,
    /// By how many percent the number rises with a percent of the covariate.
    pub coefficient: f64,
    /// Width of the log ratio's interval, as a share of that without a covariate.
    pub width_share: f64,
}

/// The change of a number, adjusted if a covariate helps.
///
/// `None` if covariates do not apply: with fewer than [`LEAST_RUNS`] runs, values that are not positive, or no scatter.
///
/// # Panics
/// As [`HierarchicalBootstrap::change`]; or if a covariate has another number of runs.
pub fn adjusted_change(
    bootstrap: &HierarchicalBootstrap,
    permutations: &Permutations,
    (before, after): (&[Run], &[Run]),
    covariates: &[Covariate],
    direction: Direction,
    confidence: f64,
) -> Option<Adjusted> {
    if before.len().min(after.len()) < LEAST_RUNS || covariates.is_empty() {
        return None;
    }
    let y: Vec<f64> = before.iter().chain(after).map(|run| run.mean.ln()).collect();
    let x: Vec<Vec<f64>> = covariates.iter().map(|one| one.readings().map(|reading| reading.whole).collect()).collect();
    let data = Covariance::new(before.len(), &y, &x, direction)?;
    let change = bootstrap.change(before, after, confidence)?;
    let test = permutations.test_covariance(&data);
    let means = |runs: [&[Run]; 2]| runs.map(|runs| runs.iter().map(|run| run.mean).collect());
    let unadjusted = Adjusted { change, test, by: None, means: means([before, after]) };
    let Some(slope) = data.slope().filter(|slope| predicts(slope, before.len(), &x[slope.candidate], &y)) else {
        return Some(unadjusted);
    };
    let covariate = &covariates[slope.candidate];
    let centre = mean(&x[slope.candidate]);
    let moved = |runs: &[Run], readings: &[Reading]| -> Vec<Run> {
        runs.iter().zip(readings).map(|(run, reading)| moved(run, reading, slope.slope, centre)).collect()
    };
    let (before, after) = (moved(before, &covariate.before), moved(after, &covariate.after));
    let change = bootstrap.change(&before, &after, confidence)?.with_fitted(slope.variance_factor, 1.0, confidence);
    let half_width = |change: &Change| {
        let quantile = student::quantile(f64::midpoint(1.0, confidence), change.degrees_of_freedom);
        change.log_ratio_standard_error.map(|error| error * quantile)
    };
    let width_share = half_width(&change)? / half_width(&unadjusted.change)?;
    if width_share >= 1.0 {
        return Some(unadjusted);
    }
    let by = Adjustment { covariate: slope.candidate, coefficient: slope.slope, width_share };
    Some(Adjusted { change, test, by: Some(by), means: means([&before, &after]) })
}

/// Whether each run is predicted better from the others with x than without: the residuals of leave-one-out are
/// `e_i / (1 - h_i)`, with the leverage `h_i = 1 / n_s + u_i^2 / sum u^2`.
fn predicts(slope: &Slope, runs_before: usize, x: &[f64], y: &[f64]) -> bool {
    let deviations = |values: &[f64]| -> Vec<f64> {
        let (before, after) = values.split_at(runs_before);
        [before, after].iter().flat_map(|side| side.iter().map(|value| value - mean(side))).collect()
    };
    let (u, v) = (deviations(x), deviations(y));
    let squares: f64 = u.iter().map(|u| u * u).sum();
    let (mut with, mut without) = (0.0, 0.0);
    for (index, (u, v)) in u.iter().zip(&v).enumerate() {
        let runs = if index < runs_before { runs_before } else { y.len() - runs_before };
        let own = 1.0 / runs as f64;
        with += ((v - slope.slope * u) / (1.0 - own - u * u / squares).max(1e-6)).powi(2);
        without += (v / (1.0 - own)).powi(2);
    }
    with < without
}

/// A run at the centre of the covariate.
fn moved(run: &Run, reading: &Reading, coefficient: f64, centre: f64) -> Run {
    let factor = |x: f64| (-coefficient * (x - centre)).exp();
    if reading.blocks.len() != run.residuals.len() || run.residuals.is_empty() {
        let factor = factor(reading.whole);
        let residuals = run.residuals.iter().map(|residual| residual * factor).collect();
        return Run { mean: run.mean * factor, residuals };
    }
    let block = |(residual, x): (&f64, &f64)| (run.mean + residual) * factor(*x);
    let blocks: Vec<f64> = run.residuals.iter().zip(&reading.blocks).map(block).collect();
    let mean = mean(&blocks);
    Run { mean, residuals: blocks.into_iter().map(|block| block - mean).collect() }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests;
