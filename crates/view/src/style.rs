//! What the reader's terminal can show.

use std::io::{IsTerminal, Stdout};

use crate::reading::Tone;

/// How text is laid out for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns that fit on a line; `None` where nothing limits them (a file, a pipe), so that names stay whole.
    pub width: Option<usize>,
    /// Whether to colour.
    pub colour: Colour,
}

/// Whether to write the escape sequences that colour text (ECMA-48, SGR).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Text alone.
    Never,
    /// Text with colours and weights of the sixteen that every terminal lets its user choose.
    Always,
}

impl Style {
    /// Text for files and pipes: no colour, nothing shortened.
    pub const PLAIN: Style = Style { width: None, colour: Colour::Never };

    /// What suits standard output: plain unless it is a terminal; no colour if `NO_COLOR` is set and not empty
    /// (<https://no-color.org>) or `TERM` is `dumb`.
    pub fn of_stdout(stdout: &Stdout) -> Self {
        if !stdout.is_terminal() {
            return Self::PLAIN;
        }
        let width = terminal_size::terminal_size_of(stdout).map(|(width, _)| usize::from(width.0));
        Self::of_terminal(width, |name| std::env::var(name).ok())
    }

    fn of_terminal(width: Option<usize>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = variable("TERM").is_some_and(|value| value == "dumb");
        let colour = if refused || dumb { Colour::Never } else { Colour::Always };
        Self { width: width.filter(|&columns| columns > 0), colour }
    }
}

/// The roles that text has in a rendered table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    Title,
    Header,
    Owned,
    Faint,
    /// A loss of evidence.
    Warning,
    /// A verdict of change.
    Strong,
    /// A verdict that something is worse than it may be.
    Alarm,
    /// A verdict that all is well.
    Calm,
    Plain,
}

impl Role {
    /// The role of a verdict.
    pub(crate) fn of_tone(tone: Tone) -> Self {
        match tone {
            Tone::Strong => Role::Strong,
            Tone::Alarm => Role::Alarm,
            Tone::Calm => Role::Calm,
            Tone::Faint => Role::Faint,
        }
    }

    fn codes(self) -> Option<&'static str> {
        match self {
            Role::Title => Some("1"),
            Role::Header => Some("4"),
            Role::Owned => Some("1;36"),
            Role::Faint => Some("2"),
            Role::Warning => Some("33"),
            Role::Strong => Some("1"),
            Role::Alarm => Some("1;31"),
            Role::Calm => Some("32"),
            Role::Plain => None,
        }
    }

    /// The text in this role's colour.
    pub(crate) fn paint(self, text: &str, colour: Colour) -> String {
        match (colour, self.codes()) {
            (Colour::Always, Some(codes)) if !text.is_empty() => format!("\x1b[{codes}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colour_with(variables: &[(&str, &str)]) -> Colour {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Style::of_terminal(Some(80), find).colour
    }

    #[test]
    fn a_terminal_has_colour_unless_its_user_or_kind_says_no() {
        assert_eq!(colour_with(&[]), Colour::Always);
        assert_eq!(colour_with(&[("NO_COLOR", "1")]), Colour::Never);
        assert_eq!(colour_with(&[("NO_COLOR", "")]), Colour::Always);
        assert_eq!(colour_with(&[("TERM", "dumb")]), Colour::Never);
        assert_eq!(colour_with(&[("TERM", "xterm-256color")]), Colour::Always);
    }

    #[test]
    fn a_terminal_that_tells_no_width_limits_nothing() {
        assert_eq!(Style::of_terminal(Some(0), |_| None).width, None);
    }
}
