//! [`Permutations`]: the p-value of the difference between two sets of runs.
//!
//! If nothing changed, the label "before" is arbitrary: every split of all runs into two sides of these sizes was
//! equally likely. p is the share of splits whose sides differ at least as much as observed. This assumes no
//! distribution and no variance, and it is honest about few runs. 3 + 3 runs have 20 splits; the observed one and its
//! mirror image are always as extreme, so p is at least 0.1.
//!
//! # Statistic
//! Two-sided, Welch's `t^2 = (m_1 - m_2)^2 / (s_1^2 / n_1 + s_2^2 / n_2)` of the runs' means. Studentised, the test
//! asymptotically keeps its level if the sides scatter differently and have different sizes; the plain difference of
//! means does not (Janssen, 1997; Chung and Romano, *Exact and Asymptotically Robust Permutation Tests*, Annals of
//! Statistics 41, 2013). With equal sizes it orders the splits as the difference of means does, because the sum of both
//! variances is the total variance minus a multiple of the squared difference.
//!
//! # Splits
//! All of them, up to [`MAX_SPLITS`]. Otherwise the observed one and [`RANDOM_SPLITS`] others: `p = (1 + as extreme) /
//! (1 + drawn)` (Phipson and Smyth, *Permutation P-values Should Never Be Zero*, 2010).

use crate::covariance::Covariance;
use crate::random::SplitMix64;

/// Number of splits up to which all are counted.
pub const MAX_SPLITS: usize = 20_000;

/// Number of splits that are drawn otherwise.
pub const RANDOM_SPLITS: usize = 9_999;

/// Relative difference up to which squared statistics count as equal, because they are summed in different orders.
const TIE: f64 = 1e-9;

/// The result of a permutation test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationTest {
    /// Share of the splits that are at least as extreme as the observed one.
    pub p: f64,
    /// The smallest p possible with this many runs.
    pub floor: f64,
    /// Whether p is the smallest one possible: no other split is as extreme.
    pub at_floor: bool,
}

/// Splits of runs into two sides, drawn once and used for many numbers.
#[derive(Debug, Clone)]
pub struct Permutations {
    before: usize,
    after: usize,
    /// Runs on the side before, for each split except the observed one and its mirror image.
    splits: Vec<u32>,
    /// Weight of each of these splits: 2 if its mirror image is omitted.
    weight: usize,
    /// Number of all splits, and of those that are always as extreme as the observed one.
    all: usize,
    own: usize,
}

impl Permutations {
    /// The splits of `before` + `after` runs.
    pub fn new(before: usize, after: usize, seed: u64) -> Self {
        let runs = before + after;
        let mirrored = before == after;
        let (weight, own) = if mirrored { (2, 2) } else { (1, 1) };
        let Some(all) = choose(runs, before).filter(|all| *all <= MAX_SPLITS) else {
            let splits = random_splits(before, after, &mut SplitMix64::new(seed));
            return Self { before, after, splits, weight: 1, all: RANDOM_SPLITS + 1, own: 1 };
        };
        // Splits with the first run before also stand for their mirror images.
        let fixed = usize::from(mirrored && runs > 0);
        let splits =
            combinations(runs, before).filter(|split| split.iter().take(fixed).all(|run| *run == 0)).skip(1).flatten();
        Self { before, after, splits: splits.collect(), weight, all, own: own.min(all) }
    }

    /// The splits that exchange runs within groups only, given the group of each run. Each split has as many runs of a group on
    /// a side as observed.
    ///
    /// All of them, up to [`MAX_SPLITS`]; else the observed one and [`RANDOM_SPLITS`] others.
    pub fn within(before: &[usize], after: &[usize], seed: u64) -> Self {
        let groups = groups(before, after);
        let mirrored = groups.iter().all(|(runs, first)| 2 * first == runs.len());
        let count = groups.iter().try_fold(1_usize, |all, (runs, first)| all.checked_mul(choose(runs.len(), *first)?));
        let (before, after) = (before.len(), after.len());
        let observed = |split: &[u32]| {
            let kept = split.iter().filter(|run| (**run as usize) < before).count();
            kept == before || mirrored && kept == 0
        };
        let Some(all) = count.filter(|all| *all <= MAX_SPLITS) else {
            let mut random = SplitMix64::new(seed);
            let draws = std::iter::repeat_with(|| random_within(&groups, &mut random));
            let splits = draws.filter(|split| !observed(split)).take(RANDOM_SPLITS).flatten().collect();
            return Self { before, after, splits, weight: 1, all: RANDOM_SPLITS + 1, own: 1 };
        };
        let mut splits = vec![Vec::new()];
        for (runs, first) in &groups {
            let chosen: Vec<Vec<u32>> = combinations(runs.len(), *first)
                .map(|places| places.into_iter().map(|place| runs[place as usize]).collect())
                .collect();
            splits =
                splits.iter().flat_map(|split| chosen.iter().map(move |more| [&split[..], more].concat())).collect();
        }
        let own = splits.iter().filter(|split| observed(split)).count();
        let splits = splits.into_iter().filter(|split| !observed(split)).flatten().collect();
        Self { before, after, splits, weight: 1, all, own }
    }

    /// Tests the values of the runs. `None` if a side is empty or a value is not finite.
    ///
    /// # Panics
    /// If the number of runs on a side differs from that of the splits.
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
        Some(self.result(others))
    }

    /// Tests the values of the runs by an [analysis of covariance](Covariance), with x chosen and fitted again for each split.
    ///
    /// # Panics
    /// If the numbers of runs differ from those of the splits.
    pub fn test_covariance(&self, data: &Covariance) -> PermutationTest {
        assert_eq!(data.runs(), (self.before, self.after), "splits are of other numbers of runs");
        let observed = data.squared_t(0..self.before as u32) * (1.0 - TIE);
        let extreme = |split: &&[u32]| data.squared_t(split.iter().copied()) >= observed;
        self.result(self.splits.chunks_exact(self.before).filter(extreme).count())
    }

    /// The smallest p possible.
    pub fn least_p(&self) -> f64 {
        self.own as f64 / self.all as f64
    }

    /// The result if this many splits besides the observed one are as extreme.
    fn result(&self, others: usize) -> PermutationTest {
        let of = |count: usize| count as f64 / self.all as f64;
        PermutationTest { p: of(self.own + self.weight * others), floor: self.least_p(), at_floor: others == 0 }
    }
}

/// The smallest number of runs per side with which p can be below `alpha`; `None` if no number is enough.
pub fn least_runs(alpha: f64) -> Option<usize> {
    let floor = |runs: usize| match choose(2 * runs, runs) {
        Some(all) if all <= MAX_SPLITS => 2.0 / all as f64,
        _ => 1.0 / (RANDOM_SPLITS + 1) as f64,
    };
    // From 8 runs per side, splits are drawn.
    (2..=8).find(|runs| floor(*runs) < alpha)
}

/// The deviations from the mean, divided by the largest one, so that squares lose no digits.
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
    // Values that differ only by rounding are equal.
    if widest < 1e-14 { vec![0.0; deviations.len()] } else { deviations.iter().map(|value| value / widest).collect() }
}

/// Welch's squared t of a split, from sums over its first side. For sides of equal size, the squared difference of
/// sums, which gives the same order.
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
        // The sum of squares over n (n - 1). A single run takes the scatter of the other side.
        let scatter = |squares: f64, sum: f64, n: f64| {
            if n > 1.0 { ((squares - sum * sum / n) / (n * (n - 1.0))).max(0.0) } else { 0.0 }
        };
        let variance = scatter(squares, sum, first) + scatter(self.squares - squares, self.sum - sum, second);
        // Values are about 1, so smaller numbers are rounding errors: nothing varies within the sides.
        if apart < 1e-24 { 0.0 } else { apart / variance.max(1e-24) }
    }
}

/// n over k; `None` if it does not fit.
fn choose(n: usize, k: usize) -> Option<usize> {
    (0..k.min(n - k)).try_fold(1_usize, |all, index| all.checked_mul(n - index).map(|all| all / (index + 1)))
}

/// All choices of k of n in lexical order: the first is 0, 1, ... k-1.
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

/// The runs of each group, those before first, and the number of these.
fn groups(before: &[usize], after: &[usize]) -> Vec<(Vec<u32>, usize)> {
    let count = before.iter().chain(after).max().map_or(0, |last| last + 1);
    let mut groups = vec![(Vec::new(), 0); count];
    for (run, group) in before.iter().enumerate() {
        groups[*group].0.push(run as u32);
        groups[*group].1 += 1;
    }
    for (run, group) in after.iter().enumerate() {
        groups[*group].0.push((before.len() + run) as u32);
    }
    groups
}

/// A random split that keeps the number of runs of each group.
fn random_within(groups: &[(Vec<u32>, usize)], random: &mut SplitMix64) -> Vec<u32> {
    let mut split = Vec::new();
    for (runs, first) in groups {
        let mut runs = runs.clone();
        for place in 0..*first {
            let other = place + random.below(runs.len() - place);
            runs.swap(place, other);
        }
        split.extend(&runs[..*first]);
    }
    split
}

/// Random splits, except the observed one and its mirror image.
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
    fn p_of_three_runs_per_side_is_at_least_a_tenth() {
        let found = test(&[1.0, 2.0, 3.0], &[100.0, 101.0, 102.0]);
        assert_eq!(found, PermutationTest { p: 0.1, floor: 0.1, at_floor: true });
    }

    /// 1 2 3 4 | 5 6 7 8: of 70 splits only the mirror image is as extreme. 1 2 3 5 | 4 6 7 8: that split too, both
    /// ways.
    #[test]
    fn splits_are_counted_by_hand() {
        assert_eq!(test(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).p, 2.0 / 70.0);
        let second = test(&[1.0, 2.0, 3.0, 5.0], &[4.0, 6.0, 7.0, 8.0]);
        assert_eq!((second.p, second.at_floor), (4.0 / 70.0, false));
    }

    #[test]
    fn splits_of_unequal_sides_have_no_mirror_image() {
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
    fn constant_sides_that_differ_have_the_smallest_p() {
        let found = test(&[1e9; 4], &[1e9 + 1.0; 4]);
        assert_eq!((found.p, found.at_floor), (2.0 / 70.0, true));
    }

    #[test]
    fn splits_of_many_runs_are_drawn_and_p_is_never_zero() {
        let before: Vec<f64> = (0..20).map(f64::from).collect();
        let after: Vec<f64> = (0..20).map(|value| f64::from(value) + 100.0).collect();
        let found = test(&before, &after);
        assert_eq!(found, PermutationTest { p: 1e-4, floor: 1e-4, at_floor: true });
    }

    #[test]
    fn an_empty_side_or_an_infinite_value_has_no_test() {
        assert_eq!(Permutations::new(0, 3, 1).test(&[], &[1.0, 2.0, 3.0]), None);
        assert_eq!(Permutations::new(1, 1, 1).test(&[f64::NAN], &[1.0]), None);
    }

    /// 2 / C(8, 4) = 0.029 and 2 / C(10, 5) = 0.008.
    #[test]
    fn four_runs_per_side_reach_five_percent_and_five_reach_one() {
        assert_eq!((least_runs(0.05), least_runs(0.01), least_runs(0.0)), (Some(4), Some(5), None));
    }

    /// Two pairs on each of two machines: C(2, 1)^2 = 4 splits of one pair each, C(4, 2)^2 = 36 of two.
    #[test]
    fn runs_are_exchanged_within_groups_only() {
        let one = Permutations::within(&[0, 1], &[0, 1], 1).test(&[1.0, 11.0], &[2.0, 12.0]).unwrap();
        assert_eq!(one, PermutationTest { p: 0.5, floor: 0.5, at_floor: true });
        let splits = Permutations::within(&[0, 0, 1, 1], &[0, 0, 1, 1], 1);
        let two = splits.test(&[1.0, 1.1, 1.2, 1.3], &[2.0, 2.1, 2.2, 2.3]).unwrap();
        assert_eq!(two, PermutationTest { p: 2.0 / 36.0, floor: 2.0 / 36.0, at_floor: true });
        let uneven = Permutations::within(&[0, 1, 1], &[0, 0, 1], 1).test(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2]).unwrap();
        assert_eq!((uneven.floor, uneven.at_floor), (1.0 / 9.0, true));
        let groups: Vec<usize> = (0..20).map(|run| run % 4).collect();
        let many = Permutations::within(&groups, &groups, 1);
        let (before, after): (Vec<f64>, Vec<f64>) = (0..20).map(|run| (f64::from(run), f64::from(run) + 100.0)).unzip();
        assert_eq!(many.test(&before, &after).unwrap(), PermutationTest { p: 1e-4, floor: 1e-4, at_floor: true });
    }

    /// Without a change p is uniform, up to the granularity of the splits.
    #[test]
    fn without_a_change_p_is_uniform() {
        let mut random = SplitMix64::new(9);
        for (before, after) in [(5, 5), (4, 7), (12, 12)] {
            let splits = Permutations::new(before, after, 3);
            let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| random.below(1_000_000) as f64).collect() };
            let below = (0..1_000).filter(|_| splits.test(&draw(before), &draw(after)).unwrap().p <= 0.05).count();
            assert!((30..=68).contains(&below), "{below} of 1,000 at {before} + {after}");
        }
    }
}
