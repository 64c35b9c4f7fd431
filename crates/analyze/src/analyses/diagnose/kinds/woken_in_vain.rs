//! Threads are woken, find nothing to do and wait again: a herd.
//!
//! Evidence: three threads or more wait in the same owned function. One thread wakes them one right after the other, by a call that
//! wakes all that wait: its name says so, or most of the threads are woken. Most of them run for a few microseconds and wait there
//! again, and all of them hardly do anything else. Look-alikes: workers that all have work in each step, however little; their CPU
//! time is in other functions than those that wait. Threads that are woken one by one (`notify_one`), each for a place in a full
//! queue.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use stepscope_model::{ThreadId, Wait, WaitState};

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::{blocked_ns, woken_at};
use crate::query::work::Work;

/// Fewest threads that wait at one place.
const FEWEST: usize = 3;

/// Parts of functions that wake all that wait: of condition variables, and the kernel's of descriptors.
const WAKES_ALL: [&str; 5] = ["cond_broadcast", "notify_all", "wake_all", "ep_poll_callback", "__wake_up_sync_key"];

/// Parts of functions that wake one: the thread has something to do, however little.
const WAKES_ONE: [&str; 3] = ["cond_signal", "notify_one", "wake_one"];

/// Part of the threads at a place that are woken together, if the call wakes all.
const OF_ALL: f64 = 0.7;

/// Longest time between two wake-ups of a herd.
const TOGETHER_NS: u64 = 100_000;

/// A thread that finds nothing runs no longer.
const NOTHING_NS: u64 = 20_000;

/// Least part of a herd's wake-ups that are in vain, and fewest of them a second.
const IN_VAIN: f64 = 0.6;
const RATE: f64 = 100.0;

/// Most of the threads' CPU time after wake-ups in vain that is work.
const WORK: f64 = 0.3;

/// Least gain in percent of all CPU time.
const LEAST: f64 = 3.0;

pub(super) struct WokenInVain;

impl Kind for WokenInVain {
    fn name(&self) -> &'static str {
        "threads-woken-for-nothing"
    }

    fn advice(&self) -> &'static str {
        "Wake one thread for one job (`notify_one`); wake all only if all have something to do. Give epoll sets `EPOLLEXCLUSIVE`."
    }

    fn confirm(&self) -> &'static str {
        "Count context switches and jobs: many switches for each job confirm it."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["thread-per-client", "work-in-small-pieces", "cpu-held-by-others", "polling"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some(wall) = seen.selection.wall_ns().filter(|_| !seen.is_loading()) else { return Vec::new() };
        let mut found = Vec::new();
        for (place, mut wake_ups) in wake_ups(seen) {
            let threads = wake_ups.iter().map(|one| one.thread).collect::<BTreeSet<_>>();
            if threads.len() < FEWEST {
                continue;
            }
            wake_ups.sort_unstable_by_key(|one| (one.at_ns, one.thread));
            let herds = wake_ups.chunk_by(|a, b| a.waker == b.waker && b.at_ns - a.at_ns <= TOGETHER_NS);
            let herds: Vec<&[WakeUp]> = herds.filter(|herd| herd.len() >= FEWEST).collect();
            let of_most = herds.iter().filter(|herd| herd.len() as f64 >= OF_ALL * threads.len() as f64);
            let in_large: usize = of_most.map(|herd| herd.len()).sum();
            let woken: Vec<&WakeUp> = herds.into_iter().flatten().collect();
            // The stacks of most wakers are left out at high rates, and a call at a function's end leaves no frame.
            let known: Vec<bool> = woken.iter().filter_map(|one| one.is_of_all).collect();
            let of_one = woken.iter().filter(|one| one.is_of_one).count();
            if 2 * of_one > known.len() {
                continue;
            }
            let by_name = 2 * known.iter().filter(|of_all| **of_all).count() > known.len();
            if !by_name && 2 * in_large < woken.len() {
                continue;
            }
            let in_vain = woken.iter().filter(|one| one.is_in_vain).count();
            let part = in_vain as f64 / woken.len().max(1) as f64;
            let is_often = in_vain as f64 * 1e9 >= RATE * wall as f64;
            if 2 * woken.len() < wake_ups.len() || part < IN_VAIN || !is_often {
                continue;
            }
            let in_vain_at = runs_in_vain(&woken);
            let (mut all, mut work, mut waiting) = (0, 0, Vec::new());
            for sample in seen.selection.samples().filter(|sample| threads.contains(&sample.thread)) {
                let (Some(stack), Some(time)) = (sample.stack, sample.time_ns) else { continue };
                let is_waiting = is_waiting(seen, place, stack);
                if is_waiting {
                    waiting.push((sample, part));
                }
                let before = in_vain_at.partition_point(|(thread, run)| (*thread, run.start) <= (sample.thread, time));
                let run = before.checked_sub(1).map(|index| &in_vain_at[index]);
                if run.is_some_and(|(thread, run)| *thread == sample.thread && run.contains(&time)) {
                    all += u128::from(sample.weight);
                    work += if is_waiting { 0 } else { u128::from(sample.weight) };
                }
            }
            let gain = seen.gain_of_parts(waiting.into_iter());
            if work as f64 > WORK * all as f64 || gain.share().value < LEAST {
                continue;
            }
            let name = seen.name(place);
            let title = match waker_of(&woken) {
                Some(waker) if waker != place => {
                    format!(
                        "`{}` wakes {} threads that wait in `{name}`; most find nothing",
                        seen.name(waker),
                        threads.len()
                    )
                }
                _ => format!("{} threads that wait in `{name}` are woken together; most find nothing", threads.len()),
            };
            let text = format!(
                "{} of their wake-ups end in less than 20 us with the next wait at the same place, {:.0} a second.",
                percent(100.0 * part),
                in_vain as f64 * 1e9 / wall as f64
            );
            let one = Found::of_program(title, Some(gain)).about(Some(place)).sure(Confidence::Strong);
            found.push(one.because(text, "show --view sched"));
        }
        found
    }
}

/// Whether a sample of a thread is of waiting, waking and looking.
fn is_waiting(seen: &Seen<'_, '_>, place: FunctionId, stack: stepscope_model::StackId) -> bool {
    let is_of_waits = matches!(
        seen.work[stack.index()],
        Work::Switch | Work::Lock | Work::Kernel | Work::Poll | Work::Receive | Work::Clock
    );
    is_of_waits || seen.functions().attributed(stack).is_none_or(|owner| owner == place)
}

/// Whether a wait ends with something that another thread has sent or written.
fn gets_something(work: Work) -> bool {
    matches!(work, Work::Receive | Work::ReadFile)
}

/// The runs after the wake-ups that are in vain, by thread and start.
fn runs_in_vain(woken: &[&WakeUp]) -> Vec<(ThreadId, Range<u64>)> {
    let in_vain = woken.iter().filter(|one| one.is_in_vain);
    let mut runs: Vec<(ThreadId, Range<u64>)> = in_vain.map(|one| (one.thread, one.run.clone())).collect();
    runs.sort_unstable_by_key(|(thread, run)| (*thread, run.start));
    runs
}

/// A wake-up of a thread that another one ends.
struct WakeUp {
    at_ns: u64,
    thread: ThreadId,
    /// From when it has a CPU until it waits for work again.
    run: Range<u64>,
    waker: ThreadId,
    waked_by: Option<FunctionId>,
    /// Whether the waker wakes all that wait, if its stack is known.
    is_of_all: Option<bool>,
    /// Whether its stack shows that it wakes one.
    is_of_one: bool,
    /// Whether the thread soon waits at the same place again.
    is_in_vain: bool,
}

/// The owned function that most of the wake-ups come from.
fn waker_of(woken: &[&WakeUp]) -> Option<FunctionId> {
    let mut by_function: BTreeMap<FunctionId, usize> = BTreeMap::new();
    for function in woken.iter().filter_map(|one| one.waked_by) {
        *by_function.entry(function).or_default() += 1;
    }
    by_function.into_iter().max_by_key(|(_, number)| *number).map(|(function, _)| function)
}

/// The wake-ups of threads by the owned function that they wait in.
fn wake_ups(seen: &Seen<'_, '_>) -> BTreeMap<FunctionId, Vec<WakeUp>> {
    let mut classes = Classes::new(seen.capture(), seen.functions());
    let through = |parts: &[&str]| seen.paths_through(|function| parts.iter().any(|part| function.name.contains(part)));
    let (of_all, of_one) = (through(&WAKES_ALL), through(&WAKES_ONE));
    let mut places: BTreeMap<FunctionId, Vec<WakeUp>> = BTreeMap::new();
    for (thread, _) in seen.selection.threads() {
        // A lock on the way and a CPU that is taken away are part of the run after a wake-up.
        let mut waits_for_work = |wait: &Wait| {
            let class = wait.stack.map(|stack| classes.of(stack));
            wait.state == WaitState::Blocked && !matches!(class, Some(WaitClass::Lock | WaitClass::PageFault))
        };
        let mut last: Option<(Wait, u64)> = None;
        let mut ended = None;
        for wait in seen.waits(thread) {
            if let (Some((_, ran)), Some(ended)) = (&mut last, ended) {
                *ran += wait.start_ns.saturating_sub(ended);
            }
            ended = Some(wait.end_ns);
            if !waits_for_work(&wait) {
                continue;
            }
            let place = |wait: &Wait| wait.stack.and_then(|stack| seen.functions().attributed(stack));
            if let Some((before, ran)) = last.replace((wait, 0))
                && let (Some(at), Some(waker)) = (place(&before), before.waker)
                && blocked_ns(&before) > 0
                && !before.is_aggregated()
                && !before.stack.is_some_and(|stack| gets_something(seen.work[stack.index()]))
            {
                places.entry(at).or_default().push(WakeUp {
                    at_ns: woken_at(&before),
                    thread,
                    run: before.end_ns..wait.start_ns,
                    waker,
                    is_of_all: before.waker_stack.map(|stack| of_all[stack.index()]),
                    is_of_one: before.waker_stack.is_some_and(|stack| of_one[stack.index()]),
                    waked_by: before.waker_stack.and_then(|stack| seen.functions().attributed(stack)),
                    is_in_vain: ran <= NOTHING_NS && place(&wait) == Some(at),
                });
            }
        }
    }
    places
}
