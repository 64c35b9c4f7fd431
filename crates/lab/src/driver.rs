//! Drivers: clients of a scenario, started when it is ready and stopped with it.

use std::path::{Path, PathBuf};

use stepscope_record::launch::{Exit, Grace, Launch, LaunchError, Launched, Output, StopReport};

use crate::lab_file::{Driver, Scenario};
use crate::output::OutputFile;

/// A running driver. On drop, it and everything it started is killed.
#[derive(Debug)]
pub(crate) struct Running {
    command: Vec<String>,
    output: OutputFile,
    launched: Launched,
    seen: Option<Exit>,
}

impl Running {
    /// Starts the `index`-th driver of a scenario; its output goes to `driver-N.log` in `folder`.
    pub(crate) fn start(
        driver: &Driver,
        index: usize,
        scenario: &Scenario,
        folder: &Path,
    ) -> Result<Self, LaunchError> {
        let output: PathBuf = folder.join(format!("driver-{}.log", index + 1));
        let environment = scenario.env.iter().chain(&driver.env);
        let launch = environment.fold(Launch::new(&driver.command), |launch, (name, value)| launch.env(name, value));
        let launch =
            launch.directory(driver.cwd.as_ref().unwrap_or(&scenario.cwd)).output(Output::File(output.clone()));
        let launched = launch.prepare()?.start()?;
        Ok(Self { command: driver.command.clone(), output: OutputFile::new(output), launched, seen: None })
    }

    /// Program and arguments.
    pub(crate) fn command(&self) -> &[String] {
        &self.command
    }

    /// How it ended, once. If the system cannot say, it counts as running.
    pub(crate) fn newly_ended(&mut self) -> Option<Exit> {
        if self.seen.is_some() {
            return None;
        }
        self.seen = self.launched.exit().ok().flatten();
        self.seen
    }

    pub(crate) fn last_lines(&self, count: usize) -> Vec<String> {
        self.output.last_lines(count)
    }

    pub(crate) fn stop(&mut self, grace: &Grace) -> Result<StopReport, LaunchError> {
        self.launched.stop(grace)
    }
}
