//! The lab: runs the scenarios of a lab file, each through its phases, and keeps what was recorded.
//!
//! A *scenario* is a program, the condition under which it is ready, and the clients (*drivers*) that must be attached
//! to it. It is recorded in one or two *phases*: `loading`, from the launch until it is ready, and `steady`, for a
//! while after that. Scenarios times *variants* are *trials*; the captures of all trials are a *run*, a folder.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! use stepscope_lab::event::Event;
//! use stepscope_lab::execution::Context;
//! use stepscope_lab::lab_file::{LabFile, TrialFilter};
//! use stepscope_lab::outcome::exit_code;
//! use stepscope_lab::recorder::PerfRecorder;
//! use stepscope_lab::run::record_and_report;
//!
//! let lab = LabFile::read(Path::new("stepscope.toml"))?;
//! let trials = lab.trials(&TrialFilter::default())?;
//!
//! let mut listener = |event: &Event<'_>| println!("{event:?}");
//! let interrupt = AtomicBool::new(false); // set it on Ctrl-C: what was recorded so far is kept
//! let mut context = Context { recorder: &PerfRecorder::default(), interrupt: &interrupt, listener: &mut listener };
//! let results = record_and_report(&lab, &trials, Path::new("stepscope-runs"), &mut context)?;
//! println!("report: {:?}", results.report);
//! std::process::exit(exit_code(results.run.outcomes()).into());
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What each module knows:
//!
//! - [`lab_file`]: what a lab file may say, its defaults, and how to say what is wrong in one;
//! - [`folder_map`]: takes a scenario's files from another build folder or checkout;
//! - [`run`]: the folder of a run, and running its trials one after the other;
//! - [`source`]: opening captures, runs and files of other tools by path;
//! - [`comparison`]: comparing sets of captures;
//! - [`gate`]: judging a comparison by the limits of a lab file;
//! - [`ab`]: running two variants in turns;
//! - [`conditions`]: the background load of trials, and which trials it disturbed;
//! - [`calm`]: waiting for the machine to be calm;
//! - [`revision`]: which revision a program was built from;
//! - [`checkout`]: a revision's files, checked out and built;
//! - [`execution`]: the life of one trial, from launch to captures;
//! - [`ready`]: when a program is ready;
//! - [`step`]: which function's calls are the steps;
//! - [`outcome`]: how a trial can end, and what exit code follows;
//! - [`history`]: what every run said, kept when the runs are deleted;
//! - [`proving`]: measuring the tool itself, on a program whose costs are known;
//! - [`event`]: the progress that a listener receives;
//! - [`output`]: what programs print, followed and quoted;
//! - [`report`]: what a report of a run holds;
//! - [`recorder`]: the seam to what records, so that all of the above is tested with real programs and without the
//!   right to record them.
//!
//! What reads (lab files, runs, reports, the history) needs no recorder. What launches and records is behind the feature
//! `record`, which is on by default: `ab`, `calm`, `checkout`, `event`, `execution`, `output`, `proving`, `ready`,
//! `recorder`, and in [`run`] what makes one.
//!
//! Two promises hold whatever happens. Nothing is left behind: a trial ends with its program, its drivers and all that
//! these started, daemons included, ended. And nothing is lost: a phase that was recorded is kept, whatever fails
//! after it.

#[cfg(feature = "record")]
pub mod ab;
#[cfg(feature = "record")]
pub mod calm;
#[cfg(feature = "record")]
pub mod checkout;
pub mod comparison;
pub mod conditions;
#[cfg(feature = "record")]
mod driver;
#[cfg(feature = "record")]
pub mod event;
#[cfg(feature = "record")]
pub mod execution;
#[cfg(feature = "record")]
mod exit;
pub mod folder_map;
pub mod gate;
pub mod history;
mod json_lines;
pub mod lab_file;
pub mod outcome;
#[cfg(feature = "record")]
pub mod output;
#[cfg(feature = "record")]
mod own_metrics;
#[cfg(feature = "record")]
pub mod proving;
#[cfg(feature = "record")]
pub mod ready;
#[cfg(feature = "record")]
pub mod recorder;
pub mod report;
pub mod revision;
pub mod run;
pub mod source;
pub mod step;
