//! Where a store is, and what can go wrong there.

use std::io;
use std::path::{Path, PathBuf};

use crate::bucket::{Bucket, BucketError};

/// A store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no store.
    #[error("{0}: no store here; `stepscope store add RUN --to {0}` creates one")]
    Absent(String),
    /// The folder holds something else.
    #[error("{0}: not empty and not a store; name another folder")]
    NotAStore(String),
    /// A newer program made it.
    #[error("{place}: schema {found} is newer than this program reads ({supported}); use a newer stepscope")]
    TooNew {
        /// The store.
        place: String,
        /// Its schema.
        found: u64,
        /// The newest that is read.
        supported: u32,
    },
    /// The request cannot be served. The message says what to change.
    #[error("{0}")]
    Usage(String),
    /// A bucket cannot be reached, read or written.
    #[error(transparent)]
    Bucket(#[from] BucketError),
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    move |source| StoreError::Io { path: path.to_owned(), source }
}

/// Where a store is.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A folder of this machine or of a shared file system.
    Folder(PathBuf),
    /// A bucket, with a folder that mirrors the part of it that was read.
    Bucket { bucket: Bucket, mirror: PathBuf },
}

impl Place {
    /// The folder that is read: the store, or the mirror of it.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::Bucket { mirror, .. } => mirror,
        }
    }

    /// Its name, as written.
    pub fn name(&self) -> String {
        match self {
            Self::Folder(folder) => folder.display().to_string(),
            Self::Bucket { bucket, .. } => bucket.url().to_owned(),
        }
    }
}
