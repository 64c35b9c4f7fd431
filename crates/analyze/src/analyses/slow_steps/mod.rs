//! Slow steps: what happens in the slowest steps and not in typical steps.
//!
//! A profile of a whole run is a profile of its typical steps: a cost of 20 ms in every 50th step is lost in it. This
//! analysis splits the steps by their time, and compares each function's cost per slow step with its cost per typical
//! step.
//!
//! # Which steps
//! Steps are split by one of two times. Both exclude [pacing](crate::analyses::step_times), so that it works for a loop with
//! a fixed rate, whose steps all take equally long on the clock:
//!
//! - *work*: the time without waits for a CPU. With wake-ups, these are the CPU waits on the
//!   [critical path](crate::analyses::critical_path), including those of other threads; else those of the loop's thread;
//! - *clock*: the whole time.
//!
//! The loop's first step loads what the others use, and is left out. *Typical* steps are those from the 40th to the 60th
//! percentile. Unless the user gives a percentile, *slow* steps are
//!
//! 1. those beyond a *natural gap* in the work: a separate group of steps that do more than all others ([`natural_gap`]);
//! 2. if there is none, those beyond a gap in the time on the clock;
//! 3. if there is none, those from the 95th percentile on, on the clock.
//!
//! Why not always p95: if 2 % of the steps do extra work, the slowest 5 % are these and another 3 % that do nothing
//! special, and each cost in the slow set is diluted to two fifths. With the gap, the cost is that of a slow step. Without
//! a gap, `in_slow` is the share of slow steps that have the function at all. Why work first: a busy machine makes any step
//! slow now and then, through no fault of a function; the table of parts shows that delay.
//!
//! # What is compared
//! For each function, the mean per slow step minus the mean per typical step, of
//!
//! - its on-CPU time on all threads: attributed, self and inclusive, as [`hotspots`](crate::analyses::hotspots) defines them
//!   (attributed to the nearest function of the program if nothing is owned);
//! - the blocked time of the *loop's thread* attributed to it, without [pacing](crate::analyses::step_times). For other
//!   threads it would only show that idle threads are idle for longer in longer steps.
//!
//! Samples and waits belong to the step in whose interval they fall ([`steps`](crate::query::steps)).
//!
//! The 95 % interval is BCa, from [resampling blocks of consecutive steps](stepscope_stats::bootstrap); a step stays in its
//! set. The interval is valid for one row: of a hundred rows of noise, five exclude zero.
//!
//! # Order
//! Rows are sorted by the difference in attributed on-CPU time plus that of blocked time. Waits for other threads (locks,
//! conditions, any wait that a thread ended) do not count here: the work of the other thread has rows of its own.

mod sets;

use std::cmp::Reverse;

use stepscope_model::{
    CallTree, Dimension, Note, NoteValue, StackId, Table, TreeDifference, Value, Wait, note, quantity,
};
use stepscope_stats::Estimate;
use stepscope_stats::bootstrap::{self, BlockBootstrap};

use crate::analyses::calltree::{self, Evidence};
use crate::analyses::critical_path::Paths;
use crate::analyses::step_times::{Pacing, StepParts, no_steps};
use crate::analysis::{Analysis, AnalysisOption, OptionValues, Part, ReportSection, View};
use crate::query::functions::{FunctionId, NO_STACK};
use crate::query::off_cpu::OffCpu;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::wait_class::WaitClass;
use crate::query::waits::blocked_ns;
use crate::query::wake_ups::WakeUps;
use crate::query::weights::{Amount, StackWeights, percent};
use crate::{columns, notes};

use sets::{FEWEST_SLOW, Side};
pub use sets::{Measure, Sets, Slow, natural_gap};

/// How slow steps are found and compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Which steps are slow.
    pub slow: Slow,
    /// Resamples for the intervals.
    pub replicates: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { slow: Slow::default(), replicates: bootstrap::REPLICATES }
    }
}

/// With fewer slow steps than this, 95 % intervals cover the true value in only 75 to 90 % of simulated recordings.
const FEW_SLOW: usize = 10;

/// Rows at the top, and at the bottom, that get an interval.
const INTERVALS: (usize, usize) = (100, 30);

const CONFIDENCE: f64 = 0.95;

/// Fixed, so that equal captures have equal intervals.
const SEED: u64 = 0x5ca1_ab1e;

/// How long each step waits for a CPU.
struct Delays {
    ns: Vec<u64>,
    /// Whether these are the CPU waits on the critical path, or those of the loop's thread alone.
    on_path: bool,
}

impl Delays {
    /// `None` if it was not recorded.
    fn of(selection: &Selection<'_>, loops: &Loops, parts: &StepParts, off_cpu: &OffCpu<'_>) -> Option<Self> {
        let spent = parts.spent.as_ref()?;
        if WakeUps::of(selection) == WakeUps::Unrecorded {
            return Some(Self { ns: spent.iter().map(|spent| spent.runnable).collect(), on_path: false });
        }
        let paths = Paths::of(selection.capture(), loops.main(), off_cpu);
        Some(Self { ns: (0..loops.main().count()).map(|position| paths.delay(position)).collect(), on_path: true })
    }

    fn taken_from(&self, times: &[u64]) -> Vec<u64> {
        times.iter().zip(&self.ns).map(|(time, delay)| time.saturating_sub(*delay)).collect()
    }
}

/// The inputs of all tables.
struct Comparison<'a> {
    selection: &'a Selection<'a>,
    loops: Loops,
    parts: StepParts,
    delays: Option<Delays>,
    sets: Sets,
    off_cpu: OffCpu<'a>,
}

impl<'a> Comparison<'a> {
    fn of(selection: &'a Selection<'a>, options: &Options) -> Result<Self, Note> {
        let loops = Loops::of(selection).ok_or_else(|| no_steps(selection))?;
        let off_cpu = OffCpu::of(selection.capture());
        let parts = StepParts::of(selection, &loops, loops.main(), &off_cpu);
        let clock = parts.unpaced();
        let delays = Delays::of(selection, &loops, &parts, &off_cpu);
        let work = delays.as_ref().map(|delays| delays.taken_from(&clock));
        let sets = Sets::of(loops.main().after_first(), &clock, work.as_deref(), options.slow)?;
        Ok(Self { selection, loops, parts, delays, sets, off_cpu })
    }

    /// The samples in slow and typical steps: position of the step, stack, weight, number of samples.
    fn samples(&self) -> impl Iterator<Item = (usize, Option<StackId>, Amount)> + '_ {
        let event = self.selection.event();
        self.selection.samples().filter_map(move |sample| {
            let position = self.loops.main_step_of(sample)?;
            self.sets.of_position(position)?;
            let count = event.and_then(|event| event.count_of(sample.weight)).unwrap_or(0);
            Some((position, sample.stack, Amount { weight: sample.weight.into(), count }))
        })
    }

    /// The waits of the loop's thread in slow and typical steps, pacing left out: position of the step, the part of the
    /// wait in it, and whether it waited for another thread.
    fn waits(&self) -> Vec<(usize, Wait, bool)> {
        let mut pacing = Pacing::of(self.selection, self.loops.main(), &self.off_cpu);
        let mut found = Vec::new();
        for (position, step) in self.loops.main().rows().iter().enumerate() {
            if self.sets.of_position(position).is_none() || !self.selection.has_thread(step.thread) {
                continue;
            }
            let range = step.start_ns..step.end_ns;
            for wait in self.off_cpu.within(step.thread, range).filter(|wait| blocked_ns(wait) > 0) {
                if self.selection.has_stack(wait.stack) && !pacing.is_pacing(&wait) {
                    let class = wait.stack.map(|stack| pacing.class(stack));
                    let of_thread =
                        wait.waker.is_some() || matches!(class, Some(WaitClass::Lock | WaitClass::Condition));
                    found.push((position, wait, of_thread));
                }
            }
        }
        found
    }

    fn count(&self, side: Side) -> usize {
        match side {
            Side::Slow => self.sets.slow.len(),
            Side::Typical => self.sets.typical.len(),
        }
    }

    /// Mean per slow step less mean per typical step.
    fn difference(&self, sums: [f64; 2]) -> f64 {
        sums[0] / self.count(Side::Slow) as f64 - sums[1] / self.count(Side::Typical) as f64
    }
}

/// Sums over slow and over typical steps, by function; the last one is for samples without a stack.
struct Sums {
    own: [Vec<Amount>; 2],
    inclusive: [Vec<Amount>; 2],
    attributed: [Vec<Amount>; 2],
    blocked: [Vec<Amount>; 2],
    /// The part of `blocked` that was not for another thread.
    blocked_alone: [Vec<Amount>; 2],
}

impl Sums {
    fn of(comparison: &Comparison<'_>, waits: &[(usize, Wait, bool)]) -> Self {
        let (capture, functions) = (comparison.selection.capture(), comparison.selection.functions());
        let none = || [StackWeights::none(capture), StackWeights::none(capture)];
        let (mut cpu, mut blocked, mut alone) = (none(), none(), none());
        let side = |position: usize| comparison.sets.of_position(position).expect("a step of one of the sets") as usize;
        for (position, stack, amount) in comparison.samples() {
            *cpu[side(position)].at(stack) += amount;
        }
        for (position, wait, for_thread) in waits {
            let amount = Amount { weight: blocked_ns(wait).into(), count: 1 };
            *blocked[side(*position)].at(wait.stack) += amount;
            if !for_thread {
                *alone[side(*position)].at(wait.stack) += amount;
            }
        }
        let with = |mut sums: Vec<Amount>, no_stack: Amount| {
            sums.push(no_stack);
            sums
        };
        let attributed = |weights: &StackWeights| with(weights.attributed_by_function(functions), weights.no_stack);
        Self {
            own: cpu.each_ref().map(|one| with(one.self_by_function(capture, functions), one.no_stack)),
            inclusive: cpu.each_ref().map(|one| with(one.inclusive_by_function(capture, functions), one.no_stack)),
            attributed: cpu.each_ref().map(attributed),
            blocked: blocked.each_ref().map(attributed),
            blocked_alone: alone.each_ref().map(attributed),
        }
    }

    /// Rows with anything in them.
    fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        let any = |row: &usize| {
            let of = |sums: &[Vec<Amount>; 2]| !sums[0][*row].is_zero() || !sums[1][*row].is_zero();
            of(&self.inclusive) || of(&self.blocked)
        };
        (0..self.own[0].len()).filter(any)
    }
}

fn weights(sums: &[Vec<Amount>; 2], row: usize) -> [f64; 2] {
    [sums[0][row].weight as f64, sums[1][row].weight as f64]
}

/// The values of one function by step, as the bootstrap takes them.
#[derive(Debug, Clone, Default)]
struct ByStep {
    own: Vec<(u32, f64)>,
    inclusive: Vec<(u32, f64)>,
    attributed: Vec<(u32, f64)>,
    blocked: Vec<(u32, f64)>,
}

/// The tables of the view: what steps are made of, then what functions cost in them.
pub fn tables(selection: &Selection<'_>, options: &Options) -> Vec<Table> {
    match Comparison::of(selection, options) {
        Err(why) => {
            let mut table = functions_table();
            table.note(why);
            vec![table]
        }
        Ok(comparison) => {
            let bootstrap = BlockBootstrap::new(comparison.sets.of_step.clone(), options.replicates, SEED);
            vec![parts(&comparison, &bootstrap), functions(&comparison, &bootstrap)]
        }
    }
}

/// The table `slow_steps_parts`: what the difference between slow and typical steps is made of.
fn parts(comparison: &Comparison<'_>, bootstrap: &BlockBootstrap) -> Table {
    let mut table = Table::new(
        "slow_steps_parts",
        "Slow and typical steps, by part",
        vec![
            columns::text(
                "quantity",
                "Part of a step. Running, runnable, blocked and pacing of the loop's thread add up to the step.",
            )
            .essential(),
            columns::duration("slow", "Mean of the slow steps.").essential(),
            columns::duration("typical", "Mean of the typical steps.").essential(),
            columns::duration("difference", "Slow minus typical.").essential(),
            columns::duration("low", "Lower bound of the difference's 95 % confidence interval."),
            columns::duration("high", "Upper bound."),
        ],
    );
    let parts = &comparison.parts;
    let mut add = |name: &str, values: &[u64]| {
        let mean = |positions: &[usize]| {
            positions.iter().map(|position| values[*position] as f64).sum::<f64>() / positions.len() as f64
        };
        let by_step: Vec<(u32, f64)> =
            values.iter().enumerate().map(|(position, value)| (position as u32, *value as f64)).collect();
        let estimate = bootstrap.difference_of_means(&by_step, CONFIDENCE).filter(|_| enough(comparison));
        let (slow, typical) = (mean(&comparison.sets.slow), mean(&comparison.sets.typical));
        let [low, high] = ends(estimate);
        table.push(vec![name.into(), slow.into(), typical.into(), (slow - typical).into(), low, high]);
    };
    add("step", &parts.durations);
    if let Some(spent) = &parts.spent {
        let of = |part: fn(&crate::query::off_cpu::Spent) -> u64| spent.iter().map(part).collect::<Vec<u64>>();
        add("loop thread running", &of(|spent| spent.running));
        add("loop thread runnable", &of(|spent| spent.runnable));
        let waiting = spent.iter().zip(&parts.pacing).map(|(spent, pacing)| spent.blocked.saturating_sub(*pacing));
        add("loop thread blocked, not pacing", &waiting.collect::<Vec<_>>());
        add("pacing", &parts.pacing);
    }
    if let Some(delays) = comparison.delays.as_ref().filter(|delays| delays.on_path) {
        add("waiting for a CPU on the critical path", &delays.ns);
    }
    if let Some(cpu) = &parts.cpu {
        add(if parts.cpu_is_exact { "CPU of all threads" } else { "CPU of all threads, sampled" }, cpu);
    }
    table.add_notes(set_notes(comparison));
    table
}

fn enough(comparison: &Comparison<'_>) -> bool {
    comparison.sets.slow.len() >= FEWEST_SLOW
}

fn ends(estimate: Option<Estimate>) -> [Value; 2] {
    [estimate.map(|estimate| estimate.low).into(), estimate.map(|estimate| estimate.high).into()]
}

fn set_notes(comparison: &Comparison<'_>) -> Vec<Note> {
    let sets = &comparison.sets;
    let of = comparison.loops.main().after_first().len();
    let without = match (sets.measure, comparison.parts.is_paced()) {
        (Measure::Work, true) => " without pacing and CPU waits",
        (Measure::Work, false) => " without CPU waits",
        (Measure::Clock, true) => " without pacing",
        (Measure::Clock, false) => "",
    };
    let slow = NoteValue::plural(sets.slow.len(), "step");
    let share = NoteValue::percent(percent(sets.slow.len() as u128, of as u128).unwrap_or(0.0));
    let threshold = NoteValue::ns(sets.threshold_ns);
    let mut notes = vec![
        match sets.natural {
            true => note!(
                Fact,
                "Slow: {} ({}) of {} or more{}, beyond a gap in the step times.",
                slow,
                share,
                threshold,
                without
            ),
            false => note!(
                Fact,
                "Slow: the slowest {} % ({}, {} or more{}). No natural cut-off was found.",
                (100.0 - sets.percentile).to_string(),
                slow,
                threshold,
                without
            ),
        },
        note!(
            Fact,
            "Typical: {} of {} to {}{} (p40 to p60). The loop's first step is in neither set.",
            NoteValue::plural(sets.typical.len(), "step"),
            NoteValue::ns(sets.typical_ns.0),
            NoteValue::ns(sets.typical_ns.1),
            without
        ),
    ];
    if sets.natural && sets.others_above_p95 > 0 {
        notes.push(note!(
            Fact,
            "A cut-off at p95 would add {} without extra {}.",
            NoteValue::plural(sets.others_above_p95, "step"),
            if sets.measure == Measure::Work { "work" } else { "time" }
        ));
    }
    match sets.slow.len() {
        0..FEWEST_SLOW => notes.push(note!(
            Limit,
            "Fewer than {} slow steps: no intervals. Record for longer.",
            NoteValue::number(FEWEST_SLOW)
        )),
        FEWEST_SLOW..FEW_SLOW => notes.push(note!(
            Limit,
            "Fewer than {} slow steps: intervals are too narrow, because few slow steps show little of how they vary. Record \
             for longer.",
            NoteValue::number(FEW_SLOW)
        )),
        _ => {}
    }
    notes
}

fn functions_table() -> Table {
    let [function, module, owned, category] = columns::function();
    let mut columns = vec![function, module.detail(), owned, category];
    columns.extend([
        columns::duration("difference", "Attributed CPU time per slow step minus that per typical step (of the nearest owned function; of the program, if nothing is owned).").essential(),
        columns::duration("low", "Lower bound of its 95 % confidence interval; missing in the middle of a long table and with fewer than 5 slow steps."),
        columns::duration("high", "Upper bound."),
        columns::duration("slow", "Attributed CPU time per slow step.").essential(),
        columns::duration("typical", "Attributed CPU time per typical step.").essential(),
        columns::duration("blocked_difference", "Blocked time of the loop's thread attributed to it, per slow step minus per typical step, without pacing."),
        columns::duration("blocked_low", "Lower bound of its 95 % confidence interval.").detail(),
        columns::duration("blocked_high", "Upper bound.").detail(),
        columns::duration("blocked_slow", "That blocked time per slow step.").detail(),
        columns::duration("blocked_typical", "That blocked time per typical step.").detail(),
        columns::duration("self_difference", "Self CPU time per slow step minus that per typical step."),
        columns::duration("self_low", "Lower bound of its 95 % confidence interval.").detail(),
        columns::duration("self_high", "Upper bound.").detail(),
        columns::duration("inclusive_difference", "Inclusive CPU time per slow step minus that per typical step."),
        columns::duration("inclusive_low", "Lower bound of its 95 % confidence interval.").detail(),
        columns::duration("inclusive_high", "Upper bound.").detail(),
        columns::percent("in_slow", "Share of slow steps with a sample of it, or a wait on the loop's thread."),
        columns::percent("in_typical", "The same share of typical steps.").detail(),
        columns::text("verdict", "`more` or `less` in slow steps, if the interval of attributed CPU or blocked time excludes 0; else `inconclusive`.").essential(),
    ]);
    Table::new("slow_steps", "Slow steps against typical steps, per step", columns)
}

/// The table `slow_steps`.
fn functions(comparison: &Comparison<'_>, bootstrap: &BlockBootstrap) -> Table {
    let waits = comparison.waits();
    let sums = Sums::of(comparison, &waits);
    let functions = comparison.selection.functions();
    let count = functions.len();
    let id_of: Vec<FunctionId> = functions.all().map(|(id, _)| id).collect();
    let name = |row: usize| if row < count { &*functions.get(id_of[row]).name } else { NO_STACK };
    let score = |row: &usize| {
        comparison.difference(weights(&sums.attributed, *row))
            + comparison.difference(weights(&sums.blocked_alone, *row))
    };
    let mut rows: Vec<(usize, f64)> = sums.rows().map(|row| (row, score(&row))).collect();
    let then = |row: usize| Reverse(comparison.difference(weights(&sums.inclusive, row)).round() as i64);
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| (then(a.0), name(a.0)).cmp(&(then(b.0), name(b.0)))));
    let by_step = by_step(comparison, &waits, &with_interval(&rows, count + 1));
    let mut table = functions_table();
    let known = functions.ownership_known();
    for (row, _) in &rows {
        let mut cells = match row {
            row if *row < count => columns::function_values(functions.get(id_of[*row]), known).to_vec(),
            _ => columns::no_function_values(NO_STACK).to_vec(),
        };
        cells.extend(row_values(comparison, bootstrap, &sums, *row, by_step[*row].as_ref()));
        table.push(cells);
    }
    table.add_notes(function_notes(comparison));
    table
}

/// Which rows get an interval.
fn with_interval(rows: &[(usize, f64)], count: usize) -> Vec<bool> {
    let mut chosen = vec![false; count];
    let (top, bottom) = INTERVALS;
    rows.iter().take(top).chain(rows.iter().rev().take(bottom)).for_each(|(row, _)| chosen[*row] = true);
    chosen
}

/// The values by step of the rows that get an interval.
fn by_step(comparison: &Comparison<'_>, waits: &[(usize, Wait, bool)], chosen: &[bool]) -> Vec<Option<ByStep>> {
    let (capture, functions) = (comparison.selection.capture(), comparison.selection.functions());
    let no_stack = functions.len();
    let mut values: Vec<Option<ByStep>> = chosen.iter().map(|chosen| chosen.then(ByStep::default)).collect();
    let mut add = |row: usize, of: fn(&mut ByStep) -> &mut Vec<(u32, f64)>, step: usize, weight: f64| {
        if let Some(values) = &mut values[row] {
            of(values).push((step as u32, weight));
        }
    };
    for (step, stack, amount) in comparison.samples() {
        let weight = amount.weight as f64;
        let Some(stack) = stack else {
            add(no_stack, |values| &mut values.own, step, weight);
            add(no_stack, |values| &mut values.inclusive, step, weight);
            add(no_stack, |values| &mut values.attributed, step, weight);
            continue;
        };
        add(functions.of_node(capture, stack).index(), |values| &mut values.own, step, weight);
        if let Some(function) = functions.attributed(stack) {
            add(function.index(), |values| &mut values.attributed, step, weight);
        }
        for node in capture.nodes_of(Some(stack)).filter(|node| functions.is_outermost(*node)) {
            add(functions.of_node(capture, node).index(), |values| &mut values.inclusive, step, weight);
        }
    }
    for (step, wait, _) in waits {
        let row = wait.stack.map_or(Some(no_stack), |stack| functions.attributed(stack).map(FunctionId::index));
        if let Some(row) = row {
            add(row, |values| &mut values.blocked, *step, blocked_ns(wait) as f64);
        }
    }
    values
}

fn row_values(
    comparison: &Comparison<'_>,
    bootstrap: &BlockBootstrap,
    sums: &Sums,
    row: usize,
    by_step: Option<&ByStep>,
) -> Vec<Value> {
    let interval = |of: fn(&ByStep) -> &Vec<(u32, f64)>| {
        let values = by_step.filter(|_| enough(comparison))?;
        bootstrap.difference_of_means(of(values), CONFIDENCE)
    };
    let difference = |sums: &[Vec<Amount>; 2]| Value::from(comparison.difference(weights(sums, row)));
    let mean = |sums: &[Vec<Amount>; 2], side: Side| {
        Value::from(sums[side as usize][row].weight as f64 / comparison.count(side) as f64)
    };
    let attributed = interval(|values| &values.attributed);
    let blocked = interval(|values| &values.blocked);
    let [low, high] = ends(attributed);
    let [blocked_low, blocked_high] = ends(blocked);
    let [self_low, self_high] = ends(interval(|values| &values.own));
    let [inclusive_low, inclusive_high] = ends(interval(|values| &values.inclusive));
    let seen = |side: Side| by_step.and_then(|values| seen_in(comparison, values, side));
    vec![
        difference(&sums.attributed),
        low,
        high,
        mean(&sums.attributed, Side::Slow),
        mean(&sums.attributed, Side::Typical),
        difference(&sums.blocked),
        blocked_low,
        blocked_high,
        mean(&sums.blocked, Side::Slow),
        mean(&sums.blocked, Side::Typical),
        difference(&sums.own),
        self_low,
        self_high,
        difference(&sums.inclusive),
        inclusive_low,
        inclusive_high,
        seen(Side::Slow).into(),
        seen(Side::Typical).into(),
        attributed.zip(blocked).map(|(cpu, blocked)| verdict(cpu, blocked)).into(),
    ]
}

fn verdict(cpu: Estimate, blocked: Estimate) -> &'static str {
    let larger = if cpu.value.abs() >= blocked.value.abs() { [cpu, blocked] } else { [blocked, cpu] };
    match larger.iter().find(|estimate| estimate.excludes_zero()) {
        Some(estimate) if estimate.value > 0.0 => "more",
        Some(_) => "less",
        None => "inconclusive",
    }
}

/// Share of a set's steps that have the function, in percent.
fn seen_in(comparison: &Comparison<'_>, values: &ByStep, side: Side) -> Option<f64> {
    let steps = values.inclusive.iter().chain(&values.blocked).map(|(step, _)| *step);
    let mut steps: Vec<u32> = steps.filter(|step| comparison.sets.of_position(*step as usize) == Some(side)).collect();
    steps.sort_unstable();
    steps.dedup();
    percent(steps.len() as u128, comparison.count(side) as u128)
}

fn function_notes(comparison: &Comparison<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    let slow = |position: usize| comparison.sets.of_position(position) == Some(Side::Slow);
    let in_slow: Amount = comparison.samples().filter(|(step, ..)| slow(*step)).map(|(.., amount)| amount).sum();
    if in_slow.count > 0 {
        // Ten samples have an error of a third.
        let least = in_slow.weight * 10 / u128::from(in_slow.count) / comparison.count(Side::Slow) as u128;
        let unit = comparison.selection.event().map_or("", |event| &event.unit);
        notes.push(note!(
            Limit,
            "Slow steps have {}: a cost below {} per slow step has fewer than 10 of them.",
            NoteValue::plural(in_slow.count as usize, "sample"),
            NoteValue::of(least, unit)
        ));
    }
    notes.extend(notes::ownership_note(std::slice::from_ref(comparison.selection)));
    if !comparison.selection.has_switches() {
        notes.push(note!(Loss, "Context switches were not recorded, so blocked time and pacing are unknown."));
    }
    if comparison.loops.count() > 1 {
        notes.push(note!(
            Hint,
            "Only threads of the loop with the most steps are compared. Choose another one with --process or --thread."
        ));
    }
    notes
}

/// Call trees of slow and of typical steps for a differential flame graph, in ns (or the event's unit) per step.
///
/// The difference of a node's totals is the table's inclusive difference, if the function is at one node only.
///
/// # Errors
/// Why there is nothing to compare, in a sentence.
pub fn trees(
    selection: &Selection<'_>,
    options: &Options,
    tree: &calltree::Options,
    evidence: Evidence,
) -> Result<(CallTree, CallTree), String> {
    let comparison = Comparison::of(selection, options).map_err(|why| why.to_string())?;
    let waits = if evidence == Evidence::Blocked { comparison.waits() } else { Vec::new() };
    let unit = selection.event().map_or("", |event| event.unit.as_str());
    let of = |side: Side, name: &str| {
        let here = |position: usize| comparison.sets.of_position(position) == Some(side);
        let count = comparison.count(side) as u64;
        let steps = quantity::plural(comparison.count(side), name);
        match evidence {
            Evidence::OnCpu => {
                let samples =
                    selection.samples().filter(|sample| comparison.loops.main_step_of(sample).is_some_and(here));
                let stacks = samples.map(|sample| (sample.thread, sample.time_ns, sample.stack, sample.weight));
                let title = format!("On-CPU time per step, {steps}");
                calltree::per_step(selection, tree, (&title, unit), count, stacks)
            }
            Evidence::Blocked => {
                let waits = waits.iter().filter(|(position, ..)| here(*position));
                let stacks = waits.map(|(_, wait, _)| (wait.thread, Some(wait.start_ns), wait.stack, blocked_ns(wait)));
                let title = format!("Blocked time of the loop's thread per step, {steps}");
                calltree::per_step(selection, tree, (&title, "ns"), count, stacks)
            }
        }
    };
    Ok((of(Side::Slow, "slow step"), of(Side::Typical, "typical step")))
}

/// What slow steps do that typical steps do not.
pub struct SlowSteps;

/// Which steps are slow.
pub const SLOW_PERCENTILE: AnalysisOption = AnalysisOption {
    name: "slow-percentile",
    value: "PERCENT",
    range: (60.0, 100.0),
    default: "beyond a natural gap in the step times if there is a clear one, else 95",
    doc: "Steps at or above this percentile of step time are slow.",
};

impl Options {
    /// The options that the command line gave.
    pub fn of(values: &OptionValues) -> Self {
        Self { slow: values.get(&SLOW_PERCENTILE).map_or(Slow::Natural, Slow::Percentile), ..Self::default() }
    }
}

impl Analysis for SlowSteps {
    fn title(&self) -> &'static str {
        "Slow steps"
    }

    fn views(&self) -> &'static [View] {
        &[View {
            name: "slow-steps",
            question: "What happens in the slowest steps that does not happen in typical steps?",
            tables: |selection, values| tables(selection, &Options::of(values)),
        }]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Steps]
    }

    fn options(&self) -> &'static [AnalysisOption] {
        &[SLOW_PERCENTILE]
    }

    fn also_in(&self) -> &'static [&'static str] {
        &["flamegraph --slow-steps"]
    }

    fn report(&self, selection: &Selection<'_>) -> Vec<ReportSection> {
        let options = Options::default();
        let trees = trees(selection, &options, &calltree::Options::default(), calltree::Evidence::OnCpu);
        let Ok(trees) = trees else { return Vec::new() };
        let tables = tables(selection, &options).into_iter().map(Part::Table);
        let parts = [Part::Difference(difference(&trees))].into_iter().chain(tables).collect();
        vec![ReportSection::new("Slow steps", parts)]
    }
}

/// The call trees of slow steps and of typical steps, compared.
pub fn difference((slow, typical): &(CallTree, CallTree)) -> TreeDifference {
    let mut difference = TreeDifference::of(("slow steps", slow), ("typical steps", typical));
    let tree = &mut difference.tree;
    tree.title = format!("Slow steps against typical ones: {}", lower_first(&slow.title));
    let against = format!("against {}", lower_first(&typical.title));
    let parts = [tree.subtitle.as_str(), &against];
    tree.subtitle = parts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" · ");
    difference
}

/// A heading as a part of a sentence.
fn lower_first(title: &str) -> String {
    let mut characters = title.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event};
    use stepscope_stats::SplitMix64;

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};
    use crate::query::steps::Steps;

    const MS: u64 = 1_000_000;

    /// Steps of 10 ms and some noise, sampled once a ms: physics on the loop's thread, a worker that renders half of the
    /// time. Every 50th step decodes a texture for 20 ms. 3 % of the others are delayed, by something that is no function.
    fn injected(steps: u64, decode_ms: u64) -> Capture {
        let mut random = SplitMix64::new(5);
        let mut text = String::new();
        let mut drawing = Drawing::new().process(1, "sim").steps("main", 0, 1, steps, 1);
        let mut time = MS;
        let mut delays: Vec<std::ops::Range<u64>> = Vec::new();
        for step in 0..steps {
            let decodes = step % 50 == 49;
            let load = if step == 0 { 300 } else { 0 };
            let work = 9 + random.below(3) as u64;
            let start = time;
            let mut run = |stack: &str, ms: u64, time: &mut u64| {
                for _ in 0..ms {
                    // A sample somewhere in each ms.
                    let at = *time + random.below(MS as usize) as u64;
                    text.push_str(&format!("@{at} {stack} {MS}\n"));
                    *time += MS;
                }
            };
            run("main;gz::Run;gz::Step;gz::Load;read", load, &mut time);
            run("main;gz::Run;gz::Step;dSolve", work, &mut time);
            if decodes {
                run("main;gz::Run;gz::Step;gz::Decode;stbi_load;memcpy", decode_ms, &mut time);
            }
            let mut other = start;
            run("worker;gz::Render", work / 2, &mut other);
            if !decodes && random.below(33) == 0 {
                delays.push(time..time + 4 * MS);
                time += 4 * MS;
            }
            let row = &mut drawing.capture.steps[step as usize];
            (row.start_ns, row.end_ns) = (start, time);
        }
        let mut drawing = drawing.window(0..time).lived("main", 0..time, None).lived("worker", 0..time, None);
        for delay in delays {
            drawing = drawing.preempted("main", delay, "");
        }
        drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture
    }

    fn number(table: &Table, row: usize, column: &str) -> f64 {
        match table.get(row, column) {
            Some(Value::Float(number)) => *number,
            other => panic!("{column} of row {row} is {other:?}"),
        }
    }

    fn slow(capture: &Capture, slow: Slow) -> Vec<Table> {
        let options = Options { slow, replicates: 400 };
        drawn::selected(capture, &["gz::"], |selection| tables(selection, &options))
    }

    #[test]
    fn work_injected_in_every_50th_step_is_on_top_and_its_cost_is_recovered() {
        let capture = injected(1_000, 20);
        let tables = slow(&capture, Slow::Natural);
        let table = &tables[1];
        assert_eq!(cells(table, &["function", "verdict", "in_slow", "in_typical"])[0], "gz::Decode | more | 100 | 0");
        let cost = number(table, 0, "difference");
        assert!((cost / (20 * MS) as f64 - 1.0).abs() < 0.02, "{cost}");
        assert!(number(table, 0, "low") > 19e6 && number(table, 0, "high") < 21e6, "{:?}", table.rows[0]);
        assert_eq!(
            tables[0].notes[0],
            "Slow: 20 steps (2.00 %) of 29.0 ms or more without CPU waits, beyond a gap in the step times."
        );
        assert_eq!(tables[0].notes[2], "A cut-off at p95 would add 31 steps without extra work.");
        let loads = (0..table.rows.len()).any(|row| table.get(row, "function") == Some(&"gz::Load".into()));
        assert!(!loads, "the first step is in neither set");
    }

    /// 5 % of 999 steps are 50, of which 20 decode: the mean over them is two fifths of the cost.
    #[test]
    fn above_a_percentile_the_cost_is_that_of_a_mixed_set_and_in_slow_tells_so() {
        let tables = slow(&injected(1_000, 20), Slow::Percentile(95.0));
        let table = &tables[1];
        assert_eq!(cells(table, &["function"])[0], "gz::Decode");
        let in_slow = number(table, 0, "in_slow");
        let cost = number(table, 0, "difference");
        assert!((30.0..45.0).contains(&in_slow), "{in_slow}");
        assert!((cost / (20.0 * MS as f64 * in_slow / 100.0) - 1.0).abs() < 0.02, "{cost} in {in_slow} %");
    }

    #[test]
    fn the_parts_of_the_loops_thread_add_up_to_the_difference() {
        let tables = slow(&injected(1_000, 20), Slow::Natural);
        let difference = |row| number(&tables[0], row, "difference");
        assert_eq!(cells(&tables[0], &["quantity"])[0], "step");
        let parts: f64 = (1..5).map(difference).sum();
        assert!((parts - difference(0)).abs() < 1.0, "{parts} {}", difference(0));
    }

    #[test]
    fn noise_has_no_natural_gap_and_a_group_apart_has() {
        let gap = |times: Vec<u64>| natural_gap(&times.into_iter().collect());
        let mut random = SplitMix64::new(9);
        let mut exponential = || (-(random.below(1_000_000) as f64 + 1.0).ln() + 14.0) * 1e6;
        assert_eq!(gap((0..2_000).map(|_| 1_000_000 + exponential() as u64).collect()), None);
        assert_eq!(gap((0..2_000).map(|index| 1_000 + index).collect()), None);
        assert_eq!(gap(vec![500; 1_000]), None);
        let narrow = |index: u64| 10_000 + index % 100;
        assert_eq!(gap((0..1_000).map(narrow).collect()), None);
        // A single outlier is no group.
        assert_eq!(gap((0..1_000).map(narrow).chain([90_000]).collect()), None);
        let threshold = gap((0..1_000).map(narrow).chain((0..7).map(|index| 11_200 + 10 * index)).collect()).unwrap();
        assert_eq!(threshold, 11_200);
        assert!(gap((0..800).map(narrow).chain((0..200).map(|index| 40_000 + 100 * index)).collect()).is_some());
    }

    #[test]
    fn waits_of_the_loop_are_apart_and_those_for_other_threads_do_not_lead() {
        let mut drawing = Drawing::new().process(1, "sim").window(0..1_000 * MS);
        drawing = drawing.lived("main", 0..1_000 * MS, None).lived("worker", 0..1_000 * MS, None);
        let mut text = String::new();
        let mut start = 0;
        for step in 0..50_u64 {
            // Every tenth step the worker takes 9 ms longer, and main waits for it; a file takes 4 ms.
            let late = step % 10 == 5;
            let worker = if late { 10 } else { 1 };
            (0..worker).for_each(|ms| text.push_str(&format!("@{} worker;gz::Solve {MS}\n", start + ms * MS)));
            let joined = start + worker * MS;
            drawing = drawing.blocked("main", start..joined, "gz::Join;pthread_cond_wait");
            let end = joined + if late { 4 * MS } else { 0 } + MS;
            if late {
                drawing = drawing.blocked("main", joined..joined + 4 * MS, "gz::Save;fsync");
            }
            let mut one =
                Drawing { capture: std::mem::take(&mut drawing.capture) }.steps("main", start, end - start, 1, 1);
            one.capture.steps.last_mut().unwrap().index = step;
            drawing = one;
            start = end;
        }
        let capture = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture;
        let table = &slow(&capture, Slow::Natural)[1];
        assert_eq!(
            cells(table, &["function", "difference", "blocked_difference"]),
            ["gz::Solve | 9000000 | 0", "gz::Save | 0 | 4000000", "gz::Join | 0 | 9000000"]
        );
    }

    #[test]
    fn trees_of_slow_and_typical_steps_are_per_step() {
        let capture = injected(1_000, 20);
        drawn::selected(&capture, &["gz::"], |selection| {
            let (slow, typical) =
                trees(selection, &Options::default(), &calltree::Options::default(), Evidence::OnCpu).unwrap();
            let total = |tree: &CallTree, name: &str| {
                tree.nodes.iter().filter(|node| &*node.name == name).map(|node| node.total).sum::<u64>()
            };
            assert_eq!((total(&typical, "gz::Decode"), total(&slow, "gz::Decode") / MS), (0, 20));
            assert_eq!((slow.unit.as_str(), slow.title.as_str()), ("ns", "On-CPU time per step, 20 slow steps"));
            let sets = Steps::of(selection).unwrap().count();
            assert_eq!(sets, 1_000);
        });
    }

    #[test]
    fn without_switches_a_gap_on_the_clock_tells_slow_steps() {
        let mut drawing = Drawing::new().window(0..100_000).steps("main", 0, 1, 100, 1);
        let mut time = 0;
        for (index, step) in drawing.capture.steps.iter_mut().enumerate() {
            let length = if index % 20 == 7 { 1_500 } else { 500 + index as u64 % 3 };
            (step.start_ns, step.end_ns) = (time, time + length);
            time += length;
        }
        let text = "@3600 main;gz::Extra 1000\n@3700 main;gz::Step 500";
        let capture = drawing.folded(Event::sampled("cpu-clock", "ns"), text).capture;
        let tables = slow(&capture, Slow::Natural);
        assert_eq!(tables[0].notes[0], "Slow: 5 steps (5.05 %) of 1.50 µs or more, beyond a gap in the step times.");
        assert_eq!(cells(&tables[0], &["quantity", "slow"])[..2], ["step | 1500", "CPU of all threads, sampled | 300"]);
        assert_eq!(cells(&tables[1], &["function", "difference", "in_slow"])[0], "gz::Extra | 200 | 20");
    }

    #[test]
    fn equal_steps_and_few_steps_are_not_compared() {
        let equal = Drawing::new().window(0..1_000).steps("main", 0, 10, 50, 1).capture;
        let notes = |capture: &Capture| slow(capture, Slow::Natural)[0].notes.clone();
        assert_eq!(notes(&equal), ["The slowest steps take as long as typical steps (10 ns): nothing to compare."]);
        let few = Drawing::new().window(0..1_000).steps("main", 0, 10, 5, 1).capture;
        assert_eq!(
            notes(&few),
            ["4 steps after the first are too few for slow and typical steps: at least 20 are needed."]
        );
        assert!(notes(&drawn::folded("main;a 1"))[0].contains("--step-function"));
    }
}
