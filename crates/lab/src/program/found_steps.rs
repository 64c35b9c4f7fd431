//! Finding the step function of a program while it is recorded.
//!
//! Costs per step answer more than costs per second, and somebody who records a program for the first time knows no step
//! function. So the recording looks for one: at first it records without steps, then the stacks of its log so far give candidates,
//! whose calls are counted for half a second ([`crate::step::suggestion`]). A function that is clearly a step is observed from
//! then on. The program's own marks come first.
//!
//! A wrong step is worse than none, and observing must not cost much. So the function must have most of its thread's time and
//! a steady rate, and its calls may take [`MOST_COST`] of the time at most.
//!
//! The search has ordinary priority, so that it takes little from the program. Beside many busy threads it may need minutes. A
//! recording that ends does not wait for it, except for the probes that count calls.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stepscope_analyze::Ownership;
use stepscope_assemble::{NoSymbols, Symbols};
use stepscope_model::{Build, Capture, disk};
use stepscope_record::StepPoint;
use stepscope_record::calls::{CallCounts, CallSite, count_calls};
use stepscope_record::session::{Progress, Recording};
use stepscope_symbolize::{Code, ModuleNames, Options, Symbolizer};

use super::ProgramEvent;
use crate::step::suggestion::Suggestion;

/// When the program is looked at, since the start of the recording. It may load first, or have long steps.
const LOOKS_S: [u64; 5] = [1, 3, 8, 20, 45];
/// How long calls are counted in the first look. Each further look counts twice as long.
const FIRST_COUNT: Duration = Duration::from_millis(500);
/// Fewer samples give no candidates.
const LEAST_SAMPLES: u64 = 200;
/// The most that observing the steps may cost, as a share of the time.
const MOST_COST: f64 = 0.02;
/// Functions that are called more often cost more than that, so that they are not counted: nobody asked for the search, and it must not
/// change what is recorded.
const MOST_PER_SECOND: f64 = 3_500.0;

/// The search for a step function.
#[derive(Debug)]
pub(super) struct FoundSteps {
    folder: PathBuf,
    looks: usize,
    look: Option<(JoinHandle<Option<StepPoint>>, Arc<Stage>)>,
    is_over: bool,
}

/// How far a look is.
#[derive(Debug, Default)]
struct Stage {
    /// It is no longer wanted.
    stops: AtomicBool,
    /// It counts calls, or is about to: the program has probes until it ends.
    counts: AtomicBool,
}

impl Stage {
    fn stops(&self) -> bool {
        self.stops.load(Ordering::SeqCst)
    }

    /// Whether calls may be counted: either this sees the stop, or [`stop`](Self::stop) sees the counting.
    fn may_count(&self) -> bool {
        self.counts.store(true, Ordering::SeqCst);
        !self.stops()
    }

    /// Stops the look. Returns whether its probes must be waited for.
    fn stop(&self) -> bool {
        self.stops.store(true, Ordering::SeqCst);
        self.counts.load(Ordering::SeqCst)
    }
}

/// Names code until the look is no longer wanted.
struct NamesUntilStop<'a> {
    symbols: Symbolizer,
    stage: &'a Stage,
}

impl Symbols for NamesUntilStop<'_> {
    fn name(&mut self, code: &Code, offsets: &[u64]) -> ModuleNames {
        match self.stage.stops() {
            true => NoSymbols.name(code, offsets),
            false => self.symbols.name(code, offsets),
        }
    }

    fn add_jit_dump(&mut self, pid: u32, path: &Path) {
        Symbols::add_jit_dump(&mut self.symbols, pid, path);
    }

    fn build_of(&mut self, _: &Capture) -> Option<Build> {
        None
    }
}

impl FoundSteps {
    /// Looks into the log of the recording in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), looks: 0, look: None, is_over: false }
    }

    /// Looks for steps if it is time. Observes the function when it is found.
    pub fn look(&mut self, progress: &Progress, recording: &Recording, listener: &mut dyn FnMut(ProgramEvent<'_>)) {
        if self.is_over {
            return;
        }
        if progress.steps.is_some() {
            // The program marks its steps.
            self.end();
            return;
        }
        if self.look.as_ref().is_some_and(|(thread, _)| !thread.is_finished()) {
            return;
        }
        match self.look.take().and_then(|(thread, _)| thread.join().ok().flatten()) {
            Some(step) => {
                self.is_over = true;
                // A refusal leaves the recording as it is: nobody asked for steps.
                if recording.observe_found_steps(step.clone()).is_ok() {
                    listener(ProgramEvent::StepsFound(&step));
                }
            }
            None => self.start_next(progress),
        }
    }

    fn start_next(&mut self, progress: &Progress) {
        let Some(&next) = LOOKS_S.get(self.looks) else {
            self.is_over = true;
            return;
        };
        if progress.elapsed < Duration::from_secs(next) || progress.cpu_samples < LEAST_SAMPLES {
            return;
        }
        let count_for = FIRST_COUNT * (1 << self.looks);
        self.looks += 1;
        let stage = Arc::new(Stage::default());
        let (folder, shared) = (self.folder.clone(), stage.clone());
        let find = move || find(&folder, count_for, &shared).ok().flatten();
        let thread = thread::Builder::new().name("stepscope-steps".to_owned()).spawn(find);
        self.look = thread.ok().map(|thread| (thread, stage));
    }

    fn end(&mut self) {
        self.is_over = true;
        if let Some((thread, stage)) = self.look.take()
            && stage.stop()
        {
            let _ = thread.join();
        }
    }
}

impl Drop for FoundSteps {
    fn drop(&mut self) {
        self.end();
    }
}

/// The clear step of what was recorded so far, if there is one.
fn find(folder: &Path, count_for: Duration, stage: &Stage) -> io::Result<Option<StepPoint>> {
    let log = File::open(folder.join(disk::RAW_LOG_FILE))?;
    let mut symbols = Symbolizer::new(Options { debuginfod: false, ..Options::default() });
    symbols.add_copies(&folder.join(disk::FILES_FOLDER));
    // In memory: a recorder that is killed leaves no files behind.
    let mut names = NamesUntilStop { symbols, stage };
    let capture = stepscope_assemble::finish(BufReader::new(log), &mut names).map_err(io::Error::other)?;
    let owned = Ownership::default().compile().map_err(io::Error::other)?;
    let count = |sites: &[CallSite], enough: &dyn Fn(&[usize]) -> bool| -> io::Result<CallCounts> {
        match stage.may_count() {
            true => count_calls(sites, count_for, MOST_PER_SECOND, enough, &stage.stops),
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    };
    Ok(Suggestion::of(&capture, &owned, count).clear_step(MOST_COST))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A look that goes on until it gets a message.
    fn look(stage: Arc<Stage>) -> (FoundSteps, mpsc::Sender<()>) {
        let (end, ended) = mpsc::channel();
        let thread = thread::spawn(move || ended.recv().ok().and(None));
        let mut steps = FoundSteps::new(Path::new(""));
        steps.look = Some((thread, stage));
        (steps, end)
    }

    #[test]
    fn a_recording_that_ends_waits_for_probes_only() {
        let stage = Arc::new(Stage::default());
        let (steps, end) = look(stage.clone());
        drop(steps);
        assert!(!stage.may_count(), "it is no longer wanted");
        assert_eq!(end.send(()), Ok(()), "it still runs");

        let stage = Arc::new(Stage::default());
        assert!(stage.may_count());
        let (steps, end) = look(stage.clone());
        let waits = thread::spawn(move || drop(steps));
        while !stage.stops() {
            thread::yield_now();
        }
        assert!(!waits.is_finished());
        drop(end);
        waits.join().unwrap();
    }

    #[test]
    fn code_gets_no_names_once_the_look_is_not_wanted() {
        let stage = Stage::default();
        let mut names = NamesUntilStop { symbols: Symbolizer::default(), stage: &stage };
        stage.stop();
        let code = Code::File { path: "/bin/sh".into(), build_id: None };
        let places = names.name(&code, &[1]).places;
        assert_eq!(&*places[0].frames[0].function, "/bin/sh+0x1");
    }
}
