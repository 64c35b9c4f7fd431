//! The layout of a `perf.data` file, in both its forms.
//!
//! `perf record` writes a file with a header, a section of attributes of the events, a section of records, and
//! *features*: facts about machine and recording. To a pipe it writes records only; attributes and features are records
//! too. See `tools/perf/Documentation/perf.data-file-format.txt` and `tools/perf/util/header.c` in the kernel's
//! sources.
//!
//! (`linux-perf-data` reads both forms, but allocates by unchecked lengths, rejects truncated files, and copies every
//! record. Its companion `linux-perf-event-reader` reads the attributes.)

use std::ops::Range;

use linux_perf_event_reader::{
    AttrFlags, ClockId, Endianness, PerfClock, PerfEventAttr, RecordParseInfo, SampleFormat, SamplingPolicy,
};
use rustc_hash::FxHashMap;

use super::features::Features;
use super::record::{self, Kind};
use crate::import::content::Content;
use crate::import::cursor::{self, Cursor};

/// A file's description, without its records.
pub(super) struct PerfFile {
    pub endian: Endianness,
    pub attributes: Vec<Attribute>,
    pub features: Features,
    /// Byte range of the records.
    pub records: Range<usize>,
    /// What the end of the file lacks.
    pub missing: Missing,
    attribute_of_id: FxHashMap<u64, usize>,
}

/// Missing part at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing.
    Nothing,
    /// The end of the records is unknown: `perf record` was killed.
    End,
    /// Bytes of records that the header promises beyond the end of the file.
    Bytes(u64),
    /// A part of the description behind the records.
    Description,
}

/// A recorded event.
pub(super) struct Attribute {
    pub name: Option<String>,
    /// `perf_event_attr.type`
    pub kind: u32,
    /// `perf_event_attr.config`
    pub config: u64,
    pub flags: AttrFlags,
    pub parse_info: RecordParseInfo,
    /// Period of samples that do not state it; `None` if it varies.
    pub period: Option<u64>,
    pub copies_stack: bool,
    /// Name of the clock, if one was requested.
    pub clock: Option<&'static str>,
    ids: Vec<u64>,
}

/// Whether the first bytes are those of `perf.data`.
pub(super) fn is_perf_data(head: &[u8]) -> bool {
    endian_of(head).is_some()
}

fn endian_of(bytes: &[u8]) -> Option<Endianness> {
    match bytes.get(..8)? {
        b"PERFILE2" => Some(Endianness::LittleEndian),
        b"2ELIFREP" => Some(Endianness::BigEndian),
        _ => None,
    }
}

const PIPE_HEADER_BYTES: u64 = 16;
const SECTION_BYTES: usize = 16;

impl PerfFile {
    /// Reads a file's description.
    ///
    /// # Errors
    /// What is wrong, as a predicate after "the file".
    pub fn parse(content: &Content<'_>) -> Result<Self, String> {
        let bytes = content.bytes();
        let endian = endian_of(bytes).ok_or("does not begin with PERFILE2")?;
        let mut cursor = Cursor::new(&bytes[8..], endian);
        let size = cursor.u64().ok_or("ends within its header")?;
        let mut file = match size {
            PIPE_HEADER_BYTES => Self::of_pipe(content, endian),
            _ => Self::of_file(bytes, cursor).ok_or("has a damaged header")?,
        };
        if file.attributes.is_empty() {
            return Err("has no readable event".to_owned());
        }
        file.take_names();
        file.index_ids();
        Ok(file)
    }

    fn empty(endian: Endianness, records: Range<usize>) -> Self {
        Self {
            endian,
            attributes: Vec::new(),
            features: Features::default(),
            records,
            missing: Missing::Nothing,
            attribute_of_id: FxHashMap::default(),
        }
    }

    fn of_file(bytes: &[u8], mut header: Cursor<'_>) -> Option<Self> {
        let endian = header.endian;
        let attribute_size = header.u64()?;
        let attributes = header.section()?;
        let data = header.section()?;
        let _event_types = header.section()?;
        let features: Vec<u64> = (0..4).map_while(|_| header.u64()).collect();

        let start = usize::try_from(data.start).ok().filter(|&start| start <= bytes.len()).unwrap_or(bytes.len());
        let end = usize::try_from(data.end).unwrap_or(usize::MAX);
        let mut file = Self::empty(endian, start..end.clamp(start, bytes.len()));
        if data.start == data.end {
            file.records.end = bytes.len();
            file.missing = Missing::End;
        } else if data.end > bytes.len() as u64 {
            file.missing = Missing::Bytes(data.end - bytes.len() as u64);
        }
        if let Some(entries) = slice(bytes, &attributes) {
            file.read_attributes(bytes, entries, usize::try_from(attribute_size).ok()?);
        }
        if file.missing == Missing::Nothing {
            file.read_features(bytes, end, &features);
        }
        Some(file)
    }

    fn read_attributes(&mut self, bytes: &[u8], entries: &[u8], size: usize) {
        let Some(attribute_size) = size.checked_sub(SECTION_BYTES).filter(|&size| size > 0) else { return };
        for entry in entries.chunks_exact(size) {
            let (attribute, ids) = entry.split_at(attribute_size);
            let ids = Cursor::new(ids, self.endian).section().and_then(|section| slice(bytes, &section));
            let ids = Cursor::new(ids.unwrap_or_default(), self.endian).u64s();
            self.attributes.extend(Attribute::parse(attribute, self.endian, ids));
        }
    }

    /// The sections of features are listed after the records, in the order of their bits.
    fn read_features(&mut self, bytes: &[u8], list: usize, bits: &[u64]) {
        let mut list = Cursor::new(bytes.get(list..).unwrap_or_default(), self.endian);
        for number in (0..256).filter(|number| bits.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1))
        {
            let section = list.section();
            match section.as_ref().and_then(|section| slice(bytes, section)) {
                Some(content) => self.features.add(number as u64, Cursor::new(content, self.endian)),
                None => self.missing = Missing::Description,
            }
        }
    }

    fn of_pipe(content: &Content<'_>, endian: Endianness) -> Self {
        let bytes = content.bytes();
        let mut file = Self::empty(endian, PIPE_HEADER_BYTES as usize..bytes.len());
        let mut updates = Vec::new();
        for record in record::scan(bytes, file.records.clone(), endian).map_while(Result::ok) {
            content.touch(record.end - record.offset);
            let mut body = Cursor::new(record.body, endian);
            match record.kind {
                Kind::HEADER_ATTR => file.attributes.extend(Attribute::of_record(body)),
                Kind::HEADER_FEATURE => {
                    if let Some(number) = body.u64() {
                        file.features.add(number, body);
                    }
                }
                Kind::HEADER_BUILD_ID => file.features.add_build_id(record.misc, body),
                Kind::EVENT_UPDATE => updates.extend(name_update(body)),
                _ => {}
            }
        }
        for (id, name) in updates {
            if let Some(attribute) = file.attributes.iter_mut().find(|attribute| attribute.ids.contains(&id)) {
                attribute.name = Some(name);
            }
        }
        file
    }

    /// Names from the list of events, by id.
    fn take_names(&mut self) {
        let described = std::mem::take(&mut self.features.events);
        let ordered = described.len() == self.attributes.len();
        for (index, attribute) in self.attributes.iter_mut().enumerate() {
            let by_id = described.iter().find(|event| event.ids.iter().any(|id| attribute.ids.contains(id)));
            let named = by_id.or_else(|| described.get(index).filter(|_| ordered));
            attribute.name = attribute.name.take().or_else(|| named.map(|event| event.name.clone()));
        }
    }

    fn index_ids(&mut self) {
        for (index, attribute) in self.attributes.iter().enumerate() {
            self.attribute_of_id.extend(attribute.ids.iter().map(|&id| (id, index)));
        }
    }

    /// Index of the attribute that describes a kernel record.
    pub fn attribute_of(&self, kind: Kind, body: &[u8]) -> usize {
        let [first, .., _] = self.attributes.as_slice() else { return 0 };
        let id = self.id_of(first, kind, body);
        id.and_then(|id| self.attribute_of_id.get(&id).copied()).unwrap_or(0)
    }

    /// The event id of a record, at the position common to all events.
    fn id_of(&self, first: &Attribute, kind: Kind, body: &[u8]) -> Option<u64> {
        let identified = |attribute: &Attribute| attribute.parse_info.sample_format.contains(SampleFormat::IDENTIFIER);
        let at = if self.attributes.iter().all(identified) {
            match kind {
                Kind::SAMPLE => Some(0),
                _ => body.len().checked_sub(8).filter(|_| first.flags.contains(AttrFlags::SAMPLE_ID_ALL)),
            }
        } else {
            let places = first.parse_info.id_parse_info;
            match kind {
                Kind::SAMPLE => places.sample_record_id_offset_from_start.map(usize::from),
                _ => places.nonsample_record_id_offset_from_end.and_then(|back| body.len().checked_sub(back.into())),
            }
        };
        Cursor::new(body.get(at?..)?, self.endian).u64()
    }

    /// Time of a kernel record.
    pub fn time_of(&self, attribute: usize, kind: Kind, body: &[u8]) -> Option<u64> {
        let info = &self.attributes[attribute].parse_info;
        let at = match kind {
            Kind::SAMPLE => info.sample_record_time_offset_from_start.map(usize::from),
            _ => info.nonsample_record_time_offset_from_end.and_then(|back| body.len().checked_sub(back.into())),
        };
        Cursor::new(body.get(at?..)?, self.endian).u64()
    }
}

impl Cursor<'_> {
    /// Offset and size as a range.
    fn section(&mut self) -> Option<Range<u64>> {
        let start = self.u64()?;
        Some(start..start.checked_add(self.u64()?)?)
    }
}

fn slice<'a>(bytes: &'a [u8], section: &Range<u64>) -> Option<&'a [u8]> {
    bytes.get(usize::try_from(section.start).ok()?..usize::try_from(section.end).ok()?)
}

/// `{ u64 type; u64 id; ... }`; type 2 is a name.
fn name_update(mut body: Cursor<'_>) -> Option<(u64, String)> {
    const NAME: u64 = 2;
    let (what, id) = (body.u64()?, body.u64()?);
    (what == NAME).then(|| (id, cursor::until_zero(body.bytes)))
}

impl Attribute {
    /// An attribute, then ids of the event's instances to the end of the record.
    fn of_record(body: Cursor<'_>) -> Option<Self> {
        let mut peek = body;
        let (_, size) = (peek.u32()?, peek.u32()?);
        let (attribute, ids) = body.bytes.split_at_checked(usize::try_from(size).ok()?)?;
        Self::parse(attribute, body.endian, Cursor::new(ids, body.endian).u64s())
    }

    fn parse(bytes: &[u8], endian: Endianness, ids: Vec<u64>) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, endian);
        let (kind, size, config) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
        // The measured event does not affect the layout of records, and the parser rejects unknown ones.
        let mut plain = bytes.to_vec();
        let (software, cpu_clock) = match endian {
            Endianness::LittleEndian => (1_u32.to_le_bytes(), 0_u64.to_le_bytes()),
            Endianness::BigEndian => (1_u32.to_be_bytes(), 0_u64.to_be_bytes()),
        };
        plain[..4].copy_from_slice(&software);
        plain[8..16].copy_from_slice(&cpu_clock);
        // A later perf may have longer attributes than the file's header says, never shorter ones.
        plain.resize(plain.len().max(usize::try_from(size).ok().filter(|&size| size <= 4096)?), 0);
        let (attr, _) = match endian {
            Endianness::LittleEndian => PerfEventAttr::parse::<_, byteorder::LittleEndian>(&plain[..]),
            Endianness::BigEndian => PerfEventAttr::parse::<_, byteorder::BigEndian>(&plain[..]),
        }
        .ok()?;
        Some(Self {
            name: None,
            kind,
            config,
            flags: attr.flags,
            parse_info: RecordParseInfo::new(&attr, endian),
            period: match attr.sampling_policy {
                SamplingPolicy::Period(period) => Some(period.get()),
                _ => None,
            },
            copies_stack: attr.sample_format.contains(SampleFormat::STACK_USER | SampleFormat::REGS_USER),
            clock: match attr.clock {
                PerfClock::ClockId(id) => Some(clock_name(id)),
                PerfClock::Default => None,
            },
            ids,
        })
    }
}

fn clock_name(id: ClockId) -> &'static str {
    match id {
        ClockId::Realtime => "CLOCK_REALTIME",
        ClockId::Monotonic => "CLOCK_MONOTONIC",
        ClockId::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
        ClockId::Boottime => "CLOCK_BOOTTIME",
        _ => "another clock",
    }
}
