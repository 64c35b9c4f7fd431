//! Something is found by comparing texts one after the other, in every step.
//!
//! Evidence: comparisons of texts or of memory (`memcmp`, `strcmp`, `operator==`) cost directly below one owned function, in
//! all parts of the steady phase, and not within a map, a set or a sort. Look-alikes: data that is compared to find what
//! changed.

use super::list_search::is_written_out;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

/// Least share of CPU time that comparisons take.
const LEAST: f64 = 5.0;

pub(super) struct TextLookUp;

impl Kind for TextLookUp {
    fn name(&self) -> &'static str {
        "text-compared-each-step"
    }

    fn advice(&self) -> &'static str {
        "Look it up once and keep the result; use a number or a pointer as the key."
    }

    fn confirm(&self) -> &'static str {
        "Count its calls with `diagnose --deepen`: many calls per step that give the same result confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() || seen.loops.is_none() {
            return Vec::new();
        }
        let compares = |work: Work| work == Work::Comparison;
        seen.lasting(LEAST, compares)
            .filter(|(owner, _)| !is_written_out(seen, *owner))
            .map(|(owner, amount)| {
                let title = format!("`{}` compares texts one after the other in every step", seen.name(owner));
                // Going from one to the next is part of it.
                let goes = |work: Work| matches!(work, Work::Comparison | Work::Container | Work::Text | Work::Own);
                Found::of(seen, owner, title, seen.without(owner, goes)).sure(Confidence::Fair).because(
                    format!("Comparisons of memory take {} of the CPU time.", percent(seen.share(amount))),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}
