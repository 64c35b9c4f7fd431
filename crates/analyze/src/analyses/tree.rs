//! The call tree as text, from the root down.
//!
//! Each function is followed by its callees, heaviest first. Functions below a threshold, or deeper than a limit, are added
//! up into one row per caller. So the inclusive weight of a row is its own weight plus that of its children.
//!
//! A long chain of calls at the root is one row, if each frame has one callee with a row:
//! `_start > … > main (13 frames)`. It ends before the first owned function; if it has none, at `main`.

use std::cmp::Reverse;

use stepscope_model::{CallNode, CallTree, Columns, Dimension, FrameKind, Table};

use crate::analyses::calltree;
use crate::analyses::outline::{self, Branches, Content, OutlineRow};
use crate::analysis::{Analysis, ReportSection, View};
use crate::query::events;
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
    let rows = if whole > 0 { outline::rows(&Shown::of(tree, options)) } else { Vec::new() };
    let rows = rows.into_iter().map(|row| Row { tree, row });
    let doc = "The function, two spaces further to the right than its caller; `(N more)` for those that were added up; \
               `A > … > B (N frames)` for a chain of callers at the root.";
    let kind = "Kind of code: native, runtime, allocator, kernel, python, unknown, or group.";
    let module = "File name of the module its code is in; empty where unknown.";
    let owned = "Whether it is code that the user's team can change; missing for groups and sums.";
    let mut table = Columns::<Row<'_>>::new()
        .text("tree", doc, |row| format!("{}{}", "  ".repeat(row.row.indent), row.text()).into())
        .weight("inclusive", &tree.unit, "Weight of the samples that pass through here.", |row| row.total())
        .percentage("inclusive_share", "Inclusive in percent of the whole.", |row| percent(row.total(), whole))
        .weight("self", &tree.unit, "Weight of the samples that end here.", |row| row.own())
        .percentage("self_share", "Self in percent of the whole.", |row| {
            row.own().and_then(|own| percent(own.into(), whole))
        })
        .text("module", module, |row| row.node().map_or("", |node| &*node.module).into())
        .flag("owned", owned, |row| row.node().filter(|node| node.kind != FrameKind::Group).map(|node| node.owned))
        .text("category", kind, |row| row.node().map_or(FrameKind::Group, |node| node.kind).name().into())
        .count("depth", "", "Number of callers above it.", |row| row.row.depth)
        .essential("inclusive_share self_share")
        .weighing("inclusive_share")
        .detail("inclusive self module owned category depth")
        .table("tree", format!("{} by call path", tree.title), rows);
    if !tree.subtitle.is_empty() {
        table.note(tree.subtitle.clone());
    }
    table
}

/// Chains of fewer frames at the root have a row for each frame.
const SHORTEST_CHAIN: usize = 5;

/// Weights and text of a row.
struct Row<'a> {
    tree: &'a CallTree,
    row: OutlineRow,
}

impl Row<'_> {
    /// The function, or the first of a chain.
    fn node(&self) -> Option<&CallNode> {
        match &self.row.content {
            Content::Chain(chain) => Some(&self.tree.nodes[chain[0]]),
            Content::More(_) => None,
        }
    }

    fn text(&self) -> String {
        let name = |node: usize| &*self.tree.nodes[node].name;
        match &self.row.content {
            Content::Chain(chain) => match chain[..] {
                [first, .., last] => format!("{} > … > {} ({} frames)", name(first), name(last), chain.len()),
                _ => chain.iter().map(|&node| name(node)).collect(),
            },
            Content::More(nodes) => format!("({} more)", nodes.len()),
        }
    }

    fn total(&self) -> u128 {
        match &self.row.content {
            Content::Chain(chain) => self.tree.nodes[chain[0]].total.into(),
            Content::More(nodes) => nodes.iter().map(|&node| u128::from(self.tree.nodes[node].total)).sum(),
        }
    }

    fn own(&self) -> Option<u64> {
        match &self.row.content {
            Content::Chain(chain) => Some(chain.iter().map(|&node| self.tree.nodes[node].own).sum()),
            Content::More(_) => None,
        }
    }
}

/// Which functions have rows.
struct Shown<'a> {
    tree: &'a CallTree,
    options: &'a Options,
    children: Vec<Vec<usize>>,
}

impl<'a> Shown<'a> {
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

    fn share(&self, node: usize) -> f64 {
        percent(self.tree.nodes[node].total.into(), self.tree.nodes[0].total.into()).unwrap_or(0.0)
    }
}

impl Branches for Shown<'_> {
    fn children(&self, node: usize) -> &[usize] {
        &self.children[node]
    }

    fn is_shown(&self, node: usize, depth: usize) -> bool {
        depth <= self.options.deepest && self.share(node) >= self.options.least_percent
    }

    /// A chain of calls from the root, each with one callee that has a row; else the node alone.
    fn chain(&self, first: usize, depth: usize) -> Vec<usize> {
        let parent = self.tree.nodes[first].parent.map(|parent| &self.tree.nodes[parent as usize]);
        if self.tree.inverted || parent.is_none_or(|parent| parent.kind != FrameKind::Group) {
            return vec![first];
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
        if chain.len() < SHORTEST_CHAIN { vec![first] } else { chain }
    }
}

/// Whether a function is the program's `main`.
fn is_main(name: &str) -> bool {
    let name = name.split('(').next().unwrap_or(name);
    name == "main" || name.ends_with("::main")
}

/// The call tree.
pub const ANALYSIS: Analysis = Analysis {
    title: "Call tree",
    views: &[
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
    ],
    needs: &[Dimension::Cpu],
    also_in: &["flamegraph"],
    report: |selection| {
        let tree = calltree::of_samples(selection, &calltree::Options::default());
        let is_memory = selection.event().is_some_and(events::is_memory);
        let heading = if is_memory { "Flame graph" } else { "On-CPU flame graph" };
        ReportSection::of_tree(heading, tree).into_iter().collect()
    },
    ..Analysis::NONE
};

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
    fn frames_that_are_too_deep_are_added_up() {
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
