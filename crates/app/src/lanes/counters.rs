//! Tiles of counters.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_analyze::Selection;
use stepscope_model::Counter;

use super::tile::Columns;
use super::{BLOCK, BUCKETS, Lanes};

/// Readings by series: a quantity of a process or a thread. Series are numbered by their first reading.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// Rows of `counters` by time.
    rows: Vec<Vec<u32>>,
}

impl Series {
    pub fn of(selection: &Selection<'_>, is_selected: &dyn Fn(&Counter) -> bool) -> Self {
        let counters = &selection.capture().counters;
        let mut numbers = FxHashMap::default();
        let mut rows: Vec<Vec<u32>> = Vec::new();
        for (row, counter) in counters.iter().enumerate().filter(|(_, counter)| is_selected(counter)) {
            let number = *numbers.entry((&*counter.name, counter.process, counter.thread)).or_insert_with(|| {
                rows.push(Vec::new());
                rows.len() - 1
            });
            rows[number].push(row as u32);
        }
        for rows in &mut rows {
            rows.sort_by_key(|row| counters[*row as usize].time_ns);
        }
        Self { rows }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    fn block(&self, block: u32) -> impl Iterator<Item = (usize, &[u32])> {
        self.rows.iter().enumerate().skip(block as usize * BLOCK).take(BLOCK).map(|(series, rows)| (series, &rows[..]))
    }
}

impl Lanes {
    /// The readings in a range of time, and the last before it and the first after it, so that a line leads there.
    pub(super) fn readings(&self, selection: &Selection<'_>, block: u32, span: &Range<u64>) -> Columns {
        let counters = &selection.capture().counters;
        let mut columns = Columns::new(["series", "time", "value"]);
        for (series, rows) in self.series.block(block) {
            let first = rows.partition_point(|row| counters[*row as usize].time_ns < span.start).saturating_sub(1);
            let end = rows.partition_point(|row| counters[*row as usize].time_ns < span.end);
            for row in &rows[first..(end + 1).min(rows.len())] {
                let counter = &counters[*row as usize];
                columns.push([series.into(), self.since(counter.time_ns).into(), (counter.value as f64).into()]);
            }
        }
        columns
    }

    pub(super) fn counter_buckets(&self, selection: &Selection<'_>, block: u32, start: u64, bucket_ns: u64) -> Columns {
        let counters = &selection.capture().counters;
        let mut columns = Columns::joined(["series", "bucket", "length", "least", "most", "last"]);
        for (series, rows) in self.series.block(block) {
            let mut rows = &rows[rows.partition_point(|row| counters[*row as usize].time_ns < start)..];
            for bucket in 0..BUCKETS {
                let end = start.saturating_add((bucket + 1).saturating_mul(bucket_ns));
                let inside = rows.iter().take_while(|row| counters[**row as usize].time_ns < end).count();
                let values = rows[..inside].iter().map(|row| counters[*row as usize].value);
                let extremes = values.clone().min().zip(values.clone().max()).zip(values.last());
                rows = &rows[inside..];
                let Some(((least, most), last)) = extremes else { continue };
                let [least, most, last] = [least, most, last].map(|value| (value as f64).into());
                columns.join([series.into(), (bucket as usize).into(), 1.into(), least, most, last]);
            }
        }
        columns
    }
}
