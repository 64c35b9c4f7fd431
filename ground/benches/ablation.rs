//! What each switch costs: interleaved runs of the program, slow and fast, at its size and at a quarter of it.
//!
//! `cargo bench -p stepscope-ground --bench ablation [-- NAMES...]`
//!
//! A row gives the CPU time a step (or of loading), the gain of the fix and the growth in N: the slope between a quarter
//! of the size and the whole size on logarithmic axes. CPU time is that of all threads, the median of interleaved runs, so
//! that other load on the machine meets both sides alike. The last column is the gain in wall time: a switch that only
//! changes who does the work costs no CPU time, and the step's time all the same.

use std::process::Command;

use ground::switches::{PATHOLOGIES, Pathology};

const GROUND: &str = env!("CARGO_BIN_EXE_ground");
const RUNS: usize = 5;
const STEPS: &str = "1500";

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!("switch               N      slow ms   fast ms   gain %   k slow   k fast   wall gain %");
    for pathology in
        PATHOLOGIES.iter().filter(|known| wanted.is_empty() || wanted.iter().any(|name| name == known.name))
    {
        let quarter = Pair::measure(pathology, pathology.shapes / 4);
        let whole = Pair::measure(pathology, pathology.shapes);
        println!(
            "{:<18} {:>6} {:>9.3} {:>9.3} {:>8.0} {:>8.2} {:>8.2} {:>13.0}",
            pathology.name,
            pathology.shapes,
            whole.slow_ms,
            whole.fast_ms,
            100.0 * (1.0 - whole.fast_ms / whole.slow_ms),
            (whole.slow_ms / quarter.slow_ms).log(4.0),
            (whole.fast_ms / quarter.fast_ms).log(4.0),
            100.0 * (1.0 - whole.fast_wall_ms / whole.slow_wall_ms),
        );
    }
}

/// Time in ms, of a step or of loading: that on a CPU, and that on the wall.
struct Pair {
    slow_ms: f64,
    fast_ms: f64,
    slow_wall_ms: f64,
    fast_wall_ms: f64,
}

impl Pair {
    fn measure(pathology: &Pathology, shapes: u32) -> Self {
        let (mut slow, mut fast) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            slow.push(times_ms(pathology, shapes, pathology.name));
            fast.push(times_ms(pathology, shapes, ""));
        }
        let of = |runs: &[(f64, f64)], which: fn(&(f64, f64)) -> f64| median(runs.iter().map(which).collect());
        Self {
            slow_ms: of(&slow, |run| run.0),
            fast_ms: of(&fast, |run| run.0),
            slow_wall_ms: of(&slow, |run| run.1),
            fast_wall_ms: of(&fast, |run| run.1),
        }
    }
}

fn times_ms(pathology: &Pathology, shapes: u32, slow: &str) -> (f64, f64) {
    let is_loading = pathology.phase == "loading";
    let steps = if is_loading { "1" } else { STEPS };
    let run = Command::new(GROUND)
        .args(["run", "--steps", steps, "--slow", slow, "--n", &shapes.to_string()])
        .args(["--world", &format!("{:?}", pathology.world).to_lowercase()])
        .output()
        .expect("the program was built with this bench");
    let out = String::from_utf8_lossy(&run.stdout);
    let last = out.lines().last().unwrap_or_default();
    let field = |name: &str| {
        let value = last.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse::<f64>().ok()).unwrap_or_else(|| panic!("{name} in `{last}`"))
    };
    match is_loading {
        true => (1e3 * field("load_cpu_s"), 1e3 * field("load_wall_s")),
        false => {
            let steps = field("steps") - 1.0;
            (1e3 * field("cpu_s") / steps, 1e3 * field("wall_s") / steps)
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
