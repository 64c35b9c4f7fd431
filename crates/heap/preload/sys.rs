//! System calls without libc: they allocate nothing and leave `errno` alone.

use core::arch::asm;
use core::ffi::CStr;

pub const PROT_READ_WRITE: usize = 3;
pub const MAP_SHARED: usize = 1;
pub const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
const MAP_PRIVATE_FIXED: usize = 0x12;
pub const MAP_NORESERVE: usize = 0x4000;
const PAGE: usize = 4096;

mod number {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const MMAP: usize = 9;
    pub const MPROTECT: usize = 10;
    pub const MUNMAP: usize = 11;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const SCHED_YIELD: usize = 24;
    pub const MADVISE: usize = 28;
    pub const GETPID: usize = 39;
    pub const FTRUNCATE: usize = 77;
    pub const GETTID: usize = 186;
    pub const CLOCK_GETTIME: usize = 228;
    pub const TGKILL: usize = 234;
    pub const OPENAT: usize = 257;
    pub const FALLOCATE: usize = 285;
    pub const PRLIMIT64: usize = 302;
    pub const MEMFD_CREATE: usize = 319;
}

/// # Safety
/// As the system call.
unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the registers of the system call interface.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

fn is_error(result: isize) -> bool {
    (-4095..0).contains(&result)
}

/// Maps zeroed private memory. Null if there is none.
///
/// A child of `fork` finds it zeroed: that is how it knows that it is a child.
pub fn map_private(bytes: usize) -> *mut u8 {
    const MADV_WIPEONFORK: usize = 18;
    // SAFETY: a new mapping.
    unsafe {
        let flags = MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE;
        let at = call(number::MMAP, [0, bytes, PROT_READ_WRITE, flags, usize::MAX, 0]);
        if is_error(at) {
            return core::ptr::null_mut();
        }
        if call(number::MADVISE, [at as usize, bytes, MADV_WIPEONFORK, 0, 0, 0]) != 0 {
            unmap(at as *mut u8, bytes);
            return core::ptr::null_mut();
        }
        at as *mut u8
    }
}

/// Lets children of `fork` have a copy of memory that [`map_private`] mapped.
///
/// # Safety
/// The range must be such memory.
pub unsafe fn keep_on_fork(at: *mut u8, bytes: usize) {
    const MADV_KEEPONFORK: usize = 19;
    // SAFETY: the caller's.
    unsafe { call(number::MADVISE, [at as usize, bytes, MADV_KEEPONFORK, 0, 0, 0]) };
}

/// Maps a file that children of `fork` do not have. Null if that fails.
pub fn map_file(file: i32, bytes: usize) -> *mut u8 {
    const MADV_DONTFORK: usize = 10;
    // SAFETY: a new mapping.
    unsafe {
        let at = call(number::MMAP, [0, bytes, PROT_READ_WRITE, MAP_SHARED | MAP_NORESERVE, file as usize, 0]);
        if is_error(at) {
            return core::ptr::null_mut();
        }
        call(number::MADVISE, [at as usize, bytes, MADV_DONTFORK, 0, 0, 0]);
        at as *mut u8
    }
}

/// Maps the first page of a file to read what other processes write there. Children of `fork` have it, too. Null if that fails.
pub fn map_file_to_read(file: i32) -> *const u8 {
    const PROT_READ: usize = 1;
    // SAFETY: a new mapping.
    let at = unsafe { call(number::MMAP, [0, PAGE, PROT_READ, MAP_SHARED, file as usize, 0]) };
    if is_error(at) { core::ptr::null() } else { at as *const u8 }
}

/// Takes memory for a part of a mapping. `false` if the file system is full, which would otherwise end the program by SIGBUS.
///
/// # Safety
/// The range must be mapped.
pub unsafe fn populate(at: *mut u8, bytes: usize) -> bool {
    const MADV_POPULATE_WRITE: usize = 23;
    const EINVAL: isize = -22;
    // SAFETY: the caller's.
    let result = unsafe {
        let page = at as usize & !(PAGE - 1);
        call(number::MADVISE, [page, at as usize + bytes - page, MADV_POPULATE_WRITE, 0, 0, 0])
    };
    // Kernels before 5.14 take memory when it is used.
    result == 0 || result == EINVAL
}

/// # Safety
/// Nothing may use the memory any more.
pub unsafe fn unmap(at: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { call(number::MUNMAP, [at as usize, bytes, 0, 0, 0, 0]) };
}

/// Creates a file that must be new. `path` ends with NUL. Negative: the error.
pub fn create(path: &[u8]) -> i32 {
    const CREATE_NEW: usize = 0o2 | 0o100 | 0o200 | 0o400_000 | 0o2_000_000;
    // SAFETY: the path ends with NUL.
    unsafe { call(number::OPENAT, [-100_isize as usize, path.as_ptr() as usize, CREATE_NEW, 0o600, 0, 0]) as i32 }
}

/// Opens a file to read it. `path` ends with NUL.
pub fn open(path: &[u8]) -> i32 {
    // SAFETY: the path ends with NUL.
    unsafe { call(number::OPENAT, [-100_isize as usize, path.as_ptr() as usize, 0o2_000_000, 0, 0, 0]) as i32 }
}

pub fn read(file: i32, bytes: &mut [u8]) -> isize {
    // SAFETY: the buffer is valid.
    unsafe { call(number::READ, [file as usize, bytes.as_mut_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

/// Opens a file to add to its end. It is made if it is missing. `path` ends with NUL.
pub fn open_end(path: &[u8]) -> i32 {
    const CREATE: usize = 0o100;
    open_to_append(path, CREATE)
}

/// The same, without making it.
pub fn open_end_of_existing(path: &[u8]) -> i32 {
    open_to_append(path, 0)
}

fn open_to_append(path: &[u8], flags: usize) -> i32 {
    const WRITE_APPEND: usize = 0o1 | 0o2000 | 0o400_000 | 0o2_000_000;
    // SAFETY: the path ends with NUL.
    unsafe {
        call(number::OPENAT, [-100_isize as usize, path.as_ptr() as usize, WRITE_APPEND | flags, 0o600, 0, 0]) as i32
    }
}

pub fn write(file: i32, bytes: &[u8]) -> isize {
    // SAFETY: the buffer is valid.
    unsafe { call(number::WRITE, [file as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

/// Maps memory that repeats some machine code and can be run, not written, and behind it as much memory for data. Null if that
/// is refused. The code is that of a file in memory, where the kernel has such files: it can observe calls in files only.
pub fn map_code(code: &[u8], bytes: usize, name: &CStr) -> *const u8 {
    const PROT_READ_EXECUTE: usize = 5;
    // SAFETY: a new mapping, and parts of it.
    unsafe {
        let at = call(number::MMAP, [0, 2 * bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, usize::MAX, 0]);
        if is_error(at) {
            return core::ptr::null();
        }
        let memory = core::slice::from_raw_parts_mut(at as *mut u8, bytes);
        for part in memory.chunks_exact_mut(code.len()) {
            part.copy_from_slice(code);
        }
        let file = memory_file(name);
        let is_mapped = file >= 0
            && write(file, memory) == bytes as isize
            && call(number::MMAP, [at as usize, bytes, PROT_READ_EXECUTE, MAP_PRIVATE_FIXED, file as usize, 0]) == at;
        if file >= 0 {
            close(file);
        }
        if !is_mapped && call(number::MPROTECT, [at as usize, bytes, PROT_READ_EXECUTE, 0, 0, 0]) != 0 {
            unmap(at as *mut u8, 2 * bytes);
            return core::ptr::null();
        }
        at as *const u8
    }
}

/// Makes a file that is only in memory. Negative if that is refused.
fn memory_file(name: &CStr) -> i32 {
    const MFD_CLOEXEC: usize = 1;
    /// Unknown to kernels before 6.3, which need no such word.
    const MFD_EXEC: usize = 0x10;
    let make = |flags: usize| {
        // SAFETY: the name ends with NUL.
        unsafe { call(number::MEMFD_CREATE, [name.as_ptr() as usize, flags, 0, 0, 0, 0]) as i32 }
    };
    match make(MFD_CLOEXEC | MFD_EXEC) {
        refused if refused < 0 => make(MFD_CLOEXEC),
        file => file,
    }
}

pub fn close(file: i32) {
    // SAFETY: no memory is involved.
    unsafe { call(number::CLOSE, [file as usize, 0, 0, 0, 0, 0]) };
}

pub fn truncate(file: i32, bytes: usize) -> bool {
    // SAFETY: no memory is involved.
    unsafe { call(number::FTRUNCATE, [file as usize, bytes, 0, 0, 0, 0]) == 0 }
}

/// Takes memory for a part of a file. Without it, a full file system would end the program by SIGBUS.
pub fn allocate(file: i32, at: usize, bytes: usize) -> bool {
    // SAFETY: no memory is involved.
    unsafe { call(number::FALLOCATE, [file as usize, 0, at, bytes, 0, 0]) == 0 }
}

/// How large the main thread's stack may become, in bytes.
pub fn stack_limit() -> usize {
    const RLIMIT_STACK: usize = 3;
    let mut limit = [0_usize; 2];
    // SAFETY: the buffer is a `rlimit64`.
    unsafe { call(number::PRLIMIT64, [0, RLIMIT_STACK, 0, limit.as_mut_ptr() as usize, 0, 0]) };
    limit[0]
}

pub fn pid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(number::GETPID, [0; 6]) as u32 }
}

pub fn tid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(number::GETTID, [0; 6]) as u32 }
}

pub fn is_gone(pid: u32, tid: u32) -> bool {
    const ESRCH: isize = -3;
    // SAFETY: signal 0 is sent, which is none.
    unsafe { call(number::TGKILL, [pid as usize, tid as usize, 0, 0, 0, 0]) == ESRCH }
}

pub fn yield_now() {
    // SAFETY: no arguments.
    unsafe { call(number::SCHED_YIELD, [0; 6]) };
}

/// `CLOCK_MONOTONIC`
pub fn now_ns() -> u64 {
    let mut time = [0_u64; 2];
    // SAFETY: the buffer is a `timespec`.
    unsafe { call(number::CLOCK_GETTIME, [1, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// The CPU's tick counter.
pub fn ticks() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether the page of an address can be read. The kernel copies the mask before it looks at what to do with it.
pub fn is_readable(address: usize) -> bool {
    const EFAULT: isize = -14;
    const NO_OPERATION: usize = 77;
    let page = address & !(PAGE - 1);
    // SAFETY: only the kernel reads the address, and changes nothing.
    unsafe { call(number::RT_SIGPROCMASK, [NO_OPERATION, page, 0, 8, 0, 0]) != EFAULT }
}
