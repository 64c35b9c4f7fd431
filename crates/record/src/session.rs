//! Recordings: start, watch, cut into captures, stop.

mod feed;
mod log;
mod machine_speed;
mod options;
mod pace;
mod plan;
mod privilege;
mod recorder;
mod resources;
mod running;
mod speed_probes;
mod thinning;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stepscope_model::{Dimension, disk};

use crate::clock_exchange::ClockError;
use crate::error_logs;
use crate::finish::LogError;
use crate::heap::Preload;
use crate::launch::{Exit, Launch, LaunchError, Launched};
use crate::marks::{Marks, RECORDER_VARIABLE, StepMarks};
use crate::proc::{ProcessSelection, ProcessSet, SelectionError};
use crate::python::Python;
use crate::ros2::Libraries;

use privilege::Urgent;
pub use privilege::{lower_priority, raise_descriptor_limit, take_half_of_a_cpu};

pub use options::{Kernel, Label, Options, StepPoint, StepTime, TimeArgument, TimeArgumentError};
pub(crate) use plan::{ADDRESSES_OF_CODE, SAMPLES_ADDRESSES};
use recorder::{Command, Companions, Recorder};

/// Why a recording cannot be made or kept.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The program cannot be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// There is no such process.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The kernel refuses to observe it.
    #[error(
        "the kernel refuses to record {what}: {source}; `stepscope doctor` says what this user may record and how to change it"
    )]
    Refused {
        /// What the kernel refuses to record.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// The folder for the recording cannot be made.
    #[error("cannot create the folder {}: {source}; choose another with `-o FOLDER`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The calls of the step function cannot be observed.
    #[error("{0}")]
    Steps(String),
    /// The clock of another machine cannot be asked for.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The raw log cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The recorder itself broke.
    #[error(
        "the recorder stopped unexpectedly ({0}); rebuild the capture from what it had written with `stepscope recover`"
    )]
    Broken(String),
}

/// The progress of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Time since the window of the present capture began.
    pub elapsed: Duration,
    /// CPU samples of the present capture.
    pub cpu_samples: u64,
    /// Intervals off the CPU.
    pub waits: u64,
    /// Steps that began since the recording was started, in all its captures; `None` where steps are not recorded.
    pub steps: Option<u64>,
    /// Records that were lost.
    pub lost: u64,
    /// Bytes of the raw log.
    pub bytes: u64,
    /// Followed processes alive.
    pub processes: usize,
    /// CPU time of the recorder.
    pub recorder_cpu: Duration,
    /// Whether the recorded program ran and has ended, with everything that it started.
    pub over: bool,
    /// What stopped the recording early, such as a full disk.
    pub failure: Option<String>,
}

/// What ends [`Recording::wait`].
#[derive(Debug, Clone, Copy)]
pub struct Until<'a> {
    /// The longest time to wait, if any.
    pub duration: Option<Duration>,
    /// A flag that ends the wait when it is set, as on Ctrl-C.
    pub flag: Option<&'a AtomicBool>,
}

/// Why [`Recording::wait`] returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The time has passed.
    Elapsed,
    /// Nothing is left to record.
    Over,
    /// The flag was set.
    Flagged,
    /// The recording cannot go on, with the reason. The log so far is kept.
    Failed(String),
}

/// A recording, which runs in a thread of its own until it is stopped or dropped.
///
/// It writes a log into its folder. When it is stopped, or continues in another folder ([`begin_next`](Self::begin_next)),
/// [`finish`](crate::finish) makes a capture of that log.
pub struct Recording {
    commands: Sender<Command>,
    progress: Arc<Mutex<Progress>>,
    thread: Option<JoinHandle<()>>,
}

impl Recording {
    /// Launches a program and records it from its first instruction, with everything it starts.
    ///
    /// # Errors
    /// [`RecordError`]. If the program cannot be run, nothing is left behind in the folder.
    pub fn launch(launch: Launch, options: &Options, folder: &Path) -> Result<(Launched, Self), RecordError> {
        let marks = Marks::new(step_marks(options));
        let command = launch.command().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let heap = options.dimensions.contains(&Dimension::Heap).then(|| Preload::new(options.heap_sample_bytes));
        let launch = launch.env(RECORDER_VARIABLE, marks.greeting());
        let python = options.python.are_wanted(&launch, &options.dimensions).then(Python::new);
        let (launch, checkers) = error_logs::prepare(launch, &options.dimensions, folder);
        let clean_up = || error_logs::remove(folder);
        let launch = match &heap {
            Some(Ok(preload)) => preload.add_to(launch),
            _ => launch,
        };
        let launch = match &python {
            Some(python) => python.add_to(launch),
            None => launch,
        };
        let ros2 = options.ros2.then(|| Libraries::of_launch(&launch));
        let prepared = launch.prepare().inspect_err(|_| clean_up())?;
        let pid = prepared.pid();
        let (own, at) = (options.clone(), folder.to_owned());
        let recording = Self::run(move || {
            Recorder::of_child(pid, command, &own, &at, marks, Companions { heap, python, ros2, checkers })
        })
        .inspect_err(|_| clean_up())?;
        match prepared.start() {
            Ok(launched) => Ok((launched, recording)),
            Err(error) => {
                drop(recording);
                let _ = std::fs::remove_file(folder.join(disk::RAW_LOG_FILE));
                clean_up();
                let _ = std::fs::remove_dir(folder);
                Err(error.into())
            }
        }
    }

    /// Records a running process: all its threads, what descends from it, and what they start.
    ///
    /// # Errors
    /// [`RecordError`]
    pub fn attach(pid: u32, options: &Options, folder: &Path) -> Result<Self, RecordError> {
        Self::attach_set(ProcessSelection::tree(pid), options, folder)
    }

    /// Records running processes: those that match, what descends from them, and those that match later.
    ///
    /// # Errors
    /// [`RecordError`]
    pub fn attach_set(selection: ProcessSelection, options: &Options, folder: &Path) -> Result<Self, RecordError> {
        let (options, folder) = (options.clone(), folder.to_owned());
        let set = ProcessSet::open(selection)?;
        Self::run(move || Recorder::of_set(set, &options, &folder, Marks::new(step_marks(&options))))
    }

    /// Opens and runs a recorder in a thread of its own, whose priority is raised before it opens anything.
    fn run(open: impl FnOnce() -> Result<Recorder, RecordError> + Send + 'static) -> Result<Self, RecordError> {
        let (commands, received) = mpsc::channel();
        let (opened, is_open) = mpsc::channel();
        let progress = Arc::new(Mutex::new(Progress::default()));
        let shared = progress.clone();
        let record = move || match open() {
            Ok(recorder) => {
                let _ = opened.send(Ok(()));
                recorder.run(&received, &shared);
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name("recorder".into());
        let thread = thread.spawn(record).map_err(|error| RecordError::Broken(error.to_string()))?;
        is_open.recv().map_err(|_| RecordError::Broken("it panicked".to_owned()))??;
        Ok(Self { commands, progress, thread: Some(thread) })
    }

    /// The progress so far.
    pub fn progress(&self) -> Progress {
        self.progress.lock().map(|progress| progress.clone()).unwrap_or_default()
    }

    /// Waits until something ends the recording, without ending it.
    pub fn wait(&self, until: &Until<'_>) -> Reason {
        self.wait_watched(until, |_| {})
    }

    /// Waits like [`wait`](Self::wait), and passes the progress on several times a second.
    pub fn wait_watched(&self, until: &Until<'_>, mut watch: impl FnMut(&Progress)) -> Reason {
        const LOOK_EVERY: Duration = Duration::from_millis(50);
        let _urgent = Urgent::new();
        let start = Instant::now();
        loop {
            let progress = self.progress();
            watch(&progress);
            if let Some(failure) = progress.failure {
                return Reason::Failed(failure);
            }
            if until.flag.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Reason::Flagged;
            }
            if progress.over {
                return Reason::Over;
            }
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return Reason::Failed("the recorder stopped unexpectedly".to_owned());
            }
            let left = until.duration.map_or(LOOK_EVERY, |limit| limit.saturating_sub(start.elapsed()));
            if left.is_zero() {
                return Reason::Elapsed;
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Ends the present capture here and begins another, of the same running processes, in another folder. Nothing is
    /// lost between them: intervals that span the cut are divided at it.
    ///
    /// # Errors
    /// [`RecordError`] if the new folder cannot be used; the present capture then goes on.
    pub fn begin_next(&self, folder: &Path, label: Label) -> Result<(), RecordError> {
        self.ask(|answer| Command::BeginNext { folder: folder.to_owned(), label, answer })?
    }

    /// Goes on in another folder, with the next segment of the same recording. The log in the present folder is complete then.
    /// Steps and scopes across the cut belong to the segment in which they end; waits are divided.
    ///
    /// # Errors
    /// [`RecordError`] if the new folder cannot be used; the present segment then goes on.
    pub fn rotate(&self, folder: &Path) -> Result<(), RecordError> {
        self.ask(|answer| Command::Rotate { folder: folder.to_owned(), answer })?
    }

    /// Ends the present capture here, and records nothing until [`begin_next`](Self::begin_next).
    ///
    /// # Errors
    /// [`RecordError::Broken`]
    pub fn pause(&self) -> Result<(), RecordError> {
        self.ask(Command::Pause)
    }

    /// Observes the calls of this function as steps, from now on.
    ///
    /// # Errors
    /// [`RecordError::Steps`] if the kernel refuses.
    pub fn observe_steps(&self, step: StepPoint) -> Result<(), RecordError> {
        self.ask(|answer| Command::ObserveSteps { step, answer })?.map_err(RecordError::Steps)
    }

    /// As [`observe_steps`](Self::observe_steps), of a function that nobody named. The capture says so.
    ///
    /// # Errors
    /// [`RecordError::Steps`] if the kernel refuses.
    pub fn observe_found_steps(&self, step: StepPoint) -> Result<(), RecordError> {
        let function = step.function.clone();
        self.observe_steps(step)?;
        self.commands
            .send(Command::StepsFound { function })
            .map_err(|_| RecordError::Broken("it no longer answers".to_owned()))
    }

    /// Adds to the present capture how the launched program ended, and what it used.
    pub fn note_exit(&self, pid: u32, exit: &Exit) {
        let _ = self.commands.send(Command::Exited { pid, exit: *exit });
    }

    /// Stops recording and completes the log.
    ///
    /// # Errors
    /// [`RecordError::Broken`] if the recorder had stopped by itself.
    pub fn stop(mut self) -> Result<Progress, RecordError> {
        self.ask(Command::Stop)?;
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| RecordError::Broken("it panicked".to_owned()))?;
        }
        Ok(self.progress())
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, RecordError> {
        let (answer, answered) = mpsc::channel();
        let gone = || RecordError::Broken("it no longer answers".to_owned());
        self.commands.send(command(answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())
    }
}

/// Which marks are steps, by the options.
fn step_marks(options: &Options) -> StepMarks {
    match (&options.step, &options.step_scope) {
        (Some(_), _) => StepMarks::Elsewhere,
        _ if options.step_later => StepMarks::Elsewhere,
        (None, Some(name)) => StepMarks::Scope(name.clone()),
        (None, None) => StepMarks::Marked,
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let (answer, _) = mpsc::channel();
            let _ = self.commands.send(Command::Stop(answer));
            let _ = thread.join();
        }
    }
}
