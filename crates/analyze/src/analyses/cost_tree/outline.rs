//! [`Outline`]: the rows of the cost tree, in reading order.

use crate::analyses::cost_tree::owners::{Owners, Place, Weights};
use crate::query::family::Family;
use crate::query::qualified_name::own_name;
use crate::query::weights::percent;

/// A row of the cost tree.
pub(super) struct Row {
    /// Its text, without indentation.
    pub(super) text: String,
    /// Number of rows above it that contain it.
    pub(super) indent: usize,
    /// Its node; the last one of a chain. None for several that were added up.
    pub(super) node: Option<usize>,
    /// By scenario.
    pub(super) own: Vec<Weights>,
    /// By scenario, with everything below.
    pub(super) total: Vec<Weights>,
}

/// A row that is yet to be written.
enum Waiting {
    /// A node, and the chain that starts there.
    Node(usize),
    /// Light nodes that are added up.
    More(Vec<usize>),
}

/// Which nodes have rows.
pub(super) struct Outline<'a> {
    owners: &'a Owners,
    least_percent: f64,
    rows: Vec<Row>,
}

impl<'a> Outline<'a> {
    /// The rows. Nodes with less than `least_percent` of the cost in every scenario are added up by caller.
    pub(super) fn of(owners: &'a Owners, least_percent: f64) -> Vec<Row> {
        let mut outline = Self { owners, least_percent, rows: Vec::new() };
        let mut waiting = vec![(Waiting::Node(0), 0)];
        while let Some((next, indent)) = waiting.pop() {
            match next {
                Waiting::Node(node) => outline.push_node(node, indent, &mut waiting),
                Waiting::More(nodes) => outline.push_more(&nodes, indent),
            }
        }
        outline.rows
    }

    /// Adds a row for the chain that starts at a node, and leaves its callees waiting, the last row first.
    fn push_node(&mut self, first: usize, indent: usize, waiting: &mut Vec<(Waiting, usize)>) {
        let chain = self.chain(first);
        let nodes = &self.owners.nodes;
        let last = *chain.last().expect("a chain has its first node");
        let mut own = nodes[last].own.clone();
        let mut light: Vec<usize> = Vec::new();
        for &above in &chain[..chain.len() - 1] {
            own.iter_mut().zip(&nodes[above].own).for_each(|(sum, part)| sum.add(*part));
            light.extend(nodes[above].children.iter().copied().filter(|child| !chain.contains(child)));
        }
        let (shown, hidden): (Vec<usize>, Vec<usize>) =
            nodes[last].children.iter().copied().partition(|&child| self.is_shown(child));
        light.extend(hidden);
        if !light.is_empty() {
            waiting.push((Waiting::More(light), indent + 1));
        }
        waiting.extend(shown.into_iter().rev().map(|child| (Waiting::Node(child), indent + 1)));
        let text = match chain[..] {
            [only] => self.text(only),
            [family, member] if !self.is_function(family) => format!("{} {}", self.text(family), self.text(member)),
            [first, last] => format!("{} > {}", self.short(first), self.short(last)),
            [first, .., last] => {
                format!("{} > … > {} ({} functions)", self.short(first), self.short(last), chain.len())
            }
            [] => String::new(),
        };
        self.rows.push(Row { text, indent, node: Some(last), own, total: nodes[first].total.clone() });
    }

    fn push_more(&mut self, nodes: &[usize], indent: usize) {
        let mut total = self.owners.nodes[nodes[0]].total.clone();
        for &node in &nodes[1..] {
            total.iter_mut().zip(&self.owners.nodes[node].total).for_each(|(sum, part)| sum.add(*part));
        }
        let text = format!("({} more)", nodes.len());
        self.rows.push(Row { text, indent, node: None, own: total.clone(), total });
    }

    /// A chain of owned functions, each of which only calls the next: nothing else of it has a row of its own. A family
    /// with one member is a chain, too.
    fn chain(&self, first: usize) -> Vec<usize> {
        let nodes = &self.owners.nodes;
        let mut chain = vec![first];
        let mut last = first;
        if let (Place::Family(_), [member]) = (&nodes[first].place, &nodes[first].children[..]) {
            return vec![first, *member];
        }
        while self.is_function(last) {
            let mut shown = nodes[last].children.iter().copied().filter(|&child| self.is_shown(child));
            let (Some(next), None) = (shown.next(), shown.next()) else { break };
            if !self.is_function(next) || self.loses_much(last, next) {
                break;
            }
            chain.push(next);
            last = next;
        }
        chain
    }

    fn is_function(&self, node: usize) -> bool {
        matches!(self.owners.nodes[node].place, Place::Function(_))
    }

    /// Whether a function has more than a light node's cost beside its callee.
    fn loses_much(&self, caller: usize, callee: usize) -> bool {
        let nodes = &self.owners.nodes;
        let beside = nodes[caller].total.iter().zip(&nodes[callee].total).map(|(all, part)| all.cost - part.cost);
        let whole = nodes[0].total.iter().map(|weights| weights.cost);
        beside.zip(whole).any(|(beside, whole)| percent(beside, whole).is_some_and(|share| share >= self.least_percent))
    }

    fn is_shown(&self, node: usize) -> bool {
        let nodes = &self.owners.nodes;
        let shares = nodes[node].total.iter().zip(&nodes[0].total).map(|(one, whole)| percent(one.cost, whole.cost));
        shares.flatten().any(|share| share >= self.least_percent)
    }

    /// Whether only its full name tells it from its siblings.
    fn is_instance(&self, node: usize) -> bool {
        matches!(self.owners.nodes[self.owners.nodes[node].parent].place, Place::Instances(_))
    }

    /// The last two parts of a function's name, as a chain shows them.
    fn short(&self, node: usize) -> String {
        let text = self.text(node);
        if text.contains('<') {
            return text;
        }
        let start = text.rmatch_indices("::").nth(1).map_or(0, |(at, colons)| at + colons.len());
        text[start..].to_owned()
    }

    /// A function is shown by its own name; `function` has the full one.
    fn text(&self, node: usize) -> String {
        match &self.owners.nodes[node].place {
            Place::All => "all".to_owned(),
            Place::NoOwner => "(no owned caller)".to_owned(),
            Place::Function(identity) if self.is_instance(node) => identity.name.to_string(),
            Place::Function(identity) | Place::Member(identity) => own_name(&identity.name).into_owned(),
            Place::Instances(name) => format!("{name} ({} functions)", self.owners.nodes[node].children.len()),
            Place::Family(Family::Group(pattern)) => format!("[{pattern}]"),
            Place::Family(family) => format!("[{}]", family.name()),
        }
    }
}
