//! Edges: which owned function is the cost of a leaf attributed to.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use stepscope_model::{Columns, Note, Table, note};

use crate::notes::{ownership_note, ownership_option};
use crate::query::functions::{Function, FunctionId};
use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};

/// The table `edges`: for each owned function, the leaves that its attributed weight was spent in.
///
/// The weights of one caller add up to what is attributed to it. The leaf is the caller if it spent the weight itself.
pub fn edges(selection: &Selection<'_>) -> Table {
    let (capture, functions) = (selection.capture(), selection.functions());
    let weights = StackWeights::of_samples(selection);
    let total = weights.total();
    let mut sums: FxHashMap<(FunctionId, FunctionId), Amount> = FxHashMap::default();
    for (node, amount) in weights.occupied() {
        if let Some(caller) = functions.nearest_owned(node) {
            *sums.entry((caller, functions.of_node(capture, node))).or_default() += amount;
        }
    }
    let edge = |((caller, leaf), amount)| Edge { caller: functions.get(caller), leaf: functions.get(leaf), amount };
    let mut edges: Vec<Edge<'_>> = sums.into_iter().map(edge).collect();
    edges.sort_by_cached_key(|edge| (Reverse(edge.amount.weight), edge.caller.identity(), edge.leaf.identity()));
    let unit = selection.event().map_or("", |event| &event.unit);
    let mut table = Columns::<Edge<'_>>::new()
        .text("caller", "The nearest owned function.", |edge| (&*edge.caller.name).into())
        .text("caller_module", "Its module.", |edge| (&*edge.caller.module).into())
        .text("leaf", "Leaf of the samples.", |edge| (&*edge.leaf.name).into())
        .text("leaf_module", "Its module.", |edge| (&*edge.leaf.module).into())
        .count("count", "samples", "Number of samples; missing if only sums of weights were imported.", |edge| {
            weights.counts_known.then_some(edge.amount.count)
        })
        .weight("weight", unit, "Weight of the samples.", |edge| edge.amount.weight)
        .percentage("share", "Weight in percent of the selected total.", |edge| edge.amount.percent_of(total))
        .essential("caller leaf weight share")
        .detail("caller_module leaf_module count")
        .table("edges", "Attributed cost by owned function and leaf", edges);
    table.add_notes(note(selection));
    table
}

struct Edge<'a> {
    caller: &'a Function,
    leaf: &'a Function,
    amount: Amount,
}

/// Why there may be no edges.
fn note(selection: &Selection<'_>) -> Option<Note> {
    if selection.functions().ownership_known() {
        return ownership_note(std::slice::from_ref(selection));
    }
    Some(note!(
        Hint,
        "No code is marked as owned, so nothing is attributed. Name your own, perhaps with `{}`, or with `owned` in the lab file.",
        ownership_option(selection)
    ))
}
