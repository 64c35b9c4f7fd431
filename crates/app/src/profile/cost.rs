//! The tables `cost_nodes` and `cost_places`: where each stack is in the cost tree, so that the page can add up the costs of
//! any selection.

use stepscope_analyze::cost_tree::{CostNode, CostPlaces};

use super::places::Places;
use super::{clipped, row};
use crate::parquet_table::ParquetTable;

pub(super) fn nodes(cost: &CostPlaces) -> ParquetTable {
    let function = |node: &CostNode| node.function.as_ref().map_or("".into(), |one| clipped(&one.name));
    let module = |node: &CostNode| node.function.as_ref().map_or("".into(), |one| clipped(&one.module));
    ParquetTable::new()
        .integers("parent", cost.nodes.iter().map(|node| row(node.parent)).collect())
        .texts("kind", cost.nodes.iter().map(|node| node.kind.into()).collect())
        .texts("name", cost.nodes.iter().map(|node| clipped(&node.name)).collect())
        .texts("function", cost.nodes.iter().map(function).collect())
        .texts("module", cost.nodes.iter().map(module).collect())
}

pub(super) fn places(cost: &CostPlaces, places: &Places) -> ParquetTable {
    let mut nodes = places.of_rows(row(Some(cost.no_stack)), |stack| row(Some(cost.of_stack[stack.index()])));
    nodes.push(row(Some(cost.no_stack)));
    ParquetTable::new().integers("node", nodes)
}
