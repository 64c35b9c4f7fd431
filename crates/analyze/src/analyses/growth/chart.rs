//! The values of the picture: measured and expected cost over the size.

use std::ops::Range;

use stepscope_model::{Column, Kind, Mark, Table, Value};
use stepscope_stats::Estimate;
use stepscope_stats::growth::{Growth, Point};

use super::fits::{Fits, Fitted, Grown};
use super::measure::Measured;

/// Functions in a picture.
const MOST_DRAWN: usize = 6;

/// Sizes at which a law is drawn.
const STEPS: u32 = 48;

/// What is drawn of a picture's table.
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

/// A curve of a picture: the law, and the means of the runs that it was fitted to.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    pub name: String,
    pub growth: Growth,
    pub points: Vec<Point>,
}

impl Curve {
    /// The law of these costs; `None` if there is none.
    pub fn of(name: &str, points: Vec<Point>) -> Option<Self> {
        Some(Self { name: name.to_owned(), growth: Growth::of(&points)?, points })
    }
}

impl Fits<'_, '_> {
    /// One table per picture: for each series with steps, its step time and the functions with the largest share. The
    /// columns are the size, and for each curve `measured.NAME`, `expected.NAME` and its band.
    pub fn pictures(&self) -> Vec<Table> {
        self.0.iter().filter_map(picture).collect()
    }
}

/// The picture of a series with steps.
fn picture(Fitted { series: one, rows }: &Fitted<'_, '_>) -> Option<Table> {
    let step = rows.iter().filter(|row| row.measure.name == "step.mean" && row.measure.kind == Measured::Metric);
    let functions = rows.iter().filter(|row| row.measure.kind == Measured::Function && row.measure.unit == "ns/step");
    let curve = |row: &Grown| Curve {
        name: row.measure.name.clone(),
        growth: row.growth.clone(),
        points: row.measure.points(one.runs.iter().map(|run| run.n)),
    };
    let curves: Vec<Curve> = step.chain(functions.take(MOST_DRAWN)).map(curve).collect();
    let (low, high) = curves.first()?.growth.sizes;
    let title = format!("Cost per step by {}: {}", one.axis, one.label);
    Some(curves_table("growth_curves", title, &one.axis, &curves, low..2.0 * high))
}

/// The values of a picture of costs per step, for [`marks`]: curves over sizes on an axis.
pub(crate) fn curves_table(name: &str, title: String, axis: &str, curves: &[Curve], over: Range<f64>) -> Table {
    let mut columns = vec![Column::number(axis, "", "The size.")];
    for curve in curves {
        for part in ["measured", "expected", "low", "high"] {
            let column = Column::new(&format!("{part}.{}", curve.name), Kind::Duration, "ns", "Cost per step.");
            columns.push(column.labelled(&curve.name));
        }
    }
    let mut table = Table::new(name, title, columns);
    let at = (0..=STEPS).map(|step| over.start * (over.end / over.start).powf(f64::from(step) / f64::from(STEPS)));
    for n in at {
        let mut cells = vec![Value::from(n)];
        for curve in curves {
            let estimate = curve.growth.expect(n);
            let parts = [|one: Estimate| one.value, |one: Estimate| one.low, |one: Estimate| one.high];
            cells.push(Value::Missing);
            cells.extend(parts.map(|part| Value::from(estimate.map(part))));
        }
        table.push(cells);
    }
    let mut sizes: Vec<f64> = curves.iter().flat_map(|curve| &curve.points).map(|point| point.n).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    for n in sizes {
        let mut cells = vec![Value::from(n)];
        for curve in curves {
            let point = curve.points.iter().find(|point| point.n == n);
            let mean = point.map(|point| point.values.iter().sum::<f64>() / point.values.len() as f64);
            cells.extend([mean.into(), Value::Missing, Value::Missing, Value::Missing]);
        }
        table.push(cells);
    }
    table
}
