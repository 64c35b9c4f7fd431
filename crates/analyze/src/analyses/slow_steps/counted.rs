//! The tables `slow_steps_heap` and `slow_steps_syscalls`: how many allocations and system calls slow steps have that typical steps do not.

use std::collections::BTreeMap;
use std::ops::Range;

use stepscope_model::{Column, Columns, Note, NoteValue, Table, ThreadId, note};
use stepscope_stats::bootstrap::BlockBootstrap;

use super::comparison::{Comparison, Means};
use super::sets::StepKind;
use crate::columns::{bounds, function};
use crate::query::functions::{Caller, Functions, NO_STACK};
use crate::query::system_calls::selected_rows;

/// Functions with an interval, those with the largest differences.
const INTERVALS: usize = 100;

/// Quantities that a step has of a function.
const QUANTITIES: usize = 2;

/// A row: what a function does in slow and in typical steps, or all of them together.
struct Row {
    /// `None` for all.
    caller: Option<Caller>,
    /// Number of allocations or calls, then their bytes or their time.
    means: [Means; QUANTITIES],
    /// The system calls that differ.
    calls: String,
    /// Whether the steps of most are not known.
    is_coarse: bool,
}

impl Row {
    fn verdict(&self) -> Option<&'static str> {
        let of_count = self.means[0].interval?;
        Some(match of_count.excludes_zero() && !self.is_coarse {
            true if of_count.value > 0.0 => "more",
            true => "less",
            false => "inconclusive",
        })
    }
}

/// Quantities by step, of one function.
type BySteps = BTreeMap<u32, [f64; QUANTITIES]>;

/// What was counted, by function and step.
struct Counted<'c, 'a> {
    comparison: &'c Comparison<'a>,
    by_function: BTreeMap<Caller, BySteps>,
    total: BySteps,
    /// Numbers by function and call, in slow and in typical steps.
    by_call: BTreeMap<(Caller, &'a str), [f64; 2]>,
    /// Those of each function that are of times of several steps that are longer than a typical step, and all of it.
    of_coarse: BTreeMap<Caller, [f64; 2]>,
}

impl<'c, 'a> Counted<'c, 'a> {
    fn new(comparison: &'c Comparison<'a>) -> Self {
        let (by_function, total, by_call) = (BTreeMap::new(), BySteps::new(), BTreeMap::new());
        Self { comparison, by_function, total, by_call, of_coarse: BTreeMap::new() }
    }

    /// Adds what happened in a time. It is spread over the steps that the time lies in.
    fn add(&mut self, caller: Caller, call: Option<&'a str>, time: Range<u64>, quantities: [f64; QUANTITIES]) {
        let steps = self.comparison.loops.main();
        let length = time.end.saturating_sub(time.start);
        let single = if length == 0 { steps.at(time.end).map(|step| (step, 1.0)) } else { None };
        let pieces = steps.pieces(time).map(|(step, piece)| (step, (piece.end - piece.start) as f64 / length as f64));
        for (step, part) in single.into_iter().chain(pieces) {
            let count = quantities[0] * part;
            let [coarse, all] = self.of_coarse.entry(caller).or_default();
            *all += count;
            if part < 1.0 && length > self.comparison.sets.typical_ns.1 {
                *coarse += count;
            }
            let Some(kind) = self.comparison.sets.of_position(step) else { continue };
            let of_function = self.by_function.entry(caller).or_default();
            for sums in [of_function, &mut self.total] {
                let sums = sums.entry(step as u32).or_default();
                sums.iter_mut().zip(quantities).for_each(|(sum, quantity)| *sum += quantity * part);
            }
            if let Some(call) = call {
                self.by_call.entry((caller, call)).or_default()[kind as usize] += quantities[0] * part;
            }
        }
    }

    /// The same of all functions.
    fn coarse_of_all(&self) -> [f64; 2] {
        self.of_coarse.values().fold([0.0; 2], |[coarse, all], one| [coarse + one[0], all + one[1]])
    }

    fn is_in_main(&self, thread: Option<ThreadId>) -> bool {
        thread.is_none_or(|thread| self.comparison.loops.in_main(thread))
    }

    fn means(&self, of: &BySteps, bootstrap: Option<&BlockBootstrap>) -> [Means; QUANTITIES] {
        std::array::from_fn(|quantity| {
            let mean = |kind: StepKind| {
                let positions = self.comparison.positions(kind);
                let values = positions.iter().filter_map(|step| of.get(&(*step as u32)));
                values.map(|values| values[quantity]).sum::<f64>() / positions.len() as f64
            };
            let by_step = || of.iter().map(|(step, values)| (*step, values[quantity])).collect::<Vec<_>>();
            let interval = bootstrap.and_then(|bootstrap| self.comparison.interval(bootstrap, &by_step()));
            Means { slow: mean(StepKind::Slow), typical: mean(StepKind::Typical), interval }
        })
    }

    /// All together, then each function: those with the largest differences first.
    fn rows(&self, bootstrap: &BlockBootstrap) -> Vec<Row> {
        let mut order: Vec<(&Caller, f64)> =
            self.by_function.iter().map(|(caller, of)| (caller, self.means(of, None)[0].difference())).collect();
        order.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
        let of_function = |(place, (caller, _)): (usize, &(&Caller, f64))| Row {
            caller: Some(**caller),
            means: self.means(&self.by_function[*caller], (place < INTERVALS).then_some(bootstrap)),
            calls: self.calls_of(caller),
            is_coarse: self.of_coarse.get(caller).is_some_and(|[coarse, all]| coarse * 2.0 > *all),
        };
        let [coarse, all] = self.coarse_of_all();
        let is_coarse = coarse * 2.0 > all;
        let means = self.means(&self.total, Some(bootstrap));
        let total = Row { caller: None, means, calls: String::new(), is_coarse };
        std::iter::once(total).chain(order.iter().enumerate().map(of_function)).collect()
    }

    /// The calls of a function that slow steps have more or less of, most first.
    fn calls_of(&self, caller: &Caller) -> String {
        let per_step = |sums: &[f64; 2]| {
            let of = |kind: StepKind| sums[kind as usize] / self.comparison.count(kind) as f64;
            of(StepKind::Slow) - of(StepKind::Typical)
        };
        let of_caller = self.by_call.iter().filter(|((of, _), _)| of == caller);
        let mut calls: Vec<(&str, f64)> = of_caller.map(|((_, call), sums)| (*call, per_step(sums))).collect();
        calls.retain(|(_, difference)| difference.abs() >= 0.05);
        calls.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
        let shown = calls.iter().take(3).map(|(call, difference)| format!("{call} {difference:+.1}"));
        let mut shown: Vec<String> = shown.collect();
        if calls.len() > 3 {
            shown.push("…".to_owned());
        }
        shown.join(", ")
    }

    fn notes(&self, what: &'static str) -> Vec<Note> {
        const MUCH: f64 = 10.0;
        let [coarse, all] = self.coarse_of_all();
        let share = if all > 0.0 { 100.0 * coarse / all } else { 0.0 };
        let is_coarse = share > MUCH;
        let note = is_coarse.then(|| {
            note!(
                Limit,
                "The times of {} of these {} are known to more than a typical step. They are spread over the steps in that time, so \
                 differences may be larger than shown.",
                NoteValue::percent(share),
                what
            )
        });
        note.into_iter().collect()
    }
}

/// The columns `function, ..., difference, low, high, slow, typical`, with this unit.
fn columns<'f>(functions: &'f Functions, unit: &'static str, what: &str) -> Columns<'f, Row> {
    let doc = |of: &str| format!("{what} per {of}, attributed to it.");
    let [name, module, owned, _] = function();
    let found = |row: &Row| match row.caller {
        Some(Caller::Function(id)) => Some(functions.get(id)),
        _ => None,
    };
    let name_of = move |row: &Row| match row.caller {
        None => "(all)".to_owned(),
        Some(Caller::Function(id)) => functions.get(id).name.to_string(),
        Some(Caller::NotOwned) => functions.no_owner().to_owned(),
        Some(Caller::NoStack) => NO_STACK.to_owned(),
    };
    Columns::new()
        .with(name, move |row| name_of(row).into())
        .with(module, move |row| found(row).map_or("", |function| &*function.module).into())
        .with(owned, move |row| {
            found(row).filter(|_| functions.ownership_known()).map(|function| function.owned).into()
        })
        .number("difference", unit, &format!("{what} per slow step minus those per typical step."), |row| {
            row.means[0].difference()
        })
        .with_all(bounds("", move |name, doc| Column::number(name, unit, doc), |row: &Row| row.means[0].interval))
        .number("slow", unit, &doc("slow step"), |row| row.means[0].slow)
        .number("typical", unit, &doc("typical step"), |row| row.means[0].typical)
        .text("verdict", "`more` or `less` in slow steps, if the interval excludes 0 and the steps of half of them are known; else `inconclusive`.", |row| {
            row.verdict().into()
        })
}

/// The table of heap allocations. `None` if it is not known when they were made.
pub(super) fn heap(comparison: &Comparison<'_>, bootstrap: &BlockBootstrap) -> Option<Table> {
    let selection = comparison.selection;
    if selection.capture().allocation_bursts.is_empty() {
        return None;
    }
    let functions = selection.functions();
    let mut counted = Counted::new(comparison);
    for burst in &selection.capture().allocation_bursts {
        let is_selected = burst.thread.map_or(!selection.filters_threads(), |thread| selection.has_thread(thread));
        if is_selected && counted.is_in_main(burst.thread) && selection.has_stack(burst.stack) {
            let quantities = [burst.calls as f64, burst.bytes as f64];
            counted.add(functions.caller(burst.stack), None, burst.start_ns..burst.end_ns, quantities);
        }
    }
    let mut table = columns(functions, "allocations", "Allocations")
        .bytes("bytes_difference", "Allocated bytes per slow step minus those per typical step.", |row| {
            row.means[1].difference()
        })
        .bytes("bytes_slow", "Allocated bytes per slow step.", |row| row.means[1].slow)
        .bytes("bytes_typical", "Allocated bytes per typical step.", |row| row.means[1].typical)
        .essential("difference slow typical bytes_difference verdict")
        .detail("bytes_slow bytes_typical")
        .table("slow_steps_heap", "Allocations in slow and typical steps, per step", counted.rows(bootstrap));
    table.add_notes(counted.notes("allocations"));
    Some(table)
}

/// The table of system calls. `None` if none were recorded.
pub(super) fn system_calls(comparison: &Comparison<'_>, bootstrap: &BlockBootstrap) -> Option<Table> {
    let selection = comparison.selection;
    if selection.capture().system_calls.is_empty() {
        return None;
    }
    let functions = selection.functions();
    let mut counted = Counted::new(comparison);
    for calls in selected_rows(selection).filter(|calls| comparison.loops.in_main(calls.thread)) {
        let caller = functions.caller(calls.stack);
        // The last call of a row has its time; those before it lie between the row's start and end.
        let last = calls.last_ns.map_or(0, |_| 1).min(calls.count);
        let last_ns = if last == 1 { calls.last_ns.unwrap_or(0).min(calls.total_ns) } else { 0 };
        let rest = calls.count - last;
        if last == 1 {
            counted.add(caller, Some(&calls.call), calls.end_ns..calls.end_ns, [1.0, last_ns as f64]);
        }
        if rest > 0 {
            let quantities = [rest as f64, (calls.total_ns - last_ns) as f64];
            counted.add(caller, Some(&calls.call), calls.start_ns..calls.end_ns, quantities);
        }
    }
    let mut table = columns(functions, "calls", "System calls")
        .text("calls", "The calls that differ most, with the difference per step.", |row| row.calls.as_str().into())
        .duration(
            "time_difference",
            "Time within them per slow step minus that per typical step, waits included.",
            |row| row.means[1].difference(),
        )
        .duration("time_slow", "Time within them per slow step.", |row| row.means[1].slow)
        .duration("time_typical", "Time within them per typical step.", |row| row.means[1].typical)
        .essential("difference slow typical calls verdict")
        .detail("time_slow time_typical")
        .table("slow_steps_syscalls", "System calls in slow and typical steps, per step", counted.rows(bootstrap));
    table.add_notes(counted.notes("system calls"));
    Some(table)
}
