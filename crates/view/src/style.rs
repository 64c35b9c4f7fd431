//! What the reader's terminal can show.

use std::io::{IsTerminal, Stdout};
use std::str::FromStr;

use strum::{Display, EnumCount, IntoStaticStr, VariantArray};

use crate::reading::Tone;

/// How text is laid out for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Width of lines; `None` for no limit, so that names stay whole.
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

/// When to colour, as `--color` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Display, EnumCount, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum ColourChoice {
    /// On a terminal, unless the environment refuses.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColourChoice {
    /// Every choice, in the order in which help lists them.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// The name used with `--color`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An unknown name of a [`ColourChoice`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a choice of colour; use auto, always or never")]
pub struct UnknownColourChoice(String);

impl FromStr for ColourChoice {
    type Err = UnknownColourChoice;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|choice| choice.name() == name).ok_or_else(|| UnknownColourChoice(name.to_owned()))
    }
}

/// Width of lines in files and pipes: a log viewer or an editor shows them whole.
pub const WIDTH_OF_FILES: usize = 120;

impl Style {
    /// No colour, nothing shortened.
    pub const PLAIN: Style = Style { width: None, colour: Colour::Never };

    /// The style for standard output, coloured as chosen. In a file or a pipe, lines have at most [`WIDTH_OF_FILES`] columns.
    /// `COLUMNS` sets another width.
    ///
    /// `Auto` colours on a terminal, or if `CLICOLOR_FORCE` is set and not `0`; not if `NO_COLOR` is set and not empty
    /// (<https://no-color.org>), `CLICOLOR` is `0` (<https://bixense.com/clicolors>) or `TERM` is `dumb`.
    pub fn chosen(stdout: &Stdout, choice: ColourChoice) -> Self {
        let is_terminal = stdout.is_terminal();
        let variable = |name: &str| std::env::var(name).ok();
        let width = match is_terminal {
            true => terminal_size::terminal_size_of(stdout).map(|(width, _)| usize::from(width.0)),
            false => Some(WIDTH_OF_FILES),
        };
        Self::of(is_terminal, width, choice, variable)
    }

    fn of(
        is_terminal: bool,
        width: Option<usize>,
        choice: ColourChoice,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let is = |name: &str, wanted: &str| variable(name).is_some_and(|value| value == wanted);
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let is_forced = is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0");
        let is_refused = is_set("NO_COLOR") || !is_forced && (is("CLICOLOR", "0") || is("TERM", "dumb"));
        let colours = match choice {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => !is_refused && (is_terminal || is_forced),
        };
        let colour = if colours { Colour::Always } else { Colour::Never };
        let wanted = variable("COLUMNS").and_then(|columns| columns.trim().parse().ok());
        Self { width: wanted.or(width).filter(|&columns| columns > 0), colour }
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

    fn colour(is_terminal: bool, choice: ColourChoice, variables: &[(&str, &str)]) -> bool {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Style::of(is_terminal, Some(80), choice, find).colour == Colour::Always
    }

    #[test]
    fn a_terminal_has_colour_unless_the_environment_refuses() {
        let on_terminal = |variables| colour(true, ColourChoice::Auto, variables);
        assert!(on_terminal(&[]));
        assert!(!on_terminal(&[("NO_COLOR", "1")]));
        assert!(on_terminal(&[("NO_COLOR", "")]));
        assert!(!on_terminal(&[("TERM", "dumb")]));
        assert!(on_terminal(&[("TERM", "xterm-256color")]));
        assert!(!on_terminal(&[("CLICOLOR", "0")]));
    }

    #[test]
    fn a_pipe_has_colour_if_it_is_forced() {
        let in_pipe = |variables| colour(false, ColourChoice::Auto, variables);
        assert!(!in_pipe(&[]));
        assert!(in_pipe(&[("CLICOLOR_FORCE", "1")]));
        assert!(!in_pipe(&[("CLICOLOR_FORCE", "0")]));
        assert!(!in_pipe(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    }

    #[test]
    fn a_choice_outweighs_the_environment() {
        assert!(colour(false, ColourChoice::Always, &[("NO_COLOR", "1")]));
        assert!(!colour(true, ColourChoice::Never, &[("CLICOLOR_FORCE", "1")]));
        for choice in ColourChoice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        assert!("sometimes".parse::<ColourChoice>().is_err());
    }

    #[test]
    fn the_environment_sets_the_width() {
        let width = |is_terminal, columns: &'static str| {
            Style::of(is_terminal, Some(120), ColourChoice::Auto, |name| {
                (name == "COLUMNS").then(|| columns.to_owned())
            })
            .width
        };
        assert_eq!((width(false, "80"), width(true, "80"), width(false, "wide")), (Some(80), Some(80), Some(120)));
    }

    #[test]
    fn a_terminal_of_unknown_width_limits_nothing() {
        assert_eq!(Style::of(true, Some(0), ColourChoice::Auto, |_| None).width, None);
    }
}
