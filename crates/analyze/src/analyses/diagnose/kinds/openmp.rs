//! Threads of OpenMP that wait in a loop for one that has most of the work.
//!
//! OpenMP's libraries wait at the end of a parallel region in a loop that uses the CPU, so these waits are no blocked time. What each
//! thread does in such regions shows in samples: the compiler makes a function of each of them, with a name of its own. The gain is what
//! the thread with most work does there beyond the mean of all, as a part of the time in which it runs or is blocked, but no more than
//! the others wait. Look-alikes: threads that wait while one does work outside of parallel regions; that work is of no region.

use std::collections::BTreeMap;

use stepscope_model::{StackId, ThreadId};

use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;

/// Parts of the names of functions that compilers make of parallel regions.
const REGIONS: [&str; 2] = ["_omp_fn", "omp_outlined"];

/// Beginnings of the file names of OpenMP's libraries.
const LIBRARIES: [&str; 3] = ["libgomp", "libomp", "libiomp"];

/// Least gain in percent.
const LEAST: f64 = 5.0;

/// Fewest samples of the work of regions.
const FEWEST: u64 = 100;

#[derive(Default, Clone, Copy)]
struct Thread {
    work: u128,
    waiting: u128,
}

/// The thread that others wait for at the ends of parallel regions.
pub(super) fn imbalance(seen: &Seen<'_, '_>) -> Option<Found> {
    if !seen.is_timed() {
        return None;
    }
    let (capture, functions) = (seen.capture(), seen.functions());
    let in_region = seen.paths_through(|function| REGIONS.iter().any(|part| function.name.contains(part)));
    let is_waiting = |stack: StackId| {
        let module = &functions.get(functions.of_node(capture, stack)).module;
        LIBRARIES.iter().any(|library| module.starts_with(library))
    };
    let mut threads: BTreeMap<ThreadId, Thread> = BTreeMap::new();
    let mut samples = 0;
    for sample in seen.selection.samples() {
        let Some(stack) = sample.stack else { continue };
        let thread = threads.entry(sample.thread).or_default();
        match () {
            () if is_waiting(stack) => thread.waiting += u128::from(sample.weight),
            () if in_region[stack.index()] => {
                thread.work += u128::from(sample.weight);
                samples += 1;
            }
            () => {}
        }
    }
    threads.retain(|_, thread| thread.work > 0);
    let number = threads.len() as f64;
    if number < 2.0 || samples < FEWEST {
        return None;
    }
    let (&last, most) = threads.iter().max_by_key(|(_, thread)| thread.work)?;
    let mean = threads.values().map(|thread| thread.work).sum::<u128>() as f64 / number;
    let others = threads.iter().filter(|(thread, _)| **thread != last).map(|(_, thread)| thread.waiting);
    let spare = (most.work as f64 - mean).min(others.sum::<u128>() as f64 / number);
    let spent = seen.off_cpu.spent(last, seen.span())?;
    let share = spare / (spent.running + spent.blocked).max(1) as f64;
    let is_of_last = seen.selection.of_thread(last);
    let mut work: BTreeMap<_, u128> = BTreeMap::new();
    for sample in is_of_last.samples() {
        let stack = sample.stack.filter(|stack| in_region[stack.index()] && !is_waiting(*stack));
        if let Some(function) = stack.and_then(|stack| functions.attributed(stack)) {
            *work.entry(function).or_default() += u128::from(sample.weight);
        }
    }
    let (does, _) = work.into_iter().max_by_key(|(_, weight)| *weight)?;
    if 100.0 * share < LEAST || !seen.is_steady(|stack| in_region[stack.index()]) {
        return None;
    }
    let title = format!(
        "One of {number} OpenMP threads has most of the work of `{}`; the others wait for it in a busy loop",
        seen.name(does)
    );
    let text = format!(
        "Thread `{}` ({}) does {:.1} times the mean work of parallel regions. OpenMP's waiting loops take {} of all CPU time.",
        capture.threads[last.index()].name,
        capture.threads[last.index()].tid,
        most.work as f64 / mean,
        percent(seen.share(seen.sum(is_waiting)))
    );
    let gain = match seen.loops {
        Some(_) => Gain::of_waiting(share * seen.whole_ns(), seen.whole_ns()),
        None => Gain::of_phase_waiting(spare, spare / share),
    };
    let found = Found::of_program(title, Some(gain)).about(Some(does)).sure(Confidence::Strong);
    Some(found.because(text, "show --view threads"))
}
