//! Memory is touched for the first time in every step: a storm of page faults.
//!
//! Evidence: faults below one owned function in all parts of the steady phase, outside of allocators. Look-alikes: files that
//! are mapped and read once.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

const LEAST: f64 = 3.0;

pub(super) struct PageFaults;

impl Kind for PageFaults {
    fn name(&self) -> &'static str {
        "page-faults-each-step"
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
        let owners = seen.by_owner(faults).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        owners
            .filter(|(owner, _)| {
                let at = seen.is_at(*owner, faults);
                seen.is_steady(at)
            })
            .map(|(owner, amount)| {
                let title = format!("`{}` touches new memory {}", seen.name(owner), seen.repeatedly());
                Found::of(seen, owner, title, seen.without(owner, faults)).sure(Confidence::Strong).because(
                    format!("Page faults take {} of the CPU time.", percent(seen.share(amount))),
                    "show --view faults",
                )
            })
            .collect()
    }
}
