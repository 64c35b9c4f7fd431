//! Threads are started in every step.
//!
//! Evidence: threads that start within steps, at least one in two steps, and the owned function below which they are started.
//! Without steps: threads that start all the time, 20 a second or more, and live for less than a tenth of a second.
//! Look-alikes: a pool that grows while the program warms up; it starts no more threads later.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::seen::{Seen, Tenths, parts};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use stepscope_model::{NoteValue, StackId};

/// Least threads per step.
const LEAST: f64 = 0.5;

/// Least threads per second, and their longest mean life in ns, where no steps are known.
const LEAST_PER_S: f64 = 20.0;
const LONGEST_NS: f64 = 100_000_000.0;

/// Beginnings of functions that start, end or await threads.
const CALLS: [&str; 9] = [
    "pthread_create",
    "pthread_join",
    "std::thread::thread",
    "std::thread::_M_start_thread",
    "std::thread::join",
    "std::thread::spawn",
    "std::thread::Builder",
    "std::thread::JoinHandle",
    "std::async",
];

/// Functions of the C library at the root of a thread.
const ROOTS: [&str; 4] = ["clone3", "__clone3", "clone", "start_thread"];

pub(super) struct ThreadsEachStep;

impl Kind for ThreadsEachStep {
    fn name(&self) -> &'static str {
        "threads-each-step"
    }

    fn advice(&self) -> &'static str {
        "Keep the threads and give them the work of each step: a pool with a queue or a barrier."
    }

    fn confirm(&self) -> &'static str {
        "Count them: `strace -f -c -e trace=clone3,clone`."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["allocations-each-step", "lock-wait", "page-faults-each-step", "cpu-held-by-others"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some(started) = in_steps(seen).or_else(|| without_steps(seen)) else { return Vec::new() };
        let calls = below(seen, |name| CALLS.iter().any(|call| name.starts_with(call)));
        let starter = |stack: StackId| seen.functions().attributed(stack).filter(|_| calls[stack.index()]);
        let Some(&(owner, _)) = seen.by_function(starter).first() else { return Vec::new() };
        // What a thread costs before and after its work has no owned caller.
        let threads = below(seen, |name| ROOTS.contains(&name));
        let goes = |index: usize| {
            let stack = StackId::from_index(index);
            let of: Option<FunctionId> = seen.functions().attributed(stack);
            (calls[index] && of == Some(owner)) || (threads[index] && of.is_none())
        };
        let without = parts((0..calls.len()).map(goes));
        let share = seen.share(seen.sum(|stack| goes(stack.index())));
        let name = seen.name(owner);
        let title = match started.rate {
            Rate::PerStep(number) if number < 1.5 => format!("`{name}` starts a thread in every step"),
            Rate::PerStep(number) => format!("`{name}` starts {number:.0} threads in every step"),
            Rate::PerSecond(number) => {
                format!("`{name}` starts {} per second", NoteValue::plural(number.round() as usize, "thread"))
            }
        };
        let text = format!(
            "{} lived for {} each; starting and ending them takes {} of the CPU time.",
            NoteValue::plural(started.threads, "thread"),
            ns(started.life_ns / started.threads as f64),
            percent(share)
        );
        vec![Found::of(seen, owner, title, without).sure(Confidence::Strong).because(text, "show --view thread-names")]
    }
}

/// Threads that start all the time.
struct Started {
    threads: usize,
    /// Of all of them together.
    life_ns: f64,
    rate: Rate,
}

enum Rate {
    PerStep(f64),
    PerSecond(f64),
}

/// Threads that start in steps.
fn in_steps(seen: &Seen<'_, '_>) -> Option<Started> {
    let (loops, (count, _)) = (seen.loops.as_ref()?, seen.steps()?);
    let steps = loops.main();
    let place = |start: u64| steps.at(start).map(|step| step * 10 / count.max(1));
    let (threads, life_ns, is_steady) = started(seen, place);
    let rate = threads as f64 / count as f64;
    (rate >= LEAST && is_steady).then_some(Started { threads, life_ns, rate: Rate::PerStep(rate) })
}

/// Short-lived threads that start all the time from the first half of the recording on, where no steps are known.
fn without_steps(seen: &Seen<'_, '_>) -> Option<Started> {
    let window = seen.selection.window().filter(|_| seen.loops.is_none() && !seen.is_loading())?;
    let half = window.start + (window.end - window.start) / 2;
    let mut starts: Vec<u64> = seen.selection.threads().filter_map(|(_, thread)| thread.start_ns).collect();
    starts.sort_unstable();
    // The first threads are those of the program itself.
    let first = starts.get(starts.len() / 20).copied().filter(|first| *first < half)?;
    let length = (window.end - first).max(1);
    let place = |start: u64| Some((start.checked_sub(first)? * 10 / length) as usize);
    let (threads, life_ns, is_steady) = started(seen, place);
    let rate = threads as f64 * 1e9 / length as f64;
    let is_one = rate >= LEAST_PER_S && life_ns <= LONGEST_NS * threads as f64 && is_steady;
    is_one.then_some(Started { threads, life_ns, rate: Rate::PerSecond(rate) })
}

/// How many threads start and end, how long they live together, and whether they start all the time.
fn started(seen: &Seen<'_, '_>, place: impl Fn(u64) -> Option<usize>) -> (usize, f64, bool) {
    let (mut threads, mut life_ns, mut met) = (0, 0.0, Tenths::default());
    for (_, thread) in seen.selection.threads() {
        let Some((start, end)) = thread.start_ns.zip(thread.end_ns) else { continue };
        let Some(part) = place(start) else { continue };
        threads += 1;
        life_ns += end.saturating_sub(start) as f64;
        met.meet_part(part);
    }
    (threads, life_ns, met.are_most())
}

/// One flag per stack: whether a function with such a name, which is not owned, is on it.
fn below(seen: &Seen<'_, '_>, is_wanted: impl Fn(&str) -> bool) -> Vec<bool> {
    seen.paths_through(|function| !function.owned && is_wanted(&own_name(&function.name)))
}
