//! [`Stored`]: the rows of a long table, which stay on disk until they are needed.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Rows in memory, or in a file of a capture until they are first used.
///
/// It reads as a `Vec`. A change detaches the rows from their file. Where the file cannot be read there are no rows, and
/// [`error`](Self::error) says why: callers that open captures without reading them must ask before they show a result.
pub struct Stored<R> {
    rows: OnceLock<Result<Vec<R>, String>>,
    source: Option<Arc<dyn Source<R>>>,
}

/// Why rows could not be read from their file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: damaged: {reason}; record or copy the capture again", path.display())]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// A table on disk.
pub(crate) trait Source<R>: Send + Sync {
    /// Where it is, and what it must contain.
    fn file(&self) -> &StoredFile;

    /// All of its rows.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn read(&self) -> Result<Vec<R>, String>;

    /// All of its rows, some at a time, in the order of the file.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn stream(&self, take: &mut dyn FnMut(&[R])) -> Result<(), String>;
}

/// The file of a table as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredFile {
    pub path: PathBuf,
    pub rows: u64,
    pub bytes: u64,
    pub crc32: u32,
}

impl<R> Stored<R> {
    pub(crate) fn on_disk(source: impl Source<R> + 'static) -> Self {
        Self { rows: OnceLock::new(), source: Some(Arc::new(source)) }
    }

    /// The file that holds exactly these rows, if there is one.
    pub(crate) fn file(&self) -> Option<&StoredFile> {
        self.source.as_ref().map(|source| source.file())
    }

    /// Number of rows. Reads no file.
    pub fn len(&self) -> usize {
        match (self.rows.get(), &self.source) {
            (Some(rows), _) => rows.as_ref().map_or(0, Vec::len),
            (None, Some(source)) => source.file().rows as usize,
            (None, None) => 0,
        }
    }

    /// Whether there are no rows. Reads no file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why the rows could not be read from their file.
    pub fn error(&self) -> Option<LoadError> {
        let reason = self.rows.get()?.as_ref().err()?.clone();
        Some(LoadError { path: self.file()?.path.clone(), reason })
    }

    /// The rows that are in memory now.
    pub(crate) fn in_memory(&self) -> &[R] {
        self.rows.get().and_then(|rows| rows.as_deref().ok()).unwrap_or_default()
    }

    /// Reads the rows from their file, if they are not in memory.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn load(&self) -> Result<(), LoadError> {
        let _ = self.read();
        self.error().map_or(Ok(()), Err)
    }

    /// Gives all rows to `take`, some at a time. Rows on disk are not kept in memory, and come in the order of the file.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn stream(&self, mut take: impl FnMut(&[R])) -> Result<(), LoadError> {
        match (&self.source, self.rows.get()) {
            (Some(source), None) => {
                let path = || source.file().path.clone();
                source.stream(&mut take).map_err(|reason| LoadError { path: path(), reason })
            }
            _ => {
                take(self);
                self.load()
            }
        }
    }

    #[inline]
    fn read(&self) -> &Result<Vec<R>, String> {
        self.rows.get_or_init(|| self.source.as_ref().map_or_else(|| Ok(Vec::new()), |source| source.read()))
    }
}

impl<R> Deref for Stored<R> {
    type Target = Vec<R>;

    #[inline]
    fn deref(&self) -> &Vec<R> {
        self.read().as_ref().unwrap_or(const { &Vec::new() })
    }
}

impl<R> DerefMut for Stored<R> {
    fn deref_mut(&mut self) -> &mut Vec<R> {
        self.read();
        self.source = None;
        let rows = self.rows.get_mut().expect("it was just read");
        if rows.is_err() {
            *rows = Ok(Vec::new());
        }
        rows.as_mut().expect("an error was just replaced")
    }
}

impl<R> Default for Stored<R> {
    fn default() -> Self {
        Self { rows: OnceLock::new(), source: None }
    }
}

impl<R> From<Vec<R>> for Stored<R> {
    fn from(rows: Vec<R>) -> Self {
        Self { rows: OnceLock::from(Ok(rows)), source: None }
    }
}

impl<R> FromIterator<R> for Stored<R> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Self {
        rows.into_iter().collect::<Vec<R>>().into()
    }
}

impl<R: Clone> Clone for Stored<R> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), source: self.source.clone() }
    }
}

impl<R: PartialEq> PartialEq for Stored<R> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<R: fmt::Debug> fmt::Debug for Stored<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rows.get(), self.file()) {
            (None, Some(file)) => write!(f, "{} rows in {}", file.rows, file.path.display()),
            _ => (**self).fmt(f),
        }
    }
}

impl<'a, R> IntoIterator for &'a Stored<R> {
    type Item = &'a R;
    type IntoIter = std::slice::Iter<'a, R>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
