//! JSON that may be cut: what comes before the cut is read.

use std::io::Read as _;

use serde_json::Value;

use super::lines::LONGEST_LINE;
use super::{ImportError, Input, Malformed};

/// Reads an input to its end.
pub fn read_all(mut input: Input<'_>) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    match input.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(source) => {
            let (file, offset) = (input.name().to_owned(), bytes.len() as u64);
            Err(ImportError::Read { file, offset, source })
        }
    }
}

/// The JSON value at the start of these bytes; what follows it is ignored. Of an incomplete one, the complete parts are kept,
/// and the loss is counted.
pub fn value(bytes: &[u8], malformed: &mut Malformed) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter();
    let error = match values.next()? {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    malformed.add(error.line() as u64, &error);
    serde_json::from_slice(&repaired(bytes)).ok()
}

/// The bytes up to the last complete value, with the brackets closed that are open there.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut open: Vec<u8> = Vec::new();
    // Where the text can end, and how many brackets are open there.
    let (mut end, mut depth) = (0, 0);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let Some(length) = string_length(&bytes[at..]) else { break };
                at += length;
                continue;
            }
            b'{' | b'[' => {
                open.push(if byte == b'{' { b'}' } else { b']' });
                (end, depth) = (at + 1, open.len());
            }
            b'}' | b']' => {
                if open.pop() != Some(byte) {
                    break;
                }
                (end, depth) = (at + 1, open.len());
            }
            // What is before a comma is complete.
            b',' => (end, depth) = (at, open.len()),
            0 => break,
            _ => {}
        }
        at += 1;
    }
    // Brackets that were closed after the end are not open there.
    let mut kept = bytes[..end].to_vec();
    open.truncate(depth);
    kept.extend(open.iter().rev());
    kept
}

/// Bytes of a string with its quotes; `None` if it does not end.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    while at < bytes.len().min(LONGEST_LINE) {
        match bytes[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_cut_anywhere_keeps_its_complete_parts() {
        let text = r#"{"a": [1, 22, {"b": "x\"]}"}], "c": {"d": [true, null]}, "e": 3}"#;
        for end in 1..text.len() {
            let mut malformed = Malformed::default();
            let value = value(&text.as_bytes()[..end], &mut malformed).unwrap_or_else(|| panic!("{}", &text[..end]));
            assert_eq!(malformed.count, 1, "{}", &text[..end]);
            if end > text.find("\"c\"").unwrap() {
                assert_eq!(value["a"], serde_json::json!([1, 22, {"b": "x\"]}"}]), "{}", &text[..end]);
            }
        }
        let mut malformed = Malformed::default();
        let whole = value(format!("{text};").as_bytes(), &mut malformed).unwrap();
        assert_eq!((whole["e"].as_u64(), malformed.count), (Some(3), 0));
    }

    #[test]
    fn values_nested_too_deeply_are_refused() {
        let mut malformed = Malformed::default();
        assert_eq!(value("[".repeat(100_000).as_bytes(), &mut malformed), None);
        assert_eq!(malformed.count, 1);
    }
}
