//! Numbers and texts from untrusted bytes.

use linux_perf_event_reader::Endianness;

/// Reads from the front of a slice. `None` if it ends too early.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub endian: Endianness,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], endian: Endianness) -> Self {
        Self { bytes, endian }
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?.try_into().ok()?;
        Some(match self.endian {
            Endianness::LittleEndian => u16::from_le_bytes(bytes),
            Endianness::BigEndian => u16::from_be_bytes(bytes),
        })
    }

    pub fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(match self.endian {
            Endianness::LittleEndian => u32::from_le_bytes(bytes),
            Endianness::BigEndian => u32::from_be_bytes(bytes),
        })
    }

    pub fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(match self.endian {
            Endianness::LittleEndian => u64::from_le_bytes(bytes),
            Endianness::BigEndian => u64::from_be_bytes(bytes),
        })
    }

    /// A length and that many bytes. The text ends at the first zero.
    pub fn text(&mut self) -> Option<String> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?).map(until_zero)
    }

    /// All remaining numbers.
    pub fn u64s(mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.u64()).collect()
    }
}

/// The text before the first zero.
pub fn until_zero(bytes: &[u8]) -> String {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
