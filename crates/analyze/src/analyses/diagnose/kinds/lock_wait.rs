//! Steps wait for a lock that another thread holds.
//!
//! Evidence: blocked time of the loop's thread in locks, with the place and the thread that ended the wait. Look-alikes:
//! a condition variable, which waits for work; those have a class of their own.

use rustc_hash::FxHashMap;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;

/// Least share of the step.
const LEAST: f64 = 5.0;

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
        let (Some(loops), Some((count, _))) = (&seen.loops, seen.steps()) else { return Vec::new() };
        let mean = seen.whole_ns();
        let steps = loops.main();
        let mut classes = Classes::new(seen.capture(), seen.functions());
        let mut waits: FxHashMap<FunctionId, (u64, FxHashMap<FunctionId, u64>)> = FxHashMap::default();
        for thread in seen.loop_threads() {
            for wait in seen.off_cpu.waits(thread) {
                let Some(stack) = wait.stack.filter(|stack| classes.of(*stack) == WaitClass::Lock) else { continue };
                let Some(waiter) = seen.functions().attributed(stack) else { continue };
                let inside = steps.time_within(&(wait.start_ns..wait.start_ns + blocked_ns(&wait)));
                let (sum, holders) = waits.entry(waiter).or_default();
                *sum += inside;
                if let Some(holder) = wait.waker_stack.and_then(|stack| seen.functions().attributed(stack)) {
                    *holders.entry(holder).or_default() += inside;
                }
            }
        }
        let mut waits: Vec<_> =
            waits.into_iter().filter(|(_, (sum, _))| 100.0 * *sum as f64 / count as f64 / mean >= LEAST).collect();
        waits.sort_by_key(|(function, (sum, _))| (std::cmp::Reverse(*sum), function.index()));
        let of_waiter = |(waiter, (sum, holders)): (FunctionId, (u64, FxHashMap<FunctionId, u64>))| {
            let per_step = sum as f64 / count as f64;
            let holder = holders.into_iter().max_by_key(|(id, ns)| (*ns, std::cmp::Reverse(id.index())));
            let title = match holder {
                Some((holder, _)) => {
                    format!("`{}` waits for a lock that `{}` holds", seen.name(waiter), seen.name(holder))
                }
                None => format!("`{}` waits for a lock", seen.name(waiter)),
            };
            let gain = Gain::of_waiting(per_step, mean);
            Found::of_program(title, Some(gain))
                .about(Some(waiter))
                .sure(Confidence::Strong)
                .because(format!("The loop's thread is blocked there for {} a step.", ns(per_step)), "show --view wall")
        };
        waits.into_iter().map(of_waiter).collect()
    }
}
