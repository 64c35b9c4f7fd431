//! What is asked of the system: files that hold, memory that exists, processes that live.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Makes a part of a file exist: writing to what does not fit into a full `/dev/shm` would kill the program.
pub fn commit(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the call.
    let limited = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    // Beyond this limit the program would get a signal.
    if limited && from + bytes > limit.rlim_cur {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // SAFETY: the descriptor is open.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, from as i64, bytes as i64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Maps a part of a file, shared.
pub fn map(file: &File, from: u64, bytes: usize) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place of the kernel's choice touches no memory of ours.
    let memory =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), from as i64) };
    if memory == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(memory.cast()) }
}

/// Spares page faults one by one, where the kernel knows how (5.14); elsewhere does nothing.
pub fn populate(from: *mut u8, bytes: usize) {
    const MADV_POPULATE_WRITE: libc::c_int = 23;
    // SAFETY: the range is mapped by us, and its content is not changed.
    unsafe { libc::madvise(from.cast(), bytes, MADV_POPULATE_WRITE) };
}

/// This thread's id.
pub fn thread_id() -> u32 {
    // SAFETY: the call has no arguments and no effect.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// When a process started, in clock ticks since boot. `None` if there is none.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything.
    let after = stat.iter().rposition(|&byte| byte == b')')? + 2;
    std::str::from_utf8(&stat[after..]).ok()?.split(' ').nth(19)?.parse().ok()
}

/// In which namespace our process ids mean what they say.
pub fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Whether no process has this id.
pub fn is_dead(pid: u32) -> bool {
    // SAFETY: signal 0 is no signal.
    unsafe { libc::kill(pid as i32, 0) < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) }
}

/// Takes the lock that a recorder would hold. Released with the file.
pub fn lock(file: &File) -> bool {
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Removes a file without allocating, as is right at the end of a program.
pub fn path_to_remove(path: &Path) -> Option<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes()).ok()
}
