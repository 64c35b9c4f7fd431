//! A launched program: waiting before its `exec`, then running.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::keeper::{Exit, Failure, Keeper, Stage, wait_readable};
use super::output::OutputReader;
use super::stop::{self, Grace, StopReport};
use super::{LaunchError, refusal};
use crate::proc::ProcessTree;

/// A program that waits just before its `exec`. If dropped, it never runs.
#[derive(Debug)]
pub struct Prepared {
    pub(super) command: String,
    pub(super) program: PathBuf,
    pub(super) directory: Option<PathBuf>,
    pub(super) keeper: Keeper,
    pub(super) reader: Option<OutputReader>,
}

impl Prepared {
    /// Process id of the program; `exec` does not change it.
    pub fn pid(&self) -> u32 {
        self.keeper.pid()
    }

    /// Path of the program that will run.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Lets the program run.
    ///
    /// # Errors
    /// [`LaunchError::Refused`] if `exec` failed; [`LaunchError::Directory`] or [`LaunchError::User`] if an earlier
    /// step failed. Nothing is left running in either case.
    pub fn start(mut self) -> Result<Launched, LaunchError> {
        match self.keeper.release()? {
            None => Ok(Launched { command: self.command, keeper: self.keeper, reader: self.reader }),
            Some(failure) => Err(self.explain(failure)),
        }
    }

    fn explain(self, failure: Failure) -> LaunchError {
        let source = io::Error::from_raw_os_error(failure.errno);
        match failure.stage {
            Stage::Directory => LaunchError::Directory { path: self.directory.unwrap_or_default(), source },
            Stage::User { uid } => LaunchError::User { uid, reason: source.to_string() },
            Stage::Streams => LaunchError::System { what: "connect the program's output", source },
            Stage::Exec => {
                let refusal = refusal::why(&self.program, failure.errno);
                LaunchError::Refused { command: self.command, refusal }
            }
        }
    }
}

/// A program that runs, or has run. Dropping it kills it and everything it started; [`stop`](Self::stop) is gentler.
#[derive(Debug)]
pub struct Launched {
    command: String,
    pub(super) keeper: Keeper,
    reader: Option<OutputReader>,
}

impl Launched {
    /// Process id of the program. After its end ([`exit`](Self::exit)), the kernel may give the id to another process.
    pub fn pid(&self) -> u32 {
        self.keeper.pid()
    }

    /// The process that everything descends from which the program started, daemons too.
    pub fn keeper_pid(&self) -> u32 {
        self.keeper.keeper_pid()
    }

    /// The program as it was named.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The program and everything it started.
    pub fn tree(&self) -> ProcessTree {
        ProcessTree::below(self.keeper.keeper_pid())
    }

    /// How the program ended, or `None` while it runs. What it started may still run.
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
        Ok(self.keeper.all_ended())
    }

    /// Becomes readable when the program ends, and again when the last process it started ends. An event loop then
    /// calls [`exit`](Self::exit) and [`all_ended`](Self::all_ended).
    pub fn ended_fd(&self) -> BorrowedFd<'_> {
        self.keeper.report_fd()
    }

    /// Waits until the program ends, for at most `limit`. `None` if it still runs then.
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

    /// The last lines of output, oldest first: everything printed before this call is included. Empty unless the
    /// output is [`Output::Captured`](super::Output::Captured).
    pub fn last_lines(&self) -> Vec<String> {
        let Some(reader) = &self.reader else { return Vec::new() };
        reader.catch_up();
        reader.last_lines().snapshot()
    }

    /// Ends the program and everything it started: SIGINT (as Ctrl-C in a terminal), then SIGTERM, then SIGKILL. The
    /// grace period after a signal ends as soon as nothing is left.
    ///
    /// # Errors
    /// [`LaunchError::System`] if the keeper does not answer. Processes that cannot be ended are not an error: see
    /// [`StopReport::survivors`].
    pub fn stop(&mut self, grace: &Grace) -> Result<StopReport, LaunchError> {
        let report = stop::stop(&mut self.keeper, grace)?;
        if let Some(reader) = &self.reader {
            reader.catch_up();
        }
        Ok(report)
    }
}
