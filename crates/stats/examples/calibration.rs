//! How often intervals hold the truth, and how often chance alone is called a change, over simulated comparisons:
//!
//! ```sh
//! cargo run --release -p stepscope-stats --example calibration [comparisons per design]
//! ```
//!
//! A design is a number of runs a side, a scatter between runs, a kind of noise within, and a change. The 95 % interval of
//! the ratio and of the difference should hold the truth in 93 to 97 % of the comparisons; without a change, p should be at
//! most 0.05 in no more than 5 %.

use std::time::Instant;

use statrs::distribution::{ContinuousCDF, Normal};
use stepscope_stats::{
    ChangeSearch, Estimate, HierarchicalBootstrap, Permutations, Run, SplitMix64, benjamini_hochberg,
};

/// Noise within a run.
#[derive(Clone, Copy)]
enum Noise {
    /// Samples of a profiler: Poisson with this mean per run, in this number of blocks.
    Samples { mean: f64, blocks: usize },
    /// Steps with lognormal durations of this sigma, in 32 blocks. `memory` is the correlation of the logarithms of
    /// successive steps.
    Steps { count: usize, sigma: f64, memory: f64 },
    /// Only a mean, as for a percentile: all noise is between runs.
    MeanAlone,
}

impl Noise {
    fn name(self) -> String {
        match self {
            Self::Samples { mean, blocks } => format!("{mean} samples in {blocks}"),
            Self::Steps { count, sigma, memory } => format!("{count} steps s={sigma} r={memory}"),
            Self::MeanAlone => "mean alone".to_owned(),
        }
    }

    fn blocks(self) -> usize {
        match self {
            Self::Samples { blocks, .. } => blocks,
            Self::Steps { .. } => 32,
            Self::MeanAlone => 0,
        }
    }

    /// A run of true mean `level`.
    fn run(self, level: f64, random: &mut Draw) -> Run {
        let blocks: Vec<f64> = match self {
            Self::MeanAlone => return Run { mean: level, residuals: Vec::new() },
            Self::Samples { mean, blocks } => {
                let of = mean / blocks as f64;
                (0..blocks).map(|_| random.poisson(of * level) / of).collect()
            }
            Self::Steps { count, sigma, memory } => {
                let mut log = random.normal();
                let fresh = (1.0 - memory * memory).sqrt();
                let steps: Vec<f64> = (0..count)
                    .map(|_| {
                        log = memory * log + fresh * random.normal();
                        level * (sigma * log - sigma * sigma / 2.0).exp()
                    })
                    .collect();
                steps.chunks_exact(count / 32).map(|block| block.iter().sum::<f64>() / block.len() as f64).collect()
            }
        };
        let mean = blocks.iter().sum::<f64>() / blocks.len() as f64;
        Run { mean, residuals: blocks.iter().map(|block| block - mean).collect() }
    }
}

struct Draw(SplitMix64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        Normal::standard().inverse_cdf(self.uniform().max(1e-300))
    }

    /// By inversion, for means up to some hundreds.
    fn poisson(&mut self, mean: f64) -> f64 {
        let (mut left, mut count, mut part) = (self.uniform(), 0.0, (-mean).exp());
        while left > part && part > 0.0 {
            left -= part;
            count += 1.0;
            part *= mean / count;
        }
        count
    }
}

#[derive(Default)]
struct Tally {
    comparisons: usize,
    ratio_held: usize,
    ratio_below: usize,
    difference_held: usize,
    student: usize,
    permutation: usize,
    decided: usize,
}

/// What is simulated.
#[derive(Clone, Copy)]
struct Design {
    runs: [usize; 2],
    /// Coefficient of variation of runs, lognormal.
    between: f64,
    noise: Noise,
    /// Part of the runs that something slowed down by 20 %.
    outliers: f64,
}

fn tally(design: Design, factor: f64, comparisons: usize) -> Tally {
    let Design { runs, between, noise, outliers } = design;
    let mut random = Draw(SplitMix64::new(17));
    let shape = runs.map(|runs| vec![noise.blocks(); runs]);
    let splits = Permutations::new(runs[0], runs[1], 5);
    let mut tally = Tally { comparisons, ..Tally::default() };
    let sigma = (1.0 + between * between).ln().sqrt();
    let mut bootstrap = HierarchicalBootstrap::new(&shape[0], &shape[1], 2_000, 0);
    for index in 0..comparisons {
        // Drawn again every 50 comparisons, so that the result does not depend on one set of resamples.
        if index % 50 == 49 {
            bootstrap = HierarchicalBootstrap::new(&shape[0], &shape[1], 2_000, index as u64);
        }
        let mut side = |runs: usize, level: f64| -> Vec<Run> {
            let run = |random: &mut Draw| {
                let own = (sigma * random.normal() - sigma * sigma / 2.0).exp();
                let slowed = if random.uniform() < outliers { 1.2 } else { 1.0 };
                noise.run(level * own * slowed, random)
            };
            (0..runs).map(|_| run(&mut random)).collect()
        };
        let (before, after) = (side(runs[0], 1.0), side(runs[1], factor));
        let change = bootstrap.change(&before, &after, 0.95).expect("finite values");
        let means = |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.mean).collect() };
        let test = splits.test(&means(&before), &means(&after)).expect("finite values");
        let everything = Estimate { value: f64::NAN, low: 0.0, high: f64::INFINITY };
        // Of a rare function a side may have no sample at all.
        let ratio = change.ratio.unwrap_or(everything);
        tally.ratio_held += usize::from(ratio.low <= factor && factor <= ratio.high);
        tally.ratio_below += usize::from(factor < ratio.low);
        let difference = change.difference;
        tally.difference_held += usize::from(difference.low <= factor - 1.0 && factor - 1.0 <= difference.high);
        tally.student += usize::from(change.p <= 0.05);
        tally.permutation += usize::from(test.p <= 0.05);
        let p = if test.at_floor { test.p.min(change.p) } else { test.p };
        tally.decided += usize::from(p <= 0.05 && (ratio.low > 1.0 || ratio.high < 1.0));
    }
    tally
}

/// How long a comparison of 1,000 functions takes.
fn speed() {
    let mut random = Draw(SplitMix64::new(3));
    let noise = Noise::Samples { mean: 2_000.0, blocks: 32 };
    let mut side = || -> Vec<Run> { (0..20).map(|_| noise.run(1.0, &mut random)).collect() };
    let (before, after) = (side(), side());
    let start = Instant::now();
    let bootstrap = HierarchicalBootstrap::new(&[32; 20], &[32; 20], 2_000, 1);
    let splits = Permutations::new(20, 20, 1);
    let drawn = start.elapsed();
    let means = |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.mean).collect() };
    let (mut intervals, mut tests) = (0.0, 0.0);
    let start = Instant::now();
    (0..1_000).for_each(|_| intervals += bootstrap.change(&before, &after, 0.95).expect("finite values").p);
    let resampled = start.elapsed();
    let start = Instant::now();
    (0..1_000).for_each(|_| tests += splits.test(&means(&before), &means(&after)).expect("finite values").p);
    let shuffled = start.elapsed();
    println!(
        "20 + 20 runs in 32 blocks: drawn in {drawn:.2?}; 1,000 rows: intervals {resampled:.2?}, permutations {shuffled:.2?}"
    );
    println!("(sums of p: {intervals:.1}, {tests:.1})");
    let series: Vec<f64> = (0..3_000).map(|index| f64::from(index / 600) + random.normal()).collect();
    let start = Instant::now();
    let found = ChangeSearch::default().find(&series).len();
    println!("{found} changes in a series of 3,000 runs with 4: {:.2?}", start.elapsed());
}

fn show(design: Design, factors: &[f64], comparisons: usize) {
    for factor in factors {
        let found = tally(design, *factor, comparisons);
        let percent = |count: usize| 100.0 * count as f64 / found.comparisons as f64;
        println!(
            "{:2}+{:<2}   {:5.1}%  {:24}  {:6.2}  {:6.1} ({:4.1})  {:10.1}  {:10.1}  {:12.1}  {:8.1}",
            design.runs[0],
            design.runs[1],
            100.0 * design.between,
            design.noise.name(),
            factor,
            percent(found.ratio_held),
            percent(found.ratio_below),
            percent(found.difference_held),
            percent(found.student),
            percent(found.permutation),
            percent(found.decided),
        );
    }
}

const HEAD: &str =
    "runs    between noise                     change  ratio% (below) difference%  p<=.05: t%  permutation%  changed%";

/// What comparisons are made for.
fn usual(comparisons: usize) {
    let noises = [
        Noise::Samples { mean: 100.0, blocks: 20 },
        Noise::Samples { mean: 2_000.0, blocks: 32 },
        Noise::Steps { count: 960, sigma: 0.5, memory: 0.0 },
        Noise::Steps { count: 960, sigma: 1.0, memory: 0.7 },
        Noise::MeanAlone,
    ];
    println!("{HEAD}");
    for runs in [[4, 4], [8, 8], [20, 20], [4, 8]] {
        for between in [0.0, 0.01, 0.03] {
            for noise in noises {
                // Without any noise there is nothing to cover.
                if between > 0.0 || !matches!(noise, Noise::MeanAlone) {
                    show(Design { runs, between, noise, outliers: 0.0 }, &[1.0, 0.98, 0.95, 0.9, 0.8], comparisons);
                }
            }
        }
    }
}

/// What strains the method: few runs, rare functions, runs that something slowed down, blocks that resemble each other.
fn hard(comparisons: usize) {
    println!("\nhard cases\n{HEAD}");
    let steps = |memory| Noise::Steps { count: 960, sigma: 0.5, memory };
    let rare = |mean| Noise::Samples { mean, blocks: 20 };
    let design = |runs, between, noise| Design { runs, between, noise, outliers: 0.0 };
    let designs = [
        design([2, 2], 0.02, steps(0.0)),
        design([3, 3], 0.02, steps(0.0)),
        design([3, 3], 0.02, Noise::MeanAlone),
        design([1, 1], 0.0, steps(0.0)),
        design([1, 1], 0.0, steps(0.9)),
        design([8, 8], 0.0, steps(0.99)),
        design([4, 4], 0.01, rare(5.0)),
        design([8, 8], 0.01, rare(5.0)),
        design([8, 8], 0.01, rare(2.0)),
        design([4, 4], 0.2, Noise::MeanAlone),
        design([8, 8], 0.2, Noise::MeanAlone),
        Design { outliers: 0.1, ..design([4, 4], 0.01, Noise::MeanAlone) },
        Design { outliers: 0.1, ..design([8, 8], 0.01, Noise::MeanAlone) },
        Design { outliers: 0.1, ..design([20, 20], 0.01, steps(0.0)) },
    ];
    designs.into_iter().for_each(|design| show(design, &[1.0, 0.8], comparisons));
}

/// How many of the comparisons of 300 functions, of which none changed, call one changed; and how many of those that
/// changed by 20 % are called so where every tenth did. Functions have 5 to 5,000 samples a run; a run is slower or faster
/// than another by 2 % as a whole, and each function by 1 % besides.
fn families(comparisons: usize) {
    println!(
        "\nfamilies of 300 functions\nruns    with a false one%  false among the called%  found of those that changed%"
    );
    for runs in [4, 6, 8, 20] {
        let families = comparisons / 10;
        let (mut with_false, mut called, mut false_ones, mut found, mut changed) = (0, 0, 0, 0, 0);
        for family in 0..families {
            with_false += usize::from(called_of(runs, family as u64, 1.0).iter().any(|called| *called));
            for (function, is_called) in called_of(runs, family as u64 + 1_000_000, 0.8).into_iter().enumerate() {
                let did = function % 10 == 0;
                changed += usize::from(did);
                called += usize::from(is_called);
                found += usize::from(is_called && did);
                false_ones += usize::from(is_called && !did);
            }
        }
        let percent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        println!(
            "{runs:2}+{runs:<2}  {:17.1}  {:23.1}  {:28.1}",
            percent(with_false, families),
            percent(false_ones, called),
            percent(found, changed)
        );
    }
}

/// Which functions of a family are called changed. Every tenth changes by a factor.
fn called_of(runs: usize, seed: u64, factor: f64) -> Vec<bool> {
    let mut random = Draw(SplitMix64::new(seed));
    let bootstrap = HierarchicalBootstrap::new(&vec![20; runs], &vec![20; runs], 1_000, seed);
    let splits = Permutations::new(runs, runs, seed);
    let whole: Vec<f64> = (0..2 * runs).map(|_| (0.02 * random.normal()).exp()).collect();
    let mut excluding = Vec::new();
    let mut p = Vec::new();
    for function in 0..300 {
        let noise = Noise::Samples { mean: 5.0 * 1_000_f64.powf(random.uniform()), blocks: 20 };
        let changed = if function % 10 == 0 { factor } else { 1.0 };
        let mut run = |index: usize| {
            let level = if index < runs { 1.0 } else { changed };
            noise.run(level * whole[index] * (0.01 * random.normal()).exp(), &mut random)
        };
        let before: Vec<Run> = (0..runs).map(&mut run).collect();
        let after: Vec<Run> = (runs..2 * runs).map(&mut run).collect();
        let change = bootstrap.change(&before, &after, 0.95).expect("finite values");
        let means = |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.mean).collect() };
        let test = splits.test(&means(&before), &means(&after)).expect("finite values");
        p.push(if test.at_floor { test.p.min(change.p) } else { test.p });
        excluding.push(change.ratio.is_some_and(|ratio| ratio.low > 1.0 || ratio.high < 1.0));
    }
    let q = benjamini_hochberg(&p);
    q.into_iter().zip(excluding).map(|(q, excludes)| q <= 0.05 && excludes).collect()
}

fn main() {
    let comparisons = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1_000);
    speed();
    families(comparisons);
    hard(comparisons);
    usual(comparisons);
}
