//! Progress of a run, for display.

use std::path::Path;
use std::time::Duration;

use stepscope_model::Phase;
use stepscope_record::{Progress, StepPoint};

use crate::lab_file::Trial;
use crate::outcome::{Outcome, Stage};

/// A step in the progress of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A run has its folder; nothing was launched yet.
    RunStarted {
        /// Folder of the run.
        folder: &'a Path,
        /// Number of trials.
        trials: usize,
    },
    /// All trials have ended; their captures are read, ranked and reported.
    Analysing,
    /// A command that builds the files of a variant runs.
    Building {
        /// The variant.
        variant: &'a str,
        /// Program and arguments.
        command: &'a [String],
        /// File that receives its output.
        log: &'a Path,
    },
    /// A trial waits until the background load is low.
    Waiting {
        /// Background load: CPU used by other processes, in percent of all CPUs.
        others_percent: f64,
        /// How long it has waited.
        waited: Duration,
        /// Longest wait.
        limit: Duration,
    },
    /// A node has recorded a trial.
    TaskEnded {
        /// The trial.
        label: &'a str,
        /// The node.
        node: &'a str,
    },
    /// A run on a cluster has ended without these trials.
    TrialsMissing {
        /// How many.
        trials: usize,
        /// Why.
        reason: &'a str,
    },
    /// A trial starts.
    TrialStarted {
        /// The trial.
        trial: &'a Trial,
        /// Its number, from 0.
        index: usize,
        /// Number of trials.
        of: usize,
    },
    /// The program was launched.
    Launched {
        /// Process id.
        pid: u32,
    },
    /// Sent several times a second in every stage.
    Progress {
        /// The stage.
        stage: Stage,
        /// Time in this stage.
        elapsed: Duration,
        /// Longest time that the stage may take.
        limit: Duration,
        /// Totals of the recording so far.
        recording: &'a Progress,
    },
    /// The program is ready.
    Ready {
        /// What showed it, e.g. `output "Loaded world"`.
        by: &'a str,
        /// Time since launch.
        after: Duration,
    },
    /// The step function was found in a file that the program mapped after its launch.
    StepsFound {
        /// The function.
        step: &'a StepPoint,
    },
    /// A driver was started.
    DriverStarted {
        /// Program and arguments.
        command: &'a [String],
    },
    /// A driver ended by itself.
    DriverEnded {
        /// Program and arguments.
        command: &'a [String],
        /// `exited with status 1`.
        how: &'a str,
    },
    /// The program and the drivers are being stopped.
    Stopping,
    /// A phase's addresses are resolved and its capture is written.
    Finishing {
        /// The phase.
        phase: Phase,
    },
    /// A phase's capture is on disk.
    Captured {
        /// The phase.
        phase: Phase,
        /// Its folder.
        folder: &'a Path,
        /// Number of CPU samples.
        samples: usize,
    },
    /// The trial has ended.
    TrialEnded {
        /// The trial.
        trial: &'a Trial,
        /// How it ended.
        outcome: &'a Outcome,
        /// What is missing or unusual in its captures, in sentences.
        notes: &'a [String],
    },
}

/// Receives events.
pub trait Listener {
    /// Called on the thread that runs the trial.
    fn notify(&mut self, event: &Event<'_>);
}

impl<F: FnMut(&Event<'_>)> Listener for F {
    fn notify(&mut self, event: &Event<'_>) {
        self(event);
    }
}
