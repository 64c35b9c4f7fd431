//! Names from captures, made safe to look at.
//!
//! A symbol table, a thread name or a folded file may hold anything: escape sequences that drive a terminal, line
//! breaks that forge rows, bidirectional controls that show a name reversed (CVE-2021-42574), characters that XML
//! cannot carry at all. Outputs for people show such characters as escapes, so that they are visible and have no effect.
//! Outputs for programs have them exactly, quoted as the format requires.

use std::borrow::Cow;

/// Appends formatted text to a `String`, which cannot fail.
macro_rules! append {
    ($text:expr, $($format:tt)*) => {
        std::fmt::Write::write_fmt(&mut $text, format_args!($($format)*)).expect("a String takes any text")
    };
}
pub(crate) use append;

/// `text` with every character that acts instead of being seen replaced by its escape: `\n`, `\u{1b}`, `\u{202e}`.
///
/// Borrows if there is nothing to replace, which is nearly always so.
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            character if acts(character) => {
                append!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            character => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Whether a text has only visible ASCII characters, each one column wide. Nearly every name does.
pub(crate) fn is_plain(text: &str) -> bool {
    // Whole blocks without a branch inside are compared in a few vector instructions.
    const BLOCK: usize = 32;
    let is_plain = |block: &[u8]| block.iter().fold(true, |plain, byte| plain & (0x20..0x7f).contains(byte));
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
    blocks.iter().all(|block| is_plain(block)) && is_plain(rest)
}

/// Whether a character controls how its neighbours are shown, or is not shown at all.
fn acts(character: char) -> bool {
    match character {
        character if character.is_control() => true,
        // Marks, embeddings, overrides and isolates of the bidirectional algorithm (Unicode Standard Annex 9).
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Line and paragraph separators; zero-width space, word joiner, byte order mark; tags.
        '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        // Not characters of XML 1.0.
        '\u{fffe}' | '\u{ffff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_borrowed_as_they_are() {
        for name in ["std::map<int, long>::find(int const&)", "行列::積", "é", ""] {
            assert!(matches!(visible(name), Cow::Borrowed(shown) if shown == name), "{name}");
        }
    }

    #[test]
    fn characters_that_act_are_shown_as_escapes() {
        let cases = [
            ("a\x1b[31mred", "a\\u{1b}[31mred"),
            ("two\nrows\tand\r", "two\\nrows\\tand\\r"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
            ("nul\0", "nul\\u{0}"),
            ("c1\u{9b}", "c1\\u{9b}"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("not xml \u{ffff}", "not xml \\u{ffff}"),
        ];
        for (name, shown) in cases {
            assert_eq!(visible(name), shown);
        }
    }
}
