//! [`step_waits`]: where the loop's thread waits within steps, for kinds of findings about waits of one class.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::gain::Gain;
use super::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use stepscope_model::{Step, ThreadId, Wait};

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
    let steps = loops.main();
    let within = |blocked: Range<u64>| (steps.time_within(&blocked), steps.at(blocked.start));
    let whole = seen.whole_ns();
    // Who ends a wait may have waited for a thread without a CPU, and such time is no part of the whole. What the loop's thread runs stays in any case.
    let run_ns =
        |step: &Step| seen.off_cpu.spent(step.thread, step.start_ns..step.end_ns).map_or(0, |spent| spent.running);
    let running = steps.rows().iter().map(run_ns).sum::<u64>() as f64 / steps.rows().len().max(1) as f64;
    let most = (whole - running).max(0.0);
    let gain = |ns: f64| Gain::of_waiting(ns.min(most), whole);
    of_threads(seen, class, (&seen.loop_threads(), count, whole), counts, within, gain)
}

/// Without steps: waits of a class of each thread, that take 5 % of the time in which it runs or is blocked. It has to run for as
/// long.
pub(super) fn thread_waits(seen: &Seen<'_, '_>, class: WaitClass) -> Vec<StepWait> {
    let span = seen.span();
    let length = (span.end - span.start).max(1) as f64;
    // Time in which other programs have the CPU does not count.
    let of_thread = |thread: ThreadId| {
        let spent = seen.off_cpu.spent(thread, span.clone())?;
        let able = (spent.running + spent.blocked) as f64;
        (100.0 * spent.running as f64 >= LEAST * able && 100.0 * able >= LEAST * length).then_some((thread, able))
    };
    let threads = seen.selection.threads().filter_map(|(thread, _)| of_thread(thread));
    let within = |blocked: Range<u64>| (blocked.end.min(span.end).saturating_sub(blocked.start.max(span.start)), None);
    let mut waits: Vec<StepWait> = Vec::new();
    for (thread, able) in threads {
        let gain = |ns: f64| Gain::of_phase_waiting(ns, able);
        waits.extend(of_threads(seen, class, (&[thread], 1, able), |_, _| true, within, gain));
    }
    waits.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    // One function of several threads is one finding.
    let mut functions = FxHashSet::default();
    waits.retain(|wait| functions.insert(wait.function));
    waits
}

/// The waits of threads, in a number of steps of a length. `within` has the part of a wait that counts, and its step; `gain` what it gains
/// to wait no more for this time in each step.
fn of_threads(
    seen: &Seen<'_, '_>,
    class: WaitClass,
    (threads, count, whole): (&[ThreadId], usize, f64),
    counts: impl Fn(ThreadId, &Wait) -> bool,
    within: impl Fn(Range<u64>) -> (u64, Option<usize>),
    gain: impl Fn(f64) -> Gain,
) -> Vec<StepWait> {
    let mut classes = Classes::new(seen.capture(), seen.functions());
    let mut sums: FxHashMap<FunctionId, Sum> = FxHashMap::default();
    let of_thread = |thread| seen.waits(thread).map(move |wait| (thread, wait));
    for (thread, wait) in threads.iter().copied().flat_map(of_thread) {
        let Some(stack) = wait.stack.filter(|stack| classes.of(*stack) == class) else { continue };
        if !counts(thread, &wait) {
            continue;
        }
        let Some(function) = seen.functions().attributed(stack) else { continue };
        let (ns, step) = within(wait.start_ns..wait.start_ns + blocked_ns(&wait));
        // While the thread that ends it waits for a CPU, the wait is for that CPU.
        let end = wait.start_ns + blocked_ns(&wait);
        let spent = wait.waker.and_then(|waker| seen.off_cpu.spent(waker, wait.start_ns..end));
        let ns = ns.saturating_sub(spent.map_or(0, |spent| spent.runnable));
        let sum = sums.entry(function).or_default();
        sum.ns += ns;
        sum.steps.extend(step.filter(|_| ns > 0));
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
            gain: gain(ns),
        }
    };
    waits.into_iter().map(wait).filter(|wait| 100.0 * wait.ns / whole >= LEAST).collect()
}
