//! Barriers: where several threads waited for one, and which one arrived last.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Columns, NoteValue, StackId, Table, Thread, ThreadId, Wait, WaitState, note};

use super::TOGETHER_NS;
use crate::query::functions::{FunctionId, NO_STACK};
use crate::query::off_cpu::OffCpu;
use crate::query::select::Selection;
use crate::query::step_paths::Paths;
use crate::query::steps::Steps;
use crate::query::waits::{blocked_ns, woken_at};
use crate::query::weights::percent;

/// Waits of several threads that one thread ended at about the same time.
#[derive(Debug, Clone)]
pub(super) struct Barrier {
    /// The last thread to arrive.
    pub(super) last: ThreadId,
    /// The function attributed to its wake-up.
    ended_by: Option<FunctionId>,
    /// The function attributed to the waits.
    pub(super) waits_at: Option<FunctionId>,
    pub(super) waiting: Vec<Waiting>,
    on_path: bool,
    /// When the last thread arrived.
    arrived_ns: u64,
    /// The step that it is in.
    step: u32,
}

/// A thread's wait at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    pub(super) thread: ThreadId,
    pub(super) waited_ns: u64,
}

impl Barrier {
    /// How much later the last thread arrived than the one before it.
    pub(super) fn behind_ns(&self) -> u64 {
        self.waiting.iter().map(|waiting| waiting.waited_ns).min().unwrap_or(0)
    }
}

/// A blocked wait that a thread ended.
#[derive(Debug, Clone, Copy)]
struct EndedWait {
    woken_ns: u64,
    step: usize,
    /// The place of the wait.
    place: usize,
}

impl EndedWait {
    fn is_at_same_barrier(&self, next: &Self) -> bool {
        next.woken_ns - self.woken_ns <= TOGETHER_NS && self.step == next.step
    }
}

/// Gives `take` the barriers of all steps but the first, in the order in which they are over.
///
/// There may be half as many as waits, so only those of now are in memory: waits come in the order of their wake-ups.
pub(super) fn each(selection: &Selection<'_>, steps: &Steps, paths: &Paths<'_>, mut take: impl FnMut(Barrier)) {
    let (kept, off_cpu) = (steps.after_first(), paths.off_cpu());
    // The waits that each thread ended last, all at one barrier.
    let mut ended_by: BTreeMap<ThreadId, Vec<EndedWait>> = BTreeMap::new();
    for place in off_cpu.merged_by(woken_at) {
        let wait = off_cpu.at(place);
        let woken_ns = woken_at(&wait);
        let step = || steps.at(woken_ns).filter(|position| kept.contains(position));
        let Some(waker) = wait.waker.filter(|_| wait.state == WaitState::Blocked) else { continue };
        let Some(step) = step() else { continue };
        let (ended, group) = (EndedWait { woken_ns, step, place }, ended_by.entry(waker).or_default());
        if group.last().is_some_and(|last| !last.is_at_same_barrier(&ended)) {
            barrier(selection, paths, waker, group).into_iter().for_each(&mut take);
            group.clear();
        }
        group.push(ended);
    }
    ended_by.iter().filter_map(|(waker, group)| barrier(selection, paths, *waker, group)).for_each(take);
}

/// `None` if only one thread waited.
fn barrier(selection: &Selection<'_>, paths: &Paths<'_>, last: ThreadId, group: &[EndedWait]) -> Option<Barrier> {
    if group.len() < 2 {
        return None;
    }
    let wait = |ended: &EndedWait| paths.off_cpu().at(ended.place);
    let waiting = |ended: &EndedWait| Waiting { thread: wait(ended).thread, waited_ns: blocked_ns(&wait(ended)) };
    let mut waiting: Vec<Waiting> = group.iter().map(waiting).collect();
    // A thread that waited twice was first woken for something else: its longest wait counts.
    waiting.sort_unstable_by_key(|one| (one.thread, Reverse(one.waited_ns)));
    waiting.dedup_by_key(|one| one.thread);
    if waiting.len() < 2 {
        return None;
    }
    let attributed = |stack: Option<StackId>| stack.and_then(|stack| selection.functions().attributed(stack));
    let first_known = |stack: fn(&Wait) -> Option<StackId>| group.iter().find_map(|one| attributed(stack(&wait(one))));
    Some(Barrier {
        last,
        ended_by: first_known(|wait| wait.waker_stack),
        waits_at: first_known(|wait| wait.stack),
        waiting,
        on_path: group.iter().any(|one| paths.follows(one.place)),
        arrived_ns: group[0].woken_ns,
        step: group[0].step as u32,
    })
}

/// The barriers of one place, added up.
#[derive(Debug, Clone, Default)]
struct Site {
    barriers: u64,
    on_path: u64,
    waiters: u64,
    waiting_ns: u64,
    longest_ns: u64,
    behind_ns: u64,
    last: FxHashMap<ThreadId, u64>,
}

impl Site {
    fn add(&mut self, barrier: &Barrier) {
        self.barriers += 1;
        self.on_path += u64::from(barrier.on_path);
        self.waiters += barrier.waiting.len() as u64;
        self.behind_ns = self.behind_ns.saturating_add(barrier.behind_ns());
        *self.last.entry(barrier.last).or_default() += 1;
        for waiting in &barrier.waiting {
            self.waiting_ns = self.waiting_ns.saturating_add(waiting.waited_ns);
            self.longest_ns = self.longest_ns.max(waiting.waited_ns);
        }
    }

    /// The thread that arrived last most often, and how often.
    fn usual_last(&self) -> (ThreadId, u64) {
        let last = self.last.iter().max_by_key(|(thread, times)| (**times, Reverse(**thread)));
        last.map(|(thread, times)| (*thread, *times)).expect("a barrier has a last thread")
    }

    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.barriers as f64
    }
}

/// A row of the table.
struct Row<'a> {
    waits_at: &'a str,
    ended_by: &'a str,
    last: &'a Thread,
    arrived_last: u64,
    site: Site,
}

/// Barriers by the functions attributed to their waits and to the wake-up.
#[derive(Debug, Default)]
pub(super) struct Sites {
    sites: FxHashMap<(Option<FunctionId>, Option<FunctionId>), Site>,
    without_location: usize,
}

impl Sites {
    pub(super) fn add(&mut self, barrier: &Barrier) {
        self.sites.entry((barrier.waits_at, barrier.ended_by)).or_default().add(barrier);
        self.without_location += usize::from(barrier.waits_at.is_none());
    }

    /// The table `barriers`.
    pub(super) fn table(self, selection: &Selection<'_>, steps: &Steps) -> Table {
        let without_location = self.without_location;
        table(selection, steps, self.sites, without_location)
    }
}

fn table(
    selection: &Selection<'_>,
    steps: &Steps,
    sites: FxHashMap<(Option<FunctionId>, Option<FunctionId>), Site>,
    without_location: usize,
) -> Table {
    let is_empty = sites.is_empty();
    let name = |id: Option<FunctionId>| id.map_or(NO_STACK, |id| &*selection.functions().get(id).name);
    let row = |((waits_at, ended_by), site): (_, Site)| {
        let (last, arrived_last) = site.usual_last();
        let last = &selection.capture().threads[last.index()];
        Row { waits_at: name(waits_at), ended_by: name(ended_by), last, arrived_last, site }
    };
    let mut rows: Vec<Row<'_>> = sites.into_iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.site.waiting_ns), row.waits_at, row.ended_by));
    let steps = steps.after_first().len().max(1) as f64;
    let waits_at = "Nearest owned function of the waits (of the program, if nothing is owned), or `(no stack)`.";
    let behind =
        "Mean delay of the last thread after the one before it: the most that a faster last thread can gain here.";
    let mut table = Columns::<Row<'_>>::new()
        .text("waits_at", waits_at, |row| row.waits_at.into())
        .text("ended_by", "Nearest owned function of the thread that ended the waits.", |row| row.ended_by.into())
        .count("barriers", "", "How often two threads or more waited there for another.", |row| row.site.barriers)
        .number("barriers_per_step", "", "Barriers per step.", |row| row.site.barriers as f64 / steps)
        .percentage("on_path", "Share of these barriers on the critical path.", |row| {
            percent(row.site.on_path.into(), row.site.barriers.into())
        })
        .text("last_thread", "Thread that arrived last most often.", |row| row.last.name.as_str().into())
        .number("last_tid", "", "Its thread id.", |row| row.last.tid)
        .percentage("last_share", "Share of these barriers where it arrived last.", |row| {
            percent(row.arrived_last.into(), row.site.barriers.into())
        })
        .duration("behind", behind, |row| row.site.mean(row.site.behind_ns))
        .number("waiters", "", "Mean number of waiting threads.", |row| row.site.mean(row.site.waiters))
        .duration("waiting_time", "Time per step that all other threads waited.", |row| {
            row.site.waiting_ns as f64 / steps
        })
        .duration("longest", "Longest single wait.", |row| row.site.longest_ns)
        .essential("waits_at ended_by barriers last_thread last_share behind")
        .detail("barriers_per_step last_tid waiters longest")
        .table("barriers", "Barriers: last thread to arrive", rows);
    if is_empty {
        table.note(note!(Fact, "No barriers: no thread ended the waits of two others together."));
    }
    let period = selection.capture().info.losses.offcpu_stack_period.filter(|period| *period > 1);
    if let Some(period) = period.filter(|_| without_location > 0) {
        table.note(note!(
            Loss,
            "{} without location: threads switched so often that only 1 in {} stacks was kept.",
            NoteValue::plural(without_location, "barrier"),
            NoteValue::number(period)
        ));
    }
    table
}

/// Work that is dealt out unevenly between the workers of one barrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Imbalance {
    /// The function attributed to the waits.
    pub(crate) waits_at: Option<FunctionId>,
    /// The worker that arrives last most often.
    pub(crate) last: ThreadId,
    /// How often it does, 0 to 1.
    pub(crate) last_share: f64,
    /// Mean number of other workers.
    pub(crate) waiters: f64,
    /// Time per step that they wait, in ns.
    pub(crate) waiting_ns: f64,
    /// How much earlier per step the last one would arrive with the mean of all workers' work, in ns.
    pub(crate) gain_ns: f64,
}

/// The barriers on the critical path by their place, each with what an even share of the work would gain.
///
/// The loop's own thread is no worker: what it waits for is the work itself. Work is CPU time since the worker's barrier before,
/// or since the step began: with fewer CPUs than workers one of them is late with no more work than the others.
pub(crate) fn imbalances(
    selection: &Selection<'_>,
    steps: &Steps,
    paths: &Paths<'_>,
    off_cpu: &OffCpu<'_>,
) -> Vec<Imbalance> {
    let main: FxHashSet<ThreadId> = steps.rows().iter().map(|step| step.thread).collect();
    let mut sites: FxHashMap<Option<FunctionId>, Vec<(Barrier, f64)>> = FxHashMap::default();
    let mut found = Vec::new();
    each(selection, steps, paths, |barrier| found.push(barrier));
    found.sort_by_key(|barrier| (barrier.arrived_ns, barrier.last));
    let mut barrier_before: FxHashMap<ThreadId, u64> = FxHashMap::default();
    for mut barrier in found {
        let before = barrier_before.get(&barrier.last).copied().unwrap_or(0);
        let round = before.max(steps.rows()[barrier.step as usize].start_ns)..barrier.arrived_ns;
        let here = barrier.waiting.iter().map(|one| one.thread).chain([barrier.last]);
        barrier_before.extend(here.map(|thread| (thread, barrier.arrived_ns)));
        barrier.waiting.retain(|one| !main.contains(&one.thread));
        if barrier.on_path && !barrier.waiting.is_empty() && !main.contains(&barrier.last) {
            let gain_ns = even_gain(&barrier, off_cpu, round);
            sites.entry(barrier.waits_at).or_default().push((barrier, gain_ns));
        }
    }
    let number_of_steps = steps.after_first().len().max(1) as f64;
    let of_site = |(waits_at, barriers): (Option<FunctionId>, Vec<(Barrier, f64)>)| {
        let mut last: FxHashMap<ThreadId, u64> = FxHashMap::default();
        let (mut waiting_ns, mut gain_ns, mut waiters) = (0.0, 0.0, 0);
        for (barrier, gain) in &barriers {
            *last.entry(barrier.last).or_default() += 1;
            let waited: u64 = barrier.waiting.iter().map(|one| one.waited_ns).sum();
            waiting_ns += waited as f64;
            gain_ns += gain;
            waiters += barrier.waiting.len();
        }
        let (last, times) = last.into_iter().max_by_key(|(thread, times)| (*times, Reverse(*thread)))?;
        let number = barriers.len() as f64;
        Some(Imbalance {
            waits_at,
            last,
            last_share: times as f64 / number,
            waiters: waiters as f64 / number,
            waiting_ns: waiting_ns / number_of_steps,
            gain_ns: gain_ns / number_of_steps,
        })
    };
    sites.into_iter().filter_map(of_site).collect()
}

/// How much earlier the last worker would arrive with the mean of all workers' work: at most what they wait for it, and what it
/// runs beyond their mean.
fn even_gain(barrier: &Barrier, off_cpu: &OffCpu<'_>, round: Range<u64>) -> f64 {
    let workers = (barrier.waiting.len() + 1) as f64;
    let waited = barrier.waiting.iter().map(|one| one.waited_ns).sum::<u64>() as f64 / workers;
    let ran = |thread: ThreadId| Some(off_cpu.spent(thread, round.clone())?.running as f64);
    let of_others = barrier.waiting.iter().map(|one| ran(one.thread)).sum::<Option<f64>>();
    match (ran(barrier.last), of_others) {
        (Some(last), Some(others)) => waited.min(last - (last + others) / workers),
        // Without known lifetimes nothing says how long a thread ran.
        _ => waited,
    }
}
