//! Captures by path: folders of ours, and files of other tools read on the fly.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use stepscope_analyze::Ownership;
use stepscope_convert::{ImportOptions, Source};
use stepscope_lab::lab_file::{FILE_NAME, LabFile};
use stepscope_lab::run::Run;
use stepscope_model::{Capture, disk};

use crate::failure::Failure;
use crate::progress;

/// Reads a capture folder, a file of another tool, or standard input (`-`).
pub fn capture(path: &Path) -> Result<Capture, Failure> {
    match path.is_file() || path == Path::new("-") {
        true => import(path, &ImportOptions::default()),
        false => Ok(disk::read(path)?),
    }
}

/// Reads a file of another tool, or standard input (`-`).
pub fn import(path: &Path, options: &ImportOptions) -> Result<Capture, Failure> {
    if path == Path::new("-") && io::stdin().is_terminal() {
        let message = "`-` reads standard input, which is a terminal here; pipe a profile into it, or name a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    let size = path.metadata().ok().map(|metadata| metadata.len());
    let source = Source::open(path)?;
    let name = path.display().to_string();
    let capture = progress::of_bytes(&name, size, |bytes| stepscope_convert::import(source.counting(bytes), options))?;
    Ok(capture)
}

/// Captures of several sources, with what the first run among them says is owned.
pub struct Loaded {
    /// The captures, in the order of the sources and of the runs' scenarios.
    pub captures: Vec<Capture>,
    /// Ownership according to the lab file of a run.
    pub ownership: Option<Ownership>,
}

/// Reads runs (all their captures), captures and files of other tools.
pub fn all(sources: &[PathBuf]) -> Result<Loaded, Failure> {
    let mut loaded = Loaded { captures: Vec::new(), ownership: None };
    for source in sources {
        if !source.is_dir() || disk::is_capture(source) || source.join(disk::RAW_LOG_FILE).exists() {
            loaded.captures.push(capture(source)?);
            continue;
        }
        let run = Run::open(source)?;
        for folder in run.captures() {
            loaded.captures.push(disk::read(&folder)?);
        }
        for folder in run.unfinished() {
            eprintln!("note: {} is unfinished; `stepscope recover` brings it back", folder.display());
        }
        if loaded.ownership.is_none() && run.folder().join(FILE_NAME).exists() {
            loaded.ownership = Some(LabFile::read(&run.folder().join(FILE_NAME))?.owned);
        }
    }
    Ok(loaded)
}
