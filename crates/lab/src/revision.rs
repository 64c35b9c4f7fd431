//! Revisions of programs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The checked-out files of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The commit, in full.
    pub commit: String,
    /// The worktree's root.
    pub tree: PathBuf,
    /// The root of the repository's own working tree.
    pub repository: PathBuf,
}

/// The repository's own working tree at the start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingTree {
    /// The commit that is checked out.
    pub revision: String,
    /// Number of tracked files that differ from it.
    pub changed_files: usize,
}
