//! A thread wakes again and again to look whether there is something to do.
//!
//! Evidence: a thread's waits end at a high rate, no other thread ends them, and it runs only briefly between them. Look-alikes:
//! the pacing of the simulation loop, which is left out; a periodic task, which does work each time it wakes; a watchdog,
//! which wakes rarely. A Python thread takes longer for a look, and waits for the interpreter's lock after it wakes.

use std::collections::BTreeMap;

use crate::Function;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::{blocked_ns, no_thread_ended};
use crate::query::work::Work;
use stepscope_model::{FrameKind, ThreadId, Wait, WaitState};

/// Least wake-ups of a thread per second.
const RATE: f64 = 50.0;

/// Least part of the waits that no thread ends.
const TIMED_OUT: f64 = 0.8;

/// A look takes no longer; what runs longer has found work. A system call that fails and the next wait take some 5 us.
pub(super) const LONGEST_LOOK_NS: u64 = 20_000;

/// The same of Python code.
const LONGEST_OF_PYTHON_NS: u64 = 200_000;

/// Part of a thread's CPU time that is a task and no look.
const TASK: f64 = 0.4;

pub(super) struct Polling;

impl Kind for Polling {
    fn name(&self) -> &'static str {
        "polling"
    }

    fn advice(&self) -> &'static str {
        "Block until there is something to do: a condition variable, an `eventfd`, `epoll` without a time-out."
    }

    fn confirm(&self) -> &'static str {
        "Count the waits that end by time-out: `strace -f -e poll,select,epoll_wait,futex,clock_nanosleep`."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["cpu-held-by-others"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some(wall) = seen.selection.wall_ns().filter(|_| !seen.is_loading()) else { return Vec::new() };
        let (seconds, mut classes) = (wall as f64 / 1e9, Classes::new(seen.capture(), seen.functions()));
        let paced = seen.loop_threads();
        let takes_lock = python::takes_lock(seen);
        let runs_python = seen.paths_through(|function| function.kind == FrameKind::Python);
        let may_time_out = seen.paths_through(asks_descriptors);
        let mut groups: BTreeMap<FunctionId, Vec<(ThreadId, Looks)>> = BTreeMap::new();
        for (thread, _) in seen.selection.threads().filter(|(thread, _)| !paced.contains(thread)) {
            let mut is_timed = |wait: &Wait| match wait.stack.map(|stack| classes.of(stack)) {
                Some(WaitClass::Sleep) => true,
                Some(WaitClass::Condition) => no_thread_ended(wait),
                // A call that receives returns when something is there: what comes over a network is no time-out.
                Some(WaitClass::Network) => {
                    no_thread_ended(wait) && wait.stack.is_some_and(|stack| may_time_out[stack.index()])
                }
                _ => false,
            };
            let of_python = Python { takes_lock: &takes_lock, runs: &runs_python };
            let looks = Looks::of(seen, thread, &of_python, &mut is_timed);
            if let Some(function) =
                looks.function().filter(|function| looks.are_usual(seconds) && !has_a_task(seen, thread, *function))
            {
                groups.entry(function).or_default().push((thread, looks));
            }
        }
        let mut found = Vec::new();
        for (function, threads) in groups {
            let part_of = |of: ThreadId| threads.iter().find(|(thread, _)| *thread == of).map(|(_, looks)| looks.part);
            let looking = seen.selection.samples().filter_map(|sample| Some((sample, part_of(sample.thread)?)));
            let gain = seen.gain_of_parts(looking);
            let rate = threads.iter().map(|(_, looks)| looks.number).sum::<usize>() as f64 / seconds;
            let title = format!("`{}` wakes {rate:.0} times a second to look for work", seen.name(function));
            found.push(Found::of_program(title, Some(gain)).about(Some(function)).sure(Confidence::Fair).because(
                format!("Its waits end by time-out; looking takes {} of all CPU time.", percent(gain.share().value)),
                "show --view wall",
            ));
        }
        found
    }
}

/// Whether a function waits for descriptors, with a time-out if it is given one.
fn asks_descriptors(function: &Function) -> bool {
    const PARTS: [&str; 4] = ["poll", "select", "kevent", "epoll"];
    !function.owned && PARTS.iter().any(|part| own_name(&function.name).contains(part))
}

/// Whether a thread does something each time it wakes, in other functions than the one that waits: a periodic task. A look costs
/// the wait, the wake-up and a comparison.
fn has_a_task(seen: &Seen<'_, '_>, thread: ThreadId, waits_at: FunctionId) -> bool {
    let waits = |work: Work| {
        matches!(
            work,
            Work::Switch | Work::Lock | Work::Poll | Work::Receive | Work::ReadFile | Work::Kernel | Work::Clock
        )
    };
    let (mut all, mut task) = (0_u128, 0_u128);
    for sample in seen.selection.samples().filter(|sample| sample.thread == thread) {
        let Some(stack) = sample.stack else { continue };
        all += u128::from(sample.weight);
        let is_look = waits(seen.work[stack.index()]) || seen.functions().attributed(stack) == Some(waits_at);
        task += if is_look { 0 } else { u128::from(sample.weight) };
    }
    task as f64 > TASK * all as f64
}

/// One flag per stack.
struct Python<'f> {
    /// Whether a thread takes the interpreter's lock there.
    takes_lock: &'f [bool],
    /// Whether a Python function is on it.
    runs: &'f [bool],
}

/// The short runs of a thread between a wait that no thread ends and the next wait.
struct Looks {
    number: usize,
    by_function: BTreeMap<FunctionId, usize>,
    /// Waits that no thread ends, and waits in all.
    waits: (usize, usize),
    /// Their part of the time that the thread runs.
    part: f64,
}

impl Looks {
    fn of(
        seen: &Seen<'_, '_>,
        thread: ThreadId,
        python: &Python<'_>,
        is_timed: &mut impl FnMut(&Wait) -> bool,
    ) -> Self {
        let mut waits = seen.waits(thread).peekable();
        let mut looks = Self { number: 0, by_function: BTreeMap::new(), waits: (0, 0), part: 0.0 };
        // Of aggregated waits, neither the run after each is known nor what ended it: those one by one stand for them.
        let (mut ns, mut aggregated) = (0, 0);
        while let Some(wait) = waits.next() {
            let is_lock = wait.stack.is_some_and(|stack| python.takes_lock[stack.index()]);
            if wait.state != WaitState::Blocked || blocked_ns(&wait) == 0 || is_lock {
                continue;
            }
            if wait.is_aggregated() {
                aggregated += wait.count as usize;
                continue;
            }
            looks.waits.1 += 1;
            if !is_timed(&wait) {
                continue;
            }
            looks.waits.0 += 1;
            let mut run = 0;
            let mut from = wait.end_ns;
            let is_part = |next: &Wait| next.stack.is_some_and(|stack| python.takes_lock[stack.index()]);
            while let Some(next) = waits.next_if(is_part) {
                run += next.start_ns.saturating_sub(from);
                from = next.end_ns;
            }
            let Some(next) = waits.peek() else { continue };
            run += next.start_ns.saturating_sub(from);
            let is_python = wait.stack.is_some_and(|stack| python.runs[stack.index()]);
            if run <= if is_python { LONGEST_OF_PYTHON_NS } else { LONGEST_LOOK_NS } {
                looks.number += 1;
                ns += run;
                if let Some(function) = wait.stack.and_then(|stack| seen.functions().attributed(stack)) {
                    *looks.by_function.entry(function).or_default() += 1;
                }
            }
        }
        let life = seen.selection.lifetime(thread);
        let running = life.and_then(|life| seen.off_cpu.spent(thread, life)).map_or(0, |spent| spent.running);
        let standing_for = (looks.waits.1 + aggregated) as f64 / looks.waits.1.max(1) as f64;
        looks.part = (ns as f64 * standing_for / running.max(1) as f64).min(1.0);
        looks
    }

    /// Where most of them wait.
    fn function(&self) -> Option<FunctionId> {
        self.by_function.iter().max_by_key(|(_, number)| **number).map(|(function, _)| *function)
    }

    /// Whether the thread mostly looks.
    fn are_usual(&self, seconds: f64) -> bool {
        let (timed, all) = self.waits;
        timed as f64 >= RATE * seconds && timed as f64 >= TIMED_OUT * all as f64 && 2 * self.number >= timed
    }
}
