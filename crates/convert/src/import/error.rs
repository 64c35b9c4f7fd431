//! Why an import failed.

use std::io;

use super::{FORMATS, Head};

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
    #[error("{file}: is a folder; captures need no import, open them with `stepscope show`")]
    Folder {
        /// The folder.
        file: String,
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
    /// The file is empty.
    #[error("{file}: is empty; check the command that wrote it, and that it had finished")]
    Empty {
        /// The file.
        file: String,
    },
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

impl ImportError {
    pub(super) fn unrecognised(file: &str, head: Head<'_>) -> Self {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
        Self::Unrecognised { file: file.to_owned(), looks: looks(head), known: known.join(", ") }
    }
}

/// Describes a file that is not a profile.
fn looks(head: Head<'_>) -> String {
    let known: &[(&[u8], &str)] = &[
        (b"\x7fELF", "it is a program or library; `stepscope record -- PROGRAM` records one"),
        (b"PK\x03\x04", "it is a zip archive; unpack it first"),
        (b"BZh", "it is packed with bzip2; unpack it first"),
        (b"\xfd7zXZ\0", "it is packed with xz; unpack it first"),
        (b"PAR1", "it is a Parquet table; if it is part of a capture, run `stepscope show` on its folder"),
        (b"<", "it is a web page or picture; import the stacks it was drawn from"),
        (b"{", "it is JSON; `stepscope` exports JSON but does not import it"),
        (b"[", "it is JSON; `stepscope` exports JSON but does not import it"),
    ];
    if is_toml(head) {
        return "it is TOML; if it is a lab file, `stepscope run` runs it".to_owned();
    }
    if let Some((_, looks)) = known.iter().find(|(start, _)| head.bytes.starts_with(start)) {
        return (*looks).to_owned();
    }
    if !head.is_text() {
        return "it is neither text nor a known binary format".to_owned();
    }
    let first = head.bytes.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let shown: String = String::from_utf8_lossy(first).chars().filter(|c| !c.is_control()).take(60).collect();
    format!("it begins with `{shown}`")
}

/// Whether the first line with content is a TOML table, `[project]` or `[[scenario]]`, or `key = value`. A JSON array
/// also begins with a bracket, but rarely has a bare word in it.
fn is_toml(head: Head<'_>) -> bool {
    let says = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
    let Some(first) = head.lines().map(<[u8]>::trim_ascii).find(says).filter(|_| head.is_text()) else { return false };
    let is_key = |text: &[u8]| {
        let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.\"".contains(byte);
        text.first().is_some_and(u8::is_ascii_alphabetic) && text.iter().all(is_of_key)
    };
    let table = first.strip_prefix(b"[").map(|rest| rest.strip_prefix(b"[").unwrap_or(rest));
    match (table, memchr::memchr(b'=', first)) {
        (Some(table), _) => memchr::memchr(b']', table).is_some_and(|end| is_key(table[..end].trim_ascii())),
        (None, Some(equals)) => is_key(first[..equals].trim_ascii()),
        (None, None) => false,
    }
}
