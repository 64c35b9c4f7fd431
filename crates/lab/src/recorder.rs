//! [`Recorder`]: the interface to the recorder, implemented by [`PerfRecorder`] and by a fake in tests.
//!
//! Processes are real in both cases: [`stepscope_record::launch`] launches and stops them. So tests of the lab check the
//! handling of processes without the right to record them.

use std::collections::BTreeSet;
use std::path::Path;

use stepscope_model::{Capture, Dimension};
use stepscope_record::launch::{Exit, Launch, Launched};
use stepscope_record::proc::ProcessSelection;

use stepscope_record::{Label, LogError, Options, Progress, PythonFunctions, RecordError, StepPoint};
use stepscope_symbolize::Symbolizer;

/// How a launch is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Kinds of evidence wanted.
    pub dimensions: BTreeSet<Dimension>,
    /// CPU samples per second and CPU.
    pub frequency_hz: u64,
    /// Where each step starts, if steps are wanted.
    pub step: Option<StepPoint>,
    /// Whether [`Recording::observe_steps`] will name the step function later.
    pub step_later: bool,
    /// The marked scope whose start begins a new step, if there is one.
    pub step_scope: Option<String>,
    /// Whether the machine's speed is measured beside.
    pub speed_probe: bool,
    /// Which programs show their Python functions.
    pub python: PythonFunctions,
    /// Whether messages and callbacks of ROS 2 are recorded.
    pub ros2: bool,
    /// Label of the first capture.
    pub label: Label,
}

/// Records programs.
pub trait Recorder {
    /// Launches a program and records it into `folder` from its first instruction.
    ///
    /// # Errors
    /// If the program cannot be run or recorded. Nothing is left running.
    fn launch(
        &self,
        launch: Launch,
        order: &Order,
        folder: &Path,
    ) -> Result<(Launched, Box<dyn Recording>), RecordError>;

    /// Records running processes, and what they start, into `folder`.
    ///
    /// # Errors
    /// If no process matches, or the kernel refuses.
    fn attach(
        &self,
        selection: ProcessSelection,
        order: &Order,
        folder: &Path,
    ) -> Result<Box<dyn Recording>, RecordError>;

    /// The capture of a recording that has stopped or moved on from `folder`.
    ///
    /// # Errors
    /// If the folder has no readable log.
    fn finish(&self, folder: &Path) -> Result<Capture, LogError>;
}

/// A running recording, which stops on drop.
pub trait Recording {
    /// Its totals so far.
    fn progress(&self) -> Progress;

    /// Ends the current capture, and records nothing until [`begin_next`](Self::begin_next).
    ///
    /// # Errors
    /// If the recorder no longer answers.
    fn pause(&self) -> Result<(), RecordError>;

    /// Starts another capture of the same processes, in another folder.
    ///
    /// # Errors
    /// If the folder cannot be used.
    fn begin_next(&self, folder: &Path, label: Label) -> Result<(), RecordError>;

    /// Observes the calls of this function as steps, from now on.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn observe_steps(&self, step: StepPoint) -> Result<(), RecordError>;

    /// Adds how a process ended to the current capture.
    fn note_exit(&self, pid: u32, exit: &Exit);

    /// Stops recording and completes the log.
    ///
    /// # Errors
    /// If the recorder had stopped by itself.
    fn stop(self: Box<Self>) -> Result<Progress, RecordError>;
}

/// Records through `perf_event_open`.
#[derive(Debug, Clone, Default)]
pub struct PerfRecorder {
    /// How to record; dimensions, frequency and label are those of each scenario.
    pub options: Options,
}

impl PerfRecorder {
    fn options(&self, order: &Order) -> Options {
        Options {
            dimensions: order.dimensions.clone(),
            frequency_hz: order.frequency_hz,
            step: order.step.clone(),
            step_later: order.step_later,
            step_scope: order.step_scope.clone(),
            speed_probe: order.speed_probe,
            python: order.python,
            ros2: order.ros2,
            label: order.label.clone(),
            ..self.options.clone()
        }
    }
}

impl Recorder for PerfRecorder {
    fn launch(
        &self,
        launch: Launch,
        order: &Order,
        folder: &Path,
    ) -> Result<(Launched, Box<dyn Recording>), RecordError> {
        let (launched, recording) = stepscope_record::Recording::launch(launch, &self.options(order), folder)?;
        Ok((launched, Box::new(recording)))
    }

    fn attach(
        &self,
        selection: ProcessSelection,
        order: &Order,
        folder: &Path,
    ) -> Result<Box<dyn Recording>, RecordError> {
        Ok(Box::new(stepscope_record::Recording::attach_set(selection, &self.options(order), folder)?))
    }

    fn finish(&self, folder: &Path) -> Result<Capture, LogError> {
        stepscope_record::finish(folder, &mut Symbolizer::default())
    }
}

impl Recording for stepscope_record::Recording {
    fn progress(&self) -> Progress {
        stepscope_record::Recording::progress(self)
    }

    fn pause(&self) -> Result<(), RecordError> {
        stepscope_record::Recording::pause(self)
    }

    fn begin_next(&self, folder: &Path, label: Label) -> Result<(), RecordError> {
        stepscope_record::Recording::begin_next(self, folder, label)
    }

    fn observe_steps(&self, step: StepPoint) -> Result<(), RecordError> {
        stepscope_record::Recording::observe_steps(self, step)
    }

    fn note_exit(&self, pid: u32, exit: &Exit) {
        stepscope_record::Recording::note_exit(self, pid, exit);
    }

    fn stop(self: Box<Self>) -> Result<Progress, RecordError> {
        stepscope_record::Recording::stop(*self)
    }
}
