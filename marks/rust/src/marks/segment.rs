//! A segment: a file in `/dev/shm` with a header, names, and one ring per thread.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::layout::*;
use super::system;

/// Memory of a ring is allocated in pieces of this many records (24 KiB) on first use.
const PIECE_RECORDS: u64 = 1024;
const PIECE_BYTES: usize = PIECE_RECORDS as usize * RECORD_BYTES;

/// A segment of this process.
pub struct Segment {
    pub memory: *mut u8,
    pub path: PathBuf,
    pub rings: Rings,
}

// SAFETY: the memory is mapped until it is unmapped in a child, which has one thread. Its content is atomic, or written
// under the lock.
unsafe impl Send for Segment {}

impl Segment {
    /// The header.
    pub fn header(&self) -> &Header {
        // SAFETY: the memory is mapped and starts with the header.
        unsafe { &*self.memory.cast::<Header>() }
    }

    /// The entry of a ring.
    pub fn entry(&self, ring: usize) -> *const Entry {
        debug_assert!(ring < RINGS_MAX);
        // SAFETY: the directory has this many entries, and is mapped.
        unsafe { self.memory.add(DIRECTORY_AT).cast::<Entry>().add(ring) }
    }

    /// The memory of the names.
    pub fn names(&self) -> *mut u8 {
        // SAFETY: the names are mapped.
        unsafe { self.memory.add(HEADER_BYTES) }
    }

    /// Opens the file. A stored descriptor could be closed and reused by the program.
    pub fn file(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(&self.path)
    }
}

/// The rings of a segment in this process.
#[derive(Default)]
pub struct Rings {
    pub known: Vec<Ring>,
    /// Rings of ended threads, oldest first.
    pub ended: VecDeque<usize>,
}

pub struct Ring {
    pub records: *mut u64,
    /// Records that have memory.
    pub committed: u64,
}

impl Rings {
    /// Unmaps all rings, in a child of fork; they belong to the parent.
    pub fn unmap(self) {
        for ring in self.known {
            // SAFETY: each was mapped with this length, and the only thread of the child is not writing.
            unsafe { libc::munmap(ring.records.cast(), RING_BYTES) };
        }
    }
}

impl Segment {
    /// A drained ring of an ended thread, else a new one.
    pub fn find_ring(&mut self) -> Option<usize> {
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
        let at = (RINGS_AT + ring * RING_BYTES) as u64;
        let entry_bytes = size_of::<Entry>();
        system::commit(&file, (DIRECTORY_AT + ring * entry_bytes) as u64, entry_bytes as u64).ok()?;
        system::commit(&file, at, PIECE_BYTES as u64).ok()?;
        file.set_len(at + RING_BYTES as u64).ok()?;
        let memory = system::map(&file, at, RING_BYTES).ok()?;
        system::populate(memory, PIECE_BYTES);
        self.rings.known.push(Ring { records: memory.cast(), committed: PIECE_RECORDS });
        self.header().ring_count.store(ring as u32 + 1, Ordering::Release);
        Some(ring)
    }

    /// Allocates the next piece of a ring. Returns the number of records that have memory.
    pub fn commit_piece(&mut self, ring: usize) -> Option<u64> {
        let file = self.file().ok()?;
        let known = &mut self.rings.known[ring];
        let from = known.committed as usize * RECORD_BYTES;
        system::commit(&file, (RINGS_AT + ring * RING_BYTES + from) as u64, PIECE_BYTES as u64).ok()?;
        known.committed += PIECE_RECORDS;
        // SAFETY: the piece is within the ring.
        system::populate(unsafe { known.records.cast::<u8>().add(from) }, PIECE_BYTES);
        Some(known.committed)
    }
}

/// The recorder's position; an invalid one counts as 0.
pub fn tail(entry: &Entry, head: u64) -> u64 {
    for _ in 0..64 {
        let tail = entry.tail.load(Ordering::Acquire);
        // The recorder writes both; if they differ, the write is incomplete.
        let whole = tail == entry.tail_again.load(Ordering::Acquire);
        if whole && tail <= head && head - tail <= RING_RECORDS {
            return tail;
        }
    }
    head.saturating_sub(RING_RECORDS)
}
