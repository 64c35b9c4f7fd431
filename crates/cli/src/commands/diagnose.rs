//! `stepscope diagnose`: what to change first, why, and what it would gain.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::diagnose;

use crate::arguments::{LookArguments, ReadingArguments};
use crate::failure::Failure;
use crate::load::{self, selections};
use crate::output::TableArguments;

/// The arguments of `diagnose`.
#[derive(Debug, Args)]
pub struct Diagnose {
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

impl Diagnose {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let loaded = load::all(&self.sources, &self.reading.options(&self.look.symbols)?)?;
        let functions = load::functions(&loaded, &self.look.owned)?;
        let selections = selections(&loaded.captures, &functions, &self.look.select.filter(&loaded.process_names))?;
        self.output.print(vec![diagnose::table(&selections)])?;
        Ok(ExitCode::SUCCESS)
    }
}
