//! [`PathWeights`]: what is on the critical path, by stack.

use stepscope_model::ThreadId;

use crate::query::select::Selection;
use crate::query::step_paths::{Interval, Paths, State};
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
        Some(Self::on(selection, loops.main(), paths)).filter(|weights| weights.steps > 0)
    }

    /// What a step could be faster without: running, waits, and CPU waits that others cause.
    pub(crate) fn gain_bounds(&self) -> [&StackWeights; 3] {
        [&self.running, &self.blocked, &self.holding]
    }

    pub(super) fn on(selection: &Selection<'_>, steps: &Steps, paths: &Paths) -> Self {
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
        let mut running_on_path: Vec<Interval> = Vec::new();
        for part in kept.clone().flat_map(|position| paths.of_step(position)) {
            let length = u128::from(part.range.end - part.range.start);
            match part.state {
                State::Running => {
                    weights.running_ns += length;
                    running_on_path.push(Interval { thread: part.thread, range: part.range.clone() });
                }
                State::Blocked(stack) if selection.has_stack(stack) && selection.has_thread(part.thread) => {
                    *weights.blocked.at(stack) += Amount { weight: length, count: 1 };
                }
                State::Runnable => weights.background_ns += length,
                State::Blocked(_) => {}
            }
        }
        let held = paths.holdings.iter().map(|one| u128::from(one.range.end - one.range.start)).sum();
        weights.background_ns = weights.background_ns.saturating_sub(held);
        running_on_path.sort_unstable_by_key(|one| (one.thread, one.range.start));
        let timed = is_timed(selection);
        for sample in selection.samples().filter(|_| timed) {
            let Some(time) = sample.time_ns else { continue };
            if !steps.at(time).is_some_and(|position| kept.contains(&position)) {
                continue;
            }
            let amount = Amount { weight: sample.weight.into(), count: 1 };
            *weights.cpu.at(sample.stack) += amount;
            if is_in(&running_on_path, sample.thread, time) {
                *weights.running.at(sample.stack) += amount;
            } else if is_in(&paths.holdings, sample.thread, time) {
                *weights.holding.at(sample.stack) += amount;
            }
        }
        weights
    }
}

/// Whether samples are of CPU time.
pub(super) fn is_timed(selection: &Selection<'_>) -> bool {
    selection.event().is_some_and(|event| event.unit == "ns")
}

/// Whether a moment of a thread is in one of these intervals, which are sorted.
fn is_in(intervals: &[Interval], thread: ThreadId, time_ns: u64) -> bool {
    let before = intervals.partition_point(|one| (one.thread, one.range.start) <= (thread, time_ns));
    let last = before.checked_sub(1).map(|index| &intervals[index]);
    last.is_some_and(|one| one.thread == thread && one.range.contains(&time_ns))
}
