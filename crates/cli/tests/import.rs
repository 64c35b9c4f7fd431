//! Imported files that are evidence of one scenario.

mod common;

use std::fs;
use std::path::Path;

use serde_json::Value;

use common::{json, row, stepscope, text};

/// Imports a file as a phase of the scenario `shapes`.
fn import(folder: &Path, file: &str, phase: &str, options: &[&str]) -> std::process::Output {
    let named = ["import", file, "--scenario", "shapes", "--phase", phase, "--variant", "before", "--force"];
    stepscope(folder, &[&named[..], options].concat())
}

#[test]
fn cpu_and_cache_files_of_one_scenario_pair_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // `gz::Rare` has 0.0003 % of the CPU, and a third of the misses.
    fs::write(at.join("cpu.folded"), "main;gz::Each 200000\nmain;gz::Write 799997\nmain;gz::Rare 3\n").unwrap();
    fs::write(at.join("misses.folded"), "main;gz::Each 400\nmain;gz::Write 200\nmain;gz::Rare 300\n").unwrap();
    let imported = import(at, "cpu.folded", "steady", &["--dimension", "cpu"]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let imported = import(at, "misses.folded", "steady", &["--dimension", "cache"]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let rank = || -> Value {
        let options = ["--by", "score", "--owned", "gz::*", "--format", "json"];
        json(&stepscope(at, &[&["rank", "cpu.capture", "misses.capture"], &options[..]].concat()))
    };
    let table = rank();
    let evidence = |name: &str| row(&table, name)["evidence"].as_str().unwrap().to_owned();
    assert_eq!(evidence("gz::Each"), "cpu 40/40, cache 20/20");
    assert_eq!(evidence("gz::Write"), "cpu 40/40, cache 0/20");
    assert_eq!(evidence("gz::Rare"), "cpu 0/40, cache 0/20", "below the cost floor");
    // Misses of another phase are kept apart, with a word.
    assert!(import(at, "misses.folded", "loading", &["--dimension", "cache"]).status.success());
    let table = rank();
    assert_eq!(row(&table, "gz::Each")["evidence"], "cpu 40/40");
    assert!(table["notes"].to_string().contains("1 capture of the loading phase"), "{}", table["notes"]);
}

#[test]
fn a_dimension_that_the_file_contradicts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.folded"), "main;a 2\n").unwrap();
    let output = import(folder.path(), "cpu.folded", "steady", &["--unit", "cycles", "--dimension", "cache"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("its samples count cycles, which is no evidence of `cache`"), "{message}");
    let counts =
        "3.70,msec,task-clock,3704195,100.00,,\n8000,,cycles,3704195,100.00,,\n2000,,instructions,3704195,100.00,,\n";
    fs::write(folder.path().join("counts.csv"), counts).unwrap();
    let output = import(folder.path(), "counts.csv", "steady", &[]);
    assert!(text(&output.stderr).contains("3 counts; next: stepscope show counts.capture --view cache"));
    let table =
        json(&stepscope(folder.path(), &["show", "counts.capture", "--view", "cache", "--format", "json-compact"]));
    assert!(table.to_string().contains("low IPC"), "{table}");
}
