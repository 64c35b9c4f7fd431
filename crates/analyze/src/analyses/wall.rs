//! Wall time: what each thread did with its life.
//!
//! A thread is at any moment *running* (on a CPU), *runnable* (wants one and has to wait) or *blocked* (waits for
//! something else, by [class](crate::query::wait_class)). The three add up to its lifetime, so nothing can hide between a profile
//! of CPU time and one of blocked time:
//!
//! > running + runnable + blocked + unaccounted = lifetime
//!
//! Running is the exact CPU time from context switches. Runnable is every preempted interval, and of a blocked interval
//! the end that follows the wake-up. What remains is *unaccounted*: it should be nothing, and is shown so that a loss of
//! switch records is seen (it is negative if intervals overlap). Where a thread's exact CPU time is not known, running is
//! what is left of its lifetime.
//!
//! Where context switches were not recorded, nothing is known but the lifetime: no data is not zero.
//!
//! Where wake-ups were not recorded, the end of a blocked interval in which the thread only waited for a CPU cannot be told
//! from the rest and counts as blocked; the notes say so.
//!
//! # Whose wait
//! The leaf of a blocked stack is a futex or a poll, in somebody else's library, and never meets an owned function
//! (erratum 11 of the Gazebo study). [`callers`] credits each wait to its nearest owned caller, as cost is; where nothing was
//! said about ownership, to the first function that is not of a run-time library.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Capture, Column, Dimension, Kind, StackId, Table, ThreadId, Value, Wait, WaitState, quantity};

use crate::analyses::calltree;
use crate::analysis::{Analysis, ReportSection, View};
use crate::columns;
use crate::query::functions::{FunctionId, Functions, NO_STACK};
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::wait_class::{self, WaitClass};
use crate::query::waits::{blocked_ns, runnable_ns};
use crate::query::wake_ups::WakeUps;
use crate::query::weights::percent;

/// What the rows of [`table`] are about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grouping {
    /// A row a thread.
    #[default]
    Thread,
    /// A row a thread name: lifetimes of threads of one name added up.
    ThreadName,
}

/// What one row's threads did with their lives, in ns.
#[derive(Debug, Clone, Default)]
struct Life {
    threads: u64,
    lifetime: u128,
    running: u128,
    runnable: u128,
    blocked: [u128; WaitClass::ALL.len()],
    blocked_without_stack: u128,
    by_caller: FxHashMap<FunctionId, u128>,
}

impl Life {
    fn blocked_total(&self) -> u128 {
        self.blocked.iter().sum::<u128>() + self.blocked_without_stack
    }

    fn unaccounted(&self) -> i128 {
        self.lifetime as i128 - (self.running + self.runnable + self.blocked_total()) as i128
    }

    fn add(&mut self, other: &Life) {
        self.threads += other.threads;
        self.lifetime += other.lifetime;
        self.running += other.running;
        self.runnable += other.runnable;
        for (sum, part) in self.blocked.iter_mut().zip(other.blocked) {
            *sum += part;
        }
        self.blocked_without_stack += other.blocked_without_stack;
        for (caller, ns) in &other.by_caller {
            *self.by_caller.entry(*caller).or_default() += ns;
        }
    }

    /// The caller that most blocked time is attributed to; ties by name.
    fn top_caller<'a>(&self, functions: &'a Functions) -> Option<(&'a str, u128)> {
        let named = self.by_caller.iter().map(|(caller, ns)| (&*functions.get(*caller).name, *ns));
        named.filter(|(_, ns)| *ns > 0).min_by_key(|(name, ns)| (Reverse(*ns), *name))
    }
}

/// Class and attributed caller of stacks, each found once.
struct Stacks<'a> {
    capture: &'a Capture,
    functions: &'a Functions,
    known: FxHashMap<StackId, (WaitClass, Option<FunctionId>)>,
}

impl<'a> Stacks<'a> {
    fn of(selection: &Selection<'a>) -> Self {
        Self { capture: selection.capture(), functions: selection.functions(), known: FxHashMap::default() }
    }

    fn get(&mut self, stack: StackId) -> (WaitClass, Option<FunctionId>) {
        *self.known.entry(stack).or_insert_with(|| {
            (wait_class::of_stack(self.capture, self.functions, stack), self.functions.attributed(stack))
        })
    }
}

fn lives(selection: &Selection<'_>) -> FxHashMap<ThreadId, Life> {
    let mut lives: FxHashMap<ThreadId, Life> = FxHashMap::default();
    let mut off_cpu: FxHashMap<ThreadId, u128> = FxHashMap::default();
    let mut stacks = Stacks::of(selection);
    for wait in selection.thread_waits() {
        *off_cpu.entry(wait.thread).or_default() += u128::from(wait.end_ns - wait.start_ns);
        add_wait(lives.entry(wait.thread).or_default(), &wait, &mut stacks);
    }
    let cpu_times = selection.cpu_times();
    for (id, _) in selection.threads() {
        let Some(span) = selection.lifetime(id) else { continue };
        let life = lives.entry(id).or_default();
        life.threads = 1;
        life.lifetime = u128::from(span.end - span.start);
        let left = life.lifetime.saturating_sub(off_cpu.get(&id).copied().unwrap_or(0));
        life.running = cpu_times[id.index()].map_or(left, u128::from);
    }
    lives.retain(|_, life| life.threads > 0);
    lives
}

fn add_wait(life: &mut Life, wait: &Wait, stacks: &mut Stacks<'_>) {
    life.runnable += u128::from(runnable_ns(wait));
    if wait.state == WaitState::Preempted {
        return;
    }
    let blocked = u128::from(blocked_ns(wait));
    let Some(stack) = wait.stack else {
        life.blocked_without_stack += blocked;
        return;
    };
    let (class, caller) = stacks.get(stack);
    life.blocked[class.index()] += blocked;
    if let Some(caller) = caller {
        *life.by_caller.entry(caller).or_default() += blocked;
    }
}

/// The table `wall`, or `wall_by_name`: rows by running, then blocked time, then name and id.
///
/// Filters on stacks do not apply, since a part of a life adds up to no lifetime. Threads whose lifetime is not known have no
/// row.
pub fn table(selection: &Selection<'_>, grouping: Grouping) -> Table {
    let lives = lives(selection);
    let capture = selection.capture();
    let name_of = |id: ThreadId| capture.threads[id.index()].name.as_str();
    let mut rows: Vec<(&str, Option<ThreadId>, Life)> = match grouping {
        Grouping::Thread => lives.into_iter().map(|(id, life)| (name_of(id), Some(id), life)).collect(),
        Grouping::ThreadName => {
            let mut by_name: FxHashMap<&str, Life> = FxHashMap::default();
            for (id, life) in &lives {
                by_name.entry(name_of(*id)).or_default().add(life);
            }
            by_name.into_iter().map(|(name, life)| (name, None, life)).collect()
        }
    };
    rows.sort_by_key(|(name, id, life)| (Reverse((life.running, life.blocked_total())), *name, *id));
    let mut table = empty_table(grouping);
    for (name, id, life) in &rows {
        table.push(row(selection, name, *id, life));
    }
    table.add_notes(notes(selection, rows.iter().map(|(.., life)| life)));
    table
}

fn empty_table(grouping: Grouping) -> Table {
    let mut table_columns = vec![columns::text("thread", "Last name of the thread.")];
    table_columns.extend(match grouping {
        Grouping::Thread => vec![
            columns::number("tid", "", "Thread id.").detail(),
            columns::text("process", "Name of its process; empty where unknown.").detail(),
        ],
        Grouping::ThreadName => vec![columns::count("threads", "", "Number of threads of this name.")],
    });
    table_columns.extend([
        columns::duration("lifetime", "How long it lived within the selected time; of all threads of the row together."),
        columns::duration("running", "On a CPU.").essential(),
        columns::duration("runnable", "Ready to run and waiting for a CPU: preempted, or woken, as far as that was recorded."),
        columns::duration("blocked", "Waiting for something else.").essential(),
        columns::duration("lock", "Blocked at a lock.").detail(),
        columns::duration("condition", "Blocked at a condition variable, barrier, semaphore or join.").detail(),
        columns::duration("sleep", "Asleep by its own will.").detail(),
        columns::duration("file", "Blocked at a file or block device.").detail(),
        columns::duration("network", "Blocked at a socket, or at poll, select or epoll of any descriptors.").detail(),
        columns::duration("page_fault", "Blocked until memory was there.").detail(),
        columns::duration("other", "Blocked at a stack that shows none of these.").detail(),
        columns::duration("no_stack", "Blocked, and no stack was recorded.").detail(),
        columns::duration("unaccounted", "Lifetime less all of these: not 0 where switch records were lost.").detail(),
        columns::percent("running_share", "Running in percent of the lifetime."),
        columns::percent("runnable_share", "Runnable in percent of the lifetime."),
        columns::percent("blocked_share", "Blocked in percent of the lifetime."),
        columns::text("blocked_at", "The nearest owned caller that most blocked time is attributed to (of the program's code, where nothing is owned).").essential(),
        columns::percent("blocked_at_share", "That caller's time in percent of the blocked time.").detail(),
    ]);
    match grouping {
        Grouping::Thread => Table::new("wall", "Wall time by thread", table_columns),
        Grouping::ThreadName => Table::new("wall_by_name", "Wall time by thread name", table_columns),
    }
}

fn row(selection: &Selection<'_>, name: &str, id: Option<ThreadId>, life: &Life) -> Vec<Value> {
    let capture = selection.capture();
    // What was not recorded is not nothing.
    let known = |value: Value| if selection.has_switches() { value } else { Value::Missing };
    let share = |ns: u128| known(percent(ns, life.lifetime).into());
    let mut row: Vec<Value> = vec![name.into()];
    row.extend(match id.map(|id| &capture.threads[id.index()]) {
        Some(thread) => {
            let process = selection.process_label_of(thread);
            vec![thread.tid.into(), process.into()]
        }
        None => vec![life.threads.into()],
    });
    let blocked = life.blocked_total();
    row.push(life.lifetime.into());
    row.extend([life.running, life.runnable, blocked].map(|ns| known(ns.into())));
    row.extend(life.blocked.map(|ns| known(ns.into())));
    row.extend([known(life.blocked_without_stack.into()), known(Value::Int(life.unaccounted()))]);
    row.extend([life.running, life.runnable, blocked].map(share));
    let (top, ns) = life.top_caller(selection.functions()).unzip();
    row.extend([top.into(), ns.and_then(|ns| percent(ns, blocked)).into()]);
    row
}

fn notes<'a>(selection: &Selection<'_>, lives: impl Iterator<Item = &'a Life> + Clone) -> Vec<String> {
    let mut notes = Vec::new();
    if !selection.has_switches() {
        notes.push(
            "Context switches were not recorded: how much of its lifetime a thread was on a CPU, waited for one or was blocked is not known."
                .to_owned(),
        );
        return notes;
    }
    let capture = selection.capture();
    let unknown = capture.threads.iter().filter(|thread| thread.start_ns.is_none() || thread.end_ns.is_none()).count();
    if unknown > 0 {
        notes.push(format!("No lifetime is known of {}, so no row.", quantity::plural(unknown, "thread")));
    }
    if selection.filters_stacks() {
        notes.push(
            "Filters on functions, modules and ownership do not apply: a part of a life does not add up.".to_owned(),
        );
    }
    notes.extend(missing_wake_ups(selection));
    let blocked: u128 = lives.clone().map(Life::blocked_total).sum();
    let without: u128 = lives.clone().map(|life| life.blocked_without_stack).sum();
    notes.extend(missing_stacks(selection, blocked, without));
    let far_off = |life: &&Life| life.unaccounted().unsigned_abs() * 100 > life.lifetime;
    let far_off = lives.filter(far_off).count();
    if far_off > 0 {
        notes.push(format!(
            "In {} more than 1 % of the lifetime is unaccounted for: switch records were lost.",
            quantity::plural(far_off, "row"),
        ));
    }
    notes
}

fn missing_wake_ups(selection: &Selection<'_>) -> Option<String> {
    const INCLUDED: &str = "blocked includes the time from the wake-up until a CPU was free";
    match WakeUps::of(selection) {
        WakeUps::Recorded { missing: 0, .. } => None,
        WakeUps::Recorded { missing, of } => Some(format!(
            "{} of {} blocked waits lack their wake-up: there, {INCLUDED}.",
            quantity::grouped(missing as i128),
            quantity::grouped(of as i128),
        )),
        WakeUps::Unrecorded => Some(format!("Wake-ups were not recorded: {INCLUDED}.")),
    }
}

/// How much of the blocked time has no stack to credit it by, and why, as far as that is known.
fn missing_stacks(selection: &Selection<'_>, blocked: u128, without: u128) -> Option<String> {
    if without == 0 {
        return None;
    }
    let share = quantity::percent(percent(without, blocked).unwrap_or(0.0));
    let (asleep, threads) = asleep_before(selection);
    let asleep = match threads {
        0 => String::new(),
        _ => format!(
            " {} of it are of {} that slept since before the recording began: a stack is taken when a thread goes to sleep.",
            quantity::duration(asleep),
            quantity::plural(threads, "thread"),
        ),
    };
    let thinned = match selection.capture().info.losses.offcpu_stack_period {
        Some(period) if period > 1 => format!(" At this rate of switches only one in {period} stacks was recorded."),
        _ => String::new(),
    };
    Some(format!(
        "{} ({share}) of the blocked time have no stack, so neither class nor caller.{asleep}{thinned}",
        quantity::duration(without),
    ))
}

/// Blocked time without a stack of threads that were asleep when the recording began, and how many they are.
fn asleep_before(selection: &Selection<'_>) -> (u128, usize) {
    let capture = selection.capture();
    let Some(began) = capture.info.start_ns else { return (0, 0) };
    let is_unseen = |wait: &&Wait| wait.state == WaitState::Blocked && wait.stack.is_none();
    let since_before = capture.waits.iter().filter(is_unseen).filter(|wait| wait.start_ns <= began);
    let woke: FxHashMap<ThreadId, u64> = since_before.map(|wait| (wait.thread, wait.end_ns)).collect();
    let mut threads = FxHashSet::default();
    let mut asleep = 0;
    // Waits of a thread do not overlap: what ends no later than its first one is a part of that, however time was cut.
    for wait in selection.waits().filter(|wait| is_unseen(&wait)) {
        if woke.get(&wait.thread).is_some_and(|woke| wait.end_ns <= *woke) {
            asleep += u128::from(blocked_ns(&wait));
            threads.insert(wait.thread);
        }
    }
    (asleep, threads.len())
}

/// Blocked time attributed to one caller.
#[derive(Debug, Clone, Default)]
struct Credit {
    blocked: u128,
    waits: u64,
    longest: u64,
    threads: FxHashSet<ThreadId>,
    classes: [u128; WaitClass::ALL.len()],
}

/// Blocked time that is attributed to a caller: of waits at stacks without one, and of waits without a stack, apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Caller {
    Function(FunctionId),
    NotOwned,
    NoStack,
}

/// The table `blocked`: blocked time by nearest owned caller, rows by blocked time, then name.
///
/// The rows add up to all blocked time of the selection: what has no owned caller, and what has no stack, have rows of
/// their own.
pub fn callers(selection: &Selection<'_>) -> Table {
    let functions = selection.functions();
    let mut stacks = Stacks::of(selection);
    let mut credits: FxHashMap<Caller, Credit> = FxHashMap::default();
    for wait in selection.waits().filter(|wait| wait.state == WaitState::Blocked) {
        let found = wait.stack.map(|stack| stacks.get(stack));
        let caller = match found {
            None => Caller::NoStack,
            Some((_, None)) => Caller::NotOwned,
            Some((_, Some(function))) => Caller::Function(function),
        };
        let blocked = blocked_ns(&wait);
        let credit = credits.entry(caller).or_default();
        credit.blocked += u128::from(blocked);
        credit.waits += 1;
        credit.longest = credit.longest.max(blocked);
        credit.threads.insert(wait.thread);
        if let Some((class, _)) = found {
            credit.classes[class.index()] += u128::from(blocked);
        }
    }
    let none = if functions.ownership_known() { "(no owned caller)" } else { "(only run-time libraries)" };
    let name = |caller: &Caller| match caller {
        Caller::Function(id) => &*functions.get(*id).name,
        Caller::NotOwned => none,
        Caller::NoStack => NO_STACK,
    };
    let mut rows: Vec<(Caller, Credit)> = credits.into_iter().collect();
    rows.sort_by_key(|(caller, credit)| (Reverse(credit.blocked), name(caller), module(functions, *caller)));
    let total: u128 = rows.iter().map(|(_, credit)| credit.blocked).sum();
    let per_step = blocked_per_step(selection);
    let mut table = callers_table();
    if per_step.is_some() {
        let doc = "Of the time within simulation steps, per step.";
        table.columns.insert(PER_STEP, Column::new("per_step", Kind::Duration, "ns/step", doc));
    }
    for (caller, credit) in &rows {
        let mut row = match caller {
            Caller::Function(id) => columns::function_values(functions.get(*id), functions.ownership_known()).to_vec(),
            _ => columns::no_function_values(name(caller)).to_vec(),
        };
        row.extend([
            credit.blocked.into(),
            percent(credit.blocked, total).into(),
            credit.waits.into(),
            credit.longest.into(),
            credit.threads.len().into(),
        ]);
        row.extend(credit.classes.map(Value::from));
        if let Some(per_step) = &per_step {
            row.insert(PER_STEP, per_step.get(caller).copied().unwrap_or(0.0).into());
        }
        table.push(row);
    }
    if !selection.has_switches() {
        table.note("Context switches were not recorded, so nothing is known of the time off the CPU.".to_owned());
    }
    let without = rows.iter().find(|(caller, _)| *caller == Caller::NoStack).map_or(0, |(_, credit)| credit.blocked);
    table.add_notes(missing_stacks(selection, total, without));
    table
}

/// Place of the column after `share`.
const PER_STEP: usize = 6;

/// Blocked time within steps, per step, by caller; `None` where no steps are known.
fn blocked_per_step(selection: &Selection<'_>) -> Option<FxHashMap<Caller, f64>> {
    let loops = Loops::of(selection)?;
    let weights = loops.blocked_weights(selection);
    let steps = loops.main().count() as f64;
    let mut sums: FxHashMap<Caller, f64> = FxHashMap::default();
    for (node, amount) in weights.occupied() {
        let caller = selection.functions().attributed(node).map_or(Caller::NotOwned, Caller::Function);
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

fn callers_table() -> Table {
    let mut table_columns = columns::function().to_vec();
    table_columns.extend([
        columns::duration("blocked", "Blocked time of waits whose nearest owned caller is the function.").essential(),
        columns::percent("share", "In percent of all selected blocked time.").essential(),
        columns::count("waits", "", "Number of waits."),
        columns::duration("longest", "The longest of them."),
        columns::count("threads", "", "Number of threads that waited there.").detail(),
    ]);
    let classes = WaitClass::ALL.map(|class| columns::duration(class.name(), "The part of it that was of this class."));
    table_columns.extend(classes);
    Table::new("blocked", "Blocked time by nearest owned caller", table_columns)
}

/// How threads spent their lifetime.
pub struct Wall;

impl Analysis for Wall {
    fn title(&self) -> &'static str {
        "Wall time"
    }

    fn views(&self) -> &'static [View] {
        &[
            View {
                name: "wall",
                question: "How much of its lifetime was each thread running, runnable, or blocked, and on what?",
                tables: |selection, _| vec![table(selection, Grouping::Thread)],
            },
            View {
                name: "wall-names",
                question: "How much of their lifetime were threads of each name running, runnable, or blocked?",
                tables: |selection, _| vec![table(selection, Grouping::ThreadName)],
            },
            View {
                name: "blocked",
                question: "Which owned functions block, for how long, and on what?",
                tables: |selection, _| vec![callers(selection)],
            },
        ]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Offcpu]
    }

    fn report(&self, selection: &Selection<'_>) -> Vec<ReportSection> {
        let off_cpu = calltree::off_cpu(selection, &calltree::Options::default());
        let sections = [
            ReportSection::of_tables("Wall", vec![table(selection, Grouping::Thread)]),
            ReportSection::of_tables("Blocked", vec![callers(selection)]),
            ReportSection::of_tree("Off-CPU flame graph", off_cpu),
        ];
        sections.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};
    use crate::query::select::{Filter, TimeRange};

    const LOCK: &str = "main;gz::World::Step;gz::Queue::Push;pthread_mutex_lock;__lll_lock_wait";
    const BARRIER: &str = "clone;gz::Worker::Run;gz::Barrier::Wait;pthread_cond_wait";

    /// main runs 600 of 1000 ns, worker waits at the barrier and is preempted once.
    fn two_threads() -> Capture {
        Drawing::new()
            .window(0..1_000)
            .lived("main", 0..1_000, 600)
            .lived("worker", 100..1_000, 200)
            .blocked_then_runnable("main", 100..300, 50, LOCK)
            .blocked("main", 400..500, "main;gz::Run;usleep;clock_nanosleep")
            .preempted("main", 700..800, "main;gz::World::Step")
            .blocked("worker", 100..700, BARRIER)
            .blocked("worker", 900..1_000, "")
            .capture
    }

    #[test]
    fn running_runnable_and_blocked_add_up_to_the_lifetime() {
        let table = drawn::selected(&two_threads(), &["gz::"], |selection| table(selection, Grouping::Thread));
        let columns = [
            "thread",
            "lifetime",
            "running",
            "runnable",
            "blocked",
            "lock",
            "condition",
            "sleep",
            "no_stack",
            "unaccounted",
        ];
        assert_eq!(
            cells(&table, &columns),
            [
                "main | 1000 | 600 | 150 | 250 | 150 | 0 | 100 | 0 | 0",
                "worker | 900 | 200 | 0 | 700 | 0 | 600 | 0 | 100 | 0",
            ]
        );
        assert_eq!(cells(&table, &["running_share", "runnable_share", "blocked_share"])[0], "60 | 15 | 25");
    }

    /// Erratum 11.
    #[test]
    fn blocked_time_is_attributed_to_the_nearest_owned_caller() {
        drawn::selected(&two_threads(), &["gz::"], |selection| {
            assert_eq!(
                cells(&table(selection, Grouping::Thread), &["blocked_at", "blocked_at_share"]),
                ["gz::Queue::Push | 60", "gz::Barrier::Wait | 85.714286",]
            );
            assert_eq!(
                cells(
                    &callers(selection),
                    &["function", "owned", "blocked", "waits", "longest", "threads", "lock", "sleep"]
                ),
                [
                    "gz::Barrier::Wait | true | 600 | 1 | 600 | 1 | 0 | 0",
                    "gz::Queue::Push | true | 150 | 1 | 150 | 1 | 150 | 0",
                    "(no stack) | - | 100 | 1 | 100 | 1 | 0 | 0",
                    "gz::Run | true | 100 | 1 | 100 | 1 | 0 | 100",
                ]
            );
        });
    }

    #[test]
    fn where_steps_are_known_blocked_time_is_per_step_too() {
        let capture = Drawing::new()
            .window(0..1_000)
            .lived("main", 0..1_000, None)
            .steps("main", 200, 100, 4, 1)
            .blocked_then_runnable("main", 100..320, 20, LOCK)
            .blocked("main", 500..540, "")
            .capture;
        assert_eq!(
            cells(
                &drawn::selected(&capture, &["gz::"], callers),
                &["function", "blocked", "share", "per_step", "waits"]
            ),
            ["gz::Queue::Push | 200 | 83.333333 | 25 | 1", "(no stack) | 40 | 16.666667 | 10 | 1"]
        );
    }

    #[test]
    fn stacks_without_an_owned_caller_are_a_row_of_their_own() {
        let table = drawn::selected(&two_threads(), &["gz::Queue::"], callers);
        assert_eq!(
            cells(&table, &["function", "blocked"]),
            ["(no owned caller) | 700", "gz::Queue::Push | 150", "(no stack) | 100",]
        );
    }

    #[test]
    fn where_nothing_is_owned_the_programs_own_code_is_attributed() {
        let table = drawn::selected(&two_threads(), &[], callers);
        assert_eq!(cells(&table, &["function", "owned"])[..2], ["gz::Barrier::Wait | -", "gz::Queue::Push | -"]);
    }

    #[test]
    fn missing_stacks_and_wake_ups_are_said() {
        let table = drawn::selected(&two_threads(), &["gz::"], |selection| table(selection, Grouping::Thread));
        assert_eq!(
            table.notes,
            [
                "1 of 2 blocked waits lack their wake-up: there, blocked includes the time from the wake-up until a CPU was free.",
                "100 ns (10.53 %) of the blocked time have no stack, so neither class nor caller.",
            ]
        );
    }

    #[test]
    fn lost_switches_are_unaccounted_for_and_not_hidden() {
        let capture = Drawing::new().lived("main", 0..1_000, 500).blocked("main", 0..300, LOCK).capture;
        let table = drawn::selected(&capture, &["gz::"], |selection| table(selection, Grouping::Thread));
        assert_eq!(cells(&table, &["running", "blocked", "unaccounted"]), ["500 | 300 | 200"]);
        assert!(table.notes.iter().any(|note| note.starts_with("In 1 row more than 1 %")), "{:?}", table.notes);
    }

    #[test]
    fn without_an_exact_cpu_time_running_is_what_is_left() {
        let capture = Drawing::new().lived("main", 0..1_000, None).blocked("main", 0..300, LOCK).capture;
        let table = drawn::selected(&capture, &["gz::"], |selection| table(selection, Grouping::Thread));
        assert_eq!(cells(&table, &["running", "blocked", "unaccounted"]), ["700 | 300 | 0"]);
    }

    #[test]
    fn a_part_of_the_time_adds_up_to_that_part_of_the_lifetime() {
        let filter = Filter { time: Some(TimeRange { from_ns: 200, to_ns: Some(750) }), ..Filter::default() };
        let table = drawn::filtered(&two_threads(), &["gz::"], &filter, |selection| table(selection, Grouping::Thread));
        assert_eq!(
            cells(&table, &["thread", "lifetime", "running", "runnable", "blocked", "unaccounted"]),
            ["main | 550 | 300 | 100 | 150 | 0", "worker | 550 | 50 | 0 | 500 | 0",]
        );
    }

    #[test]
    fn threads_of_one_name_add_up() {
        let mut capture = two_threads();
        capture.threads[1].name = "main".to_owned();
        let table = drawn::selected(&capture, &["gz::"], |selection| table(selection, Grouping::ThreadName));
        assert_eq!(
            cells(&table, &["thread", "threads", "lifetime", "running", "blocked"]),
            ["main | 2 | 1900 | 800 | 950"]
        );
    }

    #[test]
    fn without_switch_records_the_table_says_so() {
        let capture = Drawing::new().lived("main", 0..10, None).capture;
        let table = drawn::selected(&capture, &[], |selection| table(selection, Grouping::Thread));
        assert_eq!(
            cells(&table, &["lifetime", "running", "runnable", "blocked", "lock", "unaccounted", "running_share"]),
            ["10 | - | - | - | - | - | -"]
        );
        assert!(table.notes[0].starts_with("Context switches were not recorded"));
    }

    #[test]
    fn a_thread_asleep_since_before_the_recording_is_why_there_is_no_stack() {
        let capture = Drawing::new()
            .window(100..5_000_000_100)
            .lived("waiter", 100..5_000_000_100, 0)
            .blocked("waiter", 100..4_000_000_100, "")
            .blocked("waiter", 4_000_000_100..5_000_000_100, "")
            .capture;
        let expected = "5.00 s (100.00 %) of the blocked time have no stack, so neither class nor caller. \
             4.00 s of it are of 1 thread that slept since before the recording began: a stack is taken when a thread goes to sleep.";
        assert_eq!(drawn::selected(&capture, &[], callers).notes, [expected]);
    }
}
