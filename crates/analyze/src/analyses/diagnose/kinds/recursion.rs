//! A chain is climbed again for each object: a function calls itself up to the root, in every step.
//!
//! Evidence: an owned function is on its stacks three times and more on average, in all parts of the steady phase. It calls
//! itself at one place, and its outermost calls have as much work of their own as the inner ones, at all times of a step: each
//! object starts a climb. Look-alikes: a tree that is walked from its root, whose outermost call is one; a division into parts (a
//! sort, the building of a tree, a parser), which calls itself at several places, or whose outermost calls come first in a step; a search
//! that tries one choice after the other, whose [code](super::super::code) calls itself in a loop.
//!
//! Without steps, the [code](super::super::code) has to show that the function has no loop: a walk of a tree calls itself once for each child,
//! and the shooting of a ray looks at all that it may meet.
//!
//! The same as a [loop](super::super::code) of machine code: it follows one chain of pointers to its end, without a decision and
//! without a write, and is entered again and again. Look-alikes: a list that is summed once a step, which is entered once.

use std::collections::BTreeMap;

use crate::analyses::diagnose::code::HotLoop;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use stepscope_model::{FrameId, LoopShape, StackId};

const LEAST: f64 = 5.0;

/// Least mean number of times that the function is on a stack.
const DEPTH: f64 = 3.0;

/// Least part of the calls of itself that are at one place.
const AT_ONE_PLACE: f64 = 0.9;

/// Least work of outermost calls, as a part of that of the calls at the depth with most of it.
const OUTERMOST: f64 = 0.4;

/// Without steps, the least part of its time that is its own.
const ALONE: f64 = 0.5;

/// Least share of CPU time of a loop that follows a chain.
const LEAST_OF_LOOP: f64 = 15.0;

/// Fewest samples around such a loop, and most of its cost as a multiple of theirs: chains that are that short are followed often.
const FEWEST_ENTRIES: u64 = 2;
const MOST_OF_ENTRIES: u128 = 2_000;

/// Parts that a step is divided into.
const PARTS: usize = 20;

/// Chi-square with 19 degrees of freedom is larger by chance once in 1,000.
const BY_CHANCE: f64 = 43.8;

pub(super) struct Recursion;

impl Kind for Recursion {
    fn name(&self) -> &'static str {
        "chain-climbed-each-time"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Compute the chain once per step from the top and keep the results, with a flag for what changed."
    }

    fn confirm(&self) -> &'static str {
        "Count the calls per step against the number of objects: more calls than objects confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let mut found = climbing_loops(seen);
        let owners = seen.inclusive().into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        for (function, amount) in owners {
            let Some(depth) = depth_of_chain(seen, function) else { continue };
            let under = seen.under(function);
            let title = format!("`{}` calls itself along a chain {}", seen.name(function), seen.repeatedly());
            let without = parts(under.iter().copied());
            found.push(Found::of(seen, function, title, without).sure(Confidence::Fair).because(
                format!(
                    "It is {depth:.1} times on its stacks, which are {} of the CPU time.",
                    percent(seen.share(amount))
                ),
                explain(seen, function),
            ));
        }
        found
    }
}

/// Loops that follow a chain of pointers, and that are entered often.
fn climbing_loops(seen: &Seen<'_, '_>) -> Vec<Found> {
    let chains = HotLoop::of_shape(&seen.hot_loops, LoopShape::Chain).into_iter().filter(|chain| {
        let at = |stack: StackId| chain.inside[stack.index()];
        let (inside, edges) = (chain.amount.weight, chain.edges.weight);
        let is_entered_often = chain.edges.count >= FEWEST_ENTRIES && inside <= MOST_OF_ENTRIES * edges;
        seen.share(chain.amount) >= LEAST_OF_LOOP && is_entered_often && seen.is_steady(at)
    });
    let found = chains.map(|chain| {
        let title = format!(
            "`{}` follows a chain of pointers to its end again and again: {}",
            seen.name(chain.function),
            chain.place()
        );
        let text = format!(
            "The loop takes {} of the CPU time{}. It writes nothing, so each round along the chain computes all of it again.",
            percent(seen.share(chain.amount)),
            seen.of_steps()
        );
        let without = parts(chain.inside.iter().copied());
        Found::of(seen, chain.function, title, without)
            .sure(Confidence::Fair)
            .because(text, explain(seen, chain.function))
    });
    found.collect()
}

/// How often a function is on the stacks that it is on, if it climbs chains.
fn depth_of_chain(seen: &Seen<'_, '_>, function: FunctionId) -> Option<f64> {
    let capture = seen.capture();
    let subtrees = seen.cpu.subtrees(capture);
    // Of each node: how often the function is on its stack, and the frame of the innermost time.
    let mut nodes: Vec<(usize, Option<FrameId>)> = Vec::with_capacity(capture.stacks.len());
    let mut places: BTreeMap<(Option<u32>, Option<u64>), f64> = BTreeMap::new();
    let (mut straight, mut looped) = (0.0, 0.0);
    for (index, node) in capture.stacks.iter().enumerate() {
        let (depth, innermost) = node.parent.map_or((0, None), |parent| nodes[parent.index()]);
        if seen.functions().of_node(capture, StackId::from_index(index)) != function {
            nodes.push((depth, innermost));
            continue;
        }
        if let Some(caller) = innermost {
            let frame = &capture.frames[caller.index()];
            let address = frame.address.filter(|_| frame.line.is_none());
            let weight = subtrees[index].weight as f64;
            *places.entry((frame.line, address)).or_default() += weight;
            if seen.straight_calls.get(caller.index()).is_some_and(|one| *one) {
                straight += weight;
            }
            if seen.looped_calls.get(caller.index()).is_some_and(|one| *one) {
                looped += weight;
            }
        }
        nodes.push((depth + 1, Some(node.frame)));
    }
    let (mut at_depth, mut samples): (Vec<f64>, f64) = (Vec::new(), 0.0);
    for (stack, amount) in seen.cpu.occupied() {
        let depth = nodes[stack.index()].0;
        samples += if depth > 0 { amount.count as f64 } else { 0.0 };
        at_depth.resize(at_depth.len().max(depth + 1), 0.0);
        at_depth[depth] += amount.weight as f64;
    }
    let on_it = at_depth.get(1..).filter(|on_it| !on_it.is_empty())?;
    let all: f64 = on_it.iter().sum();
    let mean = on_it.iter().zip(1..).map(|(weight, depth)| weight * f64::from(depth)).sum::<f64>() / all.max(1.0);
    let most = on_it.iter().fold(0.0, |most: f64, weight| most.max(*weight));
    let (at_one, at_all) = (places.values().fold(0.0, |most: f64, one| most.max(*one)), places.values().sum::<f64>());
    // A long chain has few samples at each depth: what the outermost calls have may be two standard errors more.
    let outermost = on_it[0] * samples / all.max(1.0);
    let error = 2.0 * outermost.max(1.0).sqrt() * all / samples.max(1.0);
    if looped >= AT_ONE_PLACE * at_all && at_all > 0.0 {
        return None;
    }
    let is_chain = at_one >= AT_ONE_PLACE * at_all && on_it[0] + error >= OUTERMOST * most;
    if seen.loops.is_none() && !(straight >= AT_ONE_PLACE * at_all && is_alone(seen, function)) {
        return None;
    }
    let outermost: Vec<Option<bool>> = nodes.iter().map(|(depth, _)| (*depth > 0).then_some(*depth == 1)).collect();
    (mean >= DEPTH && is_chain && come_at_all_times(seen, &outermost)).then_some(mean)
}

/// Whether most of a function's time is its own, not that of other functions of the program, and spent all the time.
fn is_alone(seen: &Seen<'_, '_>, function: FunctionId) -> bool {
    let under = seen.under(function);
    let (all, own) = (seen.sum(|stack| under[stack.index()]), seen.at_owner(function, |_| true));
    own.weight as f64 >= ALONE * all.weight as f64 && seen.is_steady(|stack| under[stack.index()])
}

/// Whether outermost calls are sampled at the same times of a step as all others. `outermost` has each node that the function is
/// on.
fn come_at_all_times(seen: &Seen<'_, '_>, outermost: &[Option<bool>]) -> bool {
    let Some(loops) = &seen.loops else { return true };
    let steps = loops.main();
    let (mut of_all, mut of_outermost) = ([0.0; PARTS], [0.0; PARTS]);
    for sample in seen.selection.samples() {
        let Some(is_outermost) = sample.stack.and_then(|stack| outermost[stack.index()]) else { continue };
        let Some(time) = sample.time_ns else { continue };
        let Some(step) = steps.at(time).map(|step| steps.range(step)) else { continue };
        let part = (time - step.start) as usize * PARTS / (step.end - step.start).max(1) as usize;
        of_all[part.min(PARTS - 1)] += 1.0;
        of_outermost[part.min(PARTS - 1)] += f64::from(u8::from(is_outermost));
    }
    let share = of_outermost.iter().sum::<f64>() / of_all.iter().sum::<f64>().max(1.0);
    let parts = of_all.iter().zip(of_outermost).filter(|(all, _)| **all > 0.0);
    let distance = |(all, outermost): (&f64, f64)| (outermost - share * all).powi(2) / (share * all).max(0.5);
    parts.map(distance).sum::<f64>() <= BY_CHANCE
}
