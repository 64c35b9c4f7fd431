//! What a run tells while it goes on, for whoever draws it.

use std::path::Path;
use std::time::Duration;

use stepscope_model::Phase;
use stepscope_record::Progress;

use crate::lab_file::Trial;
use crate::outcome::{Outcome, Stage};

/// Something that happened in a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A command that builds the files of a variant runs.
    Building {
        /// The variant.
        variant: &'a str,
        /// Program and arguments.
        command: &'a [String],
        /// What it prints goes here.
        log: &'a Path,
    },
    /// A trial waits for others to leave the machine alone.
    Waiting {
        /// What others have of all processors, in percent.
        others_percent: f64,
        /// How long it has waited.
        waited: Duration,
    },
    /// A trial begins.
    Begun {
        /// The trial.
        trial: &'a Trial,
        /// Its number, from 0.
        index: usize,
        /// Number of trials.
        of: usize,
    },
    /// Its program runs.
    Launched {
        /// Its process.
        pid: u32,
    },
    /// Several times a second in every stage.
    Going {
        /// The stage.
        stage: Stage,
        /// Time in this stage.
        elapsed: Duration,
        /// When the stage ends at the latest.
        limit: Duration,
        /// What the recording has done so far.
        recording: &'a Progress,
    },
    /// It is ready.
    Ready {
        /// By what, e.g. `output "Loaded world"`.
        by: &'a str,
        /// Time since launch.
        after: Duration,
    },
    /// A driver runs.
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
    /// The program and the drivers are being ended.
    Stopping,
    /// Addresses of a phase are being named and its capture written.
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
        /// Number of samples in it.
        samples: usize,
    },
    /// The trial is over.
    Ended {
        /// The trial.
        trial: &'a Trial,
        /// What came of it.
        outcome: &'a Outcome,
    },
}

/// Who is told.
pub trait Listener {
    /// Called as it happens, on the thread that runs.
    fn told(&mut self, event: &Event<'_>);
}

impl<F: FnMut(&Event<'_>)> Listener for F {
    fn told(&mut self, event: &Event<'_>) {
        self(event);
    }
}
