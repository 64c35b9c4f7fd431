//! `stepscope diagnose --deepen`: runs the scenarios of a run, or the command of a capture, again and looks at the calls of their functions.
//!
//! Each scenario runs twice as its lab file says, with the recorder and beside it, in the steady phase, first [`count_calls`] and then
//! [`replays`]; for Python functions once more, with [`python`]. All slow the program, so nothing of these recordings is kept but the calls per step, which are counted in the same
//! time and are slowed alike, and which calls repeat an earlier one. They are written to [`CALLS_FILE`] in the folder of the run or capture
//! and are evidence from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use stepscope_analyze::diagnose::{Calls, FunctionCalls, FunctionRepeats};
use stepscope_analyze::step_stacks::{self, FunctionCode, StackFunction};
use stepscope_analyze::steps::{Loops, Steps};
use stepscope_analyze::{Functions, Owned, Selection};
use stepscope_model::output_file::write_durably;
use stepscope_model::{Capture, Phase, disk};
use stepscope_record::calls::{CallSite, MOST_PER_SECOND, SiteCalls, count_calls};
use stepscope_record::proc::{self, ProcessTree};
use stepscope_symbolize::{InlinedCode, Options, inlined_code};
use toml::{Table, Value};

use crate::execution::{Context, execute};
use crate::lab_file::{LabFile, Trial, TrialFilter};
use crate::outcome::Outcome;
use crate::run::Run;
use crate::source::{CALLS_FILE, SourceError};
use crate::step::suggestion::entries;

mod beside;
mod python;
mod replays;

use beside::Beside;

/// Functions whose calls are counted, at most. Each costs the program some microseconds per call.
const MOST_FUNCTIONS: usize = 24;

/// Threads in which a function's calls are counted, at most.
const MOST_THREADS: usize = 16;

/// How long calls are counted.
const LENGTH: Duration = Duration::from_secs(1);

/// Why there is no result.
const ENDED: &str = "the steady phase ended before";

/// How long the command of a capture runs before its calls are counted, and how long that is recorded.
const WARMUP: Duration = Duration::from_secs(1);
const COUNTING: Duration = Duration::from_secs(4);

/// Folder of the recordings, within that of the run or capture. It is removed afterwards.
const FOLDER: &str = ".deepen";

/// The result of [`deepen`].
#[derive(Debug)]
pub struct Deepened {
    /// What was found out.
    pub calls: Calls,
    /// What could not be found out, in sentences.
    pub notes: Vec<String>,
}

/// Counts and replays calls of the functions that these selections of a run's captures show, and writes what it finds into the run.
///
/// # Errors
/// If the run has no lab file, or its folder cannot be written.
pub fn deepen(run: &Run, selections: &[Selection<'_>], context: &mut Context<'_>) -> Result<Deepened, SourceError> {
    let Some(lab) = run.lab().transpose()? else {
        let folder = run.folder().display();
        return Err(SourceError::Usage(format!("{folder}: has no lab file, so its scenarios cannot be run again")));
    };
    let trials = lab.trials(&TrialFilter::default()).map_err(|error| SourceError::Usage(error.to_string()))?;
    let with_selection = trials.into_iter().filter_map(|trial| {
        let is_of = |one: &&Selection<'_>| {
            let info = &one.capture().info;
            (info.scenario.as_deref(), &info.variant, info.phase)
                == (Some(&trial.scenario.name), &trial.variant, Some(Phase::Steady))
        };
        let selection = selections.iter().find(is_of)?;
        Some((trial, selection))
    });
    look(&with_selection.collect::<Vec<_>>(), run.folder(), context)
}

/// The same of a capture of one command, which runs again in its directory. What is found is written into the capture's folder.
///
/// # Errors
/// If the capture does not name its command, or its folder cannot be written.
pub fn deepen_capture(
    folder: &Path,
    selection: &Selection<'_>,
    context: &mut Context<'_>,
) -> Result<Deepened, SourceError> {
    let usage = |reason: String| SourceError::Usage(format!("{}: {reason}", folder.display()));
    let trial = trial_of(selection.capture()).map_err(usage)?;
    look(&[(trial, selection)], folder, context)
}

/// The command of a capture, as a scenario.
fn trial_of(capture: &Capture) -> Result<Trial, String> {
    let info = &capture.info;
    if info.command.is_empty() {
        return Err("has no command that could be run again".to_owned());
    }
    let texts = |texts: &[String]| Value::Array(texts.iter().cloned().map(Value::String).collect());
    let mut scenario = Table::new();
    scenario.insert("command".to_owned(), texts(&info.command));
    if let Some(step) = &info.found_step {
        let step = Table::from_iter([("function".to_owned(), Value::String(step.clone()))]);
        scenario.insert("step".to_owned(), Value::Table(step));
    }
    let variables = info.environment.iter().map(|(name, value)| (name.clone(), Value::String(value.clone())));
    scenario.insert("env".to_owned(), Value::Table(variables.collect()));
    let named = Table::from_iter([("command".to_owned(), Value::Table(scenario))]);
    let text = Table::from_iter([("scenario".to_owned(), Value::Table(named))]).to_string();
    // Relative paths of a lab file start at its folder.
    let directory = info.working_directory.as_deref().unwrap_or_default();
    let lab = LabFile::parse(&Path::new(directory).join("lab.toml"), &text).map_err(|error| error.to_string())?;
    let mut trials = lab.trials(&TrialFilter::default()).map_err(|error| error.to_string())?;
    let mut trial = trials.pop().ok_or("has no command that could be run again")?;
    trial.scenario.record.phases = vec![Phase::Steady];
    (trial.scenario.record.warmup, trial.scenario.record.duration) = (WARMUP, COUNTING);
    Ok(trial)
}

/// Runs each trial again, and writes what is found into `folder`.
fn look(trials: &[(Trial, &Selection<'_>)], folder: &Path, context: &mut Context<'_>) -> Result<Deepened, SourceError> {
    let mut deepened = Deepened { calls: Calls::default(), notes: Vec::new() };
    let recordings = folder.join(FOLDER);
    let is_interrupted = |context: &Context<'_>| context.interrupt.load(Ordering::Relaxed);
    for (trial, selection) in trials {
        let name = &trial.scenario.name;
        if is_interrupted(context) {
            break;
        }
        let (functions, of_python) = (functions(selection), python::functions(selection));
        // Of a program in Python alone, it goes without saying that it has no code in files.
        if !functions.is_empty() || of_python.is_empty() {
            // Calls are counted per step.
            let may_have_steps = Loops::of(selection).is_some() || selection.capture().info.found_step.is_some();
            match may_have_steps.then(|| of_trial(trial, selection, &functions, &recordings, context)) {
                Some(Ok(found)) => deepened.calls.functions.extend(found),
                Some(Err(reason)) => deepened.notes.push(format!("{name}: calls were not counted: {reason}")),
                None => {}
            }
            let _ = fs::remove_dir_all(&recordings);
            if is_interrupted(context) {
                break;
            }
            let replayed = replays::of_trial(trial, selection, &functions, &recordings, context);
            deepened.add_repeats(name, "calls were not replayed", replayed);
            let _ = fs::remove_dir_all(&recordings);
        }
        if of_python.is_empty() || is_interrupted(context) {
            continue;
        }
        let compared = python::of_trial(trial, selection, &of_python, &recordings, context);
        deepened.add_repeats(name, "calls of Python functions were not compared", compared);
        let _ = fs::remove_dir_all(&recordings);
    }
    if deepened.calls.is_empty() {
        deepened.notes.push("nothing was found out about calls, and nothing was written".to_owned());
        return Ok(deepened);
    }
    let path = folder.join(CALLS_FILE);
    let text = serde_json::to_vec_pretty(&deepened.calls).expect("counts are plain data");
    write_durably(&path, &text).map_err(|error| SourceError::Usage(format!("{}: {error}", path.display())))?;
    Ok(deepened)
}

/// Which calls repeat others, and what could not be found out, in sentences; or why there is no result.
type Repeats = Result<(Vec<FunctionRepeats>, Vec<String>), String>;

impl Deepened {
    fn add_repeats(&mut self, scenario: &str, failed: &str, repeats: Repeats) {
        match repeats {
            Ok((found, skipped)) => {
                self.calls.repeats.extend(found);
                self.notes.extend(skipped.into_iter().map(|one| format!("{scenario}: {one}")));
            }
            Err(reason) => self.notes.push(format!("{scenario}: {failed}: {reason}")),
        }
    }
}

/// A function to look at, and the names of the threads that run it.
struct Watched {
    function: String,
    module: PathBuf,
    /// File offset of its first instruction.
    offset: u64,
    /// File offsets of an inlined function's code; empty for one with code of its own.
    inlined: Vec<Range<u64>>,
    threads: BTreeSet<String>,
}

fn of_trial(
    trial: &Trial,
    selection: &Selection<'_>,
    functions: &[Watched],
    folder: &Path,
    context: &mut Context<'_>,
) -> Result<Vec<FunctionCalls>, String> {
    let with_entry = functions.iter().filter(|one| one.inlined.is_empty());
    let functions: Vec<&Watched> = with_entry.take(MOST_FUNCTIONS).collect();
    if functions.is_empty() {
        return Err("no owned function has code of its own in a file".to_owned());
    }
    let mut counting = Beside::new(&mut *context.listener, context.interrupt, |pid, stop| {
        let threads = threads_below(pid);
        let site = |one: &&Watched| {
            let runs_it = threads.iter().filter(|thread| one.threads.contains(&thread.name)).map(|thread| thread.tid);
            CallSite { module: one.module.clone(), offset: one.offset, threads: runs_it.take(MOST_THREADS).collect() }
        };
        let sites: Vec<CallSite> = functions.iter().map(site).collect();
        thread::spawn(move || count_calls(&sites, LENGTH, MOST_PER_SECOND, |_| true, &stop))
    });
    let mut context = Context { listener: &mut counting, ..*context };
    let executed = execute(trial, folder, &mut context);
    if let Outcome::Failed(failure) = &executed.outcome {
        return Err(failure.reason.clone());
    }
    let counts = counting.result().ok_or(ENDED)?.map_err(|error| error.to_string())?;
    let capture = disk::read(&folder.join(Phase::Steady.to_string())).map_err(|error| error.to_string())?;
    let loops = Loops::of(&Selection::all(&capture, &Functions::of(&capture, &Owned::nothing())));
    let loops = loops.ok_or("the recording has no steps")?;
    let info = &selection.capture().info;
    let count = |(one, calls): (&&Watched, &SiteCalls)| {
        let per_step = calls_per_step(calls, loops.main())?;
        let briefly = matches!(calls, SiteCalls::TooOften { .. });
        let (scenario, variant) = (info.scenario.clone(), info.variant.clone());
        Some(FunctionCalls { scenario, variant, function: one.function.clone(), per_step, briefly })
    };
    Ok(functions.iter().zip(&counts.sites).filter_map(count).collect())
}

/// The owned functions with much time whose code is in a file, the most expensive first.
fn functions(selection: &Selection<'_>) -> Vec<Watched> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let mut found = step_stacks::functions(selection);
    found.retain(|one| functions.is_owner(one.function) && !functions.is_installed(one.function));
    let name = |one: &StackFunction| functions.get(one.function).name.to_string();
    let inlined = inlined_code_of(&found, capture, &name);
    let watched = found.iter().zip(entries(&found, capture)).zip(inlined).filter_map(|((one, entry), inlined)| {
        let (module, offset, inlined) = match (entry, inlined) {
            (Some(entry), _) => (entry.module, entry.offset?, Vec::new()),
            (None, Some((module, call))) => (module, call.entry, call.code),
            (None, None) => return None,
        };
        let threads = one.threads.iter().map(|thread| capture.threads[thread.index()].name.clone()).collect();
        Some(Watched { function: name(one), module, offset, inlined, threads })
    });
    watched.collect()
}

/// The files and the code of functions that are inlined where they run.
fn inlined_code_of(
    found: &[StackFunction],
    capture: &Capture,
    name: &dyn Fn(&StackFunction) -> String,
) -> Vec<Option<(PathBuf, InlinedCode)>> {
    let mut code: Vec<Option<(PathBuf, InlinedCode)>> = found.iter().map(|_| None).collect();
    let mut by_module: BTreeMap<&str, Vec<(usize, u64, String)>> = BTreeMap::new();
    for (index, one) in found.iter().enumerate() {
        let FunctionCode::Inlined { frame, .. } = one.code else { continue };
        if let (Some(module), Some(address)) = (capture.module_of(frame), capture.frames[frame.index()].address) {
            by_module.entry(&module.path).or_default().push((index, address, name(one)));
        }
    }
    for (module, functions) in by_module {
        let places: Vec<(u64, &str)> = functions.iter().map(|(_, address, name)| (*address, name.as_str())).collect();
        let calls = inlined_code(Path::new(module), &Options::default(), &places).unwrap_or_default();
        for ((index, ..), call) in functions.iter().zip(calls) {
            code[*index] = call.map(|call| (PathBuf::from(module), call));
        }
    }
    code
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

/// A thread of a scenario.
struct RunningThread {
    pid: u32,
    tid: u32,
    name: String,
}

/// All threads of a process and its descendants.
fn threads_below(pid: u32) -> Vec<RunningThread> {
    let mut tree = ProcessTree::of(pid);
    tree.refresh();
    let pids = tree.members().map(|member| member.pid()).collect::<Vec<_>>();
    let of_process = |pid: u32| {
        let tids = proc::threads(pid).unwrap_or_default().into_iter();
        tids.filter_map(move |tid| Some(RunningThread { pid, tid, name: proc::thread_name(pid, tid).ok()? }))
    };
    pids.into_iter().flat_map(of_process).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
