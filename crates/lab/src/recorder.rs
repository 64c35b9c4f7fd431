//! The seam between the lab and what records: [`PerfRecorder`] on a real system, a fake in tests.
//!
//! Processes are real on both sides of the seam. What is launched, watched and stopped is launched by
//! [`stepscope_record::launch`], so that tests of the lab show what becomes of processes without needing the right to
//! record them.

use std::collections::BTreeSet;
use std::path::Path;

use stepscope_model::{Capture, Dimension};
use stepscope_record::launch::{Exit, Launch, Launched};

use stepscope_record::{Label, LogError, Options, Progress, RecordError, StepPoint};
use stepscope_symbolize::Symbolizer;

/// What one launch is recorded with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Kinds of evidence wanted.
    pub dimensions: BTreeSet<Dimension>,
    /// CPU samples per second and CPU.
    pub frequency_hz: u64,
    /// Where each step begins, if steps are wanted.
    pub step: Option<StepPoint>,
    /// The scope of the program's own marks whose begins are those of steps, if one is.
    pub step_scope: Option<String>,
    /// What the first capture is of.
    pub label: Label,
}

/// Records programs.
pub trait Recorder {
    /// Launches a program and records it into `folder` from its first instruction.
    ///
    /// # Errors
    /// If the program cannot be run, or not be recorded. Nothing is left running then.
    fn launch(
        &self,
        launch: Launch,
        order: &Order,
        folder: &Path,
    ) -> Result<(Launched, Box<dyn Recording>), RecordError>;

    /// The capture of a recording that has stopped or moved on from `folder`.
    ///
    /// # Errors
    /// If there is no log in the folder, or it cannot be read.
    fn finish(&self, folder: &Path) -> Result<Capture, LogError>;
}

/// A recording that runs. Dropped, it stops.
pub trait Recording {
    /// What it has done so far.
    fn progress(&self) -> Progress;

    /// Ends the present capture here and records nothing until [`begin_next`](Self::begin_next).
    ///
    /// # Errors
    /// If the recorder no longer answers.
    fn pause(&self) -> Result<(), RecordError>;

    /// Begins another capture of the same processes, in another folder.
    ///
    /// # Errors
    /// If the folder cannot be used.
    fn begin_next(&self, folder: &Path, label: Label) -> Result<(), RecordError>;

    /// Adds to the present capture how a process ended.
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

impl Recorder for PerfRecorder {
    fn launch(
        &self,
        launch: Launch,
        order: &Order,
        folder: &Path,
    ) -> Result<(Launched, Box<dyn Recording>), RecordError> {
        let options = Options {
            dimensions: order.dimensions.clone(),
            frequency_hz: order.frequency_hz,
            step: order.step.clone(),
            step_scope: order.step_scope.clone(),
            label: order.label.clone(),
            ..self.options.clone()
        };
        let (launched, recording) = stepscope_record::Recording::launch(launch, &options, folder)?;
        Ok((launched, Box::new(recording)))
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

    fn note_exit(&self, pid: u32, exit: &Exit) {
        stepscope_record::Recording::note_exit(self, pid, exit);
    }

    fn stop(self: Box<Self>) -> Result<Progress, RecordError> {
        stepscope_record::Recording::stop(*self)
    }
}
