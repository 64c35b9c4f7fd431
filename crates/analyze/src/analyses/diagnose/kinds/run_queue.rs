//! Steps wait for a CPU that other threads of the program have.
//!
//! Evidence: waits for a CPU on the critical path while threads of the program had all CPUs that it uses, and what those threads
//! ran. Look-alikes, none of which is counted: workers that the step waits for, which have to run in any case; a thread that
//! gives up its CPU until another one is done (`sched_yield`); and other programs: with a CPU of theirs, the step had not waited.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;
use crate::query::cpu_holders::CpuHolders;
use crate::query::functions::FunctionId;
use crate::query::loops::Steps;
use crate::query::step_paths::{Paths, State};
use crate::query::weights::{Amount, StackWeights};
use stepscope_model::{ThreadId, Wait, WaitState};

/// Least share of the step.
const LEAST: f64 = 5.0;

pub(super) struct RunQueue;

impl Kind for RunQueue {
    fn name(&self) -> &'static str {
        "cpu-held-by-others"
    }

    fn advice(&self) -> &'static str {
        "Use fewer threads than CPUs, lower the priority of background work, or pin the loop's thread."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view sched` for the delays of each thread and who had its CPU."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let (Some(loops), Some(path)) = (&seen.loops, &seen.path) else { return Vec::new() };
        if !has_more_threads_than_cpus(seen) {
            return Vec::new();
        }
        let mean = seen.whole_ns();
        let per_step = |weights: &StackWeights| weights.total().weight as f64 / path.steps as f64;
        if 100.0 * per_step(path.gain_bounds()[2]) / mean < LEAST {
            return Vec::new();
        }
        let [running, ..] = path.gain_bounds().map(|weights| weights.attributed_by_function(seen.functions()));
        let held = without_a_free_cpu(seen, loops.main()).attributed_by_function(seen.functions());
        // Work that steps wait for anyway has to run; it may as well have the CPU.
        let awaited = run_by_awaited_threads(seen);
        let background =
            |id: &FunctionId| running[id.index()].weight * 5 < held[id.index()].weight && !awaited[id.index()];
        let ids = seen.functions().all().map(|(id, _)| id).filter(background);
        let mut held: Vec<_> = ids.map(|id| (id, held[id.index()].weight)).collect();
        held.sort_by_key(|(id, weight)| (std::cmp::Reverse(*weight), id.index()));
        let Some((most, _)) = held.first().copied() else { return Vec::new() };
        let all = held.iter().map(|(_, weight)| *weight).sum::<u128>() as f64 / path.steps as f64;
        if 100.0 * all / mean < LEAST {
            return Vec::new();
        }
        let title = format!("Steps wait for a CPU that other threads have, most of all in `{}`", seen.name(most));
        let text = format!("The critical path waits {} a step for CPUs that the program's own threads have.", ns(all));
        let found = Found::of_program(title, Some(Gain::of_waiting(all, mean))).about(Some(most));
        vec![found.sure(Confidence::Strong).because(text, "show --view sched")]
    }
}

/// Least part of the program's CPU time of a thread that counts as busy.
const BUSY: f64 = 0.01;

/// Whether more threads are busy than the machine has CPUs. Fewer wait for CPUs that other programs have.
fn has_more_threads_than_cpus(seen: &Seen<'_, '_>) -> bool {
    let Some(machine) = &seen.capture().info.machine else { return true };
    let cpu = seen.selection.cpu_times();
    let all: u64 = cpu.iter().flatten().sum();
    let busy = cpu.iter().flatten().filter(|cpu| **cpu as f64 >= BUSY * all as f64).count();
    busy > machine.cores as usize
}

/// What the program's threads ran while the path waited for a CPU, and they had all CPUs that the program uses.
fn without_a_free_cpu(seen: &Seen<'_, '_>, steps: &Steps) -> StackWeights {
    let mut weights = StackWeights::none(seen.capture());
    let Some(paths) = Paths::of(seen.selection) else { return weights };
    let holders = paths.holders();
    let yields = seen.yields();
    let cpus: FxHashSet<u32> = seen.capture().waits.iter().filter_map(|wait| wait.cpu).collect();
    let mut held: Vec<(ThreadId, Range<u64>)> = Vec::new();
    for part in steps.after_first().flat_map(|position| paths.of_step(position)) {
        let Some(place) = part.place.filter(|_| part.state == State::Runnable) else { continue };
        let wait = seen.selection.completed_wait(paths.off_cpu().row(place));
        let gave_it_up = wait.state == WaitState::Preempted && wait.stack.is_some_and(|stack| yields[stack.index()]);
        let Some(cpu) = wait.cpu.filter(|_| !gave_it_up) else { continue };
        for (thread, range) in holders.within(cpu, &part.range) {
            let others = cpus.iter().filter(|other| **other != cpu);
            let all_held = others.fold(vec![range], |ranges, other| also_held(&holders, *other, &ranges));
            held.extend(all_held.into_iter().map(|range| (thread, range)));
        }
    }
    held.sort_unstable_by_key(|(thread, range)| (*thread, range.start));
    for sample in seen.selection.samples() {
        let Some(time) = sample.time_ns else { continue };
        let before = held.partition_point(|(thread, range)| (*thread, range.start) <= (sample.thread, time));
        let last = before.checked_sub(1).map(|index| &held[index]);
        if last.is_some_and(|(thread, range)| *thread == sample.thread && range.contains(&time)) {
            *weights.at(sample.stack) += Amount { weight: sample.weight.into(), count: 1 };
        }
    }
    weights
}

/// The parts of these ranges in which a thread of the program had this CPU, too.
fn also_held(holders: &CpuHolders<'_>, cpu: u32, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    ranges.iter().flat_map(|range| holders.within(cpu, range).map(|(_, part)| part)).collect()
}

/// Least part of the steps in which a thread takes part, if steps wait for it.
const AWAITED: f64 = 0.1;

/// For each function, whether most of its cost is on threads that steps wait for. They end waits of the loop's thread, or are
/// woken by it or its like in many steps and end some: of the workers at a barrier, only the last one ends that wait.
fn run_by_awaited_threads(seen: &Seen<'_, '_>) -> Vec<bool> {
    let least = AWAITED * seen.steps().map_or(1, |(count, _)| count) as f64;
    let own = seen.loop_threads();
    let threads: Vec<ThreadId> = (0..seen.capture().threads.len()).map(ThreadId::from_index).collect();
    let mut ended = vec![0_u32; threads.len()];
    for waker in own.iter().flat_map(|thread| seen.off_cpu.waits(*thread)).filter_map(|wait| wait.waker) {
        ended[waker.index()] += 1;
    }
    let is_woken = |wait: &Wait| wait.waker.is_some_and(|waker| ended[waker.index()] > 0 || own.contains(&waker));
    let is_awaited = |thread: &ThreadId| {
        let number = ended[thread.index()];
        let takes_part = || seen.off_cpu.waits(*thread).filter(is_woken).count() as f64 >= least;
        own.contains(thread) || f64::from(number) >= least || (number > 0 && takes_part())
    };
    let awaited: Vec<bool> = threads.iter().map(is_awaited).collect();
    let mut cost = vec![[0_u128; 2]; seen.functions().len()];
    for sample in seen.selection.samples() {
        if let Some(owner) = sample.stack.and_then(|stack| seen.functions().attributed(stack)) {
            cost[owner.index()][usize::from(awaited[sample.thread.index()])] += u128::from(sample.weight);
        }
    }
    cost.into_iter().map(|[other, awaited]| awaited > other).collect()
}
