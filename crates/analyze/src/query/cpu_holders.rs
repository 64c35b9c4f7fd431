//! [`CpuHolders`]: which thread held which CPU, and when.
//!
//! A thread that gets a CPU at the end of a wait holds it until its next wait starts: a running thread does not change its
//! CPU. So the waits of all threads show which thread held a CPU while another waited for it. A CPU has no holder here while
//! it is idle, or runs a thread that was not recorded (for example, of another program). A thread holds no CPU before its
//! first wait either, since only waits name a thread's CPU.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, ThreadId, Wait};

use crate::query::off_cpu::OffCpu;

/// The threads that held each CPU, in order.
///
/// There is one for each wait, so only the place of the wait before is kept: four bytes. The rest is found from there.
#[derive(Debug, Clone)]
pub struct CpuHolders<'a> {
    off_cpu: OffCpu<'a>,
    by_cpu: Arc<ByCpu>,
}

/// Places of the waits after which a thread held each CPU, in order.
pub(crate) type ByCpu = FxHashMap<u32, Vec<u32>>;

impl<'a> CpuHolders<'a> {
    /// Of all of a capture's threads.
    pub fn of(capture: &Capture, off_cpu: &OffCpu<'a>) -> Self {
        // Counted first: lists that grow take twice the memory at times.
        let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
        capture.waits.iter().filter_map(|wait| wait.cpu).for_each(|cpu| *counts.entry(cpu).or_default() += 1);
        let mut by_cpu: ByCpu = counts.into_iter().map(|(cpu, count)| (cpu, Vec::with_capacity(count))).collect();
        let holders = Self::known(off_cpu, Arc::default());
        for place in off_cpu.merged_by(|wait| wait.end_ns) {
            let (held, wait) = holders.held_after(place);
            if let Some(of_cpu) = wait.cpu.filter(|_| !held.is_empty()).and_then(|cpu| by_cpu.get_mut(&cpu)) {
                of_cpu.push(place as u32);
            }
        }
        Self::known(off_cpu, Arc::new(by_cpu))
    }

    /// Those that [`by_cpu`](Self::by_cpu) gave before.
    pub(crate) fn known(off_cpu: &OffCpu<'a>, by_cpu: Arc<ByCpu>) -> Self {
        Self { off_cpu: off_cpu.clone(), by_cpu }
    }

    pub(crate) fn by_cpu(&self) -> Arc<ByCpu> {
        self.by_cpu.clone()
    }

    /// When the thread of a wait held the CPU that it got at its end, and that wait.
    fn held_after(&self, place: usize) -> (Range<u64>, Wait) {
        let wait = self.off_cpu.at(place);
        let next = Some(place + 1).filter(|next| self.off_cpu.places(wait.thread).contains(next));
        let end = || self.off_cpu.last_moment(wait.thread);
        let until = next.map_or_else(end, |next| self.off_cpu.at(next).start_ns);
        (wait.end_ns..until, wait)
    }

    /// The threads that held a CPU in a range of time, and when, from the last to the first.
    pub fn within(&self, cpu: u32, range: &Range<u64>) -> impl Iterator<Item = (ThreadId, Range<u64>)> + '_ {
        let held = self.by_cpu.get(&cpu).map_or(&[][..], Vec::as_slice);
        let before = held.partition_point(|&place| self.off_cpu.at(place as usize).end_ns < range.end);
        // In damaged captures two threads may hold one CPU at a time: the later one counts.
        let (from, mut until) = (range.start, range.end);
        let held = held[..before].iter().rev().map(|&place| self.held_after(place as usize));
        held.take_while(move |(when, _)| when.end > from).filter_map(move |(when, wait)| {
            let part = when.start.max(from)..when.end.min(until);
            until = until.min(when.start);
            (part.start < part.end).then_some((wait.thread, part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::Drawing;

    /// The threads that held CPU 1, by name.
    fn holders(drawing: &Drawing, range: Range<u64>) -> Vec<String> {
        let capture = &drawing.capture;
        let name = |thread: ThreadId| &capture.threads[thread.index()].name;
        let off_cpu = OffCpu::of(capture);
        CpuHolders::of(capture, &off_cpu)
            .within(1, &range)
            .map(|(thread, when)| format!("{} {}..{}", name(thread), when.start, when.end))
            .collect()
    }

    fn two() -> Drawing {
        Drawing::new().window(0..1_000).process(1, "sim").lived("a", 0..1_000, None).lived("b", 0..600, None)
    }

    #[test]
    fn a_thread_holds_its_cpu_until_its_next_wait() {
        let drawing =
            two().blocked("a", 0..20, "").on(1).preempted("a", 40..70, "").on(1).blocked("a", 90..400, "").on(2);
        let drawing = drawing.preempted("b", 0..41, "").on(1).blocked("b", 69..500, "").on(1);
        assert_eq!(holders(&drawing, 0..100), ["a 70..90", "b 41..69", "a 20..40"]);
        assert_eq!(holders(&drawing, 50..80), ["a 70..80", "b 50..69"]);
        assert_eq!(holders(&drawing, 300..1_000), ["b 500..600"], "until it ends; a is elsewhere");
        assert_eq!(holders(&drawing, 69..70), [""; 0]);
    }

    #[test]
    fn a_thread_without_a_known_cpu_holds_none() {
        let drawing = two().blocked("a", 10..20, "").blocked("a", 90..100, "").on(1).blocked("a", 200..300, "");
        assert_eq!(holders(&drawing, 0..1_000), ["a 100..200"]);
    }

    #[test]
    fn of_two_threads_at_once_the_later_one_has_it() {
        let drawing = two().blocked("a", 0..10, "").on(1).blocked("a", 100..101, "").blocked("b", 0..50, "").on(1);
        let drawing = drawing.blocked("b", 80..90, "");
        assert_eq!(holders(&drawing, 0..100), ["b 50..80", "a 10..50"]);
    }
}
