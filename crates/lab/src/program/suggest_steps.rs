//! Suggesting the step functions of one program.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stepscope_analyze::ownership::Owned;
use stepscope_model::{Dimension, Table};
use stepscope_record::calls::{MOST_PER_SECOND, count_calls};
use stepscope_record::launch::{Grace, StopReport};
use stepscope_record::session::Until;
use stepscope_symbolize::Symbolizer;

use super::{ProgramError, ProgramEvent, ProgramRecording, Target};
use crate::step::StepFunction;
use crate::step::suggestion::Suggestion;

/// How long stacks are sampled, and then calls counted, unless a duration is given.
const EACH_PASS: Duration = Duration::from_secs(2);

/// Functions that look like steps.
#[derive(Debug)]
pub struct SuggestedSteps {
    /// The functions, best first, with the command that records with the best one.
    pub table: Table,
    /// How the launched program was stopped.
    pub stopped: Option<StopReport>,
}

impl ProgramRecording {
    /// Suggests step functions: samples stacks into `folder`, then counts calls, each for the recording's duration.
    ///
    /// # Errors
    /// If the program cannot be sampled, or `interrupted` is set. What the launch started is terminated.
    pub fn suggest_steps(
        mut self,
        owned: &Owned,
        folder: &Path,
        interrupted: &AtomicBool,
        listener: &mut dyn FnMut(ProgramEvent<'_>),
    ) -> Result<SuggestedSteps, ProgramError> {
        self.options.dimensions = [Dimension::Cpu, Dimension::Offcpu].into();
        let length = self.duration.unwrap_or(EACH_PASS);
        let (mut launched, recording) = self.start(&mut None, folder, interrupted, listener)?;
        let until = Until { duration: Some(length), flag: Some(interrupted) };
        recording.wait_watched(&until, |progress| listener(ProgramEvent::Recording(progress)));
        recording.stop()?;
        let capture = stepscope_record::finish(folder, &mut Symbolizer::default())?;
        let suggestion = Suggestion::of(&capture, owned, |sites, enough| {
            listener(ProgramEvent::Counting(sites.len()));
            count_calls(sites, length, MOST_PER_SECOND, enough, interrupted)
        });
        let table = suggestion.table(self.best_command(&suggestion).as_deref());
        let stopped = match &mut launched {
            Some(launched) => Some(launched.stop(&Grace::default())?),
            None => None,
        };
        match interrupted.load(Ordering::Relaxed) {
            true => Err(ProgramError::Interrupted),
            false => Ok(SuggestedSteps { table, stopped }),
        }
    }

    /// The command that records with the best suggestion as the step.
    fn best_command(&self, suggestion: &Suggestion) -> Option<String> {
        let program = self.target.program().ok()?;
        let resolve = |step: &StepFunction| step.find(&program, || self.target.libraries(&program)).ok();
        let best = suggestion.best(resolve)?;
        let mut words = ["stepscope", "record", "--step", &best.name].map(str::to_owned).to_vec();
        if let Some(module) = best.module {
            words.extend(["--step-module".to_owned(), module.display().to_string()]);
        }
        match &self.target {
            Target::Processes(selection) => words.extend(selection.arguments()),
            Target::Command(command) => words.extend(std::iter::once("--".to_owned()).chain(command.iter().cloned())),
        }
        shlex::try_join(words.iter().map(String::as_str)).ok()
    }
}
