//! Joins captures to one: the segments of a recording, or captures of several machines.
//!
//! A segment ends where the next one starts. Threads and processes that lived on are one row of the joined capture, and a
//! wait across the cut is one wait. Steps and scopes belong to the segment in which they end, so each is there once. Samples
//! and times add up. Where a segment is missing in between, only processes are joined across the gap: the time of a thread in it is
//! unknown.
//!
//! Captures of several machines lie beside each other ([`Joiner::add_beside`]): code and events are joined, and no process or thread
//! is. [`merge`](crate::merge) brings them to one clock before.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use stepscope_model::{
    Allocation, AllocationBurst, CallTimes, Capture, CaptureInfo, DataAccess, DimensionStatus, EventCount, EventId,
    FlowEvent, Frame, FrameId, Losses, MemoryError, ModuleId, Origin, Process, ProcessId, RecordingCost, Sample, Scope,
    StackId, Step, SystemCalls, Thread, ThreadId, Wait,
};

use crate::clocks;
use crate::entry::MarkNameRef;
use crate::nesting::{Interval, Nesting};

/// Joins captures that follow each other, or lie beside each other.
#[derive(Debug, Default)]
pub struct Joiner {
    joined: Capture,
    count: usize,
    /// Whether some of the captures follow each other.
    has_segments: bool,
    steps: StepNumbers,
    modules: HashMap<(String, Option<String>), ModuleId>,
}

impl Joiner {
    /// Adds the next segment.
    pub fn add(&mut self, segment: &Capture) {
        let alive = Alive::of(&self.joined, &segment.info);
        let rows = self.rows_of(segment, alive);
        self.add_long_tables(segment, &rows, Relation::Next);
        join_info(&mut self.joined.info, &segment.info, self.count == 0);
        self.count += 1;
        self.has_segments = true;
    }

    /// Adds a capture of which no process and no thread is joined with one of those before. Its description is not joined, but for its
    /// events. Gives the rows that its threads have.
    pub fn add_beside(&mut self, capture: &Capture) -> Range<usize> {
        let before = self.joined.threads.len();
        let rows = self.rows_of(capture, Alive::default());
        self.add_long_tables(capture, &rows, Relation::Beside);
        self.count += 1;
        before..self.joined.threads.len()
    }

    /// The joined capture.
    pub fn finish(mut self) -> Capture {
        self.joined.waits.sort();
        if self.has_segments {
            nest(&mut self.joined);
        }
        self.joined
    }

    /// Adds the rows that others refer to.
    fn rows_of(&mut self, segment: &Capture, mut alive: Alive) -> Rows {
        let joined = &mut self.joined;
        let events = segment.info.events.iter().map(|event| {
            let known = joined.info.events.iter().position(|known| known.name == event.name);
            known.map_or_else(|| joined.add_event(event.clone()), EventId::from_index)
        });
        let events = events.collect();
        let processes: Vec<ProcessId> =
            segment.processes.iter().map(|process| alive.join_process(joined, process)).collect();
        let thread = |thread: &Thread| {
            let process = thread.process.map(|process| processes[process.index()]);
            alive.join_thread(joined, Thread { process, ..thread.clone() }, &segment.info)
        };
        let threads = segment.threads.iter().map(thread).collect();
        let module = |module: &stepscope_model::Module| {
            let key = (module.path.clone(), module.build_id.clone());
            *self.modules.entry(key).or_insert_with(|| joined.add_module(module.clone()))
        };
        let modules: Vec<ModuleId> = segment.modules.iter().map(module).collect();
        let frame = |frame: &Frame| {
            let module = frame.module.map(|module| modules[module.index()]);
            joined.intern_frame(Frame { module, ..frame.clone() })
        };
        let frames: Vec<FrameId> = segment.frames.iter().map(frame).collect();
        let mut stacks: Vec<StackId> = Vec::with_capacity(segment.stacks.len());
        for node in &segment.stacks {
            let parent = node.parent.map(|parent| stacks[parent.index()]);
            stacks.push(joined.intern_stack_node(parent, frames[node.frame.index()]));
        }
        Rows { events, processes, threads, stacks }
    }

    fn add_long_tables(&mut self, segment: &Capture, rows: &Rows, relation: Relation) {
        let joined = &mut self.joined;
        joined.samples.extend(segment.samples.iter().map(|sample| Sample {
            thread: rows.thread(sample.thread),
            stack: rows.stack(sample.stack),
            event: rows.events[sample.event.index()],
            ..*sample
        }));
        let is_next = relation == Relation::Next;
        let mut open = if is_next { open_waits(joined, segment.info.start_ns) } else { HashMap::new() };
        for wait in &segment.waits {
            let thread = rows.thread(wait.thread);
            let (stack, waker_stack) = (rows.stack(wait.stack), rows.stack(wait.waker_stack));
            let wait = Wait { thread, stack, waker: wait.waker.map(|waker| rows.thread(waker)), waker_stack, ..wait };
            match open.remove(&thread).filter(|_| Some(wait.start_ns) == segment.info.start_ns && !wait.is_aggregated())
            {
                Some(row) => joined.waits.change(row, |first| continue_wait(first, &wait)),
                None => joined.waits.push(wait),
            }
        }
        for step in &segment.steps {
            let step = Step { thread: rows.thread(step.thread), ..*step };
            let process = joined.threads[step.thread.index()].process;
            joined.steps.push(if is_next { self.steps.numbered(process, step) } else { step });
        }
        let scopes = segment.scopes.iter().map(|scope| Scope { thread: rows.thread(scope.thread), ..scope.clone() });
        joined.scopes.extend(scopes);
        joined.system_calls.extend(segment.system_calls.iter().map(|calls| SystemCalls {
            thread: rows.thread(calls.thread),
            stack: rows.stack(calls.stack),
            ..calls.clone()
        }));
        joined.call_times.extend(segment.call_times.iter().map(|times| CallTimes {
            thread: rows.thread(times.thread),
            stack: rows.stack(times.stack),
            ..times.clone()
        }));
        // A segment repeats the last reading of each quantity at its start.
        let is_repeated = |time_ns| is_next && self.count > 0 && Some(time_ns) == segment.info.start_ns;
        for counter in segment.counters.iter().filter(|counter| !is_repeated(counter.time_ns)) {
            let mut counter = counter.clone();
            counter.process = counter.process.map(|process| rows.processes[process.index()]);
            counter.thread = counter.thread.map(|thread| rows.thread(thread));
            joined.counters.push(counter);
        }
        joined.allocations.extend(segment.allocations.iter().map(|row| Allocation {
            process: rows.processes[row.process.index()],
            thread: row.thread.map(|thread| rows.thread(thread)),
            stack: rows.stack(row.stack),
            ..row.clone()
        }));
        joined.allocation_bursts.extend(segment.allocation_bursts.iter().map(|row| AllocationBurst {
            process: rows.processes[row.process.index()],
            thread: row.thread.map(|thread| rows.thread(thread)),
            stack: rows.stack(row.stack),
            ..*row
        }));
        joined.data_accesses.extend(segment.data_accesses.iter().map(|access| DataAccess {
            thread: rows.thread(access.thread),
            stack: rows.stack(access.stack),
            ..access.clone()
        }));
        joined
            .flows
            .extend(segment.flows.iter().map(|event| FlowEvent { thread: rows.thread(event.thread), ..event.clone() }));
        joined.event_counts.extend(
            segment
                .event_counts
                .iter()
                .map(|row| EventCount { thread: row.thread.map(|thread| rows.thread(thread)), ..row.clone() }),
        );
        joined.memory_errors.extend(segment.memory_errors.iter().map(|error| MemoryError {
            process: error.process.map(|process| rows.processes[process.index()]),
            stack: rows.stack(error.stack),
            allocated: rows.stack(error.allocated),
            other: rows.stack(error.other),
            ..error.clone()
        }));
    }
}

/// How a capture lies to the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Next,
    Beside,
}

/// The joined rows of a segment's rows.
struct Rows {
    events: Vec<EventId>,
    processes: Vec<ProcessId>,
    threads: Vec<ThreadId>,
    stacks: Vec<StackId>,
}

impl Rows {
    fn thread(&self, thread: ThreadId) -> ThreadId {
        self.threads[thread.index()]
    }

    fn stack(&self, stack: Option<StackId>) -> Option<StackId> {
        stack.map(|stack| self.stacks[stack.index()])
    }
}

/// Processes and threads that lived at the end of the last segment, by their ids. No threads, if that was not the one before.
#[derive(Default)]
struct Alive {
    processes: HashMap<u32, ProcessId>,
    threads: HashMap<u32, ThreadId>,
}

impl Alive {
    fn of(joined: &Capture, segment: &CaptureInfo) -> Self {
        let processes = joined.processes.iter().enumerate().filter(|(_, process)| process.end_ns.is_none());
        let end_ns = joined.info.end_ns;
        let is_alive = |thread: &Thread| thread.end_ns == end_ns && end_ns == segment.start_ns;
        let threads = joined.threads.iter().enumerate().filter(|(_, thread)| is_alive(thread));
        Self {
            processes: processes.map(|(row, process)| (process.pid, ProcessId::from_index(row))).collect(),
            threads: threads.map(|(row, thread)| (thread.tid, ThreadId::from_index(row))).collect(),
        }
    }

    fn join_process(&mut self, joined: &mut Capture, process: &Process) -> ProcessId {
        let known = self.processes.remove(&process.pid).filter(|_| process.start_ns.is_none());
        let Some(known) = known else { return joined.add_process(process.clone()) };
        let row = &mut joined.processes[known.index()];
        *row = Process { start_ns: row.start_ns, parent_pid: row.parent_pid, ..process.clone() };
        known
    }

    fn join_thread(&mut self, joined: &mut Capture, thread: Thread, segment: &CaptureInfo) -> ThreadId {
        let known = self.threads.remove(&thread.tid);
        let known = known.filter(|known| {
            thread.start_ns == segment.start_ns && joined.threads[known.index()].process == thread.process
        });
        let Some(known) = known else { return joined.add_thread(thread) };
        let row = &mut joined.threads[known.index()];
        row.end_ns = thread.end_ns;
        row.cpu_ns = added(row.cpu_ns, thread.cpu_ns);
        row.runnable_ns = added(row.runnable_ns, thread.runnable_ns);
        let is_renamed = row.name != thread.name || !thread.names.is_empty();
        if is_renamed && row.names.is_empty() {
            let time_ns = row.start_ns.unwrap_or(0);
            row.names.push(stepscope_model::ThreadName { time_ns, name: row.name.clone() });
        }
        row.names.extend(thread.names.into_iter().skip(1));
        row.name = thread.name;
        known
    }
}

/// A sum that is known only if both parts are.
fn added(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    Some(first?.saturating_add(second?))
}

/// A sum of the parts that are known.
fn added_known(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    added(first, second).or(first).or(second)
}

/// The waits that last until this time, by thread.
fn open_waits(joined: &Capture, time_ns: Option<u64>) -> HashMap<ThreadId, usize> {
    let last = joined.waits.iter().enumerate().filter(|(_, wait)| Some(wait.end_ns) == time_ns);
    last.map(|(row, wait)| (wait.thread, row)).collect()
}

/// The first part of a wait has its stack, the last part has its end.
fn continue_wait(first: &mut Wait, next: &Wait) {
    first.runnable_ns = match next.runnable_ns {
        Some(ns) => Some(first.runnable_ns.unwrap_or(0).saturating_add(ns)),
        None => first.runnable_ns,
    };
    (first.end_ns, first.cpu) = (next.end_ns, next.cpu);
    first.stack = first.stack.or(next.stack);
    first.waker = next.waker.or(first.waker);
    first.waker_stack = next.waker_stack.or(first.waker_stack);
}

/// Numbers steps on from one segment to the next. Each step of a loop starts where the one before it ended.
#[derive(Debug, Default)]
struct StepNumbers {
    next: HashMap<(Option<ProcessId>, u64), u64>,
    next_of_thread: HashMap<ThreadId, u64>,
}

impl StepNumbers {
    fn numbered(&mut self, process: Option<ProcessId>, step: Step) -> Step {
        let index = self.next.remove(&(process, step.start_ns));
        let index = index.or(self.next_of_thread.get(&step.thread).copied()).unwrap_or(step.index);
        self.next.insert((process, step.end_ns), index + 1);
        self.next_of_thread.insert(step.thread, index + 1);
        Step { index, ..step }
    }
}

/// Counts the depths of scopes again: those of an earlier segment did not know a scope that ended later.
fn nest(joined: &mut Capture) {
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut known: HashMap<Arc<str>, u32> = HashMap::new();
    let mut by_thread: BTreeMap<ThreadId, Vec<Interval<ThreadId>>> = BTreeMap::new();
    for scope in std::mem::take(&mut joined.scopes).drain(..) {
        let name = *known.entry(scope.name.clone()).or_insert_with(|| {
            names.push(scope.name.clone());
            names.len() as u32 - 1
        });
        let &Scope { thread, start_ns, end_ns, .. } = &scope;
        by_thread.entry(thread).or_default().push(Interval { thread, name: MarkNameRef(name), start_ns, end_ns });
    }
    for mut scopes in by_thread.into_values() {
        // Of equal intervals, the one that encloses the other came first, and was written last.
        scopes.reverse();
        Nesting::at_once(scopes).finish(|Interval { thread, name, start_ns, end_ns }, depth| {
            let name = names[name.0 as usize].clone();
            joined.scopes.push(Scope { thread, name, start_ns, end_ns, depth });
        });
    }
}

fn join_info(joined: &mut CaptureInfo, segment: &CaptureInfo, is_first: bool) {
    if is_first {
        let events = std::mem::take(&mut joined.events);
        *joined = CaptureInfo { events, recording_start_ns: None, ..segment.clone() };
        return;
    }
    joined.end_ns = segment.end_ns;
    if segment.origin == Origin::Recovered {
        joined.origin = Origin::Recovered;
    }
    for (dimension, status) in &segment.dimensions {
        let known = joined.dimensions.entry(*dimension).or_insert_with(|| status.clone());
        if rank(status) < rank(known) {
            *known = status.clone();
        }
    }
    clocks::join(&mut joined.clocks, &segment.clocks);
    join_losses(&mut joined.losses, &segment.losses);
    if let (Some(cost), Some(more)) = (&mut joined.recording_cost, &segment.recording_cost) {
        *cost = sum_of_costs(*cost, *more);
    }
    if let (Some(conditions), Some(more)) = (&mut joined.conditions, &segment.conditions) {
        conditions.others_cpu_ns = added(conditions.others_cpu_ns, more.others_cpu_ns);
        conditions.stolen_ns = added(conditions.stolen_ns, more.stolen_ns);
        conditions.end_temperature_mc = more.end_temperature_mc;
        conditions.end_governor.clone_from(&more.end_governor);
    }
    for note in &segment.notes {
        if !joined.notes.contains(note) {
            joined.notes.push(note.clone());
        }
    }
}

/// A dimension that some segment has is there.
fn rank(status: &DimensionStatus) -> u8 {
    match status {
        DimensionStatus::Partial { .. } => 0,
        DimensionStatus::Recorded => 1,
        DimensionStatus::Missing { .. } => 2,
    }
}

pub(crate) fn sum_of_costs(one: RecordingCost, other: RecordingCost) -> RecordingCost {
    RecordingCost {
        cpu_ns: one.cpu_ns.saturating_add(other.cpu_ns),
        speed_probe_cpu_ns: one.speed_probe_cpu_ns.saturating_add(other.speed_probe_cpu_ns),
        finish_cpu_ns: one.finish_cpu_ns.saturating_add(other.finish_cpu_ns),
        log_bytes: one.log_bytes.saturating_add(other.log_bytes),
    }
}

pub(crate) fn join_losses(joined: &mut Losses, segment: &Losses) {
    let sum = |first: u64, second: u64| first.saturating_add(second);
    // Every field is named, so that a new one cannot be forgotten.
    *joined = Losses {
        lost_records: sum(joined.lost_records, segment.lost_records),
        lost_calls: added_known(joined.lost_calls, segment.lost_calls),
        throttled: sum(joined.throttled, segment.throttled),
        samples: sum(joined.samples, segment.samples),
        truncated_stacks: sum(joined.truncated_stacks, segment.truncated_stacks),
        continued_stacks: sum(joined.continued_stacks, segment.continued_stacks),
        guessed_stacks: sum(joined.guessed_stacks, segment.guessed_stacks),
        stacks_of_32_bit_code: sum(joined.stacks_of_32_bit_code, segment.stacks_of_32_bit_code),
        shortened_stacks: sum(joined.shortened_stacks, segment.shortened_stacks),
        // Segments have mostly the same addresses.
        unnamed_addresses: joined.unnamed_addresses.max(segment.unnamed_addresses),
        cpu_time_ns: added(joined.cpu_time_ns, segment.cpu_time_ns),
        unknown_cpu_ns: added_known(joined.unknown_cpu_ns, segment.unknown_cpu_ns),
        lost_samples: added_known(joined.lost_samples, segment.lost_samples),
        lost_wait_ns: added_known(joined.lost_wait_ns, segment.lost_wait_ns),
        kernel_cpu_ns: added(joined.kernel_cpu_ns, segment.kernel_cpu_ns),
        sampled_ns: added_known(joined.sampled_ns, segment.sampled_ns),
        estimated_sample_ns: added_known(joined.estimated_sample_ns, segment.estimated_sample_ns),
        not_sampled_ns: added_known(joined.not_sampled_ns, segment.not_sampled_ns),
        unsampled_thread_ns: added_known(joined.unsampled_thread_ns, segment.unsampled_thread_ns),
        malformed_records: sum(joined.malformed_records, segment.malformed_records),
        lost_marks: sum(joined.lost_marks, segment.lost_marks),
        offcpu_stack_period: joined.offcpu_stack_period.max(segment.offcpu_stack_period),
        aggregated_waits: added_known(joined.aggregated_waits, segment.aggregated_waits),
        checked_stacks: added_known(joined.checked_stacks, segment.checked_stacks),
        differing_stacks: added_known(joined.differing_stacks, segment.differing_stacks),
        private_accesses: added_known(joined.private_accesses, segment.private_accesses),
        dropped_accesses: added_known(joined.dropped_accesses, segment.dropped_accesses),
    };
}

#[cfg(test)]
mod tests;
