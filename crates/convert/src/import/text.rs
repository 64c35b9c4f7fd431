//! Bytes as text: names in files need not be UTF-8, but names in captures are.

use std::borrow::Cow;
use std::fmt::Write;

use stepscope_symbolize::demangle;

/// Decodes `bytes`. Invalid UTF-8 becomes `\\xHH`, so that different names stay different.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(escaped(bytes)),
    }
}

/// The name of a function. Linker symbols of C++ and Rust are demangled; all other names stay as given.
///
/// perf without a demangler, bpftrace and bcc write linker symbols. The remark of a collapse script (`_[k]`, `_[i]`) stays.
pub fn function_name(name: &str) -> Cow<'_, str> {
    if !["_Z", "__Z", "_R"].iter().any(|prefix| name.starts_with(prefix)) {
        return Cow::Borrowed(name);
    }
    let remark = name.rfind("_[").filter(|&at| name.ends_with(']') && name.len() == at + "_[k]".len());
    let (symbol, remark) = name.split_at(remark.unwrap_or(name.len()));
    match demangle(symbol) {
        Cow::Owned(readable) => Cow::Owned(readable + remark),
        Cow::Borrowed(_) => Cow::Borrowed(name),
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
    fn linker_symbols_are_demangled_and_other_names_stay() {
        assert_eq!(function_name("_ZSt9__fill_a1IhEvPT_S1_RKS0_"), "std::__fill_a1<unsigned char>");
        assert_eq!(function_name("_ZN3sim4StepEv_[i]"), "sim::Step_[i]");
        assert_eq!(function_name("_ZN4core3ptr13drop_in_place17h0123456789abcdefE"), "core::ptr::drop_in_place");
        assert_eq!(function_name("_RNvC7mycrate3foo"), "mycrate::foo");
        for name in ["_ZN", "_Zebra", "_Run", "memcpy@GLIBC_2.17", "solve.cold", "_[k]", "_R_[", "_Zé_[é]"] {
            assert_eq!(function_name(name), name);
        }
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
