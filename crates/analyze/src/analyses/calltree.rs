//! Call trees for flame graphs: what ran, blocked or faulted, by the path it was reached on.
//!
//! A node of the tree is a function called from the parent node's; places of one function (lines, addresses) are merged.
//! Recursion is not: each call is a node below its caller, as on the stack. Every node's total is its own weight and its
//! children's totals, and node 0 is the whole of the selection, so nothing is lost: samples
//! without a stack are a node `(no stack)`.
//!
//! Inverted trees start at the leaves, and callers grow from them: the total of a node right below the whole is the
//! self weight of its function. A sample ends, in this order, at the root of its stack.
//!
//! Children are in the order of names, so that equal trees are drawn equally and two recordings can be compared by
//! eye.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{CallNode, CallTree, FrameId, FrameKind, StackId, Thread, ThreadId, WaitState};

use crate::query::basis::Basis;
use crate::query::events::{self, Role};
use crate::query::functions::source_of;
use crate::query::functions::{FunctionId, NO_STACK};
use crate::query::scope_paths::ScopePaths;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::waits::blocked_ns;

/// How to build a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Which end of the stacks is at the root.
    pub order: Order,
    /// What the first level below the whole is.
    pub grouping: Grouping,
}

/// What a tree weighs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Time on a CPU.
    #[default]
    OnCpu,
    /// Blocked time.
    Blocked,
}

/// Which end of the stacks is at the root of the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Callers at the root.
    #[default]
    CallersFirst,
    /// Leaves at the root.
    LeavesFirst,
}

/// What the first level below the whole is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grouping {
    /// The stacks' own roots.
    #[default]
    None,
    /// One group per thread.
    Thread,
    /// One group per thread name.
    ThreadName,
    /// A group a scope, within the group of the scope around it: the program's own names above its functions. What is in
    /// no scope stands beside them.
    Scope,
}

/// The tree of the selected samples' weights.
pub fn of_samples(selection: &Selection<'_>, options: &Options) -> CallTree {
    let (title, unit) = match selection.event() {
        Some(event) if event.unit == "ns" && events::role(event) == Role::Cpu => ("On-CPU time", "ns"),
        Some(event) => (event.name.as_str(), event.unit.as_str()),
        None => ("No samples", ""),
    };
    let stacks = selection.samples().map(|sample| (sample.thread, sample.time_ns, sample.stack, sample.weight));
    build(selection, options, title, unit, stacks)
}

/// The tree of the selected waits' blocked time in ns, by the stack blocked at.
pub fn off_cpu(selection: &Selection<'_>, options: &Options) -> CallTree {
    let blocked = selection.waits().filter(|wait| wait.state == WaitState::Blocked);
    let stacks = blocked.map(|wait| (wait.thread, Some(wait.start_ns), wait.stack, blocked_ns(&wait)));
    build(selection, options, "Blocked time", "ns", stacks)
}

/// The tree of the selected page faults, minor and major ones together.
pub fn faults(selection: &Selection<'_>, options: &Options) -> CallTree {
    let capture = selection.capture();
    let told_apart = [Role::MinorFaults, Role::MajorFaults];
    let mut found: Vec<_> = told_apart.iter().flat_map(|role| events::of_role(capture, *role)).collect();
    if found.is_empty() {
        found.extend(events::of_role(capture, Role::Faults));
    }
    let selections: Vec<Selection<'_>> = found.into_iter().map(|event| selection.of_event(event)).collect();
    let stacks = selections.iter().flat_map(Selection::samples);
    let stacks = stacks.map(|sample| (sample.thread, sample.time_ns, sample.stack, sample.weight));
    build(selection, options, "Page faults", "faults", stacks)
}

/// The tree of what costs of this [basis](crate::query::basis) are made of, not yet divided: for [`Basis::PerStep`] of the main
/// loop's steps alone.
pub(crate) fn of_basis(selection: &Selection<'_>, options: &Options, basis: Basis, evidence: Evidence) -> CallTree {
    let loops = if basis == Basis::PerStep { Loops::of(selection) } else { None };
    match (evidence, loops) {
        (Evidence::OnCpu, None) => of_samples(selection, options),
        (Evidence::Blocked, None) => off_cpu(selection, options),
        (Evidence::OnCpu, Some(loops)) => {
            let inside = selection.samples().filter(|sample| loops.main_step_of(sample).is_some());
            let stacks = inside.map(|sample| (sample.thread, sample.time_ns, sample.stack, sample.weight));
            let unit = selection.event().map_or("", |event| event.unit.as_str());
            build(selection, options, "On-CPU time", unit, stacks)
        }
        (Evidence::Blocked, Some(loops)) => {
            build(selection, options, "Blocked time", "ns", blocked_in_steps(selection, &loops))
        }
    }
}

/// The tree of what one step costs on a CPU: [`of_samples`] over the steps alone, divided by their number. `None` where no
/// steps are known.
pub fn of_samples_per_step(selection: &Selection<'_>, options: &Options) -> Option<CallTree> {
    let loops = Loops::of(selection)?;
    let unit = selection.event().map_or("", |event| event.unit.as_str());
    let title = if unit == "ns" { "On-CPU time per step" } else { "Weight per step" };
    let inside = selection.samples().filter(|sample| loops.main_step_of(sample).is_some());
    let stacks = inside.map(|sample| (sample.thread, sample.time_ns, sample.stack, sample.weight));
    Some(per_step(selection, options, (title, unit), loops.main().count() as u64, stacks))
}

/// The tree of one step's blocked time: [`off_cpu`] over the steps alone, divided by their number. `None` where no
/// steps are known.
pub fn off_cpu_per_step(selection: &Selection<'_>, options: &Options) -> Option<CallTree> {
    let loops = Loops::of(selection)?;
    let blocked = blocked_in_steps(selection, &loops);
    Some(per_step(selection, options, ("Blocked time per step", "ns"), loops.main().count() as u64, blocked))
}

/// The blocked time of the main loop's threads that lies in its steps.
fn blocked_in_steps<'s>(selection: &'s Selection<'_>, loops: &'s Loops) -> impl Iterator<Item = Weight> + 's {
    selection.waits().filter(|wait| loops.in_main(wait.thread)).map(|wait| {
        let inside = loops.main().time_within(&(wait.start_ns..wait.start_ns + blocked_ns(&wait)));
        (wait.thread, Some(wait.start_ns), wait.stack, inside)
    })
}

/// A tree of weights divided by a number of steps. Totals still hold their children: what ends at each node is divided
/// and rounded, and then added up. Units that are not fine enough for that are of a thousand steps.
pub(crate) fn per_step(
    selection: &Selection<'_>,
    options: &Options,
    (title, unit): (&str, &str),
    steps: u64,
    weights: impl Iterator<Item = Weight>,
) -> CallTree {
    let (times, unit) = match unit {
        "ns" | "bytes" | "cycles" => (1, unit.to_owned()),
        unit => (1_000, format!("{unit} in 1000 steps")),
    };
    let mut tree = build(selection, options, title, &unit, weights);
    let steps = u128::from(steps.max(1));
    for node in &mut tree.nodes {
        let divided = (u128::from(node.own) * times + steps / 2) / steps;
        node.own = u64::try_from(divided).unwrap_or(u64::MAX);
        node.total = node.own;
    }
    for index in (1..tree.nodes.len()).rev() {
        let (parent, total) = (tree.nodes[index].parent, tree.nodes[index].total);
        if let Some(parent) = parent {
            let parent = &mut tree.nodes[parent as usize];
            parent.total = parent.total.saturating_add(total);
        }
    }
    tree
}

/// A stack with its thread and, where it is known, its time, and what it weighs.
pub(crate) type Weight = (ThreadId, Option<u64>, Option<StackId>, u64);

fn build(
    selection: &Selection<'_>,
    options: &Options,
    title: &str,
    unit: &str,
    weights: impl Iterator<Item = Weight>,
) -> CallTree {
    let mut growing = Growing::new(selection, options.order);
    let groups = Groups::of(selection, options.grouping);
    let mut sums: FxHashMap<(u32, Option<StackId>), u64> = FxHashMap::default();
    for (thread, time_ns, stack, weight) in weights.filter(|(.., weight)| *weight > 0) {
        let sum = sums.entry((groups.number(thread, time_ns), stack)).or_default();
        *sum = sum.saturating_add(weight);
    }
    let mut sums: Vec<((u32, Option<StackId>), u64)> = sums.into_iter().collect();
    sums.sort_unstable();
    for of_group in sums.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
        let stacks: Vec<(Option<StackId>, u64)> =
            of_group.iter().map(|((_, stack), weight)| (*stack, *weight)).collect();
        growing.add_group(groups.path(of_group[0].0.0), &stacks);
    }
    growing.finish(selection, title, unit)
}

/// Which subtree of its own a stack is put into, by the names on the way to it.
enum Groups {
    /// By thread, each on a path of its own or on none.
    OfThreads { of_thread: Vec<u32>, paths: Vec<Vec<Arc<str>>> },
    /// By the scopes that the thread is in.
    OfScopes(ScopePaths),
}

impl Groups {
    fn of(selection: &Selection<'_>, grouping: Grouping) -> Self {
        let threads = &selection.capture().threads;
        let name: fn(&Thread) -> Arc<str> = match grouping {
            Grouping::Scope => return Self::OfScopes(ScopePaths::of(selection.capture())),
            Grouping::None => return Self::OfThreads { of_thread: vec![0; threads.len()], paths: vec![Vec::new()] },
            Grouping::Thread => |one| format!("{} ({})", one.name, one.tid).into(),
            Grouping::ThreadName => |one| one.name.as_str().into(),
        };
        let mut numbers: FxHashMap<Arc<str>, u32> = FxHashMap::default();
        let mut paths = Vec::new();
        let mut number = |name: Arc<str>| {
            *numbers.entry(name).or_insert_with_key(|name| {
                paths.push(vec![name.clone()]);
                paths.len() as u32 - 1
            })
        };
        let of_thread = threads.iter().map(|thread| number(name(thread))).collect();
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

/// What a node is of.
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

/// A tree that is being built, in the order in which its nodes are met.
struct Growing<'a> {
    selection: &'a Selection<'a>,
    order: Order,
    groups: Vec<Arc<str>>,
    nodes: Vec<Node>,
    children: FxHashMap<(u32, Key), u32>,
    /// State of each stack of the capture while a group is added, by stack id.
    on_stack: Vec<Option<OnStack>>,
}

/// A node of the capture's tree while a group is added.
#[derive(Debug, Clone, Copy)]
struct OnStack {
    own: u64,
    total: u64,
    /// The node that it became.
    node: u32,
}

impl<'a> Growing<'a> {
    fn new(selection: &'a Selection<'a>, order: Order) -> Self {
        let whole = Node { parent: None, key: None, own: 0, total: 0, place: None, inlined: false };
        let (groups, children) = (Vec::new(), FxHashMap::default());
        Self { selection, order, groups, nodes: vec![whole], children, on_stack: Vec::new() }
    }

    fn child(&mut self, parent: u32, key: Key) -> u32 {
        let next = self.nodes.len() as u32;
        let nodes = &mut self.nodes;
        *self.children.entry((parent, key)).or_insert_with(|| {
            nodes.push(Node { parent: Some(parent), key: Some(key), own: 0, total: 0, place: None, inlined: true });
            next
        })
    }

    fn own(&mut self, node: u32, weight: u64) {
        let own = &mut self.nodes[node as usize].own;
        *own = own.saturating_add(weight);
    }

    /// Notes that a place with this much weight on it is part of the node.
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
    fn add_group(&mut self, path: &[Arc<str>], stacks: &[(Option<StackId>, u64)]) {
        let root = path.iter().fold(0, |parent, name| {
            let known = self.groups.iter().position(|group| group == name);
            let group = known.unwrap_or_else(|| {
                self.groups.push(name.clone());
                self.groups.len() - 1
            });
            self.child(parent, Key::Group(group as u32))
        });
        for (_, weight) in stacks.iter().filter(|(stack, _)| stack.is_none()) {
            let node = self.child(root, Key::NoStack);
            self.own(node, *weight);
        }
        let stacks = stacks.iter().filter_map(|(stack, weight)| Some(((*stack)?, *weight)));
        match self.order {
            Order::CallersFirst => self.add_callers_first(root, stacks),
            Order::LeavesFirst => stacks.for_each(|(stack, weight)| self.add_leaf_first(root, stack, weight)),
        }
    }

    /// Every node of the capture's tree that has weight on it becomes, or joins, one node here.
    fn add_callers_first(&mut self, root: u32, own: impl Iterator<Item = (StackId, u64)>) {
        let capture = self.selection.capture();
        self.on_stack.resize(capture.stacks.len(), None);
        let mut on_stack = std::mem::take(&mut self.on_stack);
        let mut nodes: Vec<StackId> = Vec::new();
        for (stack, weight) in own {
            let mut next = Some(stack);
            // Up to the first ancestor that is known already.
            while let Some(stack) = next.filter(|stack| on_stack[stack.index()].is_none()) {
                on_stack[stack.index()] = Some(OnStack { own: 0, total: 0, node: root });
                nodes.push(stack);
                next = capture.stacks[stack.index()].parent;
            }
            let here = on_stack[stack.index()].as_mut().expect("entered above");
            (here.own, here.total) = (weight, weight);
        }
        nodes.sort_unstable();
        for &node in nodes.iter().rev() {
            if let Some(parent) = capture.stacks[node.index()].parent {
                let below = on_stack[node.index()].map_or(0, |here| here.total);
                let above = on_stack[parent.index()].as_mut().expect("ancestors were added above");
                above.total = above.total.saturating_add(below);
            }
        }
        // An upper bound: places of one function become one node.
        self.nodes.reserve(nodes.len());
        self.children.reserve(nodes.len());
        for &stack in &nodes {
            let node = capture.stacks[stack.index()];
            let parent = node.parent.and_then(|parent| on_stack[parent.index()]).map_or(root, |parent| parent.node);
            let function = self.selection.functions().of_frame(node.frame);
            let child = self.child(parent, Key::Function(function));
            let here = on_stack[stack.index()].as_mut().expect("entered above");
            here.node = child;
            let OnStack { own, total, .. } = *here;
            self.merge(child, node.frame, total);
            self.own(child, own);
        }
        // Reset only the entries in use: the next group may be small.
        nodes.iter().for_each(|stack| on_stack[stack.index()] = None);
        self.on_stack = on_stack;
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

    /// Adds up totals, and puts every node's children in the order of their names.
    fn finish(mut self, selection: &Selection<'_>, title: &str, unit: &str) -> CallTree {
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
            title: match self.order {
                Order::CallersFirst => title.to_owned(),
                Order::LeavesFirst => format!("{title}, inverted"),
            },
            subtitle: subtitle(selection),
            unit: unit.to_owned(),
            nodes: self.in_order_of_names().into_iter().map(drawn).collect(),
            inverted: self.order == Order::LeavesFirst,
        }
    }

    /// Nodes with their new parents, so that each is followed by its subtree, children by name and module.
    fn in_order_of_names(&self) -> Vec<(u32, Option<u32>)> {
        // The children of all nodes, those of one node together, from where it says up to where the next one does.
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
            siblings.sort_unstable_by(|a, b| self.name(*b).cmp(&self.name(*a)));
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

    /// The node as it is drawn. Nodes share their texts, also the name of the `whole` and the text that says `nothing`.
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

fn subtitle(selection: &Selection<'_>) -> String {
    let label = selection.capture().info.label();
    let filters = Some(selection.description()).filter(|filters| !filters.is_empty());
    [label, filters].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event, Scope};

    use super::*;
    use crate::drawn::{self, Drawing};

    /// A tree as text: two spaces a level, `name total/own` a line.
    fn outline(tree: &CallTree) -> Vec<String> {
        let mut depths: Vec<usize> = Vec::new();
        for node in &tree.nodes {
            depths.push(node.parent.map_or(0, |parent| depths[parent as usize] + 1));
        }
        let line = |(node, depth): (&CallNode, &usize)| {
            format!("{}{} {}/{}", "  ".repeat(*depth), node.name, node.total, node.own)
        };
        tree.nodes.iter().zip(&depths).map(line).collect()
    }

    fn tree(capture: &Capture, order: Order, grouping: Grouping) -> CallTree {
        drawn::selected(capture, &["gz::"], |selection| of_samples(selection, &Options { order, grouping }))
    }

    const STACKS: &str = "
        main;run;b;run 4
        main;run;a 2
        main;run 1
        worker;poll 8
        worker 16
        ";

    #[test]
    fn children_are_by_name_and_totals_hold_their_children() {
        let tree = tree(&drawn::folded(STACKS), Order::CallersFirst, Grouping::None);
        assert_eq!(
            outline(&tree),
            ["all 31/0", "  (no stack) 16/16", "  poll 8/8", "  run 7/1", "    a 2/2", "    b 4/0", "      run 4/4",]
        );
        assert_eq!((tree.title.as_str(), tree.unit.as_str(), tree.inverted), ("On-CPU time", "ns", false));
    }

    #[test]
    fn an_inverted_tree_grows_from_the_leaves() {
        let tree = tree(&drawn::folded(STACKS), Order::LeavesFirst, Grouping::None);
        assert_eq!(
            outline(&tree),
            [
                "all 31/0",
                "  (no stack) 16/16",
                "  a 2/0",
                "    run 2/2",
                "  poll 8/8",
                "  run 5/1",
                "    b 4/0",
                "      run 4/4",
            ]
        );
        assert!(tree.inverted);
        assert_eq!(tree.title, "On-CPU time, inverted");
    }

    #[test]
    fn threads_are_groups() {
        let by_thread = tree(&drawn::folded(STACKS), Order::CallersFirst, Grouping::Thread);
        assert_eq!(outline(&by_thread)[..3], ["all 31/0", "  main (100) 7/0", "    run 7/1"]);
        assert_eq!(by_thread.nodes[1].kind, FrameKind::Group);
        let by_name = tree(&drawn::folded(STACKS), Order::CallersFirst, Grouping::ThreadName);
        assert_eq!(outline(&by_name)[6..], ["  worker 24/0", "    (no stack) 16/16", "    poll 8/8"]);
    }

    #[test]
    fn places_of_a_function_are_one_node_with_the_heaviest_place() {
        let capture = drawn::columns(
            "
            main                main                main
            run [file:a.cc:1]   run [file:a.cc:2]   run [file:a.cc:2]
            x                   y                   gz::z [inl]
            3                   2                   2
            ",
        );
        let tree = tree(&capture, Order::CallersFirst, Grouping::None);
        assert_eq!(outline(&tree), ["all 7/0", "  run 7/0", "    gz::z 2/2", "    x 3/3", "    y 2/2"]);
        assert_eq!(&*tree.nodes[1].source, "a.cc:2");
        assert_eq!((tree.nodes[2].owned, tree.nodes[2].inlined), (true, true));
        assert_eq!((tree.nodes[3].owned, tree.nodes[3].inlined), (false, false));
    }

    #[test]
    fn blocked_time_is_a_tree_of_the_stacks_blocked_at() {
        let capture = Drawing::new()
            .blocked_then_runnable("main", 0..100, 30, "run;lock")
            .blocked("main", 200..250, "")
            .preempted("main", 300..900, "run")
            .capture;
        let tree = drawn::selected(&capture, &[], |selection| off_cpu(selection, &Options::default()));
        assert_eq!(outline(&tree), ["all 120/0", "  (no stack) 50/50", "  run 70/0", "    lock 70/70"]);
    }

    #[test]
    fn samples_stand_below_the_scopes_that_their_thread_is_in() {
        let mut capture = Drawing::new()
            .window(0..1_000)
            .folded(Event::sampled("cpu-clock", "ns"), "@150 main;run;a 40\n@450 main;run 10\n@950 main;idle 5")
            .capture;
        let thread = ThreadId(0);
        for (name, start_ns, end_ns, depth) in [("Update", 100, 500, 0), ("Physics", 120, 200, 1)] {
            let name = capture.intern_text(name);
            capture.scopes.push(Scope { thread, name, start_ns, end_ns, depth });
        }
        let tree = tree(&capture, Order::CallersFirst, Grouping::Scope);
        assert_eq!(
            outline(&tree),
            [
                "all 55/0",
                "  Update 50/0",
                "    Physics 40/0",
                "      run 40/0",
                "        a 40/40",
                "    run 10/10",
                "  idle 5/5",
            ]
        );
    }

    #[test]
    fn a_tree_per_step_holds_what_steps_do_divided_by_their_number() {
        let capture = Drawing::new()
            .window(0..1_000)
            .steps("main", 100, 100, 4, 1)
            .folded(Event::sampled("cpu-clock", "ns"), "@150 main;run;a 40\n@450 main;run 10\n@50 main;load 900")
            .blocked("main", 50..300, "run;lock")
            .capture;
        drawn::selected(&capture, &[], |selection| {
            let tree = of_samples_per_step(selection, &Options::default()).unwrap();
            // 2.5 is rounded up.
            assert_eq!(outline(&tree), ["all 13/0", "  run 13/3", "    a 10/10"]);
            let tree = off_cpu_per_step(selection, &Options::default()).unwrap();
            assert_eq!(outline(&tree), ["all 50/0", "  run 50/0", "    lock 50/50"]);
        });
        assert_eq!(
            drawn::selected(&drawn::folded(STACKS), &[], |all| of_samples_per_step(all, &Options::default())),
            None
        );
    }

    #[test]
    fn both_sorts_of_faults_are_one_tree() {
        let capture = Drawing::new()
            .folded(Event::sampled("minor-faults", "faults"), "main;a 1\nmain;b 1")
            .folded(Event::sampled("major-faults", "faults"), "main;a 1")
            .capture;
        let tree = drawn::selected(&capture, &[], |selection| faults(selection, &Options::default()));
        assert_eq!(outline(&tree), ["all 3/0", "  a 2/2", "  b 1/1"]);
        assert_eq!(tree.unit, "faults");
    }

    #[test]
    fn a_tree_of_nothing_is_its_whole() {
        let tree = tree(&Capture::default(), Order::CallersFirst, Grouping::None);
        assert_eq!(outline(&tree), ["all 0/0"]);
    }
}
