//! The bytes of a recording: mapped, or in memory if there is no file to map.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Mmap, UncheckedAdvice};

use crate::import::{ImportError, Input};

/// Size up to which a pipe or a packed file is held in memory; larger ones go to a temporary file.
const HELD_BYTES: u64 = 32 << 20;

/// Bytes after which mapped pages are released, since pages that were read count as our memory. Records are read twice,
/// when ordered and when used, and should stay in memory between.
const KEPT_BYTES: usize = 64 << 20;

/// All bytes of an input.
pub struct Content<'a> {
    bytes: Bytes,
    watch: Option<&'a AtomicU64>,
    touched: Cell<usize>,
    /// Why the bytes end early.
    pub cut: Option<String>,
}

enum Bytes {
    Mapped(Mmap),
    Held(Vec<u8>),
}

impl<'a> Content<'a> {
    /// Maps the input, or reads all of it.
    ///
    /// # Errors
    /// [`ImportError::Read`]. A packed file that ends early is no error; its content is kept.
    pub fn of(input: Input<'a>) -> Result<Self, ImportError> {
        let (name, watch) = (input.name().to_owned(), input.watch());
        let read_error = |offset| {
            let file = name.clone();
            move |source| ImportError::Read { file, offset, source }
        };
        match input.into_file() {
            Ok(file) => Ok(Self::new(Bytes::Mapped(map(&file).map_err(read_error(0))?), watch)),
            Err(mut stream) => {
                let mut held = Vec::new();
                let mut cut = read_some(&mut stream, &mut held).map_err(read_error(0))?;
                if cut.is_some() || (held.len() as u64) < HELD_BYTES {
                    return Ok(Self { cut, ..Self::new(Bytes::Held(held), None) });
                }
                let mut file = tempfile::tempfile().map_err(read_error(HELD_BYTES))?;
                let mut offset = 0;
                while !held.is_empty() {
                    file.write_all(&held).map_err(read_error(offset))?;
                    offset += held.len() as u64;
                    held.clear();
                    if cut.is_none() {
                        cut = read_some(&mut stream, &mut held).map_err(read_error(offset))?;
                    }
                }
                Ok(Self { cut, ..Self::new(Bytes::Mapped(map(&file).map_err(read_error(offset))?), None) })
            }
        }
    }

    fn new(bytes: Bytes, watch: Option<&'a AtomicU64>) -> Self {
        Self { bytes, watch, touched: Cell::new(0), cut: None }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Held(bytes) => bytes,
        }
    }

    /// Counts bytes read, in any order.
    pub fn touch(&self, count: usize) {
        self.touched.set(self.touched.get() + count);
        if self.touched.get() < KEPT_BYTES {
            return;
        }
        self.touched.set(0);
        if let Bytes::Mapped(map) = &self.bytes {
            // SAFETY: the map is never written to, so dropped pages are read again from the file. Failure costs only
            // memory.
            let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
    }

    /// Adds bytes to the progress counter.
    pub fn advance(&self, count: usize) {
        if let Some(watch) = self.watch {
            watch.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// Updates the progress counter.
    pub fn progress(&self, done: usize) {
        if let Some(watch) = self.watch {
            watch.store(done as u64, Ordering::Relaxed);
        }
    }
}

impl From<Vec<u8>> for Content<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Bytes::Held(bytes), None)
    }
}

fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the bytes are only read, and nothing is assumed of them. If another program truncates the file, this
    // process gets SIGBUS, as perf and debuggers do.
    unsafe { Mmap::map(file) }
}

/// Appends up to [`HELD_BYTES`]; returns why it ended early, if it did.
fn read_some(stream: &mut impl Read, into: &mut Vec<u8>) -> io::Result<Option<String>> {
    match stream.take(HELD_BYTES).read_to_end(into) {
        Ok(_) => Ok(None),
        // A truncated packed file.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && !into.is_empty() => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}
