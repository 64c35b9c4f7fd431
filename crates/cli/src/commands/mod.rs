//! The subcommands, one file each.

#[cfg(feature = "record")]
mod ab;
#[cfg(feature = "record")]
mod build;
#[cfg(feature = "record")]
mod ci;
#[cfg(feature = "record")]
mod clock;
mod compare;
mod completions;
#[cfg(feature = "record")]
mod demo;
mod diagnose;
#[cfg(feature = "record")]
mod doctor;
mod explain;
mod export;
mod flamegraph;
pub mod gate;
mod growth;
pub mod history;
mod import;
#[cfg(feature = "record")]
mod live;
mod merge;
#[cfg(feature = "record")]
mod monitor;
#[cfg(feature = "record")]
mod prove;
mod publish;
mod query;
pub mod rank;
#[cfg(feature = "record")]
mod record;
mod recover;
mod report;
#[cfg(feature = "record")]
mod run;
#[cfg(feature = "record")]
mod segments;
mod served_page;
mod show;
mod store;
#[cfg(feature = "record")]
mod sweep;
#[cfg(feature = "record")]
mod symbolize;
#[cfg(feature = "record")]
mod task;
mod view;

use std::fs;
use std::io;
use std::path::Path;
#[cfg(feature = "record")]
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use stepscope_model::{Capture, disk};
#[cfg(feature = "record")]
use stepscope_symbolize::Symbolizer;

use crate::failure::Failure;
use crate::progress;

/// A subcommand with its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "record")]
    Demo(demo::Demo),
    #[cfg(feature = "record")]
    Doctor(doctor::Doctor),
    #[cfg(feature = "record")]
    Record(record::Record),
    #[cfg(feature = "record")]
    Monitor(monitor::Monitor),
    #[cfg(feature = "record")]
    Build(build::Build),
    #[cfg(feature = "record")]
    Run(run::Run),
    Diagnose(diagnose::Diagnose),
    Show(show::Show),
    Rank(rank::Rank),
    #[cfg(feature = "record")]
    Ab(ab::Ab),
    #[cfg(feature = "record")]
    Sweep(sweep::Sweep),
    Compare(compare::Compare),
    Gate(gate::Gate),
    #[cfg(feature = "record")]
    Ci(ci::Ci),
    History(history::History),
    Growth(growth::Growth),
    Capacity(growth::Capacity),
    Cores(growth::Cores),
    Explain(explain::Explain),
    View(view::View),
    Report(report::Report),
    Publish(publish::Publish),
    Store(store::Store),
    Query(query::Query),
    Flamegraph(flamegraph::Flamegraph),
    Import(import::Import),
    Merge(merge::Merge),
    #[cfg(feature = "record")]
    Clock(clock::Clock),
    Export(export::Export),
    #[cfg(feature = "record")]
    Symbolize(symbolize::Symbolize),
    Recover(recover::Recover),
    Completions(completions::Completions),
    Man(completions::Man),
    #[cfg(feature = "record")]
    Prove(prove::Prove),
    #[cfg(feature = "record")]
    #[command(hide = true)]
    Task(task::Task),
}

impl Command {
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self {
            #[cfg(feature = "record")]
            Command::Demo(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Doctor(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Record(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Monitor(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Build(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Run(command) => command.run(),
            Command::Diagnose(command) => command.run(),
            Command::Show(command) => command.run(),
            Command::Rank(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Ab(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Sweep(command) => command.run(),
            Command::Compare(command) => command.run(),
            Command::Gate(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Ci(command) => command.run(),
            Command::History(command) => command.run(),
            Command::Growth(command) => command.run(),
            Command::Capacity(command) => command.run(),
            Command::Cores(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::View(command) => command.run(),
            Command::Report(command) => command.run(),
            Command::Publish(command) => command.run(),
            Command::Store(command) => command.run(),
            Command::Query(command) => command.run(),
            Command::Flamegraph(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Merge(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Clock(command) => command.run(),
            Command::Export(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Symbolize(command) => command.run(),
            Command::Recover(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Prove(command) => command.run(),
            #[cfg(feature = "record")]
            Command::Task(command) => command.run(),
        }
    }
}

/// Refuses to write a capture into a folder that is in use, unless it holds a capture and `force` is set.
fn refuse_to_replace(folder: &Path, force: bool) -> Result<(), Failure> {
    let name = folder.display();
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(Failure::Usage(format!("{name}: not a folder; name another with -o")));
        }
        Err(error) => return Err(Failure::Failed(format!("{name}: {error}"))),
    };
    let ours = stepscope_lab::source::is_capture(folder);
    match (is_empty, ours, force) {
        (true, ..) | (_, true, true) => Ok(()),
        (_, true, false) => Err(Failure::Usage(format!("{name}: holds a capture; add --force to replace it"))),
        (_, false, _) => {
            Err(Failure::Usage(format!("{name}: not empty and not a capture; name another folder with -o")))
        }
    }
}

/// Symbolizes the raw log in `folder`, writes the capture beside it and removes the log.
#[cfg(feature = "record")]
fn finish_recording(folder: &Path) -> Result<Capture, Failure> {
    finish_recording_with(folder, |_| ())
}

/// As [`finish_recording`], with what `complete` adds to the capture.
#[cfg(feature = "record")]
fn finish_recording_with(folder: &Path, complete: impl FnOnce(&mut Capture)) -> Result<Capture, Failure> {
    let _held = disk::hold_log(folder).map_err(|error| Failure::Failed(error.to_string()))?;
    let mut symbolizer = Symbolizer::default();
    let mut capture = progress::of_step("naming functions", || stepscope_record::finish(folder, &mut symbolizer))?;
    complete(&mut capture);
    write_capture(capture, folder)
}

/// Makes the captures of all segments of a recording. The last one is finished here.
#[cfg(feature = "record")]
fn finish_segments(segments: segments::Segments, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let last = disk::segments(folder).pop().map(|last| finish_recording(&last));
    let finished = progress::of_step("finishing segments", || segments.finish())?;
    last.transpose()?;
    Ok(finished)
}

/// Writes the capture beside the raw log in `folder`, and removes the log.
fn write_capture(capture: Capture, folder: &Path) -> Result<Capture, Failure> {
    progress::of_step("writing the capture", || disk::write(&capture, folder)).map_err(|error| {
        let name = folder.display();
        Failure::Failed(format!("{error}; the recorded log is kept: make room, then `stepscope recover {name}`"))
    })?;
    disk::remove_log(folder).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(capture)
}
