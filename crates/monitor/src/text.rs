//! Small texts of the kernel: files that stay open, and numbers in them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes that are asked for at once: more than any text of one record has.
const READ_BYTES: usize = 16 << 10;

/// A file of the kernel, which makes a new text whenever it is read from the start.
#[derive(Debug)]
pub struct HeldFile(File);

impl HeldFile {
    /// Opens it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// The present text of a file that the kernel writes in one piece.
    pub fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        buffer.resize(READ_BYTES, 0);
        let length = self.0.read_at(buffer, 0)?;
        Ok(&buffer[..length])
    }

    /// The present text of a file that the kernel writes record by record.
    pub fn read_all<'a>(&self, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        let mut length = 0;
        loop {
            if buffer.len() < length + READ_BYTES {
                buffer.resize(length + READ_BYTES, 0);
            }
            match self.0.read_at(&mut buffer[length..], length as u64)? {
                0 => return Ok(&buffer[..length]),
                read => length += read,
            }
        }
    }
}

/// The whole text of a file that is read rarely.
pub fn read_whole(path: impl AsRef<Path>, buffer: &mut Vec<u8>) -> io::Result<&[u8]> {
    HeldFile::open(path)?.read_all(buffer)
}

/// Lines of a text.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

/// Fields between white space.
pub fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// The decimal number that a field is.
pub fn number(field: &[u8]) -> Option<i64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// The number behind a key, in the first line that starts with it: `Pss:  12 kB`, `nr_throttled 5`.
pub fn number_of(text: &[u8], key: &[u8]) -> Option<i64> {
    let line = lines(text).find(|line| line.starts_with(key))?;
    number(fields(&line[key.len()..]).next()?)
}

/// The same, for numbers of kibibytes.
pub fn kibibytes_of(text: &[u8], key: &[u8]) -> Option<i64> {
    number_of(text, key)?.checked_mul(1024)
}

/// The number of a key of a text file, where it has one.
pub fn number_in(path: &Path, key: &[u8], buffer: &mut Vec<u8>) -> Option<i64> {
    number_of(read_whole(path, buffer).ok()?, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_file_has_a_new_text_at_each_read() {
        let file = HeldFile::open("/proc/self/stat").unwrap();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let first = file.read(&mut first).unwrap().to_vec();
        let memory = std::hint::black_box(vec![1_u8; 32 << 20]);
        let second = file.read(&mut second).unwrap();
        assert!(first.starts_with(std::process::id().to_string().as_bytes()));
        assert_ne!(first, second, "{} bytes more are resident", memory.len());
    }

    #[test]
    fn a_text_of_many_records_is_read_whole() {
        let mut buffer = Vec::new();
        let whole = read_whole("/proc/self/smaps", &mut buffer).unwrap();
        assert!(whole.len() > READ_BYTES && whole.ends_with(b"\n"), "{}", whole.len());
    }

    #[test]
    fn numbers_are_found_behind_their_keys() {
        let text = b"Rss:  12 kB\nPss: 7 kB\nnr_throttled 5\n";
        assert_eq!((kibibytes_of(text, b"Pss:"), number_of(text, b"nr_throttled")), (Some(7168), Some(5)));
        assert_eq!(number_of(text, b"missing"), None);
    }
}
