//! The values of the picture: measured and expected cost over the size.

use stepscope_model::{Column, Kind, Mark, Table, Value};

use super::measure::{Measured, Series, series};
use super::tables::{Options, of_series};
use crate::columns::number;
use crate::query::select::Selection;

/// Functions in a picture.
const MOST_DRAWN: usize = 6;

/// Sizes at which a law is drawn.
const STEPS: u32 = 48;

/// One table per picture: for each series with steps, its step time and the functions with the largest share. The columns
/// are the size, and for each curve `measured.NAME`, `expected.NAME` and its band.
pub fn chart(selections: &[Selection<'_>]) -> Vec<Table> {
    let all = series(selections).into_iter().flat_map(Series::by_cores);
    all.filter_map(|one| of(&one)).collect()
}

/// What is drawn of such a table.
pub fn marks(table: &Table) -> Vec<Mark> {
    let named = |prefix: &str| -> Vec<String> {
        let names = table.columns.iter().filter_map(|column| column.name.strip_prefix(prefix));
        names.map(str::to_owned).collect()
    };
    let curves = named("expected.");
    let band = |name: &String| Mark::Band(format!("low.{name}"), format!("high.{name}"));
    let line = |name: &String| Mark::Line(format!("expected.{name}"));
    let points = |name: &String| Mark::Points(format!("measured.{name}"));
    curves.iter().map(band).chain(curves.iter().map(line)).chain(curves.iter().map(points)).collect()
}

fn of(one: &Series<'_, '_>) -> Option<Table> {
    let rows = of_series(one, &Options::default());
    let step = rows.iter().filter(|row| row.measure.name == "step.mean" && row.measure.kind == Measured::Metric);
    let functions = rows.iter().filter(|row| row.measure.kind == Measured::Function && row.measure.unit == "ns/step");
    let drawn: Vec<_> = step.chain(functions.take(MOST_DRAWN)).collect();
    let (low, high) = drawn.first()?.growth.sizes;
    let mut columns = vec![number(&one.axis, "", "The size.")];
    for row in &drawn {
        for part in ["measured", "expected", "low", "high"] {
            let name = format!("{part}.{}", row.measure.name);
            columns.push(Column::new(&name, Kind::Duration, "ns", "Cost per step.").labelled(&row.measure.name));
        }
    }
    let mut table = Table::new("growth_curves", format!("Cost per step by {}: {}", one.axis, one.label), columns);
    let sizes = || one.runs.iter().map(|run| run.n);
    let at = (0..=STEPS).map(|step| low * (2.0 * high / low).powf(f64::from(step) / f64::from(STEPS)));
    for n in at {
        let mut cells = vec![Value::from(n)];
        for row in &drawn {
            let estimate = row.growth.expect(n);
            cells.push(Value::Missing);
            cells.push(estimate.map(|one| one.value).into());
            cells.push(estimate.map(|one| one.low).into());
            cells.push(estimate.map(|one| one.high).into());
        }
        table.push(cells);
    }
    for n in one.sizes() {
        let mut cells = vec![Value::from(n)];
        for row in &drawn {
            let points = row.measure.points(sizes());
            let mean = points.iter().find(|point| point.n == n);
            let mean = mean.map(|point| point.values.iter().sum::<f64>() / point.values.len() as f64);
            cells.extend([mean.into(), Value::Missing, Value::Missing, Value::Missing]);
        }
        table.push(cells);
    }
    Some(table)
}
