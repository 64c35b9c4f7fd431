//! [`found`]: a thread that awaits others by sleeping, looking and sleeping again.
//!
//! Evidence, in a recording without steps that the program marks: a thread sleeps several times in a row at one place and runs only briefly in between, while other threads work; and the row
//! ends with the sleep in which the last of them is done. The time from there to the end of that sleep is the gain: nobody works. Look-alikes: a loop that
//! keeps its pace by short sleeps, whose rows end at points in time.

use std::cell::LazyCell;
use std::ops::Range;

use super::polling::LONGEST_LOOK_NS;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::{Seen, Tenths};
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::{blocked_ns, runnable_ns};
use stepscope_model::ThreadId;

/// Fewest rows of a thread.
const FEWEST: usize = 20;

/// Least part of the rows that have several sleeps, and least part of these that end when the others are done.
const SEVERAL: f64 = 0.05;
const ARE_DONE: f64 = 0.8;

/// Least gain, in percent of the time in which the thread runs or is blocked.
const LEAST: f64 = 5.0;

/// Most other threads that are looked at: those with most CPU time.
const MOST_OTHERS: usize = 64;

/// Sleeps of a thread without work between them.
struct Row {
    function: FunctionId,
    /// Until it runs again.
    when: Range<u64>,
    last: Range<u64>,
    sleeps: usize,
}

/// Threads that await others so.
pub(in crate::analyses::diagnose) fn found(seen: &Seen<'_, '_>) -> Vec<Found> {
    let has_marked_steps = seen.loops.is_some() && seen.capture().info.found_step.is_none();
    if has_marked_steps || seen.is_loading() || !seen.selection.has_switches() {
        return Vec::new();
    }
    let cpu = seen.selection.cpu_times();
    let mut threads: Vec<ThreadId> = seen.selection.threads().map(|(thread, _)| thread).collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(cpu[thread.index()]));
    threads.truncate(MOST_OTHERS);
    // Copies of waits, which are many: only if a thread sleeps so.
    let blocked = LazyCell::new(|| threads.iter().map(|&thread| Blocked::of(seen, thread)).collect::<Vec<_>>());
    let mut classes = Classes::new(seen.capture(), seen.functions());
    let of_thread = |&thread: &ThreadId| {
        let rows = rows_of(seen, &mut classes, thread);
        if rows.iter().filter(|row| row.sleeps > 1).count() < FEWEST {
            return None;
        }
        let others = blocked.iter().filter(|other| other.thread != thread);
        awaits(seen, thread, &rows, &others.collect::<Vec<_>>())
    };
    threads.iter().filter_map(of_thread).collect()
}

/// When a thread is blocked.
struct Blocked {
    thread: ThreadId,
    when: Vec<Range<u64>>,
}

impl Blocked {
    fn of(seen: &Seen<'_, '_>, thread: ThreadId) -> Self {
        let single = seen.waits(thread).filter(|wait| wait.count == 1);
        let when = single.map(|wait| wait.start_ns..wait.start_ns.saturating_add(blocked_ns(&wait))).collect();
        Self { thread, when }
    }
}

fn rows_of(seen: &Seen<'_, '_>, classes: &mut Classes<'_>, thread: ThreadId) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for wait in seen.waits(thread).filter(|wait| wait.count == 1) {
        let Some(stack) = wait.stack.filter(|stack| classes.of(*stack) == WaitClass::Sleep) else { continue };
        let Some(function) = seen.functions().attributed(stack) else { continue };
        let last = wait.start_ns..wait.start_ns.saturating_add(blocked_ns(&wait));
        let when = last.start..last.end.saturating_add(runnable_ns(&wait));
        let only_looks = |row: &Row| {
            let between = seen.off_cpu.spent(thread, row.when.end..when.start);
            row.function == function && between.is_some_and(|spent| spent.running <= LONGEST_LOOK_NS)
        };
        match rows.last_mut().filter(|row| only_looks(row)) {
            Some(row) => {
                row.last = last;
                row.when.end = when.end;
                row.sleeps += 1;
            }
            None => rows.push(Row { function, when, last, sleeps: 1 }),
        }
    }
    rows
}

/// What the thread's rows show, if they end when other threads are done.
fn awaits(seen: &Seen<'_, '_>, thread: ThreadId, rows: &[Row], others: &[&Blocked]) -> Option<Found> {
    let function = rows.iter().find(|row| row.sleeps > 1)?.function;
    let rows: Vec<&Row> = rows.iter().filter(|row| row.function == function).collect();
    if rows.len() < FEWEST {
        return None;
    }
    let (mut several, mut done, mut idle_ns, mut met) = (0, 0, 0, Tenths::default());
    for row in &rows {
        let Some(done_at) = done_at(seen, row, others) else { continue };
        let is_in_last = done_at >= row.last.start;
        several += usize::from(row.sleeps > 1);
        done += usize::from(row.sleeps > 1 && is_in_last);
        if is_in_last {
            idle_ns += row.last.end.saturating_sub(done_at);
            met.meet(row.when.end, &seen.span());
        }
    }
    let spent = seen.off_cpu.spent(thread, seen.span())?;
    let able = (spent.running + spent.blocked) as f64;
    let is_one =
        several >= FEWEST && several as f64 >= SEVERAL * rows.len() as f64 && done as f64 >= ARE_DONE * several as f64;
    if !is_one || !met.are_most() || 100.0 * (idle_ns as f64) < LEAST * able {
        return None;
    }
    let sleeps: usize = rows.iter().map(|row| row.sleeps).sum();
    let title = format!("`{}` sleeps until other threads are done, and looks after each sleep", seen.name(function));
    let text = format!(
        "It sleeps {sleeps} times, {} times in a row without work in between. In {} of these rows, the other threads are done in the last sleep; from there \
         on nobody works, for {} each time.",
        several,
        percent(100.0 * done as f64 / several.max(1) as f64),
        ns(idle_ns as f64 / rows.len() as f64)
    );
    let gain = match seen.steps() {
        Some((_, mean)) => {
            let span = seen.span();
            Gain::of_waiting(mean * idle_ns as f64 / span.end.saturating_sub(span.start).max(1) as f64, mean)
        }
        None => Gain::of_phase_waiting(idle_ns as f64, able),
    };
    let found = Found::of_program(title, Some(gain)).about(Some(function));
    Some(found.sure(Confidence::Fair).because(text, "show --view wall"))
}

/// When the last of the other threads that run during a row is done: all of them are blocked at its end. None if none runs.
fn done_at(seen: &Seen<'_, '_>, row: &Row, others: &[&Blocked]) -> Option<u64> {
    let mut last = None;
    for Blocked { thread, when: blocked } in others {
        if seen.off_cpu.spent(*thread, row.when.clone()).is_none_or(|spent| spent.running == 0) {
            continue;
        }
        let place = blocked.partition_point(|one| one.start < row.when.end).checked_sub(1)?;
        let one = blocked.get(place).filter(|one| one.end >= row.when.end)?;
        last = last.max(Some(one.start));
    }
    last
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use crate::analyses::diagnose::tests::found;
    use crate::drawn::Drawing;
    use stepscope_model::Event;

    const ROUNDS: u64 = 60;
    const ROUND_NS: u64 = 6_000_000;

    /// In each round, the loop works for 1 ms, then sleeps twice for 2 ms; a worker works after it for this long.
    fn rounds(works_ns: impl Fn(u64) -> u64) -> Vec<String> {
        let whole = ROUNDS * ROUND_NS;
        let mut text = String::new();
        for round in 0..ROUNDS {
            let _ = writeln!(text, "@{} main;sim::Loop;sim::Move 1000000", round * ROUND_NS + 500_000);
            let _ = writeln!(text, "@{} worker;sim::Work;sim::Carry {}", round * ROUND_NS + 1_500_000, works_ns(round));
        }
        let mut drawing = Drawing::new().window(0..whole).process(1, "sim").lived("main", 0..whole, whole);
        drawing = drawing.lived("worker", 0..whole, whole).folded(Event::sampled("cpu-clock", "ns"), &text);
        for round in 0..ROUNDS {
            let start = round * ROUND_NS + 1_000_000;
            for at in [start, start + 2_005_000] {
                drawing = drawing.blocked(
                    "main",
                    at..at + 2_000_000,
                    "sim::Await;clock_nanosleep;__x64_sys_clock_nanosleep [kernel]",
                );
            }
            let done = start + works_ns(round);
            drawing = drawing.blocked(
                "worker",
                done..start + ROUND_NS,
                "sim::Work;pthread_cond_wait;__x64_sys_futex [kernel]",
            );
        }
        found(&drawing.capture).into_iter().filter(|row| row.starts_with("sleep")).collect()
    }

    #[test]
    fn rows_of_sleeps_that_end_when_the_worker_is_done_wait_for_it() {
        // From 3.5 ms on nobody works, until the sleep ends at 4.005 ms; the loop can use all but 1 ms of the round.
        let rows = rounds(|_| 3_500_000);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0].starts_with("sleep-within-step | sim::Await | 8."), "{rows:?}");
    }

    #[test]
    fn rows_of_sleeps_that_go_on_when_the_worker_is_done_keep_a_pace() {
        assert_eq!(rounds(|round| 300_000 + 10_000 * (round % 7)), Vec::<String>::new());
    }
}
