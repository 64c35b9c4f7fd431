//! [`OffCpu`]: running, runnable and blocked time of each thread in any range of time.
//!
//! It has the waits of each thread in order, with running sums. So a query for a range (a step, a scope) takes two searches,
//! however many waits are in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

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

impl Spent {
    /// Moves a wait within the range from running to blocked and runnable.
    pub(crate) fn add(&mut self, wait: &Wait) {
        self.blocked = self.blocked.saturating_add(blocked_ns(wait));
        self.runnable = self.runnable.saturating_add(runnable_ns(wait));
        self.running = self.running.saturating_sub(blocked_ns(wait).saturating_add(runnable_ns(wait)));
    }
}

/// All threads' time off the CPU, in order.
#[derive(Debug, Clone)]
pub struct OffCpu<'a> {
    capture: &'a Capture,
    order: Arc<Order>,
}

/// The order of a capture's waits by thread, with running sums.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Rows of `waits`, by thread and start, where `waits` has another order.
    rows: Option<Vec<u32>>,
    /// Where each thread's begin in that order; one more at the end.
    first: Vec<u32>,
    /// Blocked and runnable time of all waits before every [`SUMMED`]-th one, in that order.
    before: Vec<Sums>,
}

/// Waits between two running sums. A query adds up fewer than this number on each side.
const SUMMED: usize = 16;

/// Blocked and runnable time of some waits.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    blocked: u64,
    runnable: u64,
}

impl Sums {
    fn and(self, wait: &Wait) -> Self {
        Self {
            blocked: self.blocked.saturating_add(blocked_ns(wait)),
            runnable: self.runnable.saturating_add(runnable_ns(wait)),
        }
    }
}

impl<'a> OffCpu<'a> {
    /// Of all of a capture's threads.
    pub fn of(capture: &'a Capture) -> Self {
        let waits = &capture.waits;
        let rows = (!waits.is_sorted()).then(|| {
            let mut rows: Vec<u32> = (0..waits.len() as u32).collect();
            rows.sort_by_key(|row| {
                let wait = waits.at(*row as usize);
                (wait.thread, wait.start_ns, wait.end_ns)
            });
            rows
        });
        let unsummed = Self::in_order(capture, Arc::new(Order { rows, ..Order::default() }));
        let count = |thread: usize| unsummed.count(0..waits.len(), |wait| wait.thread.index() < thread) as u32;
        let first = (0..=capture.threads.len()).map(count).collect();
        // Room for all: a list that grows takes twice the memory at times.
        let mut before = Vec::with_capacity(waits.len() / SUMMED + 2);
        let mut sums = Sums::default();
        for place in 0..waits.len() {
            if place % SUMMED == 0 {
                before.push(sums);
            }
            sums = sums.and(&unsummed.at(place));
        }
        before.push(sums);
        let rows = Arc::into_inner(unsummed.order).and_then(|order| order.rows);
        Self::in_order(capture, Arc::new(Order { rows, first, before }))
    }

    /// Of a capture whose order is known.
    pub(crate) fn in_order(capture: &'a Capture, order: Arc<Order>) -> Self {
        Self { capture, order }
    }

    /// The order, for [`in_order`](Self::in_order).
    pub(crate) fn order(&self) -> Arc<Order> {
        self.order.clone()
    }

    /// Places of all threads' waits by a time that never decreases from one wait of a thread to its next.
    pub(crate) fn merged_by(&self, time_of: impl Fn(&Wait) -> u64) -> impl Iterator<Item = usize> {
        let next = move |thread: ThreadId, place: usize| {
            self.places(thread).contains(&place).then(|| Reverse((time_of(&self.at(place)), thread, place)))
        };
        let threads = (0..self.capture.threads.len()).map(ThreadId::from_index);
        let mut waiting: BinaryHeap<_> = threads.filter_map(|thread| next(thread, self.places(thread).start)).collect();
        std::iter::from_fn(move || {
            let Reverse((_, thread, place)) = waiting.pop()?;
            waiting.extend(next(thread, place + 1));
            Some(place)
        })
    }

    /// The waits of a thread, by start.
    pub fn waits(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = Wait> + ExactSizeIterator + '_ {
        self.places(thread).map(|place| self.at(place))
    }

    /// Rows in the capture of the waits of a thread, by start.
    pub fn rows_of(&self, thread: ThreadId) -> impl Iterator<Item = usize> + '_ {
        self.places(thread).map(|place| self.row(place))
    }

    /// The end of a thread, or of the recording.
    pub(crate) fn last_moment(&self, thread: ThreadId) -> u64 {
        let end = self.capture.threads[thread.index()].end_ns;
        end.or(self.capture.info.end_ns).unwrap_or(u64::MAX)
    }

    /// The waits of a thread in a range of time, each cut to it.
    pub fn within(&self, thread: ThreadId, range: Range<u64>) -> impl Iterator<Item = Wait> + '_ {
        self.met(thread, &range).filter_map(move |place| cut(&self.at(place), &range))
    }

    /// The last wait of a thread that began before a moment.
    pub fn last_before(&self, thread: ThreadId, time_ns: u64) -> Option<Wait> {
        Some(self.at(self.place_before(thread, time_ns)?))
    }

    /// The place of the last wait of a thread that began before a moment.
    pub(crate) fn place_before(&self, thread: ThreadId, time_ns: u64) -> Option<usize> {
        let rows = self.places(thread);
        let count = self.count(rows.clone(), |wait| wait.start_ns < time_ns);
        Some(rows.start + count.checked_sub(1)?)
    }

    /// How much of a range of time a thread lived; `None` if its lifetime is unknown.
    pub fn alive(&self, thread: ThreadId, range: Range<u64>) -> Option<u64> {
        let row = &self.capture.threads[thread.index()];
        Some(row.end_ns?.min(range.end).saturating_sub(row.start_ns?.max(range.start)))
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
        let (from, until) = (self.before(met.start), self.before(met.end));
        let mut blocked = until.blocked - from.blocked;
        let mut runnable = until.runnable - from.runnable;
        // Only the first and the last one can reach beyond the range.
        for place in [met.start, met.end.wrapping_sub(1)].into_iter().take(met.len()) {
            let wait = self.at(place);
            let inside = cut(&wait, &range);
            blocked = blocked.saturating_add(inside.as_ref().map_or(0, blocked_ns)).saturating_sub(blocked_ns(&wait));
            runnable =
                runnable.saturating_add(inside.as_ref().map_or(0, runnable_ns)).saturating_sub(runnable_ns(&wait));
        }
        let running = (end - start).saturating_sub(blocked.saturating_add(runnable));
        Some(Spent { running, runnable, blocked })
    }

    /// The places of a thread's waits in the order by thread and start.
    pub(crate) fn places(&self, thread: ThreadId) -> Range<usize> {
        let first = &self.order.first;
        first[thread.index()] as usize..first[thread.index() + 1] as usize
    }

    /// Places of the waits in a range.
    fn met(&self, thread: ThreadId, range: &Range<u64>) -> Range<usize> {
        let rows = self.places(thread);
        let first = self.count(rows.clone(), |wait| wait.end_ns <= range.start);
        let end = self.count(rows.clone(), |wait| wait.start_ns < range.end);
        rows.start + first..rows.start + end.max(first)
    }

    /// The wait at a place in the order by thread and start.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> Wait {
        self.capture.waits.at(self.row(place))
    }

    /// The row in the capture of the wait at a place.
    pub(crate) fn row(&self, place: usize) -> usize {
        self.order.rows.as_ref().map_or(place, |rows| rows[place] as usize)
    }

    /// How many waits there are at these places before the first that is not `early`.
    fn count(&self, places: Range<usize>, early: impl Fn(&Wait) -> bool) -> usize {
        let (mut low, mut high) = (places.start, places.end);
        while low < high {
            let middle = low.midpoint(high);
            if early(&self.at(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low - places.start
    }

    /// Blocked and runnable time of all waits before a place.
    fn before(&self, place: usize) -> Sums {
        let summed = place / SUMMED;
        (summed * SUMMED..place)
            .map(|place| self.at(place))
            .fold(self.order.before[summed], |sums, wait| sums.and(&wait))
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
