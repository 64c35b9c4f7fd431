//! A temporary folder for one run.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed with its content when it is dropped.
pub struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    /// Creates a new folder.
    ///
    /// # Errors
    /// If it cannot be created; the message names it.
    pub fn new(purpose: &str) -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ground-{purpose}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}; is TMPDIR writable?", path.display()))
        })?;
        Ok(Self { path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, as far as possible.
    pub fn remove(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        self.remove();
    }
}
