//! The tables `samples` and `waits`, and how far they and `amounts` are added up.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_analyze::query::waits::{blocked_ns, runnable_ns};
use stepscope_analyze::wait_class::{Classes, WaitClass};
use stepscope_model::quantity::{grouped, plural, weight};
use stepscope_model::{Capture, Counts, Sample, StackId, Wait, WaitState};

use super::places::Places;
use super::rows::{PARTS, Row, RowCounts, count, middle_of, part_of, rows_table};
use super::{Profile, amounts, cpu, row};
use crate::parquet_table::ParquetTable;

/// What the tables of samples and waits have in common: which stacks they use, and how far they are added up.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub places: Arc<Places>,
    /// Into how many parts of the recording samples are added up; `None` if each has its own row.
    sample_parts: Option<u64>,
    pub sample_rows: usize,
    pub wait_rows: usize,
    wait_parts: Option<u64>,
    amount_parts: Option<u64>,
    pub amount_rows: usize,
    /// What was lost by that, in sentences.
    pub left_out: Vec<String>,
}

/// Numbers the state of waits.
pub struct States<'a> {
    classes: Classes<'a>,
}

impl<'a> States<'a> {
    /// For the waits of a profile.
    pub fn of(profile: &Profile<'a>) -> Self {
        Self { classes: Classes::new(profile.capture(), profile.selection().functions()) }
    }

    /// The place of a wait's state in [`states`](super::states).
    pub fn number(&mut self, wait: &Wait) -> i32 {
        match wait.state {
            WaitState::Preempted => 0,
            WaitState::Blocked => self.blocked_at(wait.stack),
        }
    }

    /// The place of the state of a thread that is blocked at this stack.
    pub fn blocked_at(&mut self, stack: Option<StackId>) -> i32 {
        let class = stack.map_or(WaitClass::ALL.len(), |stack| self.classes.of(stack).index());
        class as i32 + 1
    }
}

impl Evidence {
    pub fn of(profile: &Profile<'_>) -> Self {
        let places =
            profile.names.as_ref().map_or_else(|| Arc::new(places(profile)), |names| names.stacks.places().clone());
        let mut found = Self { places, ..Self::default() };
        let limits = profile.limits();
        let count = selected_samples(profile).count();
        found.sample_rows = count;
        if count > limits.samples {
            let (parts, rows) = sample_counts(profile, &found.places).fitting(limits.samples);
            (found.sample_parts, found.sample_rows) = (Some(parts), rows);
            found.left_out.push(added_up("samples", count, parts, profile));
        }
        let count = profile.selection().waits().count();
        found.wait_rows = count;
        if count > limits.waits {
            let (parts, rows) = wait_counts(profile, &found.places).fitting(limits.waits);
            (found.wait_parts, found.wait_rows) = (Some(parts), rows);
            found.left_out.push(added_up("waits", count, parts, profile));
        }
        let count = amounts::count(profile);
        found.amount_rows = count;
        if count > limits.waits {
            let (parts, rows) = amounts::row_counts(profile, &found.places).fitting(limits.waits);
            (found.amount_parts, found.amount_rows) = (Some(parts), rows);
            found.left_out.push(added_up("allocations and system calls", count, parts, profile));
        }
        if found.places.merged() > 0 {
            found.left_out.push(format!(
                "{} with little weight are shown as (other), below their nearest shown caller.",
                plural(found.places.merged(), "stack")
            ));
        }
        found
    }
}

impl Evidence {
    /// Whether samples or waits are added up.
    pub fn is_added_up(&self) -> bool {
        self.sample_parts.is_some() || self.wait_parts.is_some()
    }
}

fn added_up(what: &str, count: usize, parts: u64, profile: &Profile<'_>) -> String {
    let length = (profile.span().end - profile.span().start) / parts;
    format!(
        "{} {what} are added up by thread and stack in parts of {}; sums are exact, moments within a part are not.",
        grouped(count as i128),
        weight(length, "ns")
    )
}

/// Frames and stacks by their share of all samples of an event, and of all waits.
fn places(profile: &Profile<'_>) -> Places {
    let capture = profile.capture();
    let mut weights = vec![0.0; capture.stacks.len()];
    let mut totals = vec![0_u128; capture.info.events.len()];
    selected_samples(profile).for_each(|sample| totals[sample.event.index()] += u128::from(sample.weight));
    // What weighs nothing is shown nevertheless.
    let share = |weight: u128, total: u128| weight as f64 / total.max(1) as f64 + f64::MIN_POSITIVE;
    for sample in selected_samples(profile) {
        if let Some(stack) = sample.stack {
            weights[stack.index()] += share(sample.weight.into(), totals[sample.event.index()]);
        }
    }
    // The time of waits at each stack, and whether there are some.
    let mut waits = vec![(0_u128, false); capture.stacks.len()];
    let mut total = 0;
    for wait in profile.selection().waits() {
        let length = u128::from(wait.end_ns - wait.start_ns);
        total += length;
        if let Some(stack) = wait.stack {
            waits[stack.index()] = (waits[stack.index()].0 + length, true);
        }
        if let Some(stack) = wait.waker_stack {
            waits[stack.index()].1 = true;
        }
    }
    for (weight, (length, _)) in weights.iter_mut().zip(waits).filter(|(_, (_, is_met))| *is_met) {
        *weight += share(length, total);
    }
    amounts::weigh_stacks(profile, &mut weights);
    Places::of(capture, profile.selection().functions(), &weights, profile.limits().stacks)
}

/// The selected samples of all events.
pub(super) fn selected_samples<'p>(profile: &'p Profile<'_>) -> impl Iterator<Item = &'p Sample> {
    let selection = profile.selection();
    profile.capture().samples.iter().filter(|sample| {
        selection.has_thread(sample.thread) && selection.has_time(sample.time_ns) && selection.has_stack(sample.stack)
    })
}

/// What samples that are added up have in common: part of the recording (none without a time), thread, stack, event.
type SampleKey = (Option<u64>, u32, i32, u32);

/// How many rows [`sums_of_samples`] has.
fn sample_counts(profile: &Profile<'_>, places: &Places) -> RowCounts<(bool, u32, i32, u32)> {
    let mut counts = RowCounts::new();
    for sample in selected_samples(profile) {
        let part = sample.time_ns.map_or(0, |time| part_of(time, profile.span(), PARTS[0]));
        let key = (sample.time_ns.is_some(), sample.thread.0, places.row(sample.stack), sample.event.0);
        counts.add(key, part, 0);
    }
    counts
}

fn sums_of_samples(profile: &Profile<'_>, places: &Places, parts: u64) -> FxHashMap<SampleKey, (u64, u64)> {
    let mut sums: FxHashMap<SampleKey, (u64, u64)> = FxHashMap::default();
    let recording = profile.span();
    for sample in selected_samples(profile) {
        let part = sample.time_ns.map(|time| part_of(time, recording, parts));
        let sum = sums.entry((part, sample.thread.0, places.row(sample.stack), sample.event.0)).or_default();
        *sum = (sum.0.saturating_add(sample.weight), sum.1.saturating_add(count_of(profile.capture(), sample)));
    }
    sums
}

/// Number of samples that a row stands for; 0 if unknown.
fn count_of(capture: &Capture, sample: &Sample) -> u64 {
    match capture.event(sample.event).counts {
        Counts::OnePerRow => 1,
        Counts::Weight => sample.weight,
        Counts::Unknown => 0,
    }
}

pub(super) fn amounts(profile: &Profile<'_>, evidence: &Evidence) -> ParquetTable {
    amounts::table(profile, &evidence.places, evidence.amount_parts)
}

pub(super) fn samples(profile: &Profile<'_>, evidence: &Evidence) -> ParquetTable {
    let places = &evidence.places;
    let rows: Vec<Row> = match evidence.sample_parts {
        None => selected_samples(profile)
            .map(|sample| Row {
                time: sample.time_ns.map_or(f64::NAN, |time| profile.since_start(time)),
                cpu: cpu(sample.cpu),
                thread: row(Some(sample.thread.index())),
                stack: places.row(sample.stack),
                event: row(Some(sample.event.index())),
                weight: sample.weight as f64,
                count: count_of(profile.capture(), sample),
            })
            .collect(),
        Some(parts) => sums_of_samples(profile, places, parts)
            .into_iter()
            .map(|((part, thread, stack, event), (weight, count))| Row {
                time: part.map_or(f64::NAN, |part| profile.since_start(middle_of(part, profile.span(), parts))),
                cpu: -1,
                thread: row(Some(thread as usize)),
                stack,
                event: row(Some(event as usize)),
                weight: weight as f64,
                count,
            })
            .collect(),
    };
    rows_table(rows)
}

/// From this number of rows of `samples` on there are [`sums`]: fewer reach a page at once.
const MANY: usize = 500_000;

/// The samples of each event by stack, for a page that shows the whole recording before it has all `samples`.
pub(super) fn sums(profile: &Profile<'_>, evidence: &Evidence) -> ParquetTable {
    let places = &evidence.places;
    // The first sum is of samples without a stack, whose row is -1.
    let mut sums: Vec<Vec<u64>> = vec![Vec::new(); profile.capture().info.events.len()];
    if evidence.sample_rows >= MANY {
        for sample in selected_samples(profile) {
            let sums = &mut sums[sample.event.index()];
            sums.resize(places.stack_rows() + 1, 0);
            let sum = &mut sums[(places.row(sample.stack) + 1) as usize];
            *sum = sum.saturating_add(sample.weight);
        }
    }
    let of_events = (0..).zip(sums).flat_map(|(event, sums)| {
        let rows = (-1..).zip(sums).filter(|(_, sum)| *sum > 0);
        rows.map(move |(stack, sum)| (event, stack, sum))
    });
    let sums: Vec<(i32, i32, u64)> = of_events.collect();
    ParquetTable::new()
        .integers("event", sums.iter().map(|(event, ..)| *event).collect())
        .integers("stack", sums.iter().map(|(_, stack, _)| *stack).collect())
        .numbers("weight", sums.iter().map(|(.., sum)| *sum as f64).collect())
}

/// A row of `waits`.
struct WaitRow {
    start_ns: u64,
    thread: i32,
    stack: i32,
    state: i32,
    blocked: u64,
    runnable: u64,
    cpu: i32,
    waker: i32,
    waker_stack: i32,
    count: u64,
}

impl WaitRow {
    fn of(wait: &Wait, state: i32, places: &Places) -> Self {
        Self {
            start_ns: wait.start_ns,
            thread: row(Some(wait.thread.index())),
            stack: places.row(wait.stack),
            state,
            blocked: blocked_ns(wait),
            runnable: runnable_ns(wait),
            cpu: cpu(wait.cpu),
            waker: row(wait.waker.map(|waker| waker.index())),
            waker_stack: places.row(wait.waker_stack),
            count: 1,
        }
    }

    /// Adds another wait of the same thread, stack and state.
    fn add(&mut self, other: &Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.blocked = self.blocked.saturating_add(other.blocked);
        self.runnable = self.runnable.saturating_add(other.runnable);
        self.count += 1;
        (self.cpu, self.waker, self.waker_stack) = (-1, -1, -1);
    }
}

/// How many rows [`sums_of_waits`] has.
fn wait_counts(profile: &Profile<'_>, places: &Places) -> RowCounts<(u32, i32, i32)> {
    let recording = profile.span();
    let part_ns = PARTS.map(|parts| (recording.end - recording.start) / parts);
    let mut states = States::of(profile);
    let mut counts = RowCounts::new();
    for wait in profile.selection().waits() {
        let length = wait.end_ns - wait.start_ns;
        let first = part_ns.iter().take_while(|part_ns| length > **part_ns).count();
        let key = (wait.thread.0, places.row(wait.stack), states.number(&wait));
        counts.add(key, part_of(wait.start_ns, recording, PARTS[0]), first);
    }
    counts
}

/// Waits that are longer than a part of the recording have rows of their own.
fn sums_of_waits(profile: &Profile<'_>, places: &Places, parts: u64) -> Vec<WaitRow> {
    let recording = profile.span();
    let part_ns = (recording.end - recording.start) / parts;
    let mut states = States::of(profile);
    let mut sums: FxHashMap<(u64, i32, i32, i32), WaitRow> = FxHashMap::default();
    let mut rows = Vec::new();
    for wait in profile.selection().waits() {
        let one = WaitRow::of(&wait, states.number(&wait), places);
        if wait.end_ns - wait.start_ns > part_ns {
            rows.push(one);
            continue;
        }
        let key = (part_of(wait.start_ns, recording, parts), one.thread, one.stack, one.state);
        match sums.get_mut(&key) {
            Some(sum) => sum.add(&one),
            None => {
                sums.insert(key, one);
            }
        }
    }
    rows.extend(sums.into_values());
    rows
}

pub(super) fn waits(profile: &Profile<'_>, evidence: &Evidence) -> ParquetTable {
    let mut states = States::of(profile);
    let mut rows: Vec<WaitRow> = match evidence.wait_parts {
        Some(parts) => sums_of_waits(profile, &evidence.places, parts),
        None => {
            let waits = profile.selection().waits();
            waits.map(|wait| WaitRow::of(&wait, states.number(&wait), &evidence.places)).collect()
        }
    };
    rows.sort_unstable_by_key(|row| (row.start_ns, row.thread, row.state, row.stack));
    let end = |row: &WaitRow| profile.since_start(row.start_ns) + row.blocked as f64 + row.runnable as f64;
    ParquetTable::new()
        .numbers("start", rows.iter().map(|row| profile.since_start(row.start_ns)).collect())
        .numbers("end", rows.iter().map(end).collect())
        .integers("thread", rows.iter().map(|row| row.thread).collect())
        .integers("stack", rows.iter().map(|row| row.stack).collect())
        .integers("state", rows.iter().map(|row| row.state).collect())
        .numbers("runnable", rows.iter().map(|row| row.runnable as f64).collect())
        .integers("cpu", rows.iter().map(|row| row.cpu).collect())
        .integers("waker", rows.iter().map(|row| row.waker).collect())
        .integers("waker_stack", rows.iter().map(|row| row.waker_stack).collect())
        .integers("count", rows.iter().map(|row| count(row.count)).collect())
}
