//! `stepscope demo`: the main job on the bundled simulator.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use stepscope_lab::lab_file::{FILE_NAME, LabFile, TrialFilter};
use stepscope_lab::run::RUNS_FOLDER;

use crate::failure::Failure;
use crate::output::TableArguments;

/// The lab file of the demonstration.
const LAB: &str = include_str!("../../../../ground/stepscope.toml");

/// The simulator's program, which is built beside ours.
const SIMULATOR: &str = "ground";

/// Record the bundled simulator, rank its functions and write a report.
#[derive(Debug, Args)]
pub struct Demo {
    /// Folder that receives a new folder per run, named by the time.
    #[arg(short, long, default_value = RUNS_FOLDER, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    table: TableArguments,
}

impl Demo {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let simulator = simulator()?;
        let lab = LabFile::parse(&std::env::current_dir().unwrap_or_default().join(FILE_NAME), LAB)?;
        let mut trials = lab.trials(&TrialFilter::default())?;
        for trial in &mut trials {
            if let Some(program) = trial.scenario.command.first_mut().filter(|program| *program == SIMULATOR) {
                *program = simulator.display().to_string();
            }
        }
        eprintln!("The bundled simulator, with the pathologies that the Gazebo study found switched on.");
        let code = super::run::print(super::run::record(&lab, &trials, &self.output)?, &self.table)?;
        eprintln!("      stepscope record -- YOUR-SIMULATOR");
        Ok(code)
    }
}

/// The bundled simulator's program: beside ours where it is built, in `../lib/stepscope` where it is installed.
pub fn simulator() -> Result<PathBuf, Failure> {
    let ours = std::env::current_exe().map_err(Failure::writing("our own path"))?;
    let folder = ours.parent().unwrap_or(Path::new("/"));
    let beside = folder.join(SIMULATOR);
    let installed = folder.join("../lib/stepscope").join(SIMULATOR);
    if let Some(found) = [&beside, &installed].into_iter().find(|path| path.is_file()) {
        return Ok(found.clone());
    }
    let built = "cargo build --release -p stepscope-ground";
    Err(Failure::Failed(format!("{}: the bundled simulator is not there; build it with: {built}", beside.display())))
}
