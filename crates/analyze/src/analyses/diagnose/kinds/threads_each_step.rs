//! Threads are started in every step.
//!
//! Evidence: threads that start within steps, at least one in two steps, and the owned function below which they are started.
//! Look-alikes: a pool that grows while the program warms up; it starts no more threads later.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use stepscope_model::StackId;

/// Least threads per step.
const LEAST: f64 = 0.5;

/// Threads start in at least this number of ten equal parts of the steps.
const STEADY: usize = 8;

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
        let (Some(loops), Some((count, _))) = (&seen.loops, seen.steps()) else { return Vec::new() };
        let steps = loops.main();
        let (mut started, mut life_ns, mut met) = (0_usize, 0_u64, [false; 10]);
        for (_, thread) in seen.selection.threads() {
            let Some(step) = thread.start_ns.and_then(|start| steps.at(start)) else { continue };
            let Some((start, end)) = thread.start_ns.zip(thread.end_ns) else { continue };
            started += 1;
            life_ns += end.saturating_sub(start);
            met[step * 10 / count.max(1)] = true;
        }
        let per_step = started as f64 / count as f64;
        if per_step < LEAST || met.iter().filter(|met| **met).count() < STEADY {
            return Vec::new();
        }
        let calls = below(seen, |name| CALLS.iter().any(|call| name.starts_with(call)));
        let starter = |stack: StackId| seen.functions().nearest_owned(stack).filter(|_| calls[stack.index()]);
        let Some(&(owner, _)) = seen.by_function(starter).first() else { return Vec::new() };
        // What a thread costs before and after its work has no owned caller.
        let threads = below(seen, |name| ROOTS.contains(&name));
        let goes = |index: usize| {
            let stack = StackId::from_index(index);
            let of: Option<FunctionId> = seen.functions().nearest_owned(stack);
            (calls[index] && of == Some(owner)) || (threads[index] && of.is_none())
        };
        let without = parts((0..calls.len()).map(goes));
        let share = seen.share(seen.sum(|stack| goes(stack.index())));
        let title = match per_step.round() as usize {
            0 | 1 => format!("`{}` starts a thread in every step", seen.name(owner)),
            number => format!("`{}` starts {number} threads in every step", seen.name(owner)),
        };
        let text = format!(
            "{started} threads lived for {} each; starting and ending them takes {} of the CPU time.",
            ns(life_ns as f64 / started as f64),
            percent(share)
        );
        vec![Found::of(seen, owner, title, without).sure(Confidence::Strong).because(text, "show --view thread-names")]
    }
}

/// One flag per stack: whether a function with such a name, which is not owned, is on it.
fn below(seen: &Seen<'_, '_>, is_wanted: impl Fn(&str) -> bool) -> Vec<bool> {
    seen.paths_through(|function| !function.owned && is_wanted(&own_name(&function.name)))
}
