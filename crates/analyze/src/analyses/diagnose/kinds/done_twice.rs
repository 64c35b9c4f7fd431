//! Loading does the same work twice.
//!
//! Evidence: one owned function runs in two separate pieces of loading, called from two different places, and both pieces
//! cost about the same and consist of the same functions. Look-alikes: two files that are alike. Hashes of the input would
//! tell.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use stepscope_model::{Sample, StackId};

/// Least share of loading's CPU time.
const LEAST: f64 = 8.0;

/// Least cost of the smaller piece, as a part of the larger.
const ALIKE: f64 = 0.6;

/// Least samples of the smaller piece.
const FEWEST: usize = 15;

pub(super) struct DoneTwice;

impl Kind for DoneTwice {
    fn name(&self) -> &'static str {
        "work-done-twice"
    }

    fn advice(&self) -> &'static str {
        "Keep the first result and pass it on."
    }

    fn confirm(&self) -> &'static str {
        "Compare the inputs: `record --with syscalls` shows a file that is read twice."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if !seen.is_loading() {
            return Vec::new();
        }
        let mut found: Vec<(Found, Vec<bool>)> = Vec::new();
        for (function, amount) in seen.inclusive().into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST) {
            let Some([first, second]) = two_pieces(seen, function) else { continue };
            let under = seen.under(function);
            // What an earlier finding calls is done twice because that is.
            let inside = |outer: &[bool]| {
                let both = seen.sum(|stack| outer[stack.index()] && under[stack.index()]);
                both.weight * 10 >= amount.weight * 8
            };
            if found.iter().any(|(_, outer)| inside(outer)) {
                continue;
            }
            let part = second.weight.min(first.weight) as f64 / amount.weight.max(1) as f64;
            let without = under.iter().map(|under| if *under { part as f32 } else { 0.0 }).collect();
            let title = format!("`{}` does the same work twice while loading", seen.name(function));
            let one = Found::of(seen, function, title, without).sure(Confidence::Fair).because(
                format!(
                    "It runs for {} from one caller, then for {} from another.",
                    seen.cost(first.weight),
                    seen.cost(second.weight)
                ),
                explain(seen, function),
            );
            found.push((one, under));
        }
        found.into_iter().map(|(found, _)| found).collect()
    }
}

/// An uninterrupted run of a function.
struct Piece {
    range: Range<u64>,
    caller: Option<StackId>,
    weight: u64,
    samples: usize,
    /// Weight by the functions that it consists of.
    parts: FxHashMap<FunctionId, u64>,
}

/// The two pieces of a function's run, if they are alike and have different callers.
fn two_pieces(seen: &Seen<'_, '_>, function: FunctionId) -> Option<[Piece; 2]> {
    let capture = seen.capture();
    let outermost = |sample: &Sample| {
        let nodes: Vec<StackId> = capture.nodes_of(sample.stack).collect();
        nodes.into_iter().filter(|node| seen.functions().of_node(capture, *node) == function).last()
    };
    let mut pieces: Vec<Piece> = Vec::new();
    for sample in seen.selection.samples() {
        let (Some(time), Some(node)) = (sample.time_ns, outermost(sample)) else { continue };
        let caller = capture.stacks[node.index()].parent;
        let leaf = sample.stack.map(|stack| seen.functions().of_node(capture, stack));
        match pieces.last_mut().filter(|piece| piece.caller == caller) {
            Some(piece) => piece.add(time, sample.weight, leaf),
            None => {
                let mut piece = Piece { range: time..time, caller, weight: 0, samples: 0, parts: FxHashMap::default() };
                piece.add(time, sample.weight, leaf);
                pieces.push(piece);
            }
        }
    }
    // What one caller does now and then again is one loop; two callers in turn are no two pieces.
    let [first, second]: [Piece; 2] = pieces.try_into().ok()?;
    let smaller = first.weight.min(second.weight) as f64 / first.weight.max(second.weight).max(1) as f64;
    let enough = first.samples.min(second.samples) >= FEWEST;
    (enough && smaller >= ALIKE && first.range.end < second.range.start && first.likeness(&second) >= ALIKE)
        .then_some([first, second])
}

impl Piece {
    fn add(&mut self, time: u64, weight: u64, leaf: Option<FunctionId>) {
        self.range.end = time;
        self.weight += weight;
        self.samples += 1;
        if let Some(leaf) = leaf {
            *self.parts.entry(leaf).or_default() += weight;
        }
    }

    /// How much of the pieces' shares by function is common to both, 0 to 1.
    fn likeness(&self, other: &Self) -> f64 {
        let share = |piece: &Self, id: &FunctionId| {
            piece.parts.get(id).map_or(0.0, |weight| *weight as f64 / piece.weight.max(1) as f64)
        };
        self.parts.keys().map(|id| share(self, id).min(share(other, id))).sum()
    }
}
