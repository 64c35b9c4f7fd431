//! A list is searched from its start again and again.
//!
//! Evidence: search functions of the standard library (`std::find`, `Iterator::any`, `slice::contains`) cost below one owned
//! function: in all parts of the steady phase, or in loading. A search that costs this much meets many elements.
//! Look-alikes: a pass that has to meet all elements, such as a test whether any body moves.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

/// Least share of CPU time. Short lists are searched, too, and rightly so.
const LEAST: f64 = 20.0;

pub(super) struct ListSearch;

impl Kind for ListSearch {
    fn name(&self) -> &'static str {
        "list-search"
    }

    fn advice(&self) -> &'static str {
        "Look up by a map, a set or an index instead of searching the list."
    }

    fn confirm(&self) -> &'static str {
        "Record several sizes with `stepscope sweep`: a cost that grows with the square of the size confirms it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let searches = |work: Work| work == Work::Search;
        let owners = seen.by_owner(searches).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        let lasting = owners.filter(|(owner, _)| seen.is_loading() || seen.is_steady(seen.is_at(*owner, searches)));
        lasting
            .map(|(owner, amount)| {
                let share = seen.share(amount);
                let title = format!("`{}` searches a list from its start", seen.name(owner));
                Found::of(seen, owner, title, seen.without(owner, searches)).sure(Confidence::Fair).because(
                    format!("Searches of the standard library take {} of the CPU time.", percent(share)),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}
