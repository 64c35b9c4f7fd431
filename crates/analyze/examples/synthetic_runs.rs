//! Runs of a made-up simulator whose truth is known: for the calibration of comparisons, and captures to compare.
//!
//! ```sh
//! cargo run --release -p stepscope-analyze --example synthetic_runs -- calibrate 200
//! cargo run --release -p stepscope-analyze --example synthetic_runs -- power 100
//! cargo run --release -p stepscope-analyze --example synthetic_runs -- write FOLDER RUNS SAMPLES [CHANGE]
//! ```
//!
//! `calibrate` compares equal sides with each other: how many comparisons call anything changed, by family. `power` changes
//! one function by 2, 5, 10 and 20 % and counts verdicts, and how often intervals hold the truth. `write` makes captures.
//!
//! # The simulator
//! Its functions have costs by a power law. A run's luck (where memory came to lie, how warm it was) multiplies all
//! costs by a lognormal factor of 2 %, and each function's by one of 1 %. Steps are skewed, and a slow one follows a slow
//! one (an autoregression of 0.7). Samples are drawn from what is left: the number in a step is Poisson's.

use std::path::Path;
use std::process::ExitCode;

use stepscope_analyze::basis::Basis;
use stepscope_analyze::compare::{Comparison, Evidence, Family, Options, Side};
use stepscope_analyze::{Functions, Ownership, Selection};
use stepscope_model::{Capture, CaptureInfo, Event, Phase, Sample, StackId, Step, Verdict, disk};
use stepscope_stats::SplitMix64;

/// Of the steps, in ns.
const STEP_NS: f64 = 2_000_000.0;

/// How many steps a run has.
const STEPS: usize = 2_000;

/// Nanoseconds that a sample stands for.
const PERIOD_NS: f64 = 1_003_009.0;

/// A simulator: its functions' mean costs per step, and how many callers are above each.
#[derive(Clone)]
struct Simulator {
    costs: Vec<f64>,
    depth: usize,
    steps: usize,
    period_ns: f64,
    /// Scale of the run-to-run variation; 1 is the default.
    luck: f64,
}

impl Simulator {
    /// A program with this number of functions; their weights follow a power law.
    fn new(functions: usize) -> Self {
        let weights: Vec<f64> = (1..=functions).map(|rank| 1.0 / rank as f64).collect();
        let whole: f64 = weights.iter().sum();
        let costs = weights.iter().map(|weight| weight / whole * STEP_NS * 0.8).collect();
        Self { costs, depth: 4, steps: STEPS, period_ns: PERIOD_NS, luck: 1.0 }
    }

    /// The same with the cost of one function multiplied.
    fn changed(&self, function: usize, factor: f64) -> Self {
        let mut changed = self.clone();
        changed.costs[function] *= factor;
        changed
    }

    fn share(&self, function: usize) -> f64 {
        self.costs[function] / self.costs.iter().sum::<f64>()
    }

    fn run(&self, seed: u64) -> Capture {
        let mut random = Random(SplitMix64::new(seed));
        let mut capture = Capture::of(CaptureInfo {
            scenario: Some("synthetic".to_owned()),
            phase: Some(Phase::Steady),
            ..CaptureInfo::default()
        });
        let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
        let thread = capture.add_thread_named("main");
        let stacks = self.stacks(&mut capture);
        let luck = random.lognormal(0.02 * self.luck);
        let costs: Vec<f64> = self.costs.iter().map(|cost| cost * luck * random.lognormal(0.01 * self.luck)).collect();
        let whole: f64 = costs.iter().sum();
        let cumulated: Vec<f64> = costs
            .iter()
            .scan(0.0, |sum, cost| {
                *sum += cost;
                Some(*sum)
            })
            .collect();
        let (mut now, mut slowness, mut due) = (0_u64, 0.0, random.exponential());
        for index in 0..self.steps {
            slowness = 0.7 * slowness + 0.15 * random.normal();
            let cost = whole * f64::exp(slowness);
            let length = (cost / 0.8) as u64;
            capture.steps.push(Step {
                index: index as u64,
                start_ns: now,
                end_ns: now + length,
                sim_time_ns: Some((index as u64 + 1) * 1_000_000),
                thread,
            });
            let mut at = due * self.period_ns;
            while at < cost {
                let place = random.uniform() * whole;
                let function = cumulated.partition_point(|sum| *sum < place).min(stacks.len() - 1);
                let time = now + (at / cost * length as f64) as u64;
                let weight = self.period_ns as u64;
                capture.samples.push(Sample {
                    time_ns: Some(time),
                    thread,
                    cpu: None,
                    stack: stacks[function],
                    event,
                    weight,
                });
                at += random.exponential() * self.period_ns;
            }
            due = (at - cost) / self.period_ns;
            now += length;
        }
        (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(now));
        capture
    }

    /// The stack of each function: callers are shared, as in real programs.
    fn stacks(&self, capture: &mut Capture) -> Vec<Option<StackId>> {
        (0..self.costs.len())
            .map(|function| {
                let callers =
                    (0..self.depth).map(|level| format!("sim::caller{}_{level}", function % (2 << level.min(4))));
                let names: Vec<String> = callers.chain([format!("sim::function{function}")]).collect();
                let frames: Vec<_> = names.iter().map(|name| capture.intern_function(name)).collect();
                capture.intern_stack(frames)
            })
            .collect()
    }

    fn side(&self, name: &str, runs: u64, seed: u64) -> Side {
        let owned =
            Ownership { namespaces: vec!["sim::*".into()], ..Ownership::default() }.compile().expect("a pattern");
        let evidence = |run: u64| {
            let capture = self.run(seed.wrapping_mul(1_000_003).wrapping_add(run));
            let functions = Functions::of(&capture, &owned);
            Evidence::of(&Selection::all(&capture, &functions), Basis::PerStep)
        };
        Side { name: name.to_owned(), runs: (0..runs).map(evidence).collect() }
    }
}

struct Random(SplitMix64);

impl Random {
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn lognormal(&mut self, sigma: f64) -> f64 {
        (sigma * self.normal()).exp()
    }
}

/// What is looked at of a comparison: families, and the whole run.
const LOOKED_AT: [(&str, Option<Family>); 5] = [
    ("attributed", Some(Family::Attributed)),
    ("self", Some(Family::Own)),
    ("inclusive", Some(Family::Inclusive)),
    ("categories", Some(Family::Categories)),
    ("whole run", None),
];

fn changed(comparison: &Comparison, family: Option<Family>) -> (usize, usize) {
    let count = |rows: &mut dyn Iterator<Item = (bool, bool)>| {
        rows.fold((0, 0), |(tested, changed), row| (tested + usize::from(row.0), changed + usize::from(row.1)))
    };
    match family {
        Some(family) => count(
            &mut comparison.rows(family).iter().map(|row| (row.assessment.q.is_some(), row.assessment.is_changed())),
        ),
        None => {
            count(&mut comparison.metrics.iter().map(|row| (row.assessment.q.is_some(), row.assessment.is_changed())))
        }
    }
}

fn calibrate(comparisons: u64) {
    println!("{comparisons} comparisons of equal sides each; any: comparisons in which anything is called changed\n");
    println!("runs  family       rows tested  called changed  any, % of comparisons");
    // One run a side cannot know of luck, and says so: first without it, then with.
    for (runs, luck) in [(1, 0.0), (1, 1.0), (4, 1.0), (8, 1.0)] {
        let simulator = Simulator { luck, ..Simulator::new(60) };
        let mut sums = [(0, 0, 0); LOOKED_AT.len()];
        let each = |comparison: u64| {
            let (before, after) =
                (simulator.side("a", runs, 2 * comparison), simulator.side("b", runs, 2 * comparison + 1));
            Comparison::of(&before, &after, &Options::default())
        };
        for comparison in in_parallel(comparisons, each) {
            for (sum, (_, family)) in sums.iter_mut().zip(LOOKED_AT) {
                let (tested, changed) = changed(&comparison, family);
                *sum = (sum.0 + tested, sum.1 + changed, sum.2 + usize::from(changed > 0));
            }
        }
        for ((tested, changed, any), (name, _)) in sums.into_iter().zip(LOOKED_AT) {
            let percent = any as f64 * 100.0 / comparisons as f64;
            let of = if luck == 0.0 { " (no luck)" } else { "" };
            println!("{runs:>4}  {name:<11}  {tested:>11}  {changed:>14}  {percent:>6.1}{of}");
        }
    }
}

fn power(comparisons: u64) {
    println!(
        "{comparisons} comparisons each; one function changed, by its share of the cost; all 60 are tested together\n"
    );
    println!(
        "runs  share  change  changed  equivalent  inconclusive  interval holds the truth: changed one, all others"
    );
    for runs in [4, 8, 20] {
        for function in [0, 5, 20] {
            for factor in [0.98, 0.95, 0.9, 0.8] {
                let base = Simulator::new(60);
                let other = base.changed(function, factor);
                let each = |comparison: u64| {
                    let seed = comparison + runs * 10_000 + function as u64 * 100_000;
                    let comparison = Comparison::of(
                        &base.side("a", runs, 2 * seed),
                        &other.side("b", runs, 2 * seed + 1),
                        &Options::default(),
                    );
                    look(&comparison, function, factor)
                };
                let looks = in_parallel(comparisons, each);
                let count = |verdict| looks.iter().filter(|look| look.verdict == verdict).count();
                let percent = |part: usize, of: usize| part as f64 * 100.0 / of.max(1) as f64;
                let held = looks.iter().filter(|look| look.held).count();
                let (others, held_others) =
                    looks.iter().fold((0, 0), |sum, look| (sum.0 + look.others, sum.1 + look.others_held));
                println!(
                    "{runs:>4}  {:>4.1}%  {:>5.0}%  {:>6.0}%  {:>9.0}%  {:>10.0}%  {:>6.1}%  {:>6.1}%",
                    base.share(function) * 100.0,
                    (factor - 1.0) * 100.0,
                    percent(count(Verdict::Changed), looks.len()),
                    percent(count(Verdict::Equivalent), looks.len()),
                    percent(count(Verdict::Inconclusive), looks.len()),
                    percent(held, looks.len()),
                    percent(held_others, others),
                );
            }
        }
    }
}

/// What one comparison says of the function that changed, and of the others.
struct Look {
    verdict: Verdict,
    held: bool,
    others: usize,
    others_held: usize,
}

fn look(comparison: &Comparison, function: usize, factor: f64) -> Look {
    let name = format!("sim::function{function}");
    let rows = comparison.rows(Family::Attributed);
    let row = rows.iter().find(|row| *row.identity().name == *name).expect("the function was sampled");
    let holds = |row: &stepscope_analyze::compare::Row, truth: f64| {
        row.assessment.ratio.is_some_and(|ratio| ratio.low <= truth && truth <= ratio.high)
    };
    let others: Vec<_> =
        rows.iter().filter(|other| *other.identity().name != *name && other.assessment.q.is_some()).collect();
    Look {
        verdict: row.assessment.verdict,
        held: holds(row, factor),
        others: others.len(),
        others_held: others.iter().filter(|row| holds(row, 1.0)).count(),
    }
}

fn in_parallel<R: Send>(count: u64, of: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let of = &of;
    std::thread::scope(|scope| {
        let work = move |thread| move || (thread..count).step_by(threads as usize).map(of).collect::<Vec<R>>();
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("workers do not panic")).collect()
    })
}

/// Writes captures with `samples` samples over a thousand functions.
fn write(folder: &Path, runs: u64, samples: u64, change: f64) -> Result<(), Box<dyn std::error::Error>> {
    let mut simulator = Simulator::new(1_000).changed(3, change);
    simulator.depth = 25;
    simulator.period_ns = simulator.costs.iter().sum::<f64>() * STEPS as f64 / samples as f64;
    for run in 0..runs {
        let capture = simulator.run(run + (change * 1e6) as u64);
        disk::write(&capture, &folder.join(format!("{run:02}")))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<f64>().ok());
    match (arguments.first().map(String::as_str), arguments.get(1), number(2), number(3)) {
        (Some("calibrate"), Some(_), ..) => calibrate(number(1).unwrap_or(200.0) as u64),
        (Some("power"), Some(_), ..) => power(number(1).unwrap_or(100.0) as u64),
        (Some("write"), Some(folder), Some(runs), Some(samples)) => {
            if let Err(error) = write(Path::new(folder), runs as u64, samples as u64, number(4).unwrap_or(1.0)) {
                eprintln!("synthetic_runs: {error}");
                return ExitCode::FAILURE;
            }
        }
        _ => {
            eprintln!("usage: synthetic_runs calibrate N | power N | write FOLDER RUNS SAMPLES [CHANGE]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
