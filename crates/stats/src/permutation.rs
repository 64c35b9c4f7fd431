//! [`Permutations`]: how often chance alone would set two sides of runs apart as far as they are.
//!
//! If nothing changed, which runs are called "before" is arbitrary: every split of all runs into two sides of these
//! sizes was equally likely. The p value is the part of the splits that set the sides at least as far apart as the
//! observed one does. It needs no distribution and no variance, and it is honest about few runs: of 3 + 3 there are 20
//! splits, two of which (the observed one and its mirror image) are always as extreme, so that p is at least 0.1.
//!
//! # Statistic
//! Two-sided, Welch's `t^2 = (m_1 - m_2)^2 / (s_1^2 / n_1 + s_2^2 / n_2)` of the runs' means. Studentised, the test keeps
//! its level asymptotically also where the sides scatter differently and have different sizes, where the plain
//! difference of means does not (Janssen, 1997; Chung and Romano, *Exact and Asymptotically Robust Permutation Tests*,
//! Annals of Statistics 41, 2013). Of equally many runs on both sides it orders the splits as the difference of means does:
//! the sum of the two variances is the total one less a multiple of the squared difference.
//!
//! # Splits
//! All of them if there are at most [`MOST_SPLITS`]. Otherwise [`RANDOM_SPLITS`] drawn from the others, and the observed
//! one: `p = (1 + as extreme) / (1 + drawn)` (Phipson and Smyth, *Permutation P-values Should Never Be Zero*, 2010).

use crate::random::SplitMix64;

/// All splits are counted if there are no more than so many.
pub const MOST_SPLITS: usize = 20_000;

/// Otherwise so many are drawn.
pub const RANDOM_SPLITS: usize = 9_999;

/// Squared statistics that differ by no more than this part of them are equal: they were summed in different orders.
const TIE: f64 = 1e-9;

/// What the test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationTest {
    /// Part of the splits that are at least as extreme as the observed one.
    pub p: f64,
    /// The smallest p that so many runs can have.
    pub floor: f64,
    /// Whether no other split is as extreme: p could not be smaller with so many runs.
    pub at_floor: bool,
}

/// Splits of runs into two sides, drawn once and used for many numbers.
#[derive(Debug, Clone)]
pub struct Permutations {
    before: usize,
    after: usize,
    /// The runs of the side before, of each split but the observed one and its mirror image.
    splits: Vec<u32>,
    /// How often each of these splits counts: twice where its mirror image is left out.
    weight: usize,
    /// Number of splits altogether, and of those that are always as extreme as the observed one.
    all: usize,
    own: usize,
}

impl Permutations {
    /// The splits of `before` + `after` runs.
    pub fn new(before: usize, after: usize, seed: u64) -> Self {
        let runs = before + after;
        let mirrored = before == after;
        let (weight, own) = if mirrored { (2, 2) } else { (1, 1) };
        let Some(all) = choose(runs, before).filter(|all| *all <= MOST_SPLITS) else {
            let splits = random_splits(before, after, &mut SplitMix64::new(seed));
            return Self { before, after, splits, weight: 1, all: RANDOM_SPLITS + 1, own: 1 };
        };
        // Of a split and its mirror image the one with the first run before stands for both.
        let fixed = usize::from(mirrored && runs > 0);
        let splits =
            combinations(runs, before).filter(|split| split.iter().take(fixed).all(|run| *run == 0)).skip(1).flatten();
        Self { before, after, splits: splits.collect(), weight, all, own: own.min(all) }
    }

    /// The test of the runs' values; `None` if a side is empty or a value is not finite.
    ///
    /// # Panics
    /// If a side has another number of runs than the splits are of.
    pub fn test(&self, before: &[f64], after: &[f64]) -> Option<PermutationTest> {
        assert_eq!((before.len(), after.len()), (self.before, self.after), "splits are of other numbers of runs");
        let finite = before.iter().chain(after).all(|value| value.is_finite());
        if before.is_empty() || after.is_empty() || !finite {
            return None;
        }
        let centred = centred(before, after);
        let statistic = Statistic::new(&centred, self.before);
        let observed = statistic.of(0..self.before as u32) * (1.0 - TIE);
        let extreme = |split: &&[u32]| statistic.of(split.iter().copied()) >= observed;
        let others = self.splits.chunks_exact(self.before).filter(extreme).count();
        let of = |count: usize| count as f64 / self.all as f64;
        Some(PermutationTest { p: of(self.own + self.weight * others), floor: of(self.own), at_floor: others == 0 })
    }
}

/// The smallest number of runs a side, equal on both, with which p can be below `alpha`; `None` if none is enough.
pub fn least_runs(alpha: f64) -> Option<usize> {
    let floor = |runs: usize| match choose(2 * runs, runs) {
        Some(all) if all <= MOST_SPLITS => 2.0 / all as f64,
        _ => 1.0 / (RANDOM_SPLITS + 1) as f64,
    };
    // From 8 runs on splits are drawn.
    (2..=8).find(|runs| floor(*runs) < alpha)
}

/// The values less their mean, over their largest deviation from it: squares of them lose no digits.
fn centred(before: &[f64], after: &[f64]) -> Vec<f64> {
    let all = || before.iter().chain(after).copied();
    let count = (before.len() + after.len()) as f64;
    let size = all().map(f64::abs).fold(0.0, f64::max);
    if size == 0.0 {
        return all().collect();
    }
    let mean = all().map(|value| value / size / count).sum::<f64>();
    let deviations: Vec<f64> = all().map(|value| value / size - mean).collect();
    let widest = deviations.iter().map(|deviation| deviation.abs()).fold(0.0, f64::max);
    // Values that are equal but for rounding are equal.
    if widest < 1e-14 { vec![0.0; deviations.len()] } else { deviations.iter().map(|value| value / widest).collect() }
}

/// Welch's squared t of a split, from sums over its first side alone; of equal sides the squared difference of sums, which
/// orders them equally.
struct Statistic<'a> {
    values: &'a [f64],
    sizes: [f64; 2],
    sum: f64,
    squares: f64,
}

impl<'a> Statistic<'a> {
    fn new(values: &'a [f64], before: usize) -> Self {
        let sizes = [before as f64, (values.len() - before) as f64];
        Self { values, sizes, sum: values.iter().sum(), squares: values.iter().map(|value| value * value).sum() }
    }

    fn of(&self, before: impl Iterator<Item = u32>) -> f64 {
        if self.sizes[0] == self.sizes[1] {
            let sum: f64 = before.map(|run| self.values[run as usize]).sum();
            let apart = (2.0 * sum - self.sum).powi(2);
            return if apart < 1e-24 { 0.0 } else { apart };
        }
        let (sum, squares) = before.fold((0.0, 0.0), |(sum, squares), run| {
            let value = self.values[run as usize];
            (sum + value, squares + value * value)
        });
        let [first, second] = self.sizes;
        let apart = (sum / first - (self.sum - sum) / second).powi(2);
        // With the sum of squares over n (n - 1); of a single run the other side's scatter has to do.
        let scatter = |squares: f64, sum: f64, n: f64| {
            if n > 1.0 { ((squares - sum * sum / n) / (n * (n - 1.0))).max(0.0) } else { 0.0 }
        };
        let variance = scatter(squares, sum, first) + scatter(self.squares - squares, self.sum - sum, second);
        // Values are of the order of 1, so that less than this is rounding: nothing varies within the sides.
        if apart < 1e-24 { 0.0 } else { apart / variance.max(1e-24) }
    }
}

/// n over k; `None` if it does not fit.
fn choose(n: usize, k: usize) -> Option<usize> {
    (0..k.min(n - k)).try_fold(1_usize, |all, index| all.checked_mul(n - index).map(|all| all / (index + 1)))
}

/// All choices of k of n, in lexical order: the first is 0, 1, ... k-1.
fn combinations(n: usize, k: usize) -> impl Iterator<Item = Vec<u32>> {
    std::iter::successors(Some((0..k as u32).collect::<Vec<u32>>()), move |last| {
        let place = (0..k).rev().find(|place| (last[*place] as usize) < n - k + place)?;
        let mut next = last.clone();
        next[place] += 1;
        for later in place + 1..k {
            next[later] = next[later - 1] + 1;
        }
        Some(next)
    })
}

/// Random splits other than the observed one and its mirror image.
fn random_splits(before: usize, after: usize, random: &mut SplitMix64) -> Vec<u32> {
    let runs = before + after;
    let mut order: Vec<u32> = (0..runs as u32).collect();
    let mut splits = Vec::with_capacity(RANDOM_SPLITS * before);
    while splits.len() < RANDOM_SPLITS * before {
        for place in 0..before {
            let other = place + random.below(runs - place);
            order.swap(place, other);
        }
        let kept = order[..before].iter().filter(|run| (**run as usize) < before).count();
        if kept != before && (kept != 0 || before != after) {
            splits.extend(&order[..before]);
        }
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(before: &[f64], after: &[f64]) -> PermutationTest {
        Permutations::new(before.len(), after.len(), 1).test(before, after).unwrap()
    }

    #[test]
    fn three_runs_a_side_cannot_say_less_than_a_tenth() {
        let found = test(&[1.0, 2.0, 3.0], &[100.0, 101.0, 102.0]);
        assert_eq!(found, PermutationTest { p: 0.1, floor: 0.1, at_floor: true });
    }

    /// Of the 70 splits of 1 2 3 4 | 5 6 7 8 only its mirror image is as extreme; of 1 2 3 5 | 4 6 7 8 that one too, both ways.
    #[test]
    fn splits_are_counted_by_hand() {
        assert_eq!(test(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).p, 2.0 / 70.0);
        let second = test(&[1.0, 2.0, 3.0, 5.0], &[4.0, 6.0, 7.0, 8.0]);
        assert_eq!((second.p, second.at_floor), (4.0 / 70.0, false));
    }

    #[test]
    fn of_unequal_sides_a_split_has_no_mirror_image() {
        let found = test(&[1.0], &[5.0, 6.0, 7.5]);
        assert_eq!((found.p, found.floor), (0.25, 0.25));
    }

    #[test]
    fn equal_values_are_no_evidence() {
        let found = test(&[0.1; 4], &[0.1; 4]);
        assert_eq!((found.p, found.at_floor), (1.0, false));
        assert_eq!(test(&[0.0; 4], &[0.0; 5]).p, 1.0);
    }

    #[test]
    fn constant_sides_that_differ_are_as_far_apart_as_can_be() {
        let found = test(&[1e9; 4], &[1e9 + 1.0; 4]);
        assert_eq!((found.p, found.at_floor), (2.0 / 70.0, true));
    }

    #[test]
    fn of_many_runs_splits_are_drawn_and_p_is_never_zero() {
        let before: Vec<f64> = (0..20).map(f64::from).collect();
        let after: Vec<f64> = (0..20).map(|value| f64::from(value) + 100.0).collect();
        let found = test(&before, &after);
        assert_eq!(found, PermutationTest { p: 1e-4, floor: 1e-4, at_floor: true });
    }

    #[test]
    fn a_side_without_runs_or_a_value_that_is_not_finite_has_no_test() {
        assert_eq!(Permutations::new(0, 3, 1).test(&[], &[1.0, 2.0, 3.0]), None);
        assert_eq!(Permutations::new(1, 1, 1).test(&[f64::NAN], &[1.0]), None);
    }

    /// 2 / C(8, 4) = 0.029 and 2 / C(10, 5) = 0.008.
    #[test]
    fn four_runs_a_side_pass_five_percent_and_five_one() {
        assert_eq!((least_runs(0.05), least_runs(0.01), least_runs(0.0)), (Some(4), Some(5), None));
    }

    /// Under no change p is uniform, up to the coarseness of the splits.
    #[test]
    fn without_a_change_p_is_below_five_percent_as_often_as_it_says() {
        let mut random = SplitMix64::new(9);
        for (before, after) in [(5, 5), (4, 7), (12, 12)] {
            let splits = Permutations::new(before, after, 3);
            let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| random.below(1_000_000) as f64).collect() };
            let below = (0..1_000).filter(|_| splits.test(&draw(before), &draw(after)).unwrap().p <= 0.05).count();
            assert!((30..=68).contains(&below), "{below} of 1,000 at {before} + {after}");
        }
    }
}
