//! [`Series`]: one metric over time, and its lasting changes.

use std::collections::BTreeMap;

use stepscope_model::Phase;
use stepscope_stats::change_points::ChangePoint;
use stepscope_stats::hierarchical::{HierarchicalBootstrap, REPLICATES, Run};
use stepscope_stats::{ChangeSearch, Estimate};

use super::recording::{Figure, Kept, Recording};
use crate::analyses::comparable;
use crate::analyses::metrics::{self, Better};
use crate::query::pattern::Pattern;

/// Whether series of different machines, or of different builds, are one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Joined {
    /// Each has its own series.
    #[default]
    No,
    /// They share a series, and a note of every table says so.
    Yes,
}

/// Which series to make, and how to search them.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only scenarios with these names.
    pub scenario: Option<Pattern>,
    /// Only variants with these names.
    pub variant: Option<Pattern>,
    /// Only metrics with these names.
    pub metric: Option<Pattern>,
    /// Only this phase.
    pub phase: Option<Phase>,
    /// Whether machines are joined.
    pub machines: Joined,
    /// Whether kinds of build are joined.
    pub builds: Joined,
    /// How changes are searched for.
    pub search: ChangeSearch,
}

/// What identifies a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The scenario.
    pub scenario: String,
    /// The phase.
    pub phase: Option<Phase>,
    /// The variant.
    pub variant: Option<String>,
    /// Description of the machine; `None` if unknown or joined.
    pub machine: Option<String>,
    /// The kind of build; `None` if unknown or joined.
    pub build: Option<String>,
    /// The metric: its place in tables, and its name.
    metric: (usize, String),
    /// Unit of the values.
    pub unit: String,
    pub(super) better: Better,
}

impl Key {
    /// Name of the metric.
    pub fn metric(&self) -> &str {
        &self.metric.1
    }

    /// `scenario/variant/phase`, without unknown parts.
    pub fn label(&self) -> String {
        let phase = self.phase.map(|phase| phase.to_string());
        let parts = [Some(self.scenario.as_str()), self.variant.as_deref(), phase.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    }

    pub(super) fn of(recording: &Recording, figure: &Figure, options: &Options) -> Self {
        let unless = |joined: Joined, text: Option<String>| text.filter(|_| joined == Joined::No);
        let place = metrics::place(&figure.name);
        Self {
            scenario: recording.scenario.clone(),
            phase: recording.phase,
            variant: recording.variant.clone(),
            machine: unless(options.machines, recording.machine.as_ref().map(comparable::machine)),
            build: unless(options.builds, recording.build.clone()),
            metric: (place, figure.name.clone()),
            unit: figure.unit.clone(),
            better: figure.better.unwrap_or_else(|| metrics::better(&figure.name)),
        }
    }

    fn is_of(&self, figure: &Figure) -> bool {
        figure.name == self.metric.1 && figure.unit == self.unit
    }
}

/// A run, as a point of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Name of the run.
    pub run: String,
    /// Start of its first recording in this series.
    pub at: String,
    /// Mean of its recordings.
    pub value: f64,
    /// Number of recordings.
    pub recordings: usize,
    /// Revision of the source.
    pub revision: Option<String>,
    /// Differences from the point before, besides the code.
    pub environment: Vec<String>,
    /// Whether the folders of all its recordings still exist.
    pub kept: Kept,
    surroundings: Surroundings,
}

impl Point {
    fn of(key: &Key, mut recordings: Vec<&Recording>) -> Self {
        recordings.sort_by(|a, b| a.at.cmp(&b.at));
        let figures = recordings.iter().filter_map(|one| one.figures.iter().find(|figure| key.is_of(figure)));
        let values: Vec<f64> = figures.map(|figure| figure.value).collect();
        let first = recordings[0];
        let gone = recordings.iter().any(|recording| recording.kept == Kept::Gone);
        Self {
            run: first.run.clone(),
            at: first.at.clone(),
            value: values.iter().sum::<f64>() / values.len() as f64,
            recordings: recordings.len(),
            revision: recordings.iter().find_map(|recording| recording.revision.clone()),
            environment: Vec::new(),
            kept: if gone { Kept::Gone } else { Kept::There },
            surroundings: Surroundings::of(first),
        }
    }
}

/// A lasting change of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first point after it.
    pub position: usize,
    /// p-value of the permutation test.
    pub p: f64,
    /// Mean of the points since the previous change.
    pub before: f64,
    /// Mean of the points until the next change.
    pub after: f64,
    /// After divided by before, with its 95 % confidence interval; `None` unless both are positive.
    pub ratio: Option<Estimate>,
}

/// One metric over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What identifies it.
    pub key: Key,
    /// The runs, oldest first; at least one.
    pub points: Vec<Point>,
    /// The lasting changes, oldest first.
    pub changes: Vec<Change>,
}

impl Series {
    /// The level of each point: the mean of the points between two changes.
    pub fn levels(&self) -> Vec<f64> {
        let starts = std::iter::once(0).chain(self.changes.iter().map(|change| change.position));
        let ends = self.changes.iter().map(|change| change.position).chain([self.points.len()]);
        starts.zip(ends).flat_map(|(start, end)| vec![mean(&self.points[start..end]); end - start]).collect()
    }

    pub(super) fn of(key: Key, recordings: &[&Recording], search: &ChangeSearch) -> Self {
        let mut runs: BTreeMap<&str, Vec<&Recording>> = BTreeMap::new();
        for recording in recordings {
            runs.entry(&recording.run).or_default().push(recording);
        }
        let mut points: Vec<Point> = runs.into_values().map(|recordings| Point::of(&key, recordings)).collect();
        points.sort_by(|a, b| (&a.at, &a.run).cmp(&(&b.at, &b.run)));
        for index in 1..points.len() {
            points[index].environment = points[index].surroundings.differences(&points[index - 1].surroundings);
        }
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        let found = search.find(&values);
        let position = |index: usize| found.get(index).map_or(values.len(), |change| change.position);
        let change = |(index, found): (usize, &ChangePoint)| {
            let start = if index == 0 { 0 } else { position(index - 1) };
            Change {
                position: found.position,
                p: found.p,
                before: found.before,
                after: found.after,
                ratio: ratio(&values[start..found.position], &values[found.position..position(index + 1)], search.seed),
            }
        };
        let changes = found.iter().enumerate().map(change).collect();
        Self { key, points, changes }
    }
}

/// The environment of a run, which may change besides the code.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Surroundings {
    machine: Option<String>,
    build: Option<String>,
    kernel: Option<String>,
    governor: Option<String>,
    tool: Option<String>,
}

impl Surroundings {
    fn of(recording: &Recording) -> Self {
        let machine = recording.machine.as_ref();
        Self {
            machine: machine.map(comparable::machine),
            build: recording.build.clone(),
            kernel: machine.map(|machine| machine.kernel.clone()).filter(|kernel| !kernel.is_empty()),
            governor: machine.and_then(|machine| machine.governor.clone()),
            tool: Some(recording.tool.clone()).filter(|tool| !tool.is_empty()),
        }
    }

    /// Differences from `before` as `what: old -> new`. Unknown values do not differ.
    fn differences(&self, before: &Self) -> Vec<String> {
        let all = [
            ("machine", &before.machine, &self.machine),
            ("build", &before.build, &self.build),
            ("kernel", &before.kernel, &self.kernel),
            ("governor", &before.governor, &self.governor),
            ("recorder", &before.tool, &self.tool),
        ];
        let differing = all.into_iter().filter_map(|(what, before, now)| {
            let (before, now) = (before.as_ref()?, now.as_ref()?);
            (before != now).then(|| format!("{what}: {before} -> {now}"))
        });
        differing.collect()
    }
}

fn mean(points: &[Point]) -> f64 {
    points.iter().map(|point| point.value).sum::<f64>() / points.len() as f64
}

fn ratio(before: &[f64], after: &[f64], seed: u64) -> Option<Estimate> {
    let runs = |values: &[f64]| -> Vec<Run> {
        values.iter().map(|value| Run { mean: *value, residuals: Vec::new() }).collect()
    };
    let bootstrap = HierarchicalBootstrap::new(&vec![0; before.len()], &vec![0; after.len()], REPLICATES, seed);
    bootstrap.change(&runs(before), &runs(after), 0.95)?.ratio
}
