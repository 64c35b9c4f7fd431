//! [`Places`]: the frames and stacks that the page gets.
//!
//! A capture has a frame for each address. The page needs none: frames that differ in nothing else become one, and so do
//! the stacks through them. Stacks that no selected sample and no selected wait has are left out.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_analyze::Functions;
use stepscope_model::{Capture, FrameId, FrameKind, StackId};

use super::{Profile, clipped, row};
use crate::parquet_table::ParquetTable;

/// What the page calls the stacks that were too small to keep.
pub const OTHER: &str = "(other)";

/// The frames and stacks of a profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Places {
    /// By node of the capture: the row in `stacks`, or -1.
    rows: Vec<i32>,
    /// A frame of the capture for each row of `frames`; none for [`OTHER`].
    frames: Vec<Option<FrameId>>,
    nodes: Vec<Node>,
    /// Stacks that became part of [`OTHER`].
    merged: usize,
}

/// A row of `stacks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    parent: i32,
    frame: i32,
}

/// What makes two frames one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FrameKey {
    function: usize,
    module: Option<u32>,
    file: Option<Arc<str>>,
    line: Option<u32>,
    inlined: bool,
}

/// The frames and nodes that are there already.
#[derive(Debug, Clone, Default, PartialEq)]
struct Known {
    frames: FxHashMap<FrameKey, i32>,
    nodes: FxHashMap<Node, i32>,
}

/// Places of a capture that grows: each stack keeps its row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GrowingPlaces {
    places: Arc<Places>,
    known: Known,
}

impl GrowingPlaces {
    /// Adds the stacks that the capture has got since the last call.
    pub fn grow(&mut self, capture: &Capture, functions: &Functions) {
        let places = Arc::make_mut(&mut self.places);
        for index in places.rows.len()..capture.stacks.len() {
            let row = places.add_stack(StackId::from_index(index), capture, functions, &mut self.known);
            places.rows.push(row);
        }
    }

    /// The places so far.
    pub fn places(&self) -> &Arc<Places> {
        &self.places
    }
}

impl Places {
    /// The frames and stacks of nodes whose weight is not zero. At most `most` stacks are kept, those with the largest
    /// inclusive weight; each other one becomes a part of its nearest kept caller's [`OTHER`].
    pub(super) fn of(capture: &Capture, functions: &Functions, weights: &[f64], most: usize) -> Self {
        let inclusive = inclusive(capture, weights);
        let mut places = Self { rows: vec![-1; capture.stacks.len()], ..Self::default() };
        let mut known = Known::default();
        let mut totals: Vec<f64> = Vec::new();
        for index in (0..capture.stacks.len()).filter(|index| inclusive[*index] > 0.0) {
            let id = places.add_stack(StackId::from_index(index), capture, functions, &mut known);
            totals.resize(places.nodes.len(), 0.0);
            totals[id as usize] += inclusive[index];
            places.rows[index] = id;
        }
        if places.nodes.len() > most {
            places.keep_largest(&totals, most);
        }
        places.put_callees_together();
        places
    }

    /// Puts rows in the order of their depth, those with the same caller one after the other: the page reads a million of them
    /// several times as fast as in the order of the recording.
    fn put_callees_together(&mut self) {
        let nodes = std::mem::take(&mut self.nodes);
        let slot = |parent: i32| (parent + 1) as usize;
        // The callees of row `n` are those from `starts[n + 1]` up to `starts[n + 2]`; roots come first.
        let mut starts = vec![0; nodes.len() + 2];
        for node in &nodes {
            starts[slot(node.parent) + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut callees = vec![0; nodes.len()];
        let mut next = starts.clone();
        for (index, node) in nodes.iter().enumerate() {
            let next = &mut next[slot(node.parent)];
            callees[*next] = index;
            *next += 1;
        }
        let callees = |row: i32| &callees[starts[slot(row)]..starts[slot(row) + 1]];
        let mut order: Vec<usize> = Vec::with_capacity(nodes.len());
        order.extend(callees(-1));
        let mut moved = vec![0; nodes.len()];
        for at in 0..nodes.len() {
            let Node { parent, frame } = nodes[order[at]];
            moved[order[at]] = self.add(Node { parent: if parent < 0 { -1 } else { moved[parent as usize] }, frame });
            order.extend(callees(order[at] as i32));
        }
        self.move_rows(&moved);
    }

    /// The row of a stack whose caller has one.
    fn add_stack(&mut self, id: StackId, capture: &Capture, functions: &Functions, known: &mut Known) -> i32 {
        let stack = &capture.stacks[id.index()];
        let frame = &capture.frames[stack.frame.index()];
        let key = FrameKey {
            function: functions.of_frame(stack.frame).index(),
            module: frame.module.map(|id| id.0),
            file: frame.file.clone(),
            line: frame.line,
            inlined: frame.inlined,
        };
        let frame = *known.frames.entry(key).or_insert_with(|| {
            self.frames.push(Some(stack.frame));
            row(Some(self.frames.len() - 1))
        });
        let parent = stack.parent.map_or(-1, |parent| self.rows[parent.index()]);
        let node = Node { parent, frame };
        *known.nodes.entry(node).or_insert_with(|| self.add(node))
    }

    /// Keeps at most `most` nodes. Children have no more weight than parents, so the largest ones are a tree.
    fn keep_largest(&mut self, totals: &[f64], most: usize) {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| totals[*b].total_cmp(&totals[*a]).then(a.cmp(b)));
        let mut keep = vec![false; self.nodes.len()];
        // Each kept node may need one more for what it called.
        order.iter().take(most / 2).for_each(|index| keep[*index] = true);
        let all = std::mem::take(&mut self.nodes);
        let other_frame = row(Some(self.frames.len()));
        self.frames.push(None);
        let mut others: FxHashMap<i32, i32> = FxHashMap::default();
        let mut moved: Vec<i32> = Vec::with_capacity(all.len());
        for (index, node) in all.into_iter().enumerate() {
            let parent = if node.parent < 0 { -1 } else { moved[node.parent as usize] };
            let is_under_other = parent >= 0 && self.nodes[parent as usize].frame == other_frame;
            moved.push(match keep[index] {
                true => self.add(Node { parent, frame: node.frame }),
                false => {
                    self.merged += 1;
                    match is_under_other {
                        true => parent,
                        false => *others.entry(parent).or_insert_with(|| self.add(Node { parent, frame: other_frame })),
                    }
                }
            });
        }
        self.move_rows(&moved);
    }

    /// Gives each stack the new place of its row.
    fn move_rows(&mut self, moved: &[i32]) {
        for row in self.rows.iter_mut().filter(|row| **row >= 0) {
            *row = moved[*row as usize];
        }
    }

    fn add(&mut self, node: Node) -> i32 {
        self.nodes.push(node);
        row(Some(self.nodes.len() - 1))
    }

    /// The row of a stack in `stacks`; -1 for none, and for one that is not selected.
    pub fn row(&self, stack: Option<StackId>) -> i32 {
        stack.map_or(-1, |stack| self.rows[stack.index()])
    }

    /// For each row of `stacks`, what `of` gives for a stack of the capture with that row. [`OTHER`] has that of its caller,
    /// `none` without one.
    pub(super) fn of_rows<T: Copy>(&self, none: T, of: impl Fn(StackId) -> T) -> Vec<T> {
        let mut found = vec![none; self.nodes.len()];
        for (index, row) in self.rows.iter().enumerate().filter(|(_, row)| **row >= 0) {
            found[*row as usize] = of(StackId::from_index(index));
        }
        for index in 0..self.nodes.len() {
            let Node { parent, frame } = self.nodes[index];
            if self.frames[frame as usize].is_none() {
                found[index] = if parent < 0 { none } else { found[parent as usize] };
            }
        }
        found
    }

    /// How many stacks became part of [`OTHER`].
    pub fn merged(&self) -> usize {
        self.merged
    }

    pub(super) fn modules(&self, capture: &Capture) -> ParquetTable {
        ParquetTable::new()
            .texts("name", capture.modules.iter().map(|module| clipped(module.name())).collect())
            .texts("path", capture.modules.iter().map(|module| clipped(&module.path)).collect())
    }

    pub(super) fn frames(&self, profile: &Profile<'_>) -> ParquetTable {
        let (capture, functions) = (profile.capture(), profile.selection().functions());
        let frame = |id: &Option<FrameId>| id.map(|id| &capture.frames[id.index()]);
        let function =
            |id: &Option<FrameId>| id.map(|id| (functions.of_frame(id), functions.get(functions.of_frame(id))));
        let integers = |of: &dyn Fn(&Option<FrameId>) -> i32| self.frames.iter().map(of).collect::<Vec<i32>>();
        let texts = |of: &dyn Fn(&Option<FrameId>) -> Arc<str>| self.frames.iter().map(of).collect::<Vec<_>>();
        let name = |id: &Option<FrameId>| frame(id).map_or(OTHER.into(), |frame| clipped(&frame.function));
        let file =
            |id: &Option<FrameId>| frame(id).and_then(|frame| frame.file.as_deref()).map_or_else(|| "".into(), clipped);
        ParquetTable::new()
            .texts("function", texts(&name))
            .integers("module", integers(&|id| row(frame(id).and_then(|frame| frame.module).map(|id| id.index()))))
            .texts("file", texts(&file))
            .integers("line", integers(&|id| row(frame(id).and_then(|frame| frame.line).map(|line| line as usize))))
            .integers("kind", integers(&|id| function(id).map_or(FrameKind::Group, |(_, one)| one.kind) as i32))
            .integers("owned", integers(&|id| function(id).is_some_and(|(_, one)| one.owned).into()))
            .integers("owner", integers(&|id| function(id).is_some_and(|(id, _)| functions.is_owner(id)).into()))
            .integers("inlined", integers(&|id| frame(id).is_some_and(|frame| frame.inlined).into()))
            .integers("identity", integers(&|id| row(function(id).map(|(id, _)| id.index()))))
    }

    /// A frame of the capture that a row of `frames` stands for.
    pub(super) fn frame(&self, row: usize) -> Option<FrameId> {
        *self.frames.get(row)?
    }

    pub(super) fn stack_rows(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn frame_rows(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn stacks(&self) -> ParquetTable {
        ParquetTable::new()
            .integers("parent", self.nodes.iter().map(|node| node.parent).collect())
            .integers("frame", self.nodes.iter().map(|node| node.frame).collect())
    }
}

/// The weight of each node with that of all nodes below it.
fn inclusive(capture: &Capture, weights: &[f64]) -> Vec<f64> {
    let mut inclusive = weights.to_vec();
    for (index, stack) in capture.stacks.iter().enumerate().rev() {
        if let Some(parent) = stack.parent {
            inclusive[parent.index()] += inclusive[index];
        }
    }
    inclusive
}
