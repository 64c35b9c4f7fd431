//! `stepscope recover`: a capture from the raw log of a recorder that did not finish.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_assemble::finish_in;
use stepscope_assemble::raw_log::ReadError;
use stepscope_model::disk;
use stepscope_symbolize::Symbolizer;

use crate::failure::Failure;
use crate::progress;

/// Recover the capture of a recorder that was killed: all but about the last half second.
#[derive(Debug, Args)]
pub struct Recover {
    /// The unfinished folder of `record` or `run`.
    capture: PathBuf,
}

impl Recover {
    pub fn run(self) -> Result<ExitCode, Failure> {
        if disk::is_capture(&self.capture) {
            let message = format!("{}: a whole capture; there is nothing to recover", self.capture.display());
            return Err(Failure::Usage(message));
        }
        // Nobody else may write to the folder until the capture is whole and the log removed.
        let Some(log) = disk::hold_log(&self.capture).map_err(|error| Failure::Failed(error.to_string()))? else {
            let message =
                format!("{}: holds no {}, so no recorder was at work here", self.capture.display(), disk::RAW_LOG_FILE);
            return Err(Failure::Usage(message));
        };
        let failed =
            |error: ReadError| Failure::Failed(format!("{}: {error}", self.capture.join(disk::RAW_LOG_FILE).display()));
        let mut symbolizer = Symbolizer::default();
        symbolizer.add_copies(&self.capture.join(disk::FILES_FOLDER));
        let read =
            progress::of_step("naming functions", || finish_in(&self.capture, BufReader::new(&log), &mut symbolizer));
        let capture = super::write_capture(read.map_err(failed)?, &self.capture)?;
        for note in &capture.info.notes {
            eprintln!("note: {note}");
        }
        let wall = capture.info.wall_ns().unwrap_or(0) as f64 / 1e9;
        let (samples, waits) = (stepscope_analyze::events::cpu_samples(&capture), capture.waits.len());
        eprintln!("recovered {samples} samples and {waits} waits of {wall:.1} s");
        println!("{}", self.capture.display());
        Ok(ExitCode::SUCCESS)
    }
}
