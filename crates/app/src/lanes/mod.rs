//! The timeline's lanes: what each thread did and what ran on each CPU, at any level of detail.
//!
//! A recording may have ten million context switches, and a picture is a thousand pixels wide. So the page asks for *tiles*: a range of
//! time of some lanes, in buckets about as wide as a pixel, or in single intervals once they are wide enough.
//!
//! # Tables
//! A tile is a table called `FAMILY/LEVEL/BLOCK/TILE`. Its family is one of:
//!
//! | family | has |
//! |---|---|
//! | `lanes` | states of threads, threads on CPUs |
//! | `scope_lanes` | nested scopes of threads |
//! | `counter_lanes` | readings of counters |
//!
//! Each family has a [`Grid`] of its own. A *block* is [`BLOCK`] lanes that are likely seen together: first the CPUs, then threads from the
//! most CPU time to the least. Blocks of scopes are the same; a block of counters is [`BLOCK`] series.
//!
//! Level 0 has single intervals, never cut, in every tile that they meet:
//!
//! | family | columns |
//! |---|---|
//! | `lanes` | lane, start, end, state, stack, waker, waker_stack, thread, cpu |
//! | `scope_lanes` | thread, depth, start, end, name |
//! | `counter_lanes` | series, time, value |
//!
//! Higher levels have buckets `bucket..bucket + length`, where equal neighbours are joined. Shares are parts of 255:
//!
//! | family | columns |
//! |---|---|
//! | `lanes` | lane, bucket, length, running, runnable, blocked, unknown, state, thread |
//! | `scope_lanes` | thread, depth, bucket, length, share, name |
//! | `counter_lanes` | series, bucket, length, least, most, last |
//!
//! `lane` is the row of a thread, or -1 - n of CPU n. `state` is a [`LaneState`]; in buckets it is the blocked state with the most time, or
//! -1. `thread` is the thread of an interval, and of a CPU's bucket the one that had it longest. Times are ns since the
//! window's start. The table `lane_order` has a row per lane, in the order of blocks.
//!
//! # Sums
//! Running is the part of a thread's life without waits, so the states of any bucket add up to the life in it. Over all
//! buckets they are those of the view `wall`, to the nanosecond, at each level: [`Lanes::shares`].
//!
//! Where context switches were not recorded, a thread is known to run for the time that each of its samples stands for. The
//! rest of its life is *unknown*.
//!
//! # Cost
//! No level is stored. Running sums stand beside the waits, and each tile is made from them when it is asked for. The sums take two
//! bytes per wait, the order of waits by CPU four.

mod build;
mod counters;
mod grid;
mod order;
mod pieces;
mod scopes;
mod state;
#[cfg(test)]
mod tests;
mod tile;
mod times;
mod track;

use std::collections::BTreeMap;
use std::ops::Range;

use stepscope_analyze::Selection;
use stepscope_model::{Counter, ThreadId};

use self::counters::Series;
pub use self::grid::{BUCKETS, Grid};
pub use self::state::{LaneState, STATES, Shares};
pub use self::tile::{Address, Family, MOST_TILES, StackRow};
use self::times::Times;
use self::track::Track;
use crate::parquet_table::ParquetTable;

/// Lanes of a block.
pub const BLOCK: usize = 32;

/// A row of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// What ran on a CPU.
    Cpu(u32),
    /// What a thread did.
    Thread(ThreadId),
}

impl Lane {
    /// Its number in tiles.
    pub fn number(self) -> i32 {
        match self {
            // Greater numbers have no lane.
            Self::Cpu(cpu) => -1 - cpu as i32,
            Self::Thread(thread) => thread.0 as i32,
        }
    }
}

/// What tiles are made from. It refers to the profile that it was built of, which each call takes again.
#[derive(Debug, Clone)]
pub struct Lanes {
    /// Times of tables count from its start.
    recording: Range<u64>,
    has_switches: bool,
    /// Time that a sample stands for, if that is not its weight.
    period_ns: Option<u64>,
    times: Times,
    /// When each selected thread lived, within the window.
    lives: Vec<Option<Range<u64>>>,
    /// Samples by thread, where context switches were not recorded.
    sampled: Vec<Track>,
    cpus: BTreeMap<u32, Track>,
    /// By thread and depth.
    scopes: BTreeMap<(u32, u32), Track>,
    /// The name of each scope.
    scope_names: Vec<u32>,
    series: Series,
    /// All lanes, by block.
    order: Vec<Lane>,
    grids: [Grid; 3],
}

impl Lanes {
    /// The lanes of a selection. Times count from the start of the recording.
    pub fn of(selection: &Selection<'_>, recording: Range<u64>, is_selected: &dyn Fn(&Counter) -> bool) -> Self {
        Self::build(selection, recording, is_selected)
    }

    /// What the manifest says about them, and about the finest level of each family that the page has.
    pub fn entry(&self, finest: [u32; 3]) -> LanesEntry {
        let family = |family| FamilyEntry {
            finest: finest[family as usize],
            base: self.grid(family).base_ns() as f64,
            levels: self.grid(family).levels(),
            blocks: self.blocks(family),
        };
        LanesEntry {
            states: LaneState::names(),
            switches: self.has_switches,
            lanes: family(Family::Lanes),
            scopes: family(Family::Scopes),
            counters: family(Family::Counters),
        }
    }

    /// A tile, or the table `lane_order`, by name; `None` if there is no such table, or nothing in it. `row_of` gives the page's row of
    /// a stack.
    pub fn table(&self, selection: &Selection<'_>, row_of: StackRow<'_>, name: &str) -> Option<ParquetTable> {
        let table = match name {
            "lane_order" => self.order_table(selection),
            _ => self.tile_of(selection, row_of, Address::parse(name)?)?,
        };
        Some(table).filter(|table| table.rows() > 0)
    }
}

/// What the page needs to ask for tiles. `web/src/profile/columns.ts` has the same as `LanesEntry`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LanesEntry {
    /// Names of the states.
    states: Vec<&'static str>,
    /// Whether context switches were recorded. Else threads are known to run where they have samples.
    switches: bool,
    lanes: FamilyEntry,
    scopes: FamilyEntry,
    counters: FamilyEntry,
}

/// How the time of a family is cut.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
struct FamilyEntry {
    /// Length of a bucket of level 1 in ns, divided by four.
    base: f64,
    levels: u32,
    /// The finest level that the page has: 0 unless a file has no room for it; `levels` if it has none.
    finest: u32,
    blocks: u32,
}
