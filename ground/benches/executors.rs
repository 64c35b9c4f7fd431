//! The three executors against each other: interleaved runs of `ground topology`, ratios with intervals, and verdicts.
//!
//! `cargo bench -p stepscope-ground --bench executors [-- --rounds 20] [--seconds 1.5] [--data FILE]`
//!
//! A round runs each topology in each way for messages to go under each executor, which come in another order each
//! time, so that whatever else the machine does meets all alike. A run gives three numbers: the mean and the median latency
//! over all of its messages, and the CPU time of the process per message published. Two executors are compared by the
//! ratio of the means of their runs with its 95 % interval (`stepscope_stats::HierarchicalBootstrap`, runs drawn):
//!
//! - *less*, *more*: the interval excludes 1;
//! - *equal*: it does not, and lies within 5 % of it;
//! - *inconclusive*: neither.
//!
//! `--data` writes each run's numbers as tab-separated values.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;
use stepscope_stats::hierarchical::REPLICATES;
use stepscope_stats::{HierarchicalBootstrap, Run, SplitMix64};

const GROUND: &str = env!("CARGO_BIN_EXE_ground");
const TOPOLOGIES: [&str; 2] = ["pub_sub_10b", "ridge"];
const EXECUTORS: [&str; 3] = ["waitset", "static", "events"];
/// Ratios of the second to the first.
const PAIRS: [(usize, usize); 3] = [(0, 1), (1, 2), (0, 2)];
const TOLERANCE: f64 = 0.05;

/// How messages go: a name and its options.
const WAYS: [(&str, &[&str]); 3] =
    [("ipc on", &["--ipc", "on"]), ("ipc off", &["--ipc", "off"]), ("cyclonedds", &["--middleware", "cyclonedds"])];

/// What a run is judged by.
struct Measure {
    name: &'static str,
    of: fn(&Value) -> f64,
}

const MEASURES: [Measure; 3] = [
    Measure { name: "latency, mean", of: |report| number(&report["total"]["latency"]["mean_us"]) },
    Measure { name: "latency, median", of: |report| number(&report["total"]["latency"]["p50_us"]) },
    Measure { name: "CPU a message", of: |report| 1e6 * number(&report["resources"]["cpu_s"]) / published(report) },
];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn published(report: &Value) -> f64 {
    let publishers = report["publishers"].as_array().expect("a report has publishers");
    publishers.iter().map(|one| number(&one["published"])).sum()
}

/// One executor in one topology and way, and what its runs gave for each measure.
struct Case {
    topology: &'static str,
    way: usize,
    executor: usize,
    runs: [Vec<f64>; MEASURES.len()],
}

fn main() {
    let rounds: usize = option("--rounds").map_or(20, |text| text.parse().expect("--rounds is a number"));
    let seconds = option("--seconds").unwrap_or_else(|| "1.5".to_owned());
    let ways = if has_cyclonedds() { WAYS.len() } else { WAYS.len() - 1 };
    if ways < WAYS.len() {
        println!("skipped: cyclonedds: the program was built without it");
    }
    let mut cases = Vec::new();
    for (topology, way) in TOPOLOGIES.into_iter().flat_map(|topology| (0..ways).map(move |way| (topology, way))) {
        cases.extend((0..EXECUTORS.len()).map(|executor| Case { topology, way, executor, runs: Default::default() }));
    }
    let mut order: Vec<usize> = (0..cases.len()).collect();
    for round in 0..rounds {
        shuffle(&mut order, round as u64);
        for index in &order {
            let case = &mut cases[*index];
            let report = report(case, &seconds);
            for (runs, measure) in case.runs.iter_mut().zip(MEASURES) {
                runs.push((measure.of)(&report));
            }
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    if let Some(path) = option("--data") {
        std::fs::write(&path, data(&cases)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    print(&cases);
}

fn shuffle(order: &mut [usize], seed: u64) {
    let mut random = SplitMix64::new(seed);
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
}

fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

fn has_cyclonedds() -> bool {
    let file = topology_file(TOPOLOGIES[0]);
    let run = Command::new(GROUND).args(["topology", &file, "--middleware", "cyclonedds", "--seconds", "0.1"]).output();
    run.is_ok_and(|run| run.status.success())
}

fn topology_file(name: &str) -> String {
    format!("{}/topologies/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

fn report(case: &Case, seconds: &str) -> Value {
    let file = topology_file(case.topology);
    let run = Command::new(GROUND)
        .args(["topology", &file, "--executor", EXECUTORS[case.executor], "--seconds", seconds, "--format", "json"])
        .args(WAYS[case.way].1)
        .output()
        .expect("the program was built with this bench");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).expect("a report is JSON")
}

fn data(cases: &[Case]) -> String {
    let mut text = "topology\tway\texecutor\trun".to_owned();
    MEASURES.iter().for_each(|measure| text.push_str(&format!("\t{} [us]", measure.name)));
    text.push('\n');
    for case in cases {
        for run in 0..case.runs[0].len() {
            let Case { topology, way, executor, runs } = case;
            let _ = write!(text, "{topology}\t{}\t{}\t{run}", WAYS[*way].0, EXECUTORS[*executor]);
            runs.iter().for_each(|measure| text.push_str(&format!("\t{:.3}", measure[run])));
            text.push('\n');
        }
    }
    text
}

fn print(cases: &[Case]) {
    for (index, measure) in MEASURES.iter().enumerate() {
        println!("\n{}, us: mean of the runs", measure.name);
        println!(
            "{:<12} {:<11} {:>8} {:>8} {:>8}   ratios with 95 % intervals",
            "topology", "way", "waitset", "static", "events"
        );
        for three in cases.chunks(EXECUTORS.len()) {
            let runs = |executor: usize| &three[executor].runs[index];
            let mean = |executor: usize| runs(executor).iter().sum::<f64>() / runs(executor).len() as f64;
            print!("{:<12} {:<11}", three[0].topology, WAYS[three[0].way].0);
            (0..EXECUTORS.len()).for_each(|executor| print!(" {:>8.1}", mean(executor)));
            for (first, second) in PAIRS {
                let (names, judged) = ((EXECUTORS[second], EXECUTORS[first]), compare(runs(first), runs(second)));
                print!("   {}/{} {judged}", names.0, names.1);
            }
            println!();
        }
    }
}

/// The ratio of two executors' runs, and the verdict.
fn compare(first: &[f64], second: &[f64]) -> String {
    let runs =
        |means: &[f64]| -> Vec<Run> { means.iter().map(|mean| Run { mean: *mean, residuals: Vec::new() }).collect() };
    let blocks = |means: &[f64]| vec![0; means.len()];
    let bootstrap = HierarchicalBootstrap::new(&blocks(first), &blocks(second), REPLICATES, 1);
    let change = bootstrap.change(&runs(first), &runs(second), 0.95);
    let Some(ratio) = change.and_then(|change| change.ratio) else { return "not measured".to_owned() };
    let verdict = match (ratio.low, ratio.high) {
        (_, high) if high < 1.0 => "less",
        (low, _) if low > 1.0 => "more",
        (low, high) if low >= 1.0 - TOLERANCE && high <= 1.0 + TOLERANCE => "equal",
        _ => "inconclusive",
    };
    format!("{:.2} [{:.2}, {:.2}] {verdict}", ratio.value, ratio.low, ratio.high)
}
