//! `stepscope report`: a run, or captures, as one HTML file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use stepscope_app::page::{self, Written};
use stepscope_lab::comparison::with_comparison;
use stepscope_lab::findings::findings;
use stepscope_lab::report::{report, shown};
use stepscope_model::quantity::plural;

use crate::arguments::analysed::AnalysedArguments;
use crate::arguments::size;
use crate::failure::Failure;
use crate::load::Loaded;
use crate::output::Target;
use crate::progress;

/// The name of a run's report in its folder.
const FILE_NAME: &str = "report.html";

/// Write a report: the page of `stepscope view` as one HTML file.
///
/// The file works without a network and without Stepscope: mail it, or attach it to a pull request.
#[derive(Debug, Args)]
pub struct Report {
    /// The file to write, `-` for standard output [default: report.html in the folder of a single run, else in the working
    /// directory].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Largest size of the file, about. Samples, waits and the timeline are added up until they fit, and the page says what it
    /// lacks. Tables are always whole.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "12MB")]
    budget: u64,
    #[command(flatten)]
    analysed: AnalysedArguments,
}

impl Report {
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        let loaded = progress::of_step("reading captures", || self.analysed.load())?;
        let written = self.write(&loaded)?;
        if let Some(path) = written {
            println!("{}", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the report and returns its path, if it is a file.
    fn write(&self, loaded: &Loaded) -> Result<Option<PathBuf>, Failure> {
        if loaded.captures.is_empty() {
            return Err(Failure::Failed("no capture to report on; see run.json for what happened".to_owned()));
        }
        let run = loaded.run.as_ref();
        let info = run.and_then(|run| run.info());
        let path = self.output.clone().unwrap_or_else(|| match (run, self.analysed.sources.as_slice()) {
            (Some(run), [_]) => run.folder().join(FILE_NAME),
            _ => FILE_NAME.into(),
        });
        let target = Target::of(Some(&path));
        let written = self.analysed.analyse(loaded, |selections| {
            let report = progress::of_step("analysing", || {
                let report = report(info, selections, findings(selections, &loaded.calls));
                with_comparison(report, run)
            });
            let write = |out: &mut dyn Write| {
                let shown = shown(info, selections);
                let written = page::write(&report, &shown, self.budget, out)?;
                say_reduced(written, shown.len());
                Ok(())
            };
            target.write(|out| write(out).map_err(Failure::writing("the report")))
        })?;
        Ok(written.map(Path::to_owned))
    }
}

fn say_reduced(written: Written, captures: usize) {
    if written.left_out > 0 {
        eprintln!(
            "note: no timeline and flame graph of {} of {}: they did not fit; the page names them.",
            written.left_out,
            plural(captures, "capture")
        );
    }
    if written.reduced > 0 {
        eprintln!(
            "note: {} of {} did not fit whole; the page says what it lacks. `--budget` allows more, `stepscope view` shows all.",
            written.reduced,
            plural(captures, "capture")
        );
    }
}
