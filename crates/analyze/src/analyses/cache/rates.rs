//! Rates of the whole recording, of kinds of cores, threads and steps.

use std::collections::BTreeMap;

use stepscope_model::{Column, Columns, EventCount, EventId, Note, Step, Table, ThreadId, Value, note};

use super::reading::{Quantity, Reading, core_of};
use super::{multiplexing_note, simulation_note};
use crate::columns;
use crate::query::select::Selection;
use crate::query::steps::Steps;

/// The quantity of each event of a capture.
fn quantities(selection: &Selection<'_>) -> Vec<(EventId, (Quantity, u8))> {
    let events = selection.capture().info.events.iter().enumerate();
    let known =
        events.filter_map(|(index, event)| Some((EventId::from_index(index), Quantity::of(&event.name, &event.unit)?)));
    known.collect()
}

/// Counts of the selection: those of its threads; intervals that lie within it.
fn counts<'s>(selection: &'s Selection<'_>) -> impl Iterator<Item = &'s EventCount> + 's {
    let is_selected = |row: &&EventCount| {
        let of_thread = match row.thread {
            Some(thread) => selection.has_thread(thread),
            None => !selection.filters_threads(),
        };
        let in_time = match (row.start_ns, row.end_ns) {
            (Some(start), Some(end)) => {
                !selection.filters_time()
                    || selection.window().is_some_and(|window| window.start <= start && end <= window.end)
            }
            _ => !selection.filters_time(),
        };
        of_thread && in_time
    };
    selection.capture().event_counts.iter().filter(is_selected)
}

/// Whether the capture counted cycles, instructions or misses; else, rates come from samples.
fn has_counts(selection: &Selection<'_>) -> bool {
    counts(selection).any(|row| row.count.is_some() && Quantity::of(&row.event, &row.unit).is_some())
}

/// The sums of the whole selection.
pub(crate) fn whole(selection: &Selection<'_>) -> Reading {
    let mut all = Reading::default();
    readings_by_core(selection).values().for_each(|reading| all.merge(reading));
    all
}

/// The table `cache`: one row for all, and one for each kind of core if there are several.
pub fn by_core(selection: &Selection<'_>) -> Table {
    let cores = readings_by_core(selection);
    let all = whole(selection);
    let mut rows = Vec::new();
    if !all.is_empty() {
        rows.push(("all".to_owned(), all));
        if cores.len() > 1 {
            rows.extend(
                cores.into_iter().map(|(core, reading)| (if core.is_empty() { "other".into() } else { core }, reading)),
            );
        }
    }
    let mut table = Columns::new()
        .with(
            Column::text("of", "All, or a kind of core of a hybrid CPU, such as `cpu_core`.").essential(),
            |(of, _): &(String, Reading)| of.as_str().into(),
        )
        .with_all(rates().on(|(_, reading): &(String, Reading)| reading))
        .table("cache", "Use of the CPU and its caches", rows);
    table.add_notes(notes(selection));
    table
}

/// The sums of each kind of core.
fn readings_by_core(selection: &Selection<'_>) -> BTreeMap<String, Reading> {
    let mut cores: BTreeMap<String, Reading> = BTreeMap::new();
    if has_counts(selection) {
        for row in counts(selection) {
            cores.entry(core_of(&row.event).to_owned()).or_default().add_count(row);
        }
    } else {
        for (event, quantity) in quantities(selection) {
            let core = core_of(&selection.capture().event(event).name).to_owned();
            for sample in selection.of_event(event).samples() {
                cores.entry(core.clone()).or_default().add(quantity, sample.weight);
            }
        }
    }
    cores.retain(|_, reading| !reading.is_empty());
    cores
}

/// The table `cache_threads`: one row per thread, those with most cycles first.
pub fn by_thread(selection: &Selection<'_>) -> Table {
    let mut threads: BTreeMap<ThreadId, Reading> = BTreeMap::new();
    if counts(selection).any(|row| row.thread.is_some()) {
        for row in counts(selection) {
            if let Some(thread) = row.thread {
                threads.entry(thread).or_default().add_count(row);
            }
        }
    } else {
        for (event, quantity) in quantities(selection) {
            for sample in selection.of_event(event).samples() {
                threads.entry(sample.thread).or_default().add(quantity, sample.weight);
            }
        }
    }
    let mut rows: Vec<(ThreadId, Reading)> = threads.into_iter().filter(|(_, reading)| !reading.is_empty()).collect();
    let size = |reading: &Reading| reading.sum(Quantity::Cycles).or_else(|| reading.sum(Quantity::Instructions));
    rows.sort_by_key(|(thread, reading)| (std::cmp::Reverse(size(reading)), *thread));
    let mut table = columns::thread(selection)
        .on(|(thread, _): &(ThreadId, Reading)| thread)
        .with_all(rates().on(|(_, reading): &(ThreadId, Reading)| reading))
        .table("cache_threads", "Use of the CPU and its caches by thread", rows);
    table.add_notes(notes(selection));
    table
}

/// The table `cache_steps`: one row per step of the main loop, of samples and counted intervals that lie within it.
pub fn by_step(selection: &Selection<'_>) -> Table {
    let steps = Steps::of(selection);
    let rows: &[Step] = steps.as_ref().map_or(&[], Steps::rows);
    let at = |time: u64| steps.as_ref().and_then(|steps| steps.at(time));
    let mut readings = vec![Reading::default(); rows.len()];
    let spans: Vec<_> = counts(selection).filter(|row| row.start_ns.is_some()).collect();
    if spans.is_empty() {
        for (event, quantity) in quantities(selection) {
            for sample in selection.of_event(event).samples() {
                if let Some(index) = sample.time_ns.and_then(at) {
                    readings[index].add(quantity, sample.weight);
                }
            }
        }
    }
    for row in spans {
        let within = row.start_ns.and_then(at).filter(|index| row.end_ns.is_some_and(|end| end <= rows[*index].end_ns));
        if let Some(index) = within {
            readings[index].add_count(row);
        }
    }
    let rows = rows.iter().zip(readings).filter(|(_, reading)| !reading.is_empty());
    let mut table = Columns::new()
        .number("step", "", "Number of the step.", |(index, _, _): &(u64, u64, Reading)| *index)
        .duration("duration", "How long the step took.", |(_, duration, _)| *duration)
        .with_all(rates().on(|(_, _, reading): &(u64, u64, Reading)| reading))
        .essential("step duration")
        .table(
            "cache_steps",
            "Use of the CPU and its caches by step",
            rows.map(|(step, reading)| (step.index, step.end_ns - step.start_ns, reading)),
        );
    table.add_notes(notes(selection));
    if !table.rows.is_empty() {
        table.note(note!(Limit, "A step has few samples: compare groups of steps, not single ones."));
    }
    table
}

fn notes(selection: &Selection<'_>) -> Vec<Note> {
    let has_any = has_counts(selection) || !quantities(selection).is_empty();
    let sampled = (has_any && !has_counts(selection) && simulation_note(selection).is_none())
        .then(|| note!(Fact, "Estimates: sums of sampled periods. `perf stat` and `record --with cache` count."));
    simulation_note(selection).into_iter().chain(multiplexing_note(selection)).chain(sampled).collect()
}

/// The columns of a reading.
fn rates<'a>() -> Columns<'a, Reading> {
    let sum = |quantity| move |reading: &Reading| reading.sum(quantity);
    let slots = |quantity| move |reading: &Reading| reading.slots(quantity);
    Columns::new()
        .prose("assessment", "How well the CPU is used, by these figures.", |reading: &Reading| {
            match reading.assessment() {
                "" => Value::Missing,
                words => words.into(),
            }
        })
        .number("ipc", "", "Instructions per cycle.", Reading::ipc)
        .number("mpki", "", "Last-level cache misses per 1,000 instructions.", Reading::mpki)
        .percentage("miss_rate", "Last-level cache misses in percent of its accesses.", Reading::miss_rate)
        .percentage(
            "first_level_miss_rate",
            "First-level data cache misses in percent of its accesses.",
            Reading::first_level_miss_rate,
        )
        .percentage("branch_miss_rate", "Wrongly predicted branches in percent of all.", Reading::branch_miss_rate)
        .percentage("retiring", "Issue slots whose work was of use (top-down).", slots(Quantity::Retiring))
        .percentage(
            "bad_speculation",
            "Issue slots lost to wrong predictions (top-down).",
            slots(Quantity::BadSpeculation),
        )
        .percentage("frontend", "Issue slots that waited for instructions (top-down).", slots(Quantity::FrontEnd))
        .percentage(
            "backend",
            "Issue slots that waited for memory or execution units (top-down).",
            slots(Quantity::BackEnd),
        )
        .weight("cycles", "cycles", "CPU cycles.", sum(Quantity::Cycles))
        .weight("instructions", "instructions", "Instructions.", sum(Quantity::Instructions))
        .weight("references", "references", "Accesses of the last-level cache.", sum(Quantity::References))
        .weight("misses", "misses", "Misses of the last-level cache.", sum(Quantity::Misses))
        .weight("branches", "branches", "Branches.", sum(Quantity::Branches))
        .weight("branch_misses", "misses", "Wrongly predicted branches.", sum(Quantity::BranchMisses))
        .percentage(
            "counted",
            "Part of the time in which the least counted event had a counter; its count is scaled up.",
            Reading::counted,
        )
        .essential("assessment ipc mpki miss_rate")
        .detail("first_level_miss_rate retiring bad_speculation frontend backend references branches branch_misses")
}
