//! The call tree as text, from the root down.
//!
//! Each function is followed by its callees, heaviest first. Functions below a threshold, or deeper than a limit, are added
//! up into one row per caller. So the inclusive weight of a row is its own weight plus that of its children.
//!
//! A long chain of calls at the root is one row, if each frame has one callee with a row:
//! `_start > … > main (13 frames)`. It ends before the first owned function; if it has none, at `main`.

use std::cmp::Reverse;

use stepscope_model::{CallTree, Columns, Dimension, FrameKind, Table};

use crate::analyses::calltree;
use crate::analysis::{Analysis, ReportSection, View};
use crate::columns::{count, flag, percentage, text, weight};
use crate::query::select::Selection;
use crate::query::weights::percent;

/// What to leave out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How the tree is built.
    pub tree: calltree::Options,
    /// Functions with less than this percent of the whole are added up.
    pub least_percent: f64,
    /// Functions called deeper than this are added up.
    pub deepest: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { tree: calltree::Options::default(), least_percent: 1.0, deepest: 500 }
    }
}

/// The table `tree` of the selected samples.
pub fn table(selection: &Selection<'_>, options: &Options) -> Table {
    of_tree(&calltree::of_samples(selection, &options.tree), options)
}

/// The table `tree` of any call tree.
pub fn of_tree(tree: &CallTree, options: &Options) -> Table {
    let whole = u128::from(tree.nodes[0].total);
    let rows = if whole > 0 { Outline::of(tree, options).rows() } else { Vec::new() };
    let doc = "The function, two spaces further to the right than its caller; `(N more)` for those that were added up; \
               `A > … > B (N frames)` for a chain of callers at the root.";
    let kind = "Kind of code: native, runtime, allocator, kernel, python, unknown, or group.";
    let module = "File name of the module its code is in; empty where unknown.";
    let owned = "Whether it is code that the user's team can change; missing for groups and sums.";
    let node = |row: &Row| row.node().map(|node| &tree.nodes[node]);
    let mut table = Columns::<Row>::new()
        .with(text("tree", doc), |row| format!("{}{}", "  ".repeat(row.indent), row.text(tree)).into())
        .with(count("depth", "", "Number of callers above it.").detail(), |row| row.depth.into())
        .with(weight("inclusive", &tree.unit, "Weight of the samples that pass through here.").detail(), |row| {
            row.total(tree).into()
        })
        .with(percentage("inclusive_share", "Inclusive in percent of the whole.").essential(), |row| {
            percent(row.total(tree), whole).into()
        })
        .with(weight("self", &tree.unit, "Weight of the samples that end here.").detail(), |row| row.own(tree).into())
        .with(percentage("self_share", "Self in percent of the whole.").essential(), |row| {
            row.own(tree).and_then(|own| percent(own.into(), whole)).into()
        })
        .with(text("module", module).detail(), |row| node(row).map_or("", |node| &*node.module).into())
        .with(flag("owned", owned).detail(), |row| {
            node(row).filter(|node| node.kind != FrameKind::Group).map(|node| node.owned).into()
        })
        .with(text("category", kind).detail(), |row| node(row).map_or(FrameKind::Group, |node| node.kind).name().into())
        .table("tree", format!("{} by call path", tree.title), rows);
    if !tree.subtitle.is_empty() {
        table.note(tree.subtitle.clone());
    }
    table
}

/// Chains of fewer frames at the root have a row for each frame.
const SHORTEST_CHAIN: usize = 5;

struct Row {
    content: Content,
    /// Number of callers above it.
    depth: usize,
    /// Number of rows of callers above it.
    indent: usize,
}

enum Content {
    Node(usize),
    /// A chain of calls at the root, the first caller first.
    Chain(Vec<usize>),
    /// Functions that were added up.
    More {
        nodes: usize,
        total: u128,
    },
}

impl Row {
    /// The function, or the first of a chain.
    fn node(&self) -> Option<usize> {
        match &self.content {
            Content::Node(node) => Some(*node),
            Content::Chain(chain) => Some(chain[0]),
            Content::More { .. } => None,
        }
    }

    fn text(&self, tree: &CallTree) -> String {
        let name = |node: usize| &*tree.nodes[node].name;
        match &self.content {
            Content::Node(node) => name(*node).to_owned(),
            Content::Chain(chain) => {
                let (first, last) = (chain[0], chain[chain.len() - 1]);
                format!("{} > … > {} ({} frames)", name(first), name(last), chain.len())
            }
            Content::More { nodes, .. } => format!("({nodes} more)"),
        }
    }

    fn total(&self, tree: &CallTree) -> u128 {
        match &self.content {
            Content::Node(node) => tree.nodes[*node].total.into(),
            Content::Chain(chain) => tree.nodes[chain[0]].total.into(),
            Content::More { total, .. } => *total,
        }
    }

    fn own(&self, tree: &CallTree) -> Option<u64> {
        match &self.content {
            Content::Node(node) => Some(tree.nodes[*node].own),
            Content::Chain(chain) => Some(chain.iter().map(|&node| tree.nodes[node].own).sum()),
            Content::More { .. } => None,
        }
    }
}

struct Outline<'a> {
    tree: &'a CallTree,
    options: &'a Options,
    children: Vec<Vec<usize>>,
}

impl<'a> Outline<'a> {
    fn of(tree: &'a CallTree, options: &'a Options) -> Self {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes.len()];
        for (index, node) in tree.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent as usize].push(index);
            }
        }
        for siblings in &mut children {
            siblings.sort_by_key(|&index| (Reverse(tree.nodes[index].total), tree.nodes[index].name.clone()));
        }
        Self { tree, options, children }
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut waiting = vec![Row { content: Content::Node(0), depth: 0, indent: 0 }];
        while let Some(row) = waiting.pop() {
            let (depth, indent) = (row.depth, row.indent + 1);
            match &row.content {
                Content::Node(node) => self.push_callees(&[*node], depth + 1, indent, &mut waiting),
                Content::Chain(chain) => self.push_callees(chain, depth + chain.len(), indent, &mut waiting),
                Content::More { .. } => {}
            }
            rows.push(row);
        }
        rows
    }

    /// The callees of the last node that have rows, and one row for all other callees of the nodes; the last row first.
    fn push_callees(&self, nodes: &[usize], depth: usize, indent: usize, waiting: &mut Vec<Row>) {
        let callees = nodes.iter().flat_map(|&node| &self.children[node]);
        let hidden: Vec<usize> =
            callees.copied().filter(|child| !nodes.contains(child) && !self.is_shown(*child, depth)).collect();
        if !hidden.is_empty() {
            let total = hidden.iter().map(|&child| u128::from(self.tree.nodes[child].total)).sum();
            waiting.push(Row { content: Content::More { nodes: hidden.len(), total }, depth, indent });
        }
        let last = nodes[nodes.len() - 1];
        let shown = self.children[last].iter().rev().filter(|&&child| self.is_shown(child, depth));
        waiting.extend(shown.map(|&child| {
            let chain = self.chain(child, depth);
            let content = if chain.len() < SHORTEST_CHAIN { Content::Node(child) } else { Content::Chain(chain) };
            Row { content, depth, indent }
        }));
    }

    fn is_shown(&self, node: usize, depth: usize) -> bool {
        depth <= self.options.deepest && self.share(node) >= self.options.least_percent
    }

    /// The chain of calls from a node at the root, each with one callee that has a row. Empty below the root.
    fn chain(&self, first: usize, depth: usize) -> Vec<usize> {
        let is_root = |node: usize| {
            let parent = self.tree.nodes[node].parent.map(|parent| &self.tree.nodes[parent as usize]);
            parent.is_none_or(|parent| parent.kind == FrameKind::Group)
        };
        if self.tree.inverted || !is_root(first) {
            return Vec::new();
        }
        let mut chain: Vec<usize> = Vec::new();
        let mut next = Some(first);
        while let Some(node) = next.filter(|&node| !self.tree.nodes[node].owned) {
            let depth_below = depth + chain.len() + 1;
            let mut shown = self.children[node].iter().copied().filter(|&child| self.is_shown(child, depth_below));
            let (Some(callee), None) = (shown.next(), shown.next()) else { break };
            chain.push(node);
            next = Some(callee);
        }
        let ends_before_owned = next.is_some_and(|node| self.tree.nodes[node].owned);
        let main = chain.iter().rposition(|&node| is_main(&self.tree.nodes[node].name));
        if let Some(main) = main.filter(|_| !ends_before_owned) {
            chain.truncate(main + 1);
        }
        chain
    }

    fn share(&self, node: usize) -> f64 {
        percent(self.tree.nodes[node].total.into(), self.tree.nodes[0].total.into()).unwrap_or(0.0)
    }
}

/// Whether a function is the program's `main`.
fn is_main(name: &str) -> bool {
    let name = name.split('(').next().unwrap_or(name);
    name == "main" || name.ends_with("::main")
}

/// The call tree.
pub struct Tree;

impl Analysis for Tree {
    fn title(&self) -> &'static str {
        "Call tree"
    }

    fn views(&self) -> &'static [View] {
        &[
            View {
                name: "tree",
                question: "On which call paths does the cost lie, from the root down?",
                tables: |selection, _| vec![table(selection, &Options::default())],
            },
            View {
                name: "inverted-tree",
                question: "Which callers lead to each costly leaf?",
                tables: |selection, _| {
                    let tree = calltree::Options { order: calltree::Order::LeavesFirst, ..Default::default() };
                    vec![table(selection, &Options { tree, ..Options::default() })]
                },
            },
        ]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Cpu]
    }

    fn also_in(&self) -> &'static [&'static str] {
        &["flamegraph"]
    }

    fn report(&self, selection: &Selection<'_>) -> Vec<ReportSection> {
        let tree = calltree::of_samples(selection, &calltree::Options::default());
        ReportSection::of_tree("On-CPU flame graph", tree).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::read::cells;
    use crate::drawn;

    const STACKS: &str = "
        main;run;step;find 60
        main;run;step 25
        main;run;log;write 2
        main;run;log;flush 1
        main;run;tick 2
        main;load 10
        ";

    fn rows(options: &Options) -> Vec<String> {
        let capture = drawn::folded(STACKS);
        let table = drawn::selected(&capture, &[], |selection| table(selection, options));
        cells(&table, &["tree", "inclusive", "self"])
    }

    #[test]
    fn callees_follow_their_caller_heaviest_first_and_light_ones_are_added_up() {
        assert_eq!(
            rows(&Options { least_percent: 2.5, ..Options::default() }),
            [
                "all | 100 | 0",
                "  run | 90 | 0",
                "    step | 85 | 25",
                "      find | 60 | 60",
                "    log | 3 | 0",
                "      (2 more) | 3 | -",
                "    (1 more) | 2 | -",
                "  load | 10 | 10",
            ]
        );
    }

    #[test]
    fn what_is_too_deep_is_added_up() {
        assert_eq!(
            rows(&Options { deepest: 1, ..Options::default() }),
            ["all | 100 | 0", "  run | 90 | 0", "    (3 more) | 90 | -", "  load | 10 | 10",]
        );
    }

    #[test]
    fn exactly_the_threshold_is_shown() {
        assert!(rows(&Options { least_percent: 3.0, ..Options::default() }).contains(&"    log | 3 | 0".to_owned()));
    }

    #[test]
    fn a_chain_of_start_up_frames_is_one_row_up_to_main() {
        let capture = drawn::folded(
            "
            main;_start;libc_start;call;lang_start;rt;main;run;step;find 150
            main;_start;libc_start;call;lang_start;rt;main;run;load 48
            main;_start;libc_start;init 1
            main;_start;libc_start;call 1
            ",
        );
        let table = drawn::selected(&capture, &[], |selection| table(selection, &Options::default()));
        assert_eq!(
            cells(&table, &["tree", "depth", "inclusive", "self"]),
            [
                "all | 0 | 200 | 0",
                "  _start > … > main (6 frames) | 1 | 200 | 1",
                "    run | 7 | 198 | 0",
                "      step | 8 | 150 | 0",
                "        find | 9 | 150 | 150",
                "      load | 8 | 48 | 48",
                "    (1 more) | 7 | 1 | -",
            ]
        );
    }

    #[test]
    fn a_chain_of_start_up_frames_ends_before_the_first_owned_function() {
        let capture = drawn::folded("main;_start;libc_start;main;lang_start;rt;gz::main;gz::run 10");
        let table = drawn::selected(&capture, &["gz::"], |selection| table(selection, &Options::default()));
        assert_eq!(
            cells(&table, &["tree", "inclusive"]),
            ["all | 10", "  _start > … > rt (5 frames) | 10", "    gz::main | 10", "      gz::run | 10"]
        );
    }

    #[test]
    fn a_tree_of_nothing_has_no_rows() {
        let table = drawn::selected(&stepscope_model::Capture::default(), &[], |selection| {
            table(selection, &Options::default())
        });
        assert!(table.rows.is_empty());
    }
}
