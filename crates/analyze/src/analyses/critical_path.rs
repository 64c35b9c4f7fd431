//! The critical path of steps: what their duration is made of, whichever threads did it.
//!
//! A profile says what threads cost. It does not say what a *step* waits for: a worker may burn a core for 8 ms a step while
//! the loop waits for another one, and making it twice as fast gains nothing. Wake-ups tell: a thread that waited was woken
//! by the one it waited for.
//!
//! # The walk
//! For each step, backwards from its end on the thread that ends it:
//!
//! - while the thread was *running*, the path is on it;
//! - where it was *runnable* (preempted, or woken and without a CPU yet), the path is that delay, on the same thread;
//! - where it was *blocked* and a thread woke it, the path goes on at that thread, at the moment of the wake-up: what the
//!   blocked one waited for happened there;
//! - where it was blocked and no thread woke it (a timer, a device, a wake-up that was not recorded), the wait itself is
//!   on the path, by its [class](crate::query::wait_class);
//! - where a thread began to live within the step, the path goes on at the step's own thread, which is taken for
//!   the one that started it.
//!
//! Each part ends where the next one begins, so the parts of a step add up to its duration, exactly. (The idea is Yang and Miller's
//! *Critical Path Analysis for the Execution of Parallel and Distributed Programs*, 1988; wake-ups stand for their messages.)
//!
//! # What can be gained
//! The time that a function has on the path is the most that a step gets shorter if the function cost nothing at all:
//! `gain_bound`, of running time in it and below it, and of waits at stacks that hold it. Where the path waits for a CPU,
//! [who has it](CpuHolders) holds up the step as if the path were on it, and so the bound has that time too (`held_up`):
//! of more threads than CPUs, each waits for what the others do. It is a bound and no forecast: when the path gets
//! shorter, another one may become the longest. What is off the path and holds up nothing on it has a bound of zero,
//! whatever it costs.
//!
//! Running time on the path is exact by thread; to functions it is given by the samples taken in it.
//!
//! # Barriers
//! Waits of two threads or more that one thread ended at about the same time ([`TOGETHER_NS`] from one to the next, in
//! one step) are a *barrier*: the one that ended them came last. How long another one waited there is its *slack*: by so much
//! could what it did before take longer, and nobody would wait for it. How long the one waited that waited least is what the last one is *behind*: being faster by
//! more than that gains nothing more there. A thread that hands out work to idle ones looks the same, and rightly: they
//! waited for it.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Capture, Dimension, StackId, Table, ThreadId, Value, Wait, WaitState, quantity};
use stepscope_stats::Distribution;

use crate::analyses::step_times::{Made, no_steps};
use crate::analysis::{Analysis, ReportSection, View};
use crate::query::cpu_holders::CpuHolders;
use crate::query::functions::{FunctionId, NO_STACK};
use crate::query::off_cpu::OffCpu;
use crate::query::select::{Selection, process_name};
use crate::query::steps::{Loops, Steps};
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use crate::query::waits::woken_at;
use crate::query::wake_ups::WakeUps;
use crate::query::weights::{Amount, StackWeights, percent};
use crate::{columns, notes};

/// Wake-ups by one thread that follow each other within this time end waits at one barrier.
pub const TOGETHER_NS: u64 = 100_000;

/// Wake-ups without any time between them that are followed; real chains have a few, damaged evidence may have circles.
const MOST_JUMPS: u32 = 64;

/// One part of a step's critical path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The thread that it is on.
    pub thread: ThreadId,
    /// When.
    pub range: Range<u64>,
    /// What the thread did.
    pub did: Did,
}

/// What a thread did while the path was on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// It ran.
    Run,
    /// It waited for a CPU.
    WaitForCpu,
    /// It waited for something that no thread ended, at this stack.
    Wait(Option<StackId>),
}

/// The critical paths of a loop's steps.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    /// All parts, by step; those of a step from its end to its begin.
    parts: Vec<Part>,
    /// Where each step's begin in `parts`; one more at the end.
    first: Vec<usize>,
    /// Wake-ups that the paths go through: who woke, and when.
    wake_ups: FxHashSet<(ThreadId, u64)>,
}

impl Paths {
    /// Walks back from the end of every step.
    pub fn of(capture: &Capture, steps: &Steps, off_cpu: &OffCpu<'_>) -> Self {
        let mut paths = Self { first: vec![0], ..Self::default() };
        let rows = steps.rows();
        for (position, step) in rows.iter().enumerate() {
            let next = rows.get(position + 1).filter(|next| next.start_ns == step.end_ns);
            let walk = Walk {
                capture,
                off_cpu,
                begin: step.start_ns,
                own: step.thread,
                thread: next.map_or(step.thread, |next| next.thread),
                time: step.end_ns,
                jumps: 0,
            };
            walk.back_to_the_begin(&mut paths);
            paths.first.push(paths.parts.len());
        }
        paths
    }

    /// The parts of a step's path, from its end to its begin.
    pub fn of_step(&self, position: usize) -> &[Part] {
        &self.parts[self.first[position]..self.first[position + 1]]
    }

    /// How long a step's path waited for a CPU.
    pub fn delay(&self, position: usize) -> u64 {
        let delays = self.of_step(position).iter().filter(|part| part.did == Did::WaitForCpu);
        delays.map(|part| part.range.end - part.range.start).sum()
    }
}

/// Who had the CPUs that the paths of all steps but the first waited for, and when, by thread and time.
fn held_up(capture: &Capture, steps: &Steps, paths: &Paths, off_cpu: &OffCpu<'_>) -> Vec<(ThreadId, Range<u64>)> {
    let holders = CpuHolders::of(capture, off_cpu);
    let parts = steps.after_first().flat_map(|position| paths.of_step(position));
    let delays = parts.filter(|part| part.did == Did::WaitForCpu);
    let cpu_of = |part: &Part| off_cpu.last_before(part.thread, part.range.end)?.cpu;
    let mut found: Vec<(ThreadId, Range<u64>)> = delays
        .filter_map(|part| Some((cpu_of(part)?, &part.range)))
        .flat_map(|(cpu, range)| holders.within(cpu, range))
        .collect();
    found.sort_unstable_by_key(|(thread, range)| (*thread, range.start));
    found
}

struct Walk<'a> {
    capture: &'a Capture,
    off_cpu: &'a OffCpu<'a>,
    begin: u64,
    own: ThreadId,
    thread: ThreadId,
    time: u64,
    jumps: u32,
}

impl Walk<'_> {
    fn back_to_the_begin(mut self, paths: &mut Paths) {
        while self.time > self.begin {
            let wait = self.off_cpu.last_before(self.thread, self.time);
            let born = self.capture.threads[self.thread.index()].start_ns.unwrap_or(0);
            match wait {
                Some(wait) if wait.end_ns >= self.time => self.back_through(wait, paths),
                _ if born >= self.time => self.before_life(paths),
                _ => {
                    let ran_from = wait.map_or(born, |wait| wait.end_ns.max(born));
                    self.back_to(ran_from, Did::Run, paths);
                }
            }
        }
    }

    /// The part from `from`, or the step's begin, to where the walk is.
    fn back_to(&mut self, from: u64, did: Did, paths: &mut Paths) {
        let from = from.max(self.begin);
        if from < self.time {
            paths.parts.push(Part { thread: self.thread, range: from..self.time, did });
            self.time = from;
            self.jumps = 0;
        }
    }

    /// Within or at the end of a wait.
    fn back_through(&mut self, wait: &Wait, paths: &mut Paths) {
        let woken = woken_at(wait);
        self.back_to(woken, Did::WaitForCpu, paths);
        if self.time <= self.begin || wait.state == WaitState::Preempted {
            return;
        }
        match wait.waker.filter(|waker| *waker != self.thread && self.time == woken && self.jumps < MOST_JUMPS) {
            Some(waker) => {
                paths.wake_ups.insert((waker, woken));
                self.thread = waker;
                self.jumps += 1;
            }
            None => self.back_to(wait.start_ns, Did::Wait(wait.stack), paths),
        }
    }

    fn before_life(&mut self, paths: &mut Paths) {
        if self.thread == self.own || self.jumps >= MOST_JUMPS {
            // Nothing is known of it.
            return self.back_to(self.begin, Did::Wait(None), paths);
        }
        self.thread = self.own;
        self.jumps += 1;
    }
}

/// Waits of several threads that one thread ended at about the same time.
#[derive(Debug, Clone)]
struct Barrier {
    last: ThreadId,
    /// Where the last one was when it woke the others.
    last_at: Option<FunctionId>,
    waits_at: Option<FunctionId>,
    waited: Vec<(ThreadId, u64)>,
    on_path: bool,
}

impl Barrier {
    /// By how much the last one came later than the one before it.
    fn behind(&self) -> u64 {
        self.waited.iter().map(|(_, ns)| *ns).min().unwrap_or(0)
    }
}

fn barriers(selection: &Selection<'_>, steps: &Steps, paths: &Paths) -> Vec<Barrier> {
    let kept = steps.after_first();
    let in_step = |wait: &Wait| steps.at(woken_at(wait)).filter(|position| kept.contains(position));
    let ended = selection.capture().waits.iter().filter(|wait| wait.state == WaitState::Blocked);
    let mut ended: Vec<(ThreadId, u64, usize, &Wait)> =
        ended.filter_map(|wait| Some((wait.waker?, woken_at(wait), in_step(wait)?, wait))).collect();
    ended.sort_unstable_by_key(|(waker, time, _, wait)| (*waker, *time, wait.thread));
    let together = |a: &(ThreadId, u64, usize, &Wait), b: &(ThreadId, u64, usize, &Wait)| {
        a.0 == b.0 && a.2 == b.2 && b.1 - a.1 <= TOGETHER_NS
    };
    ended.chunk_by(together).filter_map(|group| barrier(selection, paths, group)).collect()
}

/// `None` if only one thread waited.
fn barrier(selection: &Selection<'_>, paths: &Paths, group: &[(ThreadId, u64, usize, &Wait)]) -> Option<Barrier> {
    let mut waited: Vec<(ThreadId, u64)> = group.iter().map(|(.., wait)| (wait.thread, blocked_ns(wait))).collect();
    // One that waited twice was woken for something else at first.
    waited.sort_unstable_by_key(|(thread, ns)| (*thread, Reverse(*ns)));
    waited.dedup_by_key(|(thread, _)| *thread);
    if waited.len() < 2 {
        return None;
    }
    let credited = |stack: Option<StackId>| stack.and_then(|stack| selection.functions().attributed(stack));
    let first_known = |of: fn(&Wait) -> Option<StackId>| group.iter().find_map(|(.., wait)| credited(of(wait)));
    Some(Barrier {
        last: group[0].0,
        last_at: first_known(|wait| wait.waker_stack),
        waits_at: first_known(|wait| wait.stack),
        waited,
        on_path: group.iter().any(|(waker, time, ..)| paths.wake_ups.contains(&(*waker, *time))),
    })
}

/// The tables of the view: what steps are made of, by part, by thread, by function, and who came last at barriers.
pub fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let loops = match Loops::of(selection) {
        Some(loops) if !matches!(WakeUps::of(selection), WakeUps::Unrecorded) && selection.has_switches() => loops,
        found => {
            let mut table = functions_table();
            table.note(match found {
                None => no_steps(selection),
                Some(_) => no_wake_ups(selection),
            });
            return vec![table];
        }
    };
    let off_cpu = OffCpu::of(selection.capture());
    let paths = Paths::of(selection.capture(), loops.main(), &off_cpu);
    let held_up = held_up(selection.capture(), loops.main(), &paths, &off_cpu);
    let barriers = barriers(selection, loops.main(), &paths);
    let mut tables = vec![
        parts(selection, &loops, &paths, &off_cpu, &held_up),
        threads(selection, loops.main(), &paths, &off_cpu, &held_up, &barriers),
        functions(selection, loops.main(), &paths, &held_up),
        barriers_table(selection, loops.main(), &barriers),
    ];
    if !barriers.is_empty() {
        tables.push(slack(selection, &barriers));
    }
    tables
}

fn no_wake_ups(selection: &Selection<'_>) -> String {
    let why = if selection.has_switches() { "Wake-ups" } else { "Context switches" };
    format!(
        "{why} were not recorded, so nothing is known of who waited for whom. Record with `--dimensions cpu,offcpu,sched` and the \
         rights that `stepscope doctor` names under sched."
    )
}

/// What a part of the path counts as in the table of parts.
const OWN: usize = 0;
const OTHERS: usize = 1;
const DELAY: usize = 2;
const FIRST_CLASS: usize = 3;
const NO_CLASS: usize = FIRST_CLASS + WaitClass::ALL.len();

fn part_name(part: usize) -> String {
    match part {
        OWN => "running on the loop's thread".to_owned(),
        OTHERS => "running on other threads".to_owned(),
        DELAY => "waiting for a CPU".to_owned(),
        NO_CLASS => "blocked, no stack".to_owned(),
        _ => format!("blocked, {}", WaitClass::ALL[part - FIRST_CLASS].name().replace('_', " ")),
    }
}

/// The table `critical_path_parts`: means over all steps but the first; they add up to the mean duration.
fn parts(
    selection: &Selection<'_>,
    loops: &Loops,
    paths: &Paths,
    off_cpu: &OffCpu<'_>,
    held_up: &[(ThreadId, Range<u64>)],
) -> Table {
    let steps = loops.main();
    let mut table = Table::new(
        "critical_path_parts",
        "Critical path of the steps, by what happened on it",
        vec![
            columns::text("part", "What the thread did that the step waited for. The parts add up to the step.")
                .essential(),
            columns::duration("mean", "Per step, the first one left out.").essential(),
            columns::percent("share", "In percent of the steps' time.").essential(),
            columns::duration("median", "Median of the steps."),
            columns::duration("p95", "95th percentile."),
            columns::duration("max", "Largest."),
            columns::percent("steps", "Steps that have any of it, in percent."),
        ],
    );
    let mut classes = Classes::new(selection.capture(), selection.functions());
    let kept = steps.after_first();
    let mut by_part: Vec<Vec<u64>> = vec![vec![0; kept.len()]; NO_CLASS + 1];
    for (place, position) in kept.clone().enumerate() {
        let own = steps.rows()[position].thread;
        for part in paths.of_step(position) {
            let kind = match part.did {
                Did::Run if part.thread == own => OWN,
                Did::Run => OTHERS,
                Did::WaitForCpu => DELAY,
                Did::Wait(Some(stack)) => FIRST_CLASS + classes.of(stack).index(),
                Did::Wait(None) => NO_CLASS,
            };
            by_part[kind][place] += part.range.end - part.range.start;
        }
    }
    let time: u128 = kept.clone().map(|position| u128::from(steps.duration(position))).sum();
    let delay: u128 = by_part[DELAY].iter().map(|ns| u128::from(*ns)).sum();
    for (kind, values) in by_part.into_iter().enumerate() {
        let values: Distribution = values.into_iter().collect();
        let any = values.len() - values.values().partition_point(|ns| *ns == 0);
        if any == 0 && kind > DELAY {
            continue;
        }
        table.push(vec![
            part_name(kind).into(),
            values.mean().into(),
            percent(values.sum(), time).into(),
            values.median().into(),
            values.percentile(95.0).into(),
            values.max().into(),
            percent(any as u128, values.len() as u128).into(),
        ]);
    }
    let held: u128 = held_up.iter().map(|(_, range)| u128::from(range.end - range.start)).sum();
    if let Some(share) = percent(held, delay) {
        table.note(format!(
            "While the path waited for a CPU, threads of this recording had it for {} of that time.",
            quantity::percent(share)
        ));
    }
    table.add_notes(notes(selection, loops, off_cpu));
    table
}

fn notes(selection: &Selection<'_>, loops: &Loops, off_cpu: &OffCpu<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let WakeUps::Recorded { missing, of } = WakeUps::of(selection)
        && missing > 0
    {
        notes.push(format!(
            "{} of {} blocked waits lack their wake-up: where the path meets one, the wait itself is on it.",
            quantity::grouped(missing as i128),
            quantity::grouped(of as i128)
        ));
    }
    if Made::of(selection, loops, loops.main(), off_cpu).is_paced() {
        notes.push(
            "The loop paces itself by sleeping: what a step gains elsewhere it sleeps longer, as long as it keeps its rate."
                .to_owned(),
        );
    }
    if selection.filters_threads() || selection.filters_stacks() {
        notes.push("Filters choose functions of the table by function; the path is that of all threads.".to_owned());
    }
    if loops.count() > 1 {
        notes.push(
            "The path is that of the loop with most steps; choose another with --process or --thread.".to_owned(),
        );
    }
    notes
}

/// What a thread has on the path, and beside it.
#[derive(Debug, Clone, Copy, Default)]
struct OfThread {
    running: u64,
    runnable: u64,
    blocked: u64,
    held_up: u64,
    last: u64,
}

impl OfThread {
    fn on_path(&self) -> u64 {
        self.running.saturating_add(self.runnable).saturating_add(self.blocked)
    }
}

/// The table `critical_path_threads`.
fn threads(
    selection: &Selection<'_>,
    steps: &Steps,
    paths: &Paths,
    off_cpu: &OffCpu<'_>,
    held_up: &[(ThreadId, Range<u64>)],
    barriers: &[Barrier],
) -> Table {
    let mut table = Table::new(
        "critical_path_threads",
        "Critical path of the steps, by thread",
        vec![
            columns::text("thread", "Last name of the thread.").essential(),
            columns::number("tid", "", "Thread id.").detail(),
            columns::text("process", "Name of its process; empty where unknown.").detail(),
            columns::duration("path", "Time per step that the critical path is on it.").essential(),
            columns::percent("share", "In percent of the steps' time.").essential(),
            columns::duration("running", "Of that, running."),
            columns::duration("runnable", "Of that, waiting for a CPU."),
            columns::duration(
                "blocked",
                "Of that, waiting for what no thread ended: timers, devices, and wake-ups that were not recorded.",
            ),
            columns::duration(
                "held_up",
                "Time per step that the path, on another thread, waited for a CPU which this one had.",
            ),
            columns::duration("cpu", "All its CPU time per step, on the path or not.").essential(),
            columns::count("last", "barriers", "Barriers at which it came last, in all steps."),
        ],
    );
    let kept = steps.after_first();
    let mut found = vec![OfThread::default(); selection.capture().threads.len()];
    for part in kept.clone().flat_map(|position| paths.of_step(position)) {
        let of = &mut found[part.thread.index()];
        let length = part.range.end - part.range.start;
        match part.did {
            Did::Run => of.running += length,
            Did::WaitForCpu => of.runnable += length,
            Did::Wait(_) => of.blocked += length,
        }
    }
    held_up.iter().for_each(|(thread, range)| found[thread.index()].held_up += range.end - range.start);
    barriers.iter().for_each(|barrier| found[barrier.last.index()].last += 1);
    let cpu = cpu_times(selection.capture(), steps, off_cpu);
    let mut order: Vec<usize> = (0..found.len()).filter(|row| found[*row].on_path() > 0 || cpu[*row] > 0).collect();
    order.sort_by_key(|row| Reverse((found[*row].on_path(), cpu[*row])));
    let time: u128 = kept.clone().map(|position| u128::from(steps.duration(position))).sum();
    let per_step = |ns: u64| Value::from(ns as f64 / kept.len().max(1) as f64);
    for row in order {
        let (thread, of) = (&selection.capture().threads[row], &found[row]);
        let process = thread.process.map(|process| process_name(&selection.capture().processes[process.index()]));
        table.push(vec![
            thread.name.as_str().into(),
            thread.tid.into(),
            process.unwrap_or("").into(),
            per_step(of.on_path()),
            percent(of.on_path().into(), time).into(),
            per_step(of.running),
            per_step(of.runnable),
            per_step(of.blocked),
            per_step(of.held_up),
            per_step(cpu[row]),
            of.last.into(),
        ]);
    }
    table
}

/// CPU time of each thread in all steps but the first.
fn cpu_times(capture: &Capture, steps: &Steps, off_cpu: &OffCpu<'_>) -> Vec<u64> {
    let first = steps.after_first().start;
    let from = steps.rows().get(first).map_or(steps.span.end, |step| step.start_ns);
    let inside = |range: Range<u64>| steps.time_within(&(range.start.max(from)..range.end.max(from)));
    let of_thread = |(index, thread): (usize, &stepscope_model::Thread)| {
        let (Some(start), Some(end)) = (thread.start_ns, thread.end_ns) else { return 0 };
        let waits = off_cpu.waits(ThreadId::from_index(index));
        let off = waits.map(|wait| inside(wait.start_ns..wait.end_ns)).fold(0, u64::saturating_add);
        inside(start..end.max(start)).saturating_sub(off)
    };
    capture.threads.iter().enumerate().map(of_thread).collect()
}

fn functions_table() -> Table {
    let mut columns = columns::function().to_vec();
    columns.extend([
        columns::duration("path", "Time per step on the critical path that is attributed to it: samples on the path and waits whose nearest owned function it is (of the program, where nothing is owned).").essential(),
        columns::percent("share", "In percent of the steps' time."),
        columns::duration("gain_bound", "The most that a step could get shorter if it and all below it cost nothing: its inclusive time on the path, and that for which the path waited for a CPU which it had. Nothing is gained elsewhere.").essential(),
        columns::duration("path_running", "Of `path`, running.").detail(),
        columns::duration("path_blocked", "Of `path`, waiting for what no thread ended.").detail(),
        columns::duration("held_up", "Of `gain_bound`, time that the path, on another thread, waited for a CPU which it or what it called had.").detail(),
        columns::duration("path_self", "Time per step on the path of samples whose leaf it is.").detail(),
        columns::duration("cpu", "Attributed on-CPU time per step of all threads, on the path or not.").essential(),
        columns::duration("cpu_inclusive", "Inclusive on-CPU time per step, on the path or not."),
        columns::percent("on_path", "How much of that inclusive time is on the path.").essential(),
    ]);
    Table::new("critical_path", "Critical path of the steps, by function", columns)
}

/// The table `critical_path`: functions by what they have on the path, then by what they cost beside it.
fn functions(selection: &Selection<'_>, steps: &Steps, paths: &Paths, held_up: &[(ThreadId, Range<u64>)]) -> Table {
    let mut table = functions_table();
    let sums = FunctionSums::of(selection, steps, paths, held_up);
    let functions = selection.functions();
    let (count, known) = (functions.len(), functions.ownership_known());
    let ids: Vec<FunctionId> = functions.all().map(|(id, _)| id).collect();
    let name = |row: usize| if row < count { &*functions.get(ids[row]).name } else { NO_STACK };
    let mut rows: Vec<usize> = (0..=count).filter(|row| sums.any(*row)).collect();
    rows.sort_by_key(|&row| (Reverse(sums.path(row)), Reverse((sums.cpu[row], sums.cpu_inclusive[row])), name(row)));
    let kept = steps.after_first();
    let per_step = |weight: u128| Value::from(weight as f64 / kept.len().max(1) as f64);
    let time: u128 = kept.clone().map(|position| u128::from(steps.duration(position))).sum();
    for row in rows {
        let mut cells = match row {
            row if row < count => columns::function_values(functions.get(ids[row]), known).to_vec(),
            _ => columns::no_function_values(NO_STACK).to_vec(),
        };
        cells.extend([
            per_step(sums.path(row)),
            percent(sums.path(row), time).into(),
            per_step(sums.running_inclusive[row] + sums.blocked_inclusive[row] + sums.held_up_inclusive[row]),
            per_step(sums.running[row]),
            per_step(sums.blocked[row]),
            per_step(sums.held_up_inclusive[row]),
            per_step(sums.running_self[row]),
            per_step(sums.cpu[row]),
            per_step(sums.cpu_inclusive[row]),
            percent(sums.running_inclusive[row], sums.cpu_inclusive[row]).into(),
        ]);
        table.push(cells);
    }
    table.add_notes(sums.notes);
    table.add_notes(notes::ownership_note(std::slice::from_ref(selection)));
    table
}

/// Sums over all steps but the first, by function; the last one is that of what has no stack.
struct FunctionSums {
    running: Vec<u128>,
    running_self: Vec<u128>,
    running_inclusive: Vec<u128>,
    blocked: Vec<u128>,
    blocked_inclusive: Vec<u128>,
    held_up_inclusive: Vec<u128>,
    cpu: Vec<u128>,
    cpu_inclusive: Vec<u128>,
    notes: Vec<String>,
}

impl FunctionSums {
    fn of(selection: &Selection<'_>, steps: &Steps, paths: &Paths, held_up: &[(ThreadId, Range<u64>)]) -> Self {
        let (capture, functions) = (selection.capture(), selection.functions());
        let none = || StackWeights::none(capture);
        let (mut running, mut blocked, mut holding, mut cpu) = (none(), none(), none(), none());
        let kept = steps.after_first();
        let mut exact = 0_u128;
        let mut ran: Vec<(ThreadId, Range<u64>)> = Vec::new();
        for part in kept.clone().flat_map(|position| paths.of_step(position)) {
            let length = u128::from(part.range.end - part.range.start);
            match part.did {
                Did::Run => {
                    exact += length;
                    ran.push((part.thread, part.range.clone()));
                }
                Did::Wait(stack) if selection.has_stack(stack) && selection.has_thread(part.thread) => {
                    *blocked.at(stack) += Amount { weight: length, count: 1 };
                }
                Did::Wait(_) | Did::WaitForCpu => {}
            }
        }
        ran.sort_unstable_by_key(|(thread, range)| (*thread, range.start));
        let timed = selection.event().is_some_and(|event| event.unit == "ns");
        for sample in selection.samples().filter(|_| timed) {
            let Some(time) = sample.time_ns else { continue };
            if !steps.at(time).is_some_and(|position| kept.contains(&position)) {
                continue;
            }
            let amount = Amount { weight: sample.weight.into(), count: 1 };
            *cpu.at(sample.stack) += amount;
            if is_in(&ran, sample.thread, time) {
                *running.at(sample.stack) += amount;
            } else if is_in(held_up, sample.thread, time) {
                *holding.at(sample.stack) += amount;
            }
        }
        let with = |sums: Vec<Amount>, weights: &StackWeights| -> Vec<u128> {
            sums.into_iter().chain([weights.no_stack]).map(|amount| amount.weight).collect()
        };
        let inclusive = |weights: &StackWeights| with(weights.inclusive_by_function(capture, functions), weights);
        let attributed = |weights: &StackWeights| with(weights.attributed_by_function(functions), weights);
        Self {
            running: attributed(&running),
            running_self: with(running.self_by_function(capture, functions), &running),
            running_inclusive: inclusive(&running),
            blocked: attributed(&blocked),
            blocked_inclusive: inclusive(&blocked),
            held_up_inclusive: inclusive(&holding),
            cpu: attributed(&cpu),
            cpu_inclusive: inclusive(&cpu),
            notes: sampled_notes(selection, timed, exact, &running),
        }
    }

    fn path(&self, row: usize) -> u128 {
        self.running[row] + self.blocked[row]
    }

    fn any(&self, row: usize) -> bool {
        self.cpu_inclusive[row] > 0 || self.running_inclusive[row] > 0 || self.blocked_inclusive[row] > 0
    }
}

/// Whether a moment of a thread is in one of these ranges, which are in order.
fn is_in(ranges: &[(ThreadId, Range<u64>)], thread: ThreadId, time_ns: u64) -> bool {
    let before = ranges.partition_point(|(of, range)| (*of, range.start) <= (thread, time_ns));
    let last = before.checked_sub(1).map(|index| &ranges[index]);
    last.is_some_and(|(of, range)| *of == thread && range.contains(&time_ns))
}

fn sampled_notes(selection: &Selection<'_>, timed: bool, exact: u128, running: &StackWeights) -> Vec<String> {
    if !timed {
        return vec!["There are no samples of time: only waits are given to functions.".to_owned()];
    }
    let mut notes = Vec::new();
    let sampled = running.total();
    if let Some(share) =
        percent(sampled.weight, exact).filter(|_| !selection.filters_stacks() && !selection.filters_threads())
    {
        notes.push(format!(
            "{} on the path stand for {} of its {} of running time ({}).",
            quantity::plural(sampled.count as usize, "sample"),
            quantity::duration(sampled.weight),
            quantity::duration(exact),
            quantity::percent(share)
        ));
    }
    notes
}

/// Barriers of one place, added up.
#[derive(Debug, Clone, Default)]
struct Meetings {
    count: u64,
    on_path: u64,
    waiters: u64,
    waited: u64,
    longest: u64,
    behind: u64,
    last: FxHashMap<ThreadId, u64>,
}

/// The table `barriers`.
fn barriers_table(selection: &Selection<'_>, steps: &Steps, barriers: &[Barrier]) -> Table {
    let mut table = Table::new(
        "barriers",
        "Who came last where several waited",
        vec![
            columns::text("waits_at", "The nearest owned function that waited (of the program, where nothing is owned); `(no stack)` where that was not recorded.").essential(),
            columns::text("ended_by", "The nearest owned function of the thread that ended the wait, as it did so."),
            columns::count("barriers", "", "How often two threads or more waited there for one.").essential(),
            columns::number("per_step", "", "How often per step."),
            columns::percent("on_path", "How often the critical path went through it."),
            columns::text("last", "The thread that came last most often.").essential(),
            columns::number("last_tid", "", "Its thread id.").detail(),
            columns::percent("last_share", "How often it was that one.").essential(),
            columns::duration("behind", "By how much the last one came later than the one before it, the mean: being faster by more gains nothing more here.").essential(),
            columns::number("waiters", "", "How many waited for it, the mean.").detail(),
            columns::duration("waited", "Time that all others waited, per step."),
            columns::duration("longest", "The longest single wait."),
        ],
    );
    if barriers.is_empty() {
        table.note("No thread ended the waits of two others at a time.".to_owned());
    }
    let nowhere = barriers.iter().filter(|barrier| barrier.waits_at.is_none()).count();
    if let Some(period) =
        selection.capture().info.losses.offcpu_stack_period.filter(|period| *period > 1 && nowhere > 0)
    {
        table.note(format!(
            "Of {} no place is known: at this rate of switches only one in {period} stacks was recorded.",
            quantity::plural(nowhere, "barrier")
        ));
    }
    let mut places: FxHashMap<(Option<FunctionId>, Option<FunctionId>), Meetings> = FxHashMap::default();
    for barrier in barriers {
        let at = places.entry((barrier.waits_at, barrier.last_at)).or_default();
        at.count += 1;
        at.on_path += u64::from(barrier.on_path);
        at.waiters += barrier.waited.len() as u64;
        at.behind = at.behind.saturating_add(barrier.behind());
        *at.last.entry(barrier.last).or_default() += 1;
        for (_, ns) in &barrier.waited {
            at.waited = at.waited.saturating_add(*ns);
            at.longest = at.longest.max(*ns);
        }
    }
    let name = |id: &Option<FunctionId>| id.map_or(NO_STACK, |id| &*selection.functions().get(id).name);
    let mut rows: Vec<_> = places.into_iter().collect();
    rows.sort_by_key(|((waits_at, last_at), at)| (Reverse(at.waited), name(waits_at), name(last_at)));
    let count = steps.after_first().len().max(1) as f64;
    for ((waits_at, last_at), at) in &rows {
        let last = at.last.iter().max_by_key(|(thread, times)| (**times, Reverse(**thread)));
        let (last, times) = last.expect("a barrier has a last one");
        table.push(vec![
            name(waits_at).into(),
            name(last_at).into(),
            at.count.into(),
            (at.count as f64 / count).into(),
            percent(at.on_path.into(), at.count.into()).into(),
            selection.capture().threads[last.index()].name.as_str().into(),
            selection.capture().threads[last.index()].tid.into(),
            percent((*times).into(), at.count.into()).into(),
            (at.behind as f64 / at.count as f64).into(),
            (at.waiters as f64 / at.count as f64).into(),
            (at.waited as f64 / count).into(),
            at.longest.into(),
        ]);
    }
    table
}

/// One thread at the barriers of one place.
#[derive(Debug, Clone, Copy, Default)]
struct AtPlace {
    last: u64,
    behind: u64,
    waited: u64,
    slack: u64,
    least: Option<u64>,
}

/// The table `barrier_slack`: for each place the threads that met there, who came last, and how much time the others had.
fn slack(selection: &Selection<'_>, barriers: &[Barrier]) -> Table {
    let mut table = Table::new(
        "barrier_slack",
        "How much later each thread could come",
        vec![
            columns::text("waits_at", "The nearest owned function that waited, as in the table of barriers.")
                .essential(),
            columns::text("thread", "Last name of the thread.").essential(),
            columns::number("tid", "", "Thread id.").detail(),
            columns::count("last", "", "How often it came last.").essential(),
            columns::duration("behind", "By how much it was later then than the one before it, the mean."),
            columns::count("waited", "", "How often it waited for another one.").essential(),
            columns::duration(
                "slack",
                "How long it waited then, the mean: what it does before this place could take so much longer.",
            )
            .essential(),
            columns::duration("slack_min", "The least of that: what holds in every step."),
        ],
    );
    let mut found: FxHashMap<(Option<FunctionId>, ThreadId), AtPlace> = FxHashMap::default();
    for barrier in barriers {
        let last = found.entry((barrier.waits_at, barrier.last)).or_default();
        last.last += 1;
        last.behind = last.behind.saturating_add(barrier.behind());
        for (thread, ns) in &barrier.waited {
            let at = found.entry((barrier.waits_at, *thread)).or_default();
            at.waited += 1;
            at.slack = at.slack.saturating_add(*ns);
            at.least = Some(at.least.map_or(*ns, |least| least.min(*ns)));
        }
    }
    let name = |id: &Option<FunctionId>| id.map_or(NO_STACK, |id| &*selection.functions().get(id).name);
    let mut rows: Vec<_> = found.into_iter().collect();
    rows.sort_by_key(|((place, thread), at)| (name(place), Reverse((at.last, at.waited)), *thread));
    let mean = |sum: u64, of: u64| Value::from((of > 0).then(|| sum as f64 / of as f64));
    for ((place, thread), at) in &rows {
        let thread = &selection.capture().threads[thread.index()];
        table.push(vec![
            name(place).into(),
            thread.name.as_str().into(),
            thread.tid.into(),
            at.last.into(),
            mean(at.behind, at.last),
            at.waited.into(),
            mean(at.slack, at.waited),
            at.least.into(),
        ]);
    }
    table
}

/// What steps wait for.
pub struct CriticalPath;

impl Analysis for CriticalPath {
    fn title(&self) -> &'static str {
        "Critical path"
    }

    fn views(&self) -> &'static [View] {
        &[View {
            name: "critical-path",
            question: "Which work, on any thread, does each step wait for, and how much could be saved?",
            tables: |selection, _| tables(selection),
        }]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Steps, Dimension::Sched]
    }

    fn report(&self, selection: &Selection<'_>) -> Vec<ReportSection> {
        let tables = tables(selection);
        if tables.iter().all(|table| table.rows.is_empty()) {
            return Vec::new();
        }
        ReportSection::of_tables("Critical path", tables).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::Event;

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    const BARRIER: &str = "gz::Finish;pthread_cond_wait";

    fn cpu_clock() -> Event {
        Event::sampled("cpu-clock", "ns")
    }

    /// A wait that `waker` ended `runnable_ns` before its end.
    fn woken(drawing: Drawing, thread: &str, when: Range<u64>, runnable_ns: u64, waker: &str, stack: &str) -> Drawing {
        let mut drawing = drawing.blocked_then_runnable(thread, when, runnable_ns, stack);
        let waker = drawing.thread(waker);
        drawing.capture.waits.last_mut().unwrap().waker = Some(waker);
        drawing
    }

    /// The path of a step as text, from its begin to its end.
    fn path(capture: &Capture, position: usize) -> Vec<String> {
        let steps = drawn::selected(capture, &[], |selection| Steps::of(selection).unwrap());
        let paths = Paths::of(capture, &steps, &OffCpu::of(capture));
        let part = |part: &Part| {
            let did = match part.did {
                Did::Run => "runs",
                Did::WaitForCpu => "waits for a CPU",
                Did::Wait(_) => "waits",
            };
            let thread = &capture.threads[part.thread.index()].name;
            format!("{}..{} {thread} {did}", part.range.start, part.range.end)
        };
        paths.of_step(position).iter().rev().map(part).collect()
    }

    fn all(capture: &Capture) -> Vec<Table> {
        drawn::selected(capture, &["gz::"], tables)
    }

    fn two_workers() -> Drawing {
        Drawing::new()
            .window(0..1_000)
            .process(1, "sim")
            .lived("main", 0..1_000, None)
            .lived("light", 0..1_000, None)
            .lived("heavy", 0..1_000, None)
    }

    /// Three steps of 100. Each: main starts both workers at 10 and waits for both; light is done at 30, heavy at 80 and
    /// wakes main and light, main gets a CPU at 85.
    fn overloaded() -> Capture {
        let mut drawing = two_workers().steps("main", 0, 100, 3, 1);
        let mut text = String::new();
        for start in [0, 100, 200] {
            let at = |from: u64, to: u64| start + from..start + to;
            drawing = woken(drawing, "main", at(12, 85), 5, "heavy", BARRIER);
            let idle = if start == 0 { 0..10 } else { start - 20..start + 10 };
            drawing = woken(drawing, "heavy", idle.clone(), 0, "main", "gz::Start;pthread_cond_wait");
            let idle = if start == 0 { 0..10 } else { start - 19..start + 10 };
            drawing = woken(drawing, "light", idle, 0, "main", "gz::Start;pthread_cond_wait");
            drawing = woken(drawing, "light", at(30, 81), 1, "heavy", BARRIER);
            text.push_str(&format!(
                "@{} heavy;gz::Solve 70\n@{} light;gz::Cheap 20\n@{} main;gz::Step 25\n",
                start + 50,
                start + 20,
                start + 90
            ));
        }
        drawing
            .blocked_then_runnable("heavy", 280..1_000, 0, "gz::Start;pthread_cond_wait")
            .blocked_then_runnable("light", 281..1_000, 0, "gz::Start;pthread_cond_wait")
            .folded(cpu_clock(), &text)
            .capture
    }

    #[test]
    fn the_path_goes_to_the_thread_that_was_waited_for_and_back() {
        assert_eq!(
            path(&overloaded(), 1),
            ["100..110 main runs", "110..180 heavy runs", "180..185 main waits for a CPU", "185..200 main runs"]
        );
    }

    #[test]
    fn an_overloaded_worker_is_named_with_its_function() {
        let tables = all(&overloaded());
        assert_eq!(
            cells(&tables[0], &["part", "mean", "share"]),
            [
                "running on the loop's thread | 25 | 25",
                "running on other threads | 70 | 70",
                "waiting for a CPU | 5 | 5"
            ]
        );
        assert_eq!(
            cells(&tables[1], &["thread", "path", "share", "running", "cpu", "last"])[0],
            "heavy | 70 | 70 | 70 | 70 | 2"
        );
        assert_eq!(
            cells(&tables[2], &["function", "path", "gain_bound", "cpu", "on_path"])[0],
            "gz::Solve | 70 | 70 | 70 | 100"
        );
        assert_eq!(
            cells(&tables[3], &["waits_at", "barriers", "on_path", "last", "last_share", "behind", "waiters"])[0],
            "gz::Finish | 2 | 100 | heavy | 100 | 50 | 2"
        );
        assert_eq!(
            cells(&tables[4], &["waits_at", "thread", "last", "behind", "waited", "slack"])[..3],
            [
                "gz::Finish | heavy | 2 | 50 | 0 | -",
                "gz::Finish | main | 0 | - | 2 | 68",
                "gz::Finish | light | 0 | - | 2 | 50"
            ]
        );
    }

    #[test]
    fn what_has_the_cpu_that_the_path_waits_for_holds_up_the_step() {
        // Light and heavy share a CPU for a while: light has it until 40, heavy then until 80, when it wakes main.
        let mut drawing = two_workers().steps("main", 0, 100, 3, 1);
        let mut text = String::new();
        for start in [0, 100, 200] {
            let at = |from: u64, to: u64| start + from..start + to;
            drawing = woken(drawing, "main", at(10, 80), 0, "heavy", BARRIER);
            drawing = woken(drawing, "light", at(0, 10), 0, "main", "gz::Start;pthread_cond_wait").on(7);
            drawing = woken(drawing, "light", at(40, 100), 0, "main", "gz::Start;pthread_cond_wait");
            drawing = woken(drawing, "heavy", at(0, 40), 30, "main", "gz::Start;pthread_cond_wait").on(7);
            drawing = woken(drawing, "heavy", at(80, 100), 0, "main", "gz::Start;pthread_cond_wait");
            text.push_str(&format!("@{} light;gz::Solve 30\n@{} heavy;gz::Solve 40\n", start + 30, start + 60));
        }
        let capture = drawing.folded(cpu_clock(), &text).capture;
        let during =
            ["100..110 main runs", "110..140 heavy waits for a CPU", "140..180 heavy runs", "180..200 main runs"];
        assert_eq!(path(&capture, 1), during);
        let tables = all(&capture);
        assert_eq!(
            tables[0].notes[0],
            "While the path waited for a CPU, threads of this recording had it for 100.00 % of that time."
        );
        assert_eq!(
            cells(&tables[1], &["thread", "path", "runnable", "held_up"]),
            ["heavy | 70 | 30 | 0", "main | 30 | 0 | 0", "light | 0 | 0 | 30"]
        );
        assert_eq!(
            cells(&tables[2], &["function", "path", "held_up", "gain_bound", "cpu"]),
            ["gz::Solve | 40 | 30 | 70 | 70"]
        );
    }

    #[test]
    fn a_loaded_thread_off_the_path_gains_nothing() {
        // A logger runs all the time and nobody waits for it; main works alone.
        let capture = two_workers()
            .steps("main", 0, 100, 5, 1)
            .folded(cpu_clock(), "@150 heavy;gz::Log 90\n@250 heavy;gz::Log 90\n@250 main;gz::Step 100")
            .blocked_then_runnable("light", 0..1_000, 0, "gz::Idle;pthread_cond_wait")
            .capture;
        let tables = all(&capture);
        assert_eq!(
            cells(&tables[2], &["function", "path", "gain_bound", "cpu", "on_path"]),
            ["gz::Step | 25 | 25 | 25 | 100", "gz::Log | 0 | 0 | 45 | 0"]
        );
        assert_eq!(cells(&tables[1], &["thread", "path", "cpu"]), ["main | 100 | 100", "heavy | 0 | 100"]);
    }

    #[test]
    fn a_chain_of_wakers_is_followed_to_its_start() {
        let drawing = two_workers().steps("main", 0, 100, 1, 1);
        let drawing = woken(drawing, "main", 5..90, 2, "light", BARRIER);
        let drawing = woken(drawing, "light", 0..60, 10, "heavy", "");
        let capture = woken(drawing, "heavy", 0..20, 0, "main", "").capture;
        // Main had blocked at 5 when it is said to have woken heavy at 20: its wait has to be on the path.
        assert_eq!(
            path(&capture, 0),
            [
                "0..5 main runs",
                "5..20 main waits",
                "20..50 heavy runs",
                "50..60 light waits for a CPU",
                "60..88 light runs",
                "88..90 main waits for a CPU",
                "90..100 main runs"
            ]
        );
    }

    #[test]
    fn a_wait_that_no_thread_ended_is_itself_on_the_path() {
        let capture = two_workers()
            .steps("main", 0, 100, 2, 1)
            .blocked_then_runnable("main", 120..160, 10, "gz::Save;fsync")
            .preempted("main", 170..180, "")
            .capture;
        assert_eq!(
            path(&capture, 1),
            [
                "100..120 main runs",
                "120..150 main waits",
                "150..160 main waits for a CPU",
                "160..170 main runs",
                "170..180 main waits for a CPU",
                "180..200 main runs"
            ]
        );
        let tables = all(&capture);
        assert_eq!(cells(&tables[0], &["part", "mean"])[3], "blocked, file | 30");
        assert_eq!(
            cells(&tables[2], &["function", "path", "gain_bound", "path_blocked"])[0],
            "gz::Save | 30 | 30 | 30"
        );
    }

    #[test]
    fn a_step_without_waits_is_its_thread_running() {
        let capture = two_workers().steps("main", 0, 100, 2, 1).preempted("main", 500..510, "").capture;
        assert_eq!(path(&capture, 0), ["0..100 main runs"]);
    }

    #[test]
    fn a_thread_that_began_within_the_step_was_started_by_the_loop() {
        let drawing = two_workers().lived("young", 40..1_000, None).steps("main", 0, 100, 1, 1);
        let capture = woken(drawing, "main", 45..95, 0, "young", "gz::Join;pthread_join").capture;
        assert_eq!(path(&capture, 0), ["0..40 main runs", "40..95 young runs", "95..100 main runs"]);
    }

    #[test]
    fn wake_ups_in_a_circle_come_to_an_end() {
        let drawing = two_workers().steps("main", 0, 100, 1, 1);
        let drawing = woken(drawing, "main", 10..50, 0, "heavy", "");
        let capture = woken(drawing, "heavy", 10..50, 0, "main", "").capture;
        let path = path(&capture, 0);
        assert_eq!(path.last().unwrap(), "50..100 main runs");
        assert_eq!(path.len(), 3);
    }

    #[test]
    fn without_wake_ups_the_table_says_what_to_record() {
        let capture = two_workers().steps("main", 0, 100, 5, 1).blocked("main", 10..20, "a").capture;
        let tables = all(&capture);
        assert_eq!(tables.len(), 1);
        assert!(tables[0].notes[0].starts_with("Wake-ups were not recorded"), "{:?}", tables[0].notes);
    }
}
