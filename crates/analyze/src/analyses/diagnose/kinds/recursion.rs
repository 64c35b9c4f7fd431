//! A chain is climbed again for each object: a function calls itself up to the root, in every step.
//!
//! Evidence: an owned function is on its stacks three times and more on average, in all parts of the steady phase.
//! Look-alikes: a tree that is walked once from the top, which no cache saves.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};

const LEAST: f64 = 5.0;

/// Least mean number of times that the function is on a stack.
const DEPTH: f64 = 3.0;

pub(super) struct Recursion;

impl Kind for Recursion {
    fn name(&self) -> &'static str {
        "chain-climbed-each-time"
    }

    fn advice(&self) -> &'static str {
        "Compute the chain once per step from the top and keep the results, with a flag for what changed."
    }

    fn confirm(&self) -> &'static str {
        "Count the calls per step against the number of objects: more calls than objects confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() || seen.loops.is_none() {
            return Vec::new();
        }
        let owners = seen.inclusive().into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        let mut found = Vec::new();
        for (function, amount) in owners {
            let depth = mean_depth(seen, function);
            if depth < DEPTH {
                continue;
            }
            let under = seen.under(function);
            let title = format!("`{}` calls itself along a chain in every step", seen.name(function));
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

/// How often a function is on the stacks that it is on.
fn mean_depth(seen: &Seen<'_, '_>, function: crate::query::functions::FunctionId) -> f64 {
    let capture = seen.capture();
    let mut depths: Vec<u32> = Vec::with_capacity(capture.stacks.len());
    for (index, node) in capture.stacks.iter().enumerate() {
        let above = node.parent.map_or(0, |parent| depths[parent.index()]);
        let id = seen.functions().of_node(capture, stepscope_model::StackId::from_index(index));
        depths.push(above + u32::from(id == function));
    }
    let (mut sum, mut weight) = (0.0, 0.0);
    for (stack, amount) in seen.cpu.occupied().filter(|(stack, _)| depths[stack.index()] > 0) {
        sum += f64::from(depths[stack.index()]) * amount.weight as f64;
        weight += amount.weight as f64;
    }
    if weight > 0.0 { sum / weight } else { 0.0 }
}
