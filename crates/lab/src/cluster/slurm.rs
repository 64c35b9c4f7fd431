//! Slurm: a job array, a node per task.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use super::{ClusterError, Job, Progress, Scheduler, Submission};

/// `sbatch`.
pub(super) struct Slurm;

const HINT: &str = "run this where Slurm's commands are installed";

fn run(mut command: Command) -> Result<String, ClusterError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start = |source| ClusterError::Start { program: program.clone(), source, hint: HINT };
    let Output { status, stdout, stderr } = command.output().map_err(start)?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
        false => Err(ClusterError::Refused { program, message: String::from_utf8_lossy(&stderr).trim().to_owned() }),
    }
}

impl Scheduler for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn submit(&self, job: &Job<'_>) -> Result<Box<dyn Submission>, ClusterError> {
        let placement = job.placement;
        if placement.copies {
            return Err(ClusterError::Usage("Slurm needs a shared folder for the run; leave out --copy".to_owned()));
        }
        let numbers: Vec<String> = job.tasks.iter().map(ToString::to_string).collect();
        let mut command = Command::new("sbatch");
        command.args(["--parsable", "--no-requeue", "--nodes=1", "--job-name=stepscope"]);
        command.arg(format!("--array={}", numbers.join(",")));
        command.arg(format!("--output={}/task-%a.log", job.folder().display()));
        match placement.cpus {
            Some(cpus) => command.args([format!("--cpus-per-task={cpus}"), "--hint=nomultithread".to_owned()]),
            None => command.arg("--exclusive"),
        };
        if let Some(limit) = placement.time_limit {
            // Slurm counts in minutes.
            command.arg(format!("--time={}", limit.as_secs().div_ceil(60).max(1)));
        }
        command.args(&placement.arguments);
        command.arg(format!("--wrap={}", job.command(job.run, "$SLURM_ARRAY_TASK_ID")));
        let answer = run(command)?;
        let id = answer.trim().split(';').next().unwrap_or_default().to_owned();
        Ok(Box::new(Array { id, states: BTreeMap::new() }))
    }
}

/// A job array.
struct Array {
    id: String,
    /// The last state of each task.
    states: BTreeMap<usize, String>,
}

/// States in which a task may still run.
const OPEN: &[&str] =
    &["PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING", "STAGE_OUT", "SIGNALING"];

impl Array {
    /// Takes the states that `squeue` lists. Gives whether a task may still run.
    fn note(&mut self, listed: &str) -> bool {
        let mut is_open = false;
        for line in listed.lines() {
            let mut parts = line.split_whitespace();
            let task = parts.next().and_then(|task| task.parse().ok());
            let (Some(task), Some(state)) = (task, parts.next()) else { continue };
            is_open |= OPEN.contains(&state);
            self.states.insert(task, state.to_owned());
        }
        is_open
    }
}

impl Submission for Array {
    fn progress(&mut self) -> Result<Progress, ClusterError> {
        let mut command = Command::new("squeue");
        command.args(["--noheader", "--array", "--states=all", "--format=%K %T %r", &format!("--jobs={}", self.id)]);
        Ok(match run(command) {
            Ok(listed) if self.note(&listed) => Progress::Open,
            Ok(_) => Progress::Over,
            // Some minutes after its end, Slurm forgets a job.
            Err(ClusterError::Refused { message, .. }) if message.contains("Invalid job id") => Progress::Over,
            Err(error) => Progress::Silent(error),
        })
    }

    fn fate(&mut self, task: usize) -> Option<String> {
        let state = self.states.get(&task)?;
        match state.as_str() {
            "TIMEOUT" => Some("its task reached the time limit".to_owned()),
            "NODE_FAIL" => Some("its node failed".to_owned()),
            // The node says why.
            "COMPLETED" | "FAILED" => None,
            // The controller stopped answering before the task ended.
            open if OPEN.contains(&open) => None,
            other => Some(format!("Slurm ended its task: {other}")),
        }
    }

    fn cancel(&mut self) {
        let _ = Command::new("scancel").arg(&self.id).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_over_when_no_element_may_run_and_the_last_states_say_why() {
        let mut array = Array { id: "7".into(), states: BTreeMap::new() };
        assert!(array.note("0 COMPLETED None\n1 RUNNING None\n2 PENDING Resources\n"));
        assert!(array.note("1 COMPLETING NonZeroExitCode\n2 TIMEOUT TimeLimit\n"));
        assert!(!array.note("1 NODE_FAIL None\nN/A COMPLETED None\n"));
        assert_eq!(array.fate(1).unwrap(), "its node failed");
        assert_eq!(array.fate(2).unwrap(), "its task reached the time limit");
        assert_eq!(array.fate(3), None);
        assert!(array.note("3 RUNNING None\n"));
        assert_eq!(array.fate(3), None, "a controller that dies ends no task");
    }
}
