//! Measures the tool itself: runs a program whose pathologies are known and can be switched on, in all the ways that
//! [`proof`](stepscope_analyze::proof) compares.
//!
//! The program is the bundled proving ground, or any other that keeps to the same contract:
//!
//! - `PROGRAM list --format json` prints its [`Catalogue`];
//! - `PROGRAM ARGUMENTS --slow NAMES` runs a scenario of that, with `all` and `-NAME` among the names;
//! - `--warm-steps K` steps before it is ready, when it makes the file `--ready-file`; then it runs until it gets SIGTERM,
//!   or until it did `--steps` in all, or for `--seconds`; with `--linger` it then waits for SIGTERM, and with `--pause S` it is
//!   idle for a while before its steady phase;
//! - `--account FILE` makes it write an account when it did its steps, with `--scopes` of the functions too.
//!
//! Runs of a case are interleaved in a drawn order, all settings and ways in each round, so that what else happens on the
//! machine meets all of them. All runs of a case have the same steps to warm up, and bare runs that are compared have equally
//! many steps. Recorded runs are an ordinary [run](crate::run), which every other subcommand opens.

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

/// Why the tool could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ProvingError {
    /// The program cannot be run.
    #[error("cannot run {program}: {source}")]
    Program {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It failed.
    #[error("{program} {arguments} failed ({status}): {said}")]
    Failed {
        /// The program.
        program: PathBuf,
        /// What it was asked.
        arguments: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said.
        said: String,
    },
    /// What it wrote is not what it should be.
    #[error("{path}: {reason}; is this a proving ground of this version?")]
    Damaged {
        /// The file, or the program.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Nothing is asked for.
    #[error("there is no switch `{asked}`; there are {known}")]
    Unknown {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// A recording failed.
    #[error("{trial} was not recorded: {outcome}")]
    NotRecorded {
        /// Which.
        trial: String,
        /// What came of it.
        outcome: String,
    },
    /// The run is not one of a proving ground.
    #[error("{run}: no run of `prove`, or one of an earlier version that kept no catalogue: {source}")]
    NotProved {
        /// The run's folder.
        run: PathBuf,
        /// Why.
        source: Box<ProvingError>,
    },
    /// A build could not be made.
    #[error("cannot make the {build} build: {reason}")]
    Build {
        /// Which.
        build: &'static str,
        /// Why not.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
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

/// Whose code is looked at; `of` is what says so.
fn owned_code(ownership: &Ownership, of: &Path) -> Result<Owned, ProvingError> {
    ownership.compile().map_err(|error| ProvingError::Damaged { path: of.to_owned(), reason: error.to_string() })
}
