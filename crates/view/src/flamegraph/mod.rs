//! Flame graphs: one standalone SVG file.
//!
//! The file holds three things. A *first picture* of the widest frames as ordinary SVG, which every viewer of images
//! shows, without scripts too. The *whole tree* as compact [`data`]. And the *script* (from `web/`), which takes
//! the picture's place in a browser and draws only what is visible at the current zoom.
//!
//! In the browser: click to zoom, breadcrumbs and browser history to go back, search with the share that it matches,
//! details of the frame under the pointer, and the keyboard for all of it. Links can be shared:
//!
//! - `graph.svg?s=REGEX` highlights the functions that match;
//! - `graph.svg?x=WEIGHT&y=DEPTH` is zoomed to the frame that starts at this weight from the left, at this depth. The
//!   address bar always holds the link to the current view.
//!
//! The same tree and options give the same bytes.

pub(crate) mod data;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod layout;
pub(crate) mod palette;
mod picture;

use std::io::{self, Write};

use stepscope_model::{BaseWeight, CallTree, TreeDifference, Verdict};

use crate::assets;
use crate::embed::markup;
use layout::Layout;
pub use palette::Colours;

/// How a flame graph is drawn at first. The reader can change both in the browser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The meaning of the colours.
    pub colours: Colours,
    /// Where the root is. By default below; above in inverted trees.
    pub growth: Option<Growth>,
}

/// The direction from a frame to the frames it calls (in inverted trees, to its callers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The root is at the bottom: a flame graph.
    Up,
    /// The root is at the top: an icicle graph.
    Down,
}

impl Options {
    /// How differences are drawn: by what changed.
    pub fn of_difference() -> Self {
        Self { colours: Colours::Difference, growth: None }
    }

    pub(crate) fn growth_of(&self, tree: &CallTree) -> Growth {
        self.growth.unwrap_or(if tree.inverted { Growth::Down } else { Growth::Up })
    }
}

/// Writes the flame graph of a tree as a standalone SVG document.
///
/// # Errors
/// Those of writing to `out`.
pub fn write_svg(tree: &CallTree, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    write(&Subject { tree, difference: None }, options, out)
}

/// Writes two trees as one differential flame graph.
///
/// Widths show the larger of both weights, so that what was removed is visible; a switch shows either tree's. Colours show
/// more and less.
///
/// With verdicts, only significant changes have a colour; equivalent frames are nearly white and inconclusive ones grey. The
/// legend counts the frames of each.
///
/// # Errors
/// Those of writing to `out`.
pub fn write_difference_svg(difference: &TreeDifference, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    write(&Subject::of(difference), options, out)
}

/// A tree as the JSON that the script of flame graphs reads.
pub fn encode(tree: &CallTree) -> String {
    encode_subject(&Subject { tree, difference: None }, &Options::default())
}

/// Two trees as the JSON that the script of flame graphs reads.
pub fn encode_difference(difference: &TreeDifference) -> String {
    encode_subject(&Subject::of(difference), &Options::of_difference())
}

fn encode_subject(subject: &Subject<'_>, options: &Options) -> String {
    let (layout, modules) = (Layout::of(subject.tree), data::heaviest_modules(subject.tree));
    data::encode(subject, &layout, &modules, options)
}

/// The tree of a difference in which each node is as wide as it needs to be in either.
fn larger(difference: &TreeDifference) -> CallTree {
    let mut tree = difference.tree.clone();
    for (index, node) in tree.nodes.iter_mut().enumerate() {
        node.own = node.own.max(difference.base.get(index).map_or(0, |base| base.own));
        node.total = node.own;
    }
    for index in (1..tree.nodes.len()).rev() {
        let total = tree.nodes[index].total;
        if let Some(parent) = tree.nodes[index].parent {
            let above = &mut tree.nodes[parent as usize];
            above.total = above.total.saturating_add(total);
        }
    }
    tree
}

/// A tree, and the difference that it is part of.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub tree: &'a CallTree,
    pub difference: Option<&'a TreeDifference>,
}

impl<'a> Subject<'a> {
    pub fn of(difference: &'a TreeDifference) -> Self {
        Self { tree: &difference.tree, difference: Some(difference) }
    }

    /// A node's weights in the base.
    pub fn base(&self, node: usize) -> Option<BaseWeight> {
        self.difference.and_then(|difference| difference.base.get(node).copied())
    }

    /// A node's verdict.
    pub fn verdict(&self, node: usize) -> Option<Verdict> {
        self.difference.and_then(|difference| difference.verdicts.as_ref()?.get(node).copied())
    }

    /// Weight of the heavier tree.
    pub fn larger_whole(&self) -> u128 {
        let whole = self.tree.nodes.first().map_or(0, |node| node.total);
        u128::from(whole.max(self.base(0).unwrap_or_default().total))
    }
}

fn write(subject: &Subject<'_>, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let tree = subject.tree;
    let layout = Layout::of(tree);
    let modules = data::heaviest_modules(tree);
    let drawn = subject.difference.map(|difference| Layout::of(&larger(difference)));
    let picture = picture::draw(subject, drawn.as_ref().unwrap_or(&layout), &modules, options);
    write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <desc>{subtitle}</desc>\n\
         <style><![CDATA[{sheet}{app_sheet}]]></style>\n",
        width = picture::WIDTH,
        height = picture.height,
        title = markup(&tree.title),
        subtitle = markup(&tree.subtitle),
        sheet = palette::style_sheet(),
        app_sheet = assets::FLAMEGRAPH_CSS,
    )?;
    out.write_all(picture.elements.as_bytes())?;
    out.write_all(b"<script type=\"application/json\" class=\"flame-data\"><![CDATA[")?;
    out.write_all(data::encode(subject, &layout, &modules, options).as_bytes())?;
    write!(out, "]]></script>\n<script><![CDATA[{}]]></script>\n</svg>\n", assets::FLAMEGRAPH_JS)
}
