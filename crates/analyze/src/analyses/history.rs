//! Runs over time: how each figure of each scenario went, where it changed for good, and what else changed there.
//!
//! # Series
//! A *series* is one [metric](crate::analyses::metrics) of one scenario, phase and variant, in one unit, on one machine and of one kind
//! of build. Times of different machines say nothing about the code, and what the compiler changed would be taken for what the
//! code did: so neither is ever joined unless the user says so ([`Joined`]), and then every table says it.
//!
//! A *point* of a series is a run. Repetitions of a scenario within a run (as `stepscope ab` makes them) share what was true
//! that hour, so they are one point: their mean.
//!
//! # Changes
//! Change points of the series ([`stepscope_stats::change_points`]: E-divisive, a permutation test at the level
//! [`Options::search`] tells), with the means of the levels on both sides and the ratio of them. The interval of the ratio is
//! that of two sets of runs ([`stepscope_stats::hierarchical`]); the place was chosen by the same runs, so that it is somewhat
//! too narrow.
//!
//! # Environment
//! What differs between a point and the one before it in the same series, besides the code: kernel, governor, CPU model,
//! version of the recorder, machine and build where these are joined. A change that comes with one of these may be its doing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stepscope_model::{Column, Kind, Machine, Phase, Table, Value, quantity};
pub use stepscope_stats::ChangeSearch;
use stepscope_stats::Estimate;
use stepscope_stats::hierarchical::{HierarchicalBootstrap, REPLICATES, Run};

use crate::analyses::comparable;
use crate::analyses::metrics::{self, Better, Metric};
use crate::query::pattern::Pattern;
use crate::{columns, parallel};

/// With fewer runs than this a series has no change that chance alone would not make in 1 of 100 series.
pub const FEWEST: usize = 10;

/// What one recording says, as a store keeps it after the recording is deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Name of the run that it is of.
    pub run: String,
    /// When it began, RFC 3339 in UTC.
    pub at: String,
    /// The scenario; of a recording without one, what it is called in tables.
    pub scenario: String,
    /// The variant, where there are variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The phase, where there are phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The machine, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The kind of build, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Revision of the source, where that is known; with `+` and the number of changed files, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Program and version that recorded it.
    pub tool: String,
    /// Its metrics.
    pub figures: Vec<Figure>,
    /// Whether what was recorded is still there.
    #[serde(skip)]
    pub kept: Kept,
}

/// Whether a recording is still there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kept {
    /// It can be opened.
    #[default]
    There,
    /// Its folder is gone; the figures are all that is left.
    Gone,
}

/// A metric under a name that may be of another version of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way it should go, where that does not follow from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// The figure.
    pub value: f64,
}

impl From<Metric> for Figure {
    fn from(metric: Metric) -> Self {
        let better = Some(metric.better).filter(|better| *better != metrics::better(&metric.name));
        Self { name: metric.name.into_owned(), unit: metric.unit, better, value: metric.value }
    }
}

/// Whether series of different machines, or of different builds, are one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Joined {
    /// Each has its own.
    #[default]
    No,
    /// They are one, and every table says so.
    Yes,
}

/// Which series are looked at, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only scenarios of these names.
    pub scenario: Option<Pattern>,
    /// Only variants of these names.
    pub variant: Option<Pattern>,
    /// Only metrics of these names.
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

/// What makes a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The scenario.
    pub scenario: String,
    /// The phase.
    pub phase: Option<Phase>,
    /// The variant.
    pub variant: Option<String>,
    /// The machine in words; `None` where it is not known or machines are joined.
    pub machine: Option<String>,
    /// The kind of build; `None` where it is not known or builds are joined.
    pub build: Option<String>,
    /// The metric: its place in tables, and its name.
    metric: (usize, String),
    /// Unit of the values.
    pub unit: String,
    better: Better,
}

impl Key {
    /// Name of the metric.
    pub fn metric(&self) -> &str {
        &self.metric.1
    }

    /// `scenario/variant/phase`, as far as they are known.
    pub fn label(&self) -> String {
        let phase = self.phase.map(|phase| phase.to_string());
        let parts = [Some(self.scenario.as_str()), self.variant.as_deref(), phase.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    }
}

/// A run, as a point of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Name of the run.
    pub run: String,
    /// When its first recording of this series began.
    pub at: String,
    /// Mean of its recordings.
    pub value: f64,
    /// Number of recordings.
    pub recordings: usize,
    /// Revision of the source.
    pub revision: Option<String>,
    /// What differs from the point before, besides the code; empty if nothing does.
    pub environment: Vec<String>,
    /// Whether all of its recordings are still there.
    pub kept: Kept,
    surroundings: Surroundings,
}

/// A lasting change of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first point after it.
    pub position: usize,
    /// Of the permutation test.
    pub p: f64,
    /// Mean of the points since the change before.
    pub before: f64,
    /// Mean of the points until the next change.
    pub after: f64,
    /// After over before, with a 95 % interval; `None` unless both are positive.
    pub ratio: Option<Estimate>,
}

/// A figure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is of.
    pub key: Key,
    /// The runs, oldest first; at least one.
    pub points: Vec<Point>,
    /// Where it changed for good, oldest first.
    pub changes: Vec<Change>,
}

impl Series {
    /// The level that each point is on: the mean of the points between two changes.
    pub fn levels(&self) -> Vec<f64> {
        let starts = std::iter::once(0).chain(self.changes.iter().map(|change| change.position));
        let ends = self.changes.iter().map(|change| change.position).chain([self.points.len()]);
        starts.zip(ends).flat_map(|(start, end)| vec![mean(&self.points[start..end]); end - start]).collect()
    }

    fn of(key: Key, recordings: &[&Recording], search: &ChangeSearch) -> Self {
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
        let change = |(index, found): (usize, &stepscope_stats::change_points::ChangePoint)| {
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

impl Key {
    fn of(recording: &Recording, figure: &Figure, options: &Options) -> Self {
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

/// What may change besides the code.
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

    /// What differs from `before`, in words; what is not known is no difference.
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

/// Makes the series on all CPUs, because the search for changes takes long.
fn in_parallel(groups: Vec<(Key, Vec<&Recording>)>, search: &ChangeSearch) -> Vec<Series> {
    let mut series = parallel::map(&groups, |(key, recordings)| Series::of(key.clone(), recordings, search));
    series.sort_by(|a, b| a.key.cmp(&b.key));
    series
}

/// All series of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The series, by scenario, phase, variant, machine, build and metric.
    pub series: Vec<Series>,
    runs: Vec<RunRow>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct RunRow {
    at: String,
    run: String,
    recordings: usize,
    gone: usize,
    revision: Option<String>,
    machine: Option<String>,
    build: Option<String>,
    tool: String,
}

impl History {
    /// Puts recordings together to series, of those that the options select. `remarks` are notes of every table, such as
    /// what of the store could not be read.
    pub fn of(recordings: &[Recording], options: &Options, remarks: Vec<String>) -> Self {
        let matches =
            |pattern: &Option<Pattern>, name: &str| pattern.as_ref().is_none_or(|pattern| pattern.matches(name));
        let selected: Vec<&Recording> = recordings
            .iter()
            .filter(|one| matches(&options.scenario, &one.scenario))
            .filter(|one| matches(&options.variant, one.variant.as_deref().unwrap_or("")))
            .filter(|one| options.phase.is_none_or(|phase| one.phase == Some(phase)))
            .collect();
        let mut groups: BTreeMap<Key, Vec<&Recording>> = BTreeMap::new();
        for recording in &selected {
            let wanted = |figure: &&Figure| matches(&options.metric, &figure.name) && figure.value.is_finite();
            for figure in recording.figures.iter().filter(wanted) {
                groups.entry(Key::of(recording, figure, options)).or_default().push(recording);
            }
        }
        let series = in_parallel(groups.into_iter().collect(), &options.search);
        let notes = remarks.into_iter().chain(notes(&selected, options)).collect();
        Self { series, runs: run_rows(&selected), notes }
    }

    /// What every table says: which machines and builds are joined or kept apart, and what is gone.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn has_several(&self, of: impl Fn(&Key) -> &Option<String>) -> bool {
        self.series.iter().map(|series| of(&series.key)).collect::<BTreeSet<_>>().len() > 1
    }

    /// Drops the columns in which all rows are alike.
    fn without_idle_columns(&self, mut table: Table) -> Table {
        let idle = [
            ("variant", self.has_several(|key| &key.variant)),
            ("machine", self.has_several(|key| &key.machine)),
            ("build", self.has_several(|key| &key.build)),
        ];
        let idle: Vec<&str> = idle.into_iter().filter(|(_, several)| !several).map(|(name, _)| name).collect();
        table.drop_columns(&idle);
        table.notes.splice(0..0, self.notes.iter().map(|note| note.as_str().into()));
        table
    }

    /// One row a series: `scenario, phase, variant, machine, build, metric, unit, runs, changes, ratio, first, last, level,
    /// last_change, first_at, last_at`. Columns of variant, machine and build are there where they differ.
    pub fn trend(&self) -> Table {
        let mut all = key_columns();
        all.extend([
            columns::count("runs", "runs", "Number of runs in the series.").essential(),
            columns::count("changes", "changes", "Number of lasting changes.").essential(),
            columns::number(
                "ratio",
                "",
                "The level now over the level at the start: 1 where nothing changed for good.",
            ),
            in_row_unit("first", "Value in the first run."),
            in_row_unit("last", "Value in the last run.").essential(),
            in_row_unit("level", "Mean of the runs since the last change."),
            columns::text("last_change", "When the first run after the last change began."),
            columns::text("first_at", "When the first run began.").detail(),
            columns::text("last_at", "When the last run began."),
        ]);
        let mut table = Table::new("history", "Figures over time", all);
        for series in &self.series {
            let levels = series.levels();
            let (first, last) = (&series.points[0], &series.points[series.points.len() - 1]);
            let (start, now) = (levels[0], levels[levels.len() - 1]);
            let mut row = key_values(&series.key);
            row.extend([
                series.points.len().into(),
                series.changes.len().into(),
                (now / start).into(),
                first.value.into(),
                last.value.into(),
                now.into(),
                series.changes.last().map(|change| second(&series.points[change.position].at)).into(),
                second(&first.at).into(),
                second(&last.at).into(),
            ]);
            table.push(row);
        }
        let short = self.series.iter().filter(|series| series.points.len() < FEWEST).count();
        let mut table = self.without_idle_columns(table);
        if short > 0 {
            table.note(format!("{short} series with fewer than {FEWEST} runs: too few to find a change.",));
        }
        table
    }

    /// One row a lasting change, newest first: `scenario, ..., metric, unit, direction, ratio, ratio_low, ratio_high, before,
    /// after, p, at, environment, run, revision_before, revision`.
    pub fn changes(&self) -> Table {
        let mut all = key_columns();
        all.extend([
            columns::text("direction", "Whether it is for the better or for the worse.").essential(),
            columns::number("ratio", "", "After over before: 0.5 is half.").essential(),
            columns::number("ratio_low", "", "Lower end of the ratio's 95 % interval.").detail(),
            columns::number("ratio_high", "", "Upper end of the ratio's 95 % interval.").detail(),
            in_row_unit("before", "Mean of the runs from the change before (or the first run) on."),
            in_row_unit("after", "Mean of the runs until the next change (or the last run)."),
            columns::number("p", "", "Part of the shuffled series that have a change as clear as this."),
            columns::text("at", "When the first run after the change began.").essential(),
            columns::text("environment", "What else changed with that run: it may be the cause."),
            columns::text("run", "That run."),
            columns::text("revision_before", "Revision of the last run before the change.").detail(),
            columns::text("revision", "Revision of the first run after the change."),
        ]);
        let mut table = Table::new("history_changes", "Lasting changes", all);
        let changes = self.series.iter().flat_map(|series| series.changes.iter().map(move |change| (series, change)));
        let mut changes: Vec<(&Series, &Change)> = changes.collect();
        changes.sort_by(|(a, change_a), (b, change_b)| {
            b.points[change_b.position].at.cmp(&a.points[change_a.position].at)
        });
        for (series, change) in changes {
            let (before, point) = (&series.points[change.position - 1], &series.points[change.position]);
            let mut row = key_values(&series.key);
            row.extend([
                direction(series.key.better, change).into(),
                change.ratio.map(|ratio| ratio.value).into(),
                change.ratio.map(|ratio| ratio.low).into(),
                change.ratio.map(|ratio| ratio.high).into(),
                change.before.into(),
                change.after.into(),
                change.p.into(),
                second(&point.at).into(),
                point.environment.join("; ").into(),
                point.run.as_str().into(),
                before.revision.as_deref().into(),
                point.revision.as_deref().into(),
            ]);
            table.push(row);
        }
        self.without_idle_columns(table)
    }

    /// One row a change of the environment, newest first: `at, run, what, scenarios`.
    pub fn environment(&self) -> Table {
        let all = vec![
            columns::text("at", "When the first run with it began.").essential(),
            columns::text("run", "That run."),
            columns::text("what", "What changed, from what to what.").essential(),
            columns::text("scenarios", "In the history of which scenarios."),
        ];
        let mut found: BTreeMap<(&str, &str, &str), BTreeSet<String>> = BTreeMap::new();
        for series in &self.series {
            for point in &series.points {
                for what in &point.environment {
                    found.entry((&point.at, &point.run, what)).or_default().insert(series.key.scenario.clone());
                }
            }
        }
        let mut table = Table::new("history_environment", "Changes of the environment", all);
        for ((at, run, what), scenarios) in found.into_iter().rev() {
            let scenarios: Vec<String> = scenarios.into_iter().collect();
            table.push(vec![second(at).into(), run.into(), what.into(), scenarios.join(", ").into()]);
        }
        table.add_notes(self.notes.iter().cloned());
        table
    }

    /// One row a run, newest first: `at, run, recordings, gone, revision, machine, build, recorder`.
    pub fn runs(&self) -> Table {
        let all = vec![
            columns::text("at", "When its first recording began.").essential(),
            columns::text("run", "Its name.").essential(),
            columns::count("recordings", "recordings", "Recordings of which the figures are known."),
            columns::count("gone", "recordings", "Recordings whose folder is gone; their figures are kept."),
            columns::text("revision", "Revision of the source; `+3` for three changed files."),
            columns::text("machine", "The machine."),
            columns::text("build", "The kind of build."),
            columns::text("recorder", "Program and version that recorded it.").detail(),
        ];
        let mut table = Table::new("history_runs", "Runs", all);
        for run in &self.runs {
            table.push(vec![
                second(&run.at).into(),
                run.run.as_str().into(),
                run.recordings.into(),
                run.gone.into(),
                run.revision.as_deref().into(),
                run.machine.as_deref().into(),
                run.build.as_deref().into(),
                run.tool.as_str().into(),
            ]);
        }
        table.add_notes(self.notes.iter().cloned());
        table
    }

    /// One row a point: `scenario, ..., metric, unit, at, run, value, level, recordings, folder, environment, revision`.
    pub fn values(&self) -> Table {
        let mut all = key_columns();
        all.extend(point_columns(in_row_unit("value", VALUE), in_row_unit("level", LEVEL)));
        let mut table = Table::new("history_values", "Every figure of every run", all);
        for series in &self.series {
            for row in point_values(series) {
                table.push(key_values(&series.key).into_iter().chain(row).collect());
            }
        }
        self.without_idle_columns(table)
    }
}

impl Series {
    /// The points alone, to be drawn: `number, at, run, value, level, ...`, the value in `kind`.
    pub fn table(&self, kind: Kind) -> Table {
        let column = |name, doc| Column::new(name, kind, self.key.unit.clone(), doc);
        let number = columns::count("number", "", "Which run it is, from 1.");
        let columns = std::iter::once(number).chain(point_columns(column("value", VALUE), column("level", LEVEL)));
        let mut table = Table::new("history_series", self.key.metric(), columns.collect());
        for (index, row) in point_values(self).into_iter().enumerate() {
            table.push(std::iter::once((index + 1).into()).chain(row).collect());
        }
        table
    }
}

const VALUE: &str = "Mean of the run's recordings.";
const LEVEL: &str = "Mean of the runs between two changes.";

fn in_row_unit(name: &str, doc: &str) -> Column {
    Column::new(name, Kind::InRowUnit, "", doc)
}

fn key_columns() -> Vec<Column> {
    vec![
        columns::text("scenario", "The scenario, or what was recorded.").essential(),
        columns::text("phase", "The phase."),
        columns::text("variant", "The variant."),
        columns::text("machine", "The machine."),
        columns::text("build", "The kind of build."),
        columns::text("metric", "The metric.").essential(),
        columns::text("unit", "Unit of the row's values.").detail(),
    ]
}

fn key_values(key: &Key) -> Vec<Value> {
    vec![
        key.scenario.as_str().into(),
        key.phase.map(|phase| phase.to_string()).into(),
        key.variant.as_deref().into(),
        key.machine.as_deref().into(),
        key.build.as_deref().into(),
        key.metric().into(),
        key.unit.as_str().into(),
    ]
}

fn point_columns(value: Column, level: Column) -> [Column; 8] {
    [
        columns::text("at", "When the run began.").essential(),
        columns::text("run", "The run."),
        value.essential(),
        level,
        columns::count("recordings", "recordings", "Recordings in the run.").detail(),
        columns::text("folder", "Whether all of its recordings are still there: `there`, or `gone`."),
        columns::text("environment", "What differs from the run before, besides the code."),
        columns::text("revision", "Revision of the source; `+3` for three changed files."),
    ]
}

fn point_values(series: &Series) -> Vec<Vec<Value>> {
    let row = |(point, level): (&Point, f64)| {
        vec![
            second(&point.at).into(),
            point.run.as_str().into(),
            point.value.into(),
            level.into(),
            point.recordings.into(),
            folder(point.kept).into(),
            point.environment.join("; ").into(),
            point.revision.as_deref().into(),
        ]
    };
    series.points.iter().zip(series.levels()).map(row).collect()
}

/// A time to the second, for people: milliseconds tell runs apart, and nothing else.
fn second(at: &str) -> String {
    match at.split_once('.') {
        Some((second, _)) => format!("{second}Z"),
        None => at.to_owned(),
    }
}

fn folder(kept: Kept) -> &'static str {
    match kept {
        Kept::There => "there",
        Kept::Gone => "gone",
    }
}

fn direction(better: Better, change: &Change) -> &'static str {
    let rises = change.after > change.before;
    if rises == (better == Better::Higher) { "better" } else { "worse" }
}

fn run_rows(recordings: &[&Recording]) -> Vec<RunRow> {
    let mut runs: BTreeMap<&str, Vec<&Recording>> = BTreeMap::new();
    for recording in recordings {
        runs.entry(&recording.run).or_default().push(recording);
    }
    let mut rows: Vec<RunRow> = runs.into_iter().map(|(run, recordings)| run_row(run, &recordings)).collect();
    rows.sort_by(|a, b| (&b.at, &b.run).cmp(&(&a.at, &a.run)));
    rows
}

fn run_row(run: &str, recordings: &[&Recording]) -> RunRow {
    let all = |of: &dyn Fn(&Recording) -> Option<String>| {
        let texts: BTreeSet<String> = recordings.iter().filter_map(|recording| of(recording)).collect();
        (!texts.is_empty()).then(|| texts.into_iter().collect::<Vec<_>>().join(", "))
    };
    RunRow {
        at: recordings.iter().map(|recording| recording.at.clone()).min().unwrap_or_default(),
        run: run.to_owned(),
        recordings: recordings.len(),
        gone: recordings.iter().filter(|recording| recording.kept == Kept::Gone).count(),
        revision: all(&|recording| recording.revision.clone()),
        machine: all(&|recording| recording.machine.as_ref().map(comparable::machine)),
        build: all(&|recording| recording.build.clone()),
        tool: all(&|recording| Some(recording.tool.clone())).unwrap_or_default(),
    }
}

fn notes(recordings: &[&Recording], options: &Options) -> Vec<String> {
    let texts = |of: &dyn Fn(&Recording) -> Option<String>| -> BTreeSet<String> {
        recordings.iter().filter_map(|recording| of(recording)).collect()
    };
    let machines = texts(&|recording| recording.machine.as_ref().map(comparable::machine));
    let builds = texts(&|recording| recording.build.clone());
    let mut notes = Vec::new();
    for (what, flag, joined, all) in [
        ("machines", "--across-machines", options.machines, machines),
        ("kinds of build", "--across-builds", options.builds, builds),
    ] {
        if all.len() < 2 {
            continue;
        }
        let names = all.into_iter().collect::<Vec<_>>();
        notes.push(match joined {
            Joined::Yes => format!(
                "Different {what} are joined ({flag}): {}. Their differences are in these figures.",
                names.join("; ")
            ),
            Joined::No => format!("Different {what} are kept apart: {}. `{flag}` joins them.", names.join("; ")),
        });
    }
    let gone = recordings.iter().filter(|recording| recording.kept == Kept::Gone).count();
    if gone > 0 {
        notes.push(format!("{} without a folder; their metrics are kept.", quantity::plural(gone, "recording")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(host: &str, kernel: &str) -> Machine {
        Machine { host: host.into(), cpu: "EPYC".into(), cores: 2, kernel: kernel.into(), ..Machine::default() }
    }

    /// The `day`-th run: one recording of `shapes` with one figure.
    fn recording(day: usize, value: f64) -> Recording {
        Recording {
            run: format!("run-{day:02}"),
            at: format!("2026-11-{:02}T10:00:00Z", day + 1),
            scenario: "shapes".into(),
            variant: None,
            phase: Some(Phase::Steady),
            machine: Some(machine("lab", "6.1")),
            build: Some("release".into()),
            revision: Some(format!("abc{day:02}")),
            tool: "stepscope 0.1.0".into(),
            figures: vec![Figure { name: "step.p99".into(), unit: "ns".into(), better: None, value }],
            kept: Kept::There,
        }
    }

    /// Seven days of about 1 ms, seven of about 1.2 ms.
    fn worse() -> Vec<Recording> {
        let noise = [0.0, 3e3, -2e3, 5e3, -4e3, 1e3, 2e3];
        (0..14).map(|day| recording(day, if day < 7 { 1e6 } else { 1.2e6 } + noise[day % 7])).collect()
    }

    fn history(recordings: &[Recording]) -> History {
        History::of(recordings, &Options::default(), Vec::new())
    }

    fn text(table: &Table, row: usize, column: &str) -> String {
        match table.get(row, column) {
            Some(Value::Text(text)) => text.clone(),
            other => panic!("{column}: {other:?}"),
        }
    }

    fn float(table: &Table, row: usize, column: &str) -> f64 {
        match table.get(row, column) {
            Some(Value::Float(number)) => *number,
            other => panic!("{column}: {other:?}"),
        }
    }

    #[test]
    fn a_lasting_change_is_told_with_its_run_its_ratio_and_its_revisions() {
        let history = history(&worse());
        let changes = history.changes();
        assert_eq!(changes.rows.len(), 1);
        assert_eq!(text(&changes, 0, "run"), "run-07");
        assert_eq!(text(&changes, 0, "at"), "2026-11-08T10:00:00Z");
        assert_eq!(text(&changes, 0, "direction"), "worse");
        assert_eq!(
            (text(&changes, 0, "revision_before"), text(&changes, 0, "revision")),
            ("abc06".into(), "abc07".into())
        );
        let ratio = float(&changes, 0, "ratio");
        assert!((ratio - 1.2).abs() < 1e-3 && float(&changes, 0, "p") <= 0.01);
        assert!(float(&changes, 0, "ratio_low") < ratio && ratio < float(&changes, 0, "ratio_high"));
        let trend = history.trend();
        assert_eq!(trend.get(0, "runs"), Some(&14_usize.into()));
        assert_eq!(trend.get(0, "changes"), Some(&1_usize.into()));
        assert_eq!(float(&trend, 0, "first"), 1e6);
        assert_eq!(text(&trend, 0, "last_change"), "2026-11-08T10:00:00Z");
    }

    #[test]
    fn more_is_better_of_the_real_time_factor_alone() {
        let mut recordings = worse();
        recordings.iter_mut().for_each(|one| one.figures[0].name = "rtf".into());
        assert_eq!(text(&history(&recordings).changes(), 0, "direction"), "better");
    }

    #[test]
    fn machines_and_builds_are_never_one_series_unless_told_and_then_every_table_says_so() {
        let mut recordings = worse();
        for one in &mut recordings[7..] {
            one.machine = Some(machine("other", "6.1"));
            one.build = Some("debug".into());
        }
        let apart = history(&recordings);
        assert_eq!(apart.series.len(), 2);
        assert!(apart.series.iter().all(|series| series.changes.is_empty()));
        assert!(apart.notes()[0].contains("are kept apart") && apart.trend().column("machine").is_some());
        let options = Options { machines: Joined::Yes, builds: Joined::Yes, ..Options::default() };
        let joined = History::of(&recordings, &options, Vec::new());
        assert_eq!(joined.series.len(), 1);
        for table in [joined.trend(), joined.changes(), joined.environment(), joined.runs(), joined.values()] {
            assert!(table.notes.iter().any(|note| note.contains("joined (--across-machines)")), "{}", table.name);
            assert!(table.notes.iter().any(|note| note.contains("joined (--across-builds)")), "{}", table.name);
        }
        let environment = text(&joined.changes(), 0, "environment");
        assert!(
            environment.contains("machine: lab") && environment.contains("build: release -> debug"),
            "{environment}"
        );
    }

    #[test]
    fn what_else_changed_is_marked_at_its_run() {
        let mut recordings = worse();
        for one in &mut recordings[7..] {
            one.machine = Some(machine("lab", "6.18"));
        }
        recordings[9].tool = "stepscope 0.2.0".into();
        let history = history(&recordings);
        assert_eq!(text(&history.changes(), 0, "environment"), "kernel: 6.1 -> 6.18");
        let environment = history.environment();
        let told: Vec<(String, String)> = (0..environment.rows.len())
            .map(|row| (text(&environment, row, "run"), text(&environment, row, "what")))
            .collect();
        assert_eq!(
            told,
            [
                ("run-10".into(), "recorder: stepscope 0.2.0 -> stepscope 0.1.0".to_owned()),
                ("run-09".into(), "recorder: stepscope 0.1.0 -> stepscope 0.2.0".into()),
                ("run-07".into(), "kernel: 6.1 -> 6.18".into()),
            ]
        );
    }

    #[test]
    fn repetitions_within_a_run_are_one_point() {
        let mut recordings = vec![recording(0, 10.0), recording(0, 20.0), recording(1, 30.0)];
        recordings[1].at = "2026-11-01T10:05:00Z".into();
        let history = history(&recordings);
        let points: Vec<(f64, usize)> =
            history.series[0].points.iter().map(|point| (point.value, point.recordings)).collect();
        assert_eq!(points, [(15.0, 2), (30.0, 1)]);
        assert!(history.trend().notes[0].contains("fewer than 10 runs"));
    }

    #[test]
    fn what_is_gone_is_counted_and_its_figures_stay() {
        let mut recordings = worse();
        recordings[3].kept = Kept::Gone;
        let history = history(&recordings);
        assert_eq!(history.series[0].points.len(), 14);
        assert_eq!(history.notes(), ["1 recording without a folder; their metrics are kept."]);
        assert_eq!(history.runs().get(10, "gone"), Some(&1_usize.into()));
        assert_eq!(text(&history.values(), 3, "folder"), "gone");
    }

    #[test]
    fn series_are_selected_by_name_and_units_are_never_mixed() {
        let mut recordings = worse();
        recordings[0].figures[0].unit = "ns/step".into();
        recordings[1].scenario = "marina".into();
        recordings[2].variant = Some("after".into());
        assert_eq!(history(&recordings).series.len(), 4);
        let of = |options: Options| History::of(&recordings, &options, Vec::new()).series.len();
        let pattern = |text: &str| Some(text.parse().unwrap());
        assert_eq!(of(Options { scenario: pattern("mar*"), ..Options::default() }), 1);
        assert_eq!(of(Options { variant: pattern("after"), ..Options::default() }), 1);
        assert_eq!(of(Options { metric: pattern("rtf"), ..Options::default() }), 0);
        assert_eq!(of(Options { phase: Some(Phase::Loading), ..Options::default() }), 0);
    }

    #[test]
    fn points_are_drawn_with_the_level_they_are_on() {
        let history = history(&worse());
        let levels = history.series[0].levels();
        assert_eq!(levels.len(), 14);
        assert!(levels[..7].iter().all(|level| *level == levels[0]) && levels[7] > 1.19e6);
        let table = history.series[0].table(Kind::Duration);
        assert_eq!((table.rows.len(), table.get(13, "number")), (14, Some(&14_usize.into())));
    }
}
