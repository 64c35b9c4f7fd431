//! TSDL as tokens (CTF 1.8.3, section C.1.1).

use super::syntax_error::SyntaxError;

/// A token with the number of its line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub line: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Name(String),
    /// A quoted text.
    Text(String),
    /// A number without sign.
    Number(u64),
    /// `:=` is `=` with a colon before; `...` is `.` three times.
    Sign(&'static str),
}

const SIGNS: &[&str] =
    &[":=", "...", "->", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", "=", "*", "-", "+", "."];

/// All tokens up to the end, or up to the first byte that the language does not have.
pub(crate) fn tokens(text: &str) -> (Vec<Token>, Option<SyntaxError>) {
    let mut lexer = Lexer { rest: text, line: 1 };
    let mut tokens = Vec::new();
    loop {
        match lexer.next() {
            Ok(Some(token)) => tokens.push(token),
            Ok(None) => return (tokens, None),
            Err(error) => return (tokens, Some(error)),
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Lexer<'a> {
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count() as u32;
        self.rest = rest;
        taken
    }

    fn error<T>(&self, what: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError { line: self.line, what: what.into() })
    }

    fn skip_blanks(&mut self) -> Result<(), SyntaxError> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r', '\n', '\x0c', '\0']).len();
            self.take(blanks);
            if self.rest.starts_with("/*") {
                let Some(end) = self.rest[2..].find("*/") else { return self.error("a comment without end") };
                self.take(end + 4);
            } else if self.rest.starts_with("//") {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Option<Token>, SyntaxError> {
        self.skip_blanks()?;
        let line = self.line;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let kind = if first.is_ascii_digit() {
            self.number()?
        } else if first == '"' || self.rest.starts_with("L\"") {
            self.take(self.rest.find('"').unwrap_or(0) + 1);
            Kind::Text(self.quoted('"')?)
        } else if first == '\'' {
            self.take(1);
            let text = self.quoted('\'')?;
            let mut letters = text.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) => Kind::Number(u64::from(u32::from(letter))),
                _ => return self.error("a character constant is not one character"),
            }
        } else if first.is_alphabetic() || first == '_' {
            let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
            Kind::Name(self.take(end).to_owned())
        } else {
            match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
                Some(sign) => {
                    self.take(sign.len());
                    Kind::Sign(sign)
                }
                None => return self.error(format!("{first:?} is not part of the language")),
            }
        };
        Ok(Some(Token { kind, line }))
    }

    fn number(&mut self) -> Result<Kind, SyntaxError> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let word = self.take(end);
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let lower = digits.to_ascii_lowercase();
        let parsed = if let Some(digits) = lower.strip_prefix("0x") {
            u64::from_str_radix(digits, 16)
        } else if let Some(digits) = lower.strip_prefix("0b") {
            u64::from_str_radix(digits, 2)
        } else if lower.len() > 1 && lower.starts_with('0') {
            u64::from_str_radix(&lower[1..], 8)
        } else {
            lower.parse()
        };
        match parsed {
            Ok(number) => Ok(Kind::Number(number)),
            Err(_) => self.error(format!("`{word}` is no integer of 64 bits")),
        }
    }

    /// The rest of a quoted text, with C escapes.
    fn quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let mut text = String::new();
        loop {
            let Some(letter) = self.rest.chars().next() else { return self.error("a text without closing quote") };
            self.take(letter.len_utf8());
            match letter {
                _ if letter == quote => return Ok(text),
                '\\' => text.push(self.escaped()?),
                _ => text.push(letter),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, SyntaxError> {
        let Some(letter) = self.rest.chars().next() else { return self.error("a text without closing quote") };
        if letter.is_digit(8) {
            let digits = self.rest.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
            let code = u32::from_str_radix(self.take(digits), 8).unwrap_or(0);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        self.take(letter.len_utf8());
        if letter == 'x' {
            let digits = self.rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
            let code = u32::from_str_radix(self.take(digits), 16).unwrap_or(0);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'v' => '\x0b',
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_texts_and_comments_are_tokens() {
        let (found, error) = tokens("a := -0x1Fu; /* x\n */ \"q\\\"\\x41\\101\\n\" 010 0b11 'A' 0 ... 30 // end");
        assert_eq!(error, None);
        let kinds: Vec<Kind> = found.into_iter().map(|token| token.kind).collect();
        let name = |text: &str| Kind::Name(text.to_owned());
        assert_eq!(
            kinds,
            [
                name("a"),
                Kind::Sign(":="),
                Kind::Sign("-"),
                Kind::Number(0x1f),
                Kind::Sign(";"),
                Kind::Text("q\"AA\n".to_owned()),
                Kind::Number(8),
                Kind::Number(3),
                Kind::Number(65),
                Kind::Number(0),
                Kind::Sign("..."),
                Kind::Number(30),
            ]
        );
    }

    #[test]
    fn what_comes_before_a_bad_byte_is_kept() {
        let (found, error) = tokens("a;\n$");
        assert_eq!(found.len(), 2);
        assert_eq!(error.unwrap().to_string(), "line 2: '$' is not part of the language");
    }
}
