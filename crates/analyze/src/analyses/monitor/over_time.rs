//! The figures of monitored processes over time: a table, and a chart, for each figure, of the ten processes with most of it.
//!
//! Values are at [`POINTS`] equal distances at most, and not closer than the figure was read. A level is that of the last reading.
//! A rate is the change between two points, over the time between them.

use std::cmp::Reverse;
use std::ops::Range;

use stepscope_model::{Column, Columns, Kind, Mark, Table, Value};

use super::watched;
use crate::analyses::resources::{Observed, Series};
use crate::analysis::Part;
use crate::query::select::Selection;

/// Most points of a curve.
const POINTS: u64 = 300;

/// Processes with a curve of their own.
const TOP: usize = 10;
const CAPTION: &str = "the ten processes with most of it";

/// A figure of processes over time.
struct Figure {
    name: &'static str,
    title: &'static str,
    /// The readings that add up to it.
    quantities: &'static [&'static str],
    /// Whether it is the change of a total per second, of which `scale` is one unit.
    rate: Option<f64>,
    kind: Kind,
    unit: &'static str,
}

const fn level(
    name: &'static str,
    title: &'static str,
    quantities: &'static [&'static str],
    kind: Kind,
    unit: &'static str,
) -> Figure {
    Figure { name, title, quantities, rate: None, kind, unit }
}

const fn rate(
    name: &'static str,
    title: &'static str,
    quantities: &'static [&'static str],
    scale: f64,
    kind: Kind,
    unit: &'static str,
) -> Figure {
    Figure { name, title, quantities, rate: Some(scale), kind, unit }
}

const FIGURES: [Figure; 15] = [
    rate("cores", "CPU time (cores)", &["cpu_user_ns", "cpu_system_ns"], 1e9, Kind::Number, "cores"),
    level("rss", "Resident memory", &["rss_bytes"], Kind::Bytes, "bytes"),
    level("pss", "Proportional memory (PSS)", &["pss_bytes"], Kind::Bytes, "bytes"),
    level("swap", "Swapped memory", &["swap_bytes"], Kind::Bytes, "bytes"),
    level("fds", "Open file descriptors", &["fds"], Kind::Count, "fds"),
    level("sockets", "Sockets", &["sockets"], Kind::Count, "sockets"),
    level("threads", "Threads", &["threads"], Kind::Count, "threads"),
    rate("cpu_wait", "Waiting for a CPU", &["run_queue_delay_ns"], 1e7, Kind::Percent, "percent"),
    rate(
        "voluntary_rate",
        "Voluntary context switches",
        &["context_switches_voluntary"],
        1.0,
        Kind::Number,
        "switches/s",
    ),
    rate("involuntary_rate", "Preemptions", &["context_switches_involuntary"], 1.0, Kind::Number, "switches/s"),
    rate("io_read_rate", "Bytes read from storage", &["io_read_bytes"], 1.0, Kind::Bytes, "bytes/s"),
    rate("io_write_rate", "Bytes written to storage", &["io_write_bytes"], 1.0, Kind::Bytes, "bytes/s"),
    rate("major_fault_rate", "Page faults from storage", &["major_faults"], 1.0, Kind::Number, "faults/s"),
    rate("gpu", "GPU time", &["gpu_ns"], 1e7, Kind::Percent, "percent"),
    level("gpu_memory", "GPU memory", &["gpu_memory_bytes"], Kind::Bytes, "bytes"),
];

/// A curve for each figure that is not zero everywhere.
pub(super) fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let watched = watched(selection);
    FIGURES.iter().filter_map(|figure| figure.table(selection, &watched)).collect()
}

/// The same as charts.
pub(super) fn charts(selection: &Selection<'_>) -> Vec<Part> {
    let watched = watched(selection);
    let chart = |figure: &Figure| {
        let table = figure.table(selection, &watched)?;
        let marks = table.columns[1..].iter().map(|column| Mark::Line(column.name.clone())).collect();
        Some(Part::Chart { table, across: "time", marks, caption: CAPTION })
    };
    FIGURES.iter().filter_map(chart).collect()
}

impl Figure {
    fn table(&self, selection: &Selection<'_>, watched: &[Observed<'_>]) -> Option<Table> {
        let window = selection.window()?;
        let mut top: Vec<(i64, &Observed<'_>)> =
            watched.iter().map(|one| (self.size(one), one)).filter(|(size, _)| *size > 0).collect();
        top.sort_by_key(|(size, one)| (Reverse(*size), one.process.pid));
        top.truncate(TOP);
        if top.is_empty() {
            return None;
        }
        let (times, every_ns) = self.times(&window, top.iter().map(|(_, one)| *one))?;
        let mut columns = Columns::<usize>::new()
            .with(Column::duration("time", "Time since the monitor began."), |&point| {
                (times[point] - window.start).into()
            });
        for (place, (_, one)) in top.iter().enumerate() {
            let label = selection.process_label(one.id);
            let curve = self.curve(one, &times, every_ns);
            let column =
                Column::new(&format!("top_{}", place + 1), self.kind, self.unit, format!("{} of {label}.", self.title));
            columns = columns.with(column.labelled(label), move |&point| curve[point].clone());
        }
        let points: Vec<usize> = (0..times.len()).collect();
        Some(columns.table(&format!("monitor_{}", self.name), self.title, points))
    }

    /// What processes are ordered by: the change of a rate, the largest level.
    fn size(&self, one: &Observed<'_>) -> i64 {
        let of = |quantity: &&str| {
            let course = one.course(quantity);
            course.map_or(0, |course| if self.rate.is_some() { course.change } else { course.max })
        };
        self.quantities.iter().map(of).fold(0, i64::saturating_add)
    }

    /// Points at equal distances until the last reading, and how often the figure is read. `None` for less than two points.
    fn times<'a>(&self, window: &Range<u64>, top: impl Iterator<Item = &'a Observed<'a>>) -> Option<(Vec<u64>, u64)> {
        let series = top.flat_map(|one| self.quantities.iter().filter_map(|quantity| one.quantities.get(quantity)));
        let series: Vec<&Series> = series.collect();
        let every_ns = series.iter().filter_map(|series| series.usual_interval_ns()).min().unwrap_or(0);
        let last_ns = match self.rate {
            Some(_) => series.iter().filter_map(|series| series.last_ns()).max()?.min(window.end),
            None => window.end,
        };
        let step = ((window.end - window.start) / POINTS).max(every_ns).max(1);
        let times: Vec<u64> = (window.start + step..=last_ns).step_by(usize::try_from(step).ok()?).collect();
        (times.len() > 1).then_some((times, every_ns))
    }

    fn curve(&self, one: &Observed<'_>, times: &[u64], every_ns: u64) -> Vec<Value> {
        let step = times[1] - times[0];
        let is_there = |time: u64| (one.window.start..=one.window.end).contains(&time);
        let series = || self.quantities.iter().filter_map(|quantity| one.quantities.get(quantity));
        let level = |time: u64| series().filter_map(|series| series.value_at(time)).reduce(i64::saturating_add);
        let total =
            |time: u64| series().filter_map(|series| series.total_at(time, every_ns)).reduce(|sum, one| sum + one);
        let at = |&time: &u64| match self.rate {
            _ if !is_there(time) => Value::Missing,
            None => level(time).into(),
            Some(scale) => {
                let change = total(time).zip(total(time.saturating_sub(step)));
                change.map(|(now, before)| (now - before) * 1e9 / scale / step as f64).into()
            }
        };
        times.iter().map(at).collect()
    }
}
