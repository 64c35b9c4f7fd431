use statrs::distribution::{ContinuousCDF, Normal};

use super::*;
use crate::random::SplitMix64;

struct Draw(SplitMix64);

impl Draw {
    fn normal(&mut self) -> f64 {
        let uniform = (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        Normal::standard().inverse_cdf(uniform.max(1e-300))
    }
}

const BLOCKS: usize = 8;

/// What is simulated: a machine whose speed differs from run to run and from block to block.
#[derive(Debug, Clone, Copy)]
struct Design {
    runs: usize,
    /// Scatter of the machine's log speed between runs; between blocks of a run it is half of that.
    speed: f64,
    /// Scatter of runs that has other causes.
    rest: f64,
    /// How much of the machine's speed the cost has.
    sensitivity: f64,
    /// The true ratio.
    ratio: f64,
}

#[derive(Debug, Default)]
struct Tally {
    held: f64,
    significant: f64,
    used: f64,
    width: f64,
}

/// Simulates comparisons with three covariates: one is the machine's speed, with an error of its probe; two are noise.
fn tally(design: Design, comparisons: usize) -> Tally {
    let mut random = Draw(SplitMix64::new(23));
    let shape = vec![BLOCKS; design.runs];
    let bootstrap = HierarchicalBootstrap::new(&shape, &shape, 400, 1);
    let permutations = Permutations::new(design.runs, design.runs, 1);
    let mut tally = Tally::default();
    let mut widths = Vec::new();
    for _ in 0..comparisons {
        let mut covariates = vec![Covariate::default(); 3];
        let mut side = |level: f64, is_before: bool| -> Vec<Run> {
            (0..design.runs).map(|_| run(design, level, is_before, &mut covariates, &mut random)).collect()
        };
        let (before, after) = (side(1.0, true), side(design.ratio, false));
        let raw = bootstrap.change(&before, &after, 0.95).unwrap().ratio.unwrap();
        let sides = (&before[..], &after[..]);
        let Adjusted { change, test, by, .. } =
            adjusted_change(&bootstrap, &permutations, sides, &covariates, Direction::Same, 0.95).unwrap();
        let ratio = change.ratio.unwrap();
        tally.held += f64::from(ratio.low <= design.ratio && design.ratio <= ratio.high);
        let p = if test.at_floor { test.p.min(change.p) } else { test.p };
        tally.significant += f64::from(p <= 0.05);
        tally.used += f64::from(by.is_some());
        widths.push((ratio.high / ratio.low).ln() / (raw.high / raw.low).ln());
    }
    let share = |count: f64| 100.0 * count / comparisons as f64;
    Tally {
        held: share(tally.held),
        significant: share(tally.significant),
        used: share(tally.used),
        width: crate::median(&widths).unwrap(),
    }
}

fn run(design: Design, level: f64, is_before: bool, covariates: &mut [Covariate], random: &mut Draw) -> Run {
    let own = design.speed * random.normal();
    let rest = level * (design.rest * random.normal()).exp();
    let slowness: Vec<f64> = (0..BLOCKS).map(|_| own + 0.5 * design.speed * random.normal()).collect();
    let blocks: Vec<f64> =
        slowness.iter().map(|slow| rest * (design.sensitivity * slow + 0.02 * random.normal()).exp()).collect();
    let probed: Vec<f64> = slowness.iter().map(|slow| slow + 0.02 * random.normal()).collect();
    for (index, covariate) in covariates.iter_mut().enumerate() {
        let blocks: Vec<f64> = match index {
            0 => probed.clone(),
            _ => (0..BLOCKS).map(|_| 0.1 * random.normal()).collect(),
        };
        let whole = mean(&blocks.iter().map(|log| log.exp()).collect::<Vec<_>>()).ln();
        let side = if is_before { &mut covariate.before } else { &mut covariate.after };
        side.push(Reading { whole, blocks });
    }
    let mean = mean(&blocks);
    Run { mean, residuals: blocks.into_iter().map(|block| block - mean).collect() }
}

/// Machines whose speed explains most of the scatter, half of it, or none.
fn designs(runs: usize) -> [Design; 4] {
    let design = |speed, sensitivity| Design { runs, speed, rest: 0.03, sensitivity, ratio: 1.0 };
    [design(0.1, 1.0), design(0.05, 1.0), design(0.03, 1.0), design(0.1, 0.0)]
}

#[test]
fn intervals_hold_the_truth_and_a_a_is_silent_with_few_runs() {
    for design in designs(4) {
        let Tally { held, significant, .. } = tally(design, 2_000);
        assert!((93.0..=97.0).contains(&held), "{design:?}: {held}");
        assert!(significant <= 5.0, "{design:?}: {significant}");
    }
}

/// 600 comparisons have a standard error of 0.9 %.
#[test]
fn intervals_hold_the_truth_and_a_a_is_significant_in_five_percent() {
    for design in designs(8) {
        let Tally { held, significant, .. } = tally(design, 600);
        assert!((93.0..=97.0).contains(&held), "{design:?}: {held}");
        assert!(significant <= 6.8, "{design:?}: {significant}");
    }
}

#[test]
fn a_change_is_estimated_without_bias_and_found_where_scatter_would_hide_it() {
    let design = Design { runs: 6, speed: 0.15, rest: 0.02, sensitivity: 1.0, ratio: 1.1 };
    let Tally { held, significant, width, .. } = tally(design, 500);
    assert!((93.0..=97.5).contains(&held), "{held}");
    assert!(significant > 95.0 && width < 0.3, "{significant} {width}");
}

#[test]
fn covariates_that_say_nothing_are_hardly_used() {
    let design = Design { runs: 8, speed: 0.1, rest: 0.03, sensitivity: 0.0, ratio: 1.0 };
    let Tally { used, width, .. } = tally(design, 300);
    assert!(used < 4.0 && width == 1.0, "{used} {width}");
}

#[test]
fn blocks_are_moved_by_the_covariate_of_their_own_time() {
    let run = Run { mean: 3.0, residuals: vec![-1.0, 1.0] };
    let reading = Reading { whole: 0.4, blocks: vec![0.0, 2.0_f64.ln()] };
    let moved = moved(&run, &reading, 1.0, 0.0);
    assert!((moved.mean - 2.0).abs() < 1e-12 && moved.residuals.iter().all(|one| one.abs() < 1e-12), "{moved:?}");
    let whole = super::moved(&Run { mean: 3.0, residuals: Vec::new() }, &reading, 2.0, 0.1);
    assert!((whole.mean - 3.0 * (-0.6_f64).exp()).abs() < 1e-12);
}

#[test]
fn few_runs_zeros_and_equal_values_have_no_adjustment() {
    let change = |before: [f64; 4], after: &[f64]| {
        let run = |mean: &f64| Run { mean: *mean, residuals: Vec::new() };
        let reading = |index: usize| Reading { whole: index as f64, blocks: Vec::new() };
        let covariate =
            Covariate { before: (0..4).map(reading).collect(), after: (0..after.len()).map(reading).collect() };
        let bootstrap = HierarchicalBootstrap::new(&[0; 4], &vec![0; after.len()], 100, 1);
        let permutations = Permutations::new(4, after.len(), 1);
        let (before, after) = (before.iter().map(run).collect::<Vec<_>>(), after.iter().map(run).collect::<Vec<_>>());
        let sides = (&before[..], &after[..]);
        adjusted_change(&bootstrap, &permutations, sides, &[covariate], Direction::Same, 0.95)
    };
    assert_eq!(change([1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0]), None);
    assert_eq!(change([1.0, 2.0, 0.0, 4.0], &[1.0, 2.0, 3.0, 4.0]), None);
    assert_eq!(change([1.0; 4], &[1.0; 4]), None);
    let by = change([1.0, 2.0, 4.1, 8.0], &[1.0, 2.1, 4.0, 8.0]).unwrap().by.unwrap();
    assert!(by.covariate == 0 && (by.coefficient - 2.0_f64.ln()).abs() < 0.05, "{by:?}");
}
