//! `stepscope explain`: why one function costs what it does.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::{explain, rank};

use crate::arguments::{LookArguments, ReadingArguments};
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
    look: LookArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Explain {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let loaded = load::all(&self.sources, &self.reading.options(&self.look.symbols)?)?;
        let functions = load::functions(&loaded, &self.look.owned)?;
        let selections = selections(&loaded.captures, &functions, &self.look.select.filter(&loaded.process_names))?;
        self.output.print(explain::tables(&selections, &self.function, &rank::Options::default())?)?;
        Ok(ExitCode::SUCCESS)
    }
}
