//! How the cost of each switch grows with its world, slow and fast: interleaved runs of the program at the sizes that the
//! [catalogue](ground::catalogue) names.
//!
//! `cargo bench -p stepscope-ground --bench growth [-- NAMES...]`
//!
//! A row gives the CPU time of a step (or of loading) at the largest size, and the growth: the slope of the straight line
//! through the logarithms of sizes and CPU times, by least squares. Times are medians of interleaved runs, so that other load
//! on the machine meets both sides alike. Shares and gains are measured by `stepscope prove`.

use std::process::Command;

use ground::catalogue;
use ground::catalogue::pathology::{Pathology, Phase};
use ground::switches::name_of;
use serde_json::Value;

const GROUND: &str = env!("CARGO_BIN_EXE_ground");
const RUNS: usize = 5;
/// Steps before those that are measured.
const WARM_STEPS: u64 = 50;
/// Wall time that a measured run is to take, s.
const SECONDS: f64 = 0.7;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!("switch               size    slow ms    fast ms   k slow   k fast");
    let chosen = |known: &&Pathology| wanted.is_empty() || wanted.iter().any(|name| *name == known.name());
    for pathology in catalogue::pathologies().filter(chosen) {
        let sizes: Vec<u32> = pathology.axis.smaller.iter().copied().chain([pathology.axis.size]).collect();
        let costs: Vec<Costs> = sizes.iter().map(|size| Costs::measure(pathology, *size)).collect();
        let slope = |cost: fn(&Costs) -> f64| {
            let points: Vec<_> =
                sizes.iter().zip(&costs).map(|(size, at)| (f64::from(*size).ln(), cost(at).ln())).collect();
            slope(&points)
        };
        let whole = costs.last().expect("a switch has a size");
        println!(
            "{:<18} {:>6} {:>10.4} {:>10.4} {:>8.2} {:>8.2}",
            pathology.name(),
            pathology.axis.size,
            whole.slow_ms,
            whole.fast_ms,
            slope(|costs| costs.slow_ms),
            slope(|costs| costs.fast_ms),
        );
    }
}

/// Of a straight line through points, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    together / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

/// CPU time of a step or of loading, at a size.
struct Costs {
    slow_ms: f64,
    fast_ms: f64,
}

impl Costs {
    fn measure(pathology: &Pathology, size: u32) -> Self {
        let name = pathology.name();
        let slow_steps = steps(pathology, size, &name);
        let fast_steps = steps(pathology, size, "");
        let (mut slow, mut fast) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            slow.push(cpu_ms(pathology, size, &name, slow_steps));
            fast.push(cpu_ms(pathology, size, "", fast_steps));
        }
        Self { slow_ms: median(slow), fast_ms: median(fast) }
    }
}

/// Steps that take about as long as wanted.
fn steps(pathology: &Pathology, size: u32, slow: &str) -> u64 {
    let pilot = account(pathology, size, slow, 20);
    let a_step = pilot["steady"]["wall_s"].as_f64().expect("a number") / 20.0;
    ((SECONDS / a_step) as u64).clamp(20, 20_000)
}

fn cpu_ms(pathology: &Pathology, size: u32, slow: &str, steps: u64) -> f64 {
    let account = account(pathology, size, slow, steps);
    let count = if pathology.phase == Phase::Loading { 1.0 } else { steps as f64 };
    1e3 * account[name_of(&pathology.phase)]["cpu_s"].as_f64().expect("a number") / count
}

fn account(pathology: &Pathology, size: u32, slow: &str, steps: u64) -> Value {
    let file = std::env::temp_dir().join(format!("ground-growth-{}.json", std::process::id()));
    let (warm, last) =
        if pathology.phase == Phase::Loading { (1, 1 + steps.min(20)) } else { (WARM_STEPS, WARM_STEPS + steps) };
    let run = Command::new(GROUND)
        .args(pathology.arguments(size))
        .args(["--slow", slow, "--warm-steps", &warm.to_string(), "--steps", &last.to_string()])
        .arg("--account")
        .arg(&file)
        .output()
        .expect("the program was built with this bench");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(&file).expect("the program writes its account");
    std::fs::remove_file(&file).expect("it was written just now");
    serde_json::from_str(&text).expect("the account is JSON")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
