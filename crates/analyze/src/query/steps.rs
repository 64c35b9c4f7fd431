//! The samples, waits and running time that belong to a simulation step.
//!
//! All analyses per step (RTF, cost per step, slow steps, critical path) use this module. [`Loops`] has the steps.
//!
//! What a thread does at a moment belongs to the step of its loop that contains the moment. A step contains its start and
//! not its end, so a sample at a boundary belongs to the step that starts there, and none is counted twice. Waits,
//! lifetimes and running time are cut at the boundaries, to the nanosecond. Before the first step, after the last one and
//! in gaps between steps nothing belongs to any step.
//!
//! So a worker's sample belongs to the step during which it was taken, even if the worker computes for a later one:
//! recordings do not show for which step a worker works.

use std::sync::Arc;

use stepscope_model::{Capture, Counts, Phase};

pub(crate) use crate::query::loops::simulated;
pub use crate::query::loops::{Loops, Steps};
use crate::query::select::Selection;
use crate::query::step_candidates::LEAST_CALLS;
use crate::query::step_paths::{KnownPaths, Paths};
use crate::query::waits::blocked_ns;
use crate::query::wake_ups::WakeUps;
use crate::query::weights::{Amount, StackWeights};

impl Steps {
    /// The steps of the selection's main loop that lie whole within the selected time; `None` if there are none.
    ///
    /// Steps are of the simulation, not of a thread: filters on threads choose the loop, and leave its steps alone.
    pub fn of(selection: &Selection<'_>) -> Option<Self> {
        Some(Loops::of(selection)?.main().clone())
    }
}

/// Whether there are enough of the steps that the recorder found by itself. It looks for them while the program runs: those that it found late would
/// stand for all of the recording.
pub(crate) fn has_enough(capture: &Capture) -> bool {
    /// Least part of the recording that the steps take, from the first to the last.
    const LEAST_PART: f64 = 0.25;
    let first = capture.steps.iter().map(|step| step.start_ns).min().unwrap_or(0);
    let last = capture.steps.iter().map(|step| step.end_ns).max().unwrap_or(0);
    let recorded_ns = capture.info.wall_ns().unwrap_or(0);
    capture.steps.len() >= LEAST_CALLS && last.saturating_sub(first) as f64 >= LEAST_PART * recorded_ns as f64
}

impl Loops {
    /// The loops of a capture, with their steps within the selected time; `None` if the main loop has none.
    pub fn of(selection: &Selection<'_>) -> Option<Arc<Self>> {
        let capture = selection.capture();
        let find = || {
            let loops = Self::find(capture, selection.window().as_ref(), selection.thread_flags())?;
            (capture.info.found_step.is_none() || has_enough(capture)).then(|| Arc::new(loops))
        };
        selection.steps.loops.get_or_init(find).clone()
    }

    /// The loops by whose steps costs are divided; `None` in the loading phase. Loading is one piece of work, and the few
    /// steps that end before the program is seen to be ready say nothing about it.
    pub fn of_costs(selection: &Selection<'_>) -> Option<Arc<Self>> {
        let is_loading = selection.capture().info.phase == Some(Phase::Loading);
        if is_loading { None } else { Self::of(selection) }
    }

    /// The selected samples that belong to a step, as they would weigh if every loop had had as many steps as the main one:
    /// divided by the number of those this is what one step costs, also where loops differ. With one loop it is their
    /// weight.
    pub fn sample_weights(&self, selection: &Selection<'_>) -> StackWeights {
        let mut weights = StackWeights::none(selection.capture());
        let Some(event) = selection.event() else { return weights };
        weights.counts_known = event.counts != Counts::Unknown;
        let factors = self.factors();
        for sample in selection.samples() {
            let Some(time) = sample.time_ns else { continue };
            let steps = self.number_of(sample.thread);
            if self.each()[steps].at(time).is_none() {
                continue;
            }
            let amount = Amount::of(event, sample.weight);
            *weights.at(sample.stack) += Amount { weight: factors[steps].apply(amount.weight), ..amount };
        }
        weights
    }

    /// The same of the selected waits' blocked time in ns.
    pub fn blocked_weights(&self, selection: &Selection<'_>) -> StackWeights {
        let mut weights = StackWeights::none(selection.capture());
        weights.counts_known = true;
        let factors = self.factors();
        for wait in selection.waits() {
            let blocked = wait.start_ns..wait.start_ns + blocked_ns(&wait);
            if blocked.is_empty() {
                continue;
            }
            let steps = self.number_of(wait.thread);
            let inside = self.each()[steps].time_within(&blocked);
            if inside > 0 {
                let count = wait.count.into();
                *weights.at(wait.stack) += Amount { weight: factors[steps].apply(inside.into()), count };
            }
        }
        weights
    }
}

impl<'a> Paths<'a> {
    /// Whether steps, context switches and wake-ups are known. It takes no time, unlike the paths.
    pub fn are_known(selection: &Selection<'_>) -> bool {
        let recorded = selection.has_switches() && WakeUps::of(selection) != WakeUps::Unrecorded;
        recorded && Loops::of(selection).is_some()
    }

    /// The critical paths of the main loop's steps; `None` without steps, context switches or wake-ups.
    pub fn of(selection: &Selection<'a>) -> Option<Self> {
        let (capture, loops) = (selection.capture(), Loops::of(selection)?);
        let walk = || {
            Self::are_known(selection).then(|| Arc::new(KnownPaths::of(capture, &selection.off_cpu(), loops.main())))
        };
        let known = selection.steps.paths.get_or_init(walk).clone()?;
        Some(Self::known(capture, loops, known))
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::ThreadId;

    use super::*;
    use crate::drawn::{self, Drawing};
    use crate::query::select::{Filter, TimeRange};

    #[test]
    fn a_few_steps_that_the_recorder_found_late_do_not_stand_for_all_of_the_recording() {
        let of = |number: u64, found: Option<&str>| {
            let mut capture = Drawing::new().window(0..4_000).steps("main", 1_000, 100, number, 100).capture;
            capture.info.found_step = found.map(str::to_owned);
            drawn::selected(&capture, &[], Steps::of).map(|steps| steps.count())
        };
        assert_eq!((of(9, Some("sim::Flood")), of(10, Some("sim::Flood"))), (None, Some(10)));
        let mut late = Drawing::new().window(0..100_000).steps("main", 90_000, 100, 50, 100).capture;
        late.info.found_step = Some("sim::Flood".to_owned());
        assert_eq!(drawn::selected(&late, &[], Steps::of).map(|steps| steps.count()), None);
        assert_eq!(of(9, None), Some(9), "the program marks them");
    }

    #[test]
    fn the_real_time_factor_is_simulated_over_wall_time() {
        let capture = Drawing::new().window(0..100_000).steps("main", 1_000, 2_000, 10, 1_000).capture;
        let steps = drawn::selected(&capture, &[], Steps::of).unwrap();
        assert_eq!((steps.count(), steps.span, steps.real_time_factor), (10, 1_000..21_000, Some(0.5)));
        assert_eq!(steps.times.median(), Some(2_000));
    }

    #[test]
    fn one_step_has_no_real_time_factor() {
        let capture = Drawing::new().window(0..100).steps("main", 10, 20, 1, 1).capture;
        assert_eq!(drawn::selected(&capture, &[], Steps::of).unwrap().real_time_factor, None);
    }

    #[test]
    fn only_steps_that_lie_whole_within_a_range_count() {
        let capture = Drawing::new().window(0..100).steps("main", 0, 10, 10, 5).capture;
        let filter = Filter { time: Some(TimeRange { from_ns: 15, to_ns: Some(55) }), ..Filter::default() };
        let steps = drawn::filtered(&capture, &[], &filter, Steps::of).unwrap();
        assert_eq!((steps.count(), steps.span.clone()), (3, 20..50));
        assert_eq!((steps.first(), steps.after_first()), (None, 0..3));
    }

    #[test]
    fn no_steps_are_none() {
        assert!(drawn::selected(&drawn::folded("main;a 1"), &[], Steps::of).is_none());
    }

    #[test]
    fn a_moment_at_a_boundary_belongs_to_the_step_that_begins_there() {
        let capture = Drawing::new().window(0..100).steps("main", 10, 10, 3, 5).capture;
        let steps = drawn::selected(&capture, &[], Steps::of).unwrap();
        assert_eq!(
            [9, 10, 19, 20, 39, 40].map(|time| steps.at(time)),
            [None, Some(0), Some(0), Some(1), Some(2), None]
        );
        assert_eq!(steps.first().map(|step| step.start_ns), Some(10));
        assert_eq!(steps.pieces(5..25).collect::<Vec<_>>(), [(0, 10..20), (1, 20..25)]);
        assert_eq!(steps.time_in_each([5..25, 0..100, 12..13]), [10 + 10 + 1, 5 + 10, 10]);
        assert_eq!([5..25, 0..100, 12..13, 50..60].map(|range| steps.time_within(&range)), [15, 30, 1, 0]);
    }

    #[test]
    fn steps_of_two_threads_that_overlap_are_two_loops_and_workers_are_of_the_main_one() {
        let capture = Drawing::new()
            .window(0..1_000)
            .process(1, "sim")
            .steps("physics", 0, 10, 50, 1)
            .steps("render", 5, 100, 5, 1)
            .lived("worker", 0..1_000, None)
            .process(2, "gui")
            .lived("gui", 0..1_000, None)
            .capture;
        let loops = drawn::selected(&capture, &[], Loops::of).unwrap();
        let counts: Vec<usize> = (0..4).map(|thread| loops.of_thread(ThreadId(thread)).count()).collect();
        assert_eq!((counts, loops.count()), (vec![50, 5, 50, 50], 2));
        let filter = Filter { threads: vec!["render".parse().unwrap()], ..Filter::default() };
        let steps = drawn::filtered(&capture, &[], &filter, Steps::of).unwrap();
        assert_eq!(steps.count(), 5);
    }

    #[test]
    fn steps_that_one_process_runs_on_changing_threads_are_one_loop() {
        let capture =
            Drawing::new().window(0..100).process(1, "sim").steps("a", 0, 10, 2, 1).steps("b", 20, 10, 2, 1).capture;
        let loops = drawn::selected(&capture, &[], Loops::of).unwrap();
        assert_eq!((loops.count(), loops.main().count()), (1, 4));
    }

    #[test]
    fn costs_of_a_process_with_its_own_loop_are_per_step_of_that_loop() {
        let capture = Drawing::new()
            .window(0..100)
            .process(1, "sim")
            .steps("sim", 0, 10, 10, 1)
            .process(2, "gui")
            .steps("gui", 0, 50, 2, 1)
            .folded(stepscope_model::Event::sampled("cpu-clock", "ns"), "@5 sim;a 10\n@60 gui;b 10\n@100 gui;b 10")
            .capture;
        drawn::selected(&capture, &[], |selection| {
            let loops = Loops::of(selection).unwrap();
            // 10 in each of 10 steps is 1 a step; 10 in 2 steps is 5 a step, as 50 would be in 10.
            assert_eq!(loops.sample_weights(selection).total(), Amount { weight: 10 + 50, count: 2 });
        });
    }

    #[test]
    fn a_step_ends_at_the_latest_when_the_next_one_starts() {
        let mut drawing = Drawing::new().window(0..100).steps("main", 0, 10, 3, 1);
        drawing.capture.steps[0].end_ns = 15;
        let steps = drawn::selected(&drawing.capture, &[], Steps::of).unwrap();
        assert_eq!((steps.range(0), steps.range(1)), (0..10, 10..20));
    }
}
