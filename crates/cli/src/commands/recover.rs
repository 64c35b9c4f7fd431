//! `stepscope recover`: a capture from the raw log of a recorder that did not finish.

use std::io::BufReader;
use std::path::{Path, PathBuf};
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
    /// The unfinished folder of `record` or `run`. In a recording in segments, all unfinished segments are recovered.
    capture: PathBuf,
    /// Let other programs run first.
    #[arg(long, hide = true)]
    background: bool,
}

impl Recover {
    pub fn run(self) -> Result<ExitCode, Failure> {
        #[cfg(feature = "record")]
        if self.background {
            stepscope_record::session::lower_priority();
        }
        let segments = disk::segments(&self.capture);
        if segments.is_empty() {
            return recover(&self.capture);
        }
        let is_unfinished =
            |segment: &&PathBuf| !disk::is_capture(segment) && segment.join(disk::RAW_LOG_FILE).exists();
        let unfinished: Vec<&PathBuf> = segments.iter().filter(is_unfinished).collect();
        if unfinished.is_empty() {
            let message = format!("{}: all segments are whole; there is nothing to recover", self.capture.display());
            return Err(Failure::Usage(message));
        }
        let recovered: Vec<_> = unfinished.into_iter().map(|segment| recover(segment)).collect();
        recovered.into_iter().find(Result::is_err).unwrap_or(Ok(ExitCode::SUCCESS))
    }
}

fn recover(folder: &Path) -> Result<ExitCode, Failure> {
    if disk::is_capture(folder) {
        let message = format!("{}: a whole capture; there is nothing to recover", folder.display());
        return Err(Failure::Usage(message));
    }
    // Nobody else may write to the folder until the capture is whole and the log removed.
    let Some(log) = disk::hold_log(folder).map_err(|error| Failure::Failed(error.to_string()))? else {
        let message = format!("{}: holds no {}, so no recorder was at work here", folder.display(), disk::RAW_LOG_FILE);
        return Err(Failure::Usage(message));
    };
    let failed = |error: ReadError| Failure::Failed(format!("{}: {error}", folder.join(disk::RAW_LOG_FILE).display()));
    let mut symbolizer = Symbolizer::default();
    symbolizer.add_copies(&folder.join(disk::FILES_FOLDER));
    let read = progress::of_step("naming functions", || finish_in(folder, BufReader::new(&log), &mut symbolizer));
    let capture = super::write_capture(read.map_err(failed)?, folder)?;
    for note in &capture.info.notes {
        eprintln!("note: {note}");
    }
    let wall = capture.info.wall_ns().unwrap_or(0) as f64 / 1e9;
    let (samples, waits) = (stepscope_analyze::events::cpu_samples(&capture), capture.waits.len());
    eprintln!("recovered {samples} samples and {waits} waits of {wall:.1} s");
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}
