//! Naming the functions of captures on disk again, with files that were missing when they were recorded.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use stepscope_analyze::{Functions, Hotspots, Owned, Selection, unnamed};
use stepscope_assemble::name_again;
use stepscope_model::disk::{self, DiskError};
use stepscope_model::{Capture, Module, Note, Table, note};
use stepscope_symbolize::{Position, Symbolizer};

use crate::run::{Run, RunError};
use crate::source::is_capture;

/// Folders of the captures in `path`: itself, or all of a run.
///
/// # Errors
/// If there is neither a capture nor a run.
pub fn captures_in(path: &Path) -> Result<Vec<PathBuf>, RunError> {
    match is_capture(path) {
        true => Ok(vec![path.to_owned()]),
        false => Ok(Run::open(path)?.captures()),
    }
}

/// Names the functions of the capture in `folder` again, and replaces it if there are better names. Returns what this gave;
/// `None` if `interrupted` was set. The capture is then as it was.
///
/// # Errors
/// If the capture cannot be read or written.
pub fn name_capture(
    folder: &Path,
    symbolizer: &mut Symbolizer,
    interrupted: &AtomicBool,
) -> Result<Option<Table>, DiskError> {
    let before = disk::read(folder)?;
    let name = |module: &Module, positions: &[Position]| {
        (!interrupted.load(Ordering::Relaxed)).then(|| symbolizer.name_module(module, positions))
    };
    let Some(renaming) = name_again(&before, name) else { return Ok(None) };
    if let Some(after) = &renaming.capture {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        disk::replace(after, folder)?;
    }
    let after = renaming.capture.as_ref().unwrap_or(&before);
    let mut table = unnamed::table(&before, after);
    if renaming.capture.is_none() {
        table.note(note!(Fact, "Nothing new was found; the capture is as it was."));
    }
    table.add_notes(renaming.problems.into_iter().map(|problem| note!(Limit, "{}", problem)));
    table.add_notes(remedy(after));
    Ok(Some(table))
}

/// What is still unnamed, if that is much, and what to do about it.
pub fn remedy(capture: &Capture) -> Option<Note> {
    let functions = Functions::of(capture, &Owned::default());
    let selection = Selection::all(capture, &functions);
    Hotspots::of(&selection).unnamed_note(&selection)
}
