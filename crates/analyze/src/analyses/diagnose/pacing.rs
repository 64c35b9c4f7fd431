//! [`of`]: the sleeps that keep a loop's pace.
//!
//! A loop that has to keep a pace sleeps until its next step. When its work gets shorter, this sleep gets longer, and the step stays as
//! long as it was. So the sleep is no part of what gains are a share of. It is the place where a thread of the loop
//! sleeps once a step. Look-alikes: a sleep in the middle of marked steps, and a loop that sleeps again and again until
//! [others are done](sleep_for_workers).

use std::collections::BTreeMap;

use stepscope_model::{Note, NoteValue, ThreadId, Wait, note};

use super::kinds::sleep_for_workers;
use super::seen::{Pacing, Seen, Tenths};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::step_loop;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;

/// How often a loop sleeps there, per step.
const PER_STEP: std::ops::RangeInclusive<f64> = 0.5..=1.5;

/// Without steps: fewest sleeps of the busiest thread.
const FEWEST: u64 = 20;

/// Least part of the step's running time before a sleep in its middle, and after it.
const WORK: f64 = 0.1;

/// Least share of the time in percent that a note says.
const LEAST_TOLD: f64 = 5.0;

#[derive(Default)]
struct Sleeps {
    count: u64,
    ns: u64,
    within: u64,
    met: Tenths,
    /// The thread and the end of each sleep within the step function that the recorder found.
    in_step_function: Vec<(ThreadId, u64)>,
}

/// The sleeps of the loop's threads, or of the busiest thread where no steps are known.
pub(super) fn of(seen: &Seen<'_, '_>) -> Pacing {
    if seen.is_loading() || !seen.selection.has_switches() {
        return Pacing::default();
    }
    let steps = seen.steps().map(|(steps, _)| steps as f64);
    let threads = match steps {
        Some(_) => seen.loop_threads(),
        None => busiest(seen).into_iter().collect(),
    };
    let in_step_function = in_step_function(seen);
    let longest = sleeps(seen, &threads, &in_step_function).into_iter().filter(|(_, sleeps)| match steps {
        Some(steps) => {
            // A function that the recorder found may be called anywhere in the loop, so work after the sleep tells only within it.
            let is_end = match seen.capture().info.found_step.as_deref() {
                Some(step) if step_loop::address_in(step).is_none() => {
                    !goes_on(seen, &sleeps.in_step_function, &in_step_function)
                }
                _ => 2 * sleeps.within < sleeps.count,
            };
            is_end && PER_STEP.contains(&(sleeps.count as f64 / steps))
        }
        None => sleeps.count >= FEWEST && sleeps.met.are_most(),
    });
    let longest = longest.max_by_key(|(function, sleeps)| (sleeps.ns, *function));
    let awaits = |function| sleep_for_workers::found(seen).iter().any(|found| found.function == Some(function));
    let longest = longest.filter(|(function, _)| !awaits(*function));
    longest.map_or(Pacing::default(), |(function, sleeps)| Pacing {
        function: Some(function),
        ns: sleeps.ns as f64 / steps.unwrap_or(1.0),
    })
}

/// Says what gains are a share of, if the loop sleeps for long.
pub(super) fn note(seen: &Seen<'_, '_>) -> Option<Note> {
    let name = seen.pacing.function.map(|function| seen.name(function))?;
    let whole = seen.whole_ns();
    let share = 100.0 * seen.pacing.ns / (whole + seen.pacing.ns);
    let note = match seen.loops {
        Some(_) => note!(
            Fact,
            "`{}` sleeps for {} of each step to keep the pace. Gains are shares of the other {}.",
            name,
            NoteValue::ns(seen.pacing.ns),
            NoteValue::ns(whole)
        ),
        None => note!(
            Fact,
            "`{}` sleeps for {} of the time to keep the pace. Gains are shares of the other {}.",
            name,
            NoteValue::ns(seen.pacing.ns),
            NoteValue::ns(whole)
        ),
    };
    (share >= LEAST_TOLD).then(|| note.about(seen.capture().info.name()))
}

/// The thread with most CPU time.
fn busiest(seen: &Seen<'_, '_>) -> Option<ThreadId> {
    let cpu = seen.selection.cpu_times();
    let busiest = (0..cpu.len()).filter(|&index| cpu[index].is_some()).max_by_key(|&index| cpu[index]);
    busiest.map(ThreadId::from_index)
}

/// The sleeps of threads within steps, by the owned function that sleeps.
fn sleeps(seen: &Seen<'_, '_>, threads: &[ThreadId], in_step_function: &[bool]) -> BTreeMap<FunctionId, Sleeps> {
    let (mut classes, span) = (Classes::new(seen.capture(), seen.functions()), seen.span());
    let mut by_function: BTreeMap<FunctionId, Sleeps> = BTreeMap::new();
    for thread in threads {
        for wait in seen.waits(*thread) {
            let Some(stack) = wait.stack.filter(|stack| classes.of(*stack) == WaitClass::Sleep) else { continue };
            let Some(function) = seen.functions().attributed(stack) else { continue };
            let blocked = wait.start_ns..wait.start_ns + blocked_ns(&wait);
            let ns = match &seen.loops {
                Some(loops) => loops.main().time_within(&blocked),
                None => blocked.end.min(span.end).saturating_sub(blocked.start.max(span.start)),
            };
            if ns > 0 {
                let sleeps = by_function.entry(function).or_default();
                sleeps.count += u64::from(wait.count);
                sleeps.ns += ns;
                sleeps.within += if is_within_step(seen, *thread, &wait) { u64::from(wait.count) } else { 0 };
                sleeps.met.meet(wait.start_ns, &span);
                if in_step_function.get(stack.index()) == Some(&true) {
                    sleeps.in_step_function.push((*thread, blocked.end));
                }
            }
        }
    }
    by_function.values_mut().for_each(|sleeps| sleeps.in_step_function.sort_unstable());
    by_function
}

/// One flag per stack: whether the step function that the recorder found is on it. Empty if it found none.
fn in_step_function(seen: &Seen<'_, '_>) -> Vec<bool> {
    let Some(step) = seen.capture().info.found_step.as_deref().map(own_name) else { return Vec::new() };
    seen.paths_through(|function| own_name(&function.name) == step)
}

/// Whether the step function that the recorder found goes on with its work after these sleeps in it.
fn goes_on(seen: &Seen<'_, '_>, sleeps: &[(ThreadId, u64)], in_step_function: &[bool]) -> bool {
    let Some(steps) = seen.loops.as_ref().map(|loops| loops.main()).filter(|_| !sleeps.is_empty()) else {
        return false;
    };
    let (mut all, mut after) = (0, 0);
    for sample in seen.selection.samples() {
        let is_in_it = sample.stack.is_some_and(|stack| in_step_function.get(stack.index()) == Some(&true));
        let Some(time) = sample.time_ns.filter(|_| is_in_it) else { continue };
        let Some(step) = steps.at(time) else { continue };
        let start = steps.range(step).start;
        all += sample.weight;
        // They are in the order of threads, and then of their time.
        let before = sleeps.partition_point(|one| *one <= (sample.thread, time));
        let last = sleeps[..before].last().filter(|(thread, end)| *thread == sample.thread && *end > start);
        after += if last.is_some() { sample.weight } else { 0 };
    }
    after as f64 >= WORK * all as f64 && after > 0
}

/// Whether a thread waits in the middle of a step: it works before and after.
pub(super) fn is_within_step(seen: &Seen<'_, '_>, thread: ThreadId, wait: &Wait) -> bool {
    let Some(steps) = seen.loops.as_ref().map(|loops| loops.main()) else { return false };
    let Some(range) = steps.at(wait.start_ns).map(|step| steps.range(step)) else { return false };
    let running = |range| seen.off_cpu.spent(thread, range).map_or(0, |spent| spent.running) as f64;
    let (before, after) = (running(range.start..wait.start_ns), running(wait.end_ns..range.end));
    wait.end_ns < range.end && before.min(after) >= WORK * (before + after)
}
