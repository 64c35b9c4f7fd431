//! How much faster more CPUs make a step, and which functions are serial.
//!
//! # Law
//! Amdahl's law and the universal scalability law ([`stepscope_stats::scaling`]), fitted to the time of a step over the number
//! of CPUs of each size; without steps to the length of the loading phase.
//!
//! # Serial part
//! The functions of the thread that runs the steps, by their attributed cost there. Costs that do not fall with more CPUs
//! are the serial part. The cost of waiting for other threads is no function's.
//!
//! # Limits
//! CPUs are the first ones that Stepscope may use (`sched_setaffinity`); sibling hardware threads share a core. A program that
//! reads the number of CPUs of the machine instead of its own starts too many threads.

use stepscope_model::{Column, Columns, Phase, Table, note};
use stepscope_stats::Estimate;
use stepscope_stats::growth::Point;
use stepscope_stats::scaling::Scaling;

use crate::analyses::growth::{LoopCosts, Measure, Series, series};
use crate::columns::{self, bounds};
use crate::query::select::Selection;

struct Scaled {
    series: String,
    figure: &'static str,
    size: Option<f64>,
    cores: Vec<f64>,
    times: Vec<f64>,
    scaling: Scaling,
}

struct SerialFunction {
    series: String,
    size: Option<f64>,
    function: String,
    fewest_ns: f64,
    most_ns: f64,
    share: f64,
}

/// The tables `cores` and `serial_functions`.
pub fn tables(selections: &[Selection<'_>]) -> Vec<Table> {
    let (mut scaled, mut serial) = (Vec::new(), Vec::new());
    for one in series(selections).into_iter().flat_map(by_size) {
        let sizes = || one.runs.iter().filter_map(|run| run.cores);
        let size = (!one.axis.is_empty()).then(|| one.runs[0].n);
        let costs = LoopCosts::of(&one);
        let (figure, measure) = match &costs {
            Some(costs) => ("step.mean", Some(costs.step.clone())),
            None if one.phase == Some(Phase::Loading) => {
                ("wall", one.measures().into_iter().find(|measure| measure.name == "wall"))
            }
            None => ("", None),
        };
        let Some(measure) = measure else { continue };
        let points = measure.points(sizes());
        let Some(scaling) = Scaling::of(&points) else { continue };
        let step_ns = points.last().map_or(0.0, mean);
        scaled.push(Scaled {
            series: one.label.clone(),
            figure,
            size,
            cores: points.iter().map(|point| point.n).collect(),
            times: points.iter().map(mean).collect(),
            scaling,
        });
        let functions = costs.map(|costs| costs.functions).unwrap_or_default();
        let mut rows: Vec<SerialFunction> =
            functions.iter().filter_map(|function| of_function(&one, function, &points, step_ns)).collect();
        rows.sort_by(|a, b| b.most_ns.total_cmp(&a.most_ns).then(a.function.cmp(&b.function)));
        serial.extend(rows);
    }
    let mut table = scaled_columns().table("cores", "Scaling with the number of CPUs", &scaled);
    if scaled.is_empty() {
        table.note(note!(
            Limit,
            "No sweep over CPUs with steps or a loading phase: add `cores = [1, 2]` to [sweep], and a `step` to the scenario."
        ));
    }
    vec![table, serial_columns().table("serial_functions", "Functions of the thread that runs the steps", &serial)]
}

/// The runs of each size on several numbers of CPUs, fewest CPUs first.
fn by_size<'s, 'a>(one: Series<'s, 'a>) -> Vec<Series<'s, 'a>> {
    let mut all: Vec<Series<'s, 'a>> = Vec::new();
    for run in one.runs.into_iter().filter(|run| run.cores.is_some()) {
        match all.last_mut().filter(|last| last.runs[0].n == run.n) {
            Some(last) => last.runs.push(run),
            None => {
                let (label, axis) = (one.label.clone(), one.axis.clone());
                all.push(Series { label, phase: one.phase, axis, runs: vec![run] });
            }
        }
    }
    for series in &mut all {
        series.runs.sort_by(|a, b| a.cores.partial_cmp(&b.cores).expect("numbers of CPUs are finite"));
    }
    all
}

fn mean(point: &Point) -> f64 {
    point.values.iter().sum::<f64>() / point.values.len() as f64
}

fn of_function(one: &Series<'_, '_>, function: &Measure, steps: &[Point], step_ns: f64) -> Option<SerialFunction> {
    let points = function.points(one.runs.iter().filter_map(|run| run.cores));
    let at = |cores: f64| points.iter().find(|point| point.n == cores).map_or(0.0, mean);
    let (fewest_ns, most_ns) = (at(steps.first()?.n), at(steps.last()?.n));
    Some(SerialFunction {
        series: one.label.clone(),
        size: (!one.axis.is_empty()).then(|| one.runs[0].n),
        function: function.name.clone(),
        fewest_ns,
        most_ns,
        share: (100.0 * most_ns / step_ns).min(100.0),
    })
}

fn scaled_columns() -> Columns<'static, Scaled> {
    let percent = |estimate: Estimate| Some(estimate.times(100.0));
    let most = |row: &Scaled| row.cores.last().copied().unwrap_or(1.0);
    Columns::<Scaled>::new()
        .text("series", "Scenario, and variant.", |row| row.series.as_str().into())
        .number("size", "", "The size; missing without an axis of sizes.", |row| row.size)
        .text("figure", "What was fitted: time of a step, or the loading time.", |row| row.figure.into())
        .number("most_cores", "cores", "The largest number of CPUs.", move |row| most(row))
        .duration("fewest_time", "Mean time with the fewest CPUs.", |row| row.times.first().copied())
        .duration("most_time", "Mean time with the most CPUs.", |row| row.times.last().copied())
        .percentage("serial", "The serial part of the time on one CPU.", move |row| {
            percent(row.scaling.serial).map(|one| one.value)
        })
        .with_all(bounds("serial_", Column::percentage, move |row: &Scaled| percent(row.scaling.serial)))
        .number("coherency", "", "Coefficient of coherency of the universal scalability law.", |row| {
            row.scaling.coherency.value
        })
        .percentage(
            "coherency_probability",
            "Probability that more CPUs add a cost; missing below three numbers of CPUs.",
            |row| row.scaling.coherency_probability.map(|one| 100.0 * one),
        )
        .number("fastest_cores", "cores", "Beyond this number of CPUs the time rises; missing if it does not.", |row| {
            Some(row.scaling.fastest).filter(|one| one.is_finite())
        })
        .number("speedup_at_2x", "", "Speed on twice the most CPUs over that on one, by the law.", move |row| {
            row.scaling.speedup(2.0 * most(row))
        })
        .essential("series size serial")
        .detail("figure coherency")
}

fn serial_columns() -> Columns<'static, SerialFunction> {
    Columns::<SerialFunction>::new()
        .text("series", "Scenario, and variant.", |row| row.series.as_str().into())
        .number("size", "", "The size; missing without an axis of sizes.", |row| row.size)
        .with(columns::function()[0].clone(), |row| row.function.as_str().into())
        .duration("fewest_cost", "Its cost per step on that thread with the fewest CPUs.", |row| row.fewest_ns)
        .duration("most_cost", "The same with the most CPUs.", |row| row.most_ns)
        .percentage("step_share", "That cost in percent of the step.", |row| row.share)
        .essential("most_cost step_share")
}
