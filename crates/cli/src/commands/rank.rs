//! `stepscope rank`: what your code decides, over scenarios.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_analyze::rank;
use stepscope_model::{Phase, Table};
use stepscope_view::{Format, Style, render};

use crate::arguments::{OwnedArguments, SelectArguments};
use crate::failure::Failure;
use crate::load::{self, Loaded, selections};
use crate::output::{TableArguments, Target};

/// Rank your functions by what they cost over all scenarios of a run, or over captures.
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
        let functions = loaded.functions(&self.owned)?;
        let selections = selections(&loaded.captures, &functions, &self.select.filter())?;
        let by = match self.by {
            By::Cost => rank::Order::Cost,
            By::Score => rank::Order::Score,
        };
        let options = rank::Options { by, phase: self.phase.map(Phase::from), ..rank::Options::default() };
        Ok(rank::table(&selections, &options))
    }
}

/// The rank of a run, written into its folder as JSON and TSV too.
pub fn of_run(folder: &Path, loaded: &Loaded) -> Result<Table, Failure> {
    let rank = Rank {
        sources: vec![folder.to_owned()],
        by: By::Cost,
        phase: None,
        select: SelectArguments::default(),
        owned: OwnedArguments::default(),
        output: TableArguments::default(),
    };
    let table = rank.table(loaded)?;
    for (file, format) in [("rank.json", Format::Json), ("rank.tsv", Format::Tsv)] {
        let write =
            |out: &mut dyn Write| render(&table, format, &Style::PLAIN, out).map_err(Failure::writing("the rank"));
        Target::of(Some(&folder.join(file))).write(write)?;
    }
    Ok(table)
}
