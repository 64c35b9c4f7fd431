//! Kinds about waits and threads, with what looks like them.

use std::fmt::Write as _;

use super::tests::found;
use super::{Calls, table};
use crate::drawn::{self, Drawing};
use stepscope_model::{Capture, Event, Phase, Step};

const STEPS: u64 = 100;
const STEP_NS: u64 = 1_000_000;

/// A program whose loop does nothing known, with the samples of this text beside it.
fn drawing(threads: &[&str], text: &str) -> Drawing {
    let mut all = String::new();
    for tenth in 0..10 * STEPS {
        let _ = writeln!(all, "@{} main;sim::Step;sim::Move 100000", tenth * STEP_NS / 10 + 50_000);
    }
    let whole = 0..STEPS * STEP_NS;
    let mut drawing = Drawing::new().window(whole.clone()).process(1, "sim").lived("main", whole.clone(), whole.end);
    for thread in threads {
        drawing = drawing.lived(thread, whole.clone(), whole.end);
    }
    let drawing = drawing.steps("main", 0, STEP_NS, STEPS, 1).folded(Event::sampled("cpu-clock", "ns"), &(all + text));
    // So that switches were recorded.
    drawing.blocked("main", 10..20, "sim::Step;futex")
}

/// What is found, with the addresses of functions by name.
fn findings(mut capture: Capture, addresses: &[(&str, u64)]) -> Vec<String> {
    capture.info.phase = Some(Phase::Steady);
    for index in 0..capture.frames.len() {
        let name = capture.frames[index].function.clone();
        let address = addresses.iter().find(|(of, _)| **of == *name).map(|(_, address)| *address);
        capture.frames[index].address = address;
    }
    found(&capture).into_iter().filter(|row| !row.starts_with("single-threaded")).collect()
}

#[test]
fn a_thread_that_spins_until_the_next_step_is_distinguished_from_one_that_computes() {
    // Ten samples a step: the first two of the work, or two anywhere.
    let helper = |is_work: &dyn Fn(u64, u64) -> bool| {
        let mut text = String::new();
        for step in 0..STEPS {
            for tenth in 0..10 {
                let at = step * STEP_NS + tenth * STEP_NS / 10 + 60_000;
                let function = if is_work(step, tenth) { "sim::Plan" } else { "sim::Loop" };
                let _ = writeln!(text, "@{at} helper;{function} 100000");
            }
        }
        findings(drawing(&["helper"], &text).capture, &[("sim::Loop", 0x100), ("sim::Plan", 0x900)])
    };
    assert_eq!(helper(&|_, tenth| tenth < 2), ["busy-wait | sim::Loop | 40"]);
    let computing = helper(&|step, tenth| (step * 7 + tenth * 3) % 10 < 2);
    assert!(computing.is_empty(), "{computing:?}");
    assert_eq!(helper(&|_, _| false), ["busy-wait | sim::Loop | -"], "it may compute: weak, without a gain");
}

#[test]
fn a_thread_that_blocks_between_its_work_is_no_busy_wait() {
    let mut text = String::new();
    for tenth in 0..10 * STEPS {
        let _ = writeln!(text, "@{} helper;sim::Loop 100000", tenth * STEP_NS / 10 + 60_000);
    }
    let mut drawing = drawing(&["helper"], &text);
    for step in 0..STEPS {
        let start = step * STEP_NS + 500_000;
        drawing = drawing.blocked("helper", start..start + 400_000, "sim::Loop;pthread_cond_wait");
    }
    let rows = findings(drawing.capture, &[("sim::Loop", 0x100)]);
    assert!(rows.iter().all(|row| !row.starts_with("busy-wait")), "{rows:?}");
}

#[test]
fn steps_that_wait_for_the_disk_are_found_also_where_most_stacks_were_left_out() {
    let mut with_all = drawing(&[], "");
    for step in 0..STEPS {
        let start = step * STEP_NS + 300_000;
        with_all = with_all.blocked_then_runnable("main", start..start + 200_000, 0, "sim::Log;fdatasync");
    }
    let mut capture = with_all.capture;
    assert_eq!(findings(capture.clone(), &[]), ["file-wait | sim::Log | 20"]);
    let mut row = 0;
    capture.waits.change_all(|wait| {
        row += 1;
        if row % 5 != 0 {
            wait.stack = None;
        }
    });
    capture.info.losses.offcpu_stack_period = Some(5);
    assert_eq!(findings(capture, &[]), ["file-wait | sim::Log | 20"]);
}

#[test]
fn threads_that_each_step_starts_are_found_and_a_pool_that_grows_at_first_is_not() {
    let started_in = |steps: std::ops::Range<u64>| {
        let mut text = String::new();
        for step in 0..STEPS {
            let at = step * STEP_NS;
            let _ = writeln!(
                text,
                "@{} main;sim::Step;sim::Fork;std::thread::_M_start_thread;pthread_create 200000",
                at + 70_000
            );
        }
        let mut drawing = drawing(&[], &text);
        for step in steps {
            for worker in 0..2 {
                let start = step * STEP_NS + 100_000;
                drawing = drawing.lived(&format!("worker {step} {worker}"), start..start + 50_000, 50_000);
            }
        }
        findings(drawing.capture, &[])
    };
    let rows = started_in(0..STEPS);
    assert!(rows.iter().any(|row| row.starts_with("threads-each-step | sim::Fork")), "{rows:?}");
    let rows = started_in(0..20);
    assert!(rows.iter().all(|row| !row.starts_with("threads-each-step")), "{rows:?}");
}

#[test]
fn a_sleep_before_more_work_is_found_and_the_pacing_of_the_loop_is_not() {
    let sleeping_from = |offset: u64| {
        let mut drawing = drawing(&[], "");
        for step in 0..STEPS {
            let start = step * STEP_NS + offset;
            drawing =
                drawing.blocked_then_runnable("main", start..start + 300_000, 0, "sim::Fetch;usleep;clock_nanosleep");
        }
        findings(drawing.capture, &[])
    };
    assert!(
        sleeping_from(400_000).contains(&"sleep-within-step | sim::Fetch | 30".to_owned()),
        "{:?}",
        sleeping_from(400_000)
    );
    for pacing in [sleeping_from(0), sleeping_from(700_000)] {
        assert!(pacing.iter().all(|row| !row.starts_with("sleep-within-step")), "{pacing:?}");
    }
}

#[test]
fn a_worker_that_steps_wait_for_is_found_if_others_do_the_same_work_and_have_less() {
    // Two workers start with each step: `busy` ends it after 800 us.
    let of_other = |other_ns: u64, function: &str| {
        let mut text = String::new();
        for step in 0..STEPS {
            let start = step * STEP_NS;
            for tenth in 1..8 {
                let _ = writeln!(text, "@{} busy;sim::Trace 100000", start + tenth * 100_000 + 20_000);
            }
            let _ = writeln!(text, "@{} other;{function} {other_ns}", start + 120_000);
        }
        let mut drawing = drawing(&["busy", "other"], &text);
        for step in 0..STEPS {
            let start = step * STEP_NS;
            let woken = |mut drawing: Drawing, thread: &str, sleep: std::ops::Range<u64>, stack: &str, by: &str| {
                let by = drawing.thread(by);
                let when = start + sleep.start..start + sleep.end;
                let mut drawing = drawing.blocked_then_runnable(thread, when, 0, stack);
                drawing.capture.waits.change_last(|wait| wait.waker = Some(by));
                drawing
            };
            drawing = woken(drawing, "busy", 0..100_000, "sim::Work;pthread_cond_wait", "main");
            drawing = woken(drawing, "other", 0..100_000, "sim::Work;pthread_cond_wait", "main");
            drawing = woken(drawing, "main", 110_000..800_000, "sim::Step;pthread_cond_wait", "busy");
        }
        let rows = findings(drawing.capture, &[]).into_iter();
        rows.filter(|row| row.starts_with("barrier-imbalance")).collect::<Vec<_>>()
    };
    assert_eq!(of_other(100_000, "sim::Trace").len(), 1);
    assert!(of_other(700_000, "sim::Trace").is_empty(), "both have the same work");
    assert!(of_other(100_000, "sim::Plan").is_empty(), "work of another kind");
}

/// The findings of a kind in a drawing.
fn of_kind(drawing: Drawing, kind: &str) -> Vec<String> {
    findings(drawing.capture, &[]).into_iter().filter(|row| row.starts_with(kind)).collect()
}

/// A wait of a thread that another one ends.
fn woken(mut drawing: Drawing, thread: &str, when: std::ops::Range<u64>, runnable_ns: u64, by: &str) -> Drawing {
    let by = drawing.thread(by);
    let mut drawing = drawing.blocked_then_runnable(thread, when, runnable_ns, "sim::Round;pthread_barrier_wait");
    drawing.capture.waits.change_last(|wait| wait.waker = Some(by));
    drawing
}

#[test]
fn a_worker_that_is_late_for_want_of_a_cpu_is_not_distinguished_from_one_with_more_work() {
    // Three workers start with each step. The last one ends the round after 700 us, and has worked for `work_ns` then.
    let last_works = |work_ns: u64, cpus: u32| {
        let mut text = String::new();
        for step in 0..STEPS {
            let start = step * STEP_NS;
            for (worker, begin) in [("a", 100_000), ("b", 100_000), ("late", 700_000 - work_ns)] {
                let _ = writeln!(text, "@{} {worker};sim::Round;sim::Scan 200000", start + begin + 150_000);
            }
        }
        let mut drawing = drawing(&["a", "b", "late"], &text);
        for thread in drawing.capture.threads.iter_mut() {
            thread.cpu_ns = Some(STEPS * 400_000);
        }
        for step in 0..STEPS {
            let (start, end) = (step * STEP_NS, step * STEP_NS + 700_000);
            drawing = woken(drawing, "late", start..end - work_ns, 600_000 - work_ns, "main").on(cpus - 1);
            for worker in ["a", "b"] {
                drawing = woken(drawing, worker, start..start + 100_000, 0, "main").on(0);
                drawing = woken(drawing, worker, start + 300_000..end, 0, "late").on(cpus / 2);
            }
            drawing = woken(drawing, "main", start + 110_000..end, 0, "late").on(cpus / 4);
        }
        of_kind(drawing, "barrier-imbalance")
    };
    assert!(last_works(200_000, 4).is_empty(), "{:?}", last_works(200_000, 4));
    assert!(last_works(600_000, 1).is_empty(), "one CPU has no time left: {:?}", last_works(600_000, 1));
    assert_eq!(last_works(600_000, 4), ["barrier-imbalance | sim::Scan | 26.666667"]);
}

#[test]
fn a_wait_gains_no_more_than_the_time_in_which_the_loop_does_not_run() {
    // The loop waits for `holder`, which waits for `bus`, which another program keeps from its CPU for 600 us.
    let mut drawing = drawing(&["holder", "bus"], "");
    for step in 0..STEPS {
        let (start, done) = (step * STEP_NS + 300_000, step * STEP_NS + 900_000);
        let woken = |mut drawing: Drawing, thread: &str, end: u64, runnable_ns: u64, by: &str| {
            let by = drawing.thread(by);
            let stack = "sim::Latest;pthread_mutex_lock";
            let mut drawing = drawing.blocked_then_runnable(thread, start..end, runnable_ns, stack);
            drawing.capture.waits.change_last(|wait| wait.waker = Some(by));
            drawing
        };
        drawing = woken(drawing, "bus", done, 599_000, "main");
        drawing = woken(drawing, "holder", done, 0, "bus");
        drawing = woken(drawing, "main", start + 699_000, 0, "holder");
    }
    let rows = of_kind(drawing, "lock-wait");
    let share: f64 = rows[0].rsplit(" | ").next().and_then(|share| share.parse().ok()).expect("a gain");
    assert!(rows[0].starts_with("lock-wait | sim::Latest") && (20.0..30.0).contains(&share), "{rows:?}");
}

#[test]
fn threads_that_wait_for_jobs_have_no_barrier_with_who_hands_them_out() {
    // `front` works for 900 us of each step, and then wakes two threads and the loop.
    let waiting_at = |place: &str| {
        let mut text = String::new();
        for step in 0..STEPS {
            for part in 0..9 {
                let _ =
                    writeln!(text, "@{} front;sim::Track;sim::Match 100000", step * STEP_NS + part * 100_000 + 50_000);
            }
        }
        let mut drawing = drawing(&["front", "map", "places"], &text);
        for thread in drawing.capture.threads.iter_mut() {
            thread.cpu_ns = Some(STEPS * 400_000);
        }
        for step in 0..STEPS {
            for (cpu, thread) in ["main", "map", "places"].into_iter().enumerate() {
                let when = step * STEP_NS + 50_000..step * STEP_NS + 900_000;
                let by = drawing.thread("front");
                drawing = drawing.blocked_then_runnable(thread, when, 0, place).on(cpu as u32);
                drawing.capture.waits.change_last(|wait| wait.waker = Some(by));
            }
        }
        of_kind(drawing, "barrier-imbalance")
    };
    assert_eq!(waiting_at("sim::Track;pthread_barrier_wait").len(), 1);
    assert!(waiting_at("sim::Serve;pthread_cond_wait").is_empty());
}

#[test]
fn steps_that_wait_for_a_cpu_are_found_only_if_the_program_has_all_of_them() {
    // The loop's thread waits for CPU 0 in half of each step, while `logger` has it.
    let held = |other_has_cpu_1: bool, stack: &str| {
        let mut text = String::new();
        for step in 0..STEPS {
            for tenth in 0..5 {
                let _ = writeln!(text, "@{} logger;sim::Pack 100000", step * STEP_NS + tenth * 100_000 + 350_000);
            }
        }
        let mut drawing = drawing(&["logger", "packer"], &text);
        // `packer` shows that the program may use CPU 1.
        drawing = woken(drawing, "packer", 0..1_000, 0, "main").on(1);
        if !other_has_cpu_1 {
            drawing = woken(drawing, "packer", 2_000..STEPS * STEP_NS, 0, "main").on(1);
        }
        for step in 0..STEPS {
            let start = step * STEP_NS;
            drawing = drawing.preempted("main", start + 300_000..start + 800_000, stack).on(0);
            let pause = start + 801_000..start + 1_300_000;
            drawing = drawing.blocked_then_runnable("logger", pause, 0, "sim::Pack;clock_nanosleep").on(0);
        }
        of_kind(drawing, "cpu-held-by-others")
    };
    assert_eq!(held(true, "sim::Step").len(), 1, "both CPUs run background work");
    assert!(held(false, "sim::Step").is_empty(), "other programs have CPU 1");
    assert!(held(true, "sim::Step;sched_yield").is_empty(), "it gives up its CPU until its workers are done");
}

#[test]
fn a_note_says_that_other_programs_had_the_cpus() {
    let notes = |delay_ns: u64| {
        let mut drawing = drawing(&["other"], "");
        drawing = woken(drawing, "other", 0..1_000, 0, "main");
        for step in 0..STEPS {
            let start = step * STEP_NS + 300_000;
            drawing = drawing.preempted("main", start..start + delay_ns, "sim::Step").on(0);
        }
        let mut capture = drawing.capture;
        capture.info.phase = Some(Phase::Steady);
        drawn::selected(&capture, &["sim::"], |selection| {
            let table = table(std::slice::from_ref(selection), &Calls::default());
            table.notes.iter().map(ToString::to_string).filter(|note| note.contains("busy")).collect::<Vec<_>>()
        })
    };
    assert!(notes(100_000).is_empty());
    let note = notes(500_000).pop().unwrap();
    assert!(note.contains("other programs had the CPUs for 50.00 % of the steps' time"), "{note}");
}

#[test]
fn long_steps_that_are_sampled_once_each_count_together_unless_they_wait() {
    const CYCLE: u64 = 2_000_000;
    // Ten steps of 0.1 ms, and one of 1 ms.
    let found_if = |waits: bool| {
        let whole = 0..100 * CYCLE;
        let mut drawing = Drawing::new().window(whole.clone()).lived("main", whole.clone(), whole.end);
        let (mut text, main) = (String::new(), drawing.thread("main"));
        for start in (0..100).map(|cycle| cycle * CYCLE) {
            let lengths = (0..11).map(|at| (start + at * 100_000, if at == 10 { 1_000_000 } else { 100_000 }));
            for (start_ns, length) in lengths {
                let (index, end_ns) = (drawing.capture.steps.len() as u64, start_ns + length);
                drawing.capture.steps.push(Step { index, start_ns, end_ns, sim_time_ns: None, thread: main });
            }
            let _ = writeln!(text, "@{} main;sim::Step;sim::Move 1000000", start + 550_000);
            let _ = writeln!(text, "@{} main;sim::Step;sim::Parse 1000000", start + 1_050_000);
            let wait = if waits { start + 1_080_000..start + 1_990_000 } else { start + 10..start + 20 };
            drawing = drawing.preempted("main", wait, "");
        }
        let mut capture = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture;
        capture.info.phase = Some(Phase::Steady);
        found(&capture).into_iter().filter(|row| row.starts_with("rare-long-steps")).collect::<Vec<_>>()
    };
    assert!(found_if(false)[0].starts_with("rare-long-steps | sim::Parse | "));
    assert!(found_if(true).is_empty(), "steps that wait for a CPU have no more work than others");
}
