//! `stepscope rank`: what your code decides, over scenarios.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_analyze::rank;
use stepscope_model::{Phase, Table};

use crate::arguments::{OwnedArguments, SelectArguments};
use crate::failure::Failure;
use crate::load::{self, Loaded, selections};
use crate::output::TableArguments;

/// The arguments of `rank`.
#[derive(Debug, Args)]
pub struct Rank {
    /// Runs, captures, or files that can be imported.
    #[arg(required = true, value_name = "RUN|CAPTURE")]
    sources: Vec<PathBuf>,
    /// cost: what each function costs as the nearest owned caller. score: evidence of all dimensions, 0 to 100.
    #[arg(long, value_enum, default_value_t)]
    by: By,
    /// Only this phase [default: steady if there is any].
    #[arg(long, value_enum)]
    phase: Option<PhaseArgument>,
    #[command(flatten)]
    select: SelectArguments,
    #[command(flatten)]
    owned: OwnedArguments,
    #[command(flatten)]
    output: TableArguments,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum By {
    #[default]
    Cost,
    Score,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseArgument {
    Loading,
    Steady,
}

impl From<PhaseArgument> for Phase {
    fn from(phase: PhaseArgument) -> Self {
        match phase {
            PhaseArgument::Loading => Phase::Loading,
            PhaseArgument::Steady => Phase::Steady,
        }
    }
}

impl Rank {
    pub fn run(self) -> Result<ExitCode, Failure> {
        self.output.print(vec![self.table(&load::all(&self.sources)?)?])?;
        Ok(ExitCode::SUCCESS)
    }

    fn table(&self, loaded: &Loaded) -> Result<Table, Failure> {
        let functions = load::functions(loaded, &self.owned)?;
        let selections = selections(&loaded.captures, &functions, &self.select.filter())?;
        let by = match self.by {
            By::Cost => rank::Order::Cost,
            By::Score => rank::Order::Score,
        };
        let options = rank::Options { by, phase: self.phase.map(Phase::from), ..rank::Options::default() };
        Ok(rank::table(&selections, &options))
    }
}
