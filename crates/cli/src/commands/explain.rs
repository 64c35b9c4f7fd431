//! `stepscope explain`: why one function costs what it does.

use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::{explain, rank};

use crate::arguments::analysed::AnalysedArguments;
use crate::failure::Failure;
use crate::output::TableArguments;

/// The arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The function: its name, the end of its qualified name (`EntityMatches`), a glob or /regex/.
    function: String,
    #[command(flatten)]
    analysed: AnalysedArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Explain {
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        let loaded = self.analysed.load()?;
        let tables = self.analysed.analyse(&loaded, |selections| {
            Ok(explain::tables(selections, &self.function, &rank::Options::default())?)
        })?;
        self.output.print(tables)?;
        Ok(ExitCode::SUCCESS)
    }
}
