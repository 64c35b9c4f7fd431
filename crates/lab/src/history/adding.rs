//! Adding captures, runs and folders of runs to the history.

use std::path::{Path, PathBuf};

use stepscope_analyze::{Filter, Functions, Ownership, Selection};
use stepscope_model::disk;
use stepscope_model::quantity::plural;

use super::{Entry, Place, Store, StoreError};
use crate::run::{RUN_FILE, Run};
use crate::source::SourceError;

/// Captures that were added to a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Number of captures that were not in it before.
    pub count: usize,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
}

/// Captures could not be added to a history.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The history cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A capture or run cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl Store {
    /// Adds a capture, a run, or every run in a folder.
    ///
    /// # Errors
    /// If the source or the history cannot be read, or the history not written.
    pub fn add_source(&self, source: &Path) -> Result<Added, AddError> {
        let mut added = Added::default();
        if disk::is_capture(source) {
            self.add_captures(source, None, &[source.to_owned()], &mut added)?;
            return Ok(added);
        }
        let inside = runs_in(source);
        if inside.is_empty() {
            self.add_to(&Run::open(source).map_err(SourceError::from)?, &mut added)?;
        }
        for path in inside {
            match Run::open(&path) {
                Ok(run) => self.add_to(&run, &mut added)?,
                Err(error) => added.notes.push(format!("left out: {error}")),
            }
        }
        Ok(added)
    }

    /// Adds a run's captures that are not in the history yet.
    ///
    /// Trials that failed or were interrupted are left out: half a loading phase would count as a fast one.
    ///
    /// # Errors
    /// If a capture cannot be read, or the history not written.
    pub fn add_run(&self, run: &Run) -> Result<Added, AddError> {
        let mut added = Added::default();
        self.add_to(run, &mut added)?;
        Ok(added)
    }

    fn add_to(&self, run: &Run, added: &mut Added) -> Result<(), AddError> {
        let (complete, left_out) = complete_captures(run);
        if left_out > 0 {
            added.notes.push(format!("{} of incomplete trials left out of the history", plural(left_out, "capture")));
        }
        self.add_captures(run.folder(), Some(run), &complete, added)
    }

    fn add_captures(
        &self,
        folder: &Path,
        run: Option<&Run>,
        captures: &[PathBuf],
        added: &mut Added,
    ) -> Result<(), AddError> {
        let known = self.read()?;
        let is_known = |id: &String| known.entries.iter().any(|entry| entry.id == *id);
        let owned = Ownership::default().compile().expect("no patterns are valid patterns");
        let working_tree = run.and_then(|run| run.info()?.working_tree.as_ref());
        let mut entries: Vec<Entry> = Vec::new();
        for path in captures {
            if is_known(&self.id(&disk::read_info(path).map_err(SourceError::from)?, path)) {
                continue;
            }
            let capture = disk::read(path).map_err(SourceError::from)?;
            let functions = Functions::of(&capture, &owned);
            let selection = Selection::new(&capture, &functions, &Filter::default()).map_err(SourceError::from)?;
            let entry = self.entry(&selection, Place { capture: path, run: folder, working_tree });
            match entry.recording.figures.is_empty() {
                true => {
                    let message = "left out, because it has neither times nor steps";
                    added.notes.push(format!("{}: {message}", path.display()));
                }
                false => entries.push(entry),
            }
        }
        added.count += self.add(&entries)?;
        Ok(())
    }
}

/// The captures of a run's complete trials, and the number of all others.
pub(crate) fn complete_captures(run: &Run) -> (Vec<PathBuf>, usize) {
    let failed: Vec<PathBuf> = run.info().map_or_else(Vec::new, |info| {
        let failed = info.trials.iter().filter(|trial| !trial.result.is_recorded());
        failed.map(|trial| run.folder().join(trial.folder())).collect()
    });
    let is_complete = |capture: &PathBuf| !failed.iter().any(|trial| capture.starts_with(trial));
    let (complete, rest): (Vec<PathBuf>, Vec<PathBuf>) = run.captures().into_iter().partition(is_complete);
    (complete, rest.len())
}

/// Folders of the runs in a folder that is no run itself.
pub(crate) fn runs_in(folder: &Path) -> Vec<PathBuf> {
    if folder.join(RUN_FILE).exists() {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_run = |path: &PathBuf| !path.is_symlink() && path.join(RUN_FILE).is_file();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_run).collect();
    paths.sort();
    paths
}
