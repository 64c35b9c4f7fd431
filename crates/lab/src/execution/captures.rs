//! The end of a trial: captures of its recordings, with notes on how it ended.

use std::fs;

use stepscope_analyze::events;
use stepscope_model::{Capture, NO_ROS2, Phase, disk};

use super::{Execution, OUTPUT_FILE, UNWANTED_FOLDER};
use crate::cache_simulation::{self, SimulatedProgram};
use crate::event::Event;
use crate::outcome::{Outcome, Stage};

impl Execution<'_, '_> {
    /// Makes captures of the recordings. Returns the phases that have a capture.
    pub(super) fn finish(&mut self, mut outcome: Outcome) -> (Outcome, Vec<Phase>) {
        let _ = fs::remove_dir_all(self.folder.join(UNWANTED_FOLDER));
        let mut captured = Vec::new();
        for phase in std::mem::take(&mut self.started) {
            self.context.listener.notify(&Event::Finishing { phase });
            match self.finish_phase(phase) {
                Ok(()) => captured.push(phase),
                Err(reason) if outcome.is_recorded() => outcome = self.failed(Stage::Finish, reason),
                Err(reason) => self.notes.push(format!("The {phase} phase was lost: {reason}.")),
            }
        }
        (outcome, captured)
    }

    /// Simulates the caches of the last phase, once for all repetitions: the program runs some 50 times slower.
    fn simulate_caches(&self, phase: Phase, capture: &mut Capture) {
        let scenario = &self.trial.scenario;
        let is_last = scenario.record.phases.last() == Some(&phase);
        if scenario.record.simulates_caches && scenario.attach.is_some() {
            let note = "Caches are not simulated: that launches the program again, and this scenario attaches to it.";
            capture.info.notes.push(note.to_owned());
        } else if scenario.record.simulates_caches && is_last && self.trial.repetition.is_none_or(|number| number == 1)
        {
            let (command, environment) = (&scenario.command, &scenario.env);
            let program = SimulatedProgram { command, directory: Some(&scenario.cwd), environment };
            cache_simulation::complete(capture, &program, self.context.interrupt);
        }
    }

    fn finish_phase(&mut self, phase: Phase) -> Result<(), String> {
        let folder = self.folder_of(phase);
        let _held = disk::hold_log(&folder).map_err(|error| error.to_string())?;
        let mut capture = self.context.recorder.finish(&folder).map_err(|error| error.to_string())?;
        capture.info.environment.extend(self.trial.scenario.env.clone());
        let missing = capture.info.notes.iter().find(|note| note.starts_with(NO_ROS2)).cloned();
        let is_new = |note: &&String| !capture.info.notes.contains(note);
        let of_trial: Vec<String> = self.notes.iter().filter(is_new).cloned().collect();
        capture.info.notes.extend(of_trial);
        // The user asked for it, and sees it at once.
        self.notes.extend(missing.filter(|note| !self.notes.contains(note)));
        capture.info.repetition = self.trial.repetition;
        capture.info.sweep = self.trial.point.axes();
        let output = self.folder.join(OUTPUT_FILE);
        self.extents.collect(phase, &self.trial.scenario.metrics, &output, &mut capture);
        if let Some(checkout) = &self.trial.checkout {
            checkout.label(&mut capture);
        }
        self.during.add(&capture.info);
        self.simulate_caches(phase, &mut capture);
        disk::write(&capture, &folder).map_err(|error| {
            format!("{error}; afterwards, `stepscope recover {}` makes the capture", folder.display())
        })?;
        // The capture has all evidence of the log.
        let _ = disk::remove_log(&folder);
        self.context.listener.notify(&Event::Captured {
            phase,
            folder: &folder,
            samples: events::cpu_samples(&capture),
        });
        Ok(())
    }

    /// Notes in the captures how the trial ended.
    pub(super) fn remark(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Failed(failure) => {
                self.notes.push(format!("The scenario failed in its {} stage: {}.", failure.stage, failure.reason));
            }
            Outcome::Interrupted => self.notes.push("The user interrupted the run in this scenario.".to_owned()),
            Outcome::Recorded | Outcome::NotRun => {}
        }
    }
}
