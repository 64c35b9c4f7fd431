//! Views of a capture with many waits: what each takes in memory, and which of them do not read waits at all.

#[path = "../../assemble/tests/peak/mod.rs"]
mod peak;
mod workers;

use std::fs;
use std::path::Path;

use stepscope_analyze::analysis::{self, OptionValues};
use stepscope_analyze::{ANALYSES, Functions, Ownership, Selection};
use stepscope_model::{Capture, Sample, Scope, Step, ThreadId, Wait, WaitState, disk};

use peak::peak_of;
use workers::Workers;

const MS: u64 = 1_000_000;
const WAITS: u64 = 160_000;
/// A wait in memory has 48 bytes. This is what a view may take beside it.
const MOST_BESIDE: f64 = 64.0 - 48.0;

/// Views that show something else than waits, or sums that the rows of threads have.
#[rustfmt::skip]
const WITHOUT_WAITS: &[&str] = &[
    "summary", "dimensions", "external-code", "flows", "chains", "timers", "edges", "tree", "inverted-tree",
    "threads", "thread-names", "categories", "faults", "cache", "cache-threads", "cache-steps", "sharing", "heap",
    "heap-threads", "heap-sizes", "heap-time", "syscalls", "memory-errors", "resources", "counters", "monitor",
    "monitor-trends", "monitor-machine", "monitor-time", "build", "headers", "templates", "configure", "build-time",
    "build-path",
];

/// A second with a step each millisecond. Threads block, are preempted and wake each other. Of two, nearly all waits are on the
/// critical path.
fn invented(threads: u64) -> Capture {
    let end = 1_000 * MS;
    let Workers { mut capture, event, stacks } = Workers::new(threads, end);
    capture.info.losses.offcpu_stack_period = Some(4);
    capture.threads.iter_mut().for_each(|thread| thread.cpu_ns = Some(end / 2));
    let length = end / (WAITS / threads);
    for at in 0..WAITS {
        let (thread, number) = (at / (WAITS / threads), at % (WAITS / threads));
        let start_ns = number * length;
        let is_preempted = at % 7 == 0;
        capture.waits.push(Wait {
            start_ns,
            end_ns: start_ns + length / 4 + at % (length / 4),
            thread: ThreadId(thread as u32),
            stack: stacks[at as usize % 4].filter(|_| at % 4 > 0 && !is_preempted),
            state: if is_preempted { WaitState::Preempted } else { WaitState::Blocked },
            runnable_ns: Some(length / 16),
            cpu: Some((at % 4) as u32),
            waker: Some(ThreadId(((thread + 1 + at % 3) % threads) as u32)),
            waker_stack: stacks[(at as usize + 1) % 4],
            count: 1,
        });
    }
    for index in 0..1_000 {
        let (start_ns, end_ns, thread) = (index * MS, (index + 1) * MS, ThreadId(0));
        capture.steps.push(Step { index, start_ns, end_ns, sim_time_ns: Some(end_ns), thread });
        capture.scopes.push(Scope { thread, name: "Physics".into(), start_ns, end_ns: start_ns + MS / 2, depth: 0 });
        let stack = stacks[index as usize % 4];
        let sample = Sample { time_ns: Some(start_ns + 1), thread, cpu: Some(0), stack, event, weight: MS };
        capture.samples.push(sample);
    }
    capture
}

fn opened(folder: &Path) -> Capture {
    disk::open(folder).unwrap()
}

#[test]
fn views_take_at_most_64_bytes_for_each_wait_and_most_take_none() {
    for threads in [2, 8] {
        views_take_at_most_64_bytes_for_each_wait_of(threads);
    }
    let folder = tempfile::tempdir().unwrap();
    disk::write(&invented(8), folder.path()).unwrap();
    let owned = Ownership::default().compile().unwrap();
    let functions = Functions::of(&opened(folder.path()), &owned);
    let (elsewhere, file) = (folder.path().join("elsewhere"), folder.path().join("waits.parquet"));
    let mut without = Vec::new();
    for (analysis, view) in ANALYSES.iter().flat_map(|one| one.views.iter().map(move |view| (one, view))) {
        let capture = opened(folder.path());
        fs::rename(&file, &elsewhere).unwrap();
        let selection = Selection::all(&capture, &functions);
        drop(analysis::tables(analysis, view, &selection, &OptionValues::default()));
        if capture.load_error().is_none() {
            without.push(view.name);
        }
        fs::rename(&elsewhere, &file).unwrap();
    }
    println!("without waits: {without:?}");
    assert_eq!(without, WITHOUT_WAITS);
}

fn views_take_at_most_64_bytes_for_each_wait_of(threads: u64) {
    let folder = tempfile::tempdir().unwrap();
    disk::write(&invented(threads), folder.path()).unwrap();
    let owned = Ownership::default().compile().unwrap();
    let loaded = opened(folder.path());
    loaded.load().unwrap();
    let functions = Functions::of(&loaded, &owned);
    let mut too_large = Vec::new();
    for (analysis, view) in ANALYSES.iter().flat_map(|one| one.views.iter().map(move |view| (one, view))) {
        let run = |capture: &Capture| {
            let selection = Selection::all(capture, &functions);
            drop(analysis::tables(analysis, view, &selection, &OptionValues::default()));
        };
        let ((), peak) = peak_of(|| run(&loaded));
        let taken = peak as f64 / WAITS as f64;
        println!("{threads} threads, {}: {taken:.1} bytes for each wait", view.name);
        if taken > MOST_BESIDE {
            too_large.push(format!("{}: {taken:.1}", view.name));
        }
    }
    assert!(too_large.is_empty(), "bytes for each wait beside the 48 in memory, at most {MOST_BESIDE}: {too_large:?}");
}
