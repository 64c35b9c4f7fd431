//! `stepscope task`: a node's part of a run on a cluster. `run --on` and `sweep --on` start it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_lab::cluster;
use stepscope_lab::outcome;

use crate::failure::Failure;
use crate::interrupt;
use crate::run_progress::RunProgress;

/// Run the trials of one task of a run.
#[derive(Debug, Args)]
pub struct Task {
    /// The run.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Number of the task.
    #[arg(value_name = "NUMBER")]
    task: usize,
}

impl Task {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let interrupted = interrupt::flag();
        let result = RunProgress::new().of(&interrupted, |context| cluster::work(&self.run, self.task, context))?;
        Ok(ExitCode::from(outcome::exit_code(result.trials.values().map(|trial| &trial.result))))
    }
}
