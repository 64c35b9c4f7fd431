//! What each switch costs: interleaved runs of the program, slow and fast, at its size and at the smallest it grows from.
//!
//! `cargo bench -p stepscope-ground --bench ablation [-- NAMES...]`
//!
//! A row gives the share of CPU time in the function that the [catalogue](ground::catalogue) blames, by the program's own
//! clock in a run apart; the time of a step (or of loading), the gain of the fix in CPU time and in wall time, and the
//! growth: the slope between the smallest size and the whole one on logarithmic axes. Times are medians of interleaved runs,
//! so that other load on the machine meets both sides alike. Quick figures while a pathology is written; `stepscope prove`
//! is the real measurement.

use std::process::Command;

use ground::catalogue::{self, Pathology, Phase};
use serde_json::Value;

const GROUND: &str = env!("CARGO_BIN_EXE_ground");
const RUNS: usize = 3;
/// Steps before those that are measured.
const WARM_STEPS: u64 = 50;
/// Wall time that a measured run is to take, s.
const SECONDS: f64 = 1.0;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!("switch               size  share %    slow ms    fast ms  CPU gain %  wall gain %   k slow   k fast");
    let chosen = |known: &&Pathology| wanted.is_empty() || wanted.iter().any(|name| name == known.name);
    for pathology in catalogue::all().filter(chosen) {
        let (size, smallest) = (pathology.axis.size, pathology.axis.smaller[0]);
        let small = Pair::measure(pathology, smallest);
        let whole = Pair::measure(pathology, size);
        let slope = |whole: f64, small: f64| (whole / small).ln() / (f64::from(size) / f64::from(smallest)).ln();
        println!(
            "{:<18} {size:>6} {:>8.1} {:>10.4} {:>10.4} {:>11.1} {:>12.1} {:>8.2} {:>8.2}",
            pathology.name,
            share_percent(pathology),
            whole.slow.cpu_ms,
            whole.fast.cpu_ms,
            100.0 * (1.0 - whole.fast.cpu_ms / whole.slow.cpu_ms),
            100.0 * (1.0 - whole.fast.wall_ms / whole.slow.wall_ms),
            slope(whole.slow.cpu_ms, small.slow.cpu_ms),
            slope(whole.fast.cpu_ms, small.fast.cpu_ms),
        );
    }
}

/// Time of a step or of loading.
#[derive(Clone, Copy)]
struct Times {
    cpu_ms: f64,
    wall_ms: f64,
}

struct Pair {
    slow: Times,
    fast: Times,
}

impl Pair {
    fn measure(pathology: &Pathology, size: u32) -> Self {
        let slow_steps = steps(pathology, size, pathology.name);
        let fast_steps = steps(pathology, size, "");
        let (mut slow, mut fast) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            slow.push(times(pathology, size, pathology.name, slow_steps));
            fast.push(times(pathology, size, "", fast_steps));
        }
        Self { slow: median(&slow), fast: median(&fast) }
    }
}

/// Steps that take about as long as wanted.
fn steps(pathology: &Pathology, size: u32, slow: &str) -> u64 {
    let pilot = account(pathology, size, slow, 20, &[]);
    let a_step = pilot["steady"]["wall_s"].as_f64().expect("a number") / 20.0;
    ((SECONDS / a_step) as u64).clamp(20, 20_000)
}

fn times(pathology: &Pathology, size: u32, slow: &str, steps: u64) -> Times {
    let account = account(pathology, size, slow, steps, &[]);
    let phase = &account[pathology.phase.name()];
    let count = if pathology.phase == Phase::Loading { 1.0 } else { steps as f64 };
    let ms = |name: &str| 1e3 * phase[name].as_f64().expect("a number") / count;
    Times { cpu_ms: ms("cpu_s"), wall_ms: ms("wall_s") }
}

fn share_percent(pathology: &Pathology) -> f64 {
    let size = pathology.axis.size;
    let account = account(pathology, size, pathology.name, steps(pathology, size, pathology.name), &["--scopes"]);
    let phase = &account[pathology.phase.name()];
    let in_function = phase["scopes"][pathology.function]["cpu_ns"].as_f64();
    in_function.map_or(f64::NAN, |ns| 1e-7 * ns / phase["cpu_s"].as_f64().expect("a number"))
}

fn account(pathology: &Pathology, size: u32, slow: &str, steps: u64, more: &[&str]) -> Value {
    let file = std::env::temp_dir().join(format!("ground-ablation-{}.json", std::process::id()));
    let (warm, last) =
        if pathology.phase == Phase::Loading { (1, 1 + steps.min(20)) } else { (WARM_STEPS, WARM_STEPS + steps) };
    let run = Command::new(GROUND)
        .args(pathology.arguments(size))
        .args(["--slow", slow, "--warm-steps", &warm.to_string(), "--steps", &last.to_string()])
        .arg("--account")
        .arg(&file)
        .args(more)
        .output()
        .expect("the program was built with this bench");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(&file).expect("the program writes its account");
    std::fs::remove_file(&file).expect("it was written just now");
    serde_json::from_str(&text).expect("the account is JSON")
}

fn median(runs: &[Times]) -> Times {
    let of = |which: fn(&Times) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(which).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Times { cpu_ms: of(|run| run.cpu_ms), wall_ms: of(|run| run.wall_ms) }
}
