use stepscope_model::{Capture, Event, EventCount, Table};

use super::*;
use crate::columns::read::cells;
use crate::drawn::{self, Drawing};

fn shown(capture: &Capture, table: fn(&Selection<'_>) -> Table) -> Table {
    drawn::selected(capture, &[], table)
}

fn count(event: &str, unit: &str, count: u64, running: u64) -> EventCount {
    EventCount {
        start_ns: None,
        end_ns: None,
        thread: None,
        place: None,
        event: event.into(),
        unit: unit.into(),
        count: Some(count),
        enabled_ns: Some(1_000),
        running_ns: Some(running),
    }
}

#[test]
fn counts_give_rates_and_an_assessment() {
    let mut capture = Capture::default();
    capture.event_counts = vec![
        count("cycles", "cycles", 1_000, 1_000),
        count("instructions", "instructions", 270, 500),
        count("LLC-loads", "references", 40, 1_000),
        count("LLC-load-misses", "misses", 10, 1_000),
        count("branches", "branches", 50, 1_000),
        count("branch-misses", "misses", 1, 1_000),
    ];
    let table = shown(&capture, by_core);
    let columns = ["of", "ipc", "mpki", "miss_rate", "branch_miss_rate", "counted", "assessment"];
    assert_eq!(cells(&table, &columns), ["all | 0.27 | 37.037037 | 25 | 2 | 50 | memory-bound: many cache misses"]);
    let note = table.notes[0].to_string();
    assert!(note.starts_with("Events took turns") && note.contains("a counter for 50"), "{note}");
}

#[test]
fn kinds_of_cores_are_rows_and_misses_are_set_against_their_own_accesses() {
    let mut capture = Capture::default();
    capture.event_counts = vec![
        count("cpu_core/cycles/", "cycles", 100, 1_000),
        count("cpu_core/instructions/", "instructions", 300, 1_000),
        count("cpu_core/cache-misses/", "misses", 3, 1_000),
        count("cpu_core/LLC-loads/", "references", 10, 1_000),
        count("cpu_core/LLC-load-misses/", "misses", 1, 1_000),
        count("cpu_atom/cycles/u", "cycles", 100, 1_000),
        count("cpu_atom/instructions/u", "instructions", 50, 1_000),
    ];
    let table = shown(&capture, by_core);
    assert_eq!(
        cells(&table, &["of", "ipc", "misses", "miss_rate", "assessment"]),
        [
            "all | 1.75 | 3 | 10 | moderate IPC",
            "cpu_atom | 0.5 | - | - | low IPC, but few last-level misses: dependent work, or other caches",
            "cpu_core | 3 | 3 | 10 | memory-bound: many cache misses",
        ]
    );
}

#[test]
fn top_down_names_what_bounds_the_cpu() {
    let mut capture = Capture::default();
    let slots = |event: &str, part: u64| count(event, "slots", part, 1_000);
    capture.event_counts = vec![
        slots("slots", 100),
        slots("topdown-retiring", 20),
        slots("topdown-bad-spec", 5),
        slots("topdown-fe-bound", 15),
        slots("topdown-be-bound", 60),
    ];
    let columns = ["retiring", "bad_speculation", "frontend", "backend", "assessment"];
    assert_eq!(
        cells(&shown(&capture, by_core), &columns),
        ["20 | 5 | 15 | 60 | back end: waits for memory or execution units"]
    );
}

#[test]
fn functions_are_judged_by_their_share_of_misses_over_their_share_of_cost() {
    let capture = Drawing::new()
        .folded(
            Event { counts: stepscope_model::Counts::Weight, ..Event::sampled("cycles", "cycles") },
            "main;chase 2000\nmain;stream 5000\nmain;add 2960\nmain;rare 40",
        )
        .folded(
            Event { counts: stepscope_model::Counts::Weight, ..Event::sampled("cache-misses", "misses") },
            "main;chase 800\nmain;stream 150\nmain;add 2\nmain;rare 48",
        )
        .capture;
    let table = shown(&capture, by_function);
    let rows = cells(&table, &["function", "verdict", "ratio", "miss_share", "cost_share"]);
    assert_eq!(
        rows,
        [
            "chase | hostile | 4 | 80 | 20",
            "stream | friendly | 0.3 | 15 | 50",
            // Below 0.5 % of the cost.
            "rare | - | 12 | 4.8 | 0.4",
            "add | friendly | 0.006757 | 0.2 | 29.6",
        ]
    );
    let low = table.get(0, "ratio_low").unwrap();
    assert!(matches!(low, stepscope_model::Value::Float(low) if *low > 3.6 && *low < 4.0), "{low:?}");
}

#[test]
fn few_samples_are_inconclusive() {
    let counted =
        |name: &str, unit: &str| Event { counts: stepscope_model::Counts::Weight, ..Event::sampled(name, unit) };
    let capture = Drawing::new()
        .folded(counted("cycles", "cycles"), "main;a 10\nmain;b 10")
        .folded(counted("cache-misses", "misses"), "main;a 4\nmain;b 1")
        .capture;
    let rows = cells(&shown(&capture, by_function), &["function", "verdict", "ratio"]);
    assert_eq!(rows, ["a | inconclusive | 1.6", "b | inconclusive | 0.4"]);
}

#[test]
fn a_simulation_is_exact_is_named_and_has_instructions_as_cost() {
    let capture = Drawing::new()
        .folded(Event::weighed("Ir", "instructions"), "main;chase 100\nmain;add 900")
        .folded(Event::weighed("DLmr", "misses"), "main;chase 9\nmain;add 1")
        .capture;
    let table = shown(&capture, by_function);
    assert_eq!(
        cells(&table, &["function", "verdict", "ratio", "ratio_low"]),
        ["chase | hostile | 9 | -", "add | friendly | 0.111111 | -"]
    );
    assert!(table.notes[0].to_string().starts_with("Simulation: valgrind counted"), "{:?}", table.notes);
    let rates = shown(&capture, by_core);
    assert_eq!(cells(&rates, &["ipc", "mpki", "assessment"]), ["- | 10 | memory-bound: many cache misses"]);
}

#[test]
fn misses_alone_say_how_to_pair_them() {
    let capture = Drawing::new().folded(Event::sampled("cache-misses", "misses"), "main;a 4").capture;
    let table = shown(&capture, by_function);
    assert!(table.rows.is_empty());
    assert!(table.notes[0].to_string().contains("--scenario"), "{:?}", table.notes);
}
