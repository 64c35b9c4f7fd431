//! A file is opened each time something is written or read.
//!
//! Evidence: one owned function opens and closes files in all parts of the steady phase, at a cost; or in
//! loading at a high one, for a file per item. Look-alikes: a log that is rotated, a file that must be seen whole by others after each
//! record, assets that are files.
//!
//! Recorded system calls show which file is opened how often. In steps, files that are all opened once only are no finding; nor, where the
//! kernel's functions show it, files that are made as they are opened.

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::recorded::{FileUse, Recorded};
use crate::analyses::diagnose::seen::{Seen, is_one_of, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::frame_kind::kernel_name;
use crate::query::functions::FunctionId;
use crate::query::weights::Amount;
use crate::query::work::Work;
use stepscope_model::{FrameKind, NoteValue, StackId};

/// Least share of CPU time that opening and closing takes.
const LEAST: f64 = 1.0;

/// The same in loading, which opens files anyway.
const LEAST_IN_LOADING: f64 = 10.0;

/// Fewest opens of a file, on average, that is opened again and again.
const FEWEST_OPENS: u64 = 5;

/// CPython's functions that open and close files.
const OF_PYTHON: [&str; 7] = [
    "_io_open",
    "_io_open_impl",
    "iobase_exit",
    "_io__IOBase_close_impl",
    "_io_TextIOWrapper_close",
    "_io_TextIOWrapper_close_impl",
    "textiowrapper_dealloc",
];

/// Fewest samples of opening and closing in loading.
const FEWEST: u64 = 15;

pub(super) struct FileReopened;

impl Kind for FileReopened {
    fn name(&self) -> &'static str {
        "file-opened-each-time"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Keep the file open and buffer what is written to it; keep what was made from equal input instead of making it again."
    }

    fn confirm(&self) -> &'static str {
        "Record system calls (`record --with syscalls`): one `openat` of the same file per record confirms it."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["file-state-each-step"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let least = if seen.is_loading() { LEAST_IN_LOADING } else { LEAST };
        let opens = |work: Work| work == Work::OpenFile;
        let files = |work: Work| matches!(work, Work::OpenFile | Work::WriteFile | Work::ReadFile | Work::FileState);
        let mut around = python::below(seen, &OF_PYTHON);
        // CPython makes objects around each file, and C++ streams.
        if !seen.is_loading() {
            around.iter_mut().zip(file_streams(seen)).for_each(|(at, of_stream)| *at |= of_stream);
        }
        let opener =
            |stack: StackId| seen.owner(stack).filter(|_| opens(seen.work[stack.index()]) || around[stack.index()]);
        let owners = seen.by_function(opener).into_iter().filter(|(_, amount)| seen.share(*amount) >= least);
        owners
            .filter_map(|(owner, all)| {
                let amount = seen.at_owner(owner, opens);
                let is_open = |stack: StackId| opener(stack) == Some(owner);
                let lasts = match seen.is_loading() {
                    true => amount.count >= FEWEST,
                    false => {
                        let lasts = || seen.is_steady(is_open) && !are_made(seen, amount, &is_open);
                        amount.count > 0 && (lasts() || is_appended_to(seen, amount, &is_open))
                    }
                };
                let weight = |of: Work| seen.at_owner(owner, |work| work == of).weight;
                // Files of `/proc` are made at each read, and directories are listed: other kinds are about them.
                if !lasts || weight(Work::KernelFile) * 5 > amount.weight || weight(Work::ListFiles) > amount.weight {
                    return None;
                }
                let is_of_files = seen.is_at(owner, files);
                let goes = |stack: StackId| is_of_files(stack) || is_open(stack);
                let of_files = seen.sum(goes);
                let without = parts((0..around.len()).map(|index| goes(StackId::from_index(index))));
                let (title, confidence) = match seen.is_loading() {
                    true => (format!("`{}` opens many files while loading", seen.name(owner)), Confidence::Fair),
                    false => (format!("`{}` opens a file each time it is used", seen.name(owner)), Confidence::Strong),
                };
                let found = Found::of(seen, owner, title, without).sure(confidence);
                let found = found.because(
                    format!(
                        "Opening and closing take {} of the CPU time, all its file calls {}.",
                        percent(seen.share(all)),
                        percent(seen.share(of_files))
                    ),
                    explain(seen, owner),
                );
                with_calls(seen, owner, found)
            })
            .collect()
    }
}

/// One flag per stack: whether a stream of C++ for a file is made, opened, closed or released there. Reading and writing are functions of other
/// classes.
pub(super) fn file_streams(seen: &Seen<'_, '_>) -> Vec<bool> {
    seen.paths_through(|function| {
        is_one_of(function, &["std::basic_ofstream::", "std::basic_ifstream::", "std::basic_fstream::"])
    })
}

/// Least part of opening that writing and creating are, if files are written and created.
const WRITTEN: f64 = 0.05;
const CREATED: f64 = 0.02;

/// Least part of opening that making files is, if most of them are new.
const MADE: f64 = 0.1;

/// Ends of the kernel's functions that make a file.
const MAKES: [&str; 5] = ["_create", "_mknod", "_tmpfile", "_new_inode", "_create_object"];

/// Whether files are opened in a part of the run to write to them, and exist already. Many files that a batch reads, or makes, are opened once
/// each.
fn is_appended_to(seen: &Seen<'_, '_>, amount: Amount, is_open: &impl Fn(StackId) -> bool) -> bool {
    if !seen.is_in_pieces(is_open) {
        return false;
    }
    let written = seen.sum(|stack| seen.work[stack.index()] == Work::WriteFile);
    let emptied = part_within(seen, amount, is_open, &["do_truncate"]);
    part(written, amount) >= WRITTEN && emptied + part_within(seen, amount, is_open, &MAKES) < CREATED
}

/// Whether most files are new: a function that writes each of its files once opens none again.
fn are_made(seen: &Seen<'_, '_>, amount: Amount, is_open: &impl Fn(StackId) -> bool) -> bool {
    part_within(seen, amount, is_open, &MAKES) >= MADE
}

/// The part of opening that is below functions of the kernel with these ends.
fn part_within(seen: &Seen<'_, '_>, opening: Amount, is_open: &impl Fn(StackId) -> bool, ends: &[&str]) -> f64 {
    let within = seen.paths_through(|function| {
        function.kind == FrameKind::Kernel && ends.iter().any(|end| kernel_name(&function.name).ends_with(end))
    });
    part(seen.sum(|stack| is_open(stack) && within[stack.index()]), opening)
}

fn part(of: Amount, all: Amount) -> f64 {
    of.weight as f64 / all.weight.max(1) as f64
}

/// A finding with what recorded system calls say of the files that its function opens; `None` if these are opened once.
fn with_calls(seen: &Seen<'_, '_>, owner: FunctionId, found: Found) -> Option<Found> {
    if !seen.recorded.has_calls() {
        return Some(found);
    }
    let of_owner = |stack: StackId| seen.functions().attributed(stack) == Some(owner);
    let opened = Recorded::files(seen.selection, seen.recorded.calls(of_owner));
    let opened: Vec<FileUse<'_>> = opened.into_iter().filter(|file| file.opens > 0).collect();
    let (opens, files) = (opened.iter().map(|one| one.opens).sum::<u64>(), opened.iter().map(|one| one.files).sum());
    let detail = seen.recorded.count_text(opens, "times");
    if seen.is_loading() {
        return Some(found.because(format!("It opens {} {detail}.", files_text(files)), "show --view syscalls"));
    }
    let most = opened.first().filter(|_| opens >= FEWEST_OPENS * files as u64)?;
    let all =
        Recorded::files(seen.selection, seen.recorded.calls(|_| true)).into_iter().find(|one| one.path == most.path);
    let (reads, writes) = all.map_or((0, 0), |all| (all.reads, all.writes));
    let use_of_one = format!(
        "`{}` is opened {} times for {} writes and {} reads",
        most.path,
        NoteValue::number(most.opens),
        NoteValue::number(writes),
        NoteValue::number(reads)
    );
    Some(found.confirmed(format!("It opens {} {detail}: {use_of_one}.", files_text(files)), "show --view syscalls"))
}

fn files_text(files: usize) -> NoteValue {
    NoteValue::plural(files, "file")
}
