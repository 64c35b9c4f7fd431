//! Wall time: how each thread spent its lifetime.
//!
//! A thread is at any moment *running* (on a CPU), *runnable* (waiting for a CPU) or *blocked* (waiting for something else,
//! by [class](crate::query::wait_class)). The three add up to its lifetime:
//!
//! > running + runnable + blocked + unaccounted = lifetime
//!
//! Running is the exact CPU time from context switches. Runnable is every preempted interval, and the end of a blocked
//! interval after the wake-up. The rest is *unaccounted*: 0, unless switch records were lost (it is negative if intervals
//! overlap). If a thread's exact CPU time is unknown, running is the rest of its lifetime.
//!
//! Without context switches only the lifetime is known. Without wake-ups, blocked time includes the time runnable after
//! the wake-up; a note says so.
//!
//! # Callers
//! The leaf of a blocked stack is a futex or a poll in a library, and never owned (erratum 11 of the Gazebo study).
//! [`callers`] attributes each wait to its nearest owned caller, as cost is. If no code is marked as owned, it is the
//! nearest function outside run-time libraries.

mod callers;

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{
    Column, Columns, Dimension, Importance, Note, NoteValue, Table, ThreadId, Value, Wait, WaitState, note,
};

pub use self::callers::callers;
use crate::analyses::calltree;
use crate::analysis::{Analysis, ReportSection, View};
use crate::columns;
use crate::query::functions::{FunctionId, Functions};
use crate::query::select::Selection;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::{blocked_ns, runnable_ns};
use crate::query::wake_ups::WakeUps;
use crate::query::weights::percent;

/// What the rows of [`table`] are about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grouping {
    /// One row per thread.
    #[default]
    Thread,
    /// One row per thread name: lifetimes of threads of one name added up.
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

fn lives(selection: &Selection<'_>) -> FxHashMap<ThreadId, Life> {
    let mut lives: FxHashMap<ThreadId, Life> = FxHashMap::default();
    let mut off_cpu: FxHashMap<ThreadId, u128> = FxHashMap::default();
    let mut classes = Classes::new(selection.capture(), selection.functions());
    for wait in selection.thread_waits() {
        *off_cpu.entry(wait.thread).or_default() += u128::from(wait.end_ns - wait.start_ns);
        add_wait(lives.entry(wait.thread).or_default(), &wait, selection.functions(), &mut classes);
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

fn add_wait(life: &mut Life, wait: &Wait, functions: &Functions, classes: &mut Classes<'_>) {
    life.runnable += u128::from(runnable_ns(wait));
    if wait.state == WaitState::Preempted {
        return;
    }
    let blocked = u128::from(blocked_ns(wait));
    let Some(stack) = wait.stack else {
        life.blocked_without_stack += blocked;
        return;
    };
    life.blocked[classes.of(stack).index()] += blocked;
    if let Some(caller) = functions.attributed(stack) {
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
    let mut rows: Vec<Row<'_>> = match grouping {
        Grouping::Thread => {
            lives.into_iter().map(|(id, life)| Row { name: name_of(id), thread: Some(id), life }).collect()
        }
        Grouping::ThreadName => {
            let mut by_name: FxHashMap<&str, Life> = FxHashMap::default();
            for (id, life) in &lives {
                by_name.entry(name_of(*id)).or_default().add(life);
            }
            by_name.into_iter().map(|(name, life)| Row { name, thread: None, life }).collect()
        }
    };
    rows.sort_by_key(|row| (Reverse((row.life.running, row.life.blocked_total())), row.name, row.thread));
    let (name, title) = match grouping {
        Grouping::Thread => ("wall", "Wall time by thread"),
        Grouping::ThreadName => ("wall_by_name", "Wall time by thread name"),
    };
    let mut table = table_columns(selection, grouping, &rows).table(name, title, &rows);
    table.add_notes(notes(selection, rows.iter().map(|row| &row.life)));
    table
}

/// A thread, or the threads of one name.
struct Row<'a> {
    name: &'a str,
    thread: Option<ThreadId>,
    life: Life,
}

fn table_columns<'t>(selection: &'t Selection<'_>, grouping: Grouping, rows: &[Row<'t>]) -> Columns<'t, Row<'t>> {
    let capture = selection.capture();
    // What was not recorded is missing, not 0.
    let known = |value: Value| if selection.has_switches() { value } else { Value::Missing };
    let share = move |life: &Life, ns: u128| known(percent(ns, life.lifetime).into());
    let thread = |row: &Row<'_>| row.thread.map(|id| &capture.threads[id.index()]);
    let process = move |row: &Row<'_>| thread(row).map_or("", |thread| selection.process_label_of(thread));
    let by_thread = grouping == Grouping::Thread;
    let caller = "The nearest owned caller to which most blocked time is attributed (of the program's \
                code, if no code is marked as owned).";
    let mut all = Columns::<Row<'_>>::new()
        .text("thread", "Last name of the thread.", |row| row.name.into())
        .with_if(by_thread, Column::number("tid", "", "Thread id.").detail(), move |row| {
            thread(row).map(|thread| thread.tid).into()
        })
        .with_if(by_thread, columns::process(capture), move |row| process(row).into())
        .with_if(!by_thread, Column::count("threads", "", "Number of threads of this name."), |row| {
            row.life.threads.into()
        })
        .duration("lifetime", "Lifetime within the selected time, of all threads of the row.", |row| row.life.lifetime)
        .duration("running", "On a CPU.", move |row| known(row.life.running.into()))
        .duration("runnable", "Runnable and waiting for a CPU, preempted or woken, as far as recorded.", move |row| {
            known(row.life.runnable.into())
        })
        .duration("blocked", "Waiting for something else.", move |row| known(row.life.blocked_total().into()))
        .essential("running blocked");
    let blocked: u128 = rows.iter().map(|row| row.life.blocked_total()).sum();
    for class in WaitClass::ALL {
        let of_class = rows.iter().map(|row| row.life.blocked[class.index()]).sum();
        let column = Column::duration(class.name(), class_doc(class)).at(importance(of_class, blocked));
        all = all.with(column, move |row| known(row.life.blocked[class.index()].into()));
    }
    all.duration("no_stack", "Blocked without a recorded stack.", move |row| {
        known(row.life.blocked_without_stack.into())
    })
    .duration("unaccounted", "Lifetime less all of these: not 0 if switch records were lost.", move |row| {
        known(Value::Int(row.life.unaccounted()))
    })
    .percentage("running_share", "Running in percent of the lifetime.", move |row| share(&row.life, row.life.running))
    .percentage("runnable_share", "Runnable in percent of the lifetime.", move |row| {
        share(&row.life, row.life.runnable)
    })
    .percentage("blocked_share", "Blocked in percent of the lifetime.", move |row| {
        share(&row.life, row.life.blocked_total())
    })
    .text("blocked_at", caller, move |row| row.life.top_caller(selection.functions()).map(|(name, _)| name).into())
    .percentage("blocked_at_share", "That caller's part of the blocked time, in percent.", move |row| {
        let top = row.life.top_caller(selection.functions());
        top.and_then(|(_, ns)| percent(ns, row.life.blocked_total()))
    })
    .essential("blocked_at")
    .detail("no_stack unaccounted running_share runnable_share blocked_share blocked_at_share")
}

/// How much the column of a class of waits matters: a class with a tenth of the blocked time says on what threads wait.
fn importance(of_class: u128, blocked: u128) -> Importance {
    match percent(of_class, blocked).unwrap_or(0.0) {
        10.0.. => Importance::Essential,
        1.0.. => Importance::Normal,
        _ => Importance::Detail,
    }
}

fn class_doc(class: WaitClass) -> &'static str {
    match class.name() {
        "lock" => "Blocked at a lock.",
        "condition" => "Blocked at a condition variable, barrier, semaphore or join.",
        "sleep" => "Asleep voluntarily.",
        "file" => "Blocked at a file or block device.",
        "network" => "Blocked at a socket, or at poll, select or epoll of any descriptors.",
        "page_fault" => "Blocked until memory was available.",
        _ => "Blocked at a stack of no known class.",
    }
}

fn notes<'a>(selection: &Selection<'_>, lives: impl Iterator<Item = &'a Life> + Clone) -> Vec<Note> {
    if !selection.has_switches() {
        return vec![note!(
            Limit,
            "Context switches were not recorded, so running, runnable and blocked time are unknown."
        )];
    }
    let mut notes = Vec::new();
    let capture = selection.capture();
    let unknown = capture.threads.iter().filter(|thread| thread.start_ns.is_none() || thread.end_ns.is_none()).count();
    if unknown > 0 {
        notes.push(note!(Loss, "No row: {} of unknown lifetime.", NoteValue::plural(unknown, "thread")));
    }
    if selection.filters_stacks() {
        notes.push(note!(Limit, "Filters on functions, modules and ownership do not apply to lifetimes."));
    }
    notes.extend(missing_wake_ups(selection));
    let blocked: u128 = lives.clone().map(Life::blocked_total).sum();
    let without: u128 = lives.clone().map(|life| life.blocked_without_stack).sum();
    notes.extend(missing_stacks(selection, blocked, without));
    let far_off = |life: &&Life| life.unaccounted().unsigned_abs() * 100 > life.lifetime;
    let far_off = lives.filter(far_off).count();
    if far_off > 0 {
        let rows = NoteValue::plural(far_off, "row");
        notes.push(note!(
            Loss,
            "More than 1 % of the lifetime is unaccounted for in {}: switch records were lost.",
            rows
        ));
    }
    notes
}

fn missing_wake_ups(selection: &Selection<'_>) -> Option<Note> {
    match WakeUps::of(selection) {
        WakeUps::Recorded { missing: 0, .. } => None,
        WakeUps::Recorded { missing, of } => {
            let (missing, of) = (NoteValue::number(missing), NoteValue::plural(of, "blocked wait"));
            Some(note!(Loss, "{} of {} have no wake-up; their blocked time includes the time runnable.", missing, of))
        }
        WakeUps::Unrecorded => Some(note!(
            Limit,
            "Wake-ups were not recorded: blocked time includes the time runnable after the \
                wake-up."
        )),
    }
}

/// How much of the blocked time has no stack of its own, and why, as far as that is known.
fn missing_stacks(selection: &Selection<'_>, blocked: u128, without: u128) -> Vec<Note> {
    let share = |part: u128| NoteValue::percent(percent(part, blocked).unwrap_or(0.0));
    let mut notes = Vec::new();
    let thinned = selection.thinned_stacks();
    let estimated = thinned.map_or(0, |thinned| thinned.estimated_ns(selection.thread_wait_rows()));
    if estimated > 0 {
        notes.push(note!(
            Limit,
            "{} of blocked time ({}) counts at stacks of similar waits of the same thread: only some waits have a stack of \
             their own. More stacks: --switch-stacks-hz, or more rights (`stepscope doctor`).",
            share(estimated),
            NoteValue::ns(estimated)
        ));
    }
    notes.extend(aggregated(selection));
    if without > 0 {
        let (asleep_ns, threads) = asleep_before(selection);
        let asleep = match threads {
            0 => String::new(),
            _ => format!("; {} of that began before the recording", NoteValue::ns(asleep_ns)),
        };
        notes.push(note!(
            Loss,
            "{} of blocked time ({}) has no stack, so its cause and caller are unknown{}.",
            share(without),
            NoteValue::ns(without),
            asleep
        ));
    }
    notes
}

/// How many waits were added up while recording, and how well their stacks are known.
fn aggregated(selection: &Selection<'_>) -> Option<Note> {
    let count = |sum: u64, wait: Wait| sum + u64::from(wait.count);
    let all = selection.thread_waits().fold(0, count);
    let summed = selection.thread_waits().filter(Wait::is_aggregated).fold(0, count);
    if summed == 0 {
        return None;
    }
    let losses = &selection.capture().info.losses;
    let (checked, differing) = (losses.checked_stacks.unwrap_or(0), losses.differing_stacks.unwrap_or(0));
    Some(note!(
        Limit,
        "{} of {} waits are aggregated: they were added up in the kernel, because their threads switch very often. Their \
         times are exact; who ended each is unknown. Of {} stacks that were copied again, {} differed from the stack known \
         for their place. More single waits: --switch-stacks-hz.",
        NoteValue::number(summed),
        NoteValue::number(all),
        NoteValue::number(checked),
        NoteValue::percent(percent(u128::from(differing), u128::from(checked)).unwrap_or(0.0))
    ))
}

/// Blocked time without a stack of threads that were asleep when the recording began, and how many they are.
fn asleep_before(selection: &Selection<'_>) -> (u128, usize) {
    let capture = selection.capture();
    let Some(began) = capture.info.start_ns else { return (0, 0) };
    let is_unseen = |wait: &Wait| wait.state == WaitState::Blocked && wait.stack.is_none();
    let since_before = capture.waits.iter().filter(is_unseen).filter(|wait| wait.start_ns <= began);
    let woke: FxHashMap<ThreadId, u64> = since_before.map(|wait| (wait.thread, wait.end_ns)).collect();
    let mut threads = FxHashSet::default();
    let mut asleep = 0;
    // Waits of a thread do not overlap, so a wait that ends within the first one is a part of it.
    for wait in selection.waits().filter(is_unseen) {
        if woke.get(&wait.thread).is_some_and(|woke| wait.end_ns <= *woke) {
            asleep += u128::from(blocked_ns(&wait));
            threads.insert(wait.thread);
        }
    }
    (asleep, threads.len())
}

/// How threads spent their lifetime.
pub const ANALYSIS: Analysis = Analysis {
    title: "Wall time",
    views: &[
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
    ],
    needs: &[Dimension::Offcpu],
    report: |selection| {
        let off_cpu = calltree::off_cpu(selection, &calltree::Options::default());
        let sections = [
            ReportSection::of_tables("Wall", vec![table(selection, Grouping::Thread)]),
            ReportSection::of_tables("Blocked", vec![callers(selection)]),
            ReportSection::of_tree("Off-CPU flame graph", off_cpu),
        ];
        sections.into_iter().flatten().collect()
    },
    ..Analysis::NONE
};

#[cfg(test)]
mod tests;
