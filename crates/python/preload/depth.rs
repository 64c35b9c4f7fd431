//! How much of its stack a thread uses.
//!
//! From CPython 3.11 on, calls between Python functions take no native stack, unless there is an evaluator. Programs that raise the
//! limit of recursion rely on that.

use core::arch::asm;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::symbols::first;
use crate::sys;

/// The main thread's block (`fs:0`), its stack pointer when the library was loaded, and how much of its stack is for frames with
/// an evaluator.
static MAIN: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
/// The block of another thread, and the same limit for it.
static LAST: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Bytes that each thread has.
const FEW: usize = 64 << 10;
/// Bytes for frames with an evaluator, at most: some 1,600 frames of Python.
const MOST: usize = 1 << 20;
/// The same for CPython 3.12, which allows 750 native calls.
const MOST_OF_3_12: usize = 160 << 10;
/// Stacks are smaller.
const NO_STACK: usize = 1 << 32;

/// Must be called by the main thread, near the start of its stack.
pub fn start(minor_version: u8) {
    MAIN[0].store(thread_block(), Relaxed);
    MAIN[1].store(stack_pointer(), Relaxed);
    let most = if minor_version == 12 { MOST_OF_3_12 } else { MOST };
    MAIN[2].store((sys::stack_limit() / 4).min(most), Relaxed);
}

/// Whether calls should take no more native stack.
#[inline]
pub fn is_deep() -> bool {
    let (block, sp) = (thread_block(), stack_pointer());
    if block == MAIN[0].load(Relaxed) {
        let used = MAIN[1].load(Relaxed).wrapping_sub(sp);
        return used > MAIN[2].load(Relaxed) && used < NO_STACK;
    }
    // The C libraries put the block of a thread at the start of its stack. Coroutines may have stacks elsewhere.
    let used = block.wrapping_sub(sp);
    used > FEW && used < NO_STACK && used > limit_of(block)
}

#[cold]
fn limit_of(block: usize) -> usize {
    if LAST[0].load(Relaxed) != block {
        let most = MAIN[2].load(Relaxed).max(FEW);
        LAST[1].store((stack_bytes(block) / 4).clamp(FEW, most), Relaxed);
        LAST[0].store(block, Relaxed);
    }
    LAST[1].load(Relaxed)
}

/// The size of a thread's stack. 0 where it is unknown.
fn stack_bytes(thread: usize) -> usize {
    /// `pthread_attr_t` is smaller.
    #[repr(C, align(16))]
    struct Attributes([u8; 128]);
    type Attribute = extern "C" fn(*mut Attributes, *mut c_void) -> i32;
    let [read, size, destroy] =
        [c"pthread_getattr_np", c"pthread_attr_getstacksize", c"pthread_attr_destroy"].map(first);
    if read == 0 || size == 0 || destroy == 0 {
        return 0;
    }
    let (mut attributes, mut bytes) = (Attributes([0; 128]), 0_usize);
    // SAFETY: functions of POSIX threads with their types. The block is what identifies a thread.
    unsafe {
        let read: extern "C" fn(usize, *mut Attributes) -> i32 = core::mem::transmute(read);
        let size: Attribute = core::mem::transmute(size);
        let destroy: extern "C" fn(*mut Attributes) -> i32 = core::mem::transmute(destroy);
        if read(thread, &raw mut attributes) == 0 {
            size(&raw mut attributes, (&raw mut bytes).cast());
            destroy(&raw mut attributes);
        }
    }
    bytes
}

#[inline]
fn thread_block() -> usize {
    let block: usize;
    // SAFETY: each thread has the address of its block there (System V ABI for AMD64).
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) block, options(nostack, readonly, preserves_flags)) };
    block
}

#[inline]
fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: copies a register.
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}
