//! Flags of `run` and `sweep`: the lab file, and which part of it to run.

use std::path::PathBuf;

use clap::Args;
use stepscope_lab::lab_file::{FILE_NAME, LabFile, TrialFilter};

use crate::failure::Failure;

/// A lab file, and which of its scenarios and variants to run.
#[derive(Debug, Args)]
pub struct TrialArguments {
    /// The lab file.
    #[arg(default_value = FILE_NAME, value_name = "LAB")]
    lab: PathBuf,
    /// Scenarios to run, by name or glob [default: all].
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Variants to run, by name or glob; repeatable [default: all].
    #[arg(long = "variant", value_name = "VARIANT")]
    variants: Vec<String>,
    /// Do not measure the machine's speed beside the recording.
    #[arg(long)]
    no_speed_probe: bool,
}

impl TrialArguments {
    /// Reads the lab file.
    pub fn lab(&self) -> Result<LabFile, Failure> {
        let lab = LabFile::read(&self.lab).map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(if self.no_speed_probe { lab.without_speed_probe() } else { lab })
    }

    /// The scenarios and variants to run.
    pub fn filter(&self) -> TrialFilter {
        TrialFilter { scenarios: self.scenarios.clone(), variants: self.variants.clone() }
    }
}
