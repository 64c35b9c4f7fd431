//! Errors in a lab file, with place and remedy.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An error at a place of a lab file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what is expected.
    pub message: String,
    /// The line.
    pub source_line: String,
    /// Number of characters to underline, at least 1.
    pub width: usize,
}

impl Problem {
    /// A problem at the bytes `span` of `text`.
    pub(super) fn at(text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let start = floor_char_boundary(text, span.start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let source_line = text[line_start..].lines().next().unwrap_or("");
        let underlined = text[start..floor_char_boundary(text, span.end.max(start))].lines().next().unwrap_or("");
        Self {
            line: before.matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            message: message.into(),
            source_line: source_line.to_owned(),
            width: underlined.trim_end().chars().count().max(1),
        }
    }
}

/// The last boundary between characters at or before `index`.
fn floor_char_boundary(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|&index| text.is_char_boundary(index)).unwrap_or(0)
}

fn unreadable(path: &Path, source: &std::io::Error) -> String {
    let path = path.display();
    match source.kind() {
        std::io::ErrorKind::NotFound => {
            format!("{path}: no such lab file; give the path of one, or write one: docs/lab-file.md")
        }
        _ => format!("{path}: cannot read the lab file: {source}"),
    }
}

/// A lab file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabFileError {
    /// It cannot be read.
    #[error("{}", unreadable(path, source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is too large for a lab file.
    #[error("{} has {bytes} bytes; the limit for a lab file is {limit}. Is this the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The largest size that is read.
        limit: u64,
    },
    /// It is not text.
    #[error("{} is not UTF-8 text: bad byte at offset {offset}. Is this the right file?", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// Offset of the first bad byte.
        offset: usize,
    },
    /// It has errors.
    #[error("{}", Listing { path, problems })]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All errors, in the order of the file. Never empty.
        problems: Vec<Problem>,
    },
}

/// Problems as compilers print them.
struct Listing<'a> {
    path: &'a Path,
    problems: &'a [Problem],
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            let Problem { line, column, message, source_line, width } = problem;
            write!(f, "{}:{line}:{column}: {message}", self.path.display())?;
            let gutter = line.to_string().len();
            // Tabs before the caret are kept, so that it lines up in any terminal.
            let indent: String =
                source_line.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            write!(f, "\n {line} | {source_line}\n {:gutter$} | {indent}{}", "", "^".repeat(*width))?;
        }
        Ok(())
    }
}

/// ``; did you mean `x`?`` for the name among `known` that is closest to `name`, or nothing if none is close.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        // Accepts a typing error or two, or a plural; not another word of the same length.
        .filter(|&(distance, candidate)| distance <= 1 + candidate.chars().count() / 4)
        .min();
    nearest.map_or_else(String::new, |(_, candidate)| format!("; did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_and_a_column_in_characters() {
        let text = "a = 1\nb\u{e9} = \u{fc}x\n";
        let problem = Problem::at(text, text.find('\u{fc}').unwrap()..text.len(), "m");
        assert_eq!((problem.line, problem.column, problem.width), (2, 6, 2));
        assert_eq!(problem.source_line, "b\u{e9} = \u{fc}x");
    }

    #[test]
    fn a_span_beyond_the_end_or_inside_a_character_is_a_place_too() {
        assert_eq!(Problem::at("", 5..9, "m").column, 1);
        assert_eq!(Problem::at("\u{fc}", 1..2, "m").column, 1);
    }

    #[test]
    fn the_nearest_name_is_suggested_only_if_it_is_near() {
        let known = ["command", "cwd", "env", "ready", "drivers"];
        assert_eq!(did_you_mean("comand", known), "; did you mean `command`?");
        assert_eq!(did_you_mean("driver", known), "; did you mean `drivers`?");
        assert_eq!(did_you_mean("environment", known), "");
        assert_eq!(did_you_mean("xyz", known), "");
    }
}
