//! Memory is touched for the first time in every step: a storm of page faults.
//!
//! Evidence: faults below one owned function in all parts of the steady phase, outside of allocators. Look-alikes: files that
//! are mapped and read once.
//!
//! The gain includes the part of mapping and unmapping memory that the function has of all page faults.

use super::thrown_away;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::work::Work;

const LEAST: f64 = 3.0;

pub(super) struct PageFaults;

impl Kind for PageFaults {
    fn name(&self) -> &'static str {
        "page-faults-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Reuse the memory: large blocks that are released go back to the kernel and fault again."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view faults` for the faults per step and their callers."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let faults = |work: Work| work == Work::PageFault;
        let (maps, unmaps) = (seen.paths_through(thrown_away::maps), thrown_away::unmaps(seen));
        let all = seen.sum(|stack| faults(seen.work[stack.index()]));
        let owners = seen.by_owner(faults).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        owners
            .filter(|(owner, _)| {
                let at = seen.is_at(*owner, faults);
                // In a part of the run: memory that is unmapped in between.
                seen.is_steady(&at) || (seen.is_in_pieces(&at) && seen.take_turns(&at, |stack| unmaps[stack.index()]))
            })
            .map(|(owner, amount)| {
                let title = format!("`{}` touches new memory {}", seen.name(owner), seen.repeatedly());
                let mut without = seen.without(owner, faults);
                let part = amount.weight as f32 / all.weight.max(1) as f32;
                without.iter_mut().zip(&maps).filter(|(_, maps)| **maps).for_each(|(one, _)| *one = one.max(part));
                Found::of(seen, owner, title, without).sure(Confidence::Strong).because(
                    format!("Page faults take {} of the CPU time.", percent(seen.share(amount))),
                    "show --view faults",
                )
            })
            .collect()
    }
}
