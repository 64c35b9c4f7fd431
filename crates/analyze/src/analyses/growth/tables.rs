//! The table `growth`.

use stepscope_model::{Column, Columns, Kind, NoteValue, Table, note};
use stepscope_stats::Estimate;
use stepscope_stats::growth::{Growth, NAMED_FROM};

use super::law_name;
use super::measure::{Measure, Measured, Series, series};
use crate::columns::{count, number, percentage, text};
use crate::parallel;
use crate::query::select::Selection;

/// Which rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Only metrics of whole recordings and counters.
    pub whole_runs_alone: bool,
}

/// A row: what grows.
#[derive(Debug)]
pub(super) struct Grown {
    pub series: String,
    pub phase: String,
    pub axis: String,
    pub measure: Measure,
    pub growth: Growth,
    pub share: Option<f64>,
    pub runs: usize,
}

/// The table `growth`: one row per quantity of each series. Metrics first, then by share at the largest size.
pub fn table(selections: &[Selection<'_>], options: &Options) -> Table {
    let all: Vec<Series<'_, '_>> = series(selections).into_iter().flat_map(Series::by_cores).collect();
    let rows: Vec<Grown> = all.iter().flat_map(|one| of_series(one, options)).collect();
    let inconclusive = rows.iter().filter(|row| row.growth.law().is_none()).count();
    let of = rows.len();
    let mut table = columns(&rows).table("growth", "Growth: by which law each cost grows", rows.iter());
    if of == 0 {
        table.note(note!(Limit, "No capture belongs to a sweep of two sizes; `stepscope sweep` records one."));
    }
    let few = all.iter().filter(|one| one.sizes().len() < stepscope_stats::growth::MIN_SIZES);
    table.add_notes(few.filter(|one| !one.axis.is_empty()).map(|one| {
        let sizes = NoteValue::plural(one.sizes().len(), "size");
        note!(Limit, "Only {}: a law needs three.", sizes).about(&one.label)
    }));
    if inconclusive > 0 {
        table.note(note!(
            Fact,
            "{} of {} laws are inconclusive: no law has a probability of {} or more. `stepscope sweep --next` proposes the \
             size that tells most.",
            NoteValue::number(inconclusive),
            NoteValue::number(of),
            NoteValue::percent(100.0 * NAMED_FROM)
        ));
    }
    table
}

pub(super) fn of_series(one: &Series<'_, '_>, options: &Options) -> Vec<Grown> {
    if one.sizes().len() < 2 {
        return Vec::new();
    }
    let sizes = || one.runs.iter().map(|run| run.n);
    let largest = one.sizes().last().copied().unwrap_or(1.0);
    let mut measures = one.measures();
    measures.retain(|measure| !options.whole_runs_alone || measure.kind <= Measured::Counter);
    let fits = parallel::map(&measures, |measure| measure.growth(sizes()));
    let grown = measures.into_iter().zip(fits).filter_map(|(measure, growth)| {
        Some(Grown {
            series: one.label.clone(),
            phase: one.phase.map(|phase| phase.to_string()).unwrap_or_default(),
            axis: one.axis.clone(),
            share: measure.share_at(largest, sizes()),
            growth: growth?,
            runs: one.runs.len(),
            measure,
        })
    });
    let mut grown: Vec<Grown> = grown.collect();
    let place = |row: &Grown| crate::analyses::metrics::place(&row.measure.name);
    grown.sort_by(|a, b| {
        let kind = a.measure.kind.cmp(&b.measure.kind);
        let share = b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0));
        kind.then(place(a).cmp(&place(b))).then(share).then(a.measure.name.cmp(&b.measure.name))
    });
    grown
}

fn columns(rows: &[Grown]) -> Columns<'static, Grown> {
    let differ = |of: fn(&Grown) -> &str| rows.iter().any(|row| of(row) != of(&rows[0]));
    let phase = text("phase", "The phase.");
    let phase = if differ(|row| &row.phase) { phase.essential().grouping() } else { phase };
    let value = |name: &str, doc: &str| Column::new(name, Kind::InRowUnit, "", doc);
    let at = |row: &Grown, factor: f64| row.growth.predict(factor * row.growth.sizes.1);
    let mut columns = Columns::<Grown>::new()
        .with_if(differ(|row| &row.series), text("series", "Scenario, variant and number of CPUs.").grouping(), |row: &Grown| {
            row.series.as_str().into()
        })
        .with(phase, |row| row.phase.as_str().into())
        .with(text("kind", "What it is: metric, counter, function (attributed cost), inclusive cost, or family.").essential(), |row| {
            row.measure.kind.name().into()
        })
        .with(text("name", "Name of the metric, counter, function or family.").essential(), |row| {
            row.measure.name.as_str().into()
        })
        .with(text("unit", "Unit of the row's values.").detail(), |row| row.measure.unit.as_str().into())
        .with(text("axis", "The axis of sizes.").detail(), |row| row.axis.as_str().into())
        .with(text("law", "Its law over a fixed part: constant, log n, n^0.5, n, n log n, n^1.5, n^2, n^3, another power, or `inconclusive`.").essential(), |row| {
            law_name(&row.growth).into()
        })
        .with(text("most_probable", "The most probable law, also where the data are inconclusive.").detail(), |row| {
            row.growth.most_probable().name().into()
        })
        .with(percentage("probability", "Probability of that law.").detail(), |row| (100.0 * row.growth.laws[0].1).into())
        .with(number("exponent", "", "Power of the size; for a law with a logarithm the nearest one.").essential(), |row| {
            row.growth.exponent.value.into()
        })
        .with(number("exponent_low", "", "Lower bound of its 95 % confidence interval."), |row| row.growth.exponent.low.into())
        .with(number("exponent_high", "", "Upper bound of its 95 % confidence interval."), |row| row.growth.exponent.high.into())
        .with(percentage("share", "Share of all CPU cost at the largest size; missing for what is no cost.").essential(), |row| {
            row.share.into()
        })
        .with(value("at_largest", "Expected value at the largest size.").essential(), |row| {
            row.growth.expect(row.growth.sizes.1).map(|estimate| estimate.value).into()
        });
    for (prefix, factor) in [("at_2x", 2.0), ("at_10x", 10.0)] {
        let estimate = move |row: &Grown| -> Option<Estimate> { at(row, factor) };
        let doc = format!("Predicted value at {factor} times the largest size.");
        let end = |end: &str| format!("{end} end of its 95 % prediction interval for one run.");
        columns = columns
            .with(value(prefix, &doc), move |row| estimate(row).map(|one| one.value).into())
            .with(value(&format!("{prefix}_low"), &end("Lower")).detail(), move |row| {
                estimate(row).map(|one| one.low).into()
            })
            .with(value(&format!("{prefix}_high"), &end("Upper")).detail(), move |row| {
                estimate(row).map(|one| one.high).into()
            });
    }
    columns
        .with(number("largest", "", "The largest size.").detail(), |row| row.growth.sizes.1.into())
        .with(count("sizes", "sizes", "Number of sizes that have the cost.").detail(), |row| row.growth.points.into())
        .with(count("sweep_runs", "runs", "Number of runs, of all sizes.").detail(), |row| row.runs.into())
}
