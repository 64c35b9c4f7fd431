//! Machine code: a stub for each code object. All are the same, so memory is filled at once and never written again.
//!
//! At a fixed distance behind each stub stand the address and the length of its code object's bytecode. The recorder reads
//! them to find the instruction that runs (`crates/assemble/src/address_space/python.rs`).

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::null;

use crate::api::{Evaluate, Object};
use crate::lock::Lock;
use crate::sys;

/// Evaluates a frame with CPython's own evaluator.
pub type Stub = extern "C" fn(*mut c_void, *mut c_void, c_int, Evaluate) -> *mut Object;

/// Bytes of a stub.
pub const BYTES: usize = 16;
/// `push rbp; mov rbp, rsp; call rcx; pop rbp; ret`, then `int3`. Unwinding finds the caller by the frame pointer, or by the
/// code after the call.
const CODE: [u8; BYTES] =
    [0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc];
/// Bytes that are mapped at once, and the distance from a stub to its data.
const CHUNK: usize = 64 << 10;
/// Code objects with a stub, at most: programs can make code without end.
const MOST: usize = 1 << 19;

struct Free {
    next: *const u8,
    end: *const u8,
    used: usize,
}

struct Stubs {
    lock: Lock,
    free: UnsafeCell<Free>,
}

// SAFETY: the lock guards it.
unsafe impl Sync for Stubs {}

static STUBS: Stubs = Stubs { lock: Lock::new(), free: UnsafeCell::new(Free { next: null(), end: null(), used: 0 }) };

/// Notes the bytecode of a stub's code object.
///
/// # Safety
/// The stub must be one of [`next`], and known to nobody else yet.
pub unsafe fn set_bytecode(stub: *const u8, start: *const u8, bytes: usize) {
    // SAFETY: each stub has data at this distance.
    unsafe { stub.wrapping_add(CHUNK).cast_mut().cast::<[usize; 2]>().write([start as usize, bytes]) };
}

/// A new stub, or null.
pub fn next() -> *const u8 {
    let _held = STUBS.lock.hold();
    // SAFETY: the lock is held.
    let free = unsafe { &mut *STUBS.free.get() };
    if free.used == MOST {
        return null();
    }
    if free.next == free.end {
        let chunk = sys::map_code(&CODE, CHUNK, c"stepscope-python");
        if chunk.is_null() {
            free.used = MOST;
            return null();
        }
        free.next = chunk;
        free.end = chunk.wrapping_add(CHUNK);
    }
    let stub = free.next;
    free.next = stub.wrapping_add(BYTES);
    free.used += 1;
    stub
}
