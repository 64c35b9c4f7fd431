//! The cost tree: what your functions cost over all scenarios, as one tree.
//!
//! It is the call tree of *owned* functions, over all threads. What is not owned belongs to the nearest owned caller, so a
//! defect is one row with its parts below, where a list of functions splits it over several rows.
//!
//! - A function that is called again below itself is one node: what it does there counts at its first call, once.
//! - A chain of functions, each of which only calls the next, is one row: `A > … > B (N functions)`.
//! - Code outside of owned functions is shown by [family](Family) below its owned caller: `[allocation]`, `[containers]`.
//!   A family opens into its members. Other code is part of its owned caller's self cost.
//! - Owned functions that differ in template arguments or parameters only are one row, which opens into its instances. So
//!   are functions that match a group of the user.
//! - Rows below a threshold in every scenario are added up by caller. The children of a row and its self cost add up to it.
//!
//! Each scenario has columns of its own, so that none hides behind the worst. Costs are per step where all scenarios have
//! steps, as in [`rank`](crate::analyses::rank).
//!
//! The gain bound of a row is the part of the [critical path](crate::analyses::critical_path) under it: no change of this
//! code can make a step faster by more.

mod external;
mod outline;
mod owners;
mod places;

use stepscope_model::{Column, Columns, Dimension, Phase, Table, Value};

use self::external::Libraries;
use self::outline::Row;
use self::owners::{Owners, Place, Weights};
pub use self::places::{CostNode, CostPlaces};
use crate::analyses::critical_path::PathWeights;
use crate::analyses::rank::extent::{self, Extent, cost_column};
use crate::analyses::rank::pairing;
use crate::analysis::{Analysis, AnalysisOption, OptionValues, View};
use crate::notes::{found_step_note, ownership_note};
use crate::query::basis::Basis;
#[cfg(doc)]
use crate::query::family::Family;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::weights::{StackWeights, percent};

/// What the tree shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The phase; by default `steady` if any capture is of it.
    pub phase: Option<Phase>,
    /// Rows with less than this percent of the cost in every scenario are added up.
    pub least_percent: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { phase: None, least_percent: 1.0 }
    }
}

/// A scenario of the tree.
struct Scenario {
    label: String,
    extent: Extent,
    /// Steps on whose critical path gain bounds are known.
    path_steps: u64,
    blocked_known: bool,
}

/// The tables `cost_tree` and `external_code` of each group of captures that are
/// [known to be alike](pairing::alike).
pub fn tables(selections: &[Selection<'_>], options: &Options) -> Vec<Table> {
    let trees = pairing::each_alike(selections, |alike| table(alike, options));
    trees.into_iter().chain(pairing::each_alike(selections, |alike| external_code(alike, options))).collect()
}

/// The table `external_code` of scenarios: what is not owned, by library, and the owned caller that decides its cost.
///
/// Costs are self costs: a library that calls another one does not have the other's cost.
pub fn external_code(selections: &[Selection<'_>], options: &Options) -> Table {
    let mut notes = Vec::new();
    let phase = pairing::phase(selections, options.phase);
    let paired = pairing::pair(selections, phase, &mut notes);
    let mut libraries = Libraries::default();
    let mut extents: Vec<(&str, Extent)> = Vec::new();
    for scenario in paired.iter().filter(|scenario| scenario.cpu().next().is_some()) {
        let mut extent = Extent::default();
        for selection in scenario.cpu() {
            let weights = extent.add(selection);
            libraries.add(extents.len(), selection, &weights);
        }
        extents.push((&scenario.label, extent));
    }
    let of_extents: Vec<(&str, &Extent)> = extents.iter().map(|(label, extent)| (*label, extent)).collect();
    let basis = extent::common_basis(&of_extents, &mut notes);
    let mut table = libraries.table(&of_extents, basis, options.least_percent);
    table.add_notes(notes);
    table
}

/// The table `cost_tree` of scenarios.
pub fn table(selections: &[Selection<'_>], options: &Options) -> Table {
    let mut notes = Vec::new();
    let phase = pairing::phase(selections, options.phase);
    let paired = pairing::pair(selections, phase, &mut notes);
    let paired: Vec<_> = paired.into_iter().filter(|scenario| scenario.cpu().next().is_some()).collect();
    let mut owners = Owners::new(paired.len());
    let mut scenarios = Vec::with_capacity(paired.len());
    for (index, one) in paired.iter().enumerate() {
        let mut scenario =
            Scenario { label: one.label.clone(), extent: Extent::default(), path_steps: 0, blocked_known: false };
        for selection in one.cpu() {
            let places = owners.places(selection);
            let weights = scenario.extent.add(selection);
            owners.add(index, &places, &weights, |cost| Weights { cost, ..Weights::default() });
            if let Some(path) = scenario.extent.steps.and_then(|_| PathWeights::of(selection)) {
                scenario.path_steps += path.steps;
                for weights in path.gain_bounds() {
                    owners.add(index, &places, weights, |gain_bound| Weights { gain_bound, ..Weights::default() });
                }
            }
            if selection.has_switches() {
                scenario.blocked_known = true;
                let blocked = match Loops::of_costs(selection) {
                    Some(loops) => loops.blocked_weights(selection),
                    None => StackWeights::of_blocked(selection),
                };
                owners.add(index, &places, &blocked, |blocked| Weights { blocked, ..Weights::default() });
            }
        }
        scenarios.push(scenario);
    }
    owners.finish();
    let extents: Vec<(&str, &Extent)> = scenarios.iter().map(|one| (one.label.as_str(), &one.extent)).collect();
    let basis = extent::common_basis(&extents, &mut notes);
    let rows = match scenarios.is_empty() {
        true => Vec::new(),
        false => outline::rows(&owners, options.least_percent),
    };
    let title = match phase {
        Some(phase) => format!("Cost tree of your functions, {phase} phase"),
        None => "Cost tree of your functions".to_owned(),
    };
    let mut table = table_columns(&owners, &scenarios, basis).table("cost_tree", title, rows);
    let under_owned = |index: usize| {
        let outside = owners.nodes.iter().find(|node| node.place == Place::NoOwner);
        owners.nodes[0].total[index].cost - outside.map_or(0, |node| node.total[index].cost)
    };
    let facts = scenarios.iter().enumerate();
    table.add_notes(facts.map(|(index, one)| one.extent.note(under_owned(index), basis).about(&one.label)));
    table.add_notes(notes);
    table.add_notes(found_step_note(selections));
    table.add_notes(scenarios.iter().filter_map(|one| Some(one.extent.loading_note()?.about(&one.label))));
    table.add_notes(ownership_note(selections));
    table
}

fn table_columns<'a>(owners: &'a Owners, scenarios: &'a [Scenario], basis: Basis) -> Columns<'a, Row> {
    let unit = scenarios.first().map_or("", |one| one.extent.unit.as_str());
    let whole = |index: usize| owners.nodes[0].total[index].cost;
    let doc = "The function, two spaces further to the right than its caller. `A > … > B (N functions)` is a chain of calls, \
               `[family]` code of a family that the function above called. Names are without template arguments and \
               parameters. `(N more)` is what was added up.";
    let indented = |row: &Row| format!("{}{}", "  ".repeat(row.indent), row.text);
    let mut columns = Columns::<Row>::new().text("tree", doc, move |row| indented(row).into()).essential("tree");
    let several = scenarios.len() > 1;
    for (index, scenario) in scenarios.iter().enumerate() {
        let name = |what: &str| if several { format!("{what}.{}", scenario.label) } else { what.to_owned() };
        let label = |what: &str| match what {
            _ if !several => what.to_owned(),
            "cost" => scenario.label.clone(),
            _ => format!("{what} {}", scenario.label),
        };
        let about = |doc: &str| if several { format!("{doc}, in {}.", scenario.label) } else { format!("{doc}.") };
        let cost = move |weight: u128| Value::from(scenario.extent.cost(weight, basis));
        let path = move |weight: u128| (scenario.path_steps > 0).then(|| weight as f64 / scenario.path_steps as f64);
        let column = |what: &str, unit: &str, doc: &str| {
            cost_column(&name(what), unit, basis, &about(doc)).labelled(label(what))
        };
        let share = |what: &str, doc: &str| Column::percentage(&name(what), &about(doc)).labelled(label(what));
        columns = columns
            .with_if(
                basis != Basis::Share,
                column("cost", unit, "Cost of the function and all that it calls"),
                move |row| cost(row.total[index].cost),
            )
            .with(
                share("share", "Cost of the function and all that it calls, in percent of all cost")
                    .essential()
                    .weighing(),
                move |row| percent(row.total[index].cost, whole(index)).into(),
            )
            .with(share("self_share", "Cost without the rows below it, in percent of all cost"), move |row| {
                percent(row.own[index].cost, whole(index)).into()
            })
            .with_if(
                scenario.path_steps > 0,
                Column::duration(&name("gain_bound"), &about("Most that a step could be faster without this cost"))
                    .labelled(label("gain_bound")),
                move |row| path(row.total[index].gain_bound).into(),
            )
            .with_if(
                scenario.blocked_known && basis != Basis::Share,
                column("blocked", "ns", "Blocked time under the function, of all threads").detail(),
                move |row| cost(row.total[index].blocked),
            );
    }
    let function = |row: &Row| match row.node.map(|node| &owners.nodes[node].place) {
        Some(Place::Function(identity) | Place::Member(identity)) => Some(identity.clone()),
        _ => None,
    };
    let kind = |row: &Row| row.node.map_or("more", |node| owners.nodes[node].place.kind());
    columns
        .text("kind", "What the row is: function, instances, family, member, group, or more.", move |row| {
            kind(row).into()
        })
        .text("function", "Full name of the function; of a chain, the last one's.", move |row| {
            function(row).map(|identity| identity.name.to_string()).into()
        })
        .text("module", "File name of the function's module.", move |row| {
            function(row).map(|identity| identity.module.to_string()).into()
        })
        .count("depth", "", "Number of rows above it that contain it.", |row| row.indent)
        .detail("kind function module depth")
}

/// Rows with less than this percent of the cost are added up.
const LEAST_PERCENT: AnalysisOption = AnalysisOption {
    name: "least",
    value: "PERCENT",
    range: (0.0, 100.0),
    default: "1 percent",
    doc: "Add up rows of the cost tree with less than this percent of the cost",
};

fn options(selection: &Selection<'_>, values: &OptionValues) -> Options {
    let least_percent = values.get(&LEAST_PERCENT).unwrap_or(Options::default().least_percent);
    Options { phase: selection.capture().info.phase, least_percent }
}

/// What your functions cost, as one tree. A report has one tree of all captures, so its captures' sections have none.
pub const ANALYSIS: Analysis = Analysis {
    title: "Cost tree",
    views: &[
        View {
            name: "cost-tree",
            question: "What do your functions cost with all that they call, and what could a change of them gain?",
            tables: |selection, values| vec![table(std::slice::from_ref(selection), &options(selection, values))],
        },
        View {
            name: "external-code",
            question: "Which libraries that you do not own cost most, and which of your functions calls them?",
            tables: |selection, values| {
                vec![external_code(std::slice::from_ref(selection), &options(selection, values))]
            },
        },
    ],
    needs: &[Dimension::Cpu],
    options: &[LEAST_PERCENT],
    also_in: &["rank"],
    ..Analysis::NONE
};

#[cfg(test)]
mod tests;
