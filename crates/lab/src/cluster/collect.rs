//! The coordinator's part: submit, watch, collect, try again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::work::is_complete;
use super::{ClusterError, Job, Placement, Progress, Submission, TaskResult, Tasks, write_tasks};
use crate::event::Event;
use crate::execution::Context;
use crate::outcome::{Failure, Outcome, Stage};
use crate::run::Run;

/// How long the coordinator waits.
struct Times {
    /// Between two looks at the scheduler.
    look_every: Duration,
    /// For files of a shared folder, after their task has ended.
    files: Duration,
    /// For a scheduler that does not answer: its controller may restart.
    silence: Duration,
}

const TIMES: Times =
    Times { look_every: Duration::from_secs(1), files: Duration::from_secs(5), silence: Duration::from_secs(30) };

/// Records the trials of a run that are not recorded yet. The run's outcomes hold what is missing, and why.
///
/// # Errors
/// If the scheduler cannot be reached, or the run not written.
pub fn record(run: &mut Run, placement: &Placement, context: &mut Context<'_>) -> Result<(), ClusterError> {
    record_with(run, placement, context, &TIMES)
}

fn record_with(
    run: &mut Run,
    placement: &Placement,
    context: &mut Context<'_>,
    times: &Times,
) -> Result<(), ClusterError> {
    let tasks = Tasks::of(run.trials());
    write_tasks(run, &tasks)?;
    let folder = run.folder().canonicalize().map_err(super::at(run.folder()))?;
    context.listener.notify(&Event::RunStarted { folder: run.folder(), trials: run.trials().len() });
    let mut reported = BTreeSet::new();
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
        let mut silent_since: Option<Instant> = None;
        let lost_scheduler = loop {
            collect(run, &tasks, &open, &mut reported, context)?;
            if context.interrupt.load(Ordering::Relaxed) {
                submission.cancel();
                break None;
            }
            match submission.progress() {
                Ok(Progress::Over) => break None,
                Ok(Progress::Open) => silent_since = None,
                Ok(Progress::Silent(error)) => {
                    if silent_since.get_or_insert_with(Instant::now).elapsed() >= times.silence {
                        break Some(error);
                    }
                }
                Err(error) => break Some(error),
            }
            thread::sleep(times.look_every);
        };
        wait_for_files(run, &tasks, &open, times);
        collect(run, &tasks, &open, &mut reported, context)?;
        let why = lost_scheduler.as_ref().map(ToString::to_string);
        for &number in &open {
            lost(run, &tasks.tasks[number], number, attempt, why.as_deref(), &mut *submission)?;
        }
        // Without the scheduler, the run ends with what it has.
        match lost_scheduler {
            Some(error) if !run.trials().iter().any(|trial| trial.result.is_recorded()) => {
                run.end()?;
                notify_missing(run, context);
                return Err(error);
            }
            Some(_) => break,
            None => {}
        }
    }
    run.end()?;
    notify_missing(run, context);
    Ok(())
}

/// Says why trials are missing, once for each reason.
fn notify_missing(run: &Run, context: &mut Context<'_>) {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for trial in run.trials().iter().filter(|trial| !trial.result.is_recorded()) {
        let summary = trial.result.summary();
        // Tasks and attempts differ where the reason is the same.
        let reason = summary.split(TASK_NUMBER).next().unwrap_or_default();
        *reasons.entry(reason.to_owned()).or_default() += 1;
    }
    for (reason, trials) in reasons {
        context.listener.notify(&Event::TrialsMissing { trials, reason: &reason });
    }
}

/// What stands before the number of a task in a reason.
const TASK_NUMBER: &str = " (task ";

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
    reported: &mut BTreeSet<usize>,
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
            if info.result.is_recorded() && reported.insert(index) {
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
fn wait_for_files(run: &Run, tasks: &Tasks, open: &[usize], times: &Times) {
    let waits = times.files.as_millis() / times.look_every.as_millis().max(1);
    for _ in 0..waits {
        let complete = |number: &usize| is_complete(&TaskResult::read(run.folder(), *number), &tasks.tasks[*number]);
        if open.iter().all(complete) {
            return;
        }
        thread::sleep(times.look_every);
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
        .map(|fate| format!("{fate}{TASK_NUMBER}{number}, attempt {attempt})"));
    for index in missing {
        match (&mut run.trial_mut(index).result, &fate) {
            // A limit ends the program first, and its node notes only that.
            (Outcome::Failed(failure), Some(fate)) => failure.reason = format!("{}; {fate}", failure.reason),
            (Outcome::Failed(_), None) => {}
            (result, fate) => {
                let unknown = || format!("its task ended without a result{TASK_NUMBER}{number}, attempt {attempt})");
                let reason = fate.clone().unwrap_or_else(unknown);
                *result =
                    Outcome::Failed(Failure { stage: Stage::Launch, reason, status: None, last_lines: Vec::new() });
            }
        }
    }
    run.write_info()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::cluster::Scheduler;
    use crate::lab_file::{LabFile, TrialFilter};
    use crate::recorder::PerfRecorder;

    /// What a scheduler answers, one after the other; then that all tasks are over.
    struct Fake(Mutex<Vec<Answer>>);

    #[derive(Clone, Copy)]
    enum Answer {
        Open,
        Silent,
        Final,
    }

    fn refused() -> ClusterError {
        ClusterError::Refused { program: "fake".into(), message: "no answer".into() }
    }

    impl Scheduler for Fake {
        fn name(&self) -> &'static str {
            "fake"
        }

        /// The first trial of the first task is recorded at once.
        fn submit(&self, job: &Job<'_>) -> Result<Box<dyn Submission>, ClusterError> {
            let mut trial = Run::open(job.run)?.trials()[0].clone();
            trial.result = Outcome::Recorded;
            TaskResult { node: "n".into(), trials: [(0, trial)].into() }.write(job.run, 0)?;
            Ok(Box::new(FakeTasks(self.0.lock().unwrap().drain(..).collect::<Vec<_>>().into_iter())))
        }
    }

    struct FakeTasks(std::vec::IntoIter<Answer>);

    impl Submission for FakeTasks {
        fn progress(&mut self) -> Result<Progress, ClusterError> {
            match self.0.next() {
                Some(Answer::Open) => Ok(Progress::Open),
                Some(Answer::Silent) => Ok(Progress::Silent(refused())),
                Some(Answer::Final) => Err(refused()),
                None => Ok(Progress::Over),
            }
        }

        fn fate(&mut self, _: usize) -> Option<String> {
            None
        }

        fn cancel(&mut self) {}
    }

    /// Records a scenario in two variants; gives what became of both, how long it took, and the reasons that a listener got.
    fn recorded(answers: &[Answer], silence: Duration) -> (Vec<String>, Duration, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let text = "[scenario.s]\ncommand = [\"true\"]\n[variant.a]\n[variant.b]\nenv = { B = \"1\" }\n";
        std::fs::write(folder.path().join("stepscope.toml"), text).unwrap();
        let lab = LabFile::read(&folder.path().join("stepscope.toml")).unwrap();
        let trials = lab.trials(&TrialFilter::default()).unwrap();
        let mut run = Run::create(&folder.path().join("runs"), &lab, &trials).unwrap();
        let placement = Placement {
            scheduler: Box::leak(Box::new(Fake(Mutex::new(answers.to_vec())))),
            hosts: Vec::new(),
            arguments: Vec::new(),
            cpus: None,
            time_limit: None,
            attempts: 1,
            program: Path::new("stepscope").into(),
            copies: false,
        };
        let mut missing = Vec::new();
        let mut listener = |event: &Event<'_>| {
            if let Event::TrialsMissing { trials, reason } = event {
                missing.push(format!("{trials}: {reason}"));
            }
        };
        let interrupt = AtomicBool::new(false);
        let mut context =
            Context { recorder: &PerfRecorder::default(), interrupt: &interrupt, listener: &mut listener };
        let times = Times { look_every: Duration::from_millis(1), files: Duration::ZERO, silence };
        let start = Instant::now();
        record_with(&mut run, &placement, &mut context, &times).unwrap();
        let took = start.elapsed();
        (run.trials().iter().map(|trial| trial.result.summary()).collect(), took, missing)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_final_error_ends_the_run_at_once_with_what_it_has() {
        let (results, took, missing) = recorded(&[Answer::Open, Answer::Final, Answer::Open], LONG);
        assert!(took < LONG / 2, "{took:?}");
        assert_eq!(results, ["recorded", "failed (launch): fake failed: no answer (task 0, attempt 1)"]);
        assert_eq!(missing, ["1: failed (launch): fake failed: no answer"]);
    }

    #[test]
    fn a_scheduler_that_answers_again_is_not_lost() {
        let (results, _, missing) = recorded(&[Answer::Silent, Answer::Silent, Answer::Open, Answer::Silent], LONG);
        assert_eq!(results, ["recorded", "failed (launch): its task ended without a result (task 0, attempt 1)"]);
        assert_eq!(missing, ["1: failed (launch): its task ended without a result"]);
    }

    #[test]
    fn a_scheduler_that_stays_silent_is_lost() {
        let (results, ..) = recorded(&[Answer::Open, Answer::Silent, Answer::Open], Duration::ZERO);
        assert_eq!(results[1], "failed (launch): fake failed: no answer (task 0, attempt 1)");
    }
}
