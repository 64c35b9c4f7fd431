//! `stepscope growth`, `capacity` and `cores`: how the costs of a sweep depend on the size and the number of CPUs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::{Selection, capacity, cores, growth};
use stepscope_convert::ImportOptions;
use stepscope_model::Table;

use crate::arguments::{OwnedArguments, SelectArguments};
use crate::failure::Failure;
use crate::load;
use crate::output::TableArguments;
use crate::progress;

/// The captures of a sweep, and what of them counts.
#[derive(Debug, Args)]
struct Sweep {
    /// Sweeps, or captures of them.
    #[arg(required = true, value_name = "RUN|CAPTURE")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    select: SelectArguments,
    #[command(flatten)]
    owned: OwnedArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Sweep {
    fn print(&self, tables: impl FnOnce(&[Selection<'_>]) -> Vec<Table>) -> Result<ExitCode, Failure> {
        let loaded = progress::of_step("reading captures", || load::all(&self.sources, &ImportOptions::default()))?;
        let fitted = |selections: &[Selection<'_>]| Ok(progress::of_step("fitting laws", || tables(selections)));
        self.output.print(load::analyse(&loaded, &self.select, &self.owned, fitted)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The table `growth` of runs.
#[cfg(feature = "record")]
pub fn of_runs(runs: &[PathBuf]) -> Result<Table, Failure> {
    let loaded = load::all(runs, &ImportOptions::default())?;
    load::analyse(&loaded, &SelectArguments::default(), &OwnedArguments::default(), |selections| {
        Ok(growth::table(selections, &growth::Options::default()))
    })
}

/// The arguments of `growth`.
#[derive(Debug, Args)]
pub struct Growth {
    #[command(flatten)]
    sweep: Sweep,
    /// Only metrics and counters of whole recordings.
    #[arg(long)]
    whole_runs: bool,
    /// Show which exponents changed since this sweep.
    #[arg(long, value_name = "RUN")]
    since: Option<PathBuf>,
}

impl Growth {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let options = growth::Options { whole_runs_alone: self.whole_runs };
        let Some(since) = &self.since else {
            return self.sweep.print(|selections| vec![growth::table(selections, &options)]);
        };
        let before = progress::of_step("reading captures", || {
            load::all(std::slice::from_ref(since), &ImportOptions::default())
        })?;
        load::analyse(&before, &self.sweep.select, &self.sweep.owned, |earlier| {
            self.sweep.print(|later| vec![growth::change(earlier, later, &options)])
        })
    }
}

/// The arguments of `capacity`.
#[derive(Debug, Args)]
pub struct Capacity {
    #[command(flatten)]
    sweep: Sweep,
    /// Longest time of a step, in milliseconds.
    #[arg(long, value_name = "MS", value_parser = positive)]
    step_budget: Option<f64>,
    /// Largest resident memory of all processes together, in MB.
    #[arg(long, value_name = "MB", value_parser = positive)]
    memory: Option<f64>,
}

impl Capacity {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let options = capacity::Options {
            step_budget_ns: self.step_budget.map(|ms| ms * 1e6),
            memory_bytes: self.memory.map(|mb| mb * 1e6),
        };
        self.sweep.print(|selections| capacity::tables(selections, &options))
    }
}

/// The arguments of `cores`.
#[derive(Debug, Args)]
pub struct Cores {
    #[command(flatten)]
    sweep: Sweep,
}

impl Cores {
    pub fn run(self) -> Result<ExitCode, Failure> {
        self.sweep.print(cores::tables)
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above 0".to_owned())
}
