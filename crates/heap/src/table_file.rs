//! Reading a table while its program writes it, or after its end.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::layout::{
    BURSTS_AT, Burst, FILE_BYTES, FIRST_NODE, Header, MAGIC, MAX_BURSTS, MAX_NODES, MAX_RECORDS, MAX_THREADS, NODES_AT,
    Node, RECORDS_AT, Record, THREADS_AT, Thread, VERSION,
};

/// The table of a process.
#[derive(Debug)]
pub struct TableFile {
    file: File,
    nodes: Vec<Node>,
    /// The memory of an earlier snapshot. The C library does not use freed memory of this alignment again (glibc 2.36), so a new vector for each
    /// snapshot would let the recorder grow with time.
    spare: Vec<Record>,
    /// Bursts that were read.
    bursts: u64,
}

/// What a table holds at a moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Sums of the process.
    pub header: Header,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Sums of threads at nodes.
    pub records: Vec<Record>,
    /// Bursts since the snapshot before, in the order in which they ended. Those that the ring had lost are missing.
    pub bursts: Vec<Burst>,
    /// Whether the ring had lost some.
    pub has_lost_bursts: bool,
}

/// Types of which any bytes are a value.
trait Plain: Copy {}
impl Plain for Header {}
impl Plain for Thread {}
impl Plain for Node {}
impl Plain for Record {}
impl Plain for Burst {}

fn read_plain<T: Plain>(file: &File, at: usize, len: usize) -> io::Result<Vec<T>> {
    let mut rows: Vec<MaybeUninit<T>> = vec![MaybeUninit::zeroed(); len];
    let bytes = len * size_of::<T>();
    // SAFETY: the vector has this many bytes, all of them initialised.
    let bytes = unsafe { std::slice::from_raw_parts_mut(rows.as_mut_ptr().cast::<u8>(), bytes) };
    file.read_exact_at(bytes, at as u64)?;
    // SAFETY: any bytes are a value of these types.
    Ok(rows.into_iter().map(|row| unsafe { row.assume_init() }).collect())
}

/// Reads this number of rows into a vector.
fn read_into<T: Plain + Default>(file: &File, at: usize, len: usize, rows: &mut Vec<T>) -> io::Result<()> {
    rows.resize(len, T::default());
    // SAFETY: any bytes are a value of these types, and the vector has this many.
    let bytes = unsafe { std::slice::from_raw_parts_mut(rows.as_mut_ptr().cast::<u8>(), len * size_of::<T>()) };
    file.read_exact_at(bytes, at as u64)
}

impl TableFile {
    /// Opens a table. `None` if its process has not completed it yet.
    ///
    /// # Errors
    /// If it cannot be read, or is no table of this version.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.size() != FILE_BYTES as u64 {
            return Ok(None);
        }
        let table = Self { file, nodes: Vec::new(), spare: Vec::new(), bursts: 0 };
        let header = table.header()?;
        match (header.magic, header.version) {
            (MAGIC, VERSION) => Ok(Some(table)),
            (MAGIC, other) => Err(io::Error::other(format!("the heap table has version {other}, not {VERSION}"))),
            _ => Ok(None),
        }
    }

    fn header(&self) -> io::Result<Header> {
        let mut rows = read_plain(&self.file, 0, 1)?;
        rows.pop().ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    }

    /// The process's id, in its own pid namespace, and when the table was made, on `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn owner(&self) -> io::Result<(u32, u64)> {
        self.header().map(|header| (header.pid, header.start_ns))
    }

    /// The live bytes of the process, and its threads with their sums: much less than [`Self::read`].
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn sums(&self) -> io::Result<(i64, Vec<Thread>)> {
        let header = self.header()?;
        let threads = read_plain(&self.file, THREADS_AT, (header.threads as usize).min(MAX_THREADS))?;
        Ok((header.live_bytes, threads))
    }

    /// Reads what is in the table now. The program goes on meanwhile: a record may miss its last change.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&mut self) -> io::Result<Snapshot> {
        // Bursts before records: these have counted what bursts say.
        let (bursts, has_lost_bursts) = self.new_bursts()?;
        let header = self.header()?;
        let threads = read_plain(&self.file, THREADS_AT, (header.threads as usize).min(MAX_THREADS))?;
        // Records before nodes: they refer to nodes that are there already.
        let mut records = std::mem::take(&mut self.spare);
        read_into(&self.file, RECORDS_AT, (header.records as usize).min(MAX_RECORDS), &mut records)?;
        let nodes = (self.header()?.nodes as usize).min(MAX_NODES);
        let known = self.nodes.len();
        if nodes > known {
            self.nodes.extend(read_plain::<Node>(&self.file, NODES_AT + known * size_of::<Node>(), nodes - known)?);
        }
        records.retain(|record| (record.node as usize) < nodes && (record.thread as usize) < threads.len());
        Ok(Snapshot { header, threads, records, bursts, has_lost_bursts })
    }

    /// The bursts since the last time that are still in the ring.
    fn new_bursts(&mut self) -> io::Result<(Vec<Burst>, bool)> {
        const PLACES: u64 = MAX_BURSTS as u64;
        let until = self.header()?.bursts;
        let from = self.bursts.max(until.saturating_sub(PLACES));
        let mut bursts = Vec::new();
        let mut at = from;
        while at < until {
            let place = at % PLACES;
            let len = (until - at).min(PLACES - place);
            bursts.extend(read_plain::<Burst>(
                &self.file,
                BURSTS_AT + place as usize * size_of::<Burst>(),
                len as usize,
            )?);
            at += len;
        }
        let wanted = until.saturating_sub(self.bursts);
        self.bursts = until.max(self.bursts);
        // Some may have been written over meanwhile.
        let lost = self.header()?.bursts.saturating_sub(PLACES);
        let numbered = (from..).zip(bursts);
        let whole = numbered.filter(|(before, burst)| burst.number == before + 1 && *before >= lost);
        let bursts: Vec<Burst> = whole.map(|(_, burst)| burst).collect();
        let has_lost = (bursts.len() as u64) < wanted;
        Ok((bursts, has_lost))
    }

    /// Takes a snapshot back: the next one uses its memory.
    pub fn recycle(&mut self, snapshot: Snapshot) {
        self.spare = snapshot.records;
    }

    /// All nodes up to the last read. The first [`FIRST_NODE`] are no frames. A parent comes before its callees.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The addresses of a node's stack, from the leaf on, and the node where the stack starts: a number below
    /// [`FIRST_NODE`].
    pub fn stack(&self, node: u32) -> (Vec<u64>, u32) {
        let (mut addresses, mut at) = (Vec::new(), node);
        while at >= FIRST_NODE
            && let Some(node) = self.nodes.get(at as usize)
        {
            addresses.push(node.address);
            // A damaged table could have a circle.
            at = if node.parent < at { node.parent } else { 0 };
        }
        (addresses, at)
    }
}
