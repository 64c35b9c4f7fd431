//! Messages: the framework's types by name, their header, and their bytes on the wire.

use std::str::FromStr;

/// The payload of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// `byte[N]` and `uint8[]`.
    Bytes(Vec<u8>),
    /// `float32[N]`.
    Float32(Vec<f32>),
    /// `int32[N]`.
    Int32(Vec<i32>),
    /// `int64`.
    Int64(i64),
}

impl Payload {
    /// Size, bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Float32(numbers) => 4 * numbers.len(),
            Payload::Int32(numbers) => 4 * numbers.len(),
            Payload::Int64(_) => 8,
        }
    }

    /// Appends its elements, little-endian.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Payload::Bytes(bytes) => out.extend_from_slice(bytes),
            Payload::Float32(numbers) => numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes())),
            Payload::Int32(numbers) => numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes())),
            Payload::Int64(number) => out.extend_from_slice(&number.to_le_bytes()),
        }
    }
}

/// A message type of the framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageType {
    /// `stamped10b`, `stamped100kb`, `stamped8mb`: bytes. A kilobyte is 1024.
    Bytes(usize),
    /// `stamped_vector`: `msg_size` bytes.
    Vector,
    /// `stamped9_float32`.
    Float32(usize),
    /// `stamped4_int32`.
    Int32(usize),
    /// `stamped_int64`.
    Int64,
}

/// The largest payload of a type's name or `msg_size`, bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// An unknown message type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown message type `{0}`; use stamped<N>b, stamped<N>kb, stamped<N>mb (up to 64 MB), stamped<N>_float32, \
     stamped<N>_int32, stamped_int64 or stamped_vector"
)]
pub struct UnknownType(String);

impl FromStr for MessageType {
    type Err = UnknownType;

    /// Reads the names of the framework, with `stamped` before them or, as in its first version, without.
    fn from_str(name: &str) -> Result<Self, UnknownType> {
        let unknown = || UnknownType(name.to_owned());
        let rest = name.strip_prefix("stamped").unwrap_or(name);
        let rest = rest.strip_prefix('_').unwrap_or(rest);
        match rest {
            "vector" => return Ok(MessageType::Vector),
            "int64" => return Ok(MessageType::Int64),
            _ => {}
        }
        let digits = rest.find(|sign: char| !sign.is_ascii_digit()).ok_or_else(unknown)?;
        let (count, unit) = rest.split_at(digits);
        let count: usize = count.parse().map_err(|_| unknown())?;
        let bytes =
            |unit: usize| count.checked_mul(unit).filter(|bytes| *bytes <= MAX_PAYLOAD_BYTES).ok_or_else(unknown);
        match unit.trim_start_matches('_') {
            "b" => bytes(1).map(MessageType::Bytes),
            "kb" => bytes(1 << 10).map(MessageType::Bytes),
            "mb" => bytes(1 << 20).map(MessageType::Bytes),
            "float32" => bytes(4).map(|bytes| MessageType::Float32(bytes / 4)),
            "int32" => bytes(4).map(|bytes| MessageType::Int32(bytes / 4)),
            _ => Err(unknown()),
        }
    }
}

impl MessageType {
    /// A payload of this type; `msg_size` is the number of bytes of a vector.
    pub fn make(self, msg_size: usize) -> Payload {
        match self {
            MessageType::Bytes(bytes) => Payload::Bytes(vec![0; bytes]),
            MessageType::Vector => Payload::Bytes(vec![0; msg_size]),
            MessageType::Float32(count) => Payload::Float32(vec![0.0; count]),
            MessageType::Int32(count) => Payload::Int32(vec![0; count]),
            MessageType::Int64 => Payload::Int64(0),
        }
    }
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Its writer.
    pub writer: u32,
    /// Number of earlier messages of the writer.
    pub number: u64,
    /// When `publish` was called, ns on the clock of [`now_ns`](super::clock::now_ns).
    pub stamp_ns: u64,
    /// The writer's period, ns.
    pub period_ns: u64,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: Payload,
}

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 36;

impl Message {
    /// Encodes it, little-endian: the header, the type and number of elements, the elements.
    pub fn serialize(&self, out: &mut Vec<u8>) {
        let Header { writer, number, stamp_ns, period_ns } = self.header;
        let (kind, count) = match &self.payload {
            Payload::Bytes(bytes) => (0_u32, bytes.len()),
            Payload::Float32(numbers) => (1, numbers.len()),
            Payload::Int32(numbers) => (2, numbers.len()),
            Payload::Int64(_) => (3, 1),
        };
        out.clear();
        out.reserve(HEADER_BYTES + self.payload.size_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&stamp_ns.to_le_bytes());
        out.extend_from_slice(&period_ns.to_le_bytes());
        out.extend_from_slice(&writer.to_le_bytes());
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&(count as u32).to_le_bytes());
        self.payload.write(out);
    }

    /// Decodes a message. `None` if the bytes are something else.
    pub fn deserialize(bytes: &[u8]) -> Option<Self> {
        let (header, elements) = bytes.split_at_checked(HEADER_BYTES)?;
        let wide = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes of the header"));
        let narrow = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes of the header"));
        let (kind, count) = (narrow(28), narrow(32) as usize);
        let size = [1, 4, 4, 8].get(kind as usize)?;
        if elements.len() != count.checked_mul(*size)? {
            return None;
        }
        let quads = || elements.as_chunks::<4>().0.iter().copied();
        let payload = match kind {
            0 => Payload::Bytes(elements.to_vec()),
            1 => Payload::Float32(quads().map(f32::from_le_bytes).collect()),
            2 => Payload::Int32(quads().map(i32::from_le_bytes).collect()),
            _ => Payload::Int64(i64::from_le_bytes(elements.try_into().ok()?)),
        };
        let header = Header { number: wide(0), stamp_ns: wide(8), period_ns: wide(16), writer: narrow(24) };
        Some(Self { header, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_sets_the_size_of_a_type() {
        let size = |name: &str| name.parse::<MessageType>().map(|found| found.make(25_000).size_bytes());
        for (name, bytes) in [
            ("stamped10b", 10),
            ("stamped600kb", 600 << 10),
            ("stamped8mb", 8 << 20),
            ("stamped9_float32", 36),
            ("stamped4_int32", 16),
            ("stamped_int64", 8),
            ("stamped_vector", 25_000),
            ("10b", 10),
            ("12float32", 48),
        ] {
            assert_eq!(size(name), Ok(bytes), "{name}");
        }
        for name in
            ["stamped", "stamped10", "stampedb", "stamped10tb", "stamped99999999999999999999b", "stamped65mb", ""]
        {
            assert_eq!(size(name), Err(UnknownType(name.to_owned())), "{name}");
        }
    }

    #[test]
    fn messages_survive_encoding_and_other_bytes_are_rejected() {
        let header = Header { writer: 7, number: u64::MAX, stamp_ns: 1 << 60, period_ns: 10_000_000 };
        let payloads = [
            Payload::Bytes(vec![1, 2, 3]),
            Payload::Float32(vec![1.5, -2.5]),
            Payload::Int32(vec![i32::MIN, 7]),
            Payload::Int64(-1),
        ];
        let mut bytes = Vec::new();
        for payload in payloads {
            let message = Message { header, payload };
            message.serialize(&mut bytes);
            assert_eq!(bytes.len(), HEADER_BYTES + message.payload.size_bytes());
            assert_eq!(Message::deserialize(&bytes), Some(message));
            for end in 0..bytes.len() {
                assert_eq!(Message::deserialize(&bytes[..end]), None, "cut off after {end} bytes");
            }
        }
        let mut odd = bytes.clone();
        odd[28] = 4;
        assert_eq!(Message::deserialize(&odd), None, "unknown element type");
        odd[28] = 1;
        odd[32..36].fill(0xff);
        assert_eq!(Message::deserialize(&odd), None, "more elements than bytes");
    }
}
