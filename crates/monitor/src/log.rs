//! The log of a monitor: an ordinary raw log of one segment after the other, with the values that changed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stepscope_assemble::raw_log::Writer;
use stepscope_assemble::{Entry, MachineReading, ProcessRef, RecordingEnd, Sink, ThreadRef};
use stepscope_model::disk::{self, DiskError};
use stepscope_model::{CaptureInfo, Dimension, DimensionStatus, RecordingCost, SYSTEM, SYSTEM_PID};
use stepscope_record::conditions::read_machine;
use stepscope_record::{clock, machine, proc};

use crate::process::{FIGURES, Values, WatchedProcess};
use crate::sampler::Sampler;

/// Why the log cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Its folder cannot be made.
    #[error("cannot create the folder {}: {source}; choose another with `-o FOLDER`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file cannot be created, or another process writes to it.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// It cannot be written any more.
    #[error("{}: cannot be written any more ({source}); what was written is kept", path.display())]
    Write {
        /// The folder of the segment.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The log of one segment. A monitor that is killed loses the readings since the last [`write`](Self::write).
pub struct Log {
    folder: PathBuf,
    writer: Writer<File>,
    start: Box<MachineReading>,
    cpu_before_ns: u64,
    last_ns: u64,
    /// Start of the whole recording.
    recording_start_ns: u64,
    processes: HashMap<(u32, u64), Written>,
    machine: HashMap<Arc<str>, i64>,
    count: u32,
}

/// A process in the log.
struct Written {
    process: ProcessRef,
    thread: ThreadRef,
    images: u32,
    values: Values,
}

impl Log {
    /// Starts the log of a segment. `recording_start_ns` is given in all but the first.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn start(
        folder: &Path,
        command: &[String],
        now_ns: u64,
        recording_start_ns: Option<u64>,
    ) -> Result<Self, LogError> {
        fs::create_dir_all(folder).map_err(|source| LogError::Folder { path: folder.to_owned(), source })?;
        let write = |source| LogError::Write { path: folder.to_owned(), source };
        let mut writer = Writer::new(disk::create_log(folder)?).map_err(write)?;
        let start = Box::new(read_machine());
        writer.take(Entry::Start(Box::new(CaptureInfo {
            command: command.to_owned(),
            started_at: Some(clock::utc_now()),
            clock: Some("CLOCK_MONOTONIC".to_owned()),
            start_ns: Some(now_ns),
            recording_start_ns,
            machine: Some(machine::describe()),
            conditions: Some(start.conditions_until(None, None)),
            dimensions: [(Dimension::Resources, DimensionStatus::Recorded)].into(),
            ..CaptureInfo::default()
        })));
        writer.take(Entry::Process { pid: SYSTEM_PID, parent_pid: None, start_ns: None });
        let image = Entry::Image { process: ProcessRef(0), executable: SYSTEM.to_owned(), command_line: Vec::new() };
        writer.take(image);
        writer.flush();
        Ok(Self {
            folder: folder.to_owned(),
            writer,
            start,
            cpu_before_ns: clock::thread_cpu_ns(),
            last_ns: now_ns,
            recording_start_ns: recording_start_ns.unwrap_or(now_ns),
            processes: HashMap::new(),
            machine: HashMap::new(),
            count: 1,
        })
    }

    /// Writes what changed in the last sample, at its time.
    ///
    /// # Errors
    /// [`LogError::Write`]
    pub fn write(&mut self, sampler: &Sampler, now_ns: u64) -> Result<(), LogError> {
        for identity in sampler.ended() {
            if let Some(Written { process, thread, .. }) = self.processes.remove(identity) {
                self.writer.take(Entry::ThreadEnd { thread, time_ns: Some(now_ns), cpu_ns: None, runnable_ns: None });
                self.writer.take(Entry::ProcessEnd { process, time_ns: now_ns });
            }
        }
        for process in sampler.processes() {
            self.write_process(process, now_ns);
        }
        for (name, value) in sampler.machine() {
            if self.machine.get(name) != Some(&value) {
                self.machine.insert(name.clone(), value);
                self.writer.take(counter(now_ns, ProcessRef(0), name, value));
            }
        }
        self.last_ns = now_ns;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), LogError> {
        self.writer.flush();
        match self.writer.error() {
            None => Ok(()),
            Some(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                // A chunk that was written in part would count as damage.
                let _ = self.writer.out().set_len(self.writer.bytes());
                Err(LogError::Write { path: self.folder.clone(), source })
            }
        }
    }

    fn write_process(&mut self, watched: &WatchedProcess, now_ns: u64) {
        let Self { writer, processes, count, last_ns, .. } = self;
        let written = processes.entry((watched.pid(), watched.start_ticks())).or_insert_with(|| {
            let (process, thread) = (ProcessRef(*count), ThreadRef(*count - 1));
            *count += 1;
            let started_ns = started_ns(watched.start_ticks());
            let start_ns = (started_ns > *last_ns).then_some(started_ns);
            writer.take(Entry::Process { pid: watched.pid(), parent_pid: watched.parent, start_ns });
            writer.take(Entry::Thread { tid: watched.pid(), process, start_ns, name: watched.name.clone() });
            Written { process, thread, images: 0, values: [None; FIGURES.len()] }
        });
        if written.images != watched.images {
            let (executable, command_line) = (watched.executable.clone(), watched.command_line.clone());
            writer.take(Entry::Image { process: written.process, executable, command_line });
            if written.images > 0 {
                let (thread, name) = (written.thread, watched.name.clone());
                writer.take(Entry::ThreadName { thread, time_ns: now_ns, name });
            }
            written.images = watched.images;
        }
        for (figure, (before, &value)) in written.values.iter_mut().zip(&watched.values).enumerate() {
            if let Some(value) = value.filter(|_| *before != value) {
                *before = Some(value);
                writer.take(counter(now_ns, written.process, FIGURES[figure], value));
            }
        }
    }

    /// When the next segment's log may say the recording began.
    pub fn recording_start_ns(&self) -> u64 {
        self.recording_start_ns
    }

    /// The folder of the segment.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Completes the log.
    ///
    /// # Errors
    /// [`LogError::Write`]
    pub fn end(mut self, sampler: &Sampler) -> Result<(), LogError> {
        let status = match sampler.lacks() {
            None => DimensionStatus::Recorded,
            Some(lack) => DimensionStatus::Partial { lacks: vec![lack] },
        };
        let (log_bytes, cpu_ns) = (self.writer.bytes(), clock::thread_cpu_ns().saturating_sub(self.cpu_before_ns));
        self.writer.take(Entry::RecordingEnd(Box::new(RecordingEnd {
            end_ns: Some(self.last_ns),
            cost: Some(RecordingCost { cpu_ns, log_bytes, ..RecordingCost::default() }),
            notes: sampler.notes(),
            dimensions: [(Dimension::Resources, status)].into(),
            machine: Some(((*self.start).clone(), read_machine())),
            ..RecordingEnd::default()
        })));
        self.flush()
    }
}

fn counter(time_ns: u64, process: ProcessRef, name: &str, value: i64) -> Entry {
    Entry::Counter { time_ns, process, thread: None, name: name.to_owned(), value }
}

/// The start of a process on the clock of recordings.
fn started_ns(start_ticks: u64) -> u64 {
    let since_boot_ns = (u128::from(start_ticks) * 1_000_000_000 / u128::from(proc::ticks_per_second())) as u64;
    since_boot_ns.saturating_sub(clock::suspended_ns())
}
