//! The reader of segments on bytes in memory, for fuzzing and tests.

use std::cell::RefCell;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::segment::{Refusal, Segment};

/// A file in memory.
#[derive(Debug)]
struct Bytes(RefCell<Vec<u8>>);

impl FileExt for Bytes {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.borrow();
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let length = into.len().min(bytes.len() - from);
        into[..length].copy_from_slice(&bytes[from..from + length]);
        Ok(length)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = self.0.borrow_mut();
        let at = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let length = from.len().min(bytes.len() - at);
        bytes[at..at + length].copy_from_slice(&from[..length]);
        Ok(length)
    }
}

/// A mark as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadMark {
    /// Thread that made it.
    pub thread: u32,
    /// Its name, unless it has none.
    pub name: Option<Arc<str>>,
    /// The value that came with it.
    pub payload: u64,
}

/// Reads all marks of a segment, ring by ring.
///
/// # Errors
/// Why it is not a segment.
pub fn read_segment(bytes: &[u8]) -> Result<Vec<ReadMark>, Refusal> {
    let mut segment = Segment::open(Bytes(RefCell::new(bytes.to_vec())))?;
    let mut marks = Vec::new();
    segment.look();
    segment.drain(&mut Vec::new(), |segment, record| {
        let thread = segment.thread_of(record.ring);
        marks.push(ReadMark { thread, name: segment.name(record.name).cloned(), payload: record.payload });
    });
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::layout::{Unfit, tests::drawn};

    /// A ring of thread 7 with two counters named `load`, 30 and 40.
    fn two_counters() -> Vec<u8> {
        let mut bytes = drawn(16);
        bytes.resize(12_288 + 16 * 24, 0);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(132, &1u32.to_ne_bytes());
        put(136, &6u64.to_ne_bytes());
        put(4096, &[&4u16.to_ne_bytes()[..], b"load"].concat());
        put(8192, &2u64.to_ne_bytes());
        put(8192 + 16, &7u32.to_ne_bytes());
        for (position, value) in [(0u64, 30u64), (1, 40)] {
            let what = position << 40 | 3 << 32 | 1;
            put(12_288 + 24 * position as usize, &[value, 1000 + position, what].map(u64::to_ne_bytes).concat());
        }
        bytes
    }

    #[test]
    fn marks_are_read_with_thread_and_name() {
        let mark = |payload| ReadMark { thread: 7, name: Some("load".into()), payload };
        assert_eq!(read_segment(&two_counters()).unwrap(), [mark(30), mark(40)]);
    }

    #[test]
    fn a_truncated_segment_gives_its_complete_rings() {
        let bytes = two_counters();
        assert_eq!(read_segment(&bytes[..12_288]).unwrap(), []);
        assert!(matches!(read_segment(&bytes[..100]), Err(Refusal::Unfit(Unfit::Incomplete))));
    }

    /// Writes the seed of the fuzz target: `cargo test -p stepscope-record --lib write_the_seed -- --ignored`.
    #[test]
    #[ignore = "writes a file that is committed"]
    fn write_the_seed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/marks/two-counters.segment");
        std::fs::write(path, two_counters()).unwrap();
    }
}
