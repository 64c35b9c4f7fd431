//! Bytes as text: names in files need not be UTF-8, but names in captures are.

use std::borrow::Cow;
use std::fmt::Write;

/// Decodes `bytes`. Invalid UTF-8 becomes `\\xHH`, so that different names stay different.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(escaped(bytes)),
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a String takes all that is written to it");
        }
    }
    text
}

/// Parses decimal digits only; `None` if the number exceeds a `u64`.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_invalid_utf8_stay_different() {
        assert_eq!(text(b"caf\xe9"), "caf\\xe9");
        assert_eq!(text(b"caf\xe8 \xff\xfe"), "caf\\xe8 \\xff\\xfe");
        assert!(matches!(text("café".as_bytes()), Cow::Borrowed("café")));
    }

    #[test]
    fn a_number_is_digits_only_and_fits() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"0000000000000000042"), Some(42));
        for none in ["", "18446744073709551616", "1.5", "-1", "+1", "1e3", " 1"] {
            assert_eq!(number(none.as_bytes()), None, "{none}");
        }
    }
}
