//! [`Lines`]: the lines of a stream, without copies and in bounded memory.

use std::io::{self, Read};

/// Longer lines are skipped and counted as malformed. No tool writes such lines, and a file without line ends must not
/// be read into memory.
pub const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// Fits in a CPU's cache.
const FIRST_BUFFER: usize = 64 * 1024;

/// Reads lines. Its buffer grows to the longest line, up to [`LONGEST_LINE`].
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    number: u64,
}

/// One line, without its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its bytes, without `\
    /// ` or `\\r\
    /// `. Empty if [`too_long`](Self::too_long).
    pub bytes: &'a [u8],
    /// Its number, from 1.
    pub number: u64,
    /// Whether a line end follows. If not, the file may be truncated.
    pub ended: bool,
    /// Whether it exceeded [`LONGEST_LINE`] and was skipped.
    pub too_long: bool,
}

impl<R: Read> Lines<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; FIRST_BUFFER], start: 0, end: 0, offset: 0, number: 0 }
    }

    /// Bytes of the lines read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line, or `None` after the last.
    ///
    /// # Errors
    /// Errors of the reader. Earlier lines are valid.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = self.start;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let start = self.start;
                self.start = searched + at + 1;
                return Ok(Some(self.line(start, searched + at, true)));
            }
            if self.end - self.start >= LONGEST_LINE {
                return self.skip_line();
            }
            searched = self.end - self.start;
            self.make_room();
            let read = self.fill()?;
            if read == 0 {
                let start = std::mem::replace(&mut self.start, self.end);
                return Ok((start < self.end).then(|| self.line(start, self.end, false)));
            }
        }
    }

    fn line(&mut self, start: usize, end: usize, ended: bool) -> Line<'_> {
        self.number += 1;
        self.offset += (self.start - start) as u64;
        let bytes = &self.buffer[start..end];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        Line { bytes, number: self.number, ended, too_long: false }
    }

    /// Moves unread bytes to the front, and doubles a full buffer.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize((self.buffer.len() * 2).min(LONGEST_LINE), 0);
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn skip_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut ended = false;
        self.offset += (self.end - self.start) as u64;
        (self.start, self.end) = (0, 0);
        while !ended && self.fill()? > 0 {
            let skipped = match memchr::memchr(b'\n', &self.buffer[..self.end]) {
                Some(at) => {
                    ended = true;
                    at + 1
                }
                None => self.end,
            };
            self.offset += skipped as u64;
            if ended {
                self.start = skipped;
            } else {
                self.end = 0;
            }
        }
        self.number += 1;
        Ok(Some(Line { bytes: &[], number: self.number, ended, too_long: true }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields a few bytes at a time, like a pipe.
    struct Dribble<'a>(&'a [u8]);

    impl Read for Dribble<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(buffer.len()).min(3);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn lines(reader: impl Read) -> Vec<(String, u64, bool)> {
        let mut lines = Lines::new(reader);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push((String::from_utf8_lossy(line.bytes).into_owned(), line.number, line.ended));
        }
        found
    }

    #[test]
    fn all_line_ends_are_read_in_pieces_of_any_size() {
        let text = b"first\r\n\nthird and longer\nlast";
        let expected = [("first", 1, true), ("", 2, true), ("third and longer", 3, true), ("last", 4, false)].map(own);
        assert_eq!(lines(&text[..]), expected);
        assert_eq!(lines(Dribble(text)), expected);
    }

    fn own((text, number, ended): (&str, u64, bool)) -> (String, u64, bool) {
        (text.to_owned(), number, ended)
    }

    #[test]
    fn a_line_longer_than_the_first_buffer_is_read_whole() {
        let long = "x".repeat(FIRST_BUFFER * 3 + 5);
        let text = format!("a\n{long}\nb\n");
        assert!(lines(text.as_bytes()) == [own(("a", 1, true)), own((&long, 2, true)), own(("b", 3, true))]);
    }

    #[test]
    fn a_line_above_the_limit_is_skipped_in_bounded_memory() {
        let before = io::Cursor::new(b"a\n".to_vec());
        let endless = io::repeat(b'x').take(3 * LONGEST_LINE as u64);
        let after = io::Cursor::new(b"\nb\n".to_vec());
        let mut lines = Lines::new(before.chain(endless).chain(after));
        assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"a");
        let skipped = lines.next_line().unwrap().unwrap();
        assert!(skipped.too_long && skipped.ended);
        assert_eq!(lines.next_line().unwrap().unwrap(), Line { bytes: b"b", number: 3, ended: true, too_long: false });
        assert_eq!(lines.next_line().unwrap(), None);
        assert_eq!(lines.offset(), 2 + 3 * LONGEST_LINE as u64 + 3);
        assert_eq!(lines.buffer.len(), LONGEST_LINE);
    }
}
