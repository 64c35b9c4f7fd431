//! How long the views of steps take on a long recording: a million samples, a million waits, a hundred thousand steps.
//!
//! `cargo bench -p stepscope-analyze --bench steps`.

use std::hint::black_box;
use std::time::Instant;

use stepscope_analyze::steps::Loops;
use stepscope_analyze::{Functions, Ownership, Selection, critical_path, hotspots, scopes, slow_steps, step_times};
use stepscope_model::{
    Capture, Event, FrameId, Sample, Scope, StackId, StackNode, Step, Thread, ThreadId, Wait, WaitState,
};
use stepscope_stats::SplitMix64;

const SAMPLES: u64 = 1_000_000;
const WAITS: u64 = 1_000_000;
const STEPS: u64 = 100_000;
const SCOPES: u64 = 500_000;
const THREADS: u64 = 32;
const FUNCTIONS: usize = 3_000;
const NODES: usize = 50_000;
const STEP_NS: u64 = 1_000_000;

fn synthetic() -> Capture {
    let mut random = SplitMix64::new(1);
    let mut capture = Capture::default();
    let end = STEPS * STEP_NS;
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(end));
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    for index in 0..FUNCTIONS {
        let name = match index % 50 {
            0 => format!("pthread_cond_wait{index}"),
            _ => format!("gz::sim::System{index}::Update"),
        };
        capture.intern_function(&name);
    }
    for index in 0..NODES {
        // Some twenty deep.
        let parent = (index > 0).then(|| StackId::from_index(index - 1 - random.below(index.min(5_000))));
        let frame = FrameId::from_index(random.below(FUNCTIONS));
        capture.stacks.push(StackNode { parent, frame });
    }
    for tid in 0..THREADS as u32 {
        let life = (Some(0), Some(end));
        capture.add_thread(Thread {
            tid,
            name: format!("w{tid}"),
            start_ns: life.0,
            end_ns: life.1,
            ..Thread::default()
        });
    }
    let node = |random: &mut SplitMix64| Some(StackId::from_index(random.below(NODES)));
    for index in 0..SAMPLES {
        let (time_ns, thread) = (Some(index * (end / SAMPLES)), ThreadId(random.below(THREADS as usize) as u32));
        capture.samples.push(Sample { time_ns, thread, cpu: None, stack: node(&mut random), event, weight: 1_000_000 });
    }
    let apart = end / (WAITS / THREADS);
    for index in 0..WAITS {
        let (thread, start_ns) = (ThreadId((index % THREADS) as u32), index / THREADS * apart);
        let length = apart / 4 + random.below(apart as usize / 2) as u64;
        let waker = Some(ThreadId(random.below(THREADS as usize) as u32)).filter(|waker| *waker != thread);
        capture.waits.push(Wait {
            start_ns,
            end_ns: start_ns + length,
            thread,
            stack: node(&mut random),
            state: WaitState::Blocked,
            runnable_ns: Some(length / 10),
            cpu: None,
            waker,
            waker_stack: node(&mut random),
            count: 1,
        });
    }
    let mut time = 0;
    for index in 0..STEPS {
        let length = STEP_NS * 9 / 10
            + random.below(STEP_NS as usize / 10) as u64
            + if index % 50 == 0 { STEP_NS / 2 } else { 0 };
        let step = Step { index, start_ns: time, end_ns: time + length, sim_time_ns: Some(time), thread: ThreadId(0) };
        capture.steps.push(step);
        time += length;
    }
    for index in 0..SCOPES {
        let start_ns = index * (end / SCOPES);
        let name = capture.intern_text(["Physics", "Render", "Sensors"][index as usize % 3]);
        let thread = ThreadId((index % THREADS) as u32);
        capture.scopes.push(Scope { thread, name, start_ns, end_ns: start_ns + 900, depth: 0 });
    }
    capture.check().expect("a sound capture");
    capture
}

/// Time of this thread on a CPU, which says more than the clock on a busy machine; 0 where the kernel does not tell.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn timed<R>(name: &str, run: impl FnOnce() -> R) {
    let (start, cpu) = (Instant::now(), cpu_ns());
    black_box(run());
    let (wall, cpu) = (start.elapsed().as_secs_f64() * 1e3, (cpu_ns() - cpu) as f64 / 1e6);
    println!("{name:<20} {wall:>8.0} ms, {cpu:>6.0} ms on a CPU");
}

fn main() {
    let capture = synthetic();
    let owned = Ownership { namespaces: vec!["gz::".into()], ..Ownership::default() }.compile().expect("a pattern");
    let functions = Functions::of(&capture, &owned);
    let selection = Selection::all(&capture, &functions);
    timed("loops", || Loops::of(&selection));
    timed("hotspots", || hotspots::table(&selection));
    timed("steps", || step_times::tables(&selection));
    timed("scopes", || scopes::table(&selection));
    timed("slow-steps", || slow_steps::tables(&selection, &slow_steps::Options::default()));
    timed("critical-path", || critical_path::tables(&selection));
}
