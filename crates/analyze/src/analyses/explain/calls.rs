//! [`Calls`]: the calls of a function in one selection, and the functions above and below them.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::StackId;

use super::{ROOT, SELF};
use crate::query::functions::{FunctionId, Functions};
use crate::query::qualified_name::own_name;
use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};

/// The calls of the wanted functions in one selection.
pub(super) struct Calls<'s, 'a> {
    pub(super) selection: &'s Selection<'a>,
    pub(super) weights: StackWeights,
    pub(super) functions: FxHashSet<FunctionId>,
    /// By node: the outermost call on the path to it, and the node below the innermost call (or the call itself).
    pub(super) calls: Vec<Option<Call>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) outermost: StackId,
    /// The node directly below the innermost call; absent at the call itself.
    pub(super) below: Option<StackId>,
}

impl<'s, 'a> Calls<'s, 'a> {
    pub(super) fn of(selection: &'s Selection<'a>, wanted: &BTreeSet<String>) -> Self {
        let (capture, all) = (selection.capture(), selection.functions());
        let functions: FxHashSet<FunctionId> =
            all.all().filter(|(_, function)| wanted.contains(&*function.name)).map(|(id, _)| id).collect();
        let mut calls: Vec<Option<Call>> = Vec::with_capacity(capture.stacks.len());
        for (index, node) in capture.stacks.iter().enumerate() {
            let here = StackId::from_index(index);
            let above = node.parent.and_then(|parent| calls[parent.index()]);
            calls.push(if functions.contains(&all.of_frame(node.frame)) {
                Some(Call { outermost: above.map_or(here, |call| call.outermost), below: None })
            } else {
                above.map(|call| Call { below: call.below.or(Some(here)), ..call })
            });
        }
        Self { selection, weights: StackWeights::of_samples(selection), functions, calls }
    }

    /// Full name of the function; of several instances or functions the common name and their number.
    pub(super) fn name(&self) -> String {
        let names: BTreeSet<&str> = self.functions.iter().map(|id| &*self.all().get(*id).name).collect();
        let own: BTreeSet<String> = names.iter().map(|name| own_name(name).into_owned()).collect();
        match (own.first(), own.len(), self.functions.len()) {
            (_, _, 1) => names.into_iter().collect(),
            (Some(only), 1, several) => format!("{only} ({several} instances)"),
            (_, several, _) => format!("({several} functions)"),
        }
    }

    /// File names of its modules.
    pub(super) fn modules(&self) -> String {
        let modules: BTreeSet<&str> = self.functions.iter().map(|id| &*self.all().get(*id).module).collect();
        modules.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Whether any of the functions is owned.
    pub(super) fn is_owned(&self) -> bool {
        self.functions.iter().any(|id| self.all().get(*id).owned)
    }

    pub(super) fn label(&self) -> String {
        self.selection.capture().info.name()
    }

    pub(super) fn unit(&self) -> &str {
        self.selection.event().map_or("", |event| &event.unit)
    }

    pub(super) fn all(&self) -> &'a Functions {
        self.selection.functions()
    }

    pub(super) fn name_at(&self, node: StackId) -> String {
        self.all().get(self.all().of_node(self.selection.capture(), node)).name.to_string()
    }

    /// The stacks that contain the function, with their own weight.
    pub(super) fn stacks(&self) -> impl Iterator<Item = (StackId, Call, Amount)> + '_ {
        self.weights.occupied().filter_map(|(stack, amount)| Some((stack, self.calls[stack.index()]?, amount)))
    }

    pub(super) fn sum(&self, counts: impl Fn(StackId, Call) -> bool) -> Amount {
        self.stacks().filter(|(stack, call, _)| counts(*stack, *call)).map(|(.., amount)| amount).sum()
    }

    pub(super) fn inclusive(&self) -> Amount {
        self.sum(|_, _| true)
    }

    pub(super) fn own(&self) -> Amount {
        self.sum(|_, call| call.below.is_none())
    }

    /// Whether a stack contains the function.
    pub(super) fn is_under(&self, stack: Option<StackId>) -> bool {
        stack.is_some_and(|stack| self.calls[stack.index()].is_some())
    }

    pub(super) fn is_attributed(&self, stack: StackId) -> bool {
        self.all().attributed(stack).is_some_and(|owner| self.functions.contains(&owner))
    }

    pub(super) fn by_key<K: std::hash::Hash + Eq>(
        &self,
        key: impl Fn(StackId, Call) -> Option<K>,
    ) -> FxHashMap<K, Amount> {
        let mut sums: FxHashMap<K, Amount> = FxHashMap::default();
        for (stack, call, amount) in self.stacks() {
            if let Some(key) = key(stack, call) {
                *sums.entry(key).or_default() += amount;
            }
        }
        sums
    }

    pub(super) fn callers(&self) -> Vec<(String, Amount)> {
        let capture = self.selection.capture();
        let above = |_, call: Call| Some(capture.stacks[call.outermost.index()].parent.map(|node| self.id_at(node)));
        self.named(self.by_key(above), ROOT)
    }

    pub(super) fn callees(&self) -> Vec<(String, Amount)> {
        self.named(self.by_key(|_, call| Some(call.below.map(|node| self.id_at(node)))), SELF)
    }

    pub(super) fn leaves(&self) -> Vec<(String, Amount)> {
        let leaf = |stack, _| self.is_attributed(stack).then(|| Some(self.id_at(stack)));
        self.named(self.by_key(leaf), SELF)
    }

    pub(super) fn id_at(&self, node: StackId) -> FunctionId {
        self.all().of_node(self.selection.capture(), node)
    }

    pub(super) fn named(&self, sums: FxHashMap<Option<FunctionId>, Amount>, none: &str) -> Vec<(String, Amount)> {
        let name = |id: Option<FunctionId>| id.map_or(none.to_owned(), |id| self.all().get(id).name.to_string());
        sums.into_iter().map(|(id, amount)| (name(id), amount)).collect()
    }

    /// Recursion on a path is shown once.
    pub(super) fn paths(&self) -> Vec<(String, Amount)> {
        let by_call = self.by_key(|_, call| Some(call.outermost));
        let mut sums: FxHashMap<String, Amount> = FxHashMap::default();
        for (call, amount) in by_call {
            let capture = self.selection.capture();
            let above = capture.nodes_of(capture.stacks[call.index()].parent);
            let owned = above.map(|node| self.id_at(node)).filter(|id| self.all().get(*id).owned);
            let mut path: Vec<String> = vec![own_name(&self.name_at(call)).into_owned()];
            path.extend(owned.map(|id| own_name(&self.all().get(id).name).into_owned()));
            path.dedup();
            path.reverse();
            *sums.entry(path.join(" > ")).or_default() += amount;
        }
        sums.into_iter().collect()
    }

    pub(super) fn threads(&self) -> Vec<(String, Amount)> {
        let Some(event) = self.selection.event() else { return Vec::new() };
        let mut sums: FxHashMap<_, Amount> = FxHashMap::default();
        for sample in self.selection.samples() {
            if sample.stack.is_some_and(|stack| self.calls[stack.index()].is_some()) {
                *sums.entry(sample.thread).or_default() += Amount::of(event, sample.weight);
            }
        }
        let threads = &self.selection.capture().threads;
        let name =
            |id: stepscope_model::ThreadId| format!("{} ({})", threads[id.index()].name, threads[id.index()].tid);
        sums.into_iter().map(|(id, amount)| (name(id), amount)).collect()
    }
}
