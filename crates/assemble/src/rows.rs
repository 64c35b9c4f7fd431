//! Samples, waits, steps, scopes and counters, once all other tables of a capture are known.
//!
//! A day of recording has hundreds of millions of them, so none is kept here: each goes to its table, which may be on disk,
//! and is added to the sums that are made of all.

use std::ops::Range;
use std::path::Path;

use stepscope_model::disk::{DiskError, LongTables};
use stepscope_model::{
    Allocation, AllocationBurst, CallTimes, Capture, Counter, Dimension, DimensionStatus, EventId, FlowEvent, Frame,
    Phase, ProcessId, Sample, Scope, StackId, Step, SystemCalls, Thread, ThreadId, Wait, call_time_bucket,
};

use crate::entry::{self, Entry, Sink, StackRef};
use crate::kernel_account::KernelAccount;
use crate::marks::Marks;
use crate::sample_weights::{NOT_SAMPLED, SampleWeights};
use crate::steps::{StepMaker, StepStart};
use crate::switch_cost;
use crate::system_call::Amount;

/// Adds rows of the long tables to a capture whose other tables are complete.
pub(crate) struct RowSink {
    capture: Capture,
    /// The capture's stack node for each node of the log.
    nodes: Vec<Option<StackId>>,
    marks: Marks,
    /// Readings that are not in the log, and come last.
    last_counters: Vec<Counter>,
    steps: StepMaker,
    has_marked_steps: bool,
    /// Where rows go that do not stay in memory.
    tables: Option<LongTables>,
    error: Option<DiskError>,
    /// What the kernel charges for a switch before its record.
    switch_cost_ns: u64,
    account: KernelAccount,
    coverage: Coverage,
    weights: SampleWeights,
    /// The stack of time without samples.
    not_sampled: Option<StackId>,
}

impl RowSink {
    /// Rows stay in memory unless [`write_to`](Self::write_to) is called.
    pub fn new(
        mut capture: Capture,
        nodes: Vec<Option<StackId>>,
        account: KernelAccount,
        weights: SampleWeights,
    ) -> Self {
        let coverage = Coverage::of(&capture, weights.per_thread);
        let not_sampled = weights.has_not_sampled().then(|| {
            let frame = capture.intern_frame(Frame::named(NOT_SAMPLED));
            capture.intern_stack_node(None, frame)
        });
        Self {
            last_counters: std::mem::take(&mut capture.counters).to_vec(),
            capture,
            nodes,
            marks: Marks::default(),
            steps: StepMaker::default(),
            has_marked_steps: false,
            tables: None,
            error: None,
            switch_cost_ns: 0,
            account,
            coverage,
            weights,
            not_sampled,
        }
    }

    /// Knows the threads and names of marks.
    pub fn with_marks(mut self, marks: Marks) -> Self {
        self.marks = marks;
        self
    }

    /// Knows what the kernel charges for a switch before its record.
    pub fn with_switch_cost(mut self, switch_cost_ns: u64) -> Self {
        self.switch_cost_ns = switch_cost_ns;
        self
    }

    /// Lets rows go to the tables in a folder.
    pub fn write_to(&mut self, folder: &Path) -> Result<(), DiskError> {
        self.tables = Some(LongTables::create(folder, &self.capture)?);
        Ok(())
    }

    pub fn add_sample(&mut self, sample: &entry::Sample) {
        let event = EventId(sample.event.0);
        let is_known = event.index() < self.capture.info.events.len() && self.has(sample.thread, [sample.stack, None]);
        if !is_known {
            return;
        }
        let sample = sample_row(sample, self.node(sample.stack));
        let weight = self.weights.weight(&sample);
        self.coverage.add(&self.capture, &sample, weight);
        sample.time_ns.into_iter().for_each(|time_ns| self.add_not_sampled(time_ns));
        self.push_sample(Sample { weight, ..sample });
    }

    /// Adds time without samples up to this time.
    fn add_not_sampled(&mut self, time_ns: u64) {
        while let Some(row) = self.weights.next_not_sampled(time_ns, self.not_sampled) {
            self.coverage.add_not_sampled(row.weight);
            self.push_sample(row);
        }
    }

    fn push_sample(&mut self, sample: Sample) {
        match &mut self.tables {
            None => self.capture.samples.push(sample),
            Some(tables) if self.error.is_none() => self.error = tables.add_sample(&self.capture, sample).err(),
            Some(_) => {}
        }
    }

    pub fn add_wait(&mut self, wait: &entry::Wait) {
        let stacks = [wait.stack, wait.waker_stack];
        if !self.has(wait.thread, stacks) || !wait.waker.is_none_or(|waker| self.has(waker, stacks)) {
            return;
        }
        let mut wait = wait_row(wait, self.node(wait.stack), self.node(wait.waker_stack));
        let thread = &mut self.capture.threads[wait.thread.index()];
        if let Some(cpu_ns) = thread.cpu_ns.filter(|_| thread.end_ns.is_none_or(|end_ns| wait.end_ns < end_ns)) {
            let earlier_ns = switch_cost::end_earlier(&mut wait, self.switch_cost_ns);
            thread.cpu_ns = Some(cpu_ns.saturating_add(earlier_ns));
            let runnable_ns = wait.runnable_ns.map_or(0, |_| earlier_ns);
            thread.runnable_ns = thread.runnable_ns.map(|ns| ns.saturating_sub(runnable_ns));
        }
        self.account.add(&wait);
        match &mut self.tables {
            None => self.capture.waits.push(wait),
            Some(tables) if self.error.is_none() => self.error = tables.add_wait(&self.capture, wait).err(),
            Some(_) => {}
        }
    }

    fn add_step_start(&mut self, start: Option<StepStart>) {
        let Some(start) = start else { return };
        let mut steps = std::mem::take(&mut self.steps);
        steps.add(start, |step| self.add_step(step));
        self.steps = steps;
    }

    fn add_step(&mut self, step: Step) {
        match &mut self.tables {
            None => self.capture.steps.push(step),
            Some(tables) if self.error.is_none() => self.error = tables.add_step(&self.capture, step).err(),
            Some(_) => {}
        }
    }

    fn add_scope(&mut self, entry: &Entry) {
        let mut marks = std::mem::take(&mut self.marks);
        marks.add_scope(entry, |scope| self.push_scope(scope));
        self.marks = marks;
    }

    fn push_scope(&mut self, scope: Scope) {
        match &mut self.tables {
            None => self.capture.scopes.push(scope),
            Some(tables) if self.error.is_none() => self.error = tables.add_scope(&self.capture, scope).err(),
            Some(_) => {}
        }
    }

    fn add_allocations(&mut self, row: &entry::Allocations) {
        if self.has_place(row.process, row.thread, row.stack) && row.start_ns <= row.end_ns {
            let stack = self.node(row.stack);
            self.capture.allocations.push(allocation_row(row, stack));
        }
    }

    fn add_allocation_burst(&mut self, burst: entry::AllocationBurst) {
        let entry::AllocationBurst { start_ns, end_ns, process, thread, stack, calls, bytes } = burst;
        if self.has_place(process, thread, stack) && start_ns <= end_ns {
            self.capture.allocation_bursts.push(AllocationBurst {
                start_ns,
                end_ns,
                process: ProcessId(process.0),
                thread: thread.map(|thread| ThreadId(thread.0)),
                stack: self.node(stack),
                calls,
                bytes,
            });
        }
    }

    /// Whether the log has said what these are.
    fn has_place(
        &self,
        process: entry::ProcessRef,
        thread: Option<entry::ThreadRef>,
        stack: Option<entry::StackRef>,
    ) -> bool {
        (process.0 as usize) < self.capture.processes.len()
            && thread.is_none_or(|thread| (thread.0 as usize) < self.capture.threads.len())
            && stack.is_none_or(|stack| (stack.0 as usize) < self.nodes.len())
    }

    fn push_counter(&mut self, counter: Counter) {
        match &mut self.tables {
            None => self.capture.counters.push(counter),
            Some(tables) if self.error.is_none() => self.error = tables.add_counter(&self.capture, counter).err(),
            Some(_) => {}
        }
    }

    fn push_flow(&mut self, event: FlowEvent) {
        match &mut self.tables {
            None => self.capture.flows.push(event),
            Some(tables) if self.error.is_none() => self.error = tables.add_flow(&self.capture, event).err(),
            Some(_) => {}
        }
    }

    fn add_system_calls(&mut self, calls: entry::SystemCalls) {
        if !self.has(calls.thread, [calls.stack, None]) {
            return;
        }
        let row = system_calls_row(&calls, self.node(calls.stack), &mut self.capture);
        let of_bucket = |&(bucket, count): &(u64, u64)| {
            let Range { start: from_ns, end: until_ns } = call_time_bucket(bucket);
            let SystemCalls { thread, call, stack, file, .. } = row.clone();
            CallTimes { thread, call, stack, file, from_ns, until_ns, count }
        };
        self.capture.call_times.extend(calls.times.iter().map(of_bucket));
        if row.count == 0 {
            return;
        }
        match &mut self.tables {
            None => self.capture.system_calls.push(row),
            Some(tables) if self.error.is_none() => self.error = tables.add_system_calls(&self.capture, row).err(),
            Some(_) => {}
        }
    }

    /// A reading of a process or a thread that is known.
    fn counter(&mut self, entry: Entry) -> Option<Counter> {
        match entry {
            Entry::Counter { time_ns, process, thread, name, value } => {
                let reading = Reading { time_ns, process, thread, value };
                reading.row(&mut self.capture, &name)
            }
            entry => self.marks.counter(&self.capture, &entry),
        }
    }

    /// Completes the tables. Gives the capture, and the sums of its rows.
    pub fn finish(mut self) -> Result<(Capture, KernelAccount, Coverage), DiskError> {
        self.add_not_sampled(u64::MAX);
        std::mem::take(&mut self.steps).finish(|step| self.add_step(step));
        std::mem::take(&mut self.marks).finish(|scope| self.push_scope(scope));
        std::mem::take(&mut self.last_counters).into_iter().for_each(|counter| self.push_counter(counter));
        match (self.tables, self.error) {
            (_, Some(error)) => return Err(error),
            (Some(tables), None) => tables.finish(&mut self.capture)?,
            (None, None) => {
                self.capture.samples.sort_by_key(|sample| sample.time_ns);
                self.capture.waits.sort();
                self.capture.steps.sort_by_key(|step| step.start_ns);
                self.capture.scopes.sort_by_key(|scope| scope.thread);
                self.capture.flows.sort_by_key(|event| event.time_ns);
            }
        }
        if self.has_marked_steps && !self.capture.steps.is_empty() {
            self.capture.info.dimensions.insert(Dimension::Steps, DimensionStatus::Recorded);
        }
        explain_no_steps(&mut self.capture);
        Ok((self.capture, self.account, self.coverage))
    }

    fn has(&self, thread: entry::ThreadRef, stacks: [Option<StackRef>; 2]) -> bool {
        let is_known = |stack: &StackRef| (stack.0 as usize) < self.nodes.len();
        (thread.0 as usize) < self.capture.threads.len() && stacks.iter().flatten().all(is_known)
    }

    fn node(&self, stack: Option<StackRef>) -> Option<StackId> {
        stack.and_then(|stack| self.nodes[stack.0 as usize])
    }
}

/// The row of a sample, which weighs what its timer says.
pub(crate) fn sample_row(sample: &entry::Sample, stack: Option<StackId>) -> Sample {
    let &entry::Sample { time_ns, thread, cpu, event, weight, .. } = sample;
    Sample { time_ns, thread: ThreadId(thread.0), cpu, stack, event: EventId(event.0), weight }
}

/// The row of a wait.
pub(crate) fn wait_row(wait: &entry::Wait, stack: Option<StackId>, waker_stack: Option<StackId>) -> Wait {
    let &entry::Wait { start_ns, end_ns, thread, state, runnable_ns, cpu, waker, count, .. } = wait;
    let (thread, waker) = (ThreadId(thread.0), waker.map(|thread| ThreadId(thread.0)));
    Wait { start_ns, end_ns, thread, stack, state, runnable_ns, cpu, waker, waker_stack, count }
}

/// The row of sums of allocations.
fn allocation_row(row: &entry::Allocations, stack: Option<StackId>) -> Allocation {
    let entry::AllocationSums { calls, bytes, temporary, frees, freed_bytes, foreign_frees, .. } = row.sums;
    Allocation {
        start_ns: row.start_ns,
        end_ns: row.end_ns,
        process: ProcessId(row.process.0),
        thread: row.thread.map(|thread| ThreadId(thread.0)),
        stack,
        calls,
        bytes,
        temporary,
        frees,
        freed_bytes,
        foreign_frees,
        foreign_freed_bytes: row.sums.foreign_freed_bytes,
        live_blocks: row.live_blocks,
        live_bytes: row.live_bytes,
        peak_bytes: row.peak_bytes,
        sizes: row.sums.sizes,
        lifetimes: row.sums.lifetimes,
    }
}

/// The row of system calls.
fn system_calls_row(calls: &entry::SystemCalls, stack: Option<StackId>, capture: &mut Capture) -> SystemCalls {
    let Amount { count, errors, total_ns, longest_ns, bytes } = calls.amount;
    SystemCalls {
        start_ns: calls.start_ns,
        end_ns: calls.end_ns,
        thread: ThreadId(calls.thread.0),
        call: capture.intern_text(&calls.call),
        stack,
        file: calls.file.as_deref().map(|file| capture.intern_text(file)),
        count,
        errors,
        total_ns,
        longest_ns,
        bytes,
        last_ns: calls.last_ns,
    }
}

/// A reading of the log.
pub(crate) struct Reading {
    pub time_ns: u64,
    pub process: entry::ProcessRef,
    pub thread: Option<entry::ThreadRef>,
    pub value: i64,
}

impl Reading {
    /// Its row, if its process and its thread are known.
    pub fn row(self, capture: &mut Capture, name: &str) -> Option<Counter> {
        let Self { time_ns, process, thread, value } = self;
        let is_known = (process.0 as usize) < capture.processes.len()
            && thread.is_none_or(|thread| (thread.0 as usize) < capture.threads.len());
        is_known.then(|| {
            let (process, thread) = (Some(ProcessId(process.0)), thread.map(|thread| ThreadId(thread.0)));
            Counter { time_ns, process, thread, name: capture.intern_text(name), value }
        })
    }
}

/// Entries of all other tables were read before.
impl Sink for RowSink {
    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Sample(sample) => self.add_sample(&sample),
            Entry::Wait(wait) => self.add_wait(&wait),
            Entry::StepStart { time_ns, thread, sim_time_ns } => {
                self.add_step_start(StepStart::called(&self.capture, ThreadId(thread.0), time_ns, sim_time_ns));
            }
            Entry::StepMark { thread, time_ns, sim_time_ns } => {
                let Some(thread) = self.marks.thread(thread) else { return };
                self.has_marked_steps = true;
                self.add_step_start(StepStart::marked(&self.capture, thread, time_ns, sim_time_ns));
            }
            Entry::Allocations(allocations) => self.add_allocations(&allocations),
            Entry::AllocationBurst(burst) => self.add_allocation_burst(burst),
            Entry::Scope { .. } | Entry::FrameMark { .. } => self.add_scope(&entry),
            Entry::FlowMark { .. } => self.marks.flow(&entry).into_iter().for_each(|event| self.push_flow(event)),
            Entry::SystemCalls(calls) => self.add_system_calls(*calls),
            Entry::Counter { .. } | Entry::MarkedCounter { .. } => {
                let counter = self.counter(entry);
                counter.into_iter().for_each(|counter| self.push_counter(counter));
            }
            _ => {}
        }
    }
}

/// Sampled time, and the threads that no sample hit.
pub(crate) struct Coverage {
    sampled_ns: Option<u64>,
    /// The same by weights, where each thread has timers of its own.
    estimated_ns: Option<u64>,
    not_sampled_ns: Option<u64>,
    is_sampled: Vec<bool>,
}

impl Coverage {
    fn of(capture: &Capture, per_thread: bool) -> Self {
        let estimated_ns = per_thread.then_some(0);
        Self { sampled_ns: None, estimated_ns, not_sampled_ns: None, is_sampled: vec![false; capture.threads.len()] }
    }

    fn add(&mut self, capture: &Capture, sample: &Sample, weight: u64) {
        if capture.event(sample.event).unit == "ns" {
            let sum = self.sampled_ns.get_or_insert(0);
            *sum = sum.saturating_add(sample.weight);
            self.estimated_ns = self.estimated_ns.map(|sum| sum.saturating_add(weight));
        }
        self.is_sampled[sample.thread.index()] = true;
    }

    fn add_not_sampled(&mut self, weight_ns: u64) {
        self.not_sampled_ns = Some(self.not_sampled_ns.unwrap_or(0).saturating_add(weight_ns));
    }

    /// Notes exact CPU time, sampled time, and the time of threads that no sample hit.
    pub fn note(self, capture: &mut Capture) {
        /// The lifetimes of all threads whose CPU time is not known may add up to this.
        const MOST_UNKNOWN_NS: u64 = 20_000_000;
        let exact: Vec<u64> = capture.threads.iter().filter_map(|thread| thread.cpu_ns).collect();
        let lifetime_ns = |thread: &Thread| thread.end_ns.or(capture.info.end_ns)?.checked_sub(thread.start_ns?);
        let unknown_ns = capture.threads.iter().filter(|thread| thread.cpu_ns.is_none()).map(lifetime_ns);
        let unknown_ns = unknown_ns.reduce(|sum, ns| Some(sum?.saturating_add(ns?))).unwrap_or(Some(0));
        let losses = &mut capture.info.losses;
        losses.sampled_ns = self.sampled_ns;
        let more_ns = self.estimated_ns.zip(self.sampled_ns).map(|(weighed, sampled)| weighed.saturating_sub(sampled));
        losses.estimated_sample_ns = more_ns.filter(|&ns| ns > 0);
        losses.not_sampled_ns = self.not_sampled_ns;
        // In the log of a killed recorder, only threads that ended have their time: that is not the time of all. But one that
        // started at the very end is no reason.
        if exact.is_empty() || unknown_ns.is_none_or(|ns| ns > MOST_UNKNOWN_NS) {
            return;
        }
        let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
        losses.cpu_time_ns = Some(sum(&mut exact.into_iter()));
        let unsampled = capture.threads.iter().zip(&self.is_sampled).filter(|(_, is_sampled)| !**is_sampled);
        losses.unsampled_thread_ns = Some(sum(&mut unsampled.filter_map(|(thread, _)| thread.cpu_ns)));
    }
}

/// Says why a capture has no steps: a step lasts from one call of the step function to the next. While a program loads, there
/// are often none.
fn explain_no_steps(capture: &mut Capture) {
    let is_observed = capture.info.dimensions.get(&Dimension::Steps) == Some(&DimensionStatus::Recorded);
    if is_observed && capture.steps.is_empty() && capture.info.phase != Some(Phase::Loading) {
        let reason = "The step function was called less than twice.".to_owned();
        let remedy = Some("`stepscope record --suggest-steps` names functions that are called once a step".to_owned());
        capture.info.dimensions.insert(Dimension::Steps, DimensionStatus::Missing { reason, remedy });
    }
}
