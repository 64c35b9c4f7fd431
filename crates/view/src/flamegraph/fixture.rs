//! Small trees for tests.

use stepscope_model::{CallNode, CallTree, FrameKind};

/// A tree of nodes given as name, parent and own weight; totals add up.
pub(crate) fn tree(nodes: &[(&str, Option<u32>, u64)]) -> CallTree {
    let mut nodes: Vec<CallNode> = nodes
        .iter()
        .map(|&(name, parent, own)| CallNode {
            parent,
            name: name.into(),
            module: "".into(),
            source: "".into(),
            kind: if parent.is_none() { FrameKind::Group } else { FrameKind::Native },
            owned: false,
            inlined: false,
            total: own,
            own,
        })
        .collect();
    for index in (1..nodes.len()).rev() {
        let total = nodes[index].total;
        let parent = nodes[index].parent.expect("only the root has no parent") as usize;
        nodes[parent].total = nodes[parent].total.saturating_add(total);
    }
    CallTree { title: "On-CPU time".into(), subtitle: "a test".into(), unit: "ns".into(), nodes, inverted: false }
}
