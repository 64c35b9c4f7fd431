//! Views of a capture with many waits: what each takes in memory, and which of them do not read waits at all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use stepscope_analyze::analysis::{self, OptionValues};
use stepscope_analyze::{ANALYSES, Functions, Ownership, Selection};
use stepscope_model::{
    Capture, Dimension, DimensionStatus, Event, Process, Sample, Scope, Step, Thread, ThreadId, Wait, WaitState, disk,
};

/// The system's allocator, with the bytes in use and their peak.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it hands everything to the system's allocator unchanged, and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes in use at a time by `run`, above those in use before.
fn peak_of(run: impl FnOnce()) -> usize {
    let before = USED.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    run();
    PEAK.load(Ordering::Relaxed) - before
}

const MS: u64 = 1_000_000;
const THREADS: u64 = 8;
const WAITS: u64 = 160_000;
/// A wait in memory has 48 bytes. This is what a view may take beside it.
const MOST_BESIDE: usize = 64 - 48;
/// Views that keep the critical path of each step, and barriers: their parts are as many as the waits on it.
const OF_PATHS: &[(&str, usize)] = &[("cost-tree", 40), ("slow-steps", 40), ("critical-path", 96)];
/// What does not grow with waits: 1,000 steps and samples.
const CONSTANT: usize = 2 << 20;

/// Views that show something else than waits, or sums that the rows of threads have.
#[rustfmt::skip]
const WITHOUT_WAITS: &[&str] = &[
    "summary", "dimensions", "external-code", "flows", "chains", "timers", "edges", "tree", "inverted-tree",
    "threads", "thread-names", "categories", "faults", "cache", "cache-threads", "cache-steps", "sharing", "heap",
    "heap-threads", "heap-sizes", "heap-time", "syscalls", "memory-errors", "resources", "counters", "monitor",
    "monitor-trends", "monitor-machine", "build", "headers", "templates", "configure", "build-time", "build-path",
];

/// A second with a step each millisecond. Eight threads block, are preempted and wake each other.
fn invented() -> Capture {
    let end = 1_000 * MS;
    let mut capture = Capture::default();
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(end));
    capture.info.losses.offcpu_stack_period = Some(4);
    for dimension in [Dimension::Cpu, Dimension::Offcpu, Dimension::Sched, Dimension::Steps] {
        capture.info.dimensions.insert(dimension, DimensionStatus::Recorded);
    }
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    let process = capture.add_process(Process { pid: 1, executable: "/usr/bin/sim".into(), ..Process::default() });
    let places = [
        ["main", "Worker::run", "pthread_cond_wait"],
        ["main", "Physics::solve", "pthread_mutex_lock"],
        ["main", "Network::poll", "epoll_wait"],
        ["main", "Clock::sleep", "nanosleep"],
    ];
    let stacks = places.map(|names| {
        let frames: Vec<_> = names.iter().map(|name| capture.intern_function(name)).collect();
        capture.intern_stack(frames)
    });
    for number in 0..THREADS {
        let name = format!("worker-{number}");
        let thread = Thread { tid: 100 + number as u32, process: Some(process), name, ..Thread::default() };
        let (start_ns, end_ns) = (Some(0), Some(end));
        capture.add_thread(Thread { start_ns, end_ns, cpu_ns: Some(end / 2), ..thread });
    }
    let length = end / (WAITS / THREADS);
    for at in 0..WAITS {
        let (thread, number) = (at / (WAITS / THREADS), at % (WAITS / THREADS));
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
            waker: Some(ThreadId(((thread + 1 + at % 3) % THREADS) as u32)),
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

/// The views that answer without the file of waits, and those that take more memory than they may.
#[test]
fn views_take_at_most_64_bytes_for_each_wait_and_most_take_none() {
    let folder = tempfile::tempdir().unwrap();
    disk::write(&invented(), folder.path()).unwrap();
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
        let peak = peak_of(|| run(&loaded));
        let taken = peak.saturating_sub(CONSTANT) / WAITS as usize;
        println!("{}: {:.1} bytes for each wait", view.name, peak as f64 / WAITS as f64);
        let most = OF_PATHS.iter().find(|(name, _)| *name == view.name).map_or(MOST_BESIDE, |(_, most)| *most);
        if taken > most {
            too_large.push(format!("{}: {taken}", view.name));
        }
    }
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
    assert!(too_large.is_empty(), "bytes for each wait beside the 48 in memory, at most {MOST_BESIDE}: {too_large:?}");
    assert_eq!(without, WITHOUT_WAITS);
}
