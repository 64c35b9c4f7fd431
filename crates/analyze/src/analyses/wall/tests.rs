use super::*;
use stepscope_model::Capture;

use crate::columns::read::cells;
use crate::drawn::{self, Drawing};
use crate::query::select::{Filter, TimeRange};

const LOCK: &str = "main;gz::World::Step;gz::Queue::Push;pthread_mutex_lock;__lll_lock_wait";
const BARRIER: &str = "clone;gz::Worker::Run;gz::Barrier::Wait;pthread_cond_wait";

/// main runs 600 of 1000 ns, worker waits at the barrier and is preempted once.
fn two_threads() -> Capture {
    Drawing::new()
        .window(0..1_000)
        .lived("main", 0..1_000, 600)
        .lived("worker", 100..1_000, 200)
        .blocked_then_runnable("main", 100..300, 50, LOCK)
        .blocked("main", 400..500, "main;gz::Run;usleep;clock_nanosleep")
        .preempted("main", 700..800, "main;gz::World::Step")
        .blocked("worker", 100..700, BARRIER)
        .blocked("worker", 900..1_000, "")
        .capture
}

#[test]
fn running_runnable_and_blocked_add_up_to_the_lifetime() {
    let table = drawn::selected(&two_threads(), &["gz::"], |selection| table(selection, Grouping::Thread));
    let columns = [
        "thread",
        "lifetime",
        "running",
        "runnable",
        "blocked",
        "lock",
        "condition",
        "sleep",
        "no_stack",
        "unaccounted",
    ];
    assert_eq!(
        cells(&table, &columns),
        [
            "main | 1000 | 600 | 150 | 250 | 150 | 0 | 100 | 0 | 0",
            "worker | 900 | 200 | 0 | 700 | 0 | 600 | 0 | 100 | 0",
        ]
    );
    assert_eq!(cells(&table, &["running_share", "runnable_share", "blocked_share"])[0], "60 | 15 | 25");
}

#[test]
fn classes_with_a_tenth_of_the_blocked_time_stay_on_narrow_terminals() {
    drawn::selected(&two_threads(), &["gz::"], |selection| {
        for table in [table(selection, Grouping::Thread), callers(selection)] {
            let importance = |name: &str| {
                let column = table.columns.iter().find(|column| column.name == name);
                column.unwrap_or_else(|| panic!("no column {name}")).importance
            };
            assert_eq!(["lock", "condition", "sleep"].map(importance), [Importance::Essential; 3], "{}", table.name);
            assert_eq!(["file", "network", "other"].map(importance), [Importance::Detail; 3], "{}", table.name);
        }
    });
    assert_eq!(
        [1, 9, 10].map(|part| importance(part, 100)),
        [Importance::Normal, Importance::Normal, Importance::Essential]
    );
}

/// Erratum 11.
#[test]
fn blocked_time_is_attributed_to_the_nearest_owned_caller() {
    drawn::selected(&two_threads(), &["gz::"], |selection| {
        assert_eq!(
            cells(&table(selection, Grouping::Thread), &["blocked_at", "blocked_at_share"]),
            ["gz::Queue::Push | 60", "gz::Barrier::Wait | 85.714286",]
        );
        assert_eq!(
            cells(
                &callers(selection),
                &["function", "owned", "blocked", "waits", "longest", "threads", "lock", "sleep"]
            ),
            [
                "gz::Barrier::Wait | true | 600 | 1 | 600 | 1 | 0 | 0",
                "gz::Queue::Push | true | 150 | 1 | 150 | 1 | 150 | 0",
                "(no stack) | - | 100 | 1 | 100 | 1 | 0 | 0",
                "gz::Run | true | 100 | 1 | 100 | 1 | 0 | 100",
            ]
        );
    });
}

#[test]
fn where_steps_are_known_blocked_time_is_per_step_too() {
    let capture = Drawing::new()
        .window(0..1_000)
        .lived("main", 0..1_000, None)
        .steps("main", 200, 100, 4, 1)
        .blocked_then_runnable("main", 100..320, 20, LOCK)
        .blocked("main", 500..540, "")
        .capture;
    assert_eq!(
        cells(&drawn::selected(&capture, &["gz::"], callers), &["function", "blocked", "share", "per_step", "waits"]),
        ["gz::Queue::Push | 200 | 83.333333 | 25 | 1", "(no stack) | 40 | 16.666667 | 10 | 1"]
    );
}

#[test]
fn stacks_without_an_owned_caller_are_a_row_of_their_own() {
    let table = drawn::selected(&two_threads(), &["gz::Queue::"], callers);
    assert_eq!(
        cells(&table, &["function", "blocked"]),
        ["(no owned caller) | 700", "gz::Queue::Push | 150", "(no stack) | 100",]
    );
}

#[test]
fn without_ownership_the_programs_own_code_has_the_blocked_time() {
    let table = drawn::selected(&two_threads(), &[], callers);
    assert_eq!(cells(&table, &["function", "owned"])[..2], ["gz::Barrier::Wait | -", "gz::Queue::Push | -"]);
}

#[test]
fn missing_stacks_and_wake_ups_have_notes() {
    let table = drawn::selected(&two_threads(), &["gz::"], |selection| table(selection, Grouping::Thread));
    assert_eq!(
        table.notes,
        [
            "1 of 2 blocked waits have no wake-up; their blocked time includes the time runnable.",
            "10.53 % of blocked time (100 ns) has no stack, so its cause and caller are unknown.",
        ]
    );
}

#[test]
fn lost_switches_are_unaccounted_for_and_not_hidden() {
    let capture = Drawing::new().lived("main", 0..1_000, 500).blocked("main", 0..300, LOCK).capture;
    let table = drawn::selected(&capture, &["gz::"], |selection| table(selection, Grouping::Thread));
    assert_eq!(cells(&table, &["running", "blocked", "unaccounted"]), ["500 | 300 | 200"]);
    assert!(
        table.notes.iter().any(|note| note.starts_with("More than 1 % of the lifetime is unaccounted for in 1 row")),
        "{:?}",
        table.notes
    );
}

#[test]
fn without_an_exact_cpu_time_running_is_what_is_left() {
    let capture = Drawing::new().lived("main", 0..1_000, None).blocked("main", 0..300, LOCK).capture;
    let table = drawn::selected(&capture, &["gz::"], |selection| table(selection, Grouping::Thread));
    assert_eq!(cells(&table, &["running", "blocked", "unaccounted"]), ["700 | 300 | 0"]);
}

#[test]
fn a_part_of_the_time_adds_up_to_that_part_of_the_lifetime() {
    let filter = Filter { time: Some(TimeRange { from_ns: 200, to_ns: Some(750) }), ..Filter::default() };
    let table = drawn::filtered(&two_threads(), &["gz::"], &filter, |selection| table(selection, Grouping::Thread));
    assert_eq!(
        cells(&table, &["thread", "lifetime", "running", "runnable", "blocked", "unaccounted"]),
        ["main | 550 | 300 | 100 | 150 | 0", "worker | 550 | 50 | 0 | 500 | 0",]
    );
}

#[test]
fn threads_of_one_name_add_up() {
    let mut capture = two_threads();
    capture.threads[1].name = "main".to_owned();
    let table = drawn::selected(&capture, &["gz::"], |selection| table(selection, Grouping::ThreadName));
    assert_eq!(
        cells(&table, &["thread", "threads", "lifetime", "running", "blocked"]),
        ["main | 2 | 1900 | 800 | 950"]
    );
}

#[test]
fn without_switch_records_the_table_says_so() {
    let capture = Drawing::new().lived("main", 0..10, None).capture;
    let table = drawn::selected(&capture, &[], |selection| table(selection, Grouping::Thread));
    assert_eq!(
        cells(&table, &["lifetime", "running", "runnable", "blocked", "lock", "unaccounted", "running_share"]),
        ["10 | - | - | - | - | - | -"]
    );
    assert!(table.notes[0].starts_with("Context switches were not recorded"));
}

#[test]
fn blocking_that_began_before_the_recording_has_no_stack() {
    let capture = Drawing::new()
        .window(100..5_000_000_100)
        .lived("waiter", 100..5_000_000_100, 0)
        .blocked("waiter", 100..4_000_000_100, "")
        .blocked("waiter", 4_000_000_100..5_000_000_100, "")
        .capture;
    let expected = "100.00 % of blocked time (5.00 s) has no stack, so its cause and caller are unknown; \
         4.00 s of that began before the recording.";
    assert_eq!(drawn::selected(&capture, &[], callers).notes, [expected]);
}
