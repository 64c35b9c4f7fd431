//! The public Gazebo samples against truth that was computed independently: every number of every table.

mod support;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;
use stepscope_analyze::functions::Functions;
use stepscope_analyze::hotspots;
use stepscope_analyze::ownership::Ownership;
use stepscope_analyze::rank;
use stepscope_analyze::select::Selection;
use stepscope_analyze::threads;
use stepscope_model::{Capture, Event, Phase, Table, Value};

/// Sample file, its truth, the unit of its weights.
const FILES: [(&str, &str, &str); 5] = [
    ("expected/micro.folded", "micro", "cycles"),
    ("3k_shapes_static.steady.cpu.folded", "runtime__3k_shapes_static", "cycles"),
    ("3k_shapes_static.steady.cache-misses.folded", "cache__3k_static_rt_cachemiss", "misses"),
    ("jetty.steady.cpu.folded", "runtime__jetty_headless", "cycles"),
    ("sensors_nonrendering.loading.cpu.folded", "loading__sensors_nonrendering_loading", "cycles"),
];

/// Runs `check` on each sample with its truth; the namespaces of the study are owned.
fn on_each_sample(test: &str, check: impl Fn(&Selection<'_>, &Json)) {
    let Some(samples) = support::samples(test) else { return };
    let folder = samples.join("gazebo");
    for (file, truth, unit) in FILES {
        let name = if unit == "misses" { "cache-misses" } else { "cycles" };
        let capture = support::folded(&folder.join(file), Event::weighed(name, unit));
        let truth = read_json(&folder.join(format!("expected/{truth}.json")));
        with_study_ownership(&capture, |selection| check(selection, &truth));
    }
}

fn read_json(path: &Path) -> Json {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("truth is JSON")
}

fn with_study_ownership(capture: &Capture, check: impl FnOnce(&Selection<'_>)) {
    let ownership = Ownership { namespaces: vec!["gz::".into(), "stbi_*".into()], ..Ownership::default() };
    let functions = Functions::of(capture, &ownership.compile().unwrap());
    check(&Selection::all(capture, &functions));
}

fn text<'a>(table: &'a Table, row: usize, column: &str) -> &'a str {
    match table.get(row, column) {
        Some(Value::Text(text)) => text,
        other => panic!("{column} of row {row} is {other:?}"),
    }
}

fn int(table: &Table, row: usize, column: &str) -> i128 {
    match table.get(row, column) {
        Some(Value::Int(value)) => *value,
        other => panic!("{column} of row {row} is {other:?}"),
    }
}

fn float(table: &Table, row: usize, column: &str) -> f64 {
    match table.get(row, column) {
        Some(Value::Float(value)) => *value,
        other => panic!("{column} of row {row} is {other:?}"),
    }
}

fn weight(truth: &Json) -> i128 {
    i128::from(truth.as_u64().unwrap_or_else(|| panic!("{truth} is a weight")))
}

#[track_caller]
fn assert_percent(found: f64, truth: &Json, of: &str) {
    let truth = truth.as_f64().unwrap();
    assert!((found - truth).abs() < 1e-6, "{of}: {found} % where {truth} % is true");
}

/// The first rows of a table sorted by a weight are those of the truth. Where two functions tie, the truth may name either
/// first, so weights are compared by rank and names by weight.
fn assert_top(table: &Table, column: &str, truth: &Json) {
    let share = format!("{column}_share");
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for row in 0..table.rows.len() {
        by_name.insert(text(table, row, "function"), row);
    }
    for (rank, truth) in truth.as_array().unwrap().iter().enumerate() {
        let name = truth["function"].as_str().unwrap();
        let row = *by_name.get(name).unwrap_or_else(|| panic!("no row for {name}"));
        assert_eq!(int(table, row, column), weight(&truth["weight"]), "{column} of {name}");
        assert_eq!(int(table, rank, column), weight(&truth["weight"]), "{column} at rank {rank}");
        assert_percent(float(table, row, &share), &truth["pct"], name);
    }
}

fn by(column: &str, selection: &Selection<'_>) -> Table {
    let mut table = hotspots::table(selection);
    let place = table.column(column).unwrap();
    table.rows.sort_by_key(|row| match (&row[place], &row[0]) {
        (Value::Int(weight), Value::Text(name)) => (Reverse(Some(*weight)), name.clone()),
        (_, name) => (Reverse(None), format!("{name:?}")),
    });
    table
}

#[test]
fn totals_and_distinct_functions_are_exact() {
    on_each_sample("totals_and_distinct_functions_are_exact", |selection, truth| {
        let hotspots = hotspots::Hotspots::of(selection);
        assert_eq!(hotspots.total.weight as i128, weight(&truth["total"]));
        let functions = hotspots.costs.iter().filter(|cost| cost.function.is_some()).count();
        assert_eq!(functions as i128, weight(&truth["distinct_functions"]));
        let no_stack = hotspots.costs.iter().find(|cost| cost.function.is_none());
        let no_stack = no_stack.map_or(0, |cost| cost.own.weight as i128);
        assert_eq!(no_stack, weight(&truth["comm_only_weight"]));
        assert_eq!(selection.samples().count() as i128, weight(&truth["lines"]));
    });
}

#[test]
fn self_weights_are_exact() {
    on_each_sample("self_weights_are_exact", |selection, truth| {
        assert_top(&hotspots::table(selection), "self", &truth["self_top"]);
    });
}

#[test]
fn inclusive_weights_are_exact_and_count_recursion_once() {
    on_each_sample("inclusive_weights_are_exact_and_count_recursion_once", |selection, truth| {
        let table = by("inclusive", selection);
        // A comm-only line holds no function, so the truth has no such row.
        let without: Vec<_> = table.rows.iter().filter(|row| row[0] != Value::from("(no stack)")).cloned().collect();
        let table = Table { rows: without, ..table };
        assert_top(&table, "inclusive", &truth["inclusive_top"]);
        for recursive in truth["inclusive_if_recursion_double_counted_top"].as_array().unwrap() {
            let name = recursive["function"].as_str().unwrap();
            let row = (0..table.rows.len()).find(|&row| text(&table, row, "function") == name).unwrap();
            assert_eq!(int(&table, row, "inclusive"), weight(&recursive["correct"]), "{name}");
        }
    });
}

#[test]
fn owned_functions_and_the_weight_under_them_are_exact() {
    on_each_sample("owned_functions_and_the_weight_under_them_are_exact", |selection, truth| {
        let table = by("inclusive", selection);
        let owned: Vec<_> = table.rows.iter().filter(|row| row[2] == Value::Bool(true)).cloned().collect();
        let table = Table { rows: owned, ..table };
        assert_top(&table, "inclusive", &truth["inclusive_owned_anchored"]);
        let at_least_half_a_percent =
            (0..table.rows.len()).filter(|&row| float(&table, row, "inclusive_share") >= 0.5).count();
        assert_eq!(at_least_half_a_percent as i128, weight(&truth["n_owned_ge_0p5"]["anchored"]));
        let hotspots = hotspots::Hotspots::of(selection);
        assert_eq!(hotspots.under_owned.weight as i128, weight(&truth["under_owned"]["anchored"]["weight"]));
        let share = hotspots.under_owned.percent_of(hotspots.total).unwrap();
        assert_percent(share, &truth["under_owned"]["anchored"]["pct"], "under owned code");
    });
}

#[test]
fn attributed_weights_are_exact() {
    on_each_sample("attributed_weights_are_exact", |selection, truth| {
        assert_top(&by("attributed", selection), "attributed", &truth["attributed_top"]["anchored"]);
    });
}

#[test]
fn edges_from_owned_callers_to_leaves_are_exact() {
    on_each_sample("edges_from_owned_callers_to_leaves_are_exact", |selection, truth| {
        let table = hotspots::edges(selection);
        // The ground truth lists the cost of callees, without the function's self cost.
        let calls = |row: &&Vec<Value>| row[0] != row[2];
        let table = Table { rows: table.rows.iter().filter(calls).cloned().collect(), ..table };
        for (rank, truth) in truth["edges_top"]["anchored"].as_array().unwrap().iter().enumerate() {
            let (caller, leaf) = (truth["caller"].as_str().unwrap(), truth["leaf"].as_str().unwrap());
            let row = (0..table.rows.len())
                .find(|&row| text(&table, row, "caller") == caller && text(&table, row, "leaf") == leaf)
                .unwrap_or_else(|| panic!("no edge from {caller} to {leaf}"));
            assert_eq!(int(&table, row, "weight"), weight(&truth["weight"]), "{caller} -> {leaf}");
            assert_eq!(int(&table, rank, "weight"), weight(&truth["weight"]), "edge at rank {rank}");
            assert_percent(float(&table, row, "share"), &truth["pct"], caller);
        }
    });
}

#[test]
fn code_without_a_name_is_counted_exactly() {
    on_each_sample("code_without_a_name_is_counted_exactly", |selection, truth| {
        let table = hotspots::table(selection);
        let row = (0..table.rows.len()).find(|&row| text(&table, row, "function") == "[unknown]");
        let share = |column: &str| row.map_or(0.0, |row| float(&table, row, column));
        assert_percent(share("self_share"), &truth["unknown"]["self_pct"], "self of [unknown]");
        assert_percent(share("inclusive_share"), &truth["unknown"]["incl_pct"], "inclusive of [unknown]");
    });
}

#[test]
fn threads_by_name_are_exact() {
    on_each_sample("threads_by_name_are_exact", |selection, truth| {
        let table = threads::by_name(selection);
        let truth = truth["comm"].as_array().unwrap();
        assert_eq!(table.rows.len(), truth.len());
        for (row, truth) in truth.iter().enumerate() {
            assert_eq!(text(&table, row, "thread"), truth["comm"].as_str().unwrap());
            assert_eq!(int(&table, row, "weight"), weight(&truth["weight"]));
            assert_percent(float(&table, row, "share"), &truth["pct"], "share of a thread");
            assert_eq!(text(&table, row, "top_function"), truth["top_self"].as_str().unwrap());
            assert_percent(float(&table, row, "top_share"), &truth["top_self_pct_of_comm"], "top function");
        }
    });
}

/// The study ranked `Write` above the scan, because it had guessed who called the hash table.
#[test]
fn the_entity_scan_ranks_above_write() {
    let Some(samples) = support::samples("the_entity_scan_ranks_above_write") else { return };
    let mut capture =
        support::folded(&samples.join("gazebo/3k_shapes_static.steady.cpu.folded"), Event::weighed("cycles", "cycles"));
    let mut misses = support::folded(
        &samples.join("gazebo/3k_shapes_static.steady.cache-misses.folded"),
        Event::weighed("cache-misses", "misses"),
    );
    for capture in [&mut capture, &mut misses] {
        capture.info.scenario = Some("3k_shapes_static".to_owned());
        capture.info.phase = Some(Phase::Steady);
    }
    with_study_ownership(&capture, |cpu| {
        with_study_ownership(&misses, |cache| {
            let selections = [cpu.clone(), cache.clone()];
            for by in [rank::Order::Cost, rank::Order::Score] {
                let table = rank::table(&selections, &rank::Options { by, ..rank::Options::default() });
                let place = |name: &str| {
                    let row = (0..table.rows.len()).find(|&row| text(&table, row, "function") == name);
                    row.unwrap_or_else(|| panic!("{name} is ranked"))
                };
                let scan = "gz::sim::v11::EntityComponentManager::EntityMatches";
                let write = "gz::physics::dartsim::SimulationFeatures::Write";
                let vertices = "gz::math::v10::graph::Graph<unsigned long, bool, gz::math::v10::graph::DirectedEdge<bool> >::Vertices";
                assert!(place(scan) < place(write), "by {by:?}");
                assert!(place(vertices) < place(write), "by {by:?}");
                // Twenty-eight points of CPU with nineteen of the misses: friendly to the cache, as the study found.
                let ratio = float(&table, place(scan), "cache_ratio");
                assert!((ratio - 18.626047 / 28.144773).abs() < 1e-6, "{ratio}");
                assert_eq!(int(&table, place(scan), "score"), 40);
                assert_eq!(int(&table, place(scan), "score_max"), 60);
            }
        });
    });
}

#[test]
fn the_ranked_costs_of_a_scenario_add_up_to_the_cost_under_owned_code() {
    on_each_sample("the_ranked_costs_of_a_scenario_add_up_to_the_cost_under_owned_code", |selection, truth| {
        let table = rank::table(std::slice::from_ref(selection), &rank::Options::default());
        let sum: f64 = (0..table.rows.len()).map(|row| float(&table, row, "cost")).sum();
        // Misses alone are no cost: they rank nothing.
        let role = stepscope_analyze::events::role(selection.event().unwrap());
        if role == stepscope_analyze::events::Role::Cpu {
            assert_percent(sum, &truth["under_owned"]["anchored"]["pct"], "the sum of costs");
        } else {
            assert!(table.rows.is_empty());
        }
    });
}
