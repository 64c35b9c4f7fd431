//! `stepscope doctor`: what can be measured here, why the rest cannot, and what would change it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_record::abilities::Abilities;
use stepscope_record::abilities::binary::Binary;

use crate::failure::Failure;
use crate::output::TableArguments;

/// Show what can be recorded here, and whether programs have stacks and symbols.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Programs and libraries to check: symbols, debug information, unwind tables, frame pointers.
    #[arg(value_name = "BINARY")]
    binaries: Vec<PathBuf>,
    /// Also show the system settings behind each answer.
    #[arg(short, long)]
    facts: bool,
    #[command(flatten)]
    output: TableArguments,
}

impl Doctor {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let abilities = Abilities::probe();
        let mut tables = vec![abilities.table()];
        if self.facts {
            tables.push(abilities.facts());
        }
        let mut unreadable = None;
        for path in &self.binaries {
            match Binary::inspect(path) {
                Ok(binary) => tables.push(binary.table()),
                Err(error) => unreadable = Some(error),
            }
        }
        self.output.print(tables)?;
        if !self.output.for_programs() {
            eprintln!(
                "completions: stepscope completions bash|zsh|fish; manual pages: stepscope man -o ~/.local/share/man/man1"
            );
        }
        if let Some(error) = unreadable {
            return Err(error.into());
        }
        match abilities.can_record() {
            true => Ok(ExitCode::SUCCESS),
            false => Err(Failure::Failed("nothing can be recorded here; the table says what would change it".into())),
        }
    }
}
