//! Invents a capture of many context switches, and says how much CPU time its lanes and their tiles take: on a machine that others use, a clock on the
//! wall says little.
//!
//! ```text
//! cargo run --release -p stepscope-app --example switches -- 10000000 [THREADS] [FOLDER]
//! ```
//!
//! The capture is written to FOLDER, where one is given, for `stepscope view FOLDER`.

#[path = "../../analyze/tests/workers/mod.rs"]
mod workers;

use std::path::Path;
use std::time::Duration;

use stepscope_analyze::{Functions, Ownership, Selection};
use stepscope_app::lanes::{Address, Family};
use stepscope_app::parquet_table::Storage;
use stepscope_app::{Limits, Profile};
use stepscope_model::{Capture, Sample, Scope, StackId, Step, ThreadId, Wait, WaitState, disk};

use workers::Workers;

/// The recording, in ns.
const LENGTH: u64 = 60_000_000_000;
const CPUS: u64 = 16;
const STEP: u64 = 4_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| arguments.get(at).map_or(Ok(otherwise), |text| text.parse());
    let capture = invented(number(0, 10_000_000)?, number(1, 64)?);
    println!("{} waits are invented after {:.2?}", capture.waits.len(), cpu_time());
    if let Some(folder) = arguments.get(2) {
        disk::write(&capture, Path::new(folder))?;
    }
    let owned = Ownership::default().compile()?;
    let functions = Functions::of(&capture, &owned);
    let profile = Profile::new(Selection::all(&capture, &functions), Limits::default());
    let before = memory();
    let start = cpu_time();
    let lanes = profile.lanes();
    println!(
        "lanes of {} waits of {} threads: {:.2?}, {} MiB",
        capture.waits.len(),
        capture.threads.len(),
        cpu_time() - start,
        (memory() - before) >> 20
    );
    let start = cpu_time();
    let _order = profile.table("lane_order").ok_or("no lanes")?;
    println!("lane_order: {:.2?}", cpu_time() - start);
    for family in Family::ALL {
        for level in (0..lanes.grid(family).levels()).rev() {
            tiles(&profile, family, level);
        }
    }
    Ok(())
}

/// Times some tiles of a level, over the whole recording and all blocks.
fn tiles(profile: &Profile<'_>, family: Family, level: u32) {
    let grid = profile.lanes().grid(family);
    let blocks = profile.lanes().blocks(family);
    let count = grid.tiles(level).min(16);
    let mut taken: Vec<(Duration, usize, usize)> = Vec::new();
    for number in 0..count {
        let tile = number * grid.tiles(level) / count;
        let block = (number as u32 * blocks) / count as u32;
        let start = cpu_time();
        let table = profile.table(&Address { family, level, block, tile }.to_string());
        let rows = table.as_ref().map_or(0, |table| table.rows());
        let bytes = table.map_or(0, |table| table.encode(Storage::Fast).len());
        taken.push((cpu_time() - start, rows, bytes));
    }
    taken.sort_unstable();
    let (Some(median), Some(worst)) = (taken.get(taken.len() / 2), taken.last()) else { return };
    println!(
        "{} level {level}, {} tiles of {blocks} blocks: median {:.2?}, worst {:.2?} ({} rows, {} KiB)",
        family.name(),
        grid.tiles(level),
        median.0,
        worst.0,
        worst.1,
        worst.2 >> 10
    );
}

/// CPU time of this thread so far: the first figure of `schedstat`, in ns.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Resident memory of this process, in bytes.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn invented(switches: u64, threads: u64) -> Capture {
    let Workers { mut capture, event, stacks } = Workers::new(threads, LENGTH);
    // The first threads switch most: each has nine tenths of the rest's switches of an even share.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below.max(1)
    };
    let weights: Vec<f64> = (0..threads).map(|number| 1.0 / (1.0 + number as f64 / 8.0)).collect();
    let all: f64 = weights.iter().sum();
    for (number, weight) in weights.iter().enumerate() {
        let count = ((switches as f64 * weight / all) as u64).max(1);
        let mean = LENGTH / count;
        let thread = ThreadId(number as u32);
        let mut time = next(mean);
        let mut cpu_ns = time;
        for at in 0..count {
            let off = 1 + next(mean);
            let end_ns = (time + off).min(LENGTH);
            let kind = next(stacks.len() as u64) as usize;
            capture.waits.push(wait(
                thread,
                time..end_ns,
                stacks[kind],
                (at % 7 == 0, next(CPUS) as u32, next(threads)),
            ));
            let run = next(mean - mean / 4);
            if at % 64 == 0 && end_ns < LENGTH {
                let (time_ns, stack) = (Some(end_ns), stacks[kind]);
                capture.samples.push(Sample { time_ns, thread, cpu: None, stack, event, weight: 1_000_000 });
            }
            cpu_ns += run;
            time = end_ns + run;
            if time >= LENGTH {
                break;
            }
        }
        capture.threads[number].cpu_ns = Some(cpu_ns);
    }
    capture.samples.sort_by_key(|sample| sample.time_ns);
    for index in 0..LENGTH / STEP {
        let (start_ns, end_ns, thread) = (index * STEP, (index + 1) * STEP, ThreadId(0));
        capture.steps.push(Step { index, start_ns, end_ns, sim_time_ns: Some((index + 1) * STEP), thread });
        let scope = |name: &str, part: u64, depth| Scope {
            thread,
            name: name.into(),
            start_ns,
            end_ns: start_ns + STEP * part / 10,
            depth,
        };
        capture.scopes.push(scope("Step", 10, 0));
        capture.scopes.push(scope("Physics", 6, 1));
    }
    capture
}

fn wait(thread: ThreadId, when: std::ops::Range<u64>, stack: Option<StackId>, more: (bool, u32, u64)) -> Wait {
    let (is_preempted, cpu, waker) = more;
    Wait {
        start_ns: when.start,
        end_ns: when.end,
        thread,
        stack,
        state: if is_preempted { WaitState::Preempted } else { WaitState::Blocked },
        runnable_ns: Some((when.end - when.start) / 8),
        cpu: Some(cpu),
        waker: Some(ThreadId(waker as u32)),
        waker_stack: stack,
        count: 1,
    }
}
