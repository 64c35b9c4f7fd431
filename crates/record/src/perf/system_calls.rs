//! BPF programs that add up system calls in the kernel.
//!
//! A stack at each call would cost more than most calls. So a program at `sys_enter` notes the time, and one at `sys_exit` adds the
//! call to a sum. A sum is of one thread, one call, one place (the instruction and the stack pointer) and one file. Now and
//! then the second program writes the sum so far through a perf event, which adds the user's stack: at calls 1, 2, 4 and so
//! on up to 64, and then for calls that start [`PAUSE_NS`](programs::PAUSE_NS) after the last record. What is between two records of a sum belongs to the stack of
//! the later one. A place with many files has many sums: once it has had many stacks, most records are written without one, and have
//! the last one of their place. Sums that a recording leaves are [read](SystemCalls::sums) at its end, so no call is lost.
//!
//! Records are a choice of the calls, and no percentile follows from them. So the second program also counts the calls of each sum by
//! [bucket](stepscope_model::call_time_bucket) of their time: one more element of a map for each bucket that occurs.
//!
//! A file is its inode and device, which a program finds from the descriptor. Calls that take a path write it with their record.

mod programs;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use stepscope_assemble::system_call::{BYTES, Sum, TimeCount};

use self::programs::{Maps, Offsets, at_enter, at_exit};
use super::bpf::{self, Map, Program};

/// Sums that are kept apart. Further ones are added up by thread and call.
const SUMS: u32 = 64 << 10;
/// Buckets of times that are counted by sum, 104 bytes each. Further ones are counted by thread and call.
const TIMES: u32 = 128 << 10;
/// Buckets of those, 72 bytes each.
const REST_TIMES: u32 = 16 << 10;
/// Places whose stacks are counted. Records of further places all have a stack.
const PLACES: u32 = 16 << 10;
/// Threads that are within a call at a time.
const THREADS: u32 = 32 << 10;
/// Numbers of calls.
const CALLS: u32 = 512;
/// How a call names a file, and whether it returns a number of bytes.
mod kind {
    pub const DESCRIPTOR: u32 = 1;
    pub const RETURNS_DESCRIPTOR: u32 = 2;
    pub const PATH_FIRST: u32 = 4;
    pub const PATH_SECOND: u32 = 8;
    pub const RETURNS_BYTES: u32 = 16;
}

/// The kind of a call.
fn kind_of(call: libc::c_long) -> u32 {
    use kind::*;
    match call {
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_preadv
        | libc::SYS_pwritev
        | libc::SYS_preadv2
        | libc::SYS_pwritev2
        | libc::SYS_sendto
        | libc::SYS_recvfrom
        | libc::SYS_sendmsg
        | libc::SYS_recvmsg
        | libc::SYS_sendfile
        | libc::SYS_splice
        | libc::SYS_copy_file_range
        | libc::SYS_getdents
        | libc::SYS_getdents64 => DESCRIPTOR | RETURNS_BYTES,
        libc::SYS_fstat
        | libc::SYS_lseek
        | libc::SYS_ioctl
        | libc::SYS_fcntl
        | libc::SYS_flock
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_ftruncate
        | libc::SYS_fchdir
        | libc::SYS_fchmod
        | libc::SYS_fchown
        | libc::SYS_sendmmsg
        | libc::SYS_recvmmsg
        | libc::SYS_shutdown
        | libc::SYS_bind
        | libc::SYS_connect
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_listen
        | libc::SYS_getsockname
        | libc::SYS_getpeername
        | libc::SYS_setsockopt
        | libc::SYS_getsockopt
        | libc::SYS_epoll_wait
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_ctl
        | libc::SYS_dup
        | libc::SYS_dup2
        | libc::SYS_dup3
        | libc::SYS_fallocate
        | libc::SYS_fadvise64
        | libc::SYS_readahead
        | libc::SYS_sync_file_range
        | libc::SYS_fstatfs
        | libc::SYS_syncfs
        | libc::SYS_timerfd_settime
        | libc::SYS_timerfd_gettime
        | libc::SYS_inotify_add_watch
        | libc::SYS_fgetxattr
        | libc::SYS_fsetxattr => DESCRIPTOR,
        libc::SYS_open | libc::SYS_creat => RETURNS_DESCRIPTOR | PATH_FIRST,
        libc::SYS_openat | libc::SYS_openat2 => RETURNS_DESCRIPTOR | PATH_SECOND,
        libc::SYS_socket
        | libc::SYS_epoll_create
        | libc::SYS_epoll_create1
        | libc::SYS_eventfd
        | libc::SYS_eventfd2
        | libc::SYS_timerfd_create
        | libc::SYS_memfd_create
        | libc::SYS_inotify_init1 => RETURNS_DESCRIPTOR,
        libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_access
        | libc::SYS_unlink
        | libc::SYS_rename
        | libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_chdir
        | libc::SYS_readlink
        | libc::SYS_chmod
        | libc::SYS_chown
        | libc::SYS_execve
        | libc::SYS_statfs
        | libc::SYS_truncate
        | libc::SYS_symlink
        | libc::SYS_link
        | libc::SYS_getxattr
        | libc::SYS_lgetxattr => PATH_FIRST,
        // With an empty path it is of the descriptor.
        libc::SYS_newfstatat | libc::SYS_statx => DESCRIPTOR | PATH_SECOND,
        libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_unlinkat
        | libc::SYS_mkdirat
        | libc::SYS_readlinkat
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_linkat
        | libc::SYS_utimensat
        | libc::SYS_fchmodat
        | libc::SYS_fchownat
        | libc::SYS_execveat => PATH_SECOND,
        _ => 0,
    }
}

/// The attached programs and their maps.
pub(super) struct SystemCalls {
    sums: OwnedFd,
    /// Sums by thread and call, of what had no room.
    rest: OwnedFd,
    times: OwnedFd,
    rest_times: OwnedFd,
    _kept: Vec<OwnedFd>,
}

impl SystemCalls {
    /// Adds up the calls of members from now on, and writes records through the events of the current CPU: one with a stack and one
    /// without.
    pub fn attach(members: BorrowedFd<'_>, outputs: &[(u32, RawFd)], plain: &[(u32, RawFd)]) -> io::Result<Self> {
        let events = bpf::output_map(outputs)?;
        let plain_events = bpf::output_map(plain)?;
        let kinds = bpf::create_map(Map::Array, CALLS)?;
        for call in 0..CALLS {
            match kind_of(call.into()) {
                0 => {}
                kind => bpf::set_element(kinds.as_fd(), call, kind)?,
            }
        }
        let entered = bpf::create_map_of(Map::RecentlyUsed, 4, 32, THREADS)?;
        let words = |words: usize| 8 * words as u32;
        let sums = bpf::create_map_of(Map::Hash, words(Sum::KEY_WORDS), words(Sum::VALUE_WORDS), SUMS)?;
        let rest = bpf::create_map_of(Map::Hash, words(Sum::KEY_WORDS), words(Sum::VALUE_WORDS), SUMS / 4)?;
        let times = bpf::create_map_of(Map::Hash, words(TimeCount::KEY_WORDS), 8, TIMES)?;
        let rest_times = bpf::create_map_of(Map::Hash, words(TimeCount::REST_WORDS), 8, REST_TIMES)?;
        let places = bpf::create_map_of(Map::RecentlyUsed, words(Sum::PLACE_WORDS), 24, PLACES)?;
        let scratch = bpf::create_map_of(Map::ArrayOfEachCpu, 4, BYTES as u32, 1)?;
        let offsets = Offsets::of_kernel()?;
        let enter = at_enter(members, entered.as_fd(), &offsets);
        let maps = Maps {
            entered: entered.as_fd(),
            kinds: kinds.as_fd(),
            sums: sums.as_fd(),
            rest: rest.as_fd(),
            times: times.as_fd(),
            rest_times: rest_times.as_fd(),
            places: places.as_fd(),
            scratch: scratch.as_fd(),
            events: events.as_fd(),
            plain_events: plain_events.as_fd(),
        };
        let exit = at_exit(members, &maps, &offsets);
        let enter = bpf::load(Program::RawTracepoint, &enter)?;
        let exit = bpf::load(Program::RawTracepoint, &exit)?;
        // The exit first: a call whose start is unknown is not counted.
        let exit = bpf::attach(c"sys_exit", exit.as_fd())?;
        let enter = bpf::attach(c"sys_enter", enter.as_fd())?;
        Ok(Self {
            sums,
            rest,
            times,
            rest_times,
            _kept: vec![exit, enter, events, plain_events, kinds, entered, places, scratch],
        })
    }

    /// All sums so far.
    pub fn sums(&self) -> Vec<Sum> {
        let of = |map: &OwnedFd| -> Vec<Sum> {
            let map = map.as_fd();
            bpf::keys(map).filter_map(|key| Some(Sum::new(key, bpf::element(map, &key)?))).collect()
        };
        [of(&self.sums), of(&self.rest)].concat()
    }

    /// The times of all calls so far.
    pub fn times(&self) -> Vec<TimeCount> {
        let (times, rest) = (self.times.as_fd(), self.rest_times.as_fd());
        let of_sums =
            bpf::keys(times).filter_map(|key| Some(TimeCount::new(key, bpf::element::<_, 1>(times, &key)?[0])));
        let of_rest =
            bpf::keys(rest).filter_map(|key| Some(TimeCount::rest(key, bpf::element::<_, 1>(rest, &key)?[0])));
        of_sums.chain(of_rest).collect()
    }
}
