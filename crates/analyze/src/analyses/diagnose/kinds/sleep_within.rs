//! A step sleeps before it goes on with its work.
//!
//! Evidence: sleeps of the loop's thread in the middle of steps, with work before and after them. Look-alikes: the pacing of
//! the loop, which sleeps at the start or at the end of a step; a pause that a device needs.
//!
//! Without steps: a thread that [sleeps until others are done](super::sleep_for_workers).

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::pacing::is_within_step;
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::step_waits::step_waits;
use crate::query::wait_class::WaitClass;

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
        let waits = step_waits(seen, WaitClass::Sleep, |thread, wait| is_within_step(seen, thread, wait)).into_iter();
        let within = waits
            // Steps that the recorder found may begin anywhere in the loop: a sleep once a step is its pace.
            .filter(|wait| wait.in_steps >= STEPS && seen.pacing.function != Some(wait.function))
            .map(|wait| {
                let title = format!("`{}` sleeps in the middle of steps", seen.name(wait.function));
                let text = format!(
                    "The loop's thread sleeps there for {} a step, in {} of the steps, and works before and after.",
                    ns(wait.ns),
                    percent(100.0 * wait.in_steps)
                );
                Found::of_program(title, Some(wait.gain))
                    .about(Some(wait.function))
                    .sure(Confidence::Fair)
                    .because(text, "show --view wall")
            });
        within.chain(super::sleep_for_workers::found(seen)).collect()
    }
}
