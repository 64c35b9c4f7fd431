//! [`OffCpu`]: running, runnable and blocked time of each thread in any range of time.
//!
//! It has the waits of each thread in order, with running sums. So a query for a range (a step, a scope) takes two searches,
//! however many waits are in it.

use std::ops::Range;

use stepscope_model::{Capture, ThreadId, Wait};

use crate::query::waits::{blocked_ns, cut, runnable_ns};

/// What a thread did in a range of time, in ns. The three add up to the part of the range in which it lived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// On a CPU.
    pub running: u64,
    /// Ready to run, and waiting for a CPU.
    pub runnable: u64,
    /// Waiting for something else.
    pub blocked: u64,
}

/// All threads' time off the CPU, in order.
#[derive(Debug, Clone)]
pub struct OffCpu<'a> {
    capture: &'a Capture,
    /// Rows of `waits`, by thread and start.
    order: Vec<u32>,
    /// Where each thread's begin in `order`; one more at the end.
    first: Vec<u32>,
    /// Blocked and runnable time of all waits in `order` before each one; one more at the end.
    before: Vec<(u64, u64)>,
}

impl<'a> OffCpu<'a> {
    /// Of all of a capture's threads.
    pub fn of(capture: &'a Capture) -> Self {
        let waits = &capture.waits;
        let mut order: Vec<u32> = (0..waits.len() as u32).collect();
        let key = |row: &u32| {
            let wait = &waits[*row as usize];
            (wait.thread, wait.start_ns, wait.end_ns)
        };
        if !order.is_sorted_by_key(key) {
            order.sort_by_key(key);
        }
        let begin = |thread: usize| order.partition_point(|row| waits[*row as usize].thread.index() < thread) as u32;
        let first = (0..=capture.threads.len()).map(begin).collect();
        let mut before = Vec::with_capacity(order.len() + 1);
        let mut sum = (0_u64, 0_u64);
        before.push(sum);
        for row in &order {
            let wait = &waits[*row as usize];
            sum = (sum.0.saturating_add(blocked_ns(wait)), sum.1.saturating_add(runnable_ns(wait)));
            before.push(sum);
        }
        Self { capture, order, first, before }
    }

    /// The waits of a thread, by start.
    pub fn waits(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = &'a Wait> + ExactSizeIterator + '_ {
        self.order[self.rows(thread)].iter().map(|row| &self.capture.waits[*row as usize])
    }

    /// The waits of a thread in a range of time, each cut to it.
    pub fn within(&self, thread: ThreadId, range: Range<u64>) -> impl Iterator<Item = Wait> + '_ {
        self.order[self.met(thread, &range)]
            .iter()
            .filter_map(move |row| cut(&self.capture.waits[*row as usize], &range))
    }

    /// The last wait of a thread that began before a moment.
    pub fn last_before(&self, thread: ThreadId, time_ns: u64) -> Option<&'a Wait> {
        let rows = self.rows(thread);
        let of_thread = &self.order[rows];
        let count = of_thread.partition_point(|row| self.capture.waits[*row as usize].start_ns < time_ns);
        Some(&self.capture.waits[of_thread[count.checked_sub(1)?] as usize])
    }

    /// What a thread did in a range of time; `None` if its lifetime is unknown.
    pub fn spent(&self, thread: ThreadId, range: Range<u64>) -> Option<Spent> {
        let row = &self.capture.threads[thread.index()];
        let (start, end) = (row.start_ns?.max(range.start), row.end_ns?.min(range.end));
        if start >= end {
            return Some(Spent::default());
        }
        let range = start..end;
        let met = self.met(thread, &range);
        let mut blocked = self.before[met.end].0 - self.before[met.start].0;
        let mut runnable = self.before[met.end].1 - self.before[met.start].1;
        // Only the first and the last one can reach beyond the range.
        for place in [met.start, met.end.wrapping_sub(1)].into_iter().take(met.len()) {
            let wait = &self.capture.waits[self.order[place] as usize];
            let inside = cut(wait, &range);
            blocked = blocked.saturating_add(inside.as_ref().map_or(0, blocked_ns)).saturating_sub(blocked_ns(wait));
            runnable =
                runnable.saturating_add(inside.as_ref().map_or(0, runnable_ns)).saturating_sub(runnable_ns(wait));
        }
        let running = (end - start).saturating_sub(blocked.saturating_add(runnable));
        Some(Spent { running, runnable, blocked })
    }

    fn rows(&self, thread: ThreadId) -> Range<usize> {
        self.first[thread.index()] as usize..self.first[thread.index() + 1] as usize
    }

    /// Indices in `order` of the waits in a range.
    fn met(&self, thread: ThreadId, range: &Range<u64>) -> Range<usize> {
        let rows = self.rows(thread);
        let of_thread = &self.order[rows.clone()];
        let wait = |row: &u32| &self.capture.waits[*row as usize];
        let first = of_thread.partition_point(|row| wait(row).end_ns <= range.start);
        let end = of_thread.partition_point(|row| wait(row).start_ns < range.end);
        rows.start + first..rows.start + end.max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::Drawing;

    #[test]
    fn any_range_is_split_into_running_runnable_and_blocked() {
        let capture = Drawing::new()
            .lived("other", 0..100, None)
            .blocked("other", 0..100, "a")
            .lived("main", 10..90, None)
            .blocked_then_runnable("main", 20..40, 5, "a")
            .preempted("main", 50..60, "b")
            .capture;
        let off = OffCpu::of(&capture);
        let spent = |range| {
            let Spent { running, runnable, blocked } = off.spent(ThreadId(1), range).unwrap();
            (running, runnable, blocked)
        };
        assert_eq!(spent(0..100), (50, 15, 15));
        assert_eq!(spent(25..37), (0, 2, 10));
        assert_eq!(spent(30..55), (10, 10, 5));
        assert_eq!(spent(52..54), (0, 2, 0));
        assert_eq!(spent(0..5), (0, 0, 0));
        assert_eq!(off.last_before(ThreadId(1), 50).unwrap().start_ns, 20);
        assert_eq!(off.last_before(ThreadId(1), 20), None);
        assert_eq!(off.within(ThreadId(1), 30..55).map(|wait| wait.start_ns).collect::<Vec<_>>(), [30, 50]);
    }
}
