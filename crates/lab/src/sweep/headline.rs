//! The headline figure of each run of a sweep, its law so far, and the most informative next point.

use std::collections::BTreeMap;

use stepscope_analyze::basis::Basis;
use stepscope_analyze::{Functions, Owned, Selection, metrics};
use stepscope_model::{Phase, disk};
use stepscope_stats::growth::{Growth, Point};

use crate::lab_file::CORES;
use crate::run::{Run, TrialInfo};

/// The figures that may be the headline; the first that was recorded is.
const FIGURES: [&str; 3] = ["step.mean", "cpu", "wall"];

/// The headline figure by series, then by size.
#[derive(Debug, Default)]
pub(super) struct Headlines(BTreeMap<Series, BTreeMap<Size, Vec<f64>>>);

/// What has a law of its own: a scenario and variant on a number of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    scenario: String,
    /// The variant without the size.
    variant: String,
    figure: &'static str,
}

/// A positive size, ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Size(f64);

impl Eq for Size {}

impl PartialOrd for Size {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Size {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Headlines {
    /// Adds a trial, if it was recorded and has a size.
    pub(super) fn add(&mut self, run: &Run, index: usize) {
        let trial = &run.trials()[index];
        let Some((axis, size)) = trial.sweep.iter().find(|(axis, _)| *axis != CORES) else { return };
        let Some(phase) = trial.captured.iter().copied().max() else { return };
        let Some((figure, value)) = figure(run, trial, phase) else { return };
        let variant = trial.variant_name().replace(&format!("{axis}={size}"), "");
        let series = Series { scenario: trial.scenario.clone(), variant, figure };
        self.0.entry(series).or_default().entry(Size(*size)).or_default().push(value);
    }

    fn laws(&self) -> impl Iterator<Item = (&Series, Option<Growth>)> {
        self.0.iter().map(|(series, points)| {
            let points: Vec<Point> = points.iter().map(|(size, values)| Point::new(size.0, values.clone())).collect();
            (series, Growth::of(&points))
        })
    }

    /// Whether each law is named, and its expected cost at twice the largest size is within this many percent.
    pub(super) fn known_within(&self, percent: f64) -> bool {
        let known = |growth: Growth| {
            let expected = growth.expect(2.0 * growth.sizes.1).expect("2 is below 10");
            growth.law().is_some() && (expected.high / expected.low).sqrt() <= 1.0 + percent / 100.0
        };
        !self.0.is_empty() && self.laws().all(|(_, growth)| growth.is_some_and(known))
    }
}

fn figure(run: &Run, trial: &TrialInfo, phase: Phase) -> Option<(&'static str, f64)> {
    let capture = disk::read(&run.folder().join(trial.folder()).join(phase.to_string())).ok()?;
    let functions = Functions::of(&capture, &Owned::nothing());
    let selection = Selection::all(&capture, &functions);
    let metrics = metrics::of(&selection, Basis::of(&selection));
    FIGURES.into_iter().find_map(|name| Some((name, metrics.iter().find(|metric| metric.name == name)?.value)))
}

/// A size that a sweep should measure next.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The scenario, and the variant if there are several.
    pub series: String,
    /// Name of the axis.
    pub axis: String,
    /// The most informative size for the law.
    pub size: f64,
    /// Information of one run there about the law and its parameters, in bits.
    pub bits: f64,
    /// The same of one run at each measured size.
    pub measured: Vec<(f64, f64)>,
    /// The law so far; `inconclusive` if the data do not tell.
    pub law: String,
}

/// For each series of a sweep, the most informative size for one more run. At most twice the largest size.
pub fn next(run: &Run) -> Vec<Proposal> {
    let mut headlines = Headlines::default();
    (0..run.trials().len()).for_each(|index| headlines.add(run, index));
    let axes = run.trials().iter().flat_map(|trial| trial.sweep.keys());
    let axis = axes.into_iter().find(|axis| *axis != CORES).cloned().unwrap_or_default();
    let proposals = headlines.laws().filter_map(|(series, growth)| {
        let growth = growth?;
        let (low, high) = growth.sizes;
        let candidates = (0..=CANDIDATES).map(|step| {
            let size = low * (2.0 * high / low).powf(f64::from(step) / f64::from(CANDIDATES));
            round(size).clamp(low, 2.0 * high)
        });
        let best = candidates.map(|size| (size, growth.information(size))).max_by(|a, b| a.1.total_cmp(&b.1))?;
        let measured = headlines.0[series].keys().map(|size| (size.0, growth.information(size.0)));
        let variant = series.variant.trim_matches('+');
        Some(Proposal {
            series: [series.scenario.as_str(), variant].join("/").trim_end_matches('/').to_owned(),
            axis: axis.clone(),
            size: best.0,
            bits: best.1,
            measured: measured.collect(),
            law: growth.law().map_or("inconclusive".to_owned(), |law| law.to_string()),
        })
    });
    proposals.collect()
}

const CANDIDATES: i32 = 40;

/// Two significant digits.
fn round(size: f64) -> f64 {
    let unit = 10_f64.powf(size.log10().floor() - 1.0);
    (size / unit).round() * unit
}
