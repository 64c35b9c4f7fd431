//! `stepscope rank`: what your code decides, over scenarios.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_analyze::{Selection, cost_tree, rank};
use stepscope_model::{Phase, Table};

use crate::arguments::analysed::AnalysedArguments;
use crate::arguments::{PHASES, choice};
use crate::failure::Failure;
use crate::output::TableArguments;

/// The arguments of `rank`.
#[derive(Debug, Args)]
pub struct Rank {
    /// tree: what your functions cost with all that they call, as one tree. cost: what each costs as the nearest owned
    /// caller. inclusive: what each costs with all that it calls. score: evidence of all dimensions, 0 to 100 [default: the
    /// tree, then cost; cost alone in formats for programs].
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Only this phase [default: steady if there is any].
    #[arg(long, value_parser = choice(PHASES))]
    phase: Option<Phase>,
    #[command(flatten)]
    analysed: AnalysedArguments,
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

impl Rank {
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        let loaded = self.analysed.load()?;
        self.output.print(self.analysed.analyse(&loaded, |selections| Ok(self.tables(selections)))?)?;
        Ok(ExitCode::SUCCESS)
    }

    fn tables(&self, selections: &[Selection<'_>]) -> Vec<Table> {
        let phase = self.phase;
        let trees = || cost_tree::tables(selections, &cost_tree::Options { phase, ..cost_tree::Options::default() });
        let by = |by| rank::tables(selections, &rank::Options { by, phase });
        match self.by {
            None if self.output.for_programs() => by(rank::Order::Cost),
            None => trees().into_iter().chain(by(rank::Order::Cost)).collect(),
            Some(By::Tree) => trees(),
            Some(By::Cost) => by(rank::Order::Cost),
            Some(By::Inclusive) => by(rank::Order::Inclusive),
            Some(By::Score) => by(rank::Order::Score),
        }
    }
}
