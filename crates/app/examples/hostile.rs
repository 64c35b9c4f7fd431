//! Writes captures as a stranger could, for tests of the page, the report and the server.
//!
//! ```text
//! cargo run -p stepscope-app --example hostile -- FOLDER
//! ```
//!
//! `FOLDER/names.capture` keeps all rules, and holds what they allow: names that are markup, names of ten megabytes, a stack of 20,000
//! frames, huge weights, and numbers at the ends of their ranges. `FOLDER/circle.capture` breaks a rule: its stacks are a circle.

use std::path::Path;

use stepscope_model::{
    Allocation, Capture, Counter, Dimension, DimensionStatus, Event, Frame, FrameId, Module, Phase, Process, ProcessId,
    Sample, Scope, StackId, StackNode, Step, SystemCalls, Thread, ThreadId, Wait, WaitState, disk,
};

const MARKUP: [&str; 8] = [
    "</script><script>document.title='ran'</script>",
    "<img src=x onerror=document.title='ran'>",
    "\"><svg onload=document.title='ran'>",
    "<!--<script>",
    "{{constructor.constructor('document.title=1')()}}",
    "javascript:document.title='ran'",
    "__proto__",
    "\u{0}\u{202e}\u{feff}\n\r\t",
];
/// Bytes of the longest names.
const LONG: usize = 10_000_000;
const DEEP: u64 = 20_000;
const LENGTH: u64 = 1_000_000_000;
const ROWS: u64 = 400;
/// The largest count of which all rows can be added up.
const HUGE: u64 = u64::MAX / (8 * ROWS);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder to write to")?;
    disk::write(&names(), &Path::new(&folder).join("names.capture"))?;
    disk::write(&circle(), &Path::new(&folder).join("circle.capture"))?;
    Ok(())
}

fn markup(number: u64) -> &'static str {
    MARKUP[number as usize % MARKUP.len()]
}

/// Two stacks, each the parent of the other.
fn circle() -> Capture {
    let mut capture = described();
    let frame = capture.intern_function("a");
    for parent in [1, 0] {
        capture.stacks.push(StackNode { parent: Some(StackId(parent)), frame });
    }
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    let thread = capture.add_thread(Thread { tid: 1, ..Thread::default() });
    let sample = Sample { time_ns: Some(1), thread, cpu: None, stack: Some(StackId(0)), event, weight: 1 };
    capture.samples.push(sample);
    capture
}

fn described() -> Capture {
    let mut capture = Capture::default();
    let info = &mut capture.info;
    (info.start_ns, info.end_ns) = (Some(0), Some(LENGTH));
    for dimension in [Dimension::Cpu, Dimension::Offcpu, Dimension::Sched, Dimension::Steps, Dimension::Heap] {
        info.dimensions.insert(dimension, DimensionStatus::Recorded);
    }
    info.dimensions.insert(
        Dimension::Cache,
        DimensionStatus::Missing { reason: markup(0).into(), remedy: Some(format!("`{}`", markup(1))) },
    );
    capture
}

fn names() -> Capture {
    let mut capture = described();
    let info = &mut capture.info;
    (info.scenario, info.variant, info.phase) = (Some(markup(0).into()), Some(markup(1).into()), Some(Phase::Steady));
    info.command = MARKUP.map(str::to_owned).into();
    info.environment = MARKUP.iter().map(|text| ((*text).to_owned(), (*text).to_owned())).collect();
    info.notes = MARKUP.map(str::to_owned).into();
    info.working_directory = Some("l".repeat(LONG));
    let process =
        Process { pid: u32::MAX, command_line: "c".repeat(LONG), executable: markup(1).into(), ..Process::default() };
    let process = capture.add_process(process);
    let times = (Some(0), Some(LENGTH));
    for (tid, name) in [markup(2).to_owned(), "t".repeat(LONG), String::new()].into_iter().enumerate() {
        let (start_ns, end_ns) = times;
        let thread = Thread { tid: tid as u32, process: Some(process), name, start_ns, end_ns, ..Thread::default() };
        capture.add_thread(thread);
    }
    let leaves = add_stacks(&mut capture);
    add_rows(&mut capture, process, &leaves);
    capture
}

/// A stack of markup, one that is very deep and one of long names; returns their leaves.
fn add_stacks(capture: &mut Capture) -> [StackId; 3] {
    let module = capture.add_module(Module { path: format!("/{}", markup(1)), ..Module::default() });
    let named = |capture: &mut Capture, name: &str, number: u64| -> FrameId {
        let file = if number.is_multiple_of(2) { "../../../../../../etc/passwd" } else { markup(number) };
        let (module, line) = (Some(module), Some(u32::MAX - number as u32));
        let address = Some(u64::MAX - number);
        let (file, inlined) = (Some(file.into()), number.is_multiple_of(3));
        capture.intern_frame(Frame { module, file, line, address, inlined, ..Frame::named(name) })
    };
    let mut frames: Vec<FrameId> = (0..8).map(|number| named(capture, markup(number), number)).collect();
    let marked = capture.intern_stack(frames.iter().copied());
    let deep =
        (0..DEEP).fold(None, |parent, level| Some(capture.intern_stack_node(parent, frames[(level % 7 % 3) as usize])));
    let long = ["n::".repeat(LONG / 3), format!("f<{}>", "std::vector<".repeat(LONG / 12))];
    frames.extend(long.iter().map(|name| named(capture, name, 8)));
    let long = capture.intern_stack(frames.into_iter().rev());
    [marked, deep, long].map(|leaf| leaf.expect("it has frames"))
}

fn add_rows(capture: &mut Capture, process: ProcessId, leaves: &[StackId; 3]) {
    let times = capture.add_event(Event::sampled("cpu-clock", "ns"));
    let huge = capture.add_event(Event::sampled(markup(0), markup(2)));
    for row in 0..ROWS {
        let (start_ns, end_ns) = (row * LENGTH / ROWS, (row + 1) * LENGTH / ROWS);
        let (thread, stack) = (ThreadId(row as u32 % 3), Some(leaves[row as usize % 3]));
        let sample =
            |event, weight| Sample { time_ns: Some(start_ns), thread, cpu: Some(u32::MAX), stack, event, weight };
        capture.samples.push(sample(times, 1_000_000));
        capture.samples.push(sample(huge, HUGE));
        capture.waits.push(Wait {
            start_ns,
            end_ns,
            thread,
            stack,
            state: WaitState::Blocked,
            runnable_ns: Some(HUGE),
            cpu: Some(u32::MAX),
            waker: Some(thread),
            waker_stack: stack,
            count: u32::MAX,
        });
        let sim_time_ns = Some(if row.is_multiple_of(2) { u64::MAX } else { 0 });
        capture.steps.push(Step { index: u64::MAX - row, start_ns, end_ns, sim_time_ns, thread: ThreadId(0) });
        let name = markup(row).into();
        capture.scopes.push(Scope { thread: ThreadId(1), name, start_ns, end_ns, depth: u32::MAX - row as u32 });
        let value = if row.is_multiple_of(2) { HUGE as i64 } else { -(HUGE as i64) };
        let name = markup(row).into();
        capture.counters.push(Counter { time_ns: start_ns, process: Some(process), thread: None, name, value });
        capture.allocations.push(Allocation {
            start_ns,
            end_ns,
            process,
            thread: Some(thread),
            stack,
            calls: HUGE,
            bytes: HUGE,
            temporary: HUGE,
            frees: HUGE,
            freed_bytes: HUGE,
            foreign_frees: HUGE,
            foreign_freed_bytes: HUGE,
            live_blocks: -(HUGE as i64),
            live_bytes: HUGE as i64,
            peak_bytes: HUGE as i64,
            sizes: [u32::MAX; _],
            lifetimes: [u32::MAX; _],
        });
        capture.system_calls.push(SystemCalls {
            start_ns,
            end_ns,
            thread,
            call: markup(row).into(),
            stack,
            file: Some(markup(row + 1).into()),
            count: HUGE,
            errors: HUGE,
            total_ns: HUGE,
            longest_ns: HUGE,
            bytes: HUGE,
            last_ns: Some(HUGE),
        });
    }
}
