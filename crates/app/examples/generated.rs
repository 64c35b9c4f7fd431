//! Writes the app's data of an invented capture of any size, for benchmarks: always the same bytes.
//!
//! ```text
//! cargo run --release -p stepscope-app --example generated -- page.html nodes=200000 samples=1000000
//! cargo run --release -p stepscope-app --example generated -- folder nodes=1000000 samples=5000000 switches=10000000
//! ```
//!
//! A name that ends in `.html` gets one page, in `.capture` the capture itself, any other a folder with `manifest.json` and the tables as a server names them.
//! `budget=BYTES` is that of the page.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use stepscope_analyze::{Functions, Ownership, Selection};
use stepscope_app::{Dataset, Limits, page};
use stepscope_model::{
    Capture, Dimension, DimensionStatus, Event, FrameId, Process, ProcessId, Sample, StackId, Step, Thread, ThreadId,
    Wait, WaitState,
};
use stepscope_view::report::Report;

const THREADS: u64 = 16;
const CPUS: u64 = 8;
const FUNCTIONS: u64 = 4_000;
const DEPTH: u64 = 60;
/// The recording, in ns.
const LENGTH: u64 = 60_000_000_000;
const STEP: u64 = 4_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, otherwise: u64| {
        let given = arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='));
        given.map_or(Ok(otherwise), str::parse)
    };
    let out = Path::new(arguments.first().ok_or("name the file or the folder to write")?);
    let capture = invented(number("nodes", 200_000)?, number("samples", 1_000_000)?, number("switches", 0)?);
    if out.extension().is_some_and(|extension| extension == "capture") {
        return Ok(stepscope_model::disk::write(&capture, out)?);
    }
    let owned = Ownership { namespaces: vec!["gz::".into()], ..Ownership::default() }.compile()?;
    let functions = Functions::of(&capture, &owned);
    let report = Report::new("Invented capture");
    let selections = vec![Selection::all(&capture, &functions)];
    if out.extension().is_some_and(|extension| extension == "html") {
        let budget = number("budget", page::BUDGET)?;
        page::write(&report, &selections, budget, &mut BufWriter::new(File::create(out)?))?;
        return Ok(());
    }
    let limits = Limits { samples: usize::MAX, waits: usize::MAX, ..Limits::default() };
    let dataset = Dataset::new(&report, selections, limits);
    fs::create_dir_all(out)?;
    fs::write(out.join("manifest.json"), dataset.manifest())?;
    for name in dataset.names() {
        if let Some(bytes) = dataset.table(&name) {
            let path = out.join(format!("{name}.parquet"));
            fs::create_dir_all(path.parent().expect("it is in a folder"))?;
            fs::write(path, bytes)?;
        }
    }
    Ok(())
}

/// Threads that run, block and are sampled at random, in steps of 4 ms.
fn invented(nodes: u64, samples: u64, switches: u64) -> Capture {
    let mut capture = Capture::default();
    (capture.info.start_ns, capture.info.end_ns) = (Some(1_000_000_000), Some(1_000_000_000 + LENGTH));
    capture.info.command = vec!["invented".into()];
    for dimension in [Dimension::Cpu, Dimension::Sched, Dimension::Offcpu] {
        capture.info.dimensions.insert(dimension, DimensionStatus::Recorded);
    }
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    let process = capture.add_process(Process { pid: 100, executable: "/opt/invented".into(), ..Process::default() });
    (0..THREADS).for_each(|number| add_thread(&mut capture, process, number));
    let leaves = add_stacks(&mut capture, nodes);
    let leaf = |seed: u64| leaves[(mixed(seed) % leaves.len() as u64) as usize];
    let start = 1_000_000_000;
    let gap = LENGTH / samples.max(1);
    capture.samples = (0..samples)
        .map(|index| Sample {
            time_ns: Some(start + index * gap + mixed(index) % gap.max(1)),
            thread: ThreadId((mixed(index ^ 0xabc) % THREADS) as u32),
            cpu: Some((mixed(index ^ 0xdef) % CPUS) as u32),
            // Stacks come in runs, as those of real programs do.
            stack: Some(leaf(if mixed(index).is_multiple_of(3) { index } else { index / 64 })),
            event,
            weight: 1_000_000 + mixed(index) % 7_000,
        })
        .collect::<Vec<_>>()
        .into();
    add_waits(&mut capture, switches, start, leaf);
    capture.steps = (0..LENGTH / STEP)
        .map(|index| Step {
            index,
            start_ns: start + index * STEP,
            end_ns: start + (index + 1) * STEP,
            sim_time_ns: Some((index + 1) * 1_000_000),
            thread: ThreadId(0),
        })
        .collect::<Vec<_>>()
        .into();
    capture
}

fn add_thread(capture: &mut Capture, process: ProcessId, number: u64) {
    let thread = Thread {
        tid: 100 + number as u32,
        process: Some(process),
        name: if number == 0 { "main".into() } else { format!("worker-{number}") },
        start_ns: Some(1_000_000_000),
        end_ns: Some(1_000_000_000 + LENGTH),
        ..Thread::default()
    };
    capture.add_thread(thread);
}

/// Stacks of 60 frames that fork at each of the first levels; returns their leaves.
fn add_stacks(capture: &mut Capture, nodes: u64) -> Vec<StackId> {
    let frames: Vec<FrameId> = (0..FUNCTIONS).map(|number| capture.intern_function(&function(number))).collect();
    let mut leaves = Vec::new();
    while (capture.stacks.len() as u64) < nodes {
        let number = leaves.len() as u64;
        let mut parent = None;
        for level in 0..DEPTH {
            let branch = if level < 12 { number % (1 << level) } else { number };
            let frame = frames[(mixed(branch << 8 | level) % FUNCTIONS) as usize];
            parent = Some(capture.intern_stack_node(parent, frame));
        }
        leaves.extend(parent);
    }
    leaves
}

fn add_waits(capture: &mut Capture, switches: u64, start: u64, leaf: impl Fn(u64) -> StackId) {
    let each = switches / THREADS;
    for thread in 0..THREADS {
        let gap = LENGTH / each.max(1);
        for index in 0..each {
            let seed = mixed(index * THREADS + thread);
            let began = start + index * gap + seed % (gap / 2).max(1);
            capture.waits.push(Wait {
                start_ns: began,
                end_ns: began + gap / 3 + 1,
                thread: ThreadId(thread as u32),
                stack: Some(leaf(seed / 64)),
                state: if seed.is_multiple_of(5) { WaitState::Preempted } else { WaitState::Blocked },
                runnable_ns: Some(seed % (gap / 9).max(1)),
                cpu: Some((seed % CPUS) as u32),
                waker: Some(ThreadId((seed % THREADS) as u32)),
                waker_stack: None,
                count: 1,
            });
        }
    }
}

fn function(number: u64) -> String {
    let space = ["gz::sim", "dart::constraint", "std", "boost::asio::detail", "Eigen::internal"][number as usize % 5];
    let width = number % 7;
    format!("{space}::Stage{number}<double, Eigen::Matrix<double, {width}, 1, 0>>::Apply{number}")
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
