//! A node's part: the trials of one task.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use stepscope_record::machine;

use super::{CLUSTER_FOLDER, ClusterError, TaskResult, Tasks, at};
use crate::checkout::Checkouts;
use crate::execution::Context;
use crate::lab_file::{LabFile, Trial, TrialFilter};
use crate::outcome::Outcome;
use crate::run::{Run, TrialInfo};
use crate::sweep;

/// Runs the trials of a task, in order. What an earlier attempt recorded on this node is kept.
///
/// # Errors
/// If the run cannot be read, or what became of the task not written.
pub fn work(folder: &Path, task: usize, context: &mut Context<'_>) -> Result<TaskResult, ClusterError> {
    let run = Run::open(folder)?;
    let lab = run.lab().transpose()?;
    let lab = lab.ok_or_else(|| ClusterError::Usage(format!("{}: the run has no lab file", folder.display())))?;
    let tasks = folder.join(CLUSTER_FOLDER).join("tasks.json");
    let text = fs::read(&tasks).map_err(at(&tasks))?;
    let tasks: Tasks = serde_json::from_slice(&text).map_err(|error| at(&tasks)(error.into()))?;
    let unknown = || ClusterError::Usage(format!("{}: there is no task {task}", folder.display()));
    let indices = tasks.tasks.get(task).ok_or_else(unknown)?;
    let mut result = TaskResult::read(folder, task);
    let node = node();
    if result.node != node {
        // Variants of one task belong to one machine.
        result = TaskResult { node, trials: BTreeMap::new() };
    }
    let planned = planned(&run, &lab)?;
    let mut checkouts = Checkouts::default();
    for &index in indices {
        if context.interrupt.load(Ordering::Relaxed) {
            break;
        }
        if result.trials.get(&index).is_some_and(|trial| trial.result.is_recorded()) {
            continue;
        }
        let info = &run.trials()[index];
        let is = |trial: &&Trial| trial.scenario.name == info.scenario && trial.variant == info.variant;
        let Some(trial) = planned.iter().find(is) else { continue };
        let mut trial = Trial { repetition: info.repetition, ..trial.clone() };
        let mut done = match checkouts.prepare(&mut trial, folder, context) {
            Ok(_) => {
                // What an interrupted attempt left.
                let _ = fs::remove_dir_all(folder.join(trial.folder()));
                run.executed(index, &trial, None, context)
            }
            Err(error) => TrialInfo { result: error.outcome(), ..info.clone() },
        };
        done.node = Some(result.node.clone());
        result.trials.insert(index, done);
        result.write(folder, task)?;
    }
    Ok(result)
}

/// The trials that a run's lab file describes, without repetitions.
fn planned(run: &Run, lab: &LabFile) -> Result<Vec<Trial>, ClusterError> {
    let usage = |error: &dyn std::fmt::Display| ClusterError::Usage(error.to_string());
    if run.info().is_some_and(|info| info.sweep.is_some()) {
        return sweep::Plan::points_of(run, lab).map_err(|error| usage(&error));
    }
    lab.trials(&TrialFilter::default()).map_err(|error| usage(&error))
}

/// The name of this node: the scheduler's, else the host's. `STEPSCOPE_NODE` sets another.
fn node() -> String {
    let named = ["STEPSCOPE_NODE", "SLURMD_NODENAME"].iter().find_map(|name| std::env::var(name).ok());
    named.unwrap_or_else(|| machine::describe().host)
}

/// Whether all trials of a task were recorded.
pub(super) fn is_complete(result: &TaskResult, trials: &[usize]) -> bool {
    trials.iter().all(|index| result.trials.get(index).is_some_and(|trial| trial.result == Outcome::Recorded))
}
