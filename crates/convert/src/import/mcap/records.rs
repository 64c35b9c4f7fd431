//! Records of an MCAP file: an opcode, a length, and as many bytes. Chunks hold records, packed or not. The file's index is not needed:
//! records are read from the start to the first damage.

use std::borrow::Cow;
use std::io::Read as _;

pub(super) const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// Largest chunk after unpacking. Writers make chunks of some MiB.
const LARGEST_CHUNK: u64 = 256 << 20;

/// Opcodes of the records that are read.
mod opcode {
    pub const SCHEMA: u8 = 3;
    pub const CHANNEL: u8 = 4;
    pub const MESSAGE: u8 = 5;
    pub const CHUNK: u8 = 6;
    pub const DATA_END: u8 = 15;
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// A message type.
    Schema { id: u16, name: &'a [u8] },
    /// A topic with its type.
    Channel { id: u16, schema: u16, topic: &'a [u8], encoding: &'a [u8] },
    /// A message.
    Message { channel: u16, log_time_ns: u64, data: &'a [u8] },
    /// Records in one piece.
    Chunk { compression: &'a [u8], size: u64, packed: &'a [u8] },
}

/// Fields of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(*self.bytes(2)?.first_chunk()?))
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes(4)?.first_chunk()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes(8)?.first_chunk()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.word()?;
        self.bytes(length as usize)
    }
}

/// The records from a start to the end, or to the first damage. What is not needed is left out.
pub(super) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    /// Those of a file after its magic bytes, or of a chunk.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Where the next record begins.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The next record; `Err` if it is damaged, and nothing can be read after it.
    pub fn next(&mut self) -> Option<Result<Record<'a>, &'static str>> {
        loop {
            let rest = &self.bytes[self.at..];
            // A file that was not finished ends with a record.
            let &operation = rest.first()?;
            let Some(length) = rest.get(1..).and_then(|rest| Fields(rest).long()) else {
                self.at = self.bytes.len();
                return Some(Err("a record is cut off"));
            };
            let end = usize::try_from(length).ok().and_then(|length| length.checked_add(9));
            let Some(content) = end.and_then(|end| rest.get(9..end)) else {
                self.at = self.bytes.len();
                return Some(Err("a record is cut off"));
            };
            self.at += 9 + content.len();
            match operation {
                opcode::DATA_END => {
                    self.at = self.bytes.len();
                    return None;
                }
                opcode::SCHEMA | opcode::CHANNEL | opcode::MESSAGE | opcode::CHUNK => {
                    return Some(parse(operation, content).ok_or("a record is shorter than its fields"));
                }
                // Index, metadata, attachments, and what comes in later versions.
                _ => {}
            }
        }
    }
}

fn parse(operation: u8, content: &[u8]) -> Option<Record<'_>> {
    let mut fields = Fields(content);
    Some(match operation {
        opcode::SCHEMA => Record::Schema { id: fields.short()?, name: fields.text()? },
        opcode::CHANNEL => {
            let (id, schema) = (fields.short()?, fields.short()?);
            Record::Channel { id, schema, topic: fields.text()?, encoding: fields.text()? }
        }
        opcode::MESSAGE => {
            let (channel, _sequence) = (fields.short()?, fields.word()?);
            let (log_time_ns, _publish_time) = (fields.long()?, fields.long()?);
            Record::Message { channel, log_time_ns, data: fields.0 }
        }
        _ => {
            let (_start, _end, size, _crc) = (fields.long()?, fields.long()?, fields.long()?, fields.word()?);
            let compression = fields.text()?;
            let length = fields.long()?;
            Record::Chunk { compression, size, packed: fields.bytes(usize::try_from(length).ok()?)? }
        }
    })
}

/// The records of a chunk, unpacked.
pub(super) fn unpack<'a>(compression: &[u8], size: u64, packed: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
    match compression {
        b"" => Ok(Cow::Borrowed(packed)),
        b"zstd" if size <= LARGEST_CHUNK => {
            let mut bytes = Vec::new();
            let unpacked = zstd::Decoder::new(packed).and_then(|decoder| decoder.take(size).read_to_end(&mut bytes));
            unpacked.map(|_| Cow::Owned(bytes)).map_err(|error| format!("a chunk cannot be unpacked ({error})"))
        }
        b"zstd" => Err(format!("a chunk claims to hold {size} bytes")),
        other => Err(format!(
            "chunks are packed by {}, and only zstd is read: `mcap compress --compression zstd FILE`",
            String::from_utf8_lossy(other)
        )),
    }
}
