//! How long each analysis takes on a synthetic capture of 500,000 samples and 300,000 waits over about 100,000 nodes of
//! the call tree, and how hot spots compare with the obvious way: a set of functions for each sample.
//!
//! Run with `cargo bench -p stepscope-analyze --bench analyses`.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use stepscope_analyze::{
    Functions, Ownership, Selection, calltree, explain, faults, hotspots, rank, sched, summary, threads, tree, wall,
};
use stepscope_model::{
    Capture, Event, Frame, FrameId, Module, ModuleId, Sample, StackId, StackNode, Step, Thread, ThreadId, Wait,
    WaitState,
};

const SAMPLES: usize = 500_000;
const WAITS: usize = 300_000;
const NODES: usize = 100_000;
const FUNCTIONS: usize = 5_000;
const THREADS: usize = 32;
const WINDOW_NS: u64 = 30_000_000_000;

/// Knuth's 64-bit linear congruential generator: enough for a shape, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

fn function_name(index: usize) -> String {
    match index % 5 {
        0 => format!(
            "void gz::sim::v11::EntityComponentManager::EachNoCache{index}<gz::sim::v11::components::Component<std::add_lvalue_reference<void>, gz::sim::v11::components::ModelTag> >"
        ),
        1 => format!(
            "std::_Hashtable<unsigned long, std::pair<unsigned long const, gz::math::Pose3<double> >, std::allocator<std::pair<unsigned long const, gz::math::Pose3<double> > > >::_M_find{index}"
        ),
        2 => format!("dart::dynamics::Skeleton::compute{index}"),
        3 => format!("pthread_function_{index}"),
        _ => format!("gz::physics::dartsim::SimulationFeatures::Write{index}"),
    }
}

fn synthetic() -> Capture {
    let mut random = Random(42);
    let mut capture = Capture::default();
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(WINDOW_NS));
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    for index in 0..40 {
        capture.add_module(Module { path: format!("/usr/lib/libgz-{index}.so.11"), ..Module::default() });
    }
    // Each function at four places, as real ones are sampled at several lines.
    for index in 0..FUNCTIONS * 4 {
        let mut frame = Frame::named(function_name(index / 4));
        frame.module = Some(ModuleId::from_index((index / 4) % 40));
        frame.file = Some(format!("/home/me/sim/src/file{}.cc", index / 40).into());
        frame.line = Some(index as u32 % 1_000);
        capture.frames.push(frame);
    }
    let mut depths: Vec<u32> = Vec::with_capacity(NODES);
    for index in 0..NODES {
        // Mostly deeper into what was just reached, sometimes back to somewhere else; at most 60 deep.
        let near = index.saturating_sub(1 + random.below(4));
        let candidate = if random.below(8) == 0 { random.below(index.max(1)) } else { near };
        let parent = (index > 0 && depths[candidate] < 60).then_some(candidate);
        depths.push(parent.map_or(1, |parent| depths[parent] + 1));
        let frame = FrameId::from_index(random.below(FUNCTIONS * 4));
        capture.stacks.push(StackNode { parent: parent.map(StackId::from_index), frame });
    }
    for tid in 0..THREADS {
        let life = (Some(0), Some(WINDOW_NS));
        capture.add_thread(Thread {
            tid: tid as u32,
            name: format!("worker-{}", tid % 8),
            start_ns: life.0,
            end_ns: life.1,
            cpu_ns: Some(WINDOW_NS / 2),
            ..Thread::default()
        });
    }
    for index in 0..SAMPLES {
        capture.samples.push(Sample {
            time_ns: Some(index as u64 * WINDOW_NS / SAMPLES as u64),
            thread: ThreadId::from_index(random.below(THREADS)),
            cpu: Some(0),
            stack: Some(StackId::from_index(random.below(NODES))),
            event,
            weight: 1_003_009,
        });
    }
    for index in 0..WAITS {
        let start_ns = (index / THREADS) as u64 * (WINDOW_NS / (WAITS / THREADS) as u64);
        capture.waits.push(Wait {
            start_ns,
            end_ns: start_ns + 1_000_000,
            thread: ThreadId::from_index(index % THREADS),
            stack: Some(StackId::from_index(random.below(NODES))),
            state: if random.below(4) == 0 { WaitState::Preempted } else { WaitState::Blocked },
            runnable_ns: Some(10_000),
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        });
    }
    capture.steps = (0..3_000)
        .map(|index| Step {
            index,
            start_ns: index * 10_000_000,
            end_ns: (index + 1) * 10_000_000,
            sim_time_ns: Some(index * 1_000_000),
            thread: ThreadId(0),
        })
        .collect();
    capture.check().expect("a sound capture");
    capture
}

/// The best of three runs, which is the least disturbed one.
fn timed<R>(name: &str, mut run: impl FnMut() -> R) -> Duration {
    let best = (0..3).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    });
    let best = best.min().expect("three runs");
    println!("{name:<34} {:>9.1} ms", best.as_secs_f64() * 1e3);
    best
}

/// Self and inclusive as the usual scripts do it: every stack of every sample, with a set of what was seen.
fn one_set_a_sample(capture: &Capture, functions: &Functions) -> HashMap<u32, (u128, u128)> {
    let mut sums: HashMap<u32, (u128, u128)> = HashMap::new();
    let mut seen: FxHashSet<usize> = FxHashSet::default();
    for sample in &capture.samples {
        seen.clear();
        for (depth, frame) in capture.frames_of(sample.stack).enumerate() {
            let function = functions.of_frame(frame).index();
            if depth == 0 {
                sums.entry(function as u32).or_default().0 += u128::from(sample.weight);
            }
            if seen.insert(function) {
                sums.entry(function as u32).or_default().1 += u128::from(sample.weight);
            }
        }
    }
    sums
}

fn main() {
    let capture = synthetic();
    println!(
        "{} samples, {} waits, {} nodes, {} frames, {} threads",
        capture.samples.len(),
        capture.waits.len(),
        capture.stacks.len(),
        capture.frames.len(),
        capture.threads.len()
    );
    let owned = Ownership { namespaces: vec!["gz::".into()], ..Ownership::default() }.compile().expect("a pattern");
    timed("functions distinguished and judged", || Functions::of(&capture, &owned));
    let functions = Functions::of(&capture, &owned);
    let selection = Selection::all(&capture, &functions);
    let selections = std::slice::from_ref(&selection);
    let ours = timed("hotspots", || hotspots::table(&selection));
    let sums = timed("hotspots, sums alone", || hotspots::Hotspots::of(&selection));
    let peer = timed("one set a sample, sums alone", || one_set_a_sample(&capture, &functions));
    timed("edges", || hotspots::edges(&selection));
    timed("threads", || threads::table(&selection));
    timed("wall", || wall::table(&selection, wall::Grouping::Thread));
    timed("blocked", || wall::callers(&selection));
    timed("sched", || sched::table(&selection));
    timed("faults (none)", || faults::table(&selection));
    timed("summary", || summary::table(selections));
    timed("call tree", || calltree::of_samples(&selection, &calltree::Options::default()));
    timed("call tree by thread", || {
        calltree::of_samples(
            &selection,
            &calltree::Options { grouping: calltree::Grouping::Thread, ..Default::default() },
        )
    });
    timed("call tree, inverted", || {
        calltree::of_samples(
            &selection,
            &calltree::Options { order: calltree::Order::LeavesFirst, ..Default::default() },
        )
    });
    timed("tree", || tree::table(&selection, &tree::Options::default()));
    timed("rank", || rank::table(selections, &rank::Options::default()));
    let asked = function_name(5);
    timed("explain", || explain::tables(selections, &asked, &rank::Options::default()));
    println!(
        "hotspots against one set a sample: sums {:.2} x, with the table {:.2} x",
        sums.as_secs_f64() / peer.as_secs_f64(),
        ours.as_secs_f64() / peer.as_secs_f64()
    );
}
