//! The tables of a comparison.

use stepscope_model::{Column, Columns, Kind, Note, NoteValue, Table, Value, Verdict, note};

use super::Comparison;
use super::evidence::Family;
use super::judge::{Assessment, Noise};
use super::reduction::ComparedScenario;
use super::rows::{MetricRow, Row};
use super::side::Side;
use crate::analyses::metrics;
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
fn heading(family: Family) -> (&'static str, &'static str, &'static str) {
    match family {
        Family::Attributed => ("compare_attributed", "Functions by attributed cost", "function"),
        Family::Own => ("compare_self", "Functions by self cost", "function"),
        Family::Inclusive => ("compare_inclusive", "Functions by inclusive cost", "function"),
        Family::Threads => ("compare_threads", "Threads by name", "thread"),
        Family::Categories => ("compare_categories", "Categories of code by self cost", "category"),
        Family::Waits => ("compare_waits", "Callers by blocked time", "function"),
    }
}

fn family_table(comparison: &Comparison, family: Family) -> Table {
    let (name, subject, key) = heading(family);
    let of_functions = key == "function";
    let (unit, counted) = match family {
        Family::Waits => ("ns", "waits"),
        _ => (comparison.unit.as_str(), "samples"),
    };
    let cost = |name: &str, doc: &str| {
        let kind = match (comparison.basis, unit) {
            (Basis::Share, _) => Kind::Percent,
            (_, "ns") => Kind::Duration,
            (_, "bytes") => Kind::Bytes,
            _ => Kind::Number,
        };
        Column::new(name, kind, comparison.basis.unit(unit), doc)
    };
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
                "{} not tested: fewer than {} samples on both sides together.",
                NoteValue::plural(rows.len() - tested.len(), "row"),
                NoteValue::number(comparison.least_count)
            ));
        }
    }
    if family == Family::Waits && comparison.noise == Noise::Sampling {
        notes.push(note!(
            Limit,
            "Waits are exact, not sampled. With one run per side, the difference between runs is unknown, so they are \
             inconclusive."
        ));
    }
    notes
}

/// The tables of compared scenarios: every pair, and with three sides or more a table of the whole chain.
///
/// Several scenarios or pairs share tables, whose first columns then say `scenario` and `variants`.
pub fn of_scenarios(scenarios: &[ComparedScenario]) -> Vec<Table> {
    let several_scenarios = scenarios.len() > 1;
    let several_pairs = scenarios.iter().any(|one| one.sides.len() > 2);
    let mut leading = Vec::new();
    if several_scenarios {
        leading.push(("scenario", "The scenario and phase."));
    }
    let scenario = |one: &ComparedScenario| several_scenarios.then(|| one.label.clone());
    let chains = scenarios.iter().filter(|_| several_pairs).map(|one| {
        let table = chain(&one.sides, &one.to_first, &one.to_previous);
        Part { labels: scenario(one).into_iter().collect(), tables: vec![table] }
    });
    let mut all = stacked(&leading, chains.collect());
    if several_pairs {
        leading.push(("variants", "The compared variants: `before -> after`."));
    }
    let pairs = scenarios.iter().flat_map(|one| one.pairs().map(move |pair| (one, pair)));
    let parts = pairs.map(|(one, pair)| {
        let variants = several_pairs.then(|| format!("{} -> {}", pair.before, pair.after));
        Part { labels: scenario(one).into_iter().chain(variants).collect(), tables: tables(pair) }
    });
    all.extend(stacked(&leading, parts.collect()));
    all
}

/// The tables of one comparison, and the values of its leading columns.
struct Part {
    labels: Vec<String>,
    tables: Vec<Table>,
}

/// The tables of several comparisons, those of one name as one table with these leading columns.
fn stacked(leading: &[(&str, &str)], parts: Vec<Part>) -> Vec<Table> {
    let mut stacked: Vec<Table> = Vec::new();
    for Part { labels, tables } in parts {
        let subject = labels.join(", ");
        for table in tables {
            let known = stacked.iter().position(|known| known.name == table.name).unwrap_or_else(|| {
                let lead = leading.iter().map(|(name, doc)| Column::text(name, doc).essential().grouping());
                let all = lead.chain(table.columns.iter().cloned()).collect();
                // With several comparisons in it, the columns name them.
                let general = table.title.split(": ").next().unwrap_or(&table.title);
                let title = if leading.is_empty() { table.title.as_str() } else { general };
                stacked.push(Table::new(&table.name, title, all));
                stacked.len() - 1
            });
            let into = &mut stacked[known];
            for (column, other) in into.columns[leading.len()..].iter_mut().zip(&table.columns) {
                if column.label != other.label {
                    column.label = None;
                }
            }
            let lead: Vec<Value> = labels.iter().map(|label| label.as_str().into()).collect();
            table.rows.into_iter().for_each(|row| into.push(lead.iter().cloned().chain(row).collect()));
            let about = |note: Note| if subject.is_empty() { note } else { note.about(subject.as_str()) };
            into.add_notes(table.notes.into_iter().map(about));
        }
    }
    stacked
}

/// One metric of one variant of a chain.
struct Link<'a> {
    metric: &'a str,
    unit: &'a str,
    variant: &'a str,
    value: f64,
    to_first: Option<&'a Assessment>,
    to_previous: Option<&'a Assessment>,
}

/// Each variant against the first and the one before it: `to_first[i]` and `to_previous[i]` are those of variant `i + 1`.
pub(super) fn chain(sides: &[Side], to_first: &[Comparison], to_previous: &[Comparison]) -> Table {
    let names = metrics::names(sides.iter().flat_map(|side| &side.runs).flat_map(|run| &run.metrics));
    let mut links = Vec::new();
    for name in &names {
        for (place, side) in sides.iter().enumerate() {
            let values: Vec<_> =
                side.runs.iter().filter_map(|run| run.metrics.iter().find(|one| one.name == *name)).collect();
            let Some(first) = values.first() else { continue };
            links.push(Link {
                metric: name,
                unit: &first.unit,
                variant: &side.name,
                value: values.iter().map(|one| one.value).sum::<f64>() / values.len() as f64,
                to_first: assessment_in(to_first, place, name),
                to_previous: assessment_in(to_previous, place, name),
            });
        }
    }
    Columns::<Link<'_>>::new()
        .with(Column::text("metric", "Metric of the whole run.").essential(), |link| link.metric.into())
        .with(Column::text("unit", "Its unit.").detail(), |link| link.unit.into())
        .with(Column::text("variant", "The variant.").essential(), |link| link.variant.into())
        .with(Column::new("value", Kind::InRowUnit, "", "Mean of its runs.").essential(), |link| link.value.into())
        .with_all(link_columns("first", "the first variant", |link| link.to_first))
        .with_all(link_columns("previous", "the variant before it", |link| link.to_previous))
        .table("compare_chain", "Variant by variant", links)
}

/// The assessment of a metric of the variant at this place; the first variant has none.
fn assessment_in<'a>(comparisons: &'a [Comparison], place: usize, metric: &str) -> Option<&'a Assessment> {
    let comparison = &comparisons[place.checked_sub(1)?];
    comparison.metrics.iter().find(|row| row.name == metric).map(|row| &row.assessment)
}

/// Ratio and verdict against another variant.
fn link_columns<'a>(
    other: &str,
    name: &str,
    assessment: impl for<'l> Fn(&'l Link<'a>) -> Option<&'l Assessment> + Copy + 'a,
) -> Columns<'a, Link<'a>> {
    let ratio = move |link: &Link<'a>| assessment(link).and_then(|assessment| assessment.adjusted.ratio);
    let number = |end: &str, doc: &str| Column::number(&format!("ratio_to_{other}{end}"), "", doc);
    let verdict = format!("`changed`, `equivalent` or `inconclusive`, against {name}.");
    Columns::new()
        .with(number("", &format!("Divided by that of {name}.")).essential(), move |link| {
            ratio(link).map(|ratio| ratio.value).into()
        })
        .with(
            number("_low", "Lower bound of its confidence interval, adjusted for the number of rows.").detail(),
            move |link| ratio(link).map(|ratio| ratio.low).into(),
        )
        .with(
            number("_high", "Upper bound of its confidence interval, adjusted for the number of rows.").detail(),
            move |link| ratio(link).map(|ratio| ratio.high).into(),
        )
        .with(Column::text(&format!("verdict_to_{other}"), &verdict).essential(), move |link| {
            assessment(link).map(|assessment| assessment.verdict.name()).into()
        })
}
