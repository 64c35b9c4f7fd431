//! What stepscope 0.1.0 wrote, when everything on disk had schema 1, is read with the same figures.
//!
//! `project/` holds captures (recorded, imported), a run of two scenarios, an A/B run, the history of both, and the raw
//! log of a recorder that was killed. `figures.json` holds what that version showed of them: commands in their order,
//! and of each table the numbers and the names of functions, threads, scenarios and metrics. That version wrote them. A
//! change of a definition may change figures; a change of the code may not. Definitions that changed since: methods of Rust's
//! primitive types are run-time code, `inclusive_share` of a rank is the largest over scenarios, and the peak memory of a
//! run is at least that of each process.

#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;

use serde_json::Value;

use common::{json, stepscope, text};

/// Copies a folder, as recovering a capture writes into it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Equal, except for the last digits of sums that may be added up in another order.
fn same(shown: &Value, expected: &Value) -> bool {
    if shown == expected {
        return true;
    }
    let (Some(shown), Some(expected)) = (shown.as_f64(), expected.as_f64()) else { return false };
    (shown - expected).abs() <= 1e-9 * expected.abs()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Columns that have another name since: table, old name, new name.
const RENAMED: [(&str, &str, &str); 9] = [
    ("longest_steps", "waits", "waits_at_blocked"),
    ("critical_path_parts", "steps", "in_steps"),
    ("critical_path_threads", "last", "arrived_last"),
    ("barriers", "per_step", "barriers_per_step"),
    ("barriers", "last", "last_thread"),
    ("barriers", "waited", "waiting_time"),
    ("barrier_slack", "last", "arrived_last"),
    ("barrier_slack", "waited", "waits"),
    ("explain_paths", "path", "call_path"),
];

fn renamed<'a>(table: &Value, column: &'a str) -> &'a str {
    RENAMED.iter().find(|(of, old, _)| table == *of && *old == column).map_or(column, |(.., new)| new)
}

/// What `shown` has otherwise than the expected tables. These list the first rows, each with some of its columns.
fn differences(command: &str, shown: &Value, expected: &Value) -> Vec<String> {
    let shown_tables = match shown.get("tables") {
        Some(tables) => list(tables),
        None => std::slice::from_ref(shown),
    };
    let mut differences = Vec::new();
    for expected in list(expected) {
        let name = &expected["table"];
        let Some(table) = shown_tables.iter().find(|table| table["table"] == *name) else {
            differences.push(format!("{command}: {name} is missing"));
            continue;
        };
        let (rows, expected_rows) = (list(&table["rows"]), list(&expected["rows"]));
        if rows.len() != expected_rows.len() {
            differences.push(format!("{command}: {name} has {} rows instead of {}", rows.len(), expected_rows.len()));
        }
        for (at, (row, expected)) in rows.iter().zip(expected_rows).enumerate() {
            for (column, expected) in expected.as_object().unwrap() {
                let value = &row[renamed(name, column)];
                if !same(value, expected) {
                    differences.push(format!("{command}: {name}, row {at}, {column}: {value} instead of {expected}"));
                }
            }
        }
    }
    differences
}

#[test]
fn captures_and_runs_of_schema_1_are_read() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema_1");
    let folder = tempfile::tempdir().unwrap();
    copy(&here.join("project"), folder.path());
    let cases: Value = serde_json::from_slice(&fs::read(here.join("figures.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for case in list(&cases) {
        let mut command: Vec<&str> = list(&case["command"]).iter().map(|word| word.as_str().unwrap()).collect();
        let line = command.join(" ");
        if list(&case["tables"]).is_empty() {
            let output = stepscope(folder.path(), &command);
            assert!(output.status.success(), "{line}: {}", text(&output.stderr));
            continue;
        }
        command.extend(["--format", "json"]);
        wrong.extend(differences(&line, &json(&stepscope(folder.path(), &command)), &case["tables"]));
    }
    assert!(wrong.is_empty(), "{} figures differ:\n{}", wrong.len(), wrong.join("\n"));
}
