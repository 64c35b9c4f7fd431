//! [`CpuHolders`]: which thread held which CPU, and when.
//!
//! A thread that gets a CPU at the end of a wait holds it until its next wait starts: a running thread does not change its
//! CPU. So the waits of all threads show which thread held a CPU while another waited for it. A CPU has no holder here while
//! it is idle, or runs a thread that was not recorded (for example, of another program). A thread holds no CPU before its
//! first wait either, since only waits name a thread's CPU.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, ThreadId};

use crate::query::off_cpu::OffCpu;

/// The threads that held each CPU, in order.
#[derive(Debug, Clone, Default)]
pub struct CpuHolders {
    by_cpu: FxHashMap<u32, Vec<(Range<u64>, ThreadId)>>,
}

impl CpuHolders {
    /// Of all of a capture's threads.
    pub fn of(capture: &Capture, off_cpu: &OffCpu<'_>) -> Self {
        let mut by_cpu: FxHashMap<u32, Vec<(Range<u64>, ThreadId)>> = FxHashMap::default();
        for (index, row) in capture.threads.iter().enumerate() {
            let thread = ThreadId::from_index(index);
            let end = row.end_ns.or(capture.info.end_ns).unwrap_or(u64::MAX);
            let mut waits = off_cpu.waits(thread).peekable();
            while let Some(wait) = waits.next() {
                let left = waits.peek().map_or(end, |next| next.start_ns);
                if let Some(cpu) = wait.cpu.filter(|_| wait.end_ns < left) {
                    by_cpu.entry(cpu).or_default().push((wait.end_ns..left, thread));
                }
            }
        }
        for held in by_cpu.values_mut() {
            held.sort_unstable_by_key(|(range, thread)| (range.start, *thread));
        }
        Self { by_cpu }
    }

    /// The threads that held a CPU in a range of time, and when, from the last to the first.
    pub fn within(&self, cpu: u32, range: &Range<u64>) -> impl Iterator<Item = (ThreadId, Range<u64>)> + '_ {
        let held = self.by_cpu.get(&cpu).map_or(&[][..], Vec::as_slice);
        let before = held.partition_point(|(when, _)| when.start < range.end);
        // In damaged captures two threads may hold one CPU at a time: the later one counts.
        let (from, mut until) = (range.start, range.end);
        held[..before].iter().rev().take_while(move |(when, _)| when.end > from).filter_map(move |(when, thread)| {
            let part = when.start.max(from)..when.end.min(until);
            until = until.min(when.start);
            (part.start < part.end).then_some((*thread, part))
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
        let holders = CpuHolders::of(capture, &OffCpu::of(capture));
        holders
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
