//! The tables of a comparison.

use stepscope_model::{Column, Kind, Table, Value, quantity};

use super::evidence::Family;
use super::judge::{Judged, Noise};
use super::rows::{MetricRow, Row};
use super::{Comparison, Side};
use crate::analyses::metrics;
use crate::columns;
use crate::query::basis::Basis;

/// The tables of a comparison: the whole run, then each family that has rows.
pub fn tables(comparison: &Comparison) -> Vec<Table> {
    let families = Family::ALL.into_iter().filter(|family| !comparison.rows(*family).is_empty());
    [of_metrics(comparison)].into_iter().chain(families.map(|family| of_family(comparison, family))).collect()
}

fn title(comparison: &Comparison, what: &str) -> String {
    format!("{what}: {} against {}", comparison.after, comparison.before)
}

fn of_metrics(comparison: &Comparison) -> Table {
    let mut columns = vec![
        columns::text("metric", "The figure of the whole run.").essential(),
        columns::text("unit", "Unit of `before`, `after` and `difference`.").detail(),
        columns::text("better", "Which way it should go: `lower`, or `higher`.").detail(),
    ];
    columns.extend(amount_columns(|name, doc| Column::new(name, Kind::InRowUnit, "", doc)));
    columns.extend(judged_columns());
    columns.extend([
        columns::percent(
            "detectable",
            "The smallest change that so many runs, as different as these, would tell in four of five cases.",
        )
        .detail(),
        columns::count("before_runs", "runs", "Runs before in which it is known.").detail(),
        columns::count("after_runs", "runs", "Runs after in which it is known.").detail(),
    ]);
    let mut table = Table::new("compare_runs", title(comparison, "Whole run"), columns);
    for MetricRow { name, unit, better, runs, judged } in &comparison.metrics {
        let mut row: Vec<Value> = vec![(&**name).into(), unit.as_str().into(), better.name().into()];
        row.extend(amounts(judged));
        row.extend(judged_values(judged));
        row.extend([judged.detectable_percent.into(), runs.0.into(), runs.1.into()]);
        table.push(row);
    }
    table.add_notes(comparison.notes.clone());
    table
}

/// The columns of what it was, is, and differs by.
fn amount_columns(column: impl Fn(&str, &str) -> Column) -> [Column; 5] {
    [
        column("before", "Before: the mean of the runs.").essential(),
        column("after", "After: the mean of the runs.").essential(),
        column("difference", "After less before."),
        column("difference_low", "Lower end of its 95 % interval.").detail(),
        column("difference_high", "Upper end of its 95 % interval.").detail(),
    ]
}

/// The columns of ratio and verdict.
fn judged_columns() -> [Column; 7] {
    [
        columns::number("ratio", "", "After over before: 0.5 is half.").essential(),
        columns::number("ratio_low", "", "Lower end of the ratio's 95 % interval."),
        columns::number("ratio_high", "", "Upper end of the ratio's 95 % interval."),
        columns::number("p", "", "Probability of such a difference, or a larger one, if nothing had changed.").detail(),
        columns::number("q", "", "The same, corrected for the number of rows (Benjamini and Hochberg).").detail(),
        columns::text("verdict", "changed, equivalent (the interval lies within the tolerance), or inconclusive.")
            .essential(),
        columns::count(
            "more_runs",
            "runs",
            "Of what cannot be told: how many more runs a side would tell in four of five cases. Missing where it would need more than a thousand, or no number tells.",
        ),
    ]
}

fn amounts(judged: &Judged) -> [Value; 5] {
    let difference = judged.difference;
    [judged.before.into(), judged.after.into(), difference.value.into(), difference.low.into(), difference.high.into()]
}

fn judged_values(judged: &Judged) -> [Value; 7] {
    let ratio = judged.ratio;
    [
        ratio.map(|ratio| ratio.value).into(),
        ratio.map(|ratio| ratio.low).into(),
        ratio.map(|ratio| ratio.high).into(),
        judged.p.into(),
        judged.q.into(),
        judged.verdict.name().into(),
        judged.more_runs.into(),
    ]
}

/// What a family's rows are about: table, title, first column.
fn about(family: Family) -> (&'static str, &'static str, &'static str) {
    match family {
        Family::Attributed => ("compare_attributed", "Functions by credited cost", "function"),
        Family::Own => ("compare_self", "Functions by self cost", "function"),
        Family::Inclusive => ("compare_inclusive", "Functions by inclusive cost", "function"),
        Family::Threads => ("compare_threads", "Threads by name", "thread"),
        Family::Categories => ("compare_categories", "Kinds of code by self cost", "category"),
        Family::Waits => ("compare_waits", "Callers by blocked time", "function"),
    }
}

fn of_family(comparison: &Comparison, family: Family) -> Table {
    let (name, heading, key) = about(family);
    let of_functions = key == "function";
    let unit = if family == Family::Waits { "ns" } else { &comparison.unit };
    let cost = |name: &str, doc: &str| {
        let kind = match (comparison.basis, unit) {
            (Basis::Share, _) => Kind::Percent,
            (_, "ns") => Kind::Duration,
            (_, "bytes") => Kind::Bytes,
            _ => Kind::Number,
        };
        Column::new(name, kind, comparison.basis.unit(unit), doc)
    };
    let mut columns =
        if of_functions { columns::function().to_vec() } else { vec![columns::text(key, "Its name.").essential()] };
    columns.push(columns::text("presence", "Whether it is on both sides, new, or vanished.").detail());
    columns.extend(amount_columns(cost));
    columns.extend(judged_columns());
    let counted = if family == Family::Waits { "waits" } else { "samples" };
    columns.extend([
        columns::count("before_count", counted, "How many of them before, in all runs.").detail(),
        columns::count("after_count", counted, "How many of them after, in all runs.").detail(),
    ]);
    if of_functions {
        columns.push(
            columns::text("matched", "How it was matched with a function of another name before, and which.").detail(),
        );
    }
    let mut table = Table::new(name, title(comparison, heading), columns);
    for row in comparison.rows(family) {
        table.push(family_row(row, of_functions));
    }
    table.add_notes(family_notes(comparison, family));
    table
}

fn family_row(row: &Row, of_functions: bool) -> Vec<Value> {
    let identity = row.identity();
    let mut values: Vec<Value> = vec![(&*identity.name).into()];
    if of_functions {
        values.extend([
            (&*identity.module).into(),
            row.nature.and_then(|nature| nature.owned).into(),
            row.nature.map_or("unknown", |nature| nature.kind.name()).into(),
        ]);
    }
    values.push(row.presence().into());
    values.extend(amounts(&row.judged));
    values.extend(judged_values(&row.judged));
    values.extend([row.judged.counts.map(|counts| counts.0).into(), row.judged.counts.map(|counts| counts.1).into()]);
    if of_functions {
        let before = row.before.as_ref().map_or("", |before| &before.name);
        let matched = row.matched.as_ref().map(|how| match before == &*identity.name {
            true => how.clone(),
            false => format!("{how}; was {before}"),
        });
        values.push(matched.into());
    }
    values
}

fn family_notes(comparison: &Comparison, family: Family) -> Vec<String> {
    let rows = comparison.rows(family);
    let tested = rows.iter().filter(|row| row.judged.q.is_some()).count();
    let changed = rows.iter().filter(|row| row.judged.is_changed()).count();
    let mut notes = Vec::new();
    if tested > 0 {
        let few = rows.len() - tested;
        let untested = if few > 0 { format!("; {few} not tested for lack of samples") } else { String::new() };
        notes.push(format!("{changed} of {} changed{untested}.", quantity::plural(tested, "tested row")));
    }
    if family == Family::Waits && comparison.noise == Noise::Sampling {
        notes.push(
            "Waits are exact, not sampled: how much they differ from run to run cannot be told from one run a side."
                .to_owned(),
        );
    }
    notes
}

/// Tables of several comparisons as one a kind: each has leading columns that say which comparison a row is of, in
/// the names of `columns`. With no columns there must be one comparison.
pub fn stacked(columns: &[(&str, &str)], parts: Vec<(Vec<String>, Vec<Table>)>) -> Vec<Table> {
    let mut stacked: Vec<Table> = Vec::new();
    for (labels, tables) in parts {
        let told = labels.join(", ");
        for table in tables {
            let place = stacked.iter().position(|known| known.name == table.name);
            let into = match place {
                Some(place) => &mut stacked[place],
                None => {
                    let leading = columns.iter().map(|(name, doc)| columns::text(name, doc).essential());
                    let all = leading.chain(table.columns.iter().cloned()).collect();
                    // With several comparisons in it, the columns say which is which.
                    let heading = table.title.split(": ").next().unwrap_or(&table.title);
                    let title = if columns.is_empty() { table.title.as_str() } else { heading };
                    stacked.push(Table::new(&table.name, title, all));
                    stacked.last_mut().expect("one was pushed")
                }
            };
            let lead: Vec<Value> = labels.iter().map(|label| label.as_str().into()).collect();
            table.rows.into_iter().for_each(|row| into.push(lead.iter().cloned().chain(row).collect()));
            for note in table.notes {
                let note = if told.is_empty() { note } else { note.about(told.as_str()) };
                if !into.notes.contains(&note) {
                    into.notes.push(note);
                }
            }
        }
    }
    stacked
}

/// Each variant of a chain against the first and against its predecessor: `to_first[i]` and `to_previous[i]` are of variant
/// `i + 1`.
pub fn chain(sides: &[Side], to_first: &[Comparison], to_previous: &[Comparison]) -> Table {
    let in_row_unit = |name: &str, doc: &str| Column::new(name, Kind::InRowUnit, "", doc);
    let mut table = Table::new(
        "compare_chain",
        "Variant by variant",
        vec![
            columns::text("metric", "The figure of the whole run.").essential(),
            columns::text("unit", "Its unit.").detail(),
            columns::text("variant", "The variant.").essential(),
            in_row_unit("value", "Mean of its runs.").essential(),
            columns::number("ratio_to_first", "", "Over that of the first variant.").essential(),
            columns::number("ratio_to_first_low", "", "Lower end of its 95 % interval.").detail(),
            columns::number("ratio_to_first_high", "", "Upper end of its 95 % interval.").detail(),
            columns::text("verdict_to_first", "changed, equivalent or inconclusive, against the first variant.")
                .essential(),
            columns::number("ratio_to_previous", "", "Over that of the variant before it.").essential(),
            columns::number("ratio_to_previous_low", "", "Lower end of its 95 % interval.").detail(),
            columns::number("ratio_to_previous_high", "", "Upper end of its 95 % interval.").detail(),
            columns::text("verdict_to_previous", "changed, equivalent or inconclusive, against the variant before it.")
                .essential(),
        ],
    );
    for name in metrics::names(sides.iter().flat_map(|side| &side.runs).flat_map(|run| &run.metrics)) {
        for (place, side) in sides.iter().enumerate() {
            let values: Vec<_> =
                side.runs.iter().filter_map(|run| run.metrics.iter().find(|one| one.name == name)).collect();
            let Some(first) = values.first() else { continue };
            let mean = values.iter().map(|one| one.value).sum::<f64>() / values.len() as f64;
            let mut row: Vec<Value> =
                vec![(&*name).into(), first.unit.as_str().into(), side.name.as_str().into(), mean.into()];
            for comparisons in [to_first, to_previous] {
                let judged = place
                    .checked_sub(1)
                    .and_then(|place| comparisons[place].metrics.iter().find(|one| one.name == name));
                let ratio = judged.and_then(|row| row.judged.ratio);
                row.extend([
                    ratio.map(|ratio| ratio.value).into(),
                    ratio.map(|ratio| ratio.low).into(),
                    ratio.map(|ratio| ratio.high).into(),
                    judged.map(|row| row.judged.verdict.name()).into(),
                ]);
            }
            table.push(row);
        }
    }
    table
}
