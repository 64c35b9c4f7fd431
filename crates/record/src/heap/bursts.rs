//! When the allocations between two readings of a table were made.

use std::ops::Range;

use stepscope_heap::Snapshot;
use stepscope_heap::layout::{Burst, Record};

/// A record's allocations that came soon after each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordBurst {
    pub record: usize,
    pub time: Range<u64>,
    pub calls: u64,
    pub bytes: u64,
}

/// What records allocated since they had these calls and bytes, by end: their sum is all of it.
///
/// The present burst of a record has the rest. Where the ring lost bursts, the next one of each record has theirs, too, and begins with the span.
pub(super) fn of_records(
    snapshot: &Snapshot,
    before: impl Fn(usize) -> (u64, u64),
    span: &Range<u64>,
    ns: impl Fn(u64) -> u64,
) -> Vec<RecordBurst> {
    let mut ended: Vec<&Burst> = snapshot.bursts.iter().collect();
    ended.sort_by_key(|burst| (burst.record, burst.number));
    let mut ended = ended.into_iter().peekable();
    let at = |ticks: u64| ns(ticks).clamp(span.start, span.end.max(span.start));
    let mut found = Vec::new();
    for (index, record) in snapshot.records.iter().enumerate() {
        let (mut calls, mut bytes) = before(index);
        let mut has_lost = snapshot.has_lost_bursts;
        let mut add = |first: u64, last: u64, until: (u64, u64)| {
            if until.0 <= calls {
                return;
            }
            let end = at(last);
            let start = if std::mem::take(&mut has_lost) || first == 0 { span.start } else { at(first).min(end) };
            let sums = (until.0 - calls, until.1.saturating_sub(bytes));
            (calls, bytes) = until;
            found.push(RecordBurst { record: index, time: start..end, calls: sums.0, bytes: sums.1 });
        };
        while let Some(burst) = ended.next_if(|burst| burst.record as usize <= index) {
            // A damaged table could say that a burst has more than its record.
            if burst.record as usize == index && burst.calls <= record.calls {
                add(burst.first_ticks, burst.last_ticks, (burst.calls, burst.bytes));
            }
        }
        let Record { burst_first, burst_last, calls: all, bytes: all_bytes, .. } = *record;
        add(burst_first, burst_last, (all, all_bytes));
    }
    found.sort_by_key(|burst| burst.time.end);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(records: &[[u64; 4]], bursts: &[[u64; 5]], has_lost_bursts: bool) -> Snapshot {
        let record = |[burst_first, burst_last, calls, bytes]: [u64; 4]| Record {
            burst_first,
            burst_last,
            calls,
            bytes,
            ..Record::default()
        };
        let burst = |(number, [of, first_ticks, last_ticks, calls, bytes]): (usize, [u64; 5])| Burst {
            number: number as u64 + 1,
            record: of as u32,
            first_ticks,
            last_ticks,
            calls,
            bytes,
            ..Burst::default()
        };
        Snapshot {
            // SAFETY: a header is numbers.
            header: unsafe { std::mem::zeroed() },
            threads: Vec::new(),
            records: records.iter().copied().map(record).collect(),
            bursts: bursts.iter().copied().enumerate().map(burst).collect(),
            has_lost_bursts,
        }
    }

    fn shown(snapshot: &Snapshot, before: &[(u64, u64)]) -> Vec<String> {
        let ns = |ticks: u64| ticks.saturating_sub(1_000).saturating_mul(2);
        let found = of_records(snapshot, |record| before[record], &(100..1_800), ns);
        found.iter().map(|of| format!("{} {:?}: {} {}", of.record, of.time, of.calls, of.bytes)).collect()
    }

    #[test]
    fn calls_are_those_of_bursts_since_the_last_reading_and_of_the_present_one() {
        let one = snapshot(
            &[[1_800, 1_810, 30, 300], [1_700, 1_700, 5, 50], [1_040, 1_040, 9, 9]],
            &[[0, 1_040, 1_060, 12, 120], [1, 1_100, 1_200, 4, 40], [0, 1_400, 1_420, 20, 200]],
            false,
        );
        // The first burst of record 0 began before the span; record 2 has nothing new.
        let expected =
            ["0 100..120: 2 20", "1 200..400: 4 40", "0 800..840: 8 80", "1 1400..1400: 1 10", "0 1600..1620: 10 100"];
        assert_eq!(shown(&one, &[(10, 100), (0, 0), (9, 9)]), expected);
    }

    #[test]
    fn after_lost_bursts_the_next_one_begins_with_the_span() {
        let one = snapshot(&[[1_800, 1_810, 30, 300]], &[[0, 1_400, 1_420, 20, 200]], true);
        assert_eq!(shown(&one, &[(0, 0)]), ["0 100..840: 20 200", "0 1600..1620: 10 100"]);
    }

    #[test]
    fn a_damaged_ring_adds_nothing() {
        let bursts = [[7, 1, 2, 3, 4], [0, u64::MAX, 0, 31, 0], [0, 0, u64::MAX, 30, u64::MAX]];
        let one = snapshot(&[[u64::MAX, 0, 30, 300]], &bursts, false);
        assert_eq!(shown(&one, &[(40, 0)]), Vec::<String>::new());
        assert_eq!(shown(&one, &[(0, 0)]).len(), 1);
    }
}
