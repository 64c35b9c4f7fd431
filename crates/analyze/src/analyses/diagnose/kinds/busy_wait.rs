//! A thread waits in a loop that uses a CPU all the time.
//!
//! Evidence: a thread of its own that never blocks, much of its time at a few instructions or in `sched_yield`, and its other
//! work always at the same time of a step: it works in lockstep with the steps and yet never waits for them. A thread
//! that does nothing else has no such work to show, and may compute: that finding is weak and has no gain. Without steps there is only
//! this one, for a loop of three or four instructions beside other threads that work. Who gives up its CPU (`sched_yield`) again and again
//! waits, whatever else it does. Look-alikes: a
//! thread that computes all the time, which is in lockstep with nothing; a spin of some microseconds before blocking.

use stepscope_model::{FrameKind, LoopShape, Sample, StackId, ThreadId};

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::code::HotLoop;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::functions::FunctionId;
use crate::query::steps::Steps;

/// Most of its life that such a thread is blocked.
const BLOCKED: f64 = 0.02;

/// Least of its life that it runs. On a busy machine it waits for a CPU most of the time.
const RUNNING: f64 = 0.05;

/// The longest loop that only waits, in bytes of code.
const LOOP_BYTES: u64 = 32;

/// The same where no steps are known: some three instructions.
const TINY_BYTES: u64 = 16;

/// Least CPU time of another thread, as a part of that of the one that waits, where no steps are known.
const OF_OTHERS: f64 = 0.1;

/// Least part of its samples that are in the loop.
const LEAST: f64 = 0.3;

/// Other samples than this part show no work.
const NO_WORK: f64 = 0.01;

/// Least share of CPU time of a loop that only another thread can end.
const LEAST_OF_LOOP: f64 = 5.0;

/// Least share of CPU time of giving up the CPU.
const LEAST_OF_YIELDS: f64 = 10.0;

/// Fewest samples of such a loop.
const FEWEST_IN_LOOP: u64 = 20;

/// Fewest samples of a thread, and of its other work.
const FEWEST: (usize, usize) = (100, 20);

/// Parts that a step is divided into.
const PARTS: usize = 5;

/// Chi-square with four degrees of freedom is larger by chance once in 30,000.
const LOCKSTEP: f64 = 26.0;

pub(super) struct BusyWait;

impl Kind for BusyWait {
    fn name(&self) -> &'static str {
        "busy-wait"
    }

    fn advice(&self) -> &'static str {
        "Let it block until there is work: a condition variable, a semaphore, `std::atomic::wait`; spin for microseconds only."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view threads`: it is busy all the time, also while there is no work."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["cpu-held-by-others"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let mut found = spinning_loops(seen);
        found.extend(yielding(seen));
        let Some(window) = seen.selection.window().filter(|_| seen.is_timed() && seen.selection.has_switches()) else {
            return found;
        };
        let own = seen.loop_threads();
        let cpu = seen.selection.cpu_times();
        let has_others = |thread: ThreadId| {
            let own = cpu[thread.index()].unwrap_or(0) as f64;
            cpu.iter()
                .enumerate()
                .any(|(index, one)| index != thread.index() && one.unwrap_or(0) as f64 >= OF_OTHERS * own)
        };
        let loop_bytes = if seen.loops.is_some() { LOOP_BYTES } else { TINY_BYTES };
        let mut by_thread: Vec<Vec<&Sample>> = vec![Vec::new(); seen.capture().threads.len()];
        for sample in seen.selection.samples() {
            by_thread[sample.thread.index()].push(sample);
        }
        let never_blocks = |thread: ThreadId| {
            let life = seen.selection.lifetime(thread).unwrap_or(window.clone());
            let lived = life.end.saturating_sub(life.start).max(1) as f64;
            seen.off_cpu
                .spent(thread, life)
                .is_some_and(|spent| spent.blocked as f64 <= BLOCKED * lived && spent.running as f64 >= RUNNING * lived)
        };
        for (thread, name) in seen.selection.threads().filter(|(thread, _)| !own.contains(thread)) {
            let samples = &by_thread[thread.index()];
            if samples.len() < FEWEST.0 || !never_blocks(thread) || (seen.loops.is_none() && !has_others(thread)) {
                continue;
            }
            let Some(spin) = Spin::of(seen, samples, loop_bytes) else { continue };
            if found.iter().any(|one| one.function == Some(spin.function)) {
                continue;
            }
            let part = spin.samples as f64 / samples.len() as f64;
            let others: Vec<&Sample> =
                samples.iter().zip(&spin.is_in).filter(|(_, is_in)| !**is_in).map(|(one, _)| *one).collect();
            let does_nothing_else = others.len() as f64 <= NO_WORK * samples.len() as f64;
            let is_in_lockstep =
                seen.loops.as_ref().is_some_and(|loops| is_in_lockstep(loops.main(), samples, &others));
            if part < LEAST || !(does_nothing_else || is_in_lockstep) {
                continue;
            }
            let function = seen.name(spin.function);
            let one = if !is_in_lockstep {
                let title =
                    format!("`{function}` repeats a few instructions all the time, on a thread that never blocks");
                let text = format!("Thread `{}` does nothing else; it may wait there or compute.", name.name);
                Found::of_program(title, None).sure(Confidence::Weak).because(text, "show --view threads")
            } else {
                let text = format!(
                    "Thread `{}` never blocks: {} of its samples are in a loop of a few instructions, and its other work always \
                     comes at the same time of a step.",
                    name.name,
                    percent(100.0 * part)
                );
                let title = format!("`{function}` waits in a busy loop");
                let inside = samples.iter().zip(&spin.is_in).filter(|(_, is_in)| **is_in).map(|(one, _)| *one);
                let gain = seen.gain_of_samples(inside);
                Found::of_program(title, Some(gain)).sure(Confidence::Strong).because(text, "show --view threads")
            };
            found.push(one.about(Some(spin.function)));
        }
        found
    }
}

/// Loops whose instructions show that only another thread can end them.
fn spinning_loops(seen: &Seen<'_, '_>) -> Vec<Found> {
    if seen.is_loading() {
        return Vec::new();
    }
    let spins = HotLoop::of_shape(&seen.hot_loops, LoopShape::Spin)
        .into_iter()
        .filter(|spin| seen.share(spin.amount) >= LEAST_OF_LOOP && spin.amount.count >= FEWEST_IN_LOOP);
    let found = spins.map(|spin| {
        let title = format!("`{}` waits in a busy loop: {}", seen.name(spin.function), spin.place());
        let text = format!(
            "The loop takes {} of the CPU time{}. It reads the same memory again and again and changes nothing, so only another \
             thread can end it.",
            percent(seen.share(spin.amount)),
            seen.of_steps()
        );
        let without = parts(spin.inside.iter().copied());
        Found::of(seen, spin.function, title, without).sure(Confidence::Strong).because(text, "show --view threads")
    });
    found.collect()
}

/// Functions that give up their CPU again and again, all the time.
fn yielding(seen: &Seen<'_, '_>) -> Vec<Found> {
    if seen.is_loading() {
        return Vec::new();
    }
    let (yields, capture, functions) = (seen.yields(), seen.capture(), seen.functions());
    // A library that yields, such as a channel, does so for a moment before it blocks.
    let is_of_owner = |stack: StackId| {
        let below = capture.nodes_of(Some(stack)).map(|node| functions.of_node(capture, node));
        let mut below = below.take_while(|id| !functions.is_owner(*id)).map(|id| functions.get(id));
        below.all(|function| function.kind == FrameKind::Kernel || function.name.contains("yield"))
    };
    let waits = |stack: StackId| functions.attributed(stack).filter(|_| yields[stack.index()] && is_of_owner(stack));
    let large = seen.by_function(waits).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST_OF_YIELDS);
    let lasting = large.filter(|(function, _)| seen.recurs(|stack| waits(stack) == Some(*function)));
    let found = lasting.map(|(function, amount)| {
        let title = format!("`{}` waits in a busy loop, and gives up its CPU in each round of it", seen.name(function));
        let text = format!(
            "`sched_yield` takes {} of the CPU time{}. It returns at once where no other thread wants the CPU.",
            percent(seen.share(amount)),
            seen.of_steps()
        );
        let samples = seen.selection.samples();
        let gain = seen.gain_of_samples(samples.filter(|one| one.stack.and_then(waits) == Some(function)));
        let one = Found::of_program(title, Some(gain)).about(Some(function)).sure(Confidence::Strong);
        one.because(text, "show --view threads")
    });
    found.collect()
}

/// A loop of a few instructions, or `sched_yield`.
struct Spin {
    /// The owned function that has it.
    function: FunctionId,
    /// Of each sample of the thread whether it is in the loop.
    is_in: Vec<bool>,
    samples: usize,
}

impl Spin {
    fn of(seen: &Seen<'_, '_>, samples: &[&Sample], loop_bytes: u64) -> Option<Self> {
        let capture = seen.capture();
        let yields = seen.yields();
        // Where the owned function itself is: the address of its innermost frame, what is inlined into it included.
        let place = |sample: &Sample| -> Option<(FunctionId, u64)> {
            let stack = sample.stack?;
            let owner = seen.functions().attributed(stack)?;
            if yields[stack.index()] {
                // All of it is one place.
                return Some((owner, u64::MAX));
            }
            let leaf = &capture.frames[capture.stacks[stack.index()].frame.index()];
            let kind = seen.functions().get(seen.functions().of_node(capture, stack)).kind;
            let of_owner = capture
                .nodes_of(Some(stack))
                .find(|node| !capture.frames[capture.stacks[node.index()].frame.index()].inlined)
                .is_some_and(|node| seen.functions().of_node(capture, node) == owner);
            (of_owner && kind != FrameKind::Kernel).then_some((owner, leaf.address?))
        };
        let places: Vec<Option<(FunctionId, u64)>> = samples.iter().map(|sample| place(sample)).collect();
        let mut sorted: Vec<(FunctionId, u64)> = places.iter().flatten().copied().collect();
        sorted.sort_unstable_by_key(|(function, address)| (function.index(), *address));
        let is_near =
            |first: &(FunctionId, u64), one: &(FunctionId, u64)| one.0 == first.0 && one.1 - first.1 < loop_bytes;
        let (mut first, mut most) = (0, (0, 0));
        for last in 0..sorted.len() {
            while !is_near(&sorted[first], &sorted[last]) {
                first += 1;
            }
            if last + 1 - first > most.1 - most.0 {
                most = (first, last + 1);
            }
        }
        let (from, to) = (*sorted.get(most.0)?, *sorted.get(most.1.checked_sub(1)?)?);
        let is_in = |place: &Option<(FunctionId, u64)>| {
            place.is_some_and(|(function, address)| function == from.0 && (from.1..=to.1).contains(&address))
        };
        let is_in: Vec<bool> = places.iter().map(is_in).collect();
        let samples = is_in.iter().filter(|is_in| **is_in).count();
        Some(Self { function: from.0, is_in, samples })
    }
}

/// Whether the thread does its other work at another time of a step than all that it does.
fn is_in_lockstep(steps: &Steps, all: &[&Sample], others: &[&Sample]) -> bool {
    let parts = |samples: &[&Sample]| -> [f64; PARTS] {
        let mut parts = [0.0; PARTS];
        for time in samples.iter().filter_map(|sample| sample.time_ns) {
            let Some(step) = steps.at(time).map(|step| steps.range(step)) else { continue };
            let at = (time - step.start) as usize * PARTS / (step.end - step.start).max(1) as usize;
            parts[at.min(PARTS - 1)] += 1.0;
        }
        parts
    };
    let (all, others) = (parts(all), parts(others));
    let (sum, number) = (all.iter().sum::<f64>(), others.iter().sum::<f64>());
    if number < FEWEST.1 as f64 {
        return false;
    }
    let expected = all.map(|count| (count / sum * number).max(0.5));
    others.iter().zip(expected).map(|(seen, expected)| (seen - expected).powi(2) / expected).sum::<f64>() > LOCKSTEP
}
