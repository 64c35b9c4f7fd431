//! [`Recorded`]: allocations and system calls by owned function, where they were recorded.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use stepscope_model::quantity::grouped;
use stepscope_model::{NoteValue, StackId, SystemCalls};

use crate::query::heap::{AllocationRates, HeapSums};
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::system_calls::{SelectedCalls, is_wait, of_any_process};

/// Allocations and system calls of a capture: those of its steps, if costs are per step; else all.
pub(super) struct Recorded<'a> {
    /// Number of steps that costs are divided by.
    steps: Option<f64>,
    /// By stack.
    allocations: Option<FxHashMap<StackId, AllocationRates>>,
    calls: Option<Vec<&'a SystemCalls>>,
}

/// The calls that use a file, or files that differ only in the process that they are about.
#[derive(Debug, Clone, Default)]
pub(super) struct FileUse<'a> {
    /// The path, with `[pid]` for the number of a process.
    pub path: Cow<'a, str>,
    /// Different files.
    pub files: usize,
    /// Processes that opened it.
    pub processes: usize,
    pub opens: u64,
    pub reads: u64,
    pub writes: u64,
    /// Failed calls.
    pub errors: u64,
    pub bytes: u64,
    /// Time within the calls.
    pub ns: u64,
}

impl<'a> Recorded<'a> {
    pub fn of(selection: &Selection<'a>, loops: Option<&Loops>) -> Self {
        let capture = selection.capture();
        let steps = loops.map(|loops| loops.main().count() as f64);
        let heap = (!capture.allocations.is_empty()).then(|| HeapSums::of(selection));
        let allocations = heap.filter(|heap| heap.has_steps || steps.is_none()).map(|heap| {
            let mut by_stack: FxHashMap<StackId, AllocationRates> = FxHashMap::default();
            for ((_, _, stack), sums) in &heap.places {
                if let Some(stack) = stack {
                    *by_stack.entry(*stack).or_default() += sums.rates(steps.is_some());
                }
            }
            by_stack
        });
        let calls = (!capture.system_calls.is_empty()).then(|| {
            let rows = SelectedCalls::of(selection).rows.into_iter();
            rows.filter(|(_, in_step)| *in_step || steps.is_none()).map(|(row, _)| row).collect()
        });
        Self { steps, allocations, calls }
    }

    pub fn has_heap(&self) -> bool {
        self.allocations.is_some()
    }

    pub fn has_calls(&self) -> bool {
        self.calls.is_some()
    }

    /// Allocations at these stacks.
    pub fn allocations(&self, at: impl Fn(StackId) -> bool) -> AllocationRates {
        let mut sum = AllocationRates::default();
        let by_stack = self.allocations.iter().flatten();
        by_stack.filter(|(stack, _)| at(**stack)).for_each(|(_, one)| sum += *one);
        sum
    }

    /// The system calls at these stacks.
    pub fn calls<'r>(&'r self, at: impl Fn(StackId) -> bool + 'r) -> impl Iterator<Item = &'a SystemCalls> + 'r {
        let rows = self.calls.iter().flatten().copied();
        rows.filter(move |row| row.stack.is_some_and(&at))
    }

    /// Number of system calls of these names at these stacks.
    pub fn count(&self, names: &[&str], at: impl Fn(StackId) -> bool) -> u64 {
        self.calls(at).filter(|row| names.contains(&&*row.call)).map(|row| row.count).sum()
    }

    /// The files that calls of these rows use, most time first.
    pub fn files(selection: &Selection<'_>, rows: impl Iterator<Item = &'a SystemCalls>) -> Vec<FileUse<'a>> {
        #[derive(Default)]
        struct Uses<'a> {
            sums: FileUse<'a>,
            paths: BTreeSet<&'a str>,
            processes: BTreeSet<usize>,
        }
        let mut uses: BTreeMap<Cow<'a, str>, Uses<'a>> = BTreeMap::new();
        for row in rows.filter(|row| !is_wait(row)) {
            let Some(file) = row.file.as_deref() else { continue };
            let Uses { sums, paths, processes } = uses.entry(of_any_process(file)).or_default();
            paths.insert(file);
            let thread = &selection.capture().threads[row.thread.index()];
            if OPENS.contains(&&*row.call) {
                processes.extend(thread.process.map(|process| process.index()));
                sums.opens += row.count - row.errors.min(row.count);
            }
            sums.reads += if READS.contains(&&*row.call) { row.count } else { 0 };
            sums.writes += if WRITES.contains(&&*row.call) { row.count } else { 0 };
            sums.errors += row.errors;
            sums.bytes += row.bytes;
            sums.ns += row.total_ns;
        }
        let whole = uses.into_iter().map(|(path, Uses { sums, paths, processes })| FileUse {
            path,
            files: paths.len(),
            processes: processes.len(),
            ..sums
        });
        let mut whole: Vec<FileUse<'a>> = whole.collect();
        whole.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.path.cmp(&b.path)));
        whole
    }

    /// A number of calls, by step where there are steps.
    pub fn per_step(&self, count: u64) -> f64 {
        count as f64 / self.steps.unwrap_or(1.0)
    }

    /// `40,000 opens (20.0 per step)`
    pub fn count_text(&self, count: u64, what: &str) -> String {
        let all = format!("{} {what}", grouped(count.into()));
        match self.steps {
            Some(_) => format!("{all} ({} per step)", NoteValue::number(self.per_step(count))),
            None => all,
        }
    }

    /// `4,012 allocations per step, 99.9 % of them temporary, 31 B each`
    pub fn allocations_text(&self, one: &AllocationRates) -> String {
        let per = if self.steps.is_some() { " per step" } else { "" };
        format!(
            "{} allocations{per}, {} of them temporary, {} each",
            NoteValue::number(one.calls.round()),
            NoteValue::percent(one.temporary_percent()),
            NoteValue::of(one.mean_bytes().round(), "bytes")
        )
    }
}

pub(super) const READS: [&str; 4] = ["read", "pread64", "readv", "preadv"];
const WRITES: [&str; 4] = ["write", "pwrite64", "writev", "pwritev"];

/// Calls that open a file.
pub(super) const OPENS: [&str; 4] = ["open", "openat", "openat2", "creat"];

/// Calls that ask for the state of a file.
pub(super) const STATES: [&str; 6] = ["stat", "lstat", "newfstatat", "statx", "access", "faccessat"];
