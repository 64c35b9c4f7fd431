//! System calls: files, memory, processes.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Allocates a part of a file. Writing to a part without memory kills the program if `/dev/shm` is full.
pub fn commit(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the call.
    let limited = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    // Beyond this limit, the program would get a signal.
    if limited && from + bytes > limit.rlim_cur {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // SAFETY: the descriptor is open.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, from as i64, bytes as i64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Maps a part of a file as shared memory.
pub fn map(file: &File, from: u64, bytes: usize) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address chosen by the kernel touches no existing memory.
    let memory =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), from as i64) };
    if memory == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(memory.cast()) }
}

/// Populates pages at once, if the kernel can (5.14); otherwise does nothing.
pub fn populate(from: *mut u8, bytes: usize) {
    const MADV_POPULATE_WRITE: libc::c_int = 23;
    // SAFETY: the range is a mapping of ours, and its content does not change.
    unsafe { libc::madvise(from.cast(), bytes, MADV_POPULATE_WRITE) };
}

/// This thread's id.
pub fn thread_id() -> u32 {
    // SAFETY: the call has no arguments and no effect.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Start of a process in clock ticks since boot. `None` if there is none.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything.
    let after = stat.iter().rposition(|&byte| byte == b')')? + 2;
    std::str::from_utf8(&stat[after..]).ok()?.split(' ').nth(19)?.parse().ok()
}

/// The namespace of our process ids.
pub fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Whether no process has this id.
pub fn is_dead(pid: u32) -> bool {
    // SAFETY: signal 0 only tests whether the process exists.
    unsafe { libc::kill(pid as i32, 0) < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) }
}

/// Takes the recorder's lock. It is released with the file.
pub fn lock(file: &File) -> bool {
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// The path as needed to remove the file without allocating, at the end of the program.
pub fn path_to_remove(path: &Path) -> Option<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes()).ok()
}
