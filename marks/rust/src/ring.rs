//! Rings: one per thread, written only by that thread, read only by the recorder.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crate::segment::{self, DIRECTORY_AT, Entry, RINGS_AT, RINGS_MAX, Segment, State};
use crate::{clock, system};

/// Records in a ring.
pub const RECORDS: u64 = 32_768;
const RECORD_WORDS: usize = 3;
const RECORD_BYTES: usize = RECORD_WORDS * 8;
/// Bytes of a ring.
pub const BYTES: usize = RECORDS as usize * RECORD_BYTES;
/// Memory of a ring is allocated in pieces of this many records (24 KiB) on first use.
const PIECE_RECORDS: u64 = 1024;
const PIECE_BYTES: usize = PIECE_RECORDS as usize * RECORD_BYTES;
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
}

/// The writing end of a thread. Without a ring before its first record, when `at` and `limit` are equal.
struct Thread {
    records: Cell<*mut u64>,
    entry: Cell<*const Entry>,
    at: Cell<u64>,
    limit: Cell<u64>,
    ring: Cell<usize>,
    /// Records of the ring that have memory.
    committed: Cell<u64>,
    drops: Cell<u32>,
}

thread_local! {
    // Without a destructor, so that access is a single addition; `ENDING` detects the end of the thread.
    static THREAD: Thread = const {
        Thread {
            records: Cell::new(std::ptr::null_mut()),
            entry: Cell::new(std::ptr::null()),
            at: Cell::new(0),
            limit: Cell::new(0),
            ring: Cell::new(0),
            committed: Cell::new(0),
            drops: Cell::new(0),
        }
    };
    static ENDING: Ending = const { Ending };
}

/// Releases the thread's ring when the thread ends.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        THREAD.with(|thread| {
            let mut state = segment::state();
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

/// The rings of a segment in this process.
#[derive(Default)]
pub struct Rings {
    known: Vec<Ring>,
    /// Rings of ended threads, oldest first.
    ended: VecDeque<usize>,
}

struct Ring {
    records: *mut u64,
    /// Records that have memory.
    committed: u64,
}

impl Rings {
    /// Unmaps all rings, in a child of fork; they belong to the parent.
    pub fn unmap(self) {
        for ring in self.known {
            // SAFETY: each was mapped with this length, and the only thread of the child is not writing.
            unsafe { libc::munmap(ring.records.cast(), BYTES) };
        }
    }
}

impl Segment {
    /// A drained ring of an ended thread, else a new one.
    fn find_ring(&mut self) -> Option<usize> {
        if let Some(&ended) = self.rings.ended.front() {
            // SAFETY: the entry stays mapped as long as `self`.
            let entry = unsafe { &*self.entry(ended) };
            let head = entry.head.load(Ordering::Acquire);
            if tail(entry, head) == head {
                return self.rings.ended.pop_front();
            }
        }
        self.add_ring()
    }

    fn add_ring(&mut self) -> Option<usize> {
        let ring = self.rings.known.len();
        (ring < RINGS_MAX).then_some(())?;
        let file = self.file().ok()?;
        let at = (RINGS_AT + ring * BYTES) as u64;
        let entry_bytes = size_of::<Entry>();
        system::commit(&file, (DIRECTORY_AT + ring * entry_bytes) as u64, entry_bytes as u64).ok()?;
        system::commit(&file, at, PIECE_BYTES as u64).ok()?;
        file.set_len(at + BYTES as u64).ok()?;
        let memory = system::map(&file, at, BYTES).ok()?;
        system::populate(memory, PIECE_BYTES);
        self.rings.known.push(Ring { records: memory.cast(), committed: PIECE_RECORDS });
        self.header().ring_count.store(ring as u32 + 1, Ordering::Release);
        Some(ring)
    }

    /// Allocates the next piece of a ring. Returns the number of records that have memory.
    fn commit_piece(&mut self, ring: usize) -> Option<u64> {
        let file = self.file().ok()?;
        let known = &mut self.rings.known[ring];
        let from = known.committed as usize * RECORD_BYTES;
        system::commit(&file, (RINGS_AT + ring * BYTES + from) as u64, PIECE_BYTES as u64).ok()?;
        known.committed += PIECE_RECORDS;
        // SAFETY: the piece is within the ring.
        system::populate(unsafe { known.records.cast::<u8>().add(from) }, PIECE_BYTES);
        Some(known.committed)
    }
}

/// The recorder's position; an invalid one counts as 0.
fn tail(entry: &Entry, head: u64) -> u64 {
    for _ in 0..64 {
        let tail = entry.tail.load(Ordering::Acquire);
        // The recorder writes both; if they differ, the write is incomplete.
        let whole = tail == entry.tail_again.load(Ordering::Acquire);
        if whole && tail <= head && head - tail <= RECORDS {
            return tail;
        }
    }
    head.saturating_sub(RECORDS)
}

impl Thread {
    fn forget(&self) {
        self.records.set(std::ptr::null_mut());
        self.entry.set(std::ptr::null());
        self.at.set(0);
        self.limit.set(0);
        self.committed.set(0);
        self.drops.set(0);
    }

    #[inline]
    fn put(&self, payload: u64, time: u64, what: u64) {
        let at = self.at.get();
        // SAFETY: the thread has a ring, the position is within it, and memory exists up to the limit.
        unsafe {
            let record = self.records.get().add((at % RECORDS) as usize * RECORD_WORDS);
            record.write(payload);
            record.add(1).write(time);
            record.add(2).write(what | at << 40);
            (*self.entry.get()).head.store(at + 1, Ordering::Release);
        }
        self.at.set(at + 1);
    }

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
            segment::state().segment.iter().for_each(|segment| segment::look_for_recorder(segment.header()));
        }
        false
    }

    fn take_ring(&self) -> bool {
        // A child of fork may end a scope of its parent before it starts one.
        segment::is_open();
        let mut state = segment::state();
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
        let limit = tail(unsafe { &*self.entry.get() }, at) + RECORDS;
        // There may be memory later. Checking takes microseconds, so it is not done on each mark.
        if at == self.committed.get() && at < RECORDS && self.drops.get().is_multiple_of(DROPS_A_PIECE) {
            let mut state = segment::state();
            if let Some(committed) = state.segment.as_mut().and_then(|segment| segment.commit_piece(self.ring.get())) {
                self.committed.set(committed);
                self.drops.set(0);
            }
        }
        if self.committed.get() < RECORDS { limit.min(self.committed.get()) } else { limit }
    }
}

/// Forgets the ring of the only thread in a child of fork.
pub fn forget_thread() {
    THREAD.with(Thread::forget);
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
