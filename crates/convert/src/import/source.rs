//! Sources of imports: a file, standard input, or any reader.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use stepscope_model::quantity;

use super::ImportError;
use super::lines::LONGEST_LINE;

/// Number of bytes by which a format is recognised.
pub const HEAD_BYTES: usize = 64 * 1024;

/// Bytes to import, and their name in errors and in the capture's origin.
pub struct Source<'a> {
    name: String,
    bytes: Bytes<'a>,
    folder: Option<PathBuf>,
    watch: Option<&'a AtomicU64>,
}

enum Bytes<'a> {
    File(File),
    Stream(Box<dyn Read + 'a>),
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Bytes::File(file) => file.read(buffer),
            Bytes::Stream(stream) => stream.read(buffer),
        }
    }
}

impl<'a> Source<'a> {
    /// The file at `path`, the CTF trace if it is a folder with one, or standard input if `path` is `-`.
    ///
    /// # Errors
    /// [`ImportError::Open`] if there is no such file or it may not be read, [`ImportError::Folder`] if it is a folder
    /// without a trace.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        if path == Path::new("-") {
            return Ok(Self::stdin());
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| ImportError::Open { file: name.clone(), source })?;
        if path.is_dir() {
            let trace = stepscope_ctf::first_trace(path).ok_or_else(|| ImportError::Folder(name.clone()))?;
            let metadata = trace.join(stepscope_ctf::METADATA_FILE);
            let file = File::open(metadata).map_err(|source| ImportError::Open { file: name.clone(), source })?;
            return Ok(Self { name, bytes: Bytes::File(file), folder: Some(path.to_owned()), watch: None });
        }
        // The metadata of a trace stand for it.
        let is_metadata = path.file_name().is_some_and(|name| name == stepscope_ctf::METADATA_FILE);
        let folder = path.parent().filter(|_| is_metadata).map(Path::to_owned);
        Ok(Self { name, bytes: Bytes::File(file), folder, watch: None })
    }

    /// Standard input, named `-`.
    pub fn stdin() -> Self {
        Self::stream("-", io::stdin().lock())
    }

    /// A stream with a name of the caller's choice. Formats that seek read it into memory.
    pub fn stream(name: impl Into<String>, stream: impl Read + 'a) -> Self {
        Self { name: name.into(), bytes: Bytes::Stream(Box::new(stream)), folder: None, watch: None }
    }

    /// Counts consumed bytes in `bytes`, for a progress display on another thread.
    pub fn counting(mut self, bytes: &'a AtomicU64) -> Self {
        self.watch = Some(bytes);
        self
    }

    /// Reads the head, and unpacks gzip and zstd.
    pub(in crate::import) fn into_input(self) -> Result<Input<'a>, ImportError> {
        let mut input = Input::new(self.name, self.bytes, self.watch)?;
        input.folder = self.folder;
        match input.head.as_slice() {
            [0x1f, 0x8b, ..] => {
                input.unpacked("gzip", |packed| Ok(Box::new(flate2::read::MultiGzDecoder::new(packed))))
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                input.unpacked("zstd", |packed| Ok(Box::new(zstd::stream::read::Decoder::new(packed)?)))
            }
            _ => Ok(input),
        }
    }
}

/// The bytes that a format reads, including those by which it was recognised, through [`Read`].
pub struct Input<'a> {
    name: String,
    head: Vec<u8>,
    head_is_whole: bool,
    read_of_head: usize,
    rest: Bytes<'a>,
    watch: Option<&'a AtomicU64>,
    damage: Damage,
    folder: Option<PathBuf>,
}

impl<'a> Input<'a> {
    fn new(name: String, mut bytes: Bytes<'a>, watch: Option<&'a AtomicU64>) -> Result<Self, ImportError> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let head_is_whole = match read_head(&mut bytes, &mut head) {
            Ok(is_whole) => is_whole,
            Err(source) if head.is_empty() => return Err(ImportError::Read { file: name, offset: 0, source }),
            // The bytes before the error are valid, and the reader meets the error again.
            Err(_) => false,
        };
        Ok(Self {
            name,
            head,
            head_is_whole,
            read_of_head: 0,
            rest: bytes,
            watch,
            damage: Damage::default(),
            folder: None,
        })
    }

    fn unpacked(
        mut self,
        packing: &'static str,
        decoder: impl FnOnce(Self) -> io::Result<Box<dyn Read + 'a>>,
    ) -> Result<Input<'a>, ImportError> {
        let name = std::mem::take(&mut self.name);
        let damage = Damage::default();
        let decoder = decoder(self).map_err(|source| ImportError::Read { file: name.clone(), offset: 0, source })?;
        let unpacked = Unpacked { decoder, packing, bytes: 0, damage: damage.clone() };
        Ok(Input { damage, ..Input::new(name, Bytes::Stream(Box::new(unpacked)), None)? })
    }

    /// A part of another input.
    pub(in crate::import) fn of_bytes(name: String, bytes: &'a [u8]) -> Result<Self, ImportError> {
        Self::new(name, Bytes::Stream(Box::new(bytes)), None)
    }

    /// What is wrong with the bytes, as soon as the reader has met it.
    pub fn damage(&self) -> Damage {
        self.damage.clone()
    }

    /// The folder, if the input is one. The head is that of its file `metadata`.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Name of the bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The progress counter, for a format that does not read through [`Read`].
    pub(super) fn watch(&self) -> Option<&'a AtomicU64> {
        self.watch
    }

    /// The first [`HEAD_BYTES`], or everything if there is less; of a text, at least its first line of content.
    pub fn head(&self) -> Head<'_> {
        Head { bytes: &self.head, whole: self.head_is_whole }
    }

    /// The file itself at its start, if the bytes are a file that can seek.
    ///
    /// # Errors
    /// Returns the input if it is a pipe or was unpacked.
    pub fn into_file(mut self) -> Result<File, Self> {
        match self.rest {
            Bytes::File(mut file) => match file.seek(SeekFrom::Start(0)) {
                Ok(_) => Ok(file),
                Err(_) => {
                    self.rest = Bytes::File(file);
                    Err(self)
                }
            },
            Bytes::Stream(_) => Err(self),
        }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ahead = &self.head[self.read_of_head..];
        let read = if ahead.is_empty() {
            self.rest.read(buffer)?
        } else {
            let length = ahead.len().min(buffer.len());
            buffer[..length].copy_from_slice(&ahead[..length]);
            self.read_of_head += length;
            length
        };
        if let Some(watch) = self.watch {
            watch.fetch_add(read as u64, Ordering::Relaxed);
        }
        Ok(read)
    }
}

/// Reads [`HEAD_BYTES`], and of a text as much as has a whole line of content. True if these are all bytes.
fn read_head(bytes: &mut impl Read, head: &mut Vec<u8>) -> io::Result<bool> {
    let mut wanted = HEAD_BYTES;
    loop {
        (&mut *bytes).take((wanted - head.len()) as u64).read_to_end(head)?;
        let all = Head { bytes: head, whole: false };
        let has_content = |line: &[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"#");
        if head.len() < wanted {
            return Ok(true);
        }
        if wanted >= LONGEST_LINE || !all.is_text() || all.lines().any(has_content) {
            return Ok(false);
        }
        wanted *= 2;
    }
}

/// The damage of a packed input, once it is met.
#[derive(Debug, Clone, Default)]
pub struct Damage(Rc<OnceCell<String>>);

impl Damage {
    /// What is wrong, and where.
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// Unpacked bytes. They end where the packed ones are truncated or damaged, so that what comes before is read.
struct Unpacked<'a> {
    decoder: Box<dyn Read + 'a>,
    packing: &'static str,
    bytes: u64,
    damage: Damage,
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.damage.get().is_some() {
            return Ok(0);
        }
        match self.decoder.read(buffer) {
            Ok(read) => {
                self.bytes += read as u64;
                Ok(read)
            }
            // An error of the system is one of reading, not of the bytes.
            Err(error) if error.raw_os_error().is_some() || self.bytes == 0 => Err(error),
            Err(error) => {
                let what = if error.kind() == io::ErrorKind::UnexpectedEof { "truncated" } else { "damaged" };
                let (packing, bytes) = (self.packing, quantity::grouped(self.bytes.into()));
                let met = format!("the {packing} data are {what} after {bytes} unpacked bytes");
                self.damage.0.get_or_init(|| met);
                Ok(0)
            }
        }
    }
}

/// The first bytes of an input, by which a format is recognised.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether these are all bytes.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// Lines of the text. A last line that may be incomplete is left out.
    pub fn lines(self) -> impl Iterator<Item = &'a [u8]> {
        let end = match memchr::memrchr(b'\n', self.bytes) {
            _ if self.whole => self.bytes.len(),
            Some(last) => last,
            None => 0,
        };
        self.bytes[..end].split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Whether it can be text.
    pub fn is_text(self) -> bool {
        memchr::memchr(0, self.bytes).is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read_all(source: Source<'_>) -> String {
        let mut text = String::new();
        source.into_input().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn packed_input_is_unpacked_and_read_from_its_start() {
        let text = "main;a 1\n".repeat(20_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
        for bytes in [text.as_bytes(), &gzip, &zstd] {
            assert!(read_all(Source::stream("x", bytes)) == text);
        }
    }

    #[test]
    fn bytes_are_counted_when_consumed_not_when_peeked() {
        let counted = AtomicU64::new(0);
        let mut input = Source::stream("x", &b"0123456789"[..]).counting(&counted).into_input().unwrap();
        assert_eq!(input.head().bytes, b"0123456789");
        assert_eq!(counted.load(Ordering::Relaxed), 0);
        input.read_exact(&mut [0; 4]).unwrap();
        assert_eq!(counted.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn an_incomplete_last_line_is_not_part_of_the_head() {
        let lines = |whole| Head { bytes: b"a 1\r\nb 2", whole }.lines().collect::<Vec<_>>();
        assert_eq!(lines(false), [b"a 1"]);
        assert_eq!(lines(true), [b"a 1", b"b 2"]);
    }
}
