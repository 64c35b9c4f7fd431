//! [`Times`]: what each thread did in any range of time, by state.
//!
//! Running sums stand before every [`SUMMED`]-th wait. So a bucket costs two searches however many waits are in it, and no
//! level of detail is stored: tiles of all levels are made from the waits when they are asked for, exact to the nanosecond.
//! The sums take less than two bytes per wait.

use std::ops::Range;

use stepscope_analyze::wait_class::Classes;
use stepscope_analyze::{Selection, parallel};
use stepscope_model::{ThreadId, Wait, WaitState};

use super::state::{LaneState, Shares};

/// Waits between two running sums.
const SUMMED: usize = 64;

/// Waits that one thread adds up at a time.
const AT_ONCE: usize = 8_192 * SUMMED;

/// A state for a range of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub state: LaneState,
    pub range: Range<u64>,
}

/// The waits of all threads in order, with running sums.
#[derive(Debug, Clone)]
pub(super) struct Times {
    /// Rows of `waits`, by thread and start, where the capture has another order.
    order: Option<Vec<u32>>,
    /// Where each thread's begin in that order; one more at the end.
    first: Vec<u32>,
    /// The blocked state of each wait, in that order.
    blocked: Vec<LaneState>,
    /// Time of all waits before every [`SUMMED`]-th one, in that order.
    before: Vec<Shares>,
}

impl Times {
    pub fn of(selection: &Selection<'_>) -> Self {
        let waits = &selection.capture().waits;
        let order = (!waits.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0..waits.len() as u32).collect();
            order.sort_by_key(|row| {
                let wait = waits.at(*row as usize);
                (wait.thread, wait.start_ns, wait.end_ns)
            });
            order
        });
        let row = |place: usize| order.as_ref().map_or(place, |order: &Vec<u32>| order[place] as usize);
        let thread_at = |place: usize| waits.at(row(place)).thread.index();
        let first = (0..=selection.capture().threads.len())
            .map(|thread| partition_point(0..waits.len(), |place| thread_at(place) < thread) as u32)
            .collect();
        let parts: Vec<Range<usize>> =
            (0..waits.len()).step_by(AT_ONCE).map(|start| start..(start + AT_ONCE).min(waits.len())).collect();
        let mut times = Self { order: None, first, blocked: Vec::new(), before: Vec::new() };
        times.blocked.reserve_exact(waits.len());
        let mut all = Shares::default();
        for (blocked, before, sums) in parallel::map(&parts, |places| states(selection, places.clone().map(row))) {
            times.blocked.extend(blocked);
            times.before.extend(before.iter().map(|sums| sums.and(&all)));
            all = sums.and(&all);
        }
        Self { order, ..times }
    }

    /// The row of `waits` at a place.
    pub fn row(&self, place: usize) -> usize {
        self.order.as_ref().map_or(place, |order| order[place] as usize)
    }

    /// Places of a thread's waits.
    pub fn places(&self, thread: ThreadId) -> Range<usize> {
        self.first[thread.index()] as usize..self.first[thread.index() + 1] as usize
    }

    /// The parts of the wait at a place, in order.
    pub fn parts(&self, wait: &Wait, place: usize) -> impl Iterator<Item = Part> + use<> {
        parts(wait, self.blocked[place])
    }

    /// Walks along a thread's life.
    pub fn walk<'a>(&'a self, selection: &'a Selection<'a>, thread: ThreadId) -> Walk<'a> {
        let places = self.places(thread);
        Walk {
            times: self,
            selection,
            place: places.start,
            end: places.end,
            sums: self.sums_before(selection, places.start),
        }
    }

    /// The first of these places whose wait ends after `time`.
    pub fn first_after(&self, selection: &Selection<'_>, places: Range<usize>, time: u64) -> usize {
        partition_point(places, |place| selection.capture().waits.at(self.row(place)).end_ns <= time)
    }

    fn sums_before(&self, selection: &Selection<'_>, place: usize) -> Shares {
        let mut sums = match self.before.get(place / SUMMED) {
            Some(sums) => *sums,
            None => return self.sums_before_end(selection, place),
        };
        self.add_up(selection, place / SUMMED * SUMMED..place, &mut sums);
        sums
    }

    /// The sums at the end of the waits, where that is the place of a sum that has no wait.
    fn sums_before_end(&self, selection: &Selection<'_>, place: usize) -> Shares {
        let Some(last) = self.before.last() else { return Shares::default() };
        let mut sums = *last;
        self.add_up(selection, (self.before.len() - 1) * SUMMED..place, &mut sums);
        sums
    }

    fn add_up(&self, selection: &Selection<'_>, places: Range<usize>, sums: &mut Shares) {
        for place in places {
            let wait = selection.capture().waits.at(self.row(place));
            for part in self.parts(&wait, place) {
                sums.add(part.state, part.range.end - part.range.start);
            }
        }
    }
}

/// The blocked states of waits, their running sums before every [`SUMMED`]-th one, and the sum of all.
fn states(selection: &Selection<'_>, rows: impl Iterator<Item = usize>) -> (Vec<LaneState>, Vec<Shares>, Shares) {
    let mut classes = Classes::new(selection.capture(), selection.functions());
    let (mut states, mut before, mut sums) = (Vec::new(), Vec::new(), Shares::default());
    for (place, row) in rows.enumerate() {
        let wait = selection.completed_wait(row);
        let blocked = wait.stack.map_or(LaneState::NO_STACK, |stack| LaneState::blocked(classes.of(stack)));
        states.push(blocked);
        if place % SUMMED == 0 {
            before.push(sums);
        }
        for part in parts(&wait, blocked) {
            sums.add(part.state, part.range.end - part.range.start);
        }
    }
    (states, before, sums)
}

/// The first of these positions that is not `early`; the early ones come first.
pub(super) fn partition_point(positions: Range<usize>, early: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (positions.start, positions.end);
    while low < high {
        let middle = low.midpoint(high);
        if early(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The blocked part of a wait, then the one in which it waited for a CPU. Either may be empty, and is left out then.
fn parts(wait: &Wait, blocked: LaneState) -> impl Iterator<Item = Part> + use<> {
    let (start, end) = (wait.start_ns, wait.end_ns);
    let (middle, then) = match wait.state {
        WaitState::Preempted => (start, LaneState::PREEMPTED),
        WaitState::Blocked => (end.saturating_sub(wait.runnable_ns.unwrap_or(0)).max(start), LaneState::WOKEN),
    };
    let parts = [Part { state: blocked, range: start..middle }, Part { state: then, range: middle..end }];
    parts.into_iter().filter(|part| part.range.start < part.range.end)
}

/// A place in a thread's life that only moves forward.
pub(super) struct Walk<'a> {
    times: &'a Times,
    selection: &'a Selection<'a>,
    place: usize,
    end: usize,
    /// Time of all waits before the place.
    sums: Shares,
}

impl Walk<'_> {
    /// Time of all waits before a moment, which must not be before that of the last call.
    pub fn before(&mut self, time: u64) -> Shares {
        let waits = &self.selection.capture().waits;
        let near = (self.place + SUMMED).min(self.end);
        let next = match near.checked_sub(1).filter(|last| *last >= self.place) {
            Some(last) if waits.at(self.times.row(last)).end_ns <= time => {
                self.times.first_after(self.selection, near..self.end, time)
            }
            _ => self.times.first_after(self.selection, self.place..near, time),
        };
        if next - self.place <= SUMMED {
            self.times.add_up(self.selection, self.place..next, &mut self.sums);
        } else {
            self.sums = self.times.sums_before(self.selection, next);
        }
        self.place = next;
        let mut sums = self.sums;
        if next < self.end {
            let wait = waits.at(self.times.row(next));
            for part in self.times.parts(&wait, next).filter(|part| part.range.start < time) {
                sums.add(part.state, part.range.end.min(time) - part.range.start);
            }
        }
        sums
    }
}
