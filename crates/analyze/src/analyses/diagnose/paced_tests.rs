//! Loops that keep a pace, and threads that wait for each other in other ways than by steps.

use std::fmt::Write as _;

use super::tests::found;
use super::{Calls, table};
use crate::drawn::{self, Drawing};
use stepscope_model::{Capture, Event, Phase};

const STEPS: u64 = 200;
const STEP_NS: u64 = 5_000_000;
const WHOLE_NS: u64 = STEPS * STEP_NS;

/// Cycles of 5 ms: 2 ms of work, half of it in `stack`, then `sleeps` sleeps, until the cycle is over.
fn cycles(stack: &str, sleeps: u64, is_loop: bool) -> Drawing {
    let mut text = String::new();
    for cycle in 0..STEPS {
        for tenth in 0..20 {
            let stack = if tenth % 2 == 0 { stack } else { "sim::Step;sim::Move" };
            let _ = writeln!(text, "@{} main;sim::Run;{stack} 100000", cycle * STEP_NS + tenth * 100_000 + 50_000);
        }
    }
    let whole = 0..WHOLE_NS;
    let mut drawing = Drawing::new().window(whole.clone()).process(1, "sim").lived("main", whole, STEPS * 2_000_000);
    if is_loop {
        drawing = drawing.steps("main", 0, STEP_NS, STEPS, 1);
    }
    drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text);
    for cycle in 0..STEPS {
        for sleep in 0..sleeps {
            let start = cycle * STEP_NS + 2_000_000 + sleep * 3_000_000 / sleeps;
            let end = start + 3_000_000 / sleeps - 1_000;
            drawing = drawing.blocked_then_runnable("main", start..end, 0, "sim::Run;sim::Pause;clock_nanosleep");
        }
    }
    drawing.capture.info.phase = Some(Phase::Steady);
    drawing
}

const SORTS: &str = "sim::Step;sim::Order;std::sort<int*>";

/// The first finding with a gain: kind, function, and gain in whole percent.
fn first(capture: &Capture) -> String {
    let row = found(capture).into_iter().find(|row| !row.ends_with('-')).unwrap_or_default();
    let (cause, gain) = row.rsplit_once(" | ").unwrap_or_default();
    format!("{cause} | {:.0}", gain.parse::<f64>().unwrap_or(f64::NAN))
}

#[test]
fn gains_of_a_paced_loop_are_shares_of_its_work() {
    assert_eq!(first(&cycles(SORTS, 1, true).capture), "sort-each-step | sim::Order | 50");
    assert_eq!(first(&cycles(SORTS, 1, false).capture), "sort-each-step | sim::Order | 50");
    let looking = first(&cycles(SORTS, 10, true).capture);
    assert_eq!(looking, "sort-each-step | sim::Order | 20", "ten sleeps a step wait for something");
}

#[test]
fn a_found_step_function_that_goes_on_after_a_sleep_keeps_no_pace() {
    let of = |start_ns: u64| {
        let mut drawing = cycles(SORTS, 1, false).steps("main", start_ns, STEP_NS, STEPS - 1, 1);
        drawing.capture.info.found_step = Some("sim::Run".to_owned());
        first(&drawing.capture)
    };
    assert_eq!(of(0), "sort-each-step | sim::Order | 50", "it sleeps when its work is done");
    assert_eq!(of(1_000_000), "sleep-within-step | sim::Pause | 60");
}

#[test]
fn a_note_says_what_the_gains_of_a_paced_loop_are_shares_of() {
    let notes = |sleeps: u64| {
        let drawing = cycles(SORTS, sleeps, true);
        drawn::selected(&drawing.capture, &["sim::"], |selection| {
            let table = table(std::slice::from_ref(selection), &Calls::default());
            table.notes.iter().map(ToString::to_string).filter(|note| note.contains("pace")).collect::<Vec<_>>()
        })
    };
    assert!(notes(1)[0].contains("`sim::Pause` sleeps for 3.00 ms of each step to keep the pace."), "{:?}", notes(1));
    assert!(notes(10).is_empty());
}

#[test]
fn a_sleep_within_steps_that_the_recorder_found_is_the_pace() {
    let of = |found_step: Option<&str>| {
        let mut capture = cycles("sim::Move", 1, true).capture;
        capture.info.found_step = found_step.map(str::to_owned);
        // Each step begins in the middle of the work.
        capture.steps.iter_mut().for_each(|step| {
            step.start_ns += 1_000_000;
            step.end_ns += 1_000_000;
        });
        capture.steps.pop();
        found(&capture).iter().any(|row| row.starts_with("sleep-within-step"))
    };
    assert!(of(None), "the program marks where its steps begin");
    assert!(!of(Some("sim::Move")));
}

#[test]
fn a_lock_that_delays_another_loop_is_found_if_the_recorder_chose_the_steps() {
    let of = |found_step: Option<&str>| {
        let mut drawing = cycles("sim::Move", 1, true);
        drawing.capture.info.found_step = found_step.map(str::to_owned);
        let mut text = String::new();
        for cycle in 0..STEPS {
            let start = cycle * STEP_NS;
            let _ = writeln!(text, "@{} other;sim::Tide 1000000", start + 2_500_000);
        }
        drawing = drawing.lived("other", 0..WHOLE_NS, STEPS * 1_000_000);
        drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text);
        for cycle in 0..STEPS {
            let start = cycle * STEP_NS;
            let by = drawing.thread("main");
            drawing =
                drawing.blocked_then_runnable("other", start..start + 2_000_000, 0, "sim::Tide;pthread_rwlock_wrlock");
            drawing.capture.waits.change_last(|wait| wait.waker = Some(by));
        }
        found(&drawing.capture).into_iter().filter(|row| row.starts_with("lock-wait")).collect::<Vec<_>>()
    };
    assert_eq!(of(Some("sim::Move")), ["lock-wait | sim::Tide | 40"]);
    assert!(of(None).is_empty(), "the program marks its steps, and they do not wait");
}

/// Two threads of OpenMP with 4 and `other_ms` ms of work in each cycle of 5 ms, the rest in a waiting loop.
fn team(other_ms: u64, work: &str) -> Vec<String> {
    let region = |work: &str| format!("sim::Step;GOMP_parallel [lib:/usr/lib/libgomp.so.1];{work}");
    let waits = "sim::Step;GOMP_parallel [lib:/usr/lib/libgomp.so.1];gomp_team_end [lib:/usr/lib/libgomp.so.1]";
    let mut text = String::new();
    for cycle in 0..STEPS {
        for ms in 0..5 {
            let at = cycle * STEP_NS + ms * 1_000_000 + 500_000;
            for (thread, work_ms) in [("main", 4), ("worker", other_ms)] {
                let stack = if ms < work_ms { region(work) } else { waits.to_owned() };
                let _ = writeln!(text, "@{at} {thread};{stack} 1000000");
            }
        }
    }
    let mut drawing = Drawing::new().window(0..WHOLE_NS).process(1, "sim");
    for thread in ["main", "worker"] {
        drawing = drawing.lived(thread, 0..WHOLE_NS, WHOLE_NS);
    }
    // So that switches were recorded.
    drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).blocked("main", 10..20, "sim::Step;futex");
    found(&drawing.capture).into_iter().filter(|row| row.starts_with("barrier")).collect()
}

#[test]
fn openmp_threads_that_wait_in_a_loop_for_one_with_more_work_are_found() {
    let work = "sim::Step._omp_fn.0;sim::Repel";
    assert!(team(2, work)[0].starts_with("barrier-imbalance | sim::Repel | 20"), "{:?}", team(2, work));
    assert!(team(4, work).is_empty(), "both have the same work");
    assert!(team(2, "sim::Repel").is_empty(), "work of no parallel region");
}

#[test]
fn threads_that_take_turns_for_the_interpreters_lock_gain_what_taking_turns_costs() {
    let mut text = String::new();
    for cycle in 0..STEPS {
        let start = cycle * STEP_NS;
        for (thread, at) in [("one", 0), ("other", 2_500_000)] {
            let _ = writeln!(text, "@{} {thread};sim::Work 2000000", start + at + 1_000);
            let _ =
                writeln!(text, "@{} {thread};sim::Work;PyEval_RestoreThread;take_gil 500000", start + at + 2_100_000);
        }
    }
    let mut drawing = Drawing::new().window(0..WHOLE_NS).process(1, "python3");
    for thread in ["one", "other"] {
        drawing = drawing.lived(thread, 0..WHOLE_NS, STEPS * 2_500_000);
    }
    drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text);
    let stack = "sim::Work;PyEval_RestoreThread;take_gil;pthread_cond_timedwait";
    for cycle in 0..STEPS {
        let start = cycle * STEP_NS;
        for (thread, by, waits) in
            [("other", "one", start..start + 2_500_000), ("one", "other", start + 2_500_000..start + 5_000_000)]
        {
            let by = drawing.thread(by);
            drawing = drawing.blocked_then_runnable(thread, waits, 0, stack);
            drawing.capture.waits.change_last(|wait| wait.waker = Some(by));
        }
    }
    let rows = found(&drawing.capture);
    assert_eq!(
        rows,
        ["gil-wait | sim::Work | 20"],
        "half of the time they wait, a fifth of the CPU time is for the lock"
    );
}

/// A thread of Python that waits at a stack for `wait_us` of each cycle, and another one that computes.
fn python(wait_us: u64, stack: &str) -> Vec<String> {
    let mut text = String::new();
    for cycle in 0..STEPS {
        let start = cycle * STEP_NS;
        for ms in 0..4 {
            let _ = writeln!(text, "@{} planner;sim::Plan 1000000", start + ms * 1_000_000 + 500_000);
        }
        let _ = writeln!(text, "@{} main;sim::Step 500000", start + 4_100_000);
    }
    let mut drawing = Drawing::new().window(0..WHOLE_NS).process(1, "python3");
    drawing = drawing.lived("main", 0..WHOLE_NS, STEPS * 500_000).lived("planner", 0..WHOLE_NS, STEPS * 4_000_000);
    drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text);
    let by = drawing.thread("planner");
    for cycle in 0..STEPS {
        let start = cycle * STEP_NS;
        drawing = drawing.blocked_then_runnable("main", start..start + wait_us * 1_000, 0, stack);
        drawing.capture.waits.change_last(|wait| wait.waker = Some(by));
        let sleep = start + 4_600_000..start + 5_000_000;
        drawing = drawing.blocked_then_runnable("main", sleep, 0, "sim::Step;time_sleep;clock_nanosleep");
    }
    found(&drawing.capture).into_iter().filter(|row| row.starts_with("gil-wait")).collect()
}

#[test]
fn a_thread_that_waits_for_the_interpreters_lock_is_distinguished_from_one_that_waits_for_work() {
    let lock = "sim::Step;time_sleep;PyEval_RestoreThread;take_gil;pthread_cond_timedwait";
    assert_eq!(python(4_000, lock).len(), 1);
    assert!(python(4_000, lock)[0].starts_with("gil-wait | sim::Step | 8"), "{:?}", python(4_000, lock));
    assert!(python(20, lock).is_empty(), "it waits for little");
    assert!(python(4_500, lock).is_empty(), "it has little to do");
    let work = "sim::Step;lock_PyThread_acquire_lock;pthread_cond_timedwait";
    assert!(python(4_000, work).is_empty());
}

#[test]
fn a_python_thread_that_looks_again_and_again_is_found_though_it_waits_for_the_interpreters_lock() {
    let polls = |look_us: u64| {
        let frames = "sim::Run;py::Queue.get:/usr/lib/python3.11/queue.py;acquire_timed";
        let mut text = String::new();
        let mut drawing = Drawing::new().window(0..WHOLE_NS).process(1, "python3");
        drawing = drawing.lived("main", 0..WHOLE_NS, 1_000_000).lived("robot", 0..WHOLE_NS, STEPS * look_us * 1_000);
        for cycle in 0..STEPS {
            let _ = writeln!(text, "@{} robot;{frames} {}", cycle * STEP_NS + 4_850_000, look_us * 1_000);
        }
        drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text);
        let by = drawing.thread("main");
        for cycle in 0..STEPS {
            let (start, end) = (cycle * STEP_NS, (cycle + 1) * STEP_NS);
            let waits = start..end - look_us * 1_000 - 50_000;
            drawing = drawing.blocked_then_runnable("robot", waits.clone(), 0, &format!("{frames};sem_clockwait"));
            let lock = waits.end + 10_000..waits.end + 60_000;
            drawing =
                drawing.blocked_then_runnable("robot", lock, 0, &format!("{frames};take_gil;pthread_cond_timedwait"));
            drawing.capture.waits.change_last(|wait| wait.waker = Some(by));
        }
        found(&drawing.capture).into_iter().filter(|row| row.starts_with("polling")).collect::<Vec<_>>()
    };
    assert_eq!(polls(100).len(), 1, "{:?}", polls(100));
    assert!(polls(400).is_empty(), "it has work each time");
}
