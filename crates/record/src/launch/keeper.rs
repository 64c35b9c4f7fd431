//! The keeper process as the recorder sees it, and the messages between the two.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

mod life;

use life::{Ends, Plan};

use super::user::User;
use super::{LaunchError, Streams};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// The resources it used.
    pub usage: Usage,
}

impl Exit {
    /// The exit code, or 128 + signal, as in a shell.
    pub fn status(&self) -> i32 {
        self.code.or(self.signal.map(|signal| 128 + signal)).unwrap_or(-1)
    }

    fn from_wait(status: i32, usage: Usage) -> Self {
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        Self { code, signal, usage }
    }
}

/// Resources used by a program and by the children it waited for (`getrusage(2)`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Largest resident memory of any single process.
    pub peak_rss_bytes: u64,
    /// Page faults that needed no storage.
    pub minor_faults: u64,
    /// Page faults that read from storage.
    pub major_faults: u64,
    /// Voluntary context switches, ended threads included.
    pub voluntary_switches: u64,
    /// Involuntary context switches (preemptions).
    pub involuntary_switches: u64,
}

/// Everything `exec` needs, allocated before `fork`.
pub(super) struct Image {
    program: CString,
    directory: Option<CString>,
    arguments: Pointers,
    environment: Pointers,
}

/// Strings, and the NULL-terminated array of pointers to them.
struct Pointers {
    _strings: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Pointers {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _strings: strings, pointers }
    }
}

impl Image {
    pub(super) fn new<'a>(
        program: &Path,
        arguments: &[OsString],
        environment: impl IntoIterator<Item = (&'a OsString, &'a OsString)>,
        directory: Option<&Path>,
    ) -> Result<Self, LaunchError> {
        let text = |what, text: &OsStr| {
            CString::new(text.as_bytes()).map_err(|_| LaunchError::NulByte { what, text: text.into() })
        };
        let arguments: Result<Vec<_>, _> = arguments.iter().map(|argument| text("argument", argument)).collect();
        let environment: Result<Vec<_>, _> = environment
            .into_iter()
            .map(|(name, value)| {
                let mut entry = name.clone().into_vec();
                entry.push(b'=');
                entry.extend_from_slice(value.as_bytes());
                text("environment variable", OsStr::from_bytes(&entry))
            })
            .collect();
        Ok(Self {
            program: text("argument", program.as_os_str())?,
            directory: directory.map(|path| text("directory", path.as_os_str())).transpose()?,
            arguments: Pointers::new(arguments?),
            environment: Pointers::new(environment?),
        })
    }
}

/// What failed in the program's process before or at `exec`. Sent through a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) errno: i32,
}

/// The step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Streams,
    Directory,
    User { uid: u32 },
    Exec,
}

impl Failure {
    const BYTES: usize = 12;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let (stage, uid) = match self.stage {
            Stage::Streams => (0, 0),
            Stage::Directory => (1, 0),
            Stage::User { uid } => (2, uid),
            Stage::Exec => (3, 0),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&u32::to_ne_bytes(stage));
        bytes[4..8].copy_from_slice(&uid.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.errno.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let stage = match u32::from_ne_bytes(word(0)) {
            0 => Stage::Streams,
            1 => Stage::Directory,
            2 => Stage::User { uid: u32::from_ne_bytes(word(4)) },
            _ => Stage::Exec,
        };
        Self { stage, errno: i32::from_ne_bytes(word(8)) }
    }
}

/// A message from the keeper. It is shorter than a pipe's atomic size, so it arrives whole.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Report {
    kind: u32,
    value: i32,
    usage: Usage,
}

impl Report {
    /// `value` is the program's pid, or -errno if `fork` failed.
    const STARTED: u32 = 1;
    /// `value` is the program's wait status.
    const ENDED: u32 = 2;
    /// Nothing is left below the keeper, which exits now.
    const ALL_ENDED: u32 = 3;
}

/// Order to the keeper: kill everything.
const KILL: u8 = b'k';

/// The recorder's side of a keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    keeper_pid: u32,
    pid: u32,
    control: PipeWriter,
    report: PipeReader,
    go: Option<PipeWriter>,
    exec_failure: PipeReader,
    exit: Option<Exit>,
    all_ended: bool,
    collected: bool,
}

impl Keeper {
    /// Forks the keeper, which forks the program's process and reports its pid.
    pub(super) fn fork(
        image: &Image,
        streams: &Streams,
        own_group: bool,
        user: Option<&User>,
    ) -> Result<Self, LaunchError> {
        let pipe = || io::pipe().map_err(|source| LaunchError::System { what: "make a pipe", source });
        let (control_read, control) = pipe()?;
        let (report, report_write) = pipe()?;
        let (go_read, go) = pipe()?;
        let (exec_failure, exec_failure_write) = pipe()?;
        let ends = Ends {
            control: control_read.as_raw_fd(),
            report: report_write.as_raw_fd(),
            go: go_read.as_raw_fd(),
            exec_failure: exec_failure_write.as_raw_fd(),
            input: streams.input.as_ref().map(AsRawFd::as_raw_fd),
            output: streams.output.as_ref().map(AsRawFd::as_raw_fd),
        };
        let plan = Plan { image, ends, own_group, user };
        // Signals are blocked across the fork, so that no handler of this process runs in the child.
        let mask = block_signals();
        // SAFETY: the child calls only async-signal-safe functions, and never returns from `run`.
        let keeper_pid = match unsafe { libc::fork() } {
            0 => unsafe { life::run(&plan, &mask) },
            pid => pid,
        };
        let failed = io::Error::last_os_error();
        restore_signals(&mask);
        if keeper_pid < 0 {
            return Err(LaunchError::System { what: "make a process", source: failed });
        }
        let mut keeper = Self {
            keeper_pid: keeper_pid as u32,
            pid: 0,
            control,
            report,
            go: Some(go),
            exec_failure,
            exit: None,
            all_ended: false,
            collected: false,
        };
        // Close this process's copies of the child's ends, so that they close when the child closes them.
        drop((control_read, report_write, go_read, exec_failure_write));
        keeper.receive_started()?;
        Ok(keeper)
    }

    fn receive_started(&mut self) -> Result<(), LaunchError> {
        let system = |source| LaunchError::System { what: "make a process", source };
        match self.next_report().map_err(system)? {
            Some(Report { kind: Report::STARTED, value, .. }) if value > 0 => self.pid = value as u32,
            Some(Report { value, .. }) => return Err(system(io::Error::from_raw_os_error(-value))),
            None => return Err(self.lost()),
        }
        set_nonblocking(&self.report).map_err(system)
    }

    /// Pid of the program's process.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Pid of the keeper. Its descendants are the program's tree.
    pub(super) fn keeper_pid(&self) -> u32 {
        self.keeper_pid
    }

    pub(super) fn report_fd(&self) -> BorrowedFd<'_> {
        self.report.as_fd()
    }

    /// How the program ended, by the reports received so far.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Whether nothing is left, by the reports received so far.
    pub(super) fn all_ended(&self) -> bool {
        self.all_ended
    }

    /// Lets the program continue to its `exec`. `None` if that worked.
    pub(super) fn release(&mut self) -> Result<Option<Failure>, LaunchError> {
        if let Some(go) = self.go.take() {
            write_all(go.as_raw_fd(), b"g");
        }
        let system = |source| LaunchError::System { what: "follow the program's start", source };
        // A successful exec closes the other end of the pipe, and so does the end of the process.
        Ok(read_whole(&self.exec_failure).map_err(system)?.map(Failure::from_bytes))
    }

    /// Receives the reports that have arrived.
    pub(super) fn receive(&mut self) -> Result<(), LaunchError> {
        while !self.all_ended {
            match self.next_report() {
                Ok(Some(report)) if report.kind == Report::ENDED => {
                    self.exit = Some(Exit::from_wait(report.value, report.usage));
                }
                Ok(Some(_)) => {
                    self.all_ended = true;
                    self.collect(libc::WEXITED);
                }
                Ok(None) => return Err(self.lost()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(source) => return Err(LaunchError::System { what: "follow the program", source }),
            }
        }
        Ok(())
    }

    /// Waits until nothing is left, for at most `limit`. Returns whether nothing is left.
    pub(super) fn wait_all_ended(&mut self, limit: Duration) -> Result<bool, LaunchError> {
        let deadline = std::time::Instant::now() + limit;
        loop {
            self.receive()?;
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if self.all_ended || left.is_zero() {
                return Ok(self.all_ended);
            }
            wait_readable(self.report.as_raw_fd(), left);
        }
    }

    /// Orders the keeper to kill everything below it, repeatedly until nothing is left.
    pub(super) fn kill_all(&mut self) {
        write_all(self.control.as_raw_fd(), &[KILL]);
    }

    fn next_report(&self) -> io::Result<Option<Report>> {
        let bytes = read_whole::<{ size_of::<Report>() }>(&self.report)?;
        // SAFETY: Report is plain numbers without padding, and the keeper wrote one from the same program.
        Ok(bytes.map(|bytes| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }))
    }

    /// The error for a keeper that ended without its last report: something killed it.
    fn lost(&mut self) -> LaunchError {
        self.all_ended = true;
        self.collect(libc::WEXITED);
        let source = io::Error::other(format!("process {} (its keeper) was killed", self.keeper_pid));
        LaunchError::System { what: "follow the program further", source }
    }

    fn collect(&mut self, flags: i32) {
        if self.collected {
            return;
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the keeper is our child and not yet collected, so the pid is still its own; info is writable.
        let result = unsafe { libc::waitid(libc::P_PID, self.keeper_pid, info.as_mut_ptr(), flags) };
        // SAFETY: zeroed, and filled in by waitid if it found something.
        self.collected = result == 0 && unsafe { info.assume_init().si_pid() } != 0;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if !self.all_ended {
            self.go = None;
            self.kill_all();
            // Only a process that waits for a dead device lives on.
            let _ = self.wait_all_ended(Duration::from_secs(10));
        }
        self.collect(libc::WEXITED | libc::WNOHANG);
    }
}

fn set_nonblocking(fd: &PipeReader) -> io::Result<()> {
    // SAFETY: fcntl changes only a flag of our descriptor.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads a message. `None` if the other end is closed.
fn read_whole<const BYTES: usize>(mut pipe: &PipeReader) -> io::Result<Option<[u8; BYTES]>> {
    let mut bytes = [0; BYTES];
    match pipe.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a short message. A closed reader is not an error, because its reaction no longer matters. Async-signal-safe:
/// Rust programs ignore SIGPIPE, and the keeper blocks it.
fn write_all(fd: RawFd, bytes: &[u8]) {
    // SAFETY: `bytes` is valid for reads of its length.
    unsafe { while libc::write(fd, bytes.as_ptr().cast(), bytes.len()) < 0 && errno() == libc::EINTR {} }
}

/// Waits until a descriptor is readable or closed, for at most `limit`. Returns whether it is; a signal ends the wait.
pub(super) fn wait_readable(fd: RawFd, limit: Duration) -> bool {
    let mut wanted = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A fraction of a millisecond rounds up, so that callers do not spin.
    let limit_ms = i32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
    // SAFETY: one pollfd is passed, and it is ours.
    unsafe { libc::poll(&mut wanted, 1, limit_ms) > 0 }
}

fn errno() -> i32 {
    // SAFETY: the location is the calling thread's own.
    unsafe { *libc::__errno_location() }
}

fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises `all`, pthread_sigmask `before`.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` is initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}
