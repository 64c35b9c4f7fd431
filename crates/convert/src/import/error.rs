//! Why an import failed.

use std::io;

use stepscope_model::disk::DiskError;

/// Why an import failed. Every message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be opened.
    #[error("{file}: cannot be opened: {source}; check the path and its permissions")]
    Open {
        /// The file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// A folder was given.
    #[error("{0}: is a folder; captures need no import, open them with `stepscope show`")]
    Folder(String),
    /// A stream was given of a format whose inputs are folders.
    #[error("{0}: is the metadata of a CTF trace; import the trace's folder")]
    NotAFolder(String),
    /// A folder has no trace that can be read.
    #[error("{file}: {error}")]
    Trace {
        /// The folder.
        file: String,
        /// Why.
        error: stepscope_ctf::CtfError,
    },
    /// Reading or unpacking failed.
    #[error("{file}: cannot be read after byte {offset}: {source}; nothing was imported, try a new copy")]
    Read {
        /// The file.
        file: String,
        /// Bytes that were read, after unpacking.
        offset: u64,
        /// The error of the system or the decoder.
        source: io::Error,
    },
    /// A table of the capture cannot be written while the input is read.
    #[error("{0}; free space there, or write the capture elsewhere")]
    Write(#[from] DiskError),
    /// The file is empty.
    #[error("{0}: is empty; check the command that wrote it, and that it had finished")]
    Empty(String),
    /// The format is unknown.
    #[error("{file}: unknown format ({looks}); import one of {known}, or name the format")]
    Unrecognised {
        /// The file.
        file: String,
        /// What it looks like.
        looks: String,
        /// All import formats.
        known: String,
    },
    /// The format was recognised, but no record is valid.
    #[error("{file}: has no valid record of {format}{}; check that the file is complete and has that format", first.as_ref().map_or_else(String::new, |first| format!(" ({first})")))]
    Nothing {
        /// The file.
        file: String,
        /// The format.
        format: &'static str,
        /// Position and reason of the first rejected record, if any.
        first: Option<String>,
    },
    /// An importer made an inconsistent capture.
    #[error("{file}: the import is inconsistent ({rule}); this is a bug in stepscope, please report it with the file")]
    Inconsistent {
        /// The file.
        file: String,
        /// The broken rule.
        rule: String,
    },
}
