//! One segment: the shared memory in which one process (or one library of it) leaves its marks.
//!
//! It is read and written as a file, never mapped: a program that cuts its segment short would otherwise kill the
//! recorder with `SIGBUS`, and what is copied out cannot change while it is checked. One read tells the heads of all
//! rings; only rings with something new are read further.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use stepscope_model::FlowStage;

use super::layout::{
    ENTRY_BYTES, HEADER_BYTES, Layout, PROGRAM_AT, RECORD_BYTES, RECORDER_AT, Recorder, TAIL_AT, Unfit, number, small,
};
use super::owner::{has_ended, pid_namespace, pid_of};
use crate::clock;

/// No name is longer in version 1; what is longer is damage.
const NAME_BYTES_MAX: usize = 511;
/// Records read at a time; this many fit into a CPU's cache.
const SLICE_RECORDS: u64 = 4096;

/// Who we are, for those who read the recorder's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Our process.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Tells this recording from others of this process.
    pub token: u64,
}

/// Why a segment is not ours to read, for now or for good.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It cannot be opened or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no segment that can be read.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// It does not belong to the process that its name says.
    #[error("it belongs to somebody else")]
    Foreign,
    /// It belongs to a program in another pid namespace.
    #[error("they are those of a program in a container: record inside of it")]
    Elsewhere,
    /// Somebody else is recording.
    #[error("process {0} records them already")]
    Taken(u32),
}

/// What a program left in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Which ring.
    pub ring: usize,
    /// What happened.
    pub kind: Kind,
    /// When, by the segment's clock.
    pub ticks: u64,
    /// A scope's start, a step's simulated time, a counter's value, a thread's id, a message's number.
    pub payload: u64,
    /// The number of the name; 0 for none.
    pub name: u32,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A scope ended.
    Scope,
    /// A step ended and another began.
    Step,
    /// A reading.
    Counter,
    /// An iteration of another loop ended and another began.
    Frame,
    /// A message was published, passed a place, or arrived.
    Flow(FlowStage),
    /// From here on, the ring is that of another thread.
    Thread,
}

/// A segment that we record.
///
/// `F` is its file, or its bytes in memory.
#[derive(Debug)]
pub struct Segment<F = File> {
    file: F,
    path: PathBuf,
    layout: Layout,
    rings: Vec<Ring>,
    /// The directory when it was last looked at.
    directory: Vec<u8>,
    names: Vec<Arc<str>>,
    names_read: u64,
    /// Marks that were lost before we came.
    lost_before: u64,
    lost: u64,
    names_lost: u64,
    damaged: u64,
}

#[derive(Debug, Clone, Default)]
struct Ring {
    tail: u64,
    tid: u32,
    dropped: u64,
    /// A head beyond which a record did not fit: once may be a torn reading, twice is damage.
    doubted: bool,
}

impl Segment {
    /// Opens a segment and says in it that we record.
    ///
    /// Records already in its rings are kept if the program knew of this recorder when it started. Otherwise they are
    /// left from an earlier recording, and are skipped.
    ///
    /// # Errors
    /// [`Refusal`]
    pub fn take(path: &Path, us: Identity) -> Result<Self, Refusal> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(path)?;
        let mut header = [0; HEADER_BYTES];
        let read = file.read_at(&mut header, 0)?;
        let (layout, recorder) = (Layout::parse(&header[..read])?, Recorder::parse(&header));
        check_owner(&file, path, &layout)?;
        // The lock ends with the descriptor, however we end: that is what makes a recorder that was killed leave nothing
        // behind.
        if file.try_lock().is_err() {
            return Err(Refusal::Taken(recorder.pid));
        }
        let mut segment = Self::with_layout(file, path, layout);
        if !(recorder.recording && recorder.token == us.token) {
            segment.pass_over();
        }
        segment.announce(us)?;
        Ok(segment)
    }
}

impl<F: FileExt> Segment<F> {
    /// Reads the header of a segment of any owner.
    ///
    /// # Errors
    /// [`Refusal`]
    pub fn open(file: F) -> Result<Self, Refusal> {
        let mut header = [0; HEADER_BYTES];
        let read = file.read_at(&mut header, 0)?;
        Ok(Self::with_layout(file, Path::new(""), Layout::parse(&header[..read])?))
    }

    fn with_layout(file: F, path: &Path, layout: Layout) -> Self {
        Self {
            file,
            path: path.to_owned(),
            layout,
            rings: Vec::new(),
            directory: Vec::new(),
            names: Vec::new(),
            names_read: 0,
            lost_before: 0,
            lost: 0,
            names_lost: 0,
            damaged: 0,
        }
    }

    /// Whose it is, and where things are in it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Marks that were made and not kept, since we record.
    pub fn lost(&self) -> u64 {
        self.lost.saturating_sub(self.lost_before)
    }

    /// Names for which there was no room.
    pub fn names_lost(&self) -> u64 {
        self.names_lost
    }

    /// Rings that were found damaged.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Says that we record, and are alive.
    ///
    /// # Errors
    /// What writing gives.
    pub fn announce(&self, us: Identity) -> io::Result<()> {
        let mut line = [0; 32];
        line[..4].copy_from_slice(&1u32.to_ne_bytes());
        line[4..8].copy_from_slice(&us.pid.to_ne_bytes());
        line[8..16].copy_from_slice(&us.start_ticks.to_ne_bytes());
        line[16..24].copy_from_slice(&us.token.to_ne_bytes());
        line[24..].copy_from_slice(&clock::now_ns().to_ne_bytes());
        // The flag last: who sees it may read the rest.
        self.file.write_all_at(&line[4..], RECORDER_AT + 4)?;
        self.file.write_all_at(&line[..4], RECORDER_AT)
    }

    /// Says that nobody records any more.
    pub fn dismiss(&self) {
        // A program that cut its segment short has nothing that could be stopped.
        let _ = self.file.write_all_at(&0u32.to_ne_bytes(), RECORDER_AT);
    }

    /// Whether the process that made it has ended.
    pub fn is_orphan(&self) -> bool {
        has_ended(self.layout.pid, self.layout.start_ticks)
    }

    /// Whether this is its file.
    pub fn is_at(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Removes the file. What is still in it can be read as long as this is kept.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// A name by its number.
    pub fn name(&mut self, number: u32) -> Option<&Arc<str>> {
        let index = (number as usize).checked_sub(1)?;
        if index >= self.names.len() {
            self.read_names();
        }
        self.names.get(index)
    }

    /// The thread that has a ring, as of the last record that was given.
    pub fn thread_of(&self, ring: usize) -> u32 {
        self.rings[ring].tid
    }

    /// Looks how far every ring has come, and whether any has come further. What it has then is given by
    /// [`drain`](Self::drain).
    pub fn look(&mut self) -> bool {
        let mut directory = std::mem::take(&mut self.directory);
        self.read_directory(&mut directory);
        let entries = directory.chunks_exact(ENTRY_BYTES).zip(&mut self.rings);
        let mut any = false;
        for (entry, ring) in entries {
            ring.dropped = number(entry, 8);
            any |= number(entry, 0) != ring.tail;
        }
        self.directory = directory;
        self.count_losses();
        any
    }

    /// Gives what there was when it was last looked, ring by ring in the order it was written, and tells the program that
    /// its place is free again.
    pub fn drain(&mut self, scratch: &mut Vec<u8>, mut take: impl FnMut(&mut Self, Record)) {
        let directory = std::mem::take(&mut self.directory);
        for (ring, entry) in directory.chunks_exact(ENTRY_BYTES).enumerate() {
            let head = number(entry, 0);
            if head != self.rings[ring].tail {
                self.drain_ring(ring, head, scratch, &mut take);
            }
        }
        self.directory = directory;
    }

    /// The directory as it is now, with as many rings as the program says it has; empty if it cannot be read.
    fn read_directory(&mut self, directory: &mut Vec<u8>) {
        directory.clear();
        let mut line = [0; 64];
        if self.file.read_exact_at(&mut line, PROGRAM_AT as u64).is_err() {
            return;
        }
        let count = u64::from(small(&line, 4)).min(self.layout.rings_max) as usize;
        self.names_lost = number(&line, 16);
        self.lost = number(&line, 24);
        directory.resize(count * ENTRY_BYTES, 0);
        let read = self.file.read_at(directory, self.layout.directory_at).unwrap_or(0);
        // What the heads say was written before them.
        fence(Ordering::Acquire);
        directory.truncate(read - read % ENTRY_BYTES);
        for entry in directory.chunks_exact(ENTRY_BYTES).skip(self.rings.len()) {
            let [tail, tail_again] = [0, 8].map(|at| number(entry, TAIL_AT as usize + at));
            let tail = if tail == tail_again { tail } else { 0 };
            self.rings.push(Ring { tail, tid: small(entry, 16), ..Ring::default() });
        }
    }

    fn count_losses(&mut self) {
        self.lost = self.rings.iter().fold(self.lost, |sum, ring| sum.saturating_add(ring.dropped));
    }

    fn drain_ring(&mut self, ring: usize, head: u64, scratch: &mut Vec<u8>, take: &mut impl FnMut(&mut Self, Record)) {
        let tail = self.rings[ring].tail;
        let records = head.wrapping_sub(tail);
        if head < tail || records > self.layout.ring_records {
            self.damaged += 1;
            return self.set_tail(ring, head);
        }
        let first = records.min(self.layout.ring_records - tail % self.layout.ring_records);
        let runs = [(tail, first), (tail + first, records - first)];
        let whole = runs.into_iter().all(|(from, records)| self.drain_run(ring, from, records, scratch, take));
        let doubted = std::mem::replace(&mut self.rings[ring].doubted, !whole);
        if !whole && doubted && self.rings[ring].tail == tail {
            self.damaged += 1;
            self.rings[ring].doubted = false;
            return self.set_tail(ring, head);
        }
        let tail = self.rings[ring].tail;
        self.set_tail(ring, tail);
    }

    /// Gives the records of one unbroken run; whether all of them were there.
    fn drain_run(
        &mut self,
        ring: usize,
        from: u64,
        records: u64,
        scratch: &mut Vec<u8>,
        take: &mut impl FnMut(&mut Self, Record),
    ) -> bool {
        let mut bytes = std::mem::take(scratch);
        let mut position = from;
        while position < from + records {
            let slice = (from + records - position).min(SLICE_RECORDS);
            bytes.resize(slice as usize * RECORD_BYTES, 0);
            if self.file.read_exact_at(&mut bytes, self.layout.record_at(ring, position)).is_err() {
                break;
            }
            let end = position + slice;
            for record in bytes.chunks_exact(RECORD_BYTES) {
                let Some(record) = parse(record, ring, position) else { break };
                position += 1;
                if record.kind == Kind::Thread {
                    self.rings[ring].tid = record.payload as u32;
                }
                take(self, record);
            }
            if position != end {
                break;
            }
        }
        self.rings[ring].tail = position;
        *scratch = bytes;
        position == from + records
    }

    fn set_tail(&mut self, ring: usize, tail: u64) {
        self.rings[ring].tail = tail;
        let twice = [tail.to_ne_bytes(), tail.to_ne_bytes()].concat();
        // A truncated segment has no program left that could read it.
        let _ = self.file.write_all_at(&twice, self.layout.entry_at(ring) + TAIL_AT);
    }

    /// Leaves everything that is there unread.
    fn pass_over(&mut self) {
        let mut directory = Vec::new();
        self.read_directory(&mut directory);
        for (ring, entry) in directory.chunks_exact(ENTRY_BYTES).enumerate() {
            self.rings[ring].dropped = number(entry, 8);
            self.rings[ring].tid = small(entry, 16);
            self.set_tail(ring, number(entry, 0));
        }
        self.count_losses();
        self.lost_before = self.lost;
    }

    fn read_names(&mut self) {
        let mut line = [0; 64];
        if self.file.read_exact_at(&mut line, PROGRAM_AT as u64).is_err() {
            return;
        }
        let end = number(&line, 8).min(self.layout.names_bytes);
        let mut bytes = vec![0; end.saturating_sub(self.names_read) as usize];
        if self.file.read_exact_at(&mut bytes, self.layout.names_at + self.names_read).is_err() {
            return;
        }
        let mut rest = &bytes[..];
        while let Some((name, after)) = split_name(rest) {
            self.names.push(String::from_utf8_lossy(name).into());
            self.names_read += (rest.len() - after.len()) as u64;
            rest = after;
        }
    }
}

/// The first of several names, and the rest.
fn split_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_ne_bytes(*length));
    (length <= NAME_BYTES_MAX).then_some(())?;
    rest.split_at_checked(length)
}

/// A record, if it is the one at this position: each bears the lower bits of its own.
fn parse(bytes: &[u8], ring: usize, position: u64) -> Option<Record> {
    let what = number(bytes, 16);
    if what >> 40 != position & 0xff_ffff {
        return None;
    }
    let kind = match what >> 32 & 0xff {
        1 => Kind::Scope,
        2 => Kind::Step,
        3 => Kind::Counter,
        4 => Kind::Frame,
        5 => Kind::Thread,
        6 => Kind::Flow(FlowStage::Published),
        7 => Kind::Flow(FlowStage::Passed),
        8 => Kind::Flow(FlowStage::Arrived),
        _ => return None,
    };
    Some(Record { ring, kind, ticks: number(bytes, 8), payload: number(bytes, 0), name: what as u32 })
}

/// The file must be that of the user whose process it names, or anybody could put marks into another's recording.
fn check_owner(file: &File, path: &Path, layout: &Layout) -> Result<(), Refusal> {
    let named = path.file_name().and_then(|name| pid_of(name.to_str()?));
    let owner = std::fs::metadata(format!("/proc/{}", layout.pid)).map(|process| process.uid());
    let metadata = file.metadata()?;
    let ours = named == Some(layout.pid) && metadata.is_file();
    if pid_namespace().is_some_and(|ours| ours != layout.pid_namespace) {
        return Err(Refusal::Elsewhere);
    }
    // Where the process is gone, what it left was found in time or it is nobody's.
    if !ours || owner.is_ok_and(|owner| owner != metadata.uid() && owner != 0) {
        return Err(Refusal::Foreign);
    }
    Ok(())
}

/// Whether the program of a segment knew at its start that this recorder would record it. `None` while the segment's
/// header is incomplete.
pub fn greets(path: &Path, us: Identity) -> Option<bool> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else { return Some(false) };
    let mut header = [0; HEADER_BYTES];
    let read = file.read_at(&mut header, 0).unwrap_or(0);
    if Layout::parse(&header[..read]) == Err(Unfit::Incomplete) {
        return None;
    }
    let recorder = Recorder::parse(&header);
    Some(recorder.token == us.token && recorder.pid == us.pid)
}
