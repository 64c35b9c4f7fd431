//! The tables of the critical path by part, thread and function.

use std::cmp::Reverse;
use std::ops::Range;

use stepscope_model::{Capture, Columns, Note, NoteValue, Table, Thread, ThreadId, Value, note};
use stepscope_stats::Distribution;

use super::weights::{PathWeights, is_timed};
use crate::analyses::step_times::StepParts;
use crate::columns::{self, of_function};
use crate::notes;
use crate::query::functions::{FunctionId, Functions, NO_STACK};
use crate::query::off_cpu::OffCpu;
use crate::query::select::Selection;
use crate::query::step_paths::{Paths, State};
use crate::query::steps::{Loops, Steps};
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::wake_ups::WakeUps;
use crate::query::weights::{Amount, StackWeights, percent};

/// The kinds of parts, in the order of the table; waits by class follow, then waits without a stack.
const OWN: usize = 0;
const OTHERS: usize = 1;
const DELAY: usize = 2;
const FIRST_CLASS: usize = 3;
const NO_CLASS: usize = FIRST_CLASS + WaitClass::ALL.len();

fn part_name(kind: usize) -> String {
    match kind {
        OWN => "running on the loop's thread".to_owned(),
        OTHERS => "running on other threads".to_owned(),
        DELAY => "waiting for a CPU".to_owned(),
        NO_CLASS => "blocked, no stack".to_owned(),
        _ => format!("blocked, {}", WaitClass::ALL[kind - FIRST_CLASS].name().replace('_', " ")),
    }
}

/// Time of one kind of part in each step.
struct PartTimes {
    kind: usize,
    by_step: Distribution,
}

impl PartTimes {
    /// The number of steps that have any of it.
    fn steps(&self) -> usize {
        self.by_step.len() - self.by_step.values().partition_point(|ns| *ns == 0)
    }
}

/// The time of all steps but the first.
fn time_of_steps(steps: &Steps) -> u128 {
    steps.after_first().map(|position| u128::from(steps.duration(position))).sum()
}

/// The table `critical_path_parts`: means over all steps but the first; they add up to the mean duration.
pub(super) fn parts(selection: &Selection<'_>, loops: &Loops, paths: &Paths<'_>, held: &[u64]) -> Table {
    let steps = loops.main();
    let mut classes = Classes::new(selection.capture(), selection.functions());
    let kept = steps.after_first();
    let mut by_kind: Vec<Vec<u64>> = vec![vec![0; kept.len()]; NO_CLASS + 1];
    for (place, position) in kept.clone().enumerate() {
        let own = steps.rows()[position].thread;
        for part in paths.of_step(position) {
            let kind = match part.state {
                State::Running if part.thread == own => OWN,
                State::Running => OTHERS,
                State::Runnable => DELAY,
                State::Blocked(Some(stack)) => FIRST_CLASS + classes.of(stack).index(),
                State::Blocked(None) => NO_CLASS,
            };
            by_kind[kind][place] += part.ns();
        }
    }
    let time = time_of_steps(steps);
    let delay: u128 = by_kind[DELAY].iter().map(|ns| u128::from(*ns)).sum();
    let parts = by_kind.into_iter().enumerate();
    let parts = parts.map(|(kind, ns)| PartTimes { kind, by_step: ns.into_iter().collect() });
    let mut table = Columns::<PartTimes>::new()
        .text("part", "What the thread on the path does. The parts add up to the step.", |part| {
            part_name(part.kind).into()
        })
        .duration("mean", "Mean per step, without the first.", |part| part.by_step.mean())
        .percentage("share", "Share of the steps' time.", move |part| percent(part.by_step.sum(), time))
        .duration("median", "Median of the steps.", |part| part.by_step.median())
        .duration("p95", "95th percentile.", |part| part.by_step.percentile(95.0))
        .duration("max", "Largest.", |part| part.by_step.max())
        .percentage("in_steps", "Share of the steps that have any of it.", |part| {
            percent(part.steps() as u128, part.by_step.len() as u128)
        })
        .essential("part mean share")
        .table(
            "critical_path_parts",
            "Critical path of the steps, by part",
            parts.filter(|part| part.kind <= DELAY || part.steps() > 0),
        );
    if let Some(share) = percent(held.iter().map(|ns| u128::from(*ns)).sum(), delay) {
        table.note(note!(
            Fact,
            "Recorded threads held the CPU for {} of the critical path's CPU waits; other processes for the rest.",
            NoteValue::percent(share)
        ));
    }
    table.add_notes(path_notes(selection, loops, paths.off_cpu()));
    table
}

fn path_notes(selection: &Selection<'_>, loops: &Loops, off_cpu: &OffCpu<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    if let WakeUps::Recorded { missing, of } = WakeUps::of(selection)
        && missing > 0
    {
        notes.push(note!(
            Loss,
            "{} of {} blocked waits have no wake-up. On the path, such a wait counts as blocked.",
            NoteValue::number(missing),
            NoteValue::number(of)
        ));
    }
    if let Some(aggregated) = selection.capture().info.losses.aggregated_waits.filter(|&waits| waits > 0) {
        notes.push(note!(
            Limit,
            "{} waits are aggregated, because their threads switch very often: who ended each is unknown. On the path, \
             they count as blocked.",
            NoteValue::number(aggregated)
        ));
    }
    if StepParts::of(selection, loops, loops.main(), off_cpu).is_paced() {
        notes.push(note!(
            Limit,
            "The loop paces itself by sleeping. While it keeps its rate, time saved in a step becomes longer sleep."
        ));
    }
    if selection.filters_threads() || selection.filters_stacks() {
        notes.push(note!(Limit, "Filters apply to the table by function only; the path includes all threads."));
    }
    if loops.count() > 1 {
        notes.push(note!(
            Hint,
            "The path is that of the loop with the most steps. Choose another one with --process or --thread."
        ));
    }
    notes
}

/// A thread's times on the path and off it, in all steps but the first.
#[derive(Debug, Clone, Copy)]
struct ThreadTimes<'a> {
    thread: &'a Thread,
    running: u64,
    runnable: u64,
    blocked: u64,
    held_up: u64,
    cpu: u64,
    last: u64,
}

impl ThreadTimes<'_> {
    fn on_path(&self) -> u64 {
        self.running.saturating_add(self.runnable).saturating_add(self.blocked)
    }
}

/// The table `critical_path_threads`.
pub(super) fn threads(
    selection: &Selection<'_>,
    steps: &Steps,
    paths: &Paths<'_>,
    held: &[u64],
    arrived_last: &[u64],
) -> Table {
    let capture = selection.capture();
    let kept = steps.after_first();
    let start = |((thread, cpu), (held_up, last)): ((_, _), (&u64, &u64))| ThreadTimes {
        thread,
        running: 0,
        runnable: 0,
        blocked: 0,
        held_up: *held_up,
        cpu,
        last: *last,
    };
    let cpu = cpu_times(capture, steps, paths.off_cpu());
    let threads = capture.threads.iter().zip(cpu).zip(held.iter().zip(arrived_last));
    let mut found: Vec<ThreadTimes<'_>> = threads.map(start).collect();
    for part in kept.clone().flat_map(|position| paths.of_step(position)) {
        let times = &mut found[part.thread.index()];
        let length = part.ns();
        match part.state {
            State::Running => times.running += length,
            State::Runnable => times.runnable += length,
            State::Blocked(_) => times.blocked += length,
        }
    }
    found.retain(|times| times.on_path() > 0 || times.cpu > 0);
    found.sort_by_key(|times| Reverse((times.on_path(), times.cpu)));
    let time = time_of_steps(steps);
    let count = kept.len().max(1) as f64;
    let process = |thread: &Thread| selection.process_label_of(thread);
    Columns::<ThreadTimes<'_>>::new()
        .text("thread", "Last name of the thread.", |row| row.thread.name.as_str().into())
        .number("tid", "", "Thread id.", |row| row.thread.tid)
        .with(columns::process(selection.capture()), |row| process(row.thread).into())
        .duration("path", "Time per step on the critical path.", |row| row.on_path() as f64 / count)
        .percentage("share", "Share of the steps' time.", |row| percent(row.on_path().into(), time))
        .duration("running", "Part of `path`: running.", |row| row.running as f64 / count)
        .duration("runnable", "Part of `path`: waiting for a CPU.", |row| row.runnable as f64 / count)
        .duration(
            "blocked",
            "Part of `path`: blocked, with no thread to end the wait (timers, devices, wake-ups not recorded).",
            |row| row.blocked as f64 / count,
        )
        .duration("held_up", "Time per step that this thread held a CPU that the path waited for elsewhere.", |row| {
            row.held_up as f64 / count
        })
        .duration("cpu", "All CPU time per step, on the path or off it.", |row| row.cpu as f64 / count)
        .count("arrived_last", "barriers", "Barriers where it arrived last, in all steps.", |row| row.last)
        .essential("thread path share cpu")
        .detail("tid")
        .table("critical_path_threads", "Critical path of the steps, by thread", found)
}

/// CPU time of each thread in all steps but the first.
fn cpu_times(capture: &Capture, steps: &Steps, off_cpu: &OffCpu<'_>) -> Vec<u64> {
    let first = steps.after_first().start;
    let from = steps.rows().get(first).map_or(steps.span.end, |step| step.start_ns);
    let inside = |range: Range<u64>| steps.time_within(&(range.start.max(from)..range.end.max(from)));
    let of_thread = |(index, thread): (usize, &Thread)| {
        let (Some(start), Some(end)) = (thread.start_ns, thread.end_ns) else { return 0 };
        let waits = off_cpu.waits(ThreadId::from_index(index));
        let off = waits.map(|wait| inside(wait.start_ns..wait.end_ns)).fold(0, u64::saturating_add);
        inside(start..end.max(start)).saturating_sub(off)
    };
    capture.threads.iter().enumerate().map(of_thread).collect()
}

/// A row of the table by function: its place in [`FunctionSums`], and the function if there is a stack.
struct FunctionRow {
    index: usize,
    function: Option<FunctionId>,
}

/// The columns of the table by function. Times are per step of `steps` steps, which take `time` together.
fn function_columns<'a>(
    functions: &'a Functions,
    sums: &'a FunctionSums,
    steps: usize,
    time: u128,
) -> Columns<'a, FunctionRow> {
    let per_step = move |weight: u128| Value::from(weight as f64 / steps.max(1) as f64);
    let path = "Attributed time per step on the critical path: samples and waits there, for the nearest owned function \
                (of the program, if nothing is owned).";
    let gain_bound = "Upper bound on the time saved per step if this function and its callees were free: inclusive time \
                      on the critical path, and CPU waits of the path while it held the CPU. Work off the critical path \
                      saves nothing.";
    let held_up = "Part of `gain_bound`: the path waited for a CPU on another thread while this function or a callee held \
                   it.";
    of_function(functions)
        .on(|row: &FunctionRow| &row.function)
        .duration("path", path, move |row| per_step(sums.path(row.index)))
        .percentage("share", "Share of the steps' time.", move |row| percent(sums.path(row.index), time))
        .duration("gain_bound", gain_bound, move |row| per_step(sums.gain_bound(row.index)))
        .duration("path_running", "Part of `path`: running.", move |row| per_step(sums.running[row.index]))
        .duration("path_blocked", "Part of `path`: blocked, with no thread to end the wait.", move |row| {
            per_step(sums.blocked[row.index])
        })
        .duration("held_up", held_up, move |row| per_step(sums.held_up_inclusive[row.index]))
        .duration("path_self", "Time per step on the path of samples whose leaf it is.", move |row| {
            per_step(sums.running_self[row.index])
        })
        .duration("cpu", "Attributed CPU time per step of all threads, on the path or off it.", move |row| {
            per_step(sums.cpu[row.index])
        })
        .duration("cpu_inclusive", "Inclusive CPU time per step, on the path or off it.", move |row| {
            per_step(sums.cpu_inclusive[row.index])
        })
        .percentage("on_path", "Share of the inclusive CPU time on the path.", move |row| {
            percent(sums.running_inclusive[row.index], sums.cpu_inclusive[row.index])
        })
        .essential("path gain_bound cpu on_path")
        .detail("path_running path_blocked held_up path_self")
}

const FUNCTIONS: (&str, &str) = ("critical_path", "Critical path of the steps, by function");

/// The table by function without rows.
pub(super) fn no_functions(selection: &Selection<'_>) -> Table {
    let sums = FunctionSums::default();
    function_columns(selection.functions(), &sums, 0, 0).table(FUNCTIONS.0, FUNCTIONS.1, Vec::<FunctionRow>::new())
}

/// The table `critical_path`: functions by time on the path, then by cost off it.
pub(super) fn functions(selection: &Selection<'_>, steps: &Steps, paths: &Paths<'_>) -> Table {
    let sums = FunctionSums::of(selection, &PathWeights::on(selection, steps, paths));
    let functions = selection.functions();
    let ids: Vec<FunctionId> = functions.all().map(|(id, _)| id).collect();
    let row = |index: usize| FunctionRow { index, function: ids.get(index).copied() };
    let mut rows: Vec<FunctionRow> = (0..=ids.len()).filter(|index| sums.any(*index)).map(row).collect();
    rows.sort_by_key(|row| {
        let (index, name) = (row.index, row.function.map_or(NO_STACK, |id| &*functions.get(id).name));
        (Reverse(sums.path(index)), Reverse((sums.cpu[index], sums.cpu_inclusive[index])), name)
    });
    let count = steps.after_first().len();
    let mut table =
        function_columns(functions, &sums, count, time_of_steps(steps)).table(FUNCTIONS.0, FUNCTIONS.1, rows);
    table.add_notes(sums.coverage);
    table.add_notes(notes::ownership_note(std::slice::from_ref(selection)));
    table
}

/// Sums over all steps but the first, by function; the last one is for samples and waits without a stack.
#[derive(Default)]
struct FunctionSums {
    running: Vec<u128>,
    running_self: Vec<u128>,
    running_inclusive: Vec<u128>,
    blocked: Vec<u128>,
    blocked_inclusive: Vec<u128>,
    held_up_inclusive: Vec<u128>,
    cpu: Vec<u128>,
    cpu_inclusive: Vec<u128>,
    coverage: Option<Note>,
}

impl FunctionSums {
    fn of(selection: &Selection<'_>, weights: &PathWeights) -> Self {
        let (capture, functions) = (selection.capture(), selection.functions());
        let PathWeights { running, blocked, holding, cpu, .. } = weights;
        let with = |sums: Vec<Amount>, weights: &StackWeights| -> Vec<u128> {
            sums.into_iter().chain([weights.no_stack]).map(|amount| amount.weight).collect()
        };
        let inclusive = |weights: &StackWeights| with(weights.inclusive_by_function(capture, functions), weights);
        let attributed = |weights: &StackWeights| with(weights.attributed_by_function(functions), weights);
        Self {
            running: attributed(running),
            running_self: with(running.self_by_function(capture, functions), running),
            running_inclusive: inclusive(running),
            blocked: attributed(blocked),
            blocked_inclusive: inclusive(blocked),
            held_up_inclusive: inclusive(holding),
            cpu: attributed(cpu),
            cpu_inclusive: inclusive(cpu),
            coverage: coverage_note(selection, weights),
        }
    }

    fn path(&self, row: usize) -> u128 {
        self.running[row] + self.blocked[row]
    }

    fn gain_bound(&self, row: usize) -> u128 {
        self.running_inclusive[row] + self.blocked_inclusive[row] + self.held_up_inclusive[row]
    }

    fn any(&self, row: usize) -> bool {
        self.cpu_inclusive[row] > 0 || self.running_inclusive[row] > 0 || self.blocked_inclusive[row] > 0
    }
}

fn coverage_note(selection: &Selection<'_>, weights: &PathWeights) -> Option<Note> {
    if !is_timed(selection) {
        return Some(note!(Loss, "No samples of CPU time were recorded: only waits are attributed to functions."));
    }
    if selection.filters_stacks() || selection.filters_threads() {
        return None;
    }
    let sampled = weights.running.total();
    Some(note!(
        Fact,
        "Samples cover {} of the critical path's running time ({}).",
        NoteValue::percent(percent(sampled.weight, weights.running_ns)?),
        NoteValue::plural(sampled.count as usize, "sample")
    ))
}
