//! [`Waits`]: the off-CPU intervals of a capture, packed.

use std::ops::Range;

use crate::ids::{StackId, ThreadId};
use crate::stored::Stored;
use crate::wait::{Wait, WaitState};

/// Off-CPU intervals, 48 bytes each in memory. They stay on disk until they are needed, as all of [`Stored`].
///
/// A program that switches 10,000 times a second makes six million in ten minutes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waits(pub(crate) Stored<PackedWait>);

/// A [`Wait`] whose absent values take no room of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedWait {
    start_ns: u64,
    end_ns: u64,
    runnable_ns: u64,
    thread: u32,
    stack: u32,
    cpu: u32,
    waker: u32,
    waker_stack: u32,
    /// The number of waits, and [`PREEMPTED`].
    count: u32,
}

/// What no row has: tables have fewer rows, and no kernel numbers its CPUs so high.
const ABSENT: u32 = u32::MAX;
const ABSENT_NS: u64 = u64::MAX;
/// The bit beside the number of waits that says that they are preempted.
const PREEMPTED: u32 = 1 << 31;
/// The most waits in a row.
const MOST: u32 = PREEMPTED - 1;

impl PackedWait {
    pub(crate) fn thread(self) -> ThreadId {
        ThreadId(self.thread)
    }

    /// A row that has no content yet.
    pub(crate) const EMPTY: Self = Self {
        start_ns: 0,
        end_ns: 0,
        runnable_ns: ABSENT_NS,
        thread: 0,
        stack: ABSENT,
        cpu: ABSENT,
        waker: ABSENT,
        waker_stack: ABSENT,
        count: PREEMPTED,
    };

    fn change(&mut self, change: impl FnOnce(&mut Wait)) {
        let mut wait = (*self).into();
        change(&mut wait);
        *self = wait.into();
    }

    /// The order of a capture's waits: by thread, and in time within it.
    pub(crate) fn order(&self) -> (u32, u64, u64) {
        (self.thread, self.start_ns, self.end_ns)
    }
}

impl From<Wait> for PackedWait {
    fn from(wait: Wait) -> Self {
        Self {
            start_ns: wait.start_ns,
            end_ns: wait.end_ns,
            runnable_ns: wait.runnable_ns.unwrap_or(ABSENT_NS),
            thread: wait.thread.0,
            stack: wait.stack.map_or(ABSENT, |stack| stack.0),
            cpu: wait.cpu.unwrap_or(ABSENT),
            waker: wait.waker.map_or(ABSENT, |waker| waker.0),
            waker_stack: wait.waker_stack.map_or(ABSENT, |stack| stack.0),
            count: wait.count.min(MOST) | if wait.state == WaitState::Preempted { PREEMPTED } else { 0 },
        }
    }
}

impl From<PackedWait> for Wait {
    #[inline]
    fn from(packed: PackedWait) -> Self {
        let present = |value: u32| Some(value).filter(|&value| value != ABSENT);
        Self {
            start_ns: packed.start_ns,
            end_ns: packed.end_ns,
            thread: ThreadId(packed.thread),
            stack: present(packed.stack).map(StackId),
            state: if packed.count & PREEMPTED == 0 { WaitState::Blocked } else { WaitState::Preempted },
            runnable_ns: Some(packed.runnable_ns).filter(|&ns| ns != ABSENT_NS),
            cpu: present(packed.cpu),
            waker: present(packed.waker).map(ThreadId),
            waker_stack: present(packed.waker_stack).map(StackId),
            count: packed.count & MOST,
        }
    }
}

impl Waits {
    /// Number of waits. Reads no file.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no waits. Reads no file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The wait in this row.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn at(&self, row: usize) -> Wait {
        self.0[row].into()
    }

    /// The last wait.
    pub fn last(&self) -> Option<Wait> {
        self.0.last().map(|&packed| packed.into())
    }

    /// All waits, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.0.iter())
    }

    /// The waits in these rows.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn slice(&self, rows: Range<usize>) -> Iter<'_> {
        Iter(self.0[rows].iter())
    }

    /// Adds a wait.
    pub fn push(&mut self, wait: Wait) {
        self.0.push(wait.into());
    }

    /// Changes the wait in this row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn change(&mut self, row: usize, change: impl FnOnce(&mut Wait)) {
        self.0[row].change(change);
    }

    /// Changes the last wait, if there is one.
    pub fn change_last(&mut self, change: impl FnOnce(&mut Wait)) {
        if let Some(last) = self.0.last_mut() {
            last.change(change);
        }
    }

    /// Changes each wait.
    pub fn change_all(&mut self, mut change: impl FnMut(&mut Wait)) {
        self.0.iter_mut().for_each(|wait| wait.change(&mut change));
    }

    /// Whether they are ordered by thread, and by start within it.
    pub fn is_sorted(&self) -> bool {
        self.0.is_sorted_by_key(PackedWait::order)
    }

    /// Orders them by thread, and by start within it.
    pub fn sort(&mut self) {
        if !self.is_sorted() {
            self.0.sort_by_key(PackedWait::order);
        }
    }
}

/// Waits in order.
#[derive(Debug, Clone)]
pub struct Iter<'a>(std::slice::Iter<'a, PackedWait>);

impl Iterator for Iter<'_> {
    type Item = Wait;

    #[inline]
    fn next(&mut self) -> Option<Wait> {
        self.0.next().map(|&packed| packed.into())
    }

    fn nth(&mut self, skipped: usize) -> Option<Wait> {
        self.0.nth(skipped).map(|&packed| packed.into())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Wait> {
        self.0.next_back().map(|&packed| packed.into())
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Waits {
    type Item = Wait;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<Wait> for Waits {
    fn extend<I: IntoIterator<Item = Wait>>(&mut self, waits: I) {
        self.0.extend(waits.into_iter().map(PackedWait::from));
    }
}

impl FromIterator<Wait> for Waits {
    fn from_iter<I: IntoIterator<Item = Wait>>(waits: I) -> Self {
        Self(waits.into_iter().map(PackedWait::from).collect::<Vec<_>>().into())
    }
}

impl From<Vec<Wait>> for Waits {
    fn from(waits: Vec<Wait>) -> Self {
        waits.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_takes_48_bytes() {
        assert_eq!(size_of::<PackedWait>(), 48);
    }

    #[test]
    fn compressed_input_is_unpacked() {
        let full = Wait {
            start_ns: 1,
            end_ns: u64::MAX,
            thread: ThreadId(3),
            stack: Some(StackId(0)),
            state: WaitState::Blocked,
            runnable_ns: Some(0),
            cpu: Some(0),
            waker: Some(ThreadId(0)),
            waker_stack: Some(StackId(7)),
            count: 1,
        };
        let bare = Wait { stack: None, runnable_ns: None, cpu: None, waker: None, waker_stack: None, ..full };
        for wait in [full, bare, Wait { state: WaitState::Preempted, ..full }, Wait { count: 2_000, ..full }] {
            assert_eq!(Wait::from(PackedWait::from(wait)), wait);
        }
    }

    #[test]
    fn waits_are_ordered_by_thread_and_start() {
        let wait = |thread, start_ns| Wait {
            start_ns,
            end_ns: start_ns + 1,
            thread: ThreadId(thread),
            stack: None,
            state: WaitState::Preempted,
            runnable_ns: None,
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        };
        let mut waits: Waits = [wait(1, 0), wait(0, 5), wait(1, 4), wait(0, 2)].into_iter().collect();
        waits.sort();
        assert_eq!(
            waits.iter().map(|wait| (wait.thread.0, wait.start_ns)).collect::<Vec<_>>(),
            [(0, 2), (0, 5), (1, 0), (1, 4)]
        );
        assert_eq!(waits.slice(1..3).rev().map(|wait| wait.start_ns).collect::<Vec<_>>(), [0, 5]);
    }
}
