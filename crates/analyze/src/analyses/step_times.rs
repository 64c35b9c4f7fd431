//! The view `steps`: how long steps take, what they are made of, whether they grow, and which stand out.
//!
//! Four tables of the selection: [`loops`], [`quantities`], [`histogram`] and [`longest`]. What belongs to a step is said
//! in [`steps`](crate::query::steps).
//!
//! # Pacing
//! A simulator that keeps to a real-time factor sleeps until the next step is due. That time is no cost, and hides what
//! the steps cost, so it is told apart: *pacing* is the time in which the loop's thread was blocked and
//!
//! - asleep by its own will (class [sleep](WaitClass::Sleep)), or
//! - at a condition variable that no thread signalled, so that its timer ended the wait (only where wake-ups were
//!   recorded).
//!
//! At high rates of switches not every wait has a stack. One without is pacing if no thread ended it and, of the waits of the
//! loop's thread that no thread ended and that have one, nine tenths of the time are pacing.
//!
//! The time from the timer until a CPU was free is not pacing but scheduler delay. A loop that sleeps for another
//! reason sleeps all the same and is not told apart from one that paces itself.
//!
//! # Stalls
//! A stall is a step that took more than [`STALL`] times the median of the [`NEIGHBOURS`] steps on either side of it
//! (fewer at the ends). Neighbours, because steps of a growing world are all long in the end, and none of them is a
//! stall. Where pacing is known it is taken out on both sides.
//!
//! # Trend
//! Do steps take longer and longer? The [Theil-Sen](stepscope_stats::trend) slope of the steps' times without pacing over
//! time, with a 95 % interval, as the change from the first to the last step in percent of the median. The first step
//! loads what the others use; it is left out here, as of all sums but the count.

use std::ops::Range;

use stepscope_model::{Dimension, Mark, StackId, Step, Table, ThreadId, Value, Wait, WaitState, quantity};
use stepscope_stats::{Distribution, Estimate, trend};

use crate::analyses::steps_over_time;
use crate::analysis::{Analysis, Part, ReportSection, View};
use crate::columns;
use crate::query::functions::FunctionId;
use crate::query::off_cpu::{OffCpu, Spent};
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps, simulated};
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use crate::query::weights::percent;

/// A stall takes more than so many times the median of its neighbours.
pub const STALL: f64 = 2.0;

/// Neighbours on either side.
pub const NEIGHBOURS: usize = 15;

/// Rows of [`longest`].
pub const LONGEST: usize = 30;

const CONFIDENCE: f64 = 0.95;

/// Judges waits of a loop's thread: which are [pacing](self#pacing), so that their blocked part keeps the loop from running
/// too fast.
#[derive(Debug, Clone)]
pub struct Pacing<'a> {
    classes: Classes<'a>,
    without_stack: bool,
}

impl<'a> Pacing<'a> {
    /// Learns from the waits with a stack what those without one are.
    pub fn of(selection: &Selection<'a>, steps: &Steps, off_cpu: &OffCpu<'_>) -> Self {
        const FEWEST: u32 = 10;
        let classes = Classes::new(selection.capture(), selection.functions());
        let mut judge = Self { classes, without_stack: false };
        let (mut waits, mut ended, mut pacing) = (0_u32, 0_u128, 0_u128);
        for (position, step) in steps.rows().iter().enumerate() {
            let of_step = off_cpu.within(step.thread, steps.range(position));
            for wait in of_step.filter(|wait| wait.stack.is_some() && no_thread_ended(wait)) {
                let ns = u128::from(blocked_ns(&wait));
                waits = waits.saturating_add(1);
                ended += ns;
                pacing += if judge.is_pacing(&wait) { ns } else { 0 };
            }
        }
        judge.without_stack = waits >= FEWEST && pacing * 10 >= ended * 9;
        judge
    }

    /// Whether a wait is pacing.
    pub fn is_pacing(&mut self, wait: &Wait) -> bool {
        if wait.state != WaitState::Blocked {
            return false;
        }
        match wait.stack.map(|stack| self.classes.of(stack)) {
            Some(WaitClass::Sleep) => true,
            Some(WaitClass::Condition) => no_thread_ended(wait),
            Some(_) => false,
            None => self.without_stack && no_thread_ended(wait),
        }
    }

    /// What a thread that blocked at this stack waited for.
    pub fn class(&mut self, stack: StackId) -> WaitClass {
        self.classes.of(stack)
    }
}

/// Whether a timer or a device ended a blocked wait, and that is known.
fn no_thread_ended(wait: &Wait) -> bool {
    wait.state == WaitState::Blocked && wait.runnable_ns.is_some() && wait.waker.is_none()
}

/// What the steps of one loop were made of: a value a step, in ns.
#[derive(Debug, Clone, Default)]
pub struct StepParts {
    /// How long each took.
    pub durations: Vec<u64>,
    /// Pacing of the loop's thread. All zero where context switches were not recorded.
    pub pacing: Vec<u64>,
    /// What the loop's thread did; `blocked` holds pacing too. Absent where that was not recorded.
    pub spent: Option<Vec<Spent>>,
    /// On-CPU time of all selected threads that belong to the loop: exact where context switches were recorded, else
    /// sampled; absent where neither is known.
    pub cpu: Option<Vec<u64>>,
    /// Whether `cpu` is exact.
    pub cpu_is_exact: bool,
    /// Blocked time of the loop's thread without a stack, which may be pacing, over all steps.
    pub unknown_ns: u64,
}

impl StepParts {
    /// Of the steps of a loop, which must be one of `loops`.
    pub fn of(selection: &Selection<'_>, loops: &Loops, steps: &Steps, off_cpu: &OffCpu<'_>) -> Self {
        let rows = steps.rows();
        let mut made = Self {
            durations: rows.iter().map(|step| step.end_ns - step.start_ns).collect(),
            pacing: vec![0; rows.len()],
            ..Self::default()
        };
        if selection.has_switches() {
            made.split_loop_thread(steps, off_cpu, &mut Pacing::of(selection, steps, off_cpu));
            made.cpu = exact_cpu(selection, loops, steps, off_cpu);
            made.cpu_is_exact = made.cpu.is_some();
        }
        made.cpu = made.cpu.or_else(|| sampled_cpu(selection, loops, steps));
        made
    }

    fn split_loop_thread(&mut self, steps: &Steps, off_cpu: &OffCpu<'_>, pacing: &mut Pacing<'_>) {
        let rows = steps.rows();
        self.spent = rows.iter().map(|step| off_cpu.spent(step.thread, step.start_ns..step.end_ns)).collect();
        for (position, step) in rows.iter().enumerate() {
            for wait in off_cpu.within(step.thread, steps.range(position)) {
                if pacing.is_pacing(&wait) {
                    self.pacing[position] = self.pacing[position].saturating_add(blocked_ns(&wait));
                } else if wait.stack.is_none() {
                    self.unknown_ns = self.unknown_ns.saturating_add(blocked_ns(&wait));
                }
            }
        }
    }

    /// How long each step took without pacing.
    pub fn unpaced(&self) -> Vec<u64> {
        self.durations.iter().zip(&self.pacing).map(|(duration, pacing)| duration.saturating_sub(*pacing)).collect()
    }

    /// Whether there is any pacing.
    pub fn is_paced(&self) -> bool {
        self.pacing.iter().any(|ns| *ns > 0)
    }
}

/// On-CPU time of the loop's threads in each step: their lifetimes less what they were off the CPU.
fn exact_cpu(selection: &Selection<'_>, loops: &Loops, steps: &Steps, off_cpu: &OffCpu<'_>) -> Option<Vec<u64>> {
    let of_loop = |thread: ThreadId| std::ptr::eq(loops.of_thread(thread), steps) && selection.has_thread(thread);
    let threads: Vec<ThreadId> = selection.threads().map(|(id, _)| id).filter(|id| of_loop(*id)).collect();
    let lives: Option<Vec<Range<u64>>> = threads.iter().map(|id| selection.lifetime(*id)).collect();
    let alive = steps.time_in_each(lives?);
    let waits = threads.iter().flat_map(|id| off_cpu.waits(*id)).map(|wait| wait.start_ns..wait.end_ns);
    let off = steps.time_in_each(waits);
    Some(alive.into_iter().zip(off).map(|(alive, off)| alive.saturating_sub(off)).collect())
}

fn sampled_cpu(selection: &Selection<'_>, loops: &Loops, steps: &Steps) -> Option<Vec<u64>> {
    selection.event().filter(|event| event.unit == "ns")?;
    let mut cpu = vec![0_u64; steps.count()];
    for sample in selection.samples() {
        let Some((of, position)) = loops.step_of(sample) else { continue };
        if std::ptr::eq(of, steps) {
            cpu[position] = cpu[position].saturating_add(sample.weight);
        }
    }
    Some(cpu)
}

/// Which steps are [stalls](self#stalls), from the time that each took.
pub fn stalls(times: &[u64]) -> Vec<bool> {
    (0..times.len()).map(|position| times_the_neighbours(times, position).is_some_and(|ratio| ratio > STALL)).collect()
}

/// How many times the median of its neighbours a step took; `None` where there are none or their median is 0.
fn times_the_neighbours(times: &[u64], position: usize) -> Option<f64> {
    let (before, after) = (position.saturating_sub(NEIGHBOURS), (position + NEIGHBOURS + 1).min(times.len()));
    let mut around = [0_u64; 2 * NEIGHBOURS];
    let neighbours = times[before..position].iter().chain(&times[position + 1..after]);
    let count = around.iter_mut().zip(neighbours).map(|(slot, time)| *slot = *time).count();
    let around = &mut around[..count];
    let middle = count.checked_sub(1)? / 2;
    let (_, median, _) = around.select_nth_unstable(middle);
    (*median > 0).then(|| times[position] as f64 / *median as f64)
}

/// The change of a step's quantity from the first step to the last in percent of the median, first step left out.
fn change(steps: &Steps, values: &[u64]) -> Option<Estimate> {
    let kept = steps.after_first();
    let median = values[kept.clone()].iter().copied().collect::<Distribution>().median().filter(|ns| *ns > 0)?;
    let start = steps.span.start;
    let at = |position: usize| (steps.rows()[position].start_ns - start) as f64;
    let points: Vec<(f64, f64)> = kept.clone().map(|position| (at(position), values[position] as f64)).collect();
    let length = at(kept.end - 1) - at(kept.start);
    Some(trend::theil_sen(&points, CONFIDENCE)?.times(length * 100.0 / median as f64))
}

/// The tables of the view, in the order they are shown.
pub fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let Some(loops_found) = Loops::of(selection) else {
        let mut table = loops_table();
        table.note(no_steps(selection));
        return vec![table];
    };
    let off_cpu = OffCpu::of(selection.capture());
    let made = StepParts::of(selection, &loops_found, loops_found.main(), &off_cpu);
    vec![
        loops(selection, &loops_found, &off_cpu),
        quantities(selection, &loops_found, &made),
        histogram(loops_found.main(), &made),
        longest(selection, &loops_found, &made, &off_cpu),
    ]
}

/// Why nothing can be said per step, and what to do.
pub fn no_steps(selection: &Selection<'_>) -> String {
    if selection.capture().steps.is_empty() {
        return "No steps were recorded: name the function that does one with `stepscope record --step-function NAME`, \
                or mark steps in the program."
            .to_owned();
    }
    "No step lies whole within the selected time.".to_owned()
}

fn loops_table() -> Table {
    Table::new(
        "loops",
        "Simulation loops",
        vec![
            columns::text("loop", "Process that runs the loop; empty where unknown.").essential(),
            columns::text("thread", "Last name of the thread that began most of its steps."),
            columns::number("tid", "", "That thread's id.").detail(),
            columns::number("pid", "", "Id of the process.").detail(),
            columns::count("steps", "steps", "Number of steps that lie whole within the selected time.").essential(),
            columns::number("rate", "steps/s", "Steps per second, the first one left out."),
            columns::number("rtf", "", "Real-time factor: simulated time over wall time.").essential(),
            columns::number(
                "rtf_unpaced",
                "",
                "The same with the time taken out in which the loop only waited for the next step to be due: how fast it could be.",
            ),
            columns::duration(
                "first_step",
                "The loop's first step, if it is among them: it loads what the others use.",
            ),
            columns::duration("median", "Median time of the other steps."),
            columns::count(
                "stalls",
                "steps",
                "Steps that took more than twice the median of the 15 steps on either side, without pacing.",
            ),
            columns::duration("stall_time", "What they took beyond that median, together.").detail(),
            columns::percent(
                "change",
                "Change of the steps' time without pacing from the first to the last one, in percent of the median: positive where steps become slower.",
            ),
            columns::percent("change_low", "Lower end of its 95 % interval.").detail(),
            columns::percent("change_high", "Upper end.").detail(),
        ],
    )
}

/// The table `loops`: a row a loop, the main one first.
fn loops(selection: &Selection<'_>, loops: &Loops, off_cpu: &OffCpu<'_>) -> Table {
    let mut table = loops_table();
    for steps in loops.all() {
        let made = StepParts::of(selection, loops, steps, off_cpu);
        let change = change(steps, &made.unpaced());
        table.push(loop_row(selection, steps, &made, change));
        if table.rows.len() == 1 {
            table.add_notes(loop_notes(steps, &made, change));
        }
    }
    if table.rows.len() > 1 {
        table.note(
            "The other tables are about the first loop; choose another with --process or --thread. Costs per step are per step of each thread's own loop."
                .to_owned(),
        );
    }
    table
}

fn loop_row(selection: &Selection<'_>, steps: &Steps, made: &StepParts, change: Option<Estimate>) -> Vec<Value> {
    let capture = selection.capture();
    let thread = &capture.threads[most_frequent_thread(steps.rows()).index()];
    let process = thread.process.map(|process| &capture.processes[process.index()]);
    let kept = steps.after_first();
    let unpaced = made.unpaced();
    let time: u64 = made.durations[kept.clone()].iter().sum();
    let rate = (time > 0).then(|| kept.len() as f64 * 1e9 / time as f64);
    let (stalls, beyond) = stalled(&unpaced, kept.clone());
    let others: Distribution = made.durations[kept].iter().copied().collect();
    vec![
        selection.process_label_of(thread).into(),
        thread.name.as_str().into(),
        thread.tid.into(),
        process.map(|process| process.pid).into(),
        steps.count().into(),
        rate.into(),
        steps.real_time_factor.into(),
        unpaced_factor(steps, made).into(),
        steps.first().map(|step| step.end_ns - step.start_ns).into(),
        others.median().into(),
        stalls.into(),
        beyond.into(),
        change.map(|change| change.value).into(),
        change.map(|change| change.low).into(),
        change.map(|change| change.high).into(),
    ]
}

fn most_frequent_thread(rows: &[Step]) -> ThreadId {
    let mut counts: Vec<(usize, ThreadId)> = Vec::new();
    for step in rows {
        match counts.iter_mut().find(|(_, thread)| *thread == step.thread) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, step.thread)),
        }
    }
    let most = counts.into_iter().reduce(|most, one| if one.0 > most.0 { one } else { most });
    most.expect("a loop that is shown has steps").1
}

/// Number of stalls in `kept`, and what they took beyond the median of their neighbours.
fn stalled(times: &[u64], kept: Range<usize>) -> (usize, u64) {
    let times = &times[kept];
    let ratios =
        (0..times.len()).filter_map(|position| Some((times[position], times_the_neighbours(times, position)?)));
    let stalls = ratios.filter(|(_, ratio)| *ratio > STALL);
    stalls
        .fold((0, 0), |(count, beyond), (time, ratio)| (count + 1, beyond + (time as f64 * (1.0 - 1.0 / ratio)) as u64))
}

/// Simulated over wall time, without the pacing in that wall time.
fn unpaced_factor(steps: &Steps, made: &StepParts) -> Option<f64> {
    made.spent.as_ref()?;
    let (wall, simulated) = simulated(steps.rows())?;
    let first = steps.rows().iter().position(|step| step.sim_time_ns.is_some())?;
    let last = steps.rows().iter().rposition(|step| step.sim_time_ns.is_some())?;
    let pacing = made.pacing[first + 1..=last].iter().copied().fold(0, u64::saturating_add);
    let worked = wall.checked_sub(pacing).filter(|ns| *ns > 0)?;
    Some(simulated as f64 / worked as f64)
}

fn loop_notes(steps: &Steps, made: &StepParts, change: Option<Estimate>) -> Vec<String> {
    let mut notes = Vec::new();
    let time: u64 = made.durations.iter().sum();
    if made.is_paced() {
        let pacing = made.pacing.iter().copied().fold(0, u64::saturating_add);
        let share = quantity::percent(percent(pacing.into(), time.into()).unwrap_or(0.0));
        notes.push(format!(
            "The loop's thread slept for {} ({share}) of the steps' time, which is taken for pacing.",
            quantity::duration(pacing)
        ));
    }
    if made.unknown_ns > 0 {
        notes.push(format!(
            "{} of the loop's blocked time has no stack: whether it is pacing is not known, and it is not counted so.",
            quantity::duration(made.unknown_ns)
        ));
    }
    if made.spent.is_none() {
        notes.push("Context switches were not recorded, so pacing is not known.".to_owned());
    }
    let count = quantity::plural(steps.count(), "step");
    notes.push(match change {
        None => format!("{count} are too few to tell a trend."),
        Some(change) => {
            let interval = format!("{:+.1} % ({:+.1} to {:+.1} %)", change.value, change.low, change.high);
            match change {
                _ if change.low > 0.0 => format!("Steps become slower: {interval} from the first to the last one."),
                _ if change.high < 0.0 => format!("Steps become faster: {interval} from the first to the last one."),
                _ => format!("No trend can be told: {interval} from the first step to the last one."),
            }
        }
    });
    if steps.real_time_factor.is_none() {
        notes.push("The steps say no simulated time, so there is no real-time factor.".to_owned());
    }
    notes
}

/// The table `steps`: what steps are made of, a row a quantity, the first step left out.
fn quantities(selection: &Selection<'_>, loops: &Loops, made: &StepParts) -> Table {
    let steps = loops.main();
    let mut table = Table::new(
        "steps",
        "Steps, by what they are made of",
        vec![
            columns::text("quantity", "What is told of each step.").essential(),
            columns::duration("total", "Over all steps but the first one."),
            columns::percent("share", "Of the steps' time; CPU of all threads can exceed it."),
            columns::duration("mean", "Mean of the steps.").essential(),
            columns::duration("min", "Least."),
            columns::duration("median", "Median.").essential(),
            columns::duration("p95", "95th percentile: a step that occurred."),
            columns::duration("p99", "99th percentile."),
            columns::duration("max", "Largest."),
            columns::duration("first_step", "Of the loop's first step, which the others leave out."),
            columns::percent("change", "Change from the first to the last step in percent of the median (Theil-Sen).")
                .detail(),
            columns::percent("change_low", "Lower end of its 95 % interval.").detail(),
            columns::percent("change_high", "Upper end.").detail(),
        ],
    );
    let time: u64 = made.durations[steps.after_first()].iter().sum();
    let mut add = |name: &str, values: &[u64]| table.push(quantity_row(name, steps, values, time));
    add("step", &made.durations);
    if made.spent.is_some() {
        add("step without pacing", &made.unpaced());
        add("pacing", &made.pacing);
    }
    if let Some(spent) = &made.spent {
        add("loop thread running", &spent.iter().map(|spent| spent.running).collect::<Vec<_>>());
        add("loop thread runnable", &spent.iter().map(|spent| spent.runnable).collect::<Vec<_>>());
        let waiting = spent.iter().zip(&made.pacing).map(|(spent, pacing)| spent.blocked.saturating_sub(*pacing));
        add("loop thread blocked, not pacing", &waiting.collect::<Vec<_>>());
    }
    if let Some(cpu) = &made.cpu {
        add(if made.cpu_is_exact { "CPU of all threads" } else { "CPU of all threads, sampled" }, cpu);
    }
    if selection.filters_threads() {
        table.note("CPU is that of the selected threads.".to_owned());
    }
    table
}

fn quantity_row(name: &str, steps: &Steps, values: &[u64], time: u64) -> Vec<Value> {
    let others: Distribution = values[steps.after_first()].iter().copied().collect();
    let change = change(steps, values);
    vec![
        name.into(),
        others.sum().into(),
        percent(others.sum(), time.into()).into(),
        others.mean().into(),
        others.min().into(),
        others.median().into(),
        others.percentile(95.0).into(),
        others.percentile(99.0).into(),
        others.max().into(),
        steps.first().map(|_| values[0]).into(),
        change.map(|change| change.value).into(),
        change.map(|change| change.low).into(),
        change.map(|change| change.high).into(),
    ]
}

/// Most rows of a histogram.
const BINS: usize = 30;

/// The table `step_histogram`: how often steps took how long, in bins of equal ratio.
///
/// Times of steps spread over decades and bunch within a few percent, so bins are equal on a logarithmic scale; their
/// width there is that of Freedman and Diaconis (1981), 2 IQR / n^(1/3), but at most 30 bins cover the range.
fn histogram(steps: &Steps, made: &StepParts) -> Table {
    let mut table = Table::new(
        "step_histogram",
        "How long steps took",
        vec![
            columns::duration("from", "Shortest time of the bin.").essential(),
            columns::duration("to", "First time that is no longer in it.").essential(),
            columns::count("steps", "steps", "Number of steps in it, the loop's first one left out.").essential(),
            columns::percent("share", "In percent of the steps."),
            columns::percent("cumulative", "Steps in this bin and the ones above, in percent."),
            columns::percent("time_share", "Time of these steps in percent of all steps' time."),
            columns::text("bar", "The share as a bar; the fullest bin fills it."),
        ],
    );
    let times: Distribution = made.durations[steps.after_first()].iter().copied().filter(|ns| *ns > 0).collect();
    let bins = bins(&times);
    let fullest = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    let mut up_to = 0;
    for bin in &bins {
        up_to += bin.count;
        table.push(vec![
            bin.range.start.into(),
            bin.range.end.into(),
            bin.count.into(),
            percent(bin.count as u128, times.len() as u128).into(),
            percent(up_to as u128, times.len() as u128).into(),
            percent(bin.sum, times.sum()).into(),
            bar(bin.count, fullest).into(),
        ]);
    }
    table
}

fn bar(count: usize, fullest: usize) -> String {
    const LENGTH: usize = 24;
    let eighths = (count * LENGTH * 8).div_ceil(fullest.max(1));
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{rest}", "█".repeat(eighths / 8))
}

struct Bin {
    range: Range<u64>,
    count: usize,
    sum: u128,
}

fn bins(times: &Distribution) -> Vec<Bin> {
    let (Some(min), Some(max)) = (times.min(), times.max()) else { return Vec::new() };
    let log = |ns: u64| (ns as f64).ln();
    let quartile = |percent: f64| times.percentile(percent).map_or(0.0, log);
    let rule = 2.0 * (quartile(75.0) - quartile(25.0)) / (times.len() as f64).cbrt();
    let range = log(max) - log(min);
    let count = if rule > 0.0 { (range / rule).ceil().clamp(1.0, BINS as f64) as usize } else { BINS };
    let edge = |bin: usize| match bin {
        0 => min,
        _ if bin == count => max + 1,
        _ => (log(min) + range * bin as f64 / count as f64).exp().round() as u64,
    };
    let mut edges: Vec<u64> = (0..=count).map(edge).collect();
    edges.dedup();
    let values = times.values();
    let bin = |pair: &[u64]| {
        let (from, to) = (values.partition_point(|ns| *ns < pair[0]), values.partition_point(|ns| *ns < pair[1]));
        Bin { range: pair[0]..pair[1], count: to - from, sum: values[from..to].iter().map(|ns| u128::from(*ns)).sum() }
    };
    edges.windows(2).map(bin).collect()
}

/// The table `longest_steps`: the steps that took longest without pacing, and what they were made of.
fn longest(selection: &Selection<'_>, loops: &Loops, made: &StepParts, off_cpu: &OffCpu<'_>) -> Table {
    let steps = loops.main();
    let mut table = Table::new(
        "longest_steps",
        "The longest steps",
        vec![
            columns::number("step", "", "Number of the step.").essential(),
            columns::duration("start", "When it began, after the start of the recording."),
            columns::duration("duration", "How long it took.").essential(),
            columns::duration("pacing", "Of that, pacing of the loop's thread.").detail(),
            columns::number("times_neighbours", "", "Its time without pacing over the median of its neighbours'."),
            columns::flag("stall", "Whether that makes it a stall.").detail(),
            columns::duration("running", "The loop's thread on a CPU."),
            columns::duration("runnable", "The loop's thread ready, and waiting for a CPU."),
            columns::duration("blocked", "The loop's thread blocked, pacing left out."),
            columns::duration("cpu", "On-CPU time of all threads."),
            columns::text(
                "function",
                "What most sampled time of all threads is credited to: the nearest owned function (of the program, where nothing is owned).",
            ),
            columns::duration("function_cpu", "That function's time."),
            columns::text("waits_at", "What most blocked time of the loop's thread is credited to, pacing left out."),
            columns::duration("waits", "That function's time.").detail(),
        ],
    );
    let unpaced = made.unpaced();
    let mut order: Vec<usize> = (0..steps.count()).collect();
    order.sort_by_key(|position| std::cmp::Reverse(unpaced[*position]));
    order.truncate(LONGEST);
    let places = credited_in(selection, loops, &order);
    let mut pacing = Pacing::of(selection, steps, off_cpu);
    let start = selection.capture().info.start_ns.unwrap_or(steps.span.start);
    for (place, &position) in order.iter().enumerate() {
        let step = &steps.rows()[position];
        let name = |id: FunctionId| &*selection.functions().get(id).name;
        let waited = waited_at(selection, off_cpu, step, &mut pacing);
        let spent = made.spent.as_ref().map(|spent| spent[position]);
        let ratio = times_the_neighbours(&unpaced, position);
        table.push(vec![
            step.index.into(),
            step.start_ns.saturating_sub(start).into(),
            made.durations[position].into(),
            spent.map(|_| made.pacing[position]).into(),
            ratio.into(),
            ratio.map(|ratio| ratio > STALL).into(),
            spent.map(|spent| spent.running).into(),
            spent.map(|spent| spent.runnable).into(),
            spent.map(|spent| spent.blocked.saturating_sub(made.pacing[position])).into(),
            made.cpu.as_ref().map(|cpu| cpu[position]).into(),
            places[place].map(|(id, _)| name(id)).into(),
            places[place].map(|(_, weight)| weight).into(),
            waited.map(|(id, _)| name(id)).into(),
            waited.map(|(_, ns)| ns).into(),
        ]);
    }
    table
}

/// Of each of these steps the function that most sampled weight is credited to.
fn credited_in(selection: &Selection<'_>, loops: &Loops, positions: &[usize]) -> Vec<Option<(FunctionId, u64)>> {
    let mut place_of = vec![None; loops.main().count()];
    positions.iter().enumerate().for_each(|(place, position)| place_of[*position] = Some(place));
    let mut sums: Vec<Vec<(FunctionId, u64)>> = vec![Vec::new(); positions.len()];
    for sample in selection.samples() {
        let Some(place) = loops.main_step_of(sample).and_then(|position| place_of[position]) else { continue };
        if let Some(function) = sample.stack.and_then(|stack| selection.functions().attributed(stack)) {
            sums[place].push((function, sample.weight));
        }
    }
    sums.into_iter().map(largest).collect()
}

fn waited_at(
    selection: &Selection<'_>,
    off_cpu: &OffCpu<'_>,
    step: &Step,
    pacing: &mut Pacing<'_>,
) -> Option<(FunctionId, u64)> {
    let waits = off_cpu.within(step.thread, step.start_ns..step.end_ns);
    let credited = |stack: StackId| selection.functions().attributed(stack);
    largest(
        waits
            .filter(|wait| !pacing.is_pacing(wait))
            .filter_map(|wait| Some((wait.stack.and_then(credited)?, blocked_ns(&wait))))
            .filter(|(_, ns)| *ns > 0)
            .collect(),
    )
}

/// The function with the largest sum; of equal ones the first of the capture.
fn largest(mut parts: Vec<(FunctionId, u64)>) -> Option<(FunctionId, u64)> {
    parts.sort_unstable_by_key(|(function, _)| *function);
    let sums = parts.chunk_by(|a, b| a.0 == b.0);
    let sums = sums.map(|of_one| (of_one[0].0, of_one.iter().fold(0_u64, |sum, part| sum.saturating_add(part.1))));
    sums.reduce(|best, one| if one.1 > best.1 { one } else { best })
}

/// How long steps take.
pub struct StepTimes;

impl Analysis for StepTimes {
    fn title(&self) -> &'static str {
        "Steps"
    }

    fn views(&self) -> &'static [View] {
        &[View {
            name: "steps",
            question: "How long do steps take, what are they made of, do they grow, and which stall?",
            tables: |selection, _| tables(selection),
        }]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Steps]
    }

    /// The loops, a chart over time, the quantities, a histogram and the longest steps.
    fn report(&self, selection: &Selection<'_>) -> Vec<ReportSection> {
        let Some(over_time) = steps_over_time::table(selection) else { return Vec::new() };
        let over_time = Part::Chart {
            table: over_time,
            across: "at",
            marks: vec![
                Mark::Band("shortest".into(), "longest".into()),
                Mark::Line("median".into()),
                Mark::Points("stall".into()),
            ],
            caption: "step time since the start: median as a line, shortest to longest, stalls as dots",
        };
        let part = |table: Table| match table.name.as_str() {
            "step_histogram" => Part::Chart {
                table,
                across: "from",
                marks: vec![Mark::Bars { to: "to".into(), height: "steps".into() }],
                caption: "number of steps over their time",
            },
            _ => Part::Table(table),
        };
        let mut parts: Vec<Part> = tables(selection).into_iter().map(part).collect();
        parts.insert(1, over_time);
        vec![ReportSection::new("Steps", parts)]
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    const NAP: &str = "main;gz::Run;usleep;clock_nanosleep";
    const LOCK: &str = "main;gz::Step;pthread_mutex_lock;__lll_lock_wait";

    fn all(capture: &Capture) -> Vec<Table> {
        drawn::selected(capture, &["gz::"], tables)
    }

    /// Ten steps of 100 ns that simulate 50 each; in each the loop sleeps 20, and waits 10 + 5 at a lock; a worker runs 30.
    fn paced() -> Capture {
        let mut drawing = Drawing::new()
            .window(0..2_000)
            .process(1, "/usr/bin/sim")
            .lived("main", 0..2_000, None)
            .steps("main", 100, 100, 10, 50)
            .lived("worker", 0..2_000, None);
        for step in 1..11 {
            let start = step * 100;
            drawing = drawing
                .blocked_then_runnable("main", start + 10..start + 25, 5, LOCK)
                .blocked("main", start + 80..start + 100, NAP)
                .blocked("worker", start + 30..start + 100, "");
        }
        drawing.folded(Event::sampled("cpu-clock", "ns"), "@140 main;gz::Step;find 9\n@999 worker;gz::Work 30").capture
    }

    #[test]
    fn the_loop_is_told_with_and_without_its_pacing() {
        let tables = all(&paced());
        assert_eq!(
            cells(&tables[0], &["loop", "thread", "steps", "rtf", "rtf_unpaced", "first_step", "median", "stalls"]),
            ["sim | main | 10 | 0.5 | 0.625 | 100 | 100 | 0"]
        );
        assert_eq!(
            tables[0].notes[0],
            "The loop's thread slept for 200 ns (20.00 %) of the steps' time, which is taken for pacing."
        );
    }

    #[test]
    fn a_step_is_made_of_what_its_threads_did_in_it() {
        let tables = all(&paced());
        assert_eq!(
            cells(&tables[1], &["quantity", "total", "share", "mean", "p99", "first_step"]),
            [
                "step | 900 | 100 | 100 | 100 | 100",
                "step without pacing | 720 | 80 | 80 | 80 | 80",
                "pacing | 180 | 20 | 20 | 20 | 20",
                "loop thread running | 585 | 65 | 65 | 65 | 65",
                "loop thread runnable | 45 | 5 | 5 | 5 | 5",
                "loop thread blocked, not pacing | 90 | 10 | 10 | 10 | 10",
                "CPU of all threads | 855 | 95 | 95 | 95 | 95",
            ]
        );
    }

    #[test]
    fn a_condition_that_no_thread_signals_is_pacing_where_wake_ups_are_known() {
        let capture = Drawing::new()
            .lived("main", 0..100, None)
            .blocked_then_runnable("main", 0..10, 0, "gz::Run;pthread_cond_timedwait")
            .blocked("main", 20..30, "gz::Run;pthread_cond_timedwait")
            .capture;
        drawn::selected(&capture, &[], |selection| {
            let nothing = OffCpu::of(&capture);
            let steps = Drawing::new().steps("main", 200, 1, 1, 1).capture;
            let steps = drawn::selected(&steps, &[], |selection| Steps::of(selection).unwrap());
            let mut pacing = Pacing::of(selection, &steps, &nothing);
            let mut signalled = capture.waits[0];
            signalled.waker = Some(ThreadId(0));
            let judged = [capture.waits[0], signalled, capture.waits[1]].map(|wait| pacing.is_pacing(&wait));
            assert_eq!(judged, [true, false, false]);
        });
    }

    #[test]
    fn a_wait_without_a_stack_is_what_those_with_one_are() {
        let paced_by = |stack: &str| {
            let mut drawing =
                Drawing::new().window(0..2_000).lived("main", 0..2_000, None).steps("main", 0, 100, 20, 50);
            for step in 0..20 {
                let stack = if step % 2 == 0 { stack } else { "" };
                drawing = drawing.blocked_then_runnable("main", step * 100 + 50..step * 100 + 90, 0, stack);
            }
            let tables = all(&drawing.capture);
            cells(&tables[1], &["quantity", "total"])[2].clone()
        };
        assert_eq!([paced_by(NAP), paced_by("main;gz::Save;fsync")], ["pacing | 760", "pacing | 0"]);
    }

    #[test]
    fn a_stall_is_long_among_its_neighbours_and_not_at_the_end_of_a_growing_run() {
        let growing: Vec<u64> = (0..200).map(|step| 1_000 + 20 * step).collect();
        assert!(stalls(&growing).iter().all(|stall| !stall));
        let mut jump = growing.clone();
        jump[10] = 2_600;
        jump[150] = 7_900;
        let found: Vec<usize> = (0..200).filter(|step| stalls(&jump)[*step]).collect();
        assert_eq!(found, [10]);
        assert_eq!(stalls(&[5]), [false]);
    }

    #[test]
    fn a_loop_that_slows_down_is_said_to_and_by_how_much() {
        let mut capture = Drawing::new().window(0..1_000_000).steps("main", 0, 1, 100, 1).capture;
        let mut start = 0;
        for step in &mut capture.steps {
            (step.start_ns, step.end_ns) = (start, start + 1_000 + 10 * step.index);
            start = step.end_ns;
        }
        let table = &all(&capture)[0];
        let Some(Value::Float(change)) = table.get(0, "change") else { panic!("{:?}", table.rows) };
        // From 1010 to 1990 ns, with a median of 1500: 65 %.
        assert!((60.0..72.0).contains(change), "{change}");
        assert!(table.notes.iter().any(|note| note.starts_with("Steps become slower: ")), "{:?}", table.notes);
    }

    #[test]
    fn bins_hold_every_step_but_the_first() {
        let table = &all(&paced())[2];
        assert_eq!(
            cells(table, &["from", "to", "steps", "share", "cumulative", "time_share"]),
            ["100 | 101 | 9 | 100 | 100 | 100"]
        );
        let times: Distribution = (1..=1_000_u64).map(|index| 1_000 + index * index).collect();
        let bins = bins(&times);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), 1_000);
        assert_eq!(bins.iter().map(|bin| bin.sum).sum::<u128>(), times.sum());
        assert!((5..=BINS).contains(&bins.len()), "{}", bins.len());
    }

    #[test]
    fn the_longest_steps_say_what_they_did() {
        let table = &all(&paced())[3];
        assert_eq!(
            cells(table, &["step", "start", "duration", "running", "blocked", "cpu", "function", "waits_at"])[..2],
            ["0 | 100 | 100 | 65 | 10 | 95 | gz::Step | gz::Step", "1 | 200 | 100 | 65 | 10 | 95 | - | gz::Step"]
        );
        assert_eq!(cells(table, &["function", "function_cpu"])[8], "gz::Work | 30");
    }

    #[test]
    fn without_steps_the_table_says_how_to_have_them() {
        let tables = all(&drawn::folded("main;a 1"));
        assert_eq!(tables.len(), 1);
        assert!(tables[0].notes[0].contains("--step-function"), "{:?}", tables[0].notes);
    }

    #[test]
    fn without_switches_times_and_sampled_cost_are_all_that_is_known() {
        let capture = Drawing::new()
            .window(0..100)
            .steps("main", 0, 10, 5, 1)
            .folded(Event::sampled("cpu-clock", "ns"), "@15 main;a 4\n@25 main;a 6")
            .capture;
        let tables = all(&capture);
        assert_eq!(
            cells(&tables[1], &["quantity", "total", "max"]),
            ["step | 40 | 10", "CPU of all threads, sampled | 10 | 6"]
        );
        assert_eq!(cells(&tables[3], &["running", "pacing"])[0], "- | -");
    }
}
