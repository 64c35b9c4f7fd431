//! Page faults: which functions touch memory for the first time, and whose decision that was.
//!
//! A *minor* fault makes or maps a page that needs no reading; a *major* one reads it from a file. Each is counted where it
//! happened (self: the function that touched the memory, mostly `memset` or an allocator) and for the owned function
//! that it is attributed to, as cost is in [`hotspots`](crate::analyses::hotspots): the one whose fresh buffers or first reads caused
//! it.
//!
//! Weights are faults, not time: what a fault costs differs by three orders of magnitude between the two sorts, so they
//! are never added up into one figure of cost. Where a source does not tell them apart (`page-faults`) only their sum is
//! known, and the columns of the two sorts are missing, not zero.

use std::cmp::Reverse;

use stepscope_model::{Dimension, DimensionStatus, Table, Value, quantity};

use crate::analysis::{Analysis, View};
use crate::columns;
use crate::query::events::{self, Role};
use crate::query::functions::NO_STACK;
use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};

/// The faults of one sort, by function.
struct Faults {
    own: Vec<Amount>,
    attributed: Vec<Amount>,
    inclusive: Vec<Amount>,
    no_stack: Amount,
    total: Amount,
}

impl Faults {
    /// The selected faults of these roles; `None` if the capture has no such event.
    fn of(selection: &Selection<'_>, roles: &[Role]) -> Option<Self> {
        let (capture, functions) = (selection.capture(), selection.functions());
        let found = roles.iter().flat_map(|role| events::of_role(capture, *role));
        let sorts = found.map(|event| {
            let weights = StackWeights::of_samples(&selection.of_event(event));
            Self {
                own: weights.self_by_function(capture, functions),
                attributed: weights.nearest_owned_by_function(functions),
                inclusive: weights.inclusive_by_function(capture, functions),
                no_stack: weights.no_stack,
                total: weights.total(),
            }
        });
        sorts.reduce(Self::plus)
    }

    fn plus(mut self, other: Self) -> Self {
        for (sums, parts) in [
            (&mut self.own, other.own),
            (&mut self.attributed, other.attributed),
            (&mut self.inclusive, other.inclusive),
        ] {
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += part;
            }
        }
        self.no_stack += other.no_stack;
        self.total += other.total;
        self
    }
}

/// The table `faults`: a row a function, by self, then attributed faults, then name and module.
pub fn table(selection: &Selection<'_>) -> Table {
    let minor = Faults::of(selection, &[Role::MinorFaults]);
    let major = Faults::of(selection, &[Role::MajorFaults]);
    let told_apart = Faults::of(selection, &[Role::MinorFaults, Role::MajorFaults]);
    let mut table = empty_table();
    let Some(all) = told_apart.or_else(|| Faults::of(selection, &[Role::Faults])) else {
        table.note(missing(selection));
        return table;
    };
    let functions = selection.functions();
    let known = functions.ownership_known();
    let mut ids: Vec<_> = functions.all().filter(|(id, _)| !all.inclusive[id.index()].is_zero()).collect();
    ids.sort_by_key(|(id, function)| {
        let weights = (all.own[id.index()].weight, all.attributed[id.index()].weight);
        (Reverse(weights), function.name.clone(), function.module.clone())
    });
    for (id, function) in ids {
        let own = |faults: &Option<Faults>| faults.as_ref().map(|faults| faults.own[id.index()].weight);
        let attributed = |faults: &Option<Faults>| {
            faults.as_ref().filter(|_| known).map(|faults| faults.attributed[id.index()].weight)
        };
        let mut row = columns::function_values(function, known).to_vec();
        row.extend([
            all.own[id.index()].weight.into(),
            all.inclusive[id.index()].weight.into(),
            known.then(|| all.attributed[id.index()].weight).into(),
            all.own[id.index()].percent_of(all.total).into(),
            known.then(|| all.attributed[id.index()].percent_of(all.total)).flatten().into(),
            own(&minor).into(),
            own(&major).into(),
            attributed(&minor).into(),
            attributed(&major).into(),
        ]);
        table.push(row);
    }
    if !all.no_stack.is_zero() {
        table.push(no_stack_row(&all, minor.as_ref(), major.as_ref()));
    }
    table.note(match (&minor, &major) {
        (None, None) => {
            format!(
                "Total: {} page faults; the source does not tell minor and major ones apart.",
                quantity::grouped(all.total.weight as i128)
            )
        }
        (minor, major) => {
            let total = |faults: &Option<Faults>| {
                faults.as_ref().map_or("unknown".to_owned(), |one| quantity::grouped(one.total.weight as i128))
            };
            format!("Total: {} minor and {} major page faults.", total(minor), total(major))
        }
    });
    table
}

fn no_stack_row(all: &Faults, minor: Option<&Faults>, major: Option<&Faults>) -> Vec<Value> {
    let none = |faults: Option<&Faults>| Value::from(faults.map(|faults| faults.no_stack.weight));
    let mut row = columns::no_function_values(NO_STACK).to_vec();
    row.extend([
        none(Some(all)),
        none(Some(all)),
        Value::Missing,
        all.no_stack.percent_of(all.total).into(),
        Value::Missing,
        none(minor),
        none(major),
        Value::Missing,
        Value::Missing,
    ]);
    row
}

fn empty_table() -> Table {
    let faults = |name: &str, doc: &str| columns::count(name, "faults", doc);
    let mut table_columns = columns::function().to_vec();
    table_columns.extend([
        faults("self", "Page faults that happened in the function.").essential(),
        faults("inclusive", "Page faults in it and in all that it called, recursion counted once."),
        faults(
            "attributed",
            "Page faults whose nearest owned function it is; missing where nothing was said about ownership.",
        )
        .detail(),
        columns::percent("self_share", "Self in percent of all selected faults.").essential(),
        columns::percent("attributed_share", "Attributed in percent of all selected faults."),
        faults("minor_self", "Minor faults that happened in it; missing where they are not told apart."),
        faults("major_self", "Major faults that happened in it; missing where they are not told apart."),
        faults("minor_attributed", "Minor faults that are attributed to it.").detail(),
        faults("major_attributed", "Major faults that are attributed to it.").detail(),
    ]);
    Table::new("faults", "Page faults by function", table_columns)
}

/// Why there are no faults to show.
fn missing(selection: &Selection<'_>) -> String {
    match selection.capture().info.dimensions.get(&Dimension::Faults) {
        Some(DimensionStatus::Missing { reason, .. }) => format!("Page faults were not recorded: {reason}"),
        Some(_) => "There were no page faults.".to_owned(),
        None => "Page faults were not recorded; record with the dimension `faults`.".to_owned(),
    }
}

/// Page faults.
pub struct PageFaults;

impl Analysis for PageFaults {
    fn title(&self) -> &'static str {
        "Page faults"
    }

    fn views(&self) -> &'static [View] {
        &[View {
            name: "faults",
            question: "Which functions cause page faults?",
            tables: |selection, _| vec![table(selection)],
        }]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Faults]
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    fn faults(capture: &Capture) -> Table {
        drawn::selected(capture, &["gz::"], table)
    }

    #[test]
    fn minor_and_major_faults_are_told_apart_and_attributed() {
        let capture = Drawing::new()
            .folded(Event::sampled("cpu-clock", "ns"), "main;gz::Run 1000000")
            .folded(
                Event::sampled("minor-faults", "faults"),
                "main;gz::Run;gz::Clone;memset 5\nmain;gz::Run;malloc 3\nmain 1",
            )
            .folded(Event::sampled("major-faults", "faults"), "main;gz::Run;gz::Load 2")
            .capture;
        let columns = [
            "function",
            "self",
            "inclusive",
            "attributed",
            "minor_self",
            "major_self",
            "minor_attributed",
            "major_attributed",
        ];
        let table = faults(&capture);
        assert_eq!(
            cells(&table, &columns),
            [
                "memset | 5 | 5 | 0 | 5 | 0 | 0 | 0",
                "malloc | 3 | 3 | 0 | 3 | 0 | 0 | 0",
                "gz::Load | 2 | 2 | 2 | 0 | 2 | 0 | 2",
                "gz::Clone | 0 | 5 | 5 | 0 | 0 | 5 | 0",
                "gz::Run | 0 | 10 | 3 | 0 | 0 | 3 | 0",
                "(no stack) | 1 | 1 | - | 1 | 0 | - | -",
            ]
        );
        assert_eq!(table.notes, ["Total: 9 minor and 2 major page faults."]);
    }

    #[test]
    fn faults_that_are_not_told_apart_have_only_their_sum() {
        let capture = Drawing::new().folded(Event::sampled("page-faults", "faults"), "main;gz::Run 4").capture;
        assert_eq!(cells(&faults(&capture), &["self", "attributed", "minor_self", "major_self"]), ["4 | 4 | - | -"]);
    }

    #[test]
    fn a_capture_without_the_dimension_says_why() {
        let mut capture = drawn::folded("main;a 1");
        assert_eq!(faults(&capture).notes, ["Page faults were not recorded; record with the dimension `faults`."]);
        let reason = "perf_event_paranoid is 4.".to_owned();
        capture.info.dimensions.insert(Dimension::Faults, DimensionStatus::Missing { reason, remedy: None });
        assert_eq!(faults(&capture).notes, ["Page faults were not recorded: perf_event_paranoid is 4."]);
    }
}
