//! [`Image`]: an ELF file in memory.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::{CompressedData, CompressionFormat, Object, ObjectSection, ObjectSegment};

use crate::Problem;

/// An ELF file in memory. Headers are parsed at each use, which is cheaper than storing them.
#[derive(Debug)]
pub(crate) struct Image {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

/// Limit of decompressed to compressed size of a section. Deflate cannot exceed it, so only false headers are refused.
const MAX_EXPANSION: u64 = 1100;

impl Image {
    /// Maps a file and checks that it is ELF.
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Problem::Missing(path.to_owned()),
            _ => Problem::Unreadable { path: path.to_owned(), reason: error.to_string() },
        };
        // The recorded path may be a device or a pipe. Opening those can block or have effects.
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(Problem::NotElf { path: path.to_owned(), reason: "not a regular file".to_owned() });
        }
        let file = File::open(path).map_err(unreadable)?;
        // SAFETY: the map is only read, as bytes. `Symbolizer::name` documents that the file may change meanwhile; the
        // parsers of `object` and `gimli` make no assumption about the bytes.
        let map = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
        Self::new(path.to_owned(), Bytes::Mapped(map))
    }

    /// An image that is not a file: the vdso, or a symbol table unpacked from a section.
    pub(crate) fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, Problem> {
        Self::new(path.to_owned(), Bytes::Owned(bytes))
    }

    fn new(path: PathBuf, bytes: Bytes) -> Result<Self, Problem> {
        let image = Self { path, bytes };
        match parse(image.bytes()) {
            Ok(_) => Ok(image),
            Err(reason) => Err(Problem::NotElf { path: image.path, reason }),
        }
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// The file's headers.
    pub(crate) fn elf(&self) -> object::File<'_> {
        parse(self.bytes()).expect("the same bytes were parsed when the image was opened")
    }

    /// GNU build-id.
    pub(crate) fn build_id(&self) -> Option<&[u8]> {
        self.elf().build_id().ok().flatten()
    }

    /// A section's bytes, decompressed. `None` if the section is missing, empty or damaged.
    pub(crate) fn section(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        section(&self.elf(), name)
    }
}

/// Parses ELF only: recordings have no other format, so other parsers need not see untrusted files.
fn parse(bytes: &[u8]) -> Result<object::File<'_>, String> {
    match object::FileKind::parse(bytes) {
        Ok(object::FileKind::Elf32 | object::FileKind::Elf64) => {
            object::File::parse(bytes).map_err(|error| error.to_string())
        }
        _ => Err("its first bytes are not those of ELF".to_owned()),
    }
}

/// A section's bytes, decompressed.
pub(crate) fn section<'data>(elf: &object::File<'data>, name: &str) -> Option<Cow<'data, [u8]>> {
    decompressed(elf.section_by_name(name)?.compressed_data().ok()?)
}

/// The bytes of a section that may be compressed. `None` if they are damaged, or there are none.
///
/// `object` has decoders as a feature, which is off: they are several times slower than these.
pub fn decompressed(section: CompressedData<'_>) -> Option<Cow<'_, [u8]>> {
    if section.data.is_empty() || section.uncompressed_size == 0 {
        return None;
    }
    if section.format == CompressionFormat::None {
        return Some(Cow::Borrowed(section.data));
    }
    let limit = (section.data.len() as u64).saturating_mul(MAX_EXPANSION).saturating_add(1 << 16);
    if section.uncompressed_size > limit {
        return None;
    }
    let size = usize::try_from(section.uncompressed_size).ok()?;
    match section.format {
        CompressionFormat::Zstandard => zstd::bulk::decompress(section.data, size).ok().map(Cow::Owned),
        CompressionFormat::Zlib => {
            let mut bytes = vec![0; size];
            let (written, status) = zlib_rs::decompress_slice(&mut bytes, section.data, Default::default());
            let is_whole = status == zlib_rs::ReturnCode::Ok && written.len() == size;
            is_whole.then_some(Cow::Owned(bytes))
        }
        _ => None,
    }
}

/// Converts between file offsets and the file's own addresses.
#[derive(Debug, Default)]
pub(crate) struct Segments(Vec<Segment>);

#[derive(Debug, Clone, Copy)]
struct Segment {
    file_start: u64,
    file_end: u64,
    address: u64,
    executable: bool,
}

impl Segments {
    pub(crate) fn of(elf: &object::File<'_>) -> Self {
        let mut segments: Vec<Segment> = elf
            .segments()
            .map(|segment| {
                let (file_start, size) = segment.file_range();
                Segment {
                    file_start,
                    file_end: file_start.saturating_add(size),
                    address: segment.address(),
                    executable: segment.permissions().executable(),
                }
            })
            .collect();
        // Two segments can share a page of the file; samples are in the executable one.
        segments.sort_by_key(|segment| !segment.executable);
        Self(segments)
    }

    /// Address of the byte at file offset `offset`.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let segment = self.0.iter().find(|segment| (segment.file_start..segment.file_end).contains(&offset))?;
        segment.address.checked_add(offset - segment.file_start)
    }

    /// What is added to a file offset in the code to get its address.
    pub(crate) fn code_bias(&self) -> Option<u64> {
        let code = self.0.iter().find(|segment| segment.executable)?;
        Some(code.address.wrapping_sub(code.file_start))
    }

    /// File offset of the byte at `address`.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        self.0.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            (inside < segment.file_end - segment.file_start).then_some(segment.file_start + inside)
        })
    }
}

/// Bytes as lower-case hexadecimal digits, the usual form of build-ids.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
