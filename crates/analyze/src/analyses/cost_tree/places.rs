//! [`CostPlaces`]: the nodes of a capture's cost tree, without costs.

use crate::analyses::cost_tree::owners::{Owners, Place};
use crate::query::functions::Identity;
use crate::query::select::Selection;

/// A node of the cost tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostNode {
    /// The node above it; `None` for the root.
    pub parent: Option<usize>,
    /// As the column `kind` of the table: `function`, `instances`, `family`, `member` or `group`.
    pub kind: &'static str,
    /// As the table shows it, without the number of instances.
    pub name: String,
    /// The function that it stands for, if it is one.
    pub function: Option<Identity>,
}

/// Where the stacks of a capture are in its cost tree: for a page that adds up costs of a selection itself. The places do
/// not depend on what is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostPlaces {
    /// The nodes; a parent comes before its children.
    pub nodes: Vec<CostNode>,
    /// The node at which the cost of each stack of the capture ends.
    pub of_stack: Vec<usize>,
    /// The node of costs without a stack.
    pub no_stack: usize,
}

impl CostPlaces {
    /// The places of a selection's capture.
    pub fn of(selection: &Selection<'_>) -> Self {
        let mut owners = Owners::new(1);
        let places = owners.places(selection);
        owners.join_instances();
        // What is joined comes after the nodes below it; in the order of depth, a parent comes first.
        let mut order: Vec<usize> = (0..owners.nodes.len()).collect();
        order.sort_by_cached_key(|&node| owners.depth(node));
        let mut moved = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &node)| moved[node] = place);
        let node = |&node: &usize| CostNode {
            parent: (node != 0).then(|| moved[owners.nodes[node].parent]),
            kind: owners.nodes[node].place.kind(),
            name: owners.name(node),
            function: match &owners.nodes[node].place {
                Place::Function(identity) | Place::Member(identity) => Some(identity.clone()),
                _ => None,
            },
        };
        Self {
            nodes: order.iter().map(node).collect(),
            of_stack: places.of_stack.iter().map(|&node| moved[node]).collect(),
            no_stack: moved[places.no_stack],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;
    use crate::drawn::owned_by;
    use crate::query::functions::Functions;

    #[test]
    fn each_stack_has_a_node_and_parents_come_first() {
        let capture = drawn::folded("sim;main;gz::Each<int>;malloc 1\nsim;main;gz::Each<char> 1\nsim;idle 1");
        let functions = Functions::of(&capture, &owned_by(&["gz::"]));
        let places = CostPlaces::of(&Selection::all(&capture, &functions));
        let paths: Vec<String> = places.of_stack.iter().map(|&node| path(&places, node)).collect();
        assert_eq!(
            paths,
            [
                "(no owned caller)",
                "gz::Each / gz::Each<int>",
                "gz::Each / gz::Each<int> / [allocation] / malloc",
                "gz::Each / gz::Each<char>",
                "(no owned caller)",
            ]
        );
        assert!(places.nodes.iter().enumerate().all(|(index, node)| node.parent.is_none_or(|parent| parent < index)));
        assert_eq!(places.nodes[places.no_stack].name, "(no owned caller)");
    }

    fn path(places: &CostPlaces, node: usize) -> String {
        let node = &places.nodes[node];
        match node.parent {
            Some(above) if above > 0 => format!("{} / {}", path(places, above), node.name),
            _ => node.name.clone(),
        }
    }
}
