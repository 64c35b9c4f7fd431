//! Threads hand work over in small pieces: taking, waking and waiting cost more than the work.
//!
//! Evidence: locks, wake-ups and switches take much of the CPU time of two threads or more, which change between waiting and
//! running thousands of times a second, for a short time each. If one of them has more to do for each piece than the other, only the
//! other one waits; that counts if it is woken very often. Look-alikes: threads that fight for one lock around work of some
//! length; those run longer between their waits. Threads that meet at a barrier in each step have few waits a step.

use stepscope_model::{StackId, ThreadId, Wait, WaitState};

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::waits::blocked_ns;
use crate::query::work::Work;

/// Least share of CPU time.
const LEAST: f64 = 30.0;

/// The same of very small pieces.
const LEAST_OF_VERY_SMALL: f64 = 15.0;

/// Fewest waits a second of very small pieces, and the longest mean time that a thread runs between two of them.
const VERY_OFTEN: f64 = 10_000.0;
const VERY_SHORT_NS: f64 = 20_000.0;

/// Least part of a thread's waits that another one ends, if it alone waits.
const BY_OTHERS: f64 = 0.8;

/// Fewest waits a second of all such threads.
const RATE: f64 = 2_000.0;

/// The longest mean time that a thread runs between two waits.
const SHORT_NS: f64 = 100_000.0;

/// Fewest waits of a thread in each step.
const PER_STEP: f64 = 5.0;

/// Least part of the waits of all threads that a thread has which takes part.
const PART: f64 = 0.1;

/// How much larger pieces may gain, as a multiple of what handing over costs.
const COLD: f64 = 2.5;
const COLD_WHY: &str = "The gain may be larger than that: after each switch a thread finds caches and branch predictors cold, and waits for its CPU to wake.";

pub(super) struct SmallPieces;

impl Kind for SmallPieces {
    fn name(&self) -> &'static str {
        "work-in-small-pieces"
    }

    fn advice(&self) -> &'static str {
        "Hand over larger pieces: a range of items for each task, all of a step's messages at once."
    }

    fn confirm(&self) -> &'static str {
        "Make the pieces ten times as large: context switches per second drop, and the work takes less time."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["cpu-held-by-others", "lock-per-item"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some(wall) = seen.selection.wall_ns().filter(|_| !seen.is_loading()) else { return Vec::new() };
        let hands_over = |stack: StackId| matches!(seen.work[stack.index()], Work::Lock | Work::Switch);
        let amount = seen.sum(hands_over);
        if seen.share(amount) < LEAST_OF_VERY_SMALL || !seen.is_steady(hands_over) {
            return Vec::new();
        }
        let cpu = seen.selection.cpu_times();
        let mut threads = Vec::new();
        for (thread, _) in seen.selection.threads() {
            let blocked = seen.off_cpu.waits(thread).filter(|wait| wait.state == WaitState::Blocked);
            let number: u64 = blocked.filter(|wait| blocked_ns(wait) > 0).map(|wait| u64::from(wait.count)).sum();
            threads.push((number, cpu[thread.index()].unwrap_or(0), thread));
        }
        let all: u64 = threads.iter().map(|(number, ..)| number).sum();
        threads.retain(|(number, ..)| *number as f64 >= PART * all as f64 && *number > 0);
        let (number, running) = threads.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let (rate, run_ns) = (number as f64 * 1e9 / wall as f64, running as f64 / number.max(1) as f64);
        // Threads that meet a few times in each step have to, however short the step is.
        let per_step = |(steps, _): (usize, f64)| number as f64 / threads.len().max(1) as f64 / steps as f64;
        let is_of_steps = seen.steps().is_some_and(|steps| per_step(steps) < PER_STEP);
        let is_very_small = rate >= VERY_OFTEN && run_ns <= VERY_SHORT_NS;
        let least = if is_very_small { LEAST_OF_VERY_SMALL } else { LEAST };
        // Who is slower than the thread that it wakes for each piece never waits.
        let are_two = threads.len() >= 2 || (is_very_small && threads.iter().all(|(.., one)| others_wake(seen, *one)));
        if seen.share(amount) < least || !are_two || rate < RATE || run_ns > SHORT_NS || is_of_steps {
            return Vec::new();
        }
        let largest = seen.by_owner(|work| matches!(work, Work::Lock | Work::Switch)).into_iter().next();
        let Some((function, _)) = largest else { return Vec::new() };
        let title = format!("Threads hand work over in small pieces, most of it in `{}`", seen.name(function));
        let text = format!(
            "Locks, wake-ups and switches take {} of the CPU time{}. Threads wait {rate:.0} times a second, and run for {} in between.",
            percent(seen.share(amount)),
            seen.of_steps(),
            ns(run_ns)
        );
        let without = parts((0..seen.capture().stacks.len()).map(|index| hands_over(StackId::from_index(index))));
        let found = Found::of(seen, function, title, without).sure(Confidence::Fair).because(text, "show --view sched");
        vec![found.up_to(COLD, COLD_WHY, "show --view sched")]
    }
}

/// Whether other threads end nearly all of a thread's waits.
fn others_wake(seen: &Seen<'_, '_>, thread: ThreadId) -> bool {
    let waits = seen.off_cpu.waits(thread).filter(|wait| wait.state == WaitState::Blocked && !wait.is_aggregated());
    let by_other = |wait: &Wait| wait.waker.is_some_and(|waker| waker != thread);
    let (number, ended) =
        waits.fold((0, 0), |(number, ended), wait| (number + 1, ended + usize::from(by_other(&wait))));
    number > 0 && ended as f64 >= BY_OTHERS * number as f64
}
