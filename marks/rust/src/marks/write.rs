//! Writing records: each thread to its own ring, which only the recorder reads.

use std::sync::atomic::Ordering;

use super::layout::RING_RECORDS;
use super::process::{self, State};
use super::segment::tail;
use super::thread::{THREAD, Thread};
use super::{clock, system};

/// Dropped records between checks whether the recorder is alive.
const DROPS_A_LOOK: u32 = 65_536;
/// Dropped records between checks whether there is memory again.
const DROPS_A_PIECE: u32 = 1024;

/// The content of a record.
#[derive(Clone, Copy)]
pub enum Kind {
    Scope = 1,
    Step = 2,
    Counter = 3,
    Frame = 4,
    Thread = 5,
    FlowBegin = 6,
    FlowStep = 7,
    FlowEnd = 8,
}

thread_local! {
    static ENDING: Ending = const { Ending };
}

/// Releases the thread's ring when the thread ends.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        THREAD.with(|thread| {
            let mut state = process::state();
            let has_ring = !thread.records.get().is_null();
            if let Some(segment) = state.segment.as_mut().filter(|_| has_ring) {
                // SAFETY: entries stay mapped as long as the segment is ours.
                unsafe { (*thread.entry.get()).state.store(2, Ordering::Release) };
                segment.rings.ended.push_back(thread.ring.get());
            }
            thread.forget();
        });
    }
}

impl Thread {
    /// Makes room for one more record, or counts a dropped one.
    #[cold]
    fn make_room(&self) -> bool {
        if self.records.get().is_null() && !self.take_ring() {
            return false;
        }
        if self.at.get() >= self.limit.get() {
            self.limit.set(self.find_limit());
        }
        if self.at.get() < self.limit.get() {
            return true;
        }
        // SAFETY: the thread has a ring, whose entry stays mapped.
        let dropped = unsafe { &(*self.entry.get()).dropped };
        dropped.store(dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.drops.set(self.drops.get().wrapping_add(1));
        if self.drops.get().is_multiple_of(DROPS_A_LOOK) {
            process::state().segment.iter().for_each(|segment| process::look_for_recorder(segment.header()));
        }
        false
    }

    fn take_ring(&self) -> bool {
        // A child of fork may end a scope of its parent before it starts one.
        process::is_open();
        let mut state = process::state();
        let State { segment: Some(segment), .. } = &mut *state else { return false };
        // A thread past its destructors could not release a ring.
        let lives = ENDING.try_with(|_| ()).is_ok();
        // There may be room for a ring later. Checking takes microseconds, so it is not done on each mark.
        let asks = lives && self.drops.get().is_multiple_of(DROPS_A_PIECE);
        let Some(ring) = asks.then(|| segment.find_ring()).flatten() else {
            self.drops.set(self.drops.get().wrapping_add(1));
            segment.header().marks_lost.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        let (entry, tid) = (segment.entry(ring), system::thread_id());
        self.records.set(segment.rings.known[ring].records);
        self.entry.set(entry);
        self.ring.set(ring);
        self.drops.set(0);
        self.committed.set(segment.rings.known[ring].committed);
        // SAFETY: the entry stays mapped.
        unsafe {
            let head = (*entry).head.load(Ordering::Acquire);
            self.at.set(head);
            self.limit.set(head);
            (*entry).tid.store(tid, Ordering::Relaxed);
            (*entry).state.store(1, Ordering::Release);
        }
        drop(state);
        self.limit.set(self.find_limit());
        if self.at.get() < self.limit.get() {
            self.put(tid.into(), clock::now(), (Kind::Thread as u64) << 32);
        }
        true
    }

    /// The position up to which the thread may write without checks.
    fn find_limit(&self) -> u64 {
        let at = self.at.get();
        // SAFETY: the thread has a ring, whose entry stays mapped.
        let limit = tail(unsafe { &*self.entry.get() }, at) + RING_RECORDS;
        // There may be memory later. Checking takes microseconds, so it is not done on each mark.
        if at == self.committed.get() && at < RING_RECORDS && self.drops.get().is_multiple_of(DROPS_A_PIECE) {
            let mut state = process::state();
            if let Some(committed) = state.segment.as_mut().and_then(|segment| segment.commit_piece(self.ring.get())) {
                self.committed.set(committed);
                self.drops.set(0);
            }
        }
        if self.committed.get() < RING_RECORDS { limit.min(self.committed.get()) } else { limit }
    }
}

/// Writes a record, or counts a dropped one.
#[inline]
pub fn write(payload: u64, time: u64, kind: Kind, name: u32) {
    THREAD.with(|thread| {
        if thread.at.get() != thread.limit.get() || thread.make_room() {
            thread.put(payload, time, (kind as u64) << 32 | u64::from(name));
        }
    });
}
