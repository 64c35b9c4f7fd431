//! Why an import failed, and what to do about it.

use std::io;

use super::{FORMATS, Head};

/// Why an import failed. Every message ends in what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be opened.
    #[error("cannot open {file}: {source}; check the path and that you may read it")]
    Open {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A folder was given.
    #[error("{file} is a folder: if it is a capture, it needs no import; open it with `stepscope show`")]
    Folder {
        /// The folder.
        file: String,
    },
    /// Reading failed, or what was packed cannot be unpacked.
    #[error("cannot read {file} beyond byte {offset}: {source}; nothing was imported, try a fresh copy of it")]
    Read {
        /// The file.
        file: String,
        /// Bytes that could be read (after unpacking).
        offset: u64,
        /// What the system or the unpacking said.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{file} is empty: check the command that wrote it, and that it had ended when this read it")]
    Empty {
        /// The file.
        file: String,
    },
    /// It is of no known format.
    #[error(
        "{file} is not of a format that can be imported ({looks}): import one of {known}, or name the format if the content hides it"
    )]
    Unrecognised {
        /// The file.
        file: String,
        /// What it looks like.
        looks: String,
        /// The formats that can be read.
        known: String,
    },
    /// It is of the format, but not one record could be read.
    #[error("{file} holds no record of {format} that can be read{}; check that it is whole and of that format", first.as_ref().map_or_else(String::new, |first| format!(" ({first})")))]
    Nothing {
        /// The file.
        file: String,
        /// The format.
        format: &'static str,
        /// Where and why the first record was refused, if there was one.
        first: Option<String>,
    },
    /// A reader of ours made a capture that breaks its own rules.
    #[error(
        "{file} was read into a capture that is inconsistent ({rule}); this is a defect of stepscope, please report it with the file"
    )]
    Inconsistent {
        /// The file.
        file: String,
        /// The rule that is broken.
        rule: String,
    },
}

impl ImportError {
    pub(super) fn unrecognised(file: &str, head: Head<'_>) -> Self {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
        Self::Unrecognised { file: file.to_owned(), looks: looks(head), known: known.join(", ") }
    }
}

/// What something that is not a profile looks like, for those who picked the wrong file.
fn looks(head: Head<'_>) -> String {
    let known: &[(&[u8], &str)] = &[
        (b"\x7fELF", "it is a program or library; `stepscope record -- PROGRAM` records one"),
        (b"PK\x03\x04", "it is a zip archive; unpack it first"),
        (b"BZh", "it is packed with bzip2; unpack it first"),
        (b"\xfd7zXZ\0", "it is packed with xz; unpack it first"),
        (b"PAR1", "it is a Parquet table; if it is part of a capture, `stepscope show` opens the folder it is in"),
        (b"<", "it is a web page or picture; import the stacks it was drawn from"),
        (b"{", "it is JSON, which can be written by `stepscope export` but not read"),
        (b"[", "it is JSON, which can be written by `stepscope export` but not read"),
    ];
    if is_toml(head) {
        return "it is TOML; if it is a lab file, `stepscope run` runs it".to_owned();
    }
    if let Some((_, looks)) = known.iter().find(|(start, _)| head.bytes.starts_with(start)) {
        return (*looks).to_owned();
    }
    if !head.is_text() {
        return "it is not text, and of no binary format known here".to_owned();
    }
    let first = head.bytes.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let shown: String = String::from_utf8_lossy(first).chars().filter(|c| !c.is_control()).take(60).collect();
    format!("it begins with `{shown}`")
}

/// Whether the first line that says anything is the head of a table, `[project]` or `[[scenario]]`, or `key = value`. A
/// JSON array begins with a bracket too, but hardly has a bare word in it.
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
