//! Finding the step function of a program while it is recorded.
//!
//! Costs per step answer more than costs per second, and somebody who records a program for the first time knows no step
//! function. So the recording looks for one: at first it records without steps, then the stacks of its log so far give candidates,
//! whose calls are counted for half a second ([`crate::step::suggestion`]). A function that is clearly a step is observed from
//! then on. The program's own marks come first.
//!
//! A wrong step is worse than none, and observing must not cost much. So the function must have most of its thread's time and
//! a steady rate, and its calls may take [`MOST_COST`] of the time at most.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stepscope_analyze::Ownership;
use stepscope_model::disk;
use stepscope_record::StepPoint;
use stepscope_record::calls::{CallCounts, CallSite, count_calls};
use stepscope_record::session::{Progress, Recording};
use stepscope_symbolize::{Options, Symbolizer};

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
    look: Option<(JoinHandle<Option<StepPoint>>, Arc<AtomicBool>)>,
    is_over: bool,
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
        let stop = Arc::new(AtomicBool::new(false));
        let (folder, stopped) = (self.folder.clone(), stop.clone());
        let find = move || find(&folder, count_for, &stopped).ok().flatten();
        let thread = thread::Builder::new().name("stepscope-steps".to_owned()).spawn(find);
        self.look = thread.ok().map(|thread| (thread, stop));
    }

    fn end(&mut self) {
        self.is_over = true;
        if let Some((thread, stop)) = self.look.take() {
            stop.store(true, Ordering::Relaxed);
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
fn find(folder: &Path, count_for: Duration, stop: &AtomicBool) -> io::Result<Option<StepPoint>> {
    let log = File::open(folder.join(disk::RAW_LOG_FILE))?;
    let mut symbols = Symbolizer::new(Options { debuginfod: false, ..Options::default() });
    symbols.add_copies(&folder.join(disk::FILES_FOLDER));
    // In memory: a recorder that is killed leaves no files behind.
    let capture = stepscope_assemble::finish(BufReader::new(log), &mut symbols).map_err(io::Error::other)?;
    let owned = Ownership::default().compile().map_err(io::Error::other)?;
    let count = |sites: &[CallSite], enough: &dyn Fn(&[usize]) -> bool| -> io::Result<CallCounts> {
        match stop.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => count_calls(sites, count_for, MOST_PER_SECOND, enough, stop),
        }
    };
    Ok(Suggestion::of(&capture, &owned, count).clear_step(MOST_COST))
}
