//! Steps wait for a lock that another thread holds.
//!
//! Evidence: blocked time of the loop's thread in locks, with the place and the thread that ended the wait. Look-alikes:
//! a condition variable, which waits for work; those have a class of their own.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::step_waits::step_waits;
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
        let found = step_waits(seen, WaitClass::Lock, |_, _| true).into_iter().map(|wait| {
            let title = match wait.ended_by {
                Some(holder) => {
                    format!("`{}` waits for a lock that `{}` holds", seen.name(wait.function), seen.name(holder))
                }
                None => format!("`{}` waits for a lock", seen.name(wait.function)),
            };
            Found::of_program(title, Some(wait.gain))
                .about(Some(wait.function))
                .sure(Confidence::Strong)
                .because(format!("The loop's thread is blocked there for {} a step.", ns(wait.ns)), "show --view wall")
        });
        found.collect()
    }
}
