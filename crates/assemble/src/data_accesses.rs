//! Sampled accesses to data, added up in bounded memory.
//!
//! Lines that several threads use are what is asked for, and most lines are of one thread. So when there are too many places, those of
//! lines with one thread so far are dropped, and counted.

use rustc_hash::FxHashMap;
use stepscope_model::{CACHE_LINE_BYTES, Capture, DataAccess, StackId, ThreadId};

use crate::data_source::Hitm;
use crate::entry::{self, ModuleRef, StackRef};

/// Places that are kept: some 30 MB.
const MOST_PLACES: usize = 1 << 18;

/// An address, as an offset from the start of a module's file in memory.
pub(crate) type ObjectPlace = (ModuleRef, u64);

/// Accesses by place.
#[derive(Default)]
pub(crate) struct DataAccesses {
    places: FxHashMap<Place, Sums>,
    dropped: u64,
    /// Whether dropping lines of one thread made no room.
    is_full: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    /// `None` in the kernel, which all processes share.
    process: Option<u32>,
    thread: u32,
    stack: Option<StackRef>,
    address: u64,
    bytes: u32,
    object: Option<ObjectPlace>,
}

impl Place {
    fn line(&self) -> (Option<u32>, u64) {
        (self.process, self.address / CACHE_LINE_BYTES)
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    count: u64,
    reads: u64,
    writes: u64,
    awaited: u64,
    local_hitm: u64,
    remote_hitm: u64,
    latency_cycles: u64,
    /// Whether the CPU says what an access cost.
    has_cost: bool,
}

impl DataAccesses {
    /// Adds an access of a thread of this process.
    pub fn add(&mut self, access: &entry::DataAccess, process: Option<u32>) {
        let place = Place {
            process: process.filter(|_| access.address >> 63 == 0),
            thread: access.thread.0,
            stack: access.stack,
            address: access.address,
            bytes: access.bytes,
            object: access.object,
        };
        if !self.places.contains_key(&place) && !self.has_room() {
            self.dropped += 1;
            return;
        }
        let sums = self.places.entry(place).or_default();
        sums.count += 1;
        sums.reads += u64::from(access.is_read);
        sums.writes += u64::from(access.is_write);
        sums.awaited += u64::from(access.is_awaited);
        if let Some(cost) = access.cost {
            sums.has_cost = true;
            sums.local_hitm += u64::from(cost.hitm == Hitm::Local);
            sums.remote_hitm += u64::from(cost.hitm == Hitm::Remote);
            sums.latency_cycles = sums.latency_cycles.saturating_add(cost.latency_cycles);
        }
    }

    fn has_room(&mut self) -> bool {
        if self.places.len() < MOST_PLACES {
            return true;
        }
        if !self.is_full {
            self.dropped += self.drop_private();
            self.is_full = self.places.len() > MOST_PLACES / 4 * 3;
        }
        !self.is_full
    }

    /// Drops the places of lines that one thread alone used. Returns the number of accesses.
    fn drop_private(&mut self) -> u64 {
        /// More than one thread.
        const SEVERAL: Option<u32> = None;
        let mut threads: FxHashMap<(Option<u32>, u64), Option<u32>> = FxHashMap::default();
        for place in self.places.keys() {
            let of_line = threads.entry(place.line()).or_insert(Some(place.thread));
            if *of_line != Some(place.thread) {
                *of_line = SEVERAL;
            }
        }
        let mut dropped = 0;
        self.places.retain(|place, sums| {
            let is_kept = threads[&place.line()] == SEVERAL;
            dropped += if is_kept { 0 } else { sums.count };
            is_kept
        });
        dropped
    }

    /// Where the accessed lines are, as far as they may be of global variables.
    pub fn objects(&mut self) -> Vec<ObjectPlace> {
        let mut objects: Vec<ObjectPlace> = self.places.keys().filter_map(|place| place.object).collect();
        objects.sort_unstable();
        objects.dedup();
        objects
    }

    /// Keeps the lines that several threads use. Returns the number of other accesses, and of those that had no room; `None` if there
    /// were none at all.
    pub fn keep_shared(&mut self) -> Option<[u64; 2]> {
        if self.places.is_empty() && self.dropped == 0 {
            return None;
        }
        Some([self.drop_private(), self.dropped])
    }

    /// Adds the rows to a capture, in the order of their addresses.
    pub fn add_rows(
        self,
        capture: &mut Capture,
        node: impl Fn(Option<StackRef>) -> Option<StackId>,
        name: impl Fn(ObjectPlace) -> Option<String>,
    ) {
        let mut places: Vec<(Place, Sums)> = self.places.into_iter().collect();
        places.sort_unstable_by_key(|(place, _)| {
            (place.process, place.address, place.bytes, place.thread, place.stack.map(|stack| stack.0))
        });
        for (place, sums) in places {
            let object = place.object.and_then(&name).map(|name| capture.intern_text(&name));
            let known = |value: u64| sums.has_cost.then_some(value);
            capture.data_accesses.push(DataAccess {
                thread: ThreadId(place.thread),
                stack: node(place.stack),
                address: place.address,
                bytes: (place.bytes > 0).then_some(place.bytes.into()),
                object,
                reads: sums.reads,
                writes: sums.writes,
                awaited: (!sums.has_cost).then_some(sums.awaited),
                local_hitm: known(sums.local_hitm),
                remote_hitm: known(sums.remote_hitm),
                latency_cycles: known(sums.latency_cycles),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::ThreadRef;

    fn access(thread: u32, address: u64) -> entry::DataAccess {
        entry::DataAccess {
            thread: ThreadRef(thread),
            stack: None,
            address,
            bytes: 8,
            is_read: true,
            is_write: true,
            is_awaited: thread == 1,
            cost: None,
            object: None,
        }
    }

    #[test]
    fn lines_of_one_thread_are_only_counted() {
        let mut accesses = DataAccesses::default();
        for (thread, address) in [(0, 0x1000), (1, 0x1008), (0, 0x2000), (0, 0x2000), (1, 0x3000)] {
            accesses.add(&access(thread, address), Some(7));
        }
        assert_eq!(accesses.keep_shared(), Some([3, 0]));
        let mut capture = Capture::default();
        accesses.add_rows(&mut capture, |_| None, |_| None);
        let rows: Vec<_> = capture.data_accesses.iter().map(|row| (row.thread.0, row.address, row.writes)).collect();
        assert_eq!(rows, [(0, 0x1000, 1), (1, 0x1008, 1)]);
        assert_eq!(capture.data_accesses[0].local_hitm, None, "software does not know");
        let awaited: Vec<_> = capture.data_accesses.iter().map(|row| row.awaited).collect();
        assert_eq!(awaited, [Some(0), Some(1)]);
    }

    #[test]
    fn lines_of_two_processes_are_not_shared_but_those_of_the_kernel_are() {
        let mut accesses = DataAccesses::default();
        for address in [0x1000, 0xffff_8000_0000_1000] {
            accesses.add(&access(0, address), Some(7));
            accesses.add(&access(1, address), Some(8));
        }
        assert_eq!(accesses.keep_shared(), Some([2, 0]));
        assert_eq!(accesses.places.len(), 2);
    }

    #[test]
    fn memory_is_bounded_and_shared_lines_stay() {
        let mut accesses = DataAccesses::default();
        accesses.add(&access(0, 0), Some(7));
        accesses.add(&access(1, 8), Some(7));
        for line in 1..=MOST_PLACES as u64 + 5 {
            accesses.add(&access(0, line * 64), Some(7));
        }
        assert!(accesses.places.len() <= MOST_PLACES);
        let [private, dropped] = accesses.keep_shared().unwrap();
        assert_eq!(private + dropped, MOST_PLACES as u64 + 5);
        assert!(dropped > 0);
        assert_eq!(accesses.places.len(), 2, "the shared line");
    }
}
