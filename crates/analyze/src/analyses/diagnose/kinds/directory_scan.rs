//! A directory is listed, and each entry looked at, to find a few.
//!
//! Evidence: an owned function lists directories, and it or what it calls opens files or asks for their state. Look-alikes:
//! a backup, an index that is built once. Recorded system calls count what is listed and looked at.

use crate::analyses::diagnose::finding::{Found, explain, percent};
use crate::analyses::diagnose::recorded::{OPENS, STATES};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::work::Work;

/// Least share of CPU time of all its work with files.
const LEAST: f64 = 2.0;

/// Least part of it that listing takes: a call returns the names of many files.
const LISTING: f64 = 0.04;

/// Fewest files that are looked at for each call that lists a directory.
const FILES_PER_LISTING: u64 = 10;

pub(super) struct DirectoryScan;

impl Kind for DirectoryScan {
    fn name(&self) -> &'static str {
        "directory-scan"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Keep an index of the files, or choose by name before asking for their state."
    }

    fn confirm(&self) -> &'static str {
        "Record system calls (`record --with syscalls`): many files opened or asked for per listed directory confirm it."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["file-state-each-step", "allocations-each-step"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let lists = seen.by_owner(|work| work == Work::ListFiles);
        lists
            .into_iter()
            .filter_map(|(owner, listing)| {
                let under = seen.under(owner);
                let files = seen.sum(|stack| under[stack.index()] && is_of_files(seen.work[stack.index()]));
                let state = seen.sum(|stack| under[stack.index()] && looks_at(seen.work[stack.index()]));
                if seen.share(files) < LEAST || (listing.weight as f64) < LISTING * files.weight as f64 {
                    return None;
                }
                // A function that does little else makes its lists and paths for the scan.
                let all = seen.sum(|stack| under[stack.index()]);
                let is_for_scan = files.weight * 2 >= all.weight;
                let goes = |index: usize| {
                    let work = seen.work[index];
                    under[index] && (is_of_files(work) || prepares(work) || (is_for_scan && work != Work::Own))
                };
                let title = format!("`{}` lists a directory and looks at each file", seen.name(owner));
                let without = parts((0..under.len()).map(goes));
                let found = Found::of(seen, owner, title, without).because(
                    format!(
                        "Listing takes {} of the CPU time, opening files and asking for their state {}.",
                        percent(seen.share(listing)),
                        percent(seen.share(state))
                    ),
                    explain(seen, owner),
                );
                Some(with_calls(seen, &under, found))
            })
            .collect()
    }
}

/// A finding with the number of files that recorded system calls look at.
fn with_calls(seen: &Seen<'_, '_>, under: &[bool], found: Found) -> Found {
    if !seen.recorded.has_calls() {
        return found;
    }
    let count = |names: &[&str]| seen.recorded.count(names, |stack| under[stack.index()]);
    let (lists, opened, asked) = (count(&["getdents", "getdents64"]), count(&OPENS), count(&STATES));
    let detail = format!(
        "{} of `getdents64`, {}, {}.",
        seen.recorded.count_text(lists, "calls"),
        seen.recorded.count_text(opened, "files opened"),
        seen.recorded.count_text(asked, "files asked for their state")
    );
    match opened + asked >= FILES_PER_LISTING * lists.max(1) {
        true => found.confirmed(detail, "show --view syscalls"),
        false => found.because(detail, "show --view syscalls"),
    }
}

fn looks_at(work: Work) -> bool {
    matches!(work, Work::FileState | Work::OpenFile | Work::ReadFile)
}

fn is_of_files(work: Work) -> bool {
    work == Work::ListFiles || looks_at(work)
}

/// What is done to ask for a file: its path is put together.
fn prepares(work: Work) -> bool {
    matches!(work, Work::Text | Work::Formatting | Work::Allocation)
}
