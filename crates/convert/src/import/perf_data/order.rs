//! Orders the kernel's records of a `perf.data` file by time.
//!
//! The records of each CPU are in order. Across CPUs perf marks *rounds*: records after the end of a round are later
//! than all records before the end of the previous round (`tools/perf/util/ordered-events.c`). So two rounds are held
//! back, as references into the file where it is not compressed.

use std::ops::Range;
use std::rc::Rc;
use std::vec::IntoIter;

use stepscope_assemble::Switches;

use super::file::PerfFile;
use super::record::{self, Damage, Kind, Record};
use super::unpack::Unpacking;
use crate::import::content::Content;

/// Limit of unpacked bytes that wait for the end of their round. perf ends a round whenever it has emptied the rings,
/// so only a damaged file reaches the limit, and its records may stay unordered.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// A kernel record.
pub(super) struct Ordered<'a> {
    pub kind: Kind,
    pub misc: u16,
    /// Index of its attribute.
    pub attribute: usize,
    pub body: &'a [u8],
}

/// Losses and findings while reading.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Number of unreadable parts.
    pub damages: u64,
    /// The first of them.
    pub first: Option<Damage>,
    /// Skipped bytes.
    pub lost_bytes: u64,
    /// The latest time of a record.
    pub latest_ns: Option<u64>,
    /// Whether hardware traces (Intel PT, Arm SPE) were skipped.
    pub has_traces: bool,
}

struct Pending<'a> {
    time: u64,
    kind: Kind,
    misc: u16,
    attribute: usize,
    body: Body<'a>,
}

/// A record's bytes.
enum Body<'a> {
    File(&'a [u8]),
    Unpacked(Rc<Vec<u8>>, Range<usize>),
}

impl Body<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Body::File(bytes) => bytes,
            Body::Unpacked(chunk, range) => &chunk[range.clone()],
        }
    }
}

/// Yields the records of a file in order.
pub(super) struct InOrder<'a> {
    content: &'a Content<'a>,
    file: &'a PerfFile,
    /// Position of the next read.
    position: usize,
    unpacking: Option<Unpacking>,
    pending: Vec<Pending<'a>>,
    /// Unpacked bytes among the pending records.
    waiting_bytes: usize,
    ready: IntoIter<Pending<'a>>,
    current: Option<Pending<'a>>,
    /// The latest time at the end of the round before the last.
    before: u64,
    latest: u64,
    ended: bool,
    outcome: Outcome,
}

impl<'a> InOrder<'a> {
    /// Starts at the file's first record.
    pub fn new(content: &'a Content<'a>, file: &'a PerfFile) -> Self {
        Self {
            content,
            file,
            position: file.records.start,
            unpacking: None,
            pending: Vec::new(),
            waiting_bytes: 0,
            ready: Vec::new().into_iter(),
            current: None,
            before: 0,
            latest: 0,
            ended: false,
            outcome: Outcome::default(),
        }
    }

    /// Time of the first record that has one. perf's own records of earlier state come first, with no time or zero.
    ///
    /// Where switches are recorded, it is the first sample or switch. perf enables its events some time after it opened
    /// them, and its own threads leave records in between; what ran then is not known.
    pub fn start(&mut self, switches: Switches) -> Option<u64> {
        const ENABLED: [Kind; 3] = [Kind::SAMPLE, Kind::SWITCH, Kind::SWITCH_CPU_WIDE];
        let counts = |record: &Pending<'_>| switches == Switches::Unrecorded || ENABLED.contains(&record.kind);
        loop {
            let waiting = self.ready.as_slice().iter().chain(&self.pending).filter(|record| record.time != 0);
            let first = waiting.clone().filter(|record| counts(record)).map(|record| record.time).min();
            let any = waiting.map(|record| record.time).min();
            if first.is_some() || !self.read_round() {
                return first.or(any);
            }
        }
    }

    /// The next record.
    pub fn next(&mut self) -> Option<Ordered<'_>> {
        while self.ready.len() == 0 {
            if self.ended {
                return None;
            }
            self.read_round();
        }
        let record = self.current.insert(self.ready.next()?);
        let body = record.body.bytes();
        self.content.touch(body.len());
        Some(Ordered { kind: record.kind, misc: record.misc, attribute: record.attribute, body })
    }

    /// The losses, after the last record.
    pub fn outcome(self) -> Outcome {
        Outcome { latest_ns: Some(self.latest).filter(|&time| time != 0), ..self.outcome }
    }

    /// Reads up to the end of a round and adds ready records. Returns whether there was a round.
    fn read_round(&mut self) -> bool {
        if self.ended {
            return false;
        }
        let (content, file) = (self.content, self.file);
        let bytes = content.bytes();
        for found in record::scan(bytes, self.position..file.records.end, file.endian) {
            let record = match found {
                Ok(record) => record,
                Err(damage) => {
                    self.pass_over(damage);
                    return true;
                }
            };
            self.position = record.end;
            content.touch(record.end - record.offset);
            if !self.take(&record) || self.waiting_bytes > MAX_WAITING_BYTES {
                content.progress(record.end);
                self.end_round();
                return true;
            }
        }
        self.end();
        true
    }

    /// Adds a record of the file; returns whether the round continues.
    fn take(&mut self, record: &Record<'a>) -> bool {
        match record.kind {
            Kind::FINISHED_ROUND => return false,
            Kind::COMPRESSED | Kind::COMPRESSED2 => {
                if let Err(what) = self.unpack(record) {
                    // Later records refer to the part that could not be unpacked.
                    self.note(Damage { offset: record.offset, what });
                    self.outcome.lost_bytes += (self.file.records.end - record.offset) as u64;
                    self.position = self.file.records.end;
                    return false;
                }
            }
            Kind::AUXTRACE => self.outcome.has_traces = true,
            kind if kind.is_of_kernel() => self.add(kind, record.misc, Body::File(record.body)),
            _ => {}
        }
        true
    }

    fn unpack(&mut self, record: &Record<'a>) -> Result<(), String> {
        let unpacking = match &mut self.unpacking {
            Some(unpacking) => unpacking,
            none => none.insert(Unpacking::new()?),
        };
        let (bytes, packed) = unpacking.unpack(record, self.file.endian)?;
        let bytes = Rc::new(bytes);
        self.waiting_bytes += bytes.len();
        for record in packed {
            self.add(record.kind, record.misc, Body::Unpacked(bytes.clone(), record.body));
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind, misc: u16, body: Body<'a>) {
        let slice = body.bytes();
        let attribute = self.file.attribute_of(kind, slice);
        let time = self.file.time_of(attribute, kind, slice).unwrap_or(0);
        self.latest = self.latest.max(time);
        self.pending.push(Pending { time, kind, misc, attribute, body });
    }

    fn note(&mut self, damage: Damage) {
        self.outcome.damages += 1;
        self.outcome.first.get_or_insert(damage);
    }

    /// Continues after damage, if a later round exists.
    fn pass_over(&mut self, damage: Damage) {
        let (end, from) = (self.file.records.end, damage.offset);
        let next = record::next_round(self.content.bytes(), (from + 1).min(end)..end, self.file.endian);
        self.note(damage);
        self.outcome.lost_bytes += (next.unwrap_or(end) - from) as u64;
        match next {
            Some(next) => self.position = next,
            None => self.end(),
        }
    }

    fn end_round(&mut self) {
        // Equal times keep the order of the file.
        self.pending.sort_by_key(|record| record.time);
        let ready = self.pending.partition_point(|record| record.time <= self.before);
        self.before = self.latest;
        let later = self.pending.split_off(ready);
        let mut before: Vec<_> = std::mem::take(&mut self.ready).collect();
        before.append(&mut self.pending);
        self.pending = later;
        self.ready = before.into_iter();
        let waits = |record: &Pending<'_>| match &record.body {
            Body::File(_) => 0,
            Body::Unpacked(_, range) => range.len(),
        };
        self.waiting_bytes = self.pending.iter().map(waits).sum();
    }

    fn end(&mut self) {
        self.content.progress(self.file.records.end);
        self.ended = true;
        self.before = u64::MAX;
        self.end_round();
    }
}
