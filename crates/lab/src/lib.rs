//! The lab: runs the scenarios of a lab file through their phases, records them, and compares runs.
//!
//! A *scenario* is a program, the condition under which it is ready, and the clients (*drivers*) that must be attached
//! to it. It has one or two *phases*: `loading`, from the launch until it is ready, and `steady`, for a while after that. A
//! scenario in a *variant* is a *trial*. The captures of all trials are a *run*, a folder.
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
//! let interrupt = AtomicBool::new(false); // set it on Ctrl-C; finished recordings are kept
//! let mut context = Context { recorder: &PerfRecorder::default(), interrupt: &interrupt, listener: &mut listener };
//! let results = record_and_report(&lab, &trials, Path::new("stepscope-runs"), &mut context)?;
//! println!("report: {:?}", results.report);
//! std::process::exit(exit_code(results.run.outcomes()).into());
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | knows |
//! |---|---|
//! | [`lab_file`] | the keys of a lab file, their defaults, and how to report mistakes |
//! | [`folder_map`] | paths in another build folder or checkout |
//! | [`run`] | the folder of a run, and running its trials in sequence |
//! | [`source`] | opening captures, runs and files of other tools by path |
//! | [`clock`] | what exchanges with other machines say about their clocks |
//! | [`merge`] | merging captures of several machines |
//! | [`naming`] | naming the functions of captures on disk again |
//! | [`comparison`] | comparing sets of captures |
//! | [`gate`] | judging a comparison by the limits of a lab file |
//! | [`history`] | the metrics of every run, kept when the runs are deleted |
//! | [`store`] | the tables of runs in a store, which many machines share |
//! | [`report`] | the sections of a report |
//! | [`publish`] | runs as folders of a static site |
//! | [`conditions`] | the background load of trials, and which of them it disturbed |
//! | [`revision`] | the revision of a working tree |
//! | [`outcome`] | how a trial can end, and the exit code that follows |
//! | [`step`] | which function's calls are the steps |
//!
//! The feature `record`, on by default, adds the modules that launch and record:
//!
//! | module | knows |
//! |---|---|
//! | [`execution`] | the life of one trial, from launch to captures |
//! | [`program`] | recording one program without a lab file |
//! | [`ready`] | when a program is ready |
//! | [`ab`] | running two variants in alternation |
//! | [`sweep`] | running scenarios at several sizes and on several numbers of CPUs |
//! | [`cluster`] | trials as tasks of Slurm, Ray or ssh |
//! | [`cache_simulation`] | a program's cache misses, simulated below valgrind |
//! | [`calm`] | waiting for a low background load |
//! | [`checkout`] | a revision's files, checked out and built |
//! | [`output`] | what programs print, followed and quoted |
//! | [`event`] | the progress that a listener receives |
//! | [`recorder`] | the interface to the recorder, so that tests need no right to record |
//! | [`findings`] | what `diagnose` finds, with the machine code of the programs |
//! | [`proving`] | measuring Stepscope on a program with known costs |
//!
//! Nothing is left behind: when a trial ends, its program, its drivers and everything they started have ended, including
//! daemons. Nothing is lost: a recorded phase is kept, whatever fails after it.

#[cfg(feature = "record")]
pub mod ab;
#[cfg(feature = "record")]
pub mod cache_simulation;
#[cfg(feature = "record")]
pub mod calm;
#[cfg(feature = "record")]
pub mod checkout;
pub mod clock;
#[cfg(feature = "record")]
pub mod cluster;
pub mod comparison;
pub mod conditions;
#[cfg(feature = "record")]
pub mod deepen;
#[cfg(feature = "record")]
mod driver;
#[cfg(feature = "record")]
pub mod event;
#[cfg(feature = "record")]
pub mod execution;
#[cfg(feature = "record")]
mod exit;
pub mod findings;
pub mod folder_map;
pub mod gate;
pub mod history;
mod json_lines;
pub mod lab_file;
pub mod merge;
pub mod naming;
pub mod outcome;
#[cfg(feature = "record")]
pub mod output;
#[cfg(feature = "record")]
mod own_metrics;
#[cfg(feature = "record")]
pub mod program;
#[cfg(feature = "record")]
pub mod proving;
pub mod publish;
#[cfg(feature = "record")]
pub mod ready;
#[cfg(feature = "record")]
pub mod recorder;
pub mod report;
pub mod revision;
pub mod run;
#[cfg(feature = "record")]
mod selected;
pub mod source;
pub mod step;
pub mod store;
mod stored_captures;
#[cfg(feature = "record")]
pub mod sweep;
