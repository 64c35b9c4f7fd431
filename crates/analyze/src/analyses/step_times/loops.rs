//! The tables `loops` and `steps`.

use std::ops::Range;

use stepscope_model::{Columns, Note, NoteValue, Step, Table, Thread, ThreadId, note};
use stepscope_stats::{Distribution, Estimate, Levels, trend, two_levels};

use super::stalls::{stalls, times_the_neighbours};
use super::{STALL, StepPart, StepParts};
use crate::columns::trend;
use crate::query::off_cpu::OffCpu;
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps, simulated};
use crate::query::weights::percent;

const CONFIDENCE: f64 = 0.95;

/// The levels of a quantity, without the first step.
pub(crate) fn levels(steps: &Steps, values: &[u64]) -> Option<Levels> {
    let kept: Vec<f64> = values[steps.after_first()].iter().map(|ns| *ns as f64).collect();
    two_levels(&kept)
}

/// The change of a quantity from the first to the last step in percent of the median, or of the level of each value if there
/// are two; without the first step.
fn change(steps: &Steps, values: &[u64], levels: Option<Levels>) -> Option<Estimate> {
    let kept = steps.after_first();
    let median = values[kept.clone()].iter().copied().collect::<Distribution>().median().filter(|ns| *ns > 0)?;
    let start = steps.span.start;
    let at = |position: usize| (steps.rows()[position].start_ns - start) as f64;
    let level = |value: f64| levels.map_or(median as f64, |levels| levels.of(value));
    let relative = |position: usize| values[position] as f64 / level(values[position] as f64);
    let points: Vec<(f64, f64)> = kept.clone().map(|position| (at(position), relative(position))).collect();
    let length = at(kept.end - 1) - at(kept.start);
    Some(trend::theil_sen(&points, CONFIDENCE)?.times(length * 100.0))
}

/// Two levels of step times, and how often steps switch between them.
#[derive(Debug, Clone, Copy)]
struct StepLevels {
    levels: Levels,
    switches: usize,
    /// Whether the first step is on the upper level.
    upper_first: bool,
}

impl StepLevels {
    fn of(steps: &Steps, values: &[u64]) -> Option<Self> {
        let levels = levels(steps, values)?;
        let upper: Vec<bool> = values[steps.after_first()].iter().map(|ns| levels.is_upper(*ns as f64)).collect();
        let switches = upper.windows(2).filter(|pair| pair[0] != pair[1]).count();
        Some(Self { levels, switches, upper_first: upper[0] })
    }

    fn note(&self) -> Note {
        let ns = |ns: f64| NoteValue::ns(ns.round() as u64);
        let Levels { lower, upper, upper_share, .. } = self.levels;
        if self.switches == 1 {
            let (from, to) = if self.upper_first { (upper, lower) } else { (lower, upper) };
            return note!(Fact, "Step times shift once, from {} to {}.", ns(from), ns(to));
        }
        note!(
            Fact,
            "Step times have two levels: {} ({} of the steps) and {} ({}). They switch {} times.",
            ns(lower),
            NoteValue::percent((1.0 - upper_share) * 100.0),
            ns(upper),
            NoteValue::percent(upper_share * 100.0),
            NoteValue::number(self.switches)
        )
    }
}

/// Time of stalls.
struct Stalls {
    number: usize,
    /// Their time beyond the median of their neighbours.
    beyond_ns: u64,
}

/// A row of `loops`.
struct LoopRow<'a> {
    thread: &'a Thread,
    steps: &'a Steps,
    parts: StepParts,
    /// Durations without the first.
    others: Distribution,
    stalls: Stalls,
    levels: Option<StepLevels>,
    change: Option<Estimate>,
}

impl<'a> LoopRow<'a> {
    fn of(selection: &Selection<'a>, loops: &'a Loops, steps: &'a Steps, off_cpu: &OffCpu<'_>) -> Self {
        let parts = StepParts::of(selection, loops, steps, off_cpu);
        let unpaced = parts.unpaced();
        let levels = StepLevels::of(steps, &unpaced);
        Self {
            thread: &selection.capture().threads[most_frequent_thread(steps.rows()).index()],
            steps,
            others: parts.durations[steps.after_first()].iter().copied().collect(),
            stalls: stalled(&unpaced, steps.after_first()),
            change: change(steps, &unpaced, levels.map(|levels| levels.levels)),
            levels,
            parts,
        }
    }

    fn rate(&self) -> Option<f64> {
        let time = self.others.sum();
        (time > 0).then(|| self.others.len() as f64 * 1e9 / time as f64)
    }
}

/// The table `loops`: one row per loop, the main loop first. Without rows if there is none.
pub(super) fn loops(selection: &Selection<'_>, loops: Option<&Loops>, off_cpu: &OffCpu<'_>) -> Table {
    let all = loops.into_iter().flat_map(|loops| loops.all().map(move |steps| (loops, steps)));
    let rows: Vec<LoopRow<'_>> = all.map(|(loops, steps)| LoopRow::of(selection, loops, steps, off_cpu)).collect();
    let processes = &selection.capture().processes;
    let stalls = "Steps of more than twice the median of the 15 steps on either side, without pacing.";
    let change = "Change of the step time without pacing from the first to the last step, in percent of the median, or of the \
                  step's level if there are two; positive if steps become slower.";
    let mut table = Columns::<LoopRow<'_>>::new()
        .text("loop", "Process that runs the loop; empty if unknown.", |row| {
            selection.process_label_of(row.thread).into()
        })
        .text("thread", "Last name of the thread that started most of its steps.", |row| {
            row.thread.name.as_str().into()
        })
        .number("tid", "", "That thread's id.", |row| row.thread.tid)
        .number("pid", "", "Id of the process.", |row| row.thread.process.map(|process| processes[process.index()].pid))
        .count("steps", "steps", "Number of whole steps within the selected time.", |row| row.steps.count())
        .number("rate", "steps/s", "Steps per second, without the first.", |row| row.rate())
        .number("rtf", "", "Real-time factor: simulated time divided by wall time.", |row| row.steps.real_time_factor)
        .number("rtf_unpaced", "", "Real-time factor without pacing: how fast the loop could run.", |row| {
            unpaced_factor(row.steps, &row.parts)
        })
        .duration("first_step", "The loop's first step, if selected. It loads what the others use.", |row| {
            row.steps.first().map(|step| step.end_ns - step.start_ns)
        })
        .duration("median", "Median time of the other steps.", |row| row.others.median())
        .duration("lower_level", "Lower of two levels of the step time without pacing, if there are two.", |row| {
            row.levels.map(|levels| levels.levels.lower)
        })
        .duration("upper_level", "Upper of these levels.", |row| row.levels.map(|levels| levels.levels.upper))
        .percentage("upper_share", "Share of the steps on the upper level.", |row| {
            row.levels.map(|levels| levels.levels.upper_share * 100.0)
        })
        .count("stalls", "steps", stalls, |row| row.stalls.number)
        .duration("stall_time", "Total time of the stalls beyond that median.", |row| row.stalls.beyond_ns)
        .with_all(trend(change, |row: &LoopRow<'_>| row.change))
        .essential("loop steps rtf median")
        .detail("thread tid pid first_step lower_level upper_level upper_share stall_time")
        .table("loops", "Simulation loops", &rows);
    table.add_notes(rows.first().into_iter().flat_map(loop_notes));
    if rows.len() > 1 {
        table.note(note!(
            Hint,
            "The other tables are about the first loop. Choose another one with --process or --thread. Costs per step are per \
             step of each thread's own loop."
        ));
    }
    table
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

/// The stalls in `kept`.
fn stalled(times: &[u64], kept: Range<usize>) -> Stalls {
    let times = &times[kept];
    let ratio = |position: usize| times_the_neighbours(times, position).filter(|ratio| *ratio > STALL);
    let beyond = |position: usize| Some((times[position] as f64 * (1.0 - 1.0 / ratio(position)?)) as u64);
    let found: Vec<u64> = (0..times.len()).filter_map(beyond).collect();
    Stalls { number: found.len(), beyond_ns: found.iter().sum() }
}

/// Which steps after the first are stalls, by their times without pacing.
pub(crate) fn stalls_after_first(steps: &Steps, times: &[u64]) -> Vec<bool> {
    stalls(&times[steps.after_first()])
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

fn loop_notes(&LoopRow { steps, ref parts, change, levels, .. }: &LoopRow<'_>) -> Vec<Note> {
    let mut notes: Vec<Note> = levels.iter().map(StepLevels::note).collect();
    let within = if levels.is_some() { ", within each level" } else { "" };
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
                _ if change.low > 0.0 => {
                    note!(Fact, "Steps become slower: {} from the first to the last{}.", interval, within)
                }
                _ if change.high < 0.0 => {
                    note!(Fact, "Steps become faster: {} from the first to the last{}.", interval, within)
                }
                _ => note!(Fact, "No significant trend: {} from the first to the last step{}.", interval, within),
            }
        }
    });
    if steps.real_time_factor.is_none() {
        notes.push(note!(Limit, "The steps have no simulated time, so there is no real-time factor."));
    }
    notes
}

/// A row of `steps`.
struct PartRow {
    name: &'static str,
    /// Values without the first step's.
    others: Distribution,
    first: Option<u64>,
    change: Option<Estimate>,
}

impl PartRow {
    fn of(StepPart { name, ns }: StepPart, steps: &Steps) -> Self {
        Self {
            name,
            others: ns[steps.after_first()].iter().copied().collect(),
            first: steps.first().map(|_| ns[0]),
            change: change(steps, &ns, levels(steps, &ns)),
        }
    }
}

/// The table `steps`: one row per part of a step, without the first step.
pub(super) fn steps(selection: &Selection<'_>, loops: &Loops, parts: &StepParts) -> Table {
    let steps = loops.main();
    let time: u64 = parts.durations[steps.after_first()].iter().sum();
    let mut found = vec![StepPart { name: "step", ns: parts.durations.clone() }];
    if parts.spent.is_some() {
        found.push(StepPart { name: "step without pacing", ns: parts.unpaced() });
        found.push(parts.pacing());
    }
    found.extend(parts.of_loop_thread());
    found.extend(parts.cpu_of_all_threads());
    let rows = found.into_iter().map(|part| PartRow::of(part, steps));
    let share = "Share of the steps' time. CPU time of all threads can exceed 100 %.";
    let first = "Value of the loop's first step, which the other columns leave out.";
    let change = "Change from the first to the last step in percent of the median, or of each value's level if there are two \
                  (Theil-Sen).";
    let mut table = Columns::<PartRow>::new()
        .text("quantity", "Part of a step.", |row| row.name.into())
        .duration("total", "Sum over all steps but the first.", |row| row.others.sum())
        .percentage("share", share, move |row| percent(row.others.sum(), time.into()))
        .duration("mean", "Mean of the steps.", |row| row.others.mean())
        .duration("min", "Smallest.", |row| row.others.min())
        .duration("median", "Median.", |row| row.others.median())
        .duration("p95", "95th percentile: a value that occurred.", |row| row.others.percentile(95.0))
        .duration("p99", "99th percentile.", |row| row.others.percentile(99.0))
        .duration("max", "Largest.", |row| row.others.max())
        .duration("first_step", first, |row| row.first)
        .with_all(trend(change, |row: &PartRow| row.change))
        .essential("quantity mean median p99")
        .detail("total min first_step")
        .table("steps", "Steps, by part", rows);
    if selection.filters_threads() {
        table.note(note!(Limit, "CPU time is that of the selected threads."));
    }
    table
}
