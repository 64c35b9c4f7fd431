//! [`Owners`]: the call tree of owned functions over several scenarios.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{FrameKind, StackId};

use crate::query::family::Family;
use crate::query::functions::{FunctionId, Functions, Identity, NO_OWNER};
use crate::query::qualified_name::own_name;
use crate::query::select::Selection;
use crate::query::weights::StackWeights;

/// Weights of a node in one scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weights {
    /// Weight of samples.
    pub(super) cost: u128,
    /// Part of the critical path that would go with it, in ns.
    pub(super) gain_bound: u128,
    /// Blocked time in ns.
    pub(super) blocked: u128,
}

impl Weights {
    pub(super) fn add(&mut self, other: Self) {
        self.cost += other.cost;
        self.gain_bound += other.gain_bound;
        self.blocked += other.blocked;
    }

    pub(super) fn is_zero(self) -> bool {
        self == Self::default()
    }
}

/// What a node stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// Everything.
    All,
    /// Code that no owned function called.
    NoOwner,
    /// An owned function.
    Function(Identity),
    /// Owned functions that differ in template arguments or parameters only, or that a group of the user joins.
    Instances(Arc<str>),
    /// Code of a family that the function above it called.
    Family(Family),
    /// A function of the family above it.
    Member(Identity),
}

impl Place {
    /// What tables call it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Place::All | Place::NoOwner => "group",
            Place::Function(_) => "function",
            Place::Instances(_) => "instances",
            Place::Family(_) => "family",
            Place::Member(_) => "member",
        }
    }
}

/// A node of the tree.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: usize,
    pub(super) place: Place,
    /// By scenario.
    pub(super) own: Vec<Weights>,
    /// By scenario, with everything below.
    pub(super) total: Vec<Weights>,
    pub(super) children: Vec<usize>,
}

/// The call tree of owned functions. Node 0 is the root; parents come before their children.
#[derive(Debug)]
pub(super) struct Owners {
    pub(super) nodes: Vec<Node>,
    scenarios: usize,
    index: FxHashMap<(usize, Place), usize>,
    groups: FxHashMap<Identity, Arc<str>>,
}

/// Where the stacks of one capture are in the tree.
pub(super) struct Places {
    pub(super) of_stack: Vec<usize>,
    pub(super) no_stack: usize,
}

impl Owners {
    /// A tree of nothing.
    pub(super) fn new(scenarios: usize) -> Self {
        let root = Node { parent: 0, place: Place::All, own: vec![], total: vec![], children: vec![] };
        let mut owners =
            Self { nodes: vec![root], scenarios, index: FxHashMap::default(), groups: FxHashMap::default() };
        owners.nodes[0].own = vec![Weights::default(); scenarios];
        owners
    }

    /// The place of every stack of a capture.
    ///
    /// A function that is called again below itself is the same node, so that recursion counts once. What is not owned
    /// belongs to the nearest owned caller, below it by family.
    pub(super) fn places(&mut self, selection: &Selection<'_>) -> Places {
        let (capture, functions) = (selection.capture(), selection.functions());
        let kinds: Vec<Kind> = functions.all().map(|(id, _)| Kind::of(functions, id)).collect();
        let grouped = functions.all().filter_map(|(id, one)| Some((one.identity(), functions.group(id)?.clone())));
        self.groups.extend(grouped);
        let no_owner = self.child(0, Place::NoOwner);
        let mut states: Vec<State> = Vec::with_capacity(capture.stacks.len());
        for index in 0..capture.stacks.len() {
            let node = StackId::from_index(index);
            let caller = capture.stacks[index].parent.map(|parent| states[parent.index()].clone());
            let caller = caller.unwrap_or(State { owner: no_owner, family: None });
            let id = functions.of_node(capture, node);
            states.push(match &kinds[id.index()] {
                Kind::Owner(identity) => State { owner: self.owner(caller.owner, identity), family: None },
                Kind::Other(family) => {
                    let named = |id| functions.get(id).kind != FrameKind::Unknown;
                    State { family: caller.below(family.as_ref(), id, named), ..caller }
                }
            });
        }
        let of_stack = states.into_iter().map(|State { owner, family }| match family {
            None => owner,
            Some((family, member)) => {
                let family = self.child(owner, Place::Family(family));
                self.child(family, Place::Member(functions.get(member).identity()))
            }
        });
        Places { of_stack: of_stack.collect(), no_stack: no_owner }
    }

    /// Adds weights of a capture, each as `weigh` puts it.
    pub(super) fn add(&mut self, scenario: usize, places: &Places, weights: &StackWeights, weigh: fn(u128) -> Weights) {
        for (stack, amount) in weights.occupied() {
            self.nodes[places.of_stack[stack.index()]].own[scenario].add(weigh(amount.weight));
        }
        self.nodes[places.no_stack].own[scenario].add(weigh(weights.no_stack.weight));
    }

    /// The node of an owned function below `caller`, or the one above where it was called before.
    fn owner(&mut self, caller: usize, identity: &Identity) -> usize {
        let mut above = caller;
        while above != 0 {
            if matches!(&self.nodes[above].place, Place::Function(one) if one == identity) {
                return above;
            }
            above = self.nodes[above].parent;
        }
        let caller = if matches!(self.nodes[caller].place, Place::NoOwner) { 0 } else { caller };
        self.child(caller, Place::Function(identity.clone()))
    }

    fn child(&mut self, parent: usize, place: Place) -> usize {
        let next = self.nodes.len();
        let node = *self.index.entry((parent, place.clone())).or_insert(next);
        if node == next {
            let own = vec![Weights::default(); self.scenarios];
            self.nodes.push(Node { parent, place, own, total: vec![], children: vec![] });
        }
        node
    }

    /// Adds up totals, joins instances of one function, and sorts callees by their mean share, heaviest first.
    pub(super) fn finish(&mut self) {
        self.join_instances();
        for node in &mut self.nodes {
            node.total = node.own.clone();
            node.children.clear();
        }
        // Children come after their parents, but for what `join_instances` moved; so the order is that of depth.
        let mut order: Vec<usize> = (1..self.nodes.len()).collect();
        order.sort_by_cached_key(|&node| std::cmp::Reverse(self.depth(node)));
        for node in order {
            let (parent, total) = (self.nodes[node].parent, self.nodes[node].total.clone());
            if total.iter().any(|weights| !weights.is_zero()) {
                self.nodes[parent].children.push(node);
                self.nodes[parent].total.iter_mut().zip(total).for_each(|(sum, part)| sum.add(part));
            }
        }
        let whole: Vec<f64> = self.nodes[0].total.iter().map(|weights| weights.cost.max(1) as f64).collect();
        let share =
            |node: &Node| -> f64 { node.total.iter().zip(&whole).map(|(one, whole)| one.cost as f64 / whole).sum() };
        let shares: Vec<f64> = self.nodes.iter().map(share).collect();
        for index in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[index].children);
            children.iter_mut().for_each(|child| *child = self.lone_instance(*child).unwrap_or(*child));
            let key = |&node: &usize| &self.nodes[node].place;
            children.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]).then_with(|| key(a).cmp(key(b))));
            self.nodes[index].children = children;
        }
    }

    /// The only function with weight below a node of instances: it needs no row above its own.
    fn lone_instance(&self, node: usize) -> Option<usize> {
        match (&self.nodes[node].place, &self.nodes[node].children[..]) {
            (Place::Instances(_), [only]) => Some(*only),
            _ => None,
        }
    }

    pub(super) fn depth(&self, mut node: usize) -> usize {
        let mut depth = 0;
        while node != 0 {
            node = self.nodes[node].parent;
            depth += 1;
        }
        depth
    }

    /// Puts siblings that are one function for a reader below a node of their own.
    pub(super) fn join_instances(&mut self) {
        let mut siblings: FxHashMap<(usize, Arc<str>), Vec<usize>> = FxHashMap::default();
        for (index, node) in self.nodes.iter().enumerate() {
            if let Place::Function(identity) = &node.place {
                let group = self.groups.get(identity).cloned();
                let name = group.unwrap_or_else(|| own_name(&identity.name).into());
                siblings.entry((node.parent, name)).or_default().push(index);
            }
        }
        let mut siblings: Vec<_> = siblings.into_iter().filter(|(_, nodes)| nodes.len() > 1).collect();
        siblings.sort();
        for ((parent, name), nodes) in siblings {
            let joined = self.child(parent, Place::Instances(name));
            for node in nodes {
                self.nodes[node].parent = joined;
            }
        }
    }
}

/// Names.
impl Owners {
    /// A node's name: a function's own one, as `function` has the full one.
    pub(super) fn name(&self, node: usize) -> String {
        match &self.nodes[node].place {
            Place::All => "all".to_owned(),
            Place::NoOwner => NO_OWNER.to_owned(),
            Place::Function(identity) if self.is_instance(node) => identity.name.to_string(),
            Place::Function(identity) | Place::Member(identity) => own_name(&identity.name).into_owned(),
            Place::Instances(name) => name.to_string(),
            Place::Family(Family::Group(pattern)) => format!("[{pattern}]"),
            Place::Family(family) => format!("[{}]", family.name()),
        }
    }

    /// Whether only its full name tells it from its siblings.
    fn is_instance(&self, node: usize) -> bool {
        let parent = self.nodes[node].parent;
        matches!(self.nodes[parent].place, Place::Instances(_)) && self.lone_instance(parent).is_none()
    }
}

/// What a function of a capture is to the tree.
enum Kind {
    Owner(Identity),
    Other(Option<Family>),
}

impl Kind {
    fn of(functions: &Functions, id: FunctionId) -> Self {
        match functions.is_owner(id) {
            true => Kind::Owner(functions.get(id).identity()),
            false => Kind::Other(functions.family(id)),
        }
    }
}

/// Where a stack is: below which owned function, and in which family's code.
#[derive(Clone)]
struct State {
    owner: usize,
    family: Option<(Family, FunctionId)>,
}

impl State {
    /// The family of a function of family `found` that is called here, and the member at which it began: the first one with a name.
    fn below(
        &self,
        found: Option<&Family>,
        function: FunctionId,
        named: impl Fn(FunctionId) -> bool,
    ) -> Option<(Family, FunctionId)> {
        match (&self.family, found) {
            (Some((family, first)), Some(found)) if family == found && !named(*first) && named(function) => {
                Some((family.clone(), function))
            }
            (Some((family, _)), _) if family.keeps_callees() => self.family.clone(),
            (Some((family, _)), Some(found)) if family == found || *found == Family::Kernel => self.family.clone(),
            (_, Some(found)) => Some((found.clone(), function)),
            (_, None) => self.family.clone(),
        }
    }
}
