//! Runs in a store: the tables of the analyses, computed once and laid out for query engines.
//!
//! `stepscope-store` knows how a store is laid out and how a run appears in it. This module knows what is in it: for each capture the
//! tables of all [analyses](stepscope_analyze::ANALYSES) that have rows, its findings, its metrics as the history has them, and
//! on request the capture itself.

mod adding;
mod tables;

use stepscope_analyze::history::Kept;
use stepscope_model::Note;
use stepscope_store::{RunStore, StoreError};

pub use self::adding::{AddOptions, Added, AddedRun, add};
use crate::history::{Contents, Entry};
use crate::source::SourceError;

/// Runs could not be added to a store.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// The metrics of all runs of a store, as the history of a project has them, and what was left out.
///
/// # Errors
/// If the store cannot be read.
pub fn history(store: &RunStore) -> Result<(Contents, Vec<Note>), StoreError> {
    store.open()?;
    let listing = store.runs()?;
    let mut contents = Contents::default();
    for manifest in listing.manifests {
        for capture in manifest.captures {
            // An entry of a newer program, or none, is a run without metrics.
            if let Ok(mut entry) = serde_json::from_value::<Entry>(capture.entry) {
                entry.recording.kept = if capture.samples { Kept::There } else { Kept::Gone };
                contents.entries.push(entry);
            }
        }
    }
    Ok((contents, listing.problems.into_iter().map(Note::from).collect()))
}
