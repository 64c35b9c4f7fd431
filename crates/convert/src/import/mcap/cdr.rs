//! The Common Data Representation of DDS (OMG formal/02-06-51, 15.3): numbers aligned to their size from the end of the header on, and
//! texts with their length.

/// A message that is read from its start.
pub(super) struct Cdr<'a> {
    bytes: &'a [u8],
    at: usize,
    is_little: bool,
}

impl<'a> Cdr<'a> {
    /// Reads the header of four bytes: plain CDR in either byte order.
    pub fn of(message: &'a [u8]) -> Option<Self> {
        let (header, bytes) = message.split_at_checked(4)?;
        let is_little = match header[..2] {
            [0, 0] => false,
            [0, 1] => true,
            _ => return None,
        };
        Some(Self { bytes, at: 0, is_little })
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.at = self.at.checked_next_multiple_of(N)?;
        let mut number: [u8; N] = *self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        if !self.is_little {
            number.reverse();
        }
        Some(number)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.number().map(|[byte]| byte)
    }

    pub fn word(&mut self) -> Option<u32> {
        self.number().map(u32::from_le_bytes)
    }

    pub fn float(&mut self) -> Option<f64> {
        self.number().map(f64::from_le_bytes)
    }

    /// A text; bytes that are no UTF-8 end it.
    pub fn text(&mut self) -> Option<&'a str> {
        let length = self.word()? as usize;
        let bytes = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        Some(match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        })
    }

    /// The length of a sequence, whose elements have at least `least` bytes.
    pub fn length(&mut self, least: usize) -> Option<u32> {
        let length = self.word()?;
        let rest = self.bytes.len().saturating_sub(self.at);
        ((length as usize).checked_mul(least)? <= rest).then_some(length)
    }

    /// `builtin_interfaces/Time`.
    pub fn skip_time(&mut self) -> Option<()> {
        self.word()?;
        self.word()?;
        Some(())
    }
}
