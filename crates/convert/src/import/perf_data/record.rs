//! The records of a `perf.data` file.

use std::ops::Range;

use linux_perf_event_reader::Endianness;
use memchr::memmem;

use crate::import::cursor::Cursor;

/// A record's type: below 64 the kernel's, above perf's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind(pub u32);

impl Kind {
    pub const MMAP: Self = Self(1);
    pub const SAMPLE: Self = Self(9);
    pub const MMAP2: Self = Self(10);
    pub const SWITCH: Self = Self(14);
    pub const SWITCH_CPU_WIDE: Self = Self(15);
    pub const HEADER_ATTR: Self = Self(64);
    pub const TRACING_DATA: Self = Self(66);
    pub const HEADER_BUILD_ID: Self = Self(67);
    pub const FINISHED_ROUND: Self = Self(68);
    pub const AUXTRACE: Self = Self(71);
    pub const EVENT_UPDATE: Self = Self(78);
    pub const HEADER_FEATURE: Self = Self(80);
    pub const COMPRESSED: Self = Self(81);
    pub const COMPRESSED2: Self = Self(83);

    /// Whether the kernel wrote it.
    pub fn is_of_kernel(self) -> bool {
        self.0 < 64
    }
}

/// A record in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub kind: Kind,
    pub misc: u16,
    pub body: &'a [u8],
    /// Its start.
    pub offset: usize,
    /// Its end, the start of the next record.
    pub end: usize,
}

/// Why records from some position on cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    pub offset: usize,
    pub what: String,
}

pub(super) const HEADER_BYTES: usize = 8;

/// The records in a part of `bytes`, up to the first damaged one.
pub(super) fn scan(
    bytes: &[u8],
    range: Range<usize>,
    endian: Endianness,
) -> impl Iterator<Item = Result<Record<'_>, Damage>> {
    let mut next = Some(range.start);
    std::iter::from_fn(move || {
        let at = next.filter(|&at| at < range.end)?;
        let found = read(&bytes[..range.end], at, endian);
        next = found.as_ref().ok().map(|record| record.end);
        Some(found)
    })
}

fn read(bytes: &[u8], at: usize, endian: Endianness) -> Result<Record<'_>, Damage> {
    let damage = |what: &str| Damage { offset: at, what: what.to_owned() };
    let mut cursor = Cursor::new(&bytes[at..], endian);
    let header = cursor.u32().zip(cursor.u16()).zip(cursor.u16());
    let ((kind, misc), size) = header.ok_or_else(|| damage("the file ends within a record"))?;
    let size = usize::from(size);
    if size < HEADER_BYTES {
        return Err(damage("a record has an impossible size"));
    }
    let body = cursor.take(size - HEADER_BYTES).ok_or_else(|| damage("the file ends within a record"))?;
    let kind = Kind(kind);
    // These records announce bytes that follow outside their size.
    let mut announced = Cursor::new(body, endian);
    let behind = match kind {
        Kind::AUXTRACE => announced.u64(),
        Kind::TRACING_DATA => announced.u32().map(|size| u64::from(size).next_multiple_of(8)),
        _ => Some(0),
    };
    let end = behind
        .and_then(|behind| usize::try_from(behind).ok())
        .and_then(|behind| (at + size).checked_add(behind))
        .filter(|&end| end <= bytes.len())
        .ok_or_else(|| damage("the file ends within a record's data"))?;
    Ok(Record { kind, misc, body, offset: at, end })
}

/// The next end of a round after damage. perf writes one whenever it has emptied the rings; no other record looks like
/// it, and it restores the order of what follows.
pub(super) fn next_round(bytes: &[u8], range: Range<usize>, endian: Endianness) -> Option<usize> {
    let (kind, size) = (Kind::FINISHED_ROUND.0, HEADER_BYTES as u16);
    let header = match endian {
        Endianness::LittleEndian => [&kind.to_le_bytes()[..], &[0; 2], &size.to_le_bytes()].concat(),
        Endianness::BigEndian => [&kind.to_be_bytes()[..], &[0; 2], &size.to_be_bytes()].concat(),
    };
    memmem::find(bytes.get(range.clone())?, &header).map(|at| range.start + at)
}
