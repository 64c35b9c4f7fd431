//! Rows of the tables `samples` and `amounts`, and parts of the recording that they are added up in.

use std::ops::Range;

use crate::parquet_table::ParquetTable;

/// A row of `samples` or `amounts`.
pub(super) struct Row {
    pub time: f64,
    pub cpu: i32,
    pub thread: i32,
    pub stack: i32,
    pub event: i32,
    pub weight: f64,
    pub count: u64,
}

/// The rows by time.
pub(super) fn rows_table(mut rows: Vec<Row>) -> ParquetTable {
    let order = |row: &Row| (row.thread, row.stack, row.event);
    rows.sort_by(|a, b| a.time.total_cmp(&b.time).then_with(|| order(a).cmp(&order(b))));
    ParquetTable::new()
        .numbers("time", rows.iter().map(|row| row.time).collect())
        .integers("thread", rows.iter().map(|row| row.thread).collect())
        .integers("cpu", rows.iter().map(|row| row.cpu).collect())
        .integers("stack", rows.iter().map(|row| row.stack).collect())
        .integers("event", rows.iter().map(|row| row.event).collect())
        .numbers("weight", rows.iter().map(|row| row.weight).collect())
        .integers("count", rows.iter().map(|row| count(row.count)).collect())
}

/// A count as tables have it.
pub(super) fn count(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The part of the recording that holds a moment.
pub(super) fn part_of(time: u64, recording: &Range<u64>, parts: u64) -> u64 {
    let length = u128::from(recording.end - recording.start).max(1);
    let after = u128::from(time.saturating_sub(recording.start));
    ((after * u128::from(parts) / length) as u64).min(parts - 1)
}

/// The middle of a part of the recording.
pub(super) fn middle_of(part: u64, recording: &Range<u64>, parts: u64) -> u64 {
    recording.start + ((recording.end - recording.start) as f64 * (part as f64 + 0.5) / parts as f64).round() as u64
}
