//! The raw log: what a recording writes as it goes, so that a killed recorder loses next to nothing.
//!
//! A log is eight bytes of magic and then chunks: a mark of eight bytes, a length (32 bits, little-endian), and a zstd frame
//! with a checksum. The frame holds, in this order:
//!
//! 1. how many entries of each [`Kind`] come before this chunk;
//! 2. the entries of the chunk before it that others refer to, once more;
//! 3. whole [`Entry`] values. A sample takes about 17 bytes.
//!
//! A log may end anywhere, and any byte may be damaged. [`read`] goes on at the next mark. By (2), a single damaged chunk loses
//! nothing but its own samples, waits and marks; by (1), all that is lost is counted, and later references to it are known to
//! be such. Logs of the version before have neither: what follows the damage is lost.

mod chunks;
mod follower;
mod hole;
mod kind;
mod layout;
mod packer;
mod reader;

use std::fmt;
use std::io::{self, Read, Write};

use stepscope_model::disk::DiskError;
use zstd::zstd_safe::CParameter;

use crate::entry::{Entry, Sink};
use chunks::{Bytes, Chunk};
use follower::Chunks;
pub use follower::Follower;
pub use kind::{Counts, Kind};
use packer::ChunkPacker;
use reader::ChunkReader;

/// The first bytes of a log; the last digit is the version.
pub const MAGIC: &[u8; 8] = b"stepraw3";

/// The first bytes of a log of the version before.
pub const EARLIER_MAGIC: &[u8; 8] = b"stepraw2";

/// The first bytes of a chunk.
pub const CHUNK_MARK: &[u8; 8] = b"\x9e\xf5chunk\x87";

/// A chunk is written when it has grown to this size, or on [`Writer::flush`].
const CHUNK_BYTES: usize = 256 << 10;

/// No writer makes larger chunks, packed or not; a length beyond it is damage.
const MAX_CHUNK_BYTES: u64 = 64 << 20;

/// Why a log cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are something else, or of another version.
    #[error("not a raw log of this version of stepscope: recover it with the version that recorded it")]
    NotALog,
    /// The tables that are made of it cannot be written.
    #[error("{0}; the recorded log is kept: make room, then `stepscope recover` its folder")]
    Write(#[from] DiskError),
}

/// Writes a log.
///
/// [`Sink::take`] reports nothing: the writer keeps the first error ([`Writer::error`]) and drops everything after it, so
/// that what was written stays a sound log that ends early.
pub struct Writer<W> {
    out: W,
    chunk: ChunkPacker,
    /// The entries of the chunk that others refer to, and those of the last chunk.
    definitions: ChunkPacker,
    repeated: ChunkPacker,
    /// Entries in the chunk, and before it.
    count: Counts,
    before: Counts,
    has_end: bool,
    compressor: zstd::bulk::Compressor<'static>,
    bytes: u64,
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Starts a log.
    ///
    /// # Errors
    /// If the first bytes cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let mut compressor = zstd::bulk::Compressor::new(3)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self {
            out,
            chunk: ChunkPacker::default(),
            definitions: ChunkPacker::default(),
            repeated: ChunkPacker::default(),
            count: Counts::default(),
            before: Counts::default(),
            has_end: false,
            compressor,
            bytes: MAGIC.len() as u64,
            error: None,
        })
    }

    /// Writes the pending entries.
    pub fn flush(&mut self) {
        if self.chunk.bytes().is_empty() {
            return;
        }
        self.write_chunk();
        if self.has_end {
            // The last entries are repeated, too.
            self.write_chunk();
        }
    }

    fn write_chunk(&mut self) {
        if self.error.is_none() {
            self.error = self.try_to_write_chunk().err();
        }
        self.before.add(&std::mem::take(&mut self.count));
        std::mem::swap(&mut self.repeated, &mut self.definitions);
        self.definitions.restart();
        self.chunk.restart();
    }

    fn try_to_write_chunk(&mut self) -> io::Result<()> {
        let mut content = ChunkPacker::default();
        content.counts(&self.before);
        content.blob(self.repeated.bytes());
        let content = [content.bytes(), self.chunk.bytes()].concat();
        let framed = framed(CHUNK_MARK, &self.compressor.compress(&content)?);
        self.out.write_all(&framed)?;
        self.bytes += framed.len() as u64;
        Ok(())
    }

    /// Where the log goes.
    pub fn out(&self) -> &W {
        &self.out
    }

    /// Bytes of whole chunks written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first error of writing.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }
}

impl<W: Write> Sink for Writer<W> {
    fn take(&mut self, entry: Entry) {
        let kind = Kind::of(&entry);
        self.count[kind] += 1;
        self.has_end |= matches!(entry, Entry::RecordingEnd(_));
        self.chunk.put(&entry);
        if kind.is_repeated() {
            self.definitions.put(&entry);
        }
        if self.chunk.bytes().len() >= CHUNK_BYTES {
            self.flush();
        }
    }
}

/// A chunk of these bytes.
fn framed(mark: &[u8], packed: &[u8]) -> Vec<u8> {
    [mark, &(packed.len() as u32).to_le_bytes(), packed].concat()
}

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With the last byte of a chunk, and all before it is whole.
    Complete,
    /// Some of it cannot be read.
    Damaged(Damage),
}

/// What cannot be read of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Damage {
    /// Where the first damaged chunk starts.
    pub offset: u64,
    /// In how many places chunks are damaged or missing, before the last whole chunk.
    pub places: u64,
    /// Entries of these chunks.
    pub lost: Counts,
    /// Bytes behind the last whole chunk. What they held is unknown.
    pub bytes_at_end: u64,
}

impl Damage {
    /// Notes a damaged place.
    fn add_place(&mut self, offset: u64) {
        self.offset = if self.places == 0 { offset } else { self.offset };
        self.places += 1;
    }
}

/// A note for the reader of results.
impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The raw log is damaged ")?;
        match self.places {
            0 => {}
            1 => write!(f, "at byte {}", self.offset)?,
            places => write!(f, "in {places} places, first at byte {}", self.offset)?,
        }
        if self.places > 0 {
            let lost: Vec<String> = Kind::ALL.into_iter().filter_map(|kind| kind.described(self.lost[kind])).collect();
            match lost.is_empty() {
                true => write!(f, ": no sample, wait or mark is lost")?,
                false => write!(f, ": it lost {}", lost.join(", "))?,
            }
            if self.lost[Kind::Wait] > 0 {
                write!(f, ". Threads without exact CPU time seem to run during lost waits")?;
            }
            if self.lost[Kind::Step] > 0 {
                write!(f, ". A step seems to last longer if the start of the next one is lost")?;
            }
        }
        match (self.places, self.bytes_at_end) {
            (_, 0) => write!(f, "."),
            (0, bytes) => write!(f, "at byte {}: its last {bytes} bytes are lost.", self.offset),
            (_, bytes) => write!(f, ". Its last {bytes} bytes are lost, too."),
        }
    }
}

/// Reads a log into a sink. A log that is damaged or ends early is no error.
///
/// # Errors
/// [`ReadError`]
pub fn read(from: impl Read, sink: &mut impl Sink) -> Result<Ending, ReadError> {
    let mut log = Bytes::new(from);
    let magic: Option<[u8; 8]> = log.ahead(MAGIC.len())?.try_into().ok();
    log.pass(magic.map_or(0, |magic| magic.len()));
    let damage = match magic.as_ref() {
        Some(MAGIC) => Chunks::new(log).read_to_end(sink)?,
        Some(EARLIER_MAGIC) => read_earlier_chunks(log, sink)?,
        _ => return Err(ReadError::NotALog),
    };
    Ok(if damage == Damage::default() { Ending::Complete } else { Ending::Damaged(damage) })
}

/// Reads up to the first damage.
fn read_earlier_chunks(mut log: Bytes<impl Read>, sink: &mut impl Sink) -> Result<Damage, ReadError> {
    let mut is_whole = true;
    while is_whole && !log.ahead(1)?.is_empty() {
        let Chunk::Whole { content, length } = log.chunk(&[])? else { break };
        let mut chunk = ChunkReader::new(&content);
        while is_whole && !chunk.is_at_end() {
            let entry = chunk.entry();
            is_whole = entry.is_some();
            entry.into_iter().for_each(|entry| sink.take(entry));
        }
        if is_whole {
            log.pass(length);
        }
    }
    let mut damage = Damage { offset: log.offset(), ..Damage::default() };
    loop {
        let rest = log.ahead(CHUNK_BYTES)?.len();
        if rest == 0 {
            break;
        }
        log.pass(rest);
        damage.bytes_at_end += rest as u64;
    }
    Ok(if damage.bytes_at_end == 0 { Damage::default() } else { damage })
}

#[cfg(test)]
mod tests;
