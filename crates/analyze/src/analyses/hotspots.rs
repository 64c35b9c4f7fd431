//! Hot spots: the cost of each function by itself, with its callees, and as the nearest owned caller.
//!
//! For the selected samples of one event and every function `f` on their stacks:
//!
//! - *self* is the weight of the samples whose leaf is `f`;
//! - *inclusive* is the weight of the samples that contain `f` anywhere (recursion counts once);
//! - *attributed* is the weight of the samples whose nearest owned function, from leaf to root, is `f`.
//!
//! So self ≤ inclusive ≤ total, and attributed ≤ inclusive. Self adds up to the total over all functions and `(no stack)`.
//! Attributed adds up to the weight under owned code. Inclusive weights cannot be added up: a sample counts for every function
//! on its stack.
//!
//! # Why attributed
//! The leaf of a costly stack is mostly library code: a hash table's `find`, `memset`, a futex. Self time names only the
//! leaf. Inclusive time is led by `main`, `Run` and `Step`, which contain everything (erratum 13 of the Gazebo study). A team
//! can change the nearest owned function. The study attributed 27 points of hash-table time to a function that had caused
//! 0.2 of them, because it guessed the caller of a leaf (erratum 2).
//! [`edges`] names both ends: the owned function and the leaf.
//!
//! If simulation steps are known, each of the three is also given *per step*: the samples that
//! [belong to a step](crate::query::steps), divided by the number of steps. A further column has the attributed blocked time
//! per step, because waiting makes a step longer too.
//!
//! The count of a row is the number of samples behind its inclusive weight. It is missing for events whose weights were
//! summed before they were imported (erratum 1).
//!
//! # Cost
//! Samples are added up by stack node first. Self and attributed then visit each node once. Inclusive adds up the subtrees of
//! a function's outermost nodes, so that no sample needs a set of functions. Half a million samples on a hundred thousand
//! nodes take some ten milliseconds.

mod edges;
mod per_step;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use stepscope_model::{Columns, Dimension, FrameId, FrameKind, Note, NoteValue, Table, note};

pub use self::edges::edges;
use self::per_step::PerStep;
use crate::analysis::{Analysis, ReportSection, View};
use crate::columns;
use crate::notes::ownership_note;
use crate::query::events;
use crate::query::functions::{Function, FunctionId, Functions, NO_STACK, source_of};
use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};
use crate::unnamed;

/// What one function costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The function; absent for samples without a stack.
    pub function: Option<FunctionId>,
    /// Of samples whose leaf it is.
    pub own: Amount,
    /// Of samples that hold it.
    pub inclusive: Amount,
    /// Of samples whose nearest owned function it is.
    pub attributed: Amount,
}

/// What every function of a selection costs: the numbers behind the [`table`].
#[derive(Debug, Clone)]
pub struct Hotspots {
    /// Functions on selected stacks, and a row without a function where samples have no stack.
    pub costs: Vec<Cost>,
    /// All selected samples.
    pub total: Amount,
    /// Samples under owned code: the sum of all attributed.
    pub under_owned: Amount,
    /// Whether numbers of samples are known.
    pub counts_known: bool,
}

/// From this share on, code without a name gets a note.
const MUCH_UNNAMED_PERCENT: f64 = 5.0;
/// The error of a share, in percentage points, above which it gets a note: that of fewer than 385 samples.
const LARGE_ERROR: f64 = 5.0;

impl Hotspots {
    /// Adds up the selected samples.
    pub fn of(selection: &Selection<'_>) -> Self {
        Self::of_weights(selection, &StackWeights::of_samples(selection))
    }

    pub(crate) fn of_weights(selection: &Selection<'_>, weights: &StackWeights) -> Self {
        let (capture, functions) = (selection.capture(), selection.functions());
        let own = weights.self_by_function(capture, functions);
        let inclusive = weights.inclusive_by_function(capture, functions);
        let attributed = weights.nearest_owned_by_function(functions);
        let of_function = functions.all().map(|(id, _)| Cost {
            function: Some(id),
            own: own[id.index()],
            inclusive: inclusive[id.index()],
            attributed: attributed[id.index()],
        });
        let none = weights.no_stack;
        let without = Cost { function: None, own: none, inclusive: none, attributed: Amount::default() };
        Self {
            costs: of_function.chain([without]).filter(|cost| !cost.inclusive.is_zero()).collect(),
            total: weights.total(),
            under_owned: attributed.iter().copied().sum(),
            counts_known: weights.counts_known,
        }
    }

    /// Says what has no name, if that is much, and what to do: the module with most of the weight that ends in code without a
    /// name, else an interpreter whose functions have none.
    pub fn unnamed_note(&self, selection: &Selection<'_>) -> Option<Note> {
        self.unnamed_module(selection).or_else(|| self.unnamed_python(selection))
    }

    /// Says how uncertain shares of a recording are that has only a few samples of CPU time.
    pub fn few_samples_note(&self, selection: &Selection<'_>) -> Option<Note> {
        selection.event().filter(|event| events::is_cpu_time(event))?;
        let samples = self.total.count;
        // Half the width of the 95 % interval of a share of 50 %, as of a normal distribution.
        let error = 1.96 * 50.0 / (samples as f64).sqrt();
        (samples > 0 && error > LARGE_ERROR).then(|| {
            note!(
                Limit,
                "{} only: a share of 50 % may be off by {} points. Record for longer, or more often (`record --frequency`).",
                NoteValue::plural(samples as usize, "sample"),
                NoteValue::number(error.round() as usize)
            )
        })
    }

    /// CPython has all its functions in one of C, unless it was asked to show them to profilers.
    fn unnamed_python(&self, selection: &Selection<'_>) -> Option<Note> {
        let functions = selection.functions();
        let of_cost = |cost: &&Cost| cost.function.map(|id| functions.get(id));
        let is_python = |cost: &Cost| of_cost(&cost).is_some_and(|one| one.kind == FrameKind::Python);
        let is_interpreter = |cost: &&Cost| of_cost(cost).is_some_and(|one| &*one.name == "_PyEval_EvalFrameDefault");
        let inside =
            self.costs.iter().filter(is_interpreter).map(|cost| cost.inclusive).max_by_key(|one| one.weight)?;
        let share = inside.percent_of(self.total).filter(|share| *share >= MUCH_UNNAMED_PERCENT)?;
        let is_named = self.costs.iter().any(is_python);
        (!is_named).then(|| {
            note!(
                Hint,
                "{} of the samples are in or below CPython's interpreter, and Python functions have no names. Record them with \
                 `record --with python`.",
                NoteValue::percent(share)
            )
        })
    }

    fn unnamed_module(&self, selection: &Selection<'_>) -> Option<Note> {
        let functions = selection.functions();
        let mut by_module: BTreeMap<&str, Amount> = BTreeMap::new();
        for cost in &self.costs {
            let function = cost.function.map(|id| functions.get(id));
            let unnamed = |one: &&Function| one.kind == FrameKind::Unknown && !one.module.is_empty();
            if let Some(function) = function.filter(unnamed) {
                *by_module.entry(&function.module).or_default() += cost.own;
            }
        }
        let (module, amount) = by_module.into_iter().max_by_key(|(_, amount)| amount.weight)?;
        let share = amount.percent_of(self.total).filter(|share| *share >= MUCH_UNNAMED_PERCENT)?;
        Some(unnamed::note(selection.capture(), module, share))
    }

    /// By self weight, then by name and module.
    fn sort(&mut self, functions: &Functions) {
        let name = |cost: &Cost| {
            cost.function.map_or((NO_STACK, ""), |id| {
                let function = functions.get(id);
                (&*function.name, &*function.module)
            })
        };
        self.costs.sort_by(|a, b| (Reverse(a.own.weight), name(a)).cmp(&(Reverse(b.own.weight), name(b))));
    }
}

/// The table `hotspots`: one row per function on a selected stack, by self weight.
pub fn table(selection: &Selection<'_>) -> Table {
    let weights = StackWeights::of_samples(selection);
    let mut hotspots = Hotspots::of_weights(selection, &weights);
    hotspots.sort(selection.functions());
    let lines = hottest_lines(selection, &weights);
    let per_step = PerStep::of(selection);
    let mut columns = table_columns(selection, &hotspots, &lines);
    if let Some(per_step) = &per_step {
        columns = columns.with_all(per_step.columns(selection));
    }
    let mut table = columns.table("hotspots", title(selection), &hotspots.costs);
    table.add_notes(notes(selection, &hotspots));
    table.add_notes(per_step.as_ref().map(|per_step| per_step.note(selection)));
    table
}

fn title(selection: &Selection<'_>) -> String {
    let what = match selection.event() {
        Some(event) if event.unit == "ns" => "On-CPU time",
        // Formats that name no event have weights of an unknown unit, or numbers of samples.
        Some(event) if event.name == "weight" => "Weight of samples",
        Some(event) if event.name == "samples" => "Samples",
        Some(event) => &event.name,
        None => "Samples",
    };
    match selection.description() {
        filters if filters.is_empty() => format!("{what} by function"),
        filters => format!("{what} by function ({filters})"),
    }
}

fn table_columns<'t>(
    selection: &'t Selection<'_>,
    hotspots: &'t Hotspots,
    lines: &'t [Option<FrameId>],
) -> Columns<'t, Cost> {
    let functions = selection.functions();
    let unit = selection.event().map_or("", |event| &event.unit);
    let known = functions.ownership_known();
    let counted = |amount: Amount| hotspots.counts_known.then_some(amount.count);
    let share = |amount: Amount| amount.percent_of(hotspots.total);
    columns::of_function(functions)
        .on(|cost: &Cost| &cost.function)
        .count(
            "count",
            "samples",
            "Number of samples that contain the function; missing if only sums of weights were \
                imported.",
            move |cost| counted(cost.inclusive),
        )
        .weight("self", unit, "Weight of the samples whose leaf is the function.", |cost| cost.own.weight)
        .weight("inclusive", unit, "Weight of the samples that contain the function, recursion counted once.", |cost| {
            cost.inclusive.weight
        })
        .weight(
            "attributed",
            unit,
            "Weight of the samples whose nearest owned function, from leaf to root, is this one; \
                missing if no code is marked as owned.",
            move |cost| known.then_some(cost.attributed.weight),
        )
        .percentage("self_share", "Self in percent of the selected total.", move |cost| share(cost.own))
        .percentage("inclusive_share", "Inclusive in percent of the selected total.", move |cost| share(cost.inclusive))
        .percentage("attributed_share", "Attributed in percent of the selected total.", move |cost| {
            share(cost.attributed).filter(|_| known)
        })
        .count("self_count", "samples", "Number of samples whose leaf is the function.", move |cost| counted(cost.own))
        .text(
            "source",
            "Source file and line within the function with most of its self weight (or inclusive \
                weight, if it has no self weight).",
            move |cost| {
                let line = cost.function.and_then(|id| lines[id.index()]);
                line.map_or(String::new(), |frame| source_of(selection.capture(), frame)).into()
            },
        )
        .essential("self_share inclusive_share attributed_share")
        .detail("count self_count source")
}

/// A source file and line.
type Line<'a> = (Option<&'a str>, Option<u32>);

/// The cost at a line, ordered by self weight, then by the weight below; of equal ones the first line is the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LineCost<'a> {
    own: u128,
    below: u128,
    line: Reverse<Line<'a>>,
    frame: FrameId,
}

/// For each function a frame at the source line with most of its cost.
fn hottest_lines(selection: &Selection<'_>, weights: &StackWeights) -> Vec<Option<FrameId>> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let subtrees = weights.subtrees(capture);
    let mut by_frame = vec![(0_u128, 0_u128); capture.frames.len()];
    for (index, node) in capture.stacks.iter().enumerate() {
        let sums = &mut by_frame[node.frame.index()];
        sums.0 += weights.own[index].weight;
        sums.1 += subtrees[index].weight;
    }
    // Frames of one function also differ by address; only their lines matter here.
    let mut by_line: FxHashMap<(FunctionId, Line<'_>), LineCost<'_>> = FxHashMap::default();
    for (index, frame) in capture.frames.iter().enumerate().filter(|(_, frame)| frame.file.is_some()) {
        let frame_id = FrameId::from_index(index);
        let line: Line<'_> = (frame.file.as_deref(), frame.line);
        let none = LineCost { own: 0, below: 0, line: Reverse(line), frame: frame_id };
        let cost = by_line.entry((functions.of_frame(frame_id), line)).or_insert(none);
        cost.own += by_frame[index].0;
        cost.below += by_frame[index].1;
    }
    let mut best: Vec<Option<LineCost<'_>>> = vec![None; functions.len()];
    for ((function, _), cost) in by_line {
        let best = &mut best[function.index()];
        *best = (*best).max(Some(cost));
    }
    best.into_iter().map(|best| best.map(|cost| cost.frame)).collect()
}

fn notes(selection: &Selection<'_>, hotspots: &Hotspots) -> Vec<Note> {
    let Some(event) = selection.event() else { return vec![note!(Limit, "The capture has no samples of any event.")] };
    let total = NoteValue::of(hotspots.total.weight, &event.unit);
    // `157 G cycles of cycles` repeats itself.
    let of_event = if event.name == event.unit { String::new() } else { format!(" of {}", event.name) };
    let samples = NoteValue::plural(hotspots.total.count as usize, "sample");
    let mut notes = vec![match hotspots.counts_known {
        true if event.unit == "samples" => note!(Fact, "Total: {}{}.", total, of_event),
        true => note!(Fact, "Total: {} in {}{}.", total, samples, of_event),
        false => note!(
            Limit,
            "Total: {}{}, imported as sums: the number of samples is not known, so differences cannot be tested.",
            total,
            of_event
        ),
    }];
    if selection.functions().ownership_known() {
        let owned = NoteValue::of(hotspots.under_owned.weight, &event.unit);
        let share = NoteValue::percent(hotspots.under_owned.percent_of(hotspots.total).unwrap_or(0.0));
        notes.push(note!(Fact, "Under owned code: {} ({}); other stacks contain no owned function.", owned, share));
    }
    notes.extend(hotspots.few_samples_note(selection));
    notes.extend(ownership_note(std::slice::from_ref(selection)));
    notes.extend(hotspots.unnamed_note(selection));
    notes.extend(other_events(selection));
    notes
}

/// Which other events the capture has, since their samples are not in the table.
pub(crate) fn other_events(selection: &Selection<'_>) -> Option<Note> {
    let capture = selection.capture();
    let mut samples = vec![0_u64; capture.info.events.len()];
    for sample in &capture.samples {
        samples[sample.event.index()] += 1;
    }
    let others: Vec<&str> = capture
        .info
        .events
        .iter()
        .enumerate()
        .filter(|(index, _)| samples[*index] > 0 && selection.event_id().is_none_or(|chosen| chosen.index() != *index))
        .map(|(_, event)| event.name.as_str())
        .collect();
    let names = NoteValue::names(others.iter().copied(), 8);
    (!others.is_empty()).then(|| note!(Hint, "The capture also has samples of {}; choose with `--event`.", names))
}

/// Most rows of the table in a report.
pub const MOST_ROWS: usize = 500;

/// What each function costs.
pub const ANALYSIS: Analysis = Analysis {
    title: "Hot spots",
    views: &[
        View {
            name: "hotspots",
            question: "What does each function cost: by itself, with its callees, and as the nearest owned caller?",
            tables: |selection, _| vec![table(selection)],
        },
        View {
            name: "edges",
            question: "Which owned functions cause the cost of which leaf functions?",
            tables: |selection, _| vec![edges(selection)],
        },
    ],
    needs: &[Dimension::Cpu],
    report: |selection| {
        let section = ReportSection::of_tables("Hot spots", vec![table(selection)]);
        section.map(|section| section.most_rows(MOST_ROWS)).into_iter().collect()
    },
    ..Analysis::NONE
};
