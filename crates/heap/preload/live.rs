//! The live blocks: where each was allocated, its size and its time.

use core::cell::UnsafeCell;

use crate::lock::Lock;
use crate::sys;

const SHARDS: usize = 64;
const FIRST_SLOTS: usize = 256;
const RECORD_BITS: u32 = 20;
const WEIGHT_BITS: u32 = 20;
/// Ticks are kept in units of 16: 44 bits of them last for a day.
const TICK_SHIFT: u32 = 4;

/// A live block.
#[derive(Clone, Copy)]
pub struct Block {
    address: u64,
    size_and_record: u64,
    ticks_and_weight: u64,
}

impl Block {
    pub fn new(address: u64, size: u64, record: u32, ticks: u64, weight: u64) -> Self {
        Self {
            address,
            size_and_record: size << RECORD_BITS | u64::from(record),
            ticks_and_weight: ticks >> TICK_SHIFT << WEIGHT_BITS | weight,
        }
    }

    pub fn size(self) -> u64 {
        self.size_and_record >> RECORD_BITS
    }

    pub fn record(self) -> u32 {
        (self.size_and_record & ((1 << RECORD_BITS) - 1)) as u32
    }

    /// How many allocations it stands for.
    pub fn weight(self) -> u64 {
        self.ticks_and_weight & ((1 << WEIGHT_BITS) - 1)
    }

    pub fn age_ticks(self, now: u64) -> u64 {
        const MASK: u64 = u64::MAX >> WEIGHT_BITS;
        ((now >> TICK_SHIFT).wrapping_sub(self.ticks_and_weight >> WEIGHT_BITS) & MASK) << TICK_SHIFT
    }
}

#[repr(align(64))]
struct Shard {
    lock: Lock,
    content: UnsafeCell<Content>,
}

struct Content {
    len: usize,
    mask: usize,
    slots: *mut Block,
}

/// All live blocks, by address. Zeroed memory is an empty map.
pub struct Live {
    shards: [Shard; SHARDS],
}

fn hash(address: u64) -> u64 {
    (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What [`Live::insert`] found.
pub enum Inserted {
    New,
    /// The release of this block was not seen.
    Replaced(Block),
    NoMemory,
}

impl Live {
    #[inline]
    fn shard(&self, hash: u64) -> &Shard {
        &self.shards[(hash >> 58) as usize % SHARDS]
    }

    pub fn insert(&self, block: Block) -> Inserted {
        let hash = hash(block.address);
        let shard = self.shard(hash);
        let _held = shard.lock.hold();
        // SAFETY: the lock is held.
        unsafe { (*shard.content.get()).insert(hash, block) }
    }

    pub fn remove(&self, address: u64) -> Option<Block> {
        let hash = hash(address);
        let shard = self.shard(hash);
        let _held = shard.lock.hold();
        // SAFETY: the lock is held.
        unsafe { (*shard.content.get()).remove(hash, address) }
    }
}

impl Content {
    #[inline]
    fn slot_of(&self, hash: u64) -> usize {
        (hash >> 26) as usize & self.mask
    }

    /// # Safety
    /// The slot is within the map.
    #[inline]
    unsafe fn at(&self, slot: usize) -> *mut Block {
        // SAFETY: the caller's.
        unsafe { self.slots.add(slot) }
    }

    unsafe fn insert(&mut self, hash: u64, block: Block) -> Inserted {
        // SAFETY: slots stay within the mask.
        unsafe {
            if (self.slots.is_null() || self.len * 3 >= (self.mask + 1) * 2) && !self.grow() && self.is_full() {
                return Inserted::NoMemory;
            }
            let mut slot = self.slot_of(hash);
            loop {
                let at = self.at(slot);
                if (*at).address == 0 {
                    *at = block;
                    self.len += 1;
                    return Inserted::New;
                }
                if (*at).address == block.address {
                    return Inserted::Replaced(core::mem::replace(&mut *at, block));
                }
                slot = (slot + 1) & self.mask;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.slots.is_null() || self.len >= self.mask
    }

    unsafe fn remove(&mut self, hash: u64, address: u64) -> Option<Block> {
        if self.slots.is_null() {
            return None;
        }
        // SAFETY: slots stay within the mask.
        unsafe {
            let mut slot = self.slot_of(hash);
            let found = loop {
                let block = *self.at(slot);
                match block.address {
                    0 => return None,
                    of if of == address => break block,
                    _ => slot = (slot + 1) & self.mask,
                }
            };
            self.len -= 1;
            self.close_gap(slot);
            Some(found)
        }
    }

    /// Moves later blocks of the chain into the gap, so that searches find them.
    unsafe fn close_gap(&mut self, mut gap: usize) {
        let mut next = gap;
        // SAFETY: slots stay within the mask.
        unsafe {
            loop {
                next = (next + 1) & self.mask;
                let block = *self.at(next);
                if block.address == 0 {
                    break;
                }
                let home = self.slot_of(crate::live::hash(block.address));
                if (next.wrapping_sub(home) & self.mask) >= (next.wrapping_sub(gap) & self.mask) {
                    *self.at(gap) = block;
                    gap = next;
                }
            }
            (*self.at(gap)).address = 0;
        }
    }

    #[cold]
    unsafe fn grow(&mut self) -> bool {
        let slots = if self.slots.is_null() { FIRST_SLOTS } else { (self.mask + 1) * 2 };
        let larger = sys::map_private(slots * size_of::<Block>()).cast::<Block>();
        if larger.is_null() {
            return false;
        }
        let old = core::mem::replace(self, Self { len: self.len, mask: slots - 1, slots: larger });
        if old.slots.is_null() {
            return true;
        }
        // SAFETY: both maps are whole, and the lock is held.
        unsafe {
            for slot in 0..=old.mask {
                let block = *old.at(slot);
                if block.address == 0 {
                    continue;
                }
                let mut slot = self.slot_of(hash(block.address));
                while (*self.at(slot)).address != 0 {
                    slot = (slot + 1) & self.mask;
                }
                *self.at(slot) = block;
            }
            sys::unmap(old.slots.cast(), (old.mask + 1) * size_of::<Block>());
        }
        true
    }
}
