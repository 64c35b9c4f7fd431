//! `stepscope diagnose --deepen`: runs the scenarios of a run again and counts the calls of their functions.
//!
//! Each scenario runs as its lab file says, with the recorder and beside it [`count_calls`] in the steady phase. Counting slows
//! the program, so nothing of this recording is kept but the calls per step: both are counted in the same time, and are
//! slowed alike. They are written to [`CALLS_FILE`] in the folder of the run and are evidence from then on.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stepscope_analyze::diagnose::{Calls, FunctionCalls};
use stepscope_analyze::steps::{Loops, Steps};
use stepscope_analyze::{Functions, Owned, Selection, step_stacks};
use stepscope_model::output_file::write_durably;
use stepscope_model::{Phase, disk};
use stepscope_record::calls::{CallCounts, CallSite, MOST_PER_SECOND, SiteCalls, count_calls};
use stepscope_record::proc::{self, ProcessTree};

use crate::event::{Event, Listener};
use crate::execution::{Context, execute};
use crate::lab_file::{Trial, TrialFilter};
use crate::outcome::{Outcome, Stage};
use crate::run::Run;
use crate::source::{CALLS_FILE, SourceError};
use crate::step::suggestion::entries;

/// Functions whose calls are counted, at most. Each costs the program some microseconds per call.
const MOST_FUNCTIONS: usize = 24;

/// Threads in which a function's calls are counted, at most.
const MOST_THREADS: usize = 16;

/// How long calls are counted.
const LENGTH: Duration = Duration::from_secs(1);

/// Folder of the recordings, within that of the run. It is removed afterwards.
const FOLDER: &str = ".deepen";

/// The result of [`deepen`].
#[derive(Debug)]
pub struct Deepened {
    /// The counts.
    pub calls: Calls,
    /// What could not be counted, in sentences.
    pub notes: Vec<String>,
}

/// Counts calls of the functions that these selections of a run's captures show, and writes them into the run.
///
/// # Errors
/// If the run has no lab file, or its folder cannot be written.
pub fn deepen(run: &Run, selections: &[Selection<'_>], context: &mut Context<'_>) -> Result<Deepened, SourceError> {
    let Some(lab) = run.lab().transpose()? else {
        let folder = run.folder().display();
        return Err(SourceError::Usage(format!("{folder}: has no lab file, so its scenarios cannot be run again")));
    };
    let trials = lab.trials(&TrialFilter::default()).map_err(|error| SourceError::Usage(error.to_string()))?;
    let (mut calls, mut notes) = (Calls::default(), Vec::new());
    let folder = run.folder().join(FOLDER);
    for trial in &trials {
        let is_of = |one: &&Selection<'_>| {
            let info = &one.capture().info;
            (info.scenario.as_deref(), &info.variant, info.phase)
                == (Some(&trial.scenario.name), &trial.variant, Some(Phase::Steady))
        };
        let Some(selection) = selections.iter().find(is_of) else { continue };
        if context.interrupt.load(Ordering::Relaxed) {
            break;
        }
        match of_trial(trial, selection, &folder, context) {
            Ok(found) => calls.functions.extend(found),
            Err(reason) => notes.push(format!("{}: calls were not counted: {reason}", trial.scenario.name)),
        }
        let _ = fs::remove_dir_all(&folder);
    }
    if calls.functions.is_empty() {
        notes.push("no calls were counted; nothing was added to the run".to_owned());
        return Ok(Deepened { calls, notes });
    }
    let path = run.folder().join(CALLS_FILE);
    let text = serde_json::to_vec_pretty(&calls).expect("counts are plain data");
    write_durably(&path, &text).map_err(|error| SourceError::Usage(format!("{}: {error}", path.display())))?;
    Ok(Deepened { calls, notes })
}

/// A function to count, and the names of the threads that run it.
struct Counted {
    function: String,
    site: CallSite,
    threads: BTreeSet<String>,
}

fn of_trial(
    trial: &Trial,
    selection: &Selection<'_>,
    folder: &Path,
    context: &mut Context<'_>,
) -> Result<Vec<FunctionCalls>, String> {
    let functions = functions(selection);
    if functions.is_empty() {
        return Err("no owned function has code of its own in a file".to_owned());
    }
    let mut counting = Counting {
        listener: &mut *context.listener,
        functions: &functions,
        pid: 0,
        worker: None,
        stop: Arc::default(),
        counts: None,
    };
    let mut context = Context { listener: &mut counting, ..*context };
    let executed = execute(trial, folder, &mut context);
    if let Outcome::Failed(failure) = &executed.outcome {
        return Err(failure.reason.clone());
    }
    let counts = counting.counts.ok_or("the steady phase ended before")?.map_err(|error| error.to_string())?;
    let capture = disk::read(&folder.join(Phase::Steady.to_string())).map_err(|error| error.to_string())?;
    let loops = Loops::of(&Selection::all(&capture, &Functions::of(&capture, &Owned::nothing())));
    let loops = loops.ok_or("the recording has no steps")?;
    let count = |(one, calls): (&Counted, &SiteCalls)| {
        let per_step = calls_per_step(calls, loops.main())?;
        let briefly = matches!(calls, SiteCalls::TooOften { .. });
        let (scenario, variant) = (Some(trial.scenario.name.clone()), trial.variant.clone());
        Some(FunctionCalls { scenario, variant, function: one.function.clone(), per_step, briefly })
    };
    Ok(functions.iter().zip(&counts.sites).filter_map(count).collect())
}

/// The owned functions with much time that have an entry in a file.
fn functions(selection: &Selection<'_>) -> Vec<Counted> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let mut found = step_stacks::functions(selection);
    found.retain(|one| functions.get(one.function).owned);
    let entries = entries(&found, capture);
    let counted = found.iter().zip(entries).filter_map(|(one, entry)| {
        let entry = entry?;
        let threads = one.threads.iter().map(|thread| capture.threads[thread.index()].name.clone()).collect();
        let site = CallSite { module: entry.module, offset: entry.offset?, threads: Vec::new() };
        Some(Counted { function: functions.get(one.function).name.to_string(), site, threads })
    });
    counted.take(MOST_FUNCTIONS).collect()
}

/// Calls over the number of steps in the same time; `None` if they were not counted while steps ran.
fn calls_per_step(calls: &SiteCalls, steps: &Steps) -> Option<f64> {
    let cut = |window: &Range<u64>| window.start.max(steps.span.start)..window.end.min(steps.span.end);
    let (calls, window) = match calls {
        SiteCalls::Counted { calls, window } => {
            let window = cut(window);
            (calls.iter().filter(|call| window.contains(&call.time_ns)).count() as f64, window)
        }
        SiteCalls::TooOften { per_second, window } => {
            let window = cut(window);
            (per_second * window.end.saturating_sub(window.start) as f64 / 1e9, window)
        }
        SiteCalls::Refused(_) => return None,
    };
    let part = |(position, range): (usize, Range<u64>)| {
        (range.end - range.start) as f64 / steps.duration(position).max(1) as f64
    };
    let steps: f64 = if window.is_empty() { 0.0 } else { steps.pieces(window).map(part).sum() };
    (steps > 0.0).then(|| calls / steps)
}

/// Passes events on, and counts calls in the steady phase.
struct Counting<'a> {
    listener: &'a mut dyn Listener,
    functions: &'a [Counted],
    pid: u32,
    worker: Option<JoinHandle<io::Result<CallCounts>>>,
    stop: Arc<AtomicBool>,
    counts: Option<io::Result<CallCounts>>,
}

impl Listener for Counting<'_> {
    fn notify(&mut self, event: &Event<'_>) {
        match event {
            Event::Launched { pid } => self.pid = *pid,
            Event::Progress { stage: Stage::Steady, .. } if self.worker.is_none() => self.start(),
            // The probes are closed before the program is stopped.
            Event::Stopping => {
                self.stop.store(true, Ordering::Relaxed);
                self.counts = self.worker.take().and_then(|worker| worker.join().ok());
            }
            _ => {}
        }
        self.listener.notify(event);
    }
}

impl Counting<'_> {
    fn start(&mut self) {
        let threads = threads_below(self.pid);
        let site = |one: &Counted| {
            let runs_it = threads.iter().filter(|(_, name)| one.threads.contains(name)).map(|(tid, _)| *tid);
            CallSite { threads: runs_it.take(MOST_THREADS).collect(), ..one.site.clone() }
        };
        let sites: Vec<CallSite> = self.functions.iter().map(site).collect();
        let stop = self.stop.clone();
        self.worker = Some(thread::spawn(move || count_calls(&sites, LENGTH, MOST_PER_SECOND, |_| true, &stop)));
    }
}

/// Ids and names of all threads of a process and its descendants.
fn threads_below(pid: u32) -> Vec<(u32, String)> {
    let mut tree = ProcessTree::of(pid);
    tree.refresh();
    let pids = tree.members().map(|member| member.pid()).collect::<Vec<_>>();
    let of_process = |pid: u32| {
        let tids = proc::threads(pid).unwrap_or_default().into_iter();
        tids.filter_map(move |tid| Some((tid, proc::thread_name(pid, tid).ok()?)))
    };
    pids.into_iter().flat_map(of_process).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_model::{Capture, Step, Thread};
    use stepscope_record::calls::CountedCall;

    /// Ten steps of 100 ns from 1,000 on.
    fn steps() -> Arc<Loops> {
        let mut capture = Capture::default();
        let thread = capture.add_thread(Thread { tid: 1, name: "main".to_owned(), ..Thread::default() });
        let step = |index: u64| Step {
            index,
            start_ns: 1_000 + index * 100,
            end_ns: 1_100 + index * 100,
            sim_time_ns: None,
            thread,
        };
        capture.steps = (0..10).map(step).collect();
        (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(3_000));
        Loops::of(&Selection::all(&capture, &Functions::of(&capture, &Owned::nothing()))).expect("there are steps")
    }

    #[test]
    fn calls_are_divided_by_the_steps_of_the_same_time() {
        let loops = steps();
        // A call each 25 ns, from before the first step to after the last one.
        let calls = (0..120).map(|number| CountedCall { time_ns: number * 25, tid: 1, cpu_ns: 0 }).collect();
        let per_step = calls_per_step(&SiteCalls::Counted { calls, window: 0..3_000 }, loops.main());
        assert_eq!(per_step, Some(4.0));
        // 5 calls in 250 ns, which are 2.5 steps.
        let often = SiteCalls::TooOften { per_second: 2e7, window: 1_050..1_300 };
        assert_eq!(calls_per_step(&often, loops.main()), Some(2.0));
    }

    #[test]
    fn calls_outside_of_steps_have_no_rate() {
        let often = SiteCalls::TooOften { per_second: 2e7, window: 0..900 };
        assert_eq!(calls_per_step(&often, steps().main()), None);
        assert_eq!(calls_per_step(&SiteCalls::Refused(String::new()), steps().main()), None);
    }
}
