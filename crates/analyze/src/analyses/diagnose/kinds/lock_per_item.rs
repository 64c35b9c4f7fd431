//! A lock is taken and released for each item of a loop, and that alone costs much: nobody has to wait for it.
//!
//! Evidence: mutexes, reader-writer locks and spin locks are taken and released directly below an owned function, outside the kernel, all the time. Waiting for
//! a lock is in the kernel, and another [kind](super::lock_wait). Look-alikes: threads that hand work to each other; see [small pieces](super::small_pieces).

use std::cell::LazyCell;

use rustc_hash::FxHashMap;
use stepscope_model::{FrameKind, StackId};

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, is_one_of, parts};
use crate::analyses::diagnose::{InLibrary, Kind, python};
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::work::Work;

/// Least share of CPU time: what takes a lock once for each piece of real work has less.
const LEAST: f64 = 10.0;

/// Beginnings of functions that wait for something, or hand it over.
const HAND_OVER: [&str; 10] = [
    "pthread_cond_",
    "__pthread_cond_",
    "___pthread_cond_",
    "pthread_barrier_",
    "sem_",
    "__new_sem_",
    "std::condition_variable",
    "std::sync::Condvar",
    "std::sync::poison::condvar",
    "parking_lot::condvar",
];

/// A function that waits for other threads so often hands work over.
const MOST_WAITS: usize = 100;

pub(super) struct LockPerItem;

impl Kind for LockPerItem {
    fn name(&self) -> &'static str {
        "lock-per-item"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Take the lock once around the loop, or copy what is read under it once a step; data that nobody changes meanwhile needs no lock."
    }

    fn confirm(&self) -> &'static str {
        "Count its calls with `diagnose --deepen`: as many calls as there are items confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let hands_over = seen.paths_through(|function| is_one_of(function, &HAND_OVER));
        let of_interpreter = python::takes_lock(seen);
        let takes = |stack: StackId| {
            let leaf = seen.functions().get(seen.functions().of_node(seen.capture(), stack));
            let index = stack.index();
            seen.work[index] == Work::Lock
                && leaf.kind != FrameKind::Kernel
                && !hands_over[index]
                && !of_interpreter[index]
        };
        let waiting = LazyCell::new(|| waits_for_others(seen));
        let owners = seen.by_function(|stack| seen.owner(stack).filter(|_| takes(stack))).into_iter();
        let found = owners.filter(|(_, amount)| seen.share(*amount) >= LEAST).filter_map(|(owner, amount)| {
            let at = |stack: StackId| seen.owner(stack) == Some(owner) && takes(stack);
            if !seen.is_steady(at) || waiting.get(&owner).is_some_and(|waits| *waits >= MOST_WAITS) {
                return None;
            }
            let title = format!("`{}` takes a lock for each item {}", seen.name(owner), seen.repeatedly());
            let without = parts((0..seen.work.len()).map(|index| at(StackId::from_index(index))));
            let text = format!(
                "Taking and releasing it takes {} of the CPU time{}, without waits for it.",
                percent(seen.share(amount)),
                seen.of_steps()
            );
            let found = Found::of(seen, owner, title, without).sure(Confidence::Fair);
            Some(found.because(text, explain(seen, owner)))
        });
        found.collect()
    }
}

/// How often each owned function waits on a condition.
fn waits_for_others(seen: &Seen<'_, '_>) -> FxHashMap<FunctionId, usize> {
    let mut classes = Classes::new(seen.capture(), seen.functions());
    let mut waits: FxHashMap<FunctionId, usize> = FxHashMap::default();
    for stack in seen.selection.threads().flat_map(|(thread, _)| seen.waits(thread)).filter_map(|wait| wait.stack) {
        let Some(owner) = seen.owner(stack).filter(|_| classes.of(stack) == WaitClass::Condition) else { continue };
        *waits.entry(owner).or_default() += 1;
    }
    waits
}

#[cfg(test)]
mod tests {
    use crate::analyses::diagnose::tests::{found, looping, work};

    #[test]
    fn locks_that_nobody_waits_for_are_found_and_hand_over_is_not() {
        let of = |stack: &'static str| found(&looping(|_, tenth| work(tenth, &[(3, stack)], "sim::Move")));
        assert_eq!(of("sim::Probe;pthread_mutex_lock"), ["lock-per-item | sim::Probe | 30"]);
        assert_eq!(of("sim::Take;pthread_cond_signal;pthread_mutex_lock"), Vec::<String>::new());
        assert_eq!(of("sim::Probe;pthread_mutex_lock;__x64_sys_futex [kernel]"), Vec::<String>::new(), "it waits");
    }
}
