//! Tiles by name, and the tiles of threads and CPUs.

use std::fmt;
use std::ops::Range;

use stepscope_analyze::Selection;
use stepscope_model::{StackId, ThreadId};

use super::pieces::NO_LABEL;
use super::state::{LaneState, Shares};
use super::track::Covered;
use super::{BLOCK, BUCKETS, Grid, Lane, Lanes};
use crate::parquet_table::ParquetTable;

/// What the tiles of a family are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// States of threads, threads on CPUs.
    Lanes,
    /// Nested scopes of threads.
    Scopes,
    /// Readings of counters.
    Counters,
}

impl Family {
    /// All families, those that a first picture needs first.
    pub const ALL: [Self; 3] = [Self::Lanes, Self::Scopes, Self::Counters];

    /// The first part of a tile's name.
    pub fn name(self) -> &'static str {
        ["lanes", "scope_lanes", "counter_lanes"][self as usize]
    }
}

/// Which tile: `lanes/3/0/17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// What it is about.
    pub family: Family,
    /// Level of detail.
    pub level: u32,
    /// Which lanes.
    pub block: u32,
    /// Which range of time.
    pub tile: u64,
}

impl Address {
    /// Reads the name of a tile; `None` if it is none.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('/');
        let mut next = || parts.next();
        let family = next()?;
        let family = Family::ALL.into_iter().find(|known| known.name() == family)?;
        let address =
            Self { family, level: next()?.parse().ok()?, block: next()?.parse().ok()?, tile: next()?.parse().ok()? };
        next().is_none().then_some(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}/{}", self.family.name(), self.level, self.block, self.tile)
    }
}

/// Most tiles of a level in a page without a server.
pub const MOST_TILES: u64 = 16_384;

/// The row of a stack in the table `stacks`; -1 if it has none.
pub type StackRow<'a> = &'a dyn Fn(Option<StackId>) -> i32;

impl Lanes {
    /// How time is cut for a family.
    pub fn grid(&self, family: Family) -> &Grid {
        &self.grids[family as usize]
    }

    /// Number of blocks of a family.
    pub fn blocks(&self, family: Family) -> u32 {
        let rows = match family {
            Family::Lanes | Family::Scopes => self.order.len(),
            Family::Counters => self.series.len(),
        };
        rows.div_ceil(BLOCK) as u32
    }

    /// The tiles for a page without a server, coarse levels first. Some have no rows. Levels with more than [`MOST_TILES`] are left out.
    pub fn addresses(&self) -> impl Iterator<Item = Address> + '_ {
        let highest = Family::ALL.map(|family| self.grid(family).levels()).into_iter().max().unwrap_or(0);
        let of_rank = move |rank: u32| {
            Family::ALL.into_iter().filter_map(move |family| {
                let level = self.grid(family).levels().checked_sub(rank + 1)?;
                let tiles = self.grid(family).tiles(level).saturating_mul(self.blocks(family).into());
                (tiles <= MOST_TILES).then_some((family, level))
            })
        };
        (0..highest).flat_map(of_rank).flat_map(move |(family, level)| {
            let tiles = move |block| {
                (0..self.grid(family).tiles(level)).map(move |tile| Address { family, level, block, tile })
            };
            (0..self.blocks(family)).flat_map(tiles)
        })
    }

    /// A tile; `None` if there is no such tile, or nothing in it.
    pub(super) fn tile_of(
        &self,
        selection: &Selection<'_>,
        stack_row: StackRow<'_>,
        address: Address,
    ) -> Option<ParquetTable> {
        Some(self.columns(selection, stack_row, address)?.table()).filter(|table| table.rows() > 0)
    }

    pub(super) fn columns(
        &self,
        selection: &Selection<'_>,
        stack_row: StackRow<'_>,
        address: Address,
    ) -> Option<Columns> {
        let Address { family, level, block, tile } = address;
        let grid = self.grid(family);
        let span = grid.tile(level, tile)?;
        let (start, bucket_ns) = (span.start, grid.bucket_ns(level));
        Some(match (family, level) {
            (Family::Lanes, 0) => self.intervals(selection, stack_row, self.block(block)?, &span),
            (Family::Lanes, _) => self.buckets(selection, self.block(block)?, start, bucket_ns),
            (Family::Scopes, 0) => self.scopes_in(selection, self.block(block)?, &span),
            (Family::Scopes, _) => self.scope_buckets(selection, self.block(block)?, start, bucket_ns),
            (Family::Counters, 0) => self.readings(selection, block, &span),
            (Family::Counters, _) => self.counter_buckets(selection, block, start, bucket_ns),
        })
    }

    fn block(&self, block: u32) -> Option<&[Lane]> {
        self.order.chunks(BLOCK).nth(block as usize)
    }

    /// A moment as tables have it.
    pub(super) fn since(&self, time: u64) -> f64 {
        (i128::from(time) - i128::from(self.recording.start)) as f64
    }

    /// What a thread did in a range of time.
    pub fn spent(&self, selection: &Selection<'_>, thread: ThreadId, range: &Range<u64>) -> Shares {
        self.shares(selection, thread, range.start, (range.end - range.start).max(1), 1).pop().unwrap_or_default()
    }

    /// What a thread did in each of `count` buckets. The shares of a bucket add up to the part of it in which the thread lived.
    pub fn shares(
        &self,
        selection: &Selection<'_>,
        thread: ThreadId,
        start: u64,
        bucket_ns: u64,
        count: u64,
    ) -> Vec<Shares> {
        let Some(life) = &self.lives[thread.index()] else { return vec![Shares::default(); count as usize] };
        let cuts =
            (0..=count).map(|cut| start.saturating_add(cut.saturating_mul(bucket_ns)).clamp(life.start, life.end));
        let cuts: Vec<u64> = cuts.collect();
        if let Some(track) = self.sampled.get(thread.index()) {
            let pieces = self.sampled_stacks(selection);
            let covered = track.buckets(&pieces, start, bucket_ns, count);
            let share = |(cut, covered): (&[u64], &Covered)| {
                let mut shares = Shares::default();
                let life = cut[1] - cut[0];
                shares.add(LaneState::RUNNING, covered.ns.min(life));
                shares.add(LaneState::UNKNOWN, life - covered.ns.min(life));
                shares
            };
            return cuts.windows(2).zip(&covered).map(share).collect();
        }
        let mut walk = self.times.walk(selection, thread);
        let mut before = walk.before(cuts[0]);
        let share = |cut: &[u64]| {
            let until = walk.before(cut[1]);
            let mut shares = until.since(&before);
            before = until;
            shares.add(LaneState::RUNNING, (cut[1] - cut[0]).saturating_sub(shares.life()));
            shares
        };
        cuts.windows(2).map(share).collect()
    }

    fn buckets(&self, selection: &Selection<'_>, block: &[Lane], start: u64, bucket_ns: u64) -> Columns {
        let mut columns = Columns::joined([
            "lane", "bucket", "length", "running", "runnable", "blocked", "unknown", "state", "thread",
        ]);
        for lane in block {
            match lane {
                Lane::Thread(thread) => {
                    let shares = self.shares(selection, *thread, start, bucket_ns, BUCKETS);
                    for (bucket, shares) in shares.iter().enumerate().filter(|(_, shares)| shares.life() > 0) {
                        columns.join(bucket_row(*lane, bucket, shares, bucket_ns));
                    }
                }
                Lane::Cpu(cpu) => {
                    for (bucket, covered) in self.cpu_buckets(selection, *cpu, start, bucket_ns).iter().enumerate() {
                        let Some(thread) = covered.label else { continue };
                        let running = share_of(covered.ns, bucket_ns);
                        columns.join([
                            lane.number().into(),
                            bucket.into(),
                            1.into(),
                            running.into(),
                            0.into(),
                            0.into(),
                            0.into(),
                            (-1).into(),
                            thread.into(),
                        ]);
                    }
                }
            }
        }
        columns
    }

    fn cpu_buckets(&self, selection: &Selection<'_>, cpu: u32, start: u64, bucket_ns: u64) -> Vec<Covered> {
        let track = &self.cpus[&cpu];
        match self.has_switches {
            true => track.buckets(&self.held(selection), start, bucket_ns, BUCKETS),
            false => track.buckets(&self.sampled_threads(selection), start, bucket_ns, BUCKETS),
        }
    }

    fn intervals(
        &self,
        selection: &Selection<'_>,
        stack_row: StackRow<'_>,
        block: &[Lane],
        span: &Range<u64>,
    ) -> Columns {
        let mut columns =
            Columns::new(["lane", "start", "end", "state", "stack", "waker", "waker_stack", "thread", "cpu"]);
        for lane in block {
            let mut push = |interval: Interval| columns.push(interval.cells(self, *lane, stack_row));
            match lane {
                Lane::Thread(thread) if self.has_switches => self.states_in(selection, *thread, span, &mut push),
                Lane::Thread(thread) => self.samples_in(selection, *thread, span, &mut push),
                Lane::Cpu(cpu) => self.held_in(selection, *cpu, span, &mut push),
            }
        }
        columns
    }

    /// The intervals of a thread that a range of time meets, in order.
    fn states_in(
        &self,
        selection: &Selection<'_>,
        thread: ThreadId,
        span: &Range<u64>,
        push: &mut dyn FnMut(Interval),
    ) {
        let Some(life) = &self.lives[thread.index()] else { return };
        let places = self.times.places(thread);
        let first = self.times.first_after(selection, places.clone(), span.start.max(life.start));
        let wait_at = |place: usize| selection.completed_wait(self.times.row(place));
        let last = first.checked_sub(1).filter(|last| *last >= places.start).map(wait_at);
        let (mut time, mut cpu) = last.map_or((life.start, None), |last| (last.end_ns.max(life.start), last.cpu));
        let is_met = |interval: &Interval| interval.range.start < span.end && interval.range.end > span.start;
        let mut push = |interval: Interval| interval.within(life).filter(is_met).into_iter().for_each(&mut *push);
        let running = |range, cpu| Interval { thread: Some(thread), cpu, ..Interval::of(LaneState::RUNNING, range) };
        for place in first..places.end {
            let wait = wait_at(place);
            push(running(time..wait.start_ns, cpu));
            (time, cpu) = (wait.end_ns, wait.cpu);
            if wait.start_ns >= span.end {
                return;
            }
            for part in self.times.parts(&wait, place) {
                push(Interval {
                    stack: wait.stack,
                    waker: wait.waker,
                    waker_stack: wait.waker_stack,
                    thread: Some(thread),
                    cpu,
                    ..Interval::of(part.state, part.range)
                });
            }
        }
        push(running(time..life.end, cpu));
    }

    /// The samples of a thread, each for the time that it stands for; between them nothing is known.
    fn samples_in(
        &self,
        selection: &Selection<'_>,
        thread: ThreadId,
        span: &Range<u64>,
        push: &mut dyn FnMut(Interval),
    ) {
        let Some(life) = &self.lives[thread.index()] else { return };
        let (track, pieces) = (&self.sampled[thread.index()], self.sampled_stacks(selection));
        let met = track.met(&pieces, span);
        let mut time = met.start.checked_sub(1).map_or(life.start, |last| track.at(&pieces, last).0.range.end);
        let unknown = |range| Interval { thread: Some(thread), ..Interval::of(LaneState::UNKNOWN, range) };
        let mut push = |interval: Interval| interval.within(life).into_iter().for_each(&mut *push);
        for position in met.clone() {
            let (piece, row) = track.at(&pieces, position);
            push(unknown(time..piece.range.start));
            time = piece.range.end;
            push(Interval {
                stack: Some(piece.label).filter(|label| *label != NO_LABEL).map(StackId),
                thread: Some(thread),
                cpu: selection.capture().samples[row as usize].cpu,
                ..Interval::of(LaneState::RUNNING, piece.range)
            });
        }
        let next = (met.end < track.len()).then(|| track.at(&pieces, met.end).0.range.start);
        push(unknown(time..next.unwrap_or(life.end)));
    }

    /// The threads on a CPU.
    fn held_in(&self, selection: &Selection<'_>, cpu: u32, span: &Range<u64>, push: &mut dyn FnMut(Interval)) {
        let track = &self.cpus[&cpu];
        let (held, sampled) = (self.held(selection), self.sampled_threads(selection));
        let met = if self.has_switches { track.met(&held, span) } else { track.met(&sampled, span) };
        for position in met {
            let piece = if self.has_switches { track.at(&held, position).0 } else { track.at(&sampled, position).0 };
            // A thread that held the CPU at the same time, in damaged captures.
            if piece.range.is_empty() {
                continue;
            }
            let thread = Some(ThreadId(piece.label));
            push(Interval { thread, cpu: Some(cpu), ..Interval::of(LaneState::RUNNING, piece.range) });
        }
    }
}

/// A row of a tile of level 0.
struct Interval {
    range: Range<u64>,
    state: LaneState,
    stack: Option<StackId>,
    waker: Option<ThreadId>,
    waker_stack: Option<StackId>,
    thread: Option<ThreadId>,
    cpu: Option<u32>,
}

impl Interval {
    fn of(state: LaneState, range: Range<u64>) -> Self {
        Self { range, state, stack: None, waker: None, waker_stack: None, thread: None, cpu: None }
    }

    /// The part of it in which its thread lives; `None` if there is none.
    fn within(self, life: &Range<u64>) -> Option<Self> {
        let range = self.range.start.max(life.start)..self.range.end.min(life.end);
        (range.start < range.end).then_some(Self { range, ..self })
    }

    fn cells(&self, lanes: &Lanes, lane: Lane, stack_row: StackRow<'_>) -> [Cell; 9] {
        let thread = |thread: Option<ThreadId>| thread.map_or(Cell::NONE, |thread| thread.0.into());
        [
            lane.number().into(),
            lanes.since(self.range.start).into(),
            lanes.since(self.range.end).into(),
            self.state.index().into(),
            stack_row(self.stack).into(),
            thread(self.waker),
            stack_row(self.waker_stack).into(),
            thread(self.thread),
            self.cpu.map_or(Cell::NONE, Cell::from),
        ]
    }
}

fn bucket_row(lane: Lane, bucket: usize, shares: &Shares, bucket_ns: u64) -> [Cell; 9] {
    let parts = [shares.running(), shares.runnable(), shares.blocked(), shares.unknown()];
    let [running, runnable, blocked, unknown] = rounded(parts, bucket_ns).map(Cell::from);
    let state = shares.most_blocked().map_or(Cell::NONE, Cell::from);
    let Lane::Thread(ThreadId(thread)) = lane else { unreachable!("CPUs have other rows") };
    [lane.number().into(), bucket.into(), 1.into(), running, runnable, blocked, unknown, state, thread.into()]
}

/// A part of a bucket in parts of 255. What is there at all has at least 1.
pub(super) fn share_of(ns: u64, bucket_ns: u64) -> u32 {
    let share = (u128::from(ns) * 255 + u128::from(bucket_ns) / 2) / u128::from(bucket_ns.max(1));
    (share.min(255) as u32).max((ns > 0).into())
}

/// Parts of a bucket in parts of 255, rounded so that they add up to their rounded sum.
fn rounded(parts: [u64; 4], bucket_ns: u64) -> [u32; 4] {
    let mut sum = 0_u64;
    parts.map(|part| {
        let before = part_of(sum, bucket_ns);
        sum = sum.saturating_add(part);
        part_of(sum, bucket_ns) - before
    })
}

fn part_of(ns: u64, bucket_ns: u64) -> u32 {
    ((u128::from(ns) * 255 + u128::from(bucket_ns) / 2) / u128::from(bucket_ns.max(1))).min(255) as u32
}

/// A value of a tile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell {
    Integer(i32),
    Number(f64),
}

impl Cell {
    /// None, in columns of integers.
    pub const NONE: Self = Self::Integer(-1);
}

impl From<i32> for Cell {
    fn from(value: i32) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Integer(i32::try_from(value).unwrap_or(-1))
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Integer(i32::try_from(value).unwrap_or(-1))
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

/// Rows of a tile, in columns.
pub(super) struct Columns {
    names: Vec<&'static str>,
    columns: Vec<Vec<Cell>>,
    /// Where `bucket` and `length` are.
    bucket: usize,
}

impl Columns {
    pub fn new<const WIDTH: usize>(names: [&'static str; WIDTH]) -> Self {
        Self { names: names.to_vec(), columns: vec![Vec::new(); WIDTH], bucket: usize::MAX }
    }

    /// For rows of buckets.
    pub fn joined<const WIDTH: usize>(names: [&'static str; WIDTH]) -> Self {
        let bucket = names.iter().position(|name| *name == "bucket").unwrap_or(usize::MAX);
        Self { bucket, ..Self::new(names) }
    }

    pub fn push<const WIDTH: usize>(&mut self, row: [Cell; WIDTH]) {
        self.columns.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
    }

    /// Adds a bucket, or makes the last one longer if it is equal and next to it.
    pub fn join<const WIDTH: usize>(&mut self, row: [Cell; WIDTH]) {
        let (bucket, length) = (self.bucket, self.bucket + 1);
        if let (Some(Cell::Integer(first)), Some(Cell::Integer(count))) =
            (self.columns[bucket].last().copied(), self.columns[length].last().copied())
        {
            let places = (0..WIDTH).filter(|place| *place != bucket && *place != length);
            let mut equal = places.map(|place| self.columns[place].last() == Some(&row[place]));
            if Cell::Integer(first + count) == row[bucket] && equal.all(|equal| equal) {
                *self.columns[length].last_mut().expect("it has a last row") = Cell::Integer(count + 1);
                return;
            }
        }
        self.push(row);
    }

    /// The rows as stack_row, for tests.
    #[cfg(test)]
    pub fn rows(&self) -> Vec<Vec<f64>> {
        let number = |cell: &Cell| match cell {
            Cell::Integer(value) => f64::from(*value),
            Cell::Number(value) => *value,
        };
        let count = self.columns[0].len();
        (0..count).map(|row| self.columns.iter().map(|column| number(&column[row])).collect()).collect()
    }

    fn table(self) -> ParquetTable {
        self.names.into_iter().zip(self.columns).fold(ParquetTable::new(), |table, (name, cells)| {
            let is_number = matches!(cells.first(), Some(Cell::Number(_)));
            let integer = |cell: Cell| if let Cell::Integer(value) = cell { value } else { -1 };
            let number = |cell: Cell| if let Cell::Number(value) = cell { value } else { f64::NAN };
            match is_number {
                true => table.numbers(name, cells.into_iter().map(number).collect()),
                false => table.integers(name, cells.into_iter().map(integer).collect()),
            }
        })
    }
}
