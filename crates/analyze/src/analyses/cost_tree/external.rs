//! [`Libraries`]: code that is not owned, by library, with the owned callers that decide its cost.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use stepscope_model::{Column, Columns, Table};

use crate::analyses::rank::extent::{Extent, cost_column};
use crate::query::basis::Basis;
use crate::query::functions::{Identity, NO_OWNER};
use crate::query::select::Selection;
use crate::query::weights::{StackWeights, percent};

/// Self costs of libraries, by owned caller and scenario.
#[derive(Default)]
pub(super) struct Libraries {
    costs: BTreeMap<Arc<str>, BTreeMap<Option<Identity>, Vec<u128>>>,
}

/// A library, or several light ones.
struct Row {
    library: String,
    /// By scenario.
    costs: Vec<u128>,
    /// The owned caller with the largest part, and that part in percent; `None` for several libraries.
    caller: Option<(Option<Identity>, f64)>,
    callers: usize,
}

impl Libraries {
    /// Adds the weights of a capture.
    pub(super) fn add(&mut self, scenario: usize, selection: &Selection<'_>, weights: &StackWeights) {
        let (capture, functions) = (selection.capture(), selection.functions());
        for (stack, amount) in weights.occupied() {
            let leaf = functions.of_node(capture, stack);
            if functions.is_owner(leaf) {
                continue;
            }
            let caller = functions.attributed(stack).map(|id| functions.get(id).identity());
            let callers = self.costs.entry(functions.get(leaf).module.clone()).or_default();
            let costs = callers.entry(caller).or_default();
            costs.resize(costs.len().max(scenario + 1), 0);
            costs[scenario] += amount.weight;
        }
    }

    /// Libraries below `least_percent` of the cost in every scenario are added up.
    pub(super) fn table(&self, scenarios: &[(&str, &Extent)], basis: Basis, least_percent: f64) -> Table {
        let rows = self.rows(scenarios, least_percent);
        columns(scenarios, basis).table(
            "external_code",
            "External code by library, and the owned caller that decides it",
            rows,
        )
    }

    fn rows(&self, scenarios: &[(&str, &Extent)], least_percent: f64) -> Vec<Row> {
        let share = |costs: &[u128], index: usize| percent(costs[index], scenarios[index].1.total).unwrap_or(0.0);
        let shares = |costs: &[u128]| (0..scenarios.len()).map(|index| share(costs, index)).collect::<Vec<f64>>();
        let rows = self.costs.iter().map(|(library, callers)| Row::of(library, callers, scenarios.len(), &shares));
        let is_shown = |row: &Row| shares(&row.costs).iter().any(|share| *share >= least_percent);
        let (mut shown, light): (Vec<Row>, Vec<Row>) = rows.partition(is_shown);
        shown.sort_by(|a, b| {
            let mean = |row: &Row| shares(&row.costs).iter().sum::<f64>();
            mean(b).total_cmp(&mean(a)).then_with(|| a.library.cmp(&b.library))
        });
        if !light.is_empty() {
            let costs = light.iter().fold(vec![0; scenarios.len()], |sum, row| plus(sum, &row.costs));
            shown.push(Row { library: format!("({} more)", light.len()), costs, caller: None, callers: 0 });
        }
        shown
    }
}

fn plus(mut sum: Vec<u128>, costs: &[u128]) -> Vec<u128> {
    sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
    sum
}

impl Row {
    fn of(
        library: &str,
        callers: &BTreeMap<Option<Identity>, Vec<u128>>,
        scenarios: usize,
        shares: &impl Fn(&[u128]) -> Vec<f64>,
    ) -> Self {
        let full = |costs: &[u128]| plus(vec![0; scenarios], costs);
        let costs = callers.values().fold(vec![0; scenarios], |sum, costs| plus(sum, costs));
        let mean = |costs: &[u128]| shares(&full(costs)).iter().sum::<f64>();
        let most = callers.iter().map(|(caller, costs)| (caller, mean(costs)));
        let most = most.max_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| Reverse(a).cmp(&Reverse(b))));
        let part = |part: f64| if mean(&costs) > 0.0 { part / mean(&costs) * 100.0 } else { 0.0 };
        let library = if library.is_empty() { "(unknown)" } else { library };
        Self {
            library: library.to_owned(),
            caller: most.map(|(caller, cost)| (caller.clone(), part(cost))),
            callers: callers.keys().flatten().count(),
            costs,
        }
    }
}

fn columns<'a>(scenarios: &'a [(&'a str, &'a Extent)], basis: Basis) -> Columns<'a, Row> {
    let unit = scenarios.first().map_or("", |(_, extent)| extent.unit.as_str());
    let several = scenarios.len() > 1;
    let caller = "Owned function with the largest part of the library's cost, as the nearest owned caller.";
    let mut columns = Columns::<Row>::new()
        .text("library", "File name of the module; `(unknown)` for code without one.", |row| {
            row.library.as_str().into()
        })
        .text("caller", caller, |row| {
            let name =
                |caller: &Option<Identity>| caller.as_ref().map_or(NO_OWNER.to_owned(), |one| one.name.to_string());
            row.caller.as_ref().map(|(caller, _)| name(caller)).into()
        })
        .percentage("caller_share", "Part of the library's cost under that caller; the mean over scenarios.", |row| {
            row.caller.as_ref().map(|(_, share)| *share)
        })
        .count("callers", "", "Number of owned functions that call the library.", |row| row.callers)
        .essential("library caller")
        .detail("callers");
    for (index, (label, extent)) in scenarios.iter().enumerate() {
        let name = |what: &str| if several { format!("{what}.{label}") } else { what.to_owned() };
        let header = |what: &str| match what {
            _ if !several => what.to_owned(),
            "share" => (*label).to_owned(),
            what => format!("{what} {label}"),
        };
        let about = |doc: &str| if several { format!("{doc}, in {label}.") } else { format!("{doc}.") };
        let cost = cost_column(&name("cost"), unit, basis, &about("Self cost of the library")).labelled(header("cost"));
        let share = Column::percentage(&name("share"), &about("Self cost of the library, in percent of all cost"));
        columns = columns
            .with_if(basis != Basis::Share, cost, move |row| extent.cost(row.costs[index], basis).into())
            .with(share.labelled(header("share")).essential(), move |row| {
                percent(row.costs[index], extent.total).into()
            });
    }
    columns
}
