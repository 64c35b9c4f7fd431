//! Symbols of other libraries, and what the compiler calls: for each library that is preloaded.

use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use core::ptr::null;

global_asm!(".weak dlsym");

/// The address of a symbol, or 0.
macro_rules! address {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: reads a slot of the global offset table.
        #[allow(unused_unsafe)]
        unsafe {
            core::arch::asm!(concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"), out(reg) address,
                options(nomem, nostack, preserves_flags));
        }
        address
    }};
}
pub(crate) use address;

/// The next definition of a symbol after this library, or 0.
pub fn next(name: &CStr) -> usize {
    const NEXT: *const c_void = -1_isize as *const c_void;
    find(NEXT, name)
}

/// The first definition of a symbol, or 0.
pub fn first(name: &CStr) -> usize {
    find(null(), name)
}

fn find(from: *const c_void, name: &CStr) -> usize {
    let dlsym = address!("dlsym");
    if dlsym == 0 {
        return 0;
    }
    // SAFETY: the symbol's type.
    let dlsym: extern "C" fn(*const c_void, *const c_char) -> usize = unsafe { transmute(dlsym) };
    dlsym(from, name.as_ptr())
}

// What the compiler calls, for this library alone.
global_asm!(
    ".pushsection .text.compiler, \"ax\", @progbits",
    ".hidden memcpy",
    ".globl memcpy",
    ".type memcpy, @function",
    "memcpy:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "rep movsb",
    "ret",
    ".hidden memset",
    ".globl memset",
    ".type memset, @function",
    "memset:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".hidden strlen",
    ".globl strlen",
    ".type strlen, @function",
    "strlen:",
    "xor eax, eax",
    "2: cmp byte ptr [rdi + rax], 0",
    "je 3f",
    "inc rax",
    "jmp 2b",
    "3: ret",
    // Panics end the process: nothing is unwound here.
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
    ".popsection",
);
