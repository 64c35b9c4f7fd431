//! Text inside XML, HTML and scripts. No name can end the element, attribute or script around it.
//!
//! All text is made [visible](crate::visible) first, so characters that XML cannot carry do not occur.

use std::borrow::Cow;

pub(crate) use crate::visible::append;
use crate::visible::visible;
use stepscope_model::quantity::push_digits;

/// The parts of a text, each with whether it stands between backticks. A text whose backticks are not in pairs, or are next to each other,
/// is one part.
pub fn code_spans(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let is_paired = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    let parts = text.split(move |character| is_paired && character == '`');
    parts.enumerate().map(|(place, part)| (place % 2 == 1, part))
}

/// Text for element content and double-quoted attribute values, of XML and HTML alike.
pub fn markup(text: &str) -> Cow<'_, str> {
    let shown = visible(text);
    if shown.bytes().all(|byte| entity(byte).is_none()) {
        return shown;
    }
    let mut escaped = String::with_capacity(shown.len() + 16);
    push_escaped(&shown, &mut escaped);
    Cow::Owned(escaped)
}

/// Appends the same.
pub(crate) fn push_markup(text: &str, elements: &mut String) {
    push_escaped(&visible(text), elements);
}

fn push_escaped(shown: &str, escaped: &mut String) {
    let mut done = 0;
    for (at, byte) in shown.bytes().enumerate() {
        if let Some(entity) = entity(byte) {
            escaped.push_str(&shown[done..at]);
            escaped.push_str(entity);
            done = at + 1;
        }
    }
    escaped.push_str(&shown[done..]);
}

/// The escape of a character of markup.
fn entity(byte: u8) -> Option<&'static str> {
    match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'"' => Some("&quot;"),
        b'\'' => Some("&#39;"),
        _ => None,
    }
}

/// Appends a JSON string that may stand in an HTML `<script>` and in an XML CDATA section.
///
/// In addition to JSON's escapes, `<` before `/`, `!` or `?` and `>` after `]]` are written as `\u003c` and `\u003e`: without
/// them there is no `</script`, no `<!--` (HTML Living Standard, 4.12.1.3) and no `]]>` (XML 1.0, 2.7).
pub(crate) fn push_json_string(text: &str, json: &mut String) {
    let shown = visible(text);
    json.push('"');
    let bytes = shown.as_bytes();
    let mut done = 0;
    let mut visit = |at: usize| {
        let replacement = match bytes[at] {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'<' if matches!(bytes.get(at + 1), Some(b'/' | b'!' | b'?')) => "\\u003c",
            b'>' if bytes[..at].ends_with(b"]]") => "\\u003e",
            // `visible` leaves no other control character.
            _ => return,
        };
        json.push_str(&shown[done..at]);
        json.push_str(replacement);
        done = at + 1;
    };
    match memchr::memchr(b']', bytes) {
        None => memchr::memchr3_iter(b'"', b'\\', b'<', bytes).for_each(&mut visit),
        Some(_) => (0..bytes.len()).for_each(&mut visit),
    }
    json.push_str(&shown[done..]);
    json.push('"');
}

/// Appends a non-negative integer in the alphabet of source maps: base 32 digits, least significant first, one
/// character of `A-Za-z0-9+/` each, its sixth bit set where more digits follow.
///
/// One character holds numbers below 32, which most numbers in a call tree are, and every character is safe in every
/// format.
pub(crate) fn push_number(mut number: u64, text: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    loop {
        let more = number >= 32;
        let digit = (number & 31) as usize | usize::from(more) << 5;
        text.push(char::from(DIGITS[digit]));
        if !more {
            return;
        }
        number >>= 5;
    }
}

/// A coordinate, not negative, in hundredths of a pixel, without needless zeros.
pub(crate) fn push_coordinate(pixels: f64, text: &mut String) {
    let hundredths = (pixels * 100.0).round() as u64;
    let (whole, part) = (hundredths / 100, hundredths % 100);
    push_digits(whole, text);
    if part != 0 {
        text.push('.');
        text.push(digit(part / 10));
        if part % 10 != 0 {
            text.push(digit(part % 10));
        }
    }
}

fn digit(number: u64) -> char {
    char::from(b'0' + number as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_of(text: &str) -> String {
        let mut json = String::new();
        push_json_string(text, &mut json);
        json
    }

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(markup("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
        assert_eq!(markup("\u{1}\u{202e}"), "\\u{1}\\u{202e}");
        assert!(matches!(markup("main"), Cow::Borrowed("main")));
    }

    #[test]
    fn a_json_string_ends_neither_script_nor_cdata_and_reads_back() {
        let names =
            ["</script><script>alert(1)</script>", "<!-- <script>", "]]>", "a]]]>b", "\"\\", "std::map<int>", "<?x"];
        for name in names {
            let json = json_of(name);
            for end in ["</", "<!--", "<?", "]]>"] {
                assert!(!json.contains(end), "{json}");
            }
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
        }
        assert_eq!(json_of("line\nbreak\0"), r#""line\\nbreak\\u{0}""#);
    }

    #[test]
    fn numbers_are_written_in_base_32_least_digit_first() {
        // 1000 = 8 + 31 * 32; every digit but the last has 32 added.
        for (number, text) in [(0, "A"), (31, "f"), (32, "gB"), (1000, "of"), (u64::MAX, "////////////P")] {
            let mut written = String::new();
            push_number(number, &mut written);
            assert_eq!(written, text, "{number}");
        }
    }

    #[test]
    fn integers_are_written_whole() {
        let mut text = String::new();
        for number in [0, 7, 10, 99, 100, u64::MAX] {
            push_digits(number, &mut text);
            text.push(' ');
        }
        assert_eq!(text, "0 7 10 99 100 18446744073709551615 ");
    }

    #[test]
    fn coordinates_have_no_needless_zeros() {
        let mut text = String::new();
        for pixels in [12.0, 0.5, 3.456, 7.05, 0.001, 1200.0] {
            push_coordinate(pixels, &mut text);
            text.push(' ');
        }
        assert_eq!(text, "12 0.5 3.46 7.05 0 1200 ");
    }
}
