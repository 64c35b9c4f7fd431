//! A run on disk: every capture that one execution of a lab file made, and what came of each scenario.
//!
//! ```text
//! stepscope-runs/
//!   latest -> 2026-11-21T11-44-51Z
//!   2026-11-21T11-44-51Z/
//!     run.json                          what was run, on which machine, and what came of it
//!     stepscope.toml                    the lab file, as it was
//!     report.html  rank.json  rank.tsv
//!     shapes/base/output.log            what the program printed; driver-N.log for its drivers
//!     shapes/base/loading/              a capture: capture.json and Parquet tables
//!     shapes/base/steady/
//!     shapes/after/...
//! ```
//!
//! Every capture lies at the same depth, under `RUN/SCENARIO/VARIANT/PHASE` (the variant of a lab file without variants
//! is `base`), so that engines that know partitioned folders query many runs in place.
//!
//! Where variants are compared, each is run repeatedly, with one more folder level:
//!
//! ```text
//!     shapes/before/01/output.log
//!     shapes/before/01/steady/          the capture of the first run of `before`
//!     shapes/before/02/steady/
//!     shapes/after/01/steady/
//!     build-after.log                   what building a revision printed
//!     .set-aside/shapes/before/03/...   a run that is not compared: run.json says why
//! ```
//!
//! So `shapes/before/*/steady` are the captures of one side, and nothing else is. What is set aside (a round that was not
//! completed, or in which others used the machine) is kept where no pattern and no tool that takes the whole run finds it.

mod folder;
mod info;
#[cfg(feature = "record")]
mod recording;
#[cfg(feature = "record")]
mod results;

pub(crate) use self::folder::write_file;
pub use self::folder::{LATEST, RUN_FILE, RUNS_FOLDER, Run, RunError, Sides};
pub use self::info::{AbInfo, RunInfo, SET_ASIDE, TrialInfo};
#[cfg(feature = "record")]
pub use self::results::{REPORT_FILE, RunResults, record_and_report};
