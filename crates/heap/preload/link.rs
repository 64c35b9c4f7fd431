//! What the dynamic linker and other libraries offer. Each symbol may be missing.

use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null;

pub(crate) use crate::symbols::address;
pub use crate::symbols::{first, next};

global_asm!(
    ".weak _dl_find_object",
    ".weak dl_iterate_phdr",
    ".weak __libc_malloc",
    ".weak __libc_calloc",
    ".weak __libc_realloc",
    ".weak __libc_free",
    ".weak __libc_memalign",
    ".weak _Unwind_Backtrace",
    ".weak _Unwind_GetIP",
    ".weak __environ",
);

/// What a thread has in static thread-local storage. Hooks know the offsets.
#[repr(C)]
pub struct Slot {
    /// Its state; null until it starts.
    pub thread: *mut c_void,
    /// Bytes until its next sample; 0 if each allocation is recorded, and before it starts.
    pub left: u64,
    /// Its allocations, if samples are recorded.
    pub calls: u64,
}

/// This thread's slot. It lies in static thread-local storage, so that reading it calls nothing: the general way may call
/// `malloc`.
#[inline]
pub fn thread_slot() -> *mut Slot {
    let slot: usize;
    // SAFETY: the offset is that of the slot, from the thread pointer, which is stored at its own address.
    unsafe {
        asm!("mov {0}, qword ptr [rip + stepscope_heap_slot@GOTTPOFF]", "add {0}, qword ptr fs:[0]", out(reg) slot,
            options(nostack, readonly));
    }
    slot as *mut Slot
}

global_asm!(
    ".pushsection .tbss, \"awT\", @nobits",
    ".hidden stepscope_heap_slot",
    ".type stepscope_heap_slot, @object",
    ".size stepscope_heap_slot, 24",
    ".balign 8",
    "stepscope_heap_slot:",
    ".zero 24",
    ".popsection",
);

/// `struct dl_find_object`
#[repr(C)]
struct FoundObject {
    flags: u64,
    start: *const u8,
    end: *const u8,
    map: *const c_void,
    header: *const u8,
    reserved: [u64; 7],
}

/// The sorted unwind table of the module that has this address.
pub fn unwind_table(address: u64) -> Option<*const u8> {
    let find = address!("_dl_find_object");
    if find == 0 {
        return unwind_table_by_search(address);
    }
    // SAFETY: the symbol's type, of glibc 2.35.
    let find: extern "C" fn(u64, *mut FoundObject) -> c_int = unsafe { transmute(find) };
    let mut object =
        FoundObject { flags: 0, start: null(), end: null(), map: null(), header: null(), reserved: [0; 7] };
    (find(address, &mut object) == 0 && !object.header.is_null()).then_some(object.header)
}

/// `Elf64_Phdr`
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_bytes: u64,
    bytes: u64,
    align: u64,
}

/// The start of `struct dl_phdr_info`
#[repr(C)]
struct Object {
    base: u64,
    name: *const c_char,
    segments: *const Segment,
    len: u16,
}

struct Search {
    address: u64,
    header: *const u8,
}

extern "C" fn look(object: *const Object, _len: usize, search: *mut Search) -> c_int {
    const LOAD: u32 = 1;
    const UNWIND: u32 = 0x6474_e550;
    // SAFETY: the linker's description of a loaded module.
    unsafe {
        let (mut is_here, mut header) = (false, null());
        for index in 0..usize::from((*object).len) {
            let segment = &*(*object).segments.add(index);
            let at = (*object).base.wrapping_add(segment.address);
            match segment.kind {
                LOAD => is_here |= (*search).address.wrapping_sub(at) < segment.bytes,
                UNWIND => header = at as *const u8,
                _ => {}
            }
        }
        if is_here {
            (*search).header = header;
        }
        c_int::from(is_here)
    }
}

/// Before glibc 2.35.
#[cold]
fn unwind_table_by_search(address: u64) -> Option<*const u8> {
    let iterate = address!("dl_iterate_phdr");
    if iterate == 0 {
        return None;
    }
    type Look = extern "C" fn(*const Object, usize, *mut Search) -> c_int;
    // SAFETY: the symbol's type.
    let iterate: extern "C" fn(Look, *mut Search) -> c_int = unsafe { transmute(iterate) };
    let mut search = Search { address, header: null() };
    iterate(look, &mut search);
    (!search.header.is_null()).then_some(search.header)
}
