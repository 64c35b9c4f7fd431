//! [`HierarchicalBootstrap`]: what changed between two sides that were each measured in several runs.
//!
//! A run tells less than its many steps suggest: where its memory came to lie, how warm the machine was and what else
//! ran are drawn once for all of its steps (Mytkowicz et al., *Producing Wrong Data Without Doing Anything Obviously
//! Wrong!*, ASPLOS 2009; Kalibera and Jones, *Rigorous Benchmarking in Reasonable Time*, ISMM 2013). So runs are the unit: a
//! side's value is the mean of its runs' means, and how well it is known comes from how the runs differ. Blocks of
//! consecutive steps within the runs say how much of that difference is noise of the steps alone.
//!
//! # Variance
//! Of a side with R runs of means `m_i`, whose blocks have the residuals `e_ij` (b_i of them):
//!
//! - between runs, `B = sum (m_i - m)^2 / (R - 1)`: expected to be the variance of runs *and* that of the noise within;
//! - within runs, `W = 1/R sum w_i` with `w_i = sum_j e_ij^2 / (b_i (b_i - 1))`: the part that comes from noise within.
//!
//! The variance of the side's value is `V = max(B, 4/5 W) / R`: W is contained in B, and never counted twice; where few runs
//! happen to lie much closer together than their own noise allows, it is the noise that counts. (The larger of two
//! estimates of one variance is too large on average; with 4/5 intervals cover 95 to 96 % where runs differ by no more than
//! their noise, and 97 % with the whole of W.) One run alone has `V = w_1`, and one run without blocks (or with one) is
//! known not at all: the interval is infinite and p is 1.
//!
//! # Bootstrap
//! Runs are drawn with replacement, then blocks within each drawn run. Drawn as they are, that would count the noise
//! within twice and miss a part `1/R` of the rest, so that the runs' means are first moved towards (or away from) the
//! side's, `m + k (m_i - m)` with `k^2 = max(0, B - W) / (sum (m_i - m)^2 / R)`, and what is drawn within a run is
//! scaled to the variance `w_i`, or to `w_i V R / W` where that is less (after Davison and Hinkley, *Bootstrap Methods and
//! their Application*, 1997, section 3.8). The variance of the resampled values is then V exactly.
//!
//! # Interval
//! [BCa](crate::bca), the acceleration from leaving out a run (of a side of one run, a block). Few runs do not show how
//! widely runs scatter: the interval's ends are therefore moved outward by `t / z`, the quantile of Student's t over the
//! normal one (after Hesterberg, *What Teachers Should Know about the Bootstrap*, 2014, section 5.3, who widens the levels
//! instead; but of four runs no resample lies as far out as these levels ask). The ratio's interval is made of
//! logarithms in the same way.
//!
//! No end is nearer than that of Student's interval, `value ± t · sqrt(V_1 + V_2)`. BCa makes up for skew by moving both ends
//! the same way, which is right where one side is skewed; where both are, their skews cancel in the difference, and what
//! is left of BCa's shift is chance. With 20 runs a side, of which one in ten is slowed down by something else, BCa alone covers
//! 89 % instead of 95 %, Student's interval 97 %; with noise on one side only it is the other way round. The hull of both
//! covers 95 to 99 %, and of normal noise is 2 to 6 % wider than either.
//!
//! Degrees of freedom of the two sides together are Satterthwaite's: `(V_1 + V_2)^2 / (V_1^2 / f_1 + V_2^2 / f_2)`. Of one
//! side, `1 / f = s / (R - 1) + (1 - s) / g`: `g = (sum w_i)^2 / sum (w_i^2 / (b_i - 1))` are the degrees of the noise within
//! (at least R - 1), of which many blocks tell, and `s = max(0, B - 4/5 W) / B` is the part of the variance that only the
//! few runs tell of. With `f = R - 1` throughout, intervals would be a quarter wider than they need be where runs differ by no more
//! than their noise.
//!
//! # Calibration
//! Of simulated comparisons (`examples/calibration.rs`; 4, 8 and 20 runs a side; runs that differ by 0, 1 and 3 % besides their
//! noise; sampled and skewed noise; changes of 0 to 20 %) the 95 % interval holds the truth in 95 to 97 %. Where it fails: two
//! runs a side (92 %), and one run a side whose steps resemble each other for longer than a block is a small multiple of
//! (90 % at a correlation of 0.9 from step to step in blocks of 30): one run cannot tell that from what its blocks are. Where
//! one run in ten is slowed down by something else it is too wide (98 to 99 % with 4 and 8 runs a side).
//!
//! # p
//! The two-sided tail of Student's t at `(after - before) / sqrt(V_1 + V_2)` (Welch, 1947), with fewer degrees of freedom: for
//! a side of several runs the harmonic mean of `R - 1` and f. Of a thousand rows the smallest p decide, and these are of
//! rows whose runs happened to lie close together; the degrees that make 95 % intervals right make such p too small by
//! far. (Of 300 functions that did not change one was called changed in 10 % of the comparisons of 4 + 4 runs with f, in
//! none with `R - 1`, and in 0.5 % with the mean, which finds a quarter more of those that did change.) It supposes that
//! the means of runs are about normal; see [`crate::permutation`] for the test that does not.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::bca;
use crate::interval::Estimate;
use crate::random::SplitMix64;
use crate::student;

/// Resamples to take unless told otherwise: the ends of a 95 % interval then scatter by about 2 % of its width.
pub const REPLICATES: usize = 2_000;

/// Means that differ by no more than this part of them are equal.
const ROUNDING: f64 = 1e-12;

/// The part of the noise within runs that is the least that runs can differ by: see the [module](self).
const FLOOR: f64 = 0.8;

/// What one run says of a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The run's mean.
    pub mean: f64,
    /// Deviations of the run's consecutive blocks of steps from it, in the same unit; their sum is zero. Empty if only
    /// the mean is known (as of a percentile).
    pub residuals: Vec<f64>,
}

/// How far runs of one side differ, as variances of one run's mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// Variance of the runs' true means, `max(0, B - W)`; 0 of one run, where it is not known.
    pub between: f64,
    /// Variance that the noise within a run gives its mean, `W`; 0 where there are no blocks.
    pub within: f64,
}

/// A number before and after, and how well its change is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Mean of the runs before.
    pub before: f64,
    /// Mean of the runs after.
    pub after: f64,
    /// `after - before`. Ends are infinite where a side is one run without blocks.
    pub difference: Estimate,
    /// `after / before`; `None` unless both are positive. An end may be 0 or infinite, where some runs have nothing.
    pub ratio: Option<Estimate>,
    /// Standard error of the difference, `sqrt(V_1 + V_2)`; infinite where a side is not known.
    pub standard_error: f64,
    /// Standard error of the ratio's natural logarithm, `sqrt(V_1 / before^2 + V_2 / after^2)`; `None` as the ratio.
    pub log_ratio_standard_error: Option<f64>,
    /// Of both standard errors, after Satterthwaite; at least 1.
    pub degrees_of_freedom: f64,
    /// Two-sided tail of Student's t of the difference, with fewer degrees of freedom than the interval: 1 of equal values, 0 of different ones that never vary.
    pub p: f64,
    /// How the runs before differ.
    pub spread_before: Spread,
    /// How the runs after differ.
    pub spread_after: Spread,
}

/// Resamples of two sides of runs, drawn once and used for many numbers, so that these are comparable.
#[derive(Debug, Clone)]
pub struct HierarchicalBootstrap {
    before: Draws,
    after: Draws,
}

impl HierarchicalBootstrap {
    /// Draws resamples of two sides, each given as the numbers of blocks of its runs (0 of runs without).
    ///
    /// # Panics
    /// If a run has more than 65,536 blocks.
    pub fn new(before: &[usize], after: &[usize], replicates: usize, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        Self { before: Draws::new(before, replicates, &mut random), after: Draws::new(after, replicates, &mut random) }
    }

    /// The change of a number between two sides, with intervals of `confidence` (e.g. 0.95); `None` if a side has no
    /// runs or a value is not finite.
    ///
    /// # Panics
    /// If a side has another number of runs than was drawn for, or a run another number of blocks (none at all is fine).
    pub fn change(&self, before: &[Run], after: &[Run], confidence: f64) -> Option<Change> {
        let (first, second) = (Side::new(before)?, Side::new(after)?);
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
        let relative = |side: &Side| side.variance / (side.value * side.value);
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
            spread_before: first.spread,
            spread_after: second.spread,
        })
    }
}

/// Resampled values of two sides, and their values without each run.
struct Resamples {
    before: (Vec<f64>, Vec<f64>),
    after: (Vec<f64>, Vec<f64>),
    confidence: f64,
    /// Of Student's t, at which the intervals end.
    quantile: f64,
}

impl Resamples {
    fn difference(&self, value: f64, error: f64) -> Estimate {
        self.interval(value, error, |before, after| after - before, [-1.0, 1.0])
    }

    fn log_ratio(&self, value: f64, error: f64, before: &Side, after: &Side) -> Estimate {
        let of = |before: f64, after: f64| log_ratio(before, after, value);
        self.interval(value, error, of, [-1.0 / before.value, 1.0 / after.value])
    }

    /// The hull of Student's interval and of the BCa interval whose ends are moved outward from the value; the influence
    /// of either side on what is made of both is that on the side's value times its slope.
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

/// The difference of two values; 0 if it is no more than what adding up numbers in another order may cause.
fn apart(before: f64, after: f64) -> f64 {
    let difference = after - before;
    if difference.abs() <= ROUNDING * before.abs().max(after.abs()) { 0.0 } else { difference }
}

/// The logarithm of the ratio of resampled values; where nothing is left of both, that of the data.
fn log_ratio(before: f64, after: f64, otherwise: f64) -> f64 {
    match (before > 0.0, after > 0.0) {
        (true, true) => (after / before).ln(),
        (true, false) => f64::NEG_INFINITY,
        (false, true) => f64::INFINITY,
        (false, false) => otherwise,
    }
}

/// What the side's value is without each of its runs, or without each block where there is one run.
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

/// Satterthwaite's degrees of freedom of a sum of variances, (variance, degrees) each.
fn satterthwaite(parts: [(f64, f64); 2]) -> f64 {
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let spread: f64 = parts.iter().map(|(variance, degrees)| (variance / sum).powi(2) / degrees).sum();
    // Nothing varies, or a side is not known: degrees do not matter.
    if sum > 0.0 && sum.is_finite() { (1.0 / spread).max(1.0) } else { 1.0 }
}

/// What the runs of one side say.
struct Side {
    value: f64,
    /// Of the value.
    variance: f64,
    degrees: f64,
    /// Factor k of the runs' deviations from the value.
    shrinkage: f64,
    /// Factor of the variance of the noise within runs.
    noise: f64,
    spread: Spread,
}

impl Side {
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

impl Side {
    /// Degrees of freedom that rely less on the noise within: see the [module](self).
    fn cautious_degrees(&self) -> f64 {
        match self.spread.runs {
            1 => self.degrees,
            runs => 2.0 / (1.0 / (runs - 1) as f64 + 1.0 / self.degrees),
        }
    }
}

/// Variance of a run's mean by the noise of its blocks, and its degrees of freedom; `None` of less than two blocks.
fn noise(run: &Run) -> Option<(f64, f64)> {
    let blocks = run.residuals.len() as f64;
    let squares: f64 = run.residuals.iter().map(|residual| residual * residual).sum();
    (blocks >= 2.0).then(|| (squares / (blocks * (blocks - 1.0)), blocks - 1.0))
}

/// Which runs and which of their blocks were drawn.
///
/// Blocks are drawn first, some hundred times for each run: these are its *readings*. A replicate then draws runs, and of
/// each one of its readings. That gives the same distribution as drawing blocks anew for each replicate, but for chance
/// (which [`Draws::readings`] takes out of the mean and the variance), with a tenth of the additions.
#[derive(Debug, Clone)]
struct Draws {
    blocks: Vec<usize>,
    /// Number of readings of each run.
    readings: usize,
    /// Of each run's readings, as many blocks as it has.
    picks: Vec<u16>,
    /// Of each replicate as many readings (of whichever runs) as there are runs.
    drawn: Vec<u32>,
}

/// There are so many readings of a side, and at least [`LEAST_READINGS`] of each run.
const READINGS: usize = 2_048;
const LEAST_READINGS: usize = 32;

impl Draws {
    fn new(blocks: &[usize], replicates: usize, random: &mut SplitMix64) -> Self {
        assert!(blocks.iter().all(|blocks| *blocks <= 1 << 16), "a run has at most 65,536 blocks");
        let readings = (READINGS / blocks.len().max(1)).max(LEAST_READINGS);
        let mut picks = Vec::with_capacity(readings * blocks.iter().sum::<usize>());
        for blocks in blocks {
            picks.extend((0..readings * blocks).map(|_| random.below(*blocks) as u16));
        }
        let all = readings * blocks.len();
        let drawn = (0..replicates * blocks.len()).map(|_| random.below(all) as u32).collect();
        Self { blocks: blocks.to_vec(), readings, picks, drawn }
    }

    /// The side's value in each resample.
    fn values(&self, runs: &[Run], side: &Side) -> Vec<f64> {
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

    /// What a run's mean could have been, less the side's value: around a centre, with exactly the variance of its noise.
    fn readings(&self, run: &Run, picks: &[u16], side: &Side, readings: &mut Vec<f64>) {
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
mod tests {
    use super::*;
    use crate::{Permutations, benjamini_hochberg};

    fn runs(means: &[f64]) -> Vec<Run> {
        means.iter().map(|mean| Run { mean: *mean, residuals: Vec::new() }).collect()
    }

    fn run(mean: f64, residuals: &[f64]) -> Run {
        Run { mean, residuals: residuals.to_vec() }
    }

    fn change(before: &[Run], after: &[Run]) -> Change {
        let blocks = |runs: &[Run]| -> Vec<usize> { runs.iter().map(|run| run.residuals.len()).collect() };
        HierarchicalBootstrap::new(&blocks(before), &blocks(after), 2_000, 1).change(before, after, 0.95).unwrap()
    }

    /// scipy 1.17: `ttest_ind(after, before, equal_var=False)`.
    #[test]
    fn of_means_alone_p_is_welchs() {
        let found = change(&runs(&[10.0, 12.0, 11.0, 13.0]), &runs(&[20.0, 23.0, 22.0, 19.0]));
        assert_eq!((found.before, found.after, found.difference.value), (11.5, 21.0, 9.5));
        // (5/3 + 10/3) / 4.
        assert!((found.standard_error - 1.25_f64.sqrt()).abs() < 1e-12);
        assert!((found.degrees_of_freedom - 5.4).abs() < 1e-12, "{}", found.degrees_of_freedom);
        assert!((found.p - 2.523_115_008e-4).abs() < 1e-12, "{}", found.p);
        let ratio = found.ratio.unwrap();
        assert_eq!(ratio.value, 21.0 / 11.5);
        assert!(1.0 < ratio.low && ratio.low < ratio.value && ratio.value < ratio.high);
        let relative = 5.0 / 12.0 / 11.5_f64.powi(2) + 5.0 / 6.0 / 21.0_f64.powi(2);
        assert!((found.log_ratio_standard_error.unwrap() - relative.sqrt()).abs() < 1e-12);
    }

    /// Means 10 and 12: B = 2. Residuals of 1 and -1 give each mean a noise of 2 / (2 · 1) = 1: W = 1.
    #[test]
    fn noise_within_is_part_of_the_scatter_of_runs_and_counts_once() {
        let sides = [run(10.0, &[1.0, -1.0]), run(12.0, &[-1.0, 1.0])];
        let side = Side::new(&sides).unwrap();
        assert_eq!(side.spread, Spread { runs: 2, between: 1.0, within: 1.0 });
        assert_eq!((side.variance, side.shrinkage), (1.0, 1.0));
        // B - 4/5 W is 3/5 of B: so much has one degree, the rest the noise's two.
        assert!((side.degrees - 1.0 / (0.6 + 0.4 / 2.0)).abs() < 1e-12);
    }

    #[test]
    fn resampled_values_have_the_variance_of_the_side() {
        let sides = [
            run(10.0, &[1.0, -2.0, 1.0]),
            run(14.0, &[3.0, -4.0, 1.0, 0.0]),
            run(13.0, &[0.5, -0.5]),
            run(11.0, &[]),
            run(10.5, &[2.0, 2.0, -4.0]),
        ];
        let side = Side::new(&sides).unwrap();
        let blocks: Vec<usize> = sides.iter().map(|run| run.residuals.len()).collect();
        let values = Draws::new(&blocks, 40_000, &mut SplitMix64::new(4)).values(&sides, &side);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!((mean - 11.7).abs() < 0.02, "{mean}");
        assert!((variance / side.variance - 1.0).abs() < 0.03, "{variance} {}", side.variance);
        assert!(side.shrinkage > 0.0);
    }

    #[test]
    fn where_runs_lie_closer_together_than_their_noise_the_noise_counts() {
        let sides = [run(10.0, &[3.0, -3.0]), run(10.0, &[3.0, -3.0]), run(10.3, &[3.0, -3.0])];
        let side = Side::new(&sides).unwrap();
        // Each run's mean has a noise of 18 / 2 = 9.
        assert!((side.variance - 0.8 * 3.0).abs() < 1e-12);
        assert_eq!((side.shrinkage, side.spread.between), (0.0, 0.0));
        let values = Draws::new(&[2, 2, 2], 40_000, &mut SplitMix64::new(4)).values(&sides, &side);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!((variance / side.variance - 1.0).abs() < 0.03, "{variance}");
        assert!((side.degrees - 3.0).abs() < 1e-12, "{}", side.degrees);
    }

    #[test]
    fn of_one_run_a_side_the_blocks_tell() {
        let found = change(&[run(10.0, &[1.0, -1.0, 2.0, -2.0])], &[run(20.0, &[1.0, -1.0, 2.0, -2.0])]);
        // 10 / (4 · 3) a side, of three degrees each.
        assert!((found.standard_error - (10.0_f64 / 6.0).sqrt()).abs() < 1e-12);
        assert!((found.degrees_of_freedom - 6.0).abs() < 1e-12);
        assert!(found.difference.low > 5.0 && found.difference.high < 15.0, "{:?}", found.difference);
    }

    #[test]
    fn one_run_without_blocks_tells_nothing() {
        let found = change(&runs(&[10.0]), &runs(&[20.0, 21.0, 22.0]));
        assert_eq!((found.p, found.difference.low, found.difference.high), (1.0, f64::NEG_INFINITY, f64::INFINITY));
        let ratio = found.ratio.unwrap();
        assert_eq!((ratio.low, ratio.high), (0.0, f64::INFINITY));
    }

    #[test]
    fn what_never_varies_is_known_exactly() {
        let found = change(&runs(&[0.1; 4]), &runs(&[0.2; 4]));
        assert_eq!((found.difference.low, found.difference.high, found.p), (0.1, 0.1, 0.0));
        let same = change(&runs(&[0.1; 4]), &runs(&[0.1; 7]));
        assert_eq!((same.difference, same.p), (Estimate { value: 0.0, low: 0.0, high: 0.0 }, 1.0));
        assert_eq!(same.ratio.unwrap().value, 1.0);
    }

    #[test]
    fn what_is_new_or_has_vanished_has_no_ratio() {
        let found = change(&runs(&[0.0; 4]), &runs(&[5.0, 6.0, 7.0, 8.0]));
        assert_eq!((found.ratio, found.log_ratio_standard_error), (None, None));
        assert!(found.difference.low > 3.0 && found.p < 0.01);
        assert_eq!(change(&runs(&[5.0, 6.0]), &runs(&[0.0; 2])).ratio, None);
    }

    #[test]
    fn a_side_without_runs_or_a_value_that_is_not_finite_has_no_change() {
        let bootstrap = HierarchicalBootstrap::new(&[0, 0], &[], 10, 1);
        assert_eq!(bootstrap.change(&runs(&[1.0, 2.0]), &[], 0.95), None);
        let bootstrap = HierarchicalBootstrap::new(&[0], &[2], 10, 1);
        assert_eq!(bootstrap.change(&runs(&[1.0]), &[run(1.0, &[f64::NAN, 0.0])], 0.95), None);
        assert_eq!(bootstrap.change(&runs(&[f64::INFINITY]), &[run(1.0, &[0.0, 0.0])], 0.95), None);
    }

    #[test]
    fn equal_seeds_give_equal_intervals() {
        let (before, after) = (runs(&[1.0, 2.0, 4.0, 5.0]), runs(&[2.0, 2.5, 4.0, 8.0]));
        let of = |seed| HierarchicalBootstrap::new(&[0; 4], &[0; 4], 500, seed).change(&before, &after, 0.95).unwrap();
        assert_eq!(of(3), of(3));
        assert_ne!(of(3).difference, of(4).difference);
    }

    /// About normal, with mean 0 and variance 1: the sum of twelve uniform numbers.
    fn normal(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
    }

    /// A side of runs that scatter by 2 %, in 16 blocks with a skewed noise of 10 %.
    fn side(count: usize, level: f64, random: &mut SplitMix64) -> Vec<Run> {
        let one = |random: &mut SplitMix64| {
            let own = level * (1.0 + 0.02 * normal(random));
            let blocks: Vec<f64> = (0..16).map(|_| own * (0.1 * normal(random) - 0.005).exp()).collect();
            let mean = blocks.iter().sum::<f64>() / 16.0;
            run(mean, &blocks.iter().map(|block| block - mean).collect::<Vec<_>>())
        };
        (0..count).map(|_| one(random)).collect()
    }

    /// The whole truth is told by `examples/calibration.rs`; of 400 comparisons 95 % are 380, give or take 9.
    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let mut random = SplitMix64::new(21);
        for count in [4, 8] {
            let bootstrap = HierarchicalBootstrap::new(&vec![16; count], &vec![16; count], 1_000, 7);
            let mut holds = || {
                let (before, after) = (side(count, 1.0, &mut random), side(count, 0.9, &mut random));
                let ratio = bootstrap.change(&before, &after, 0.95).unwrap().ratio.unwrap();
                ratio.low <= 0.9 && 0.9 <= ratio.high
            };
            let held = (0..400).filter(|_| holds()).count();
            assert!((365..=392).contains(&held), "{held} of 400 at {count} runs");
        }
    }

    /// Forty comparisons of fifty functions that did not change: in no more than 5 % of them is one called changed.
    #[test]
    fn without_a_change_a_family_rarely_has_a_false_one() {
        let mut random = SplitMix64::new(22);
        let bootstrap = HierarchicalBootstrap::new(&[16; 6], &[16; 6], 500, 7);
        let splits = Permutations::new(6, 6, 7);
        let mut p = || {
            let (before, after) = (side(6, 1.0, &mut random), side(6, 1.0, &mut random));
            let means = |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.mean).collect() };
            let test = splits.test(&means(&before), &means(&after)).unwrap();
            let student = bootstrap.change(&before, &after, 0.95).unwrap().p;
            if test.at_floor { test.p.min(student) } else { test.p }
        };
        let mut has_false = || benjamini_hochberg(&(0..50).map(|_| p()).collect::<Vec<_>>()).iter().any(|q| *q <= 0.05);
        let with_false = (0..40).filter(|_| has_false()).count();
        assert!(with_false <= 5, "{with_false} of 40");
    }
}
