//! One stream: its files, packets and events, through a window of bounded size (CTF 1.8.3, sections 5 and 6).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::decode::{Decoder, Item, Memory, Part, Stop, advanced};
use crate::error::Losses;
use crate::layout::Role;
use crate::schema::Schema;

/// Largest window: an event beyond it is not what a tracer writes.
const LARGEST_WINDOW: usize = 64 << 20;
const MAGIC: u64 = 0xc1fc_1fc1;

/// The bytes of a file of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Opened for each read: a trace can have more files than a process may open.
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

#[derive(Debug, Clone)]
pub(crate) struct StreamFile {
    pub name: String,
    pub content: Content,
    pub bytes: u64,
}

impl StreamFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.content {
            Content::File(path) => {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(at))?;
                let mut read = 0;
                while read < buffer.len() {
                    match file.read(&mut buffer[read..]) {
                        Ok(0) => break,
                        Ok(bytes) => read += bytes,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(read)
            }
            Content::Bytes(bytes) => {
                let rest = &bytes[(at as usize).min(bytes.len())..];
                let read = rest.len().min(buffer.len());
                buffer[..read].copy_from_slice(&rest[..read]);
                Ok(read)
            }
        }
    }
}

/// An event by scope.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts {
    /// The header's first bit in the packet: it is decoded once more if it is asked for.
    pub header: u64,
    pub stream_context: Part,
    pub event_context: Part,
    pub payload: Part,
}

/// The packet that is read.
#[derive(Debug, Default)]
struct Packet {
    /// Its first byte in the file.
    start: u64,
    /// Its first byte behind it in the file.
    file_end: u64,
    /// The end of its content, in bits from its start, as far as the file has it.
    content_end: u64,
    /// Whether the file has less than that.
    is_truncated: bool,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub schema: Arc<Schema>,
    files: Vec<StreamFile>,
    file: usize,
    chunk: usize,
    window: Vec<u8>,
    /// The first byte of the window in the file.
    window_at: u64,
    packet: Option<Packet>,
    /// The next packet's first byte.
    next_packet: u64,
    /// The next bit, from the packet's start.
    at: u64,
    memory: Memory,
    /// The class of the packet's stream.
    pub class: usize,
    discarded: Option<u64>,
    packet_number: Option<u64>,
    /// The packet's header and context: bytes, items, and where the header's items end.
    pub packet_bytes: Vec<u8>,
    pub packet_items: Vec<Item>,
    pub packet_header_end: usize,
    /// The event that was read last.
    pub items: Vec<Item>,
    pub parts: Parts,
    pub event: u32,
    time_ns: Option<i64>,
    /// The items of its header, once they are asked for.
    header_items: OnceLock<Vec<Item>>,
    /// The first byte of the packet, or of what the window has of it, in the window.
    view: usize,
}

/// What the first packet of a file says of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub class: usize,
    pub instance: Option<u64>,
    pub begin: u64,
}

/// The next bit with this alignment, which is a power of two.
#[inline]
fn aligned(bit: u64, align: u32) -> u64 {
    let mask = u64::from(align) - 1;
    (bit + mask) & !mask
}

impl Stream {
    pub fn new(schema: Arc<Schema>, files: Vec<StreamFile>, chunk: usize) -> Self {
        let registers = vec![0; schema.layouts.registers as usize];
        Self {
            schema,
            files,
            file: 0,
            chunk,
            window: Vec::new(),
            window_at: 0,
            packet: None,
            next_packet: 0,
            at: 0,
            memory: Memory { registers, ..Memory::default() },
            class: 0,
            discarded: None,
            packet_number: None,
            packet_bytes: Vec::new(),
            packet_items: Vec::new(),
            packet_header_end: 0,
            items: Vec::new(),
            parts: Parts::default(),
            event: 0,
            time_ns: None,
            header_items: OnceLock::new(),
            view: 0,
        }
    }

    /// The clock's value at the event, in cycles.
    pub fn cycles(&self) -> Option<u64> {
        self.schema.streams[self.class].clock.map(|_| self.memory.clock)
    }

    /// The time of the event, in ns since the clock's origin.
    pub fn time_ns(&self) -> Option<i64> {
        self.time_ns
    }

    /// The items of the event's header.
    pub fn header_items(&self) -> &[Item] {
        self.header_items.get_or_init(|| {
            let mut items = Vec::new();
            if let (Some(packet), Some(header)) = (&self.packet, self.schema.streams[self.class].header) {
                let (_, base) = self.view_of(packet.start);
                let bytes = self.event_bytes();
                let (mut memory, end) = (self.memory.clone(), base + bytes.len() as u64 * 8);
                let mut decoder = Decoder {
                    layouts: &self.schema.layouts,
                    bytes,
                    base,
                    at: self.parts.header,
                    end,
                    memory: &mut memory,
                    items: &mut items,
                    fields: 0,
                };
                let decoded = decoder.node::<true>(header);
                debug_assert!(decoded.is_ok(), "it was decoded before");
            }
            items
        })
    }

    /// The bytes that the event's items refer to.
    pub fn event_bytes(&self) -> &[u8] {
        &self.window[self.view..]
    }

    pub fn file_name(&self) -> &str {
        self.files.get(self.file).or(self.files.last()).map_or("", |file| &file.name)
    }

    /// What the first packet says; the stream is then at its first event.
    pub fn identity(&mut self, losses: &mut Losses) -> Option<Identity> {
        let is_there = self.begin_packet(losses);
        is_there.then(|| Identity {
            class: self.class,
            instance: self.memory.role(Role::StreamInstance),
            begin: self.memory.role(Role::TimeBegin).unwrap_or(0),
        })
    }

    /// Goes to the next event. False at the end.
    pub fn advance(&mut self, losses: &mut Losses) -> bool {
        if self.read_fixed_event() {
            return true;
        }
        loop {
            if self.packet.is_none() && !self.begin_packet(losses) {
                if self.file + 1 >= self.files.len() {
                    self.window = Vec::new();
                    return false;
                }
                self.file += 1;
                self.next_packet = 0;
                self.window.clear();
                self.window_at = 0;
                continue;
            }
            match self.decode_event() {
                Ok(true) => return true,
                Ok(false) => self.end_packet(),
                Err(Stop::Short) => {
                    if self.fill(losses) {
                        continue;
                    }
                    let truncated = self.packet.as_ref().is_some_and(|packet| packet.is_truncated);
                    let what = if truncated { "the file is truncated" } else { "a field goes beyond its packet" };
                    self.damage_event(losses, what);
                }
                Err(Stop::Malformed(what)) => self.damage_event(losses, what),
            }
        }
    }

    fn damage_event(&mut self, losses: &mut Losses, what: &str) {
        let Some(packet) = &self.packet else { return };
        let place = packet.start + self.at / 8;
        let bytes = (packet.content_end.saturating_sub(self.at)).div_ceil(8);
        let name = self.file_name();
        losses.add_damage(bytes, || format!("{name}, byte {place}: {what}"));
        self.end_packet();
    }

    fn end_packet(&mut self) {
        if let Some(packet) = self.packet.take() {
            self.next_packet = packet.file_end;
        }
    }

    /// Reads more of the packet into the window, from the current event on. False if there is no more.
    fn fill(&mut self, losses: &mut Losses) -> bool {
        let Some(packet) = &self.packet else { return false };
        let keep = packet.start + self.at / 8;
        let end = packet.start + packet.content_end.div_ceil(8);
        self.read_on(keep, end, losses)
    }

    /// Drops what is before `keep`, and reads on if the file has more before `end`.
    fn read_on(&mut self, keep: u64, end: u64, losses: &mut Losses) -> bool {
        let Some(file) = self.files.get(self.file) else { return false };
        let window_end = self.window_at + self.window.len() as u64;
        if keep < self.window_at || keep > window_end {
            self.window.clear();
            self.window_at = keep;
        } else {
            self.window.drain(..(keep - self.window_at) as usize);
            self.window_at = keep;
        }
        let window_end = self.window_at + self.window.len() as u64;
        if window_end >= end.min(file.bytes) || self.window.len() >= LARGEST_WINDOW {
            return false;
        }
        // Twice as much each time, so that a long event is not decoded too often. No more than the file has.
        let wanted = self.chunk.max(self.window.len()).min((file.bytes - window_end) as usize);
        let before = self.window.len();
        self.window.resize(before + wanted, 0);
        let read = match file.read_at(window_end, &mut self.window[before..]) {
            Ok(read) => read,
            Err(error) => {
                let name = &file.name;
                losses.add_damage(0, || format!("{name}, byte {window_end}: {error}"));
                0
            }
        };
        self.window.truncate(before + read);
        read > 0
    }

    /// The bytes of the packet in the window, as first byte in the window and first bit in the packet.
    fn view_of(&self, start: u64) -> (usize, u64) {
        if self.window_at <= start {
            (((start - self.window_at) as usize).min(self.window.len()), 0)
        } else {
            (0, (self.window_at - start) * 8)
        }
    }

    /// Reads the next packet's header and context. False at the end of the file, or if it cannot be read.
    fn begin_packet(&mut self, losses: &mut Losses) -> bool {
        if self.packet.is_some() {
            return true;
        }
        let start = self.next_packet;
        let Some(file_bytes) = self.files.get(self.file).map(|file| file.bytes) else { return false };
        if start >= file_bytes {
            return false;
        }
        loop {
            match self.decode_packet(start, file_bytes) {
                Ok(packet) => {
                    self.next_packet = packet.file_end;
                    self.packet = Some(packet);
                    self.count_lost(losses);
                    return true;
                }
                Err(Stop::Short) if self.read_on(start, file_bytes, losses) => {}
                Err(stop) => {
                    let what = match stop {
                        Stop::Short => "the file is truncated",
                        Stop::Malformed(what) => what,
                    };
                    let name = self.file_name();
                    losses.add_damage(file_bytes - start, || format!("{name}, byte {start}: {what}"));
                    self.next_packet = file_bytes;
                    return false;
                }
            }
        }
    }

    fn decode_packet(&mut self, start: u64, file_bytes: u64) -> Result<Packet, Stop> {
        let (view, base) = self.view_of(start);
        let schema = self.schema.clone();
        self.memory.forget_all();
        self.packet_items.clear();
        let bytes = &self.window[view..];
        let mut decoder = Decoder {
            layouts: &schema.layouts,
            bytes,
            base,
            at: 0,
            end: base + bytes.len() as u64 * 8,
            memory: &mut self.memory,
            items: &mut self.packet_items,
            fields: 0,
        };
        if let Some(header) = schema.packet_header {
            decoder.node::<true>(header)?;
        }
        let header_end = decoder.items.len();
        if decoder.memory.role(Role::Magic).is_some_and(|magic| magic != MAGIC) {
            return Err(Stop::Malformed("the packet has a wrong magic number"));
        }
        let id = decoder.memory.role(Role::StreamId);
        let class = match id {
            Some(id) => schema.streams.iter().position(|stream| stream.id == id),
            None => Some(0).filter(|_| schema.streams.len() == 1),
        };
        let class = class.ok_or(Stop::Malformed("the packet is of a stream that the metadata do not describe"))?;
        if schema.streams[class].defect.is_some() {
            return Err(Stop::Malformed("the metadata of the stream cannot be understood"));
        }
        if let Some(context) = schema.streams[class].packet_context {
            decoder.node::<true>(context)?;
        }
        let at = decoder.at;
        self.packet_bytes.clear();
        self.packet_bytes.extend_from_slice(&bytes[..(at.div_ceil(8) as usize).min(bytes.len())]);
        self.packet_header_end = header_end;
        self.class = class;
        self.at = at;
        let rest = (file_bytes - start).saturating_mul(8);
        let content = self.memory.role(Role::ContentSize);
        let packet = self.memory.role(Role::PacketSize).or(content).unwrap_or(rest);
        let content = content.unwrap_or(packet);
        if !packet.is_multiple_of(8) || packet < at || packet == 0 || content > packet {
            return Err(Stop::Malformed("the packet's sizes are not valid"));
        }
        if let Some(begin) = self.memory.role(Role::TimeBegin) {
            self.memory.clock = begin;
        }
        Ok(Packet {
            start,
            file_end: start.saturating_add(packet / 8),
            // A packet that a crash left open has no size of its content.
            content_end: content.max(at).min(rest),
            is_truncated: packet > rest,
        })
    }

    fn count_lost(&mut self, losses: &mut Losses) {
        let number = self.memory.role(Role::PacketNumber);
        if let (Some(before), Some(now)) = (self.packet_number, number) {
            let lost = now.saturating_sub(before).saturating_sub(1);
            losses.lost_packets = losses.lost_packets.saturating_add(lost);
        }
        let discarded = self.memory.role(Role::Discarded);
        let bits = u32::from(self.schema.streams[self.class].discarded_bits);
        let lost = match (self.discarded, discarded) {
            // The counter wraps.
            (Some(before), Some(now)) => now.wrapping_sub(before) & (u64::MAX >> (64 - bits)),
            // The counts before the first packet are of this trace only if it is the stream's first.
            (None, Some(now)) if number.unwrap_or(0) == 0 => now,
            _ => 0,
        };
        losses.discarded_events = losses.discarded_events.saturating_add(lost);
        self.discarded = discarded.or(self.discarded);
        self.packet_number = number.or(self.packet_number);
    }

    /// Reads the event at `at`, if it has a short header, fixed places, and is whole in the window. Else nothing changes.
    #[inline]
    fn read_fixed_event(&mut self) -> bool {
        let Some(packet) = &self.packet else { return false };
        let (view, base) = self.view_of(packet.start);
        let class = &self.schema.streams[self.class];
        let Some(short) = &class.short_header else { return false };
        let header = aligned(self.at, class.header_align);
        if header >= packet.content_end {
            return false;
        }
        let bytes = &self.window[view..];
        let end = packet.content_end.min(base + bytes.len() as u64 * 8);
        let first = (header - base) as usize / 8;
        let Some(word) = bytes.get(first..).and_then(|bytes| bytes.first_chunk()) else { return false };
        let word = u64::from_le_bytes(*word);
        let Some(form) = short.form(word) else { return false };
        let id = form.id.map_or_else(|| class.events.first().map_or(0, |event| event.0), |id| id.of(word));
        let Some(event) = class.event(id) else { return false };
        let kind = &self.schema.events[event as usize];
        let Some(fixed) = &kind.fixed else { return false };
        let start = aligned(header + u64::from(form.bits), fixed.align);
        let at = start + u64::from(fixed.bits);
        if at > end || at == self.at {
            return false;
        }
        if let Some(time) = form.time {
            self.memory.clock = advanced(self.memory.clock, time.of(word), time.count);
        }
        let part = |node: Option<_>, place: u32| Part { node, bit: (start - base) as u32 + place, items: (0, 0) };
        let [of_stream, of_event, payload] = fixed.parts;
        self.parts = Parts {
            header,
            stream_context: part(class.event_context, of_stream),
            event_context: part(kind.context, of_event),
            payload: part(kind.payload, payload),
        };
        (self.event, self.at, self.view) = (event, at, view);
        self.settle();
        true
    }

    /// The event that was read is the current one.
    #[inline]
    fn settle(&mut self) {
        if self.header_items.get().is_some() {
            self.header_items = OnceLock::new();
        }
        let clock = self.schema.streams[self.class].clock.map(|clock| &self.schema.clocks[clock as usize]);
        self.time_ns = clock.map(|clock| clock.ns(self.memory.clock));
    }

    /// Decodes the event at `at`. False at the end of the packet.
    fn decode_event(&mut self) -> Result<bool, Stop> {
        let Some(packet) = &self.packet else { return Ok(false) };
        if self.at >= packet.content_end {
            return Ok(false);
        }
        let (view, base) = self.view_of(packet.start);
        let schema = &*self.schema;
        let class = &schema.streams[self.class];
        let bytes = &self.window[view..];
        let clock = self.memory.clock;
        self.items.clear();
        self.memory.forget(Role::EventId);
        let mut decoder = Decoder {
            layouts: &schema.layouts,
            bytes,
            base,
            at: self.at,
            end: packet.content_end.min(base + bytes.len() as u64 * 8),
            memory: &mut self.memory,
            items: &mut self.items,
            fields: 0,
        };
        let mut decode = || {
            if class.header.is_some() {
                // Padding behind the last event is no event.
                decoder.align(class.header_align)?;
                if decoder.at >= packet.content_end {
                    return Ok(None);
                }
            }
            let header = decoder.at;
            match (&class.header_plan, class.header) {
                (Some(plan), _) => decoder.run(plan)?,
                (None, Some(header)) => decoder.node::<false>(header)?,
                (None, None) => {}
            }
            let id = match decoder.memory.role(Role::EventId) {
                Some(id) => id,
                None => class.events.first().map_or(0, |event| event.0),
            };
            let event =
                class.event(id).ok_or(Stop::Malformed("an event has an id that the metadata do not describe"))?;
            let kind = &schema.events[event as usize];
            if kind.defect.is_some() {
                return Err(Stop::Malformed("the metadata of an event cannot be understood"));
            }
            let stream_context = decoder.part(class.event_context)?;
            let event_context = decoder.part(kind.context)?;
            let payload = decoder.part(kind.payload)?;
            Ok(Some((event, decoder.at, Parts { header, stream_context, event_context, payload })))
        };
        match decode() {
            Ok(None) => Ok(false),
            Ok(Some((_, at, _))) if at == self.at => Err(Stop::Malformed("an event has no bits")),
            Ok(Some((event, at, parts))) => {
                (self.event, self.at, self.parts, self.view) = (event, at, parts, view);
                self.settle();
                Ok(true)
            }
            Err(stop) => {
                self.memory.clock = clock;
                Err(stop)
            }
        }
    }
}
