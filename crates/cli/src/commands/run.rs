//! `stepscope run`: records, ranks and reports every scenario of a lab file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_lab::cluster::{self, Placement};
use stepscope_lab::lab_file::{LabFile, Trial};
use stepscope_lab::outcome;
use stepscope_lab::run::{self, RUNS_FOLDER, RunResults};
use stepscope_model::quantity::plural;
use stepscope_model::{Phase, Table, note};

use crate::arguments::cluster::ClusterArguments;
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
    /// With --on: runs of each scenario and variant.
    #[arg(long, value_name = "COUNT", requires = "on", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// With --on: continue a run that has trials without a recording.
    #[arg(long, value_name = "RUN", requires = "on", conflicts_with_all = ["scenarios", "variants", "runs"])]
    resume: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    table: TableArguments,
}

impl Run {
    pub fn run(self) -> Result<ExitCode, Failure> {
        if let Some(placement) = self.cluster.placement()? {
            return self.on_cluster(&placement);
        }
        let lab = self.trials.lab()?;
        let trials = lab.trials(&self.trials.filter()).map_err(|error| Failure::Usage(error.to_string()))?;
        let results = record(&lab, &trials, &self.output)?;
        print_added(results.remember(&lab));
        print(results, &self.table)
    }
}

impl Run {
    fn on_cluster(&self, placement: &Placement) -> Result<ExitCode, Failure> {
        let (lab, run) = match &self.resume {
            Some(path) => {
                let run = run::Run::open(path)?;
                let lab = run.lab().transpose()?;
                let missing = || Failure::Usage(format!("{}: the run has no lab file", path.display()));
                (lab.ok_or_else(missing)?, run)
            }
            None => {
                let lab = self.trials.lab()?;
                let trials = lab.trials(&self.trials.filter()).map_err(|error| Failure::Usage(error.to_string()))?;
                let run = run::Run::create(&self.output, &lab, &repeated(&trials, self.runs.unwrap_or(1)))?;
                (lab, run)
            }
        };
        let results = record_on(run, placement)?;
        print_added(results.remember(&lab));
        print(results, &self.table)
    }
}

/// All trials in each repetition. Every second repetition has the opposite order, so that no variant is always the first.
fn repeated(trials: &[Trial], runs: u32) -> Vec<Trial> {
    if runs == 1 {
        return trials.to_vec();
    }
    let repetition = |number: u32| {
        let mut of_it: Vec<Trial> =
            trials.iter().map(|trial| Trial { repetition: Some(number), ..trial.clone() }).collect();
        if number.is_multiple_of(2) {
            of_it.reverse();
        }
        of_it
    };
    (1..=runs).flat_map(repetition).collect()
}

/// Records a planned run on a cluster, and reports it.
pub fn record_on(mut run: run::Run, placement: &Placement) -> Result<RunResults, Failure> {
    let interrupted = interrupt::flag();
    RunProgress::new().of(&interrupted, |context| {
        cluster::record(&mut run, placement, context)?;
        Ok(run::analyse(run, context)?)
    })
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
