use std::collections::BTreeMap;

use stepscope_model::{Capture, Event, Phase, Table};

use super::*;
use crate::analyses::{capacity, cores};
use crate::columns::read::cells;
use crate::drawn::{Drawing, owned_by};
use crate::query::functions::Functions;
use crate::query::select::Selection;

const NOISE: [f64; 3] = [1.0, 1.01, 0.99];

/// Samples of each function in a step, enough for a law.
const SAMPLES: u64 = 200;

/// Ten steps on one thread. `costs` are those of one step, by function; a step simulates 5 ms.
fn capture(axes: &[(&str, f64)], run: usize, costs: &[(&str, f64)]) -> Capture {
    let costs: Vec<(&str, u64)> =
        costs.iter().map(|(name, ns)| (*name, (ns * NOISE[run] / SAMPLES as f64) as u64 * SAMPLES)).collect();
    let step: u64 = costs.iter().map(|(_, ns)| ns).sum();
    let mut text = String::new();
    for index in 0..10 {
        for (offset, (name, ns)) in costs.iter().enumerate() {
            for sample in 0..SAMPLES {
                let at = index * step + offset as u64 + sample;
                text += &format!("@{at} main;sim::Step;{name} {}\n", ns / SAMPLES);
            }
        }
    }
    let drawing = Drawing::new().window(0..10 * step).steps("main", 0, step, 10, 5_000_000);
    let mut capture = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture;
    let variant: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    let info = &mut capture.info;
    (info.scenario, info.phase) = (Some("crowd".to_owned()), Some(Phase::Steady));
    info.variant = Some(variant.join("+"));
    info.sweep = axes.iter().map(|(axis, value)| ((*axis).to_owned(), *value)).collect::<BTreeMap<_, _>>();
    capture
}

/// A sweep in which pairs cost n^2 ns and a clock costs 1 ms.
fn sizes() -> Vec<Capture> {
    let costs = |n: f64| [("sim::Pairs", n * n), ("sim::Clock", 1e6)];
    let at = |n: f64| (0..3).map(move |run| capture(&[("n", n)], run, &costs(n)));
    [500.0, 1_000.0, 2_000.0, 4_000.0].into_iter().flat_map(at).collect()
}

fn tables(captures: &[Capture], make: impl FnOnce(&[Selection<'_>]) -> Vec<Table>) -> Vec<Table> {
    let owned = owned_by(&["sim::"]);
    let functions: Vec<Functions> = captures.iter().map(|capture| Functions::of(capture, &owned)).collect();
    let selections: Vec<Selection<'_>> =
        captures.iter().zip(&functions).map(|(capture, functions)| Selection::all(capture, functions)).collect();
    make(&selections)
}

#[test]
fn each_function_of_a_sweep_has_its_law() {
    let table = tables(&sizes(), |selections| vec![table(selections, &Options::default())]).remove(0);
    let rows = cells(&table, &["kind", "name", "law"]);
    for row in ["function | sim::Pairs | n^2", "function | sim::Clock | constant", "inclusive | sim::Step | n^2"] {
        assert!(rows.iter().any(|found| found == row), "{row} in {rows:?}");
    }
    let place = rows.iter().position(|row| row == "function | sim::Pairs | n^2").unwrap();
    let number = |column: &str| match table.get(place, column) {
        Some(stepscope_model::Value::Float(value)) => *value,
        other => panic!("{column}: {other:?}"),
    };
    assert!((number("share") - 1600.0 / 17.0).abs() < 0.01);
    assert!(number("exponent_low") < 2.0 && 2.0 < number("exponent_high"));
    assert!((number("at_2x") / 64e6 - 1.0).abs() < 0.02 && number("at_10x_high") > 1.6e9);
}

#[test]
fn the_capacity_is_where_a_step_takes_as_long_as_it_simulates() {
    let found = tables(&sizes(), |selections| capacity::tables(selections, &capacity::Options::default()));
    assert_eq!(cells(&found[0], &["limit", "decides", "without"]), ["real time | sim::Pairs | -"]);
    let Some(stepscope_model::Value::Float(n)) = found[0].get(0, "capacity") else { panic!("a capacity") };
    assert!((n / 2_000.0 - 1.0).abs() < 0.02, "{n}");
    assert_eq!(cells(&found[1], &["bottleneck", "function", "law"]), ["1 | sim::Pairs | n^2"]);
    assert_eq!(cells(&found[2], &["function"]), ["sim::Clock", "sim::Pairs"]);
}

#[test]
fn the_picture_of_capacity_has_the_step_the_limit_and_the_step_without_bottlenecks() {
    let found =
        tables(&sizes(), |selections| capacity::Capacities::of(selections, &capacity::Options::default()).pictures);
    let lines = found[0].columns.iter().filter_map(|column| column.name.strip_prefix("expected."));
    assert_eq!(lines.collect::<Vec<_>>(), ["step", "without sim::Pairs", "limit"]);
    let last = |column: &str| {
        let mut values = (0..found[0].rows.len()).filter_map(|row| match found[0].get(row, column) {
            Some(stepscope_model::Value::Float(value)) => Some(*value),
            _ => None,
        });
        values.next_back().unwrap()
    };
    assert!((last("expected.limit") / 5e6 - 1.0).abs() < 1e-6);
    assert!((last("expected.without sim::Pairs") / 1e6 - 1.0).abs() < 0.02);
    assert!((last("measured.step") / 17e6 - 1.0).abs() < 0.02);
}

#[test]
fn a_capture_outside_of_a_sweep_has_no_growth_and_a_note() {
    let mut captures = sizes();
    captures.iter_mut().for_each(|capture| capture.info.sweep.clear());
    let table = tables(&captures, |selections| vec![table(selections, &Options::default())]).remove(0);
    assert_eq!(table.rows.len(), 0);
    assert!(table.notes[0].to_string().contains("stepscope sweep"), "{:?}", table.notes);
}

#[test]
fn a_function_without_samples_in_some_runs_is_joined_by_size() {
    let costs = |n: f64, run: usize| {
        let rare = if n < 1_000.0 && run > 0 { 0.0 } else { n * 1e4 };
        [("sim::Rare", rare), ("sim::Clock", 1e6)]
    };
    let at = |n: f64| (0..3).map(move |run| capture(&[("n", n)], run, &costs(n, run)));
    let captures: Vec<Capture> = [500.0, 1_000.0, 2_000.0, 4_000.0].into_iter().flat_map(at).collect();
    let table = tables(&captures, |selections| vec![table(selections, &Options::default())]).remove(0);
    let rows = cells(&table, &["kind", "name", "sizes"]);
    assert!(rows.contains(&"function | sim::Rare | 4".to_owned()), "{rows:?}");
}

#[test]
fn the_serial_part_of_a_step_is_found_and_its_function_named() {
    let costs = |cores: f64| [("sim::Serial", 3e6), ("sim::Parallel", 7e6 / cores)];
    let at = |cores: f64| (0..3).map(move |run| capture(&[("n", 500.0), ("cores", cores)], run, &costs(cores)));
    let captures: Vec<Capture> = [1.0, 2.0, 4.0].into_iter().flat_map(at).collect();
    let found = tables(&captures, cores::tables);
    let Some(stepscope_model::Value::Float(serial)) = found[0].get(0, "serial") else { panic!("a serial part") };
    assert!((serial - 30.0).abs() < 2.0, "{serial}");
    assert_eq!(cells(&found[1], &["function", "fewest_cost"])[0], "sim::Serial | 3000000");
}

#[test]
fn an_exponent_that_changed_between_two_sweeps_is_found_and_others_are_not() {
    let linear = |n: f64| [("sim::Pairs", 1e3 * n), ("sim::Clock", 1e6)];
    let at = |n: f64| (0..3).map(move |run| capture(&[("n", n)], run, &linear(n)));
    let after: Vec<Capture> = [500.0, 1_000.0, 2_000.0, 4_000.0].into_iter().flat_map(at).collect();
    let owned = owned_by(&["sim::"]);
    let functions: Vec<Functions> = after.iter().map(|capture| Functions::of(capture, &owned)).collect();
    let later: Vec<Selection<'_>> =
        after.iter().zip(&functions).map(|(capture, functions)| Selection::all(capture, functions)).collect();
    let table = tables(&sizes(), |earlier| vec![change(earlier, &later, &Options::default())]).remove(0);
    let rows = cells(&table, &["kind", "name", "law_before", "law_after", "verdict"]);
    assert!(rows.contains(&"function | sim::Pairs | n^2 | n | changed".to_owned()), "{rows:?}");
    assert!(rows.contains(&"function | sim::Clock | constant | constant | same law".to_owned()), "{rows:?}");
}
