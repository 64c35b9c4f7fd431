//! Sums of the selected heap allocations, by thread and stack.

use std::ops::{AddAssign, Range};

use rustc_hash::FxHashMap;
use stepscope_model::{Allocation, BLOCK_LIFETIMES_NS, BLOCK_SIZES, Origin, ProcessId, StackId, ThreadId};

use crate::query::functions::{Caller, Functions};
use crate::query::select::Selection;
use crate::query::steps::Loops;

/// A quantity of allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Measure {
    /// Number of allocations.
    #[default]
    Calls,
    /// Temporary ones.
    Temporary,
    /// Allocated bytes.
    Bytes,
    /// Bytes held at the peak.
    Peak,
    /// Bytes that live at the end.
    Leaked,
}

impl Measure {
    /// All quantities.
    pub const ALL: [Self; 5] = [Self::Calls, Self::Temporary, Self::Bytes, Self::Peak, Self::Leaked];

    /// Whether it is what a moment holds: later rows of a stack replace earlier ones. Others add up.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Peak | Self::Leaked)
    }

    /// What one row of allocations says of it.
    pub fn of_row(self, row: &Allocation) -> i64 {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        match self {
            Self::Calls => count(row.calls),
            Self::Temporary => count(row.temporary),
            Self::Bytes => count(row.bytes),
            Self::Peak => row.peak_bytes,
            Self::Leaked => row.live_bytes,
        }
    }

    /// What a picture of it is called, and its unit.
    pub fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Calls => ("Allocations", "allocations"),
            Self::Temporary => ("Temporary allocations", "allocations"),
            Self::Bytes => ("Allocated bytes", "bytes"),
            Self::Peak => ("Heap at its peak", "bytes"),
            Self::Leaked => ("Heap at the end", "bytes"),
        }
    }

    fn of(self, sums: &Sums) -> u64 {
        let held = |bytes: i64| bytes.max(0) as u64;
        match self {
            Self::Calls => sums.calls,
            Self::Temporary => sums.temporary,
            Self::Bytes => sums.bytes,
            Self::Peak => held(sums.peak_bytes),
            Self::Leaked => held(sums.live_bytes),
        }
    }
}

/// Sums over allocations and releases.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sums {
    pub calls: u64,
    pub bytes: u64,
    pub temporary: u64,
    pub frees: u64,
    /// Blocks of other threads.
    pub foreign_frees: u64,
    pub live_blocks: i64,
    pub live_bytes: i64,
    pub peak_bytes: i64,
    /// In a step of the main loop.
    pub step: AllocationRates,
    pub sizes: [u64; BLOCK_SIZES.len() + 1],
    pub lifetimes: [u64; BLOCK_LIFETIMES_NS.len() + 1],
}

/// Allocations in a step, on average, or in a whole recording.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct AllocationRates {
    pub calls: f64,
    pub temporary: f64,
    pub bytes: f64,
}

impl AllocationRates {
    /// Temporary ones in percent of all.
    pub fn temporary_percent(&self) -> f64 {
        if self.calls > 0.0 { 100.0 * self.temporary / self.calls } else { 0.0 }
    }

    pub fn mean_bytes(&self) -> f64 {
        if self.calls > 0.0 { self.bytes / self.calls } else { 0.0 }
    }
}

impl AddAssign for AllocationRates {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.temporary += other.temporary;
        self.bytes += other.bytes;
    }
}

impl Sums {
    /// Those in a step, or all.
    pub fn rates(&self, in_step: bool) -> AllocationRates {
        let all =
            || AllocationRates { calls: self.calls as f64, temporary: self.temporary as f64, bytes: self.bytes as f64 };
        if in_step { self.step } else { all() }
    }
}

impl AddAssign<&Self> for Sums {
    fn add_assign(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.temporary = self.temporary.saturating_add(other.temporary);
        self.frees = self.frees.saturating_add(other.frees);
        self.foreign_frees = self.foreign_frees.saturating_add(other.foreign_frees);
        self.live_blocks = self.live_blocks.saturating_add(other.live_blocks);
        self.live_bytes = self.live_bytes.saturating_add(other.live_bytes);
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
        self.step += other.step;
        self.sizes.iter_mut().zip(other.sizes).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.lifetimes.iter_mut().zip(other.lifetimes).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

/// The selected rows of allocations in the order of time, each with the moment that it counts for.
pub fn selected_rows<'s>(selection: &'s Selection<'_>) -> impl Iterator<Item = (u64, &'s Allocation)> {
    let rows = selection.capture().allocations.iter().filter(|row| is_selected(selection, row));
    rows.map(|row| (middle_ns(row), row))
}

/// A thread at a stack. Threads that are not known are one.
pub(crate) type Place = (ProcessId, Option<ThreadId>, Option<StackId>);

/// The selected allocations by thread and stack.
pub(crate) struct HeapSums {
    pub places: Vec<(Place, Sums)>,
    /// Whether any intervals of the recording lie within the main loop's steps.
    pub has_steps: bool,
    /// Whether a file of memray has one kind of blocks alone: those at the peak, those that leaked or the temporary ones.
    pub is_of_one_kind: bool,
}

impl HeapSums {
    pub fn of(selection: &Selection<'_>) -> Self {
        let spans = StepSpans::of(selection);
        let mut places: FxHashMap<Place, Sums> = FxHashMap::default();
        // In the order of time: the last interval says what lives.
        for (_, row) in selected_rows(selection) {
            let sums = places.entry((row.process, row.thread, row.stack)).or_default();
            add(sums, row, spans.steps_of(row));
        }
        let mut places: Vec<(Place, Sums)> = places.into_iter().collect();
        places.sort_unstable_by_key(|(place, _)| *place);
        let origin = &selection.capture().info.origin;
        let is_of_one_kind = matches!(origin, Origin::Imported { format, .. } if format == "memray");
        Self { places, has_steps: !spans.0.is_empty(), is_of_one_kind }
    }

    /// Sums by the function that costs are attributed to.
    pub fn by_caller(&self, functions: &Functions) -> FxHashMap<Caller, Sums> {
        let mut sums: FxHashMap<Caller, Sums> = FxHashMap::default();
        for ((_, _, stack), of_place) in &self.places {
            *sums.entry(functions.caller(*stack)).or_default() += of_place;
        }
        sums
    }

    /// Whether the input says what lives at the end. `total` is the sum of all places.
    pub fn knows_leaks(&self, total: &Sums) -> bool {
        !self.is_of_one_kind || total.live_blocks != 0
    }

    pub fn total(&self) -> Sums {
        self.places.iter().fold(Sums::default(), |mut total, (_, sums)| {
            total += sums;
            total
        })
    }

    /// A quantity by place. What is held at a moment counts by stack, because others may free what a thread allocates.
    pub fn by_stack(&self, measure: Measure) -> Vec<(Place, u64)> {
        if !measure.is_held() {
            return self.places.iter().map(|(place, sums)| (*place, measure.of(sums))).collect();
        }
        let mut stacks: FxHashMap<(ProcessId, Option<StackId>), (Place, Sums)> = FxHashMap::default();
        for (place, sums) in &self.places {
            let (_, of_stack) = stacks.entry((place.0, place.2)).or_insert((*place, Sums::default()));
            *of_stack += sums;
        }
        stacks.into_values().map(|(place, sums)| (place, measure.of(&sums))).collect()
    }
}

/// The moment that a row of allocations counts for.
fn middle_ns(row: &Allocation) -> u64 {
    row.start_ns + (row.end_ns.saturating_sub(row.start_ns)) / 2
}

fn is_selected(selection: &Selection<'_>, row: &Allocation) -> bool {
    row.thread.map_or(!selection.filters_threads(), |thread| selection.has_thread(thread))
        && selection.has_stack(row.stack)
        && selection.has_time(Some(middle_ns(row)))
}

fn add(sums: &mut Sums, row: &Allocation, steps: Option<f64>) {
    let rate = |count: u64| steps.map_or(0.0, |steps| count as f64 / steps);
    let step = AllocationRates { calls: rate(row.calls), temporary: rate(row.temporary), bytes: rate(row.bytes) };
    (sums.live_blocks, sums.live_bytes, sums.peak_bytes) = (0, 0, 0);
    *sums += &Sums {
        calls: row.calls,
        bytes: row.bytes,
        temporary: row.temporary,
        frees: row.frees,
        foreign_frees: row.foreign_frees,
        live_blocks: row.live_blocks,
        live_bytes: row.live_bytes,
        peak_bytes: row.peak_bytes,
        step,
        sizes: row.sizes.map(u64::from),
        lifetimes: row.lifetimes.map(u64::from),
    };
}

/// For each process, the intervals of the recording that lie within the main loop's steps.
///
/// Tables of processes are read at different times, so each process has intervals of its own.
pub(crate) struct StepSpans(FxHashMap<ProcessId, StepSpan>);

struct StepSpan {
    span: Range<u64>,
    /// Steps in it: of those at its ends, the part of their time that lies in it.
    steps: f64,
}

impl StepSpans {
    pub fn of(selection: &Selection<'_>) -> Self {
        let Some(loops) = Loops::of_costs(selection) else { return Self(FxHashMap::default()) };
        let steps = loops.main();
        let rows = steps.rows();
        // The first step loads what later ones use.
        let after_first = steps.after_first();
        let Some(inside) =
            rows.get(after_first.start).zip(rows.last()).map(|(first, last)| first.start_ns..=last.end_ns)
        else {
            return Self(FxHashMap::default());
        };
        let mut readings: FxHashMap<ProcessId, Range<u64>> = FxHashMap::default();
        for row in &selection.capture().allocations {
            for at in [row.start_ns, row.end_ns].into_iter().filter(|at| inside.contains(at)) {
                let span = readings.entry(row.process).or_insert(at..at);
                *span = span.start.min(at)..span.end.max(at);
            }
        }
        let spans = readings.into_iter().filter_map(|(process, span)| {
            let part = |(position, part): (usize, Range<u64>)| {
                (part.end - part.start) as f64 / steps.duration(position).max(1) as f64
            };
            let count: f64 = steps.pieces(span.clone()).map(part).sum();
            (count >= 1.0).then_some((process, StepSpan { span, steps: count }))
        });
        Self(spans.collect())
    }

    /// The steps in the span that a row lies in; `None` if it lies in none.
    pub fn steps_of(&self, row: &Allocation) -> Option<f64> {
        let one = self.0.get(&row.process)?;
        (row.start_ns >= one.span.start && row.end_ns <= one.span.end).then_some(one.steps)
    }
}

/// What a stack weighs.
pub(crate) struct HeapWeight {
    pub thread: ThreadId,
    pub stack: Option<StackId>,
    pub weight: u64,
}

/// The selected stacks by a quantity. Those of threads that are not known count for the first thread of their process.
pub(crate) fn weights(selection: &Selection<'_>, measure: Measure) -> Vec<HeapWeight> {
    let threads = &selection.capture().threads;
    let first_thread =
        |process| threads.iter().position(|thread| thread.process == Some(process)).map(ThreadId::from_index);
    let places = HeapSums::of(selection).by_stack(measure).into_iter();
    let weighted = places.filter_map(|((process, thread, stack), weight)| {
        Some(HeapWeight { thread: thread.or_else(|| first_thread(process))?, stack, weight })
    });
    weighted.collect()
}
