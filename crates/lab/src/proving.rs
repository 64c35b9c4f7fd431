//! Measures Stepscope itself on a program with known pathologies that can be switched on. The runs are those that
//! [`proof`](stepscope_analyze::proof) compares.
//!
//! The program is the bundled simulator, or any other with this interface:
//!
//! - `PROGRAM list --format json` prints its [`Catalogue`];
//! - `PROGRAM ARGUMENTS --slow NAMES` runs a scenario of the catalogue; names include `all` and `-NAME`;
//! - it makes the file `--ready-file` after `--warm-steps K` steps; it then runs until SIGTERM,
//!   for `--steps` in total, or for `--seconds`; with `--linger` it then waits for SIGTERM, and with `--pause S` it is
//!   idle for a while before its steady phase;
//! - `--account FILE` makes it write an account after its last step; with `--scopes`, also of functions.
//!
//! Runs of a case are interleaved in random order, with all settings and ways in each round, so that changes of the
//! machine affect all of them. All runs of a case have the same number of warm-up steps, and compared bare runs have the
//! same number of steps. Recorded runs form an ordinary [run](crate::run), which all subcommands open.

mod account;
mod again;
mod builds;
mod catalogue;
mod evidence;
mod proof_run;
mod scores;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::{fs, io};

use serde::de::DeserializeOwned;
use stepscope_analyze::{Owned, Ownership};

pub use again::again;
pub use builds::BuildKind;
pub use catalogue::{Catalogue, Control, Switch};
pub use proof_run::{Options, ProofRun, RUNS_A_ROUND, prove};
pub use scores::{Entry, Held, SCORES, Scores};

use crate::run::RunError;

/// Why Stepscope could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ProvingError {
    /// The program cannot be run.
    #[error("cannot run {program}: {source}")]
    Program {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program failed.
    #[error("{program} {arguments} failed ({status}): {said}")]
    Failed {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: String,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its output.
        said: String,
    },
    /// Its output is invalid.
    #[error("{path}: {reason}; is this a simulator of this version?")]
    Damaged {
        /// The file, or the program.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is no such switch.
    #[error("there is no switch `{asked}`; there are {known}")]
    Unknown {
        /// The requested name.
        asked: String,
        /// All names.
        known: String,
    },
    /// A recording failed.
    #[error("{trial} was not recorded: {outcome}")]
    NotRecorded {
        /// Its name.
        trial: String,
        /// Its outcome.
        outcome: String,
    },
    /// The run is not one of `prove`.
    #[error("{run}: not a run of `stepscope prove`, or one of an earlier version without a catalogue: {source}")]
    NotProved {
        /// The run's folder.
        run: PathBuf,
        /// The reason.
        source: Box<ProvingError>,
    },
    /// A build could not be made.
    #[error("cannot make the {build} build: {reason}")]
    Build {
        /// Its name.
        build: &'static str,
        /// The reason.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] stepscope_model::disk::DiskError),
    /// The run cannot be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Interrupted.
    #[error("interrupted")]
    Interrupted,
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ProvingError> {
    let text = fs::read(path).map_err(|source| ProvingError::File { path: path.to_owned(), source })?;
    serde_json::from_slice(&text)
        .map_err(|error| ProvingError::Damaged { path: path.to_owned(), reason: error.to_string() })
}

/// Compiles the patterns of owned code; `of` names their source in errors.
fn owned_code(ownership: &Ownership, of: &Path) -> Result<Owned, ProvingError> {
    ownership.compile().map_err(|error| ProvingError::Damaged { path: of.to_owned(), reason: error.to_string() })
}
