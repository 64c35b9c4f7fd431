//! Running processes that are recorded: their program, its libraries, and what descends from them.

use std::path::PathBuf;

use stepscope_record::RecordError;
use stepscope_record::proc::{self, ProcessSelection, ProcessSet, ProcessTree};

use crate::lab_file::Attach;
use crate::program::ProgramError;
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

/// The file of the first process that matches now.
pub(crate) fn program(selection: &ProcessSelection) -> Result<PathBuf, ProgramError> {
    let set = ProcessSet::open(selection.clone()).map_err(RecordError::from)?;
    // A set that was opened has a process.
    Ok(proc::executable(set.pids()[0])?)
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
