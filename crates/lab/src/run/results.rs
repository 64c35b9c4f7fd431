//! `stepscope run`: record, rank, report, add to the history.

use std::path::{Path, PathBuf};

use stepscope_analyze::{Filter, rank};
use stepscope_app::page;
use stepscope_convert::ImportOptions;
use stepscope_model::Table;
use stepscope_view::{Format, Style, render};

use super::folder::{Run, write_file};
use crate::event::Event;
use crate::execution::Context;
use crate::findings;
use crate::history::{AddError, Added, Store};
use crate::lab_file::{LabFile, Trial};
use crate::report::{report, shown};
use crate::source::{self, SourceError};

/// Name of a run's report in its folder.
pub const REPORT_FILE: &str = "report.html";

/// A finished run and its results.
#[derive(Debug)]
pub struct RunResults {
    /// The run.
    pub run: Run,
    /// What to change first; `None` if nothing was recorded.
    pub findings: Option<Table>,
    /// Functions ranked by cost over all scenarios; `None` if nothing was recorded.
    pub rank: Option<Table>,
    /// The report; `None` if nothing was recorded.
    pub report: Option<PathBuf>,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
}

/// Records trials into a new folder below `runs`, ranks the functions and writes the report.
///
/// A trial that fails does not stop the others; an interrupt does. Results are written into the run's folder as
/// `rank.json`, `rank.tsv` and `report.html`.
///
/// # Errors
/// If the run's folder cannot be written, or its captures cannot be read.
pub fn record_and_report(
    lab: &LabFile,
    trials: &[Trial],
    runs: &Path,
    context: &mut Context<'_>,
) -> Result<RunResults, SourceError> {
    let mut run = Run::create(runs, lab, trials)?;
    context.listener.notify(&Event::RunStarted { folder: run.folder(), trials: trials.len() });
    run.record(trials, context)?;
    analyse(run, context)
}

/// Ranks and reports a run.
///
/// # Errors
/// If its folder cannot be written, or its captures cannot be read.
pub fn analyse(run: Run, context: &mut Context<'_>) -> Result<RunResults, SourceError> {
    let mut results = RunResults { run, findings: None, rank: None, report: None, notes: Vec::new() };
    if !results.run.captures().is_empty() {
        context.listener.notify(&Event::Analysing);
        results.analyse()?;
    }
    Ok(results)
}

impl RunResults {
    /// Reads the captures once; writes the rank and the report.
    fn analyse(&mut self) -> Result<(), SourceError> {
        let folder = self.run.folder().to_owned();
        let loaded = source::open(std::slice::from_ref(&folder), &ImportOptions::default())?;
        let owned = loaded.ownership.clone().unwrap_or_default().compile();
        let functions = loaded.functions(&owned.map_err(|error| SourceError::Usage(error.to_string()))?);
        let filter = Filter { naming: loaded.naming.clone(), ..Filter::default() };
        let selections = source::selections(&loaded.captures, &functions, &filter)?;
        let rank = rank::table(&selections, &rank::Options::default());
        for (file, format) in [("rank.json", Format::Json), ("rank.tsv", Format::Tsv)] {
            write_file(&folder.join(file), |out| render(&rank, format, &Style::PLAIN, out))?;
        }
        let findings = findings::findings(&selections, &loaded.calls);
        let path = folder.join(REPORT_FILE);
        let report = report(self.run.info(), &selections, findings.clone());
        let shown = shown(self.run.info(), &selections);
        write_file(&path, |out| page::write(&report, &shown, page::BUDGET, out).map(|_| ()))?;
        self.findings = Some(findings);
        self.rank = Some(rank);
        self.report = Some(path);
        self.notes.extend(loaded.notes);
        Ok(())
    }

    /// Adds the run to the history beside its lab file.
    ///
    /// # Errors
    /// If the history cannot be written. The run itself is complete then.
    pub fn remember(&self, lab: &LabFile) -> Result<Added, AddError> {
        Store::beside(lab.folder()).add_run(&self.run)
    }
}
