//! Tiles of nested scopes.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_analyze::Selection;

use super::tile::{Columns, share_of};
use super::{BUCKETS, Lane, Lanes};

/// The number of each scope's name, in the order of their first appearance.
pub(super) fn scope_names(selection: &Selection<'_>) -> Vec<u32> {
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut number = |name| {
        let next = numbers.len() as u32;
        *numbers.entry(name).or_insert(next)
    };
    selection.capture().scopes.iter().map(|scope| number(&*scope.name)).collect()
}

impl Lanes {
    /// Depths of nested scopes that a thread has.
    pub(super) fn scope_depth(&self, lane: Lane) -> u32 {
        let Lane::Thread(thread) = lane else { return 0 };
        let rows = self.scopes.range((thread.0, 0)..=(thread.0, u32::MAX));
        rows.last().map_or(0, |((_, depth), _)| depth.saturating_add(1))
    }

    pub(super) fn scopes_in(&self, selection: &Selection<'_>, block: &[Lane], span: &Range<u64>) -> Columns {
        let pieces = self.scoped(selection);
        let mut columns = Columns::new(["thread", "depth", "start", "end", "name"]);
        for ((thread, depth), track) in self.rows_of(block) {
            for position in track.met(&pieces, span) {
                let (piece, _) = track.at(&pieces, position);
                let (start, end) = (self.since(piece.range.start), self.since(piece.range.end));
                columns.push([thread.into(), depth.into(), start.into(), end.into(), piece.label.into()]);
            }
        }
        columns
    }

    pub(super) fn scope_buckets(
        &self,
        selection: &Selection<'_>,
        block: &[Lane],
        start: u64,
        bucket_ns: u64,
    ) -> Columns {
        let pieces = self.scoped(selection);
        let mut columns = Columns::joined(["thread", "depth", "bucket", "length", "share", "name"]);
        for ((thread, depth), track) in self.rows_of(block) {
            for (bucket, covered) in track.buckets(&pieces, start, bucket_ns, BUCKETS).into_iter().enumerate() {
                let Some(name) = covered.label else { continue };
                let share = share_of(covered.ns, bucket_ns);
                columns.join([thread.into(), depth.into(), bucket.into(), 1.into(), share.into(), name.into()]);
            }
        }
        columns
    }

    fn rows_of<'a>(&'a self, block: &'a [Lane]) -> impl Iterator<Item = ((u32, u32), &'a super::track::Track)> + 'a {
        let threads = block.iter().filter_map(|lane| match lane {
            Lane::Thread(thread) => Some(thread.0),
            Lane::Cpu(_) => None,
        });
        threads.flat_map(|thread| self.scopes.range((thread, 0)..=(thread, u32::MAX)).map(|(key, track)| (*key, track)))
    }
}
