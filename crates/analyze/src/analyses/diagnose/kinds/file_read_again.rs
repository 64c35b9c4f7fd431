//! The same file is read several times, or by each of several processes.
//!
//! Evidence: recorded system calls open the same file more than once and read it, and write nothing to it. The gain is the
//! time of all reads but one; what is made of the content, such as parsing it, is part of it only if the function that reads does
//! nothing else. Look-alikes: a file that another program changes; two parts of a large file.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::analyses::diagnose::finding::{Confidence, Found};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::recorded::{FileUse, READS, Recorded};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use stepscope_model::NoteValue;

/// Fewest bytes read per open: the dynamic linker reads the start of each library.
const LEAST_BYTES: u64 = 4096;

pub(super) struct FileReadAgain;

impl Kind for FileReadAgain {
    fn name(&self) -> &'static str {
        "file-read-again"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Read it once and keep what was made of it; let one process read it for all."
    }

    fn confirm(&self) -> &'static str {
        "Compare what is read: a file that nobody changes in between confirms it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let readers = readers(seen);
        let mut by_owner: BTreeMap<Option<FunctionId>, Vec<FileUse<'_>>> = BTreeMap::new();
        for file in Recorded::files(seen.selection, seen.recorded.calls(|_| true)) {
            let is_device = ["/proc/", "/sys/", "/dev/"].iter().any(|start| file.path.starts_with(start));
            let is_plain = !is_device || file.path.starts_with("/dev/shm/");
            let is_read = file.writes == 0 && file.reads > 0 && file.bytes >= LEAST_BYTES * file.opens;
            if is_plain && is_read && file.opens >= 2 && file.path.starts_with('/') {
                by_owner.entry(readers.get(&*file.path).copied().flatten()).or_default().push(file);
            }
        }
        by_owner.into_iter().map(|(owner, files)| found(seen, owner, &files)).collect()
    }
}

/// By file, the function that most of the time in its calls is attributed to.
fn readers<'a>(seen: &Seen<'_, 'a>) -> FxHashMap<&'a str, Option<FunctionId>> {
    let mut ns: FxHashMap<&str, BTreeMap<Option<FunctionId>, u64>> = FxHashMap::default();
    for row in seen.recorded.calls(|_| true) {
        let Some(file) = row.file.as_deref() else { continue };
        let owner = row.stack.and_then(|stack| seen.functions().attributed(stack));
        let sum = ns.entry(file).or_default().entry(owner).or_default();
        *sum = sum.saturating_add(row.total_ns);
    }
    let most = |ns: BTreeMap<_, u64>| ns.into_iter().max_by_key(|(_, ns)| *ns).and_then(|(owner, _)| owner);
    ns.into_iter().map(|(file, ns)| (file, most(ns))).collect()
}

fn found(seen: &Seen<'_, '_>, owner: Option<FunctionId>, files: &[FileUse<'_>]) -> Found {
    let again_ns: f64 = files.iter().map(|one| one.ns as f64 * (1.0 - 1.0 / one.opens as f64)).sum();
    // The files come with most time first.
    let most = &files[0];
    let reader = owner.map_or("The program".to_owned(), |owner| format!("`{}`", seen.name(owner)));
    let what = match (files.len(), most.processes) {
        (1, 0 | 1) => format!("{reader} reads `{}` {} times", most.path, most.opens),
        (1, processes) => format!("{reader} reads `{}` in each of {processes} processes", most.path),
        (files, _) => format!("{reader} reads {files} files more than once"),
    };
    let detail = format!(
        "`{}`: {}, {} in all.",
        most.path,
        seen.recorded.count_text(most.opens, "opens"),
        NoteValue::of(most.bytes, "bytes")
    );
    let gain = Gain::of_calls(again_ns * seen.recorded.per_step(1), seen.whole_ns());
    let found = Found::of_program(what, Some(gain)).about(owner).sure(Confidence::Fair);
    let found = found.because(detail, "show --view syscalls");
    match owner.filter(|owner| is_for_reading(seen, *owner, files)) {
        Some(owner) => with_content(seen, owner, 1.0 - 1.0 / most.opens as f64, found),
        None => found,
    }
}

/// Least part of the bytes that a function reads that are of the files that it reads again.
const MOSTLY: f64 = 0.9;

/// Whether a function is there for reading these files: it reads little else, and does not run all the time.
fn is_for_reading(seen: &Seen<'_, '_>, owner: FunctionId, files: &[FileUse<'_>]) -> bool {
    let rows = seen.recorded.calls(|stack| seen.functions().attributed(stack) == Some(owner));
    let all: u64 = rows.filter(|row| READS.contains(&&*row.call)).map(|row| row.bytes).sum();
    let of_files: u64 = files.iter().map(|file| file.bytes).sum();
    of_files as f64 >= MOSTLY * all as f64 && !seen.is_steady(seen.is_at(owner, |_| true))
}

/// The finding with what the function makes of the content, if that takes more time than the calls.
fn with_content(seen: &Seen<'_, '_>, owner: FunctionId, again: f64, found: Found) -> Found {
    let without: Vec<f32> = seen.without(owner, |_| true).into_iter().map(|part| part * again as f32).collect();
    let gain = seen.gain(&without);
    match found.gain.is_none_or(|calls| calls.time.value < gain.time.value) {
        true => Found { gain: Some(gain), without, ..found },
        false => found,
    }
}
