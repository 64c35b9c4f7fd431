//! The position at which a thread writes.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use super::layout::{Entry, RECORD_WORDS, RING_RECORDS};

/// The writing end of a thread. Without a ring before its first record, when `at` and `limit` are equal.
pub struct Thread {
    pub records: Cell<*mut u64>,
    pub entry: Cell<*const Entry>,
    pub at: Cell<u64>,
    pub limit: Cell<u64>,
    pub ring: Cell<usize>,
    /// Records of the ring that have memory.
    pub committed: Cell<u64>,
    pub drops: Cell<u32>,
}

thread_local! {
    // Without a destructor, so that access is a single addition; `ENDING` detects the end of the thread.
    pub static THREAD: Thread = const {
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
}

impl Thread {
    /// Forgets the ring.
    pub fn forget(&self) {
        self.records.set(std::ptr::null_mut());
        self.entry.set(std::ptr::null());
        self.at.set(0);
        self.limit.set(0);
        self.committed.set(0);
        self.drops.set(0);
    }

    /// Writes a record to the ring, which has room for it.
    #[inline]
    pub fn put(&self, payload: u64, time: u64, what: u64) {
        let at = self.at.get();
        // SAFETY: the thread has a ring, the position is within it, and memory exists up to the limit.
        unsafe {
            let record = self.records.get().add((at % RING_RECORDS) as usize * RECORD_WORDS);
            record.write(payload);
            record.add(1).write(time);
            record.add(2).write(what | at << 40);
            (*self.entry.get()).head.store(at + 1, Ordering::Release);
        }
        self.at.set(at + 1);
    }
}
