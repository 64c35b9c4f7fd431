//! Something is found by comparing texts one after the other, in every step.
//!
//! Evidence: comparisons of texts or of memory (`memcmp`, `strcmp`, `operator==`) cost directly below one owned function, in
//! all parts of the steady phase, and not within a map, a set or a sort. Look-alikes: data that is compared to find what
//! changed; a sort of the program's own.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_model::FrameId;

use super::list_search::is_written_out;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use crate::query::work::Work;

/// Least share of CPU time that comparisons take.
const LEAST: f64 = 5.0;

pub(super) struct TextLookUp;

impl Kind for TextLookUp {
    fn name(&self) -> &'static str {
        "text-compared-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Look it up once and keep the result; use a number or a pointer as the key."
    }

    fn confirm(&self) -> &'static str {
        "Count its calls with `diagnose --deepen`: many calls per step that give the same result confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let compares = |work: Work| work == Work::Comparison;
        seen.lasting(LEAST, compares)
            .filter(|(owner, _)| !is_written_out(seen, *owner) && !is_of_sort(seen, *owner))
            .map(|(owner, amount)| {
                let title = format!("`{}` compares texts one after the other {}", seen.name(owner), seen.repeatedly());
                // Going from one to the next is part of it, unless the function does much else.
                let own = seen.at_owner(owner, |work| work == Work::Own);
                let is_loop = own.weight <= 2 * amount.weight;
                let goes = |work: Work| match work {
                    Work::Comparison | Work::Container | Work::Text => true,
                    Work::Own => is_loop,
                    _ => false,
                };
                Found::of(seen, owner, title, seen.without(owner, goes)).sure(Confidence::Fair).because(
                    format!("Comparisons of memory take {} of the CPU time.", percent(seen.share(amount))),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}

/// Least part of the comparisons below a function that divides its work, and of its calls of itself that come from a second place.
const DIVIDED: f64 = 0.3;
const SECOND: f64 = 0.2;

/// Whether a function without steps compares for a sort of the program's own: a good part of it is below a function that calls itself from two places, each for
/// a part of the work, as a merge does. A sort compares each text with a few others.
fn is_of_sort(seen: &Seen<'_, '_>, owner: FunctionId) -> bool {
    if seen.pieces.is_none() {
        return false;
    }
    let capture = seen.capture();
    let at = seen.is_at(owner, |work| work == Work::Comparison);
    let mut all = 0;
    let mut places: BTreeMap<FunctionId, BTreeMap<FrameId, u128>> = BTreeMap::new();
    for (stack, amount) in seen.cpu.occupied().filter(|(stack, _)| at(*stack)) {
        all += amount.weight;
        // Of each function that is on the stack twice or more, the call of itself that is nearest to the root.
        let mut calls: BTreeMap<FunctionId, FrameId> = BTreeMap::new();
        let mut seen_below: BTreeSet<FunctionId> = BTreeSet::new();
        for node in capture.nodes_of(Some(stack)) {
            let function = seen.functions().of_node(capture, node);
            if seen.functions().is_owner(function) && !seen_below.insert(function) {
                calls.insert(function, capture.stacks[node.index()].frame);
            }
        }
        for (function, frame) in calls {
            *places.entry(function).or_default().entry(frame).or_default() += amount.weight;
        }
    }
    places.values().any(|of_frame| {
        let divided: u128 = of_frame.values().sum();
        let most = of_frame.values().max().copied().unwrap_or(0);
        divided as f64 >= DIVIDED * all as f64 && (divided - most) as f64 >= SECOND * divided as f64
    })
}
