//! [`Pattern`]: how users name functions, threads, processes and modules.
//!
//! A pattern is a text in which `*` stands for any characters and `?` for one, and which must match the *whole* name.
//! Nothing else is special: C++ names are full of brackets and braces. `/.../` is a regular expression instead, which may
//! match anywhere. With substring matching, a study mistook `RenderUtil::UpdateFromECM` for `Update` (erratum 5).

use std::fmt;
use std::str::FromStr;

use regex::Regex;
use thiserror::Error;

/// A wildcard pattern over a whole name, or a regular expression.
#[derive(Debug, Clone)]
pub struct Pattern {
    written: String,
    regex: Regex,
}

/// A pattern that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// A name pattern between slashes is not a regular expression.
    #[error("`{pattern}` is not a regular expression: {reason}; leave off the slashes to match the text itself")]
    Regex {
        /// The pattern as written.
        pattern: String,
        /// What the regular expression parser says.
        reason: String,
    },
    /// A module or source pattern is not a glob.
    #[error("`{pattern}` is not a glob: {reason}; write `\\[` for a literal bracket")]
    Glob {
        /// The pattern as written.
        pattern: String,
        /// What the glob parser says.
        reason: String,
    },
    /// A pattern of no characters matches nothing.
    #[error("an empty pattern matches nothing; leave it out, or write `*` for everything")]
    Empty,
}

impl Pattern {
    /// Whether the pattern matches `name`.
    pub fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// The pattern as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether it can match one name only: it has no wildcard.
    pub fn is_exact(&self) -> bool {
        expression(&self.written).is_none() && !self.written.contains(['*', '?'])
    }
}

/// What stands between the slashes of `/.../`.
fn expression(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('/')?.strip_suffix('/').filter(|expression| !expression.is_empty())
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(written: &str) -> Result<Self, PatternError> {
        if written.is_empty() {
            return Err(PatternError::Empty);
        }
        let source = match expression(written) {
            Some(expression) => expression.to_owned(),
            None => {
                let escaped = regex::escape(written).replace(r"\*", ".*").replace(r"\?", ".");
                format!("(?s)^{escaped}$")
            }
        };
        let regex = Regex::new(&source)
            .map_err(|error| PatternError::Regex { pattern: written.to_owned(), reason: last_line(&error) })?;
        Ok(Self { written: written.to_owned(), regex })
    }
}

/// The parser's verdict, without the picture of the pattern that it draws above it.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Pattern {}

/// Names as an error offers them: quoted, the first ten, and how many more there are. The middle of long names is left out.
pub fn offered(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{}`", without_middle(name))).collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

/// A name of at most some 100 characters: its start and its end.
fn without_middle(name: &str) -> String {
    const MOST_CHARS: usize = 100;
    let count = name.chars().count();
    if count <= MOST_CHARS {
        return name.to_owned();
    }
    let half = MOST_CHARS / 2;
    name.chars().take(half).chain(['…']).chain(name.chars().skip(count - half)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        pattern.parse::<Pattern>().unwrap().matches(name)
    }

    #[test]
    fn a_pattern_without_wildcards_matches_the_whole_name_only() {
        assert!(matches("RenderUtil::Update", "RenderUtil::Update"));
        assert!(!matches("RenderUtil::Update", "RenderUtil::UpdateFromECM"));
        assert!(!matches("Update", "RenderUtil::Update"));
    }

    #[test]
    fn wildcards_match_any_characters_and_brackets_are_characters() {
        assert!(matches("gz::*", "gz::sim::v11::Server::Run"));
        assert!(!matches("gz::*", "std::gz::x"));
        assert!(matches("*::operator[]", "std::map<int, int>::operator[]"));
        assert!(matches("worker-?", "worker-3"));
        assert!(matches("a.c", "a.c") && !matches("a.c", "abc"));
    }

    #[test]
    fn slashes_make_a_regular_expression_that_matches_anywhere() {
        assert!(matches("/Post(Update)?[0-9]/", "PostUpdate12"));
        assert!(matches("/usr/*", "/usr/lib/libc.so"), "one slash in front is a path");
    }

    #[test]
    fn long_names_are_offered_without_their_middle() {
        let name = format!("World<{}>::Step", "é".repeat(2_000));
        let shown = offered(&[name]);
        assert_eq!(shown.chars().count(), 103);
        assert!(shown.starts_with("`World<é") && shown.contains('…') && shown.ends_with("é>::Step`"), "{shown}");
    }

    #[test]
    fn a_broken_expression_is_refused_with_its_reason() {
        assert_eq!(
            "/a(/".parse::<Pattern>().unwrap_err().to_string(),
            "`/a(/` is not a regular expression: unclosed group; leave off the slashes to match the text itself"
        );
        assert_eq!("".parse::<Pattern>(), Err(PatternError::Empty));
    }
}
