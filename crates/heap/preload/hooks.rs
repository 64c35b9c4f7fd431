//! `malloc` and its family, as the program calls them.
//!
//! Each is a few instructions that pass on where the caller's stack starts, and jump to the function that counts.

use core::arch::{asm, naked_asm};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

use crate::count::{add_tail, allocated, caller, released, take_back};
use crate::link::{self, Slot, address};
use crate::process::{Process, function};
use crate::sample::FILTER;

/// A hook: the return address is at the stack pointer, and the frame pointer is the caller's. They become the last arguments.
macro_rules! hook {
    ($($(#[$doc:meta])* $name:ident($stack:literal, $frame:literal) = $target:path;)*) => {$(
        $(#[$doc])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {
            naked_asm!("endbr64", concat!("mov ", $stack, ", rsp"), concat!("mov ", $frame, ", rbp"), "jmp {}", sym $target)
        }
    )*};
}

hook! {
    calloc("rdx", "rcx") = count_calloc;
    realloc("rdx", "rcx") = count_realloc;
    reallocarray("rcx", "r8") = count_reallocarray;
    posix_memalign("rcx", "r8") = count_posix_memalign;
    aligned_alloc("rdx", "rcx") = count_memalign;
    memalign("rdx", "rcx") = count_memalign;
    valloc("rsi", "rdx") = count_valloc;
    pvalloc("rsi", "rdx") = count_pvalloc;
}

/// Allocates. A block that is not sampled only counts down: nothing else is touched.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn malloc() {
    naked_asm!(
        ".hidden stepscope_heap_malloc",
        ".globl stepscope_heap_malloc",
        "stepscope_heap_malloc:",
        "endbr64",
        "mov rax, qword ptr [rip + stepscope_heap_slot@GOTTPOFF]",
        "cmp qword ptr fs:[rax + 8], rdi",
        "jbe 2f",
        "sub qword ptr fs:[rax + 8], rdi",
        "inc qword ptr fs:[rax + 16]",
        "jmp qword ptr [rip + {allocator}]",
        "2:",
        "mov rsi, rsp",
        "mov rdx, rbp",
        "jmp {count}",
        allocator = sym DIRECT_MALLOC,
        count = sym count_malloc,
    )
}

/// Releases a block. One that cannot be a sampled one passes.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn free(block: *mut u8) {
    naked_asm!(
        "endbr64",
        "mov rax, rdi",
        "shr rax, 4",
        "movzx eax, ax",
        "lea rcx, [rip + {filter}]",
        "cmp byte ptr [rcx + rax], 0",
        "jne 2f",
        "jmp qword ptr [rip + {free}]",
        "2:",
        "jmp {count}",
        filter = sym FILTER,
        free = sym DIRECT_FREE,
        count = sym count_free,
    )
}

const _: () = {
    assert!(core::mem::offset_of!(Slot, left) == 8);
    assert!(core::mem::offset_of!(Slot, calls) == 16);
};

/// The allocator's `malloc`. Threads use it once they count down.
static DIRECT_MALLOC: AtomicUsize = AtomicUsize::new(0);
/// Where blocks go that are not sampled: the allocator's `free`, or to be counted.
static DIRECT_FREE: AtomicPtr<()> = AtomicPtr::new(count_free as *mut ());

/// From now on, only blocks that may be sampled are counted when they are released.
pub fn let_free_pass() {
    // Memory of the search is not the allocator's.
    let start = &raw const EARLY as u64;
    FILTER.add_all(start..start + EARLY_BYTES as u64);
    DIRECT_FREE.store(ALLOCATOR.free.load(Relaxed) as *mut (), Release);
}

/// The allocator that the program would use.
struct Allocator {
    malloc: AtomicUsize,
    calloc: AtomicUsize,
    realloc: AtomicUsize,
    free: AtomicUsize,
    memalign: AtomicUsize,
    dlclose: AtomicUsize,
    phase: AtomicU32,
}

const NEW: u32 = 0;
const SEARCHING: u32 = 1;
const READY: u32 = 2;

static ALLOCATOR: Allocator = Allocator {
    malloc: AtomicUsize::new(0),
    calloc: AtomicUsize::new(0),
    realloc: AtomicUsize::new(0),
    free: AtomicUsize::new(0),
    memalign: AtomicUsize::new(0),
    dlclose: AtomicUsize::new(0),
    phase: AtomicU32::new(NEW),
};

type Malloc = extern "C" fn(usize) -> *mut u8;
type Calloc = extern "C" fn(usize, usize) -> *mut u8;
type Realloc = extern "C" fn(*mut u8, usize) -> *mut u8;
type Free = extern "C" fn(*mut u8);
type Memalign = extern "C" fn(usize, usize) -> *mut u8;

/// Memory for what the search for the allocator allocates. It is never freed.
#[repr(align(4096))]
struct Early(#[expect(dead_code)] [u8; EARLY_BYTES]);

const EARLY_BYTES: usize = 64 << 10;
static mut EARLY: Early = Early([0; EARLY_BYTES]);
static EARLY_USED: AtomicUsize = AtomicUsize::new(0);

fn early(size: usize, align: usize) -> *mut u8 {
    const HEAD: usize = 16;
    let align = align.max(16);
    let bytes = match size.checked_add(HEAD + align) {
        Some(bytes) if bytes <= EARLY_BYTES => (bytes + 15) & !15,
        _ => return null_mut(),
    };
    let start = EARLY_USED.fetch_add(bytes, Relaxed);
    if start + bytes > EARLY_BYTES {
        return null_mut();
    }
    // SAFETY: this part belongs to this call alone.
    unsafe {
        let at = (&raw mut EARLY).cast::<u8>().add(start + HEAD);
        let at = at.add(at.align_offset(align));
        *at.cast::<usize>().sub(1) = size;
        at
    }
}

fn is_early(at: *const u8) -> bool {
    (at as usize).wrapping_sub(&raw const EARLY as usize) < EARLY_BYTES
}

impl Allocator {
    #[inline]
    fn is_ready(&self) -> bool {
        self.phase.load(Acquire) == READY || self.search()
    }

    /// Finds the allocator. `false` while that is going on: `dlsym` may allocate.
    #[cold]
    fn search(&self) -> bool {
        if self.phase.compare_exchange(NEW, SEARCHING, AcqRel, Acquire).is_err() {
            return self.phase.load(Acquire) == READY;
        }
        let or = |found: usize, libc: usize| if found == 0 { libc } else { found };
        self.malloc.store(or(link::next(c"malloc"), address!("__libc_malloc")), Relaxed);
        self.calloc.store(or(link::next(c"calloc"), address!("__libc_calloc")), Relaxed);
        self.realloc.store(or(link::next(c"realloc"), address!("__libc_realloc")), Relaxed);
        self.free.store(or(link::next(c"free"), address!("__libc_free")), Relaxed);
        self.memalign.store(or(link::next(c"memalign"), address!("__libc_memalign")), Relaxed);
        DIRECT_MALLOC.store(self.malloc.load(Relaxed), Release);
        self.dlclose.store(link::next(c"dlclose"), Relaxed);
        self.phase.store(READY, Release);
        true
    }
}

/// The function of the allocator.
#[inline]
fn of<T: Copy>(slot: &AtomicUsize) -> Option<T> {
    function(slot.load(Relaxed))
}

#[inline]
fn count(block: *mut u8, size: usize, stack_pointer: *const u64, frame_pointer: u64) -> *mut u8 {
    if !block.is_null()
        && let Some(process) = Process::get()
    {
        allocated(process, block as u64, size as u64, caller(stack_pointer, frame_pointer));
    }
    block
}

extern "C" fn count_malloc(size: usize, stack_pointer: *const u64, frame_pointer: u64) -> *mut u8 {
    if !ALLOCATOR.is_ready() {
        return early(size, 16);
    }
    let Some(malloc) = of::<Malloc>(&ALLOCATOR.malloc) else { return null_mut() };
    count(malloc(size), size, stack_pointer, frame_pointer)
}

extern "C" fn count_calloc(len: usize, size: usize, stack_pointer: *const u64, frame_pointer: u64) -> *mut u8 {
    if !ALLOCATOR.is_ready() {
        return len.checked_mul(size).map_or(null_mut(), |bytes| early(bytes, 16));
    }
    let Some(calloc) = of::<Calloc>(&ALLOCATOR.calloc) else { return null_mut() };
    count(calloc(len, size), len.wrapping_mul(size), stack_pointer, frame_pointer)
}

extern "C" fn count_realloc(old: *mut u8, size: usize, stack_pointer: *const u64, frame_pointer: u64) -> *mut u8 {
    if !ALLOCATOR.is_ready() || is_early(old) {
        return leave_early(old, size, stack_pointer, frame_pointer);
    }
    let Some(realloc) = of::<Realloc>(&ALLOCATOR.realloc) else { return null_mut() };
    let Some(process) = Process::get() else { return realloc(old, size) };
    if old.is_null() {
        return count(realloc(old, size), size, stack_pointer, frame_pointer);
    }
    let release = released(process, old as u64);
    let new = realloc(old, size);
    if new.is_null() && size > 0 {
        take_back(process, release);
        return new;
    }
    count(new, size, stack_pointer, frame_pointer)
}

#[cold]
fn leave_early(old: *mut u8, size: usize, stack_pointer: *const u64, frame_pointer: u64) -> *mut u8 {
    let new = count_malloc(size, stack_pointer, frame_pointer);
    if !new.is_null() && is_early(old) {
        // SAFETY: the size stands before the block.
        unsafe {
            let bytes = (*old.cast::<usize>().sub(1)).min(size);
            core::ptr::copy_nonoverlapping(old, new, bytes);
        }
    }
    new
}

extern "C" fn count_reallocarray(
    old: *mut u8,
    len: usize,
    size: usize,
    stack_pointer: *const u64,
    frame_pointer: u64,
) -> *mut u8 {
    match len.checked_mul(size) {
        Some(bytes) => count_realloc(old, bytes, stack_pointer, frame_pointer),
        // The allocator refuses, and sets `errno`.
        None => of::<Calloc>(&ALLOCATOR.calloc).map_or(null_mut(), |calloc| calloc(len, size)),
    }
}

extern "C" fn count_memalign(align: usize, size: usize, stack_pointer: *const u64, frame_pointer: u64) -> *mut u8 {
    if !ALLOCATOR.is_ready() {
        return early(size, align);
    }
    let Some(memalign) = of::<Memalign>(&ALLOCATOR.memalign) else { return null_mut() };
    count(memalign(align, size), size, stack_pointer, frame_pointer)
}

extern "C" fn count_posix_memalign(
    place: *mut *mut u8,
    align: usize,
    size: usize,
    stack_pointer: *const u64,
    frame_pointer: u64,
) -> i32 {
    const EINVAL: i32 = 22;
    const ENOMEM: i32 = 12;
    if !align.is_power_of_two() || align % size_of::<usize>() != 0 {
        return EINVAL;
    }
    let block = count_memalign(align, size, stack_pointer, frame_pointer);
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: the caller's place.
    unsafe { *place = block };
    0
}

const PAGE: usize = 4096;

extern "C" fn count_valloc(size: usize, stack_pointer: *const u64, frame_pointer: u64) -> *mut u8 {
    count_memalign(PAGE, size, stack_pointer, frame_pointer)
}

extern "C" fn count_pvalloc(size: usize, stack_pointer: *const u64, frame_pointer: u64) -> *mut u8 {
    match size.checked_add(PAGE - 1) {
        Some(size) => count_memalign(PAGE, size & !(PAGE - 1), stack_pointer, frame_pointer),
        None => null_mut(),
    }
}

extern "C" fn count_free(block: *mut u8) {
    if block.is_null() || is_early(block) || !ALLOCATOR.is_ready() {
        return;
    }
    if let Some(process) = Process::get() {
        released(process, block as u64);
    }
    if let Some(free) = of::<Free>(&ALLOCATOR.free) {
        free(block);
    }
}

/// C23
#[unsafe(no_mangle)]
pub extern "C" fn free_sized(block: *mut u8, _size: usize) {
    free(block);
}

/// C23
#[unsafe(no_mangle)]
pub extern "C" fn free_aligned_sized(block: *mut u8, _align: usize, _size: usize) {
    free(block);
}

/// Unloads a module. Rules and stacks of its code are forgotten: other code may come to its addresses.
#[unsafe(no_mangle)]
pub extern "C" fn dlclose(handle: *mut u8) -> i32 {
    if !ALLOCATOR.is_ready() {
        return -1;
    }
    let Some(close) = of::<extern "C" fn(*mut u8) -> i32>(&ALLOCATOR.dlclose) else { return -1 };
    let result = close(handle);
    if let Some(process) = Process::get() {
        process.rules.reset();
    }
    result
}

/// Where this library's `malloc` is. Its public symbol may be that of the program, which comes first.
fn own_malloc() -> usize {
    let address: usize;
    // SAFETY: reads no memory.
    unsafe {
        asm!("lea {}, [rip + stepscope_heap_malloc]", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    address
}

/// Runs when the library is loaded: a program that never allocates has a table, too.
extern "C" fn load() {
    if ALLOCATOR.is_ready()
        && let Some(process) = Process::get()
    {
        process.note_allocators(own_malloc());
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

/// Runs when the program ends by `exit`.
extern "C" fn unload() {
    if ALLOCATOR.is_ready()
        && let Some(process) = Process::get()
    {
        add_tail(process);
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;
