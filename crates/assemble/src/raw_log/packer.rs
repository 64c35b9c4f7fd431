//! Packs entries into the bytes of a chunk.

use serde::Serialize;
use stepscope_model::WaitState;

use super::kind::{Counts, Kind};
use super::layout::{FLOW_STAGES, MarkBefore, NO_CPU, SAME_THREAD, SAME_WEIGHT, UNTIMED, tag};
use crate::entry::{
    AccessCost, AllocationBurst, AllocationSums, Allocations, DataAccess, Entry, MarkThreadRef, Module, ModuleKind,
    Sample, StackRef, SystemCalls, Wait,
};
use crate::system_call::Amount;

/// Entries being packed. Numbers are LEB128; times, stacks and frames are differences to the ones before.
#[derive(Default)]
pub(super) struct ChunkPacker {
    bytes: Vec<u8>,
    time: u64,
    stack: u32,
    weight: u64,
    mark: MarkBefore,
}

impl ChunkPacker {
    /// The chunk so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Starts the next chunk, in the same allocation.
    pub fn restart(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Self { bytes, ..Self::default() };
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn signed(&mut self, value: i64) {
        self.number((value << 1 ^ value >> 63) as u64);
    }

    /// Absent is 0, so what is there is one more.
    fn optional(&mut self, value: Option<u64>) {
        match value {
            None => self.number(0),
            Some(u64::MAX) => self.number(u64::MAX),
            Some(value) => self.number(value + 1),
        }
    }

    fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
    }

    /// Appends bytes with their length.
    pub fn blob(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a number for each kind.
    pub fn counts(&mut self, counts: &Counts) {
        Kind::ALL.into_iter().for_each(|kind| self.number(counts[kind]));
    }

    fn json(&mut self, value: &impl Serialize) {
        let text = serde_json::to_string(value).expect("the vocabulary's types serialise");
        self.text(&text);
    }

    fn since_last(&mut self, time: u64) {
        self.signed(time.wrapping_sub(self.time) as i64);
        self.time = time;
    }

    fn stack(&mut self, stack: Option<StackRef>) {
        match stack {
            None => self.signed(0),
            Some(StackRef(stack)) => {
                // 0 means none, so differences of 0 and above are shifted by one.
                let difference = i64::from(stack) - i64::from(self.stack);
                self.signed(if difference >= 0 { difference + 1 } else { difference });
                self.stack = stack;
            }
        }
    }

    /// Appends an entry.
    pub fn put(&mut self, entry: &Entry) {
        match entry {
            Entry::Start(info) => {
                self.bytes.push(tag::START);
                self.json(info);
            }
            Entry::WindowStart { time_ns } => {
                self.bytes.push(tag::BEGAN);
                self.since_last(*time_ns);
            }
            Entry::Program { command, working_directory, environment } => {
                self.bytes.push(tag::PROGRAM);
                self.json(&(command, working_directory, environment));
            }
            Entry::Event(event) => {
                self.bytes.push(tag::EVENT);
                self.json(event);
            }
            Entry::Process { pid, parent_pid, start_ns } => {
                self.bytes.push(tag::PROCESS);
                self.number(u64::from(*pid));
                self.optional(parent_pid.map(u64::from));
                self.optional(*start_ns);
            }
            Entry::Image { process, executable, command_line } => {
                self.bytes.push(tag::IMAGE);
                self.number(process.0.into());
                self.text(executable);
                self.number(command_line.len() as u64);
                command_line.iter().for_each(|argument| self.text(argument));
            }
            Entry::WorkingDirectory { process, path } => {
                self.bytes.push(tag::WORKING_DIRECTORY);
                self.number(process.0.into());
                self.text(path);
            }
            Entry::ProcessEnd { process, time_ns } => {
                self.bytes.push(tag::PROCESS_END);
                self.number(process.0.into());
                self.since_last(*time_ns);
            }
            Entry::ExitStatus { pid, status } => {
                self.bytes.push(tag::EXIT_STATUS);
                self.number(u64::from(*pid));
                self.signed(i64::from(*status));
            }
            Entry::ExitUsage { pid, cpu_ns, peak_rss_bytes } => {
                self.bytes.push(tag::EXIT_USAGE);
                self.number(u64::from(*pid));
                self.number(*cpu_ns);
                self.optional(*peak_rss_bytes);
            }
            Entry::Thread { tid, process, start_ns, name } => {
                self.bytes.push(tag::THREAD);
                self.number(u64::from(*tid));
                self.number(process.0.into());
                self.optional(*start_ns);
                self.text(name);
            }
            Entry::ThreadName { thread, time_ns, name } => {
                self.bytes.push(tag::THREAD_NAME);
                self.number(thread.0.into());
                self.since_last(*time_ns);
                self.text(name);
            }
            Entry::ThreadEnd { thread, time_ns, cpu_ns, runnable_ns } => {
                self.bytes.push(tag::THREAD_END);
                self.number(thread.0.into());
                self.optional(*time_ns);
                self.optional(*cpu_ns);
                self.optional(*runnable_ns);
            }
            Entry::Module(module) => self.put_module(module),
            Entry::Frame { module, offset } => {
                self.bytes.push(tag::FRAME);
                self.optional(module.map(|module| module.0.into()));
                self.number(*offset);
            }
            Entry::Stack { parent, frame } => {
                self.bytes.push(tag::STACK);
                self.stack(*parent);
                self.number(frame.0.into());
            }
            Entry::Sample(sample) => self.put_sample(sample),
            Entry::Wait(wait) => self.put_wait(wait),
            Entry::Counter { time_ns, process, thread, name, value } => {
                self.bytes.push(tag::COUNTER);
                self.since_last(*time_ns);
                self.number(process.0.into());
                self.optional(thread.map(|thread| thread.0.into()));
                self.text(name);
                self.signed(*value);
            }
            Entry::SystemCalls(calls) => self.put_system_calls(calls),
            Entry::DataAccess(access) => self.put_data_access(access),
            Entry::StepStart { time_ns, thread, sim_time_ns } => {
                self.bytes.push(if sim_time_ns.is_some() { tag::TIMED_STEP_BEGIN } else { tag::STEP_BEGIN });
                self.since_last(*time_ns);
                self.number(thread.0.into());
                sim_time_ns.iter().for_each(|&ns| self.number(ns));
            }
            Entry::MarkName { name } => {
                self.bytes.push(tag::MARK_NAME);
                self.text(name);
            }
            Entry::MarkThread { pid, tid, time_ns } => {
                self.bytes.push(tag::MARK_THREAD);
                self.number(u64::from(*pid));
                self.number(u64::from(*tid));
                self.number(*time_ns);
            }
            Entry::Scope { thread, name, start_ns, end_ns } => {
                self.mark(tag::SCOPE, *thread, *end_ns);
                self.number(name.0.into());
                self.number(end_ns.wrapping_sub(*start_ns));
            }
            Entry::StepMark { thread, time_ns, sim_time_ns } => {
                self.mark(tag::STEP_MARK, *thread, *time_ns);
                self.optional(sim_time_ns.map(|ns| (ns << 1 ^ ns >> 63) as u64));
            }
            Entry::FrameMark { thread, name, time_ns } => {
                self.mark(tag::FRAME_MARK, *thread, *time_ns);
                self.number(name.0.into());
            }
            Entry::MarkedCounter { thread, name, time_ns, value } => {
                self.mark(tag::MARKED_COUNTER, *thread, *time_ns);
                self.number(name.0.into());
                self.signed(*value);
            }
            Entry::FlowMark { thread, name, time_ns, flow, stage, by, period_ns } => {
                let flags = FLOW_STAGES.iter().find(|(_, known)| known == stage).map(|(flags, _)| *flags);
                match (flags, *flow, by, period_ns) {
                    (Some(flags), Some(flow), None, None) => {
                        self.mark(tag::MARKED_COUNTER | flags, *thread, *time_ns);
                        self.number(name.0.into());
                        self.signed(flow as i64);
                    }
                    _ => {
                        self.bytes.push(tag::FLOW_STAGE);
                        self.number(thread.0.into());
                        self.number(*time_ns);
                        self.number(name.0.into());
                        self.text(stage.name());
                        self.optional(*flow);
                        self.optional(by.map(|by| by.0.into()));
                        self.optional(*period_ns);
                    }
                }
            }
            Entry::Allocations(allocations) => self.put_allocations(allocations),
            Entry::AllocationBurst(burst) => self.put_allocation_burst(burst),
            Entry::MarksLost { count } => {
                self.bytes.push(tag::MARKS_LOST);
                self.number(*count);
            }
            Entry::ClockPeer(peer) => {
                self.bytes.push(tag::CLOCK_PEER);
                self.json(peer);
            }
            Entry::Losses(losses) => {
                self.bytes.push(tag::LOSSES);
                self.json(losses);
            }
            Entry::RecordingEnd(end) => {
                self.bytes.push(tag::END);
                self.json(end);
            }
        }
    }

    /// What every mark begins with. Marks come ring by ring, so their times differ little from one to the next.
    fn mark(&mut self, tag: u8, thread: MarkThreadRef, time_ns: u64) {
        let same = thread.0 == self.mark.thread;
        self.bytes.push(tag | if same { SAME_THREAD } else { 0 });
        if !same {
            self.number(thread.0.into());
        }
        self.signed(time_ns.wrapping_sub(self.mark.time) as i64);
        self.mark = MarkBefore { time: time_ns, thread: thread.0 };
    }

    fn put_module(&mut self, module: &Module) {
        self.bytes.push(tag::MODULE);
        let (kind, pid) = match module.kind {
            ModuleKind::File => (0, 0),
            ModuleKind::Kernel => (1, 0),
            ModuleKind::Vdso => (2, 0),
            ModuleKind::Jit(pid) => (3, pid),
            ModuleKind::StackMarks => (4, 0),
            ModuleKind::JitDump(pid) => (5, pid),
        };
        self.bytes.push(kind);
        self.number(u64::from(pid));
        self.text(&module.path);
        self.blob(module.build_id.as_deref().unwrap_or_default());
    }

    fn put_sample(&mut self, sample: &Sample) {
        let mut first = tag::SAMPLE;
        first |= if sample.weight == self.weight { SAME_WEIGHT } else { 0 };
        first |= if sample.time_ns.is_none() { UNTIMED } else { 0 };
        first |= if sample.cpu.is_none() { NO_CPU } else { 0 };
        self.bytes.push(first);
        if let Some(time) = sample.time_ns {
            self.since_last(time);
        }
        self.number(sample.thread.0.into());
        if let Some(cpu) = sample.cpu {
            self.number(u64::from(cpu));
        }
        self.stack(sample.stack);
        self.number(sample.event.0.into());
        if sample.weight != self.weight {
            self.number(sample.weight);
            self.weight = sample.weight;
        }
    }

    fn put_allocations(&mut self, allocations: &Allocations) {
        let Allocations { start_ns, end_ns, process, thread, stack, sums, live_blocks, live_bytes, peak_bytes } =
            allocations;
        self.bytes.push(tag::ALLOCATIONS);
        self.since_last(*end_ns);
        self.number(end_ns.saturating_sub(*start_ns));
        self.number(process.0.into());
        self.optional(thread.map(|thread| thread.0.into()));
        self.stack(*stack);
        [*live_blocks, *live_bytes, *peak_bytes].into_iter().for_each(|value| self.signed(value));
        let AllocationSums { calls, bytes, temporary, frees, freed_bytes, foreign_frees, foreign_freed_bytes, .. } =
            *sums;
        let counts = [calls, bytes, temporary, frees, freed_bytes, foreign_frees, foreign_freed_bytes];
        counts.into_iter().for_each(|count| self.number(count));
        // Most classes are empty.
        let classes = || sums.sizes.iter().chain(&sums.lifetimes).copied().enumerate().filter(|(_, count)| *count > 0);
        self.number(classes().fold(0, |mask, (class, _)| mask | 1 << class));
        classes().for_each(|(_, count)| self.number(count.into()));
    }

    fn put_allocation_burst(&mut self, burst: &AllocationBurst) {
        let AllocationBurst { start_ns, end_ns, process, thread, stack, calls, bytes } = *burst;
        self.bytes.push(tag::ALLOCATION_BURST);
        self.since_last(end_ns);
        self.number(end_ns.saturating_sub(start_ns));
        self.number(process.0.into());
        self.optional(thread.map(|thread| thread.0.into()));
        self.stack(stack);
        self.number(calls);
        self.number(bytes);
    }

    fn put_system_calls(&mut self, calls: &SystemCalls) {
        self.bytes.push(if calls.times.is_empty() { tag::SYSTEM_CALLS } else { tag::CALL_TIMES });
        self.since_last(calls.end_ns);
        self.number(calls.end_ns.wrapping_sub(calls.start_ns));
        self.number(calls.thread.0.into());
        self.text(&calls.call);
        self.stack(calls.stack);
        self.text(calls.file.as_deref().unwrap_or(""));
        let Amount { count, errors, total_ns, longest_ns, bytes } = calls.amount;
        [count, errors, total_ns, longest_ns, bytes].into_iter().for_each(|number| self.number(number));
        self.optional(calls.last_ns);
        if !calls.times.is_empty() {
            self.number(calls.times.len() as u64);
            calls.times.iter().flat_map(|&(bucket, count)| [bucket, count]).for_each(|number| self.number(number));
        }
    }

    fn put_data_access(&mut self, access: &DataAccess) {
        let DataAccess { thread, stack, address, bytes, is_read, is_write, is_awaited, cost, object } = *access;
        self.bytes.push(tag::DATA_ACCESS);
        self.number(thread.0.into());
        self.stack(stack);
        self.number(address);
        self.number(bytes.into());
        let flags = [is_read, is_write, cost.is_some(), object.is_some(), is_awaited];
        self.bytes.push(flags.into_iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(flag)));
        if let Some(AccessCost { hitm, latency_cycles }) = cost {
            self.bytes.push(hitm as u8);
            self.number(latency_cycles);
        }
        if let Some((module, offset)) = object {
            self.number(module.0.into());
            self.number(offset);
        }
    }

    fn put_wait(&mut self, wait: &Wait) {
        self.bytes.push(if wait.count > 1 { tag::WAITS } else { tag::WAIT });
        self.number(wait.thread.0.into());
        self.since_last(wait.end_ns);
        let length = wait.end_ns.saturating_sub(wait.start_ns);
        // A preempted wait is runnable from end to end, which needs no saying.
        let whole = wait.runnable_ns == Some(length);
        self.number(length << 2 | u64::from(whole) << 1 | u64::from(wait.state == WaitState::Preempted));
        if !whole {
            self.optional(wait.runnable_ns);
        }
        self.stack(wait.stack);
        self.optional(wait.cpu.map(u64::from));
        self.optional(wait.waker.map(|thread| thread.0.into()));
        if wait.waker.is_some() {
            self.stack(wait.waker_stack);
        }
        if wait.count > 1 {
            self.number(wait.count.into());
        }
    }
}
