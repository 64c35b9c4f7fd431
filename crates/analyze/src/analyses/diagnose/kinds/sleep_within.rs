//! A step sleeps before it goes on with its work.
//!
//! Evidence: sleeps of the loop's thread in the middle of steps, with work before and after them. Look-alikes: the pacing of
//! the loop, which sleeps at the start or at the end of a step; a pause that a device needs.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;

/// Least share of the step.
const LEAST: f64 = 5.0;

/// Least part of the step's running time before the sleep, and after it.
const WORK: f64 = 0.1;

/// Least part of the steps in which it sleeps so.
const STEPS: f64 = 0.5;

pub(super) struct SleepWithin;

impl Kind for SleepWithin {
    fn name(&self) -> &'static str {
        "sleep-within-step"
    }

    fn advice(&self) -> &'static str {
        "Wait for what is awaited: a condition variable, a future, a descriptor. Pace the loop at the end of a step, once."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view wall` for the sleeps of the loop's thread and their callers."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let (Some(loops), Some((count, _))) = (&seen.loops, seen.steps()) else { return Vec::new() };
        let (whole, steps) = (seen.whole_ns(), loops.main());
        let mut classes = Classes::new(seen.capture(), seen.functions());
        // Blocked time, and steps, by function. A step counts once.
        let mut sums: FxHashMap<FunctionId, (u64, usize, Option<usize>)> = FxHashMap::default();
        for thread in seen.loop_threads() {
            for wait in seen.waits(thread) {
                let Some(stack) = wait.stack.filter(|stack| classes.of(*stack) == WaitClass::Sleep) else { continue };
                let Some(step) = steps.at(wait.start_ns) else { continue };
                let range = steps.range(step);
                let running = |range| seen.off_cpu.spent(thread, range).map_or(0, |spent| spent.running) as f64;
                let (before, after) = (running(range.start..wait.start_ns), running(wait.end_ns..range.end));
                if wait.end_ns >= range.end || before.min(after) < WORK * (before + after) {
                    continue;
                }
                let Some(function) = seen.functions().attributed(stack) else { continue };
                let (sum, in_steps, last) = sums.entry(function).or_default();
                *sum += blocked_ns(&wait);
                *in_steps += usize::from(last.replace(step) != Some(step));
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(function, (sum, ..))| (Reverse(*sum), function.index()));
        let found = sums.into_iter().map(|(function, (sum, in_steps, _))| {
            let (per_step, in_steps) = (sum as f64 / count as f64, in_steps as f64 / count as f64);
            (function, per_step, in_steps)
        });
        found
            .filter(|(_, per_step, in_steps)| 100.0 * per_step / whole >= LEAST && *in_steps >= STEPS)
            .map(|(function, per_step, in_steps)| {
                let title = format!("`{}` sleeps in the middle of steps", seen.name(function));
                let text = format!(
                    "The loop's thread sleeps there for {} a step, in {} of the steps, and works before and after.",
                    ns(per_step),
                    percent(100.0 * in_steps)
                );
                Found::of_program(title, Some(Gain::of_waiting(per_step, whole)))
                    .about(Some(function))
                    .sure(Confidence::Fair)
                    .because(text, "show --view wall")
            })
            .collect()
    }
}
