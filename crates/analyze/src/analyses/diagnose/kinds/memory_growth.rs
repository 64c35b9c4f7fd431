//! Memory grows while the program runs.
//!
//! Evidence: live heap bytes have a rising trend (Theil and Sen; the 95 % interval lies above zero) in the steps, and in their
//! second half nearly as much. Each of 20 parts of the time counts by its smallest value, so that what is freed again does not
//! count. The function holds most of the growth. Without a recorded heap resident memory is the evidence, and the function
//! below which most page faults touch new memory; that is weak, because allocators keep what is freed. A short recording without
//! steps may be of loading, unless the thread that touches the memory waits for messages, others or time all the time: it serves.
//! Look-alikes: a cache that fills, a log that is kept.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use stepscope_model::{NoteValue, ProcessId, StackId, ThreadId, WaitState};
use stepscope_stats::trend;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::{Seen, Tenths};
use crate::query::events::{self, Role};
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::weights::{Amount, StackWeights};

/// Parts of the time.
const PARTS: usize = 20;

/// Without steps, a shorter recording may be of loading.
const LOADED_NS: u64 = 60_000_000_000;

/// Without steps, a thread has loaded that waits this often, all the time.
const FEWEST_WAITS: f64 = 50.0;

/// Least part of the page faults that are below one function.
const MOSTLY: f64 = 0.5;

/// Fewest points of half of the time: a recording of four seconds has eight readings.
const FEWEST_POINTS: usize = 3;

/// Least growth: of heap bytes and of resident memory, and in percent.
const LEAST_BYTES: [f64; 2] = [65_536.0, 16_777_216.0];
const LEAST_PERCENT: f64 = 5.0;

/// Least slope of the second half as a part of the whole one: what fills up grows ever more slowly.
const STILL: f64 = 0.8;

pub(super) struct MemoryGrowth;

/// A series that grows.
struct Growth {
    /// Smallest values of the first and of the last part.
    first: f64,
    last: f64,
    bytes_per_s: f64,
}

impl Kind for MemoryGrowth {
    fn name(&self) -> &'static str {
        "memory-grows-over-time"
    }

    fn advice(&self) -> &'static str {
        "Release what is no longer used, or bound the container that keeps it."
    }

    fn confirm(&self) -> &'static str {
        "Record the heap (`record --with heap`) for longer: the function whose live bytes grow on."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["allocations-each-step"]
    }

    fn ends_program(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let [least_heap, least_resident] = LEAST_BYTES;
        let span = seen.span();
        // A program that is still loading grows, too.
        let may_load = seen.loops.is_none() && span.end - span.start < LOADED_NS;
        match seen.recorded.has_heap() {
            true => growth(seen, "heap_live_bytes", least_heap).map(|growth| {
                let found = of_heap(seen, &growth);
                if may_load { found.sure(Confidence::Weak) } else { found }
            }),
            false => growth(seen, "rss_bytes", least_resident)
                .and_then(|growth| of_resident(seen, &Faults::of(seen), &growth, may_load)),
        }
        .into_iter()
        .collect()
    }
}

impl Growth {
    fn text(&self, seen: &Seen<'_, '_>, what: &str) -> String {
        let bytes = |bytes: f64| NoteValue::of(bytes.round(), "bytes");
        let span = seen.span();
        let length = NoteValue::of((span.end - span.start) as f64, "ns");
        let (first, last, second) = (bytes(self.first), bytes(self.last), bytes(self.bytes_per_s));
        let grow = if what.ends_with('s') { "grow" } else { "grows" };
        format!("{what} {grow} from {first} to {last} in {length}: {second} per second.")
    }
}

fn of_heap(seen: &Seen<'_, '_>, growth: &Growth) -> Found {
    let holders = holders(seen);
    let detail = growth.text(seen, "Live heap bytes");
    let all: i64 = holders.values().filter(|bytes| **bytes > 0).sum();
    let most = holders.into_iter().max_by_key(|(owner, bytes)| (*bytes, *owner)).filter(|(_, bytes)| *bytes > 0);
    let Some((Some(owner), bytes)) = most else {
        let found = Found::of_program("The heap grows while it runs".to_owned(), None);
        return found.because(detail, "show --view heap-time");
    };
    let share = percent(100.0 * bytes as f64 / all.max(1) as f64);
    let title = format!("`{}` holds ever more memory", seen.name(owner));
    Found::of_program(title, None)
        .about(Some(owner))
        .because(detail, "show --view heap-time")
        .confirmed(format!("It holds {share} of the growth."), "show --view heap --sort leaked_bytes")
}

/// The page faults in the steps, or in the recorded time.
struct Faults {
    by_function: Vec<Amount>,
    total: Amount,
    /// The thread with most of them.
    thread: Option<ThreadId>,
}

impl Faults {
    fn of(seen: &Seen<'_, '_>) -> Self {
        let span = seen.span();
        let event = events::of_role(seen.capture(), Role::MinorFaults).next();
        let Some(event) = event else {
            return Self { by_function: Vec::new(), total: Amount::default(), thread: None };
        };
        let faults = seen.selection.of_event(event).within(span);
        let mut by_thread: BTreeMap<ThreadId, u64> = BTreeMap::new();
        faults.samples().for_each(|fault| *by_thread.entry(fault.thread).or_default() += fault.weight);
        let thread = by_thread.into_iter().max_by_key(|(thread, faults)| (*faults, *thread)).map(|(thread, _)| thread);
        let all = StackWeights::of_samples(&faults);
        let by_function = all.attributed_by_function(seen.functions());
        Self { by_function, total: all.total(), thread }
    }

    /// The owned function below which most of them are, with its share in percent.
    fn function(&self, seen: &Seen<'_, '_>) -> Option<(FunctionId, f64)> {
        let amount = |id: &FunctionId| self.by_function.get(id.index()).map_or(0, |amount| amount.weight);
        let most = seen.functions().all().map(|(id, _)| id).max_by_key(amount)?;
        let part = amount(&most) as f64 / self.total.weight.max(1) as f64;
        (part >= MOSTLY).then_some((most, 100.0 * part))
    }
}

/// Whether a thread waits for messages, other threads or time all the time.
fn serves(seen: &Seen<'_, '_>, thread: ThreadId) -> bool {
    let (span, mut classes) = (seen.span(), Classes::new(seen.capture(), seen.functions()));
    let (mut count, mut met) = (0.0, Tenths::default());
    for wait in seen.waits(thread).filter(|wait| wait.state == WaitState::Blocked) {
        let class = wait.stack.map(|stack| classes.of(stack));
        if !matches!(class, Some(WaitClass::Network | WaitClass::Condition | WaitClass::Sleep | WaitClass::Other)) {
            continue;
        }
        count += f64::from(wait.count);
        met.meet(wait.start_ns, &span);
    }
    count >= FEWEST_WAITS && met.are_most()
}

/// Resident memory that grows, with the function that touches the new memory.
fn of_resident(seen: &Seen<'_, '_>, faults: &Faults, growth: &Growth, may_load: bool) -> Option<Found> {
    if may_load && !faults.thread.is_some_and(|thread| serves(seen, thread)) {
        return None;
    }
    let detail = growth.text(seen, "Resident memory");
    let found = |title: String| {
        let found = Found::of_program(title, None).sure(Confidence::Weak);
        found.because(detail, "show --view resources")
    };
    Some(match faults.function(seen) {
        Some((function, share)) => {
            let text = format!("{} of the memory that is touched first is touched there.", percent(share));
            let title = format!("Memory grows while it runs, most of it below `{}`", seen.name(function));
            found(title).about(Some(function)).because(text, "show --view faults")
        }
        None => found("Resident memory grows while it runs".to_owned()),
    })
}

/// The trend of a quantity of all processes in the steps; `None` if it does not grow.
fn growth(seen: &Seen<'_, '_>, quantity: &str, least_bytes: f64) -> Option<Growth> {
    let span = seen.span();
    let length = span.end.checked_sub(span.start).filter(|length| *length > 0)?;
    let mut least: BTreeMap<ProcessId, [Option<i64>; PARTS]> = BTreeMap::new();
    for reading in &seen.capture().counters {
        if *reading.name != *quantity || !span.contains(&reading.time_ns) {
            continue;
        }
        let part = (u128::from(reading.time_ns - span.start) * PARTS as u128 / u128::from(length)) as usize;
        let of_part = &mut least.entry(reading.process?).or_default()[part];
        *of_part = Some(of_part.map_or(reading.value, |least| least.min(reading.value)));
    }
    let part_s = length as f64 / 1e9 / PARTS as f64;
    let sum = |part: usize| -> Option<(f64, f64)> {
        let values: Option<Vec<i64>> = least.values().map(|parts| parts[part]).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some((part as f64 * part_s, values.iter().sum::<i64>() as f64))
    };
    let points: Vec<(f64, f64)> = (0..PARTS).filter_map(sum).collect();
    let all = slope(&points)?;
    if slope(&points[points.len() / 2..])? < all * STILL {
        return None;
    }
    let (first, last) = (points[0].1, points[points.len() - 1].1);
    let is_large = last - first >= least_bytes && (last - first) * 100.0 >= first * LEAST_PERCENT;
    is_large.then_some(Growth { first, last, bytes_per_s: all })
}

/// The slope of points that rise. Few points have to rise from each one to the next.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() >= trend::MIN_POINTS {
        return trend::theil_sen(points, 0.95).filter(|slope| slope.low > 0.0).map(|slope| slope.value);
    }
    let (first, last) = points.first().zip(points.last()).filter(|_| points.len() >= FEWEST_POINTS)?;
    points.is_sorted_by(|a, b| a.1 < b.1).then(|| (last.1 - first.1) / (last.0 - first.0))
}

/// By how much the live bytes of each function grew from the first half of the steps to the end.
fn holders(seen: &Seen<'_, '_>) -> BTreeMap<Option<FunctionId>, i64> {
    let span = seen.span();
    let middle = span.start + (span.end - span.start) / 2;
    type Place = (ProcessId, Option<ThreadId>, Option<StackId>);
    let mut live: FxHashMap<Place, [i64; 2]> = FxHashMap::default();
    for row in &seen.capture().allocations {
        let [before, after] = live.entry((row.process, row.thread, row.stack)).or_default();
        *after = row.live_bytes;
        if row.end_ns <= middle {
            *before = row.live_bytes;
        }
    }
    let mut by_owner: BTreeMap<Option<FunctionId>, i64> = BTreeMap::new();
    for ((_, _, stack), [before, after]) in live {
        let owner = stack.and_then(|stack| seen.functions().attributed(stack));
        *by_owner.entry(owner).or_default() += after - before;
    }
    by_owner
}
