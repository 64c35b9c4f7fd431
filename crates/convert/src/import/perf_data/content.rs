//! The bytes of a recording: mapped, so that they take no memory of ours, or held where there is no file to map.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Mmap, UncheckedAdvice};

use crate::import::{ImportError, Input};

/// What comes out of a pipe or a packed file is held up to this size; beyond it, it goes to a temporary file.
const HELD_BYTES: u64 = 32 << 20;

/// Mapped pages count as ours once they were read. They are given back each time so many bytes were; records are read
/// twice, when they are put in order and when they are taken, and between these they had better stay.
const KEPT_BYTES: usize = 64 << 20;

/// All bytes of an input.
pub(super) struct Content<'a> {
    bytes: Bytes,
    watch: Option<&'a AtomicU64>,
    touched: Cell<usize>,
    /// Why the bytes end before they should.
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
    /// [`ImportError::Read`]. A packed file that ends early is no error: what it held is kept.
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

    /// Notes that so many bytes were read, in whatever order.
    pub fn touch(&self, count: usize) {
        self.touched.set(self.touched.get() + count);
        if self.touched.get() < KEPT_BYTES {
            return;
        }
        self.touched.set(0);
        if let Bytes::Mapped(map) = &self.bytes {
            // SAFETY: the map is never written to, so that dropped pages are read again from the file. It is advice:
            // where it fails, only memory is lost.
            let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
    }

    /// Tells those who watch the progress how many bytes are done.
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
    // SAFETY: the bytes are only read, and nothing is assumed of them. A file that another program truncates meanwhile
    // ends this one with SIGBUS, as it does perf and debuggers.
    unsafe { Mmap::map(file) }
}

/// Appends up to [`HELD_BYTES`]; gives why it ended early, if it did.
fn read_some(stream: &mut impl Read, into: &mut Vec<u8>) -> io::Result<Option<String>> {
    match stream.take(HELD_BYTES).read_to_end(into) {
        Ok(_) => Ok(None),
        // A packed file cut short.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && !into.is_empty() => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}
