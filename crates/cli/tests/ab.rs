//! `stepscope ab` as a user runs it: variants in turns, compared; interrupted; refused.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde_json::Value;

use common::{command, json, simulator, stepscope, text};

/// The simulator with and without a pathology, as short as it can be.
fn lab(folder: &Path, simulator: &Path, duration_s: &str) {
    let simulator = simulator.display();
    let lab = format!(
        r#"
        [project]
        owned = {{ namespaces = ["ground::"] }}
        [record]
        steady = {{ warmup_s = 0.1, duration_s = {duration_s} }}
        [scenario.shapes]
        command = ["{simulator}", "run", "--n", "1500", "--static", "--slow", "full-scan,pose-map"]
        step = "marks"
        [variant.before]
        [variant.after]
        command = ["{simulator}", "run", "--n", "1500", "--static"]
        [ab]
        runs = 4
        [compare]
        tolerance = "10%"
        "#
    );
    fs::write(folder.join("stepscope.toml"), lab).unwrap();
}

/// The tables of a comparison, by name.
fn table<'a>(printed: &'a Value, name: &str) -> &'a Value {
    let tables = printed["tables"].as_array().unwrap();
    tables.iter().find(|table| table["table"] == name).unwrap_or_else(|| panic!("no table {name}"))
}

fn run_json(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("stepscope-runs/latest/run.json")).unwrap()).unwrap()
}

#[test]
fn two_variants_are_run_alternately_and_changes_are_shown() {
    let Some(simulator) = simulator("two_variants_are_run_alternately_and_changes_are_shown") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    lab(at, &simulator, "0.6");
    let arguments = ["ab", "--seed", "7", "--no-wait", "--keep-disturbed", "--format", "json"];
    let compared = stepscope(at, &arguments);
    let reported = text(&compared.stderr);
    assert!(reported.contains("after against before: 1 scenario x 2 variants x 4 runs, at least 6 s"), "{reported}");
    assert!(reported.contains("[8/8] shapes/") && reported.contains("next: "), "{reported}");
    let printed = json(&compared);

    let whole = table(&printed, "compare_runs");
    let cpu = whole["rows"].as_array().unwrap().iter().find(|row| row["metric"] == "cpu").unwrap();
    assert_eq!((cpu["before_runs"].as_u64(), cpu["after_runs"].as_u64()), (Some(4), Some(4)));
    assert_eq!(cpu["unit"], "ns/step");
    assert!(cpu["ratio"].as_f64().unwrap() < 0.9, "the pathology is gone: {cpu}");
    let functions = table(&printed, "compare_attributed")["rows"].as_array().unwrap();
    let owned = functions.iter().filter(|row| row["owned"] == true).count();
    assert!(owned > 0, "ownership is that of the run's lab file");

    let run = run_json(at);
    assert_eq!((&run["ab"]["seed"], &run["ab"]["runs"]), (&Value::from(7), &Value::from(4)));
    let order = run["ab"]["order"]["shapes"].as_str().unwrap();
    let letter = |trial: &Value| if trial["variant"] == "before" { 'A' } else { 'B' };
    assert_eq!(run["trials"].as_array().unwrap().iter().map(letter).collect::<String>(), order);
    for trial in run["trials"].as_array().unwrap() {
        assert!(trial["during"]["others_percent"].is_number() && trial["before"]["load_milli"].is_number(), "{trial}");
    }
    let again = json(&stepscope(at, &["compare", "stepscope-runs/latest", "--tolerance", "10", "--format", "json"]));
    assert_eq!(table(&again, "compare_runs")["rows"], whole["rows"], "the same captures give the same figures");
}

#[test]
fn ctrl_c_keeps_whole_rounds_and_compares_what_there_is() {
    let Some(simulator) = simulator("ctrl_c_keeps_whole_rounds_and_compares_what_there_is") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    lab(at, &simulator, "0.4");
    let mut child = command(at, &["ab", "--no-wait", "--format", "json", "--runs", "50"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.by_ref().find(|line| line.starts_with("[4/100]")).expect("a second round begins");
    // SAFETY: a signal is sent to a child that was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    // Both streams are read at once: neither may fill its pipe.
    let rest = std::thread::spawn(move || lines.collect::<Vec<String>>());
    let output = child.wait_with_output().unwrap();
    let rest = rest.join().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &table(&printed, "compare_runs")["rows"][0];
    assert_eq!((first["before_runs"].as_u64(), first["after_runs"].as_u64()), (Some(1), Some(1)), "{rest:?}");
}

#[test]
fn variants_that_cannot_be_compared_are_refused_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let refused = |lab: &str, arguments: &[&str]| {
        fs::write(at.join("stepscope.toml"), lab).unwrap();
        let output = stepscope(at, &[&["ab"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(!at.join("stepscope-runs").exists());
        text(&output.stderr)
    };
    const ONE: &str = "scenario.a = { command = ['true'] }\n";
    assert!(refused(ONE, &[]).contains("no variants to compare"));
    let two = format!("{ONE}variant.x = {{ cwd = 'x' }}\nvariant.y = {{ cwd = 'y' }}\n");
    assert!(refused(&two, &[]).contains("--candidate NAME"));
    assert!(refused(&two, &["--candidate", "z"]).contains("no variant `z`"));
    assert!(refused(&two, &["--candidate", "x", "--baseline", "x"]).contains("both baseline and candidate"));
    assert!(refused(&two, &["--candidate", "x", "--runs", "0"]).contains("1..=1000"));
    assert!(refused(&two, &["--candidate", "x", "stepscope.toml", "b"]).contains("no scenario `b`"));
    assert!(refused(&format!("{two}ab.runs = 'many'"), &[]).contains("`runs` in [ab] must be an integer"));
}
