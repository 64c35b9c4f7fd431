//! The table `growth`.

use stepscope_model::{Column, Columns, Kind, NoteValue, Table, note};
use stepscope_stats::growth::NAMED_FROM;

use super::fits::{BEYOND, Fits, Grown, Options};
use super::law_name;
use crate::query::select::Selection;

impl Fits<'_, '_> {
    /// The table `growth`: one row per quantity of each series. Metrics first, then by share at the largest size.
    pub fn table(&self) -> Table {
        let rows: Vec<&Grown> = self.0.iter().flat_map(|one| &one.rows).collect();
        let inconclusive = rows.iter().filter(|row| row.growth.law().is_none()).count();
        let of = rows.len();
        let mut table = columns(&rows).table("growth", "Growth: by which law each cost grows", rows);
        if of == 0 {
            table.note(note!(Limit, "No capture belongs to a sweep of two sizes; `stepscope sweep` records one."));
        }
        let few = self.0.iter().filter(|one| one.series.sizes().len() < stepscope_stats::growth::MIN_SIZES);
        table.add_notes(few.map(|one| &one.series).filter(|one| !one.axis.is_empty()).map(|one| {
            let sizes = NoteValue::plural(one.sizes().len(), "size");
            note!(Limit, "Only {}: a law needs three.", sizes).about(&one.label)
        }));
        if inconclusive > 0 {
            table.note(note!(
                Fact,
                "{} of {} laws are inconclusive: no law has a probability of {} or more. `stepscope sweep --next` \
                 proposes the most informative size.",
                NoteValue::number(inconclusive),
                NoteValue::number(of),
                NoteValue::percent(100.0 * NAMED_FROM)
            ));
        }
        table
    }
}

/// The table `growth` of these captures.
pub fn table(selections: &[Selection<'_>], options: &Options) -> Table {
    Fits::of(selections, options).table()
}

fn columns(rows: &[&Grown]) -> Columns<'static, Grown> {
    let differ = |of: fn(&Grown) -> &str| rows.iter().any(|row| of(row) != of(rows[0]));
    let phase = Column::text("phase", "The phase.");
    let phase = if differ(|row| &row.phase) { phase.essential().grouping() } else { phase };
    let value = |name: &str, doc: &str| Column::new(name, Kind::InRowUnit, "", doc);
    let mut columns = Columns::<Grown>::new()
        .with_if(
            differ(|row| &row.series),
            Column::text("series", "Scenario, variant and number of CPUs.").grouping(),
            |row: &Grown| row.series.as_str().into(),
        )
        .with(phase, |row| row.phase.as_str().into())
        .text("kind", "What it is: metric, counter, function (attributed cost), inclusive cost, or family.", |row| {
            row.measure.kind.name().into()
        })
        .text("name", "Name of the metric, counter, function or family.", |row| row.measure.name.as_str().into())
        .text("unit", "Unit of the row's values.", |row| row.measure.unit.as_str().into())
        .text("axis", "The axis of sizes.", |row| row.axis.as_str().into())
        .text(
            "law",
            "Its law over a fixed part: constant, log n, n^0.5, n, n log n, n^1.5, n^2, n^3, another \
                power, or `inconclusive`.",
            |row| law_name(&row.growth).into(),
        )
        .text("most_probable", "The most probable law, also where the data are inconclusive.", |row| {
            row.growth.most_probable().name().into()
        })
        .percentage("probability", "Probability of that law.", |row| 100.0 * row.growth.laws[0].1)
        .number("exponent", "", "Power of the size; for a law with a logarithm the nearest one.", |row| {
            row.growth.exponent.value
        })
        .number("exponent_low", "", "Lower bound of its 95 % confidence interval.", |row| row.growth.exponent.low)
        .number("exponent_high", "", "Upper bound of its 95 % confidence interval.", |row| row.growth.exponent.high)
        .percentage("share", "Share of all CPU cost at the largest size; missing for what is no cost.", |row| row.share)
        .with(value("at_largest", "Expected value at the largest size."), |row| {
            row.growth.expect(row.growth.sizes.1).map(|estimate| estimate.value).into()
        })
        .essential("kind name law exponent exponent_low exponent_high share at_largest")
        .detail("unit axis most_probable probability");
    for (place, factor) in BEYOND.into_iter().enumerate() {
        let prefix = format!("at_{factor}x");
        let estimate = move |row: &Grown| row.predicted[place];
        let doc = format!("Predicted value at {factor} times the largest size.");
        let end = |end: &str| format!("{end} end of its 95 % prediction interval for one run.");
        columns = columns
            .with(value(&prefix, &doc), move |row| estimate(row).map(|one| one.value).into())
            .with(value(&format!("{prefix}_low"), &end("Lower")).detail(), move |row| {
                estimate(row).map(|one| one.low).into()
            })
            .with(value(&format!("{prefix}_high"), &end("Upper")).detail(), move |row| {
                estimate(row).map(|one| one.high).into()
            });
    }
    columns
        .number("largest", "", "The largest size.", |row| row.growth.sizes.1)
        .count("sizes", "sizes", "Number of sizes that have the cost.", |row| row.growth.points)
        .count("sweep_runs", "runs", "Number of runs, of all sizes.", |row| row.runs)
        .detail("largest sizes sweep_runs")
}
