//! Building a call tree from weighted stacks.

use std::cmp::Reverse;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxBuildHasher, FxHashMap};
use stepscope_model::{CallNode, CallTree, FrameId, FrameKind, StackId, Thread, ThreadId};

use super::callers_first::{self, Sum};
use super::{Grouping, Options, Order, WeightedStack};
use crate::query::functions::{FunctionId, NO_STACK, source_of};
use crate::query::scope_paths::ScopePaths;
use crate::query::select::Selection;

/// A tree of these stacks.
pub(super) fn build(
    selection: &Selection<'_>,
    options: &Options,
    title: &str,
    unit: &str,
    weights: impl Iterator<Item = WeightedStack>,
) -> CallTree {
    let groups = Groups::of(selection, options.grouping);
    let mut sums = Sums::default();
    for WeightedStack { thread, time_ns, stack, weight } in weights.filter(|one| one.weight > 0) {
        sums.add(Sum { group: groups.number(thread, time_ns), stack, weight });
    }
    sums.merge();
    let title = title_of(title, options);
    if options.order == Order::CallersFirst {
        let nodes = callers_first::nodes(selection, sums.sums, |group| groups.path(group));
        let (subtitle, unit) = (subtitle(selection), unit.to_owned());
        return CallTree { title, subtitle, unit, nodes, inverted: false };
    }
    let mut growing = Growing::new(selection);
    for of_group in sums.sums.chunk_by(|a, b| a.group == b.group) {
        growing.add_group(groups.path(of_group[0].group), of_group);
    }
    drop(sums);
    growing.finish(selection, &title, unit)
}

/// Weights that are added up by sorting: captures with millions of stacks are nearly in order, and a hash table of them
/// is slower and larger.
#[derive(Default)]
struct Sums {
    sums: Vec<Sum>,
    /// Number of sums at which equal ones are merged.
    limit: usize,
}

impl Sums {
    const LEAST_LIMIT: usize = 1 << 16;

    fn add(&mut self, sum: Sum) {
        if self.sums.len() >= self.limit {
            self.merge();
            self.limit = (2 * self.sums.len()).max(Self::LEAST_LIMIT);
        }
        self.sums.push(sum);
    }

    fn merge(&mut self) {
        self.sums.sort_unstable_by_key(|sum| (sum.group, sum.stack));
        self.sums.dedup_by(|next, kept| {
            let is_equal = (next.group, next.stack) == (kept.group, kept.stack);
            if is_equal {
                kept.weight = kept.weight.saturating_add(next.weight);
            }
            is_equal
        });
    }
}

/// The group of a stack, and the names of the groups around it.
enum Groups {
    /// One group per thread, or none.
    OfThreads { of_thread: Vec<u32>, paths: Vec<Vec<Arc<str>>> },
    /// The scopes that the thread is in.
    OfScopes(ScopePaths),
}

impl Groups {
    fn of(selection: &Selection<'_>, grouping: Grouping) -> Self {
        let threads = &selection.capture().threads;
        let thread_path = |one: &Thread| -> Vec<Arc<str>> {
            let name: Arc<str> = format!("{} ({})", one.name, one.tid).into();
            match one.process.filter(|_| selection.capture().processes.len() > 1) {
                Some(process) => vec![selection.process_label(process).into(), name],
                None => vec![name],
            }
        };
        let path: &dyn Fn(&Thread) -> Vec<Arc<str>> = match grouping {
            Grouping::Scope => return Self::OfScopes(ScopePaths::of(selection.capture())),
            Grouping::None => return Self::OfThreads { of_thread: vec![0; threads.len()], paths: vec![Vec::new()] },
            Grouping::Thread => &thread_path,
            Grouping::ThreadName => &|one| vec![one.name.as_str().into()],
        };
        let mut numbers: FxHashMap<Vec<Arc<str>>, u32> = FxHashMap::default();
        let mut paths = Vec::new();
        let mut number = |path: Vec<Arc<str>>| {
            *numbers.entry(path).or_insert_with_key(|path| {
                paths.push(path.clone());
                paths.len() as u32 - 1
            })
        };
        let of_thread = threads.iter().map(|thread| number(path(thread))).collect();
        Self::OfThreads { of_thread, paths }
    }

    fn number(&self, thread: ThreadId, time_ns: Option<u64>) -> u32 {
        match self {
            Self::OfThreads { of_thread, .. } => of_thread[thread.index()],
            Self::OfScopes(scopes) => time_ns.map_or(0, |time_ns| scopes.at(thread, time_ns)),
        }
    }

    fn path(&self, number: u32) -> &[Arc<str>] {
        match self {
            Self::OfThreads { paths, .. } => &paths[number as usize],
            Self::OfScopes(scopes) => &scopes.names()[number as usize],
        }
    }
}

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// By index of [`Growing::groups`].
    Group(u32),
    Function(FunctionId),
    NoStack,
}

/// A node of a tree that is being built.
struct Node {
    parent: Option<u32>,
    key: Option<Key>,
    own: u64,
    total: u64,
    /// The heaviest place that was merged into it, with its weight.
    place: Option<(u64, FrameId)>,
    inlined: bool,
}

/// An inverted tree that is being built, in the order in which nodes are found.
struct Growing<'a> {
    selection: &'a Selection<'a>,
    groups: Vec<Arc<str>>,
    nodes: Vec<Node>,
    /// All nodes but the whole, by parent and key.
    children: HashTable<u32>,
}

impl<'a> Growing<'a> {
    fn new(selection: &'a Selection<'a>) -> Self {
        let whole = Node { parent: None, key: None, own: 0, total: 0, place: None, inlined: false };
        let (groups, children) = (Vec::new(), HashTable::new());
        Self { selection, groups, nodes: vec![whole], children }
    }

    fn child(&mut self, parent: u32, key: Key) -> u32 {
        let nodes = &mut self.nodes;
        let identity = |node: &Node| (node.parent, node.key);
        let hash = |identity: (Option<u32>, Option<Key>)| FxBuildHasher.hash_one(identity);
        let wanted = (Some(parent), Some(key));
        let is_wanted = |node: &u32| identity(&nodes[*node as usize]) == wanted;
        match self.children.entry(hash(wanted), is_wanted, |node| hash(identity(&nodes[*node as usize]))) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(place) => {
                let next = nodes.len() as u32;
                place.insert(next);
                nodes.push(Node { parent: Some(parent), key: Some(key), own: 0, total: 0, place: None, inlined: true });
                next
            }
        }
    }

    fn own(&mut self, node: u32, weight: u64) {
        let own = &mut self.nodes[node as usize].own;
        *own = own.saturating_add(weight);
    }

    /// Adds a place of this weight to the node.
    fn merge(&mut self, node: u32, frame: FrameId, weight: u64) {
        let node = &mut self.nodes[node as usize];
        let frames = &self.selection.capture().frames;
        node.inlined &= frames[frame.index()].inlined;
        let rank = |weight: u64, frame: FrameId| {
            let frame = &frames[frame.index()];
            (frame.file.is_some(), weight, Reverse((frame.file.as_deref(), frame.line)))
        };
        if node.place.is_none_or(|(best_weight, best)| rank(best_weight, best) < rank(weight, frame)) {
            node.place = Some((weight, frame));
        }
    }

    /// Adds stacks with their weights, each stack once, below the groups on the path.
    fn add_group(&mut self, path: &[Arc<str>], sums: &[Sum]) {
        let root = path.iter().fold(0, |parent, name| {
            let known = self.groups.iter().position(|group| group == name);
            let group = known.unwrap_or_else(|| {
                self.groups.push(name.clone());
                self.groups.len() - 1
            });
            self.child(parent, Key::Group(group as u32))
        });
        for sum in sums.iter().filter(|sum| sum.stack.is_none()) {
            let node = self.child(root, Key::NoStack);
            self.own(node, sum.weight);
        }
        let stacks = sums.iter().filter_map(|sum| Some((sum.stack?, sum.weight)));
        stacks.for_each(|(stack, weight)| self.add_leaf_first(root, stack, weight));
    }

    fn add_leaf_first(&mut self, root: u32, stack: StackId, weight: u64) {
        let selection = self.selection;
        let mut here = root;
        for frame in selection.capture().frames_of(Some(stack)) {
            here = self.child(here, Key::Function(selection.functions().of_frame(frame)));
            self.merge(here, frame, weight);
        }
        self.own(here, weight);
    }

    /// Adds up totals, and sorts children.
    fn finish(mut self, selection: &Selection<'_>, title: &str, unit: &str) -> CallTree {
        // Not needed any more, and large.
        self.children = HashTable::new();
        for index in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[index];
            node.total = node.total.saturating_add(node.own);
            let (parent, total) = (node.parent, node.total);
            if let Some(parent) = parent {
                let parent = &mut self.nodes[parent as usize];
                parent.total = parent.total.saturating_add(total);
            }
        }
        let nothing = &Arc::from("");
        let whole = &Arc::from("all");
        let drawn = |(index, parent): (u32, Option<u32>)| CallNode {
            parent,
            ..self.draw(&self.nodes[index as usize], whole, nothing)
        };
        CallTree {
            title: title.to_owned(),
            subtitle: subtitle(selection),
            unit: unit.to_owned(),
            nodes: self.in_drawing_order().into_iter().map(drawn).collect(),
            inverted: true,
        }
    }

    /// Nodes with their new parents: each is followed by its subtree. The heaviest child comes first, as there is one list
    /// of leaves to read.
    fn in_drawing_order(&self) -> Vec<(u32, Option<u32>)> {
        // The children of all nodes in one list: those of node `i` are from `starts[i]` to `starts[i + 1]`.
        let mut starts = vec![0_u32; self.nodes.len() + 1];
        let parents =
            || self.nodes.iter().zip(0_u32..).filter_map(|(node, index)| Some((node.parent? as usize, index)));
        parents().for_each(|(parent, _)| starts[parent + 1] += 1);
        (1..starts.len()).for_each(|index| starts[index] += starts[index - 1]);
        let mut filled = starts.clone();
        let mut children = vec![0_u32; self.nodes.len() - 1];
        for (parent, index) in parents() {
            children[filled[parent] as usize] = index;
            filled[parent] += 1;
        }
        let mut ordered: Vec<(u32, Option<u32>)> = Vec::with_capacity(self.nodes.len());
        let mut waiting: Vec<(u32, Option<u32>)> = vec![(0, None)];
        while let Some((index, parent)) = waiting.pop() {
            let number = ordered.len() as u32;
            ordered.push((index, parent));
            let siblings = &mut children[starts[index as usize] as usize..starts[index as usize + 1] as usize];
            // From the last to the first: they are taken from the end.
            let key = |child: u32| (Reverse(self.nodes[child as usize].total), self.name(child));
            siblings.sort_unstable_by(|a, b| key(*b).cmp(&key(*a)));
            waiting.extend(siblings.iter().map(|child| (*child, Some(number))));
        }
        ordered
    }

    /// Name and module of a node.
    fn name(&self, node: u32) -> (&str, &str) {
        match self.nodes[node as usize].key {
            None => ("all", ""),
            Some(Key::Group(group)) => (&self.groups[group as usize], ""),
            Some(Key::NoStack) => (NO_STACK, ""),
            Some(Key::Function(id)) => {
                let function = self.selection.functions().get(id);
                (&function.name, &function.module)
            }
        }
    }

    /// The node as it is drawn. Nodes share their texts: the name of the `whole`, and the empty text `nothing`.
    fn draw(&self, node: &Node, whole: &Arc<str>, nothing: &Arc<str>) -> CallNode {
        let (functions, capture) = (self.selection.functions(), self.selection.capture());
        let mut drawn = CallNode {
            parent: node.parent,
            name: whole.clone(),
            module: nothing.clone(),
            source: nothing.clone(),
            kind: FrameKind::Group,
            owned: false,
            inlined: false,
            total: node.total,
            own: node.own,
        };
        match &node.key {
            None => {}
            Some(Key::Group(group)) => drawn.name = self.groups[*group as usize].clone(),
            Some(Key::NoStack) => (drawn.name, drawn.kind) = (NO_STACK.into(), FrameKind::Unknown),
            Some(Key::Function(id)) => {
                let function = functions.get(*id);
                (drawn.name, drawn.module) = (function.name.clone(), function.module.clone());
                (drawn.kind, drawn.owned, drawn.inlined) = (function.kind, function.owned, node.inlined);
                let place = node.place.filter(|(_, frame)| capture.frames[frame.index()].file.is_some());
                drawn.source = place.map_or(drawn.source, |(_, frame)| source_of(capture, frame).into());
            }
        }
        drawn
    }
}

/// What the tree shows, and how it is grouped and ordered.
fn title_of(weight: &str, options: &Options) -> String {
    let grouping = match options.grouping {
        Grouping::None => "",
        Grouping::Thread => " by thread",
        Grouping::ThreadName => " by thread name",
        Grouping::Scope => " by scope",
    };
    let order = match options.order {
        Order::CallersFirst => "",
        Order::LeavesFirst => ", inverted",
    };
    format!("{weight}{grouping}{order}")
}

fn subtitle(selection: &Selection<'_>) -> String {
    let label = selection.capture().info.label();
    let filters = Some(selection.description()).filter(|filters| !filters.is_empty());
    [label, filters].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
