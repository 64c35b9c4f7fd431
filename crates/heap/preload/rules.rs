//! The rules of addresses, each found once.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use crate::cfi::{Rule, rule_at};
use crate::link;
use crate::sys;
use crate::walk::State;

const SLOTS: usize = 1 << 15;

struct Slot {
    address: AtomicU64,
    rule: AtomicU64,
}

/// Rules by address. Zeroed memory is not ready: see [`Rules::init`].
pub struct Rules {
    slots: *mut Slot,
    generation: AtomicU32,
}

impl Rules {
    pub fn init(&mut self) -> bool {
        self.slots = sys::map_private(SLOTS * size_of::<Slot>()).cast();
        self.generation.store(1, Relaxed);
        !self.slots.is_null()
    }

    /// Grows when a module is unloaded: other code may come to its addresses.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation.load(Acquire)
    }

    /// Forgets all rules.
    pub fn reset(&self) {
        for slot in 0..SLOTS {
            // SAFETY: within the slots.
            unsafe { (*self.slots.add(slot)).address.store(0, Release) };
        }
        self.generation.fetch_add(1, AcqRel);
    }

    /// The rule of a state.
    #[inline]
    pub fn at(&self, state: &State) -> Rule {
        // A call may be the last instruction of its function.
        let address = state.address.wrapping_sub(u64::from(!state.interrupted));
        let hash = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SLOTS;
        // SAFETY: within the slots.
        let slot = unsafe { &*self.slots.add(hash) };
        if slot.address.load(Acquire) == address {
            let rule = slot.rule.load(Acquire);
            if slot.address.load(Acquire) == address {
                return Rule(rule);
            }
        }
        self.find(slot, address)
    }

    #[cold]
    fn find(&self, slot: &Slot, address: u64) -> Rule {
        let generation = self.generation();
        // SAFETY: the header is that of a loaded module.
        let rule = match link::unwind_table(address) {
            Some(header) => unsafe { rule_at(header, address) },
            // Code may come to this address.
            None => return Rule::UNKNOWN,
        };
        // A writer marks the slot first: a reader that sees its address before and after has its rule.
        let held = slot.address.swap(u64::MAX, AcqRel);
        if held != u64::MAX && generation == self.generation() {
            slot.rule.store(rule.0, Release);
            slot.address.store(address, Release);
        } else if held != u64::MAX {
            slot.address.store(0, Release);
        }
        rule
    }
}
