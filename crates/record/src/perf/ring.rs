//! The rings that the kernel writes each CPU's records into, and the order of records across CPUs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{PERF_RECORD_SAMPLE, perf_event_mmap_page};

use super::sample_layout::{Layouts, SAMPLE_TIME_AT, TIME_FROM_END};

/// A ring of one CPU, mapped through the event that leads it.
///
/// The kernel appends at `data_head` and stops where `data_tail` says that we still read; what lies between belongs to
/// us alone, which is why records can be borrowed from it. Records are handed out where they lie and their space is
/// given back afterwards: a stack copy of 32 KiB is never copied again.
pub(super) struct Ring {
    base: *mut u8,
    page: usize,
    length: usize,
    /// Where reading continues; [`Ring::release`] tells the kernel.
    position: u64,
    /// Time of the last record that was taken.
    last_ns: u64,
    leader: RawFd,
}

// SAFETY: the mapping belongs to the ring alone, and no thread's identity is tied to it.
unsafe impl Send for Ring {}

/// A record's place in a ring and what orders it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    kind: u32,
    misc: u16,
    size: u16,
}

/// A record in a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingRecord<'a> {
    pub kind: u32,
    pub misc: u16,
    /// The bytes after the header.
    pub body: &'a [u8],
    pub time: u64,
}

impl<'a> RingRecord<'a> {
    /// The body of a sample with the time that orders it, copied if it has another one.
    pub fn body_at_its_time(&self, copy: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(time) = self.body.get(SAMPLE_TIME_AT..SAMPLE_TIME_AT + 8) else { return self.body };
        if *time == self.time.to_ne_bytes() {
            return self.body;
        }
        copy.clear();
        copy.extend_from_slice(self.body);
        copy[SAMPLE_TIME_AT..SAMPLE_TIME_AT + 8].copy_from_slice(&self.time.to_ne_bytes());
        copy
    }
}

/// Which records to take now.
pub(super) struct Bounds<'a> {
    /// Only records up to and including this time.
    pub until: u64,
    /// The present time.
    pub now: u64,
    /// The open events.
    pub layouts: &'a Layouts,
}

impl Ring {
    /// Maps a ring of `pages` (a power of two) data pages behind the event `leader`.
    pub fn map(leader: &File, pages: NonZeroUsize) -> io::Result<Self> {
        let page = crate::proc::page_bytes() as usize;
        let length = page * pages.get();
        let (protection, fd) = (libc::PROT_READ | libc::PROT_WRITE, leader.as_raw_fd());
        // SAFETY: a new shared mapping at an address the kernel chooses; checked before it is used.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), page + length, protection, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), page, length, position: 0, last_ns: 0, leader: fd })
    }

    /// The event to wait on.
    pub fn leader(&self) -> RawFd {
        self.leader
    }

    /// Bytes of the data part.
    pub fn length(&self) -> usize {
        self.length
    }

    fn control(&self) -> *mut perf_event_mmap_page {
        self.base.cast()
    }

    fn head(&self) -> u64 {
        // SAFETY: the control page is mapped as long as `self` lives; both sides access the word atomically.
        let head = unsafe { AtomicU64::from_ptr(&raw mut (*self.control()).data_head) };
        head.load(Ordering::Acquire)
    }

    /// Gives everything read so far back to the kernel.
    pub fn release(&mut self) {
        // SAFETY: as in `head`.
        let tail = unsafe { AtomicU64::from_ptr(&raw mut (*self.control()).data_tail) };
        tail.store(self.position, Ordering::Release);
    }

    /// The bytes from `at` on, in one piece: `scratch` holds them where they wrap around the end.
    ///
    /// The caller knows that they lie between tail and head.
    fn bytes<'a>(&'a self, at: u64, length: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let start = (at % self.length as u64) as usize;
        // SAFETY: `length` data bytes follow the control page, and between tail and head only we touch them.
        let data = unsafe { std::slice::from_raw_parts(self.base.add(self.page), self.length) };
        let until_end = self.length - start;
        if length <= until_end {
            return &data[start..start + length];
        }
        scratch.clear();
        scratch.extend_from_slice(&data[start..]);
        scratch.extend_from_slice(&data[..length - until_end]);
        scratch
    }

    /// The header at the reading position, if a whole record is there. Headers are aligned and never wrap.
    fn header(&self, head: u64) -> Option<Header> {
        let available = head.wrapping_sub(self.position);
        if available < 8 {
            return None;
        }
        let bytes = self.bytes(self.position, 8, &mut Vec::new()).try_into().map(u64::from_ne_bytes).ok()?;
        let header = Header { kind: bytes as u32, misc: (bytes >> 32) as u16, size: (bytes >> 48) as u16 };
        (header.size >= 8 && u64::from(header.size) <= available).then_some(header)
    }

    /// The time of the record at the reading position.
    ///
    /// A sample with the id of another recorder's event also has the time by the clock of that event. It counts only if
    /// it fits between the record before it and now.
    fn time(&self, header: Header, bounds: &Bounds<'_>) -> u64 {
        let sample = header.kind == PERF_RECORD_SAMPLE;
        let size = usize::from(header.size);
        let at = if sample { 8 } else { size.saturating_sub(TIME_FROM_END) };
        let length = if sample { SAMPLE_TIME_AT + 8 } else { 8 };
        if at + length > size {
            return 0;
        }
        let mut scratch = Vec::new();
        let bytes = self.bytes(self.position + at as u64, length, &mut scratch);
        let time = bytes[length - 8..].try_into().map_or(0, u64::from_ne_bytes);
        let is_plausible = || (self.last_ns..=bounds.now).contains(&time);
        if sample && !bounds.layouts.knows_id_of(bytes) && !is_plausible() {
            return self.last_ns;
        }
        time
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and nothing borrows from a ring being dropped.
        unsafe { libc::munmap(self.base.cast(), self.page + self.length) };
    }
}

/// Takes the records of all rings in the order of their times, up to and including `bounds.until`, and gives their space
/// back.
///
/// A record appears in a ring some time after its time was taken, so the rings are complete only up to a moment ago. The
/// caller passes the time at which it *last* looked: what was being written then has arrived since. (perf has the same rule
/// of finished rounds, by maxima instead of by the clock.)
pub(super) fn drain(
    rings: &mut [Ring],
    bounds: &Bounds<'_>,
    scratch: &mut Vec<u8>,
    mut take: impl FnMut(RingRecord<'_>),
) {
    let heads: Vec<u64> = rings.iter().map(Ring::head).collect();
    let next = |ring: &Ring, index: usize| Some(Reverse((ring.time(ring.header(heads[index])?, bounds), index)));
    let mut order: BinaryHeap<_> = rings.iter().enumerate().filter_map(|(index, ring)| next(ring, index)).collect();
    while let Some(Reverse((time, index))) = order.pop() {
        if time > bounds.until {
            break;
        }
        let ring = &mut rings[index];
        let header = ring.header(heads[index]).expect("it was there when its time was read");
        let body = ring.bytes(ring.position + 8, usize::from(header.size) - 8, scratch);
        take(RingRecord { kind: header.kind, misc: header.misc, body, time });
        ring.position += u64::from(header.size);
        ring.last_ns = time;
        // Large records make the kernel wait for room; small ones are given back together.
        if header.size > 4096 {
            ring.release();
        }
        order.extend(next(ring, index));
    }
    rings.iter_mut().for_each(Ring::release);
}
