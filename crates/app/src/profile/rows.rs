//! Rows of the tables `samples` and `amounts`, and parts of the recording that they are added up in.

use std::hash::Hash;
use std::ops::Range;

use rustc_hash::FxHashMap;

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

/// Into how many parts the recording may be divided, finest first: a part is two of the finer ones.
pub(super) const PARTS: [u64; 12] = [2048, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1];

/// Counts the rows that are left if those with one key in one part of the recording are added up, for all of [`PARTS`] in one pass.
///
/// The counts are exact for rows that come in the order of time, at least those of one key; else they are near.
pub(super) struct RowCounts<K> {
    /// The part of the last row with a key, of each of [`PARTS`].
    last: FxHashMap<K, [u16; PARTS.len()]>,
    counts: [usize; PARTS.len()],
}

impl<K: Eq + Hash> RowCounts<K> {
    const NONE: u16 = u16::MAX;

    pub fn new() -> Self {
        Self { last: FxHashMap::default(), counts: [0; PARTS.len()] }
    }

    /// Adds a row in a part of the finest ones. It stays a row of its own in parts before `first` of [`PARTS`].
    pub fn add(&mut self, key: K, part: u64, first: usize) {
        self.counts[..first].iter_mut().for_each(|count| *count += 1);
        let last = self.last.entry(key).or_insert([Self::NONE; PARTS.len()]);
        for ((level, last), count) in last.iter_mut().enumerate().zip(&mut self.counts).skip(first) {
            let part = (part >> level) as u16;
            if *last == part {
                // The row before was added up with others in all coarser parts, too.
                break;
            }
            *last = part;
            *count += 1;
        }
    }

    /// The finest parts that leave at most `most` rows, else the coarsest; and the number of rows.
    pub fn fitting(&self, most: usize) -> (u64, usize) {
        let level = self.counts.iter().position(|count| *count <= most).unwrap_or(PARTS.len() - 1);
        (PARTS[level], self.counts[level])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_counted_for_all_parts_in_one_pass(
            rows in prop::collection::vec((0_u64..2_000, 0_u32..3, 0_usize..PARTS.len()), 0..300),
        ) {
            let recording = 1_000..100_000_u64;
            let mut time = recording.start;
            let mut counts = RowCounts::new();
            let mut seen = vec![HashSet::new(); PARTS.len()];
            let mut alone = [0; PARTS.len()];
            for (gap, key, first) in rows {
                time += gap;
                counts.add(key, part_of(time, &recording, PARTS[0]), first);
                for (level, parts) in PARTS.into_iter().enumerate() {
                    match level < first {
                        true => alone[level] += 1,
                        false => drop(seen[level].insert((key, part_of(time, &recording, parts)))),
                    }
                }
            }
            for level in 0..PARTS.len() {
                prop_assert_eq!(counts.counts[level], alone[level] + seen[level].len());
            }
            let (parts, rows) = counts.fitting(seen[0].len() + alone[0]);
            prop_assert_eq!((parts, rows), (PARTS[0], seen[0].len() + alone[0]));
        }
    }
}
