//! Captures in a store, as sources of other subcommands.

use std::path::{Path, PathBuf};

use stepscope_store::{KEYS, StoreError, StoreSource};

/// The name of the copy of a lab file in a store.
pub(crate) const LAB_COPY: &str = "_stepscope.toml";

/// The copy of the lab file of a capture in a store.
pub(crate) fn lab_of(capture: &Path) -> Option<PathBuf> {
    // The run's folder is that of the capture without a table, the keys and a repetition.
    let run = capture.ancestors().nth(KEYS.len() + 2)?;
    Some(run.join(LAB_COPY)).filter(|copy| copy.is_file())
}

/// Folders of the captures that a source names in a store: `store:DIR/KEY=VALUE/...`. `None` for other sources.
pub(crate) fn captures(source: &Path) -> Option<Result<Vec<PathBuf>, StoreError>> {
    let selection = StoreSource::parse(source.to_str()?)?;
    Some(selection.and_then(|selection| selection.captures()))
}
