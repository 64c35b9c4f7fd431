//! The output of a scenario or a driver: kept in a file, followed, and quoted if something fails.
//!
//! The program writes into the file itself. With a pipe, a slow reader would block the program, and the recording would
//! show that delay.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes read at the end of the file for its last lines.
const TAIL_BYTES: u64 = 64 << 10;

/// Bytes read at a time.
const READ_BYTES: u64 = 4 << 20;

/// A file that receives a program's output, and the position of its reader.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
}

impl OutputFile {
    /// The output file at `path`, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: None, offset: 0 }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// New output since the last call, at most a few MB.
    ///
    /// # Errors
    /// If the file exists but cannot be read.
    pub fn read_new(&mut self) -> io::Result<Vec<u8>> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        let Some(file) = &mut self.file else { return Ok(Vec::new()) };
        if file.metadata()?.len() < self.offset {
            // The program truncated its output (`> /dev/stdout`), so all content is new.
            self.offset = 0;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(READ_BYTES).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// The last `count` lines that are not blank, safe for a terminal. Empty without output.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let Ok(bytes) = read_end(&self.path) else { return Vec::new() };
        last_lines(&bytes, count)
    }
}

fn read_end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn last_lines(bytes: &[u8], count: usize) -> Vec<String> {
    let lines = bytes.split(|&byte| byte == b'\n' || byte == b'\r').rev();
    let mut last: Vec<String> = lines.map(printable).filter(|line| !line.trim().is_empty()).take(count).collect();
    last.reverse();
    last
}

/// A line without terminal escape sequences and other control characters.
pub fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape_sequence(&mut chars),
            '\t' => plain.push('\t'),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Skips what follows ESC, as ECMA-48 says: `[` parameters and a final byte, `]` a string up to BEL or ESC `\`, or a
/// single character.
fn skip_escape_sequence(chars: &mut std::iter::Peekable<std::str::Chars>) {
    match chars.next() {
        Some('[') => {
            for c in chars.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&c) {
                    return;
                }
            }
        }
        Some(']') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn new_output_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = OutputFile::new(folder.path().join("output.log"));
        assert_eq!(output.read_new().unwrap(), b"");
        let mut file = File::create(output.path()).unwrap();
        file.write_all(b"one\n").unwrap();
        assert_eq!(output.read_new().unwrap(), b"one\n");
        assert_eq!(output.read_new().unwrap(), b"");
        file.write_all(b"two").unwrap();
        assert_eq!(output.read_new().unwrap(), b"two");
        file.set_len(0).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(output.read_new().unwrap(), b"x");
    }

    #[test]
    fn the_last_lines_are_those_that_say_something() {
        assert_eq!(last_lines(b"a\nb\n\n  \nc\r10 %\r20 %\n", 3), ["c", "10 %", "20 %"]);
        assert_eq!(last_lines(b"", 3), Vec::<String>::new());
        assert_eq!(OutputFile::new("/nowhere/output.log").last_lines(3), Vec::<String>::new());
    }

    #[test]
    fn escape_sequences_and_control_characters_do_not_reach_a_terminal() {
        assert_eq!(printable(b"\x1b[1;32mLoaded\x1b[0m world\x07"), "Loaded world");
        assert_eq!(printable(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b"), "ab");
        assert_eq!(printable(b"\x1b[1;2"), "");
        assert_eq!(printable("a\tü\u{9b}31m".as_bytes()), "a\tü31m");
        assert_eq!(printable(b"\xff"), "\u{fffd}");
    }
}
