//! Starts a program so that it can be recorded from its first instruction, and stops it so that nothing is left.
//!
//! A *keeper* stands between the recorder and the program: a child process whose only task is to hold the program's
//! processes together. It is the subreaper of everything below it. A daemon that forks twice and changes its session
//! becomes the keeper's child, not init's. So the program's tree is exactly what descends from the keeper, even when
//! several programs are launched at once. The keeper collects zombies and reports the exit status and resource usage.
//! If the recorder dies, even by SIGKILL, the keeper ends everything below it and then itself.
//!
//! The recorder itself is no subreaper: that would mix the orphans of all programs, and it would collect children that
//! other parts of the recorder wait for.
//!
//! A launch has two halves. [`Launch::prepare`] creates the process, which waits just before `exec`:
//! [`Prepared::pid`] is final, and events can be attached to it. [`Prepared::start`] lets it continue and reports
//! whether `exec` worked.
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
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};

mod affinity;
mod keeper;
mod output;
mod refusal;
mod running;
mod stop;
mod user;

pub use affinity::allowed_cpus;
pub(crate) use affinity::restrict as restrict_to_cpus;
pub use keeper::{Exit, Usage};
pub use output::{LastLines, LineWatcher};
pub use refusal::Refusal;
pub use running::{Launched, Prepared};
pub use stop::{Grace, StopReport, StoppedProcess, Survivor};
pub use user::RunAs;

/// Why a program could not be started or followed.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No program was named.
    #[error("no command given: name a program after `--`")]
    NoCommand,
    /// An argument or variable contains a NUL byte, which cannot be passed to a program.
    #[error("{what} contains a NUL byte, which cannot be passed to a program: {text:?}")]
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
    /// Its working directory cannot be entered.
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
    /// The user whose rights it was to get is unknown.
    #[error("cannot run the program as user {uid}: {reason}: run stepscope as that user, or keep root's rights")]
    User {
        /// The user's id.
        uid: u32,
        /// What failed.
        reason: String,
    },
    /// The system lacks a resource that a launch needs: processes, descriptors, memory.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
}

/// Source of the program's standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Input {
    /// Empty: the program reads end-of-file at once.
    #[default]
    Null,
    /// The recorder's own input. If that is a terminal, the program stays in the recorder's process group, because the
    /// kernel stops background groups that read from it; Ctrl-C then reaches both. Otherwise it gets its own group.
    Inherit,
}

/// Destination of the program's standard output and error.
#[derive(Default)]
pub enum Output {
    /// The recorder's own.
    #[default]
    Inherit,
    /// Discarded.
    Null,
    /// One file, truncated first.
    File(PathBuf),
    /// The recorder: it keeps the last lines (see [`Launched::last_lines`]), passes each line to a watcher, and can
    /// copy everything to a file. As with any pipe, programs that use stdio write in blocks unless they flush.
    Captured {
        /// How many of the last lines to keep.
        keep_lines: usize,
        /// A file for a copy of everything, truncated first.
        copy_to: Option<PathBuf>,
        /// Called with each line, without its newline.
        watch: Option<LineWatcher>,
    },
}

impl Output {
    /// Captured, keeping this many of the last lines.
    pub fn captured(keep_lines: usize) -> Self {
        Output::Captured { keep_lines, copy_to: None, watch: None }
    }
}

/// A command to start, and how.
#[derive(Default)]
pub struct Launch {
    command: Vec<OsString>,
    environment: BTreeMap<OsString, Option<OsString>>,
    directory: Option<PathBuf>,
    input: Input,
    output: Output,
    run_as: RunAs,
    cpus: Option<Vec<usize>>,
}

impl Launch {
    /// The program and its arguments. A name without `/` is searched for in `PATH`, as in a shell.
    pub fn new<S: Into<OsString>>(command: impl IntoIterator<Item = S>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Program and arguments.
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Sets an environment variable; all others are inherited.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), Some(value.into()));
        self
    }

    /// Runs the program as the argument of another, such as a checker.
    pub(crate) fn below(mut self, wrapper: Vec<OsString>) -> Self {
        self.command.splice(0..0, wrapper);
        self
    }

    /// Whether the program's `PATH` has a program of this name.
    pub(crate) fn has_in_path(&self, name: &str) -> bool {
        refusal::find(OsStr::new(name), self.variable("PATH").as_deref(), None).is_ok()
    }

    /// The value of an environment variable, as the program will have it.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.environment.get(OsStr::new(name)).cloned().unwrap_or_else(|| std::env::var_os(name))
    }

    /// Removes an environment variable.
    pub fn without_env(mut self, name: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), None);
        self
    }

    /// Sets the working directory. A relative program path (`./sim`) starts from there.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The working directory, if it is not our own.
    pub(crate) fn working_directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Sets the source of standard input.
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Sets the destination of standard output and error.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets the user whose rights the program gets.
    pub fn run_as(mut self, run_as: RunAs) -> Self {
        self.run_as = run_as;
        self
    }

    /// Restricts the program, and all that it starts, to these CPUs.
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.cpus = Some(cpus.into_iter().collect());
        self
    }

    /// Path of the program that would run.
    ///
    /// # Errors
    /// [`LaunchError`] if there is no such program.
    pub fn program(&self) -> Result<PathBuf, LaunchError> {
        let found = self.find(self.variable("PATH").as_deref())?;
        Ok(self.directory.as_ref().map_or_else(|| found.clone(), |directory| directory.join(&found)))
    }

    fn find(&self, search: Option<&OsStr>) -> Result<PathBuf, LaunchError> {
        let name = self.command.first().ok_or(LaunchError::NoCommand)?;
        let command = || name.to_string_lossy().into_owned();
        refusal::find(name, search, self.directory.as_deref())
            .map_err(|refusal| LaunchError::Refused { command: command(), refusal })
    }

    /// Creates the process, which waits just before `exec` until [`Prepared::start`].
    ///
    /// # Errors
    /// [`LaunchError`]. A missing or non-executable program is reported here, where that can be known without `exec`.
    pub fn prepare(self) -> Result<Prepared, LaunchError> {
        let user = self.run_as.resolve()?;
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let user_environment = user.iter().flat_map(|user| user.environment.clone());
        for (name, value) in user_environment.chain(self.environment.clone()) {
            match value {
                Some(value) => environment.insert(name, value),
                None => environment.remove(&name),
            };
        }
        let program = self.find(environment.get(OsStr::new("PATH")).map(OsString::as_os_str))?;
        let own_group = !(self.input == Input::Inherit && is_terminal(0));
        let (streams, capture) = open_streams(self.input, self.output)?;
        let image = keeper::Image::new(&program, &self.command, &environment, self.directory.as_deref())?;
        let keeper = keeper::Keeper::fork(&image, &streams, own_group, user.as_ref())?;
        if let Some(cpus) = &self.cpus {
            affinity::restrict(keeper.pid(), cpus)
                .map_err(|source| LaunchError::System { what: "restrict the program to its CPUs", source })?;
        }
        let reader = capture.map(output::Capture::start).transpose()?;
        let command = self.command[0].to_string_lossy().into_owned();
        Ok(Prepared { command, program, directory: self.directory, keeper, reader })
    }
}

/// The descriptors that become 0, 1 and 2; `None` inherits.
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

#[cfg(test)]
mod tests;
