//! [`PathWeights`]: what is on the critical path, by stack.

use std::ops::Range;

use stepscope_model::{Sample, ThreadId};

use crate::query::select::Selection;
use crate::query::step_paths::{Paths, State};
use crate::query::steps::{Loops, Steps};
use crate::query::weights::{Amount, StackWeights};

/// Times of all steps but the first, in ns by stack.
pub(crate) struct PathWeights {
    /// Running on the path.
    pub(super) running: StackWeights,
    /// Blocked on the path, with no thread to end the wait.
    pub(super) blocked: StackWeights,
    /// Holding a CPU that the path waits for.
    pub(super) holding: StackWeights,
    /// Running, on the path or off it.
    pub(super) cpu: StackWeights,
    /// Exact running time on the path.
    pub(super) running_ns: u128,
    /// Waits of the path for CPUs that no recorded thread held: background load.
    pub(crate) background_ns: u128,
    /// Number of steps.
    pub(crate) steps: u64,
}

impl PathWeights {
    /// The critical path of a capture; none without steps, context switches or wake-ups.
    pub(crate) fn of(selection: &Selection<'_>) -> Option<Self> {
        let loops = Loops::of(selection)?;
        let paths = Paths::of(selection)?;
        Some(Self::on(selection, loops.main(), &paths)).filter(|weights| weights.steps > 0)
    }

    /// What a step could be faster without: running, waits, and CPU waits that others cause.
    pub(crate) fn gain_bounds(&self) -> [&StackWeights; 3] {
        [&self.running, &self.blocked, &self.holding]
    }

    pub(super) fn on(selection: &Selection<'_>, steps: &Steps, paths: &Paths<'_>) -> Self {
        let none = || StackWeights::none(selection.capture());
        let kept = steps.after_first();
        let mut weights = Self {
            running: none(),
            blocked: none(),
            holding: none(),
            cpu: none(),
            running_ns: 0,
            background_ns: 0,
            steps: kept.len() as u64,
        };
        let samples = samples_by_time(selection);
        let holders = paths.holders();
        for position in kept {
            let step = steps.range(position);
            let before = |time_ns: u64| samples.partition_point(|(time, _)| *time < time_ns);
            // Both lists are in time, so each part takes its samples from the end.
            let mut of_step = samples[before(step.start)..before(step.end)].iter().rev().peekable();
            for part in paths.of_step(position) {
                let length = u128::from(part.ns());
                let held = paths.held_during(&part, &holders);
                match part.state {
                    State::Running => weights.running_ns += length,
                    State::Blocked(stack) if selection.has_stack(stack) && selection.has_thread(part.thread) => {
                        *weights.blocked.at(stack) += Amount { weight: length, count: 1 };
                    }
                    State::Runnable => {
                        let held = held.iter().map(|(_, range)| u128::from(range.end - range.start)).sum();
                        weights.background_ns += length.saturating_sub(held);
                    }
                    State::Blocked(_) => {}
                }
                while let Some((time, sample)) = of_step.next_if(|(time, _)| *time >= part.range.start) {
                    let amount = Amount { weight: sample.weight.into(), count: 1 };
                    *weights.cpu.at(sample.stack) += amount;
                    if part.state == State::Running && part.thread == sample.thread {
                        *weights.running.at(sample.stack) += amount;
                    } else if holder_at(&held, *time) == Some(sample.thread) {
                        *weights.holding.at(sample.stack) += amount;
                    }
                }
            }
        }
        weights
    }
}

/// Whether samples are of CPU time.
pub(super) fn is_timed(selection: &Selection<'_>) -> bool {
    selection.event().is_some_and(|event| event.unit == "ns")
}

/// The selected samples of CPU time, by time.
fn samples_by_time<'a>(selection: &Selection<'a>) -> Vec<(u64, &'a Sample)> {
    let timed = selection.samples().filter(|_| is_timed(selection));
    let mut samples: Vec<_> = timed.filter_map(|sample| Some((sample.time_ns?, sample))).collect();
    samples.sort_by_key(|(time, _)| *time);
    samples
}

/// The thread that held a CPU at a moment, of intervals from the last to the first.
fn holder_at(held: &[(ThreadId, Range<u64>)], time_ns: u64) -> Option<ThreadId> {
    let later = held.partition_point(|(_, range)| range.start > time_ns);
    held.get(later).filter(|(_, range)| range.contains(&time_ns)).map(|(thread, _)| *thread)
}
