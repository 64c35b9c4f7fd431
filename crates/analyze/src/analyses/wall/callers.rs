//! Blocked time by nearest owned caller.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Column, Columns, Kind, Table, ThreadId, Value, WaitState, note};

use super::{importance, missing_stacks};
use crate::columns;
use crate::query::functions::{Caller, Functions, NO_STACK};
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use crate::query::weights::percent;

/// Blocked time attributed to one caller.
#[derive(Debug, Clone, Default)]
struct Attributed {
    blocked: u128,
    /// Standard error of `blocked`.
    error: f64,
    waits: u64,
    longest: u64,
    threads: FxHashSet<ThreadId>,
    classes: [u128; WaitClass::ALL.len()],
}

/// The table `blocked`: blocked time by nearest owned caller, rows by blocked time, then name.
///
/// The rows add up to all blocked time of the selection: what has no owned caller, and what has no stack, have rows of
/// their own.
pub fn callers(selection: &Selection<'_>) -> Table {
    let functions = selection.functions();
    let mut classes = Classes::new(selection.capture(), functions);
    let mut sums: FxHashMap<Caller, Attributed> = FxHashMap::default();
    for wait in selection.waits().filter(|wait| wait.state == WaitState::Blocked) {
        let caller = functions.caller(wait.stack);
        let blocked = blocked_ns(&wait);
        let sum = sums.entry(caller).or_default();
        sum.blocked += u128::from(blocked);
        sum.waits += u64::from(wait.count);
        sum.longest = sum.longest.max(blocked / u64::from(wait.count.max(1)));
        sum.threads.insert(wait.thread);
        if let Some(stack) = wait.stack {
            sum.classes[classes.of(stack).index()] += u128::from(blocked);
        }
    }
    let selected = |stack| selection.has_stack(Some(stack)).then(|| functions.caller(Some(stack)));
    let rows = selection.thread_wait_rows();
    let thinned = selection.thinned_stacks();
    let errors =
        thinned.map_or_else(FxHashMap::default, |thinned| thinned.standard_errors(selection.capture(), rows, selected));
    for (caller, error) in &errors {
        sums.entry(*caller).and_modify(|sum| sum.error = *error);
    }
    let name = |caller: Caller| match caller {
        Caller::Function(id) => &*functions.get(id).name,
        Caller::NotOwned => functions.no_owner(),
        Caller::NoStack => NO_STACK,
    };
    let mut rows: Vec<(Caller, Attributed)> = sums.into_iter().collect();
    rows.sort_by_key(|(caller, sum)| (Reverse(sum.blocked), name(*caller), module(functions, *caller)));
    let total: u128 = rows.iter().map(|(_, sum)| sum.blocked).sum();
    let of_class = |class: WaitClass| rows.iter().map(|(_, sum)| sum.classes[class.index()]).sum();
    let per_step = blocked_per_step(selection);
    let mut table = table_columns(functions, name, total, of_class, per_step.as_ref(), !errors.is_empty()).table(
        "blocked",
        "Blocked time by nearest owned caller",
        &rows,
    );
    if !selection.has_switches() {
        table.note(note!(Limit, "Context switches were not recorded, so blocked time is unknown."));
    }
    let without = rows.iter().find(|(caller, _)| *caller == Caller::NoStack).map_or(0, |(_, sum)| sum.blocked);
    table.add_notes(missing_stacks(selection, total, without));
    table
}

fn table_columns<'t>(
    functions: &'t Functions,
    name: impl Fn(Caller) -> &'t str + 't,
    total: u128,
    of_class: impl Fn(WaitClass) -> u128,
    per_step: Option<&'t FxHashMap<Caller, f64>>,
    is_estimated: bool,
) -> Columns<'t, (Caller, Attributed)> {
    let [function, module_column, owned, category] = columns::function();
    let get = |caller: Caller| match caller {
        Caller::Function(id) => Some(functions.get(id)),
        Caller::NotOwned | Caller::NoStack => None,
    };
    let known = functions.ownership_known();
    let error = "Standard error of `blocked`, where stacks were left out and similar waits stand for theirs.";
    let step = Column::new("per_step", Kind::Duration, "ns/step", "Of the time within simulation steps, per step.");
    let mut all = Columns::<(Caller, Attributed)>::new()
        .with(function, move |row| name(row.0).into())
        .with(module_column, move |row| module(functions, row.0).into())
        .with(owned, move |row| get(row.0).filter(|_| known).map(|function| function.owned).into())
        .with(category, move |row| get(row.0).map_or("unknown", |function| function.kind.name()).into())
        .duration("blocked", "Blocked time of waits whose nearest owned caller is the function.", |row| row.1.blocked)
        .percentage("share", "In percent of all selected blocked time.", move |row| percent(row.1.blocked, total))
        .with_if(is_estimated, Column::duration("blocked_error", error), |row| row.1.error.into())
        .with_if(per_step.is_some(), step, move |row| {
            per_step.and_then(|per_step| per_step.get(&row.0)).copied().unwrap_or(0.0).into()
        })
        .count("waits", "", "Number of waits.", |row| row.1.waits)
        .duration("longest", "The longest wait.", |row| row.1.longest)
        .count("threads", "", "Number of threads that waited.", |row| row.1.threads.len())
        .essential("blocked share")
        .detail("longest threads");
    for class in WaitClass::ALL {
        let column =
            Column::duration(class.name(), "The part of it of this class.").at(importance(of_class(class), total));
        all = all.with(column, move |row| Value::from(row.1.classes[class.index()]));
    }
    all
}

/// Blocked time within steps, per step, by caller; `None` without steps.
fn blocked_per_step(selection: &Selection<'_>) -> Option<FxHashMap<Caller, f64>> {
    let loops = Loops::of(selection)?;
    let weights = loops.blocked_weights(selection);
    let steps = loops.main().count() as f64;
    let mut sums: FxHashMap<Caller, f64> = FxHashMap::default();
    for (node, amount) in weights.occupied() {
        let caller = selection.functions().caller(Some(node));
        *sums.entry(caller).or_default() += amount.weight as f64 / steps;
    }
    *sums.entry(Caller::NoStack).or_default() += weights.no_stack.weight as f64 / steps;
    Some(sums)
}

fn module(functions: &Functions, caller: Caller) -> &str {
    match caller {
        Caller::Function(id) => &functions.get(id).module,
        Caller::NotOwned | Caller::NoStack => "",
    }
}
