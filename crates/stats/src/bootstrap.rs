//! [`BlockBootstrap`]: confidence intervals of numbers computed from a series whose neighbours are correlated.
//!
//! The bootstrap estimates how a number would vary between recordings of the same program, by recomputing it from
//! resamples of this one. Steps of a simulation are not independent: a slow step often follows a slow step, because
//! caches are cold or another program has the CPU. Resampling single steps would destroy that and make intervals too
//! narrow. Resampling *blocks of consecutive steps* keeps it (moving blocks: Künsch, *The Jackknife and the Bootstrap
//! for General Stationary Observations*, 1989).
//!
//! # Block length
//! `n^(1/3)` for `n` observations, the order that minimises the error of the variance (Hall, Horowitz and Jing, 1995),
//! but at least `n / 250`. More than some hundred blocks add nothing, and longer blocks keep more of the correlation.
//!
//! # Interval
//! [BCa](crate::bca), with the acceleration from leaving out one block at a time. If all resamples give the same
//! number, the interval is that number.
//!
//! The generator has a fixed seed, so that equal input gives equal intervals.

use crate::bca;
use crate::interval::Estimate;
use crate::random::SplitMix64;

/// Default number of resamples. Their scatter moves the ends of a 95 % interval by about 3 % of its width.
pub const REPLICATES: usize = 1_000;

/// Maximum number of blocks, about.
const MAX_BLOCKS: usize = 250;

/// The set of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// The set whose mean is taken.
    This,
    /// The set whose mean is subtracted.
    Other,
    /// Neither.
    Neither,
}

/// Resamples of a series, drawn once and used for many numbers, so that these are comparable.
#[derive(Debug, Clone)]
pub struct BlockBootstrap {
    sets: Vec<Set>,
    length: usize,
    /// Index of the first observation of each block, by resample.
    resamples: Vec<Vec<u32>>,
    /// Number of observations of both sets in each resample.
    sizes: Vec<[f64; 2]>,
    whole: [f64; 2],
    /// Number of observations of both sets in each prefix of the series.
    prefix_sizes: Vec<[u32; 2]>,
}

impl BlockBootstrap {
    /// Draws resamples of a series of observations in these sets.
    pub fn new(sets: Vec<Set>, replicates: usize, seed: u64) -> Self {
        let length = block_length(sets.len());
        let mut prefix_sizes = Vec::with_capacity(sets.len() + 1);
        let mut size = [0_u32; 2];
        prefix_sizes.push(size);
        for set in &sets {
            match set {
                Set::This => size[0] += 1,
                Set::Other => size[1] += 1,
                Set::Neither => {}
            }
            prefix_sizes.push(size);
        }
        let whole = size.map(f64::from);
        let mut found = Self { sets, length, resamples: Vec::new(), sizes: Vec::new(), whole, prefix_sizes };
        found.draw(replicates, seed);
        found
    }

    fn draw(&mut self, replicates: usize, seed: u64) {
        if self.sets.is_empty() {
            return;
        }
        let mut random = SplitMix64::new(seed);
        let starts = self.sets.len() - self.length + 1;
        let blocks = self.sets.len().div_ceil(self.length);
        for _ in 0..replicates {
            let resample: Vec<u32> = (0..blocks).map(|_| random.below(starts) as u32).collect();
            let size = resample.iter().fold([0.0; 2], |size, start| {
                let of = self.size_of(*start as usize..*start as usize + self.length);
                [size[0] + of[0], size[1] + of[1]]
            });
            // A resample without one of the sets has no difference and is drawn again.
            if size[0] > 0.0 && size[1] > 0.0 {
                self.resamples.push(resample);
                self.sizes.push(size);
            }
        }
    }

    fn size_of(&self, range: std::ops::Range<usize>) -> [f64; 2] {
        let (before, after) = (self.prefix_sizes[range.start], self.prefix_sizes[range.end]);
        [f64::from(after[0] - before[0]), f64::from(after[1] - before[1])]
    }

    /// Number of observations per block.
    pub fn block_length(&self) -> usize {
        self.length
    }

    /// The mean of [`Set::This`] minus that of [`Set::Other`], with an interval of `confidence` (e.g. 0.95).
    ///
    /// `values` are (observation, value), ordered by observation. Missing observations are 0; several values of one
    /// observation add up. `None` if one of the sets is empty.
    ///
    /// # Panics
    /// If a value has an observation outside the series.
    pub fn difference_of_means(&self, values: &[(u32, f64)], confidence: f64) -> Option<Estimate> {
        if self.whole.contains(&0.0) {
            return None;
        }
        if values.is_empty() {
            return Some(Estimate { value: 0.0, low: 0.0, high: 0.0 });
        }
        let sums = self.prefix_sums(values);
        let total = sums[sums.len() - 1];
        let difference = |sum: [f64; 2], size: [f64; 2]| sum[0] / size[0] - sum[1] / size[1];
        let value = difference(total, self.whole);
        let of_block = |start: usize| {
            let (before, after) = (sums[start], sums[start + self.length]);
            [after[0] - before[0], after[1] - before[1]]
        };
        let mut resampled: Vec<f64> = self
            .resamples
            .iter()
            .zip(&self.sizes)
            .map(|(starts, size)| {
                let sum = starts.iter().fold([0.0; 2], |sum, start| {
                    let of = of_block(*start as usize);
                    [sum[0] + of[0], sum[1] + of[1]]
                });
                difference(sum, *size)
            })
            .collect();
        resampled.sort_unstable_by(f64::total_cmp);
        let acceleration = self.acceleration(&sums);
        let (low, high) = bca::interval(&resampled, value, acceleration, confidence).unwrap_or((value, value));
        Some(Estimate { value, low, high })
    }

    fn prefix_sums(&self, values: &[(u32, f64)]) -> Vec<[f64; 2]> {
        let mut sums = vec![[0.0; 2]; self.sets.len() + 1];
        for (observation, value) in values {
            let sum = &mut sums[*observation as usize + 1];
            match self.sets[*observation as usize] {
                Set::This => sum[0] += value,
                Set::Other => sum[1] += value,
                Set::Neither => {}
            }
        }
        for index in 1..sums.len() {
            let before = sums[index - 1];
            sums[index] = [sums[index][0] + before[0], sums[index][1] + before[1]];
        }
        sums
    }

    /// The acceleration, from leaving out each block of a partition of the series.
    fn acceleration(&self, sums: &[[f64; 2]]) -> f64 {
        let n = self.sets.len();
        let total = sums[n];
        let without: Vec<f64> = (0..n.div_ceil(self.length))
            .filter_map(|block| {
                let range = block * self.length..((block + 1) * self.length).min(n);
                let size = self.size_of(range.clone());
                let left = [self.whole[0] - size[0], self.whole[1] - size[1]];
                let part = |set: usize| total[set] - (sums[range.end][set] - sums[range.start][set]);
                (left[0] > 0.0 && left[1] > 0.0).then(|| part(0) / left[0] - part(1) / left[1])
            })
            .collect();
        bca::acceleration(&[&without])
    }
}

/// Length of a block: see the [module](self).
fn block_length(observations: usize) -> usize {
    let rule = (observations as f64).cbrt().ceil() as usize;
    rule.max(observations.div_ceil(MAX_BLOCKS)).clamp(1, observations.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alternating(n: usize, every: usize) -> Vec<Set> {
        (0..n).map(|index| if index % every == 0 { Set::This } else { Set::Other }).collect()
    }

    #[test]
    fn the_difference_is_that_of_the_means() {
        let sets = vec![Set::This, Set::Other, Set::Neither, Set::Other, Set::This];
        let bootstrap = BlockBootstrap::new(sets, 200, 1);
        let values = [(0, 10.0), (1, 1.0), (2, 1e9), (3, 4.0), (4, 5.0), (4, 5.0)];
        assert_eq!(bootstrap.difference_of_means(&values, 0.95).unwrap().value, 10.0 - 2.5);
    }

    #[test]
    fn constant_values_have_an_exact_interval() {
        let bootstrap = BlockBootstrap::new(alternating(100, 10), 200, 1);
        let values: Vec<(u32, f64)> = (0..100).map(|index| (index, if index % 10 == 0 { 5.0 } else { 2.0 })).collect();
        let estimate = bootstrap.difference_of_means(&values, 0.95).unwrap();
        assert_eq!(estimate, Estimate { value: 3.0, low: 3.0, high: 3.0 });
    }

    #[test]
    fn an_empty_set_has_no_difference() {
        assert_eq!(BlockBootstrap::new(vec![Set::This; 10], 10, 1).difference_of_means(&[], 0.95), None);
        assert_eq!(BlockBootstrap::new(Vec::new(), 10, 1).difference_of_means(&[], 0.95), None);
    }

    #[test]
    fn equal_seeds_give_equal_intervals() {
        let mut random = SplitMix64::new(3);
        let values: Vec<(u32, f64)> = (0..300).map(|index| (index, random.below(100) as f64)).collect();
        let of = |seed| BlockBootstrap::new(alternating(300, 3), 300, seed).difference_of_means(&values, 0.95).unwrap();
        assert_eq!(of(5), of(5));
        assert_ne!(of(5), of(6));
    }

    /// Draws series with a known difference and counts how often the interval contains it.
    fn coverage(mut series: impl FnMut(&mut SplitMix64) -> Vec<(u32, f64)>, truth: f64) -> usize {
        let mut random = SplitMix64::new(11);
        let mut holds = |random: &mut SplitMix64| {
            let values = series(random);
            let bootstrap = BlockBootstrap::new(alternating(values.len(), 5), 400, 1);
            let estimate = bootstrap.difference_of_means(&values, 0.95).unwrap();
            estimate.low <= truth && truth <= estimate.high
        };
        (0..200).filter(|_| holds(&mut random)).count()
    }

    #[test]
    fn coverage_is_nominal_for_independent_values() {
        let held = coverage(
            |random| {
                let value = |index: u32| if index.is_multiple_of(5) { 30.0 } else { 20.0 };
                (0..400).map(|index| (index, value(index) + random.below(21) as f64)).collect()
            },
            10.0,
        );
        assert!((180..=199).contains(&held), "{held} of 200");
    }

    /// Costs are skewed: here one value in ten is ten times as large.
    #[test]
    fn coverage_is_nominal_for_skewed_values() {
        let held = coverage(
            |random| {
                let noise = |random: &mut SplitMix64| if random.below(10) == 0 { 10.0 } else { 0.0 };
                let value = |index: u32| if index.is_multiple_of(5) { 3.0 } else { 1.0 };
                (0..500).map(|index| (index, value(index) + noise(random))).collect()
            },
            2.0,
        );
        assert!((178..=199).contains(&held), "{held} of 200");
    }

    #[test]
    fn block_length_is_the_cube_root_up_to_250_blocks() {
        assert_eq!([0, 1, 2, 27, 1_000, 100_000].map(block_length), [1, 1, 2, 3, 10, 400]);
    }
}
