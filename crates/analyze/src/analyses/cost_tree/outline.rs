//! The rows of the cost tree.

use crate::analyses::cost_tree::owners::{Node, Owners, Place, Weights};
use crate::analyses::outline::{self, Branches, Content, OutlineRow};
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

/// Which nodes have rows.
pub(super) struct Shown<'a> {
    owners: &'a Owners,
    least_percent: f64,
}

/// The rows. Nodes with less than `least_percent` of the cost in every scenario are added up by caller.
pub(super) fn rows(owners: &Owners, least_percent: f64) -> Vec<Row> {
    let shown = Shown { owners, least_percent };
    outline::rows(&shown).into_iter().map(|row| shown.row(&row)).collect()
}

impl Branches for Shown<'_> {
    fn children(&self, node: usize) -> &[usize] {
        &self.owners.nodes[node].children
    }

    fn is_shown(&self, node: usize, _: usize) -> bool {
        let nodes = &self.owners.nodes;
        let shares = nodes[node].total.iter().zip(&nodes[0].total).map(|(one, whole)| percent(one.cost, whole.cost));
        shares.flatten().any(|share| share >= self.least_percent)
    }

    /// A chain of owned functions, each of which only calls the next: nothing else of it has a row of its own. A family
    /// with one member is a chain, too.
    fn chain(&self, first: usize, depth: usize) -> Vec<usize> {
        let nodes = &self.owners.nodes;
        let mut chain = vec![first];
        let mut last = first;
        if let (Place::Family(_), [member]) = (&nodes[first].place, &nodes[first].children[..]) {
            return vec![first, *member];
        }
        while self.is_function(last) {
            let mut shown = nodes[last].children.iter().copied().filter(|&child| self.is_shown(child, depth));
            let (Some(next), None) = (shown.next(), shown.next()) else { break };
            if !self.is_function(next) || self.loses_much(last, next) {
                break;
            }
            chain.push(next);
            last = next;
        }
        chain
    }
}

impl Shown<'_> {
    fn row(&self, row: &OutlineRow) -> Row {
        let indent = row.indent;
        match &row.content {
            Content::More(nodes) => {
                let total = self.sum(nodes, |node| &node.total);
                Row { text: format!("({} more)", nodes.len()), indent, node: None, own: total.clone(), total }
            }
            Content::Chain(chain) => {
                let total = self.owners.nodes[chain[0]].total.clone();
                let own = self.sum(chain, |node| &node.own);
                Row { text: self.chain_text(chain), indent, node: chain.last().copied(), own, total }
            }
        }
    }

    /// The sum over nodes, by scenario.
    fn sum(&self, nodes: &[usize], weights: impl Fn(&Node) -> &[Weights]) -> Vec<Weights> {
        let mut sum = weights(&self.owners.nodes[nodes[0]]).to_vec();
        for &node in &nodes[1..] {
            sum.iter_mut().zip(weights(&self.owners.nodes[node])).for_each(|(sum, part)| sum.add(*part));
        }
        sum
    }

    fn chain_text(&self, chain: &[usize]) -> String {
        match *chain {
            [only] => self.text(only),
            [family, member] if !self.is_function(family) => format!("{} {}", self.text(family), self.text(member)),
            [first, last] => format!("{} > {}", self.short(first), self.short(last)),
            [first, .., last] => {
                format!("{} > … > {} ({} functions)", self.short(first), self.short(last), chain.len())
            }
            [] => String::new(),
        }
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

    /// The last two parts of a function's name, as a chain shows them.
    fn short(&self, node: usize) -> String {
        let text = self.text(node);
        if text.contains('<') {
            return text;
        }
        let start = text.rmatch_indices("::").nth(1).map_or(0, |(at, colons)| at + colons.len());
        text[start..].to_owned()
    }

    fn text(&self, node: usize) -> String {
        let name = self.owners.name(node);
        match &self.owners.nodes[node].place {
            Place::Instances(_) => format!("{name} ({} functions)", self.owners.nodes[node].children.len()),
            _ => name,
        }
    }
}
