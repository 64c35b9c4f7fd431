//! [`two_levels`]: whether values lie on two levels, such as steps that alternate between 3 and 5 ms.
//!
//! The mean and the median of such values describe neither level, and a drift of the median may only show which level is more
//! frequent. So this module separates levels from outliers (few values far away) and from a trend (values that spread evenly).
//!
//! Values are split where the variance between both groups of logarithms is largest (Otsu, *A Threshold Selection Method from
//! Gray-Level Histograms*, IEEE Trans. SMC 9, 1979). The groups are levels if
//!
//! - each has at least [`LEAST_SHARE`] of the values: fewer are outliers;
//! - their medians differ by at least [`LEAST_RATIO`], and by [`LEAST_SEPARATION`] times their mean scatter, by the median
//!   absolute deviation scaled to a standard deviation. Halves of even values are 2.7 apart, those of normal ones 2.3;
//! - the middle fifth between both medians has at most [`MOST_BETWEEN`] of the values.

use crate::median::of_sorted;

/// Fewer values have no levels.
pub const LEAST_VALUES: usize = 40;

/// Smallest share of a level.
pub const LEAST_SHARE: f64 = 0.1;

/// Smallest ratio of the levels.
pub const LEAST_RATIO: f64 = 1.05;

/// Smallest distance of the levels, in standard deviations within them.
pub const LEAST_SEPARATION: f64 = 4.0;

/// Largest share of values in the middle fifth between the levels.
pub const MOST_BETWEEN: f64 = 0.03;

/// Fewer runs have no levels.
pub const LEAST_RUNS: usize = 6;

/// Smallest gap between the levels of runs, as a share of their distance.
pub const LEAST_GAP: f64 = 0.4;

/// Standard deviation of normal values over their median absolute deviation.
const SCALE: f64 = 1.4826;

/// Two levels of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// Median of the lower level; of runs the geometric mean.
    pub lower: f64,
    /// Median of the upper level; of runs the geometric mean.
    pub upper: f64,
    /// Smallest value of the upper level.
    pub upper_from: f64,
    /// Share of the values on the upper level, 0 to 1.
    pub upper_share: f64,
}

impl Levels {
    /// Whether a value is on the upper level.
    pub fn is_upper(&self, value: f64) -> bool {
        value >= self.upper_from
    }

    /// The level of a value.
    pub fn of(&self, value: f64) -> f64 {
        if self.is_upper(value) { self.upper } else { self.lower }
    }
}

/// The two levels of positive values; `None` if they have one, or too few values.
pub fn two_levels(values: &[f64]) -> Option<Levels> {
    let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    if logs.len() < LEAST_VALUES || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    logs.sort_unstable_by(f64::total_cmp);
    let (below, above) = logs.split_at(best_split(&logs, LEAST_SHARE)?);
    let (lower, upper) = (of_sorted(below), of_sorted(above));
    let distance = upper - lower;
    let scatter = f64::midpoint(deviation(below, lower), deviation(above, upper));
    let middle = lower + 0.4 * distance..lower + 0.6 * distance;
    let between = logs.iter().filter(|log| middle.contains(log)).count() as f64 / logs.len() as f64;
    let apart = distance >= LEAST_RATIO.ln() && distance >= LEAST_SEPARATION * scatter && between <= MOST_BETWEEN;
    apart.then(|| Levels {
        lower: lower.exp(),
        upper: upper.exp(),
        // Halfway between the groups, so that rounding does not move a value to the other level.
        upper_from: f64::midpoint(below[below.len() - 1], above[0]).exp(),
        upper_share: above.len() as f64 / logs.len() as f64,
    })
}

/// The two levels of the values of a few runs, such as means of 10.1 and 14.2 ms; `None` if they have one, or are fewer than
/// [`LEAST_RUNS`].
///
/// Each level has at least two runs, and the levels differ by [`LEAST_RATIO`]. The means of their logarithms are at least
/// `3 + 36 / n` standard deviations within the levels apart, and the gap between them is at least [`LEAST_GAP`] of that. Of
/// normal values that are split where it is best, some 1 % look like that.
pub fn two_levels_of_runs(values: &[f64]) -> Option<Levels> {
    let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let count = logs.len() as f64;
    if logs.len() < LEAST_RUNS || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    logs.sort_unstable_by(f64::total_cmp);
    let split = best_split(&logs, 2.0 / count)?;
    let (below, above) = logs.split_at(split);
    let mean = |group: &[f64]| group.iter().sum::<f64>() / group.len() as f64;
    let squares = |group: &[f64]| group.iter().map(|log| (log - mean(group)).powi(2)).sum::<f64>();
    let scatter = ((squares(below) + squares(above)) / (count - 2.0)).sqrt();
    let distance = mean(above) - mean(below);
    let gap = above[0] - below[split - 1];
    let apart =
        distance >= LEAST_RATIO.ln() && distance >= (3.0 + 36.0 / count) * scatter && gap >= LEAST_GAP * distance;
    apart.then(|| Levels {
        lower: mean(below).exp(),
        upper: mean(above).exp(),
        upper_from: f64::midpoint(below[split - 1], above[0]).exp(),
        upper_share: above.len() as f64 / count,
    })
}

/// The number of values in the lower group, of which each group has at least `least_share`.
fn best_split(sorted: &[f64], least_share: f64) -> Option<usize> {
    let n = sorted.len();
    let least = (n as f64 * least_share).ceil() as usize;
    let total: f64 = sorted.iter().sum();
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for split in 1..n {
        sum += sorted[split - 1];
        if split < least || n - split < least || sorted[split - 1] == sorted[split] {
            continue;
        }
        let (low, high) = (sum / split as f64, (total - sum) / (n - split) as f64);
        let variance = split as f64 * (n - split) as f64 * (high - low).powi(2);
        if best.is_none_or(|(_, most)| variance > most) {
            best = Some((split, variance));
        }
    }
    best.map(|(split, _)| split)
}

fn deviation(values: &[f64], median: f64) -> f64 {
    let mut deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    deviations.sort_unstable_by(f64::total_cmp);
    SCALE * of_sorted(&deviations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// About normal: mean 0, standard deviation 1.
    fn normal(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| random.below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0
    }

    fn noisy(levels: &[f64], noise: f64, count: usize) -> Vec<f64> {
        let mut random = SplitMix64::new(3);
        (0..count).map(|index| levels[index % levels.len()] * (1.0 + noise * normal(&mut random))).collect()
    }

    #[test]
    fn values_that_alternate_have_two_levels() {
        let exact = two_levels(&noisy(&[3.0, 5.0], 0.0, 200)).unwrap();
        assert!((exact.lower - 3.0).abs() < 1e-9 && (exact.upper - 5.0).abs() < 1e-9, "{exact:?}");
        assert_eq!(exact.upper_share, 0.5);
        assert_eq!([exact.of(3.0), exact.of(5.0)], [exact.lower, exact.upper]);
        let levels = two_levels(&noisy(&[3.0, 5.0], 0.08, 1_000)).unwrap();
        assert!((levels.lower - 3.0).abs() < 0.1 && (levels.upper - 5.0).abs() < 0.1, "{levels:?}");
        let rare = two_levels(&noisy(&[3.0, 3.0, 3.0, 3.0, 5.0], 0.05, 1_000)).unwrap();
        assert!((rare.upper_share - 0.2).abs() < 0.01, "{rare:?}");
    }

    #[test]
    fn runs_at_two_levels_are_found_and_noise_is_not() {
        let levels = two_levels_of_runs(&[10.1, 14.2, 10.0, 9.9, 14.1, 10.2, 14.3, 10.0]).unwrap();
        assert!((levels.lower - 10.04).abs() < 0.01 && (levels.upper - 14.2).abs() < 0.01, "{levels:?}");
        assert!(levels.upper_share == 0.375 && levels.is_upper(14.1) && !levels.is_upper(10.2));
        assert_eq!(two_levels_of_runs(&[10.1, 14.2, 10.0, 9.9, 10.2, 10.0, 10.0, 10.1]), None, "an outlier");
        assert_eq!(two_levels_of_runs(&[10.0, 10.0, 14.0, 14.0]), None, "few runs");
        assert_eq!(two_levels_of_runs(&[10.0; 8]), None, "equal runs");
        assert_eq!(two_levels_of_runs(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]), None, "zeros");
        let mut random = SplitMix64::new(7);
        for runs in [6, 8, 12, 20] {
            let run = |random: &mut SplitMix64| (0.1 * normal(random)).exp();
            let mut found = |_| two_levels_of_runs(&(0..runs).map(|_| run(&mut random)).collect::<Vec<_>>()).is_some();
            let found = (0..2_000).filter(|index| found(*index)).count();
            assert!(found <= 40, "{found} of 2,000 at {runs} runs");
        }
    }

    #[test]
    fn noise_trends_and_outliers_have_one_level() {
        assert_eq!(two_levels(&noisy(&[3.0], 0.1, 1_000)), None, "noise");
        assert_eq!(two_levels(&noisy(&[3.0], 0.0, 1_000)), None, "equal values");
        let trend: Vec<f64> = (0..1_000).map(|index| 3.0 + f64::from(index) / 500.0).collect();
        assert_eq!(two_levels(&trend), None, "trend");
        let outliers: Vec<f64> = (0..1_000).map(|index| if index % 50 == 0 { 30.0 } else { 3.0 }).collect();
        assert_eq!(two_levels(&outliers), None, "outliers");
        let mut random = SplitMix64::new(5);
        let tail: Vec<f64> = (0..1_000).map(|_| 3.0 - ((1.0 + random.below(1_000) as f64) / 1_001.0).ln()).collect();
        assert_eq!(two_levels(&tail), None, "a tail");
        assert_eq!(two_levels(&noisy(&[3.0, 3.1], 0.0, 100)), None, "levels closer than 5 %");
        assert_eq!(two_levels(&[3.0, 5.0]), None, "few values");
        assert_eq!(two_levels(&[0.0; 100]), None, "zeros");
    }
}
