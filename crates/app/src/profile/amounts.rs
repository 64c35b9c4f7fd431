//! The table `amounts`: heap allocations and system calls as weights, with the columns of `samples`.
//!
//! Each [`Amount`] is an event of the page, after those of the samples. A row is what one row of the capture says. What a
//! moment holds (the heap at its peak and at the end) is the change since the stack's row before: all rows up to a moment
//! add up to what it holds.

use rustc_hash::FxHashMap;
use stepscope_analyze::HeapMeasure;
use stepscope_analyze::query::{heap, system_calls};
use stepscope_model::{Capture, ProcessId, StackId, ThreadId};

use super::places::Places;
use super::rows::{PARTS, Row, RowCounts, middle_of, part_of, rows_table};
use super::{EventEntry, Profile};
use crate::parquet_table::ParquetTable;

/// A weight that is counted, not sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// A quantity of allocations.
    Heap(HeapMeasure),
    /// Number of system calls.
    SystemCalls,
    /// Time in them, waits included.
    SystemCallTime,
}

impl Amount {
    /// What a capture has.
    pub fn of(capture: &Capture) -> Vec<Self> {
        let heap = HeapMeasure::ALL.into_iter().filter(|_| !capture.allocations.is_empty()).map(Self::Heap);
        let calls = [Self::SystemCallTime, Self::SystemCalls].into_iter().filter(|_| !capture.system_calls.is_empty());
        heap.chain(calls).collect()
    }

    fn is_held(self) -> bool {
        matches!(self, Self::Heap(measure) if measure.is_held())
    }

    /// What the manifest says of it.
    pub(super) fn entry(self) -> EventEntry {
        let (name, unit) = match self {
            Self::Heap(measure) => measure.title(),
            Self::SystemCalls => ("System calls", "calls"),
            Self::SystemCallTime => ("Time in system calls", "ns"),
        };
        let role = if self.is_held() { "held" } else { "amount" };
        EventEntry { name: name.to_owned(), unit: unit.to_owned(), role }
    }
}

/// What one row of the capture adds to an amount.
struct Change {
    time_ns: u64,
    thread: Option<ThreadId>,
    stack: Option<StackId>,
    /// The place in [`Amount::of`].
    amount: usize,
    weight: i64,
}

/// Visits what the selected rows of allocations and system calls add to each amount.
fn each_change(profile: &Profile<'_>, mut visit: impl FnMut(Change)) {
    let amounts = Amount::of(profile.capture());
    let mut held: FxHashMap<(usize, ProcessId, Option<ThreadId>, Option<StackId>), i64> = FxHashMap::default();
    for (time_ns, row) in heap::selected_rows(profile.selection()) {
        for (amount, one) in amounts.iter().enumerate() {
            let Amount::Heap(measure) = *one else { continue };
            let mut weight = measure.of_row(row);
            if measure.is_held() {
                let before = held.entry((amount, row.process, row.thread, row.stack)).or_default();
                (weight, *before) = (weight.saturating_sub(*before), weight);
            }
            if weight != 0 {
                visit(Change { time_ns, thread: row.thread, stack: row.stack, amount, weight });
            }
        }
    }
    for calls in system_calls::selected_rows(profile.selection()) {
        for (amount, one) in amounts.iter().enumerate() {
            let weight = match one {
                Amount::Heap(_) => continue,
                Amount::SystemCalls => calls.count,
                Amount::SystemCallTime => calls.total_ns,
            };
            let weight = i64::try_from(weight).unwrap_or(i64::MAX);
            visit(Change { time_ns: calls.end_ns, thread: Some(calls.thread), stack: calls.stack, amount, weight });
        }
    }
}

/// Number of rows, if each change has its own.
pub(super) fn count(profile: &Profile<'_>) -> usize {
    let mut count = 0;
    each_change(profile, |_| count += 1);
    count
}

/// Adds to each stack a share of all that was counted.
pub(super) fn weigh_stacks(profile: &Profile<'_>, weights: &mut [f64]) {
    let mut totals = vec![0.0; Amount::of(profile.capture()).len()];
    each_change(profile, |change| totals[change.amount] += change.weight.unsigned_abs() as f64);
    each_change(profile, |change| {
        if let Some(stack) = change.stack {
            // What weighs nothing is shown nevertheless.
            let share = change.weight.unsigned_abs() as f64 / totals[change.amount].max(1.0);
            weights[stack.index()] += share + f64::MIN_POSITIVE;
        }
    });
}

/// How many rows [`sums`] has.
pub(super) fn row_counts(profile: &Profile<'_>, places: &Places) -> RowCounts<(Option<ThreadId>, i32, usize)> {
    let mut counts = RowCounts::new();
    each_change(profile, |change| {
        let part = part_of(change.time_ns, profile.span(), PARTS[0]);
        counts.add((change.thread, places.row(change.stack), change.amount), part, 0);
    });
    counts
}

/// Changes of one thread and stack within each part of the recording, added up: its parts, thread, stack and amount.
type Sums = FxHashMap<(u64, i32, i32, usize), i64>;

pub(super) fn sums(profile: &Profile<'_>, places: &Places, parts: u64) -> Sums {
    let mut sums = Sums::default();
    each_change(profile, |change| {
        let part = part_of(change.time_ns, profile.span(), parts);
        let thread = super::row(change.thread.map(|thread| thread.index()));
        let sum = sums.entry((part, thread, places.row(change.stack), change.amount)).or_default();
        *sum = sum.saturating_add(change.weight);
    });
    sums
}

/// The table. With `parts`, rows are added up in this number of parts of the recording.
pub(super) fn table(profile: &Profile<'_>, places: &Places, parts: Option<u64>) -> ParquetTable {
    let first = profile.capture().info.events.len();
    let mut rows = Vec::new();
    let mut push = |time_ns: u64, thread: i32, stack: i32, amount: usize, weight: i64| {
        let event = super::row(Some(first + amount));
        rows.push(Row {
            time: profile.since_start(time_ns),
            cpu: -1,
            thread,
            stack,
            event,
            weight: weight as f64,
            count: 0,
        });
    };
    match parts {
        None => each_change(profile, |change| {
            let thread = super::row(change.thread.map(|thread| thread.index()));
            push(change.time_ns, thread, places.row(change.stack), change.amount, change.weight);
        }),
        Some(parts) => {
            for ((part, thread, stack, amount), weight) in sums(profile, places, parts) {
                push(middle_of(part, profile.span(), parts), thread, stack, amount, weight);
            }
        }
    }
    rows_table(rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use stepscope_analyze::{Functions, Ownership, Selection};
    use stepscope_model::{Allocation, BLOCK_LIFETIMES_NS, BLOCK_SIZES, SystemCalls};

    use super::*;
    use crate::profile::{Limits, Profile};

    fn allocation(end_ns: u64, stack: StackId, calls: u64, live_bytes: i64) -> Allocation {
        Allocation {
            start_ns: end_ns - 10,
            end_ns,
            process: ProcessId(0),
            thread: Some(ThreadId(0)),
            stack: Some(stack),
            calls,
            bytes: calls * 100,
            temporary: calls / 2,
            frees: 0,
            freed_bytes: 0,
            foreign_frees: 0,
            foreign_freed_bytes: 0,
            live_blocks: 0,
            live_bytes,
            peak_bytes: live_bytes.max(500),
            sizes: [0; BLOCK_SIZES.len() + 1],
            lifetimes: [0; BLOCK_LIFETIMES_NS.len() + 1],
        }
    }

    fn capture() -> Capture {
        let mut capture = Capture::default();
        capture.info.events.clear();
        (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(1_000));
        let process = capture.add_process(stepscope_model::Process::default());
        let thread = capture.add_thread_named("main");
        capture.threads[thread.index()].process = Some(process);
        let frames = ["load", "read"].map(|name| capture.intern_function(name));
        let [load, read] = frames.map(|frame| capture.intern_stack_node(None, frame));
        capture.allocations =
            vec![allocation(100, load, 10, 900), allocation(200, read, 4, 50), allocation(300, load, 2, 300)];
        capture.system_calls.push(SystemCalls {
            start_ns: 0,
            end_ns: 400,
            thread,
            call: "read".into(),
            stack: Some(read),
            file: None,
            count: 7,
            errors: 0,
            total_ns: 70,
            longest_ns: 20,
            bytes: 0,
            last_ns: None,
        });
        capture
    }

    /// The sum of each amount by function, of all changes up to a moment.
    fn totals(limits: Limits) -> (usize, BTreeMap<(String, i32), i64>) {
        let capture = capture();
        let functions = Functions::of(&capture, &Ownership::default().compile().unwrap());
        let profile = Profile::new(Selection::all(&capture, &functions), limits);
        let rows = profile.table("amounts").unwrap().rows();
        let parts = (limits.waits < 10).then_some(1);
        let mut totals = BTreeMap::new();
        let sums = sums(&profile, profile.places(), parts.unwrap_or(1_000));
        for ((_, _, stack, amount), weight) in sums {
            let name = if stack == 0 { "load" } else { "read" };
            *totals.entry((name.to_owned(), amount as i32)).or_default() += weight;
        }
        (rows, totals)
    }

    #[test]
    fn amounts_add_up_and_what_a_moment_holds_is_that_of_the_last_row() {
        let (rows, totals) = totals(Limits::default());
        let of = |function: &str| {
            (0..7).map(|amount| totals.get(&(function.to_owned(), amount)).copied()).collect::<Vec<_>>()
        };
        // Calls, temporary, bytes, peak, leaked; time in system calls and their number.
        assert_eq!(of("load"), [Some(12), Some(6), Some(1_200), Some(500), Some(300), None, None]);
        assert_eq!(of("read"), [Some(4), Some(2), Some(400), Some(500), Some(50), Some(70), Some(7)]);
        assert_eq!(rows, 17);
    }

    #[test]
    fn too_many_rows_are_added_up_and_sums_stay() {
        let few = Limits { waits: 1, ..Limits::default() };
        let ((rows, added_up), (_, each)) = (totals(few), totals(Limits::default()));
        assert_eq!(added_up, each);
        assert_eq!(rows, 12);
    }

    #[test]
    fn the_manifest_names_the_amounts_after_the_events_of_samples() {
        let names: Vec<String> = Amount::of(&capture()).into_iter().map(|amount| amount.entry().name).collect();
        assert_eq!(
            names[2..],
            ["Allocated bytes", "Heap at its peak", "Heap at the end", "Time in system calls", "System calls"]
        );
        assert!(Amount::of(&Capture::default()).is_empty());
    }
}
