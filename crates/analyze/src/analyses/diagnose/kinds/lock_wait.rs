//! Steps wait for a lock that another thread holds.
//!
//! Evidence: blocked time of the loop's thread in locks, with the place and the thread that ended the wait; without steps that of
//! any thread that works. Where the recorder found the steps, another thread may run the loop that matters, so the waits of all threads that work
//! count. Look-alikes:
//! a condition variable, which waits for work; those have a class of their own.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::gain::GainBasis;
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::step_waits::{StepWait, step_waits, thread_waits};
use crate::query::wait_class::WaitClass;

pub(super) struct LockWait;

impl Kind for LockWait {
    fn name(&self) -> &'static str {
        "lock-wait"
    }

    fn advice(&self) -> &'static str {
        "Hold the lock for less, split it, or let readers take a snapshot."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view wall` for the waits by class and their callers."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let waits = match () {
            () if seen.is_loading() => return Vec::new(),
            () if seen.capture().info.found_step.is_some() => {
                let mut waits = step_waits(seen, WaitClass::Lock, |_, _| true);
                let is_known = |function| waits.iter().any(|wait: &StepWait| wait.function == function);
                let others = thread_waits(seen, WaitClass::Lock).into_iter();
                let others: Vec<StepWait> = others.filter(|wait| !is_known(wait.function)).collect();
                waits.extend(others);
                waits
            }
            () if seen.loops.is_some() => step_waits(seen, WaitClass::Lock, |_, _| true),
            () => thread_waits(seen, WaitClass::Lock),
        };
        let found = waits.into_iter().map(|wait| {
            let title = match wait.ended_by {
                Some(holder) => {
                    format!("`{}` waits for a lock that `{}` holds", seen.name(wait.function), seen.name(holder))
                }
                None => format!("`{}` waits for a lock", seen.name(wait.function)),
            };
            Found::of_program(title, Some(wait.gain))
                .about(Some(wait.function))
                .sure(Confidence::Strong)
                .because(describe(&wait), "show --view wall")
        });
        found.collect()
    }
}

/// How long it waits.
fn describe(wait: &StepWait) -> String {
    match wait.gain.basis {
        GainBasis::Waiting => format!("The loop's thread is blocked there for {} a step.", ns(wait.ns)),
        _ => format!("Its thread is blocked there for {} of the time.", percent(wait.gain.share().value)),
    }
}
