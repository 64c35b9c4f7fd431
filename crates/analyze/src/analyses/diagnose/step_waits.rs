//! [`step_waits`]: where the loop's thread waits within steps, for kinds of findings about waits of one class.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::gain::Gain;
use super::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use stepscope_model::{ThreadId, Wait};

/// Least share of the step.
const LEAST: f64 = 5.0;

/// What a function waits for in steps.
pub(super) struct StepWait {
    /// The owned function that waits.
    pub function: FunctionId,
    /// Blocked time per step.
    pub ns: f64,
    /// The part of the steps in which it waits.
    pub in_steps: f64,
    /// The owned function of another thread that ended most of that time.
    pub ended_by: Option<FunctionId>,
    /// What it gains to wait no more.
    pub gain: Gain,
}

#[derive(Default)]
struct Sum {
    ns: u64,
    steps: FxHashSet<usize>,
    ended_by: FxHashMap<FunctionId, u64>,
}

/// Waits of a class that count and are at least 5 % of the step; the longest first.
pub(super) fn step_waits(
    seen: &Seen<'_, '_>,
    class: WaitClass,
    counts: impl Fn(ThreadId, &Wait) -> bool,
) -> Vec<StepWait> {
    let (Some(loops), Some((count, _))) = (&seen.loops, seen.steps()) else { return Vec::new() };
    let (whole, steps) = (seen.whole_ns(), loops.main());
    let mut classes = Classes::new(seen.capture(), seen.functions());
    let mut sums: FxHashMap<FunctionId, Sum> = FxHashMap::default();
    let of_thread = |thread| seen.waits(thread).map(move |wait| (thread, wait));
    for (thread, wait) in seen.loop_threads().into_iter().flat_map(of_thread) {
        let Some(stack) = wait.stack.filter(|stack| classes.of(*stack) == class) else { continue };
        if !counts(thread, &wait) {
            continue;
        }
        let Some(function) = seen.functions().attributed(stack) else { continue };
        let ns = steps.time_within(&(wait.start_ns..wait.start_ns + blocked_ns(&wait)));
        let sum = sums.entry(function).or_default();
        sum.ns += ns;
        sum.steps.extend(steps.at(wait.start_ns).filter(|_| ns > 0));
        if let Some(other) = wait.waker_stack.and_then(|stack| seen.functions().attributed(stack)) {
            *sum.ended_by.entry(other).or_default() += ns;
        }
    }
    let mut waits: Vec<_> = sums.into_iter().collect();
    waits.sort_by_key(|(function, sum)| (Reverse(sum.ns), function.index()));
    let wait = |(function, sum): (FunctionId, Sum)| {
        let ns = sum.ns as f64 / count as f64;
        let ended_by = sum.ended_by.into_iter().max_by_key(|(id, ns)| (*ns, Reverse(id.index())));
        StepWait {
            function,
            ns,
            in_steps: sum.steps.len() as f64 / count as f64,
            ended_by: ended_by.map(|(id, _)| id),
            gain: Gain::of_waiting(ns, whole),
        }
    };
    waits.into_iter().map(wait).filter(|wait| 100.0 * wait.ns / whole >= LEAST).collect()
}
