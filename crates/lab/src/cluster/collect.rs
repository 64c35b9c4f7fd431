//! The coordinator's part: submit, watch, collect, try again.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::work::is_complete;
use super::{ClusterError, Job, Placement, Submission, TaskResult, Tasks, write_tasks};
use crate::event::Event;
use crate::execution::Context;
use crate::outcome::{Failure, Outcome, Stage};
use crate::run::Run;

/// Time between two looks at the scheduler.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Time that files of a shared folder may take to appear after the task has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time that a scheduler may not answer: its controller may start again.
const SILENCE: Duration = Duration::from_secs(30);

/// Records the trials of a run that are not recorded yet. The run's outcomes hold what is missing, and why.
///
/// # Errors
/// If the scheduler cannot be reached, or the run not written.
pub fn record(run: &mut Run, placement: &Placement, context: &mut Context<'_>) -> Result<(), ClusterError> {
    let tasks = Tasks::of(run.trials());
    write_tasks(run, &tasks)?;
    let folder = run.folder().canonicalize().map_err(super::at(run.folder()))?;
    context.listener.notify(&Event::RunStarted { folder: run.folder(), trials: run.trials().len() });
    let mut told = BTreeSet::new();
    for attempt in 1..=placement.attempts.max(1) {
        let is_open =
            |number: &usize| !tasks.tasks[*number].iter().all(|index| run.trials()[*index].result.is_recorded());
        let open: Vec<usize> = (0..tasks.tasks.len()).filter(is_open).collect();
        if open.is_empty() || context.interrupt.load(Ordering::Relaxed) {
            break;
        }
        for &number in &open {
            forget_failures(run, &tasks.tasks[number], number)?;
        }
        let job = Job { run: &folder, tasks: &open, placement };
        let mut submission = placement.scheduler.submit(&job)?;
        let mut silence: Option<(Instant, ClusterError)> = None;
        loop {
            collect(run, &tasks, &open, &mut told, context)?;
            if context.interrupt.load(Ordering::Relaxed) {
                submission.cancel();
                break;
            }
            match submission.is_over() {
                Ok(true) => break,
                Ok(false) => silence = None,
                Err(error) => {
                    let since = silence.take().map_or_else(Instant::now, |(since, _)| since);
                    let is_lost = since.elapsed() >= SILENCE;
                    silence = Some((since, error));
                    if is_lost {
                        break;
                    }
                }
            }
            thread::sleep(LOOK_EVERY);
        }
        wait_for_files(run, &tasks, &open);
        collect(run, &tasks, &open, &mut told, context)?;
        let lost_scheduler = silence.map(|(_, error)| error);
        let why = lost_scheduler.as_ref().map(ToString::to_string);
        for &number in &open {
            lost(run, &tasks.tasks[number], number, attempt, why.as_deref(), &mut *submission)?;
        }
        // Without the scheduler, the run ends with what it has.
        match lost_scheduler {
            Some(error) if !run.trials().iter().any(|trial| trial.result.is_recorded()) => {
                run.end()?;
                return Err(error);
            }
            Some(_) => break,
            None => {}
        }
    }
    run.end()?;
    Ok(())
}

/// Removes what became of trials in earlier attempts, except their recordings.
fn forget_failures(run: &mut Run, trials: &[usize], number: usize) -> Result<(), ClusterError> {
    for &index in trials {
        let info = run.trial_mut(index);
        if !info.result.is_recorded() {
            info.result = Outcome::NotRun;
        }
    }
    let mut result = TaskResult::read(run.folder(), number);
    result.trials.retain(|_, trial| trial.result.is_recorded());
    result.write(run.folder(), number)
}

/// Takes what nodes have written into `run.json`.
fn collect(
    run: &mut Run,
    tasks: &Tasks,
    open: &[usize],
    told: &mut BTreeSet<usize>,
    context: &mut Context<'_>,
) -> Result<(), ClusterError> {
    let mut changed = false;
    for &number in open {
        let result = TaskResult::read(run.folder(), number);
        let known = |index: &usize| tasks.tasks[number].contains(index);
        for (index, info) in result.trials.into_iter().filter(|(index, _)| known(index)) {
            if run.trials()[index] == info {
                continue;
            }
            if info.result.is_recorded() && told.insert(index) {
                context.listener.notify(&Event::TaskEnded { label: &info.label(), node: &result.node });
            }
            *run.trial_mut(index) = info;
            changed = true;
        }
    }
    if changed {
        run.write_info()?;
    }
    Ok(())
}

/// A shared folder may show files of other nodes some seconds late.
fn wait_for_files(run: &Run, tasks: &Tasks, open: &[usize]) {
    let waits = PATIENCE.as_millis() / LOOK_EVERY.as_millis();
    for _ in 0..waits {
        let complete = |number: &usize| is_complete(&TaskResult::read(run.folder(), *number), &tasks.tasks[*number]);
        if open.iter().all(complete) {
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Notes trials of a task that has ended without them.
fn lost(
    run: &mut Run,
    trials: &[usize],
    number: usize,
    attempt: u32,
    lost_scheduler: Option<&str>,
    submission: &mut dyn Submission,
) -> Result<(), ClusterError> {
    let missing: Vec<usize> =
        trials.iter().copied().filter(|index| !run.trials()[*index].result.is_recorded()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let fate = submission
        .fate(number)
        .or_else(|| lost_scheduler.map(str::to_owned))
        .map(|fate| format!("{fate} (task {number}, attempt {attempt})"));
    for index in missing {
        match (&mut run.trial_mut(index).result, &fate) {
            // A limit ends the program first, and its node notes only that.
            (Outcome::Failed(failure), Some(fate)) => failure.reason = format!("{}; {fate}", failure.reason),
            (Outcome::Failed(_), None) => {}
            (result, fate) => {
                let unknown = || format!("its task ended without a result (task {number}, attempt {attempt})");
                let reason = fate.clone().unwrap_or_else(unknown);
                *result =
                    Outcome::Failed(Failure { stage: Stage::Launch, reason, status: None, last_lines: Vec::new() });
            }
        }
    }
    run.write_info()?;
    Ok(())
}
