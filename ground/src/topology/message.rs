//! Messages, their bytes on the wire, and the sizes of the framework's message types.

use serde::Deserialize;

/// The largest payload, bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// How a message is passed within the process: `msg_pass_by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassBy {
    /// A publisher passes its message on; a subscriber receives its own message, which is a copy unless it is the only
    /// subscriber.
    #[serde(alias = "loaned_msg")]
    UniquePtr,
    /// A publisher copies its message; subscribers share it.
    SharedPtr,
}

/// The size of a message type. A kilobyte is 1024 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum MessageSize {
    /// `stamped10b`, `stamped100kb`, `stamped8mb`, `stamped9_float32`, `stamped4_int32`, `stamped_int64`: this many bytes.
    Fixed(usize),
    /// `stamped_vector`: `msg_size` bytes.
    Vector,
}

impl TryFrom<String> for MessageSize {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let rest = name.strip_prefix("stamped").unwrap_or(&name).trim_start_matches('_');
        let digits = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
        let (count, unit) = rest.split_at(digits);
        let unit = match (count, unit.trim_start_matches('_')) {
            ("", "vector") => return Ok(MessageSize::Vector),
            ("", "int64") => return Ok(MessageSize::Fixed(8)),
            (_, "b") => Some(1),
            (_, "kb") => Some(1 << 10),
            (_, "mb") => Some(1 << 20),
            (_, "float32" | "int32") => Some(4),
            _ => None,
        };
        let bytes = unit.zip(count.parse().ok()).and_then(|(unit, count): (usize, usize)| count.checked_mul(unit));
        let bytes = bytes.filter(|bytes| *bytes <= MAX_PAYLOAD_BYTES);
        bytes.map(MessageSize::Fixed).ok_or_else(|| {
            format!(
                "`{name}` is not a message type; use for example stamped10b, stamped100kb, stamped9_float32, stamped_int64 \
                 or stamped_vector, up to 64 MB"
            )
        })
    }
}

impl MessageSize {
    /// Bytes of a message; `msg_size` is the size of a vector.
    pub fn bytes(self, msg_size: usize) -> usize {
        match self {
            MessageSize::Fixed(bytes) => bytes,
            MessageSize::Vector => msg_size,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 28;

impl Message {
    /// Encodes it, little-endian: the header, then the payload.
    pub fn serialize(&self) -> Vec<u8> {
        let Header { writer, number, stamp_ns, period_ns } = self.header;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.payload.len());
        for word in [number, stamp_ns, period_ns] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&writer.to_le_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// Decodes a message. `None` if there are too few bytes.
    pub fn deserialize(bytes: &[u8]) -> Option<Self> {
        let (header, payload) = bytes.split_at_checked(HEADER_BYTES)?;
        let wide = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes of the header"));
        let writer = u32::from_le_bytes(header[24..].try_into().expect("the last four bytes of the header"));
        let header = Header { number: wide(0), stamp_ns: wide(8), period_ns: wide(16), writer };
        Some(Self { header, payload: payload.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_sets_the_size_of_a_type() {
        let size = |name: &str| MessageSize::try_from(name.to_owned()).ok().map(|size| size.bytes(25_000));
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
            assert_eq!(size(name), Some(bytes), "{name}");
        }
        for name in
            ["stamped", "stamped10", "stampedb", "stamped10tb", "stamped99999999999999999999b", "stamped65mb", ""]
        {
            assert_eq!(size(name), None, "{name}");
        }
    }

    #[test]
    fn messages_survive_encoding_and_incomplete_headers_are_rejected() {
        let header = Header { writer: 7, number: u64::MAX, stamp_ns: 1 << 60, period_ns: 10_000_000 };
        let message = Message { header, payload: vec![1, 2, 3] };
        let bytes = message.serialize();
        assert_eq!(Message::deserialize(&bytes), Some(message));
        assert_eq!(Message::deserialize(&bytes[..HEADER_BYTES - 1]), None);
    }
}
