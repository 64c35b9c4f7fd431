//! The life of the keeper, and of the program's process until its `exec`.
//!
//! All of this runs after `fork` and may only call async-signal-safe functions: another thread may have held the
//! allocator's lock at the fork. Everything is therefore allocated before ([`Image`]); this file only makes system
//! calls on existing memory.

use std::ffi::CStr;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::RawFd;

use super::{Failure, Image, KILL, Report, Stage, Usage, errno, write_all};
use crate::launch::user::User;

/// What the child needs to know.
pub(super) struct Plan<'a> {
    pub(super) image: &'a Image,
    pub(super) ends: Ends,
    pub(super) own_group: bool,
    pub(super) user: Option<&'a User>,
}

/// The child's ends of the pipes.
pub(super) struct Ends {
    pub(super) control: RawFd,
    pub(super) report: RawFd,
    pub(super) go: RawFd,
    pub(super) exec_failure: RawFd,
    pub(super) input: Option<RawFd>,
    pub(super) output: Option<RawFd>,
}

impl Ends {
    fn contain(&self, fd: RawFd) -> bool {
        [self.control, self.report, self.go, self.exec_failure].contains(&fd)
            || self.input == Some(fd)
            || self.output == Some(fd)
    }
}

/// The keeper's life.
///
/// # Safety
/// Only right after `fork`, with all signals blocked. Never returns.
pub(super) unsafe fn run(plan: &Plan, mask: &libc::sigset_t) -> ! {
    // SAFETY: system calls on memory made before the fork.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"stepscope-keep".as_ptr());
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        // Close the descriptors of simultaneous launches: a program that waits for its exec would keep their pipes
        // open.
        close_all(|fd| fd > 2 && !plan.ends.contain(fd) && closes_on_exec(fd));
        let program = libc::fork();
        if program == 0 {
            become_program(plan, mask);
        }
        let started = if program > 0 { program } else { -errno() };
        send(plan.ends.report, Report::STARTED, started, Usage::default());
        if program < 0 {
            libc::_exit(1);
        }
        libc::setpgid(0, 0);
        // Other processes may wait for pipes, terminals and locked files to close; the keeper must not hold them open.
        close_all(|fd| fd != plan.ends.control && fd != plan.ends.report);
        keep(plan, program)
    }
}

/// Turns a copy of the keeper into the program.
unsafe fn become_program(plan: &Plan, mask: &libc::sigset_t) -> ! {
    let ends = &plan.ends;
    // SAFETY: system calls on memory made before the fork.
    unsafe {
        if plan.own_group {
            libc::setpgid(0, 0);
        }
        libc::prctl(libc::PR_SET_NAME, c"stepscope-exec".as_ptr());
        let mut go = [0_u8];
        loop {
            match libc::read(ends.go, go.as_mut_ptr().cast(), 1) {
                1 => break,
                -1 if errno() == libc::EINTR => {}
                _ => libc::_exit(127),
            }
        }
        let stage = prepare_and_exec(plan, mask);
        let failure = Failure { stage, errno: errno() };
        write_all(ends.exec_failure, &failure.to_bytes());
        libc::_exit(127)
    }
}

/// Returns only if something failed, with `errno` set.
unsafe fn prepare_and_exec(plan: &Plan, mask: &libc::sigset_t) -> Stage {
    let Plan { image, ends, user, .. } = plan;
    // SAFETY: system calls on memory made before the fork.
    unsafe {
        let onto = |from: Option<RawFd>, to: RawFd| from.is_none_or(|from| libc::dup2(from, to) >= 0);
        if !(onto(ends.input, 0) && onto(ends.output, 1) && onto(ends.output, 2)) {
            return Stage::Streams;
        }
        if let Some(user) = user
            && !user.switch_to()
        {
            return Stage::User { uid: user.uid };
        }
        if let Some(directory) = &image.directory
            && libc::chdir(directory.as_ptr()) != 0
        {
            return Stage::Directory;
        }
        // Exec preserves ignored signals. Rust programs ignore SIGPIPE; shells let jobs in the background ignore the others,
        // and a program that ignores SIGINT cannot be stopped by it.
        for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
        libc::execve(image.program.as_ptr(), image.arguments.pointers.as_ptr(), image.environment.pointers.as_ptr());
        Stage::Exec
    }
}

/// Waits for all descendants, until none is left.
unsafe fn keep(plan: &Plan, program: i32) -> ! {
    // SAFETY: system calls on local memory.
    unsafe {
        let children_end = child_signals();
        let mut ending = Ending::No;
        loop {
            if collect_children(plan.ends.report, program) == Left::None {
                send(plan.ends.report, Report::ALL_ENDED, 0, Usage::default());
                libc::_exit(0);
            }
            let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut fds = [wanted(children_end), wanted(plan.ends.control)];
            // Once the control pipe is closed it would always be ready.
            let count = if ending == Ending::No { 2 } else { 1 };
            libc::poll(fds.as_mut_ptr(), count, ending.pause_ms());
            if fds[0].revents != 0 {
                let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
                libc::read(children_end, info.as_mut_ptr().cast(), size_of::<libc::signalfd_siginfo>());
            }
            if fds[1].revents != 0 {
                ending = Ending::ordered(plan.ends.control);
            }
            ending = ending.act(program);
        }
    }
}

/// The keeper's progress in ending its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    /// The recorder is gone; SIGTERM is not sent yet.
    Orphaned,
    /// SIGTERM was sent; this many rounds remain until SIGKILL.
    Terminating {
        rounds: u32,
    },
    /// SIGKILL, in every round.
    Killing {
        rounds: u32,
    },
}

impl Ending {
    const ROUND_MS: i32 = 20;
    const GRACE_ROUNDS: u32 = 100;

    /// Reads the control pipe: an order, or its end, which means that the recorder is gone.
    unsafe fn ordered(control: RawFd) -> Self {
        let mut order = [0_u8];
        // SAFETY: one byte is read into an array of one.
        match unsafe { libc::read(control, order.as_mut_ptr().cast(), 1) } {
            1 if order[0] == KILL => Ending::Killing { rounds: 0 },
            _ => Ending::Orphaned,
        }
    }

    /// How long to wait for a child's end until the next round. An orphan that becomes our child raises no signal, so
    /// rounds of killing follow quickly; they slow down for processes that cannot be killed.
    fn pause_ms(self) -> i32 {
        match self {
            Ending::No => -1,
            Ending::Orphaned => 0,
            Ending::Terminating { .. } => Self::ROUND_MS,
            Ending::Killing { rounds } if rounds < 50 => 1,
            Ending::Killing { rounds } if rounds < 500 => Self::ROUND_MS,
            Ending::Killing { .. } => 1000,
        }
    }

    unsafe fn act(self, program: i32) -> Self {
        match self {
            Ending::No => Ending::No,
            Ending::Orphaned => {
                // SAFETY: signals to our own children.
                unsafe { signal_children(libc::SIGTERM, program) };
                Ending::Terminating { rounds: Self::GRACE_ROUNDS }
            }
            Ending::Terminating { rounds: 0 } => Ending::Killing { rounds: 0 },
            Ending::Terminating { rounds } => Ending::Terminating { rounds: rounds - 1 },
            Ending::Killing { rounds } => {
                // SAFETY: signals to our own children.
                unsafe { signal_children(libc::SIGKILL, program) };
                Ending::Killing { rounds: rounds.saturating_add(1) }
            }
        }
    }
}

/// Sends a signal to all children. Only this process collects them, so no pid can belong to another process by now.
/// Children of those that die become our children, so nothing escapes repeated SIGKILLs.
unsafe fn signal_children(signal: i32, program: i32) {
    // SAFETY: system calls on local memory.
    unsafe {
        let list = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if list < 0 {
            // The kernel has no such lists: signal the program's group instead.
            libc::kill(-program, signal);
            return;
        }
        let mut pid = 0_i32;
        let mut buffer = [0_u8; 4096];
        loop {
            let count = libc::read(list, buffer.as_mut_ptr().cast(), buffer.len());
            if count <= 0 {
                break;
            }
            for &byte in &buffer[..count as usize] {
                if byte.is_ascii_digit() {
                    pid = pid.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
                } else if pid > 0 {
                    libc::kill(pid, signal);
                    libc::kill(pid, libc::SIGCONT);
                    pid = 0;
                }
            }
        }
        libc::close(list);
    }
}

#[derive(PartialEq, Eq)]
enum Left {
    Some,
    None,
}

/// Collects ended children and reports the program's end.
unsafe fn collect_children(report: RawFd, program: i32) -> Left {
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both are writable; a zeroed rusage is valid.
        let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG | libc::__WALL, usage.as_mut_ptr()) };
        match pid {
            0 => return Left::Some,
            -1 if errno() == libc::EINTR => {}
            -1 => return Left::None,
            pid if pid == program => {
                // SAFETY: as above.
                let usage = Usage::from_kernel(unsafe { usage.assume_init_ref() });
                // SAFETY: writes to our end of a pipe.
                unsafe { send(report, Report::ENDED, status, usage) };
            }
            _ => {}
        }
    }
}

impl Usage {
    fn from_kernel(usage: &libc::rusage) -> Self {
        let time_ns = |time: libc::timeval| (time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64) * 1000;
        Self {
            user_ns: time_ns(usage.ru_utime),
            system_ns: time_ns(usage.ru_stime),
            peak_rss_bytes: (usage.ru_maxrss as u64).saturating_mul(1024),
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

unsafe fn child_signals() -> RawFd {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC)
    }
}

unsafe fn send(report: RawFd, kind: u32, value: i32, usage: Usage) {
    let report_value = Report { kind, value, usage };
    // SAFETY: plain numbers without padding.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const report_value).cast(), size_of::<Report>()) };
    write_all(report, bytes);
}

fn closes_on_exec(fd: RawFd) -> bool {
    // SAFETY: fcntl only reads a flag.
    unsafe { libc::fcntl(fd, libc::F_GETFD) & libc::FD_CLOEXEC != 0 }
}

/// Closes the open descriptors for which `unwanted` holds, without allocating.
unsafe fn close_all(unwanted: impl Fn(RawFd) -> bool) {
    // SAFETY: system calls on local memory.
    unsafe {
        let directory = libc::open(c"/proc/self/fd".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        if directory < 0 {
            return;
        }
        let mut buffer = Entries([0; 4096]);
        loop {
            let count = libc::syscall(libc::SYS_getdents64, directory, buffer.0.as_mut_ptr(), buffer.0.len());
            if count <= 0 {
                break;
            }
            for fd in buffer.numbers(count as usize) {
                if fd != directory && unwanted(fd) {
                    libc::close(fd);
                }
            }
        }
        libc::close(directory);
    }
}

/// A buffer of directory entries, aligned as the kernel writes them.
#[repr(align(8))]
struct Entries([u8; 4096]);

impl Entries {
    /// The entries whose names are numbers.
    fn numbers(&self, length: usize) -> impl Iterator<Item = RawFd> + '_ {
        // struct linux_dirent64: ino u64, off i64, reclen u16, type u8, name.
        let mut at = 0;
        std::iter::from_fn(move || {
            while at + 19 <= length {
                let entry = &self.0[at..length];
                at += usize::from(u16::from_ne_bytes([entry[16], entry[17]])).max(19);
                let name = CStr::from_bytes_until_nul(&entry[19..]).ok()?;
                let number = name.to_bytes().iter().try_fold(0_i32, |number, byte| {
                    let digit = byte.is_ascii_digit().then(|| i32::from(byte - b'0'))?;
                    number.checked_mul(10)?.checked_add(digit)
                });
                if number.is_some() {
                    return number;
                }
            }
            None
        })
    }
}
