//! A file is opened each time something is written or read.
//!
//! Evidence: one owned function opens and closes files in all parts of the steady phase, at a cost; or in
//! loading at a high one, for a file per item. Look-alikes: a log that is rotated, a file that must be seen whole by others after each
//! record, assets that are files.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

/// Least share of CPU time that opening and closing takes.
const LEAST: f64 = 1.0;

/// The same in loading, which opens files anyway.
const LEAST_IN_LOADING: f64 = 10.0;

/// Fewest samples of opening and closing in loading.
const FEWEST: u64 = 15;

pub(super) struct FileReopened;

impl Kind for FileReopened {
    fn name(&self) -> &'static str {
        "file-opened-each-time"
    }

    fn advice(&self) -> &'static str {
        "Keep the file open and buffer what is written to it; keep what was made from equal input instead of making it again."
    }

    fn confirm(&self) -> &'static str {
        "Count `openat` per step: `strace -c -e openat`. One call per record confirms it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let least = if seen.is_loading() { LEAST_IN_LOADING } else { LEAST };
        let opens = |work: Work| work == Work::OpenFile;
        let files = |work: Work| matches!(work, Work::OpenFile | Work::WriteFile | Work::ReadFile | Work::FileState);
        let owners = seen.by_owner(opens).into_iter().filter(|(_, amount)| seen.share(*amount) >= least);
        owners
            .filter_map(|(owner, amount)| {
                let is_open = seen.is_at(owner, opens);
                let lasts = if seen.is_loading() { amount.count >= FEWEST } else { seen.is_steady(is_open) };
                let weight = |of: Work| seen.at_owner(owner, |work| work == of).weight;
                // Files of `/proc` are made at each read, and directories are listed: other kinds are about them.
                if !lasts || weight(Work::KernelFile) * 5 > amount.weight || weight(Work::ListFiles) > amount.weight {
                    return None;
                }
                let all = seen.at_owner(owner, files);
                let (title, confidence) = match seen.is_loading() {
                    true => (format!("`{}` opens many files while loading", seen.name(owner)), Confidence::Fair),
                    false => (format!("`{}` opens a file each time it is used", seen.name(owner)), Confidence::Strong),
                };
                let found = Found::of(seen, owner, title, seen.without(owner, files)).sure(confidence);
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
