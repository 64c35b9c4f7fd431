//! Call trees with callers at the root, for captures with millions of stacks.
//!
//! The capture has a tree of frames already. Frames of one function below one node become one node, and children are in the order of
//! their names. Both follow from one sort of each node's children, so no node is looked up in a table, and nodes are made
//! in drawing order at once.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{CallNode, Capture, FrameId, FrameKind, StackId};

use crate::query::functions::{Identity, NO_STACK, source_of};
use crate::query::select::Selection;

/// The weight of a stack in a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    pub group: u32,
    pub stack: Option<StackId>,
    pub weight: u64,
}

/// A node of the capture's tree with weight, in one group.
struct Place {
    frame: FrameId,
    /// The owner of the list that has it: a group, or [`Lists::groups`] more than the caller's place.
    parent: u32,
    own: u64,
    total: u64,
}

/// A group around stacks, with the groups and stacks within it.
struct Group {
    name: Arc<str>,
    within: Vec<usize>,
    /// Numbers of the groups of sums that are here.
    lists: Vec<u32>,
    without_stack: u64,
    total: u64,
}

impl Group {
    fn named(name: Arc<str>) -> Self {
        Self { name, within: Vec::new(), lists: Vec::new(), without_stack: 0, total: 0 }
    }
}

/// Nodes of the capture's tree by their parents.
struct Lists {
    places: Vec<Place>,
    /// Number of groups of sums.
    groups: u32,
    /// Where the children of each owner begin; one more at the end.
    first: Vec<u32>,
    /// Owners. Behind the children of all owners are lists that were made of several.
    members: Vec<u32>,
    /// Position of each frame's function in the order of names.
    rank: Vec<u32>,
    /// Ranks and members of the list that is being sorted, kept for the allocation.
    sorting: Vec<(u32, u32)>,
    /// The ranges of each function in the list that was sorted last, kept for the allocation.
    runs: Vec<(u32, u32)>,
    /// The source of each frame that nodes have shown.
    sources: FxHashMap<FrameId, Arc<str>>,
}

/// What comes next in drawing order.
enum Next {
    Group(usize),
    WithoutStack(u64),
    /// The members that are one node.
    Function(u32, u32),
}

/// The nodes of a tree in drawing order: of the sums of each group, in order, with the names of the groups around it.
pub(super) fn nodes<'p>(
    selection: &Selection<'_>,
    sums: Vec<Sum>,
    path_of: impl Fn(u32) -> &'p [Arc<str>],
) -> Vec<CallNode> {
    let capture = selection.capture();
    let (mut groups, mut places) = (vec![Group::named("all".into())], Vec::with_capacity(sums.len()));
    let chunks = || sums.chunk_by(|a, b| a.group == b.group);
    let count = chunks().count() as u32;
    let mut at = vec![NONE; capture.stacks.len()];
    for (number, of_group) in (0..count).zip(chunks()) {
        let group = group_at(&mut groups, path_of(of_group[0].group));
        let (without, with) = of_group.split_at(of_group.partition_point(|sum| sum.stack.is_none()));
        let added = add_places(capture, with, number, count, &mut at, &mut places);
        let group = &mut groups[group];
        group.lists.push(number);
        let without_stack = without.iter().fold(0, |all: u64, sum| all.saturating_add(sum.weight));
        group.without_stack = group.without_stack.saturating_add(without_stack);
        group.total = group.total.saturating_add(added).saturating_add(without_stack);
    }
    drop((sums, at));
    // Groups come before the groups within them.
    for index in (0..groups.len()).rev() {
        let within: Vec<u64> = groups[index].within.iter().map(|&inner| groups[inner].total).collect();
        let group = &mut groups[index];
        group.total = within.into_iter().fold(group.total, u64::saturating_add);
    }
    let mut lists = Lists::of(selection, places, count);
    lists.draw(selection, &groups)
}

const NONE: u32 = u32::MAX;
const USED: u32 = u32::MAX - 1;

/// The group at a path, added if it is new.
fn group_at(groups: &mut Vec<Group>, path: &[Arc<str>]) -> usize {
    path.iter().fold(0, |here, name| {
        let known = groups[here].within.iter().copied().find(|&inner| groups[inner].name == *name);
        known.unwrap_or_else(|| {
            groups.push(Group::named(name.clone()));
            let new = groups.len() - 1;
            groups[here].within.push(new);
            new
        })
    })
}

/// Adds a place for each node of the capture's tree that has weight here. `at` is [`NONE`] for each stack, before and after. Gives
/// the weight.
fn add_places(
    capture: &Capture,
    sums: &[Sum],
    group: u32,
    groups: u32,
    at: &mut [u32],
    places: &mut Vec<Place>,
) -> u64 {
    let begin = places.len();
    let mut used: Vec<u32> = Vec::new();
    let mut count = 0;
    // A list of most stacks takes longer to sort than to find again.
    let most = capture.stacks.len() / 8;
    for stack in sums.iter().filter_map(|sum| sum.stack) {
        let mut next = Some(stack);
        // Up to the first ancestor that is known already.
        while let Some(stack) = next.filter(|stack| at[stack.index()] == NONE) {
            at[stack.index()] = USED;
            count += 1;
            if count <= most {
                used.push(stack.0);
            }
            next = capture.stacks[stack.index()].parent;
        }
    }
    if count > most {
        used.clear();
        used.extend((0_u32..).zip(at.iter()).filter(|(_, at)| **at == USED).map(|(stack, _)| stack));
    } else {
        used.sort_unstable();
    }
    let mut own = sums.iter().filter_map(|sum| Some((sum.stack?, sum.weight))).peekable();
    places.reserve(used.len());
    for &stack in &used {
        let node = capture.stacks[stack as usize];
        let parent = node.parent.map_or(group, |parent| at[parent.index()]);
        let own = own.next_if(|(weighted, _)| *weighted == StackId(stack)).map_or(0, |(_, weight)| weight);
        at[stack as usize] = groups + places.len() as u32;
        places.push(Place { frame: node.frame, parent, own, total: own });
    }
    let mut all = 0_u64;
    for index in (begin..places.len()).rev() {
        let Place { parent, total, .. } = places[index];
        match parent.checked_sub(groups) {
            Some(above) => {
                let above = &mut places[above as usize].total;
                *above = above.saturating_add(total);
            }
            None => all = all.saturating_add(total),
        }
    }
    used.iter().for_each(|&stack| at[stack as usize] = NONE);
    all
}

impl Lists {
    fn of(selection: &Selection<'_>, places: Vec<Place>, groups: u32) -> Self {
        let mut first = vec![0_u32; groups as usize + places.len() + 1];
        places.iter().for_each(|place| first[place.parent as usize] += 1);
        // The end of each list, which moves to its start as the list is filled from behind.
        let mut end = 0;
        for first in &mut first {
            end += *first;
            *first = end;
        }
        let mut members = vec![0_u32; places.len()];
        for (place, owner) in places.iter().zip(groups..groups + places.len() as u32).rev() {
            let next = &mut first[place.parent as usize];
            *next -= 1;
            members[*next as usize] = owner;
        }
        let functions = selection.functions();
        let mut by_name: Vec<_> = functions.all().collect();
        by_name.sort_by_key(|(_, function)| (&function.name, &function.module));
        let mut rank_of = vec![0; by_name.len()];
        by_name.iter().zip(0..).for_each(|((function, _), rank)| rank_of[function.index()] = rank);
        let frames = 0..selection.capture().frames.len();
        let rank = frames.map(|frame| rank_of[functions.of_frame(FrameId::from_index(frame)).index()]).collect();
        Self {
            places,
            groups,
            first,
            members,
            rank,
            sorting: Vec::new(),
            runs: Vec::new(),
            sources: FxHashMap::default(),
        }
    }

    fn place(&self, owner: u32) -> &Place {
        &self.places[(owner - self.groups) as usize]
    }

    fn rank_of(&self, owner: u32) -> u32 {
        self.rank[self.place(owner).frame.index()]
    }

    /// The children of these owners by name: each function's are a range of members.
    fn functions(&mut self, owners: (u32, u32)) -> impl DoubleEndedIterator<Item = (u32, u32)> {
        let list = |lists: &Self, owner: u32| (lists.first[owner as usize], lists.first[owner as usize + 1]);
        let (from, to) = match owners {
            (from, to) if to - from == 1 => list(self, self.members[from as usize]),
            (from, to) => {
                let start = self.members.len();
                for owner in from..to {
                    let (from, to) = list(self, self.members[owner as usize]);
                    self.members.extend_from_within(from as usize..to as usize);
                }
                (start as u32, self.members.len() as u32)
            }
        };
        let range = from as usize..to as usize;
        let mut sorting = std::mem::take(&mut self.sorting);
        sorting.clear();
        sorting.extend(self.members[range.clone()].iter().map(|&owner| (self.rank_of(owner), owner)));
        if !sorting.is_sorted() {
            sorting.sort_unstable();
            self.members[range.clone()].iter_mut().zip(&sorting).for_each(|(member, (_, owner))| *member = *owner);
        }
        let mut end = from;
        self.sorting = sorting;
        self.runs.clear();
        self.runs.extend(self.sorting.chunk_by(|a, b| a.0 == b.0).map(|of_function| {
            let begin = end;
            end += of_function.len() as u32;
            (begin, end)
        }));
        self.runs.iter().copied()
    }

    fn draw(&mut self, selection: &Selection<'_>, groups: &[Group]) -> Vec<CallNode> {
        let nothing: Arc<str> = "".into();
        let group_node = |group: &Group, parent| CallNode {
            parent,
            name: group.name.clone(),
            module: nothing.clone(),
            source: nothing.clone(),
            kind: FrameKind::Group,
            owned: false,
            inlined: false,
            total: group.total,
            own: 0,
        };
        let mut nodes = Vec::with_capacity(self.places.len() + groups.len() + 1);
        let mut waiting = vec![(Next::Group(0), None)];
        while let Some((next, parent)) = waiting.pop() {
            let number = Some(nodes.len() as u32);
            match next {
                Next::Group(index) => {
                    nodes.push(group_node(&groups[index], parent));
                    let within = self.within(selection, groups, index);
                    waiting.extend(within.into_iter().rev().map(|next| (next, number)));
                }
                Next::WithoutStack(weight) => {
                    let (name, kind) = (NO_STACK.into(), FrameKind::Unknown);
                    let node = group_node(&groups[0], parent);
                    nodes.push(CallNode { name, kind, total: weight, own: weight, ..node });
                }
                Next::Function(from, to) => {
                    nodes.push(self.function_node(selection, (from, to), parent, &nothing));
                    // The first is taken from the end.
                    let functions = self.functions((from, to)).rev();
                    waiting.extend(functions.map(|(from, to)| (Next::Function(from, to), number)));
                }
            }
        }
        nodes
    }

    /// The groups, functions and weight without a stack within a group, by name.
    fn within(&mut self, selection: &Selection<'_>, groups: &[Group], index: usize) -> Vec<Next> {
        let group = &groups[index];
        let mut within: Vec<(Identity, Next)> = Vec::new();
        let named = |name: Arc<str>| Identity { name, module: "".into() };
        within.extend(group.within.iter().map(|&inner| (named(groups[inner].name.clone()), Next::Group(inner))));
        if group.without_stack > 0 {
            within.push((named(NO_STACK.into()), Next::WithoutStack(group.without_stack)));
        }
        let own = self.members.len();
        self.members.extend(&group.lists);
        let found: Vec<(u32, u32)> = self.functions((own as u32, self.members.len() as u32)).collect();
        for (from, to) in found {
            let function = selection.functions().of_frame(self.place(self.members[from as usize]).frame);
            let function = selection.functions().get(function);
            within.push((function.identity(), Next::Function(from, to)));
        }
        within.sort_by(|a, b| a.0.cmp(&b.0));
        within.into_iter().map(|(_, next)| next).collect()
    }

    fn function_node(
        &mut self,
        selection: &Selection<'_>,
        (from, to): (u32, u32),
        parent: Option<u32>,
        nothing: &Arc<str>,
    ) -> CallNode {
        let (functions, capture) = (selection.functions(), selection.capture());
        let members = &self.members[from as usize..to as usize];
        let function = functions.get(functions.of_frame(self.place(members[0]).frame));
        let (mut own, mut total, mut inlined) = (0_u64, 0_u64, true);
        let mut heaviest = None;
        for &member in members {
            let place = self.place(member);
            let frame = &capture.frames[place.frame.index()];
            (own, total) = (own.saturating_add(place.own), total.saturating_add(place.total));
            inlined &= frame.inlined;
            if let Some(file) = frame.file.as_deref() {
                // The heaviest place.
                let rank = (place.total, Reverse((file, frame.line)));
                if heaviest.as_ref().is_none_or(|(best, _)| *best < rank) {
                    heaviest = Some((rank, place.frame));
                }
            }
        }
        let source = |(_, frame)| self.sources.entry(frame).or_insert_with(|| source_of(capture, frame).into()).clone();
        CallNode {
            parent,
            name: function.name.clone(),
            module: function.module.clone(),
            source: heaviest.map_or_else(|| nothing.clone(), source),
            kind: function.kind,
            owned: function.owned,
            inlined,
            total,
            own,
        }
    }
}
