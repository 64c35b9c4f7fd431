//! The shared table: threads, call tree nodes and records, in a file that the recorder reads.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*, fence};

use crate::layout::*;
use crate::lock::Lock;
use crate::sys;

/// A hash index over nodes. Readers take no lock; a larger one replaces it, and the old one stays readable.
struct Index {
    mask: usize,
    slots: *mut AtomicU32,
}

/// Part of the file that has memory, in entries.
struct Committed {
    nodes: AtomicU32,
    records: AtomicU32,
    bursts: AtomicU32,
}

pub struct Table {
    base: *mut u8,
    lock: Lock,
    committed: Committed,
    index: AtomicPtr<Index>,
}

fn hash(parent: u32, address: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (address ^ u64::from(parent).rotate_left(40)).wrapping_mul(GOLDEN);
    (mixed ^ mixed >> 29).wrapping_mul(GOLDEN) >> 20
}

impl Table {
    /// Maps a new table into memory that is zeroed. `false` if there is no room.
    ///
    /// # Safety
    /// `self` is zeroed memory, and nothing else uses it yet.
    pub unsafe fn init(&mut self, file: i32) -> bool {
        const FIRST_SLOTS: usize = 4096;
        if !sys::truncate(file, FILE_BYTES) || !sys::allocate(file, 0, THREADS_AT + 4096) {
            return false;
        }
        self.base = sys::map_file(file, FILE_BYTES);
        if self.base.is_null() {
            return false;
        }
        let index = new_index(FIRST_SLOTS);
        if index.is_null() {
            return false;
        }
        self.index.store(index, Release);
        if !self.commit(NODES_AT, size_of::<Node>(), &self.committed.nodes, MAX_NODES) {
            return false;
        }
        self.header_nodes().store(FIRST_NODE, Release);
        self.commit(RECORDS_AT, size_of::<Record>(), &self.committed.records, MAX_RECORDS)
    }

    pub fn header(&self) -> *mut Header {
        self.base.cast()
    }

    fn counter(&self, field: *mut u32) -> &AtomicU32 {
        // SAFETY: a field of the header, which stays mapped.
        unsafe { AtomicU32::from_ptr(field) }
    }

    fn header_nodes(&self) -> &AtomicU32 {
        // SAFETY: the header stays mapped.
        unsafe { self.counter(&raw mut (*self.header()).nodes) }
    }

    fn header_records(&self) -> &AtomicU32 {
        // SAFETY: the header stays mapped.
        unsafe { self.counter(&raw mut (*self.header()).records) }
    }

    pub fn add(&self, field: impl Fn(*mut Header) -> *mut u64, by: u64) {
        // SAFETY: a field of the header, which stays mapped.
        unsafe { AtomicU64::from_ptr(field(self.header())) }.fetch_add(by, Relaxed);
    }

    pub fn set_flag(&self, flag: u32) {
        // SAFETY: a field of the header, which stays mapped.
        unsafe { self.counter(&raw mut (*self.header()).flags) }.fetch_or(flag, Relaxed);
    }

    /// Takes memory for more entries.
    fn commit(&self, area: usize, entry: usize, committed: &AtomicU32, most: usize) -> bool {
        let have = committed.load(Relaxed) as usize * entry;
        let more = (have / 2).max(16 << 10) & !4095;
        let more = more.min((most * entry).saturating_sub(have));
        // SAFETY: within the mapping.
        if more < entry || !unsafe { sys::populate(self.base.add(area + have), more) } {
            self.set_flag(flag::TABLE_FULL);
            return false;
        }
        // Only whole entries count. The rest of the last page counts with the next part.
        committed.store(((have + more) / entry) as u32, Release);
        true
    }

    pub fn node_at(&self, node: u32) -> *mut Node {
        // SAFETY: nodes with numbers are within the file.
        unsafe { self.base.add(NODES_AT).cast::<Node>().add(node as usize) }
    }

    pub fn record_at(&self, record: u32) -> *mut Record {
        // SAFETY: records with numbers are within the file.
        unsafe { self.base.add(RECORDS_AT).cast::<Record>().add(record as usize) }
    }

    pub fn thread_at(&self, thread: u32) -> *mut Thread {
        // SAFETY: threads with numbers are within the file.
        unsafe { self.base.add(THREADS_AT).cast::<Thread>().add(thread as usize) }
    }

    /// Writes a burst to the ring, in the place of an old one. Returns its number.
    #[cold]
    pub fn add_burst(&self, burst: Burst) -> u64 {
        // SAFETY: the header stays mapped.
        let bursts = unsafe { AtomicU64::from_ptr(&raw mut (*self.header()).bursts) };
        let before = bursts.fetch_add(1, Relaxed);
        let place = before as usize % MAX_BURSTS;
        if !self.has_burst(place) {
            return before + 1;
        }
        // SAFETY: there is memory for it.
        unsafe {
            let at = self.base.add(BURSTS_AT).cast::<Burst>().add(place);
            let number = AtomicU64::from_ptr(&raw mut (*at).number);
            number.store(0, Relaxed);
            fence(Release);
            *at = Burst { number: 0, ..burst };
            number.store(before + 1, Release);
        }
        before + 1
    }

    /// Whether a place of the ring has memory.
    fn has_burst(&self, place: usize) -> bool {
        let is_there = || place < self.committed.bursts.load(Acquire) as usize;
        if is_there() {
            return true;
        }
        let _held = self.lock.hold();
        is_there() || (self.commit(BURSTS_AT, size_of::<Burst>(), &self.committed.bursts, MAX_BURSTS) && is_there())
    }

    /// The number of a new thread, and whether others share it.
    pub fn add_thread(&self, tid: u32, ticks: u64) -> (u32, bool) {
        const LAST: u32 = MAX_THREADS as u32 - 1;
        // SAFETY: the header stays mapped.
        let threads = unsafe { self.counter(&raw mut (*self.header()).threads) };
        let number = threads.load(Relaxed);
        let number = if number > LAST { LAST } else { threads.fetch_add(1, Relaxed).min(LAST) };
        let is_shared = number == LAST;
        let page = size_of::<Thread>() * number as usize & !4095;
        // SAFETY: within the file.
        unsafe {
            sys::populate(self.base.add(THREADS_AT + page), 4096);
            let thread = self.thread_at(number);
            (*thread).start_ticks = ticks;
            (*thread).shared = u32::from(is_shared);
            (*thread).tid = tid;
        }
        (number, is_shared)
    }

    /// The node of a call, new if need be. The caller's node if there is no more room.
    pub fn node(&self, parent: u32, address: u64) -> u32 {
        let hash = hash(parent, address);
        // SAFETY: an index stays readable once it was published.
        let index = unsafe { &*self.index.load(Acquire) };
        self.find(index, hash, parent, address).unwrap_or_else(|_| self.add_node(hash, parent, address))
    }

    /// The node, or its free slot.
    fn find(&self, index: &Index, hash: u64, parent: u32, address: u64) -> Result<u32, usize> {
        let mut slot = hash as usize & index.mask;
        loop {
            // SAFETY: the mask keeps it within the index.
            let id = unsafe { (*index.slots.add(slot)).load(Acquire) };
            if id == 0 {
                return Err(slot);
            }
            // SAFETY: nodes are complete before the index has them.
            let node = unsafe { &*self.node_at(id) };
            if node.address == address && node.parent == parent {
                return Ok(id);
            }
            slot = (slot + 1) & index.mask;
        }
    }

    #[cold]
    fn add_node(&self, hash: u64, parent: u32, address: u64) -> u32 {
        let _held = self.lock.hold();
        // SAFETY: as above; the lock makes this thread the only writer.
        let mut index = unsafe { &*self.index.load(Acquire) };
        if let Ok(id) = self.find(index, hash, parent, address) {
            return id;
        }
        let id = self.header_nodes().load(Relaxed);
        let is_full = id >= self.committed.nodes.load(Relaxed)
            && !self.commit(NODES_AT, size_of::<Node>(), &self.committed.nodes, MAX_NODES);
        if is_full {
            return parent;
        }
        if id as usize * 2 > index.mask {
            match NonNull::new(self.grown_index(index, id)) {
                // SAFETY: just made.
                Some(larger) => index = unsafe { &*larger.as_ptr() },
                None if id as usize * 8 > index.mask * 7 => return parent,
                None => {}
            }
        }
        // SAFETY: there is memory for it.
        unsafe { *self.node_at(id) = Node { address, parent, unused: 0 } };
        self.header_nodes().store(id + 1, Release);
        if let Err(slot) = self.find(index, hash, parent, address) {
            // SAFETY: a slot of this index.
            unsafe { (*index.slots.add(slot)).store(id, Release) };
        }
        id
    }

    fn grown_index(&self, old: &Index, nodes: u32) -> *mut Index {
        let larger = new_index((old.mask + 1) * 4);
        if larger.is_null() {
            return null_mut();
        }
        for id in FIRST_NODE..nodes {
            // SAFETY: nodes below this number are complete; the new index is not shared yet.
            unsafe {
                let node = *self.node_at(id);
                if let Err(slot) = self.find(&*larger, hash(node.parent, node.address), node.parent, node.address) {
                    (*(*larger).slots.add(slot)).store(id, Relaxed);
                }
            }
        }
        self.index.store(larger, Release);
        larger
    }

    /// A new record. `None` if there is no more room.
    #[cold]
    pub fn add_record(&self, node: u32, thread: u32) -> Option<u32> {
        let _held = self.lock.hold();
        let id = self.header_records().load(Relaxed);
        let is_full = id >= self.committed.records.load(Relaxed)
            && !self.commit(RECORDS_AT, size_of::<Record>(), &self.committed.records, MAX_RECORDS);
        if is_full {
            return None;
        }
        // SAFETY: there is memory for it.
        unsafe {
            (*self.record_at(id)).node = node;
            (*self.record_at(id)).thread = thread;
        }
        self.header_records().store(id + 1, Release);
        Some(id)
    }
}

fn new_index(slots: usize) -> *mut Index {
    let header = size_of::<Index>();
    let at = sys::map_private(header + slots * 4);
    if at.is_null() {
        return null_mut();
    }
    // SAFETY: new zeroed memory, large enough.
    unsafe {
        let index = at.cast::<Index>();
        *index = Index { mask: slots - 1, slots: at.add(header).cast() };
        index
    }
}
