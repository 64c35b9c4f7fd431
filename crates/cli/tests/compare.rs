//! `stepscope compare` and `flamegraph --diff` as a user meets them: files and captures in, verdicts and refusals out.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use roxmltree::Document;
use serde_json::Value;
use stepscope_model::{Build, Capture, CaptureInfo, Event, Machine, Phase, Sample, Step, disk};

use common::{json, row, stepscope, text};

/// Collapsed stacks that count samples.
fn folded(folder: &Path, name: &str, stacks: &[(&str, u64)]) {
    let lines: Vec<String> = stacks.iter().map(|(stack, count)| format!("main;run;{stack} {count}")).collect();
    fs::write(folder.join(name), lines.join("\n")).unwrap();
}

/// What a run is like.
#[derive(Clone)]
struct Recording {
    scenario: &'static str,
    variant: &'static str,
    host: &'static str,
    build: &'static str,
    /// Samples of 100 µs in each of 50 steps of 1 ms, by function.
    samples: Vec<(&'static str, u64)>,
}

impl Recording {
    fn new(variant: &'static str, f: u64) -> Self {
        let samples = vec![("sim::f", f), ("sim::g", 5)];
        Self { scenario: "shapes", variant, host: "lab", build: "release", samples }
    }

    /// Runs as `ab` lays them out, of which every other has a sample of `f` more in one step.
    fn write(&self, runs: &Path, count: usize) {
        for run in 0..count {
            let folder = runs.join(format!("{}/{}/{:02}/steady", self.scenario, self.variant, run + 1));
            disk::write(&self.capture(run as u64), &folder).unwrap();
        }
    }

    fn capture(&self, run: u64) -> Capture {
        let machine = Machine { host: self.host.into(), cpu: "EPYC".into(), cores: 2, ..Machine::default() };
        let mut capture = Capture::of(CaptureInfo {
            scenario: Some(self.scenario.to_owned()),
            variant: Some(self.variant.to_owned()),
            phase: Some(Phase::Steady),
            repetition: Some(run as u32 + 1),
            machine: Some(machine),
            build: Some(Build { kind: Some(self.build.into()), told_by: None, revision: None }),
            start_ns: Some(0),
            end_ns: Some(50_000_000),
            ..CaptureInfo::default()
        });
        let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
        let thread = capture.add_thread_named("main");
        let caller = capture.intern_function("sim::run");
        for step in 0..50 {
            let start_ns = step * 1_000_000;
            capture.steps.push(Step { index: step, start_ns, end_ns: start_ns + 1_000_000, sim_time_ns: None, thread });
            for (function, samples) in &self.samples {
                let leaf = capture.intern_function(function);
                let stack = capture.intern_stack([caller, leaf]);
                let more = u64::from(*function == "sim::f" && step % 7 == run % 7);
                for sample in 0..samples + more {
                    let time_ns = Some(start_ns + sample * 1_000);
                    capture.samples.push(Sample { time_ns, thread, cpu: None, stack, event, weight: 100_000 });
                }
            }
        }
        capture
    }
}

fn tables(output: &std::process::Output) -> Vec<Value> {
    json(output)["tables"].as_array().unwrap().clone()
}

fn table<'a>(tables: &'a [Value], name: &str) -> &'a Value {
    tables.iter().find(|table| table["table"] == name).unwrap_or_else(|| panic!("no table {name}"))
}

fn notes(table: &Value) -> String {
    table["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

fn refused(folder: &Path, arguments: &[&str], why: &str) {
    let output = stepscope(folder, arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(why), "{said}");
}

#[test]
fn counts_of_equal_durations_are_judged_as_one_run_each_and_labelled() {
    let folder = tempfile::tempdir().unwrap();
    folded(folder.path(), "base.folded", &[("small", 401), ("half", 675), ("grown", 29), ("g", 50_000)]);
    folded(folder.path(), "cand.folded", &[("small", 380), ("half", 300), ("grown", 120), ("g", 50_000)]);
    let arguments =
        ["compare", "base.folded", "cand.folded", "--unit", "samples", "--assume-duration", "30s", "--format", "json"];
    let tables = tables(&stepscope(folder.path(), &arguments));
    let functions = table(&tables, "compare_self");
    let verdicts = ["small", "half", "grown", "g"].map(|name| row(functions, name)["verdict"].as_str().unwrap());
    assert_eq!(verdicts, ["inconclusive", "changed", "changed", "equivalent"]);
    assert!(notes(table(&tables, "compare_runs")).contains("Sampling noise only"));
    assert_eq!(row(functions, "half")["before_count"], 675);
}

#[test]
fn without_durations_there_are_shares_and_no_tests() {
    let folder = tempfile::tempdir().unwrap();
    folded(folder.path(), "base.folded", &[("f", 675), ("g", 325)]);
    folded(folder.path(), "cand.folded", &[("f", 300), ("g", 325)]);
    let tables = tables(&stepscope(folder.path(), &["compare", "base.folded", "cand.folded", "--format", "json"]));
    let f = row(table(&tables, "compare_self"), "f");
    assert_eq!((&f["before"], &f["after"]), (&Value::from(67.5), &Value::from(48.0)));
    assert_eq!((&f["p"], &f["verdict"]), (&Value::Null, &Value::from("inconclusive")));
    assert!(notes(table(&tables, "compare_runs")).contains("--assume-duration"));
}

/// The public samples' weights are periods that were added up before we saw them.
#[test]
fn weights_without_counts_are_refused_a_test_with_the_reason() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    let samples = std::env::var_os("STEPSCOPE_SAMPLES").map_or(beside, PathBuf::from).join("gazebo");
    if !samples.is_dir() {
        println!(
            "skipped: weights_without_counts_are_refused_a_test_with_the_reason: the study's samples are not beside the checkout"
        );
        return;
    }
    let arguments = [
        "compare",
        "3k_shapes_static.steady.cpu.folded",
        "jetty.steady.cpu.folded",
        "--owned",
        "gz::*",
        "--format",
        "json",
    ];
    let tables = tables(&stepscope(&samples, &arguments));
    let rows = table(&tables, "compare_attributed")["rows"].as_array().unwrap();
    assert!(rows.len() > 10 && rows.iter().all(|row| row["p"].is_null() && row["q"].is_null()));
    let shares: f64 = rows.iter().filter_map(|row| row["before"].as_f64()).sum();
    assert!((50.0..=100.0).contains(&shares), "{shares}");
}

#[test]
fn a_run_with_two_variants_is_two_sides_and_a_page_and_a_picture_show_them() {
    let folder = tempfile::tempdir().unwrap();
    Recording::new("before", 4).write(&folder.path().join("run"), 6);
    Recording::new("after", 2).write(&folder.path().join("run"), 6);
    let arguments = ["compare", "run/shapes/before", "run/shapes/after", "--format", "json", "-o", "page.html"];
    let found = tables(&stepscope(folder.path(), &arguments));
    let f = row(table(&found, "compare_self"), "sim::f").clone();
    assert_eq!((&f["verdict"], &f["presence"]), (&Value::from("changed"), &Value::from("both")));
    let g = row(table(&found, "compare_self"), "sim::g");
    assert_eq!((&g["before"], &g["verdict"]), (&Value::from(500_000.0), &Value::from("equivalent")));
    let title = table(&found, "compare_runs")["title"].as_str().unwrap();
    assert_eq!(title, "Whole run: after against before");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("after against before") && page.contains("compare-runs"));

    let svg = stepscope(folder.path(), &["flamegraph", "--diff", "run/shapes/before", "run/shapes/after"]);
    let svg = text(&svg.stdout);
    let document = Document::parse(&svg).unwrap();
    assert_eq!(document.root_element().tag_name().name(), "svg");
    assert!(svg.contains("absolute") && svg.contains("On-CPU time per step: after against before"));
    let normalised =
        stepscope(folder.path(), &["flamegraph", "--diff", "--normalised", "run/shapes/before", "run/shapes/after"]);
    assert!(text(&normalised.stdout).contains("normalised to equal totals"));
}

#[test]
fn three_sides_are_a_chain() {
    let folder = tempfile::tempdir().unwrap();
    for (variant, f) in [("original", 6), ("cached", 4), ("tuned", 2)] {
        Recording::new(variant, f).write(&folder.path().join("runs"), 5);
    }
    let sides = ["runs/shapes/original", "runs/shapes/cached", "runs/shapes/tuned"];
    let found = tables(&stepscope(folder.path(), &[&["compare"], &sides[..], &["--format", "json"]].concat()));
    let chain = table(&found, "compare_chain")["rows"].as_array().unwrap();
    let cpu: Vec<(&str, &str)> = chain
        .iter()
        .filter(|row| row["metric"] == "cpu")
        .map(|row| (row["variant"].as_str().unwrap(), row["verdict_to_previous"].as_str().unwrap_or("-")))
        .collect();
    assert_eq!(cpu, [("original", "-"), ("cached", "changed"), ("tuned", "changed")]);
    let functions = table(&found, "compare_self")["rows"].as_array().unwrap();
    let pairs: std::collections::BTreeSet<&str> =
        functions.iter().map(|row| row["variants"].as_str().unwrap()).collect();
    assert_eq!(pairs.into_iter().collect::<Vec<_>>(), ["cached -> tuned", "original -> cached", "original -> tuned"]);
    refused(folder.path(), &[&["flamegraph", "--diff"], &sides[..]].concat(), "one picture shows one pair");
}

#[test]
fn other_machines_builds_and_scenarios_are_compared_only_on_request_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    Recording::new("before", 4).write(folder.path(), 4);
    let after = Recording::new("after", 4);
    Recording { host: "other", ..after.clone() }.write(&folder.path().join("host"), 4);
    Recording { build: "debug", ..after.clone() }.write(&folder.path().join("build"), 4);
    Recording { scenario: "marina", ..after }.write(&folder.path().join("scenario"), 4);
    for (other, flag) in [
        ("host/shapes/after", "--across-machines"),
        ("build/shapes/after", "--across-builds"),
        ("scenario/marina/after", "--across-scenarios"),
    ] {
        refused(folder.path(), &["compare", "shapes/before", other], flag);
        refused(folder.path(), &["flamegraph", "--diff", "shapes/before", other], flag);
        let found = tables(&stepscope(folder.path(), &["compare", "shapes/before", other, flag, "--format", "json"]));
        assert!(notes(table(&found, "compare_runs")).contains("Compared as you asked"), "{flag}");
        let svg = stepscope(folder.path(), &["flamegraph", "--diff", "shapes/before", other, flag]);
        assert!(text(&svg.stdout).contains("Compared as you asked"), "{flag}");
    }
}

#[test]
fn wrong_input_says_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    folded(path, "base.folded", &[("f", 10)]);
    refused(path, &["compare", "base.folded"], "nothing to compare with");
    refused(path, &["compare", "base.folded", "absent"], "absent: no such capture");
    refused(path, &["compare", "base.folded", "no-*"], "no-*: nothing matches this pattern");
    refused(path, &["compare", "base.folded", "base.folded", "--rename", "a = b"], "write `OLD => NEW`");
    refused(path, &["flamegraph", "base.folded", "base.folded"], "--diff");
    Recording::new("before", 1).write(&path.join("run"), 1);
    Recording::new("after", 1).write(&path.join("run"), 1);
    refused(path, &["compare", "run", "run"], "choose one with --variant");
    refused(path, &["compare", "run", "run", "--variant", "other"], "not every side has captures of the variant other");
}

#[test]
fn patterns_and_lists_name_sets_of_captures() {
    let folder = tempfile::tempdir().unwrap();
    Recording::new("before", 4).write(folder.path(), 5);
    Recording::new("after", 2).write(folder.path(), 5);
    let runs = |sides: [&str; 2]| {
        let found = tables(&stepscope(folder.path(), &["compare", sides[0], sides[1], "--format", "json"]));
        let cpu = table(&found, "compare_runs")["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["metric"] == "cpu")
            .unwrap()
            .clone();
        (cpu["before_runs"].as_u64().unwrap(), cpu["after_runs"].as_u64().unwrap())
    };
    assert_eq!(runs(["shapes/before/0[1-3]/steady", "shapes/after/*/steady"]), (3, 5));
    assert_eq!(runs(["shapes/before/01/steady,shapes/before/02/steady", "shapes/after"]), (2, 5));
}
