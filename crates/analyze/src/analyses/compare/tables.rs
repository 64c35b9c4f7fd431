//! The tables of a comparison.

use stepscope_model::{Column, Columns, Kind, Note, NoteValue, Table, Value, Verdict, note};

use super::Comparison;
use super::evidence::Family;
use super::judge::{Assessment, Noise};
use super::rows::{MetricRow, Row};
use crate::columns;
use crate::query::basis::Basis;

/// The tables of a comparison: the whole run, then each family that has rows.
///
/// For people, the columns `before` and `after` have the sides' names as headers.
pub fn tables(comparison: &Comparison) -> Vec<Table> {
    let families = Family::ALL.into_iter().filter(|family| !comparison.rows(*family).is_empty());
    [metrics_table(comparison)].into_iter().chain(families.map(|family| family_table(comparison, family))).collect()
}

fn title(comparison: &Comparison, subject: &str) -> String {
    format!("{subject}: {} against {}", comparison.after, comparison.before)
}

fn metrics_table(comparison: &Comparison) -> Table {
    let in_row_unit = |name: &str, doc: &str| Column::new(name, Kind::InRowUnit, "", doc);
    let mut table = Columns::<MetricRow>::new()
        .with(Column::text("metric", "Metric of the whole run.").essential(), |row| (&*row.name).into())
        .with(Column::text("unit", "Unit of `before`, `after` and `difference`.").detail(), |row| {
            row.unit.as_str().into()
        })
        .with(Column::text("better", "Which way it should go: `lower` or `higher`.").detail(), |row| {
            row.better.name().into()
        })
        .with_all(amount_columns(comparison, in_row_unit).on(|row: &MetricRow| &row.assessment))
        .with_all(verdict_columns().on(|row: &MetricRow| &row.assessment))
        .with(
            Column::percentage("detectable", "Smallest change that as many such runs detect in four of five cases.")
                .detail(),
            |row| row.assessment.detectable_percent.into(),
        )
        .with(Column::count("before_runs", "runs", "Runs before that have the metric.").detail(), |row| {
            row.runs.0.into()
        })
        .with(Column::count("after_runs", "runs", "Runs after that have the metric.").detail(), |row| row.runs.1.into())
        .table("compare_runs", title(comparison, "Whole run"), &comparison.metrics);
    table.add_notes(comparison.notes.iter().cloned());
    table
}

/// The columns `before`, `after`, and their difference.
fn amount_columns(comparison: &Comparison, column: impl Fn(&str, &str) -> Column) -> Columns<'static, Assessment> {
    Columns::new()
        .with(
            column("before", "Mean of the runs before.").essential().labelled(&*comparison.before),
            |row: &Assessment| row.before.into(),
        )
        .with(column("after", "Mean of the runs after.").essential().labelled(&*comparison.after), |row| {
            row.after.into()
        })
        .with(column("difference", "After minus before."), |row| row.difference.value.into())
        .with(column("difference_low", "Lower bound of its confidence interval, at `confidence`.").detail(), |row| {
            row.adjusted.difference.low.into()
        })
        .with(column("difference_high", "Upper bound of its confidence interval, at `confidence`.").detail(), |row| {
            row.adjusted.difference.high.into()
        })
}

/// The columns of ratio and verdict.
fn verdict_columns() -> Columns<'static, Assessment> {
    Columns::new()
        .with(Column::number("ratio", "", "After divided by before: 0.5 is half.").essential(), |row: &Assessment| {
            row.ratio.map(|ratio| ratio.value).into()
        })
        .with(Column::number("ratio_low", "", "Lower bound of the ratio's confidence interval, at `confidence`."), |row| {
            row.adjusted.ratio.map(|ratio| ratio.low).into()
        })
        .with(Column::number("ratio_high", "", "Upper bound of the ratio's confidence interval, at `confidence`."), |row| {
            row.adjusted.ratio.map(|ratio| ratio.high).into()
        })
        .with(
            Column::percentage(
                "narrowed",
                "By how much the interval is narrower because the row is adjusted for the machine's speed. Missing if it is not.",
            )
            .detail(),
            |row| row.speed.as_ref().map(|by| (1.0 - by.width_share) * 100.0).into(),
        )
        .with(
            Column::percentage(
                "confidence",
                "Confidence level of the intervals. 95 % for equivalent rows; for others it is adjusted for the number of \
                 rows that were tested, as the verdict is.",
            )
            .detail(),
            |row| Some(row.adjusted.confidence * 100.0).filter(|level| *level > 0.0).into(),
        )
        .with(
            Column::number("p", "", "Probability of a difference this large or larger if nothing had changed.").detail(),
            |row| row.p.into(),
        )
        .with(
            Column::number("q", "", "p adjusted for the number of rows (Benjamini and Hochberg): `changed` needs 0.05 or less."),
            |row| row.q.into(),
        )
        .with(
            Column::text(
                "verdict",
                "`changed` (the difference is significant), `equivalent` (the interval lies within the tolerance), or \
                 `inconclusive`.",
            )
            .essential(),
            |row| row.verdict.name().into(),
        )
        .with(
            Column::count(
                "more_runs",
                "runs",
                "Extra runs per side that would probably (in four of five cases) settle an inconclusive row. Missing if more \
                 than a thousand are needed.",
            ),
            |row| row.more_runs.into(),
        )
}

/// The name, title and first column of a family's table.
pub(super) fn heading(family: Family) -> (&'static str, &'static str, &'static str) {
    match family {
        Family::Attributed => ("compare_attributed", "Functions by attributed cost", "function"),
        Family::Own => ("compare_self", "Functions by self cost", "function"),
        Family::Inclusive => ("compare_inclusive", "Functions by inclusive cost", "function"),
        Family::Threads => ("compare_threads", "Threads by name", "thread"),
        Family::Categories => ("compare_categories", "Categories", "category"),
        Family::Waits => ("compare_waits", "Callers by blocked time", "function"),
        Family::Allocations => ("compare_allocations", "Functions by allocations", "function"),
        Family::TemporaryAllocations => ("compare_temporary", "Functions by temporary allocations", "function"),
        Family::AllocatedBytes => ("compare_allocated", "Functions by allocated bytes", "function"),
        Family::SystemCalls => ("compare_syscalls", "Functions by system calls", "function"),
        Family::SystemCallTime => ("compare_syscall_time", "Functions by time in system calls", "function"),
    }
}

/// A column of costs in this unit, on the comparison's basis.
pub(super) fn cost_column(comparison: &Comparison, unit: &str, name: &str, doc: &str) -> Column {
    let kind = match (comparison.basis, unit) {
        (Basis::Share, _) => Kind::Percent,
        (_, "ns") => Kind::Duration,
        (_, "bytes") => Kind::Bytes,
        _ => Kind::Number,
    };
    Column::new(name, kind, comparison.basis.unit(unit), doc)
}

fn family_table(comparison: &Comparison, family: Family) -> Table {
    let (name, subject, key) = heading(family);
    let of_functions = key == "function";
    let counted = family.counted();
    let unit = family.unit().unwrap_or(&comparison.unit);
    let cost = |name: &str, doc: &str| cost_column(comparison, unit, name, doc);
    let presence = Column::text("presence", "`both`, `new` or `vanished`.").detail();
    let count = |name: &str, side: &str| {
        Column::count(name, counted, &format!("Number of {counted} {side}, in all runs.")).detail()
    };
    let matched = Column::text("matched", "How it was matched with a function of another name before, and which.");
    let first = if of_functions {
        function_columns()
    } else {
        let name = Column::text(key, "Its name.").essential();
        Columns::new().with(name, |row: &Row| (&*row.identity().name).into())
    };
    let mut table = first
        .with(presence, |row| row.presence().into())
        .with_all(amount_columns(comparison, cost).on(|row: &Row| &row.assessment))
        .with_all(verdict_columns().on(|row: &Row| &row.assessment))
        .with(count("before_count", "before"), |row| row.assessment.counts.map(|(before, _)| before).into())
        .with(count("after_count", "after"), |row| row.assessment.counts.map(|(_, after)| after).into())
        .with_if(of_functions, matched.detail(), matched_value)
        .table(name, title(comparison, subject), comparison.rows(family));
    table.add_notes(family_notes(comparison, family));
    table
}

/// The [columns of functions](columns::function), for rows of a comparison.
fn function_columns() -> Columns<'static, Row> {
    let [function, module, owned, category] = columns::function();
    Columns::new()
        .with(function, |row: &Row| (&*row.identity().name).into())
        .with(module.detail(), |row| (&*row.identity().module).into())
        .with(owned, |row| row.nature.and_then(|nature| nature.owned).into())
        .with(category, |row| row.nature.map_or("unknown", |nature| nature.kind.name()).into())
}

fn matched_value(row: &Row) -> Value {
    let before = row.before.as_ref().map_or("", |before| &before.name);
    let matched = row.matched.as_ref().map(|how| match before == &*row.identity().name {
        true => how.clone(),
        false => format!("{how}; was {before}"),
    });
    matched.into()
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// Changed functions that a note names.
const MOST_NAMED: usize = 3;

fn family_notes(comparison: &Comparison, family: Family) -> Vec<Note> {
    let rows = comparison.rows(family);
    let tested: Vec<&Row> = rows.iter().filter(|row| row.assessment.q.is_some()).collect();
    let changed: Vec<&str> =
        tested.iter().filter(|row| row.assessment.is_changed()).map(|row| &*row.identity().name).collect();
    let inconclusive = tested.iter().filter(|row| row.assessment.verdict == Verdict::Inconclusive).count();
    let (_, _, noun) = heading(family);
    let of_tested = NoteValue::plural(tested.len(), &format!("tested {noun}"));
    let inconclusive = NoteValue::number(inconclusive);
    let mut notes = Vec::new();
    if !tested.is_empty() {
        notes.push(match changed.len() {
            0 => note!(Fact, "0 of {} changed; {} inconclusive.", of_tested, inconclusive),
            count => note!(
                Fact,
                "{} of {} changed: {}; {} inconclusive.",
                NoteValue::number(count),
                of_tested,
                NoteValue::names(changed, MOST_NAMED),
                inconclusive
            ),
        });
        if rows.len() > tested.len() {
            notes.push(note!(
                Limit,
                "{} not tested: fewer than {} {} on both sides together.",
                NoteValue::plural(rows.len() - tested.len(), "row"),
                NoteValue::number(comparison.least_count),
                family.counted()
            ));
        }
    }
    let counted = family.counted();
    if family.is_exact() && comparison.noise == Noise::Sampling {
        notes.push(note!(
            Limit,
            "{} are exact, not sampled. With one run per side, the difference between runs is unknown, so they are \
             inconclusive.",
            capitalised(counted)
        ));
    }
    notes
}
