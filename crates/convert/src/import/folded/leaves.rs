//! [`Leaves`]: the last frames of lines that are out of order, until all lines are read.

use stepscope_model::{Capture, FrameId, StackId, StackNode, ThreadId};

/// The last frame of a line, below the node of its caller, and the line's count.
///
/// Most nodes of a tree with millions of distinct stacks are leaves. To look each up in a table misses the CPU's caches several
/// times, because lines come in any order. Sorting them takes a third of that, and leaves of one caller then lie beside each
/// other, also for what draws the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf {
    /// One more than the caller's number; 0 for none.
    caller: u32,
    /// The frame's number, or [`Leaf::NO_FRAME`].
    frame: u32,
    pub thread: ThreadId,
    /// The number of the first such line.
    pub line: u32,
    pub count: u64,
}

impl Leaf {
    const NO_FRAME: u32 = u32::MAX;

    /// Of a line of `thread` that ends in this frame below `caller`.
    pub fn below(caller: Option<StackId>, frame: FrameId, thread: ThreadId, count: u64) -> Self {
        Self { caller: caller.map_or(0, |caller| caller.0 + 1), frame: frame.0, thread, line: 0, count }
    }

    /// Of a line of `thread` that ends at a known node.
    pub fn at(node: Option<StackId>, thread: ThreadId, count: u64, capture: &Capture) -> Self {
        match node.map(|node| capture.stacks[node.index()]) {
            Some(StackNode { parent, frame }) => Self::below(parent, frame, thread, count),
            None => Self { caller: 0, frame: Self::NO_FRAME, thread, line: 0, count },
        }
    }

    /// The caller and the frame; `None` for a line without frames.
    pub fn node(&self) -> Option<StackNode> {
        let parent = self.caller.checked_sub(1).map(StackId);
        (self.frame != Self::NO_FRAME).then_some(StackNode { parent, frame: FrameId(self.frame) })
    }

    fn order(&self) -> (u64, ThreadId) {
        (u64::from(self.caller) << 32 | u64::from(self.frame), self.thread)
    }
}

/// Leaves by caller, frame and thread. Equal ones are added up, so that there are a few times as many as distinct stacks, at most.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    leaves: Vec<Leaf>,
    /// Number at which equal ones are added up.
    limit: usize,
}

impl Leaves {
    const LEAST_LIMIT: usize = 1 << 16;

    /// Adds the leaf of the line with this number.
    pub fn add(&mut self, leaf: Leaf, line: u64) {
        if self.leaves.len() >= self.limit {
            self.merge();
            self.limit = (4 * self.leaves.len()).max(Self::LEAST_LIMIT);
        }
        self.leaves.push(Leaf { line: u32::try_from(line).unwrap_or(u32::MAX), ..leaf });
    }

    /// All of them by caller, frame and thread, each with its first line.
    pub fn take(&mut self) -> Vec<Leaf> {
        self.merge();
        std::mem::take(&mut self.leaves)
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.leaves.capacity()
    }

    fn merge(&mut self) {
        // Stable: the first line of equal ones stays, and a sum beyond 64 bits continues in a new row.
        self.leaves.sort_by_key(Leaf::order);
        self.leaves.dedup_by(|next, kept| {
            let sum = kept.count.checked_add(next.count).filter(|_| kept.order() == next.order());
            kept.count = sum.unwrap_or(kept.count);
            sum.is_some()
        });
    }
}
