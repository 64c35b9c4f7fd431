//! The layout of a `trace.dat` file, versions 6 and 7 (`trace-cmd.dat.v6(5)`, `trace-cmd.dat.v7(5)`).
//!
//! Version 6 has its parts in a fixed order. Version 7 has sections, which options refer to by offset, and which may be
//! compressed.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use linux_perf_event_reader::Endianness;

use crate::import::cursor::{Cursor, until_zero};
use crate::import::ftrace::format::Class;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Most bytes of a section after unpacking. The largest, the names of the kernel's functions, has some 10 MB.
const LARGEST_SECTION: u64 = 256 << 20;

/// Bytes before the content of a section.
pub const SECTION_HEAD: u64 = 16;

/// Most options. A file with more refers to itself.
const MOST_OPTIONS: usize = 1 << 16;

/// A file's description, without its events.
pub struct File<'a> {
    pub endian: Endianness,
    pub compression: Compression,
    pub page: PageLayout,
    pub classes: Vec<Class>,
    pub kallsyms: Cow<'a, [u8]>,
    /// Lines of `TID NAME`.
    pub command_names: Cow<'a, [u8]>,
    pub buffers: Vec<Buffer>,
    pub clock: Option<String>,
    /// The answer of `uname(1)`.
    pub machine: Option<String>,
    pub cpus: u32,
    /// Added to all times.
    pub offset: i64,
    pub counter: Option<CounterClock>,
    /// Events that the kernel overwrote or dropped, by its own count.
    pub lost: u64,
    /// What is wrong with the description.
    pub damage: Vec<String>,
    /// Bytes of a page of version 7.
    pub page_bytes: usize,
    /// Where version 7 goes on behind the last options that are left.
    pub behind_options: Option<u64>,
    /// The text of the kernel that stands in place of events.
    pub latency: Option<Range<usize>>,
}

/// How version 7 packs its sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Zlib,
    Zstd,
    /// One that is not known.
    Other,
}

/// The events of one instance of the tracer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    pub page_bytes: usize,
    pub clock: Option<String>,
    pub is_packed: bool,
    pub cpus: Vec<CpuData>,
}

/// Where the events of a CPU lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuData {
    pub cpu: u32,
    pub offset: u64,
    pub size: u64,
}

/// The header of a page of the ring buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Bytes of the length of the page's events.
    pub commit_bytes: usize,
    /// Where the events start.
    pub data_at: usize,
}

/// How a CPU's counter becomes nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterClock {
    multiplier: u32,
    shift: u32,
    offset: u64,
}

impl CounterClock {
    pub fn ns(self, counter: u64) -> u64 {
        let ns = (u128::from(counter) * u128::from(self.multiplier)) >> self.shift.min(127);
        (ns as u64).wrapping_sub(self.offset)
    }
}

/// Whether these are the first bytes of a file.
pub fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

impl Compression {
    fn of(name: &str) -> Self {
        match name {
            "none" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => Compression::Other,
        }
    }

    /// The unpacked bytes, at most as many as announced.
    pub fn unpack(self, packed: &[u8], size: u64, into: &mut Vec<u8>) -> Result<(), String> {
        into.clear();
        let unpacked = match self {
            Compression::None => packed.take(size).read_to_end(into),
            Compression::Zlib => flate2::read::ZlibDecoder::new(packed).take(size).read_to_end(into),
            Compression::Zstd => zstd::stream::read::Decoder::with_buffer(packed)
                .and_then(|decoder| decoder.take(size).read_to_end(into)),
            Compression::Other => return Err("its compression is unknown".to_owned()),
        };
        match unpacked {
            Ok(unpacked) if unpacked as u64 == size => Ok(()),
            Ok(_) => Err("it unpacks to less than announced".to_owned()),
            Err(error) => Err(format!("it cannot be unpacked ({error})")),
        }
    }
}

impl<'a> File<'a> {
    /// Reads the description.
    ///
    /// # Errors
    /// What is wrong, as a predicate after "the file".
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("does not begin as a file of trace-cmd does")?;
        let mut cursor = Cursor::new(rest, Endianness::LittleEndian);
        let short = || "ends within its header".to_owned();
        let version: u32 = zero_ended(&mut cursor).and_then(|text| text.parse().ok()).ok_or_else(short)?;
        if !(6..=7).contains(&version) {
            return Err(format!(
                "has version {version}, of which only 6 and 7 are known; `trace-cmd convert` writes these"
            ));
        }
        if cursor.take(1).ok_or_else(short)? != [0] {
            cursor.endian = Endianness::BigEndian;
        }
        let _long_bytes = cursor.take(1).ok_or_else(short)?;
        let page_bytes = cursor.u32().ok_or_else(short)? as usize;
        let mut file = File {
            endian: cursor.endian,

            compression: Compression::None,
            page: PageLayout { commit_bytes: 8, data_at: 16 },
            classes: Vec::new(),
            kallsyms: Cow::default(),
            command_names: Cow::default(),
            buffers: Vec::new(),
            clock: None,
            machine: None,
            cpus: 0,
            offset: 0,
            counter: None,
            lost: 0,
            damage: Vec::new(),
            page_bytes: 0,
            behind_options: None,
            latency: None,
        };
        match version {
            6 => {
                if file.read_version_6(bytes, cursor, page_bytes).is_none() {
                    file.damage.push("the file ends within its description".to_owned());
                }
            }
            _ => {
                let name = zero_ended(&mut cursor).ok_or_else(short)?;
                let _version = zero_ended(&mut cursor).ok_or_else(short)?;
                file.compression = Compression::of(&name);
                let options = cursor.u64().ok_or_else(short)?;
                file.page_bytes = page_bytes;
                file.read_version_7(bytes, options);
            }
        }
        Ok(file)
    }

    fn read_version_6(&mut self, bytes: &'a [u8], mut cursor: Cursor<'a>, page_bytes: usize) -> Option<()> {
        self.read_page_layout(&mut cursor)?;
        self.read_ftrace_events(&mut cursor)?;
        self.read_events(&mut cursor)?;
        self.kallsyms = Cow::Borrowed(sized(&mut cursor)?);
        let _printk = sized(&mut cursor)?;
        let names = cursor.u64()?;
        self.command_names = Cow::Borrowed(cursor.take(usize::try_from(names).ok()?)?);
        self.cpus = cursor.u32()?;
        let cpus = self.cpus;
        loop {
            match cursor.take(10)? {
                b"options  \0" => self.read_options_6(bytes, &mut cursor, page_bytes)?,
                b"flyrecord\0" => {
                    let buffer = buffer_6(&mut cursor, cpus, page_bytes);
                    self.buffers.insert(0, buffer);
                    return Some(());
                }
                b"latency  \0" => {
                    self.latency = Some(bytes.len() - cursor.bytes.len()..bytes.len());
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Options end with one of kind 0.
    fn read_options_6(&mut self, bytes: &'a [u8], cursor: &mut Cursor<'a>, page_bytes: usize) -> Option<()> {
        loop {
            let kind = cursor.u16()?;
            if kind == 0 {
                return Some(());
            }
            let size = cursor.u32()?;
            let mut option = Cursor::new(cursor.take(size as usize)?, self.endian);
            // An instance of the tracer: where its table is.
            if kind == 3 {
                let table =
                    option.u64().and_then(|at| bytes.get(usize::try_from(at).ok()?..)?.strip_prefix(b"flyrecord\0"));
                if let Some(table) = table {
                    let buffer = buffer_6(&mut Cursor::new(table, self.endian), self.cpus, page_bytes);
                    self.buffers.push(buffer);
                }
            } else {
                self.read_option(kind, option);
            }
        }
    }

    fn read_version_7(&mut self, bytes: &'a [u8], first: u64) {
        let (mut at, mut count) = (first, 0);
        let mut sections = Vec::new();
        let mut behind_options = None;
        while at != 0 {
            let section = self.section(bytes, at);
            let Some(section) = self.kept(section, "options", at) else { break };
            // Options are not packed.
            behind_options = at.checked_add(SECTION_HEAD + section.len() as u64);
            at = 0;
            let mut cursor = Cursor::new(&section, self.endian);
            while let (Some(kind), Some(size)) = (cursor.u16(), cursor.u32()) {
                count += 1;
                let Some(option) = cursor.take(size as usize).filter(|_| count < MOST_OPTIONS) else { break };
                let option = Cursor::new(option, self.endian);
                match kind {
                    0 => {
                        at = option.clone().u64().unwrap_or(0);
                        break;
                    }
                    3 => self.buffers.extend(buffer_7(option, self.compression)),
                    16..=22 => sections.extend(option.clone().u64().map(|at| (kind, at))),
                    kind => self.read_option(kind, option),
                }
            }
            if count >= MOST_OPTIONS {
                break;
            }
        }
        for (kind, at) in sections {
            self.read_section(bytes, kind, at);
        }
        self.behind_options = behind_options;
    }

    fn read_section(&mut self, bytes: &'a [u8], kind: u16, at: u64) {
        let what = match kind {
            16 => "page layout",
            17 => "formats of ftrace",
            18 => "event formats",
            19 => "function names",
            21 => "thread names",
            _ => return,
        };
        let section = self.section(bytes, at);
        let Some(section) = self.kept(section, what, at) else { return };
        let read = match section {
            Cow::Borrowed(section) => self.read_part(kind, Cursor::new(section, self.endian)),
            // The names outlive the section.
            Cow::Owned(section) => match kind {
                19 => section.get(4..).map(|names| self.kallsyms = Cow::Owned(names.to_vec())),
                21 => section.get(8..).map(|names| self.command_names = Cow::Owned(names.to_vec())),
                _ => self.read_formats(kind, Cursor::new(&section, self.endian)),
            },
        };
        if read.is_none() {
            self.damage.push(format!("byte {at}: the {what} end early"));
        }
    }

    fn read_part(&mut self, kind: u16, mut cursor: Cursor<'a>) -> Option<()> {
        match kind {
            19 => self.kallsyms = Cow::Borrowed(sized(&mut cursor)?),
            21 => {
                let size = cursor.u64()?;
                self.command_names = Cow::Borrowed(cursor.take(usize::try_from(size).ok()?)?);
            }
            _ => return self.read_formats(kind, cursor),
        }
        Some(())
    }

    fn read_formats(&mut self, kind: u16, mut cursor: Cursor<'_>) -> Option<()> {
        match kind {
            16 => self.read_page_layout(&mut cursor),
            17 => self.read_ftrace_events(&mut cursor),
            _ => self.read_events(&mut cursor),
        }
    }

    /// A section, or nothing with its damage noted.
    fn kept(&mut self, section: Result<Cow<'a, [u8]>, String>, what: &str, at: u64) -> Option<Cow<'a, [u8]>> {
        section.map_err(|wrong| self.damage.push(format!("byte {at}: the {what} are missing: {wrong}"))).ok()
    }

    /// The content of a section of version 7.
    fn section(&self, bytes: &'a [u8], at: u64) -> Result<Cow<'a, [u8]>, String> {
        const PACKED: u16 = 1;
        let short = || "the file ends before".to_owned();
        let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).ok_or_else(short)?;
        let mut cursor = Cursor::new(rest, self.endian);
        let (Some(_id), Some(flags), Some(_description), Some(size)) =
            (cursor.u16(), cursor.u16(), cursor.u32(), cursor.u64())
        else {
            return Err(short());
        };
        let content = cursor.take(usize::try_from(size).unwrap_or(usize::MAX)).ok_or_else(short)?;
        if flags & PACKED == 0 {
            return Ok(Cow::Borrowed(content));
        }
        let mut cursor = Cursor::new(content, self.endian);
        let (Some(packed), Some(size)) = (cursor.u32(), cursor.u32()) else { return Err(short()) };
        let packed = cursor.take(packed as usize).ok_or_else(short)?;
        if u64::from(size) > LARGEST_SECTION {
            return Err("it is larger than any section can be".to_owned());
        }
        let mut unpacked = Vec::new();
        self.compression.unpack(packed, size.into(), &mut unpacked)?;
        Ok(Cow::Owned(unpacked))
    }

    fn read_page_layout(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        for name in [&b"header_page\0"[..], b"header_event\0"] {
            (cursor.take(name.len())? == name).then_some(())?;
            let size = cursor.u64()?;
            let text = cursor.take(usize::try_from(size).ok()?)?;
            for line in String::from_utf8_lossy(text).lines() {
                let value = |name: &str| line.split(';').find_map(|part| part.trim().strip_prefix(name)?.parse().ok());
                if line.contains(" commit;") {
                    self.page.commit_bytes = value("size:").filter(|size| [4, 8].contains(size)).unwrap_or(8);
                } else if line.contains(" data;") {
                    self.page.data_at = value("offset:").filter(|at| (8..=64).contains(at)).unwrap_or(16);
                }
            }
        }
        Some(())
    }

    fn read_ftrace_events(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let count = cursor.u32()?;
        self.read_classes(count, cursor)
    }

    fn read_events(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let systems = cursor.u32()?;
        for _ in 0..systems {
            let _system = zero_ended(cursor)?;
            let count = cursor.u32()?;
            self.read_classes(count, cursor)?;
        }
        Some(())
    }

    fn read_classes(&mut self, count: u32, cursor: &mut Cursor<'_>) -> Option<()> {
        for _ in 0..count {
            let size = cursor.u64()?;
            let format = cursor.take(usize::try_from(size).ok()?)?;
            self.classes.extend(Class::parse(&String::from_utf8_lossy(format)));
        }
        Some(())
    }

    fn read_option(&mut self, kind: u16, mut option: Cursor<'_>) {
        let text = until_zero(option.bytes);
        match kind {
            2 => self.lost += lost(&text),
            // All clocks of the machine, the chosen one in brackets.
            4 => {
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(clock, _)| clock);
                self.clock = Some(chosen.unwrap_or(&text).trim().to_owned()).filter(|clock| !clock.is_empty());
            }
            5 => self.machine = Some(text),
            7 => self.offset = text.trim().parse().unwrap_or(0),
            8 => self.cpus = option.u32().unwrap_or(0),
            14 => {
                let numbers = (option.u32(), option.u32(), option.u64());
                if let (Some(multiplier @ 1..), Some(shift), Some(offset)) = numbers {
                    self.counter = Some(CounterClock { multiplier, shift, offset });
                }
            }
            _ => {}
        }
    }
}

/// Events that a CPU lost, from the content of its file `stats`.
fn lost(stats: &str) -> u64 {
    let count = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_loss = matches!(name.trim(), "overrun" | "commit overrun" | "dropped events");
        value.trim().parse::<u64>().ok().filter(|_| is_loss)
    };
    stats.lines().filter_map(count).fold(0, u64::saturating_add)
}

/// A table of version 6: offset and size for each CPU.
fn buffer_6(cursor: &mut Cursor<'_>, cpus: u32, page_bytes: usize) -> Buffer {
    let entries = (0..cpus).map_while(|cpu| Some(CpuData { cpu, offset: cursor.u64()?, size: cursor.u64()? }));
    Buffer { page_bytes, clock: None, is_packed: false, cpus: entries.collect() }
}

/// The option of version 7 that describes a buffer.
fn buffer_7(mut option: Cursor<'_>, compression: Compression) -> Option<Buffer> {
    let _section = option.u64()?;
    let _name = zero_ended(&mut option)?;
    let clock = zero_ended(&mut option)?;
    let page_bytes = option.u32()? as usize;
    let count = option.u32()?;
    let entries =
        (0..count).map_while(|_| Some(CpuData { cpu: option.u32()?, offset: option.u64()?, size: option.u64()? }));
    let cpus = entries.collect();
    let clock = Some(clock).filter(|clock| !clock.is_empty());
    Some(Buffer { page_bytes, clock, is_packed: compression != Compression::None, cpus })
}

/// 32 bits of size, and as many bytes.
fn sized<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = cursor.u32()?;
    cursor.take(size as usize)
}

fn zero_ended(cursor: &mut Cursor<'_>) -> Option<String> {
    let end = memchr::memchr(0, cursor.bytes)?;
    let text = cursor.take(end + 1)?;
    Some(until_zero(text))
}
