//! Recording one program without a lab file: launch it or attach to it, wait until it is ready, record, stop.

mod found_steps;
mod segments;
mod suggest_steps;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use stepscope_record::clock_exchange::Client;
use stepscope_record::launch::{Grace, Input, Launch, LaunchError, Launched, Output, StopReport};
use stepscope_record::proc::{self, ProcError, ProcessSelection, ProcessTree};
use stepscope_record::session::{Options, Progress, Reason, Recording, Until};
use stepscope_record::{Label, LogError, RecordError, StepPoint};

use crate::execution::UNWANTED_FOLDER;
use crate::lab_file::Ready;
use crate::ready::{Observation, TreeSurroundings, Watch};
use crate::selected;
use crate::step::search::StepSearch;
use crate::step::{StepError, StepFunction, libraries};
use found_steps::FoundSteps;
use segments::Rotation;

pub use suggest_steps::SuggestedSteps;

/// Time between two looks at a program that is not ready yet.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long the report of a program's exit may take after the record of it. Its keeper may have to wait for a CPU.
const EXIT_REPORT: Duration = Duration::from_secs(10);

/// What to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program and its arguments, launched and terminated by the recording.
    Command(Vec<String>),
    /// Processes that already run.
    Processes(ProcessSelection),
}

/// What to record, from when, and for how long.
#[derive(Debug)]
pub struct ProgramRecording {
    /// The program.
    pub target: Target,
    /// When recording starts; at once if `None`. Only [`Ready::After`] applies to a process that already runs.
    pub start: Option<Ready>,
    /// When recording ends at the latest.
    pub duration: Option<Duration>,
    /// How long each segment is, if the recording is divided: then its folder has a capture for each.
    pub segment: Option<Duration>,
    /// The function whose calls are the steps.
    pub step: Option<StepFunction>,
    /// Whether a step function is looked for while the program runs, if it marks no steps and none is named.
    pub finds_steps: bool,
    /// How to record.
    pub options: Options,
}

/// The progress that a listener receives.
#[derive(Debug)]
pub enum ProgramEvent<'a> {
    /// The launched program is ready.
    Ready {
        /// Time since the launch.
        after: Duration,
        /// The condition that was met.
        by: &'a str,
    },
    /// The recording continues.
    Recording(&'a Progress),
    /// Calls of this many functions are being counted.
    Counting(usize),
    /// Steps are the calls of this function, or the rounds of this loop.
    Steps(&'a StepPoint),
    /// Steps are the calls of this function or the rounds of this loop, which was found while the program ran.
    StepsFound(&'a StepPoint),
    /// The step function was not found, for this reason. It is searched in the files that the program maps later.
    StepsSought(&'a StepError),
    /// The step function was not found until the end, or its calls cannot be observed.
    StepsMissing(&'a str),
    /// The log of this segment is complete, and the next segment has started.
    SegmentEnded(&'a Path),
    /// The next segment could not be started, for this reason. The present one goes on.
    NotRotated(&'a str),
    /// The recording cannot go on; the launched program does.
    Failed(&'a str),
    /// The recording is over, and the launched program is being stopped.
    Stopping,
}

/// How a recording ended. The raw log is in the folder of the capture.
#[derive(Debug)]
pub struct ProgramRecorded {
    /// Why it ended.
    pub reason: Reason,
    /// Exit status of the launched program, if it ended by itself.
    pub status: Option<i32>,
    /// How the launched program was stopped.
    pub stopped: Option<StopReport>,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program cannot be launched or watched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// It cannot be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The step function is unknown.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The process cannot be read.
    #[error(transparent)]
    Process(#[from] ProcError),
    /// A folder cannot be removed.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program ended too early.
    #[error("the program ended with status {status} before it was ready: {why}")]
    NotReady {
        /// Its exit status.
        status: i32,
        /// What it was waiting for.
        why: String,
    },
    /// The user interrupted the wait.
    #[error("interrupted before the program was ready; nothing was recorded")]
    Interrupted,
}

impl ProgramRecording {
    /// Records into `folder` until the program ends, the time is up or `interrupted` is set.
    ///
    /// # Errors
    /// If there is nothing to keep. What the launch started is terminated.
    pub fn record(
        mut self,
        folder: &Path,
        interrupted: &AtomicBool,
        listener: &mut dyn FnMut(ProgramEvent<'_>),
    ) -> Result<ProgramRecorded, ProgramError> {
        if let Some(address) = &self.options.clock_of {
            // Before the program is launched, which may take long until it is ready.
            Client::connect(address).map_err(RecordError::from)?;
        }
        let mut search = None;
        if let Some(function) = &self.step {
            let program = self.target.program()?;
            match function.find(&program, || self.target.libraries(&program)) {
                Ok(step) => {
                    listener(ProgramEvent::Steps(&step));
                    self.options.step = Some(step);
                }
                Err(missing) if function.may_be_mapped_later(&missing) => {
                    listener(ProgramEvent::StepsSought(&missing));
                    self.options.step_later = true;
                    search = Some(StepSearch::new(function.clone(), missing));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let first = self.segment.map(|_| Rotation::first(folder));
        let first = first.as_deref().unwrap_or(folder);
        let (mut launched, recording) = self.start(&mut search, first, interrupted, listener)?;
        let names_steps = self.step.is_some() || self.options.step_scope.is_some();
        let mut found_steps = (self.finds_steps && !names_steps).then(|| FoundSteps::new(first));
        let mut rotation = self.segment.map(|every| Rotation::new(folder, every));
        let mut tree = self.target.tree(launched.as_ref());
        let until = Until { duration: self.duration, flag: Some(interrupted) };
        let started = Instant::now();
        let mut reason = recording.wait_watched(&until, |progress| {
            search_step(&mut search, &mut tree, &recording, listener);
            if let Some(found_steps) = &mut found_steps {
                found_steps.look(progress, &recording, listener);
            }
            if let Some(rotation) = &mut rotation {
                rotation.look(&recording, progress, listener);
            }
            listener(ProgramEvent::Recording(progress));
        });
        if let (Reason::Failed(why), Some(launched)) = (&reason, &mut launched) {
            listener(ProgramEvent::Failed(why));
            let is_up = || self.duration.is_some_and(|limit| started.elapsed() >= limit);
            while !launched.all_ended()? && !is_up() && !interrupted.load(Ordering::Relaxed) {
                thread::sleep(LOOK_EVERY);
            }
        }
        let mut status = None;
        if let Some(launched) = &mut launched
            && let Some(exit) = match reason {
                Reason::Over => launched.wait_for(EXIT_REPORT)?,
                _ => launched.exit()?,
            }
        {
            recording.note_exit(launched.pid(), &exit);
            status = Some(exit.status());
        }
        if let Some(failure) = recording.stop()?.failure {
            reason = Reason::Failed(failure);
        }
        if let Some(missing) = search.and_then(|search| search.failure()) {
            listener(ProgramEvent::StepsMissing(&missing));
        }
        let mut recorded = ProgramRecorded { reason, status, stopped: None };
        if let Some(launched) = &mut launched {
            if recorded.status.is_none() {
                listener(ProgramEvent::Stopping);
            }
            recorded.stopped = Some(launched.stop(&Grace::default())?);
        }
        Ok(recorded)
    }

    /// Starts the recording: at once, or when the program is ready.
    fn start(
        &self,
        search: &mut Option<StepSearch>,
        folder: &Path,
        interrupted: &AtomicBool,
        listener: &mut dyn FnMut(ProgramEvent<'_>),
    ) -> Result<(Option<Launched>, Recording), ProgramError> {
        let command = match &self.target {
            Target::Processes(selection) => {
                if let Some(Ready::After(delay)) = self.start {
                    sleep(delay, interrupted);
                }
                return Ok((None, Recording::attach_set(selection.clone(), &self.options, folder)?));
            }
            Target::Command(command) => command,
        };
        let launch = |output| Launch::new(command).input(Input::Inherit).output(output);
        let Some(ready) = &self.start else {
            let (launched, recording) = Recording::launch(launch(Output::Inherit), &self.options, folder)?;
            return Ok((Some(launched), recording));
        };
        let watch = Watch::new(ready, &mut TreeSurroundings::before_launch());
        let wait = Wait { watch, interrupted, listener };
        let (launched, recording) = match ready {
            Ready::Steps(_) => self.count_steps(launch(Output::Inherit), search, wait, folder)?,
            _ => self.attach_when_ready(launch, wait, folder)?,
        };
        Ok((Some(launched), recording))
    }

    /// Launches the program without recording it, and attaches when it is ready.
    fn attach_when_ready(
        &self,
        launch: impl FnOnce(Output) -> Launch,
        wait: Wait<'_>,
        folder: &Path,
    ) -> Result<(Launched, Recording), ProgramError> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let output = match self.start {
            Some(Ready::Log(_) | Ready::LogRegex(_)) => {
                Output::Captured { keep_lines: 10, copy_to: None, watch: Some(pass_on(seen.clone())) }
            }
            _ => Output::Inherit,
        };
        let mut launched = launch(output).prepare()?.start()?;
        wait.until_ready(&mut launched, |_| Seen { output: take(&seen), steps: None })?;
        let recording = Recording::attach(launched.pid(), &self.options, folder)?;
        Ok((launched, recording))
    }

    /// Launches the program, counts its steps from the first one on, and keeps what follows when it is ready.
    fn count_steps(
        &self,
        launch: Launch,
        search: &mut Option<StepSearch>,
        wait: Wait<'_>,
        folder: &Path,
    ) -> Result<(Launched, Recording), ProgramError> {
        let unwanted = folder.join(UNWANTED_FOLDER);
        let (mut launched, recording) = Recording::launch(launch, &self.options, &unwanted)?;
        recording.pause()?;
        let mut tree = launched.tree();
        let ready = wait.until_ready(&mut launched, |listener| {
            search_step(search, &mut tree, &recording, listener);
            let steps = recording.progress().steps.map(|started| started.saturating_sub(1));
            Seen { output: Vec::new(), steps }
        });
        fs::remove_dir_all(&unwanted).map_err(|source| ProgramError::Folder { path: unwanted, source })?;
        ready?;
        recording.begin_next(folder, Label::default())?;
        Ok((launched, recording))
    }
}

impl Target {
    /// The file of the program.
    ///
    /// # Errors
    /// If there is no such program, or no such process.
    pub fn program(&self) -> Result<PathBuf, ProgramError> {
        Ok(match self {
            Self::Processes(selection) => proc::executable(selected::first(selection).map_err(RecordError::from)?)?,
            Self::Command(command) => Launch::new(command).program()?,
        })
    }

    /// The processes that are recorded.
    fn tree(&self, launched: Option<&Launched>) -> ProcessTree {
        match (self, launched) {
            (_, Some(launched)) => launched.tree(),
            (Self::Processes(selection), None) => selected::tree(selection),
            (Self::Command(_), None) => unreachable!("a command was launched"),
        }
    }

    fn libraries(&self, program: &Path) -> Vec<PathBuf> {
        match self {
            Self::Processes(selection) => selected::libraries(selection),
            Self::Command(_) => libraries::of_program(program, &BTreeMap::new()),
        }
    }
}

/// Searches the step function in the files that the program has mapped since, and observes it when it is found.
fn search_step(
    search: &mut Option<StepSearch>,
    tree: &mut ProcessTree,
    recording: &Recording,
    listener: &mut dyn FnMut(ProgramEvent<'_>),
) {
    let Some(search) = search else { return };
    if let Some(step) = search.look(tree, |step| recording.observe_steps(step)) {
        listener(ProgramEvent::Steps(&step));
    }
}

/// New evidence of a launched program.
struct Seen {
    output: Vec<u8>,
    /// Steps that have ended.
    steps: Option<u64>,
}

/// The wait until a program is ready.
struct Wait<'a> {
    watch: Watch,
    interrupted: &'a AtomicBool,
    listener: &'a mut dyn FnMut(ProgramEvent<'_>),
}

impl Wait<'_> {
    fn until_ready(
        mut self,
        launched: &mut Launched,
        mut look: impl FnMut(&mut dyn FnMut(ProgramEvent<'_>)) -> Seen,
    ) -> Result<(), ProgramError> {
        let mut surroundings = TreeSurroundings::of(launched.tree());
        let started = Instant::now();
        loop {
            let seen = look(self.listener);
            let observation = Observation { since_launch: started.elapsed(), output: &seen.output, steps: seen.steps };
            if let Some(by) = self.watch.look(&observation, &mut surroundings) {
                (self.listener)(ProgramEvent::Ready { after: started.elapsed(), by: &by });
                return Ok(());
            }
            if let Some(exit) = launched.exit()? {
                let why = self.watch.explain_failure(&mut surroundings);
                return Err(ProgramError::NotReady { status: exit.status(), why });
            }
            if self.interrupted.load(Ordering::Relaxed) {
                launched.stop(&Grace::default())?;
                return Err(ProgramError::Interrupted);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Copies the program's lines to our standard output, and keeps them for the watch.
fn pass_on(seen: Arc<Mutex<Vec<u8>>>) -> Box<dyn FnMut(&str) + Send> {
    Box::new(move |line| {
        // If the reader of our output is gone, the program must still be watched.
        let _ = writeln!(io::stdout(), "{line}");
        let mut seen = seen.lock().expect("nobody panics with the lock");
        seen.extend_from_slice(line.as_bytes());
        seen.push(b'\n');
    })
}

fn take(seen: &Mutex<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *seen.lock().expect("nobody panics with the lock"))
}

/// Sleeps, but not beyond an interrupt.
fn sleep(time: Duration, interrupted: &AtomicBool) {
    let until = Instant::now() + time;
    while Instant::now() < until && !interrupted.load(Ordering::Relaxed) {
        thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
    }
}
