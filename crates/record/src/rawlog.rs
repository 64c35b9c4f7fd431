//! The raw log: what a recording writes as it goes, so that nothing is lost when it is killed.
//!
//! A file of chunks that each stand for themselves: a length, then a zstd frame with a checksum, which holds whole
//! [`Entry`] values. Entries are interned and packed, about 17 bytes for a sample. A log can end anywhere; everything
//! before the damage is kept.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use stepscope_model::WaitState;
use zstd::zstd_safe::CParameter;

use crate::stream::{
    Entry, EventRef, FrameRef, MarkNameRef, MarkThreadRef, Module, ModuleKind, ModuleRef, ProcessRef, Sample, Sink,
    StackRef, ThreadRef, Wait,
};

/// The log's name in a capture's folder.
pub const FILE_NAME: &str = "raw.log";

/// The first bytes of a log; the last digit is the version.
const MAGIC: &[u8; 8] = b"stepraw2";

/// A chunk is written when it has grown to this size, or when [`Writer::flush`] asks for it.
const CHUNK_BYTES: usize = 256 << 10;

/// No writer makes larger chunks; a length beyond it is damage.
const MAX_CHUNK_BYTES: u64 = 64 << 20;

/// Why a log cannot be written or read at all.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be created, written or opened.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It is something else.
    #[error("{} is not a raw log of this version of stepscope: recover it with the version that recorded it", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
    },
}

/// Writes a log.
///
/// Entries are taken without an answer; when writing fails the first error is kept ([`Writer::error`]) and everything
/// after is dropped, so that what is on the disk stays a whole log that ends early.
pub struct Writer<W> {
    out: W,
    chunk: Chunk,
    compressor: zstd::bulk::Compressor<'static>,
    bytes: u64,
    error: Option<io::Error>,
}

impl Writer<File> {
    /// Creates the log in a folder.
    ///
    /// # Errors
    /// [`LogError::Io`]
    pub fn create(folder: &Path) -> Result<Self, LogError> {
        let path = folder.join(FILE_NAME);
        let io = |action| {
            let path = path.clone();
            move |source| LogError::Io { action, path, source }
        };
        let file = File::create(&path).map_err(io("create"))?;
        Self::new(file).map_err(io("write"))
    }
}

impl<W: Write> Writer<W> {
    /// Starts a log.
    ///
    /// # Errors
    /// What writing the first bytes gives.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let mut compressor = zstd::bulk::Compressor::new(3)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self { out, chunk: Chunk::default(), compressor, bytes: MAGIC.len() as u64, error: None })
    }

    /// Writes what is pending.
    pub fn flush(&mut self) {
        if self.chunk.bytes.is_empty() {
            return;
        }
        let written = self.write_chunk();
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
        self.chunk = Chunk { bytes: std::mem::take(&mut self.chunk.bytes), ..Chunk::default() };
        self.chunk.bytes.clear();
    }

    fn write_chunk(&mut self) -> io::Result<()> {
        if self.error.is_some() {
            return Ok(());
        }
        let packed = self.compressor.compress(&self.chunk.bytes)?;
        let mut framed = Vec::with_capacity(packed.len() + 4);
        framed.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        framed.extend_from_slice(&packed);
        self.out.write_all(&framed)?;
        self.bytes += framed.len() as u64;
        Ok(())
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What first went wrong.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }
}

impl<W: Write> Sink for Writer<W> {
    fn take(&mut self, entry: Entry) {
        self.chunk.put(&entry);
        if self.chunk.bytes.len() >= CHUNK_BYTES {
            self.flush();
        }
    }
}

/// How reading a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With the last byte of a chunk.
    Whole,
    /// In the middle of a chunk, or at one that is damaged: at this offset.
    Broken {
        /// Where the chunk starts.
        offset: u64,
    },
}

/// Reads the log in a folder.
///
/// # Errors
/// [`LogError`]; a log that ends early is no error.
pub fn read(folder: &Path, sink: &mut impl Sink) -> Result<Ending, LogError> {
    let path = folder.join(FILE_NAME);
    let io = |action| {
        let path = path.clone();
        move |source| LogError::Io { action, path, source }
    };
    let file = File::open(&path).map_err(io("open"))?;
    match read_from(BufReader::new(file), sink).map_err(io("read"))? {
        Some(ending) => Ok(ending),
        None => Err(LogError::NotALog { path }),
    }
}

/// Reads a log from any source. `None` if it is none.
///
/// # Errors
/// What reading gives, other than the end.
pub fn read_from(mut from: impl Read, sink: &mut impl Sink) -> io::Result<Option<Ending>> {
    let mut magic = [0; MAGIC.len()];
    if read_up_to(&mut from, &mut magic)? < magic.len() || &magic != MAGIC {
        return Ok(None);
    }
    let mut offset = MAGIC.len() as u64;
    let mut packed = Vec::new();
    loop {
        let mut length = [0; 4];
        match read_up_to(&mut from, &mut length)? {
            0 => return Ok(Some(Ending::Whole)),
            4 => {}
            _ => return Ok(Some(Ending::Broken { offset })),
        }
        let length = u64::from(u32::from_le_bytes(length));
        packed.clear();
        let read = from.by_ref().take(length.min(MAX_CHUNK_BYTES)).read_to_end(&mut packed)?;
        if read as u64 != length || !take_chunk(&packed, sink) {
            return Ok(Some(Ending::Broken { offset }));
        }
        offset += 4 + length;
    }
}

fn read_up_to(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match from.read(&mut into[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Gives a chunk's entries to the sink; whether it was sound.
fn take_chunk(packed: &[u8], sink: &mut impl Sink) -> bool {
    let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(packed) else { return false };
    let mut bytes = Vec::new();
    if decoder.take(MAX_CHUNK_BYTES).read_to_end(&mut bytes).is_err() {
        return false;
    }
    let mut chunk = Unpacker::new(&bytes);
    while !chunk.bytes.is_empty() {
        match chunk.entry() {
            Some(entry) => sink.take(entry),
            None => return false,
        }
    }
    true
}

/// Entries being packed. Numbers are LEB128; times, stacks and frames are differences to the ones before.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    time: u64,
    stack: u32,
    weight: u64,
    mark: MarkBefore,
}

/// The last mark, from which the next one differs by little.
#[derive(Default)]
struct MarkBefore {
    time: u64,
    thread: u32,
}

/// First byte of each entry. Samples and marks have flags in the upper bits.
mod tag {
    pub const START: u8 = 0;
    pub const EVENT: u8 = 1;
    pub const PROCESS: u8 = 2;
    pub const IMAGE: u8 = 3;
    pub const PROCESS_END: u8 = 4;
    pub const EXIT_STATUS: u8 = 5;
    pub const THREAD: u8 = 6;
    pub const THREAD_NAME: u8 = 7;
    pub const THREAD_END: u8 = 8;
    pub const MODULE: u8 = 9;
    pub const FRAME: u8 = 10;
    pub const STACK: u8 = 11;
    pub const SAMPLE: u8 = 12;
    pub const WAIT: u8 = 13;
    pub const COUNTER: u8 = 14;
    pub const LOSSES: u8 = 15;
    pub const END: u8 = 16;
    pub const BEGAN: u8 = 17;
    pub const PROGRAM: u8 = 18;
    pub const STEP_BEGIN: u8 = 19;
    pub const MARK_NAME: u8 = 20;
    pub const MARK_THREAD: u8 = 21;
    pub const SCOPE: u8 = 22;
    pub const STEP_MARK: u8 = 23;
    pub const FRAME_MARK: u8 = 24;
    pub const MARKED_COUNTER: u8 = 25;
    pub const MARKS_LOST: u8 = 26;
    pub const TIMED_STEP_BEGIN: u8 = 27;
}

const SAME_WEIGHT: u8 = 0x20;
const SAME_THREAD: u8 = 0x20;
const UNTIMED: u8 = 0x40;
const NO_CPU: u8 = 0x80;

impl Chunk {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn signed(&mut self, value: i64) {
        self.number((value << 1 ^ value >> 63) as u64);
    }

    /// Absent is 0, so what is there is one more.
    fn optional(&mut self, value: Option<u64>) {
        match value {
            None => self.number(0),
            Some(u64::MAX) => self.number(u64::MAX),
            Some(value) => self.number(value + 1),
        }
    }

    fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
    }

    fn blob(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn json(&mut self, value: &impl serde::Serialize) {
        let text = serde_json::to_string(value).expect("the vocabulary's types serialise");
        self.text(&text);
    }

    fn since_last(&mut self, time: u64) {
        self.signed(time.wrapping_sub(self.time) as i64);
        self.time = time;
    }

    fn stack(&mut self, stack: Option<StackRef>) {
        match stack {
            None => self.signed(0),
            Some(StackRef(stack)) => {
                // 0 means none, so differences of 0 and above are shifted by one.
                let difference = i64::from(stack) - i64::from(self.stack);
                self.signed(if difference >= 0 { difference + 1 } else { difference });
                self.stack = stack;
            }
        }
    }

    fn put(&mut self, entry: &Entry) {
        match entry {
            Entry::Start(info) => {
                self.bytes.push(tag::START);
                self.json(info);
            }
            Entry::Began { time_ns } => {
                self.bytes.push(tag::BEGAN);
                self.since_last(*time_ns);
            }
            Entry::Program { command, working_directory, environment } => {
                self.bytes.push(tag::PROGRAM);
                self.json(&(command, working_directory, environment));
            }
            Entry::Event(event) => {
                self.bytes.push(tag::EVENT);
                self.json(event);
            }
            Entry::Process { pid, parent_pid, start_ns } => {
                self.bytes.push(tag::PROCESS);
                self.number(u64::from(*pid));
                self.optional(parent_pid.map(u64::from));
                self.optional(*start_ns);
            }
            Entry::Image { process, executable, command_line } => {
                self.bytes.push(tag::IMAGE);
                self.number(process.0.into());
                self.text(executable);
                self.number(command_line.len() as u64);
                command_line.iter().for_each(|argument| self.text(argument));
            }
            Entry::ProcessEnd { process, time_ns } => {
                self.bytes.push(tag::PROCESS_END);
                self.number(process.0.into());
                self.since_last(*time_ns);
            }
            Entry::ExitStatus { pid, status } => {
                self.bytes.push(tag::EXIT_STATUS);
                self.number(u64::from(*pid));
                self.signed(i64::from(*status));
            }
            Entry::Thread { tid, process, start_ns, name } => {
                self.bytes.push(tag::THREAD);
                self.number(u64::from(*tid));
                self.number(process.0.into());
                self.optional(*start_ns);
                self.text(name);
            }
            Entry::ThreadName { thread, time_ns, name } => {
                self.bytes.push(tag::THREAD_NAME);
                self.number(thread.0.into());
                self.since_last(*time_ns);
                self.text(name);
            }
            Entry::ThreadEnd { thread, time_ns, cpu_ns, runnable_ns } => {
                self.bytes.push(tag::THREAD_END);
                self.number(thread.0.into());
                self.optional(*time_ns);
                self.optional(*cpu_ns);
                self.optional(*runnable_ns);
            }
            Entry::Module(module) => self.put_module(module),
            Entry::Frame { module, offset } => {
                self.bytes.push(tag::FRAME);
                self.optional(module.map(|module| module.0.into()));
                self.number(*offset);
            }
            Entry::Stack { parent, frame } => {
                self.bytes.push(tag::STACK);
                self.stack(*parent);
                self.number(frame.0.into());
            }
            Entry::Sample(sample) => self.put_sample(sample),
            Entry::Wait(wait) => self.put_wait(wait),
            Entry::Counter { time_ns, process, thread, name, value } => {
                self.bytes.push(tag::COUNTER);
                self.since_last(*time_ns);
                self.number(process.0.into());
                self.optional(thread.map(|thread| thread.0.into()));
                self.text(name);
                self.signed(*value);
            }
            Entry::StepBegin { time_ns, thread, sim_time_ns } => {
                self.bytes.push(if sim_time_ns.is_some() { tag::TIMED_STEP_BEGIN } else { tag::STEP_BEGIN });
                self.since_last(*time_ns);
                self.number(thread.0.into());
                sim_time_ns.iter().for_each(|&ns| self.number(ns));
            }
            Entry::MarkName { name } => {
                self.bytes.push(tag::MARK_NAME);
                self.text(name);
            }
            Entry::MarkThread { pid, tid, time_ns } => {
                self.bytes.push(tag::MARK_THREAD);
                self.number(u64::from(*pid));
                self.number(u64::from(*tid));
                self.number(*time_ns);
            }
            Entry::Scope { thread, name, start_ns, end_ns } => {
                self.mark(tag::SCOPE, *thread, *end_ns);
                self.number(name.0.into());
                self.number(end_ns.wrapping_sub(*start_ns));
            }
            Entry::StepMark { thread, time_ns, sim_time_ns } => {
                self.mark(tag::STEP_MARK, *thread, *time_ns);
                self.optional(sim_time_ns.map(|ns| (ns << 1 ^ ns >> 63) as u64));
            }
            Entry::FrameMark { thread, name, time_ns } => {
                self.mark(tag::FRAME_MARK, *thread, *time_ns);
                self.number(name.0.into());
            }
            Entry::MarkedCounter { thread, name, time_ns, value } => {
                self.mark(tag::MARKED_COUNTER, *thread, *time_ns);
                self.number(name.0.into());
                self.signed(*value);
            }
            Entry::MarksLost { count } => {
                self.bytes.push(tag::MARKS_LOST);
                self.number(*count);
            }
            Entry::Losses(losses) => {
                self.bytes.push(tag::LOSSES);
                self.json(losses);
            }
            Entry::End(end) => {
                self.bytes.push(tag::END);
                self.json(end);
            }
        }
    }

    /// What every mark begins with. Marks come ring by ring, so their times differ little from one to the next.
    fn mark(&mut self, tag: u8, thread: MarkThreadRef, time_ns: u64) {
        let same = thread.0 == self.mark.thread;
        self.bytes.push(tag | if same { SAME_THREAD } else { 0 });
        if !same {
            self.number(thread.0.into());
        }
        self.signed(time_ns.wrapping_sub(self.mark.time) as i64);
        self.mark = MarkBefore { time: time_ns, thread: thread.0 };
    }

    fn put_module(&mut self, module: &Module) {
        self.bytes.push(tag::MODULE);
        let (kind, pid) = match module.kind {
            ModuleKind::File => (0, 0),
            ModuleKind::Kernel => (1, 0),
            ModuleKind::Vdso => (2, 0),
            ModuleKind::Jit(pid) => (3, pid),
        };
        self.bytes.push(kind);
        self.number(u64::from(pid));
        self.text(&module.path);
        self.blob(module.build_id.as_deref().unwrap_or_default());
    }

    fn put_sample(&mut self, sample: &Sample) {
        let mut first = tag::SAMPLE;
        first |= if sample.weight == self.weight { SAME_WEIGHT } else { 0 };
        first |= if sample.time_ns.is_none() { UNTIMED } else { 0 };
        first |= if sample.cpu.is_none() { NO_CPU } else { 0 };
        self.bytes.push(first);
        if let Some(time) = sample.time_ns {
            self.since_last(time);
        }
        self.number(sample.thread.0.into());
        if let Some(cpu) = sample.cpu {
            self.number(u64::from(cpu));
        }
        self.stack(sample.stack);
        self.number(sample.event.0.into());
        if sample.weight != self.weight {
            self.number(sample.weight);
            self.weight = sample.weight;
        }
    }

    fn put_wait(&mut self, wait: &Wait) {
        self.bytes.push(tag::WAIT);
        self.number(wait.thread.0.into());
        self.since_last(wait.end_ns);
        let length = wait.end_ns.saturating_sub(wait.start_ns);
        // A preempted wait is runnable from end to end, which needs no saying.
        let whole = wait.runnable_ns == Some(length);
        self.number(length << 2 | u64::from(whole) << 1 | u64::from(wait.state == WaitState::Preempted));
        if !whole {
            self.optional(wait.runnable_ns);
        }
        self.stack(wait.stack);
        self.optional(wait.cpu.map(u64::from));
        self.optional(wait.waker.map(|thread| thread.0.into()));
        if wait.waker.is_some() {
            self.stack(wait.waker_stack);
        }
    }
}

/// A chunk's bytes being unpacked: the reverse of [`Chunk`]. Everything gives `None` on bytes that nothing packs.
struct Unpacker<'a> {
    bytes: &'a [u8],
    time: u64,
    stack: u32,
    weight: u64,
    mark: MarkBefore,
}

impl<'a> Unpacker<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, time: 0, stack: 0, weight: 0, mark: MarkBefore::default() }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        Some(self.number()?.checked_sub(1))
    }

    fn optional_small(&mut self) -> Option<Option<u32>> {
        match self.optional()? {
            None => Some(None),
            Some(value) => Some(Some(u32::try_from(value).ok()?)),
        }
    }

    fn blob(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok().filter(|&length| length <= self.bytes.len())?;
        let (blob, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Some(blob)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.blob()?).into_owned())
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        serde_json::from_slice(self.blob()?).ok()
    }

    fn since_last(&mut self) -> Option<u64> {
        self.time = self.time.wrapping_add(self.signed()? as u64);
        Some(self.time)
    }

    fn stack(&mut self) -> Option<Option<StackRef>> {
        let difference = self.signed()?;
        if difference == 0 {
            return Some(None);
        }
        let difference = if difference > 0 { difference - 1 } else { difference };
        self.stack = u32::try_from(i64::from(self.stack).checked_add(difference)?).ok()?;
        Some(Some(StackRef(self.stack)))
    }

    fn entry(&mut self) -> Option<Entry> {
        let first = self.byte()?;
        Some(match first & 0x1f {
            tag::START => Entry::Start(self.json()?),
            tag::BEGAN => Entry::Began { time_ns: self.since_last()? },
            tag::PROGRAM => {
                let (command, working_directory, environment) = self.json()?;
                Entry::Program { command, working_directory, environment }
            }
            tag::EVENT => Entry::Event(self.json()?),
            tag::PROCESS => {
                Entry::Process { pid: self.small()?, parent_pid: self.optional_small()?, start_ns: self.optional()? }
            }
            tag::IMAGE => {
                let process = ProcessRef(self.small()?);
                let executable = self.text()?;
                let arguments = self.number()?;
                // An argument takes a byte at least.
                if arguments > self.bytes.len() as u64 {
                    return None;
                }
                let command_line = (0..arguments).map(|_| self.text()).collect::<Option<_>>()?;
                Entry::Image { process, executable, command_line }
            }
            tag::PROCESS_END => Entry::ProcessEnd { process: ProcessRef(self.small()?), time_ns: self.since_last()? },
            tag::EXIT_STATUS => Entry::ExitStatus { pid: self.small()?, status: i32::try_from(self.signed()?).ok()? },
            tag::THREAD => Entry::Thread {
                tid: self.small()?,
                process: ProcessRef(self.small()?),
                start_ns: self.optional()?,
                name: self.text()?,
            },
            tag::THREAD_NAME => {
                Entry::ThreadName { thread: ThreadRef(self.small()?), time_ns: self.since_last()?, name: self.text()? }
            }
            tag::THREAD_END => Entry::ThreadEnd {
                thread: ThreadRef(self.small()?),
                time_ns: self.optional()?,
                cpu_ns: self.optional()?,
                runnable_ns: self.optional()?,
            },
            tag::MODULE => Entry::Module(self.module()?),
            tag::FRAME => Entry::Frame { module: self.optional_small()?.map(ModuleRef), offset: self.number()? },
            tag::STACK => Entry::Stack { parent: self.stack()?, frame: FrameRef(self.small()?) },
            tag::SAMPLE => Entry::Sample(self.sample(first)?),
            tag::WAIT => Entry::Wait(self.wait()?),
            tag::COUNTER => Entry::Counter {
                time_ns: self.since_last()?,
                process: ProcessRef(self.small()?),
                thread: self.optional_small()?.map(ThreadRef),
                name: self.text()?,
                value: self.signed()?,
            },
            tag::STEP_BEGIN | tag::TIMED_STEP_BEGIN => Entry::StepBegin {
                time_ns: self.since_last()?,
                thread: ThreadRef(self.small()?),
                sim_time_ns: if first & 0x1f == tag::TIMED_STEP_BEGIN { Some(self.number()?) } else { None },
            },
            tag::MARK_NAME => Entry::MarkName { name: self.text()? },
            tag::MARK_THREAD => Entry::MarkThread { pid: self.small()?, tid: self.small()?, time_ns: self.number()? },
            tag::SCOPE => {
                let (thread, end_ns) = self.mark(first)?;
                let name = MarkNameRef(self.small()?);
                Entry::Scope { thread, name, start_ns: end_ns.wrapping_sub(self.number()?), end_ns }
            }
            tag::STEP_MARK => {
                let (thread, time_ns) = self.mark(first)?;
                let sim_time_ns = self.optional()?.map(|ns| (ns >> 1) as i64 ^ -((ns & 1) as i64));
                Entry::StepMark { thread, time_ns, sim_time_ns }
            }
            tag::FRAME_MARK => {
                let (thread, time_ns) = self.mark(first)?;
                Entry::FrameMark { thread, name: MarkNameRef(self.small()?), time_ns }
            }
            tag::MARKED_COUNTER => {
                let (thread, time_ns) = self.mark(first)?;
                Entry::MarkedCounter { thread, name: MarkNameRef(self.small()?), time_ns, value: self.signed()? }
            }
            tag::MARKS_LOST => Entry::MarksLost { count: self.number()? },
            tag::LOSSES => Entry::Losses(self.json()?),
            tag::END => Entry::End(self.json()?),
            _ => return None,
        })
    }

    fn mark(&mut self, first: u8) -> Option<(MarkThreadRef, u64)> {
        let thread = if first & SAME_THREAD == 0 { self.small()? } else { self.mark.thread };
        let time = self.mark.time.wrapping_add(self.signed()? as u64);
        self.mark = MarkBefore { time, thread };
        Some((MarkThreadRef(thread), time))
    }

    fn module(&mut self) -> Option<Module> {
        let kind = self.byte()?;
        let pid = self.small()?;
        let kind = match kind {
            0 => ModuleKind::File,
            1 => ModuleKind::Kernel,
            2 => ModuleKind::Vdso,
            3 => ModuleKind::Jit(pid),
            _ => return None,
        };
        let path = self.text()?;
        let build_id = Some(self.blob()?.to_vec()).filter(|id| !id.is_empty());
        Some(Module { kind, path, build_id })
    }

    fn sample(&mut self, first: u8) -> Option<Sample> {
        let time_ns = if first & UNTIMED == 0 { Some(self.since_last()?) } else { None };
        let thread = ThreadRef(self.small()?);
        let cpu = if first & NO_CPU == 0 { Some(self.small()?) } else { None };
        let stack = self.stack()?;
        let event = EventRef(self.small()?);
        if first & SAME_WEIGHT == 0 {
            self.weight = self.number()?;
        }
        Some(Sample { time_ns, thread, cpu, stack, event, weight: self.weight })
    }

    fn wait(&mut self) -> Option<Wait> {
        let thread = ThreadRef(self.small()?);
        let end_ns = self.since_last()?;
        let packed = self.number()?;
        let length = packed >> 2;
        let state = if packed & 1 == 1 { WaitState::Preempted } else { WaitState::Blocked };
        let runnable_ns = if packed & 2 == 2 { Some(length) } else { self.optional()? };
        let stack = self.stack()?;
        let cpu = self.optional_small()?;
        let waker = self.optional_small()?.map(ThreadRef);
        let waker_stack = if waker.is_some() { self.stack()? } else { None };
        let start_ns = end_ns.checked_sub(length)?;
        Some(Wait { start_ns, end_ns, thread, stack, state, runnable_ns, cpu, waker, waker_stack })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::End;
    use stepscope_model::{CaptureInfo, Event, Losses};

    fn entries() -> Vec<Entry> {
        let sample = |time_ns, stack, weight| {
            let (thread, event) = (ThreadRef(0), EventRef(0));
            Entry::Sample(Sample { time_ns, thread, cpu: time_ns.map(|_| 1), stack, event, weight })
        };
        let wait = Wait {
            start_ns: 5_000,
            end_ns: 9_000,
            thread: ThreadRef(0),
            stack: Some(StackRef(1)),
            state: WaitState::Blocked,
            runnable_ns: Some(250),
            cpu: Some(3),
            waker: Some(ThreadRef(0)),
            waker_stack: Some(StackRef(0)),
        };
        vec![
            Entry::Start(Box::default()),
            Entry::Began { time_ns: 900 },
            Entry::Program {
                command: vec!["sim".into()],
                working_directory: Some("/".into()),
                environment: [("LD_BIND_NOW".to_owned(), "1".to_owned())].into(),
            },
            Entry::Event(Event::sampled("cpu-clock", "ns")),
            Entry::Process { pid: 40, parent_pid: Some(1), start_ns: None },
            Entry::Image {
                process: ProcessRef(0),
                executable: "/bin/sim".into(),
                command_line: vec!["sim".into(), "a world".into()],
            },
            Entry::Thread { tid: 40, process: ProcessRef(0), start_ns: Some(1_000), name: "sim".into() },
            Entry::ThreadName { thread: ThreadRef(0), time_ns: 1_500, name: "server".into() },
            Entry::Module(Module { kind: ModuleKind::File, path: "/bin/sim".into(), build_id: Some(vec![1, 2]) }),
            Entry::Module(Module { kind: ModuleKind::Jit(40), path: "[jit]".into(), build_id: None }),
            Entry::Frame { module: Some(ModuleRef(0)), offset: 0x1234 },
            Entry::Frame { module: None, offset: u64::MAX },
            Entry::Stack { parent: None, frame: FrameRef(0) },
            Entry::Stack { parent: Some(StackRef(0)), frame: FrameRef(1) },
            sample(Some(2_000), Some(StackRef(1)), 1_003_009),
            sample(Some(1_990), Some(StackRef(0)), 1_003_009),
            sample(None, None, 1),
            Entry::Wait(wait),
            Entry::Wait(Wait {
                state: WaitState::Preempted,
                runnable_ns: Some(4_000),
                waker: None,
                waker_stack: None,
                ..wait
            }),
            Entry::Wait(Wait { runnable_ns: None, stack: None, cpu: None, waker_stack: None, ..wait }),
            Entry::Counter {
                time_ns: 3_000,
                process: ProcessRef(0),
                thread: Some(ThreadRef(0)),
                name: "rss_bytes".into(),
                value: -4,
            },
            Entry::StepBegin { time_ns: 2_950, thread: ThreadRef(0), sim_time_ns: None },
            Entry::StepBegin { time_ns: 2_960, thread: ThreadRef(0), sim_time_ns: Some(5_000_000) },
            Entry::MarkName { name: "physics".into() },
            Entry::MarkThread { pid: 40, tid: 41, time_ns: 2_960 },
            Entry::MarkThread { pid: 40, tid: 40, time_ns: 2_961 },
            Entry::Scope { thread: MarkThreadRef(1), name: MarkNameRef(0), start_ns: 2_970, end_ns: 2_980 },
            Entry::Scope { thread: MarkThreadRef(1), name: MarkNameRef(0), start_ns: 2_965, end_ns: 2_990 },
            Entry::StepMark { thread: MarkThreadRef(0), time_ns: 2_950, sim_time_ns: Some(-7) },
            Entry::StepMark { thread: MarkThreadRef(0), time_ns: 2_999, sim_time_ns: None },
            Entry::FrameMark { thread: MarkThreadRef(1), name: MarkNameRef(0), time_ns: u64::MAX },
            Entry::MarkedCounter { thread: MarkThreadRef(1), name: MarkNameRef(0), time_ns: 3_010, value: i64::MIN },
            Entry::MarksLost { count: 300 },
            Entry::ThreadEnd { thread: ThreadRef(0), time_ns: Some(9_500), cpu_ns: Some(7), runnable_ns: None },
            Entry::ProcessEnd { process: ProcessRef(0), time_ns: 9_500 },
            Entry::ExitStatus { pid: 40, status: -1 },
            Entry::Losses(Box::new(Losses { lost_records: 3, ..Losses::default() })),
            Entry::End(Box::new(End { end_ns: Some(10_000), ..End::default() })),
        ]
    }

    /// A log of which every entry is a chunk, and the offsets at which chunks end.
    fn log_of(entries: &[Entry]) -> (Vec<u8>, Vec<usize>) {
        let mut log = Writer::new(Vec::new()).unwrap();
        let mut ends = Vec::new();
        for entry in entries {
            log.take(entry.clone());
            log.flush();
            ends.push(log.bytes() as usize);
        }
        (log.out, ends)
    }

    #[test]
    fn what_is_written_is_read() {
        let mut log = Writer::new(Vec::new()).unwrap();
        entries().into_iter().for_each(|entry| log.take(entry));
        log.flush();
        let mut read = Vec::new();
        assert_eq!(read_from(&log.out[..], &mut read).unwrap(), Some(Ending::Whole));
        assert_eq!(read, entries());
    }

    #[test]
    fn a_log_cut_at_any_byte_keeps_everything_before_the_cut() {
        let (log, ends) = log_of(&entries());
        for cut in 0..log.len() {
            let mut read = Vec::new();
            let ending = read_from(&log[..cut], &mut read).unwrap();
            if cut < MAGIC.len() {
                assert_eq!(ending, None);
                continue;
            }
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(read, entries()[..whole], "cut at {cut}");
            let at_a_boundary = cut == MAGIC.len() || ends.contains(&cut);
            assert_eq!(ending == Some(Ending::Whole), at_a_boundary, "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_bit_changes_nothing_or_is_noticed_and_what_is_before_it_kept() {
        let (log, ends) = log_of(&entries());
        for byte in MAGIC.len()..log.len() {
            let mut damaged = log.clone();
            damaged[byte] ^= 0x10;
            let mut read = Vec::new();
            let ending = read_from(&damaged[..], &mut read).unwrap();
            let before = ends.iter().filter(|&&end| end <= byte).count();
            match ending {
                Some(Ending::Broken { .. }) => assert_eq!(read, entries()[..before], "byte {byte}"),
                // zstd's frame header has a bit that means nothing.
                _ => assert_eq!(read, entries(), "byte {byte}"),
            }
        }
    }

    #[test]
    fn a_full_disk_leaves_a_whole_log_and_the_error() {
        struct Full(Vec<u8>);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if self.0.len() + bytes.len() > 400 {
                    return Err(io::Error::from_raw_os_error(libc::ENOSPC));
                }
                self.0.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut log = Writer::new(Full(Vec::new())).unwrap();
        for entry in entries() {
            log.take(entry);
            log.flush();
        }
        assert_eq!(log.error().and_then(io::Error::raw_os_error), Some(libc::ENOSPC));
        let mut read = Vec::new();
        assert_eq!(read_from(&log.out.0[..], &mut read).unwrap(), Some(Ending::Whole));
        assert!(!read.is_empty() && entries().starts_with(&read));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            let mut chunk = Unpacker::new(&bytes);
            while chunk.entry().is_some() {}
            let mut log = MAGIC.to_vec();
            log.extend_from_slice(&bytes);
            read_from(&log[..], &mut Vec::new()).unwrap();
        }
    }

    #[test]
    fn the_start_keeps_what_is_known_of_the_recording() {
        let info = CaptureInfo { command: vec!["sim".into()], ..CaptureInfo::default() };
        let (log, _) = log_of(&[Entry::Start(Box::new(info.clone()))]);
        let mut read = Vec::new();
        read_from(&log[..], &mut read).unwrap();
        assert_eq!(read, [Entry::Start(Box::new(info))]);
    }
}
