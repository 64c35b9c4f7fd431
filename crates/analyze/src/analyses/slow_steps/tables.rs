//! The tables `slow_steps_parts` and `slow_steps`, and their notes.

use std::cmp::Reverse;

use stepscope_model::{Column, Columns, Note, NoteValue, Table, note};
use stepscope_stats::bootstrap::BlockBootstrap;

use super::comparison::{ByStep, Comparison, Costs, Means, Sums};
use super::sets::{FEWEST_SLOW, Measure, Split, StepKind};
use crate::analyses::step_times::StepPart;
use crate::columns::{bounds, of_function};
use crate::notes;
use crate::query::functions::{FunctionId, Functions, NO_STACK};
use crate::query::weights::{Amount, percent};

/// With fewer slow steps than this, 95 % intervals cover the true value in only 75 to 90 % of simulated recordings.
const FEW_SLOW: usize = 10;

/// Rows at the top, and at the bottom, that get an interval.
const INTERVALS: (usize, usize) = (100, 30);

/// The table `slow_steps_parts`: what the difference between slow and typical steps consists of.
pub(super) fn parts(comparison: &Comparison<'_>, bootstrap: &BlockBootstrap) -> Table {
    let parts = &comparison.parts;
    let mut found = vec![StepPart { name: "step", ns: parts.durations.clone() }];
    if parts.spent.is_some() {
        found.extend(parts.of_loop_thread());
        found.push(parts.pacing());
    }
    if let Some(delays) = comparison.delays.as_ref().filter(|delays| delays.on_path) {
        found.push(StepPart { name: "waiting for a CPU on the critical path", ns: delays.ns.clone() });
    }
    found.extend(parts.cpu_of_all_threads());
    let rows = found.into_iter().map(|part| (part.name, part_means(comparison, bootstrap, &part.ns)));
    let doc = "Part of a step. Running, runnable, blocked and pacing of the loop's thread add up to the step.";
    let mut table = Columns::<(&str, Means)>::new()
        .text("quantity", doc, |(name, _)| (*name).into())
        .duration("slow", "Mean of the slow steps.", |(_, means)| means.slow)
        .duration("typical", "Mean of the typical steps.", |(_, means)| means.typical)
        .duration("difference", "Slow minus typical.", |(_, means)| means.difference())
        .with_all(bounds("", Column::duration, |(_, means): &(&str, Means)| means.interval))
        .essential("quantity slow typical difference")
        .table("slow_steps_parts", "Slow and typical steps, by part", rows);
    table.add_notes(set_notes(comparison));
    table
}

fn part_means(comparison: &Comparison<'_>, bootstrap: &BlockBootstrap, values: &[u64]) -> Means {
    let mean = |kind: StepKind| {
        let positions = comparison.positions(kind);
        positions.iter().map(|position| values[*position] as f64).sum::<f64>() / positions.len() as f64
    };
    let by_step: Vec<(u32, f64)> =
        values.iter().enumerate().map(|(position, value)| (position as u32, *value as f64)).collect();
    let interval = comparison.interval(bootstrap, &by_step);
    Means { slow: mean(StepKind::Slow), typical: mean(StepKind::Typical), interval }
}

fn set_notes(comparison: &Comparison<'_>) -> Vec<Note> {
    let sets = &comparison.sets;
    let of = comparison.loops.main().after_first().len();
    let without = match (sets.measure, comparison.parts.is_paced()) {
        (Measure::Work, true) => " without pacing and CPU waits",
        (Measure::Work, false) => " without CPU waits",
        (Measure::Clock, true) => " without pacing",
        (Measure::Clock, false) => "",
    };
    let slow = NoteValue::plural(sets.slow.len(), "step");
    let share = NoteValue::percent(percent(sets.slow.len() as u128, of as u128).unwrap_or(0.0));
    let threshold = NoteValue::ns(sets.threshold_ns);
    let mut notes = vec![
        match sets.split {
            Split::Gap => note!(
                Fact,
                "Slow: {} ({}) of {} or more{}, beyond a gap in the step times.",
                slow,
                share,
                threshold,
                without
            ),
            Split::Levels(levels) => note!(
                Fact,
                "Slow: {} ({}) of {} or more{}, on the upper of two levels ({}; the lower is {}).",
                slow,
                share,
                threshold,
                without,
                NoteValue::ns(levels.upper.round() as u64),
                NoteValue::ns(levels.lower.round() as u64)
            ),
            Split::Percentile => note!(
                Fact,
                "Slow: the slowest {} % ({}, {} or more{}). No natural cut-off was found.",
                (100.0 - sets.percentile).to_string(),
                slow,
                threshold,
                without
            ),
        },
        note!(
            Fact,
            "Typical: {} of {} to {}{} (p40 to p60{}). The loop's first step is in neither set.",
            NoteValue::plural(sets.typical.len(), "step"),
            NoteValue::ns(sets.typical_ns.0),
            NoteValue::ns(sets.typical_ns.1),
            without,
            if matches!(sets.split, Split::Levels(_)) { " of the lower level" } else { "" }
        ),
    ];
    if sets.split == Split::Gap && sets.others_above_p95 > 0 {
        notes.push(note!(
            Fact,
            "A cut-off at p95 would add {} without extra {}.",
            NoteValue::plural(sets.others_above_p95, "step"),
            if sets.measure == Measure::Work { "work" } else { "time" }
        ));
    }
    match sets.slow.len() {
        0..FEWEST_SLOW => notes.push(note!(
            Limit,
            "Fewer than {} slow steps: no intervals. Record for longer.",
            NoteValue::number(FEWEST_SLOW)
        )),
        FEWEST_SLOW..FEW_SLOW => notes.push(note!(
            Limit,
            "Fewer than {} slow steps: intervals are too narrow, because few slow steps show little of how they vary. Record \
             for longer.",
            NoteValue::number(FEW_SLOW)
        )),
        _ => {}
    }
    notes
}

/// A row of `slow_steps`: a function, or the samples without a stack.
struct Row {
    function: Option<FunctionId>,
    attributed: Means,
    blocked: Means,
    own: Means,
    inclusive: Means,
    in_slow: Option<f64>,
    in_typical: Option<f64>,
}

impl Row {
    fn verdict(&self) -> Option<&'static str> {
        let (cpu, blocked) = (self.attributed.interval?, self.blocked.interval?);
        let larger = if cpu.value.abs() >= blocked.value.abs() { [cpu, blocked] } else { [blocked, cpu] };
        Some(match larger.iter().find(|estimate| estimate.excludes_zero()) {
            Some(estimate) if estimate.value > 0.0 => "more",
            Some(_) => "less",
            None => "inconclusive",
        })
    }
}

/// The columns `difference, low, high`, after a prefix.
fn differences<'a>(prefix: &str, doc: &str, of: fn(&Row) -> &Means) -> Columns<'a, Row> {
    Columns::new().duration(&format!("{prefix}difference"), doc, move |row| of(row).difference()).with_all(bounds(
        prefix,
        Column::duration,
        move |row| of(row).interval,
    ))
}

/// The table `slow_steps` of these rows.
fn table(functions: &Functions, rows: Vec<Row>) -> Table {
    let difference = "Attributed CPU time per slow step minus that per typical step (of the nearest owned function; of the \
                      program, if nothing is owned).";
    let blocked = "Blocked time of the loop's thread attributed to it, per slow step minus per typical step, without \
                   pacing.";
    let verdict = "`more` or `less` in slow steps, if the interval of attributed CPU or blocked time excludes 0; else \
                   `inconclusive`. Missing without an interval: in the middle of a long table, and with fewer than 5 slow \
                   steps.";
    let inclusive = "Inclusive CPU time per slow step minus that per typical step.";
    Columns::new()
        .with_all(of_function(functions).on(|row: &Row| &row.function))
        .duration("difference", difference, |row| row.attributed.difference())
        .with_all(bounds("", Column::duration, |row: &Row| row.attributed.interval))
        .duration("slow", "Attributed CPU time per slow step.", |row| row.attributed.slow)
        .duration("typical", "Attributed CPU time per typical step.", |row| row.attributed.typical)
        .with_all(differences("blocked_", blocked, |row| &row.blocked))
        .duration("blocked_slow", "That blocked time per slow step.", |row| row.blocked.slow)
        .duration("blocked_typical", "That blocked time per typical step.", |row| row.blocked.typical)
        .with_all(differences("self_", "Self CPU time per slow step minus that per typical step.", |row| &row.own))
        .with_all(differences("inclusive_", inclusive, |row| &row.inclusive))
        .percentage("in_slow", "Share of slow steps with a sample of it, or a wait on the loop's thread.", |row| {
            row.in_slow
        })
        .percentage("in_typical", "The same share of typical steps.", |row| row.in_typical)
        .text("verdict", verdict, |row| row.verdict().into())
        .essential("difference slow typical verdict")
        .detail("blocked_slow blocked_typical in_typical")
        .table("slow_steps", "Slow steps against typical steps, per step", rows)
}

/// The table `slow_steps` with no rows, and why.
pub(super) fn without_rows(functions: &Functions, why: Note) -> Table {
    let mut table = table(functions, Vec::new());
    table.note(why);
    table
}

/// The table `slow_steps`.
pub(super) fn functions(comparison: &Comparison<'_>, bootstrap: &BlockBootstrap) -> Table {
    let costs = Costs::of(comparison);
    let functions = comparison.selection.functions();
    let id_of: Vec<FunctionId> = functions.all().map(|(id, _)| id).collect();
    let order = ordered(comparison, &costs, &id_of);
    let by_step = ByStep::of(comparison, &with_interval(&order, id_of.len() + 1));
    let row = |row: usize| {
        let by_step = by_step[row].as_ref();
        let means = |sums: &Sums, of: fn(&ByStep) -> &Vec<(u32, f64)>| Means {
            interval: by_step.and_then(|values| comparison.interval(bootstrap, of(values))),
            ..sums.means(comparison, row)
        };
        let share_of = |kind: StepKind| by_step.and_then(|values| share_of_steps(comparison, values, kind));
        Row {
            function: id_of.get(row).copied(),
            attributed: means(&costs.attributed, |values| &values.attributed),
            blocked: means(&costs.blocked, |values| &values.blocked),
            own: means(&costs.own, |values| &values.own),
            inclusive: means(&costs.inclusive, |values| &values.inclusive),
            in_slow: share_of(StepKind::Slow),
            in_typical: share_of(StepKind::Typical),
        }
    };
    let mut table = table(functions, order.iter().map(|position| row(*position)).collect());
    table.add_notes(function_notes(comparison));
    table
}

/// Functions with a cost, by the difference in attributed CPU time plus that in blocked time, not for other threads.
fn ordered(comparison: &Comparison<'_>, costs: &Costs, id_of: &[FunctionId]) -> Vec<usize> {
    let functions = comparison.selection.functions();
    let name = |row: usize| id_of.get(row).map_or(NO_STACK, |id| &*functions.get(*id).name);
    let difference = |sums: &Sums, row: usize| sums.means(comparison, row).difference();
    let score = |row: usize| difference(&costs.attributed, row) + difference(&costs.blocked_alone, row);
    let inclusive = |row: usize| Reverse(difference(&costs.inclusive, row).round() as i64);
    let mut rows: Vec<(usize, f64)> = costs.rows().map(|row| (row, score(row))).collect();
    rows.sort_by(|(a, score_a), (b, score_b)| {
        score_b.total_cmp(score_a).then_with(|| (inclusive(*a), name(*a)).cmp(&(inclusive(*b), name(*b))))
    });
    rows.into_iter().map(|(row, _)| row).collect()
}

/// Which of all rows get an interval.
fn with_interval(order: &[usize], count: usize) -> Vec<bool> {
    let mut chosen = vec![false; count];
    let (top, bottom) = INTERVALS;
    order.iter().take(top).chain(order.iter().rev().take(bottom)).for_each(|row| chosen[*row] = true);
    chosen
}

/// Share of a set's steps that have the function, in percent.
fn share_of_steps(comparison: &Comparison<'_>, values: &ByStep, kind: StepKind) -> Option<f64> {
    let steps = values.inclusive.iter().chain(&values.blocked).map(|(step, _)| *step);
    let mut steps: Vec<u32> = steps.filter(|step| comparison.sets.of_position(*step as usize) == Some(kind)).collect();
    steps.sort_unstable();
    steps.dedup();
    percent(steps.len() as u128, comparison.count(kind) as u128)
}

fn function_notes(comparison: &Comparison<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    let is_slow = |step: usize| comparison.sets.of_position(step) == Some(StepKind::Slow);
    let in_slow: Amount = comparison.samples().filter(|one| is_slow(one.step)).map(|one| one.amount).sum();
    if in_slow.count > 0 {
        // Ten samples have an error of a third.
        let least = in_slow.weight * 10 / u128::from(in_slow.count) / comparison.count(StepKind::Slow) as u128;
        let unit = comparison.selection.event().map_or("", |event| &event.unit);
        notes.push(note!(
            Limit,
            "Slow steps have {}: a cost below {} per slow step has fewer than 10 of them.",
            NoteValue::plural(in_slow.count as usize, "sample"),
            NoteValue::of(least, unit)
        ));
    }
    notes.extend(notes::ownership_note(std::slice::from_ref(comparison.selection)));
    if !comparison.selection.has_switches() {
        notes.push(note!(Loss, "Context switches were not recorded, so blocked time and pacing are unknown."));
    }
    if comparison.loops.count() > 1 {
        notes.push(note!(
            Hint,
            "Only threads of the loop with the most steps are compared. Choose another one with --process or --thread."
        ));
    }
    notes
}
