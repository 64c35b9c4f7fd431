//! Flags of `rank`, `explain`, `diagnose` and `report`: what is analysed.

use std::path::PathBuf;

use clap::Args;
use stepscope_analyze::Selection;

use super::{LookArguments, ReadingArguments};
use crate::failure::Failure;
use crate::load::{self, Loaded};

/// Captures, and which part of them to use.
#[derive(Debug, Clone, Args)]
pub struct AnalysedArguments {
    /// Runs, captures, or files that can be imported [default: the newest run or capture in the working folder].
    #[arg(value_name = "RUN|CAPTURE")]
    pub sources: Vec<PathBuf>,
    #[command(flatten)]
    pub look: LookArguments,
    #[command(flatten)]
    pub reading: ReadingArguments,
}

impl AnalysedArguments {
    /// Reads the captures. Without sources, the newest one becomes the source.
    pub fn load(&mut self) -> Result<Loaded, Failure> {
        self.sources = load::named_or_newest(std::mem::take(&mut self.sources))?;
        load::all(&self.sources, &self.reading.options(&self.look.symbols)?)
    }

    /// Analyses the selected part of the captures that were read.
    pub fn analyse<T>(
        &self,
        loaded: &Loaded,
        analysis: impl FnOnce(&[Selection<'_>]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        load::analyse(loaded, &self.look.select, &self.look.owned, analysis)
    }
}
