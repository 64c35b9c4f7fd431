//! What a file that no format recognises looks like.

use super::{Head, folded};

/// Describes a file that is not a profile.
pub(super) fn looks(head: Head<'_>) -> String {
    let known: &[(&[u8], &str)] = &[
        (b"\x7fELF", "it is a program or library; `stepscope record -- PROGRAM` records one"),
        (b"PK\x03\x04", "it is a zip archive; unpack it first"),
        (b"BZh", "it is packed with bzip2; unpack it first"),
        (b"\xfd7zXZ\0", "it is packed with xz; unpack it first"),
        (b"PAR1", "it is a Parquet table; if it is part of a capture, run `stepscope show` on its folder"),
        (b"<", "it is XML or a web page; of a picture of stacks, import the stacks"),
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
    if let Some(refusal) = folded::refusal(head) {
        return refusal;
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
