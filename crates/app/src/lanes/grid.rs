//! [`Grid`]: how a capture's time is cut into levels, tiles and buckets.

use std::ops::Range;

/// Buckets of a tile.
pub const BUCKETS: u64 = 1024;

/// Rows that a tile of level 0 should not exceed.
pub(super) const MOST_ROWS: u32 = 32_768;

/// Slices in which the rows are counted.
const SLICES: u64 = 65_536;

/// Levels, tiles and buckets of one family of lanes.
///
/// A bucket of level k is `base * 4^k` ns long, and a tile has [`BUCKETS`] of them. The highest level has one tile.
/// Level 0 has single intervals in place of buckets: `base` is chosen so that its busiest tile has not too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Start of the first tile, on the capture's clock.
    start_ns: u64,
    /// Length of what the tiles cover.
    duration_ns: u64,
    /// Binary logarithm of the length of a bucket of level 0, in ns.
    base_log: u32,
    /// Number of levels.
    levels: u32,
}

impl Grid {
    /// For rows at these times. A tile of level 0 has about as many as `most_rows` where they are densest.
    pub(super) fn of(window: &Range<u64>, times: impl Iterator<Item = u64>, most_rows: u32) -> Self {
        let duration_ns = (window.end - window.start).max(1);
        // Slices are powers of two, so that two neighbours make the next larger one.
        let mut slice_log = duration_ns.div_ceil(SLICES).next_power_of_two().ilog2();
        let mut counts = vec![0_u32; (duration_ns >> slice_log) as usize + 1];
        for time in times {
            let slice = (time.clamp(window.start, window.end) - window.start) >> slice_log;
            counts[slice as usize] += 1;
        }
        let mut most = counts.iter().copied().max().unwrap_or(0);
        while most > most_rows && slice_log > 0 {
            slice_log -= 1;
            most /= 2;
        }
        while counts.len() > 1 {
            counts = counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            if counts.iter().any(|count| *count > most_rows) {
                break;
            }
            slice_log += 1;
        }
        let base_log = slice_log.saturating_sub(BUCKETS.ilog2());
        let mut grid = Self { start_ns: window.start, duration_ns, base_log, levels: 1 };
        while grid.tiles(grid.levels - 1) > 1 {
            grid.levels += 1;
        }
        grid
    }

    /// Length of a bucket of level 0 in ns.
    pub fn base_ns(&self) -> u64 {
        1 << self.base_log
    }

    /// Number of levels.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Length of a bucket in ns.
    pub fn bucket_ns(&self, level: u32) -> u64 {
        1_u64.checked_shl(self.base_log + 2 * level).unwrap_or(u64::MAX / BUCKETS)
    }

    /// Number of tiles of a level.
    pub fn tiles(&self, level: u32) -> u64 {
        self.duration_ns.div_ceil(self.bucket_ns(level).saturating_mul(BUCKETS))
    }

    /// The time of a tile; `None` if the level has no such tile.
    pub fn tile(&self, level: u32, tile: u64) -> Option<Range<u64>> {
        if level >= self.levels || tile >= self.tiles(level) {
            return None;
        }
        let length = self.bucket_ns(level).saturating_mul(BUCKETS);
        let start = self.start_ns.saturating_add(tile.saturating_mul(length));
        Some(start..start.saturating_add(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_capture_is_one_tile_of_intervals() {
        let grid = Grid::of(&(1_000..61_000_000_000), (0..1_000).map(|at| at * 1_000_000), MOST_ROWS);
        assert_eq!((grid.levels(), grid.tiles(0)), (1, 1));
        assert_eq!(grid.tile(0, 0).unwrap().start, 1_000);
        assert_eq!(grid.tile(0, 1), None);
        assert_eq!(grid.tile(1, 0), None);
    }

    #[test]
    fn a_burst_makes_short_tiles() {
        let burst = |at: u64| 30_000_000_000 + at * 100;
        let grid = Grid::of(&(0..60_000_000_000), (0..1_000_000).map(burst), MOST_ROWS);
        let longest = grid.bucket_ns(0) * BUCKETS;
        assert!(longest / 100 <= u64::from(MOST_ROWS), "{longest}");
        assert!(longest / 100 >= u64::from(MOST_ROWS) / 8, "{longest}");
        assert_eq!(grid.tiles(grid.levels() - 1), 1);
        assert!(grid.tiles(grid.levels() - 2) > 1);
    }

    #[test]
    fn extreme_windows_have_levels() {
        for window in [0..0, 0..1, 5..6, 0..u64::MAX, u64::MAX - 1..u64::MAX] {
            let grid = Grid::of(&window, [window.start, u64::MAX].into_iter(), MOST_ROWS);
            assert!(grid.levels() >= 1 && grid.tile(grid.levels() - 1, 0).is_some(), "{window:?}");
        }
    }
}
