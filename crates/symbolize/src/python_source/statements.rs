//! [`statements`]: the statements of a Python source, each on one line of text, without comments and contents of strings.

use std::ops::Range;

/// Most bytes of a source that is read.
const MOST: usize = 4 << 20;

/// A statement, or the head of a compound one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// Its lines, counted from 1.
    pub lines: Range<u32>,
    pub indent: usize,
    /// Without comments; strings are empty; lines are joined by a space.
    pub text: String,
}

impl Statement {
    /// Whether its first word is this.
    pub fn starts_with(&self, word: &str) -> bool {
        let text = self.text.strip_prefix("async ").unwrap_or(&self.text);
        text.strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', ':', '(']))
    }

    pub fn has(&self, part: &str) -> bool {
        self.text.contains(part)
    }
}

/// The statements of a source, in order.
pub(super) fn statements(source: &str) -> Vec<Statement> {
    let mut found: Vec<Statement> = Vec::new();
    if source.len() > MOST {
        return found;
    }
    let mut state = State::default();
    for (number, line) in (1_u32..).zip(source.lines()) {
        let continues = state.continues();
        let text = state.without_strings(line);
        let trimmed = text.trim();
        match found.last_mut().filter(|_| continues) {
            Some(last) => {
                if !trimmed.is_empty() {
                    last.text.push(' ');
                    last.text.push_str(trimmed);
                }
                last.lines.end = number + 1;
            }
            None if trimmed.is_empty() => {}
            None => {
                let indent =
                    line.chars().take_while(|one| one.is_whitespace()).map(|one| if one == '\t' { 8 } else { 1 }).sum();
                found.push(Statement { lines: number..number + 1, indent, text: trimmed.to_owned() });
            }
        }
    }
    for one in &mut found {
        one.text = tidy(&one.text);
    }
    found
}

/// Without a space after an opening bracket, before a closing one, and without repeated ones.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            ' ' if tidy.ends_with([' ', '(', '[', '{']) => {}
            ')' | ']' | '}' => {
                tidy.truncate(tidy.trim_end().len());
                tidy.push(one);
            }
            _ => tidy.push(one),
        }
    }
    tidy
}

#[derive(Debug, Default)]
struct State {
    depth: usize,
    /// The three quotes that a string ends with.
    string: Option<&'static str>,
    backslash: bool,
}

impl State {
    /// Whether the next line belongs to the same statement.
    fn continues(&self) -> bool {
        self.depth > 0 || self.string.is_some() || self.backslash
    }

    fn without_strings(&mut self, line: &str) -> String {
        let mut text = String::new();
        let mut rest = line;
        self.backslash = false;
        loop {
            if let Some(end) = self.string {
                match rest.find(end) {
                    Some(at) => rest = &rest[at + end.len()..],
                    None => return text,
                }
                self.string = None;
            }
            let Some(one) = rest.chars().next() else { return text };
            let after = &rest[one.len_utf8()..];
            match one {
                '#' => return text,
                '\\' if after.trim().is_empty() => {
                    self.backslash = true;
                    return text;
                }
                '"' | '\'' => {
                    text.push_str("\"\"");
                    let three = if one == '"' { "\"\"\"" } else { "'''" };
                    if let Some(inside) = rest.strip_prefix(three) {
                        self.string = Some(three);
                        rest = inside;
                    } else {
                        rest = after_string(after, one);
                    }
                    continue;
                }
                '(' | '[' | '{' => self.depth += 1,
                ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            text.push(if one == '\t' { ' ' } else { one });
            rest = after;
        }
    }
}

/// What follows a string's end.
fn after_string(text: &str, quote: char) -> &str {
    let mut escaped = false;
    for (at, one) in text.char_indices() {
        match one {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            one if one == quote => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

/// A compound statement's head before its colon, and what follows on the same line.
pub(super) fn head_of(text: &str) -> (&str, &str) {
    let mut depth = 0_i32;
    let is_lambda = text.contains("lambda");
    for (at, one) in text.char_indices() {
        match one {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ':' if depth == 0 && !is_lambda && !text[at..].starts_with(":=") => {
                return (text[..at].trim(), text[at + 1..].trim());
            }
            _ => {}
        }
    }
    (text, "")
}

/// The names of a text: what follows a dot is no name of its own.
pub(super) fn identifiers(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    let mut start = None;
    for (at, one) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, is_part(one)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                let name = &text[from..at];
                if !text[..from].ends_with('.') && !name.starts_with(|one: char| one.is_ascii_digit()) {
                    found.push(name);
                }
                start = None;
            }
            _ => {}
        }
    }
    found
}
