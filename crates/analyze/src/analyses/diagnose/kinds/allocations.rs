//! Memory is allocated and released in every step.
//!
//! Evidence: below one owned function, allocation and the growth of containers cost in all parts of the steady phase. With
//! look-ups beside them and no growth, the allocations are temporaries, such as the string that a key is made of.
//! Look-alikes: two buffers that are swapped; allocations that live on. A heap recording shows lifetimes.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

/// Least share of CPU time.
const LEAST: f64 = 3.0;

/// The same of temporaries for look-ups.
const LEAST_FOR_LOOK_UPS: f64 = 1.5;

pub(super) struct Allocations;

impl Kind for Allocations {
    fn name(&self) -> &'static str {
        "allocations-each-step"
    }

    fn advice(&self) -> &'static str {
        "Keep the container or buffer between steps, reserve its size, and change it in place; look up by a borrowed key."
    }

    fn confirm(&self) -> &'static str {
        "Record the heap (`heaptrack`): allocations of one step that die in the same step confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() || seen.loops.is_none() {
            return Vec::new();
        }
        let allocates = |work: Work| matches!(work, Work::Allocation | Work::ContainerGrowth);
        let mut found = Vec::new();
        for (owner, amount) in seen.by_owner(allocates) {
            let growth = seen.at_owner(owner, |work| work == Work::ContainerGrowth);
            let looks_up = seen.at_owner(owner, |work| matches!(work, Work::Container | Work::Copy));
            // A key that is made for each look-up costs little beside it, and is for nothing.
            let for_look_ups = growth.weight * 4 < amount.weight && looks_up.weight > 2 * amount.weight;
            let least = if for_look_ups { LEAST_FOR_LOOK_UPS } else { LEAST };
            let at = seen.is_at(owner, allocates);
            if seen.share(amount) < least || !seen.is_steady(at) {
                continue;
            }
            let name = seen.name(owner);
            let title = match () {
                () if for_look_ups => format!("`{name}` makes a temporary for each look-up"),
                () if growth.weight * 3 > amount.weight => format!("`{name}` builds a container in every step"),
                () => format!("`{name}` allocates and releases memory in every step"),
            };
            let confidence = if seen.share(amount) >= 10.0 { Confidence::Strong } else { Confidence::Fair };
            found.push(Found::of(seen, owner, title, seen.without(owner, allocates)).sure(confidence).because(
                format!(
                    "Allocation and growing containers take {} of the CPU time, all the time.",
                    percent(seen.share(amount))
                ),
                explain(seen, owner),
            ));
        }
        found
    }
}
