//! `stepscope diagnose`: what to change first, why, and what it would gain.

use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::diagnose;

use crate::arguments::analysed::AnalysedArguments;
use crate::failure::Failure;
use crate::output::TableArguments;

/// The arguments of `diagnose`.
#[derive(Debug, Args)]
pub struct Diagnose {
    #[command(flatten)]
    analysed: AnalysedArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Diagnose {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let loaded = self.analysed.load()?;
        let tables = self.analysed.analyse(&loaded, |selections| Ok(vec![diagnose::table(selections)]))?;
        self.output.print(tables)?;
        Ok(ExitCode::SUCCESS)
    }
}
