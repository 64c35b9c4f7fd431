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
fn without_blocks_p_is_welchs() {
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
fn noise_within_runs_counts_once() {
    let sides = [run(10.0, &[1.0, -1.0]), run(12.0, &[-1.0, 1.0])];
    let side = SideEstimates::new(&sides).unwrap();
    assert_eq!(side.spread, Spread { runs: 2, between: 1.0, within: 1.0 });
    assert_eq!((side.variance, side.shrinkage), (1.0, 1.0));
    // B - 4/5 W is 3/5 of B. That share has one degree, the rest has the two of the noise.
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
    let side = SideEstimates::new(&sides).unwrap();
    let blocks: Vec<usize> = sides.iter().map(|run| run.residuals.len()).collect();
    let values = Draws::new(&blocks, 40_000, &mut SplitMix64::new(4)).values(&sides, &side);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    assert!((mean - 11.7).abs() < 0.02, "{mean}");
    assert!((variance / side.variance - 1.0).abs() < 0.03, "{variance} {}", side.variance);
    assert!(side.shrinkage > 0.0);
}

#[test]
fn the_noise_counts_if_runs_are_closer_together() {
    let sides = [run(10.0, &[3.0, -3.0]), run(10.0, &[3.0, -3.0]), run(10.3, &[3.0, -3.0])];
    let side = SideEstimates::new(&sides).unwrap();
    // The mean of each run has a noise of 18 / 2 = 9.
    assert!((side.variance - 0.8 * 3.0).abs() < 1e-12);
    assert_eq!((side.shrinkage, side.spread.between), (0.0, 0.0));
    let values = Draws::new(&[2, 2, 2], 40_000, &mut SplitMix64::new(4)).values(&sides, &side);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    assert!((variance / side.variance - 1.0).abs() < 0.03, "{variance}");
    assert!((side.degrees - 3.0).abs() < 1e-12, "{}", side.degrees);
}

#[test]
fn one_run_per_side_takes_its_variance_from_blocks() {
    let found = change(&[run(10.0, &[1.0, -1.0, 2.0, -2.0])], &[run(20.0, &[1.0, -1.0, 2.0, -2.0])]);
    // 10 / (4 · 3) per side, with three degrees each.
    assert!((found.standard_error - (10.0_f64 / 6.0).sqrt()).abs() < 1e-12);
    assert!((found.degrees_of_freedom - 6.0).abs() < 1e-12);
    assert!(found.difference.low > 5.0 && found.difference.high < 15.0, "{:?}", found.difference);
}

#[test]
fn one_run_without_blocks_has_infinite_intervals() {
    let found = change(&runs(&[10.0]), &runs(&[20.0, 21.0, 22.0]));
    assert_eq!((found.p, found.difference.low, found.difference.high), (1.0, f64::NEG_INFINITY, f64::INFINITY));
    let ratio = found.ratio.unwrap();
    assert_eq!((ratio.low, ratio.high), (0.0, f64::INFINITY));
}

#[test]
fn constant_values_have_an_exact_interval() {
    let found = change(&runs(&[0.1; 4]), &runs(&[0.2; 4]));
    assert_eq!((found.difference.low, found.difference.high, found.p), (0.1, 0.1, 0.0));
    let same = change(&runs(&[0.1; 4]), &runs(&[0.1; 7]));
    assert_eq!((same.difference, same.p), (Estimate { value: 0.0, low: 0.0, high: 0.0 }, 1.0));
    assert_eq!(same.ratio.unwrap().value, 1.0);
}

#[test]
fn new_and_vanished_numbers_have_no_ratio() {
    let found = change(&runs(&[0.0; 4]), &runs(&[5.0, 6.0, 7.0, 8.0]));
    assert_eq!((found.ratio, found.log_ratio_standard_error), (None, None));
    assert!(found.difference.low > 3.0 && found.p < 0.01);
    assert_eq!(change(&runs(&[5.0, 6.0]), &runs(&[0.0; 2])).ratio, None);
}

#[test]
fn an_empty_side_or_an_infinite_value_has_no_change() {
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

/// About normal with mean 0 and variance 1: the sum of twelve uniform numbers.
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

/// `examples/calibration.rs` is the full check. 95 % of 400 comparisons are 380 ± 9.
#[test]
fn coverage_is_nominal() {
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

/// Forty comparisons of fifty unchanged functions: at most 5 % have a function called changed.
#[test]
fn unchanged_families_rarely_have_a_false_change() {
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
