//! A thread for each client: many threads that each do little and wake often.
//!
//! Evidence: threads that run the same owned function, many more than there are CPUs, each with little CPU time, together
//! with many switches. Look-alikes: a pool of fixed size that is mostly idle, whose threads hardly ever wake.

use std::collections::BTreeMap;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::work::Work;
use stepscope_model::{FrameKind, Sample, StackId, ThreadId};

/// Fewest threads.
const FEWEST: usize = 16;

/// Most CPU time of one, as a part of the recorded time.
const LITTLE: f64 = 0.02;

/// Least gain in percent of all CPU time: a pool that is larger than the machine costs little.
const LEAST: f64 = 10.0;

/// Least switches of each thread per second.
const WAKES: f64 = 5.0;

/// The kernel's functions that wake a thread.
const WAKES_ONE: [&str; 6] = [
    "try_to_wake_up",
    "wake_up_q",
    "sock_def_readable",
    "__wake_up_common",
    "__wake_up_common_lock",
    "__wake_up_sync_key",
];

pub(super) struct ManyThreads;

impl Kind for ManyThreads {
    fn name(&self) -> &'static str {
        "thread-per-client"
    }

    fn advice(&self) -> &'static str {
        "Serve all clients from one event loop (`epoll`), or from as many threads as there are CPUs."
    }

    fn confirm(&self) -> &'static str {
        "Double the clients: threads and switches double."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["cpu-held-by-others"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some(wall) = seen.selection.wall_ns().filter(|_| !seen.is_loading() && seen.selection.has_switches())
        else {
            return Vec::new();
        };
        let cores = seen.capture().info.machine.as_ref().map_or(1, |machine| machine.cores as usize);
        let cpu = seen.selection.cpu_times();
        let mut groups: BTreeMap<FunctionId, Vec<(ThreadId, usize)>> = BTreeMap::new();
        for (thread, _) in seen.selection.threads() {
            let switches = seen.off_cpu.waits(thread).map(|wait| wait.count as usize).sum();
            let outermost = common_function(seen, thread);
            let little = cpu[thread.index()].is_some_and(|cpu| cpu as f64 <= LITTLE * wall as f64);
            if let Some(function) = outermost.filter(|_| little) {
                groups.entry(function).or_default().push((thread, switches));
            }
        }
        let seconds = wall as f64 / 1e9;
        let wakes = seen.paths_through(|function| {
            function.kind == FrameKind::Kernel && WAKES_ONE.contains(&function.name.as_ref())
        });
        let mut found = Vec::new();
        for (function, threads) in groups {
            let switches: usize = threads.iter().map(|(_, switches)| switches).sum();
            let each = switches as f64 / threads.len() as f64 / seconds;
            if threads.len() < FEWEST.max(4 * cores) || each < WAKES {
                continue;
            }
            let of_group = |thread: ThreadId| threads.iter().any(|(one, _)| *one == thread);
            let waits = |stack: StackId| {
                matches!(
                    seen.work[stack.index()],
                    Work::Switch | Work::Poll | Work::Kernel | Work::Receive | Work::Lock | Work::Clock
                )
            };
            let goes = |sample: &Sample| sample.stack.filter(|stack| of_group(sample.thread) && waits(*stack));
            let mut without = vec![0.0_f32; seen.capture().stacks.len()];
            for stack in seen.selection.samples().filter_map(goes) {
                without[stack.index()] = 1.0;
            }
            // Who wakes them pays for it, too.
            let of_wakers = part_of_wake_ups(seen, &of_group);
            let part = |sample: &Sample| match goes(sample) {
                Some(_) => 1.0,
                None if sample.stack.is_some_and(|stack| wakes[stack.index()]) => of_wakers,
                None => 0.0,
            };
            let parts = seen.selection.samples().map(|sample| (sample, part(sample))).filter(|(_, part)| *part > 0.0);
            let gain = seen.gain_of_parts(parts);
            if gain.share().value < LEAST {
                continue;
            }
            let title =
                format!("{} threads run `{}`; each does little and wakes often", threads.len(), seen.name(function));
            let mut one = Found::of_program(title, Some(gain)).about(Some(function)).sure(Confidence::Strong).because(
                format!(
                    "Each takes less than {} of a CPU and is switched {each:.0} times a second; waking and waiting take {} of all CPU time.",
                    percent(100.0 * LITTLE),
                    percent(gain.share().value)
                ),
                "show --view sched",
            );
            one.without = without;
            found.push(one);
        }
        found
    }
}

/// The part of the wake-ups by recorded threads that are of these threads.
fn part_of_wake_ups(seen: &Seen<'_, '_>, of_group: &impl Fn(ThreadId) -> bool) -> f64 {
    let (mut all, mut own) = (0_u64, 0_u64);
    for (thread, _) in seen.selection.threads() {
        let woken = seen.off_cpu.waits(thread).filter(|wait| wait.waker.is_some()).map(|wait| u64::from(wait.count));
        let woken: u64 = woken.sum();
        all += woken;
        own += if of_group(thread) { woken } else { 0 };
    }
    own as f64 / all.max(1) as f64
}

/// The deepest owned function that is on the stacks of all waits of a thread.
fn common_function(seen: &Seen<'_, '_>, thread: ThreadId) -> Option<FunctionId> {
    let mut common: Option<Vec<FunctionId>> = None;
    let mut stacks: Vec<StackId> = seen.waits(thread).filter_map(|wait| wait.stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    for stack in stacks {
        let ids = seen.capture().nodes_of(Some(stack)).map(|node| seen.functions().of_node(seen.capture(), node));
        // From the root to the leaf.
        let mut owned: Vec<FunctionId> = ids.filter(|id| seen.functions().is_owner(*id)).collect();
        owned.reverse();
        if owned.is_empty() {
            continue;
        }
        common = Some(match common {
            None => owned,
            Some(common) => common.into_iter().zip(owned).take_while(|(a, b)| a == b).map(|(id, _)| id).collect(),
        });
    }
    common?.pop()
}
