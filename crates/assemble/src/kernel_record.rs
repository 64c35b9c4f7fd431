//! Kernel records, parsed without trusting them.
//!
//! `linux-perf-event-reader` describes the layouts and splits streams into records. The bodies are parsed here, because its
//! parser (0.10.2) is unfit for bytes of unknown origin in three places: it asserts on the length of build-ids, multiplies
//! an unchecked call-chain length, and swaps the two layouts of `PERF_SAMPLE_READ`.

use std::borrow::Cow;

use linux_perf_event_reader::constants::{
    PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_MMAP_BUILD_ID,
    PERF_RECORD_MISC_SWITCH_OUT, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
};
use linux_perf_event_reader::{
    BranchSampleFormat, Endianness, RawData, RawEventRecord, ReadFormat, RecordParseInfo, RecordType, SampleFormat,
};

/// A record is shorter than its type requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the record ends before its fields do")]
pub struct Malformed;

impl From<std::io::Error> for Malformed {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// A process id and one of its thread ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadIds {
    pub pid: u32,
    pub tid: u32,
}

/// A record's content, with the common data of every record.
#[derive(Debug, PartialEq)]
pub(crate) struct Record<'a> {
    pub time: Option<u64>,
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub cpu: Option<u32>,
    pub body: Body<'a>,
}

impl Record<'_> {
    /// The thread that caused the record. The idle task has id 0, and a thread that the kernel is removing has -1: neither
    /// counts.
    pub fn thread(&self) -> Option<ThreadIds> {
        let positive = |id: Option<i32>| id.filter(|&id| id > 0).map(|id| id as u32);
        Some(ThreadIds { pid: positive(self.pid)?, tid: positive(self.tid)? })
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Body<'a> {
    Sample(RawSample<'a>),
    Comm { ids: ThreadIds, name: String, exec: bool },
    Fork { child: ThreadIds, parent: ThreadIds },
    Exit { tid: u32 },
    Map(Map),
    Switch(Switch),
    Lost(u64),
    Throttled,
    Other,
}

/// A context switch, on the CPU of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch {
    pub way: SwitchWay,
    /// Whether the source records the switches of every thread on that CPU, but for threads that the kernel hides.
    pub cpu_wide: bool,
    /// Id of the other thread of the switch, where all are recorded: 0 is the CPU's idle thread, or a thread of another pid
    /// namespace.
    pub other_tid: Option<u32>,
}

/// Whether the thread of the record comes to the CPU or leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwitchWay {
    In,
    Out { preempted: bool },
}

/// The fields of a `PERF_RECORD_SAMPLE` that matter here.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RawSample<'a> {
    pub ip: Option<u64>,
    pub period: Option<u64>,
    pub in_kernel: bool,
    pub callchain: Vec<u64>,
    pub raw: Option<Cow<'a, [u8]>>,
    /// Address of the sampled access.
    pub address: Option<u64>,
    /// Cost of the sampled access, in cycles.
    pub weight: Option<u64>,
    /// Source of the sampled data.
    pub data_source: Option<u64>,
    /// Registers of 64-bit code.
    pub regs: Option<Vec<u64>>,
    pub is_32_bit: bool,
    /// The copied stack, as far as it is valid.
    pub stack: Cow<'a, [u8]>,
}

impl RawSample<'_> {
    /// Drops the leaf end of the call chain up to and including `address`, if that is near the leaf.
    pub fn drop_leaf_up_to(&mut self, address: u64) {
        // A marker, and at most three functions between the tracepoint and the program at it.
        const NEAR: usize = 6;
        let Some(at) = self.callchain.iter().take(NEAR).position(|&known| known == address) else { return };
        self.callchain.drain(1..=at);
    }

    /// Drops the BPF program that wrote the sample from the leaf end of the call chain, and how the kernel came to it from one of
    /// these tracepoints.
    pub fn drop_program(&mut self, tracepoints: &[u64]) {
        // A marker, the program, and the function that runs it. The tracepoint has a function of its own, and an address there, only
        // while other programs or events are at it.
        const PROGRAM: usize = 3;
        let frames = self.callchain.len();
        tracepoints.iter().for_each(|&address| self.drop_leaf_up_to(address));
        if self.callchain.len() == frames && frames > PROGRAM {
            self.callchain.drain(1..PROGRAM);
        }
    }
}

/// A mapping that a process made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Map {
    pub pid: i32,
    pub start: u64,
    pub length: u64,
    pub offset: u64,
    pub file: FileIdentity,
    pub executable: bool,
    pub kernel: bool,
    pub path: Vec<u8>,
}

/// What tells files of one path apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) enum FileIdentity {
    #[default]
    Unknown,
    BuildId(Vec<u8>),
    Inode {
        major: u32,
        minor: u32,
        inode: u64,
        generation: u64,
    },
}

/// Integers of the source's byte order.
struct Cursor<'a> {
    data: RawData<'a>,
    endian: Endianness,
}

impl<'a> Cursor<'a> {
    fn u64(&mut self) -> Result<u64, Malformed> {
        let mut bytes = [0; 8];
        self.data.read_exact(&mut bytes)?;
        Ok(match self.endian {
            Endianness::LittleEndian => u64::from_le_bytes(bytes),
            Endianness::BigEndian => u64::from_be_bytes(bytes),
        })
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        let mut bytes = [0; 4];
        self.data.read_exact(&mut bytes)?;
        Ok(match self.endian {
            Endianness::LittleEndian => u32::from_le_bytes(bytes),
            Endianness::BigEndian => u32::from_be_bytes(bytes),
        })
    }

    fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(self.u32()? as i32)
    }

    fn bytes(&mut self, length: u64) -> Result<RawData<'a>, Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        if length > self.data.len() {
            return Err(Malformed);
        }
        Ok(self.data.split_off_prefix(length)?)
    }

    fn u64s(&mut self, count: u64) -> Result<Vec<u64>, Malformed> {
        let bytes = self.bytes(count.checked_mul(8).ok_or(Malformed)?)?.as_slice();
        let words = bytes.as_chunks::<8>().0.iter();
        Ok(match self.endian {
            Endianness::LittleEndian => words.map(|&word| u64::from_le_bytes(word)).collect(),
            Endianness::BigEndian => words.map(|&word| u64::from_be_bytes(word)).collect(),
        })
    }

    fn skip_u64s(&mut self, count: u64) -> Result<(), Malformed> {
        self.bytes(count.checked_mul(8).ok_or(Malformed)?).map(|_| ())
    }

    fn text(&mut self) -> Vec<u8> {
        let text = self.data.read_string().unwrap_or(RawData::empty());
        text.as_slice().into_owned()
    }
}

impl<'a> Record<'a> {
    pub fn parse(raw: &RawEventRecord<'a>) -> Result<Self, Malformed> {
        let info = &raw.parse_info;
        if raw.record_type == RecordType::SAMPLE {
            return parse_sample(raw.data, raw.misc, info);
        }
        let common = raw.common_data()?;
        let mut cursor = Cursor { data: raw.data, endian: info.endian };
        let body = match raw.record_type {
            RecordType::COMM => Body::Comm {
                ids: ThreadIds { pid: cursor.u32()?, tid: cursor.u32()? },
                name: String::from_utf8_lossy(&cursor.text()).into_owned(),
                exec: raw.misc & PERF_RECORD_MISC_COMM_EXEC != 0,
            },
            RecordType::FORK | RecordType::EXIT => {
                let (pid, parent_pid) = (cursor.u32()?, cursor.u32()?);
                let (tid, parent_tid) = (cursor.u32()?, cursor.u32()?);
                match raw.record_type {
                    RecordType::FORK => Body::Fork {
                        child: ThreadIds { pid, tid },
                        parent: ThreadIds { pid: parent_pid, tid: parent_tid },
                    },
                    _ => Body::Exit { tid },
                }
            }
            RecordType::MMAP => parse_map(cursor, raw.misc)?,
            RecordType::MMAP2 => parse_map2(cursor, raw.misc)?,
            RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => {
                let way = match raw.misc & PERF_RECORD_MISC_SWITCH_OUT != 0 {
                    false => SwitchWay::In,
                    true => SwitchWay::Out { preempted: raw.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0 },
                };
                let cpu_wide = raw.record_type == RecordType::SWITCH_CPU_WIDE;
                let other_tid = match cpu_wide {
                    true => {
                        cursor.u32()?;
                        Some(cursor.u32()?)
                    }
                    false => None,
                };
                Body::Switch(Switch { way, cpu_wide, other_tid })
            }
            RecordType::LOST => {
                cursor.u64()?;
                Body::Lost(cursor.u64()?)
            }
            RecordType::LOST_SAMPLES => Body::Lost(cursor.u64()?),
            RecordType::THROTTLE => Body::Throttled,
            _ => Body::Other,
        };
        Ok(Self { time: common.timestamp, pid: common.pid, tid: common.tid, cpu: common.cpu, body })
    }
}

fn parse_map<'a>(mut cursor: Cursor<'a>, misc: u16) -> Result<Body<'a>, Malformed> {
    const MISC_MMAP_DATA: u16 = 1 << 13;
    let (pid, _tid) = (cursor.i32()?, cursor.i32()?);
    let (start, length, offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    Ok(Body::Map(Map {
        pid,
        start,
        length,
        offset,
        file: FileIdentity::Unknown,
        executable: misc & MISC_MMAP_DATA == 0,
        kernel: is_kernel(misc),
        path: cursor.text(),
    }))
}

fn parse_map2<'a>(mut cursor: Cursor<'a>, misc: u16) -> Result<Body<'a>, Malformed> {
    const PROT_EXEC: u32 = 4;
    let (pid, _tid) = (cursor.i32()?, cursor.i32()?);
    let (start, length, offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let file = if misc & PERF_RECORD_MISC_MMAP_BUILD_ID != 0 {
        let block = cursor.bytes(24)?.as_slice().into_owned();
        // One event's flag leaks into the records of events that did not ask for build-ids (seen on Linux 6.18). Device and
        // inode numbers follow then, and the size is mostly impossible.
        match block[4..].get(..usize::from(block[0])) {
            Some(id) => FileIdentity::BuildId(id.to_vec()),
            None => FileIdentity::Unknown,
        }
    } else {
        FileIdentity::Inode {
            major: cursor.u32()?,
            minor: cursor.u32()?,
            inode: cursor.u64()?,
            generation: cursor.u64()?,
        }
    };
    let (protection, _flags) = (cursor.u32()?, cursor.u32()?);
    Ok(Body::Map(Map {
        pid,
        start,
        length,
        offset,
        file,
        executable: protection & PROT_EXEC != 0,
        kernel: is_kernel(misc),
        path: cursor.text(),
    }))
}

fn is_kernel(misc: u16) -> bool {
    misc & PERF_RECORD_MISC_CPUMODE_MASK == PERF_RECORD_MISC_KERNEL
}

fn parse_sample<'a>(data: RawData<'a>, misc: u16, info: &RecordParseInfo) -> Result<Record<'a>, Malformed> {
    let has = |format: SampleFormat| info.sample_format.contains(format);
    let mut cursor = Cursor { data, endian: info.endian };
    let mut record = Record { time: None, pid: None, tid: None, cpu: None, body: Body::Other };
    let mut sample = RawSample { in_kernel: is_kernel(misc), ..RawSample::default() };
    if has(SampleFormat::IDENTIFIER) {
        cursor.u64()?;
    }
    if has(SampleFormat::IP) {
        sample.ip = Some(cursor.u64()?);
    }
    if has(SampleFormat::TID) {
        record.pid = Some(cursor.i32()?);
        record.tid = Some(cursor.i32()?);
    }
    if has(SampleFormat::TIME) {
        record.time = Some(cursor.u64()?);
    }
    if has(SampleFormat::ADDR) {
        sample.address = Some(cursor.u64()?);
    }
    for format in [SampleFormat::ID, SampleFormat::STREAM_ID] {
        if has(format) {
            cursor.u64()?;
        }
    }
    if has(SampleFormat::CPU) {
        record.cpu = Some(cursor.u32()?);
        cursor.u32()?;
    }
    if has(SampleFormat::PERIOD) {
        sample.period = Some(cursor.u64()?);
    }
    if has(SampleFormat::READ) {
        skip_read(&mut cursor, info.read_format)?;
    }
    if has(SampleFormat::CALLCHAIN) {
        let count = cursor.u64()?;
        sample.callchain = cursor.u64s(count)?;
    }
    if has(SampleFormat::RAW) {
        let size = cursor.u32()?;
        sample.raw = Some(cursor.bytes(size.into())?.as_slice());
    }
    if has(SampleFormat::BRANCH_STACK) {
        let count = cursor.u64()?;
        if info.branch_sample_format.contains(BranchSampleFormat::HW_INDEX) {
            cursor.u64()?;
        }
        cursor.skip_u64s(count.checked_mul(3).ok_or(Malformed)?)?;
    }
    if has(SampleFormat::REGS_USER) {
        const ABI_NONE: u64 = 0;
        const ABI_32: u64 = 1;
        let abi = cursor.u64()?;
        let values = if abi == ABI_NONE { None } else { Some(cursor.u64s(info.user_regs_count.into())?) };
        // Only 64-bit stacks are unwound.
        sample.regs = values.filter(|_| abi != ABI_32);
        sample.is_32_bit = abi == ABI_32;
    }
    if has(SampleFormat::STACK_USER) {
        let copied = cursor.u64()?;
        if copied != 0 {
            let stack = cursor.bytes(copied)?;
            let valid = cursor.u64()?.min(copied) as usize;
            sample.stack = stack.get(0..valid).ok_or(Malformed)?.as_slice();
        }
    }
    if has(SampleFormat::WEIGHT) {
        sample.weight = Some(cursor.u64()?);
    } else if has(SampleFormat::WEIGHT_STRUCT) {
        // The latency of the data, then two other ones (`union perf_sample_weight`).
        sample.weight = Some(cursor.u64()? & 0xffff_ffff);
    }
    if has(SampleFormat::DATA_SRC) {
        sample.data_source = Some(cursor.u64()?);
    }
    // What follows is not used: transactions, registers of the interrupt, physical addresses.
    record.body = Body::Sample(sample);
    Ok(record)
}

/// `PERF_SAMPLE_READ`: one value, or a group of them, with the optional parts after it (perf_event_open(2)).
fn skip_read(cursor: &mut Cursor<'_>, format: ReadFormat) -> Result<(), Malformed> {
    const READ_LOST: u64 = 1 << 4;
    let has = |bit: ReadFormat| u64::from(format.contains(bit));
    let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
    let value = 1 + has(ReadFormat::ID) + u64::from(format.bits() & READ_LOST != 0);
    if format.contains(ReadFormat::GROUP) {
        let members = cursor.u64()?;
        cursor.skip_u64s(times)?;
        cursor.skip_u64s(members.checked_mul(value).ok_or(Malformed)?)
    } else {
        cursor.skip_u64s(times + value)
    }
}
