//! Colours of frames: what they mean, and the style sheet that gives them.
//!
//! The hues are those of Okabe and Ito ("Color Universal Design", 2008), which people with any colour vision tell
//! apart. Orange is kept for owned code. Where a tree has owned code, all other frames are quiet: the same hues, mixed
//! with the background. Three shades, chosen by the function's name, tell neighbours apart; they mean nothing.

use stepscope_model::{CallNode, FrameKind};

use crate::embed::append;

/// What the colour of a frame tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colours {
    /// The kind of code; owned code in its own colour.
    #[default]
    Kind,
    /// The module; the six with the largest self weight have their own colours.
    Module,
}

impl Colours {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Colours::Kind => "kind",
            Colours::Module => "module",
        }
    }
}

/// Number of modules with a colour of their own.
pub(crate) const COLOURED_MODULES: usize = 6;

/// Classes of the modules' colours, heaviest first; the last is that of all others.
pub(crate) const MODULE_CLASSES: [&str; COLOURED_MODULES + 1] = ["m0", "m1", "m2", "m3", "m4", "m5", "mx"];

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

/// Class of a frame's colour when colours tell kinds.
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

    #[test]
    fn quiet_colours_lie_nearer_to_the_background() {
        assert_eq!(LIGHT.mixed([0, 0, 0], 0), "#000000");
        assert_eq!(LIGHT.mixed([0, 0, 0], 100), "#ffffff");
        assert_eq!(LIGHT.mixed([0xe6, 0x9f, 0x00], 50), "#f3cf80");
    }
}
