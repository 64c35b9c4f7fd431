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
        if seen.is_loading() {
            return Vec::new();
        }
        let compares = |work: Work| work == Work::Comparison;
        seen.lasting(LEAST, compares)
            .filter(|(owner, _)| !is_written_out(seen, *owner))
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
