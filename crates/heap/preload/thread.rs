//! What the library keeps for a thread.
//!
//! No destructor runs when a thread ends: other destructors may still free memory. The next thread that starts looks for
//! memory of threads that are gone.

use core::sync::atomic::{AtomicU32, Ordering::*};

use crate::link::thread_slot;
use crate::process::Process;
use crate::sample::Sampler;
use crate::sys;
use crate::walk::Walker;

pub struct Thread {
    /// Its id; 0 if it has not started.
    pub owner: AtomicU32,
    /// [`Thread::owner`] when the fields below were last set.
    started: u32,
    /// Its place in the table.
    pub number: u32,
    /// Whether other threads have the same number.
    pub is_shared: bool,
    /// Set while it counts. What it allocates meanwhile is ours, or a signal handler's.
    busy: bool,
    /// The address of its last allocation, if that is not freed.
    pub last: u64,
    /// Its allocations up to `last`, if samples are recorded.
    pub last_calls: u64,
    /// The record of the last stack.
    pub record: u32,
    pub has_record: bool,
    pub walker: Walker,
    pub records: Records,
    pub sampler: Sampler,
}

/// A thread that counts. Ends when dropped.
pub struct Entered {
    pub thread: &'static mut Thread,
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        self.thread.busy = false;
    }
}

/// The present thread, unless it counts already.
#[inline]
pub fn enter(process: &Process) -> Option<Entered> {
    // SAFETY: the slot is this thread's. What it points to stays mapped; a child of `fork` finds it zeroed.
    let thread = unsafe { (*thread_slot()).thread.cast::<Thread>().as_mut() };
    let thread = match thread {
        Some(thread) if thread.started != 0 => thread,
        _ => start(process)?,
    };
    if thread.busy {
        process.table.add(|header| unsafe { &raw mut (*header).missed }, 1);
        return None;
    }
    thread.busy = true;
    Some(Entered { thread })
}

#[cold]
fn start(process: &Process) -> Option<&'static mut Thread> {
    let Some(thread) = process.claim_thread() else {
        process.table.add(|header| unsafe { &raw mut (*header).missed }, 1);
        return None;
    };
    let tid = thread.owner.load(Relaxed);
    (thread.number, thread.is_shared) = process.table.add_thread(tid, sys::ticks());
    thread.busy = false;
    thread.last = 0;
    thread.has_record = false;
    thread.walker.forget();
    thread.records.clear();
    // SAFETY: the slot is this thread's.
    let slot = unsafe { &mut *thread_slot() };
    thread.sampler.start(process, tid, slot);
    thread.started = tid;
    slot.thread = core::ptr::from_mut(thread).cast();
    Some(thread)
}

/// The records of a thread, by node.
pub struct Records {
    len: usize,
    mask: usize,
    slots: *mut [u32; 2],
}

impl Records {
    const FIRST_SLOTS: usize = 1024;

    fn clear(&mut self) {
        if self.len > 0 {
            for slot in 0..=self.mask {
                // SAFETY: within the slots.
                unsafe { *self.slots.add(slot) = [0, 0] };
            }
            self.len = 0;
        }
    }

    fn slot_of(&self, node: u32) -> usize {
        (u64::from(node).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & self.mask
    }

    /// The record of a node, new if need be. `None` if there is no room.
    #[inline]
    pub fn of(&mut self, node: u32, thread: u32, process: &Process) -> Option<u32> {
        if !self.slots.is_null() {
            let mut slot = self.slot_of(node);
            loop {
                // SAFETY: within the slots. A slot holds the node plus 1.
                let [of, record] = unsafe { *self.slots.add(slot) };
                match of {
                    0 => break,
                    of if of == node + 1 => return Some(record),
                    _ => slot = (slot + 1) & self.mask,
                }
            }
        }
        let record = process.table.add_record(node, thread)?;
        self.insert(node, record);
        Some(record)
    }

    #[cold]
    fn insert(&mut self, node: u32, record: u32) {
        if self.slots.is_null() || self.len * 3 >= (self.mask + 1) * 2 {
            let slots = if self.slots.is_null() { Self::FIRST_SLOTS } else { (self.mask + 1) * 2 };
            let larger = sys::map_private(slots * 8).cast::<[u32; 2]>();
            if larger.is_null() {
                return;
            }
            let old = core::mem::replace(self, Self { len: 0, mask: slots - 1, slots: larger });
            if !old.slots.is_null() {
                // SAFETY: both are whole.
                unsafe {
                    for slot in 0..=old.mask {
                        let [node, record] = *old.slots.add(slot);
                        if node != 0 {
                            self.put(node, record);
                        }
                    }
                    sys::unmap(old.slots.cast(), (old.mask + 1) * 8);
                }
            }
        }
        self.put(node + 1, record);
    }

    fn put(&mut self, key: u32, record: u32) {
        let mut slot = self.slot_of(key - 1);
        // SAFETY: within the slots, of which some are free.
        unsafe {
            while (*self.slots.add(slot))[0] != 0 {
                slot = (slot + 1) & self.mask;
            }
            *self.slots.add(slot) = [key, record];
        }
        self.len += 1;
    }
}
