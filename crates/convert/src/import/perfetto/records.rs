//! Records in the order of time, however many: sorted runs of them wait in a file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use stepscope_model::disk::DiskError;

/// A record. Its first number is its time.
pub type Record = [u64; 7];

/// Records that are kept before they go to the file: 14 MiB.
pub const MOST_IN_MEMORY: usize = 1 << 18;
/// Records of a run that are read at a time.
const READ_AT_ONCE: usize = 512;

const BYTES: usize = size_of::<Record>();

#[derive(Default)]
pub struct Records {
    /// Where the file is; without a folder, all records stay in memory.
    folder: Option<PathBuf>,
    most: usize,
    records: Vec<Record>,
    /// It has no name, so nothing is left of it.
    file: Option<File>,
    /// Which of its records are in order.
    runs: Vec<Range<u64>>,
    error: Option<io::Error>,
}

impl Records {
    pub fn new(folder: Option<PathBuf>, most: usize) -> Self {
        Self { folder, most, ..Self::default() }
    }

    /// Adds a record. After an error, records are dropped: [`Self::each`] gives the error.
    pub fn add(&mut self, record: Record) {
        self.records.push(record);
        if self.records.len() >= self.most && self.folder.is_some() {
            self.spill();
        }
    }

    fn spill(&mut self) {
        self.records.sort_by_key(|record| record[0]);
        if self.error.is_none() {
            self.error = self.write().err();
        }
        self.records.clear();
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match (&mut self.file, &self.folder) {
            (Some(file), _) => file,
            (none, Some(folder)) => none.insert(tempfile::tempfile_in(folder)?),
            (None, None) => return Ok(()),
        };
        let mut writer = io::BufWriter::with_capacity(READ_AT_ONCE * BYTES, file);
        for record in &self.records {
            writer.write_all(&bytes(*record))?;
        }
        writer.flush()?;
        let start = self.runs.last().map_or(0, |run| run.end);
        self.runs.push(start..start + self.records.len() as u64);
        Ok(())
    }

    /// Gives all records by time. Those of one time keep their order.
    pub fn each(mut self, mut take: impl FnMut(Record)) -> Result<(), DiskError> {
        if self.file.is_some() {
            self.spill();
        }
        let path = self.folder.take().unwrap_or_default();
        let failed = |source| DiskError::Io { path, source };
        match (self.error, self.file) {
            (Some(error), _) => Err(failed(error)),
            (None, Some(file)) => merge(&file, self.runs, take).map_err(failed),
            (None, None) => {
                self.records.sort_by_key(|record| record[0]);
                self.records.into_iter().for_each(&mut take);
                Ok(())
            }
        }
    }
}

/// Gives the records of all runs by time; those of an earlier run come first.
fn merge(file: &File, runs: Vec<Range<u64>>, mut take: impl FnMut(Record)) -> io::Result<()> {
    let mut runs: Vec<Run> = runs.into_iter().map(|rest| Run { rest, read: Vec::new() }).collect();
    let mut next = BinaryHeap::with_capacity(runs.len());
    for (number, run) in runs.iter_mut().enumerate() {
        next.extend(run.next(file)?.map(|record| Reverse((record[0], number, record))));
    }
    while let Some(Reverse((_, number, record))) = next.pop() {
        take(record);
        next.extend(runs[number].next(file)?.map(|record| Reverse((record[0], number, record))));
    }
    Ok(())
}

/// What is not given yet of a run.
struct Run {
    rest: Range<u64>,
    /// Those that were read, the last one first.
    read: Vec<Record>,
}

impl Run {
    fn next(&mut self, file: &File) -> io::Result<Option<Record>> {
        if self.read.is_empty() && !self.rest.is_empty() {
            let count = (self.rest.end - self.rest.start).min(READ_AT_ONCE as u64);
            let mut buffer = vec![0; count as usize * BYTES];
            file.read_exact_at(&mut buffer, self.rest.start * BYTES as u64)?;
            self.read.extend(buffer.chunks_exact(BYTES).rev().map(record));
            self.rest.start += count;
        }
        Ok(self.read.pop())
    }
}

fn bytes(record: Record) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (place, number) in bytes.chunks_exact_mut(8).zip(record) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn record(bytes: &[u8]) -> Record {
    let mut record = Record::default();
    for (number, place) in record.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = u64::from_le_bytes(place.try_into().expect("chunks of 8 bytes"));
    }
    record
}
