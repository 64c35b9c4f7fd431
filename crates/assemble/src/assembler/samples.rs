//! Samples: what each means to the assembler, and the stack that it carries.

use std::ops::Range;
use std::sync::Arc;

use linux_perf_event_reader::RawEventRecord;

use super::cpus::Leaving;
use super::interner::Interner;
use super::{Assembler, LastStep, callchain};
use crate::address_space::{Ending, FrameSource, Mapping, UserStack};
use crate::entry::{Entry, FrameRef, ModuleRef, Sample, Sink, StackMark, StackRef, ThreadRef};
use crate::event_role::EventRole;
use crate::kernel_record::{RawSample, Record, ThreadIds};
use crate::registers::{Registers, SavedRegisters};
use crate::target::Target;
use crate::thread_timeline::WakeUp;
use crate::unwind_tables::TableEntry;

/// A sample with the common data of its record.
pub(super) struct SampleRecord<'a> {
    pub record: &'a Record<'a>,
    pub sample: &'a RawSample<'a>,
    /// Which registers were recorded (`sample_regs_user`).
    pub register_mask: u64,
}

impl<'a> SampleRecord<'a> {
    pub fn new(record: &'a Record<'a>, sample: &'a RawSample<'a>, raw: &RawEventRecord<'_>) -> Self {
        Self { record, sample, register_mask: raw.parse_info.sample_regs_user }
    }
}

impl<W: Target> Assembler<W> {
    pub(super) fn add_sample(&mut self, role: EventRole, at: &SampleRecord<'_>, sink: &mut impl Sink) {
        let SampleRecord { record, sample, .. } = *at;
        if role == EventRole::Written {
            return self.add_written(at, sink);
        }
        self.cpus.are_traced |= matches!(role, EventRole::Switch { .. });
        let Some(ids) = record.thread() else { return self.add_idle_sample(role, at, sink) };
        let thread = self.thread(ids, record.time, sink);
        if let (Some(_), Some(time)) = (thread, record.time) {
            self.is_sampled_on_cpu(ids, record.cpu, time, sink);
            self.switch(ids, record.time, sink, |timeline, time| timeline.on_cpu(time, record.cpu));
        }
        match (role, thread) {
            (EventRole::Sampled { event, weight }, Some(thread)) => {
                let stack = self.stack(ids, at, sink);
                self.losses.samples += 1;
                self.add_data_accesses(ids, thread, stack, at, sink);
                let weight = sample.period.unwrap_or(weight);
                sink.take(Entry::Sample(Sample {
                    time_ns: record.time,
                    thread,
                    cpu: record.cpu,
                    stack,
                    event,
                    weight,
                }));
            }
            (EventRole::Step { time }, Some(thread)) => {
                if let (Some(time_ns), Some(process)) = (record.time, self.processes.get_mut(&ids.pid)) {
                    let sim_time_ns = time.read(process.steps_started, sample.raw.as_deref());
                    process.steps_started += 1;
                    process.last_step = Some(LastStep { time_ns, tid: ids.tid, sim_time_ns });
                    sink.take(Entry::StepStart { time_ns, thread, sim_time_ns });
                }
            }
            (EventRole::SwitchStack, Some(_)) => {
                let stack = self.stack(ids, at, sink);
                self.losses.samples += 1;
                if let Some(thread) = self.threads.get_mut(&ids.tid) {
                    thread.timeline.will_switch_at(stack);
                }
            }
            (EventRole::Switch { state_at, next_tid_at, .. }, Some(_)) => {
                let stack = self.stack(ids, at, sink);
                self.losses.samples += 1;
                if let (Some(thread), Some(time)) = (self.threads.get_mut(&ids.tid), record.time) {
                    thread.timeline.will_switch_at(stack);
                    self.leave_cpu(ids, record.cpu, time, leaving(state_at, sample), sink);
                }
                self.switch_in_next(next_tid_at, at, sink);
            }
            (EventRole::Switch { next_tid_at, .. }, None) => self.switch_in_next(next_tid_at, at, sink),
            (EventRole::Waking { pid_at }, thread) => {
                self.waking_tracepoint = sample.ip;
                if tid_in(pid_at, sample).is_none_or(|tid| !self.threads.contains_key(&tid)) {
                    return;
                }
                let waker = thread.filter(|_| !is_from_interrupt(sample));
                let has_stack = sample.regs.is_some() || !sample.callchain.is_empty();
                let stack = waker.filter(|_| has_stack).and_then(|_| self.stack(ids, at, sink));
                self.wake_up(pid_at, waker, stack, at);
            }
            (EventRole::SystemCall, Some(thread)) => self.add_system_call(ids, thread, at, sink),
            (EventRole::WakerStack { pid_at }, Some(waker)) => self.add_waker_stack(pid_at, ids, waker, at, sink),
            _ => {}
        }
    }

    /// A sample without a thread: of an interrupt in the idle task, or of a thread that the kernel is removing.
    fn add_idle_sample(&mut self, role: EventRole, at: &SampleRecord<'_>, sink: &mut impl Sink) {
        match role {
            EventRole::Waking { pid_at } => {
                self.waking_tracepoint = at.sample.ip;
                self.wake_up(pid_at, None, None, at);
            }
            EventRole::Switch { tid_at, state_at, next_tid_at } => {
                // Only a source that records every thread has switches of idle CPUs and removed threads.
                self.cpus.are_whole = true;
                if let (Some(tid), Some(time)) = (tid_in(tid_at, at.sample), at.record.time)
                    && let Some(thread) = self.threads.get(&tid).filter(|thread| thread.exit.is_some())
                {
                    let ids = ThreadIds { pid: thread.pid, tid };
                    match leaving(state_at, at.sample) {
                        // It comes back to be removed.
                        Leaving::Preempted => self.leave_cpu(ids, at.record.cpu, time, Leaving::Preempted, sink),
                        _ => self.end_exiting(tid, time, sink),
                    }
                }
                self.switch_in_next(next_tid_at, at, sink);
            }
            _ => {}
        }
    }

    fn wake_up(&mut self, pid_at: usize, waker: Option<ThreadRef>, stack: Option<StackRef>, at: &SampleRecord<'_>) {
        let Some(time_ns) = at.record.time else { return };
        if let Some(woken) = tid_in(pid_at, at.sample).and_then(|tid| self.threads.get_mut(&tid)) {
            woken.timeline.wake_up(WakeUp { time_ns, waker, stack });
        }
    }

    /// Completes a wake-up that was recorded without the waker's stack.
    fn add_waker_stack(
        &mut self,
        pid_at: usize,
        ids: ThreadIds,
        waker: ThreadRef,
        at: &SampleRecord<'_>,
        sink: &mut impl Sink,
    ) {
        // An interrupt has no waker: neither the current thread nor its stack has anything to do with the wake-up.
        let Some(woken) = tid_in(pid_at, at.sample)
            .filter(|woken| self.threads.get(woken).is_some_and(|thread| thread.timeline.lacks_stack_of(waker)))
        else {
            return;
        };
        let mut sample = at.sample.clone();
        self.waking_tracepoint.into_iter().for_each(|address| sample.drop_leaf_up_to(address));
        let stack = self.stack(ids, &SampleRecord { sample: &sample, ..*at }, sink);
        if let Some(woken) = self.threads.get_mut(&woken) {
            woken.timeline.set_waker_stack(stack);
        }
    }

    /// Switches in the thread that gets the CPU, if it is a known one.
    fn switch_in_next(&mut self, tid_at: usize, at: &SampleRecord<'_>, sink: &mut impl Sink) {
        let (Some(tid), Some(time)) = (tid_in(tid_at, at.sample), at.record.time) else { return };
        match self.threads.get(&tid).map(|thread| thread.pid) {
            Some(pid) => self.enter_cpu(ThreadIds { pid, tid }, at.record.cpu, time, sink),
            None => at.record.cpu.into_iter().for_each(|cpu| self.note_other_switch(cpu, time, None, sink)),
        }
    }

    /// The stack of a sample, including its kernel part.
    pub(super) fn stack(&mut self, ids: ThreadIds, at: &SampleRecord<'_>, sink: &mut impl Sink) -> Option<StackRef> {
        let sample = at.sample;
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        let chains = callchain::split(sample);
        for (index, &address) in chains.kernel.iter().enumerate() {
            let address = if index == 0 { address } else { address.wrapping_sub(1) };
            frames.push(self.interner.kernel_frame(address, sink));
        }
        let known = self.processes.get(&ids.pid).and_then(|process| {
            let copied = sample.regs.as_deref().and_then(|values| Registers::of_record(values, at.register_mask));
            let mut registers = copied.or_else(|| Registers::of_callchain(&chains.user))?;
            if let Some(probe) = self.step_probe.as_ref().filter(|_| process.space.is_out_of_line(registers.ip)) {
                let holds_probe = |module: ModuleRef| self.interner.path(module) == probe.path;
                registers.ip = process.space.back_in_line(registers.ip, probe.offset, holds_probe);
            }
            Some(UserStack { ids, registers, copied: &sample.stack, frame_pointer_chain: &chains.user })
        });
        self.losses.stacks_of_32_bit_code += u64::from(sample.is_32_bit);
        if let Some(stack) = known {
            self.walk(&stack, &mut frames, sink);
        }
        let stack = self.interner.stack(&frames, sink);
        self.scratch = frames;
        stack
    }

    /// Adds the frames of a user stack, and counts what is missing of it.
    pub(super) fn walk(&mut self, stack: &UserStack<'_>, frames: &mut Vec<FrameRef>, sink: &mut impl Sink) {
        let Some(process) = self.processes.get_mut(&stack.ids.pid) else { return };
        let mut source = InternedFrames { interner: &mut self.interner, target: &mut self.target, sink };
        let found = process.space.walk(stack, &mut self.rule_caches, &mut source, frames);
        self.losses.guessed_stacks += u64::from(found.guessed);
        self.losses.shortened_stacks += u64::from(found.shortened);
        match found.ending {
            Ending::Truncated => self.losses.truncated_stacks += 1,
            // Without a copy there is nothing to continue.
            Ending::Continued if stack.has_stack_pointer() => self.losses.continued_stacks += 1,
            Ending::Root | Ending::Continued => {}
        }
    }
}

/// Interns the frames of a walk, and gets unwind tables from the target.
pub(super) struct InternedFrames<'a, W, S> {
    pub interner: &'a mut Interner,
    pub target: &'a mut W,
    pub sink: &'a mut S,
}

impl<W: Target, S: Sink> FrameSource for InternedFrames<'_, W, S> {
    type Target = W;

    fn frame(&mut self, mapping: &Mapping, address: u64) -> FrameRef {
        let offset = mapping.offset.wrapping_add(address.wrapping_sub(mapping.range.start));
        self.interner.frame(Some(mapping.module), offset, self.sink)
    }

    fn mark(&mut self, mark: StackMark) -> FrameRef {
        self.interner.mark_frame(mark, self.sink)
    }

    fn entry(&mut self, mapping: &Mapping, address: u64, pid: u32) -> Option<TableEntry> {
        let tables = self.interner.tables(mapping.module, pid, self.target)?;
        tables.entry(&mapping.range, mapping.offset, address)
    }

    fn framehop_module(&mut self, mapping: &Mapping, pid: u32) -> Option<framehop::Module<Arc<[u8]>>> {
        let tables = self.interner.tables(mapping.module, pid, self.target)?;
        tables.module(mapping.range.clone(), mapping.offset)
    }

    fn saved_registers(&mut self, mapping: &Mapping, address: u64, pid: u32) -> Option<SavedRegisters> {
        let tables = self.interner.tables(mapping.module, pid, self.target)?;
        tables.saved_registers(&mapping.range, mapping.offset, address)
    }

    fn function(&mut self, mapping: &Mapping, address: u64, pid: u32) -> Option<Range<u64>> {
        let tables = self.interner.tables(mapping.module, pid, self.target)?;
        tables.function(mapping.range.clone(), mapping.offset, address)
    }

    fn target(&mut self) -> &mut W {
        self.target
    }
}

/// Whether a wake-up came from an interrupt: the current thread has nothing to do with it then. The flags are those of
/// `common_flags` (`TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`).
fn is_from_interrupt(sample: &RawSample<'_>) -> bool {
    sample.raw.as_deref().and_then(|raw| raw.get(2)).is_none_or(|flags| flags & 0x18 != 0)
}

/// How a thread is switched out. It is still runnable if its state is `TASK_RUNNING`, or `TASK_REPORT_MAX`, which stands for
/// the same state of a preempted thread.
fn leaving(state_at: usize, sample: &RawSample<'_>) -> Leaving {
    const PREEMPTED: u64 = 0x100;
    // `EXIT_DEAD` and `EXIT_ZOMBIE`; before Linux 4.14 `TASK_DEAD`, too.
    const DEAD: u64 = 0x70;
    let bytes = sample.raw.as_deref().and_then(|raw| raw.get(state_at..)?.first_chunk());
    match bytes.map(|&bytes| u64::from_ne_bytes(bytes)) {
        Some(0 | PREEMPTED) => Leaving::Preempted,
        Some(state) if state & DEAD == 0 => Leaving::Blocked,
        Some(_) => Leaving::Dead,
        None => Leaving::BlockedOrDead,
    }
}

fn tid_in(tid_at: usize, sample: &RawSample<'_>) -> Option<u32> {
    let bytes = sample.raw.as_deref()?.get(tid_at..tid_at.checked_add(4)?)?;
    u32::try_from(i32::from_ne_bytes(bytes.try_into().ok()?)).ok()
}
