//! A directory is listed, and each entry looked at, to find a few.
//!
//! Evidence: one owned function spends its time listing directories, and opening files or asking for their state. Look-alikes:
//! a backup, an index that is built once.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

const LEAST: f64 = 2.0;

pub(super) struct DirectoryScan;

impl Kind for DirectoryScan {
    fn name(&self) -> &'static str {
        "directory-scan"
    }

    fn advice(&self) -> &'static str {
        "Keep an index of the files, or choose by name before asking for their state."
    }

    fn confirm(&self) -> &'static str {
        "Count the entries read and those used: `strace -c -e getdents64,newfstatat,statx,openat`."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let lists = |work: Work| matches!(work, Work::ListFiles | Work::FileState);
        let all_files = |work: Work| {
            lists(work)
                || matches!(work, Work::OpenFile | Work::ReadFile | Work::Text | Work::Formatting | Work::Allocation)
        };
        let owners = seen.by_owner(lists).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        owners
            .filter(|(owner, amount)| {
                // Opening a file asks for its state, too; only a scan lists.
                let listing = seen.at_owner(*owner, |work| work == Work::ListFiles);
                listing.weight * 5 >= amount.weight
            })
            .map(|(owner, amount)| {
                let title = format!("`{}` lists a directory and looks at each file", seen.name(owner));
                Found::of(seen, owner, title, seen.without(owner, all_files)).because(
                    format!(
                        "Listing and asking for the state of files take {} of the CPU time.",
                        percent(seen.share(amount))
                    ),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}
