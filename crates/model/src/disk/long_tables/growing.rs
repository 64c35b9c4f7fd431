//! A long table while it is written: a thread of its own sorts, encodes and compresses groups of rows, while the next are made.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use super::{GROUP_ROWS, Keys, LongRow, TableOnDisk, file_of};
use crate::capture::Capture;
use crate::disk::DiskError;
use crate::disk::table_writer::{TableWriter, Written};
use crate::stored::{Stored, StoredFile};

/// One table while it is written.
pub(super) struct LongTable<R> {
    path: PathBuf,
    /// The rows of the next group.
    group: Vec<R>,
    keys: Arc<Keys>,
    work: Work<R>,
}

/// Who writes. The thread starts with the first group.
enum Work<R> {
    Waiting(TableWriter),
    Running(Running<R>),
    Failed,
}

struct Running<R> {
    give: SyncSender<Group<R>>,
    /// Rows of groups that were written: their memory is for the next ones.
    free: Receiver<Vec<R>>,
    thread: JoinHandle<io::Result<Written>>,
}

struct Group<R> {
    rows: Vec<R>,
    keys: Arc<Keys>,
}

impl<R: LongRow> LongTable<R> {
    pub fn create(folder: &Path, capture: &Capture) -> Result<Self, DiskError> {
        let (path, keys) = (file_of::<R>(folder), Keys::of(capture));
        let writer = TableWriter::create(&path, R::TABLE, &R::columns(&keys, &[])).map_err(DiskError::io(&path))?;
        Ok(Self { path, group: Vec::new(), keys: Arc::new(keys), work: Work::Waiting(writer) })
    }

    #[inline]
    pub fn push(&mut self, capture: &Capture, row: R) -> Result<(), DiskError> {
        self.group.push(row);
        if self.group.len() < GROUP_ROWS {
            return Ok(());
        }
        let rows = mem::take(&mut self.group);
        self.give(capture, rows)?;
        let free = match &self.work {
            Work::Running(running) => running.free.try_recv().ok(),
            Work::Waiting(_) | Work::Failed => None,
        };
        self.group = free.unwrap_or_else(|| Vec::with_capacity(GROUP_ROWS));
        // Texts are shared with this thread, which counts who has them: cheaper here than on the other thread.
        self.group.clear();
        Ok(())
    }

    /// Gives a group to the thread. Waits until it has written the group before, so that two are in memory.
    fn give(&mut self, capture: &Capture, rows: Vec<R>) -> Result<(), DiskError> {
        if !self.keys.are_of(capture) {
            self.keys = Arc::new(Keys::of(capture));
        }
        let running = match mem::replace(&mut self.work, Work::Failed) {
            Work::Waiting(writer) => start(writer).map_err(DiskError::io(&self.path))?,
            Work::Running(running) => running,
            Work::Failed => return Err(self.failed_before()),
        };
        if running.give.send(Group { rows, keys: self.keys.clone() }).is_err() {
            // The thread ends early after an error alone.
            return joined(running.thread).map_err(DiskError::io(&self.path)).and(Err(self.failed_before()));
        }
        self.work = Work::Running(running);
        Ok(())
    }

    fn failed_before(&self) -> DiskError {
        DiskError::io(&self.path)(io::Error::other("it could not be written before"))
    }

    pub fn finish(mut self, capture: &Capture) -> Result<Stored<R>, DiskError> {
        let rows = mem::take(&mut self.group);
        if !rows.is_empty() {
            self.give(capture, rows)?;
        }
        let written = match mem::replace(&mut self.work, Work::Failed) {
            Work::Waiting(writer) => writer.close(),
            Work::Running(Running { give, thread, .. }) => {
                drop(give);
                joined(thread)
            }
            Work::Failed => return Err(self.failed_before()),
        };
        let written = written.map_err(DiskError::io(&self.path))?;
        let file = StoredFile { path: self.path, rows: written.rows, bytes: written.bytes, crc32: written.crc32 };
        Ok(Stored::on_disk(TableOnDisk::of(file, capture)))
    }
}

fn start<R: LongRow>(writer: TableWriter) -> io::Result<Running<R>> {
    let (give, groups) = mpsc::sync_channel(0);
    let (give_back, free) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name(format!("{} table", R::TABLE));
    let thread = thread.spawn(move || write(writer, &groups, &give_back))?;
    Ok(Running { give, free, thread })
}

/// Writes groups in order. Of each, the rows that a later one can come before stay for the next.
fn write<R: LongRow>(
    mut writer: TableWriter,
    groups: &Receiver<Group<R>>,
    free: &SyncSender<Vec<R>>,
) -> io::Result<Written> {
    let mut rest: Vec<R> = Vec::new();
    let mut keys = Arc::default();
    for Group { mut rows, keys: known } in groups {
        keys = known;
        if !rest.is_empty() {
            rest.append(&mut rows);
            mem::swap(&mut rest, &mut rows);
        }
        let settled = R::sort(&mut rows);
        writer.write(&R::columns(&keys, &rows[..settled]))?;
        rest.extend(rows.drain(settled..));
        // It is freed if there is other memory already.
        if let Err(TrySendError::Full(rows) | TrySendError::Disconnected(rows)) = free.try_send(rows) {
            drop(rows);
        }
    }
    writer.write(&R::columns(&keys, &rest))?;
    writer.close()
}

fn joined(thread: JoinHandle<io::Result<Written>>) -> io::Result<Written> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
