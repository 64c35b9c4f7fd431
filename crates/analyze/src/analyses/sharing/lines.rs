//! [`Line`]: a cache line that several threads use, and what they do with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use stepscope_model::{CACHE_LINE_BYTES, DataAccess, ProcessId, ThreadId};

use crate::query::select::Selection;

/// Fewest shared accesses for a verdict.
const FEWEST_SHARED: u64 = 10;

/// Below this share of true sharing a line has false sharing, and above the rest true sharing.
const CLEAR: f64 = 0.1;

/// A cache line that several threads use, and at least one writes.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    /// `None` in the kernel.
    pub process: Option<ProcessId>,
    /// Address of its first byte.
    pub address: u64,
    /// In the order of their addresses.
    pub accesses: Vec<&'a DataAccess>,
    /// Accesses that another thread's writes may have made slow.
    pub shared: u64,
    /// The part of sharing by the same bytes.
    pub true_share: Option<f64>,
}

/// How threads share a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    False,
    True,
    Both,
}

impl Verdict {
    pub fn words(self) -> &'static str {
        match self {
            Self::False => "false sharing",
            Self::True => "true sharing",
            Self::Both => "both",
        }
    }
}

/// Samples of a row: an atomic operation reads and writes at once.
pub(crate) fn samples(access: &DataAccess) -> u64 {
    access.reads.max(access.writes)
}

/// Loads that found the line modified elsewhere; `None` if that is unknown.
pub(crate) fn hitm(access: &DataAccess) -> Option<u64> {
    Some(access.local_hitm?.saturating_add(access.remote_hitm?))
}

/// The bytes of a line that an access touches.
fn touched(access: &DataAccess) -> Range<u64> {
    let start = access.address % CACHE_LINE_BYTES;
    start..start.saturating_add(access.bytes.unwrap_or(1).max(1)).min(CACHE_LINE_BYTES)
}

impl<'a> Line<'a> {
    /// The shared lines of a selection, the most contended first.
    pub fn all(selection: &Selection<'a>) -> Vec<Self> {
        let capture = selection.capture();
        // Machines of a merged capture have kernels of their own.
        type Place<'c> = (Option<ProcessId>, Option<&'c str>, u64);
        let mut by_line: BTreeMap<Place<'_>, Vec<&DataAccess>> = BTreeMap::new();
        let is_selected =
            |access: &&DataAccess| selection.has_thread(access.thread) && selection.has_stack(access.stack);
        for access in capture.data_accesses.iter().filter(is_selected) {
            let owner = capture.threads[access.thread.index()].process;
            let machine = owner.and_then(|process| capture.processes[process.index()].machine.as_deref());
            let process = owner.filter(|_| !access.is_in_kernel());
            by_line.entry((process, machine, access.line())).or_default().push(access);
        }
        let lines = by_line.into_iter().map(|((process, _, line), mut accesses)| {
            accesses.sort_by_key(|access| (access.address, access.thread));
            Self::of(process, line * CACHE_LINE_BYTES, accesses)
        });
        let mut lines: Vec<Self> = lines.filter(|line| line.threads().len() > 1 && line.writes() > 0).collect();
        lines.sort_by_key(|line| {
            let cost = line.hitm().unwrap_or(0);
            (std::cmp::Reverse((cost, line.shared)), line.process, line.address)
        });
        lines
    }

    fn of(process: Option<ProcessId>, address: u64, accesses: Vec<&'a DataAccess>) -> Self {
        let mut by_thread: BTreeMap<ThreadId, (u64, u64)> = BTreeMap::new();
        for access in &accesses {
            let sums = by_thread.entry(access.thread).or_default();
            sums.0 += samples(access);
            sums.1 += access.writes;
        }
        let writes: u64 = by_thread.values().map(|(_, writes)| writes).sum();
        let shared = by_thread.values().map(|(samples, own)| (*samples).min(writes - own)).sum();
        let true_share = true_share(&accesses, |thread| writes - by_thread[&thread].1);
        Self { process, address, accesses, shared, true_share }
    }

    pub fn threads(&self) -> BTreeSet<ThreadId> {
        self.accesses.iter().map(|access| access.thread).collect()
    }

    pub fn sum(&self, of: impl Fn(&DataAccess) -> u64) -> u64 {
        self.accesses.iter().map(|access| of(access)).fold(0, u64::saturating_add)
    }

    /// The same, unknown if it is unknown of all.
    pub fn known_sum(&self, of: impl Fn(&DataAccess) -> Option<u64>) -> Option<u64> {
        self.accesses.iter().filter_map(|access| of(access)).reduce(u64::saturating_add)
    }

    fn writes(&self) -> u64 {
        self.sum(|access| access.writes)
    }

    /// Loads that found it modified elsewhere; `None` if that is unknown.
    pub fn hitm(&self) -> Option<u64> {
        self.known_sum(hitm)
    }

    /// How its threads share it, if there are enough samples.
    pub fn verdict(&self) -> Option<Verdict> {
        if self.shared.max(self.hitm().unwrap_or(0)) < FEWEST_SHARED {
            return None;
        }
        Some(match self.true_share? {
            share if share < CLEAR => Verdict::False,
            share if share > 1.0 - CLEAR => Verdict::True,
            _ => Verdict::Both,
        })
    }
}

/// The part of sharing by the same bytes.
fn true_share(accesses: &[&DataAccess], writes_of_others: impl Fn(ThreadId) -> u64) -> Option<f64> {
    let has_hitm = accesses.iter().any(|access| hitm(access).is_some_and(|count| count > 0));
    let weight = |access: &DataAccess| if has_hitm { hitm(access).unwrap_or(0) } else { samples(access) };
    let (mut same, mut all) = (0.0, 0.0);
    for access in accesses.iter().filter(|access| weight(access) > 0) {
        let others = writes_of_others(access.thread);
        if others == 0 {
            continue;
        }
        let bytes = touched(access);
        let overlaps = |other: &&&DataAccess| {
            let its = touched(other);
            other.thread != access.thread && its.start < bytes.end && bytes.start < its.end
        };
        let overlapping: u64 = accesses.iter().filter(overlaps).map(|other| other.writes).sum();
        same += weight(access) as f64 * overlapping as f64 / others as f64;
        all += weight(access) as f64;
    }
    (all > 0.0).then(|| same / all)
}
