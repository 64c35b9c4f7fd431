//! The pieces of each kind of [`Track`](super::track::Track): threads on a CPU, scopes, samples.

use std::ops::Range;

use stepscope_analyze::Selection;
use stepscope_model::{Sample, ThreadId};

use super::times::Times;
use super::track::{Piece, Pieces};

/// The label of what has none.
pub(super) const NO_LABEL: u32 = u32::MAX;

/// Threads on a CPU, by the place of the wait that ended when they got it. A thread holds its CPU until its next wait.
pub(super) struct Held<'a> {
    pub selection: &'a Selection<'a>,
    pub times: &'a Times,
    pub lives: &'a [Option<Range<u64>>],
}

impl Held<'_> {
    /// The CPU that the thread was switched in on at this place.
    pub fn cpu(&self, place: usize) -> Option<u32> {
        self.selection.capture().waits.at(self.times.row(place)).cpu
    }

    /// When the thread that was switched in at this place held the CPU.
    pub fn at(&self, place: usize) -> Piece {
        let waits = &self.selection.capture().waits;
        let wait = waits.at(self.times.row(place));
        let life_end = || self.lives[wait.thread.index()].as_ref().map_or(wait.end_ns, |life| life.end);
        let end = match place + 1 < self.times.places(wait.thread).end {
            true => waits.at(self.times.row(place + 1)).start_ns,
            false => life_end(),
        };
        Piece { range: wait.end_ns..end.max(wait.end_ns), label: wait.thread.0 }
    }
}

/// A thread on a CPU, and the place of the wait before.
#[derive(Debug, Clone)]
pub(super) struct Stay {
    pub range: Range<u64>,
    pub thread: u32,
    pub place: u32,
}

/// All of one CPU, by start. A [`Track`](super::track::Track) is built from them, and then finds the same pieces by [`Held`]: to look ten
/// million waits up again takes ten times as long.
pub(super) struct Stays<'a>(pub &'a [Stay]);

impl Pieces for Stays<'_> {
    fn piece(&self, _: &[u32], position: usize) -> Piece {
        let Stay { range, thread, .. } = self.0[position].clone();
        let piece = Piece { range, label: thread };
        self.0.get(position + 1).map_or(piece.clone(), |next| before(piece, next.range.start))
    }
}

impl Pieces for Held<'_> {
    fn piece(&self, rows: &[u32], position: usize) -> Piece {
        let piece = self.at(rows[position] as usize);
        // In damaged captures two threads may hold one CPU at a time: the later one counts.
        match rows.get(position + 1) {
            Some(next) => before(piece, self.at(*next as usize).range.start),
            None => piece,
        }
    }
}

/// Scopes of one thread and depth.
pub(super) struct Scoped<'a> {
    pub selection: &'a Selection<'a>,
    /// The name of each scope.
    pub names: &'a [u32],
}

impl Pieces for Scoped<'_> {
    fn piece(&self, rows: &[u32], position: usize) -> Piece {
        let scopes = &self.selection.capture().scopes;
        let row = rows[position] as usize;
        let piece = Piece { range: scopes[row].start_ns..scopes[row].end_ns, label: self.names[row] };
        match rows.get(position + 1) {
            Some(next) => before(piece, scopes[*next as usize].start_ns),
            None => piece,
        }
    }
}

/// What a sample stands for: the time before it.
pub(super) struct Sampled<'a> {
    pub selection: &'a Selection<'a>,
    /// Time that a sample stands for; `None` if its weight is that.
    pub period_ns: Option<u64>,
    pub label: fn(&Sample) -> u32,
}

/// Labels samples with their threads.
pub(super) fn thread_of(sample: &Sample) -> u32 {
    sample.thread.0
}

/// Labels samples with their stacks.
pub(super) fn stack_of(sample: &Sample) -> u32 {
    sample.stack.map_or(NO_LABEL, |stack| stack.0)
}

impl Sampled<'_> {
    fn time(&self, row: u32) -> u64 {
        self.selection.capture().samples[row as usize].time_ns.unwrap_or(0)
    }
}

impl Pieces for Sampled<'_> {
    fn piece(&self, rows: &[u32], position: usize) -> Piece {
        let sample = &self.selection.capture().samples[rows[position] as usize];
        let end = self.time(rows[position]);
        let start = end.saturating_sub(self.period_ns.unwrap_or(sample.weight));
        let last = position.checked_sub(1).map_or(0, |position| self.time(rows[position]));
        Piece { range: start.max(last).min(end)..end, label: (self.label)(sample) }
    }
}

/// The part of a piece before a moment.
fn before(piece: Piece, time: u64) -> Piece {
    let end = piece.range.end.min(time.max(piece.range.start));
    Piece { range: piece.range.start..end, ..piece }
}

/// Time that a sample stands for: the median distance of a thread's samples, if their weight is no time.
pub(super) fn period_ns(selection: &Selection<'_>) -> Option<u64> {
    if selection.event().is_some_and(|event| event.unit == "ns") {
        return None;
    }
    let mut last: Vec<Option<u64>> = vec![None; selection.capture().threads.len()];
    let mut gaps: Vec<u64> = Vec::new();
    for sample in selection.samples().take(100_000) {
        let Some(time) = sample.time_ns else { continue };
        let last: &mut Option<u64> = &mut last[ThreadId::index(sample.thread)];
        gaps.extend(last.map(|last| time.saturating_sub(last)));
        *last = Some(time);
    }
    gaps.sort_unstable();
    Some(gaps.get(gaps.len() / 2).copied().unwrap_or(0))
}
