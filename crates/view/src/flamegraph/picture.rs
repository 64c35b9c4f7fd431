//! The first picture: the widest frames as plain SVG elements, for viewers without scripts.

use std::collections::BTreeMap;
use std::sync::Arc;

use stepscope_model::{CallNode, CallTree, FrameKind};

use super::layout::Layout;
use super::palette::{
    COLOURED_MODULES, Colours, KINDS, MODULE_CLASSES, VERDICT_LEGEND, change_class, changes, kind_class, shade,
};
use super::{Growth, Options, Subject};
use crate::embed::{append, markup, push_coordinate, push_markup};
use crate::shorten::{label, shorten};
use stepscope_model::quantity::{grouped, percent, weight};

/// Width of the picture in pixels; it scales.
pub(crate) const WIDTH: u32 = 1200;

const MARGIN: f64 = 10.0;
const HEADER: f64 = 62.0;
const FOOTER: f64 = 34.0;
/// Height of a frame with the line that separates it from the next.
const ROW: f64 = 18.0;
/// Narrower frames are not drawn.
const NARROWEST: f64 = 0.5;
/// Narrower frames have no element of their own, and so no title: there is nothing to point at.
const OWN_ELEMENT: f64 = 4.0;
/// More frames than this do not make the picture clearer, only the file larger.
const MOST_FRAMES: usize = 1500;
/// Deeper frames are not drawn: a recursion ten thousand deep would make a picture of two hundred thousand pixels.
const MOST_ROWS: u32 = 400;
/// Advance of one column of the 12-pixel monospaced fonts in use (0.6 em, 0.602 in DejaVu Sans Mono), and a little.
const COLUMN: f64 = 7.25;

/// SVG elements and the height that they need.
pub(crate) struct Picture {
    pub elements: String,
    pub height: u32,
}

/// Draws the tree.
pub(crate) fn draw(subject: &Subject<'_>, layout: &Layout, modules: &[Arc<str>], options: &Options) -> Picture {
    let tree = subject.tree;
    let drawn = widest(layout);
    let rows = drawn.iter().map(|&position| layout.depth[position] + 1).max().unwrap_or(1);
    let height = HEADER + f64::from(rows) * ROW + FOOTER;
    let mut pen = Pen {
        subject: *subject,
        tree,
        layout,
        modules,
        colours: options.colours.of(subject),
        growth: options.growth_of(tree),
        rows,
        has_owned: tree.nodes.iter().any(|node| node.owned),
        elements: String::with_capacity(drawn.len() * 256 + 4096),
        slivers: BTreeMap::new(),
    };
    pen.open(height);
    for position in drawn {
        pen.frame(position);
    }
    pen.push_slivers();
    if layout.whole() == 0 {
        pen.text(MARGIN, HEADER + ROW / 2.0, "No samples.", "faint");
    }
    pen.legend(height - FOOTER / 2.0 + 4.0);
    pen.elements.push_str("</g>\n");
    Picture { elements: pen.elements, height: height as u32 }
}

/// Positions of the frames to draw, in drawing order. A frame is at least as wide as those in it, so that with it
/// every frame under it is drawn too.
fn widest(layout: &Layout) -> Vec<usize> {
    let scale = pixels_per_weight(layout);
    let is_wide = |&position: &usize| {
        layout.extent[position] > 0
            && layout.extent[position] as f64 * scale >= NARROWEST
            && layout.depth[position] < MOST_ROWS
    };
    let mut positions: Vec<usize> = (0..layout.node.len()).filter(is_wide).collect();
    if positions.len() > MOST_FRAMES {
        positions.select_nth_unstable_by_key(MOST_FRAMES, |&position| {
            (std::cmp::Reverse(layout.extent[position]), layout.depth[position], position)
        });
        positions.truncate(MOST_FRAMES);
        positions.sort_unstable();
    }
    positions
}

fn pixels_per_weight(layout: &Layout) -> f64 {
    (f64::from(WIDTH) - 2.0 * MARGIN) / (layout.whole().max(1) as f64)
}

struct Pen<'a> {
    subject: Subject<'a>,
    tree: &'a CallTree,
    layout: &'a Layout,
    modules: &'a [Arc<str>],
    colours: Colours,
    growth: Growth,
    rows: u32,
    has_owned: bool,
    elements: String,
    /// Frames too narrow for a label, as one path a colour.
    slivers: BTreeMap<Classes, String>,
}

/// What gives a frame its colour: hue, shade, and whether it is quiet.
type Classes = (&'static str, u8, bool);

fn push_classes((hue, shade, quiet): Classes, elements: &mut String) {
    elements.push_str(hue);
    elements.push_str(["", " s1", " s2"][usize::from(shade)]);
    elements.push_str(if quiet { " q" } else { "" });
}

impl Pen<'_> {
    fn open(&mut self, height: f64) {
        let elements = &mut self.elements;
        elements.push_str("<g id=\"picture\" font-family=\"ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"12\">\n");
        append!(*elements, "<rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/>\n");
        let title = shorten(&self.tree.title, 90).into_owned();
        append!(
            *elements,
            "<text class=\"ink\" x=\"{MARGIN}\" y=\"26\" font-family=\"system-ui,sans-serif\" font-size=\"18\" font-weight=\"600\">{}</text>\n",
            markup(&title)
        );
        let subtitle = shorten(&self.tree.subtitle, 160).into_owned();
        append!(
            *elements,
            "<text class=\"faint\" x=\"{MARGIN}\" y=\"46\" font-family=\"system-ui,sans-serif\">{}</text>\n",
            markup(&subtitle)
        );
    }

    fn text(&mut self, x: f64, y: f64, text: &str, class: &str) {
        self.elements.push_str("<text x=\"");
        push_coordinate(x, &mut self.elements);
        self.elements.push_str("\" y=\"");
        push_coordinate(y, &mut self.elements);
        self.elements.push_str("\" class=\"");
        self.elements.push_str(class);
        self.elements.push_str("\">");
        push_markup(text, &mut self.elements);
        self.elements.push_str("</text>\n");
    }

    fn frame(&mut self, position: usize) {
        let number = self.layout.node[position] as usize;
        let node = &self.tree.nodes[number];
        let scale = pixels_per_weight(self.layout);
        let x = MARGIN + self.layout.start[position] as f64 * scale;
        let width = self.layout.extent[position] as f64 * scale;
        let depth = self.layout.depth[position];
        let row = match self.growth {
            Growth::Up => self.rows - 1 - depth,
            Growth::Down => depth,
        };
        let y = HEADER + f64::from(row) * ROW;
        if width < OWN_ELEMENT {
            self.sliver(number, x, y, width);
            return;
        }
        let quiet = if self.is_quiet(node) { " q" } else { "" };
        self.elements.push_str("<g><title>");
        self.details(number);
        self.elements.push_str("</title><rect class=\"");
        let classes = self.classes(number);
        push_classes(classes, &mut self.elements);
        for (attribute, value) in
            [("\" x=\"", x), ("\" y=\"", y), ("\" width=\"", width - 1.0), ("\" height=\"", ROW - 1.0)]
        {
            self.elements.push_str(attribute);
            push_coordinate(value, &mut self.elements);
        }
        self.elements.push_str("\"/>");
        if let Some(text) = label_of(node, width) {
            self.text(x + 3.0, y + 13.0, &text, if quiet.is_empty() { "t" } else { "t q" });
        }
        self.elements.push_str("</g>\n");
    }

    /// Adds a frame without a label to the path of its colour.
    fn sliver(&mut self, number: usize, x: f64, y: f64, width: f64) {
        let classes = self.classes(number);
        let path = self.slivers.entry(classes).or_default();
        // The background shows between neighbours.
        let shown = width * 0.75;
        for (command, value) in [("M", x), (" ", y), ("h", shown), ("v", ROW - 1.0), ("h-", shown)] {
            path.push_str(command);
            push_coordinate(value, path);
        }
        path.push('z');
    }

    fn push_slivers(&mut self) {
        for (classes, path) in std::mem::take(&mut self.slivers) {
            self.elements.push_str("<path class=\"");
            push_classes(classes, &mut self.elements);
            append!(self.elements, "\" d=\"{path}\"/>\n");
        }
    }

    fn classes(&self, number: usize) -> Classes {
        let node = &self.tree.nodes[number];
        if let (Colours::Difference, Some(base)) = (self.colours, self.subject.base(number)) {
            let verdict = self.subject.verdict(number);
            return (change_class(node.total, base.total, self.subject.larger_whole(), verdict), 0, false);
        }
        (self.class(node), shade(&node.name), self.is_quiet(node))
    }

    fn details(&mut self, number: usize) {
        let node = &self.tree.nodes[number];
        let unit = &self.tree.unit;
        let share = percent(node.total as f64 * 100.0 / self.layout.whole().max(1) as f64);
        let elements = &mut self.elements;
        push_markup(&node.name, elements);
        if !node.module.is_empty() {
            elements.push_str(" (");
            push_markup(&node.module, elements);
            elements.push(')');
        }
        for (before, text) in [(": ", &weight(node.total, unit)), (", ", &share), ("; self ", &weight(node.own, unit))]
        {
            elements.push_str(before);
            push_markup(text, elements);
        }
        if let (Some(base), Some(difference)) = (self.subject.base(number), self.subject.difference) {
            elements.push_str("; ");
            push_markup(&difference.base_name, elements);
            let more = |now: u64, before: u64| {
                let sign = if now < before { "\u{2212}" } else { "+" };
                format!("{sign}{}", weight(now.abs_diff(before), unit))
            };
            for (before, text) in [
                (": ", weight(base.total, unit)),
                ("; self ", weight(base.own, unit)),
                ("; difference ", more(node.total, base.total)),
                (", self ", more(node.own, base.own)),
            ] {
                elements.push_str(before);
                push_markup(&text, elements);
            }
            if let Some(verdict) = self.subject.verdict(number) {
                elements.push_str("; ");
                elements.push_str(verdict.name());
            }
        }
    }

    fn is_quiet(&self, node: &CallNode) -> bool {
        self.has_owned && self.colours != Colours::Difference && !node.owned && node.kind != FrameKind::Group
    }

    fn class(&self, node: &CallNode) -> &'static str {
        match self.colours {
            Colours::Module if node.kind != FrameKind::Group => {
                let rank = self.modules.iter().position(|module| *module == node.module);
                MODULE_CLASSES[rank.unwrap_or(COLOURED_MODULES)]
            }
            _ => kind_class(node),
        }
    }

    fn legend(&mut self, baseline: f64) {
        let mut x = MARGIN;
        for (class, name) in self.legend_entries() {
            let quiet = if self.has_owned && self.colours != Colours::Difference && class != "owned" && class != "group"
            {
                " q"
            } else {
                ""
            };
            append!(
                self.elements,
                "<rect class=\"{class}{quiet}\" x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\"/>\n",
                baseline - 10.0
            );
            self.text(x + 18.0, baseline, &name, "faint");
            x += 18.0 + unicode_width::UnicodeWidthStr::width(name.as_str()) as f64 * COLUMN + 18.0;
        }
    }

    /// How many frames have each colour of a difference with verdicts.
    fn verdict_counts(&self) -> Option<[i128; VERDICT_LEGEND.len()]> {
        self.subject.difference?.verdicts.as_ref()?;
        let mut counts = [0; VERDICT_LEGEND.len()];
        for number in 0..self.tree.nodes.len() {
            let (class, ..) = self.classes(number);
            if let Some(at) = VERDICT_LEGEND.iter().position(|(known, _)| *known == class) {
                counts[at] += 1;
            }
        }
        Some(counts)
    }

    /// Classes and names of the colours that occur.
    fn legend_entries(&self) -> Vec<(&'static str, String)> {
        if let (Colours::Difference, Some(counts)) = (self.colours, self.verdict_counts()) {
            let named = VERDICT_LEGEND.into_iter().zip(counts);
            return named.map(|((class, what), count)| (class, format!("{what} ({})", grouped(count)))).collect();
        }
        if self.colours == Colours::Difference {
            return changes().map(|(class, what)| (class, what.to_owned())).into();
        }
        if self.colours == Colours::Module {
            let named =
                self.modules.iter().zip(MODULE_CLASSES).map(|(name, class)| (class, shorten(name, 24).into_owned()));
            return named.chain([(MODULE_CLASSES[COLOURED_MODULES], "other".to_owned())]).collect();
        }
        let occurs = |class: &str| self.tree.nodes.iter().any(|node| kind_class(node) == class);
        let kinds = KINDS.iter().skip(1).map(|kind| kind.name());
        std::iter::once("owned")
            .chain(kinds)
            .filter(|class| occurs(class))
            .map(|class| (class, class.to_owned()))
            .collect()
    }
}

/// The text in a frame of this width in pixels, if any fits.
fn label_of(node: &CallNode, width: f64) -> Option<String> {
    let columns = ((width - 6.0) / COLUMN).max(0.0) as usize;
    let name = crate::visible::visible(&node.name);
    if node.kind == FrameKind::Group {
        return (columns >= 3).then(|| shorten(&name, columns).into_owned());
    }
    label(&name, columns).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use stepscope_model::{TreeDifference, Verdict};

    use super::*;
    use crate::flamegraph::fixture::tree;

    fn drawn(tree: &CallTree) -> Picture {
        draw(&Subject { tree, difference: None }, &Layout::of(tree), &[], &Options::default())
    }

    #[test]
    fn frames_are_drawn_widest_first_and_never_without_their_callers() {
        let mut nodes = vec![("all", None, 0)];
        nodes.extend((0..MOST_FRAMES as u32 * 2).map(|index| ("f", Some(index / 2), 1)));
        let tree = tree(&nodes);
        let layout = Layout::of(&tree);
        let positions = widest(&layout);
        assert_eq!(positions.len(), MOST_FRAMES);
        let mut path: Vec<usize> = Vec::new();
        for &position in &positions {
            let depth = layout.depth[position] as usize;
            path.truncate(depth);
            assert_eq!(path.len(), depth, "the frame under position {position} is drawn");
            path.push(position);
        }
    }

    #[test]
    fn a_deep_recursion_does_not_make_an_endless_picture() {
        let nodes: Vec<_> =
            (0..100_000_u32).map(|index| ("f", index.checked_sub(1), u64::from(index == 99_999))).collect();
        assert!(drawn(&tree(&nodes)).height < 8000);
    }

    #[test]
    fn a_difference_with_verdicts_shows_and_counts_them() {
        let after = tree(&[("all", None, 0), ("a", Some(0), 40), ("b", Some(0), 60)]);
        let before = tree(&[("all", None, 0), ("a", Some(0), 80), ("b", Some(0), 59)]);
        let mut difference = TreeDifference::of(("after", &after), ("before", &before));
        difference.tree.unit = "ns/step".into();
        difference.verdicts = Some(vec![Verdict::Inconclusive, Verdict::Changed, Verdict::Equivalent]);
        let subject = Subject::of(&difference);
        let drawn = draw(&subject, &Layout::of(subject.tree), &[], &Options::of_difference()).elements;
        assert!(
            drawn.contains(
                "<title>a: 40 ns/step, 40.00 %; self 40 ns/step; before: 80 ns/step; self 80 ns/step; \
                 difference \u{2212}40 ns/step, self \u{2212}40 ns/step; changed</title><rect class=\"less3\""
            ),
            "{drawn}"
        );
        for entry in ["−&lt;1 % (0)", "−5 % (1)", "equivalent (1)", "inconclusive (1)"] {
            assert!(drawn.contains(&format!(">{entry}</text>")), "{entry}");
        }
    }

    #[test]
    fn a_tree_without_weight_says_so() {
        assert!(drawn(&tree(&[("all", None, 0)])).elements.contains("No samples."));
    }
}
