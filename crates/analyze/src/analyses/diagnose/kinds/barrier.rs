//! One worker has most of the work, and the others wait for it at a barrier.
//!
//! Evidence: [barriers](crate::analyses::critical_path) on the critical path where mostly the same thread arrives last. The
//! gain is how much earlier it would arrive if all workers had the mean of their work, which is CPU time: a worker that waits
//! for a CPU is late without having more to do. If no other thread does some of this
//! work, it may not be divisible: only large gains count then, and only where the last one comes to the same place itself. Threads
//! that wait for jobs wait in functions of their own, and have no barrier with who hands these out. Look-alikes: workers with a
//! task of their own each, one of them long.
//!
//! Without such barriers: workers that the loop's thread wakes in most steps, and that run the same function, while one of
//! them mostly ends the wait of the loop's thread. The gain is what it runs on the critical path beyond the mean of all.
//!
//! Without steps: threads that run the same function and wait for each other all the time. Most of the blocked time of those
//! with less work is ended by the one with most work, or by a thread that itself mostly waits for that one. The gain is what it
//! does beyond the mean, as a part of the time in which it runs or is blocked.
//!
//! Threads of [OpenMP](openmp) wait for each other in a loop.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::openmp;
use crate::analyses::critical_path::{Imbalance, imbalances};
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::{Seen, Tenths, parts};
use crate::query::functions::FunctionId;
use crate::query::steps::Loops;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use crate::query::weights::{Amount, StackWeights};
use crate::query::work::Work;
use stepscope_model::{StackId, ThreadId};

/// Least gain in percent of the step.
const LEAST: f64 = 5.0;

/// The same if no other thread does this work.
const LEAST_UNSHARED: f64 = 20.0;

/// Least part of the last thread's work that other threads have together, if it is work of all.
const LEAST_OF_OTHERS: f64 = 0.02;

/// Least share of the barriers at which the thread arrives last, or of the loop's waits that it ends.
const USUALLY: f64 = 0.6;

/// Least number of wake-ups of a worker per step, by the loop's thread.
const WOKEN: f64 = 0.5;

pub(super) struct Barrier;

impl Kind for Barrier {
    fn name(&self) -> &'static str {
        "barrier-imbalance"
    }

    fn advice(&self) -> &'static str {
        "Deal the work out evenly, or let idle workers take the next piece."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view critical-path`: the last thread and the slack of the others at each barrier."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        if let Some(found) = openmp::imbalance(seen) {
            return vec![found];
        }
        if seen.loops.is_none() {
            return without_steps(seen).into_iter().collect();
        }
        // Without wake-ups there is no path, and who ended a wait is unknown.
        let (Some(loops), Some(_)) = (&seen.loops, &seen.path) else { return Vec::new() };
        at_barriers(seen, loops).or_else(|| at_join(seen, loops)).into_iter().collect()
    }
}

/// The worker that arrives last at barriers.
fn at_barriers(seen: &Seen<'_, '_>, loops: &Loops) -> Option<Found> {
    let mean = seen.whole_ns();
    let idle_ns = idle_share(seen) * mean;
    let usual = |one: &Imbalance| one.last_share >= USUALLY && 100.0 * one.gain_ns.min(idle_ns) / mean >= LEAST;
    let uneven = imbalances(seen.selection, loops.main(), &seen.off_cpu).into_iter().filter(usual);
    let worst = uneven.max_by(|a, b| a.gain_ns.total_cmp(&b.gain_ns))?;
    let gain_ns = worst.gain_ns.min(idle_ns);
    let thread = &seen.capture().threads[worst.last.index()].name;
    // What the last thread mostly does.
    let own = StackWeights::of_samples(&seen.selection.of_thread(worst.last));
    let waits = |stack: StackId| matches!(seen.work[stack.index()], Work::Lock | Work::Switch | Work::Poll);
    let waiting: Amount = own.occupied().filter(|(stack, _)| waits(*stack)).map(|(_, amount)| amount).sum();
    // A worker that hardly does more than wait and wake others is late because the machine is.
    if waiting.weight * 2 > own.total().weight {
        return None;
    }
    let attributed = own.attributed_by_function(seen.functions());
    let ids = seen.functions().all().map(|(id, _)| id);
    let does = ids.max_by_key(|id| attributed[id.index()].weight).filter(|id| attributed[id.index()].weight > 0);
    let is_shared = does.is_some_and(|does| others_do_it(seen, worst.last, does, attributed[does.index()]));
    if !is_shared && (100.0 * gain_ns / mean < LEAST_UNSHARED || !comes_to(seen, worst.last, worst.waits_at)) {
        return None;
    }
    let title = format!("Thread `{thread}` has most of the work; the other workers wait for it");
    let gain = Gain::of_waiting(gain_ns, mean);
    Some(
        Found::of_program(title, Some(gain))
            .about(does)
            .sure(if is_shared { Confidence::Strong } else { Confidence::Weak })
            .because(
                format!(
                    "It arrives last at {} of the barriers; those who wait for it ({:.1} workers on average) wait {} a step.",
                    percent(100.0 * worst.last_share),
                    worst.waiters,
                    ns(worst.waiting_ns)
                ),
                "show --view critical-path",
            ),
    )
}

/// The worker that the loop's thread usually awaits. The other workers do the same work and have less of it.
fn at_join(seen: &Seen<'_, '_>, loops: &Loops) -> Option<Found> {
    let own = seen.loop_threads();
    let mut classes = Classes::new(seen.capture(), seen.functions());
    let mut ended: BTreeMap<ThreadId, u64> = BTreeMap::new();
    for wait in own.iter().flat_map(|thread| seen.waits(*thread)) {
        let is_join = wait.stack.is_some_and(|stack| classes.of(stack) == WaitClass::Condition);
        if let Some(waker) = wait.waker.filter(|waker| is_join && !own.contains(waker)) {
            *ended.entry(waker).or_default() += blocked_ns(&wait);
        }
    }
    let (&last, &ended_ns) = ended.iter().max_by_key(|(_, ns)| **ns)?;
    let all_ns: u64 = ended.values().sum();
    let attributed = StackWeights::of_samples(&seen.selection.of_thread(last)).attributed_by_function(seen.functions());
    let does = seen.functions().all().map(|(id, _)| id).max_by_key(|id| attributed[id.index()].weight)?;
    let does_it = seen.is_at(does, |_| true);
    let mut load: BTreeMap<ThreadId, f64> = BTreeMap::new();
    for sample in seen.selection.samples().filter(|sample| sample.stack.is_some_and(&does_it)) {
        *load.entry(sample.thread).or_default() += sample.weight as f64;
    }
    let most = load.get(&last).copied()?;
    let count = loops.main().count() as f64;
    let is_woken = |thread: ThreadId| {
        let by_loop = seen.waits(thread).filter(|wait| wait.waker.is_some_and(|waker| own.contains(&waker)));
        by_loop.map(|wait| f64::from(wait.count)).sum::<f64>() >= WOKEN * count
    };
    // The last one may find its next work without a wait.
    let takes_part = |thread: ThreadId| thread == last || is_woken(thread);
    load.retain(|thread, load| !own.contains(thread) && *load >= LEAST_OF_OTHERS * most && takes_part(*thread));
    if load.len() < 2 || !load.contains_key(&last) || (ended_ns as f64) < USUALLY * all_ns as f64 {
        return None;
    }
    let spare = 1.0 - load.values().sum::<f64>() / load.len() as f64 / most;
    let all = || parts((0..seen.capture().stacks.len()).map(|index| does_it(StackId::from_index(index))));
    let whole = seen.gain(&all()).share().value / 100.0;
    let saved = spare.max(0.0).min(idle_share(seen) / whole);
    let without = all().into_iter().map(|part| part * saved as f32).collect();
    let thread = &seen.capture().threads[last.index()].name;
    let title = format!("Thread `{thread}` has most of the work; steps wait for it");
    let found = Found::of(seen, does, title, without).sure(Confidence::Strong).because(
        format!(
            "It ends {} of the loop's waits, and does {:.1} times the mean work of the {} workers.",
            percent(100.0 * ended_ns as f64 / all_ns.max(1) as f64),
            1.0 / (1.0 - spare),
            load.len()
        ),
        "show --view critical-path",
    );
    Some(found).filter(|found| found.gain.is_some_and(|gain| gain.share().value >= LEAST))
}

/// Fewest waits of a worker for another one.
const FEWEST_WAITS: f64 = 50.0;

/// The waits of a thread for others, where no steps are known.
#[derive(Default)]
struct Waits {
    count: f64,
    ns: u64,
    /// The part of that time that each thread ended.
    ended: BTreeMap<ThreadId, u64>,
    met: Tenths,
}

impl Waits {
    fn of(seen: &Seen<'_, '_>, classes: &mut Classes<'_>, thread: ThreadId) -> Self {
        let (span, mut waits) = (seen.span(), Self::default());
        for wait in seen.waits(thread) {
            if wait.stack.is_none_or(|stack| classes.of(stack) != WaitClass::Condition) {
                continue;
            }
            let ns = blocked_ns(&wait);
            waits.count += f64::from(wait.count);
            waits.ns += ns;
            waits.met.meet(wait.start_ns, &span);
            if let Some(waker) = wait.waker {
                *waits.ended.entry(waker).or_default() += ns;
            }
        }
        waits
    }

    fn ended_by(&self, thread: ThreadId) -> u64 {
        self.ended.get(&thread).copied().unwrap_or(0)
    }

    fn is_steady(&self) -> bool {
        self.count >= FEWEST_WAITS && self.met.are_most()
    }

    /// Whether most of the time is ended by one thread.
    fn is_for(&self, thread: ThreadId) -> bool {
        self.is_steady() && self.ended_by(thread) as f64 >= USUALLY * self.ended.values().sum::<u64>().max(1) as f64
    }
}

/// The worker that others with the same work wait for, where no steps are known.
fn without_steps(seen: &Seen<'_, '_>) -> Option<Found> {
    seen.selection.window().filter(|_| seen.is_timed() && seen.selection.has_switches())?;
    let cpu = seen.selection.cpu_times();
    let last = (0..cpu.len()).filter(|&index| cpu[index].is_some()).max_by_key(|&index| cpu[index])?;
    let last = ThreadId::from_index(last);
    let attributed = StackWeights::of_samples(&seen.selection.of_thread(last)).attributed_by_function(seen.functions());
    let does = seen.functions().all().map(|(id, _)| id).max_by_key(|id| attributed[id.index()].weight)?;
    let does_it = seen.is_at(does, |_| true);
    let mut load: BTreeMap<ThreadId, f64> = BTreeMap::new();
    for sample in seen.selection.samples().filter(|sample| sample.stack.is_some_and(&does_it)) {
        *load.entry(sample.thread).or_default() += sample.weight as f64;
    }
    let most = load.get(&last).copied().filter(|most| *most > 0.0)?;
    let mut classes = Classes::new(seen.capture(), seen.functions());
    let waits: BTreeMap<ThreadId, Waits> =
        seen.selection.threads().map(|(thread, _)| (thread, Waits::of(seen, &mut classes, thread))).collect();
    // Those who wait for the last one themselves, and then wake others.
    let after_last: Vec<ThreadId> =
        waits.iter().filter(|(_, waits)| waits.is_for(last)).map(|(thread, _)| *thread).collect();
    load.retain(|thread, load| *load >= LEAST_OF_OTHERS * most && (*thread == last || waits[thread].is_steady()));
    let others: Vec<&Waits> = load.keys().filter(|thread| **thread != last).map(|thread| &waits[thread]).collect();
    let all_ns: u64 = others.iter().map(|waits| waits.ended.values().sum::<u64>()).sum();
    let for_last =
        |waits: &&Waits| waits.ended_by(last) + after_last.iter().map(|one| waits.ended_by(*one)).sum::<u64>();
    let for_last_ns: u64 = others.iter().map(for_last).sum();
    if others.is_empty() || (for_last_ns as f64) < USUALLY * all_ns as f64 {
        return None;
    }
    let mean = load.values().sum::<f64>() / load.len() as f64;
    // It cannot give away more than the time in which the others wait for it.
    let spare = (most - mean).min(for_last_ns as f64 / load.len() as f64);
    let spent = seen.off_cpu.spent(last, seen.span())?;
    let able = (spent.running + spent.blocked).max(1) as f64;
    if 100.0 * spare / able < LEAST {
        return None;
    }
    let thread = &seen.capture().threads[last.index()];
    let title =
        format!("One of {} threads has most of the work of `{}`; the others wait for it", load.len(), seen.name(does));
    let text = format!(
        "Thread `{}` ({}) does {:.1} times the mean work of these threads; {} of the time in which the others wait ends when it is done.",
        thread.name,
        thread.tid,
        most / mean,
        percent(100.0 * for_last_ns as f64 / all_ns.max(1) as f64)
    );
    let gain = Gain::of_phase_waiting(spare, able);
    Some(
        Found::of_program(title, Some(gain))
            .about(Some(does))
            .sure(Confidence::Fair)
            .because(text, "show --view threads"),
    )
}

/// Share of the time in which a CPU that the program uses runs none of its threads; 1 where the CPUs are not known.
fn idle_share(seen: &Seen<'_, '_>) -> f64 {
    let cpus: FxHashSet<u32> = seen.capture().waits.iter().filter_map(|wait| wait.cpu).collect();
    let Some(wall) = seen.selection.wall_ns().filter(|wall| *wall > 0 && !cpus.is_empty()) else { return 1.0 };
    let running: u64 = seen.selection.cpu_times().into_iter().flatten().sum();
    (1.0 - running as f64 / (wall as f64 * cpus.len() as f64)).max(0.0)
}

/// Whether a thread is seen in the function where others wait, or in what it calls.
fn comes_to(seen: &Seen<'_, '_>, thread: ThreadId, waits_at: Option<FunctionId>) -> bool {
    let Some(under) = waits_at.map(|function| seen.under(function)) else { return false };
    let mut samples =
        seen.selection.samples().filter(|sample| sample.thread == thread).filter_map(|sample| sample.stack);
    let mut waits = seen.waits(thread).filter_map(|wait| wait.stack);
    samples.any(|stack| under[stack.index()]) || waits.any(|stack| under[stack.index()])
}

/// Whether other threads than the last run the function, too.
fn others_do_it(seen: &Seen<'_, '_>, last: ThreadId, function: FunctionId, own: Amount) -> bool {
    let does = seen.is_at(function, |_| true);
    let others = seen.selection.samples().filter(|sample| sample.thread != last && sample.stack.is_some_and(&does));
    others.map(|sample| sample.weight as f64).sum::<f64>() >= LEAST_OF_OTHERS * own.weight as f64
}
