//! Kinds that find what goes on all the time in recordings without steps.

use std::fmt::Write as _;

use super::tests::found;
use crate::drawn::Drawing;
use stepscope_model::{Counter, Event, ProcessId, WaitState};

const CYCLE_NS: u64 = 10_000_000;
const CYCLES: u64 = 100;
const WHOLE_NS: u64 = CYCLES * CYCLE_NS;

fn of_kind(drawing: &Drawing, kind: &str) -> Vec<String> {
    found(&drawing.capture).into_iter().filter(|row| row.starts_with(kind)).collect()
}

fn lived(threads: &[&str], cpu_ns: u64) -> Drawing {
    let mut drawing = Drawing::new().window(0..WHOLE_NS).process(1, "sim");
    for thread in threads {
        drawing = drawing.lived(thread, 0..WHOLE_NS, cpu_ns);
    }
    drawing
}

/// Samples of a thread: a stack for each millisecond.
fn sampled(drawing: Drawing, of_ms: impl Fn(u64) -> String) -> Drawing {
    let line = |ms: u64| format!("@{} {} 1000000", ms * 1_000_000 + 500_000, of_ms(ms));
    let text: Vec<String> = (0..WHOLE_NS / 1_000_000).map(line).collect();
    drawing.folded(Event::sampled("cpu-clock", "ns"), &text.join("\n"))
}

fn every_second_ms(stack: &str) -> Drawing {
    sampled(lived(&["main"], WHOLE_NS), |ms| format!("main;sim::Run;{}", if ms % 2 == 0 { stack } else { "sim::Move" }))
}

#[test]
fn gains_of_threads_that_run_at_the_same_time_are_shares_of_their_cpu_time() {
    let mut text = String::new();
    for ms in 0..WHOLE_NS / 1_000_000 {
        for thread in ["one", "other"] {
            let stack = if ms % 2 == 0 { "sim::Order;std::sort<int*>" } else { "sim::Move" };
            let _ = writeln!(text, "@{} {thread};sim::Run;{stack} 1000000", ms * 1_000_000 + 500_000);
        }
    }
    let drawing = lived(&["one", "other"], WHOLE_NS).folded(Event::sampled("cpu-clock", "ns"), &text);
    assert_eq!(of_kind(&drawing, "sort"), ["sort-each-step | sim::Order | 50"]);
}

#[test]
fn a_fixed_sleep_in_each_cycle_is_distinguished_from_one_that_ends_at_a_time() {
    // The work takes 2 to 4 ms of each cycle.
    let paced_by = |until_a_time: bool, varies: u64| {
        let mut drawing = sampled(lived(&["main"], 300_000_000), |_| "main;sim::Run;sim::Move".to_owned());
        let mut start = 3_000_000;
        for cycle in 0..CYCLES - 30 {
            let work = 2_000_000 + cycle * 7 % 3 * varies;
            let length = if until_a_time { 10_000_000 - work } else { 10_000_000 };
            drawing = drawing.blocked("main", start..start + length, "sim::Run;clock_nanosleep");
            start += length + 2_000_000 + (cycle + 1) * 7 % 3 * varies;
        }
        of_kind(&drawing, "fixed-sleep-each-cycle")
    };
    let paced = |until_a_time: bool| paced_by(until_a_time, 1_000_000);
    assert_eq!(paced(false), ["fixed-sleep-each-cycle | sim::Run | -"]);
    assert!(paced_by(false, 10_000).is_empty(), "work that hardly varies does not tell the two apart");
    assert!(paced(true).is_empty());
}

#[test]
fn short_lived_threads_that_start_all_the_time_are_found_without_steps() {
    let starting = |threads: u64, life_ns: u64| {
        let mut drawing = every_second_ms("sim::Serve;std::thread::_M_start_thread;pthread_create");
        for number in 0..threads {
            let start = 10_000_000 + number * 900_000_000 / threads;
            drawing = drawing.lived(&format!("job {number}"), start..start + life_ns, life_ns / 2);
        }
        of_kind(&drawing, "threads-each-step")
    };
    assert_eq!(starting(100, 1_000_000), ["threads-each-step | sim::Serve | 50"]);
    assert!(starting(10, 1_000_000).is_empty(), "few");
}

#[test]
fn a_worker_with_most_of_the_work_is_found_without_steps() {
    // Both workers start with a cycle; `busy` ends it after 9 ms.
    let of_other = |other_ms: u64, function: &str| {
        let mut text = String::new();
        for cycle in 0..CYCLES {
            for ms in 0..9 {
                let _ = writeln!(text, "@{} busy;sim::Trace 1000000", cycle * CYCLE_NS + ms * 1_000_000 + 500_000);
            }
            for ms in 0..other_ms {
                let _ = writeln!(text, "@{} other;{function} 1000000", cycle * CYCLE_NS + ms * 1_000_000 + 600_000);
            }
        }
        let mut drawing = lived(&["busy", "main"], 900_000_000).lived("other", 0..WHOLE_NS, other_ms * 100_000_000);
        drawing.capture.threads[1].cpu_ns = Some(1_000_000);
        drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text);
        for cycle in 0..CYCLES {
            let start = cycle * CYCLE_NS;
            let mut waits = |thread: &str, from_ms: u64, until_ms: u64, by: &str| {
                let by = drawing.thread(by);
                let when = start + from_ms * 1_000_000..start + until_ms * 1_000_000;
                let mut drawn = std::mem::replace(&mut drawing, Drawing::new());
                drawn = drawn.blocked(thread, when, "sim::Work;pthread_cond_wait");
                drawn.capture.waits.change_last(|wait| wait.waker = Some(by));
                drawing = drawn;
            };
            waits("other", other_ms, 10, "main");
            waits("main", 0, 9, "busy");
            waits("busy", 9, 10, "main");
        }
        of_kind(&drawing, "barrier-imbalance")
    };
    let rows = of_other(3, "sim::Trace");
    assert!(rows.len() == 1 && rows[0].starts_with("barrier-imbalance | sim::Trace | 3"), "{rows:?}");
    assert!(of_other(9, "sim::Trace").is_empty(), "both have the same work");
    assert!(of_other(3, "sim::Plan").is_empty(), "work of another kind");
}

#[test]
fn memory_that_grows_in_a_server_names_who_touches_it() {
    let growing = |waits: Option<WaitState>| {
        let of_ms = |ms: u64| {
            if ms.is_multiple_of(25) { "main;sim::Run;sim::Answer;malloc" } else { "main;sim::Run" }.to_owned()
        };
        let mut drawing = sampled(lived(&["main"], WHOLE_NS), of_ms);
        let mut faults = String::new();
        for cycle in 0..CYCLES {
            let start = cycle * CYCLE_NS;
            let _ = writeln!(faults, "@{} main;sim::Run;sim::Keep;malloc 8", start + 5_000);
            let when = start..start + 1_000_000;
            drawing = match waits {
                Some(WaitState::Blocked) => drawing.blocked("main", when, "sim::Run;recv;__sys_recv [kernel]"),
                Some(WaitState::Preempted) => drawing.preempted("main", when, "sim::Run;schedule [kernel]"),
                None => drawing,
            };
        }
        drawing =
            drawing.folded(Event { unit: "faults".to_owned(), ..Event::sampled("minor-faults", "faults") }, &faults);
        for reading in 0..9 {
            drawing.capture.counters.push(Counter {
                time_ns: reading * 110_000_000 + 1_000_000,
                process: Some(ProcessId::from_index(0)),
                name: "rss_bytes".into(),
                value: 50_000_000 + reading as i64 * 10_000_000,
                thread: None,
            });
        }
        found(&drawing.capture)
    };
    let small_gain = "allocations-each-step | sim::Answer | 4";
    let served = growing(Some(WaitState::Blocked));
    assert_eq!(served, ["memory-grows-over-time | sim::Keep | -", small_gain], "it ends the program in time");
    assert_eq!(growing(None), [small_gain], "it may load");
    assert_eq!(growing(Some(WaitState::Preempted)), [small_gain], "a thread that lost its CPU waits for nothing");
}

#[test]
fn elements_that_are_moved_are_found_at_who_inserts_or_removes() {
    let rows = |stack: &str| found(&every_second_ms(stack).capture);
    let erases = "sim::Take;std::vector<int, std::allocator<int> >::erase;memmove";
    assert_eq!(rows(erases), ["elements-moved-each-step | sim::Take | 50"]);
    assert_eq!(rows("sim::Take;alloc::vec::Vec<T,A>::remove;memmove"), ["elements-moved-each-step | sim::Take | 50"]);
    let pops = "sim::Take;list_pop [lib:/lib/libpython3.11.so];list_ass_slice [lib:/lib/libpython3.11.so];memmove";
    assert_eq!(rows(pops), ["elements-moved-each-step | sim::Take | 50"]);
    let inserts = "sim::Take;std::vector<int>::insert;std::move_backward<int*, int*>;memmove";
    assert_eq!(rows(inserts), ["elements-moved-each-step | sim::Take | 50"]);
    let appends = "sim::Take;std::vector<int>::emplace_back<int>;std::vector<int>::_M_realloc_insert<int>;memmove";
    for none in ["sim::Take;memmove", appends, "sim::Take;std::vector<int>::insert;memmove"] {
        let copies = rows(none);
        assert!(copies.iter().all(|row| !row.starts_with("elements")), "{none}: {copies:?}");
    }
}

#[test]
fn numpy_that_hardly_computes_is_called_for_small_arrays() {
    let numpy = "[lib:/np/_multiarray_umath.cpython-311-x86_64-linux-gnu.so]";
    let calls = |computing: u64| {
        let of_ms = |ms: u64| match (ms % 10 < 4, ms % 4 < computing) {
            (true, true) => format!("main;sim::Steer;ufunc_generic_fastcall {numpy};DOUBLE_add {numpy}"),
            (true, false) => format!("main;sim::Steer;ufunc_generic_fastcall {numpy};resolve_descriptors {numpy}"),
            _ => "main;sim::Move".to_owned(),
        };
        of_kind(&sampled(lived(&["main"], WHOLE_NS), of_ms), "small-arrays")
    };
    assert_eq!(calls(0), ["small-arrays-each-step | sim::Steer | 40"]);
    assert!(calls(4).is_empty(), "large arrays are arithmetic");
}

#[test]
fn arrays_of_long_lists_are_distinguished_from_those_of_a_few_numbers() {
    let numpy = "[lib:/np/_multiarray_umath.cpython-311-x86_64-linux-gnu.so]";
    let elements = format!("main;sim::Steer;array_array {numpy};PyArray_AssignFromCache_Recursive {numpy}");
    let around = format!("main;sim::Steer;array_array {numpy};PyArray_NewFromDescr_int {numpy}");
    let back = format!("main;sim::Steer;array_tolist {numpy};recursive_tolist {numpy};PyArray_Scalar {numpy}");
    let of = |of_elements: &str, others: &str| {
        let of_ms = |ms: u64| match (ms % 10 < 4, ms.is_multiple_of(4)) {
            (true, true) => others.to_owned(),
            (true, false) => of_elements.to_owned(),
            _ => "main;sim::Move".to_owned(),
        };
        let capture = sampled(lived(&["main"], WHOLE_NS), of_ms);
        [of_kind(&capture, "small-arrays"), of_kind(&capture, "lists-to-arrays")].concat()
    };
    assert_eq!(of(&elements, &elements), ["lists-to-arrays-each-step | sim::Steer | 40"]);
    assert_eq!(of(&back, &back), ["lists-to-arrays-each-step | sim::Steer | 40"]);
    assert_eq!(of(&elements, &around), ["small-arrays-each-step | sim::Steer | 40"], "a list of a few");
    assert_eq!(of(&around, &around), ["small-arrays-each-step | sim::Steer | 40"]);
}

#[test]
fn a_parser_of_the_programs_own_is_found_at_who_keeps_what_it_parsed() {
    let of_ms = |ms: u64| {
        let value = "main;sim::Run;sim::Reload;sim::Value;sim::Value";
        match ms % 10 {
            0 => format!("{value};core::num::dec2flt::dec2flt"),
            1 | 2 => format!("{value};alloc::vec::Vec<T,A>::push;malloc"),
            3 => value.to_owned(),
            4 => "main;sim::Run;sim::Reload;free".to_owned(),
            _ => "main;sim::Run;sim::Move".to_owned(),
        }
    };
    let parses = sampled(lived(&["main"], WHOLE_NS), of_ms);
    assert_eq!(of_kind(&parses, "text-parsed-each-step"), ["text-parsed-each-step | sim::Reload | 50"]);
    let of_c = |ms: u64| of_ms(ms).replace("core::num::dec2flt::dec2flt", "__GI_____strtod_l_internal");
    let of_c = sampled(lived(&["main"], WHOLE_NS), of_c);
    assert_eq!(of_kind(&of_c, "text-parsed-each-step"), ["text-parsed-each-step | sim::Reload | 50"]);
    let number_only = every_second_ms("sim::Value;strtod");
    assert!(of_kind(&number_only, "text-parsed").is_empty(), "nothing is built");
    let beside = |ms: u64| match ms % 10 {
        5.. => "main;sim::Run;std::ostream::_M_insert<double>".to_owned(),
        _ => of_ms(ms),
    };
    let beside = sampled(lived(&["main"], WHOLE_NS), beside);
    assert_eq!(
        of_kind(&beside, "text-parsed-each-step"),
        ["text-parsed-each-step | sim::Reload | 50"],
        "the caller writes text"
    );
}

#[test]
fn what_the_recorders_probes_cost_is_no_time_of_the_program() {
    let of = |trap: &'static str| {
        let stack = move |ms: u64| match ms % 4 {
            0 => "main;sim::Run;sim::Order;__cxa_throw",
            1 => "main;sim::Run;sim::Move",
            _ => trap,
        };
        let drawing = sampled(lived(&["main"], WHOLE_NS), move |ms| stack(ms).to_owned());
        of_kind(&drawing, "exceptions")
    };
    let probe = "main;sim::Run;sim::Move;asm_exc_int3 [kernel];irqentry_exit_to_user_mode [kernel]";
    assert_eq!(of(probe), ["exceptions-each-step | sim::Order | 50"]);
    assert_eq!(of("main;sim::Run;sim::Move;read;vfs_read [kernel]"), ["exceptions-each-step | sim::Order | 25"]);
}
