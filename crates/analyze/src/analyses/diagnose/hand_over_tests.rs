//! Herds, work in small pieces, and recordings without steps.

use std::fmt::Write as _;

use super::tests::found;
use crate::drawn::Drawing;
use stepscope_model::Event;

const ROUNDS: u64 = 1_000;
const ROUND_NS: u64 = 1_000_000;
const WHOLE_NS: u64 = ROUNDS * ROUND_NS;

/// A wait at a stack that a thread ends from a stack of its own.
fn woken(mut drawing: Drawing, thread: &str, when: std::ops::Range<u64>, stack: &str, by: (&str, &str)) -> Drawing {
    let waker = drawing.thread(by.0);
    let at = drawing.stack(by.1);
    let mut drawing = drawing.blocked_then_runnable(thread, when, 0, stack);
    drawing.capture.waits.change_last(|wait| {
        wait.waker = Some(waker);
        wait.waker_stack = at;
    });
    drawing
}

fn lived(threads: &[&str]) -> Drawing {
    let mut drawing = Drawing::new().window(0..WHOLE_NS).process(1, "sim").lived("main", 0..WHOLE_NS, WHOLE_NS);
    for thread in threads {
        drawing = drawing.lived(thread, 0..WHOLE_NS, WHOLE_NS);
    }
    drawing
}

/// Four workers that the loop wakes in each round. One of them works for 400 us; the others for `others_ns`.
fn workers(others_ns: u64) -> Vec<String> {
    waiting(others_ns, "sim::Work;sim::Take;pthread_cond_wait;__x64_sys_futex [kernel]", "pthread_cond_broadcast")
}

/// The same where they wait at this stack, and are woken by this function.
fn waiting(others_ns: u64, waits: &str, wakes: &str) -> Vec<String> {
    let waker = format!("sim::Loop;sim::Put;{wakes}");
    let names = ["a", "b", "c", "d"];
    let mut text = String::new();
    for round in 0..ROUNDS {
        let start = round * ROUND_NS;
        let _ = writeln!(text, "@{} main;sim::Loop;sim::Move 200000", start + 50_000);
        for (place, name) in names.iter().enumerate() {
            let at = start + 101_000 + place as u64 * 2_000;
            let works = if place as u64 == round % 4 { 60_000 } else { others_ns };
            let _ = writeln!(text, "@{at} {name};{waits} 50000");
            if works > 20_000 {
                let _ = writeln!(text, "@{} {name};sim::Work;sim::Carry {works}", at + 1_000);
            }
        }
    }
    let mut drawing = lived(&names).folded(Event::sampled("cpu-clock", "ns"), &text);
    for round in 0..ROUNDS {
        let start = round * ROUND_NS;
        for (place, name) in names.iter().enumerate() {
            let at = start + 100_000 + place as u64 * 2_000;
            let before = start.saturating_sub(ROUND_NS) + 100_000 + place as u64 * 2_000;
            let works = if round > 0 && place as u64 == (round - 1) % 4 { 60_000 } else { others_ns };
            let begin = if round == 0 { 0 } else { before + works };
            drawing = woken(drawing, name, begin..at, waits, ("main", waker.as_str()));
        }
    }
    found(&drawing.capture)
}

#[test]
fn threads_that_are_woken_and_find_nothing_are_distinguished_from_workers() {
    let herd: Vec<String> = workers(5_000).into_iter().filter(|row| row.starts_with("threads-woken")).collect();
    assert_eq!(herd.len(), 1, "{herd:?}");
    assert!(herd[0].starts_with("threads-woken-for-nothing | sim::Take | "), "{herd:?}");
    let one_by_one = waiting(5_000, "sim::Work;sim::Take;pthread_cond_wait", "pthread_cond_signal");
    assert!(!one_by_one.iter().any(|row| row.starts_with("threads-woken")), "each has a place: {one_by_one:?}");
    let receives = "sim::Work;sim::Take;recv;__x64_sys_recvfrom [kernel];unix_dgram_recvmsg [kernel]";
    let receive = waiting(5_000, receives, "pthread_cond_broadcast");
    assert!(!receive.iter().any(|row| row.starts_with("threads-woken")), "each gets a message: {receive:?}");
    let busy = workers(60_000);
    assert!(!busy.iter().any(|row| row.starts_with("threads-woken")), "{busy:?}");
}

/// Two threads that change after `run_ns`, `locks` of ten parts of it in locks.
fn changing(run_ns: u64, locks: u64, steps: Option<u64>) -> Vec<String> {
    let mut text = String::new();
    let rounds = WHOLE_NS / (2 * run_ns);
    for round in 0..rounds {
        for (thread, begin) in [("main", 2 * round * run_ns), ("other", (2 * round + 1) * run_ns)] {
            let (locked, own) = (run_ns * locks / 10, run_ns - run_ns * locks / 10);
            let _ = writeln!(text, "@{begin} {thread};sim::Work;pthread_mutex_lock {locked}");
            let _ = writeln!(text, "@{} {thread};sim::Work;sim::Task {own}", begin + 1);
        }
    }
    let lived = lived(&["other"]);
    let started = match steps {
        Some(steps) => lived.steps("main", 0, WHOLE_NS / steps, steps, 1),
        None => lived,
    };
    let mut drawing = started.folded(Event::sampled("cpu-clock", "ns"), &text);
    for round in 0..rounds {
        let at = 2 * round * run_ns;
        drawing = woken(drawing, "other", at..at + run_ns, "sim::Work;pthread_cond_wait", ("main", "sim::Work"));
        drawing =
            woken(drawing, "main", at + run_ns..at + 2 * run_ns, "sim::Work;pthread_cond_wait", ("other", "sim::Work"));
    }
    found(&drawing.capture)
}

#[test]
fn work_in_small_pieces_is_found_if_handing_it_over_costs_a_third() {
    assert_eq!(changing(20_000, 4, None), ["work-in-small-pieces | sim::Work | 40"]);
    assert!(changing(20_000, 2, None).is_empty(), "it costs little");
    assert!(changing(1_000_000, 4, None).is_empty(), "the pieces are large");
    let in_steps = |steps: u64| {
        let rows = changing(20_000, 4, Some(steps)).into_iter();
        rows.filter(|row| row.starts_with("work-in-small")).count()
    };
    assert_eq!(in_steps(1_000), 1, "25 in each step");
    assert_eq!(in_steps(25_000), 0, "one in each step");
}

#[test]
fn a_thread_that_is_woken_for_each_small_piece_is_found_though_the_other_one_never_waits() {
    let woken_after = |run_ns: u64| {
        let (mut text, rounds) = (String::new(), WHOLE_NS / run_ns / 2);
        for round in 0..rounds {
            let at = 2 * round * run_ns;
            let _ = writeln!(text, "@{at} main;sim::Frame;sim::Move {}", run_ns * 3 / 2);
            let _ = writeln!(text, "@{} main;sim::Frame;sim::Push;pthread_mutex_lock {}", at + 1, run_ns / 2);
            let _ = writeln!(text, "@{} other;sim::Draw 1", at + run_ns);
        }
        let mut drawing = lived(&["other"]).folded(Event::sampled("cpu-clock", "ns"), &text);
        drawing.capture.threads[1].cpu_ns = Some(WHOLE_NS / 2);
        for round in 0..rounds {
            let at = 2 * round * run_ns;
            drawing = woken(drawing, "other", at..at + run_ns, "sim::Pop;pthread_cond_wait", ("main", "sim::Push"));
        }
        found(&drawing.capture).into_iter().filter(|row| row.starts_with("work-in-small")).collect::<Vec<_>>()
    };
    assert_eq!(woken_after(10_000), ["work-in-small-pieces | sim::Push | 24.99875"]);
    assert!(woken_after(50_000).is_empty(), "pieces of some size cost little more than their work");
}

/// A recording without steps, of a stack from `start_ms` on.
fn without_steps(start_ms: u64, stack: &str) -> Drawing {
    let line = |ms: u64| {
        let stack = if ms < start_ms {
            "sim::Load"
        } else if ms.is_multiple_of(2) {
            stack
        } else {
            "sim::Move"
        };
        format!("@{} main;sim::Run;{stack} 1000000", ms * 1_000_000)
    };
    let text: Vec<String> = (0..1_000).map(line).collect();
    lived(&["holder"]).folded(Event::sampled("cpu-clock", "ns"), &text.join("\n"))
}

#[test]
fn what_a_program_without_steps_does_all_the_time_is_found_after_its_loading() {
    let throws = "sim::Order;__cxa_throw";
    assert_eq!(found(&without_steps(0, throws).capture), ["exceptions-each-step | sim::Order | 50"]);
    assert_eq!(found(&without_steps(400, throws).capture), ["exceptions-each-step | sim::Order | 30"]);
    let in_last_part = found(&without_steps(700, throws).capture);
    assert_eq!(
        in_last_part,
        ["exceptions-each-step | sim::Order | 15"],
        "it comes back, though most of the time it does something else"
    );
}

#[test]
fn text_that_is_parsed_all_the_time_is_found() {
    let parses = "sim::Reset;tinyxml2::XMLDocument::Parse;malloc";
    assert_eq!(found(&without_steps(0, parses).capture), ["parsed-each-step | sim::Reset | 50"]);
}

/// A thread that works, and waits for a lock for `blocked_us` of each ms.
fn locked(blocked_us: u64, stack: &str) -> Vec<String> {
    let mut drawing = without_steps(0, "sim::Move");
    for round in 0..ROUNDS {
        let start = round * ROUND_NS;
        drawing = woken(drawing, "main", start..start + blocked_us * 1_000, stack, ("holder", "sim::Write"));
    }
    found(&drawing.capture)
}

#[test]
fn a_thread_without_steps_that_waits_for_a_lock_is_found() {
    assert_eq!(locked(200, "sim::Run;sim::Note;pthread_mutex_lock"), ["lock-wait | sim::Note | 20"]);
    assert!(locked(20, "sim::Run;sim::Note;pthread_mutex_lock").is_empty());
    assert!(locked(200, "sim::Run;sim::Note;pthread_cond_wait").is_empty(), "it waits for work");
}

#[test]
fn encoding_is_distinguished_from_decoding() {
    let encodes = "sim::Publish;compress2;deflate_fast";
    assert_eq!(found(&without_steps(0, encodes).capture), ["encoding-in-steps | sim::Publish | 50"]);
    let decodes = "sim::Draw;uncompress;inflate_fast";
    assert_eq!(found(&without_steps(0, decodes).capture), ["decoding-in-steps | sim::Draw | 50"]);
}

#[test]
fn a_deep_copy_by_python_is_a_copy_of_the_function_that_asks_for_it() {
    let copies = "sim::Save;py::deepcopy:/usr/lib/python3.12/copy.py;py::_reconstruct:/usr/lib/python3.12/copy.py";
    assert_eq!(found(&without_steps(0, copies).capture), ["copies-each-step | sim::Save | 50"]);
}
