//! Which thread each CPU runs, from context switches.
//!
//! A CPU runs one thread at a time. If another thread is on a CPU, the switch-out of the one before it was lost, however
//! long its own next record takes to come. One lost record then costs the time since the thread was last seen, and not the
//! time until it is seen again.
//!
//! Where the source records the switches of every thread, a CPU goes from one thread to the next without a gap: the kernel
//! charges the switch itself to the incoming thread, so its time starts when the other one left. If the record of the switch
//! names another thread than the one that left last, the time starts with the switch: the idle thread has no records, and
//! the kernel may hide others. And an exiting thread runs until its CPU switches to another one: the kernel frees its memory
//! after the record of its exit. It may be preempted or blocked in between. Switches of the tracepoint, and those that BPF programs
//! write, say whether the thread is dead; in other records, each one that is no preemption counts as the last.
//!
//! Whether the tracepoint has the switches of every thread is not known until an idle thread is switched out, which does not
//! happen on a busy machine. Until then, an exiting thread is kept, and ends with its last switch if that comes, else with the
//! record of its exit.

use rustc_hash::FxHashMap;

use super::{Assembler, sorted_keys};
use crate::entry::Sink;
use crate::event_role::{Follow, Switches};
use crate::kernel_record::ThreadIds;
use crate::target::Target;
use crate::thread_timeline::UNSAMPLED_NS;

/// The CPUs that any record named.
#[derive(Debug, Default)]
pub(super) struct Cpus {
    by_number: FxHashMap<u32, Cpu>,
    /// Whether the source records the switches of every thread.
    pub are_whole: bool,
    /// Whether switches come from the tracepoint.
    pub are_traced: bool,
}

/// The exit of a thread whose last switch did not come yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    time_ns: u64,
    /// Whether the source records its last switch.
    has_last_switch: bool,
}

/// How a thread leaves a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    Preempted,
    Blocked,
    Dead,
    /// The source does not say whether it is dead.
    BlockedOrDead,
}

impl Leaving {
    /// Of a record that says only whether the thread was preempted.
    pub fn of_flag(preempted: bool) -> Self {
        if preempted { Self::Preempted } else { Self::BlockedOrDead }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Cpu {
    /// The followed thread that runs.
    tid: Option<u32>,
    /// The last thread that left, if no other came since.
    left: Option<u32>,
    /// The last switch there that is known.
    switched_ns: u64,
    /// Whether records were lost since.
    is_uncertain: bool,
}

impl Cpus {
    /// A followed thread runs on a CPU. Returns the one that did so before.
    fn enter(&mut self, cpu: u32, tid: u32, time_ns: u64) -> Option<u32> {
        let before = self.by_number.insert(cpu, Cpu { tid: Some(tid), switched_ns: time_ns, ..Cpu::default() });
        before.and_then(|before| before.tid).filter(|&before| before != tid)
    }

    /// A thread left a CPU, or one that is not followed came (`left` is then `None`). Returns the followed thread that ran
    /// there.
    fn leave(&mut self, cpu: u32, left: Option<u32>, time_ns: u64) -> Option<u32> {
        self.by_number.insert(cpu, Cpu { left, switched_ns: time_ns, ..Cpu::default() }).and_then(|before| before.tid)
    }

    /// A CPU switches from this thread to another. If it is not the one that left last, its records are missing.
    pub fn note_last(&mut self, cpu: u32, tid: Option<u32>) {
        const IDLE: u32 = 0;
        if let Some(cpu) = self.by_number.get_mut(&cpu) {
            cpu.left = cpu.left.filter(|&left| tid == Some(left) && left != IDLE);
        }
    }

    fn free_since(&self, cpu: u32) -> Option<u64> {
        self.by_number.get(&cpu).filter(|known| self.are_whole && known.left.is_some()).map(|known| known.switched_ns)
    }

    /// When a thread that leaves a CPU was elsewhere for sure: at the last switch there, if that was not its own.
    fn elsewhere_until(&self, cpu: u32, tid: u32) -> Option<u64> {
        self.by_number.get(&cpu).filter(|known| known.tid != Some(tid)).map(|known| known.switched_ns)
    }

    /// Since when a CPU runs a thread that has no record of its switch-in.
    fn unseen_since(&self, cpu: u32) -> Option<u64> {
        let is_known = |known: &&Cpu| self.are_whole && known.tid.is_none() && !known.is_uncertain;
        self.by_number.get(&cpu).filter(is_known).map(|known| known.switched_ns)
    }

    /// Records of a CPU were lost.
    pub fn note_lost(&mut self, cpu: u32) {
        self.by_number.entry(cpu).or_default().is_uncertain = true;
    }

    fn runs(&self, cpu: u32, tid: u32) -> bool {
        self.by_number.get(&cpu).is_some_and(|known| known.tid == Some(tid))
    }
}

impl<W: Target> Assembler<W> {
    /// A thread was switched in.
    pub(super) fn enter_cpu(&mut self, ids: ThreadIds, cpu: Option<u32>, time: u64, sink: &mut impl Sink) {
        let free_since = cpu.and_then(|cpu| self.cpus.free_since(cpu));
        let since = free_since.map_or(time, |since| since.min(time));
        self.is_on_cpu(ids.tid, cpu, time, sink);
        self.switch(ids, Some(since), sink, |timeline, since| timeline.switch_in(since, cpu));
    }

    /// A thread was switched out.
    pub(super) fn leave_cpu(
        &mut self,
        ids: ThreadIds,
        cpu: Option<u32>,
        time: u64,
        leaving: Leaving,
        sink: &mut impl Sink,
    ) {
        let elsewhere_until = cpu.and_then(|cpu| self.cpus.elsewhere_until(cpu, ids.tid));
        self.runs_on_cpu(ids, cpu, time, sink);
        self.switch(ids, Some(time), sink, |timeline, time| {
            elsewhere_until.into_iter().for_each(|until| timeline.was_elsewhere_until(until));
            timeline.switch_out(time, leaving == Leaving::Preempted)
        });
        cpu.and_then(|cpu| self.cpus.leave(cpu, Some(ids.tid), time));
        let is_last = matches!(leaving, Leaving::Dead | Leaving::BlockedOrDead);
        if is_last && self.threads.get(&ids.tid).is_some_and(|thread| thread.exit.is_some()) {
            self.end_exiting(ids.tid, time, sink);
        }
    }

    /// A record shows that a thread runs on a CPU. If it was off, the record of its switch-in is missing.
    pub(super) fn runs_on_cpu(&mut self, ids: ThreadIds, cpu: Option<u32>, time: u64, sink: &mut impl Sink) {
        self.appears_on_cpu(ids, cpu, time, 0, sink);
    }

    /// A sample shows that a thread runs on a CPU. If it had done so for longer, there would be an earlier one.
    pub(super) fn is_sampled_on_cpu(&mut self, ids: ThreadIds, cpu: Option<u32>, time: u64, sink: &mut impl Sink) {
        self.appears_on_cpu(ids, cpu, time, time.saturating_sub(UNSAMPLED_NS), sink);
    }

    fn appears_on_cpu(&mut self, ids: ThreadIds, cpu: Option<u32>, time: u64, least_ns: u64, sink: &mut impl Sink) {
        let switched_ns = cpu.and_then(|cpu| self.cpus.unseen_since(cpu));
        self.is_on_cpu(ids.tid, cpu, time, sink);
        if let Some(switched_ns) = switched_ns {
            self.switch(ids, Some(time), sink, |timeline, time| timeline.appear(time, switched_ns.max(least_ns), cpu));
        }
    }

    /// A record shows that a thread runs on a CPU: neither does another one there, nor does it elsewhere.
    pub(super) fn is_on_cpu(&mut self, tid: u32, cpu: Option<u32>, time: u64, sink: &mut impl Sink) {
        let Some(cpu) = cpu.filter(|&cpu| self.switches != Switches::Unrecorded && !self.cpus.runs(cpu, tid)) else {
            return;
        };
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if let Some(elsewhere) = thread.cpu.replace(cpu).filter(|&before| self.cpus.runs(before, tid)) {
            self.cpus.leave(elsewhere, None, time);
            thread.timeline.lose_switch_out(time);
        }
        if let Some(before) = self.cpus.enter(cpu, tid, time) {
            self.was_displaced(before, time, sink);
        }
    }

    /// A thread that is not followed left a CPU (`left` is its id), or came to it.
    pub fn note_other_switch(&mut self, cpu: u32, time: u64, left: Option<u32>, sink: &mut impl Sink) {
        if let Some(before) = self.cpus.leave(cpu, left, time) {
            self.was_displaced(before, time, sink);
        }
    }

    fn was_displaced(&mut self, tid: u32, time: u64, sink: &mut impl Sink) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        // A thread whose waits are added up may run elsewhere: nothing says where it was switched in.
        match thread.exit.is_some() && !thread.timeline.is_summed() {
            true => self.end_unseen(tid, time, sink),
            false => thread.timeline.lose_switch_out(time),
        }
    }

    /// A thread exits. It still runs until its CPU switches to another, where that is recorded.
    pub(super) fn exit(&mut self, tid: u32, time: Option<u64>, cpu: Option<u32>, sink: &mut impl Sink) {
        if let Some((thread, time)) = self.threads.get(&tid).zip(time).filter(|_| self.cpus.are_whole) {
            let ids = ThreadIds { pid: thread.pid, tid };
            self.runs_on_cpu(ids, cpu, time, sink);
            self.switch(ids, Some(time), sink, |timeline, time| timeline.exit_on_cpu(time, cpu));
        }
        let runs = self.cpus.are_whole && cpu.is_some_and(|cpu| self.cpus.runs(cpu, tid));
        // Only an import can wait: a live recording ends when all threads have.
        let may_switch = self.cpus.are_traced && self.follow == Follow::Everything;
        if let (Some(thread), Some(time_ns)) = (self.threads.get_mut(&tid), time) {
            // Its last sums come with its last switch.
            let has_last_switch = runs || thread.timeline.is_summed();
            if has_last_switch || may_switch {
                thread.exit = Some(Exit { time_ns, has_last_switch });
                return;
            }
        }
        self.ended.insert(tid);
        self.end_thread(tid, time, sink);
    }

    /// Ends an exiting thread with its last switch.
    pub(super) fn end_exiting(&mut self, tid: u32, time: u64, sink: &mut impl Sink) {
        self.ended.insert(tid);
        self.end_thread(tid, Some(time), sink);
    }

    /// Ends an exiting thread whose last switch did not come until this time.
    pub(super) fn end_unseen(&mut self, tid: u32, time: u64, sink: &mut impl Sink) {
        let exit = self.threads.get(&tid).and_then(|thread| thread.exit);
        let end_ns = exit.filter(|exit| !exit.has_last_switch).map_or(time, |exit| exit.time_ns);
        self.end_exiting(tid, end_ns, sink);
    }

    /// Ends the exiting threads whose last switch the source may not have.
    pub(super) fn end_unseen_exits(&mut self, sink: &mut impl Sink) {
        for tid in sorted_keys(&self.threads) {
            let exit = self.threads[&tid].exit.filter(|exit| !exit.has_last_switch);
            exit.into_iter().for_each(|exit| self.end_exiting(tid, exit.time_ns, sink));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_runs_one_followed_thread_at_a_time() {
        let mut cpus = Cpus { are_whole: true, ..Cpus::default() };
        assert_eq!(cpus.enter(0, 7, 10), None);
        assert_eq!(cpus.enter(0, 7, 20), None, "it is there already");
        assert_eq!(cpus.enter(0, 8, 30), Some(7), "the switch-out of 7 was lost");
        assert_eq!(cpus.elsewhere_until(0, 8), None, "it is there");
        assert_eq!(cpus.leave(0, Some(8), 90), Some(8));
        assert_eq!(cpus.free_since(0), Some(90));
        assert_eq!(cpus.leave(0, None, 95), None, "a thread that is not followed came");
        assert_eq!(cpus.free_since(0), None);
        assert_eq!(cpus.elsewhere_until(0, 8), Some(95), "whatever comes next, it was not 8 before");
    }

    #[test]
    fn a_cpu_is_free_since_a_thread_left_only_if_that_thread_was_the_last_one() {
        let mut cpus = Cpus { are_whole: true, ..Cpus::default() };
        for (left, last, free) in [(8, Some(8), true), (8, Some(9), false), (8, Some(0), false), (0, Some(0), false)] {
            cpus.leave(0, Some(left), 90);
            cpus.note_last(0, last);
            assert_eq!(cpus.free_since(0).is_some(), free, "{left} left, {last:?} was the last");
        }
    }
}
