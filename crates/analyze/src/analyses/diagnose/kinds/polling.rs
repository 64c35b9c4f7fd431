//! A thread wakes again and again to look whether there is something to do.
//!
//! Evidence: a thread's waits end at a high rate, no other thread ends them, and it runs only briefly between them. Look-alikes:
//! the pacing of the simulation loop, which is left out; a periodic task, which does work each time it wakes; a watchdog,
//! which wakes rarely.

use std::collections::BTreeMap;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use stepscope_model::{Sample, ThreadId, Wait, WaitState};
use stepscope_stats::Distribution;

/// Least wake-ups of a thread per second.
const RATE: f64 = 50.0;

/// Least part of the waits that no thread ends.
const TIMED_OUT: f64 = 0.8;

/// A look takes no longer; what runs longer has found work. A system call that fails and the next wait take some 5 us.
const LONGEST_LOOK_NS: u64 = 20_000;

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
        let mut groups: BTreeMap<FunctionId, Vec<(ThreadId, usize)>> = BTreeMap::new();
        for (thread, _) in seen.selection.threads().filter(|(thread, _)| !paced.contains(thread)) {
            let is_blocked = |wait: &Wait| wait.state == WaitState::Blocked && blocked_ns(wait) > 0;
            let blocked: Vec<_> = seen.waits(thread).filter(is_blocked).collect();
            let mut is_timed = |wait: &Wait| match wait.stack.map(|stack| classes.of(stack)) {
                Some(WaitClass::Sleep) => true,
                Some(WaitClass::Network | WaitClass::Condition) => wait.waker.is_none(),
                _ => false,
            };
            let timed: Vec<Wait> = blocked.iter().copied().filter(|wait| is_timed(wait)).collect();
            let first = timed.iter().find_map(|wait| seen.functions().attributed(wait.stack?));
            let number = timed.len();
            let often = number as f64 >= RATE * seconds && number as f64 >= TIMED_OUT * blocked.len() as f64;
            if let Some(function) = first.filter(|_| often) {
                groups.entry(function).or_default().push((thread, number));
            }
        }
        let mut found = Vec::new();
        groups.retain(|_, threads| look_ns(seen, threads) <= LONGEST_LOOK_NS);
        for (function, threads) in groups {
            let of_group = |sample: &&Sample| threads.iter().any(|(thread, _)| *thread == sample.thread);
            let gain = seen.gain_of_samples(seen.selection.samples().filter(of_group));
            let rate = threads.iter().map(|(_, number)| number).sum::<usize>() as f64 / seconds;
            let title = format!("`{}` wakes {rate:.0} times a second to look for work", seen.name(function));
            found.push(Found::of_program(title, Some(gain)).about(Some(function)).sure(Confidence::Fair).because(
                format!("Its waits end by time-out; its threads take {} of all CPU time.", percent(gain.share().value)),
                "show --view wall",
            ));
        }
        found
    }
}

/// How long the threads usually run between two waits.
fn look_ns(seen: &Seen<'_, '_>, threads: &[(ThreadId, usize)]) -> u64 {
    let mut runs = Vec::new();
    for (thread, _) in threads {
        let waits: Vec<Wait> = seen.off_cpu.waits(*thread).collect();
        runs.extend(waits.windows(2).map(|pair| pair[1].start_ns.saturating_sub(pair[0].end_ns)));
    }
    runs.into_iter().filter(|run| *run > 0).collect::<Distribution>().median().unwrap_or(0)
}
