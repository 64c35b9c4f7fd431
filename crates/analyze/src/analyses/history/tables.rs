//! The tables of a history.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_model::{Column, Columns, Kind, NoteValue, Table, note};

use super::recording::Kept;
use super::series::{Change, Key, Point, Series};
use super::{FEWEST, History, RunRow};
use crate::analyses::metrics::Better;

impl History {
    fn has_several(&self, of: impl Fn(&Key) -> &Option<String>) -> bool {
        self.series.iter().map(|series| of(&series.key)).collect::<BTreeSet<_>>().len() > 1
    }

    /// The columns of a series. Those of variant, machine and build are there if series differ in them.
    fn key_columns(&self) -> Columns<'static, Key> {
        let text = Column::text;
        Columns::new()
            .text("scenario", "The scenario, or the recorded program.", |key: &Key| key.scenario.as_str().into())
            .text("phase", "The phase.", |key| key.phase.map(|phase| phase.to_string()).into())
            .with_if(self.has_several(|key| &key.variant), text("variant", "The variant."), |key| {
                key.variant.as_deref().into()
            })
            .with_if(self.has_several(|key| &key.machine), text("machine", "The machine."), |key| {
                key.machine.as_deref().into()
            })
            .with_if(self.has_several(|key| &key.build), text("build", "The kind of build."), |key| {
                key.build.as_deref().into()
            })
            .text("metric", "The metric.", |key| key.metric().into())
            .text("unit", "Unit of the row's values.", |key| key.unit.as_str().into())
            .essential("scenario metric")
            .detail("unit")
    }

    fn with_notes(&self, mut table: Table) -> Table {
        table.add_notes(self.notes.iter().cloned());
        table
    }

    /// One row per series: its runs, its lasting changes, and its values then and now.
    pub fn trend(&self) -> Table {
        let level = |series: &Series, index: usize| series.levels()[index];
        let now = move |series: &Series| level(series, series.points.len() - 1);
        let table = self
            .key_columns()
            .on(|series: &Series| &series.key)
            .count("runs", "runs", "Number of runs in the series.", |series| series.points.len())
            .count("changes", "changes", "Number of lasting changes.", |series| series.changes.len())
            .number(
                "ratio",
                "",
                "Current level divided by the first level; 1 without lasting changes.",
                move |series| now(series) / level(series, 0),
            )
            .with(in_row_unit("first", "Value in the first run."), |series| series.points[0].value.into())
            .with(in_row_unit("last", "Value in the last run.").essential(), |series| last(series).value.into())
            .with(in_row_unit("level", "Mean of the runs since the last change."), move |series| now(series).into())
            .text("last_change", "Start of the first run after the last change.", |series| {
                series.changes.last().map(|change| second(&series.points[change.position].at)).into()
            })
            .text("first_at", "Start of the first run.", |series| second(&series.points[0].at).into())
            .text("last_at", "Start of the last run.", |series| second(&last(series).at).into())
            .essential("runs changes")
            .detail("first_at")
            .table("history", "Metrics over time", &self.series);
        let mut table = self.with_notes(table);
        let short = self.series.iter().filter(|series| series.points.len() < FEWEST).count();
        if short > 0 {
            table.note(note!(
                Limit,
                "{} series with fewer than {} runs: too few to find a change.",
                NoteValue::number(short),
                NoteValue::number(FEWEST),
            ));
        }
        table
    }

    /// One row per lasting change, newest first.
    pub fn changes(&self) -> Table {
        let changes = |series| move |change| PlacedChange { series, change };
        let rows = self.series.iter().flat_map(|series| series.changes.iter().map(changes(series)));
        let mut rows: Vec<PlacedChange> = rows.collect();
        rows.sort_by(|a, b| b.first().at.cmp(&a.first().at));
        let _text = Column::text;
        let table = self
            .key_columns()
            .on(|row: &PlacedChange| &row.series.key)
            .text("direction", "`better` or `worse`.", |row| row.direction().into())
            .number("ratio", "", "After divided by before: 0.5 is half.", |row| {
                row.change.ratio.map(|ratio| ratio.value)
            })
            .number("ratio_low", "", "Lower bound of the ratio's 95 % confidence interval.", |row| {
                row.change.ratio.map(|ratio| ratio.low)
            })
            .number("ratio_high", "", "Upper bound of the ratio's 95 % confidence interval.", |row| {
                row.change.ratio.map(|ratio| ratio.high)
            })
            .with(in_row_unit("before", "Mean of the runs since the previous change, or since the first run."), |row| {
                row.change.before.into()
            })
            .with(in_row_unit("after", "Mean of the runs up to the next change, or to the last run."), |row| {
                row.change.after.into()
            })
            .number("p", "", "Share of shuffled series with a change as clear as this.", |row| row.change.p)
            .text("at", "Start of the first run after the change.", |row| second(&row.first().at).into())
            .text("environment", "Other changes that came with that run, which may be the cause.", |row| {
                row.first().environment.join("; ").into()
            })
            .text("run", "That run.", |row| row.first().run.as_str().into())
            .text("revision_before", "Revision of the last run before the change.", |row| {
                row.series.points[row.change.position - 1].revision.as_deref().into()
            })
            .text("revision", "Revision of the first run after the change.", |row| {
                row.first().revision.as_deref().into()
            })
            .essential("direction ratio at")
            .detail("ratio_low ratio_high revision_before")
            .table("history_changes", "Lasting changes", rows);
        self.with_notes(table)
    }

    /// One row per change of the environment, newest first.
    pub fn environment(&self) -> Table {
        struct Row<'a> {
            at: &'a str,
            run: &'a str,
            what: &'a str,
            scenarios: BTreeSet<&'a str>,
        }
        let mut found: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
        for series in &self.series {
            for point in &series.points {
                for what in &point.environment {
                    found.entry((&point.at, &point.run, what)).or_default().insert(&series.key.scenario);
                }
            }
        }
        let rows = found.into_iter().rev().map(|((at, run, what), scenarios)| Row { at, run, what, scenarios });
        let table = Columns::<Row>::new()
            .text("at", "Start of the first run with it.", |row| second(row.at).into())
            .text("run", "That run.", |row| row.run.into())
            .text("what", "What changed, from what to what.", |row| row.what.into())
            .text("scenarios", "The scenarios with this change.", |row| {
                row.scenarios.iter().copied().collect::<Vec<_>>().join(", ").into()
            })
            .essential("at what")
            .table("history_environment", "Changes of the environment", rows);
        self.with_notes(table)
    }

    /// One row per run, newest first.
    pub fn runs(&self) -> Table {
        let table = Columns::<RunRow>::new()
            .text("at", "Start of its first recording.", |run| second(&run.at).into())
            .text("run", "Its name.", |run| run.run.as_str().into())
            .count("recordings", "recordings", "Recordings with metrics.", |run| run.recordings)
            .count("gone", "recordings", "Recordings whose folder is gone; their metrics are kept.", |run| run.gone)
            .text("revision", REVISION, |run| run.revision.as_deref().into())
            .text("machine", "The machine.", |run| run.machine.as_deref().into())
            .text("build", "The kind of build.", |run| run.build.as_deref().into())
            .text("recorder", "Program and version of the recorder.", |run| run.tool.as_str().into())
            .essential("at run")
            .detail("recorder")
            .table("history_runs", "Runs", &self.runs);
        self.with_notes(table)
    }

    /// One row per metric of a run.
    pub fn values(&self) -> Table {
        let rows = self.series.iter().flat_map(placed_points);
        let columns = self.key_columns().on(|row: &PlacedPoint| &row.series.key);
        self.with_notes(columns.with_all(point_columns(in_row_unit)).table(
            "history_values",
            "Every metric of every run",
            rows,
        ))
    }
}

impl Series {
    /// The points alone, for a chart; the value has this kind.
    pub fn table(&self, kind: Kind) -> Table {
        Columns::<PlacedPoint>::new()
            .count("number", "", "Number of the run, from 1.", |row| row.number)
            .with_all(point_columns(|name, doc| Column::new(name, kind, self.key.unit.clone(), doc)))
            .table("history_series", self.key.metric(), placed_points(self))
    }
}

/// A change with its series.
struct PlacedChange<'a> {
    series: &'a Series,
    change: &'a Change,
}

impl PlacedChange<'_> {
    /// The first run after the change.
    fn first(&self) -> &Point {
        &self.series.points[self.change.position]
    }

    fn direction(&self) -> &'static str {
        let rises = self.change.after > self.change.before;
        if rises == (self.series.key.better == Better::Higher) { "better" } else { "worse" }
    }
}

/// A point with its place in its series.
struct PlacedPoint<'a> {
    series: &'a Series,
    point: &'a Point,
    /// From 1.
    number: usize,
    /// The level that it is on.
    level: f64,
}

fn placed_points(series: &Series) -> impl Iterator<Item = PlacedPoint<'_>> {
    let points = series.points.iter().zip(series.levels()).enumerate();
    points.map(move |(index, (point, level))| PlacedPoint { series, point, number: index + 1, level })
}

/// The columns of a point; `column` makes those of its value and its level.
fn point_columns<'a>(column: impl Fn(&str, &str) -> Column) -> Columns<'static, PlacedPoint<'a>> {
    let _text = Column::text;
    Columns::new()
        .text("at", "Start of the run.", |row: &PlacedPoint| second(&row.point.at).into())
        .text("run", "The run.", |row| row.point.run.as_str().into())
        .with(column("value", "Mean of the run's recordings.").essential(), |row| row.point.value.into())
        .with(column("level", "Mean of the runs between two changes."), |row| row.level.into())
        .count("recordings", "recordings", "Recordings in the run.", |row| row.point.recordings)
        .text("folder", "Whether all of its recordings still exist: `there` or `gone`.", |row| {
            match row.point.kept {
                Kept::There => "there",
                Kept::Gone => "gone",
            }
            .into()
        })
        .text("environment", "Differences from the run before, besides the code.", |row| {
            row.point.environment.join("; ").into()
        })
        .text("revision", REVISION, |row| row.point.revision.as_deref().into())
        .essential("at")
        .detail("recordings")
}

const REVISION: &str = "Revision of the source; `+3` for three changed files.";

fn in_row_unit(name: &str, doc: &str) -> Column {
    Column::new(name, Kind::InRowUnit, "", doc)
}

/// A series has a point or more.
fn last(series: &Series) -> &Point {
    &series.points[series.points.len() - 1]
}

/// A time to the second: milliseconds only tell runs apart.
fn second(at: &str) -> String {
    match at.split_once('.') {
        Some((second, _)) => format!("{second}Z"),
        None => at.to_owned(),
    }
}
