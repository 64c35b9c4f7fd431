//! The view `steps`: how long steps take, what they consist of, whether they grow, and which stand out.
//!
//! Four tables of the selection: [`loops`], [`quantities`], [`histogram`] and [`longest`]. [`steps`](crate::query::steps)
//! defines what belongs to a step.
//!
//! # Pacing
//! A simulator that keeps a real-time factor sleeps until the next step is due. That time is no cost and hides the cost
//! of the steps, so it is separate: *pacing* is the time in which the loop's thread is blocked and
//!
//! - sleeps voluntarily (class [sleep](WaitClass::Sleep)), or
//! - waits at a condition variable that no thread signals, so that a timer ends the wait (only with wake-ups).
//!
//! At high switch rates, not every wait has a stack. A wait without one is pacing if no thread ended it and at least nine
//! tenths of the time of similar waits with a stack are pacing: waits of the loop's thread that no thread ended.
//!
//! The time from the timer until a CPU is free is scheduler delay, not pacing. A loop that sleeps for another reason
//! looks the same as one that paces itself.
//!
//! # Stalls
//! A stall is a step of more than [`STALL`] times the median of the [`NEIGHBOURS`] steps on either side (fewer at the ends).
//! Neighbours, because all steps of a growing world become long, and none of them is a stall. Known pacing is excluded on
//! both sides.
//!
//! # Trend
//! The [Theil-Sen](stepscope_stats::trend) slope of the step times without pacing, with a 95 % confidence interval, as the
//! change from the first to the last step in percent of the median. The first step loads what the others use. It is left out
//! here and in all sums except the count.

mod parts;

use std::ops::Range;

use stepscope_model::{Dimension, Mark, Note, NoteValue, StackId, Step, Table, ThreadId, Value, note};
use stepscope_stats::{Distribution, Estimate, trend};

use crate::analyses::steps_over_time;
use crate::analysis::{Analysis, Part, ReportSection, View};
use crate::columns;
use crate::query::functions::FunctionId;
use crate::query::off_cpu::OffCpu;
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps, simulated};
#[cfg(doc)]
use crate::query::wait_class::WaitClass;
use crate::query::waits::blocked_ns;
use crate::query::weights::percent;

pub use parts::{Pacing, StepParts};

/// A stall takes more than this many times the median of its neighbours.
pub const STALL: f64 = 2.0;

/// Neighbours on either side.
pub const NEIGHBOURS: usize = 15;

/// Rows of [`longest`].
pub const LONGEST: usize = 30;

const CONFIDENCE: f64 = 0.95;

/// Which steps are [stalls](self#stalls), by their times.
pub fn stalls(times: &[u64]) -> Vec<bool> {
    (0..times.len()).map(|position| times_the_neighbours(times, position).is_some_and(|ratio| ratio > STALL)).collect()
}

/// A step's time divided by the median of its neighbours; `None` if there are none or their median is 0.
fn times_the_neighbours(times: &[u64], position: usize) -> Option<f64> {
    let (before, after) = (position.saturating_sub(NEIGHBOURS), (position + NEIGHBOURS + 1).min(times.len()));
    let mut around = [0_u64; 2 * NEIGHBOURS];
    let neighbours = times[before..position].iter().chain(&times[position + 1..after]);
    let count = around.iter_mut().zip(neighbours).map(|(slot, time)| *slot = *time).count();
    let around = &mut around[..count];
    let middle = count.checked_sub(1)? / 2;
    let (_, median, _) = around.select_nth_unstable(middle);
    (*median > 0).then(|| times[position] as f64 / *median as f64)
}

/// The change of a quantity from the first to the last step in percent of the median, without the first step.
fn change(steps: &Steps, values: &[u64]) -> Option<Estimate> {
    let kept = steps.after_first();
    let median = values[kept.clone()].iter().copied().collect::<Distribution>().median().filter(|ns| *ns > 0)?;
    let start = steps.span.start;
    let at = |position: usize| (steps.rows()[position].start_ns - start) as f64;
    let points: Vec<(f64, f64)> = kept.clone().map(|position| (at(position), values[position] as f64)).collect();
    let length = at(kept.end - 1) - at(kept.start);
    Some(trend::theil_sen(&points, CONFIDENCE)?.times(length * 100.0 / median as f64))
}

/// The tables of the view, in the order they are shown.
pub fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let Some(loops_found) = Loops::of(selection) else {
        let mut table = loops_table();
        table.note(no_steps(selection));
        return vec![table];
    };
    let off_cpu = OffCpu::of(selection.capture());
    let parts = StepParts::of(selection, &loops_found, loops_found.main(), &off_cpu);
    vec![
        loops(selection, &loops_found, &off_cpu),
        quantities(selection, &loops_found, &parts),
        histogram(loops_found.main(), &parts),
        longest(selection, &loops_found, &parts, &off_cpu),
    ]
}

/// Why there are no costs per step, and what to do.
pub fn no_steps(selection: &Selection<'_>) -> Note {
    if selection.capture().steps.is_empty() {
        return note!(
            Loss,
            "No steps were recorded. Name the step function with `stepscope record --step-function NAME`, or mark steps in \
             the program."
        );
    }
    note!(Limit, "No whole step lies within the selected time.")
}

fn loops_table() -> Table {
    Table::new(
        "loops",
        "Simulation loops",
        vec![
            columns::text("loop", "Process that runs the loop; empty if unknown.").essential(),
            columns::text("thread", "Last name of the thread that started most of its steps."),
            columns::number("tid", "", "That thread's id.").detail(),
            columns::number("pid", "", "Id of the process.").detail(),
            columns::count("steps", "steps", "Number of whole steps within the selected time.").essential(),
            columns::number("rate", "steps/s", "Steps per second, without the first."),
            columns::number("rtf", "", "Real-time factor: simulated time divided by wall time.").essential(),
            columns::number("rtf_unpaced", "", "Real-time factor without pacing: how fast the loop could run."),
            columns::duration("first_step", "The loop's first step, if selected. It loads what the others use."),
            columns::duration("median", "Median time of the other steps."),
            columns::count(
                "stalls",
                "steps",
                "Steps of more than twice the median of the 15 steps on either side, without pacing.",
            ),
            columns::duration("stall_time", "Total time of the stalls beyond that median.").detail(),
            columns::percent(
                "change",
                "Change of the step time without pacing from the first to the last step, in percent of the median; positive if steps become slower.",
            ),
            columns::percent("change_low", "Lower bound of its 95 % confidence interval.").detail(),
            columns::percent("change_high", "Upper bound.").detail(),
        ],
    )
}

/// The table `loops`: one row per loop, the main loop first.
fn loops(selection: &Selection<'_>, loops: &Loops, off_cpu: &OffCpu<'_>) -> Table {
    let mut table = loops_table();
    for steps in loops.all() {
        let parts = StepParts::of(selection, loops, steps, off_cpu);
        let change = change(steps, &parts.unpaced());
        table.push(loop_row(selection, steps, &parts, change));
        if table.rows.len() == 1 {
            table.add_notes(loop_notes(steps, &parts, change));
        }
    }
    if table.rows.len() > 1 {
        table.note(note!(
            Hint,
            "The other tables are about the first loop. Choose another one with --process or --thread. Costs per step are per \
             step of each thread's own loop."
        ));
    }
    table
}

fn loop_row(selection: &Selection<'_>, steps: &Steps, parts: &StepParts, change: Option<Estimate>) -> Vec<Value> {
    let capture = selection.capture();
    let thread = &capture.threads[most_frequent_thread(steps.rows()).index()];
    let process = thread.process.map(|process| &capture.processes[process.index()]);
    let kept = steps.after_first();
    let unpaced = parts.unpaced();
    let time: u64 = parts.durations[kept.clone()].iter().sum();
    let rate = (time > 0).then(|| kept.len() as f64 * 1e9 / time as f64);
    let (stalls, beyond) = stalled(&unpaced, kept.clone());
    let others: Distribution = parts.durations[kept].iter().copied().collect();
    vec![
        selection.process_label_of(thread).into(),
        thread.name.as_str().into(),
        thread.tid.into(),
        process.map(|process| process.pid).into(),
        steps.count().into(),
        rate.into(),
        steps.real_time_factor.into(),
        unpaced_factor(steps, parts).into(),
        steps.first().map(|step| step.end_ns - step.start_ns).into(),
        others.median().into(),
        stalls.into(),
        beyond.into(),
        change.map(|change| change.value).into(),
        change.map(|change| change.low).into(),
        change.map(|change| change.high).into(),
    ]
}

fn most_frequent_thread(rows: &[Step]) -> ThreadId {
    let mut counts: Vec<(usize, ThreadId)> = Vec::new();
    for step in rows {
        match counts.iter_mut().find(|(_, thread)| *thread == step.thread) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, step.thread)),
        }
    }
    let most = counts.into_iter().reduce(|most, one| if one.0 > most.0 { one } else { most });
    most.expect("a loop has steps").1
}

/// Number of stalls in `kept`, and their time beyond the median of their neighbours.
fn stalled(times: &[u64], kept: Range<usize>) -> (usize, u64) {
    let times = &times[kept];
    let ratios =
        (0..times.len()).filter_map(|position| Some((times[position], times_the_neighbours(times, position)?)));
    let stalls = ratios.filter(|(_, ratio)| *ratio > STALL);
    stalls
        .fold((0, 0), |(count, beyond), (time, ratio)| (count + 1, beyond + (time as f64 * (1.0 - 1.0 / ratio)) as u64))
}

/// Simulated over wall time, without the pacing in that wall time.
fn unpaced_factor(steps: &Steps, parts: &StepParts) -> Option<f64> {
    parts.spent.as_ref()?;
    let (wall, simulated) = simulated(steps.rows())?;
    let first = steps.rows().iter().position(|step| step.sim_time_ns.is_some())?;
    let last = steps.rows().iter().rposition(|step| step.sim_time_ns.is_some())?;
    let pacing = parts.pacing[first + 1..=last].iter().copied().fold(0, u64::saturating_add);
    let worked = wall.checked_sub(pacing).filter(|ns| *ns > 0)?;
    Some(simulated as f64 / worked as f64)
}

fn loop_notes(steps: &Steps, parts: &StepParts, change: Option<Estimate>) -> Vec<Note> {
    let mut notes = Vec::new();
    let time: u64 = parts.durations.iter().sum();
    if parts.is_paced() {
        let pacing = parts.pacing.iter().copied().fold(0, u64::saturating_add);
        notes.push(note!(
            Fact,
            "Pacing is {} of the steps' time ({}): the loop's thread slept.",
            NoteValue::percent(percent(pacing.into(), time.into()).unwrap_or(0.0)),
            NoteValue::ns(pacing)
        ));
    }
    if parts.unknown_ns > 0 {
        notes.push(note!(
            Loss,
            "{} of blocking has no stack, so it may be pacing; it is not counted as pacing.",
            NoteValue::ns(parts.unknown_ns)
        ));
    }
    if parts.spent.is_none() {
        notes.push(note!(Loss, "Context switches were not recorded, so pacing is unknown."));
    }
    notes.push(match change {
        None => note!(Limit, "{} are too few for a trend.", NoteValue::plural(steps.count(), "step")),
        Some(change) => {
            let interval = format!("{:+.1} % ({:+.1} to {:+.1} %)", change.value, change.low, change.high);
            match change {
                _ if change.low > 0.0 => note!(Fact, "Steps become slower: {} from the first to the last.", interval),
                _ if change.high < 0.0 => note!(Fact, "Steps become faster: {} from the first to the last.", interval),
                _ => note!(Fact, "No significant trend: {} from the first to the last step.", interval),
            }
        }
    });
    if steps.real_time_factor.is_none() {
        notes.push(note!(Limit, "The steps have no simulated time, so there is no real-time factor."));
    }
    notes
}

/// The table `steps`: one row per part of a step, without the first step.
fn quantities(selection: &Selection<'_>, loops: &Loops, parts: &StepParts) -> Table {
    let steps = loops.main();
    let mut table = Table::new(
        "steps",
        "Steps, by part",
        vec![
            columns::text("quantity", "Part of a step.").essential(),
            columns::duration("total", "Sum over all steps but the first."),
            columns::percent("share", "Share of the steps' time. CPU time of all threads can exceed 100 %."),
            columns::duration("mean", "Mean of the steps.").essential(),
            columns::duration("min", "Smallest."),
            columns::duration("median", "Median.").essential(),
            columns::duration("p95", "95th percentile: a value that occurred."),
            columns::duration("p99", "99th percentile."),
            columns::duration("max", "Largest."),
            columns::duration("first_step", "Value of the loop's first step, which the other columns leave out."),
            columns::percent("change", "Change from the first to the last step in percent of the median (Theil-Sen).")
                .detail(),
            columns::percent("change_low", "Lower bound of its 95 % confidence interval.").detail(),
            columns::percent("change_high", "Upper bound.").detail(),
        ],
    );
    let time: u64 = parts.durations[steps.after_first()].iter().sum();
    let mut add = |name: &str, values: &[u64]| table.push(quantity_row(name, steps, values, time));
    add("step", &parts.durations);
    if parts.spent.is_some() {
        add("step without pacing", &parts.unpaced());
        add("pacing", &parts.pacing);
    }
    if let Some(spent) = &parts.spent {
        add("loop thread running", &spent.iter().map(|spent| spent.running).collect::<Vec<_>>());
        add("loop thread runnable", &spent.iter().map(|spent| spent.runnable).collect::<Vec<_>>());
        let waiting = spent.iter().zip(&parts.pacing).map(|(spent, pacing)| spent.blocked.saturating_sub(*pacing));
        add("loop thread blocked, not pacing", &waiting.collect::<Vec<_>>());
    }
    if let Some(cpu) = &parts.cpu {
        add(if parts.cpu_is_exact { "CPU of all threads" } else { "CPU of all threads, sampled" }, cpu);
    }
    if selection.filters_threads() {
        table.note(note!(Limit, "CPU time is that of the selected threads."));
    }
    table
}

fn quantity_row(name: &str, steps: &Steps, values: &[u64], time: u64) -> Vec<Value> {
    let others: Distribution = values[steps.after_first()].iter().copied().collect();
    let change = change(steps, values);
    vec![
        name.into(),
        others.sum().into(),
        percent(others.sum(), time.into()).into(),
        others.mean().into(),
        others.min().into(),
        others.median().into(),
        others.percentile(95.0).into(),
        others.percentile(99.0).into(),
        others.max().into(),
        steps.first().map(|_| values[0]).into(),
        change.map(|change| change.value).into(),
        change.map(|change| change.low).into(),
        change.map(|change| change.high).into(),
    ]
}

/// The largest number of bins.
const BINS: usize = 30;

/// The table `step_histogram`: step times in bins of equal ratio.
///
/// Step times spread over decades and cluster within a few percent, so bins are equal on a logarithmic scale. Their width
/// there is that of Freedman and Diaconis (1981), 2 IQR / n^(1/3), with at most 30 bins.
fn histogram(steps: &Steps, parts: &StepParts) -> Table {
    let mut table = Table::new(
        "step_histogram",
        "Distribution of step times",
        vec![
            columns::duration("from", "Shortest time of the bin.").essential(),
            columns::duration("to", "First time beyond the bin.").essential(),
            columns::count("steps", "steps", "Number of steps, without the loop's first.").essential(),
            columns::percent("share", "Share of the steps."),
            columns::percent("cumulative", "Share of the steps in this bin and all bins of shorter times."),
            columns::percent("time_share", "Share of all steps' time."),
            columns::text("bar", "The share as a bar; the fullest bin fills it."),
        ],
    );
    let times: Distribution = parts.durations[steps.after_first()].iter().copied().filter(|ns| *ns > 0).collect();
    let bins = bins(&times);
    let fullest = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    let mut up_to = 0;
    for bin in &bins {
        up_to += bin.count;
        table.push(vec![
            bin.range.start.into(),
            bin.range.end.into(),
            bin.count.into(),
            percent(bin.count as u128, times.len() as u128).into(),
            percent(up_to as u128, times.len() as u128).into(),
            percent(bin.sum, times.sum()).into(),
            bar(bin.count, fullest).into(),
        ]);
    }
    table
}

fn bar(count: usize, fullest: usize) -> String {
    const LENGTH: usize = 24;
    let eighths = (count * LENGTH * 8).div_ceil(fullest.max(1));
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{rest}", "█".repeat(eighths / 8))
}

struct Bin {
    range: Range<u64>,
    count: usize,
    sum: u128,
}

fn bins(times: &Distribution) -> Vec<Bin> {
    let (Some(min), Some(max)) = (times.min(), times.max()) else { return Vec::new() };
    let log = |ns: u64| (ns as f64).ln();
    let quartile = |percent: f64| times.percentile(percent).map_or(0.0, log);
    let rule = 2.0 * (quartile(75.0) - quartile(25.0)) / (times.len() as f64).cbrt();
    let range = log(max) - log(min);
    let count = if rule > 0.0 { (range / rule).ceil().clamp(1.0, BINS as f64) as usize } else { BINS };
    let edge = |bin: usize| match bin {
        0 => min,
        _ if bin == count => max + 1,
        _ => (log(min) + range * bin as f64 / count as f64).exp().round() as u64,
    };
    let mut edges: Vec<u64> = (0..=count).map(edge).collect();
    edges.dedup();
    let values = times.values();
    let bin = |pair: &[u64]| {
        let (from, to) = (values.partition_point(|ns| *ns < pair[0]), values.partition_point(|ns| *ns < pair[1]));
        Bin { range: pair[0]..pair[1], count: to - from, sum: values[from..to].iter().map(|ns| u128::from(*ns)).sum() }
    };
    edges.windows(2).map(bin).collect()
}

/// The table `longest_steps`: the longest steps without pacing, and their parts.
fn longest(selection: &Selection<'_>, loops: &Loops, parts: &StepParts, off_cpu: &OffCpu<'_>) -> Table {
    let steps = loops.main();
    let mut table = Table::new(
        "longest_steps",
        "The longest steps",
        vec![
            columns::number("step", "", "Number of the step.").essential(),
            columns::duration("start", "Start of the step, since the start of the recording."),
            columns::duration("duration", "Duration of the step.").essential(),
            columns::duration("pacing", "Part of `duration`: pacing of the loop's thread.").detail(),
            columns::number(
                "times_neighbours",
                "",
                "Its time without pacing, divided by the median of its neighbours.",
            ),
            columns::flag("stall", "Whether it is a stall.").detail(),
            columns::duration("running", "Time of the loop's thread on a CPU."),
            columns::duration("runnable", "Time of the loop's thread waiting for a CPU."),
            columns::duration("blocked", "Time of the loop's thread blocked, without pacing."),
            columns::duration("cpu", "CPU time of all threads."),
            columns::text(
                "function",
                "Function with the most attributed samples of all threads (nearest owned function; of the program, if nothing is owned).",
            ),
            columns::duration("function_cpu", "That function's time."),
            columns::text(
                "waits_at",
                "Function with the most attributed blocked time of the loop's thread, without pacing.",
            ),
            columns::duration("waits", "That function's time.").detail(),
        ],
    );
    let unpaced = parts.unpaced();
    let mut order: Vec<usize> = (0..steps.count()).collect();
    order.sort_by_key(|position| std::cmp::Reverse(unpaced[*position]));
    order.truncate(LONGEST);
    let places = attributed_in(selection, loops, &order);
    let mut pacing = Pacing::of(selection, steps, off_cpu);
    let start = selection.capture().info.start_ns.unwrap_or(steps.span.start);
    for (place, &position) in order.iter().enumerate() {
        let step = &steps.rows()[position];
        let name = |id: FunctionId| &*selection.functions().get(id).name;
        let waited = waited_at(selection, off_cpu, step, &mut pacing);
        let spent = parts.spent.as_ref().map(|spent| spent[position]);
        let ratio = times_the_neighbours(&unpaced, position);
        table.push(vec![
            step.index.into(),
            step.start_ns.saturating_sub(start).into(),
            parts.durations[position].into(),
            spent.map(|_| parts.pacing[position]).into(),
            ratio.into(),
            ratio.map(|ratio| ratio > STALL).into(),
            spent.map(|spent| spent.running).into(),
            spent.map(|spent| spent.runnable).into(),
            spent.map(|spent| spent.blocked.saturating_sub(parts.pacing[position])).into(),
            parts.cpu.as_ref().map(|cpu| cpu[position]).into(),
            places[place].map(|(id, _)| name(id)).into(),
            places[place].map(|(_, weight)| weight).into(),
            waited.map(|(id, _)| name(id)).into(),
            waited.map(|(_, ns)| ns).into(),
        ]);
    }
    table
}

/// For each of these steps, the function with the most attributed samples.
fn attributed_in(selection: &Selection<'_>, loops: &Loops, positions: &[usize]) -> Vec<Option<(FunctionId, u64)>> {
    let mut place_of = vec![None; loops.main().count()];
    positions.iter().enumerate().for_each(|(place, position)| place_of[*position] = Some(place));
    let mut sums: Vec<Vec<(FunctionId, u64)>> = vec![Vec::new(); positions.len()];
    for sample in selection.samples() {
        let Some(place) = loops.main_step_of(sample).and_then(|position| place_of[position]) else { continue };
        if let Some(function) = sample.stack.and_then(|stack| selection.functions().attributed(stack)) {
            sums[place].push((function, sample.weight));
        }
    }
    sums.into_iter().map(largest).collect()
}

fn waited_at(
    selection: &Selection<'_>,
    off_cpu: &OffCpu<'_>,
    step: &Step,
    pacing: &mut Pacing<'_>,
) -> Option<(FunctionId, u64)> {
    let waits = off_cpu.within(step.thread, step.start_ns..step.end_ns);
    let attributed = |stack: StackId| selection.functions().attributed(stack);
    largest(
        waits
            .filter(|wait| !pacing.is_pacing(wait))
            .filter_map(|wait| Some((wait.stack.and_then(attributed)?, blocked_ns(&wait))))
            .filter(|(_, ns)| *ns > 0)
            .collect(),
    )
}

/// The function with the largest sum; of equal ones the first of the capture.
fn largest(mut parts: Vec<(FunctionId, u64)>) -> Option<(FunctionId, u64)> {
    parts.sort_unstable_by_key(|(function, _)| *function);
    let sums = parts.chunk_by(|a, b| a.0 == b.0);
    let sums = sums.map(|of_one| (of_one[0].0, of_one.iter().fold(0_u64, |sum, part| sum.saturating_add(part.1))));
    sums.reduce(|best, one| if one.1 > best.1 { one } else { best })
}

/// How long steps take.
pub struct StepTimes;

impl Analysis for StepTimes {
    fn title(&self) -> &'static str {
        "Steps"
    }

    fn views(&self) -> &'static [View] {
        &[View {
            name: "steps",
            question: "How long do steps take, what are they parts of, do they grow, and which stall?",
            tables: |selection, _| tables(selection),
        }]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Steps]
    }

    /// The loops, a chart over time, the quantities, a histogram and the longest steps.
    fn report(&self, selection: &Selection<'_>) -> Vec<ReportSection> {
        let Some(over_time) = steps_over_time::table(selection) else { return Vec::new() };
        let over_time = Part::Chart {
            table: over_time,
            across: "at",
            marks: vec![
                Mark::Band("shortest".into(), "longest".into()),
                Mark::Line("median".into()),
                Mark::Points("stall".into()),
            ],
            caption: "step time since the start: median as a line, shortest to longest, stalls as dots",
        };
        let part = |table: Table| match table.name.as_str() {
            "step_histogram" => Part::Chart {
                table,
                across: "from",
                marks: vec![Mark::Bars { to: "to".into(), height: "steps".into() }],
                caption: "number of steps over their time",
            },
            _ => Part::Table(table),
        };
        let mut parts: Vec<Part> = tables(selection).into_iter().map(part).collect();
        parts.insert(1, over_time);
        vec![ReportSection::new("Steps", parts)]
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    const NAP: &str = "main;gz::Run;usleep;clock_nanosleep";
    const LOCK: &str = "main;gz::Step;pthread_mutex_lock;__lll_lock_wait";

    fn all(capture: &Capture) -> Vec<Table> {
        drawn::selected(capture, &["gz::"], tables)
    }

    /// Ten steps of 100 ns that simulate 50 each; in each the loop sleeps 20, and waits 10 + 5 at a lock; a worker runs 30.
    fn paced() -> Capture {
        let mut drawing = Drawing::new()
            .window(0..2_000)
            .process(1, "/usr/bin/sim")
            .lived("main", 0..2_000, None)
            .steps("main", 100, 100, 10, 50)
            .lived("worker", 0..2_000, None);
        for step in 1..11 {
            let start = step * 100;
            drawing = drawing
                .blocked_then_runnable("main", start + 10..start + 25, 5, LOCK)
                .blocked("main", start + 80..start + 100, NAP)
                .blocked("worker", start + 30..start + 100, "");
        }
        drawing.folded(Event::sampled("cpu-clock", "ns"), "@140 main;gz::Step;find 9\n@999 worker;gz::Work 30").capture
    }

    #[test]
    fn the_loop_is_shown_with_and_without_pacing() {
        let tables = all(&paced());
        assert_eq!(
            cells(&tables[0], &["loop", "thread", "steps", "rtf", "rtf_unpaced", "first_step", "median", "stalls"]),
            ["sim | main | 10 | 0.5 | 0.625 | 100 | 100 | 0"]
        );
        assert_eq!(tables[0].notes[0], "Pacing is 20.00 % of the steps' time (200 ns): the loop's thread slept.");
    }

    #[test]
    fn a_step_is_parts_of_what_its_threads_did_in_it() {
        let tables = all(&paced());
        assert_eq!(
            cells(&tables[1], &["quantity", "total", "share", "mean", "p99", "first_step"]),
            [
                "step | 900 | 100 | 100 | 100 | 100",
                "step without pacing | 720 | 80 | 80 | 80 | 80",
                "pacing | 180 | 20 | 20 | 20 | 20",
                "loop thread running | 585 | 65 | 65 | 65 | 65",
                "loop thread runnable | 45 | 5 | 5 | 5 | 5",
                "loop thread blocked, not pacing | 90 | 10 | 10 | 10 | 10",
                "CPU of all threads | 855 | 95 | 95 | 95 | 95",
            ]
        );
    }

    #[test]
    fn a_condition_that_no_thread_signals_is_pacing_where_wake_ups_are_known() {
        let capture = Drawing::new()
            .lived("main", 0..100, None)
            .blocked_then_runnable("main", 0..10, 0, "gz::Run;pthread_cond_timedwait")
            .blocked("main", 20..30, "gz::Run;pthread_cond_timedwait")
            .capture;
        drawn::selected(&capture, &[], |selection| {
            let nothing = OffCpu::of(&capture);
            let steps = Drawing::new().steps("main", 200, 1, 1, 1).capture;
            let steps = drawn::selected(&steps, &[], |selection| Steps::of(selection).unwrap());
            let mut pacing = Pacing::of(selection, &steps, &nothing);
            let mut signalled = capture.waits[0];
            signalled.waker = Some(ThreadId(0));
            let judged = [capture.waits[0], signalled, capture.waits[1]].map(|wait| pacing.is_pacing(&wait));
            assert_eq!(judged, [true, false, false]);
        });
    }

    #[test]
    fn a_wait_without_a_stack_is_what_those_with_one_are() {
        let paced_by = |stack: &str| {
            let mut drawing =
                Drawing::new().window(0..2_000).lived("main", 0..2_000, None).steps("main", 0, 100, 20, 50);
            for step in 0..20 {
                let stack = if step % 2 == 0 { stack } else { "" };
                drawing = drawing.blocked_then_runnable("main", step * 100 + 50..step * 100 + 90, 0, stack);
            }
            let tables = all(&drawing.capture);
            cells(&tables[1], &["quantity", "total"])[2].clone()
        };
        assert_eq!([paced_by(NAP), paced_by("main;gz::Save;fsync")], ["pacing | 760", "pacing | 0"]);
    }

    #[test]
    fn a_stall_is_long_among_its_neighbours_and_not_at_the_end_of_a_growing_run() {
        let growing: Vec<u64> = (0..200).map(|step| 1_000 + 20 * step).collect();
        assert!(stalls(&growing).iter().all(|stall| !stall));
        let mut jump = growing.clone();
        jump[10] = 2_600;
        jump[150] = 7_900;
        let found: Vec<usize> = (0..200).filter(|step| stalls(&jump)[*step]).collect();
        assert_eq!(found, [10]);
        assert_eq!(stalls(&[5]), [false]);
    }

    #[test]
    fn a_loop_that_slows_down_is_said_to_and_by_how_much() {
        let mut capture = Drawing::new().window(0..1_000_000).steps("main", 0, 1, 100, 1).capture;
        let mut start = 0;
        for step in &mut capture.steps {
            (step.start_ns, step.end_ns) = (start, start + 1_000 + 10 * step.index);
            start = step.end_ns;
        }
        let table = &all(&capture)[0];
        let Some(Value::Float(change)) = table.get(0, "change") else { panic!("{:?}", table.rows) };
        // From 1010 to 1990 ns, with a median of 1500: 65 %.
        assert!((60.0..72.0).contains(change), "{change}");
        assert!(table.notes.iter().any(|note| note.starts_with("Steps become slower: ")), "{:?}", table.notes);
    }

    #[test]
    fn bins_hold_every_step_but_the_first() {
        let table = &all(&paced())[2];
        assert_eq!(
            cells(table, &["from", "to", "steps", "share", "cumulative", "time_share"]),
            ["100 | 101 | 9 | 100 | 100 | 100"]
        );
        let times: Distribution = (1..=1_000_u64).map(|index| 1_000 + index * index).collect();
        let bins = bins(&times);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), 1_000);
        assert_eq!(bins.iter().map(|bin| bin.sum).sum::<u128>(), times.sum());
        assert!((5..=BINS).contains(&bins.len()), "{}", bins.len());
    }

    #[test]
    fn the_longest_steps_say_what_they_did() {
        let table = &all(&paced())[3];
        assert_eq!(
            cells(table, &["step", "start", "duration", "running", "blocked", "cpu", "function", "waits_at"])[..2],
            ["0 | 100 | 100 | 65 | 10 | 95 | gz::Step | gz::Step", "1 | 200 | 100 | 65 | 10 | 95 | - | gz::Step"]
        );
        assert_eq!(cells(table, &["function", "function_cpu"])[8], "gz::Work | 30");
    }

    #[test]
    fn without_steps_the_table_says_how_to_have_them() {
        let tables = all(&drawn::folded("main;a 1"));
        assert_eq!(tables.len(), 1);
        assert!(tables[0].notes[0].contains("--step-function"), "{:?}", tables[0].notes);
    }

    #[test]
    fn without_switches_times_and_sampled_cost_are_all_that_is_known() {
        let capture = Drawing::new()
            .window(0..100)
            .steps("main", 0, 10, 5, 1)
            .folded(Event::sampled("cpu-clock", "ns"), "@15 main;a 4\n@25 main;a 6")
            .capture;
        let tables = all(&capture);
        assert_eq!(
            cells(&tables[1], &["quantity", "total", "max"]),
            ["step | 40 | 10", "CPU of all threads, sampled | 10 | 6"]
        );
        assert_eq!(cells(&tables[3], &["running", "pacing"])[0], "- | -");
    }
}
