//! The cause of a blocked wait, from its stack.
//!
//! Kernel frames show the system call or fault, and whether `read` is of a pipe, a socket or a file. They do not distinguish
//! a lock from a condition variable, because both are a `futex`; the run-time library's frames do. Without permission for
//! kernel stacks, the library's frames decide alone.
//!
//! The first known frame from the leaf decides. User frames count only below the first function of the program itself:
//! that may be called `sleep` and do something else. Names are compared as a whole.
//!
//! | class | is |
//! |---|---|
//! | lock | a mutex, a reader-writer lock, `call_once` and statics that another thread initialises, a lock inside the kernel |
//! | condition | a condition variable, future, barrier, semaphore, join, parked thread |
//! | sleep | a sleep that the program requested |
//! | file | opening, reading, writing, syncing files, and block devices |
//! | network | sockets, and `poll`, `select`, `epoll_wait` whatever their descriptors are |
//! | page fault | memory that had to be read or allocated first |
//! | other | pipes, child processes, signals, terminals, and every stack that shows none of these; what counting calls by uprobes makes a thread wait for |

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, FrameKind, StackId};
use strum::{EnumCount, IntoStaticStr, VariantArray};

use crate::query::frame_kind::{kernel_name, undecorated};
use crate::query::functions::Functions;
use crate::query::qualified_name::own_name;

/// What a blocked thread waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumCount, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum WaitClass {
    /// A lock.
    Lock,
    /// A condition variable, barrier, semaphore, thread or message.
    Condition,
    /// Time to pass.
    Sleep,
    /// A file or block device.
    File,
    /// A socket, or any of several descriptors.
    Network,
    /// Memory.
    PageFault,
    /// Something else.
    Other,
}

impl WaitClass {
    /// Every class, in the order of tables.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// The name used in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Its place in [`ALL`](Self::ALL).
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Classes of stacks, each found once.
#[derive(Debug, Clone)]
pub struct Classes<'a> {
    capture: &'a Capture,
    functions: &'a Functions,
    known: FxHashMap<StackId, WaitClass>,
}

impl<'a> Classes<'a> {
    /// Of a capture's stacks.
    pub fn new(capture: &'a Capture, functions: &'a Functions) -> Self {
        Self { capture, functions, known: FxHashMap::default() }
    }

    /// What a thread that blocked at this stack waited for.
    pub fn of(&mut self, stack: StackId) -> WaitClass {
        *self.known.entry(stack).or_insert_with(|| of_stack(self.capture, self.functions, stack))
    }
}

/// What a thread that blocked at this stack waited for.
pub fn of_stack(capture: &Capture, functions: &Functions, stack: StackId) -> WaitClass {
    let frames: Vec<(&str, FrameKind)> = capture
        .nodes_of(Some(stack))
        .map(|node| functions.get(functions.of_node(capture, node)))
        .map(|function| (&*function.name, function.kind))
        .collect();
    let kernel = frames.iter().take_while(|(_, kind)| *kind == FrameKind::Kernel).count();
    let (kernel, user) = frames.split_at(kernel);
    of_kernel_frames(kernel).or_else(|| of_user_frames(user)).unwrap_or(WaitClass::Other)
}

/// The class that the kernel frames show.
fn of_kernel_frames(frames: &[(&str, FrameKind)]) -> Option<WaitClass> {
    let names = || frames.iter().map(|(name, _)| kernel_name(name));
    // The recorder's own probes: no wait of the program.
    if names().any(|name| name.starts_with("uprobe_") || name.starts_with("asm_exc_int3")) {
        return Some(WaitClass::Other);
    }
    if names().any(is_page_fault) {
        return Some(WaitClass::PageFault);
    }
    names().find_map(of_kernel_function)
}

/// Entries of the kernel that a fault in memory comes through, on x86-64 and aarch64.
fn is_page_fault(name: &str) -> bool {
    #[rustfmt::skip]
    const ENTRIES: [&str; 9] = [
        "asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "do_page_fault", "handle_mm_fault",
        "__handle_mm_fault", "el0_da", "do_mem_abort", "do_translation_fault",
    ];
    ENTRIES.contains(&name)
}

fn of_kernel_function(name: &str) -> Option<WaitClass> {
    #[rustfmt::skip]
    const RULES: [(WaitClass, &[&str]); 7] = [
        (WaitClass::Other, &[
            "pipe_", "anon_pipe_", "eventfd_", "signalfd_", "inotify_", "tty_", "n_tty_", "do_wait",
            "do_sigtimedwait",
        ]),
        (WaitClass::Network, &[
            "sock_", "tcp_", "udp_", "inet_", "inet6_", "unix_stream_", "unix_dgram_", "netlink_", "skb_wait",
            "__skb_wait", "sk_wait", "vsock_", "ep_poll", "do_epoll_", "do_sys_poll", "do_poll", "do_select",
            "core_sys_select", "__sys_recv", "__sys_send", "__sys_accept", "__sys_connect",
        ]),
        (WaitClass::Sleep, &["hrtimer_nanosleep", "do_nanosleep", "common_nsleep"]),
        (WaitClass::Lock, &["futex_lock_pi"]),
        (WaitClass::File, &[
            "io_schedule", "folio_wait_", "wait_on_page_", "wait_on_buffer", "__wait_on_buffer", "filemap_",
            "vfs_fsync", "do_fsync", "ext4_", "xfs_", "btrfs_", "jbd2_", "f2fs_", "nfs_", "nfs4_", "fuse_", "ovl_",
            "cifs_", "p9_client_", "v9fs_", "iomap_", "blkdev_", "submit_bio_", "blk_", "path_openat", "lookup_slow",
            "vfs_read", "vfs_write", "iterate_dir", "locks_lock_", "flock_lock_",
        ]),
        (WaitClass::Lock, &["__mutex_lock", "mutex_lock", "rwsem_down_", "down_read", "down_write", "rt_mutex_"]),
        (WaitClass::Other, &["kernel_wait4", "kernel_waitid", "msgrcv", "do_msgrcv"]),
    ];
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    RULES.iter().find(|(_, prefixes)| begins(prefixes)).map(|(class, _)| *class)
}

fn of_user_frames(frames: &[(&str, FrameKind)]) -> Option<WaitClass> {
    // The lock of a barrier, condition variable or channel is part of it: who was woken waits until the waker releases it.
    let mut library = frames.iter().take_while(|(_, kind)| !matches!(kind, FrameKind::Native | FrameKind::Python));
    if library.any(|(name, _)| is_condition_of_rust(&own_name(name))) {
        return Some(WaitClass::Condition);
    }
    for (name, kind) in frames {
        let own = own_name(name);
        // Its locks and condition variables park in the same functions, so their callers decide.
        if own.starts_with("parking_lot_core::") {
            continue;
        }
        if let Some(class) = of_user_function(&own) {
            return Some(class);
        }
        if matches!(kind, FrameKind::Native | FrameKind::Python) {
            return None;
        }
    }
    None
}

/// Whether it is a condition variable, a barrier or a channel of Rust's standard library.
fn is_condition_of_rust(own: &str) -> bool {
    let starts = ["std::sync::barrier::", "std::sync::mpmc::", "std::sync::mpsc::"];
    starts.iter().any(|start| own.starts_with(start)) || (own.starts_with("std::s") && own.ends_with("Condvar::wait"))
}

fn of_user_function(own: &str) -> Option<WaitClass> {
    if own.contains("::") { of_declared_function(own) } else { of_library_function(undecorated(own)) }
}

/// Functions of the standard libraries of C++ and Rust, and of Rust's lock library.
fn of_declared_function(own: &str) -> Option<WaitClass> {
    #[rustfmt::skip]
    const LOCKS: [&str; 11] = [
        "::lock_contended", "::read_contended", "::write_contended", "RawMutex::lock_slow",
        "RawRwLock::lock_shared_slow", "RawRwLock::lock_exclusive_slow", "RawRwLock::lock_upgradable_slow",
        "RawRwLock::upgrade_slow", "RawRwLock::wait_for_readers", "parking_lot::once::Once::call_once_slow",
        "RawFairMutex::lock_slow",
    ];
    // A thread that waits for the initialisation by another thread waits as for a lock.
    #[rustfmt::skip]
    const OUTER_LOCKS: [&str; 10] = [
        "std::timed_mutex", "std::recursive_timed_mutex", "std::shared_timed_mutex", "std::shared_mutex",
        "std::__timed_mutex_impl", "std::__shared_mutex", "std::call_once", "std::sys::sync::once::", "std::sync::once::",
        "std::sync::once_lock::",
    ];
    #[rustfmt::skip]
    const CONDITIONS: [&str; 13] = [
        "std::condition_variable", "std::barrier", "std::latch", "std::counting_semaphore", "std::__atomic_wait",
        "std::thread::join", "std::thread::park", "std::sync::barrier::Barrier::wait", "std::future", "std::shared_future",
        "std::__future_base", "std::__basic_future", "std::__atomic_futex_unsigned",
    ];
    #[rustfmt::skip]
    const INNER_CONDITIONS: [&str; 6] = [
        "Condvar::wait", "Condvar::wait_timeout", "Condvar::wait_optional_timeout", "Condvar::wait_until_internal",
        "Parker::park", "Parker::park_timeout",
    ];
    const SLEEPS: [&str; 3] = ["std::this_thread::sleep_for", "std::this_thread::sleep_until", "std::thread::sleep"];
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| own.ends_with(suffix));
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| own.starts_with(prefix));
    if ends(&LOCKS) || begins(&OUTER_LOCKS) {
        return Some(WaitClass::Lock);
    }
    if begins(&CONDITIONS) || ends(&INNER_CONDITIONS) {
        return Some(WaitClass::Condition);
    }
    SLEEPS.contains(&own).then_some(WaitClass::Sleep)
}

/// Functions of the C library, without leading underscores.
fn of_library_function(name: &str) -> Option<WaitClass> {
    #[rustfmt::skip]
    let class = match name {
        "pthread_mutex_lock" | "pthread_mutex_timedlock" | "pthread_mutex_clocklock" | "pthread_mutex_cond_lock"
        | "pthread_rwlock_rdlock" | "pthread_rwlock_wrlock" | "pthread_rwlock_timedrdlock"
        | "pthread_rwlock_timedwrlock" | "pthread_rwlock_clockrdlock" | "pthread_rwlock_clockwrlock"
        | "lll_lock_wait" | "lll_lock_wait_private" | "pthread_mutex_lock_full" | "pthread_mutex_clocklock_common"
        | "futex_clocklock_wait64" | "lll_timedlock_wait" | "lll_clocklock_wait" | "pthread_rwlock_rdlock_full64"
        | "pthread_rwlock_wrlock_full64" | "pthread_once" | "pthread_once_slow" | "call_once" | "cxa_guard_acquire"
        | "mtx_lock" | "mtx_timedlock" => WaitClass::Lock,
        "pthread_cond_wait" | "pthread_cond_timedwait" | "pthread_cond_clockwait" | "pthread_barrier_wait"
        | "pthread_join" | "pthread_timedjoin_np" | "pthread_clockjoin_np" | "pthread_clockjoin_ex" | "sem_wait"
        | "sem_timedwait" | "sem_clockwait" | "new_sem_wait" | "new_sem_wait_slow" | "new_sem_wait_slow64"
        | "gomp_barrier_wait" | "gomp_barrier_wait_end" | "gomp_team_barrier_wait"
        | "gomp_team_barrier_wait_end" => WaitClass::Condition,
        "nanosleep" | "clock_nanosleep" | "usleep" | "sleep" | "thrd_sleep" => WaitClass::Sleep,
        "poll" | "ppoll" | "select" | "pselect" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "recv"
        | "recvfrom" | "recvmsg" | "recvmmsg" | "send" | "sendto" | "sendmsg" | "sendmmsg" | "accept"
        | "accept4" | "connect" | "getaddrinfo" => WaitClass::Network,
        "open" | "open64" | "openat" | "openat64" | "fopen" | "fopen64" | "fsync" | "fdatasync" | "sync"
        | "syncfs" | "msync" | "pread" | "pread64" | "preadv" | "pwrite" | "pwrite64" | "pwritev" | "fread"
        | "fgets" | "fwrite" | "fflush" | "fclose" | "readdir" | "readdir64" | "getdents64" | "stat" | "stat64"
        | "lstat" | "fstatat" | "fstatat64" | "statx" | "flock" | "unlink" | "rename" | "sendfile"
        | "sendfile64" | "copy_file_range" | "io_getevents" | "posix_fallocate" | "ftruncate" => WaitClass::File,
        // Their descriptor is unknown; pipes and terminals block more often than files.
        "read" | "write" | "readv" | "writev" | "wait4" | "waitpid" | "waitid" | "wait" | "sigwait"
        | "sigwaitinfo" | "sigtimedwait" | "pause" | "sigsuspend" => WaitClass::Other,
        _ if name.starts_with("IO_") => WaitClass::File,
        _ if name.starts_with("kmp_") => WaitClass::Condition,
        _ => return None,
    };
    Some(class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;

    /// The class of a stack, root first; `k:` marks the kernel's frames.
    fn class(stack: &str) -> &'static str {
        let stack: Vec<String> = stack
            .split(';')
            .map(|name| name.strip_prefix("k:").map_or(name.to_owned(), |name| format!("{name} [kernel]")))
            .collect();
        let capture = drawn::folded(&format!("main;{} 1", stack.join(";")));
        drawn::selected(&capture, &[], |selection| {
            of_stack(&capture, selection.functions(), capture.samples[0].stack.unwrap()).name()
        })
    }

    const FUTEX: &str = "k:do_syscall_64;k:__x64_sys_futex;k:do_futex;k:futex_wait;k:__futex_wait;k:schedule";

    #[test]
    fn a_futex_is_a_lock_or_a_condition_by_the_library_frame_above() {
        assert_eq!(class(&format!("main;gz::Step;___pthread_mutex_lock;__lll_lock_wait;{FUTEX}")), "lock");
        assert_eq!(
            class(&format!(
                "gz::Barrier::Wait;std::condition_variable::wait;___pthread_cond_wait;__futex_abstimed_wait_common;{FUTEX}"
            )),
            "condition"
        );
        assert_eq!(class(&format!("main;std::sys::sync::mutex::futex::Mutex::lock_contended;syscall;{FUTEX}")), "lock");
        assert_eq!(class(&format!("main;parking_lot::raw_mutex::RawMutex::lock_slow;syscall;{FUTEX}")), "lock");
        assert_eq!(class(&format!("main;std::thread::park;syscall;{FUTEX}")), "condition");
        let of_barrier = "std::sync::barrier::Barrier::wait;std::sys::sync::mutex::futex::Mutex::lock_contended";
        assert_eq!(class(&format!("main;sim::Run;{of_barrier};syscall;{FUTEX}")), "condition");
        let of_channel = "std::sync::mpmc::list::Channel<T>::recv;std::sys::sync::mutex::futex::Mutex::lock_contended";
        assert_eq!(class(&format!("main;sim::Run;{of_channel};syscall;{FUTEX}")), "condition");
        let after_wake_up =
            "std::sys::sync::condvar::futex::Condvar::wait;std::sys::sync::mutex::futex::Mutex::lock_contended";
        assert_eq!(class(&format!("main;sim::Run;{after_wake_up};syscall;{FUTEX}")), "condition");
        assert_eq!(class(&format!("main;my::wait;{FUTEX}")), "other");
    }

    #[test]
    fn futures_timed_locks_and_initialisation_by_another_thread_have_classes() {
        for (stack, expected) in [
            (
                "gz::Wait;std::__basic_future<int>::_M_get_result;std::__future_base::_State_baseV2::wait;\
              std::__atomic_futex_unsigned_base::_M_futex_wait_until;syscall",
                "condition",
            ),
            (
                "gz::Wait;std::timed_mutex::try_lock_for;pthread_mutex_clocklock;__pthread_mutex_clocklock_common;\
              __futex_clocklock_wait64",
                "lock",
            ),
            ("gz::Init;std::call_once<void (&)()>;__gthread_once;___pthread_once;__pthread_once_slow", "lock"),
            ("gz::Instance;__cxa_guard_acquire;syscall", "lock"),
            (
                "sim::lock;parking_lot::raw_mutex::RawMutex::lock_slow;parking_lot_core::parking_lot::park;\
              parking_lot_core::thread_parker::imp::ThreadParker::park;syscall",
                "lock",
            ),
            (
                "sim::wait;parking_lot::condvar::Condvar::wait_until_internal;parking_lot_core::parking_lot::park;\
              parking_lot_core::thread_parker::imp::ThreadParker::park;syscall",
                "condition",
            ),
            (
                "sim::config;std::sync::once_lock::OnceLock<T>::initialize;std::sys::sync::once::futex::Once::call;\
              std::sys::pal::unix::futex::futex_wait;syscall",
                "lock",
            ),
            // What a thread waits for while it initialises is its own matter.
            ("std::sync::once_lock::OnceLock<T>::initialize;sim::load;std::thread::sleep;nanosleep", "sleep"),
        ] {
            assert_eq!(class(&format!("main;{stack};{FUTEX}")), expected, "{stack}");
        }
    }

    #[test]
    fn the_kernel_function_shows_what_is_read() {
        let read = |inner: &str| class(&format!("main;read;k:do_syscall_64;k:ksys_read;k:vfs_read;{inner}k:schedule"));
        assert_eq!(read("k:pipe_read;"), "other");
        assert_eq!(read("k:sock_read_iter;k:unix_stream_recvmsg;"), "network");
        assert_eq!(read("k:ext4_file_read_iter;k:filemap_read;k:folio_wait_bit;k:io_schedule;"), "file");
        assert_eq!(read(""), "file");
    }

    #[test]
    fn sleeps_polls_and_faults_are_known_by_their_kernel_frames() {
        assert_eq!(
            class("main;nap;k:__x64_sys_clock_nanosleep;k:hrtimer_nanosleep;k:do_nanosleep;k:schedule"),
            "sleep"
        );
        assert_eq!(class("main;zmq::poll;k:__x64_sys_epoll_wait;k:do_epoll_wait;k:ep_poll;k:schedule"), "network");
        assert_eq!(
            class("main;gz::touch;k:asm_exc_page_fault;k:handle_mm_fault;k:filemap_fault;k:io_schedule"),
            "page_fault"
        );
    }

    #[test]
    fn without_kernel_frames_the_librarys_decide() {
        assert_eq!(class("main;gz::Step;pthread_mutex_lock@@GLIBC_2.2.5"), "lock");
        assert_eq!(class("main;gz::Barrier::Wait;pthread_cond_wait;__futex_abstimed_wait_common"), "condition");
        assert_eq!(class("main;std::this_thread::sleep_for<long, std::ratio<1l> >;__GI___clock_nanosleep"), "sleep");
        assert_eq!(class("main;zmq::poll;__poll"), "network");
        assert_eq!(class("main;gz::save;std::filebuf::close;fclose;_IO_new_file_close_it"), "file");
        assert_eq!(class("main;gz::load;read"), "other");
    }

    #[test]
    fn a_function_of_the_program_further_up_does_not_decide() {
        assert_eq!(class("main;sleep;gz::Run;syscall"), "other");
        assert_eq!(class("main;pthread_mutex_lock;gz::callback;unknown_wait"), "other");
    }
}
