//! Where the chunks of a log are, and how to go on behind a damaged one.

use std::io::{self, Read};

use super::{CHUNK_MARK, MAX_CHUNK_BYTES};

/// How much is read at a time to search for a mark.
const SEARCH_BYTES: usize = 64 << 10;

/// A chunk of a log.
pub(super) enum Chunk {
    /// Its content, and its length in the log.
    Whole { content: Vec<u8>, length: usize },
    /// The log ends in it.
    Unfinished,
    /// There is no chunk, or its checksum is wrong.
    Damaged,
}

/// The bytes of a log, of which those from the present place on can be looked at before they are passed.
pub(super) struct Bytes<R> {
    from: R,
    buffer: Vec<u8>,
    /// The present place in the buffer, and in the log.
    at: usize,
    offset: u64,
}

impl<R: Read> Bytes<R> {
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), at: 0, offset: 0 }
    }

    /// The present place in the log.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes: as many as wanted, or fewer at the end.
    pub fn ahead(&mut self, wanted: usize) -> io::Result<&[u8]> {
        let there = self.buffer.len() - self.at;
        if there < wanted {
            self.buffer.drain(..self.at);
            self.at = 0;
            let missing = (wanted - there).max(SEARCH_BYTES) as u64;
            self.from.by_ref().take(missing).read_to_end(&mut self.buffer)?;
        }
        let rest = &self.buffer[self.at..];
        Ok(&rest[..wanted.min(rest.len())])
    }

    /// Passes bytes that were looked at.
    pub fn pass(&mut self, count: usize) {
        self.at += count;
        self.offset += count as u64;
    }

    /// The chunk here.
    pub fn chunk(&mut self, mark: &[u8]) -> io::Result<Chunk> {
        let head = mark.len() + 4;
        let ahead = self.ahead(head)?;
        if ahead.len() < head && mark.starts_with(&ahead[..ahead.len().min(mark.len())]) {
            return Ok(Chunk::Unfinished);
        }
        let Some(length) = ahead.strip_prefix(mark).and_then(|length| length.try_into().ok()) else {
            return Ok(Chunk::Damaged);
        };
        let length = u32::from_le_bytes(length) as usize;
        if length as u64 > MAX_CHUNK_BYTES {
            return Ok(Chunk::Damaged);
        }
        let whole = self.ahead(head + length)?;
        if whole.len() < head + length {
            return Ok(Chunk::Unfinished);
        }
        Ok(unpack(&whole[head..]).map_or(Chunk::Damaged, |content| Chunk::Whole { content, length: head + length }))
    }

    /// Passes to the next mark behind the present place, or to the end.
    pub fn search(&mut self) -> io::Result<()> {
        self.pass(1);
        loop {
            let ahead = self.ahead(SEARCH_BYTES)?;
            if let Some(found) = ahead.windows(CHUNK_MARK.len()).position(|window| window == CHUNK_MARK) {
                self.pass(found);
                return Ok(());
            }
            let (length, is_end) = (ahead.len(), ahead.len() < SEARCH_BYTES);
            if is_end {
                self.pass(length);
                return Ok(());
            }
            // A mark may start at the end of these bytes.
            self.pass(length + 1 - CHUNK_MARK.len());
        }
    }
}

/// The bytes in a zstd frame, if it is whole.
fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    decoder.take(MAX_CHUNK_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
