//! Opens captures with a progress line, and prints what was left out.

use std::path::{Path, PathBuf};

use stepscope_analyze::{Naming, Ownership, Selection};
use stepscope_convert::ImportOptions;
pub use stepscope_lab::source::Loaded;
use stepscope_lab::source::{self, SourceError};
use stepscope_model::Capture;

use crate::arguments::{OwnedArguments, SelectArguments};
use crate::failure::Failure;
use crate::progress;

/// Reads a capture folder, a file of another tool, or standard input (`-`).
pub fn capture_with(path: &Path, options: &ImportOptions) -> Result<Capture, Failure> {
    let capture = opened(path, options)?;
    capture.load()?;
    Ok(capture)
}

/// As [`capture_with`], but samples and waits are read when they are first used. [`check`] fails if they could not be read.
pub fn opened(path: &Path, options: &ImportOptions) -> Result<Capture, Failure> {
    if path.is_dir() {
        return Ok(source::open_one(path, options, &Default::default())?);
    }
    let capture = with_bytes(path, |consumed| source::open_one(path, options, consumed))?;
    capture.info.notes.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(capture)
}

/// Fails if samples or waits that were needed could not be read.
pub fn check(capture: &Capture) -> Result<(), Failure> {
    Ok(capture.load_error().map_or(Ok(()), Err)?)
}

/// Reads a file of another tool, or standard input (`-`).
pub fn import(path: &Path, options: &ImportOptions) -> Result<Capture, Failure> {
    with_bytes(path, |consumed| source::import(path, options, consumed))
}

fn with_bytes(
    path: &Path,
    read: impl FnOnce(&std::sync::atomic::AtomicU64) -> Result<Capture, SourceError>,
) -> Result<Capture, Failure> {
    let size = path.metadata().ok().map(|metadata| metadata.len());
    Ok(progress::of_bytes(&path.display().to_string(), size, read)?)
}

/// What the lab file of the run that holds this capture says.
#[derive(Debug, Default)]
pub struct Settings {
    /// Whose code is whose.
    pub ownership: Option<Ownership>,
    /// What it calls processes and code.
    pub naming: Naming,
}

/// What the lab file of the run that holds this capture says; nothing without a run.
pub fn settings_beside(capture: &Path) -> Settings {
    let lab = source::lab_of_capture(capture);
    lab.map_or_else(Settings::default, |lab| Settings { ownership: Some(lab.owned), naming: lab.naming })
}

/// The sources that were named. Without any, the newest run or capture of the working folder, which is printed.
pub fn named_or_newest(sources: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    if !sources.is_empty() {
        return Ok(sources);
    }
    let newest = source::newest_in(Path::new(".")).ok_or_else(|| {
        Failure::Usage(
            "name a run or a capture: this folder has none; `stepscope record -- COMMAND` makes one".to_owned(),
        )
    })?;
    let newest = newest.strip_prefix(".").unwrap_or(&newest).to_owned();
    eprintln!("reading {}, the newest here", newest.display());
    Ok(vec![newest])
}

/// Reads runs (all their captures), captures and files of other tools.
pub fn all(sources: &[PathBuf], importing: &ImportOptions) -> Result<Loaded, Failure> {
    let loaded = source::open(sources, importing)?;
    loaded.notes.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(loaded)
}

/// Analyses what these arguments select of the captures. Owned are functions of the command line's patterns, else of those of
/// the run's lab file.
pub fn analyse<T>(
    loaded: &Loaded,
    select: &SelectArguments,
    owned: &OwnedArguments,
    analysis: impl FnOnce(&[Selection<'_>]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let functions = loaded.functions(&owned.owned(loaded.ownership.as_ref())?);
    let filter = select.filter(&loaded.naming);
    analysis(&source::selections(&loaded.captures, &functions, &filter)?)
}
