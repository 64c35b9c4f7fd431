//! The critical path of steps: what their duration consists of, on whichever thread.
//!
//! A profile shows the cost of threads, but not the waits of a *step*. A worker may use a CPU for 8 ms per step while the
//! loop waits for another worker; then a faster first worker gains nothing. Wake-ups show the difference: a blocked thread is
//! woken by the thread it waited for.
//!
//! # The walk
//! For each step, back from its end on the thread that ends it:
//!
//! - *running*: the path is on the thread;
//! - *runnable* (preempted, or woken and waiting for a CPU): the path is this delay, on the same thread;
//! - *blocked*, and woken by a thread: the path continues on the waker, at the moment of the wake-up;
//! - *blocked*, and not woken by a thread (a timer, a device, a wake-up that was not recorded): the wait is on the
//!   path, by its [class](crate::query::wait_class);
//! - if the thread was created within the step, the path continues on the step's own thread, which is assumed to have
//!   created it.
//!
//! Each part ends where the next one starts, so the parts of a step add up exactly to its duration. (The idea is from Yang
//! and Miller, *Critical Path Analysis for the Execution of Parallel and Distributed Programs*, 1988; wake-ups take the
//! place of messages.)
//!
//! # Gain
//! The time of a function on the path is an upper bound on the time saved per step if the function were free: its
//! `gain_bound`, from running time in the function and its callees and from waits with the function on the stack. When
//! the path waits for a CPU, the [thread that holds it](CpuHolders) delays the step as if the path were on that thread,
//! so this time counts too (`held_up`). The bound is no forecast: when the path gets shorter, another one may become the
//! longest. Work that is off the path and holds no CPU that the path waits for has a bound of zero.
//!
//! Running time on the path is exact for threads. Functions get it from the samples on the path.
//!
//! # Barriers
//! Waits of two or more threads that one thread ends at about the same time ([`TOGETHER_NS`] from one to the next,
//! within a step) are a *barrier*; the thread that ends them arrived last. The wait of another thread is its *slack*: how
//! much longer its earlier work could take without delaying a step. The shortest wait is how far the last thread is
//! *behind*: to be faster by more than that gains nothing more there. A thread that hands out work to idle threads is a
//! barrier too: they waited for it.

mod barriers;
mod slack;
mod tables;
mod weights;

use stepscope_model::{Dimension, Note, Table, note};

pub(crate) use weights::PathWeights;

pub(crate) use self::barriers::Imbalance;

use self::barriers::Sites;
use self::slack::Slack;
use crate::analyses::step_times::no_steps;
use crate::analysis::{Analysis, ReportSection, View};
#[cfg(doc)]
use crate::query::cpu_holders::CpuHolders;
use crate::query::off_cpu::OffCpu;
use crate::query::select::Selection;
use crate::query::step_paths::Paths;
use crate::query::steps::{Loops, Steps};

/// Wake-ups by one thread that follow each other within this time end waits at one barrier.
pub const TOGETHER_NS: u64 = 100_000;

/// The tables of the view: what steps consist of, by part, thread and function; barriers and slack.
pub fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let (loops, paths) = match (Loops::of(selection), Paths::of(selection)) {
        (Some(loops), Some(paths)) => (loops, paths),
        (loops, _) => {
            let mut table = tables::no_functions(selection);
            table.note(if loops.is_none() { no_steps(selection) } else { no_wake_ups(selection) });
            return vec![table];
        }
    };
    let (capture, steps) = (selection.capture(), loops.main());
    let mut sites = Sites::default();
    let mut slack = Slack::default();
    let mut arrived_last = vec![0_u64; capture.threads.len()];
    barriers::each(selection, steps, &paths, |barrier| {
        sites.add(&barrier);
        slack.add(&barrier);
        arrived_last[barrier.last.index()] += 1;
    });
    let held = paths.held_by_thread(steps.after_first());
    let tables = [
        tables::parts(selection, &loops, &paths, &held),
        tables::threads(selection, steps, &paths, &held, &arrived_last),
        tables::functions(selection, steps, &paths),
        sites.table(selection, steps),
    ];
    tables.into_iter().chain(slack.table(selection)).collect()
}

/// The barriers of steps where the work is dealt out unevenly; none if wake-ups were not recorded.
pub(crate) fn imbalances(selection: &Selection<'_>, steps: &Steps, off_cpu: &OffCpu<'_>) -> Vec<Imbalance> {
    Paths::of(selection).map(|paths| barriers::imbalances(selection, steps, &paths, off_cpu)).unwrap_or_default()
}

fn no_wake_ups(selection: &Selection<'_>) -> Note {
    let missing = if selection.has_switches() { "Wake-ups" } else { "Context switches" };
    note!(
        Loss,
        "{} were not recorded, so the critical path is unknown. Record with `--dimensions cpu,offcpu,sched`; \
         `stepscope doctor` names the rights it needs.",
        missing
    )
}

/// What steps wait for.
pub const ANALYSIS: Analysis = Analysis {
    title: "Critical path",
    views: &[View {
        name: "critical-path",
        question: "Which work, on any thread, does each step wait for, and how much could be saved?",
        tables: |selection, _| tables(selection),
    }],
    needs: &[Dimension::Steps, Dimension::Sched],
    report: |selection| ReportSection::of_rows("Critical path", tables(selection)).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use stepscope_model::{Capture, Event};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};
    use crate::query::step_paths::{Part, State};

    const BARRIER: &str = "gz::Finish;pthread_cond_wait";

    fn cpu_clock() -> Event {
        Event::sampled("cpu-clock", "ns")
    }

    /// A wait that `waker` ended `runnable_ns` before its end.
    fn woken(drawing: Drawing, thread: &str, when: Range<u64>, runnable_ns: u64, waker: &str, stack: &str) -> Drawing {
        let mut drawing = drawing.blocked_then_runnable(thread, when, runnable_ns, stack);
        let waker = drawing.thread(waker);
        drawing.capture.waits.change_last(|wait| wait.waker = Some(waker));
        drawing
    }

    /// The path of a step as text, from its start to its end.
    fn path(capture: &Capture, position: usize) -> Vec<String> {
        let part = |part: &Part| {
            let state = match part.state {
                State::Running => "runs",
                State::Runnable => "waits for a CPU",
                State::Blocked(_) => "waits",
            };
            let thread = &capture.threads[part.thread.index()].name;
            format!("{}..{} {thread} {state}", part.range.start, part.range.end)
        };
        drawn::selected(capture, &[], |selection| {
            let parts: Vec<Part> = Paths::of(selection).unwrap().of_step(position).collect();
            parts.iter().rev().map(part).collect()
        })
    }

    fn all(capture: &Capture) -> Vec<Table> {
        drawn::selected(capture, &["gz::"], tables)
    }

    fn two_workers() -> Drawing {
        Drawing::new()
            .window(0..1_000)
            .process(1, "sim")
            .lived("main", 0..1_000, None)
            .lived("light", 0..1_000, None)
            .lived("heavy", 0..1_000, None)
    }

    /// Three steps of 100. Each: main starts both workers at 10 and waits for both; light is done at 30, heavy at 80 and
    /// wakes main and light, main gets a CPU at 85.
    fn overloaded() -> Capture {
        let mut drawing = two_workers().steps("main", 0, 100, 3, 1);
        let mut text = String::new();
        for start in [0, 100, 200] {
            let at = |from: u64, to: u64| start + from..start + to;
            drawing = woken(drawing, "main", at(12, 85), 5, "heavy", BARRIER);
            let idle = if start == 0 { 0..10 } else { start - 20..start + 10 };
            drawing = woken(drawing, "heavy", idle.clone(), 0, "main", "gz::Start;pthread_cond_wait");
            let idle = if start == 0 { 0..10 } else { start - 19..start + 10 };
            drawing = woken(drawing, "light", idle, 0, "main", "gz::Start;pthread_cond_wait");
            drawing = woken(drawing, "light", at(30, 81), 1, "heavy", BARRIER);
            text.push_str(&format!(
                "@{} heavy;gz::Solve 70\n@{} light;gz::Cheap 20\n@{} main;gz::Step 25\n",
                start + 50,
                start + 20,
                start + 90
            ));
        }
        drawing
            .blocked_then_runnable("heavy", 280..1_000, 0, "gz::Start;pthread_cond_wait")
            .blocked_then_runnable("light", 281..1_000, 0, "gz::Start;pthread_cond_wait")
            .folded(cpu_clock(), &text)
            .capture
    }

    #[test]
    fn the_path_goes_to_the_thread_that_was_waited_for_and_back() {
        assert_eq!(
            path(&overloaded(), 1),
            ["100..110 main runs", "110..180 heavy runs", "180..185 main waits for a CPU", "185..200 main runs"]
        );
    }

    #[test]
    fn an_overloaded_worker_is_named_with_its_function() {
        let tables = all(&overloaded());
        assert_eq!(
            cells(&tables[0], &["part", "mean", "share"]),
            [
                "running on the loop's thread | 25 | 25",
                "running on other threads | 70 | 70",
                "waiting for a CPU | 5 | 5"
            ]
        );
        assert_eq!(
            cells(&tables[1], &["thread", "path", "share", "running", "cpu", "arrived_last"])[0],
            "heavy | 70 | 70 | 70 | 70 | 2"
        );
        assert_eq!(
            cells(&tables[2], &["function", "path", "gain_bound", "cpu", "on_path"])[0],
            "gz::Solve | 70 | 70 | 70 | 100"
        );
        assert_eq!(
            cells(&tables[3], &["waits_at", "barriers", "on_path", "last_thread", "last_share", "behind", "waiters"])
                [0],
            "gz::Finish | 2 | 100 | heavy | 100 | 50 | 2"
        );
        assert_eq!(
            cells(&tables[4], &["waits_at", "thread", "arrived_last", "behind", "waits", "slack"])[..3],
            [
                "gz::Finish | heavy | 2 | 50 | 0 | -",
                "gz::Finish | main | 0 | - | 2 | 68",
                "gz::Finish | light | 0 | - | 2 | 50"
            ]
        );
    }

    #[test]
    fn cpu_waits_are_attributed_to_the_thread_that_held_the_cpu() {
        // Light and heavy share a CPU for a while: light has it until 40, heavy then until 80, when it wakes main.
        let mut drawing = two_workers().steps("main", 0, 100, 3, 1);
        let mut text = String::new();
        for start in [0, 100, 200] {
            let at = |from: u64, to: u64| start + from..start + to;
            drawing = woken(drawing, "main", at(10, 80), 0, "heavy", BARRIER);
            drawing = woken(drawing, "light", at(0, 10), 0, "main", "gz::Start;pthread_cond_wait").on(7);
            drawing = woken(drawing, "light", at(40, 100), 0, "main", "gz::Start;pthread_cond_wait");
            drawing = woken(drawing, "heavy", at(0, 40), 30, "main", "gz::Start;pthread_cond_wait").on(7);
            drawing = woken(drawing, "heavy", at(80, 100), 0, "main", "gz::Start;pthread_cond_wait");
            text.push_str(&format!("@{} light;gz::Solve 30\n@{} heavy;gz::Solve 40\n", start + 30, start + 60));
        }
        let capture = drawing.folded(cpu_clock(), &text).capture;
        let during =
            ["100..110 main runs", "110..140 heavy waits for a CPU", "140..180 heavy runs", "180..200 main runs"];
        assert_eq!(path(&capture, 1), during);
        let tables = all(&capture);
        assert_eq!(
            tables[0].notes[0],
            "Recorded threads held the CPU for 100.00 % of the critical path's CPU waits; other processes for the rest."
        );
        assert_eq!(
            cells(&tables[1], &["thread", "path", "runnable", "held_up"]),
            ["heavy | 70 | 30 | 0", "main | 30 | 0 | 0", "light | 0 | 0 | 30"]
        );
        assert_eq!(
            cells(&tables[2], &["function", "path", "held_up", "gain_bound", "cpu"]),
            ["gz::Solve | 40 | 30 | 70 | 70"]
        );
    }

    #[test]
    fn a_loaded_thread_off_the_path_gains_nothing() {
        // A logger runs all the time and nobody waits for it; main works alone.
        let capture = two_workers()
            .steps("main", 0, 100, 5, 1)
            .folded(cpu_clock(), "@150 heavy;gz::Log 90\n@250 heavy;gz::Log 90\n@250 main;gz::Step 100")
            .blocked_then_runnable("light", 0..1_000, 0, "gz::Idle;pthread_cond_wait")
            .capture;
        let tables = all(&capture);
        assert_eq!(
            cells(&tables[2], &["function", "path", "gain_bound", "cpu", "on_path"]),
            ["gz::Step | 25 | 25 | 25 | 100", "gz::Log | 0 | 0 | 45 | 0"]
        );
        assert_eq!(cells(&tables[1], &["thread", "path", "cpu"]), ["main | 100 | 100", "heavy | 0 | 100"]);
    }

    #[test]
    fn a_chain_of_wakers_is_followed_to_its_start() {
        let drawing = two_workers().steps("main", 0, 100, 1, 1);
        let drawing = woken(drawing, "main", 5..90, 2, "light", BARRIER);
        let drawing = woken(drawing, "light", 0..60, 10, "heavy", "");
        let capture = woken(drawing, "heavy", 0..20, 0, "main", "").capture;
        // The capture lets main wake heavy at 20, although main blocked at 5: its wait has to be on the path.
        assert_eq!(
            path(&capture, 0),
            [
                "0..5 main runs",
                "5..20 main waits",
                "20..50 heavy runs",
                "50..60 light waits for a CPU",
                "60..88 light runs",
                "88..90 main waits for a CPU",
                "90..100 main runs"
            ]
        );
    }

    #[test]
    fn a_wait_that_no_thread_ended_is_itself_on_the_path() {
        let capture = two_workers()
            .steps("main", 0, 100, 2, 1)
            .blocked_then_runnable("main", 120..160, 10, "gz::Save;fsync")
            .preempted("main", 170..180, "")
            .capture;
        assert_eq!(
            path(&capture, 1),
            [
                "100..120 main runs",
                "120..150 main waits",
                "150..160 main waits for a CPU",
                "160..170 main runs",
                "170..180 main waits for a CPU",
                "180..200 main runs"
            ]
        );
        let tables = all(&capture);
        assert_eq!(cells(&tables[0], &["part", "mean"])[3], "blocked, file | 30");
        assert_eq!(
            cells(&tables[2], &["function", "path", "gain_bound", "path_blocked"])[0],
            "gz::Save | 30 | 30 | 30"
        );
    }

    #[test]
    fn a_step_without_waits_is_its_thread_running() {
        let capture = two_workers().steps("main", 0, 100, 2, 1).preempted("main", 500..510, "").capture;
        assert_eq!(path(&capture, 0), ["0..100 main runs"]);
    }

    #[test]
    fn a_thread_that_began_within_the_step_was_started_by_the_loop() {
        let drawing = two_workers().lived("young", 40..1_000, None).steps("main", 0, 100, 1, 1);
        let capture = woken(drawing, "main", 45..95, 0, "young", "gz::Join;pthread_join").capture;
        assert_eq!(path(&capture, 0), ["0..40 main runs", "40..95 young runs", "95..100 main runs"]);
    }

    #[test]
    fn wake_ups_in_a_circle_come_to_an_end() {
        let drawing = two_workers().steps("main", 0, 100, 1, 1);
        let drawing = woken(drawing, "main", 10..50, 0, "heavy", "");
        let capture = woken(drawing, "heavy", 10..50, 0, "main", "").capture;
        let path = path(&capture, 0);
        assert_eq!(path.last().unwrap(), "50..100 main runs");
        assert_eq!(path.len(), 3);
    }

    #[test]
    fn without_wake_ups_the_table_says_what_to_record() {
        let capture = two_workers().steps("main", 0, 100, 5, 1).blocked("main", 10..20, "a").capture;
        let tables = all(&capture);
        assert_eq!(tables.len(), 1);
        assert!(tables[0].notes[0].starts_with("Wake-ups were not recorded"), "{:?}", tables[0].notes);
    }
}
