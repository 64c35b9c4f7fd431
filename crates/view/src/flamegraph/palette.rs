//! Colours of frames: their meanings and their style sheet.
//!
//! The hues are those of Okabe and Ito ("Color Universal Design", 2008), which people with any colour vision can
//! distinguish. Orange is kept for owned code. If a tree has owned code, all other frames are quiet: the same hues, mixed
//! with the background. Three shades, chosen by the function's name, separate neighbours.

use stepscope_model::{CallNode, FrameKind, Verdict};

use super::Subject;
use crate::embed::append;

/// The meaning of a frame's colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Colours {
    /// The kind of code; owned code in its own colour.
    #[default]
    Kind,
    /// The module; the six with the largest self weight have their own colours.
    Module,
    /// How much more or less a frame weighs than in the base; the kind of code if there is no base.
    Difference,
}

impl Colours {
    /// These colours, or those by kind if there is no difference to show.
    pub(crate) fn of(self, subject: &Subject<'_>) -> Self {
        if self == Colours::Difference && subject.difference.is_none() { Colours::Kind } else { self }
    }

    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// Number of modules with a colour of their own.
pub(crate) const COLOURED_MODULES: usize = 6;

/// Classes of the modules' colours, heaviest first; the last is that of all others.
pub(crate) const MODULE_CLASSES: [&str; COLOURED_MODULES + 1] = ["m0", "m1", "m2", "m3", "m4", "m5", "mx"];

/// Classes of differences, from much more to much less, and how much of the background is mixed into each. Orange is
/// more, blue is less, grey is neither.
const CHANGES: [(&str, Rgb, u16); 7] = [
    ("more3", MORE, 0),
    ("more2", MORE, 35),
    ("more1", MORE, 65),
    ("same", [0xa3, 0xad, 0xb9], 60),
    ("less1", LESS, 65),
    ("less2", LESS, 35),
    ("less3", LESS, 0),
];
const MORE: Rgb = [0xe0, 0x6c, 0x00];
const LESS: Rgb = [0x2b, 0x83, 0xd6];

/// With verdicts: equivalent and inconclusive frames.
const UNCHANGED: [(&str, Rgb, u16); 2] = [(EVEN, [0xa3, 0xad, 0xb9], 80), (UNSURE, [0x7d, 0x88, 0x96], 40)];
const EVEN: &str = "even";
const UNSURE: &str = "unsure";

/// The least share of the whole at which a difference has strength 1, 2 or 3.
const STRENGTHS: [f64; 3] = [0.002, 0.01, 0.05];

/// Class of a frame that weighs `now`, and `before` in the other tree, where the larger whole weighs `whole`. A
/// significant change is never grey, however small.
pub(crate) fn change_class(now: u64, before: u64, whole: u128, verdict: Option<Verdict>) -> &'static str {
    let share = (now as f64 - before as f64) / (whole.max(1) as f64);
    let strength = STRENGTHS.iter().filter(|&&least| share.abs() >= least).count();
    let strength = match verdict {
        None => strength,
        Some(Verdict::Changed) => strength.max(1),
        Some(Verdict::Equivalent) => return EVEN,
        Some(Verdict::Inconclusive) => return UNSURE,
    };
    let at = if share > 0.0 { 3 - strength } else { 3 + strength };
    CHANGES[at].0
}

/// The legend of differences with verdicts: classes and their meanings.
pub(crate) const VERDICT_LEGEND: [(&str, &str); 8] = [
    ("more3", "+5 % of the whole"),
    ("more2", "+1 %"),
    ("more1", "+<1 %"),
    ("less1", "−<1 %"),
    ("less2", "−1 %"),
    ("less3", "−5 %"),
    (EVEN, "equivalent"),
    (UNSURE, "inconclusive"),
];

/// The legend of differences: classes and their meanings.
pub(crate) fn changes() -> [(&'static str, &'static str); 7] {
    [
        ("more3", "5 % of the whole more"),
        ("more2", "1 % more"),
        ("more1", "0.2 % more"),
        ("same", "the same"),
        ("less1", "0.2 % less"),
        ("less2", "1 % less"),
        ("less3", "5 % less"),
    ]
}

/// Kinds in the order of their codes in the script's data and of legends.
pub(crate) const KINDS: [FrameKind; 7] = [
    FrameKind::Group,
    FrameKind::Native,
    FrameKind::Runtime,
    FrameKind::Allocator,
    FrameKind::Kernel,
    FrameKind::Python,
    FrameKind::Unknown,
];

/// Class of a frame's colour by its kind of code.
pub(crate) fn kind_class(node: &CallNode) -> &'static str {
    if node.owned && node.kind != FrameKind::Group { "owned" } else { node.kind.name() }
}

/// Which of three shades a function has: FNV-1a of its name, so that it is the same in every picture.
pub(crate) fn shade(name: &str) -> u8 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    ((hash >> 16) % 3) as u8
}

type Rgb = [u8; 3];

const HUES: [(&str, Rgb); 15] = [
    ("owned", [0xe6, 0x9f, 0x00]),
    ("group", [0x7d, 0x88, 0x96]),
    ("native", [0x56, 0xb4, 0xe9]),
    ("runtime", [0xa3, 0xad, 0xb9]),
    ("allocator", [0xcc, 0x79, 0xa7]),
    ("kernel", [0x00, 0x9e, 0x73]),
    ("python", [0xf0, 0xe4, 0x42]),
    ("unknown", [0xb0, 0x98, 0x78]),
    ("m0", [0x56, 0xb4, 0xe9]),
    ("m1", [0x00, 0x9e, 0x73]),
    ("m2", [0xcc, 0x79, 0xa7]),
    ("m3", [0xf0, 0xe4, 0x42]),
    ("m4", [0x4a, 0x7f, 0xd0]),
    ("m5", [0xb3, 0x8b, 0x5d]),
    ("mx", [0xa3, 0xad, 0xb9]),
];

/// A background, and how much of it is mixed into the colours on it, in percent.
struct Theme {
    background: Rgb,
    clear: u16,
    quiet: u16,
}

const LIGHT: Theme = Theme { background: [0xff, 0xff, 0xff], clear: 18, quiet: 66 };
const DARK: Theme = Theme { background: [0x14, 0x17, 0x1c], clear: 12, quiet: 68 };

impl Theme {
    fn mixed(&self, hue: Rgb, background_percent: u16) -> String {
        let mix = |channel: usize| {
            let (hue, background) = (u16::from(hue[channel]), u16::from(self.background[channel]));
            (hue * (100 - background_percent) + background * background_percent + 50) / 100
        };
        format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
    }

    /// Rules for fills: `.native{…}` and, for quiet frames, `.q.native{…}`.
    fn rules(&self) -> String {
        let mut css = String::new();
        for (class, hue) in HUES {
            let clear = self.mixed(hue, self.clear);
            let quiet = self.mixed(hue, self.quiet);
            append!(css, ".{class}{{fill:{clear}}}.q.{class}{{fill:{quiet}}}");
        }
        for (class, hue, background) in CHANGES.into_iter().chain(UNCHANGED) {
            append!(css, ".{class}{{fill:{}}}", self.mixed(hue, background));
        }
        css
    }
}

/// The style sheet of frames, for light and dark. Without variables: many viewers of images know none.
pub(crate) fn style_sheet() -> String {
    format!(
        ".bg{{fill:#fff}}.ink{{fill:#1b1f24}}.faint{{fill:#5d6672}}{}.s1{{fill-opacity:.88}}.s2{{fill-opacity:.76}}\
         .t{{fill:#15181c;pointer-events:none}}\
         @media(prefers-color-scheme:dark){{.bg{{fill:#14171c}}.ink{{fill:#e6e9ee}}.faint{{fill:#9aa4b0}}{}\
         .s1{{fill-opacity:.92}}.s2{{fill-opacity:.84}}.t{{fill:#0d0f12}}.t.q{{fill:#d9dee5}}}}",
        LIGHT.rules(),
        DARK.rules()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_colour() {
        let css = style_sheet();
        let kinds = KINDS.iter().map(|kind| kind.name());
        for class in kinds.chain(MODULE_CLASSES).chain(["owned"]) {
            assert_eq!(css.matches(&format!(".q.{class}{{fill:")).count(), 2, "{class}: light and dark");
        }
    }

    /// The colours of pictures that the app draws: `web/src/palette.json`.
    fn palette_of_the_app() -> String {
        let theme = |theme: &Theme| {
            let [red, green, blue] = theme.background;
            let mut colours = vec![("ground".to_owned(), format!("#{red:02x}{green:02x}{blue:02x}"))];
            for (class, hue) in HUES {
                colours.push((class.to_owned(), theme.mixed(hue, theme.clear)));
                colours.push((format!("q.{class}"), theme.mixed(hue, theme.quiet)));
            }
            let changes = CHANGES.into_iter().chain(UNCHANGED);
            colours.extend(changes.map(|(class, hue, background)| (class.to_owned(), theme.mixed(hue, background))));
            let lines: Vec<String> = colours.iter().map(|(class, hue)| format!("    \"{class}\": \"{hue}\"")).collect();
            format!("{{\n{}\n  }}", lines.join(",\n"))
        };
        format!("{{\n  \"light\": {},\n  \"dark\": {}\n}}\n", theme(&LIGHT), theme(&DARK))
    }

    #[test]
    fn the_app_has_the_same_colours() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/palette.json");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, palette_of_the_app()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), palette_of_the_app(), "BLESS=1 writes it");
    }

    #[test]
    fn differences_are_as_strong_as_their_share_of_the_larger_whole() {
        let class = |now, before| change_class(now, before, 1_000, None);
        assert_eq!([class(151, 100), class(112, 100), class(103, 100)], ["more3", "more2", "more1"]);
        assert_eq!([class(101, 100), class(100, 100), class(99, 100)], ["same", "same", "same"]);
        assert_eq!([class(98, 100), class(90, 100), class(0, 100)], ["less1", "less2", "less3"]);
        let css = style_sheet();
        for (class, _) in changes() {
            assert_eq!(css.matches(&format!(".{class}{{fill:")).count(), 2, "{class}: light and dark");
        }
    }

    #[test]
    fn a_verdict_decides_whether_a_change_has_a_colour() {
        let class = |now, before, verdict| change_class(now, before, 1_000, Some(verdict));
        assert_eq!(class(151, 100, Verdict::Changed), "more3");
        assert_eq!(class(99, 100, Verdict::Changed), "less1", "small, and known to be one");
        assert_eq!(class(300, 100, Verdict::Inconclusive), "unsure", "large, and not known");
        assert_eq!(class(101, 100, Verdict::Equivalent), "even");
        let css = style_sheet();
        for (class, _) in VERDICT_LEGEND {
            assert_eq!(css.matches(&format!(".{class}{{fill:")).count(), 2, "{class}: light and dark");
        }
    }

    #[test]
    fn quiet_colours_lie_nearer_to_the_background() {
        assert_eq!(LIGHT.mixed([0, 0, 0], 0), "#000000");
        assert_eq!(LIGHT.mixed([0, 0, 0], 100), "#ffffff");
        assert_eq!(LIGHT.mixed([0xe6, 0x9f, 0x00], 50), "#f3cf80");
    }
}
