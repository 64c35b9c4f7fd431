//! `stepscope report`: a run, or captures, as one HTML file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::diagnose;
use stepscope_lab::report::report;
use stepscope_view::report::write_html;

use crate::arguments::analysed::AnalysedArguments;
use crate::failure::Failure;
use crate::load::Loaded;
use crate::output::Target;
use crate::progress;

/// The name of a run's report in its folder.
const FILE_NAME: &str = "report.html";

/// Write a report: one HTML file with the cost tree, the rank, and the analyses of each capture.
#[derive(Debug, Args)]
pub struct Report {
    /// The file to write, `-` for standard output [default: report.html in the folder of a single run, else in the working
    /// directory].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    analysed: AnalysedArguments,
}

impl Report {
    pub fn run(self) -> Result<ExitCode, Failure> {
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
        let report = progress::of_step("analysing", || {
            self.analysed
                .analyse(loaded, |selections| Ok(report(info, selections, diagnose::table(selections, &loaded.calls))))
        })?;
        let path = self.output.clone().unwrap_or_else(|| match (run, self.analysed.sources.as_slice()) {
            (Some(run), [_]) => run.folder().join(FILE_NAME),
            _ => FILE_NAME.into(),
        });
        let target = Target::of(Some(&path));
        let written = target.write(|out| write_html(&report, out).map_err(Failure::writing("the report")))?;
        Ok(written.map(Path::to_owned))
    }
}
