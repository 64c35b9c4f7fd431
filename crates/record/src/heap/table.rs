//! The table of one process: what changed since it was last read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustc_hash::FxHashMap;
use stepscope_assemble::{
    AllocationBurst, AllocationSums, Allocations, Assembler, Code, Entry, Sink, StackMark, StackRef, Target, ThreadRef,
};
use stepscope_heap::layout::{self, OMITTED_CALLERS, Record, UNKNOWN_CALLERS, flag};
use stepscope_heap::{Snapshot, TableFile};

use super::bursts::{self, RecordBurst};
use crate::clock;
use crate::marks::Ticks;

/// Tables are read less often if more rows than this change in a second.
const MANY_ROWS: f64 = 50_000.0;

/// About how many rows a process has in a day. All of them are in memory when a recording is finished, 0.2 KiB each.
const MOST_ROWS: f64 = 1e6;

/// From the first reading, after 0.1 s, to a day, the time grows by this power of e. With readings at times that each are longer than the one before by this
/// part times rows over [`MOST_ROWS`], there are [`MOST_ROWS`] rows.
const POWERS: f64 = 14.0;

/// How many records are read in the time that a row takes to be written.
const RECORDS_PER_ROW: usize = 8;

/// A process's table.
pub(super) struct Table {
    path: PathBuf,
    file: TableFile,
    pid: u32,
    start_ns: u64,
    /// The last snapshot, and its time, until its rows are written.
    pending: Option<(Snapshot, u64)>,
    /// Records as they were when their rows were last written.
    written: Vec<Written>,
    written_ns: u64,
    threads: FxHashMap<u32, Option<ThreadRef>>,
    stacks: FxHashMap<u32, Option<StackRef>>,
    flags: u32,
    missed: u64,
    /// Looks to leave out.
    rests: u32,
    /// Whether the process has ended, or runs another program: the next snapshot is the last.
    has_ended: bool,
    is_last: bool,
    is_over: bool,
    /// Whether rows must say again what is live: this log does not have it.
    is_carried: bool,
    is_matched: bool,
}

/// What rows said about a record so far.
#[derive(Clone, Copy, Default)]
struct Written {
    record: Record,
    peak_bytes: i64,
}

impl Table {
    pub fn open(path: PathBuf) -> io::Result<Option<Self>> {
        let Some(file) = TableFile::open(&path)? else { return Ok(None) };
        let (pid, start_ns) = file.owner()?;
        Ok(Some(Self {
            path,
            file,
            pid,
            start_ns,
            pending: None,
            written: Vec::new(),
            written_ns: start_ns,
            threads: FxHashMap::default(),
            stacks: FxHashMap::default(),
            flags: 0,
            missed: 0,
            rests: 0,
            has_ended: false,
            is_last: false,
            is_over: false,
            is_carried: false,
            is_matched: false,
        }))
    }

    pub fn is_at(&self, path: &Path) -> bool {
        self.path == path
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Reads the table.
    pub fn snapshot(&mut self) {
        if self.is_over {
            return;
        }
        let time_ns = clock::now_ns();
        if let Ok(mut snapshot) = self.file.read() {
            self.flags |= snapshot.header.flags;
            self.missed = snapshot.header.missed;
            if let Some((mut unused, _)) = self.pending.take() {
                unused.bursts.append(&mut snapshot.bursts);
                std::mem::swap(&mut unused.bursts, &mut snapshot.bursts);
                snapshot.has_lost_bursts |= unused.has_lost_bursts;
                self.file.recycle(unused);
            }
            self.pending = Some((snapshot, time_ns));
            self.is_last = self.has_ended;
        }
    }

    /// Live bytes, and all calls and bytes so far.
    pub fn sums(&mut self) -> Option<[(&'static str, i64); 3]> {
        if self.is_over {
            return None;
        }
        let (live_bytes, threads) = self.file.sums().ok()?;
        let sum = |of: fn(&layout::Thread) -> u64| threads.iter().map(of).fold(0, u64::wrapping_add) as i64;
        Some([
            ("heap_live_bytes", live_bytes),
            ("heap_calls", sum(|thread| thread.calls)),
            ("heap_bytes", sum(|thread| thread.bytes)),
        ])
    }

    /// Forgets numbers of the log before. `false` if the process has ended.
    pub fn begin_log(&mut self, start_ns: u64) -> bool {
        self.threads.clear();
        self.stacks.clear();
        self.written_ns = start_ns;
        self.is_carried = true;
        !self.is_over
    }

    pub fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if self.flags & flag::OTHER_ALLOCATOR != 0 {
            lacks.push(
                "A program has an allocator of its own (a malloc in its executable, as of a static jemalloc or mimalloc): its \
                 allocations are not seen."
                    .to_owned(),
            );
        }
        if self.flags & flag::TABLE_FULL != 0 {
            lacks.push(
                "A process has more stacks than its heap table: some allocations count at their callers.".to_owned(),
            );
        }
        if !self.is_matched {
            lacks.push(
                "A process has another id for itself than for the recorder (a container): its heap is left out."
                    .to_owned(),
            );
        }
        if self.missed > 0 {
            lacks.push(format!("{} allocations were not counted.", self.missed));
        }
        lacks
    }

    /// Reads the table, unless it is so large that it rests.
    pub fn look(&mut self) {
        match self.rests.checked_sub(1).filter(|_| !self.has_ended) {
            Some(rests) => self.rests = rests,
            None => self.snapshot(),
        }
    }

    /// Writes what changed since the last rows. Tables are read again after this time, or later if they are large.
    pub fn write<W: Target>(
        &mut self,
        every: Duration,
        ticks: &Ticks,
        assembler: &mut Assembler<W>,
        sink: &mut impl Sink,
    ) {
        let records = self.pending.as_ref().map(|(snapshot, _)| snapshot.records.len());
        let rows = self.write_now(ticks, assembler, sink);
        if let Some(records) = records {
            let by_work = (rows + records / RECORDS_PER_ROW) as f64 / MANY_ROWS;
            let recorded = self.written_ns.saturating_sub(self.start_ns) as f64 / 1e9;
            self.rests = (by_work.max(rest_for_memory(recorded, rows)) / every.as_secs_f64()) as u32;
        }
    }

    /// Writes what changed. Returns the number of rows.
    pub fn write_now<W: Target>(&mut self, ticks: &Ticks, assembler: &mut Assembler<W>, sink: &mut impl Sink) -> usize {
        self.has_ended = !assembler.runs_since(self.pid, self.start_ns);
        // Code that was mapped since the last time must be known. A process of an earlier log has no rows in this one.
        let Some(code) = assembler.code_of(self.pid, self.start_ns) else { return 0 };
        self.is_matched = true;
        let Some((snapshot, end_ns)) = self.pending.take() else { return 0 };
        let start_ns = self.written_ns.min(end_ns);
        self.written.resize(snapshot.records.len(), Written::default());
        let mut rows = 0;
        let calls_before: Vec<(u64, u64)> =
            self.written.iter().map(|written| (written.record.calls, written.record.bytes)).collect();
        for (index, record) in snapshot.records.iter().enumerate() {
            let before = self.written[index];
            let sums = difference(record, &before.record);
            let peak_bytes = record.at_peak(snapshot.header.epoch);
            let is_held = self.is_carried && (record.live_bytes() != 0 || peak_bytes != 0);
            if sums == AllocationSums::default() && peak_bytes == before.peak_bytes && !is_held {
                continue;
            }
            self.written[index] = Written { record: *record, peak_bytes };
            let thread = self.thread(record.thread, &snapshot, ticks, assembler);
            let stack = self.stack(record.node, &code, assembler, sink);
            rows += 1;
            sink.take(Entry::Allocations(Box::new(Allocations {
                start_ns,
                end_ns,
                process: code.process(),
                thread,
                stack,
                sums,
                live_blocks: live_blocks(record),
                live_bytes: record.live_bytes(),
                peak_bytes,
            })));
        }
        let span = start_ns..end_ns;
        let bursts = bursts::of_records(&snapshot, |record| calls_before[record], &span, |at| ticks.ns(at));
        for burst in bursts {
            let RecordBurst { record, time, calls, bytes } = burst;
            let record = snapshot.records[record];
            let thread = self.thread(record.thread, &snapshot, ticks, assembler);
            let stack = self.stack(record.node, &code, assembler, sink);
            sink.take(Entry::AllocationBurst(AllocationBurst {
                start_ns: time.start,
                end_ns: time.end,
                process: code.process(),
                thread,
                stack,
                calls,
                bytes,
            }));
        }
        self.file.recycle(snapshot);
        self.written_ns = end_ns;
        self.is_carried = false;
        if self.is_last {
            self.is_over = true;
            let _ = fs::remove_file(&self.path);
        }
        rows
    }

    fn thread<W: Target>(
        &mut self,
        number: u32,
        snapshot: &Snapshot,
        ticks: &Ticks,
        assembler: &Assembler<W>,
    ) -> Option<ThreadRef> {
        if let Some(known) = self.threads.get(&number) {
            return *known;
        }
        let thread = snapshot.threads.get(number as usize)?;
        if thread.shared != 0 {
            return None;
        }
        let found = assembler.thread_at(thread.tid, ticks.ns(thread.start_ticks));
        if found.is_some() {
            self.threads.insert(number, found);
        }
        found
    }

    fn stack<W: Target>(
        &mut self,
        node: u32,
        code: &Code,
        assembler: &mut Assembler<W>,
        sink: &mut impl Sink,
    ) -> Option<StackRef> {
        if let Some(known) = self.stacks.get(&node) {
            return *known;
        }
        let (addresses, start) = self.file.stack(node);
        let is_cut = matches!(start, UNKNOWN_CALLERS | OMITTED_CALLERS);
        let stack = assembler.stack_of(code, &addresses, is_cut.then_some(StackMark::FramesOmitted), sink);
        self.stacks.insert(node, stack);
        stack
    }
}

/// Seconds to rest after this number of rows, so that their sum stays bounded.
fn rest_for_memory(recorded: f64, rows: usize) -> f64 {
    recorded * (POWERS * rows as f64 / MOST_ROWS).exp_m1()
}

fn live_blocks(record: &Record) -> i64 {
    record.calls.wrapping_sub(record.frees).wrapping_sub(record.foreign_frees) as i64
}

fn difference(now: &Record, before: &Record) -> AllocationSums {
    let since = |of: fn(&Record) -> u64| of(now).saturating_sub(of(before));
    AllocationSums {
        calls: since(|record| record.calls),
        bytes: since(|record| record.bytes),
        temporary: since(|record| record.temporary),
        frees: since(|record| record.frees),
        freed_bytes: since(|record| record.freed_bytes),
        foreign_frees: since(|record| record.foreign_frees),
        foreign_freed_bytes: since(|record| record.foreign_freed_bytes),
        sizes: std::array::from_fn(|class| now.sizes[class].wrapping_sub(before.sizes[class])),
        lifetimes: std::array::from_fn(|class| now.lifetimes[class].wrapping_sub(before.lifetimes[class])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_day_have_a_bound_and_small_tables_do_not_rest() {
        for rows in [32_768, 262_144] {
            let (mut recorded, mut all) = (0.1, 0);
            while recorded < 86_400.0 {
                all += rows;
                recorded += rest_for_memory(recorded, rows).max(0.1);
            }
            assert!((all as f64) < 2.0 * MOST_ROWS, "{all} rows of readings with {rows}");
        }
        assert!(rest_for_memory(600.0, 100) < 1.0, "a reading each second");
    }
}
