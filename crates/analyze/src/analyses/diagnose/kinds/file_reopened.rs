//! A file is opened each time something is written or read.
//!
//! Evidence: one owned function opens and closes files in all parts of the steady phase, at a cost. Look-alikes: a log that
//! is rotated, a file that must be seen whole by others after each record.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

/// Least share of CPU time that opening and closing takes.
const LEAST: f64 = 1.0;

pub(super) struct FileReopened;

impl Kind for FileReopened {
    fn name(&self) -> &'static str {
        "file-opened-each-time"
    }

    fn advice(&self) -> &'static str {
        "Keep the file open, and buffer what is written to it."
    }

    fn confirm(&self) -> &'static str {
        "Count `openat` per step: `strace -c -e openat`. One call per record confirms it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let opens = |work: Work| work == Work::OpenFile;
        let files = |work: Work| matches!(work, Work::OpenFile | Work::WriteFile | Work::ReadFile | Work::FileState);
        let owners = seen.by_owner(opens).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        owners
            .filter_map(|(owner, amount)| {
                let is_open = seen.is_at(owner, opens);
                if !seen.is_steady(is_open)
                    || seen.at_owner(owner, |work| work == Work::ListFiles).weight > amount.weight
                {
                    return None;
                }
                let all = seen.at_owner(owner, files);
                let title = format!("`{}` opens a file each time it is used", seen.name(owner));
                let found = Found::of(seen, owner, title, seen.without(owner, files)).sure(Confidence::Strong);
                Some(found.because(
                    format!(
                        "Opening and closing take {} of the CPU time, all its file calls {}.",
                        percent(seen.share(amount)),
                        percent(seen.share(all))
                    ),
                    explain(seen, owner),
                ))
            })
            .collect()
    }
}
