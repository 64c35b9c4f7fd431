//! `stepscope explain`: why one function costs what it does.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::{explain, rank};

use crate::arguments::{OwnedArguments, SelectArguments};
use crate::failure::Failure;
use crate::load::{self, selections};
use crate::output::TableArguments;

/// The arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The function: its name, the end of its qualified name (`EntityMatches`), a glob or /regex/.
    function: String,
    /// Runs, captures, or files that can be imported.
    #[arg(required = true, value_name = "RUN|CAPTURE")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    select: SelectArguments,
    #[command(flatten)]
    owned: OwnedArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Explain {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let loaded = load::all(&self.sources)?;
        let functions = load::functions(&loaded, &self.owned)?;
        let selections = selections(&loaded.captures, &functions, &self.select.filter(&loaded.process_names))?;
        self.output.print(explain::tables(&selections, &self.function, &rank::Options::default())?)?;
        Ok(ExitCode::SUCCESS)
    }
}
