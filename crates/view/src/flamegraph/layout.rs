//! Where each node of a call tree lies.

use stepscope_model::{CallNode, CallTree};

/// A call tree in drawing order: each node followed by its children, from left to right.
///
/// All vectors are indexed by position in that order. A tree without nodes has a layout without positions.
#[derive(Debug, PartialEq)]
pub(crate) struct Layout {
    /// The node at each position.
    pub node: Vec<u32>,
    /// Distance from the root.
    pub depth: Vec<u32>,
    /// Weight to the left of it, from the tree's left edge.
    pub start: Vec<u128>,
    /// Weight that it spans: its total, or the sum of its children if that is larger.
    pub extent: Vec<u128>,
}

impl Layout {
    /// Lays out a tree. Linear in its nodes.
    pub fn of(tree: &CallTree) -> Self {
        let (node, depth) = in_drawing_order(&tree.nodes);
        let extent = extents(tree, &node, &depth);
        let start = starts(&depth, &extent);
        Self { node, depth, start, extent }
    }

    /// Weight of the whole.
    pub fn whole(&self) -> u128 {
        self.extent.first().copied().unwrap_or(0)
    }
}

/// Nodes in depth-first order, and their depths.
fn in_drawing_order(nodes: &[CallNode]) -> (Vec<u32>, Vec<u32>) {
    const NONE: u32 = u32::MAX;
    let mut first_child = vec![NONE; nodes.len()];
    let mut next_sibling = vec![NONE; nodes.len()];
    // From the last to the first, so that each list of children starts with the one drawn first.
    for (index, node) in nodes.iter().enumerate().skip(1).rev() {
        let parent = parent_of(node, index);
        next_sibling[index] = first_child[parent];
        first_child[parent] = index as u32;
    }
    let mut order = Vec::with_capacity(nodes.len());
    let mut depths = Vec::with_capacity(nodes.len());
    let mut to_visit: Vec<(u32, u32)> = Vec::new();
    if !nodes.is_empty() {
        to_visit.push((0, 0));
    }
    while let Some((index, depth)) = to_visit.pop() {
        order.push(index);
        depths.push(depth);
        let (sibling, child) = (next_sibling[index as usize], first_child[index as usize]);
        if sibling != NONE {
            to_visit.push((sibling, depth));
        }
        if child != NONE {
            to_visit.push((child, depth + 1));
        }
    }
    (order, depths)
}

/// A tree's parents come before their children; anything else would be drawn under the root.
fn parent_of(node: &CallNode, index: usize) -> usize {
    node.parent.map(|parent| parent as usize).filter(|&parent| parent < index).unwrap_or(0)
}

fn extents(tree: &CallTree, order: &[u32], depth: &[u32]) -> Vec<u128> {
    let mut extent = vec![0_u128; order.len()];
    // Sums over the children of the node that is still open at each depth.
    let mut open: Vec<u128> = Vec::new();
    for position in (0..order.len()).rev() {
        let node = &tree.nodes[order[position] as usize];
        let level = depth[position] as usize;
        if open.len() < level + 2 {
            open.resize(level + 2, 0);
        }
        let children = std::mem::take(&mut open[level + 1]);
        extent[position] = u128::from(node.total).max(u128::from(node.own) + children);
        open[level] += extent[position];
    }
    extent
}

fn starts(depth: &[u32], extent: &[u128]) -> Vec<u128> {
    let mut start = Vec::with_capacity(depth.len());
    // Where the next node of each depth starts.
    let mut cursor: Vec<u128> = vec![0];
    for (&level, extent) in depth.iter().zip(extent) {
        let level = level as usize;
        let here = cursor[level];
        start.push(here);
        cursor[level] = here + extent;
        cursor.truncate(level + 1);
        cursor.push(here);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flamegraph::fixture::tree;

    #[test]
    fn children_follow_their_parent_and_share_its_width() {
        // all 10 ─┬─ a 7 ─┬─ c 4
        //         │       └─ d 1   (2 in a itself)
        //         └─ b 3
        let tree =
            tree(&[("all", None, 0), ("a", Some(0), 2), ("b", Some(0), 3), ("c", Some(1), 4), ("d", Some(1), 1)]);
        let layout = Layout::of(&tree);
        assert_eq!(layout.node, [0, 1, 3, 4, 2]);
        assert_eq!(layout.depth, [0, 1, 2, 2, 1]);
        assert_eq!(layout.extent, [10, 7, 4, 1, 3]);
        assert_eq!(layout.start, [0, 0, 0, 4, 7]);
    }

    #[test]
    fn a_node_is_never_narrower_than_what_is_in_it_and_may_be_wider() {
        let mut tree = tree(&[("all", None, 0), ("a", Some(0), 5), ("b", Some(0), 5)]);
        tree.nodes[0].total = 1;
        tree.nodes[1].total = 8;
        assert_eq!(Layout::of(&tree).extent, [13, 8, 5]);
        assert_eq!(Layout::of(&tree).start, [0, 0, 8]);
    }

    #[test]
    fn weights_do_not_overflow_and_no_nodes_are_no_error() {
        let huge = tree(&[("all", None, 0), ("a", Some(0), u64::MAX), ("b", Some(0), u64::MAX)]);
        assert_eq!(Layout::of(&huge).whole(), 2 * u128::from(u64::MAX));
        let mut empty = huge;
        empty.nodes.clear();
        assert_eq!(Layout::of(&empty).whole(), 0);
    }
}
