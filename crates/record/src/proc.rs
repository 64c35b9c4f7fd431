//! Processes, read from `/proc`: the tree of a program, mappings, and used resources.
//!
//! The texts are parsed by functions over bytes ([`Stat::parse`], [`Status::parse`], [`Mapping::parse_all`], ...) that
//! do no I/O; the functions of this module read the files and hand them over. A process may die at any moment, also
//! between `open` and `read`: that is [`ProcError::Gone`], an answer and not a failure.
//!
//! ```no_run
//! use stepscope_record::proc;
//!
//! for mapping in proc::maps(4242)?.iter().filter(|mapping| mapping.access.execute) {
//!     println!("{:#x} {:?}", mapping.start, mapping.backing);
//! }
//! # Ok::<(), proc::ProcError>(())
//! ```

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

mod blocked;
mod files;
mod maps;
mod resources;
mod set;
mod stat;
mod tree;

pub(crate) use blocked::BlockedReader;
use stat::strings;

pub use maps::{Access, Backing, Mapping};
pub use resources::{Quantity, Reading, ResourceSampler};
pub use set::{ContainerError, Membership, ProcessSelection, ProcessSet, SelectionError};
pub use stat::{Io, SchedStat, Stat, State, Status};
pub use tree::{Member, ProcessTree};

/// Why `/proc` gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProcError {
    /// It has ended, perhaps while it was being read.
    #[error("process {pid} does not exist, or has ended")]
    Gone {
        /// The process (or thread) asked for.
        pid: u32,
    },
    /// It belongs to another user, or forbids to be looked at.
    #[error("{}: not permitted: run as the user who owns process {pid}, or with CAP_SYS_PTRACE", path.display())]
    Denied {
        /// The process asked for.
        pid: u32,
        /// The file that could not be read.
        path: PathBuf,
    },
    /// The file has a form that this version does not know.
    #[error("{}: has an unknown form; please report it with the kernel's version", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// Anything else.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl ProcError {
    /// Sorts an I/O error of a file of process `pid`.
    fn of(pid: u32, path: PathBuf, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => ProcError::Gone { pid },
            Some(libc::EACCES | libc::EPERM) => ProcError::Denied { pid, path },
            _ => ProcError::Io { path, source },
        }
    }
}

fn path_of(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

fn read(pid: u32, file: &str) -> Result<Vec<u8>, ProcError> {
    let path = path_of(pid, file);
    std::fs::read(&path).map_err(|error| ProcError::of(pid, path, error))
}

/// Reads and parses; nothing at all in the file means that the process ended while it was read.
fn parsed<T>(pid: u32, file: &str, parse: impl Fn(&[u8]) -> Option<T>) -> Result<T, ProcError> {
    let text = read(pid, file)?;
    match parse(&text) {
        Some(value) => Ok(value),
        None if text.is_empty() => Err(ProcError::Gone { pid }),
        None => Err(ProcError::Malformed { path: path_of(pid, file) }),
    }
}

/// `/proc/PID/stat`: state, parent, group, session, times and faults of a whole process.
///
/// # Errors
/// [`ProcError`]
pub fn stat(pid: u32) -> Result<Stat, ProcError> {
    parsed(pid, "stat", Stat::parse)
}

/// Whether a process can run no more. A process whose first thread alone has ended goes on.
pub fn has_ended(pid: u32) -> bool {
    stat(pid).map_or(true, |stat| stat.process_has_ended())
}

/// `/proc/PID/task/TID/stat`: the same of one thread.
///
/// # Errors
/// [`ProcError`]
pub fn thread_stat(pid: u32, tid: u32) -> Result<Stat, ProcError> {
    parsed(pid, &format!("task/{tid}/stat"), Stat::parse)
}

/// `/proc/PID/status`: ids, memory, and the context switches *of the main thread only*.
///
/// # Errors
/// [`ProcError`]
pub fn status(pid: u32) -> Result<Status, ProcError> {
    parsed(pid, "status", Status::parse)
}

/// `/proc/PID/task/TID/status`: the same of one thread.
///
/// # Errors
/// [`ProcError`]
pub(crate) fn thread_status(pid: u32, tid: u32) -> Result<Status, ProcError> {
    parsed(pid, &format!("task/{tid}/status"), Status::parse)
}

/// `/proc/PID/io`: bytes read and written, threads that ended included.
///
/// # Errors
/// [`ProcError`]; [`ProcError::Denied`] for processes of other users.
pub fn io(pid: u32) -> Result<Io, ProcError> {
    parsed(pid, "io", Io::parse)
}

/// `/proc/PID/task/TID/schedstat`: exact CPU time and run-queue delay of a thread.
///
/// # Errors
/// [`ProcError`]
pub fn schedstat(pid: u32, tid: u32) -> Result<SchedStat, ProcError> {
    parsed(pid, &format!("task/{tid}/schedstat"), SchedStat::parse)
}

/// `/proc/PID/maps`: everything mapped, by address. Empty for a zombie and for kernel threads.
///
/// # Errors
/// [`ProcError`]
pub fn maps(pid: u32) -> Result<Vec<Mapping>, ProcError> {
    let text = read(pid, "maps")?;
    Mapping::parse_all(&text).ok_or_else(|| ProcError::Malformed { path: path_of(pid, "maps") })
}

/// The command line's arguments; empty for a zombie and for kernel threads. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// [`ProcError`]
pub fn command_line(pid: u32) -> Result<Vec<String>, ProcError> {
    Ok(strings(&read(pid, "cmdline")?))
}

/// The environment as it was when the program began.
///
/// # Errors
/// [`ProcError`]; [`ProcError::Denied`] for processes of other users.
pub fn environment(pid: u32) -> Result<Vec<(String, String)>, ProcError> {
    let strings = strings(&read(pid, "environ")?);
    Ok(strings.iter().filter_map(|entry| entry.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect())
}

/// The running executable's path as the kernel knows it, ending in ` (deleted)` where it was replaced since.
///
/// # Errors
/// [`ProcError`]; [`ProcError::Gone`] also for kernel threads.
pub fn executable(pid: u32) -> Result<PathBuf, ProcError> {
    link(pid, "exe")
}

/// The working directory.
///
/// # Errors
/// [`ProcError`]
pub fn working_directory(pid: u32) -> Result<PathBuf, ProcError> {
    link(pid, "cwd")
}

fn link(pid: u32, file: &str) -> Result<PathBuf, ProcError> {
    let path = path_of(pid, file);
    std::fs::read_link(&path).map_err(|error| ProcError::of(pid, path, error))
}

/// A thread's name (`comm`), without the newline.
///
/// # Errors
/// [`ProcError`]
pub fn thread_name(pid: u32, tid: u32) -> Result<String, ProcError> {
    let mut name = read(pid, &format!("task/{tid}/comm"))?;
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Ids of the threads that a process has at the moment, ascending.
///
/// # Errors
/// [`ProcError`]
pub fn threads(pid: u32) -> Result<Vec<u32>, ProcError> {
    let mut tids = numbered_entries(pid, "task")?;
    tids.sort_unstable();
    Ok(tids)
}

/// How many file descriptors a process has open.
///
/// # Errors
/// [`ProcError`]; [`ProcError::Denied`] for processes of other users.
pub fn fd_count(pid: u32) -> Result<u64, ProcError> {
    let path = path_of(pid, "fd");
    let metadata = std::fs::metadata(&path).map_err(|error| ProcError::of(pid, path, error))?;
    // Since Linux 6.2 the directory's size is the number of descriptors; before, it is 0.
    match metadata.size() {
        0 => Ok(numbered_entries(pid, "fd")?.len() as u64),
        size => Ok(size),
    }
}

fn numbered_entries(pid: u32, directory: &str) -> Result<Vec<u32>, ProcError> {
    let path = path_of(pid, directory);
    let entries = std::fs::read_dir(&path).map_err(|error| ProcError::of(pid, path.clone(), error))?;
    let mut numbers = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| ProcError::of(pid, path.clone(), error))?;
        numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// Whether a process exists, zombies included.
pub fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Clock ticks per second of the times in `stat` (`USER_HZ`).
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf only returns a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}

/// Reads memory of a process. Returns how many bytes could be read.
pub(crate) fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the local part is a buffer that we hold; the kernel checks the remote one.
    let read = unsafe { libc::process_vm_readv(pid as libc::pid_t, &local, 1, &remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Bytes of a memory page.
pub fn page_bytes() -> u64 {
    // SAFETY: sysconf only returns a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096).max(1)
}

/// Ids of all processes.
fn all_pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A path of bytes that the kernel gave.
fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn our_own_process_is_read_as_the_system_calls_say_it_is() {
        let pid = std::process::id();
        let stat = stat(pid).unwrap();
        assert_eq!(stat.pid, pid);
        // SAFETY: getppid and getpgrp only return numbers.
        let (parent, group) = unsafe { (libc::getppid(), libc::getpgrp()) };
        assert_eq!((stat.parent, stat.group), (parent as u32, group as u32));
        assert_eq!(executable(pid).unwrap(), std::env::current_exe().unwrap());
        assert_eq!(working_directory(pid).unwrap(), std::env::current_dir().unwrap());
        assert_eq!(command_line(pid).unwrap()[0], std::env::args().next().unwrap());
        assert!(maps(pid).unwrap().iter().any(|mapping| mapping.backing == Backing::Special("[vdso]".into())));
    }

    #[test]
    fn a_child_that_was_not_waited_for_is_a_zombie_with_no_maps_and_then_gone() {
        let mut child = Command::new("true").stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        while stat(pid).unwrap().state != State::Zombie {
            std::thread::yield_now();
        }
        assert_eq!(stat(pid).unwrap().parent, std::process::id());
        assert_eq!(maps(pid).unwrap(), []);
        assert_eq!(command_line(pid).unwrap(), Vec::<String>::new());
        child.wait().unwrap();
        assert!(matches!(stat(pid), Err(ProcError::Gone { pid: gone }) if gone == pid));
        assert!(!exists(pid));
    }

    #[test]
    fn a_thread_is_listed_with_its_name_while_it_lives() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("worker (a) b".into()).spawn(move || {
            // SAFETY: gettid only returns a number.
            sender.send(unsafe { libc::gettid() } as u32).unwrap();
            let _ = stopped.recv();
        });
        let tid = receiver.recv().unwrap();
        let pid = std::process::id();
        assert!(threads(pid).unwrap().contains(&tid));
        assert_eq!(thread_name(pid, tid).unwrap(), "worker (a) b");
        assert_eq!(thread_stat(pid, tid).unwrap().name, "worker (a) b");
        drop(stop);
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn open_descriptors_are_counted() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        // While it starts it opens libraries and closes them again.
        let is_asleep = || stat(child.id()).is_ok_and(|stat| stat.name == "sleep" && stat.state == State::Sleeping);
        while !is_asleep() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let listed = numbered_entries(child.id(), "fd").unwrap().len() as u64;
        let counted = fd_count(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(counted, listed);
        assert!(counted >= 3, "{counted}");
    }
}
