//! The kinds that need a sweep.

use std::fmt::Write as _;

use stepscope_model::{Capture, Event, Phase, Table, Value};

use super::tests::table_of;
use crate::columns::read::cells;
use crate::drawn::Drawing;

const STEPS: u64 = 20;
const SAMPLES: u64 = 10;
const SIZES: [f64; 4] = [500.0, 1_000.0, 2_000.0, 4_000.0];

/// A run of 20 equal steps at size `n`: the stack and time of each part of a step. The second run takes 2 % longer.
fn run(n: f64, number: usize, parts: &[(&str, f64)]) -> Capture {
    let slower = [1.0, 1.02][number];
    let parts: Vec<(&str, u64)> =
        parts.iter().map(|(stack, ns)| (*stack, (ns * slower / SAMPLES as f64) as u64)).collect();
    let step: u64 = parts.iter().map(|(_, ns)| ns * SAMPLES).sum();
    let mut text = String::new();
    for start in (0..STEPS).map(|index| index * step) {
        let mut time = start;
        for (stack, ns) in &parts {
            for _ in 0..SAMPLES {
                let _ = writeln!(text, "@{time} main;sim::Step;{stack} {ns}");
                time += ns;
            }
        }
    }
    let length = STEPS * step;
    let mut capture = Drawing::new()
        .window(0..length)
        .lived("main", 0..length, length)
        .steps("main", 0, step, STEPS, 5_000_000)
        .folded(Event::sampled("cpu-clock", "ns"), &text)
        .capture;
    let info = &mut capture.info;
    (info.scenario, info.phase) = (Some("crowd".to_owned()), Some(Phase::Steady));
    info.variant = Some(format!("n={n}"));
    info.sweep = [("n".to_owned(), n)].into();
    capture
}

fn findings(parts: impl Fn(f64) -> Vec<(&'static str, f64)>) -> Table {
    let at = |n: f64| [0, 1].map(|number| run(n, number, &parts(n)));
    let captures: Vec<Capture> = SIZES.into_iter().flat_map(at).collect();
    table_of(&captures)
}

fn number(table: &Table, column: &str) -> f64 {
    match table.get(0, column) {
        Some(Value::Float(value)) => *value,
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn a_search_that_grows_faster_than_all_other_work_is_found_at_the_largest_size() {
    let table = findings(|n| vec![("sim::Group;sim::Find", n * n), ("sim::Move", 500.0 * n)]);
    assert_eq!(
        cells(&table, &["kind", "function", "scenario", "captures", "confidence"]),
        ["superlinear-lookup | sim::Find | crowd/n=4000 | 2 of 2 | strong"]
    );
    // 16 ms of 18 ms, of which 2 ms stay: the cost of an element at the smallest size.
    assert!((number(&table, "gain_share") - 100.0 * 14.0 / 18.0).abs() < 1.0, "{}", number(&table, "gain_share"));
    // 64 ms at twice the size, of which 4 ms stay.
    assert!((number(&table, "gain_at_2x") / number(&table, "gain") - 60.0 / 14.0).abs() < 0.3);
}

#[test]
fn searches_below_one_caller_are_one_finding() {
    let table = findings(|n| {
        vec![
            ("sim::Send;sim::Delay", 0.4 * n * n),
            ("sim::Send;sim::Loss", 0.6 * n * n),
            ("sim::Send", 10.0 * n),
            ("sim::Move", 500.0 * n),
        ]
    });
    assert_eq!(cells(&table, &["kind", "function"]), ["superlinear-lookup | sim::Send"]);
    let apart =
        findings(|n| vec![("sim::Send;sim::Delay", n * n), ("sim::Sense;sim::Rays", n * n), ("sim::Move", 900.0 * n)]);
    assert_eq!(apart.rows.len(), 2, "{:?}", cells(&apart, &["kind", "function"]));
}

#[test]
fn work_that_grows_as_all_other_work_does_is_no_search() {
    let table = findings(|n| vec![("sim::Meet", n * n), ("sim::Touch", 0.7 * n * n)]);
    assert!(cells(&table, &["kind"]).is_empty(), "{:?}", cells(&table, &["kind", "finding"]));
}

#[test]
fn a_scan_of_all_elements_is_found_if_no_other_work_grows() {
    let table = findings(|n| {
        vec![("sim::Views;sim::Each;sim::Matches", 150.0 * n), ("sim::Views;sim::Each", 50.0 * n), ("sim::Move", 1e6)]
    });
    assert_eq!(cells(&table, &["kind", "function"]), ["full-scan-each-step | sim::Each"]);
    assert!((number(&table, "gain_share") - 100.0 * 0.8 / 1.8).abs() < 1.0);
}

#[test]
fn a_scan_is_found_among_growing_work_if_what_it_calls_does_not_grow() {
    let table = findings(|n| vec![("sim::Visit", 200.0 * n), ("sim::Visit;sim::Act", 2e5), ("sim::Move", 500.0 * n)]);
    assert_eq!(cells(&table, &["kind", "function"]), ["full-scan-each-step | sim::Visit"]);
    assert!((number(&table, "gain_share") - 100.0 * 0.8 / 3.0).abs() < 1.0);
}

#[test]
fn work_for_each_element_is_no_scan_if_it_costs_much_or_all_work_is_such() {
    let expensive = findings(|n| vec![("sim::Solve", 5_000.0 * n), ("sim::Other", 1e6)]);
    let all = findings(|n| vec![("sim::Move", 300.0 * n), ("sim::Collide", 600.0 * n)]);
    let rebuilt = findings(|n| {
        vec![("sim::Poses;std::map<int, int>::insert;operator new;malloc", 200.0 * n), ("sim::Other", 1e6)]
    });
    for table in [&expensive, &all, &rebuilt] {
        let kinds = cells(table, &["kind"]);
        assert!(!kinds.iter().any(|kind| kind == "full-scan-each-step"), "{kinds:?}");
    }
}

#[test]
fn without_a_sweep_a_note_says_what_would_show_growth() {
    let mut capture = run(4_000.0, 0, &[("sim::Find", 1e6)]);
    capture.info.sweep.clear();
    let table = table_of(&[capture]);
    assert!(table.rows.is_empty());
    assert!(table.notes.iter().any(|note| note.contains("`stepscope sweep`")), "{:?}", table.notes);
}
