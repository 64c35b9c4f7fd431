//! A second opinion on stacks, for tests: the unwinder of the compiler's library.

use core::ffi::{c_int, c_void};
use core::mem::transmute;

use crate::link::address;
use crate::walk::{MAX_FRAMES, Walker};

struct Seen {
    addresses: [u64; MAX_FRAMES + 64],
    len: usize,
}

extern "C" fn note(context: *mut c_void, seen: *mut Seen) -> c_int {
    // SAFETY: the symbol's type; the unwinder passes on what it was given.
    unsafe {
        let address_of: extern "C" fn(*mut c_void) -> u64 = transmute(address!("_Unwind_GetIP"));
        let seen = &mut *seen;
        if let Some(place) = seen.addresses.get_mut(seen.len) {
            *place = address_of(context);
            seen.len += 1;
        }
    }
    0
}

/// Whether the compiler's unwinder, where the program has it, finds the same stack.
pub fn agrees(walker: &Walker) -> bool {
    if address!("_Unwind_Backtrace") == 0 || address!("_Unwind_GetIP") == 0 {
        return true;
    }
    let mut seen = Seen { addresses: [0; MAX_FRAMES + 64], len: 0 };
    // SAFETY: the symbol's type.
    unsafe {
        let backtrace: extern "C" fn(extern "C" fn(*mut c_void, *mut Seen) -> c_int, *mut Seen) -> c_int =
            transmute(address!("_Unwind_Backtrace"));
        backtrace(note, &mut seen);
    }
    let seen = &seen.addresses[..seen.len];
    let mut ours = walker.addresses().filter(|address| *address != 0).peekable();
    let Some(leaf) = ours.peek().copied() else { return true };
    let Some(start) = seen.iter().position(|address| *address == leaf) else { return false };
    let mut theirs = seen[start..].iter().copied().filter(|address| *address != 0);
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (ours, theirs) if ours == theirs => {}
            _ => return false,
        }
    }
}
