//! `stepscope symbolize`: names for functions that had none when they were recorded.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_lab::naming;
use stepscope_symbolize::Symbolizer;

use crate::arguments::SymbolArguments;
use crate::failure::Failure;
use crate::output::TableArguments;
use crate::{interrupt, progress};

/// Name the functions of a capture again, with debug symbols installed since, in a folder, or from a debuginfod server
/// (DEBUGINFOD_URLS).
#[derive(Debug, Args)]
pub struct Symbolize {
    /// The capture, or a run with captures.
    capture: PathBuf,
    #[command(flatten)]
    symbols: SymbolArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Symbolize {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let captures = naming::captures_in(&self.capture)?;
        let mut symbolizer = Symbolizer::new(self.symbols.options()?);
        let interrupted = interrupt::flag();
        let mut tables = Vec::new();
        for folder in &captures {
            let name = || naming::name_capture(folder, &mut symbolizer, &interrupted);
            let Some(mut table) = progress::of_step(&format!("naming functions of {}", folder.display()), name)? else {
                let message = format!("interrupted; {} is as it was", folder.display());
                return Err(Failure::Interrupted(message));
            };
            if captures.len() > 1 {
                table.title = format!("{}: {}", folder.display(), table.title);
            }
            tables.push(table);
        }
        self.output.print(tables)?;
        Ok(ExitCode::SUCCESS)
    }
}
