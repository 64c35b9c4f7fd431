//! Trials of a run as tasks of a scheduler: the nodes of a cluster record, this process collects.
//!
//! A *task* is a scenario's repetition in all its variants, and at all points of a sweep. So the variants that will be compared
//! are recorded on one node, one after the other, and machines are never confounded with variants.
//!
//! ```text
//! RUN/run.json                 written by the coordinator alone
//! RUN/.cluster/tasks.json      the trials of each task
//! RUN/.cluster/task-3.json     what became of task 3, written by its node after each trial
//! RUN/.cluster/task-3.log      its output, where the scheduler keeps one
//! RUN/shapes/after/02/steady/  captures, written by the node
//! ```
//!
//! A task that ends without all of its trials (a node died, a limit was reached, a trial failed) is submitted again, up to
//! [`Placement::attempts`] times. On another node, it starts from its first trial; on the same one, it goes on. What is missing at the
//! end has a reason in `run.json`.

mod collect;
mod ray;
mod slurm;
mod ssh;
mod work;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::collect::record;
pub use self::work::work;
use crate::lab_file::LabFileError;
use crate::run::{Run, RunError, TrialInfo};

/// Folder of the tasks in a run.
pub const CLUSTER_FOLDER: &str = ".cluster";

/// The schedulers.
pub static SCHEDULERS: &[&dyn Scheduler] = &[&slurm::Slurm, &ray::Ray, &ssh::Ssh];

/// Something that runs commands on the nodes of a cluster.
pub trait Scheduler: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// Submits tasks. Each is the command that [`Job::command`] gives, on a node that runs nothing else meanwhile.
    ///
    /// # Errors
    /// If the scheduler cannot be reached, or refuses the tasks.
    fn submit(&self, job: &Job<'_>) -> Result<Box<dyn Submission>, ClusterError>;
}

/// How far submitted tasks are.
#[derive(Debug)]
pub enum Progress {
    /// Some have not ended.
    Open,
    /// All have ended, however that was.
    Over,
    /// The scheduler does not answer. It may answer again: its controller may restart.
    Silent(ClusterError),
}

/// Tasks that were submitted.
pub trait Submission {
    /// How far they are.
    ///
    /// # Errors
    /// If the scheduler will never answer again: the wait ends at once.
    fn progress(&mut self) -> Result<Progress, ClusterError>;
    /// What the scheduler says about a task that has ended: `NODE_FAIL`, `TIMEOUT`, ...; `None` if it says nothing.
    fn fate(&mut self, task: usize) -> Option<String>;
    /// Ends all tasks.
    fn cancel(&mut self);
}

/// Where and how tasks run.
#[derive(Clone)]
pub struct Placement {
    /// The scheduler.
    pub scheduler: &'static dyn Scheduler,
    /// Hosts, for schedulers that have no list of their own.
    pub hosts: Vec<String>,
    /// Arguments for the scheduler's own command.
    pub arguments: Vec<String>,
    /// CPUs of a task; all of a node without it.
    pub cpus: Option<u32>,
    /// Longest time of a task.
    pub time_limit: Option<Duration>,
    /// How often a task is submitted at most.
    pub attempts: u32,
    /// Path of this program on the nodes.
    pub program: PathBuf,
    /// Whether nodes have no shared folder: the run is copied there and back.
    pub copies: bool,
}

/// Tasks to submit.
pub struct Job<'a> {
    /// The run's folder, absolute.
    pub run: &'a Path,
    /// Numbers of the tasks.
    pub tasks: &'a [usize],
    /// How.
    pub placement: &'a Placement,
}

impl Job<'_> {
    /// The command of a task, with `number` in place of its number, for a shell.
    pub fn command(&self, run: &Path, number: &str) -> String {
        let quoted = |path: &Path| shlex::try_quote(&path.display().to_string()).map(|text| text.into_owned());
        let (program, run) = (quoted(&self.placement.program), quoted(run));
        format!("{} task {} {number}", program.unwrap_or_default(), run.unwrap_or_default())
    }

    /// The folder of the tasks.
    pub fn folder(&self) -> PathBuf {
        self.run.join(CLUSTER_FOLDER)
    }
}

/// A run could not be recorded on a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The run cannot be read or written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Its lab file cannot be read.
    #[error(transparent)]
    Lab(#[from] LabFileError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The scheduler's program could not be started.
    #[error("{program}: {source}; {hint}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The scheduler refused.
    #[error("{program} failed: {message}")]
    Refused {
        /// The program.
        program: String,
        /// What it printed.
        message: String,
    },
    /// The request cannot be served. The message says what to change.
    #[error("{0}")]
    Usage(String),
}

/// The trials of each task, as indices in `run.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// By number of the task.
    pub tasks: Vec<Vec<usize>>,
}

impl Tasks {
    /// One task for each scenario and repetition.
    pub fn of(trials: &[TrialInfo]) -> Self {
        let mut tasks: BTreeMap<(usize, Option<u32>), Vec<usize>> = BTreeMap::new();
        for (index, trial) in trials.iter().enumerate() {
            let scenario = trials.iter().position(|one| one.scenario == trial.scenario).unwrap_or(index);
            // Repetitions first, so that an interrupt leaves as many of one scenario as of another.
            tasks.entry((scenario, trial.repetition)).or_default().push(index);
        }
        Self { tasks: tasks.into_values().collect() }
    }
}

/// What became of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// The node.
    pub node: String,
    /// The trials that ended, by index in `run.json`.
    pub trials: BTreeMap<usize, TrialInfo>,
}

impl TaskResult {
    fn path(run: &Path, task: usize) -> PathBuf {
        run.join(CLUSTER_FOLDER).join(format!("task-{task}.json"))
    }

    /// What became of a task so far; nothing if its node has not written yet.
    fn read(run: &Path, task: usize) -> Self {
        let text = std::fs::read(Self::path(run, task)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, run: &Path, task: usize) -> Result<(), ClusterError> {
        let path = Self::path(run, task);
        let text = serde_json::to_vec(self).expect("a result has only text keys");
        stepscope_model::output_file::write_durably(&path, &text).map_err(at(&path))
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ClusterError + '_ {
    move |source| ClusterError::Io { path: path.to_owned(), source }
}

/// The tasks of a run, written for its nodes.
fn write_tasks(run: &Run, tasks: &Tasks) -> Result<(), ClusterError> {
    let folder = run.folder().join(CLUSTER_FOLDER);
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let path = folder.join("tasks.json");
    let text = serde_json::to_vec(tasks).expect("tasks are numbers");
    stepscope_model::output_file::write_durably(&path, &text).map_err(at(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(scenario: &str, variant: &str, repetition: u32) -> TrialInfo {
        let text = format!(
            r#"{{"scenario": "{scenario}", "variant": "{variant}", "repetition": {repetition}, "command": [], "cwd": "/",
                "result": {{"outcome": "not_run"}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_task_has_all_variants_of_a_repetition_so_that_they_run_on_one_node() {
        let order = [("a", "x", 1), ("a", "y", 1), ("a", "y", 2), ("a", "x", 2), ("b", "x", 1), ("b", "y", 1)];
        let trials = order.map(|(scenario, variant, repetition)| trial(scenario, variant, repetition));
        assert_eq!(Tasks::of(&trials).tasks, [vec![0, 1], vec![2, 3], vec![4, 5]]);
    }

    #[test]
    fn the_command_of_a_task_is_quoted_for_a_shell() {
        let placement = Placement {
            scheduler: SCHEDULERS[0],
            hosts: Vec::new(),
            arguments: Vec::new(),
            cpus: None,
            time_limit: None,
            attempts: 1,
            program: "/opt/my tools/stepscope".into(),
            copies: false,
        };
        let run = Path::new("/data/it's");
        let job = Job { run, tasks: &[3], placement: &placement };
        assert_eq!(job.command(run, "$N"), r#"'/opt/my tools/stepscope' task "/data/it's" $N"#);
    }
}
