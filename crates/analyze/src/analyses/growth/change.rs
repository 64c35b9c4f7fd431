//! The table `growth_change`: whether the exponents of two sweeps differ.

use std::collections::BTreeMap;

use stepscope_model::{Column, Columns, NoteValue, Table, note};
use stepscope_stats::{Estimate, student};

use super::fits::{Fits, Grown, Options};
use super::law_name;
use crate::columns::bounds;
use crate::query::select::Selection;

struct Changed {
    before: Grown,
    after: Grown,
    difference: Estimate,
    verdict: &'static str,
}

/// One row per quantity that both sweeps have. Rows that changed come first.
pub fn change(before: &[Selection<'_>], after: &[Selection<'_>], options: &Options) -> Table {
    let mut earlier: BTreeMap<_, Grown> = Fits::of(before, options).into_rows().map(|row| (key(&row), row)).collect();
    let pairs: Vec<(Grown, Grown)> =
        Fits::of(after, options).into_rows().filter_map(|row| Some((earlier.remove(&key(&row))?, row))).collect();
    let scale = adjustment(pairs.len());
    let mut changed: Vec<Changed> =
        pairs.into_iter().map(|(before, after)| Changed::of(before, after, scale)).collect();
    changed.sort_by_key(|row| row.verdict != "changed");
    let count = changed.iter().filter(|row| row.verdict == "changed").count();
    let mut table = columns().table("growth_change", "Growth: did the exponents change?", &changed);
    if changed.is_empty() {
        table.note(note!(Limit, "The sweeps have no series in common: compare the same scenarios and variants."));
    } else {
        let (count, of) = (NoteValue::number(count), NoteValue::number(changed.len()));
        table.note(note!(
            Fact,
            "{} of {} exponents changed; intervals are adjusted for the number of rows.",
            count,
            of
        ));
    }
    table
}

fn key(row: &Grown) -> (String, String, &'static str, String) {
    (row.series.clone(), row.phase.clone(), row.measure.kind.name(), row.measure.name.clone())
}

/// How much wider a 95 % interval is if all of several are to hold together.
fn adjustment(rows: usize) -> f64 {
    let normal = |tail: f64| student::quantile(1.0 - tail, f64::INFINITY);
    normal(0.025 / rows.max(1) as f64) / normal(0.025)
}

impl Changed {
    fn of(before: Grown, after: Grown, scale: f64) -> Self {
        let (a, b) = (before.growth.exponent, after.growth.exponent);
        let value = b.value - a.value;
        let low = value - scale * (b.value - b.low).hypot(a.high - a.value);
        let high = value + scale * (b.high - b.value).hypot(a.value - a.low);
        let difference = Estimate { value, low, high };
        let same = before.growth.law().is_some() && before.growth.law() == after.growth.law();
        let verdict = match difference.excludes_zero() {
            true => "changed",
            false if same => "same law",
            false => "inconclusive",
        };
        Self { before, after, difference, verdict }
    }
}

fn columns() -> Columns<'static, Changed> {
    let exponent = |row: &Changed| Some(row.difference);
    Columns::<Changed>::new()
        .text("series", "Scenario, variant and number of CPUs.", |row| row.after.series.as_str().into())
        .text("kind", "Metric, counter, function, inclusive or family.", |row| row.after.measure.kind.name().into())
        .text("name", "Its name.", |row| row.after.measure.name.as_str().into())
        .text("law_before", "The law in the first sweep.", |row| law_name(&row.before.growth).into())
        .text("law_after", "The law in the second sweep.", |row| law_name(&row.after.growth).into())
        .number("exponent_before", "", "The exponent in the first sweep.", |row| row.before.growth.exponent.value)
        .number("exponent_after", "", "The exponent in the second sweep.", |row| row.after.growth.exponent.value)
        .number("difference", "", "Second exponent less the first.", |row| row.difference.value)
        .with_all(bounds("difference_", |name, doc| Column::number(name, "", doc), exponent))
        .text("verdict", "changed, same law, or inconclusive.", |row| row.verdict.into())
        .essential("kind name difference verdict")
}
