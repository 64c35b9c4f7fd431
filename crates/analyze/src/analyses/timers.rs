//! Timers: how exactly their callbacks come.
//!
//! One row per callback of a timer whose period is known. Over the intervals between the starts of consecutive calls:
//!
//! - *drift*: time of all intervals over the periods in them, less 1, in parts per million. A timer that is started again
//!   after each call drifts;
//! - *jitter*: percentiles of the difference between an interval and the nearest multiple of the period, at least one;
//! - *missed*: multiples of the period in an interval beyond the first, rounded: an interval of 2.4 periods misses one call.
//!   A call that is late by 0.9 periods is not missed: the next one comes after 0.1 periods, or the next ones after 0.7 each. So what
//!   a late call leaves of its period belongs to the intervals after it, until one is whole again: a missed call that they make up for
//!   is taken back.

use std::collections::BTreeMap;
use std::sync::Arc;

use stepscope_model::{Columns, FlowStage, Note, Table, Value, note};
use stepscope_stats::Distribution;

use crate::analyses::flows::why_no_ros2;
use crate::analysis::{Analysis, ReportSection, View};
use crate::query::select::Selection;

#[derive(Default)]
struct Timer {
    starts_ns: Vec<u64>,
}

/// A row: a callback, its process, its period.
struct Row {
    name: Arc<str>,
    process: String,
    period_ns: u64,
    intervals: Distribution,
    jitter: Distribution,
    missed: u64,
}

impl Row {
    fn of((process, name, period_ns): (String, Arc<str>, u64), timer: &Timer) -> Self {
        let intervals: Vec<u64> = timer.starts_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let rounded = |ns: u64| ns.saturating_add(period_ns / 2) / period_ns;
        let off = |&ns: &u64| ns.abs_diff(rounded(ns).max(1).saturating_mul(period_ns));
        Self {
            missed: missed(intervals.iter().map(|&ns| ns as f64 / period_ns as f64)),
            jitter: intervals.iter().map(off).collect(),
            intervals: intervals.into_iter().collect(),
            name,
            process,
            period_ns,
        }
    }

    /// Parts per million by which the timer is slow.
    fn drift(&self) -> Option<f64> {
        let periods = self.intervals.len() as u64 + self.missed;
        let expected = periods as f64 * self.period_ns as f64;
        (periods > 0).then(|| (self.intervals.sum() as f64 / expected - 1.0) * 1e6)
    }
}

/// An interval that differs less from whole periods is on time.
const ON_TIME: f64 = 0.05;

/// Missed calls, from the length of each interval in periods.
fn missed(intervals: impl Iterator<Item = f64>) -> u64 {
    let (mut missed, mut open) = (0_u64, 0_u64);
    // By how much the last call was later than the calls that were counted until then.
    let mut late = 0.0_f64;
    for periods in intervals {
        let rounded = (periods + 0.5).floor();
        // What a late call has left of its period belongs to the next one.
        let before = if open > 0 { late } else { 0.0 };
        let counted = rounded.min((before + periods + 0.5).floor().max(0.0));
        late = before + periods - counted;
        match counted as u64 {
            0 if open > 0 => (missed, open) = (missed - 1, open - 1),
            0 => {}
            1 if (periods - rounded).abs() < ON_TIME => open = 0,
            1 => {}
            counted => (missed, open) = (missed + counted - 1, counted - 1),
        }
    }
    missed
}

/// By process, name and period.
fn rows(selection: &Selection<'_>) -> Vec<Row> {
    let capture = selection.capture();
    let mut timers: BTreeMap<(String, Arc<str>, u64), Timer> = BTreeMap::new();
    for event in &capture.flows {
        let is_selected = selection.has_thread(event.thread) && selection.has_time(Some(event.time_ns));
        let Some(period_ns) = event.period_ns.filter(|&ns| ns > 0 && is_selected) else { continue };
        if event.stage == FlowStage::CallbackStart {
            let process = selection.process_label_of(&capture.threads[event.thread.index()]).to_owned();
            let name = event.name.as_ref().unwrap_or(&event.topic).clone();
            timers.entry((process, name, period_ns)).or_default().starts_ns.push(event.time_ns);
        }
    }
    timers.into_iter().map(|(key, timer)| Row::of(key, &timer)).collect()
}

/// The timers of a selection together.
pub(crate) struct Totals {
    /// Differences between the intervals and the nearest multiples of their timer's period.
    pub jitter: Distribution,
    /// Percentage of the due calls that did not come.
    pub missed_percent: f64,
}

impl Totals {
    /// `None` without an interval between calls of a timer.
    pub fn of(selection: &Selection<'_>) -> Option<Self> {
        let rows = rows(selection);
        let jitter: Distribution = rows.iter().flat_map(|row| row.jitter.values()).copied().collect();
        let missed = rows.iter().map(|row| row.missed).sum::<u64>() as f64;
        let came = jitter.len() as f64;
        (came > 0.0).then(|| Self { jitter, missed_percent: 100.0 * missed / (came + missed) })
    }
}

/// The table `timers`: rows by process and name.
pub fn table(selection: &Selection<'_>) -> Table {
    let rows = rows(selection);
    let mut table = Columns::<Row>::new()
        .text("callback", "Node and timer; else the function.", |row| (&*row.name).into())
        .with(crate::columns::process(selection.capture()), |row| row.process.as_str().into())
        .duration("period", "Period of the timer.", |row| row.period_ns)
        .count("intervals", "", "Intervals between calls.", |row| row.intervals.len())
        .duration("median", "Median of the intervals.", |row| row.intervals.median())
        .duration("min", "Shortest interval.", |row| row.intervals.min())
        .duration("max", "Longest interval.", |row| row.intervals.max())
        .duration(
            "jitter_median",
            "Median difference between an interval and the nearest multiple of the period.",
            |row| row.jitter.median(),
        )
        .duration("jitter_p99", "99th percentile of this difference.", |row| row.jitter.percentile(99.0))
        .duration("jitter_max", "Largest difference.", |row| row.jitter.max())
        .number("drift", "ppm", "Parts per million by which calls come too slowly, missed ones aside.", |row| {
            Value::from(row.drift())
        })
        .count("missed", "", "Calls that did not come when they were due.", |row| row.missed)
        .essential("callback period jitter_median jitter_p99 drift missed")
        .detail("min median")
        .table("timers", "Timers", &rows);
    if rows.is_empty() {
        table.add_notes([none(selection)]);
    }
    table
}

fn none(selection: &Selection<'_>) -> Note {
    match selection.capture().flows.is_empty() {
        true => why_no_ros2(selection).unwrap_or_else(|| {
            note!(Loss, "The capture has no timers. `record --with ros2` and traces of ros2_tracing have them.")
        }),
        false => note!(
            Loss,
            "No callback of a timer with a known period was called. Programs name a period when they make the timer: record the program \
             from its start, with `record --with ros2 -- PROGRAM`."
        ),
    }
}

/// How exactly timers come.
pub const ANALYSIS: Analysis = Analysis {
    title: "Timers",
    views: &[View {
        name: "timers",
        question: "How regular are timers, and how many calls do they miss?",
        tables: |selection, _| vec![table(selection)],
    }],
    report: |selection| ReportSection::of_rows("Timers", vec![table(selection)]).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    #[test]
    fn jitter_drift_and_missed_calls_of_a_timer() {
        let mut drawing = Drawing::new().window(0..10_000).lived("executor", 0..10_000, None).flows(
            "timer 1 us",
            "executor callback_start 0 at 1000, executor callback_start at 2010, executor callback_start at 3000
             executor callback_start at 5010, executor callback_start at 6000",
        );
        for event in drawing.capture.flows.iter_mut() {
            (event.flow, event.period_ns) = (None, Some(1_000));
        }
        let table = drawn::selected(&drawing.capture, &[], table);
        // Intervals of 1010, 990, 2010 and 990.
        let columns = ["callback", "period", "intervals", "median", "jitter_median", "jitter_max", "drift", "missed"];
        assert_eq!(cells(&table, &columns), ["timer 1 us | 1000 | 4 | 990 | 10 | 10 | 0 | 1"]);
    }

    #[test]
    fn a_late_call_is_not_missed() {
        let missed_calls = |starts_ns: &[u64]| {
            let starts_ns = starts_ns.to_vec();
            let row = Row::of((String::new(), "timer".into(), 1_000), &Timer { starts_ns });
            (row.missed, row.drift().map(f64::round))
        };
        // One late by 0.9 periods; two that come together, late by 1.9 and 0.9.
        assert_eq!(missed_calls(&[0, 1_000, 2_900, 3_000, 4_000]), (0, Some(0.0)));
        assert_eq!(missed_calls(&[0, 2_900, 2_950, 3_000, 4_000]), (0, Some(0.0)));
        // Late by 0.8 periods, which two intervals make up for; by 0.5, which five do.
        assert_eq!(missed_calls(&[0, 1_800, 2_400, 3_000, 4_000]), (0, Some(0.0)));
        assert_eq!(missed_calls(&[0, 1_500, 2_400, 3_300, 4_200, 5_100, 6_000]), (0, Some(0.0)));
        // Late by 1.4 periods: one is missed, and the next ones are late.
        assert_eq!(missed_calls(&[0, 2_400, 3_200, 4_000]), (1, Some(0.0)));
        // Late by 1.6 periods, and one is missed. Short intervals make up for no earlier one.
        assert_eq!(missed_calls(&[0, 2_600, 3_000]), (1, Some(0.0)));
        assert_eq!(missed_calls(&[0, 2_000, 3_000, 3_100]).0, 1);
    }

    #[test]
    fn a_slow_timer_drifts() {
        let mut drawing = Drawing::new().window(0..10_000).lived("executor", 0..10_000, None).flows(
            "timer 1 us",
            "executor callback_start 0 at 0, executor callback_start at 1100, executor callback_start at 2200",
        );
        drawing.capture.flows.iter_mut().for_each(|event| event.period_ns = Some(1_000));
        let table = drawn::selected(&drawing.capture, &[], table);
        assert_eq!(cells(&table, &["drift", "missed"]), ["100000 | 0"]);
    }
}
