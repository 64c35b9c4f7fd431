//! Samples, waits, steps, scopes, counters, system calls and flows: tables that may be longer than memory allows.
//!
//! They are written in groups of rows while the rows are made ([`LongTables`]), and stay on disk until they are needed.

mod flows;
mod growing;
mod marks;
mod system_calls;

use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::columns::{Rows, TableBytes, decode};
use super::table_writer::{Column, TableWriter};
use super::tables::{named, text};
use super::{DiskError, TableFile};
use crate::capture::{Capture, Counter, Handles, Sample, Scope, Step, SystemCalls};
use crate::flow::FlowEvent;
use crate::ids::{EventId, StackId, ThreadId};
use crate::stored::{Source, Stored, StoredFile};
use crate::wait::Wait;
use crate::waits::{PackedWait, Waits};
use growing::LongTable;

/// Rows that are written together: waits take 6 MB until then, and some 20 MB as columns.
pub(super) const GROUP_ROWS: usize = 1 << 17;

/// A row of a long table.
pub(super) trait LongRow: Clone + Send + Sync + 'static {
    /// Name of the table.
    const TABLE: &'static str;

    fn columns(keys: &Keys, rows: &[Self]) -> Vec<Column>;

    /// Orders rows as the whole table is ordered. Gives how many of them no later row comes before.
    fn sort(rows: &mut [Self]) -> usize;

    /// All rows of a file, some at a time.
    fn stream(table: &TableOnDisk<Self>, take: &mut dyn FnMut(&[Self])) -> Result<(), String>;

    /// All rows of a file, in order.
    fn read(table: &TableOnDisk<Self>) -> Result<Vec<Self>, String> {
        let mut all = Vec::new();
        Self::stream(table, &mut |rows| all.extend_from_slice(rows))?;
        Self::settle(&mut all);
        Ok(all)
    }

    /// Puts rows in order that may be out of it in the file.
    fn settle(_: &mut [Self]) {}
}

/// The long tables of a capture that is being written, for captures that are larger than memory.
///
/// The rows of other tables that a row refers to must be in the capture before it. Threads and processes keep their numbers and
/// ids; other tables may grow meanwhile. Groups of rows are encoded on a thread for each table. The capture is complete once
/// [`write`](super::write) has written it to the same folder.
pub struct LongTables {
    samples: LongTable<Sample>,
    waits: LongTable<PackedWait>,
    steps: LongTable<Step>,
    scopes: LongTable<Scope>,
    counters: LongTable<Counter>,
    system_calls: LongTable<SystemCalls>,
    /// Made with the first row.
    flows: Option<LongTable<FlowEvent>>,
    folder: PathBuf,
}

impl LongTables {
    /// Starts the tables.
    ///
    /// # Errors
    /// [`DiskError::Io`] if the files cannot be created.
    pub fn create(folder: &Path, capture: &Capture) -> Result<Self, DiskError> {
        Ok(Self {
            samples: LongTable::create(folder, capture)?,
            waits: LongTable::create(folder, capture)?,
            steps: LongTable::create(folder, capture)?,
            scopes: LongTable::create(folder, capture)?,
            counters: LongTable::create(folder, capture)?,
            system_calls: LongTable::create(folder, capture)?,
            flows: None,
            folder: folder.to_owned(),
        })
    }

    /// Adds a sample. Samples come in order of time.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it cannot be written.
    pub fn add_sample(&mut self, capture: &Capture, sample: Sample) -> Result<(), DiskError> {
        self.samples.push(capture, sample)
    }

    /// Adds a wait. The waits of a thread come in order of time.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it cannot be written.
    pub fn add_wait(&mut self, capture: &Capture, wait: Wait) -> Result<(), DiskError> {
        self.waits.push(capture, wait.into())
    }

    /// Adds a step. Steps come in order of their ends.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it cannot be written.
    pub fn add_step(&mut self, capture: &Capture, step: Step) -> Result<(), DiskError> {
        self.steps.push(capture, step)
    }

    /// Adds a scope. The scopes of a thread come in order of their starts, an enclosing one first.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it cannot be written.
    pub fn add_scope(&mut self, capture: &Capture, scope: Scope) -> Result<(), DiskError> {
        self.scopes.push(capture, scope)
    }

    /// Adds a reading.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it cannot be written.
    pub fn add_counter(&mut self, capture: &Capture, counter: Counter) -> Result<(), DiskError> {
        self.counters.push(capture, counter)
    }

    /// Adds system calls.
    ///
    /// # Errors
    /// [`DiskError::Io`] if they cannot be written.
    pub fn add_system_calls(&mut self, capture: &Capture, calls: SystemCalls) -> Result<(), DiskError> {
        self.system_calls.push(capture, calls)
    }

    /// Adds a stage of a message. Stages come in order of time, or nearly so.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it cannot be written.
    pub fn add_flow(&mut self, capture: &Capture, event: FlowEvent) -> Result<(), DiskError> {
        let table = match &mut self.flows {
            Some(table) => table,
            none => none.insert(LongTable::create(&self.folder, capture)?),
        };
        table.push(capture, event)
    }

    /// Completes the tables, and gives them to the capture.
    ///
    /// # Errors
    /// [`DiskError::Io`] if they cannot be written.
    pub fn finish(self, capture: &mut Capture) -> Result<(), DiskError> {
        capture.samples = self.samples.finish(capture)?;
        capture.waits = Waits(self.waits.finish(capture)?);
        capture.steps = self.steps.finish(capture)?;
        capture.scopes = self.scopes.finish(capture)?;
        capture.counters = self.counters.finish(capture)?;
        capture.system_calls = self.system_calls.finish(capture)?;
        if let Some(flows) = self.flows {
            capture.flows = flows.finish(capture)?;
        }
        Ok(())
    }
}

/// What rows on disk say of the rows of other tables.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub tids: Vec<u32>,
    pub pids: Vec<u32>,
    pub events: Vec<Arc<str>>,
}

impl Keys {
    fn of(capture: &Capture) -> Self {
        Self {
            tids: capture.threads.iter().map(|thread| thread.tid).collect(),
            pids: capture.processes.iter().map(|process| process.pid).collect(),
            events: capture.info.events.iter().map(|event| text(&event.name)).collect(),
        }
    }

    /// Whether the capture has more rows by now.
    fn are_of(&self, capture: &Capture) -> bool {
        let known = (self.tids.len(), self.pids.len(), self.events.len());
        known == (capture.threads.len(), capture.processes.len(), capture.info.events.len())
    }

    /// The tid and row of the thread of each row, of tables in which rows of a thread are together, or threads are few.
    fn thread_columns(&self, threads: impl Iterator<Item = ThreadId> + Clone) -> [Column; 2] {
        [
            Column::ids("tid", threads.clone().map(|thread| self.tids[thread.index()])),
            Column::ids("thread", threads.map(|thread| thread.0)),
        ]
    }
}

fn file_of<R: LongRow>(folder: &Path) -> PathBuf {
    folder.join(format!("{}.parquet", R::TABLE))
}

/// Writes a long table. Rows that are in a file already are not read for it.
pub(super) fn write<R: LongRow>(capture: &Capture, rows: &Stored<R>, folder: &Path) -> Result<TableFile, DiskError> {
    let path = file_of::<R>(folder);
    if let Some(file) = rows.file() {
        let is_same =
            fs::canonicalize(&file.path).ok().is_some_and(|known| fs::canonicalize(&path).ok() == Some(known));
        if !is_same {
            fs::copy(&file.path, &path).map_err(DiskError::io(&path))?;
        }
        return Ok(TableFile { rows: file.rows, bytes: file.bytes, crc32: file.crc32 });
    }
    let keys = Keys::of(capture);
    let mut writer = TableWriter::create(&path, R::TABLE, &R::columns(&keys, &[])).map_err(DiskError::io(&path))?;
    for group in rows.chunks(GROUP_ROWS) {
        writer.write(&R::columns(&keys, group)).map_err(DiskError::io(&path))?;
    }
    Ok(writer.close().map_err(DiskError::io(&path))?.into())
}

/// A long table that is read when it is needed. `capture` has all other tables.
pub(super) fn open<R: LongRow>(
    folder: &Path,
    listed: Option<&TableFile>,
    capture: &Capture,
) -> Result<Stored<R>, DiskError> {
    let Some(listed) = listed else { return Ok(Stored::default()) };
    let path = file_of::<R>(folder);
    check_length(&path, listed).map_err(|reason| DiskError::damaged(&path, reason))?;
    let file = StoredFile { path, rows: listed.rows, bytes: listed.bytes, crc32: listed.crc32 };
    Ok(Stored::on_disk(TableOnDisk::of(file, capture)))
}

fn check_length(path: &Path, listed: &TableFile) -> Result<(), String> {
    let bytes = fs::metadata(path).map_err(|error| error.to_string())?.len();
    match bytes == listed.bytes {
        true => Ok(()),
        false => Err(format!("{bytes} bytes long, where capture.json says {}", listed.bytes)),
    }
}

/// A long table in a file.
pub(super) struct TableOnDisk<R> {
    file: StoredFile,
    handles: Handles,
    /// Names of the events that samples refer to.
    events: Vec<String>,
    row: PhantomData<fn() -> R>,
}

impl<R> TableOnDisk<R> {
    fn of(file: StoredFile, capture: &Capture) -> Self {
        let events = capture.info.events.iter().map(|event| event.name.clone()).collect();
        Self { file, handles: capture.handles(), events, row: PhantomData }
    }

    /// Number of rows, as the file's writer said it.
    fn rows(&self) -> usize {
        self.file.rows as usize
    }
}

impl<R: LongRow> Source<R> for TableOnDisk<R> {
    fn file(&self) -> &StoredFile {
        &self.file
    }

    fn read(&self) -> Result<Vec<R>, String> {
        verify(&self.file.path, &(&self.file).into())?;
        let rows = unwinding(|| R::read(self))?;
        check_rows(rows.len() as u64, self.file.rows)?;
        Ok(rows)
    }

    fn stream(&self, take: &mut dyn FnMut(&[R])) -> Result<(), String> {
        verify(&self.file.path, &(&self.file).into())?;
        let mut found = 0;
        unwinding(|| {
            R::stream(self, &mut |rows| {
                found += rows.len() as u64;
                take(rows);
            })
        })?;
        check_rows(found, self.file.rows)
    }
}

/// Checks that a file is the one that was listed.
pub(super) fn verify(path: &Path, listed: &TableFile) -> Result<(), String> {
    check_length(path, listed)?;
    let mut hasher = Hashed(crc32fast::Hasher::new());
    let copied = File::open(path).and_then(|mut file| io::copy(&mut file, &mut hasher));
    copied.map_err(|error| error.to_string())?;
    match hasher.0.finalize() == listed.crc32 {
        true => Ok(()),
        false => Err("its checksum differs from that in capture.json".to_owned()),
    }
}

struct Hashed(crc32fast::Hasher);

impl io::Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn check_rows(found: u64, listed: u64) -> Result<(), String> {
    match found == listed {
        true => Ok(()),
        false => Err(format!("{found} rows, where capture.json says {listed}")),
    }
}

/// The Parquet library is large and reads untrusted bytes here. A panic in it counts as an error of the file.
pub(super) fn unwinding<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("the Parquet reader gave up on it".to_owned()))
}

/// Gives the columns of a table's file to `take`, some rows at a time.
pub(super) fn read_file(
    path: &Path,
    wanted: Option<&[&str]>,
    take: impl FnMut(Rows) -> Result<(), String>,
) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    decode(TableBytes::OnDisk { file: Arc::new(file), length }, wanted, take)
}

impl LongRow for Sample {
    const TABLE: &'static str = "samples";

    fn columns(keys: &Keys, rows: &[Self]) -> Vec<Column> {
        let rows = rows.iter();
        vec![
            Column::maybe_u64s("time_ns", rows.clone().map(|row| row.time_ns)),
            Column::u32s("tid", rows.clone().map(|row| keys.tids[row.thread.index()])),
            Column::u32s("thread", rows.clone().map(|row| row.thread.0)),
            Column::maybe_u32s("cpu", rows.clone().map(|row| row.cpu)),
            Column::maybe_u32s("stack", rows.clone().map(|row| row.stack.map(|stack| stack.0))),
            Column::shared_texts("event", rows.clone().map(|row| &keys.events[row.event.index()])),
            Column::u64s("weight", rows.map(|row| row.weight)),
        ]
    }

    /// Records of one CPU can be later than those of another. The difference is far below a quarter of a group.
    fn sort(rows: &mut [Self]) -> usize {
        rows.sort_by_key(|sample| sample.time_ns);
        rows.len() / 4 * 3
    }

    fn stream(table: &TableOnDisk<Self>, take: &mut dyn FnMut(&[Self])) -> Result<(), String> {
        let mut samples = Vec::new();
        let wanted = ["time_ns", "thread", "cpu", "stack", "event", "weight"];
        read_file(&table.file.path, Some(&wanted), |rows| {
            samples.clear();
            let times = rows.maybe_u64s("time_ns")?;
            let cpus = rows.maybe_u32s("cpu")?;
            let stacks = rows.maybe_u32s("stack")?;
            let events = rows.texts("event")?;
            let weights = rows.u64s("weight")?;
            for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
                let event = table.events.iter().position(|event| **event == *events[row]);
                let event = event.ok_or_else(|| format!("event `{}` is not listed in capture.json", events[row]))?;
                samples.push(Sample {
                    time_ns: times[row],
                    thread: ThreadId(thread),
                    cpu: cpus[row],
                    stack: stacks[row].map(StackId),
                    event: EventId::from_index(event),
                    weight: weights[row],
                });
            }
            table.handles.check_samples(&samples)?;
            take(&samples);
            Ok(())
        })
    }
}

impl LongRow for PackedWait {
    const TABLE: &'static str = "waits";

    fn columns(keys: &Keys, rows: &[Self]) -> Vec<Column> {
        let rows = rows.iter().map(|&row| Wait::from(row));
        let [tid, thread] = keys.thread_columns(rows.clone().map(|row| row.thread));
        let waker_tid = |row: Wait| row.waker.map(|waker| keys.tids[waker.index()]);
        vec![
            Column::u64s("start_ns", rows.clone().map(|row| row.start_ns)),
            Column::u64s("end_ns", rows.clone().map(|row| row.end_ns)),
            tid,
            thread,
            Column::maybe_u32s("stack", rows.clone().map(|row| row.stack.map(|stack| stack.0))),
            Column::names("state", rows.clone().map(|row| row.state.into())),
            Column::maybe_u64s("runnable_ns", rows.clone().map(|row| row.runnable_ns)),
            Column::maybe_u32s("cpu", rows.clone().map(|row| row.cpu)),
            Column::maybe_u32s("waker_tid", rows.clone().map(waker_tid)),
            Column::maybe_u32s("waker_thread", rows.clone().map(|row| row.waker.map(|waker| waker.0))),
            Column::maybe_u32s("waker_stack", rows.clone().map(|row| row.waker_stack.map(|stack| stack.0))),
            Column::maybe_u32s("count", rows.map(|row| Some(row.count).filter(|_| row.is_aggregated()))),
        ]
    }

    /// A group stands for a part of the recording. Later waits of the same threads are in later groups.
    fn sort(rows: &mut [Self]) -> usize {
        rows.sort_by_key(Self::order);
        rows.len()
    }

    fn stream(table: &TableOnDisk<Self>, take: &mut dyn FnMut(&[Self])) -> Result<(), String> {
        let mut waits = Vec::new();
        #[rustfmt::skip]
        let wanted = [
            "start_ns", "end_ns", "thread", "stack", "state", "runnable_ns", "cpu", "waker_thread", "waker_stack", "count",
        ];
        read_file(&table.file.path, Some(&wanted), |rows| {
            let starts = rows.u64s("start_ns")?;
            let ends = rows.u64s("end_ns")?;
            let stacks = rows.maybe_u32s("stack")?;
            let states = rows.texts("state")?;
            let runnable = rows.maybe_u64s("runnable_ns")?;
            let cpus = rows.maybe_u32s("cpu")?;
            let wakers = rows.maybe_u32s("waker_thread")?;
            let waker_stacks = rows.maybe_u32s("waker_stack")?;
            let counts = rows.maybe_u32s("count")?;
            waits.clear();
            for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
                waits.push(Self::from(Wait {
                    start_ns: starts[row],
                    end_ns: ends[row],
                    thread: ThreadId(thread),
                    stack: stacks[row].map(StackId),
                    state: named(&states[row], "WaitState")?,
                    runnable_ns: runnable[row],
                    cpu: cpus[row],
                    waker: wakers[row].map(ThreadId),
                    waker_stack: waker_stacks[row].map(StackId),
                    count: counts[row].unwrap_or(1).max(1),
                }));
            }
            table.handles.check_waits(&waits)?;
            take(&waits);
            Ok(())
        })
    }

    fn read(table: &TableOnDisk<Self>) -> Result<Vec<Self>, String> {
        read_by_thread(table, Self::EMPTY, |wait| wait.thread())
    }
}

impl LongRow for Step {
    const TABLE: &'static str = "steps";

    fn columns(keys: &Keys, rows: &[Self]) -> Vec<Column> {
        let rows = rows.iter();
        let [tid, thread] = keys.thread_columns(rows.clone().map(|row| row.thread));
        vec![
            Column::u64s("index", rows.clone().map(|row| row.index)),
            Column::u64s("start_ns", rows.clone().map(|row| row.start_ns)),
            Column::u64s("end_ns", rows.clone().map(|row| row.end_ns)),
            Column::maybe_u64s("sim_time_ns", rows.map(|row| row.sim_time_ns)),
            tid,
            thread,
        ]
    }

    /// Steps of other threads can start earlier and end later. The reader puts these in order.
    fn sort(rows: &mut [Self]) -> usize {
        rows.sort_by_key(|step| step.start_ns);
        rows.len() / 4 * 3
    }

    fn stream(table: &TableOnDisk<Self>, take: &mut dyn FnMut(&[Self])) -> Result<(), String> {
        let mut steps = Vec::new();
        read_file(&table.file.path, None, |rows| {
            steps.clear();
            let indices = rows.u64s("index")?;
            let starts = rows.u64s("start_ns")?;
            let ends = rows.u64s("end_ns")?;
            let sim_times = rows.maybe_u64s("sim_time_ns")?;
            for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
                steps.push(Step {
                    index: indices[row],
                    start_ns: starts[row],
                    end_ns: ends[row],
                    sim_time_ns: sim_times[row],
                    thread: ThreadId(thread),
                });
            }
            table.handles.check_steps(&steps)?;
            take(&steps);
            Ok(())
        })
    }

    fn settle(rows: &mut [Self]) {
        if !rows.is_sorted_by_key(|step| step.start_ns) {
            rows.sort_by_key(|step| step.start_ns);
        }
    }
}

/// The rows of each thread behind each other. The groups of a file follow each other in time, so each row goes to a place
/// that is known before it is read.
fn read_by_thread<R: LongRow>(
    table: &TableOnDisk<R>,
    empty: R,
    thread_of: impl Fn(&R) -> ThreadId,
) -> Result<Vec<R>, String> {
    let mut next = places(table)?;
    let mut all = vec![empty; table.rows()];
    let mut is_whole = true;
    R::stream(table, &mut |rows| {
        for row in rows {
            let place = &mut next[thread_of(row).index()];
            match all.get_mut(*place) {
                Some(free) => free.clone_from(row),
                None => is_whole = false,
            }
            *place += 1;
        }
    })?;
    match is_whole {
        true => Ok(all),
        false => Err("it changed while it was read".to_owned()),
    }
}

/// Where the rows of each thread begin.
fn places<R: LongRow>(table: &TableOnDisk<R>) -> Result<Vec<usize>, String> {
    let mut counts = vec![0_usize; table.handles.threads];
    let mut rows_read = 0;
    read_file(&table.file.path, Some(&["thread"]), |rows| {
        for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
            let count = counts.get_mut(thread as usize);
            *count.ok_or_else(|| format!("{} row {} refers to thread {thread}", R::TABLE, rows_read + row))? += 1;
        }
        rows_read += rows.len();
        Ok(())
    })?;
    check_rows(rows_read as u64, table.file.rows)?;
    let next = |place: &mut usize, count| Some(std::mem::replace(place, *place + count));
    Ok(counts.into_iter().scan(0, next).collect())
}
