//! The records of a `perf.data` file, one after the other, and in the order of time.

use std::ops::Range;
use std::rc::Rc;

use linux_perf_event_reader::Endianness;

use super::cursor::Cursor;
use super::file::PerfFile;

/// A record's type: the kernel's below 64, perf's own above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind(pub u32);

impl Kind {
    pub const MMAP: Self = Self(1);
    pub const SAMPLE: Self = Self(9);
    pub const MMAP2: Self = Self(10);
    pub const HEADER_ATTR: Self = Self(64);
    pub const TRACING_DATA: Self = Self(66);
    pub const HEADER_BUILD_ID: Self = Self(67);
    pub const FINISHED_ROUND: Self = Self(68);
    pub const AUXTRACE: Self = Self(71);
    pub const EVENT_UPDATE: Self = Self(78);
    pub const HEADER_FEATURE: Self = Self(80);
    pub const COMPRESSED: Self = Self(81);
    pub const COMPRESSED2: Self = Self(83);

    fn is_of_kernel(self) -> bool {
        self.0 < 64
    }
}

/// A record as it lies in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub kind: Kind,
    pub misc: u16,
    pub body: &'a [u8],
    /// Where the record starts.
    pub offset: usize,
    /// Where the next one starts.
    pub end: usize,
}

/// Why the records from some place on cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    pub offset: usize,
    pub what: String,
}

const HEADER_BYTES: usize = 8;

/// The records in a part of `bytes`, up to the first that is damaged.
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
    // What these announce follows them, outside their size.
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

/// A record of the kernel, to be put in order.
struct Pending<'a> {
    time: u64,
    kind: Kind,
    misc: u16,
    attribute: usize,
    body: Body<'a>,
}

/// Where a record's bytes are.
enum Body<'a> {
    File(&'a [u8]),
    Unpacked(Rc<Vec<u8>>, Range<usize>),
}

/// A record of the kernel, in order.
pub(super) struct Ordered<'a> {
    pub kind: Kind,
    pub misc: u16,
    /// Index of the attribute that describes it.
    pub attribute: usize,
    pub body: &'a [u8],
}

/// What became of the records.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub records: u64,
    pub damage: Option<Damage>,
}

/// Gives the records of the kernel in the order of time.
///
/// Each processor's records are in order; among processors perf marks *rounds*: what comes after the end of a round is
/// later than everything before the end of the round before it (`tools/perf/util/ordered-events.c`). So two rounds are
/// held back, of records of the file as references only. `pause` is called now and then between records.
pub(super) fn in_order<'a>(
    bytes: &'a [u8],
    file: &PerfFile,
    mut take: impl FnMut(Ordered<'_>),
    mut pause: impl FnMut(usize),
) -> Outcome {
    let mut order = Order { file, pending: Vec::new(), latest: 0, before: 0, taken: 0 };
    let mut unpacking = None;
    let mut damage = None;
    for found in scan(bytes, file.records.clone(), file.endian) {
        let record = match found {
            Ok(record) => record,
            Err(found) => {
                damage = Some(found);
                break;
            }
        };
        match record.kind {
            Kind::FINISHED_ROUND => order.end_round(&mut take),
            Kind::COMPRESSED | Kind::COMPRESSED2 => {
                let unpacking = unpacking.get_or_insert_with(Unpacking::default);
                if let Err(what) = unpacking.add(&record, file.endian, |kind, misc, body| order.add(kind, misc, body)) {
                    damage = Some(Damage { offset: record.offset, what });
                    break;
                }
            }
            kind if kind.is_of_kernel() => order.add(kind, record.misc, Body::File(record.body)),
            _ => {}
        }
        pause(record.end);
    }
    order.latest = u64::MAX;
    order.end_round(&mut take);
    order.end_round(&mut take);
    Outcome { records: order.taken, damage }
}

struct Order<'f, 'a> {
    file: &'f PerfFile,
    pending: Vec<Pending<'a>>,
    /// The latest time seen.
    latest: u64,
    /// The latest time seen when the round before ended.
    before: u64,
    taken: u64,
}

impl<'a> Order<'_, 'a> {
    fn add(&mut self, kind: Kind, misc: u16, body: Body<'a>) {
        let slice = body.bytes();
        let attribute = self.file.attribute_of(kind, slice);
        // Records without a time were made up by perf for what was there before.
        let time = self.file.time_of(attribute, kind, slice).unwrap_or(0);
        self.latest = self.latest.max(time);
        self.pending.push(Pending { time, kind, misc, attribute, body });
    }

    fn end_round(&mut self, take: &mut impl FnMut(Ordered<'_>)) {
        // Equal times stay in the order of the file.
        self.pending.sort_by_key(|record| record.time);
        let ready = self.pending.partition_point(|record| record.time <= self.before);
        self.before = self.latest;
        self.taken += ready as u64;
        for record in self.pending.drain(..ready) {
            let Pending { kind, misc, attribute, body, .. } = record;
            take(Ordered { kind, misc, attribute, body: body.bytes() });
        }
    }
}

impl Body<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Body::File(bytes) => bytes,
            Body::Unpacked(chunk, range) => &chunk[range.clone()],
        }
    }
}

/// The records inside compressed ones: one zstd stream over all of them.
#[derive(Default)]
struct Unpacking {
    decoder: Option<zstd::stream::raw::Decoder<'static>>,
    /// The beginning of a record that goes on in the next piece.
    rest: Vec<u8>,
}

/// perf compresses what lies in a ring, piece by piece; no piece comes near this.
const MAX_UNPACKED_BYTES: usize = 256 << 20;

impl Unpacking {
    fn add<'a>(
        &mut self,
        record: &Record<'_>,
        endian: Endianness,
        mut found: impl FnMut(Kind, u16, Body<'a>),
    ) -> Result<(), String> {
        let packed = match record.kind {
            Kind::COMPRESSED => Some(record.body),
            _ => {
                let mut body = Cursor::new(record.body, endian);
                body.u64().and_then(|size| body.take(usize::try_from(size).ok()?))
            }
        };
        let packed = packed.ok_or("a compressed record is longer than it can be")?;
        let mut chunk = std::mem::take(&mut self.rest);
        self.unpack(packed, &mut chunk)?;
        let chunk = Rc::new(chunk);
        let mut end = 0;
        for record in scan(&chunk, 0..chunk.len(), endian).map_while(Result::ok) {
            end = record.end;
            if record.kind.is_of_kernel() {
                let body = record.offset + HEADER_BYTES..record.offset + HEADER_BYTES + record.body.len();
                found(record.kind, record.misc, Body::Unpacked(chunk.clone(), body));
            }
        }
        self.rest = chunk[end..].to_vec();
        if self.rest.len() > usize::from(u16::MAX) {
            return Err("a record inside a compressed one has an impossible size".to_owned());
        }
        Ok(())
    }

    fn unpack(&mut self, packed: &[u8], into: &mut Vec<u8>) -> Result<(), String> {
        use zstd::stream::raw::{InBuffer, Operation, OutBuffer};
        let error = |error: std::io::Error| format!("a compressed record cannot be unpacked: {error}");
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(zstd::stream::raw::Decoder::new().map_err(error)?),
        };
        let mut input = InBuffer::around(packed);
        loop {
            let start = into.len();
            if start > MAX_UNPACKED_BYTES {
                return Err("a compressed record unpacks to more than a ring can hold".to_owned());
            }
            into.resize(start + (128 << 10), 0);
            let mut output = OutBuffer::around_pos(into, start);
            decoder.run(&mut input, &mut output).map_err(error)?;
            let (end, room) = (output.pos(), start + (128 << 10));
            into.truncate(end);
            // Done when everything was read and the decoder had room to spare.
            if input.pos() == packed.len() && end < room {
                return Ok(());
            }
        }
    }
}
