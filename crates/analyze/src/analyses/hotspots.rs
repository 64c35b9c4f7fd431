//! Hot spots: what each function costs by itself, with all that it calls, and as the owner of what it calls.
//!
//! For the selected samples of one event and every function `f` on their stacks:
//!
//! - *self* is the weight of the samples whose leaf is `f`;
//! - *inclusive* the weight of the samples that hold `f` anywhere, however often (recursion counts once);
//! - *attributed* the weight of the samples whose nearest owned function, from leaf to root, is `f`.
//!
//! So self ≤ inclusive ≤ total and attributed ≤ inclusive; self adds up to the total over all functions and `(no stack)`, and
//! attributed to the part of the total that is under owned code. Inclusive adds up to nothing: it counts a sample for
//! every function on its stack.
//!
//! # Why attributed
//! The leaf of a costly stack is mostly somebody else's: a hash table's `find`, `memset`, a futex. Self time names
//! it and stops. Inclusive time is led by `main`, `Run`, `Step` (erratum 13 of the Gazebo study), which everything is
//! under. What a team can act on is the function of its own that decided to call: the nearest owned one. The study
//! attributed 27 points of hash-table time to a function that had caused 0.2 of them (erratum 2), because it looked
//! at leaves and guessed the caller. [`edges`] names both ends: the owned function and the leaf it was paid for.
//!
//! Where simulation steps are known, each of the three is also given *per step*: of the samples that [belong to a step](crate::query::steps)
//! alone, divided by the number of steps; beside it the blocked time per step that is attributed to the function, since what
//! a step waits for is no less its time than what it computes.
//!
//! The count of a row is the number of samples behind its inclusive weight, missing for events whose weights were summed
//! before they were imported (erratum 1).
//!
//! # Cost
//! Samples are added up by stack node first. Self and attributed are then one look at each node; inclusive is the sum of
//! the subtrees under the nodes where a function is met first on the way from the root, so that no set of seen
//! functions is kept for each sample. Half a million samples on a hundred thousand nodes take some ten milliseconds.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use stepscope_model::{Column, Dimension, FrameId, Kind, Note, Table, Value, quantity};

use crate::analysis::{Analysis, ReportSection, View};
use crate::columns;
use crate::notes::ownership_note;
use crate::query::functions::{FunctionId, Functions, NO_STACK, source_of};
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::weights::{Amount, StackWeights};

/// How to order and which rows to keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Order of the rows, largest first; ties by name, then module.
    pub order: Order,
    /// Which functions have a row.
    pub rows: Rows,
}

/// What the rows are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Self weight.
    #[default]
    SelfWeight,
    /// Inclusive weight.
    Inclusive,
    /// Attributed weight.
    Attributed,
}

/// Which functions have a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rows {
    /// Every function that is on a selected stack.
    #[default]
    All,
    /// Only owned ones.
    Owned,
}

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

/// What every function of a selection costs: the numbers behind the [table](table).
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

    fn sort(&mut self, functions: &Functions, order: Order) {
        let weight = |cost: &Cost| match order {
            Order::SelfWeight => cost.own.weight,
            Order::Inclusive => cost.inclusive.weight,
            Order::Attributed => cost.attributed.weight,
        };
        let name = |cost: &Cost| {
            cost.function.map_or((NO_STACK, ""), |id| {
                let function = functions.get(id);
                (&*function.name, &*function.module)
            })
        };
        self.costs.sort_by(|a, b| (Reverse(weight(a)), name(a)).cmp(&(Reverse(weight(b)), name(b))));
    }
}

/// The table `hotspots`.
pub fn table(selection: &Selection<'_>, options: &Options) -> Table {
    let functions = selection.functions();
    let weights = StackWeights::of_samples(selection);
    let mut hotspots = Hotspots::of_weights(selection, &weights);
    hotspots.sort(functions, options.order);
    let places = hottest_places(selection, &weights);
    let per_step = PerStep::of(selection);
    let mut columns = table_columns(selection);
    columns.extend(per_step.iter().flat_map(|_| per_step_columns(selection)));
    let mut table = Table::new("hotspots", title(selection), columns);
    let is_owned = |cost: &Cost| cost.function.is_some_and(|id| functions.get(id).owned);
    for cost in hotspots.costs.iter().filter(|cost| options.rows == Rows::All || is_owned(cost)) {
        let mut row = row(selection, &hotspots, cost, &places);
        row.extend(per_step.iter().flat_map(|per_step| per_step.values(cost.function, functions.ownership_known())));
        table.push(row);
    }
    table.add_notes(notes(selection, &hotspots));
    table.add_notes(per_step.map(|per_step| per_step.note(selection)));
    table
}

/// Weights of the samples and waits that belong to steps, by function; the last one is that of what has no stack.
struct PerStep {
    steps: u64,
    loops: usize,
    total: u128,
    own: Vec<u128>,
    inclusive: Vec<u128>,
    attributed: Vec<u128>,
    /// Absent where context switches were not recorded.
    blocked: Option<Vec<u128>>,
}

impl PerStep {
    /// `None` where no steps are known, or the samples have no times.
    fn of(selection: &Selection<'_>) -> Option<Self> {
        let loops = Loops::of(selection)?;
        if selection.samples().any(|sample| sample.time_ns.is_none()) {
            return None;
        }
        let (capture, functions) = (selection.capture(), selection.functions());
        let samples = loops.sample_weights(selection);
        let with = |sums: Vec<Amount>, weights: &StackWeights| -> Vec<u128> {
            sums.into_iter().chain([weights.no_stack]).map(|amount| amount.weight).collect()
        };
        let blocked = selection.has_switches().then(|| loops.blocked_weights(selection));
        Some(Self {
            steps: loops.main().count() as u64,
            loops: loops.count(),
            total: samples.total().weight,
            own: with(samples.self_by_function(capture, functions), &samples),
            inclusive: with(samples.inclusive_by_function(capture, functions), &samples),
            attributed: samples.nearest_owned_by_function(functions).into_iter().map(|amount| amount.weight).collect(),
            blocked: blocked.map(|blocked| with(blocked.attributed_by_function(functions), &blocked)),
        })
    }

    fn values(&self, function: Option<FunctionId>, ownership_known: bool) -> [Value; 4] {
        let row = function.map_or(self.own.len() - 1, FunctionId::index);
        let per_step = |weight: u128| weight as f64 / self.steps as f64;
        let attributed = if ownership_known { Some(self.attributed.get(row).copied().unwrap_or(0)) } else { None };
        [
            per_step(self.own[row]).into(),
            per_step(self.inclusive[row]).into(),
            attributed.map(per_step).into(),
            self.blocked.as_ref().map(|blocked| per_step(blocked[row])).into(),
        ]
    }

    fn note(&self, selection: &Selection<'_>) -> String {
        let unit = selection.event().map_or("", |event| event.unit.as_str());
        let weight = quantity::weight((self.total as f64 / self.steps as f64).round() as u128, unit);
        let own = if self.loops > 1 { ", each thread by those of its own loop" } else { "" };
        format!("Per step: {weight} over {} steps{own}.", quantity::grouped(self.steps.into()))
    }
}

fn per_step_columns(selection: &Selection<'_>) -> [Column; 4] {
    let unit = selection.event().map_or("", |event| event.unit.as_str());
    let kind = columns::weight("", unit, "").kind;
    let kind = if kind == Kind::Count { Kind::Number } else { kind };
    let weight = |name: &str, doc: &str| Column::new(name, kind, format!("{unit}/step"), doc);
    let blocked = "Blocked time per simulation step that is attributed to the function, of all selected threads (to the nearest function of the program, where nothing is owned).";
    [
        weight("self_per_step", "Self weight per simulation step, of samples that belong to one.").essential(),
        weight("inclusive_per_step", "Inclusive weight per simulation step.").detail(),
        weight("attributed_per_step", "Attributed weight per simulation step."),
        Column::new("blocked_per_step", Kind::Duration, "ns/step", blocked),
    ]
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

fn table_columns(selection: &Selection<'_>) -> Vec<Column> {
    let unit = selection.event().map_or("", |event| &event.unit);
    let mut columns = columns::function().to_vec();
    columns.extend([
        columns::count(
            "count",
            "samples",
            "Number of samples that hold the function; missing where only sums of weights were imported.",
        ).detail(),
        columns::weight("self", unit, "Weight of the samples whose leaf is the function.").essential(),
        columns::weight("inclusive", unit, "Weight of the samples that hold the function, recursion counted once."),
        columns::weight(
            "attributed",
            unit,
            "Weight of the samples whose nearest owned function, from leaf to root, is this one; missing where nothing was said about ownership.",
        ),
        columns::percent("self_share", "Self in percent of the selected total.").essential(),
        columns::percent("inclusive_share", "Inclusive in percent of the selected total.").detail(),
        columns::percent("attributed_share", "Attributed in percent of the selected total.").detail(),
        columns::count("self_count", "samples", "Number of samples whose leaf is the function.").detail(),
        columns::text(
            "source",
            "Source file and line within the function at which most of its self weight lies (of its inclusive weight, where it has none).",
        ).detail(),
    ]);
    columns
}

fn row(selection: &Selection<'_>, hotspots: &Hotspots, cost: &Cost, places: &[Option<FrameId>]) -> Vec<Value> {
    let functions = selection.functions();
    let known = functions.ownership_known();
    let counted = |amount: Amount| Value::from(hotspots.counts_known.then_some(amount.count));
    let share = |amount: Amount| Value::from(amount.percent_of(hotspots.total));
    let mut row = match cost.function {
        Some(id) => columns::function_values(functions.get(id), known),
        None => columns::no_function_values(NO_STACK),
    }
    .to_vec();
    let place = cost.function.and_then(|id| places[id.index()]);
    row.extend([
        counted(cost.inclusive),
        cost.own.weight.into(),
        cost.inclusive.weight.into(),
        known.then_some(cost.attributed.weight).into(),
        share(cost.own),
        share(cost.inclusive),
        if known { share(cost.attributed) } else { Value::Missing },
        counted(cost.own),
        place.map_or(String::new(), |frame| source_of(selection.capture(), frame)).into(),
    ]);
    row
}

/// A source file and line.
type Line<'a> = (Option<&'a str>, Option<u32>);

/// What is at a line: self weight, the weight below, the first line of equal ones, and a frame there.
type AtLine<'a> = (u128, u128, Reverse<Line<'a>>, FrameId);

/// For each function the frame with a source at which most of it lies: by self weight, then by the weight below.
fn hottest_places(selection: &Selection<'_>, weights: &StackWeights) -> Vec<Option<FrameId>> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let subtrees = weights.subtrees(capture);
    let mut by_frame = vec![(0_u128, 0_u128); capture.frames.len()];
    for (index, node) in capture.stacks.iter().enumerate() {
        let sums = &mut by_frame[node.frame.index()];
        sums.0 += weights.own[index].weight;
        sums.1 += subtrees[index].weight;
    }
    // Frames of one function differ by address too; lines are what is asked for.
    let mut by_line: FxHashMap<(FunctionId, Line<'_>), (u128, u128, FrameId)> = FxHashMap::default();
    for (index, frame) in capture.frames.iter().enumerate().filter(|(_, frame)| frame.file.is_some()) {
        let id = FrameId::from_index(index);
        let line = by_line.entry((functions.of_frame(id), (frame.file.as_deref(), frame.line))).or_insert((0, 0, id));
        line.0 += by_frame[index].0;
        line.1 += by_frame[index].1;
    }
    let mut best: Vec<Option<AtLine<'_>>> = vec![None; functions.len()];
    for ((function, line), (own, below, frame)) in by_line {
        let candidate = (own, below, Reverse(line), frame);
        let best = &mut best[function.index()];
        if best.as_ref().is_none_or(|best| *best < candidate) {
            *best = Some(candidate);
        }
    }
    best.into_iter().map(|best| best.map(|(.., frame)| frame)).collect()
}

fn notes(selection: &Selection<'_>, hotspots: &Hotspots) -> Vec<Note> {
    let mut notes = Vec::new();
    let Some(event) = selection.event() else {
        notes.push("The capture has no samples of any event.".into());
        return notes;
    };
    let total = hotspots.total;
    // `157 G cycles of cycles` says one thing twice.
    let of_event = if event.name == event.unit { String::new() } else { format!(" of {}", event.name) };
    let weight = quantity::weight(total.weight, &event.unit);
    notes.push(match hotspots.counts_known {
        true if event.unit == "samples" => format!("Total: {weight}{of_event}."),
        true => {
            let samples = quantity::plural(total.count as usize, "sample");
            format!("Total: {weight} in {samples}{of_event}.")
        }
        false => format!(
            "Total: {weight}{of_event}, imported as sums: the number of samples is not known, so no difference can be tested."
        ),
    }.into());
    if selection.functions().ownership_known() {
        notes.push(
            format!(
                "Under owned code: {} ({}); the rest has no owned function on its stack.",
                quantity::weight(hotspots.under_owned.weight, &event.unit),
                quantity::percent(hotspots.under_owned.percent_of(total).unwrap_or(0.0)),
            )
            .into(),
        );
    }
    notes.extend(ownership_note(std::slice::from_ref(selection)));
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
    (!others.is_empty())
        .then(|| format!("The capture also has samples of {}; choose with --event.", others.join(", ")).into())
}

/// The table `edges`: for each owned function, the leaves that its attributed weight was spent in.
///
/// The weights of one caller add up to what is attributed to it; the leaf is the caller where it spent the weight
/// itself.
pub fn edges(selection: &Selection<'_>) -> Table {
    let (capture, functions) = (selection.capture(), selection.functions());
    let weights = StackWeights::of_samples(selection);
    let total = weights.total();
    let mut sums: FxHashMap<(FunctionId, FunctionId), Amount> = FxHashMap::default();
    for (node, amount) in weights.occupied() {
        if let Some(caller) = functions.nearest_owned(node) {
            *sums.entry((caller, functions.of_node(capture, node))).or_default() += amount;
        }
    }
    let mut edges: Vec<((FunctionId, FunctionId), Amount)> = sums.into_iter().collect();
    let identity = |id: FunctionId| functions.get(id).identity();
    edges.sort_by_cached_key(|((caller, leaf), amount)| (Reverse(amount.weight), identity(*caller), identity(*leaf)));
    let unit = selection.event().map_or("", |event| &event.unit);
    let mut table = Table::new(
        "edges",
        "Attributed cost by owned function and the leaf it was spent in",
        vec![
            columns::text("caller", "The nearest owned function.").essential(),
            columns::text("caller_module", "Its module.").detail(),
            columns::text("leaf", "The function that the samples end in.").essential(),
            columns::text("leaf_module", "Its module.").detail(),
            columns::count("count", "samples", "Number of samples; missing where only sums of weights were imported.")
                .detail(),
            columns::weight("weight", unit, "Weight of the samples.").essential(),
            columns::percent("share", "Weight in percent of the selected total.").essential(),
        ],
    );
    for ((caller, leaf), amount) in edges {
        let (caller, leaf) = (functions.get(caller), functions.get(leaf));
        table.push(vec![
            (&*caller.name).into(),
            (&*caller.module).into(),
            (&*leaf.name).into(),
            (&*leaf.module).into(),
            weights.counts_known.then_some(amount.count).into(),
            amount.weight.into(),
            amount.percent_of(total).into(),
        ]);
    }
    table.add_notes(edges_note(selection));
    table
}

/// Why there may be no edges.
fn edges_note(selection: &Selection<'_>) -> Option<Note> {
    if selection.functions().ownership_known() {
        return ownership_note(std::slice::from_ref(selection));
    }
    Some(
        "No code is said to be owned, so nothing is attributed: name your own with --owned 'gz::*', --owned-module or --owned-source, or `owned` in the lab file."
            .into(),
    )
}

/// Most rows of the table in a report.
pub const MOST_ROWS: usize = 500;

/// What each function costs.
pub struct HotSpots;

impl Analysis for HotSpots {
    fn title(&self) -> &'static str {
        "Hot spots"
    }

    fn views(&self) -> &'static [View] {
        &[
            View {
                name: "hotspots",
                question: "What does each function cost: by itself, with its callees, and as the nearest owned caller?",
                tables: |selection, _| vec![table(selection, &Options::default())],
            },
            View {
                name: "edges",
                question: "Which owned function pays for which leaf?",
                tables: |selection, _| vec![edges(selection)],
            },
        ]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Cpu]
    }

    fn report(&self, selection: &Selection<'_>) -> Vec<ReportSection> {
        let section = ReportSection::of_tables("Hot spots", vec![table(selection, &Options::default())]);
        section.map(|section| section.most_rows(MOST_ROWS)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    /// The small case of the samples, with every trap of the study in it.
    const MICRO: &str = "
        main;a;b;a;c 10
        main;a;b 5
        main;void gz::sim::Foo<int, std::pair<long, long> >::Run;std::map<gz::math::X, int>::find 20
        main;gz::sim::Bar::Step;std::function<bool 7
        main;a;operator new 3
        worker 4
        worker;[unknown];[unknown] 6
        worker;_[i];malloc 45
        ";

    fn hotspots(capture: &Capture, order: Order) -> Table {
        drawn::selected(capture, &["gz::"], |selection| table(selection, &Options { order, ..Options::default() }))
    }

    #[test]
    fn self_inclusive_and_attributed_of_the_small_case() {
        let table = hotspots(&drawn::folded(MICRO), Order::SelfWeight);
        assert_eq!(
            cells(&table, &["function", "self", "inclusive", "attributed", "count", "self_share"]),
            [
                "malloc | 45 | 45 | 0 | 1 | 45",
                "std::map<gz::math::X, int>::find | 20 | 20 | 0 | 1 | 20",
                "c | 10 | 10 | 0 | 1 | 10",
                "std::function<bool | 7 | 7 | 0 | 1 | 7",
                "[unknown] | 6 | 6 | 0 | 1 | 6",
                "b | 5 | 15 | 0 | 2 | 5",
                "(no stack) | 4 | 4 | 0 | 1 | 4",
                "operator new | 3 | 3 | 0 | 1 | 3",
                "_[i] | 0 | 45 | 0 | 1 | 0",
                "a | 0 | 18 | 0 | 3 | 0",
                "gz::sim::Bar::Step | 0 | 7 | 7 | 1 | 0",
                "void gz::sim::Foo<int, std::pair<long, long> >::Run | 0 | 20 | 20 | 1 | 0",
            ]
        );
        assert_eq!(
            table.notes,
            [
                "Total: 100 ns in 8 samples of cpu-clock.",
                "Under owned code: 27 ns (27.00 %); the rest has no owned function on its stack.",
            ]
        );
    }

    #[test]
    fn categories_and_ownership_are_shown_and_sorting_by_attributed_puts_owned_code_first() {
        let table = hotspots(&drawn::folded(MICRO), Order::Attributed);
        assert_eq!(
            cells(&table, &["function", "owned", "category"])[..4],
            [
                "void gz::sim::Foo<int, std::pair<long, long> >::Run | true | native",
                "gz::sim::Bar::Step | true | native",
                "(no stack) | - | unknown",
                "[unknown] | false | unknown",
            ]
        );
    }

    #[test]
    fn patterns_that_own_nothing_and_ownership_that_nobody_told_are_noted() {
        let capture = drawn::folded("main;gz::Run;find 5");
        let notes = |owned: &[&str]| drawn::selected(&capture, owned, |selection| edges(selection).notes);
        assert!(notes(&["gz::"]).is_empty());
        let nothing = "No function matches the owned pattern `nope::*`. Largest namespaces here: `gz::*`.";
        assert_eq!(notes(&["nope::*"]), [nothing]);
        assert!(notes(&[])[0].contains("--owned 'gz::*'"));
        let table = drawn::selected(&capture, &["nope::*"], |selection| table(selection, &Options::default()));
        assert!(table.notes.iter().any(|note| note == nothing), "{:?}", table.notes);
    }

    #[test]
    fn totals_are_said_in_units_that_people_read() {
        let total = |event: Event, weight: u64| {
            let capture = Drawing::new().folded(event, &format!("main;a {weight}")).capture;
            let table = hotspots(&capture, Order::SelfWeight);
            (table.title.clone(), table.notes[0].to_string().split(',').next().unwrap().to_owned())
        };
        assert_eq!(
            total(Event::sampled("cpu-clock", "ns"), 5_819_458_218),
            ("On-CPU time by function".to_owned(), "Total: 5.82 s in 1 sample of cpu-clock.".to_owned())
        );
        assert_eq!(
            total(Event::weighed("weight", "weight"), 156_578_009_190),
            ("Weight of samples by function".to_owned(), "Total: 157 G weight".to_owned())
        );
    }

    /// Erratum 1.
    #[test]
    fn sums_of_weights_have_no_count() {
        let capture = Drawing::new().folded(Event::weighed("cycles", "cycles"), "main;a 156578009190").capture;
        let table = hotspots(&capture, Order::SelfWeight);
        assert_eq!(cells(&table, &["function", "count", "self", "self_count"]), ["a | - | 156578009190 | -"]);
        assert_eq!(table.columns[table.column("self").unwrap()].unit, "cycles");
        assert!(table.notes[0].contains("the number of samples is not known"), "{}", table.notes[0]);
    }

    /// Errata 2 and 13.
    #[test]
    fn a_leaf_is_attributed_to_its_nearest_owned_caller_and_not_to_wrappers() {
        let capture = drawn::folded(
            "
            main;gz::Run;gz::Step;gz::EntityMatches;_Hashtable::find 275
            main;gz::Run;gz::Step;gz::Write;_Hashtable::find 2
            main;gz::Run;gz::Step 3
            ",
        );
        let table = hotspots(&capture, Order::Attributed);
        assert_eq!(
            cells(&table, &["function", "attributed", "inclusive"])[..4],
            ["gz::EntityMatches | 275 | 275", "gz::Step | 3 | 280", "gz::Write | 2 | 2", "_Hashtable::find | 0 | 277",]
        );
        let edges = drawn::selected(&capture, &["gz::"], edges);
        assert_eq!(
            cells(&edges, &["caller", "leaf", "weight"]),
            [
                "gz::EntityMatches | _Hashtable::find | 275",
                "gz::Step | gz::Step | 3",
                "gz::Write | _Hashtable::find | 2",
            ]
        );
    }

    /// Erratum 7.
    #[test]
    fn names_with_spaces_are_whole() {
        let name = "void gz::Each<gz::A, std::pair<long, long> >::operator new [clone .cold]";
        let table = hotspots(&drawn::folded(&format!("main;{name} 1")), Order::SelfWeight);
        assert_eq!(cells(&table, &["function"]), [name]);
    }

    /// Erratum 16.
    #[test]
    fn ties_are_in_the_order_of_names() {
        let table = hotspots(&drawn::folded("main;b 1\nmain;c 1\nmain;a 1\nmain;d 2"), Order::SelfWeight);
        assert_eq!(cells(&table, &["function"]), ["d", "a", "b", "c"]);
    }

    #[test]
    fn without_ownership_nothing_is_said_about_it() {
        let capture = drawn::folded("main;gz::a 1");
        let table = drawn::selected(&capture, &[], |selection| table(selection, &Options::default()));
        assert_eq!(cells(&table, &["owned", "attributed", "attributed_share"]), ["- | - | -"]);
    }

    #[test]
    fn the_source_is_the_line_with_most_self_weight_whatever_its_address() {
        let capture = drawn::columns(
            "
            main                  main                  main                  main
            step [file:a.cc:10]   step [file:a.cc:20]   step [file:a.cc:20]   step [file:a.cc:5]
                                                                              find
            4                     3                     2                     9
            ",
        );
        let table = hotspots(&capture, Order::Inclusive);
        assert_eq!(cells(&table, &["function", "source"])[0], "step | a.cc:20");
    }

    #[test]
    fn where_steps_are_known_costs_are_per_step_too() {
        let capture = Drawing::new()
            .window(0..1_000)
            .lived("main", 0..1_000, None)
            .steps("main", 100, 100, 4, 1)
            .folded(
                Event::sampled("cpu-clock", "ns"),
                "@50 main;gz::Load 900\n@150 main;gz::Step;find 40\n@250 main;gz::Step 20",
            )
            .blocked("main", 420..620, "gz::Step;gz::Pause;nanosleep")
            .capture;
        let table = hotspots(&capture, Order::SelfWeight);
        assert_eq!(
            cells(
                &table,
                &["function", "self", "self_per_step", "inclusive_per_step", "attributed_per_step", "blocked_per_step"]
            ),
            ["gz::Load | 900 | 0 | 0 | 0 | 0", "find | 40 | 10 | 10 | 0 | 0", "gz::Step | 20 | 5 | 15 | 15 | 0",]
        );
        assert_eq!(table.notes.last().unwrap(), "Per step: 15 ns over 4 steps.");
        let stepless = hotspots(&drawn::folded("main;a 1"), Order::SelfWeight);
        assert_eq!(stepless.column("self_per_step"), None);
    }

    #[test]
    fn only_owned_rows_are_kept_on_demand() {
        let capture = drawn::folded(MICRO);
        let options = Options { order: Order::Attributed, rows: Rows::Owned };
        let table = drawn::selected(&capture, &["gz::"], |selection| table(selection, &options));
        assert_eq!(table.rows.len(), 2);
    }

    #[test]
    fn a_capture_without_events_gives_an_empty_table_that_says_so() {
        let table = hotspots(&Capture::default(), Order::SelfWeight);
        assert!(table.rows.is_empty());
        assert_eq!(table.notes, ["The capture has no samples of any event."]);
    }
}
