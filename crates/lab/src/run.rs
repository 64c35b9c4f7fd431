//! A run on disk: the captures of one execution of a lab file, and the outcome of each trial.
//!
//! ```text
//! stepscope-runs/
//!   latest -> 2026-11-21T11-44-51Z
//!   2026-11-21T11-44-51Z/
//!     run.json                          trials, machine, outcomes
//!     stepscope.toml                    a copy of the lab file
//!     report.html  rank.json  rank.tsv
//!     calls.json                        what `diagnose --deepen` found out about calls
//!     shapes/base/output.log            output of the program; driver-N.log for its drivers
//!     shapes/base/loading/              a capture: capture.json and Parquet tables
//!     shapes/base/steady/
//!     shapes/after/...
//! ```
//!
//! All captures have the same depth: `RUN/SCENARIO/VARIANT/PHASE` (the variant of a lab file without variants
//! is `base`). Query engines that support partitioned folders can read many runs in place.
//!
//! Comparisons run each variant repeatedly, with one more folder level:
//!
//! ```text
//!     shapes/before/01/output.log
//!     shapes/before/01/steady/          the capture of the first run of `before`
//!     shapes/before/02/steady/
//!     shapes/after/01/steady/
//!     build-after.log                   output of the build of a revision
//!     .set-aside/shapes/before/03/...   an excluded run: run.json has the reason
//! ```
//!
//! So `shapes/before/*/steady` matches the captures of one side. Excluded runs (of incomplete or disturbed rounds) are in a
//! hidden folder, where patterns and tools that read a whole run do not find them.

mod folder;
mod info;
#[cfg(feature = "record")]
mod recording;
#[cfg(feature = "record")]
mod results;

pub(crate) use self::folder::write_file;
pub use self::folder::{ComparedCaptures, LATEST, RUN_FILE, RUNS_FOLDER, Run, RunError};
pub use self::info::{AbInfo, RunInfo, SET_ASIDE, SweepInfo, TrialInfo};
#[cfg(feature = "record")]
pub use self::results::{REPORT_FILE, RunResults, analyse, record_and_report};
