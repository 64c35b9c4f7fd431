//! The raw log: what a recording writes as it goes, so that a killed recorder loses next to nothing.
//!
//! A log is eight bytes of magic and then chunks. Each chunk stands for itself: its length (32 bits, little-endian), then a
//! zstd frame with a checksum that holds whole [`Entry`] values. A sample takes about 17 bytes. A log may end anywhere:
//! [`read`] keeps everything before the damage.

mod layout;
mod packer;
mod reader;

use std::io::{self, Read, Write};

use stepscope_model::disk::DiskError;
use zstd::zstd_safe::CParameter;

use crate::entry::{Entry, Sink};
use packer::ChunkPacker;
use reader::ChunkReader;

/// The first bytes of a log; the last digit is the version.
pub const MAGIC: &[u8; 8] = b"stepraw2";

/// A chunk is written when it has grown to this size, or on [`Writer::flush`].
const CHUNK_BYTES: usize = 256 << 10;

/// No writer makes larger chunks, packed or not; a length beyond it is damage.
const MAX_CHUNK_BYTES: u64 = 64 << 20;

/// Why a log cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are something else, or of another version.
    #[error("not a raw log of this version of stepscope: recover it with the version that recorded it")]
    NotALog,
    /// The tables that are made of it cannot be written.
    #[error("{0}; the recorded log is kept: make room, then `stepscope recover` its folder")]
    Write(#[from] DiskError),
}

/// Writes a log.
///
/// [`Sink::take`] reports nothing: the writer keeps the first error ([`Writer::error`]) and drops everything after it, so
/// that what was written stays a sound log that ends early.
pub struct Writer<W> {
    out: W,
    chunk: ChunkPacker,
    compressor: zstd::bulk::Compressor<'static>,
    bytes: u64,
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Starts a log.
    ///
    /// # Errors
    /// If the first bytes cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let mut compressor = zstd::bulk::Compressor::new(3)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self { out, chunk: ChunkPacker::default(), compressor, bytes: MAGIC.len() as u64, error: None })
    }

    /// Writes the pending entries.
    pub fn flush(&mut self) {
        if self.chunk.bytes().is_empty() {
            return;
        }
        let written = self.write_chunk();
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
        self.chunk.restart();
    }

    fn write_chunk(&mut self) -> io::Result<()> {
        if self.error.is_some() {
            return Ok(());
        }
        let packed = self.compressor.compress(self.chunk.bytes())?;
        let mut framed = Vec::with_capacity(packed.len() + 4);
        framed.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        framed.extend_from_slice(&packed);
        self.out.write_all(&framed)?;
        self.bytes += framed.len() as u64;
        Ok(())
    }

    /// Where the log goes.
    pub fn out(&self) -> &W {
        &self.out
    }

    /// Bytes of whole chunks written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first error of writing.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }
}

impl<W: Write> Sink for Writer<W> {
    fn take(&mut self, entry: Entry) {
        self.chunk.put(&entry);
        if self.chunk.bytes().len() >= CHUNK_BYTES {
            self.flush();
        }
    }
}

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With the last byte of a chunk.
    Complete,
    /// Inside a chunk, or at a damaged one.
    Damaged {
        /// Where that chunk starts.
        offset: u64,
    },
}

/// Reads a log into a sink. A log that ends early is no error.
///
/// # Errors
/// [`ReadError`]
pub fn read(mut from: impl Read, sink: &mut impl Sink) -> Result<Ending, ReadError> {
    let mut magic = [0; MAGIC.len()];
    if read_up_to(&mut from, &mut magic)? < magic.len() || &magic != MAGIC {
        return Err(ReadError::NotALog);
    }
    let mut offset = MAGIC.len() as u64;
    let mut packed = Vec::new();
    loop {
        let mut length = [0; 4];
        match read_up_to(&mut from, &mut length)? {
            0 => return Ok(Ending::Complete),
            4 => {}
            _ => return Ok(Ending::Damaged { offset }),
        }
        let length = u64::from(u32::from_le_bytes(length));
        packed.clear();
        let read = from.by_ref().take(length.min(MAX_CHUNK_BYTES)).read_to_end(&mut packed)?;
        if read as u64 != length || read_chunk(&packed, sink).is_none() {
            return Ok(Ending::Damaged { offset });
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

/// Gives a chunk's entries to the sink, up to the first that is damaged: then `None`.
fn read_chunk(packed: &[u8], sink: &mut impl Sink) -> Option<()> {
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    let mut bytes = Vec::new();
    decoder.take(MAX_CHUNK_BYTES).read_to_end(&mut bytes).ok()?;
    let mut chunk = ChunkReader::new(&bytes);
    while !chunk.is_at_end() {
        sink.take(chunk.entry()?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use stepscope_model::{CaptureInfo, Event, Losses, WaitState};

    use super::*;
    use crate::entry::{
        EventRef, FrameRef, MarkNameRef, MarkThreadRef, Module, ModuleKind, ModuleRef, ProcessRef, RecordingEnd,
        Sample, StackRef, ThreadRef, Wait,
    };

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
            Entry::WindowStart { time_ns: 900 },
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
            Entry::Module(Module { kind: ModuleKind::StackMarks, path: "[stack]".into(), build_id: None }),
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
            Entry::StepStart { time_ns: 2_950, thread: ThreadRef(0), sim_time_ns: None },
            Entry::StepStart { time_ns: 2_960, thread: ThreadRef(0), sim_time_ns: Some(5_000_000) },
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
            Entry::ExitUsage { pid: 40, cpu_ns: 1_000_000, peak_rss_bytes: Some(4096) },
            Entry::ExitUsage { pid: 40, cpu_ns: u64::MAX, peak_rss_bytes: None },
            Entry::Losses(Box::new(Losses { lost_records: 3, ..Losses::default() })),
            Entry::RecordingEnd(Box::new(RecordingEnd { end_ns: Some(10_000), ..RecordingEnd::default() })),
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
        assert_eq!(super::read(&log.out[..], &mut read).unwrap(), Ending::Complete);
        assert_eq!(read, entries());
    }

    #[test]
    fn a_log_cut_at_any_byte_keeps_everything_before_the_cut() {
        let (log, ends) = log_of(&entries());
        for cut in 0..log.len() {
            let mut read = Vec::new();
            let ending = super::read(&log[..cut], &mut read);
            if cut < MAGIC.len() {
                assert!(matches!(ending, Err(ReadError::NotALog)));
                continue;
            }
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(read, entries()[..whole], "cut at {cut}");
            let at_a_boundary = cut == MAGIC.len() || ends.contains(&cut);
            assert_eq!(ending.unwrap() == Ending::Complete, at_a_boundary, "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_bit_changes_nothing_or_is_noticed_and_what_is_before_it_kept() {
        let (log, ends) = log_of(&entries());
        for byte in MAGIC.len()..log.len() {
            let mut damaged = log.clone();
            damaged[byte] ^= 0x10;
            let mut read = Vec::new();
            let ending = super::read(&damaged[..], &mut read).unwrap();
            let before = ends.iter().filter(|&&end| end <= byte).count();
            match ending {
                Ending::Damaged { .. } => assert_eq!(read, entries()[..before], "byte {byte}"),
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
                    return Err(io::ErrorKind::StorageFull.into());
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
        assert_eq!(log.error().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
        let mut read = Vec::new();
        assert_eq!(super::read(&log.out.0[..], &mut read).unwrap(), Ending::Complete);
        assert!(!read.is_empty() && entries().starts_with(&read));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            let mut chunk = ChunkReader::new(&bytes);
            while chunk.entry().is_some() {}
            let mut log = MAGIC.to_vec();
            log.extend_from_slice(&bytes);
            super::read(&log[..], &mut Vec::new()).unwrap();
        }
    }

    proptest::proptest! {
        #[test]
        fn changed_entries_still_make_a_sound_capture(changes in proptest::collection::vec((0..2_000usize, 0u8..), 1..6)) {
            let mut chunk = ChunkPacker::default();
            entries().iter().for_each(|entry| chunk.put(entry));
            let mut content = chunk.bytes().to_vec();
            let length = content.len();
            changes.into_iter().for_each(|(at, byte)| content[at % length] = byte);
            let packed = zstd::bulk::compress(&content, 1).unwrap();
            let log = [&MAGIC[..], &(packed.len() as u32).to_le_bytes(), &packed].concat();
            crate::finish(&log[..], &mut crate::NoSymbols).unwrap().check().unwrap();
        }
    }

    #[test]
    fn the_start_keeps_what_is_known_of_the_recording() {
        let info = CaptureInfo { command: vec!["sim".into()], ..CaptureInfo::default() };
        let (log, _) = log_of(&[Entry::Start(Box::new(info.clone()))]);
        let mut read = Vec::new();
        super::read(&log[..], &mut read).unwrap();
        assert_eq!(read, [Entry::Start(Box::new(info))]);
    }
}
