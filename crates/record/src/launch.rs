//! Starts a program so that it can be recorded from its first instruction, and stops it so that nothing is left.
//!
//! Between us and the program stands a *keeper*: a child process of ours that does nothing but hold the program's
//! processes together. It is the subreaper of everything below it, so a daemon that forks twice and changes its
//! session becomes the keeper's child and not init's; the program's tree is exactly what descends from the keeper,
//! also when several programs are launched at once. It collects zombies, tells us the exit status and what the
//! program used, and if we die, even by SIGKILL, it ends everything below it and then itself. Making the recorder
//! itself the subreaper would mix up the orphans of all programs, and would have to collect children that other
//! parts of the recorder wait for.
//!
//! A launch has two halves. [`Launch::prepare`] makes the process, which then waits just before `exec`:
//! [`Prepared::pid`] is final, and events may be attached to it. [`Prepared::start`] lets it go on, and knows whether
//! `exec` worked.
//!
//! ```no_run
//! use std::time::Duration;
//! use stepscope_record::launch::{Grace, Launch, Output};
//!
//! let prepared = Launch::new(["gz", "sim", "-s", "world.sdf"]).output(Output::captured(40)).prepare()?;
//! // Attach events to prepared.pid() here.
//! let mut program = prepared.start()?;
//! if program.wait_for(Duration::from_secs(30))?.is_none() {
//!     println!("{}", program.stop(&Grace::default())?);
//! }
//! # Ok::<(), stepscope_record::launch::LaunchError>(())
//! ```

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::proc::ProcessTree;

mod keeper;
mod output;
mod refusal;
mod stop;
mod user;

pub use keeper::{Exit, Usage};
pub use output::{LastLines, LineWatcher};
pub use refusal::Refusal;
pub use stop::{Ended, Grace, StopReport, Survivor};
pub use user::RunAs;

/// Why a program could not be started or followed.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No program was named.
    #[error("no command given: name a program after `--`")]
    NoCommand,
    /// An argument or variable holds a NUL byte, which no program can be given.
    #[error("{what} holds a NUL byte, which cannot be passed to a program: {text:?}")]
    NulByte {
        /// `argument`, `environment variable` or `directory`.
        what: &'static str,
        /// The text.
        text: OsString,
    },
    /// The system refused to run it.
    #[error("cannot run `{command}`: {refusal}")]
    Refused {
        /// The program as it was named.
        command: String,
        /// Why, and what to do.
        refusal: Refusal,
    },
    /// The directory it was to run in cannot be entered.
    #[error("cannot run in {}: {source}: check the working directory", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file for its output cannot be written.
    #[error("cannot write the program's output to {}: {source}: name another file", path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It was to run with a user's rights, who is not known.
    #[error("cannot give the program the rights of user {uid}: {reason}: run as that user, or keep root's rights")]
    User {
        /// The user's id.
        uid: u32,
        /// What failed.
        reason: String,
    },
    /// The system is out of something that a launch needs: processes, descriptors, memory.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
}

/// Where the program's standard input comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Input {
    /// Nowhere: it reads the end at once.
    #[default]
    Null,
    /// Where ours comes from. If that is a terminal, the program stays in our process group, as it would be stopped
    /// for reading from the background; Ctrl-C then reaches both. Otherwise it gets a group of its own.
    Inherit,
}

/// Where the program's standard output and error go.
#[derive(Default)]
pub enum Output {
    /// Where ours go.
    #[default]
    Inherit,
    /// Nowhere.
    Null,
    /// Into one file, emptied first.
    File(PathBuf),
    /// To us: the last lines are kept (see [`Launched::last_lines`]), whoever watches sees each line as it comes, and
    /// a file may get a copy. As with any pipe, programs that use stdio write in blocks unless they flush.
    Captured {
        /// How many of the last lines to keep.
        keep_lines: usize,
        /// A file that gets everything, emptied first.
        copy_to: Option<PathBuf>,
        /// Called with each line, without its end.
        watch: Option<LineWatcher>,
    },
}

impl Output {
    /// Captured, with this many of the last lines kept.
    pub fn captured(keep_lines: usize) -> Self {
        Output::Captured { keep_lines, copy_to: None, watch: None }
    }
}

/// A command to be started, and how.
#[derive(Default)]
pub struct Launch {
    command: Vec<OsString>,
    environment: BTreeMap<OsString, Option<OsString>>,
    directory: Option<PathBuf>,
    input: Input,
    output: Output,
    run_as: RunAs,
}

impl Launch {
    /// The program and its arguments. A name without `/` is looked for in `PATH`, as by a shell.
    pub fn new<S: Into<OsString>>(command: impl IntoIterator<Item = S>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Sets an environment variable; all others are as ours.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), Some(value.into()));
        self
    }

    /// Removes an environment variable.
    pub fn without_env(mut self, name: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), None);
        self
    }

    /// Runs in this directory. A relative path of a program (`./sim`) is looked for from there.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets where standard input comes from.
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Sets where standard output and error go.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets whose rights it gets.
    pub fn run_as(mut self, run_as: RunAs) -> Self {
        self.run_as = run_as;
        self
    }

    /// The file of the program that would be run.
    ///
    /// # Errors
    /// [`LaunchError`], if there is no such program.
    pub fn program(&self) -> Result<PathBuf, LaunchError> {
        let name = self.command.first().ok_or(LaunchError::NoCommand)?;
        let search = match self.environment.get(OsStr::new("PATH")) {
            Some(told) => told.clone(),
            None => std::env::var_os("PATH"),
        };
        let found = refusal::find(name, search.as_deref(), self.directory.as_deref())
            .map_err(|refusal| LaunchError::Refused { command: name.to_string_lossy().into_owned(), refusal })?;
        Ok(self.directory.as_ref().map_or_else(|| found.clone(), |directory| directory.join(&found)))
    }

    /// Makes the process, which waits just before `exec` until [`Prepared::start`].
    ///
    /// # Errors
    /// [`LaunchError`]. A program that is not there or may not be run is already found here where that can be known
    /// without trying.
    pub fn prepare(self) -> Result<Prepared, LaunchError> {
        let user = self.run_as.resolve()?;
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let of_user = user.iter().flat_map(|user| user.environment.clone());
        for (name, value) in of_user.chain(self.environment) {
            match value {
                Some(value) => environment.insert(name, value),
                None => environment.remove(&name),
            };
        }
        let name = self.command.first().ok_or(LaunchError::NoCommand)?;
        let search = environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let program = refusal::find(name, search, self.directory.as_deref())
            .map_err(|refusal| LaunchError::Refused { command: name.to_string_lossy().into_owned(), refusal })?;
        let own_group = !(self.input == Input::Inherit && is_terminal(0));
        let (streams, capture) = open_streams(self.input, self.output)?;
        let image = keeper::Image::new(&program, &self.command, &environment, self.directory.as_deref())?;
        let keeper = keeper::Keeper::fork(&image, &streams, own_group, user.as_ref())?;
        let lines = capture.map(output::Capture::start).transpose()?;
        let command = name.to_string_lossy().into_owned();
        Ok(Prepared { command, program, directory: self.directory, keeper, lines })
    }
}

/// The descriptors that become 0, 1 and 2; `None` for as ours.
struct Streams {
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
}

fn open_streams(input: Input, output: Output) -> Result<(Streams, Option<output::Capture>), LaunchError> {
    let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
    let system = |source| LaunchError::System { what: "open /dev/null", source };
    let input = match input {
        Input::Null => Some(null().map_err(system)?),
        Input::Inherit => None,
    };
    let (output, capture) = match output {
        Output::Inherit => (None, None),
        Output::Null => (Some(null().map_err(system)?), None),
        Output::File(path) => (Some(create(path)?.into()), None),
        Output::Captured { keep_lines, copy_to, watch } => {
            let copy = copy_to.map(create).transpose()?;
            let (capture, write_end) = output::Capture::new(keep_lines, copy, watch)?;
            (Some(write_end), Some(capture))
        }
    };
    Ok((Streams { input, output }, capture))
}

fn create(path: PathBuf) -> Result<File, LaunchError> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
    file.map_err(|source| LaunchError::OutputFile { path, source })
}

fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: isatty only looks at the descriptor.
    unsafe { libc::isatty(fd) == 1 }
}

/// A program that waits just before its `exec`. Dropped, it never runs.
#[derive(Debug)]
pub struct Prepared {
    command: String,
    program: PathBuf,
    directory: Option<PathBuf>,
    keeper: keeper::Keeper,
    lines: Option<output::Capturing>,
}

impl Prepared {
    /// Process id of the program; it stays the same over `exec`.
    pub fn pid(&self) -> u32 {
        self.keeper.pid()
    }

    /// The file that will be run.
    pub fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Lets the program run.
    ///
    /// # Errors
    /// [`LaunchError::Refused`] if `exec` failed, [`LaunchError::Directory`] and [`LaunchError::User`] if the steps
    /// before did; nothing is left running then.
    pub fn start(mut self) -> Result<Launched, LaunchError> {
        match self.keeper.release()? {
            None => Ok(Launched { command: self.command, keeper: self.keeper, lines: self.lines }),
            Some(failure) => Err(self.explain(failure)),
        }
    }

    fn explain(self, failure: keeper::Failure) -> LaunchError {
        let source = io::Error::from_raw_os_error(failure.errno);
        match failure.stage {
            keeper::Stage::Directory => LaunchError::Directory { path: self.directory.unwrap_or_default(), source },
            keeper::Stage::User { uid } => LaunchError::User { uid, reason: source.to_string() },
            keeper::Stage::Streams => LaunchError::System { what: "connect the program's output", source },
            keeper::Stage::Exec => {
                let refusal = refusal::why(&self.program, failure.errno);
                LaunchError::Refused { command: self.command, refusal }
            }
        }
    }
}

/// A program that runs, or has run. Dropped, it and everything it started is ended at once; [`stop`](Self::stop)
/// does that gently.
#[derive(Debug)]
pub struct Launched {
    command: String,
    keeper: keeper::Keeper,
    lines: Option<output::Capturing>,
}

impl Launched {
    /// Process id of the program. Once [`exit`](Self::exit) is known it may belong to another process.
    pub fn pid(&self) -> u32 {
        self.keeper.pid()
    }

    /// The program as it was named.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// A tree of everything the program started, itself included.
    pub fn tree(&self) -> ProcessTree {
        ProcessTree::below(self.keeper.keeper_pid())
    }

    /// How the program ended, if it did; what it started may still run.
    ///
    /// # Errors
    /// [`LaunchError::System`] if the keeper cannot be read from.
    pub fn exit(&mut self) -> Result<Option<Exit>, LaunchError> {
        self.keeper.receive()?;
        Ok(self.keeper.exit())
    }

    /// Whether the program and everything it started has ended.
    ///
    /// # Errors
    /// [`LaunchError::System`] if the keeper cannot be read from.
    pub fn all_ended(&mut self) -> Result<bool, LaunchError> {
        self.keeper.receive()?;
        Ok(self.keeper.is_over())
    }

    /// Becomes readable when the program ends, and again when the last process it started does: for an event loop,
    /// which then asks [`exit`](Self::exit) and [`all_ended`](Self::all_ended).
    pub fn ended_fd(&self) -> BorrowedFd<'_> {
        self.keeper.report_fd()
    }

    /// Waits until the program ends, at most so long. `None` if it still runs then.
    ///
    /// # Errors
    /// [`LaunchError::System`] if the keeper cannot be read from.
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<Exit>, LaunchError> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(exit) = self.exit()? {
                return Ok(Some(exit));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            wait_readable(self.ended_fd().as_raw_fd(), left);
        }
    }

    /// The last lines of output so far, oldest first; empty unless it is [`Output::Captured`].
    pub fn last_lines(&self) -> Vec<String> {
        let Some(lines) = &self.lines else { return Vec::new() };
        lines.catch_up(CATCH_UP);
        lines.last_lines().snapshot()
    }

    /// A handle to the last lines that other threads may keep.
    pub fn lines_handle(&self) -> Option<LastLines> {
        Some(self.lines.as_ref()?.last_lines().clone())
    }

    /// Ends the program and everything it started: SIGINT, as Ctrl-C in a terminal; then SIGTERM; then SIGKILL; with
    /// a grace period after each of the first two, which ends as soon as nothing is left. Returns at once if
    /// everything has ended already.
    ///
    /// # Errors
    /// [`LaunchError::System`] if the keeper cannot be spoken to. Processes that cannot be ended are no error but
    /// [`StopReport::survivors`].
    pub fn stop(&mut self, grace: &Grace) -> Result<StopReport, LaunchError> {
        let report = stop::stop(&mut self.keeper, grace)?;
        if let Some(lines) = &self.lines {
            lines.catch_up(CATCH_UP);
        }
        Ok(report)
    }
}

/// How long to wait at most until everything printed so far is read.
const CATCH_UP: Duration = Duration::from_millis(500);

/// Waits until a descriptor can be read, or is closed, at most so long. Returns early on a signal.
fn wait_readable(fd: RawFd, limit: Duration) {
    let mut wanted = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A fraction of a millisecond rounds up, so that this does not spin.
    let limit_ms = i32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
    // SAFETY: one pollfd is passed, and it is ours.
    unsafe { libc::poll(&mut wanted, 1, limit_ms) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::proc;

    const LONG: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Launch {
        Launch::new(["sh", "-c", script]).output(Output::captured(100))
    }

    fn run(launch: Launch) -> (i32, Vec<String>) {
        let mut program = launch.prepare().unwrap().start().unwrap();
        let exit = program.wait_for(LONG).unwrap().unwrap();
        (exit.status(), program.last_lines())
    }

    fn lines(script: &str) -> Vec<String> {
        run(shell(script)).1
    }

    #[test]
    fn a_program_waits_before_its_exec_and_keeps_its_pid_over_it() {
        let prepared = shell("echo $$; exit 7").prepare().unwrap();
        let pid = prepared.pid();
        let ours = std::env::current_exe().unwrap();
        assert_eq!(proc::executable(pid).unwrap(), ours);
        let mut program = prepared.start().unwrap();
        assert_eq!(program.wait_for(LONG).unwrap().unwrap().status(), 7);
        assert_eq!(program.last_lines(), [pid.to_string()]);
        assert!(program.wait_for(LONG).unwrap().is_some(), "the exit stays known");
    }

    #[test]
    fn a_prepared_program_that_is_dropped_never_runs_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let witness = directory.path().join("ran");
        let prepared = Launch::new([OsString::from("touch"), witness.clone().into()]).prepare().unwrap();
        let (pid, keeper) = (prepared.pid(), prepared.keeper.keeper_pid());
        drop(prepared);
        assert!(!witness.exists() && !proc::exists(pid) && !proc::exists(keeper));
    }

    #[test]
    fn death_by_a_signal_is_told_from_an_exit_code() {
        let mut program = shell("kill -SEGV $$").prepare().unwrap().start().unwrap();
        let exit = program.wait_for(LONG).unwrap().unwrap();
        assert_eq!((exit.code, exit.signal, exit.status()), (None, Some(libc::SIGSEGV), 139));
    }

    #[test]
    fn the_usage_of_a_program_includes_the_children_it_waited_for() {
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut program = shell(&format!("sh -c '{script}'; true")).prepare().unwrap().start().unwrap();
        let usage = program.wait_for(LONG).unwrap().unwrap().usage;
        assert!(usage.user_ns > 10_000_000, "{usage:?}");
        assert!(usage.peak_rss_bytes > 500_000 && usage.minor_faults > 50, "{usage:?}");
    }

    #[test]
    fn environment_directory_and_arguments_arrive_as_given() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let launch = Launch::new(["sh", "-c", "pwd; echo \"$0|$1|$A|${HOME-none}\"", "a b", "\"'*"])
            .env("A", "1\n2=3")
            .without_env("HOME")
            .directory(&path)
            .output(Output::captured(9));
        let (status, lines) = run(launch);
        assert_eq!((status, lines.join("\n")), (0, format!("{}\na b|\"'*|1\n2=3|none", path.display())));
    }

    #[test]
    fn standard_input_is_empty_unless_it_is_ours() {
        assert_eq!(lines("cat; echo end"), ["end"]);
    }

    #[test]
    fn output_and_errors_go_to_one_file_in_order() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "old contents that are longer than the new").unwrap();
        let launch = shell("echo a; echo b >&2; echo c").output(Output::File(file.path().into()));
        assert_eq!(run(launch), (0, vec![]));
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "a\nb\nc\n");
    }

    #[test]
    fn a_program_has_a_process_group_of_its_own_and_default_signals() {
        let lines = lines("echo $$; ps -o pgid= -p $$; exec grep -E 'SigBlk|SigIgn' /proc/self/status");
        assert_eq!(lines[1].trim(), lines[0]);
        // Whoever runs the tests may ignore signals themselves (nohup); those stay ignored.
        let ours = std::fs::read_to_string("/proc/self/status").unwrap();
        let ignored = ours.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
        let ignored = u64::from_str_radix(ignored, 16).unwrap();
        let pipe = 1 << (libc::SIGPIPE - 1);
        assert_eq!(ignored & pipe, pipe, "Rust programs ignore it");
        assert_eq!(lines[2..], ["SigBlk:\t0000000000000000".to_owned(), format!("SigIgn:\t{:016x}", ignored & !pipe)]);
    }

    /// What a test of this module prints that runs in a process of its own: descriptors, signals and the environment
    /// belong to all tests of a process.
    fn alone(test: &str, environment: &[(&str, &str)]) -> String {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("launch::tests::{test}"), "--nocapture", "--include-ignored"]);
        let output = command.envs(environment.iter().copied()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_program_gets_no_descriptors_of_ours_but_those_the_user_gave_us() {
        let printed = alone("prints_the_descriptors_of_a_program", &[]);
        assert!(printed.contains("descriptors are as expected"), "{printed}");
    }

    #[test]
    #[ignore = "run by another test, alone in its process"]
    fn prints_the_descriptors_of_a_program() {
        let given = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: duplicates without the close-on-exec flag, as a shell's `3< FILE` does.
        let fd = unsafe { libc::fcntl(given.as_raw_fd(), libc::F_DUPFD, 600) };
        let (_one, _other) = (shell("sleep 60").prepare().unwrap(), shell("sleep 60").prepare().unwrap());
        let entries = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
        // SAFETY: only reads a flag.
        let stays = |fd: &RawFd| matches!(unsafe { libc::fcntl(*fd, libc::F_GETFD) }, 0);
        let mut expected: Vec<RawFd> = numbers.filter(stays).collect();
        expected.sort_unstable();
        assert!(expected.contains(&fd));
        let mut found: Vec<RawFd> = lines("ls /proc/$$/fd; true").iter().map(|fd| fd.parse().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, expected);
        println!("descriptors are as expected");
    }

    #[test]
    fn many_programs_at_once_do_not_hold_up_each_others_output() {
        let programs: Vec<Launched> = std::thread::scope(|scope| {
            let start = |i: usize| move || shell(&format!("echo {i}; exec sleep 60")).prepare().unwrap();
            let prepared: Vec<_> = (0..8).map(|i| scope.spawn(start(i))).collect();
            prepared.into_iter().map(|thread| thread.join().unwrap().start().unwrap()).collect()
        });
        for (i, mut program) in programs.into_iter().enumerate() {
            // Interrupted sooner, the shell would print nothing.
            let begun = std::time::Instant::now();
            while program.last_lines().is_empty() && begun.elapsed().as_secs() < 30 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let report = program.stop(&Grace::default()).unwrap();
            assert_eq!((report.interrupted.len(), report.killed.len()), (1, 0), "{report}");
            assert_eq!(program.exit().unwrap().unwrap().signal, Some(libc::SIGINT));
            assert_eq!(program.last_lines(), [i.to_string()]);
        }
    }

    fn refusal(launch: Launch) -> String {
        match launch.prepare().and_then(Prepared::start) {
            Ok(_) => panic!("it ran"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_program_that_cannot_run_is_refused_with_the_reason_and_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let script = |name: &str, mode, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            refusal(Launch::new([path]))
        };
        assert_eq!(
            refusal(Launch::new(["no-such-simulator"])),
            "cannot run `no-such-simulator`: not found in PATH: install it, or give its path"
        );
        assert!(refusal(Launch::new(["/no/such/simulator"])).contains("there is no file /no/such/simulator"));
        assert!(refusal(Launch::new(["/etc"])).contains("/etc is a directory"));
        assert!(refusal(Launch::new(Vec::<String>::new())).contains("no command given"));
        assert!(refusal(Launch::new(["sh", "a\0b"])).contains("NUL"));
        assert!(refusal(Launch::new(["sh"]).directory("/no/such/place")).contains("/no/such/place"));
        assert!(script("plain", 0o644, "#!/bin/sh\n").contains("chmod +x"));
        assert!(script("interpreter", 0o755, "#!/no/such/python3 -u\n").contains("`/no/such/python3`"));
        assert!(script("none", 0o755, "echo hello\n").contains("add `#!/bin/sh`"));
        let output = Output::File("/no/such/place/log".into());
        assert!(refusal(Launch::new(["true"]).output(output)).contains("/no/such/place/log"));
    }

    #[test]
    fn a_watcher_sees_lines_while_the_program_runs() {
        let (tell, told) = std::sync::mpsc::channel();
        let watch: LineWatcher = Box::new(move |line| tell.send(line.to_owned()).unwrap());
        let output = Output::Captured { keep_lines: 5, copy_to: None, watch: Some(watch) };
        let program = shell("echo ready; exec sleep 60").output(output).prepare().unwrap().start().unwrap();
        assert_eq!(told.recv_timeout(LONG).unwrap(), "ready");
        drop(program);
        assert_eq!(told.iter().count(), 0);
    }

    #[test]
    fn under_sudo_a_program_has_its_users_rights_and_no_others() {
        // SAFETY: geteuid only returns a number.
        if unsafe { libc::geteuid() } != 0 {
            println!("skipped: under_sudo_a_program_has_its_users_rights_and_no_others: not root");
            return;
        }
        let printed = alone("prints_the_rights_of_a_program", &[("SUDO_UID", "65534"), ("SUDO_GID", "65534")]);
        assert!(printed.contains("rights: 65534 65534 65534 nobody"), "{printed}");
        assert!(printed.contains("rights as ourselves: 0 "), "{printed}");
    }

    #[test]
    #[ignore = "run by another test, with the variables that sudo sets"]
    fn prints_the_rights_of_a_program() {
        println!("rights: {}", lines("cd /; echo $(id -u) $(id -g) $(id -G) $USER").join(" "));
        let (_, ours) = run(shell("echo $(id -u) $(id -G)").run_as(RunAs::Ourselves));
        println!("rights as ourselves: {} ", ours[0].split(' ').next().unwrap());
    }
}
