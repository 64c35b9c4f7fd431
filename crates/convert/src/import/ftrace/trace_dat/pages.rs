//! The events of a CPU: pages of the kernel's ring buffer (`kernel/trace/ring_buffer.c`).
//!
//! A page has the time of its first event, the length of its events, and the events. The header of an event has 5 bits of
//! kind and 27 bits of time since the event before.

use linux_perf_event_reader::Endianness;

use super::file::{Compression, PageLayout};
use crate::import::cursor::Cursor;

const PADDING: u32 = 29;
const TIME_EXTENSION: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;

/// Bits of the page's length that say that events before it were lost, and that their number follows the events.
const LOST: u32 = 1 << 31;
const LOST_COUNTED: u32 = 1 << 30;

/// The upper bits of a time stamp, which the event lacks: those of the page's time.
const UPPER: u64 = 0xf8 << 56;

/// Most bytes of a packed piece. trace-cmd packs some ten pages at a time.
const LARGEST_PIECE: u32 = 64 << 20;

/// Where the pages come from.
enum Source<'a> {
    /// As they are.
    Plain(&'a [u8]),
    /// In packed pieces.
    Packed { rest: Cursor<'a>, pieces: u32, compression: Compression, piece: Vec<u8>, at: usize },
}

/// The events of one CPU, in the order in which they were made.
pub struct Pages<'a> {
    source: Source<'a>,
    page_bytes: usize,
    layout: PageLayout,
    endian: Endianness,
    /// Length of the page in the source, and where its events end.
    page: usize,
    end: usize,
    at: usize,
    page_ns: u64,
    clock: u64,
    /// The event.
    event: std::ops::Range<usize>,
    /// Bytes of the source that were used.
    pub used: usize,
    losses: PageLosses,
}

/// What is lost of the events of a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageLosses {
    /// Events that the kernel lost, as far as it counted them.
    pub events: u64,
    /// Places where it lost events without a count.
    pub uncounted: u64,
    /// Places that cannot be read.
    pub damaged: u64,
    pub skipped_bytes: u64,
    pub first_damage: Option<&'static str>,
}

impl<'a> Pages<'a> {
    pub fn plain(bytes: &'a [u8], page_bytes: usize, layout: PageLayout, endian: Endianness) -> Self {
        Self::new(Source::Plain(bytes), page_bytes, layout, endian)
    }

    /// Pages in packed pieces: their number, then of each its size, its unpacked size, and its bytes.
    pub fn packed(
        bytes: &'a [u8],
        compression: Compression,
        page_bytes: usize,
        layout: PageLayout,
        endian: Endianness,
    ) -> Self {
        let mut rest = Cursor::new(bytes, endian);
        let pieces = rest.u32().unwrap_or(0);
        let source = Source::Packed { rest, pieces, compression, piece: Vec::new(), at: 0 };
        Self::new(source, page_bytes, layout, endian)
    }

    fn new(source: Source<'a>, page_bytes: usize, layout: PageLayout, endian: Endianness) -> Self {
        Self {
            source,
            page_bytes: page_bytes.max(64),
            layout,
            endian,
            page: 0,
            end: 0,
            at: 0,
            page_ns: 0,
            clock: 0,
            event: 0..0,
            used: 0,
            losses: PageLosses::default(),
        }
    }

    pub fn losses(&self) -> &PageLosses {
        &self.losses
    }

    /// The time of the event, in the clock of the trace.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The bytes of the event.
    pub fn event(&self) -> &[u8] {
        &self.rest_of_source()[self.event.clone()]
    }

    fn rest_of_source(&self) -> &[u8] {
        match &self.source {
            Source::Plain(bytes) => bytes,
            Source::Packed { piece, at, .. } => &piece[*at..],
        }
    }

    fn damage(&mut self, what: &'static str, bytes: usize) {
        self.losses.damaged += 1;
        self.losses.skipped_bytes += bytes as u64;
        self.losses.first_damage.get_or_insert(what);
    }

    /// Goes to the next event. Events were lost before it if it starts a page after a gap. `None` at the end.
    pub fn next(&mut self) -> Option<Gap> {
        let mut gap = Gap::None;
        loop {
            if self.at >= self.end {
                let next = self.next_page()?;
                gap = if next == Gap::Lost { Gap::Lost } else { gap };
                continue;
            }
            if self.next_in_page() {
                return Some(gap);
            }
        }
    }

    /// Whether there was an event.
    fn next_in_page(&mut self) -> bool {
        let word = |at: usize| {
            let bytes: [u8; 4] = self.rest_of_source().get(at..at + 4)?.try_into().ok()?;
            Some(match self.endian {
                Endianness::LittleEndian => u32::from_le_bytes(bytes),
                Endianness::BigEndian => u32::from_be_bytes(bytes),
            })
        };
        let (header, second) = (word(self.at), word(self.at + 4).filter(|_| self.at + 8 <= self.end));
        let Some(header) = header.filter(|_| self.at + 4 <= self.end) else { return self.leave_page() };
        let (kind, delta) = match self.endian {
            Endianness::LittleEndian => (header & 31, header >> 5),
            Endianness::BigEndian => (header >> DELTA_BITS, header & ((1 << DELTA_BITS) - 1)),
        };
        let delta = u64::from(delta);
        let (data, length) = match (kind, second) {
            (1..=28, _) => (self.at + 4, kind as usize * 4),
            (PADDING, _) if delta == 0 => {
                self.at = self.end;
                return false;
            }
            (TIME_EXTENSION | TIME_STAMP, Some(second)) => {
                let time = delta | u64::from(second) << DELTA_BITS;
                self.clock = match kind {
                    TIME_STAMP => time | (self.page_ns & UPPER),
                    _ => self.clock.wrapping_add(time),
                };
                self.at += 8;
                return false;
            }
            // An event that the kernel threw away.
            (PADDING, Some(length)) => {
                self.clock = self.clock.wrapping_add(delta);
                match self.at.checked_add(4).and_then(|at| at.checked_add(length as usize)).filter(|&at| at <= self.end)
                {
                    Some(at) => self.at = at,
                    None => return self.leave_page(),
                }
                return false;
            }
            (0, Some(length @ 4..)) => (self.at + 8, (length as usize - 4).next_multiple_of(4)),
            _ => return self.leave_page(),
        };
        let end = data.checked_add(length).filter(|&end| end <= self.end);
        let Some(end) = end else { return self.leave_page() };
        self.clock = self.clock.wrapping_add(delta);
        self.event = data..end;
        self.at = end;
        true
    }

    /// The rest of the page is damaged.
    fn leave_page(&mut self) -> bool {
        self.damage("an event is longer than its page", self.end.saturating_sub(self.at));
        self.at = self.end;
        false
    }

    /// Goes to the next page with events.
    fn next_page(&mut self) -> Option<Gap> {
        self.skip_page();
        self.fill()?;
        let left = self.rest_of_source();
        let page = left.len().min(self.page_bytes);
        let header = self.header(&left[..page]);
        self.page = page;
        let Some(PageHeader { time, flags, end, counted }) = header else {
            self.damage("a page ends within its header", page);
            (self.at, self.end) = (page, page);
            return Some(Gap::None);
        };
        let whole = page == self.page_bytes;
        (self.page_ns, self.clock) = (time, time);
        (self.at, self.end) = (self.layout.data_at.min(page), end);
        if end > page {
            let what = if whole { "a page is longer than it can be" } else { "the file ends within a page" };
            self.end = page;
            self.damage(what, end.min(self.page_bytes).saturating_sub(page));
            if whole {
                self.at = self.end;
            }
        }
        if flags & LOST == 0 {
            return Some(Gap::None);
        }
        match counted {
            Some(events) => self.losses.events = self.losses.events.saturating_add(events),
            None => self.losses.uncounted += 1,
        }
        Some(Gap::Lost)
    }

    fn header(&self, page: &[u8]) -> Option<PageHeader> {
        let long = |cursor: &mut Cursor<'_>| match self.layout.commit_bytes {
            4 => cursor.u32().map(u64::from),
            _ => cursor.u64(),
        };
        let mut cursor = Cursor::new(page, self.endian);
        let time = cursor.u64()?;
        // Flags are in the lower half; the upper one may repeat the sign.
        let flags = long(&mut cursor)? as u32;
        let end = self.layout.data_at + (flags & ((1 << DELTA_BITS) - 1)) as usize;
        let counted = page.get(end..).filter(|_| flags & LOST_COUNTED != 0);
        let counted = counted.and_then(|bytes| long(&mut Cursor::new(bytes, self.endian)));
        Some(PageHeader { time, flags, end, counted })
    }

    fn skip_page(&mut self) {
        let page = std::mem::take(&mut self.page);
        self.at = 0;
        self.end = 0;
        match &mut self.source {
            Source::Plain(bytes) => {
                *bytes = &bytes[page..];
                self.used += page;
            }
            Source::Packed { at, .. } => *at += page,
        }
    }

    /// Makes sure that there are bytes of another page. `None` at the end.
    fn fill(&mut self) -> Option<()> {
        loop {
            let Source::Packed { rest, pieces, compression, piece, at } = &mut self.source else {
                return (!self.rest_of_source().is_empty()).then_some(());
            };
            if *at < piece.len() {
                return Some(());
            }
            *pieces = pieces.checked_sub(1)?;
            let before = rest.bytes.len();
            let header = rest.u32().zip(rest.u32());
            let packed = header.and_then(|(packed, size)| Some((rest.take(packed as usize)?, size)));
            *at = 0;
            piece.clear();
            let Some((packed, size)) = packed else {
                let missing = rest.bytes.len();
                *pieces = 0;
                rest.bytes = &[];
                self.damage("the file ends within a packed piece", missing);
                return None;
            };
            self.used += before - rest.bytes.len();
            let unpacked = match size {
                0..=LARGEST_PIECE => compression.unpack(packed, size.into(), piece),
                _ => Err(String::new()),
            };
            if unpacked.is_err() {
                let skipped = packed.len();
                self.damage("a packed piece cannot be unpacked", skipped);
            }
        }
    }
}

/// The header of a page.
struct PageHeader {
    time: u64,
    flags: u32,
    /// Where its events end.
    end: usize,
    /// How many events were lost before it, where the kernel counted them.
    counted: Option<u64>,
}

/// Whether events were lost before an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    None,
    Lost,
}
