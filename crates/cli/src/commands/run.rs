//! `stepscope run`: records, ranks and reports every scenario of a lab file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_lab::lab_file::{LabFile, Trial};
use stepscope_lab::outcome;
use stepscope_lab::run::{self, RUNS_FOLDER, RunResults};
use stepscope_model::quantity::plural;
use stepscope_model::{Phase, Table, note};

use crate::arguments::trials::TrialArguments;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::TableArguments;
use crate::run_progress::RunProgress;

/// Record every scenario of a lab file, rank the functions and write a report.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    trials: TrialArguments,
    /// Folder that receives a new folder per run, named by the time.
    #[arg(short, long, default_value = RUNS_FOLDER, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    table: TableArguments,
}

impl Run {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let lab = self.trials.lab()?;
        let trials = lab.trials(&self.trials.filter()).map_err(|error| Failure::Usage(error.to_string()))?;
        let results = record(&lab, &trials, &self.output)?;
        print_added(results.remember(&lab));
        print(results, &self.table)
    }
}

/// Records and reports trials, with progress.
pub fn record(lab: &LabFile, trials: &[Trial], runs: &std::path::Path) -> Result<RunResults, Failure> {
    Ok(RunProgress::new().of(&interrupt::flag(), |context| run::record_and_report(lab, trials, runs, context))?)
}

/// Prints what the history did not take. The run is complete without it.
pub fn print_added(added: Result<stepscope_lab::history::Added, stepscope_lab::history::AddError>) {
    match added {
        Ok(added) => added.notes.iter().for_each(|note| eprintln!("note: {note}")),
        Err(error) => eprintln!("note: the run was not added to the history: {error}"),
    }
}

/// Findings that stand before the rank.
const FINDINGS: usize = 5;

/// A table's first rows, with a note that names the command that shows all.
fn first_rows(mut table: Table, most: usize, command: &str) -> Table {
    if table.rows.len() > most {
        table.note(note!(
            Hint,
            "Shows {} of {}; `{}` shows all.",
            most.to_string(),
            plural(table.rows.len(), "finding"),
            command
        ));
        table.rows.truncate(most);
    }
    table
}

/// Prints what to change first, then a table. For programs, the table alone.
pub fn print_after_findings(results: &RunResults, then: Table, arguments: &TableArguments) -> Result<(), Failure> {
    let command = format!("stepscope diagnose {}", results.run.folder().display());
    let findings = results.findings.clone().filter(|_| !arguments.for_programs());
    let findings = findings.map(|findings| first_rows(findings, FINDINGS, &command));
    arguments.print(findings.into_iter().chain([then]).collect())
}

/// Prints what to change first, the rank, and where to look next; gives the exit code.
pub fn print(results: RunResults, table: &TableArguments) -> Result<ExitCode, Failure> {
    let folder = results.run.folder().display();
    results.notes.iter().for_each(|note| eprintln!("note: {note}"));
    let code = ExitCode::from(outcome::exit_code(results.run.outcomes()));
    let (Some(rank), Some(report)) = (&results.rank, &results.report) else {
        eprintln!("nothing was recorded; see {folder}/run.json");
        return Ok(code);
    };
    print_after_findings(&results, rank.clone(), table)?;
    eprintln!("\nnext: stepscope view {folder}");
    eprintln!("      {} has the same in one file, to send or keep", report.display());
    eprintln!("      stepscope rank {folder} --by score");
    let captures = results.run.captures();
    let steady = captures.iter().find(|path| path.ends_with(Phase::Steady.to_string()));
    if let Some(capture) = steady.or(captures.first()) {
        eprintln!("      stepscope show {} --view wall", capture.display());
    }
    Ok(code)
}
