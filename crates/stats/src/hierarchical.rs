//! [`HierarchicalBootstrap`]: the change between two sides that were measured in several runs each.
//!
//! The steps of a run are not independent evidence. Memory layout, temperature and other programs are drawn once for
//! all steps of a run (Mytkowicz et al., *Producing Wrong Data Without Doing Anything Obviously Wrong!*, ASPLOS 2009;
//! Kalibera and Jones, *Rigorous Benchmarking in Reasonable Time*, ISMM 2013). So runs are the unit: a side's value is
//! the mean of its runs' means, and its uncertainty comes from how the runs differ. Blocks of consecutive steps show
//! how much of that difference is noise within runs.
//!
//! # Variance
//! A side has R runs with means `m_i`; run i has `b_i` blocks with residuals `e_ij`:
//!
//! - Between runs, `B = sum (m_i - m)^2 / (R - 1)`. It estimates the variance of runs *plus* that of the noise within
//!   runs.
//! - Within runs, `W = 1/R sum w_i` with `w_i = sum_j e_ij^2 / (b_i (b_i - 1))`: the noise alone.
//!
//! The variance of the side's value is `V = max(B, 4/5 W) / R`. W is part of B and never counted twice. If few runs
//! happen to be closer together than their noise allows, the noise counts. (The larger of two estimates of a variance
//! is too large on average. With 4/5, intervals cover 95 to 96 % if runs differ only by their noise; with the whole of
//! W, 97 %.) A single run has `V = w_1`. A single run with at most one block has unknown variance: the interval is
//! infinite and p is 1.
//!
//! # Bootstrap
//! Runs are drawn with replacement, then blocks within each drawn run. Without correction, this would count the noise
//! within runs twice and miss a share `1/R` of the rest. So the means of runs are first moved towards (or away from)
//! the side's mean, `m + k (m_i - m)` with `k^2 = max(0, B - W) / (sum (m_i - m)^2 / R)`. Draws within a run are scaled
//! to the variance `w_i`, or to `w_i V R / W` if that is smaller (after Davison and Hinkley, *Bootstrap Methods and
//! their Application*, 1997, section 3.8). The variance of the resampled values is then exactly V.
//!
//! # Interval
//! [BCa](crate::bca), with the acceleration from leaving out a run (or a block, if a side has one run). Few runs
//! underestimate the scatter of runs. So both ends are moved outward by `t / z`, the quantile of Student's t over the
//! normal one. (Hesterberg, *What Teachers Should Know about the Bootstrap*, 2014, section 5.3, widens the levels
//! instead; but no resample of four runs lies that far out.) The interval of the ratio is computed likewise from
//! logarithms.
//!
//! The result is the hull with Student's interval, `value ± t · sqrt(V_1 + V_2)`. BCa corrects for skew by moving both
//! ends in the same direction, which is right if one side is skewed. If both are, their skews cancel in the difference
//! and the shift is chance. With 20 runs per side, one in ten slowed down from outside, BCa alone covers 89 % instead
//! of 95 %, Student's interval 97 %. With noise on one side only, it is the other way round. The hull covers 95 to 99
//! %; for normal noise it is 2 to 6 % wider than either.
//!
//! Degrees of freedom of both sides are Satterthwaite's: `(V_1 + V_2)^2 / (V_1^2 / f_1 + V_2^2 / f_2)`. For one side,
//! `1 / f = s / (R - 1) + (1 - s) / g`. `g = (sum w_i)^2 / sum (w_i^2 / (b_i - 1))` (at least R - 1) are the degrees of
//! the noise within runs, estimated from many blocks. `s = max(0, B - 4/5 W) / B` is the share of the variance
//! estimated from the few runs. With `f = R - 1` throughout, intervals would be a quarter too wide if runs differ only
//! by their noise.
//!
//! # Calibration
//! In simulated comparisons (`examples/calibration.rs`) the 95 % interval contains the true value in 95 to 97 %. They
//! have 4, 8 and 20 runs per side, runs that differ by 0, 1 and 3 % besides their noise, sampling noise and skewed
//! noise, and changes of 0 to 20 %. Exceptions:
//!
//! - Two runs per side: 92 %.
//! - One run per side whose steps are correlated over most of a block: 90 % at a correlation of 0.9 between steps in
//!   blocks of 30. One run cannot separate this from differences between blocks.
//! - One run in ten slowed down from outside: 98 to 99 % with 4 and 8 runs per side, so the interval is too wide.
//!
//! # p
//! The two-sided tail of Student's t at `(after - before) / sqrt(V_1 + V_2)` (Welch, 1947), with fewer degrees of
//! freedom: for a side of several runs, the harmonic mean of `R - 1` and f. Among a thousand rows the smallest p
//! decide, and these belong to rows whose runs happened to be close together. The degrees that give correct 95 %
//! intervals make such p far too small. (With 300 unchanged functions and 4 + 4 runs, at least one was called changed
//! in 10 % of the comparisons with f, in none with `R - 1`, and in 0.5 % with the mean, which finds a quarter more real
//! changes.) It assumes that the means of runs are about normal; [`crate::permutation`] does not.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::bca;
use crate::interval::Estimate;
use crate::random::SplitMix64;
use crate::student;

/// Default number of resamples: the ends of a 95 % interval then scatter by about 2 % of its width.
pub const REPLICATES: usize = 2_000;

/// Relative difference up to which means are equal.
const ROUNDING: f64 = 1e-12;

/// Minimum variance between runs, as a share of the noise within them: see the [module](self).
const FLOOR: f64 = 0.8;

/// One run's value of a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The run's mean.
    pub mean: f64,
    /// Deviations of consecutive blocks of steps from the mean, in the same unit; their sum is zero. Empty if only the
    /// mean is known, as for a percentile.
    pub residuals: Vec<f64>,
}

/// Scatter of the runs of one side, as variances of one run's mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// Variance of the true means of runs, `max(0, B - W)`. 0 for one run, where it is unknown.
    pub between: f64,
    /// Variance of a run's mean from noise within the run, `W`. 0 without blocks.
    pub within: f64,
}

/// The change of a number between two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Mean of the runs before.
    pub before: f64,
    /// Mean of the runs after.
    pub after: f64,
    /// `after - before`. Ends are infinite if a side is one run without blocks.
    pub difference: Estimate,
    /// `after / before`; `None` unless both are positive. An end may be 0 or infinite if some runs are 0.
    pub ratio: Option<Estimate>,
    /// Standard error of the difference, `sqrt(V_1 + V_2)`; infinite if that of a side is unknown.
    pub standard_error: f64,
    /// Standard error of the log ratio, `sqrt(V_1 / before^2 + V_2 / after^2)`; `None` without a ratio.
    pub log_ratio_standard_error: Option<f64>,
    /// Degrees of freedom of both standard errors, after Satterthwaite; at least 1.
    pub degrees_of_freedom: f64,
    /// Two-sided p-value of the difference, with fewer degrees of freedom than the interval. 1 for equal values, 0 for
    /// different values that never vary.
    pub p: f64,
    /// The fewer degrees of freedom of [`p`](Self::p).
    pub test_degrees_of_freedom: f64,
    /// Scatter of the runs before.
    pub spread_before: Spread,
    /// Scatter of the runs after.
    pub spread_after: Spread,
}

impl Change {
    /// The same, where the runs were moved by a model that was fitted to them: the variance is larger by this factor, and the
    /// fit took `fitted` degrees of freedom.
    #[must_use]
    pub(crate) fn with_fitted(mut self, variance_factor: f64, fitted: f64, confidence: f64) -> Self {
        let quantile = |degrees: f64| student::quantile(f64::midpoint(1.0, confidence), degrees);
        let (scale, before) = (variance_factor.sqrt(), self.degrees_of_freedom);
        self.degrees_of_freedom = (before - fitted).max(1.0);
        self.test_degrees_of_freedom = (self.test_degrees_of_freedom - fitted).max(1.0);
        let factor = scale * quantile(self.degrees_of_freedom) / quantile(before);
        self.difference = self.difference.stretched(factor);
        self.ratio = self.ratio.map(|ratio| ratio.stretched_log(factor));
        self.standard_error *= scale;
        self.log_ratio_standard_error = self.log_ratio_standard_error.map(|error| error * scale);
        if self.difference.value != 0.0 {
            self.p = student::two_sided(self.difference.value / self.standard_error, self.test_degrees_of_freedom);
        }
        self
    }
}

/// Resamples of two sides, drawn once and used for many numbers, so that these are comparable.
#[derive(Debug, Clone)]
pub struct HierarchicalBootstrap {
    before: Draws,
    after: Draws,
}

impl HierarchicalBootstrap {
    /// Draws resamples of two sides, given the number of blocks of each run (0 for none).
    ///
    /// # Panics
    /// If a run has more than 65,536 blocks.
    pub fn new(before: &[usize], after: &[usize], replicates: usize, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        Self { before: Draws::new(before, replicates, &mut random), after: Draws::new(after, replicates, &mut random) }
    }

    /// The change of a number between two sides, with intervals of `confidence` (e.g. 0.95).
    ///
    /// `None` if a side has no runs or a value is not finite.
    ///
    /// # Panics
    /// If the number of runs, or of blocks of a run, differs from the one drawn for. A run without blocks is allowed.
    pub fn change(&self, before: &[Run], after: &[Run], confidence: f64) -> Option<Change> {
        let (first, second) = (SideEstimates::new(before)?, SideEstimates::new(after)?);
        let standard_error = (first.variance + second.variance).sqrt();
        let degrees = satterthwaite([(first.variance, first.degrees), (second.variance, second.degrees)]);
        let cautious =
            satterthwaite([(first.variance, first.cautious_degrees()), (second.variance, second.cautious_degrees())]);
        let value = apart(first.value, second.value);
        let resamples = Resamples {
            before: (self.before.values(before, &first), left_out(before)),
            after: (self.after.values(after, &second), left_out(after)),
            confidence,
            quantile: student::quantile(0.5 + confidence / 2.0, degrees),
        };
        let known = standard_error.is_finite();
        let unknown = Estimate { value, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let relative = |side: &SideEstimates| side.variance / (side.value * side.value);
        let log_error = (relative(&first) + relative(&second)).sqrt();
        let ratio = (first.value > 0.0 && second.value > 0.0).then(|| {
            let ratio = if value == 0.0 { 1.0 } else { second.value / first.value };
            let log = if known { resamples.log_ratio(ratio.ln(), log_error, &first, &second) } else { unknown };
            Estimate { value: ratio, low: log.low.exp(), high: log.high.exp() }
        });
        Some(Change {
            before: first.value,
            after: second.value,
            difference: if known { resamples.difference(value, standard_error) } else { unknown },
            ratio,
            standard_error,
            log_ratio_standard_error: ratio.map(|_| log_error),
            degrees_of_freedom: degrees,
            p: if value == 0.0 { 1.0 } else { student::two_sided(value / standard_error, cautious) },
            test_degrees_of_freedom: cautious,
            spread_before: first.spread,
            spread_after: second.spread,
        })
    }
}

/// Resampled values of two sides, and their jackknife values.
struct Resamples {
    before: (Vec<f64>, Vec<f64>),
    after: (Vec<f64>, Vec<f64>),
    confidence: f64,
    /// Quantile of Student's t for the ends of intervals.
    quantile: f64,
}

impl Resamples {
    fn difference(&self, value: f64, error: f64) -> Estimate {
        self.interval(value, error, |before, after| after - before, [-1.0, 1.0])
    }

    fn log_ratio(&self, value: f64, error: f64, before: &SideEstimates, after: &SideEstimates) -> Estimate {
        let of = |before: f64, after: f64| log_ratio(before, after, value);
        self.interval(value, error, of, [-1.0 / before.value, 1.0 / after.value])
    }

    /// The hull of Student's interval and the widened BCa interval of a function of both sides. The influence of a side
    /// on the result is its influence on the side's value times its slope.
    fn interval(&self, value: f64, error: f64, of: impl Fn(f64, f64) -> f64, slopes: [f64; 2]) -> Estimate {
        let mut resampled: Vec<f64> =
            self.before.0.iter().zip(&self.after.0).map(|(before, after)| of(*before, *after)).collect();
        resampled.sort_unstable_by(f64::total_cmp);
        let influence = |left_out: &[f64], slope: f64| -> Vec<f64> { left_out.iter().map(|one| one * slope).collect() };
        let influences = [influence(&self.before.1, slopes[0]), influence(&self.after.1, slopes[1])];
        let acceleration = bca::acceleration(&[&influences[0], &influences[1]]);
        let (low, high) = bca::interval(&resampled, value, acceleration, self.confidence).unwrap_or((value, value));
        let stretch = self.quantile / Normal::standard().inverse_cdf(0.5 + self.confidence / 2.0);
        let reach = self.quantile * error;
        Estimate {
            value,
            low: value - ((value - low) * stretch).max(reach),
            high: value + ((high - value) * stretch).max(reach),
        }
    }
}

/// The difference of two values, or 0 if rounding can explain it.
fn apart(before: f64, after: f64) -> f64 {
    let difference = after - before;
    if difference.abs() <= ROUNDING * before.abs().max(after.abs()) { 0.0 } else { difference }
}

/// The log ratio of resampled values, or that of the data if both are 0.
fn log_ratio(before: f64, after: f64, otherwise: f64) -> f64 {
    match (before > 0.0, after > 0.0) {
        (true, true) => (after / before).ln(),
        (true, false) => f64::NEG_INFINITY,
        (false, true) => f64::INFINITY,
        (false, false) => otherwise,
    }
}

/// Jackknife values of a side: without each run, or without each block if there is one run.
fn left_out(runs: &[Run]) -> Vec<f64> {
    let without = |values: &mut dyn Iterator<Item = f64>, sum: f64, n: usize| -> Vec<f64> {
        values.map(|value| (sum - value) / (n - 1) as f64).collect()
    };
    match runs {
        [run] if run.residuals.len() < 2 => Vec::new(),
        [run] => {
            let n = run.residuals.len();
            let sum = run.mean * n as f64 + run.residuals.iter().sum::<f64>();
            without(&mut run.residuals.iter().map(|residual| run.mean + residual), sum, n)
        }
        runs => without(&mut runs.iter().map(|run| run.mean), runs.iter().map(|run| run.mean).sum(), runs.len()),
    }
}

/// Satterthwaite's degrees of freedom of a sum of variances, given as (variance, degrees).
fn satterthwaite(parts: [(f64, f64); 2]) -> f64 {
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let spread: f64 = parts.iter().map(|(variance, degrees)| (variance / sum).powi(2) / degrees).sum();
    // Without variance, or with an unknown one, the degrees do not matter.
    if sum > 0.0 && sum.is_finite() { (1.0 / spread).max(1.0) } else { 1.0 }
}

/// The estimates of one side.
struct SideEstimates {
    value: f64,
    /// Variance of the value.
    variance: f64,
    degrees: f64,
    /// Factor k of the runs' deviations from the value.
    shrinkage: f64,
    /// Factor of the variance of the noise within runs.
    noise: f64,
    spread: Spread,
}

impl SideEstimates {
    fn new(runs: &[Run]) -> Option<Self> {
        let finite = |run: &Run| run.mean.is_finite() && run.residuals.iter().all(|residual| residual.is_finite());
        if runs.is_empty() || !runs.iter().all(finite) {
            return None;
        }
        let count = runs.len() as f64;
        let value = runs.iter().map(|run| run.mean).sum::<f64>() / count;
        let noises: Vec<(f64, f64)> = runs.iter().filter_map(noise).collect();
        let within = noises.iter().map(|(noise, _)| noise).sum::<f64>() / count;
        let noise_degrees =
            (within * count).powi(2) / noises.iter().map(|(noise, degrees)| noise * noise / degrees).sum::<f64>();
        if runs.len() == 1 {
            let known = !noises.is_empty();
            return Some(Self {
                value,
                variance: if known { within } else { f64::INFINITY },
                degrees: if within > 0.0 { noise_degrees } else { 1.0 },
                shrinkage: 0.0,
                noise: 1.0,
                spread: Spread { runs: 1, between: 0.0, within },
            });
        }
        let squares: f64 = runs.iter().map(|run| apart(value, run.mean).powi(2)).sum();
        let between = squares / (count - 1.0);
        let excess = (between - within).max(0.0);
        let floor = FLOOR * within;
        let variance = between.max(floor);
        let of_runs = if between > floor { (between - floor) / between } else { 0.0 };
        Some(Self {
            value,
            variance: variance / count,
            degrees: 1.0 / (of_runs / (count - 1.0) + (1.0 - of_runs) / noise_degrees.max(count - 1.0)),
            shrinkage: if excess > 0.0 { (excess * count / squares).sqrt() } else { 0.0 },
            noise: if within > 0.0 { (variance / within).min(1.0) } else { 1.0 },
            spread: Spread { runs: runs.len(), between: excess, within },
        })
    }
}

impl SideEstimates {
    /// Degrees of freedom that rely less on the noise within runs: see the [module](self).
    fn cautious_degrees(&self) -> f64 {
        match self.spread.runs {
            1 => self.degrees,
            runs => 2.0 / (1.0 / (runs - 1) as f64 + 1.0 / self.degrees),
        }
    }
}

/// Variance of a run's mean from the noise of its blocks, and its degrees of freedom. `None` for fewer than two blocks.
fn noise(run: &Run) -> Option<(f64, f64)> {
    let blocks = run.residuals.len() as f64;
    let squares: f64 = run.residuals.iter().map(|residual| residual * residual).sum();
    (blocks >= 2.0).then(|| (squares / (blocks * (blocks - 1.0)), blocks - 1.0))
}

/// The drawn runs and blocks of one side.
///
/// Blocks are drawn first, some hundred times for each run: its *readings*. A replicate then draws runs, and one
/// reading of each. The distribution is the same as with new blocks for each replicate, except for chance, which
/// [`Draws::readings`] removes from mean and variance. It takes a tenth of the additions.
#[derive(Debug, Clone)]
struct Draws {
    blocks: Vec<usize>,
    /// Number of readings per run.
    readings: usize,
    /// Blocks of each reading: as many as the run has.
    picks: Vec<u16>,
    /// Readings of each replicate: as many as there are runs.
    drawn: Vec<u32>,
}

/// Number of readings per side; each run has at least [`MIN_READINGS`].
const READINGS: usize = 2_048;
const MIN_READINGS: usize = 32;

impl Draws {
    fn new(blocks: &[usize], replicates: usize, random: &mut SplitMix64) -> Self {
        assert!(blocks.iter().all(|blocks| *blocks <= 1 << 16), "a run has at most 65,536 blocks");
        let readings = (READINGS / blocks.len().max(1)).max(MIN_READINGS);
        let mut picks = Vec::with_capacity(readings * blocks.iter().sum::<usize>());
        for blocks in blocks {
            picks.extend((0..readings * blocks).map(|_| random.below(*blocks) as u16));
        }
        let all = readings * blocks.len();
        let drawn = (0..replicates * blocks.len()).map(|_| random.below(all) as u32).collect();
        Self { blocks: blocks.to_vec(), readings, picks, drawn }
    }

    /// The value of the side in each resample.
    fn values(&self, runs: &[Run], side: &SideEstimates) -> Vec<f64> {
        assert_eq!(runs.len(), self.blocks.len(), "resamples were drawn for another number of runs");
        let mut readings = Vec::with_capacity(self.readings * runs.len());
        let mut picks = self.picks.as_slice();
        for (run, blocks) in runs.iter().zip(&self.blocks) {
            let (own, rest) = picks.split_at(self.readings * blocks);
            picks = rest;
            self.readings(run, own, side, &mut readings);
        }
        let sum = |drawn: &[u32]| drawn.iter().map(|reading| readings[*reading as usize]).sum::<f64>();
        let count = runs.len() as f64;
        self.drawn.chunks_exact(runs.len()).map(|drawn| side.value + sum(drawn) / count).collect()
    }

    /// Possible means of a run minus the side's value, with exactly the mean and variance of its noise.
    fn readings(&self, run: &Run, picks: &[u16], side: &SideEstimates, readings: &mut Vec<f64>) {
        let centre = (run.mean - side.value) * side.shrinkage;
        let Some((variance, _)) = noise(run).filter(|(variance, _)| *variance > 0.0) else {
            readings.extend(std::iter::repeat_n(centre, self.readings));
            return;
        };
        let blocks = run.residuals.len();
        assert_eq!(picks.len(), self.readings * blocks, "resamples were drawn for another number of blocks");
        let first = readings.len();
        readings.extend(
            picks
                .chunks_exact(blocks)
                .map(|picks| picks.iter().map(|block| run.residuals[*block as usize]).sum::<f64>()),
        );
        let own = &mut readings[first..];
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        let spread = own.iter().map(|reading| (reading - mean).powi(2)).sum::<f64>() / own.len() as f64;
        let factor = if spread > 0.0 { (variance * side.noise / spread).sqrt() } else { 0.0 };
        own.iter_mut().for_each(|reading| *reading = centre + (*reading - mean) * factor);
    }
}

#[cfg(test)]
mod tests;
