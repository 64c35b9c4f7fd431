//! Reads the chunks of a log: to its end, or as far as it is written by now.

use std::io::Read;

use super::chunks::{Bytes, Chunk};
use super::hole::Renumbering;
use super::reader::ChunkReader;
use super::{CHUNK_MARK, Damage, MAGIC, ReadError};
use crate::entry::Sink;

/// Reads a log while a recorder writes it.
///
/// Each call of [`read`](Self::read) gives the entries of the chunks that were completed since the last one. The recorder does
/// nothing for it. A chunk that is written in part waits for the next call.
pub struct Follower<R> {
    state: State<R>,
}

enum State<R> {
    /// The first bytes are not written yet.
    New(Bytes<R>),
    Open(Box<Chunks<R>>),
    /// Something else than a log of this version.
    NotALog,
}

impl<R: Read> Follower<R> {
    /// Follows a log from its first byte.
    pub fn new(from: R) -> Self {
        Self { state: State::New(Bytes::new(from)) }
    }

    /// Gives the entries of the next chunks to the sink, which is the same in all calls: of `most` chunks, or of all that are
    /// complete now. Returns how many chunks that were.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn read(&mut self, most: usize, sink: &mut impl Sink) -> Result<usize, ReadError> {
        if let State::New(log) = &mut self.state {
            if log.ahead(MAGIC.len())?.len() < MAGIC.len() {
                return Ok(0);
            }
            let State::New(mut log) = std::mem::replace(&mut self.state, State::NotALog) else { unreachable!() };
            if log.ahead(MAGIC.len())? == MAGIC {
                log.pass(MAGIC.len());
                self.state = State::Open(Box::new(Chunks::new(log)));
            }
        }
        let State::Open(chunks) = &mut self.state else { return Err(ReadError::NotALog) };
        let mut count = 0;
        while count < most && chunks.next(sink)? {
            count += 1;
        }
        Ok(count)
    }

    /// What cannot be read so far.
    pub fn damage(&self) -> Damage {
        match &self.state {
            State::Open(chunks) => chunks.damage(),
            State::New(_) | State::NotALog => Damage::default(),
        }
    }
}

/// The chunks of a log, and what is damaged between them.
pub(super) struct Chunks<R> {
    log: Bytes<R>,
    entries: Renumbering,
    damage: Damage,
    /// Where the present damage starts.
    damaged_at: Option<u64>,
}

impl<R: Read> Chunks<R> {
    /// Chunks start here.
    pub fn new(log: Bytes<R>) -> Self {
        Self { log, entries: Renumbering::default(), damage: Damage::default(), damaged_at: None }
    }

    /// Gives the entries of the next whole chunk to the sink. False if none is complete yet.
    pub fn next(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        while !self.log.ahead(1)?.is_empty() {
            match self.log.chunk(CHUNK_MARK)? {
                Chunk::Unfinished => return Ok(false),
                Chunk::Damaged => self.pass_damage()?,
                Chunk::Whole { content, length } => {
                    if self.take(&content, length, sink)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Gives all entries to the sink. A chunk that is not complete never will be.
    pub fn read_to_end(mut self, sink: &mut impl Sink) -> Result<Damage, ReadError> {
        loop {
            while self.next(sink)? {}
            if self.log.ahead(1)?.is_empty() {
                return Ok(self.damage());
            }
            self.pass_damage()?;
        }
    }

    /// Gives a chunk's entries to the sink. False if one of them is malformed.
    fn take(&mut self, content: &[u8], length: usize, sink: &mut impl Sink) -> Result<bool, ReadError> {
        let offset = self.log.offset();
        let has_hole = ChunkReader::new(content).counts() != Some(*self.entries.position());
        if self.read_entries(content, sink).is_none() {
            self.pass_damage()?;
            return Ok(false);
        }
        if self.damaged_at.is_some() || has_hole {
            self.damage.add_place(self.damaged_at.take().unwrap_or(offset));
        }
        self.log.pass(length);
        Ok(true)
    }

    /// Gives a chunk's entries to the sink, up to the first that is malformed: then `None`.
    fn read_entries(&mut self, content: &[u8], sink: &mut impl Sink) -> Option<()> {
        let mut chunk = ChunkReader::new(content);
        let before = chunk.counts()?;
        let repeated = chunk.blob()?;
        if before != *self.entries.position() {
            self.entries.go_on(&before, ChunkReader::new(repeated).entries()?, sink)?;
        }
        while !chunk.is_at_end() {
            self.entries.give(chunk.entry()?, sink);
        }
        Some(())
    }

    fn pass_damage(&mut self) -> Result<(), ReadError> {
        self.damaged_at.get_or_insert(self.log.offset());
        Ok(self.log.search()?)
    }

    /// What cannot be read up to here.
    fn damage(&self) -> Damage {
        let mut damage = self.damage;
        if let Some(offset) = self.damaged_at {
            damage.offset = if damage.places == 0 { offset } else { damage.offset };
            damage.bytes_at_end = self.log.offset() - offset;
        }
        damage.lost = *self.entries.lost();
        damage
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::rc::Rc;

    use super::*;
    use crate::entry::{Entry, ThreadRef};
    use crate::raw_log::Writer;

    /// A file that grows.
    #[derive(Clone, Default)]
    struct Growing {
        bytes: Rc<RefCell<Vec<u8>>>,
        at: usize,
    }

    impl Read for Growing {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let bytes = self.bytes.borrow();
            let count = into.len().min(bytes.len() - self.at);
            into[..count].copy_from_slice(&bytes[self.at..self.at + count]);
            self.at += count;
            Ok(count)
        }
    }

    fn start(time_ns: u64) -> Entry {
        Entry::StepStart { time_ns, thread: ThreadRef(0), sim_time_ns: None }
    }

    fn log(chunks: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        for time_ns in 0..chunks {
            writer.take(start(time_ns));
            writer.flush();
        }
        bytes
    }

    #[test]
    fn a_log_that_grows_by_single_bytes_is_read_as_it_is_written() {
        let whole = log(3);
        let file = Growing::default();
        let mut follower = Follower::new(file.clone());
        let mut entries = Vec::new();
        let mut chunks = 0;
        for byte in &whole {
            file.bytes.borrow_mut().push(*byte);
            chunks += follower.read(usize::MAX, &mut entries).unwrap();
        }
        assert_eq!((chunks, entries), (3, vec![start(0), start(1), start(2)]));
        assert_eq!(follower.damage(), Damage::default());
    }

    #[test]
    fn at_most_as_many_chunks_are_read_as_wanted() {
        let file = Growing { bytes: Rc::new(RefCell::new(log(5))), at: 0 };
        let (mut follower, mut entries) = (Follower::new(file), Vec::new());
        let counts: Vec<usize> = (0..4).map(|_| follower.read(2, &mut entries).unwrap()).collect();
        assert_eq!((counts, entries.len()), (vec![2, 2, 1, 0], 5));
    }

    #[test]
    fn behind_a_damaged_chunk_it_goes_on_and_counts_what_is_lost() {
        let mut bytes = log(4);
        let first_end = log(1).len();
        bytes[first_end + 20] ^= 0xff;
        let file = Growing { bytes: Rc::new(RefCell::new(bytes)), at: 0 };
        let (mut follower, mut entries) = (Follower::new(file), Vec::new());
        assert_eq!(follower.read(usize::MAX, &mut entries).unwrap(), 3);
        assert_eq!(follower.damage().places, 1);
    }

    #[test]
    fn other_files_are_refused() {
        let file = Growing { bytes: Rc::new(RefCell::new(b"something else".to_vec())), at: 0 };
        let mut follower = Follower::new(file);
        for _ in 0..2 {
            assert!(matches!(follower.read(1, &mut Vec::new()), Err(ReadError::NotALog)));
        }
    }
}
