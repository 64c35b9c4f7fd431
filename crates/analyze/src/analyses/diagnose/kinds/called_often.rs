//! A small function is called very often: an accessor, a filter, a clock.
//!
//! Evidence: its calls, counted per step, together with the CPU time of a call. Without counts it is silent. Look-alikes: the
//! samples of a function next to it, if calls are so short that a sample hits the wrong one.
//!
//! Half of its time is taken as the gain: some of the work has to be done in its caller.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;

/// Least share of CPU time.
const LEAST: f64 = 3.0;

/// Least calls per step, or per second.
const LEAST_CALLS: f64 = 1_000.0;
const LEAST_CALLS_PER_SECOND: f64 = 1e6;

/// Most CPU time of a call, in ns.
const SHORT_NS: f64 = 50.0;

pub(super) struct CalledOften;

impl Kind for CalledOften {
    fn name(&self) -> &'static str {
        "called-very-often"
    }

    fn advice(&self) -> &'static str {
        "Call it once and keep the result, let the compiler inline it, or filter before the call."
    }

    fn confirm(&self) -> &'static str {
        "`perf annotate` of its caller: time at the call and at the function's first instructions."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some((_, step_ns)) = seen.steps() else { return Vec::new() };
        let inclusive = seen.inclusive();
        let often = seen.calls.iter().filter(|rate| {
            let calls = rate.per_step >= LEAST_CALLS || rate.per_step / step_ns * 1e9 >= LEAST_CALLS_PER_SECOND;
            calls && rate.call_ns <= SHORT_NS
        });
        often
            .filter_map(|rate| {
                let (_, amount) = inclusive.iter().find(|(function, _)| *function == rate.function)?;
                let share = seen.share(*amount);
                let title = format!("`{}` is called {} in each step", seen.name(rate.function), rate.times());
                let half = seen.under(rate.function).into_iter().map(|under| if under { 0.5 } else { 0.0 }).collect();
                let found = Found::of(seen, rate.function, title, half).sure(Confidence::Fair);
                (share >= LEAST).then(|| {
                    found.because(
                        format!("All calls together are {} of the CPU time.", percent(share)),
                        "rank --inclusive",
                    )
                })
            })
            .collect()
    }
}
