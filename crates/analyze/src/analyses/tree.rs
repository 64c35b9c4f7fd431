//! The call tree as text: where the weight goes, from the root down, without what does not matter.
//!
//! Rows are in the order of reading: each function is followed by what it called, heaviest first. What is lighter than a
//! threshold, or deeper than a limit, is not dropped but added up into one row a caller, so that the children of
//! every row still add up to what the row does not hold itself.

use std::cmp::Reverse;

use stepscope_model::{CallTree, Dimension, FrameKind, Table, Value};

use crate::analyses::calltree;
use crate::analysis::{Analysis, ReportSection, View};
use crate::columns;
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
    let mut table = Table::new(
        "tree",
        format!("{} by call path", tree.title),
        vec![
            columns::text(
                "tree",
                "The function, two spaces further to the right than its caller; `(N more)` for those that were added up.",
            ),
            columns::count("depth", "", "Number of callers above it.").detail(),
            columns::weight("inclusive", &tree.unit, "Weight of the samples that pass through here.").detail(),
            columns::percent("inclusive_share", "Inclusive in percent of the whole.").essential(),
            columns::weight("self", &tree.unit, "Weight of the samples that end here.").detail(),
            columns::percent("self_share", "Self in percent of the whole."),
            columns::text("module", "File name of the module its code is in; empty where unknown.").detail(),
            columns::flag("owned", "Whether it is code that the user's team can change; missing for groups and sums.")
                .detail(),
            columns::text("category", "Kind of code: native, runtime, allocator, kernel, python, unknown, or group.")
                .detail(),
        ],
    );
    if tree.nodes[0].total > 0 {
        Outline::of(tree, options).write(&mut table);
    }
    if !tree.subtitle.is_empty() {
        table.note(tree.subtitle.clone());
    }
    table
}

/// A row that is yet to be written.
enum Row {
    Node { node: usize, depth: usize },
    More { nodes: usize, total: u128, depth: usize },
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

    fn write(&self, table: &mut Table) {
        let mut waiting = vec![Row::Node { node: 0, depth: 0 }];
        while let Some(row) = waiting.pop() {
            table.push(self.row(&row));
            if let Row::Node { node, depth } = row {
                self.rows_below(node, depth + 1, &mut waiting);
            }
        }
    }

    /// The callees of a node that have rows, and one row for those that have none; the last one first.
    fn rows_below(&self, node: usize, depth: usize, waiting: &mut Vec<Row>) {
        let is_shown =
            |&&child: &&usize| depth <= self.options.deepest && self.share(child) >= self.options.least_percent;
        let shown: Vec<usize> = self.children[node].iter().filter(is_shown).copied().collect();
        let hidden = || self.children[node].iter().filter(|child| !is_shown(child));
        if hidden().count() > 0 {
            let total = hidden().map(|&child| u128::from(self.tree.nodes[child].total)).sum();
            waiting.push(Row::More { nodes: hidden().count(), total, depth });
        }
        waiting.extend(shown.into_iter().rev().map(|node| Row::Node { node, depth }));
    }

    fn share(&self, node: usize) -> f64 {
        percent(u128::from(self.tree.nodes[node].total), self.whole()).unwrap_or(0.0)
    }

    fn whole(&self) -> u128 {
        u128::from(self.tree.nodes[0].total)
    }

    fn row(&self, row: &Row) -> Vec<Value> {
        let indented = |depth: usize, text: &str| Value::from(format!("{}{text}", "  ".repeat(depth)));
        match *row {
            Row::Node { node, depth } => {
                let node = &self.tree.nodes[node];
                vec![
                    indented(depth, &node.name),
                    depth.into(),
                    node.total.into(),
                    percent(u128::from(node.total), self.whole()).into(),
                    node.own.into(),
                    percent(u128::from(node.own), self.whole()).into(),
                    (&*node.module).into(),
                    (node.kind != FrameKind::Group).then_some(node.owned).into(),
                    node.kind.name().into(),
                ]
            }
            Row::More { nodes, total, depth } => vec![
                indented(depth, &format!("({nodes} more)")),
                depth.into(),
                total.into(),
                percent(total, self.whole()).into(),
                Value::Missing,
                Value::Missing,
                "".into(),
                Value::Missing,
                FrameKind::Group.name().into(),
            ],
        }
    }
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
    fn a_tree_of_nothing_has_no_rows() {
        let table = drawn::selected(&stepscope_model::Capture::default(), &[], |selection| {
            table(selection, &Options::default())
        });
        assert!(table.rows.is_empty());
    }
}
