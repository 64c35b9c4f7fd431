//! The variants of each scenario side by side: what each costs, and how that is to the first.
//!
//! One row per scenario, phase, figure and variant, in the order in which the variants were recorded. Figures are the
//! [headline figures](metrics::is_headline), the tail of the step time, the latency of messages and the exactness of timers,
//! and the largest resident memory, as far as a recording has them. The length of a recording is one of the loading phase, or where
//! variants differ in it: programs are often recorded for a fixed time. A value is the mean of the variant's runs; *low* and
//! *high* are the lowest and the highest of them. *of_first* is the value as a percentage of the first variant's.
//!
//! These are descriptions, not tests: [`compare`](crate::compare) says which differences are significant.

use stepscope_model::{CaptureInfo, Column, Columns, Kind, Phase, Table, Value, note};

use crate::analyses::metrics::{self, Metric, VariantMetric};
use crate::query::basis::Basis;
use crate::query::select::Selection;

/// Figures beside the headline figures.
const FIGURES: [&str; 8] =
    ["step.p99", "flows.median", "flows.p99", "flows.late", "flows.lost", "timers.jitter", "timers.missed", "rss.peak"];

/// Recordings whose lengths differ by less are of a fixed time: the longest over the shortest.
const FIXED_TIME: f64 = 1.01;

/// The runs of one scenario in one phase.
type Runs<'s, 'a> = Vec<&'s Selection<'a>>;

struct Row<'a> {
    scenario: &'a str,
    phase: Option<Phase>,
    variant: &'a str,
    metric: VariantMetric,
    first: f64,
}

impl Row<'_> {
    /// Of several runs.
    fn extreme(&self, of: fn(f64, f64) -> f64) -> Option<f64> {
        self.metric.values.iter().copied().reduce(of).filter(|_| self.metric.values.len() > 1)
    }

    fn of_first(&self) -> Option<f64> {
        (self.first > 0.0).then(|| 100.0 * self.metric.mean() / self.first)
    }
}

/// The table `variants`. `None` if no scenario has several variants.
pub fn table(selections: &[Selection<'_>]) -> Option<Table> {
    let rows: Vec<Row<'_>> = scenarios(selections).iter().flat_map(|runs| rows(runs)).collect();
    if rows.is_empty() {
        return None;
    }
    let has_several = |of: fn(&Row<'_>) -> bool| rows.iter().any(of) && !rows.iter().all(of);
    let has_phases = has_several(|row| row.phase == Some(Phase::Steady));
    let has_runs = rows.iter().any(|row| row.metric.values.len() > 1);
    let in_row_unit = |name: &str, doc: &str| Column::new(name, Kind::InRowUnit, "", doc);
    let mut table = Columns::<Row<'_>>::new()
        .with(Column::text("scenario", "The scenario.").grouping(), |row| row.scenario.into())
        .with_if(has_phases, Column::text("phase", "The phase.").grouping(), |row| {
            row.phase.map(|phase| phase.to_string()).into()
        })
        .with(Column::text("metric", "What is measured.").grouping(), |row| (&*row.metric.name).into())
        .with(Column::text("unit", "Its unit.").detail(), |row| row.metric.unit.as_str().into())
        .text("variant", "The variant.", |row| row.variant.into())
        .with(in_row_unit("value", "Mean of the runs."), |row| row.metric.mean().into())
        .with_if(has_runs, in_row_unit("low", "Lowest of the runs."), |row| row.extreme(f64::min).into())
        .with_if(has_runs, in_row_unit("high", "Highest of the runs."), |row| row.extreme(f64::max).into())
        .percentage("of_first", "The value, as a percentage of the first variant's.", |row| Value::from(row.of_first()))
        .with(Column::count("runs", "runs", "Runs.").detail(), |row| row.metric.values.len().into())
        .essential("scenario metric variant value of_first")
        .table("variants", "Variants side by side", &rows);
    table.note(note!(Hint, "`stepscope compare RUN` says which of these differences are significant."));
    Some(table)
}

/// Runs by scenario and phase, those with several variants.
fn scenarios<'s, 'a>(selections: &'s [Selection<'a>]) -> Vec<Runs<'s, 'a>> {
    let key = |info: &'s CaptureInfo| (info.scenario.as_deref(), info.phase);
    let mut scenarios: Vec<Runs<'s, 'a>> = Vec::new();
    for selection in selections.iter().filter(|one| one.capture().info.variant.is_some()) {
        let is_of = |runs: &&mut Runs<'s, 'a>| key(&runs[0].capture().info) == key(&selection.capture().info);
        match scenarios.iter_mut().find(is_of) {
            Some(runs) => runs.push(selection),
            None => scenarios.push(vec![selection]),
        }
    }
    scenarios.retain(|runs| variants(runs).len() > 1);
    scenarios
}

/// The names of the variants, in the order of their first runs.
fn variants<'s>(runs: &Runs<'s, '_>) -> Vec<&'s str> {
    let mut names = Vec::new();
    for name in runs.iter().filter_map(|run| run.capture().info.variant.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A row for each figure and variant that has it.
fn rows<'s>(runs: &Runs<'s, '_>) -> Vec<Row<'s>> {
    let basis = Basis::common(runs.iter().copied());
    let has_steps = basis == Basis::PerStep;
    let is_figure = |metric: &Metric| FIGURES.contains(&&*metric.name) || metrics::is_headline(&metric.name, has_steps);
    let measured: Vec<Vec<Metric>> =
        runs.iter().map(|run| metrics::of(run, basis).into_iter().filter(is_figure).collect()).collect();
    let info = &runs[0].capture().info;
    let variants = variants(runs);
    let walls = || measured.iter().flatten().filter(|metric| metric.name == "wall").map(|metric| metric.value);
    let longest = walls().fold(0.0, f64::max);
    let is_fixed = info.phase != Some(Phase::Loading) && walls().all(|wall| longest < FIXED_TIME * wall);
    let of_variant = |variant: &&str| {
        let runs = runs.iter().zip(&measured);
        let runs = runs.filter(|(run, _)| run.capture().info.variant.as_deref() == Some(variant));
        runs.map(|(_, metrics)| &**metrics).collect()
    };
    let metrics = metrics::by_variant(&variants.iter().map(of_variant).collect::<Vec<Vec<&[Metric]>>>());
    let of_metric = |metrics: &[VariantMetric]| {
        let first = metrics[0].mean();
        let row = |metric: &VariantMetric| Row {
            scenario: info.scenario.as_deref().unwrap_or_default(),
            phase: info.phase,
            variant: variants[metric.variant],
            metric: metric.clone(),
            first,
        };
        metrics.iter().map(row).collect::<Vec<Row<'s>>>()
    };
    let by_name = metrics.chunk_by(|a, b| a.name == b.name);
    by_name.filter(|metrics| !(is_fixed && metrics[0].name == "wall")).flat_map(of_metric).collect()
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Better, Capture, OwnMetric};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::Drawing;
    use crate::query::functions::Functions;
    use crate::query::ownership::Owned;

    fn run(scenario: &str, variant: Option<&str>, latency_ns: f64) -> Capture {
        let mut capture = Drawing::new().window(0..1_000_000_000).lived("main", 0..1_000_000_000, 2_000).capture;
        capture.info.scenario = Some(scenario.to_owned());
        capture.info.variant = variant.map(str::to_owned);
        capture.info.phase = Some(Phase::Steady);
        let (name, unit) = ("latency".to_owned(), "ns".to_owned());
        capture.info.own_metrics = vec![OwnMetric { name, unit, better: Better::Lower, values: vec![latency_ns] }];
        capture
    }

    fn shown(captures: &[Capture], columns: &[&str]) -> Option<Vec<String>> {
        let functions: Vec<Functions> = captures.iter().map(|one| Functions::of(one, &Owned::nothing())).collect();
        let selections: Vec<Selection<'_>> =
            captures.iter().zip(&functions).map(|(capture, functions)| Selection::all(capture, functions)).collect();
        Some(cells(&table(&selections)?, columns))
    }

    #[test]
    fn each_figure_has_its_variants_side_by_side() {
        let captures = [
            run("house", Some("events"), 200.0),
            run("house", Some("static"), 100.0),
            run("house", Some("events"), 400.0),
            run("ridge", Some("events"), 100.0),
        ];
        let rows = shown(&captures, &["scenario", "metric", "variant", "value", "low", "high", "of_first"]).unwrap();
        let expected = [
            "house | metric.latency.median | events | 300 | 200 | 400 | 100",
            "house | metric.latency.median | static | 100 | - | - | 33.333333",
        ];
        assert_eq!(rows[..2], expected, "{rows:?}");
        assert!(rows.iter().all(|row| row.starts_with("house")), "one variant is not compared");
    }

    #[test]
    fn without_variants_there_is_no_table() {
        assert_eq!(shown(&[run("house", None, 1.0), run("house", None, 1.0)], &["scenario"]), None);
    }
}
