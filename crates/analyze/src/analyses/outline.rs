//! The rows of a tree in reading order: callees follow their caller, and light nodes of a caller share one row.

/// A tree that is shown as rows. Node 0 is its root.
pub(super) trait Branches {
    /// The children of a node, first row first.
    fn children(&self, node: usize) -> &[usize];

    /// Whether a node with this many callers has a row of its own.
    fn is_shown(&self, node: usize, depth: usize) -> bool;

    /// The nodes that share the row of `first`, which is the first of them. Each calls the next, and no other callee of it is
    /// shown.
    fn chain(&self, first: usize, depth: usize) -> Vec<usize>;
}

/// A row of the outline.
pub(super) struct OutlineRow {
    pub(super) content: Content,
    /// Number of callers above it.
    pub(super) depth: usize,
    /// Number of rows above it that contain it.
    pub(super) indent: usize,
}

/// The nodes of a row; never empty.
pub(super) enum Content {
    /// A node, or a chain of calls, the first caller first.
    Chain(Vec<usize>),
    /// Light nodes, which are added up.
    More(Vec<usize>),
}

/// The rows of a tree.
pub(super) fn rows(tree: &impl Branches) -> Vec<OutlineRow> {
    let mut rows = Vec::new();
    let mut waiting = vec![OutlineRow { content: Content::Chain(tree.chain(0, 0)), depth: 0, indent: 0 }];
    while let Some(row) = waiting.pop() {
        if let Content::Chain(chain) = &row.content {
            push_callees(tree, chain, row.depth + chain.len(), row.indent + 1, &mut waiting);
        }
        rows.push(row);
    }
    rows
}

/// Adds the callees of a chain, the last row first.
fn push_callees(tree: &impl Branches, chain: &[usize], depth: usize, indent: usize, waiting: &mut Vec<OutlineRow>) {
    let (last, above) = chain.split_last().expect("a chain has its first node");
    let (shown, hidden): (Vec<usize>, Vec<usize>) =
        tree.children(*last).iter().partition(|&&child| tree.is_shown(child, depth));
    let beside = above.iter().flat_map(|&node| tree.children(node)).copied().filter(|child| !chain.contains(child));
    let light: Vec<usize> = beside.chain(hidden).collect();
    if !light.is_empty() {
        waiting.push(OutlineRow { content: Content::More(light), depth, indent });
    }
    let row = |&child: &usize| OutlineRow { content: Content::Chain(tree.chain(child, depth)), depth, indent };
    waiting.extend(shown.iter().rev().map(row));
}
