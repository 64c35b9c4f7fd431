//! [`Track`]: intervals with labels one after the other: threads on a CPU, scopes of one depth, samples of a thread.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::times::partition_point;

/// Pieces between two running sums.
const SUMMED: usize = 64;

/// An interval with a label: a thread, the name of a scope, a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub range: Range<u64>,
    pub label: u32,
}

impl Piece {
    fn length(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// Finds the pieces of a track, which stores only their rows.
pub(super) trait Pieces {
    /// The piece at a position of `rows`.
    fn piece(&self, rows: &[u32], position: usize) -> Piece;
}

/// Pieces by start. Any range of time is added up from running sums.
#[derive(Debug, Clone, Default)]
pub(super) struct Track {
    rows: Vec<u32>,
    /// Of every [`SUMMED`] pieces.
    sums: Vec<Sum>,
    /// Length of all pieces.
    length: u64,
}

/// What [`SUMMED`] pieces have.
#[derive(Debug, Clone, Copy)]
struct Sum {
    /// Length of all pieces before them.
    before: u64,
    /// The label with the most time.
    label: u32,
    /// How much.
    most: u64,
}

/// What a track has in a range of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Covered {
    /// Time within pieces.
    pub ns: u64,
    /// The label with the most time. Of many pieces, the most of each [`SUMMED`] count.
    pub label: Option<u32>,
}

impl Track {
    /// Of these rows, which must be in the order of their starts.
    pub fn of(rows: Vec<u32>, pieces: &impl Pieces) -> Self {
        let mut sums = Vec::with_capacity(rows.len().div_ceil(SUMMED));
        let mut before = 0_u64;
        let mut by_label = Labels::default();
        for first in (0..rows.len()).step_by(SUMMED) {
            by_label.0.clear();
            let mut length = 0_u64;
            for position in first..(first + SUMMED).min(rows.len()) {
                let piece = pieces.piece(&rows, position);
                length = length.wrapping_add(piece.length());
                by_label.add(piece.label, piece.length());
            }
            let (label, most) = by_label.most().unwrap_or((0, 0));
            sums.push(Sum { before, label, most });
            before = before.wrapping_add(length);
        }
        Self { rows, sums, length: before }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Length of all pieces.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The piece at a position, and the row it is of.
    pub fn at(&self, pieces: &impl Pieces, position: usize) -> (Piece, u32) {
        (pieces.piece(&self.rows, position), self.rows[position])
    }

    /// Positions of the pieces that a range of time meets.
    pub fn met(&self, pieces: &impl Pieces, range: &Range<u64>) -> Range<usize> {
        let first =
            partition_point(0..self.len(), |position| pieces.piece(&self.rows, position).range.end <= range.start);
        let end =
            partition_point(first..self.len(), |position| pieces.piece(&self.rows, position).range.start < range.end);
        first..end
    }

    /// What each of these buckets of equal length has.
    pub fn buckets(&self, pieces: &impl Pieces, start: u64, bucket_ns: u64, count: u64) -> Vec<Covered> {
        let mut labels = Labels::default();
        let mut next = 0;
        let bucket = |index: u64| {
            let from = start.saturating_add(index.saturating_mul(bucket_ns));
            from..from.saturating_add(bucket_ns)
        };
        let mut covered = Vec::with_capacity(count as usize);
        for range in (0..count).map(bucket) {
            // The last piece of a bucket may reach into the next one, so pieces are met from there on.
            let first = self.count_near(next, |at| pieces.piece(&self.rows, at).range.end <= range.start);
            let end = self.count_near(first, |at| pieces.piece(&self.rows, at).range.start < range.end);
            covered.push(self.covered(pieces, first..end, &range, &mut labels));
            next = first;
        }
        covered
    }

    fn covered(&self, pieces: &impl Pieces, met: Range<usize>, range: &Range<u64>, labels: &mut Labels) -> Covered {
        if met.is_empty() {
            return Covered::default();
        }
        labels.0.clear();
        let mut ns = 0_u64;
        let mut add = |positions: Range<usize>, labels: &mut Labels| {
            for position in positions {
                let piece = pieces.piece(&self.rows, position);
                let length = piece.range.end.min(range.end).saturating_sub(piece.range.start.max(range.start));
                ns = ns.saturating_add(length);
                labels.add(piece.label, length);
            }
        };
        let (from, until) = (met.start / SUMMED + 1, met.end.saturating_sub(1) / SUMMED);
        if from + 1 >= until {
            add(met, labels);
        } else {
            add(met.start..from * SUMMED, labels);
            add(until * SUMMED..met.end, labels);
            for sum in &self.sums[from..until] {
                labels.add(sum.label, sum.most);
            }
            ns = ns.saturating_add(self.sums[until].before.wrapping_sub(self.sums[from].before));
        }
        Covered { ns, label: labels.most().map(|(label, _)| label) }
    }

    /// The first position from `from` on that is not `early`, which is often near.
    fn count_near(&self, from: usize, early: impl Fn(usize) -> bool) -> usize {
        let mut step = 1;
        let mut low = from;
        while low + step <= self.len() && early(low + step - 1) {
            low += step;
            step *= 2;
        }
        partition_point(low..(low + step).min(self.len()), early)
    }
}

/// Time by label.
#[derive(Debug, Default)]
struct Labels(FxHashMap<u32, u64>);

impl Labels {
    fn add(&mut self, label: u32, ns: u64) {
        let sum = self.0.entry(label).or_default();
        *sum = sum.saturating_add(ns);
    }

    /// The label with the most time; of equal ones the lowest.
    fn most(&self) -> Option<(u32, u64)> {
        self.0.iter().map(|(label, ns)| (*label, *ns)).max_by_key(|(label, ns)| (*ns, std::cmp::Reverse(*label)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Listed(Vec<Piece>);

    impl Pieces for Listed {
        fn piece(&self, rows: &[u32], position: usize) -> Piece {
            self.0[rows[position] as usize].clone()
        }
    }

    proptest! {
        #[test]
        fn buckets_of_any_length_add_up_to_all_pieces(
            lengths in prop::collection::vec((0_u64..50, 1_u64..80, 0_u32..4), 0..700),
            bucket_ns in 1_u64..20_000,
        ) {
            let mut time = 0;
            let pieces = lengths.iter().map(|(gap, length, label)| {
                let start = time + gap;
                time = start + length;
                Piece { range: start..time, label: *label }
            });
            let listed = Listed(pieces.collect());
            let track = Track::of((0..listed.0.len() as u32).collect(), &listed);
            let count = time / bucket_ns + 1;
            let covered = track.buckets(&listed, 0, bucket_ns, count);
            prop_assert_eq!(covered.iter().map(|bucket| bucket.ns).sum::<u64>(), lengths.iter().map(|(_, ns, _)| ns).sum::<u64>());
            for (index, bucket) in covered.iter().enumerate() {
                let range = index as u64 * bucket_ns..(index as u64 + 1) * bucket_ns;
                let met = track.met(&listed, &range);
                prop_assert_eq!(met.is_empty(), bucket.label.is_none());
                let inside = |piece: &Piece| piece.range.end.min(range.end) - piece.range.start.max(range.start);
                prop_assert_eq!(met.map(|position| inside(&track.at(&listed, position).0)).sum::<u64>(), bucket.ns);
            }
        }
    }
}
