//! `stepscope rank`: what your code decides, over scenarios.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_analyze::{cost_tree, rank};
use stepscope_model::{Phase, Table};

use crate::arguments::{LookArguments, ReadingArguments};
use crate::failure::Failure;
use crate::load::{self, Loaded, selections};
use crate::output::TableArguments;

/// The arguments of `rank`.
#[derive(Debug, Args)]
pub struct Rank {
    /// Runs, captures, or files that can be imported.
    #[arg(required = true, value_name = "RUN|CAPTURE")]
    sources: Vec<PathBuf>,
    /// tree: what your functions cost with all that they call, as one tree. cost: what each costs as the nearest owned
    /// caller. inclusive: what each costs with all that it calls. score: evidence of all dimensions, 0 to 100 [default: the
    /// tree, then cost; cost alone in formats for programs].
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Only this phase [default: steady if there is any].
    #[arg(long, value_enum)]
    phase: Option<PhaseArgument>,
    #[command(flatten)]
    look: LookArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    output: TableArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Tree,
    Cost,
    Inclusive,
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
        self.output.print(self.tables(&load::all(&self.sources, &self.reading.options(&self.look.symbols)?)?)?)?;
        Ok(ExitCode::SUCCESS)
    }

    fn tables(&self, loaded: &Loaded) -> Result<Vec<Table>, Failure> {
        let functions = load::functions(loaded, &self.look.owned)?;
        let selections = selections(&loaded.captures, &functions, &self.look.select.filter(&loaded.process_names))?;
        let phase = self.phase.map(Phase::from);
        let trees = || cost_tree::tables(&selections, &cost_tree::Options { phase, ..cost_tree::Options::default() });
        let by = |by| rank::tables(&selections, &rank::Options { by, phase, ..rank::Options::default() });
        Ok(match self.by {
            None if self.output.for_programs() => by(rank::Order::Cost),
            None => trees().into_iter().chain(by(rank::Order::Cost)).collect(),
            Some(By::Tree) => trees(),
            Some(By::Cost) => by(rank::Order::Cost),
            Some(By::Inclusive) => by(rank::Order::Inclusive),
            Some(By::Score) => by(rank::Order::Score),
        })
    }
}
