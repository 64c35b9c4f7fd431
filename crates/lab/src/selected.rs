//! Running processes that are recorded: the first one, its libraries, and what descends from them.

use std::path::PathBuf;

use stepscope_record::proc::{ProcessSelection, ProcessSet, ProcessTree, SelectionError};

use crate::lab_file::Attach;
use crate::step::libraries as step_libraries;

impl From<&Attach> for ProcessSelection {
    fn from(attach: &Attach) -> Self {
        Self {
            pids: attach.pids.clone(),
            trees: attach.trees.clone(),
            names: attach.names.clone(),
            names_below: None,
            cgroups: attach.cgroups.clone(),
            containers: attach.containers.clone(),
        }
    }
}

/// The first process that matches now.
pub(crate) fn first(selection: &ProcessSelection) -> Result<u32, SelectionError> {
    let set = ProcessSet::open(selection.clone())?;
    // A set that was opened has a process.
    Ok(set.pids()[0])
}

/// The files with code of the first process that matches now.
pub(crate) fn libraries(selection: &ProcessSelection) -> Vec<PathBuf> {
    pids(selection).first().map_or_else(Vec::new, |&pid| step_libraries::of_process(pid))
}

/// The processes that match now, and what they start.
pub(crate) fn tree(selection: &ProcessSelection) -> ProcessTree {
    let pids = pids(selection);
    let mut tree = ProcessTree::of(pids.first().copied().unwrap_or_default());
    pids.into_iter().for_each(|pid| tree.add(pid));
    tree
}

fn pids(selection: &ProcessSelection) -> Vec<u32> {
    ProcessSet::open(selection.clone()).map(|set| set.pids()).unwrap_or_default()
}
