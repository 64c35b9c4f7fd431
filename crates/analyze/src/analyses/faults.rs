//! Page faults: which functions touch memory for the first time, and which owned functions call them.
//!
//! A *minor* fault makes or maps a page without reading; a *major* fault reads it from a file. Each is counted for its leaf
//! (the function that touched the memory, mostly `memset` or an allocator) and for its nearest owned function, as in
//! [`hotspots`](crate::analyses::hotspots).
//!
//! Weights are faults, not time: a major fault costs a thousand times as much as a minor one, so they are not added up
//! into a cost. If a source does not separate them (`page-faults`), only their sum is known, and the columns of the two
//! sorts are missing.

use std::cmp::Reverse;

use stepscope_model::{Column, Columns, Dimension, NoteValue, Table, Value, note};

use crate::analysis::{Analysis, View};
use crate::columns::of_function;
use crate::query::events::{self, Role};
use crate::query::functions::{FunctionId, Functions};
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
        let found = roles.iter().flat_map(|role| events::of_role(selection.capture(), *role));
        let weights = found.map(|event| StackWeights::of_samples(&selection.of_event(event)));
        Some(Self::of_weights(selection, &weights.reduce(StackWeights::and)?))
    }

    fn of_weights(selection: &Selection<'_>, weights: &StackWeights) -> Self {
        let (capture, functions) = (selection.capture(), selection.functions());
        Self {
            own: weights.self_by_function(capture, functions),
            attributed: weights.nearest_owned_by_function(functions),
            inclusive: weights.inclusive_by_function(capture, functions),
            no_stack: weights.no_stack,
            total: weights.total(),
        }
    }

    /// Faults whose leaf is a function, or that have no stack.
    fn own(&self, id: &Option<FunctionId>) -> Amount {
        id.map_or(self.no_stack, |id| self.own[id.index()])
    }
}

/// The table `faults`: one row per function, by self, then attributed faults, then name and module.
pub fn table(selection: &Selection<'_>) -> Table {
    let minor = Faults::of(selection, &[Role::MinorFaults]);
    let major = Faults::of(selection, &[Role::MajorFaults]);
    let by_sort = Faults::of(selection, &[Role::MinorFaults, Role::MajorFaults]);
    let functions = selection.functions();
    let all = by_sort
        .or_else(|| Faults::of(selection, &[Role::Faults]))
        .unwrap_or_else(|| Faults::of_weights(selection, &StackWeights::none(selection.capture())));
    let mut ids: Vec<FunctionId> =
        functions.all().map(|(id, _)| id).filter(|id| !all.inclusive[id.index()].is_zero()).collect();
    ids.sort_by_key(|id| {
        let weights = (all.own[id.index()].weight, all.attributed[id.index()].weight);
        (Reverse(weights), functions.get(*id).identity())
    });
    let without_stack = (!all.no_stack.is_zero()).then_some(None);
    let rows = ids.into_iter().map(Some).chain(without_stack);
    let mut table =
        table_columns(functions, &all, minor.as_ref(), major.as_ref()).table("faults", "Page faults by function", rows);
    let total = |faults: &Option<Faults>| match faults {
        Some(faults) => NoteValue::number(faults.total.weight),
        None => NoteValue::from("unknown"),
    };
    table.note(match (&minor, &major) {
        (None, None) if all.total.is_zero() => note!(Fact, "There were no page faults."),
        (None, None) => {
            let all = NoteValue::plural(all.total.weight as usize, "page fault");
            note!(Fact, "Total: {}; the source does not separate minor and major ones.", all)
        }
        _ => note!(Fact, "Total: {} minor and {} major page faults.", total(&minor), total(&major)),
    });
    table
}

fn table_columns<'t>(
    functions: &'t Functions,
    all: &'t Faults,
    minor: Option<&'t Faults>,
    major: Option<&'t Faults>,
) -> Columns<'t, Option<FunctionId>> {
    let known = functions.ownership_known();
    let faults = |name: &str, doc: &str| Column::count(name, "faults", doc);
    // Samples without a stack are attributed to no function.
    let attributed =
        move |faults: &Faults, id: &Option<FunctionId>| id.filter(|_| known).map(|id| faults.attributed[id.index()]);
    let weight = |amount: Option<Amount>| Value::from(amount.map(|amount| amount.weight));
    of_function(functions)
        .with(faults("self", "Page faults whose leaf is the function.").essential(), move |id| {
            weight(Some(all.own(id)))
        })
        .with(faults("inclusive", "Page faults in it and in its callees, recursion counted once."), move |id| {
            weight(Some(id.map_or(all.no_stack, |id| all.inclusive[id.index()])))
        })
        .with(
            faults(
                "attributed",
                "Page faults whose nearest owned function it is; missing if no code is marked as owned.",
            )
            .essential(),
            move |id| weight(attributed(all, id)),
        )
        .percentage("self_share", "Self in percent of all selected faults.", move |id| {
            all.own(id).percent_of(all.total)
        })
        .percentage("attributed_share", "Attributed in percent of all selected faults.", move |id| {
            attributed(all, id).and_then(|amount| amount.percent_of(all.total))
        })
        .with(faults("minor_self", "Minor faults in it; missing if the source does not separate them."), move |id| {
            weight(minor.map(|minor| minor.own(id)))
        })
        .with(faults("major_self", "Major faults in it; missing if the source does not separate them."), move |id| {
            weight(major.map(|major| major.own(id)))
        })
        .with(faults("minor_attributed", "Minor faults attributed to it.").detail(), move |id| {
            weight(minor.and_then(|minor| attributed(minor, id)))
        })
        .with(faults("major_attributed", "Major faults attributed to it.").detail(), move |id| {
            weight(major.and_then(|major| attributed(major, id)))
        })
        .essential("self_share")
}

/// Page faults.
pub const ANALYSIS: Analysis = Analysis {
    title: "Page faults",
    views: &[View {
        name: "faults",
        question: "Which functions cause page faults?",
        tables: |selection, _| vec![table(selection)],
    }],
    needs: &[Dimension::Faults],
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, DimensionStatus, Event};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    fn faults(capture: &Capture) -> Table {
        drawn::selected(capture, &["gz::"], table)
    }

    #[test]
    fn minor_and_major_faults_are_separate_and_attributed() {
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
    fn faults_of_unknown_sort_have_only_their_sum() {
        let capture = Drawing::new().folded(Event::sampled("page-faults", "faults"), "main;gz::Run 4").capture;
        assert_eq!(cells(&faults(&capture), &["self", "attributed", "minor_self", "major_self"]), ["4 | 4 | - | -"]);
    }

    #[test]
    fn a_missing_dimension_is_noted_with_its_reason() {
        let mut capture = drawn::folded("main;a 1");
        let notes = |capture: &Capture| {
            drawn::selected(capture, &[], |selection| {
                crate::analysis::tables(&ANALYSIS, &ANALYSIS.views[0], selection, &Default::default())[0].notes.clone()
            })
        };
        assert_eq!(notes(&capture), ["`faults` was not recorded; fix: `stepscope record --dimensions cpu,faults`."]);
        let (reason, remedy) = ("perf_event_paranoid is 4.".to_owned(), Some("run as root".to_owned()));
        capture.info.dimensions.insert(Dimension::Faults, DimensionStatus::Missing { reason, remedy });
        assert_eq!(notes(&capture), ["`faults` was not recorded: perf_event_paranoid is 4; fix: run as root."]);
    }
}
