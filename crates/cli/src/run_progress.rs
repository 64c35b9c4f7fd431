//! Progress of runs on standard error: what happens stays, what goes on is one line that is redrawn.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use stepscope_lab::event::{Event, Listener};
use stepscope_lab::execution::Context;
use stepscope_lab::outcome::Outcome;
use stepscope_lab::recorder::PerfRecorder;
use stepscope_lab::step::with_file;
use stepscope_model::quantity::{grouped, plural};

use crate::progress;

/// Prints the events of a run.
pub struct RunProgress {
    line: ProgressBar,
    label: String,
    estimate: Option<Estimate>,
    waiting: bool,
    /// Notes of trials that were shown.
    noted: BTreeSet<String>,
}

/// Estimates the remaining time of equally long trials.
struct Estimate {
    started: Instant,
    done: usize,
    trials: usize,
}

impl RunProgress {
    pub fn new() -> Self {
        Self { line: progress::line(), label: String::new(), estimate: None, waiting: false, noted: BTreeSet::new() }
    }

    /// Also estimates the remaining time.
    pub fn with_estimate(trials: usize) -> Self {
        let estimate = Estimate { started: Instant::now(), done: 0, trials };
        let mut progress = Self::new();
        progress.estimate = Some(estimate);
        progress
    }

    /// Shows the progress of work with the recorder, which ends early if interrupted.
    pub fn of<T>(mut self, interrupt: &AtomicBool, work: impl FnOnce(&mut Context<'_>) -> T) -> T {
        work(&mut Context { recorder: &PerfRecorder::default(), interrupt, listener: &mut self })
    }

    fn say(&self, text: &str) {
        self.line.suspend(|| eprintln!("{text}"));
    }

    fn outcome(&self, outcome: &Outcome) {
        let failure = match outcome {
            Outcome::Failed(failure) => failure,
            Outcome::Interrupted => return self.say("      interrupted; what was recorded so far is kept"),
            Outcome::Recorded | Outcome::NotRun => return,
        };
        self.say(&format!("      {}", outcome.summary()));
        if !failure.last_lines.is_empty() {
            self.say("      its last output:");
        }
        for line in &failure.last_lines {
            self.say(&format!("        | {line}"));
        }
    }

    fn trial_ended(&mut self) {
        let Some(estimate) = &mut self.estimate else { return };
        estimate.done += 1;
        if let Some(left) = estimate.left()
            && (estimate.done == 2 || std::io::stderr().is_terminal())
        {
            self.say(&format!("      about {} left", rough(left)));
        }
    }
}

impl Estimate {
    fn left(&self) -> Option<Duration> {
        let left = self.trials.checked_sub(self.done)?;
        let left = self.started.elapsed() / self.done as u32 * left as u32;
        (!left.is_zero()).then_some(left)
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

impl Listener for RunProgress {
    fn notify(&mut self, event: &Event<'_>) {
        match event {
            Event::RunStarted { folder, trials } => {
                self.say(&format!("{} into {}", plural(*trials, "trial"), folder.display()));
            }
            Event::Building { variant, command, log } => {
                self.say(&format!("building {variant}: {} (output: {})", command.join(" "), log.display()));
            }
            Event::TrialStarted { trial, index, of } => {
                // Building says nothing about how long trials take.
                if let Some(estimate) = self.estimate.as_mut().filter(|_| *index == 0) {
                    estimate.started = Instant::now();
                }
                self.label = trial.label();
                let axis = trial.scenario.axis.as_ref().map(|axis| format!(": {axis}")).unwrap_or_default();
                self.say(&format!("[{}/{of}] {}{axis}", index + 1, self.label));
            }
            Event::Waiting { others_percent, waited, limit } => {
                if !std::mem::replace(&mut self.waiting, true) {
                    self.say(&format!(
                        "      waiting up to {} s: other processes use {others_percent:.0} % of the CPU (--no-wait skips this)",
                        limit.as_secs()
                    ));
                }
                self.line.set_message(format!(
                    "other processes use {others_percent:.0} % of the CPU, waited {:.0} s",
                    waited.as_secs_f64()
                ));
            }
            Event::Progress { stage, elapsed, limit, recording } => self.line.set_message(format!(
                "{} {stage} {:.0}/{:.0} s, {} samples, {} lost",
                self.label,
                elapsed.as_secs_f64(),
                limit.as_secs_f64(),
                grouped(i128::from(recording.cpu_samples)),
                recording.lost,
            )),
            Event::Ready { by, after } => self.say(&format!("      ready after {:.1} s: {by}", after.as_secs_f64())),
            Event::StepsFound { step } => {
                self.say(&format!("      steps: {}", with_file(step)));
            }
            Event::TaskEnded { label, node } => self.say(&format!("      {label} recorded on {node}")),
            Event::TrialsMissing { trials, reason } => {
                self.say(&format!("{} missing: {reason}", plural(*trials, "trial")));
            }
            Event::DriverEnded { command, how } => self.say(&format!("      driver {} {how}", command.join(" "))),
            Event::Stopping => self.line.set_message(format!("{}: stopping", self.label)),
            Event::Finishing { phase } => self.line.set_message(format!("{}: naming functions of {phase}", self.label)),
            Event::Captured { phase, samples, .. } => {
                self.say(&format!("      {phase}: {}", plural(*samples, "sample")));
            }
            Event::TrialEnded { outcome, notes, .. } => {
                self.waiting = false;
                for note in *notes {
                    if self.noted.insert(note.clone()) {
                        self.say(&format!("      note: {note}"));
                    }
                }
                self.outcome(outcome);
                self.trial_ended();
            }
            Event::Analysing => self.line.set_message("analysing".to_owned()),
            _ => {}
        }
    }
}

/// `45 s`, `12 min`, `1 h 20 min`; rounded up.
pub fn rough(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_rounded_up() {
        let shown = |seconds: f64| rough(Duration::from_secs_f64(seconds));
        assert_eq!([shown(0.2), shown(90.0), shown(91.0), shown(5400.0)], ["1 s", "90 s", "2 min", "90 min"]);
        assert_eq!(shown(7_260.0), "2 h 1 min");
    }
}
