//! The log of a recording: created in a capture's folder, and read back as a capture.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use stepscope_assemble::raw_log::{ReadError, Writer};
use stepscope_convert::import::memory_errors;
use stepscope_model::{Capture, disk};
use stepscope_symbolize::Symbolizer;

use crate::{clock, error_logs};

/// Why a raw log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be created or opened.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file belongs to another process, or cannot be created.
    #[error(transparent)]
    Disk(#[from] disk::DiskError),
    /// The file cannot be read as a log.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: ReadError,
    },
}

/// Creates the raw log in a folder, and holds it: see [`disk::hold_log`].
pub(crate) fn create_log(folder: &Path) -> Result<Writer<File>, LogError> {
    let log = disk::create_log(folder)?;
    let path = folder.join(disk::RAW_LOG_FILE);
    Writer::new(log).map_err(|source| LogError::Io { action: "create", path, source })
}

/// Builds the capture of the raw log in a folder. Its samples and waits are in that folder already, and not in memory.
///
/// Hold the log ([`disk::hold_log`]) until the capture is written and the log removed, so that no other process recovers
/// it meanwhile. A log that ends early gives a capture whose origin is [`Origin::Recovered`](stepscope_model::Origin::Recovered).
///
/// # Errors
/// [`LogError`]
pub fn finish(folder: &Path, symbolizer: &mut Symbolizer) -> Result<Capture, LogError> {
    let cpu_before_ns = clock::process_cpu_ns();
    let path = folder.join(disk::RAW_LOG_FILE);
    let log = match File::open(&path) {
        Ok(log) => log,
        Err(source) => return Err(LogError::Io { action: "open", path, source }),
    };
    symbolizer.add_copies(&folder.join(disk::FILES_FOLDER));
    let read = stepscope_assemble::finish_in(folder, io::BufReader::new(log), symbolizer);
    let mut capture = read.map_err(|source| LogError::Read { path, source })?;
    error_logs::keep(folder);
    memory_errors::logs::add(folder, &mut capture);
    if let Some(cost) = &mut capture.info.recording_cost {
        cost.finish_cpu_ns = clock::process_cpu_ns().saturating_sub(cpu_before_ns);
    }
    Ok(capture)
}
