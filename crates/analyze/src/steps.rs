//! Simulation steps: how many, how long, how fast against real time.
//!
//! What the other analyses need of steps: the span that they cover, to give costs per step, and the real-time factor.

use std::ops::Range;

use stepscope_model::Step;
use stepscope_stats::Distribution;

use crate::select::Selection;

/// The steps of a selection.
#[derive(Debug, Clone)]
pub struct Steps {
    /// How long each took, in ns.
    pub times: Distribution,
    /// From the start of the first one to the end of the last one: costs within it are costs of these steps.
    pub span: Range<u64>,
    /// Simulated time over wall time, from the end of the first step with a simulated time to that of the last one.
    pub real_time_factor: Option<f64>,
}

impl Steps {
    /// The steps that lie within the selected time; `None` if there are none.
    ///
    /// Steps are of the simulation, not of a thread: filters on threads do not apply.
    pub fn of(selection: &Selection<'_>) -> Option<Self> {
        let window = selection.window();
        let inside = |step: &&Step| {
            window.as_ref().is_none_or(|window| step.start_ns >= window.start && step.end_ns <= window.end)
        };
        let steps: Vec<&Step> = selection.capture().steps.iter().filter(inside).collect();
        let start = steps.iter().map(|step| step.start_ns).min()?;
        let end = steps.iter().map(|step| step.end_ns).max()?;
        Some(Self {
            times: steps.iter().map(|step| step.end_ns - step.start_ns).collect(),
            span: start..end,
            real_time_factor: real_time_factor(&steps),
        })
    }

    /// Number of steps.
    pub fn count(&self) -> usize {
        self.times.len()
    }
}

fn real_time_factor(steps: &[&Step]) -> Option<f64> {
    let known = || steps.iter().filter_map(|step| Some((step.end_ns, step.sim_time_ns?)));
    let (first, last) = (known().min()?, known().max()?);
    let (wall, simulated) = (last.0 - first.0, last.1.checked_sub(first.1)?);
    (wall > 0).then(|| simulated as f64 / wall as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{self, Drawing};
    use crate::select::{Filter, TimeRange};

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
        assert_eq!((steps.count(), steps.span), (3, 20..50));
    }

    #[test]
    fn no_steps_are_none() {
        assert!(drawn::selected(&drawn::folded("main;a 1"), &[], Steps::of).is_none());
    }
}
