//! [`CallTree`]: what flame graphs draw; [`TreeDifference`]: two of them as one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use strum::IntoStaticStr;

/// A weighted call tree, made by an analysis and drawn by a view.
///
/// Node 0 is the root; parents come before their children. Children are in drawing order (by name, so that equal trees
/// look equal).
#[derive(Debug, Clone, PartialEq)]
pub struct CallTree {
    /// Heading, e.g. `On-CPU time`.
    pub title: String,
    /// Second line: capture, filters, order of the stacks.
    pub subtitle: String,
    /// Unit of the weights: `ns`, `cycles`, `samples`, ...
    pub unit: String,
    /// Nodes, parents before children. Never empty.
    pub nodes: Vec<CallNode>,
    /// Whether leaves are at the root.
    pub inverted: bool,
}

/// A function called by the parent's function.
#[derive(Debug, Clone, PartialEq)]
pub struct CallNode {
    /// The caller's node; `None` only for node 0.
    pub parent: Option<u32>,
    /// Full name of the function.
    pub name: Arc<str>,
    /// File name of the module; empty if unknown.
    pub module: Arc<str>,
    /// Source file and line; empty if unknown.
    pub source: Arc<str>,
    /// Kind of code, for colours.
    pub kind: FrameKind,
    /// Whether the user's team can change it.
    pub owned: bool,
    /// Whether it is inlined into its parent.
    pub inlined: bool,
    /// Inclusive weight.
    pub total: u64,
    /// Self weight.
    pub own: u64,
}

/// Kind of code of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum FrameKind {
    /// Not a function: the root, a thread, a process.
    Group,
    /// Program or library code.
    Native,
    /// C, C++ and threading run-time libraries, and the dynamic linker.
    Runtime,
    /// Memory allocation.
    Allocator,
    /// Kernel code.
    Kernel,
    /// Python code.
    Python,
    /// Code without a name.
    Unknown,
}

impl FrameKind {
    /// The name used in tables (`category`) and legends.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Two call trees on the same nodes, drawn as one: a tree and its base.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeDifference {
    /// The tree. Nodes that only the base has have weight 0.
    pub tree: CallTree,
    /// The weight of each node in the base.
    pub base: Vec<BaseWeight>,
    /// Name of the tree's weights, e.g. `slow steps`.
    pub name: String,
    /// Name of the base's weights, e.g. `typical steps`.
    pub base_name: String,
    /// Verdict of each node's change, if there was a comparison.
    pub verdicts: Option<Vec<Verdict>>,
}

/// What a comparison says about a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// The difference is statistically significant.
    Changed,
    /// Any difference is smaller than the tolerance.
    Equivalent,
    /// The data show neither.
    Inconclusive,
}

impl Verdict {
    /// The words used in tables and legends.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Weights of a node in the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BaseWeight {
    /// Inclusive weight.
    pub total: u64,
    /// Self weight.
    pub own: u64,
}

/// Several call trees on the same nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeUnion {
    /// The nodes of all trees, in the order of a [`CallTree`], with weight 0.
    pub nodes: Vec<CallNode>,
    /// For each tree, the index of each of its nodes among these.
    pub places: Vec<Vec<u32>>,
}

/// A node by its path: the caller's node, name and module.
type Step = (Option<u32>, Arc<str>, Arc<str>);

impl TreeUnion {
    /// Merges the nodes of all trees by the names and modules on their paths. In inverted trees siblings are in the order of
    /// their largest weight, heaviest first; else in that of their names.
    pub fn of(trees: &[&CallTree]) -> Self {
        let mut nodes: Vec<CallNode> = Vec::new();
        let mut known: HashMap<Step, u32> = HashMap::new();
        let mut join = |tree: &&CallTree| {
            let mut here: Vec<u32> = Vec::with_capacity(tree.nodes.len());
            for node in &tree.nodes {
                let parent = node.parent.map(|parent| here[parent as usize]);
                here.push(*known.entry((parent, node.name.clone(), node.module.clone())).or_insert_with(|| {
                    nodes.push(CallNode { parent, total: 0, own: 0, ..node.clone() });
                    nodes.len() as u32 - 1
                }));
            }
            here
        };
        let mut places: Vec<Vec<u32>> = trees.iter().map(&mut join).collect();
        let mut heaviest = vec![0; nodes.len()];
        for (tree, places) in trees.iter().zip(&places).filter(|(tree, _)| tree.inverted) {
            let mut totals = vec![0_u64; nodes.len()];
            for (node, &place) in tree.nodes.iter().zip(places) {
                totals[place as usize] = totals[place as usize].saturating_add(node.total);
            }
            heaviest.iter_mut().zip(totals).for_each(|(most, total)| *most = total.max(*most));
        }
        let order = depth_first(&nodes, &heaviest);
        let mut number = vec![0; nodes.len()];
        (order.iter().zip(0..)).for_each(|(&node, position)| number[node as usize] = position);
        let ordered = order.iter().map(|&node| {
            let node = &nodes[node as usize];
            CallNode { parent: node.parent.map(|parent| number[parent as usize]), ..node.clone() }
        });
        let nodes = ordered.collect();
        places.iter_mut().flatten().for_each(|place| *place = number[*place as usize]);
        Self { nodes, places }
    }
}

impl TreeDifference {
    /// Merges the nodes of both trees by the names and modules on their paths. Title, unit and direction are those of
    /// the first.
    pub fn of((name, tree): (&str, &CallTree), (base_name, base): (&str, &CallTree)) -> Self {
        let TreeUnion { mut nodes, places } = TreeUnion::of(&[tree, base]);
        let mut weights = vec![BaseWeight::default(); nodes.len()];
        for (node, &place) in tree.nodes.iter().zip(&places[0]) {
            let joined = &mut nodes[place as usize];
            (joined.total, joined.own) = (joined.total + node.total, joined.own + node.own);
        }
        for (node, &place) in base.nodes.iter().zip(&places[1]) {
            let weight = &mut weights[place as usize];
            (weight.total, weight.own) = (weight.total + node.total, weight.own + node.own);
        }
        Self {
            tree: CallTree { nodes, ..tree.clone() },
            base: weights,
            name: name.to_owned(),
            base_name: base_name.to_owned(),
            verdicts: None,
        }
    }
}

/// Orders nodes depth first, siblings by weight, heaviest first, then by name and module.
fn depth_first(nodes: &[CallNode], weights: &[u64]) -> Vec<u32> {
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for (node, index) in nodes.iter().zip(0_u32..) {
        if let Some(parent) = node.parent {
            children[parent as usize].push(index);
        }
    }
    let mut order = Vec::with_capacity(nodes.len());
    let mut waiting = if nodes.is_empty() { Vec::new() } else { vec![0_u32] };
    while let Some(index) = waiting.pop() {
        order.push(index);
        let mut below = std::mem::take(&mut children[index as usize]);
        // In reverse, because they are taken from the end.
        below.sort_by(|&a, &b| {
            let node = |index: u32| &nodes[index as usize];
            let key = |index: u32| (Reverse(weights[index as usize]), &node(index).name, &node(index).module);
            key(b).cmp(&key(a))
        });
        waiting.extend(below);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of nodes given as name, parent and self weight.
    fn tree(nodes: &[(&str, Option<u32>, u64)]) -> CallTree {
        let node = |&(name, parent, own): &(&str, Option<u32>, u64)| CallNode {
            parent,
            name: name.into(),
            module: "".into(),
            source: "".into(),
            kind: FrameKind::Native,
            owned: false,
            inlined: false,
            total: own,
            own,
        };
        let mut nodes: Vec<CallNode> = nodes.iter().map(node).collect();
        for index in (1..nodes.len()).rev() {
            let (parent, total) = (nodes[index].parent.unwrap() as usize, nodes[index].total);
            nodes[parent].total += total;
        }
        CallTree { title: "t".into(), subtitle: "".into(), unit: "ns".into(), nodes, inverted: false }
    }

    #[test]
    fn in_inverted_trees_the_heaviest_leaf_of_either_comes_first() {
        let [mut now, mut before] = [
            tree(&[("all", None, 0), ("a", Some(0), 5), ("b", Some(0), 7)]),
            tree(&[("all", None, 0), ("c", Some(0), 6), ("a", Some(0), 9)]),
        ];
        (now.inverted, before.inverted) = (true, true);
        let names = |union: TreeUnion| union.nodes.iter().map(|node| node.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(TreeUnion::of(&[&now, &before])), ["all", "a", "b", "c"]);
        (now.inverted, before.inverted) = (false, false);
        now.nodes[1].name = "d".into();
        assert_eq!(names(TreeUnion::of(&[&now, &before])), ["all", "a", "b", "c", "d"]);
    }

    #[test]
    fn both_trees_are_on_the_same_nodes_with_their_own_weights() {
        let slow = tree(&[("all", None, 0), ("run", Some(0), 5), ("decode", Some(1), 40)]);
        let typical = tree(&[("all", None, 0), ("run", Some(0), 6), ("cached", Some(1), 3), ("gone", Some(0), 2)]);
        let difference = TreeDifference::of(("slow", &slow), ("typical", &typical));
        let rows: Vec<_> = (difference.tree.nodes.iter().zip(&difference.base))
            .map(|(node, base)| (&*node.name, node.parent, node.total, node.own, base.total, base.own))
            .collect();
        assert_eq!(
            rows,
            [
                ("all", None, 45, 0, 11, 0),
                ("gone", Some(0), 0, 0, 2, 2),
                ("run", Some(0), 45, 5, 9, 6),
                ("cached", Some(2), 0, 0, 3, 3),
                ("decode", Some(2), 40, 40, 0, 0),
            ]
        );
    }

    #[test]
    fn recursion_stays_a_node_a_call() {
        let deep = tree(&[("all", None, 0), ("f", Some(0), 1), ("f", Some(1), 1)]);
        let difference = TreeDifference::of(("a", &deep), ("b", &tree(&[("all", None, 0), ("f", Some(0), 4)])));
        assert_eq!(difference.tree.nodes.len(), 3);
        assert_eq!(difference.base.iter().map(|base| base.own).collect::<Vec<_>>(), [0, 4, 0]);
    }
}
