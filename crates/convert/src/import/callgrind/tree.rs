//! The call tree of a call graph.
//!
//! A call graph has the inclusive cost of each call, but not how it divides among the callers of the caller. The tree divides it
//! in proportion, as gprof does: if `f` has an inclusive cost of `F`, and the path that leads here brings it `s` of that, then
//! `f`'s own cost counts here with `s / F`, and so does each of its calls.
//!
//! - Own costs are divided into whole numbers whose sum is exact, for each function, line and event.
//! - Inclusive costs of functions are those of the file, if its calls add up.
//! - Functions that call each other in a circle are a *group*: a path enters a group once, and the group's other functions are
//!   callees of the first. The recursive calls in between are not counted: their cost is that of the first call.
//! - A function whose calls do not explain its whole cost, such as `main`, is also a root, with the rest.
//! - The heaviest paths come first. Paths below [`SMALLEST`] of all cost, and those beyond [`MOST_PATHS`], are merged: their own
//!   costs have only the function as stack.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use stepscope_model::{Capture, EventId, Frame, FrameId, Module, ModuleId, StackId, ThreadId};

use super::graph::Graph;
use super::shown_name;
use crate::import::cachegrind::add_samples;

/// Part of the whole cost below which a path is merged.
const SMALLEST: f64 = 1e-5;
/// Most paths of a tree.
const MOST_PATHS: usize = 50_000;
/// Most rows and calls that are visited on the way.
const MOST_WORK: usize = 1_000_000;
/// Part of a function's cost that may be left by rounding.
const ROUNDING: f64 = 1e-6;

/// What the tree does not have.
#[derive(Debug, Default)]
pub(super) struct Cut {
    /// Whether there are calls, whose paths are estimates.
    pub has_calls: bool,
    /// Whether paths were merged.
    pub paths: bool,
}

/// One amount per event.
type Amounts = Vec<f64>;

/// Functions that call each other, or a single one.
#[derive(Debug, Default)]
struct Group {
    members: Vec<usize>,
    inclusive: Amounts,
    /// Inclusive cost of calls from other groups.
    incoming: Amounts,
    /// The part of its cost that paths have brought so far.
    shared: Amounts,
}

/// A path that leads to a function.
struct Path {
    /// The largest part of the whole cost, of any event.
    weight: f64,
    function: usize,
    parent: Option<StackId>,
    /// Part of the group's cost, of each event.
    shares: Amounts,
}

impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Path {}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.weight.total_cmp(&other.weight).then_with(|| other.function.cmp(&self.function))
    }
}

/// Adds the call tree of a graph to a capture.
pub(super) fn add(graph: &Graph, events: &[EventId], thread: ThreadId, capture: &mut Capture, cut: &mut Cut) {
    let mut tree = Tree::new(graph, events, thread);
    tree.expand(capture);
    cut.has_calls |= graph.costs.iter().any(|costs| !costs.calls.is_empty());
    cut.paths |= tree.add_rest(capture);
}

struct Tree<'g> {
    graph: &'g Graph,
    events: &'g [EventId],
    thread: ThreadId,
    group_of: Vec<usize>,
    groups: Vec<Group>,
    totals: Amounts,
    frames: HashMap<(usize, Option<usize>), FrameId>,
    modules: HashMap<Arc<str>, ModuleId>,
    /// The caller of each function on its last path.
    last: Vec<Option<Option<StackId>>>,
}

impl<'g> Tree<'g> {
    fn new(graph: &'g Graph, events: &'g [EventId], thread: ThreadId) -> Self {
        let group_of = graph.groups();
        let none = || vec![0.0; events.len()];
        let count = group_of.iter().max().map_or(0, |last| last + 1);
        let new = |_| Group { members: Vec::new(), inclusive: none(), incoming: none(), shared: none() };
        let mut groups: Vec<Group> = (0..count).map(new).collect();
        let mut totals = none();
        for (function, costs) in graph.costs.iter().enumerate() {
            let group = group_of[function];
            groups[group].members.push(function);
            for (.., cost) in &costs.own {
                add_to(&mut groups[group].inclusive, cost);
                add_to(&mut totals, cost);
            }
            for (called, cost) in costs.calls.iter().filter(|(called, _)| group_of[*called] != group) {
                add_to(&mut groups[group].inclusive, cost);
                add_to(&mut groups[group_of[*called]].incoming, cost);
            }
        }
        let last = vec![None; group_of.len()];
        Self { graph, events, thread, group_of, groups, totals, frames: HashMap::new(), modules: HashMap::new(), last }
    }

    /// The roots: what no call explains.
    fn roots(&self) -> impl Iterator<Item = Path> + '_ {
        self.groups.iter().filter_map(|group| {
            let own = |member: &&usize| {
                let costs = &self.graph.costs[**member];
                let calls = costs.calls.iter().map(|(_, cost)| cost);
                let all = costs.own.iter().map(|(.., cost)| cost).chain(calls);
                all.filter_map(|cost| cost.first()).fold(0, |sum: u64, cost| sum.saturating_add(*cost))
            };
            let function = *group.members.iter().max_by_key(own)?;
            let rest = group.inclusive.iter().zip(&group.incoming).map(|(all, explained)| (all - explained).max(0.0));
            self.path(function, None, rest.collect())
        })
    }

    /// A path that brings these amounts to a function; `None` if they are too small.
    fn path(&self, function: usize, parent: Option<StackId>, amounts: Amounts) -> Option<Path> {
        let ratio = |(part, whole): (&f64, &f64)| if *whole > 0.0 { part / whole } else { 0.0 };
        let weight = amounts.iter().zip(&self.totals).map(ratio).fold(0.0, f64::max);
        let group = &self.groups[self.group_of[function]];
        let whole: Amounts = group.inclusive.iter().zip(&group.incoming).map(|(a, b)| a.max(*b)).collect();
        let shares = amounts.iter().zip(&whole).map(ratio).collect();
        (weight >= SMALLEST).then_some(Path { weight, function, parent, shares })
    }

    fn expand(&mut self, capture: &mut Capture) {
        let mut paths: BinaryHeap<Path> = self.roots().collect();
        let (mut taken, mut work) = (0, 0);
        while let Some(path) = paths.pop() {
            taken += 1;
            if taken > MOST_PATHS || work > MOST_WORK {
                return;
            }
            let entry = self.frame(path.function, None, capture);
            let node = capture.intern_stack_node(path.parent, entry);
            let group = self.group_of[path.function];
            let before = self.groups[group].shared.clone();
            let after: Amounts =
                before.iter().zip(&path.shares).map(|(before, share)| (before + share).min(1.0)).collect();
            for member in self.groups[group].members.clone() {
                let parent = if member == path.function { path.parent } else { Some(node) };
                work += self.graph.costs[member].own.len() + self.graph.costs[member].calls.len() + 1;
                self.add_own(member, parent, &before, &after, capture);
                let caller = if member == path.function || self.graph.costs[member].calls.is_empty() {
                    node
                } else {
                    let frame = self.frame(member, None, capture);
                    capture.intern_stack_node(Some(node), frame)
                };
                for (called, cost) in &self.graph.costs[member].calls {
                    if self.group_of[*called] != group && paths.len() < MOST_PATHS {
                        let amounts = path.shares.iter().zip(cost).map(|(share, cost)| share * *cost as f64);
                        let mut amounts: Amounts = amounts.collect();
                        amounts.resize(self.events.len(), 0.0);
                        paths.extend(self.path(*called, Some(caller), amounts));
                    }
                }
            }
            self.groups[group].shared = after;
        }
    }

    /// Adds a function's own rows: what belongs to the part of its cost from `before` to `after`.
    fn add_own(
        &mut self,
        function: usize,
        parent: Option<StackId>,
        before: &[f64],
        after: &[f64],
        capture: &mut Capture,
    ) {
        self.last[function] = Some(parent);
        for (row, (.., cost)) in self.graph.costs[function].own.iter().enumerate() {
            let part = |index: usize, cost: u64| portion(cost, after[index]) - portion(cost, before[index]);
            let weights: Vec<u64> = cost.iter().enumerate().map(|(index, cost)| part(index, *cost)).collect();
            if weights.iter().any(|weight| *weight > 0) {
                let frame = self.frame(function, Some(row), capture);
                let stack = capture.intern_stack_node(parent, frame);
                add_samples(capture, self.events, self.thread, Some(stack), &weights);
            }
        }
    }

    /// Adds what no path has brought. True if it is more than rounding.
    fn add_rest(&mut self, capture: &mut Capture) -> bool {
        let mut merged = false;
        let whole = vec![1.0; self.events.len()];
        for group in 0..self.groups.len() {
            let shared = self.groups[group].shared.clone();
            let rest = |index: usize| self.groups[group].inclusive[index] > 0.0 && shared[index] < 1.0 - ROUNDING;
            let is_merged = (0..self.events.len()).any(rest);
            merged |= is_merged;
            for member in self.groups[group].members.clone() {
                let parent = if is_merged { None } else { self.last[member].flatten() };
                self.add_own(member, parent, &shared, &whole, capture);
            }
        }
        merged
    }

    /// The frame of a function, or of one of its rows.
    fn frame(&mut self, function: usize, row: Option<usize>, capture: &mut Capture) -> FrameId {
        if let Some(&found) = self.frames.get(&(function, row)) {
            return found;
        }
        let known = &self.graph.functions[function];
        let module = known
            .object
            .as_ref()
            .map(|path| *self.modules.entry(path.clone()).or_insert_with(|| module(path, capture)));
        let (file, line) = match row {
            Some(row) => {
                let (file, line, _) = &self.graph.costs[function].own[row];
                (file.clone(), (*line > 0).then_some(*line))
            }
            None => (known.file.clone(), None),
        };
        let frame = Frame { module, file, line, ..Frame::named(shown_name(known)) };
        let id = capture.intern_frame(frame);
        self.frames.insert((function, row), id);
        id
    }
}

fn module(path: &Arc<str>, capture: &mut Capture) -> ModuleId {
    let found = capture.modules.iter().position(|module| *module.path == **path);
    match found {
        Some(index) => ModuleId::from_index(index),
        None => capture.add_module(Module { path: path.to_string(), ..Module::default() }),
    }
}

fn add_to(sums: &mut Amounts, costs: &[u64]) {
    sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += *cost as f64);
}

/// A part of a cost, in whole numbers. All of it for a part of 1.
fn portion(cost: u64, part: f64) -> u64 {
    if part >= 1.0 { cost } else { ((cost as f64 * part).round() as u64).min(cost) }
}
