//! Allocations and system calls as evidence: what the proving ground does wrong is first in its view, and findings are sure.

mod common;

use std::path::Path;

use serde_json::Value;
use stepscope_model::{Capture, Dimension, DimensionStatus, disk};

use common::{json, simulator, stepscope, text};

/// A recording of the simulator; `None` if something that it needs is missing.
struct Recorded {
    folder: tempfile::TempDir,
    capture: Capture,
}

impl Recorded {
    fn of(test: &str, with: &str, arguments: &[&str]) -> Option<Self> {
        let ground = simulator(test)?;
        let folder = tempfile::tempdir().unwrap();
        let ground = ground.to_str().unwrap();
        let record = ["record", "--with", with, "-o", "run", "--", ground, "run", "--seconds", "1.5"];
        let output = stepscope(folder.path(), &[&record[..], arguments].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let capture = disk::read(&folder.path().join("run")).unwrap();
        for dimension in [Dimension::Heap, Dimension::Syscalls] {
            if let Some(DimensionStatus::Missing { reason, .. }) = capture.info.dimensions.get(&dimension) {
                println!("skipped: {test}: {reason}");
                return None;
            }
        }
        Some(Self { folder, capture })
    }

    fn run(&self, arguments: &[&str]) -> Value {
        let owned = ["--owned", "ground::*", "--format", "json"];
        json(&stepscope(self.folder.path(), &[arguments, &owned[..]].concat()))
    }

    /// The first row of a table of a view.
    fn first(&self, table: &str, view: &[&str]) -> Value {
        let shown = self.run(&[&["show", "run", "--view"], view].concat());
        let tables = shown["tables"].as_array().unwrap();
        let table = tables.iter().find(|one| one["table"] == table).unwrap_or_else(|| panic!("no {table}"));
        table["rows"][0].clone()
    }

    /// The first finding.
    fn finding(&self) -> Value {
        let found = self.run(&["diagnose", "run"]);
        found["rows"][0].clone()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn is_sure(finding: &Value, kind: &str) {
    assert_eq!((&finding["kind"], &finding["confidence"]), (&kind.into(), &"strong".into()), "{finding}");
    assert_eq!(finding["confirm"], Value::Null, "what would confirm it was recorded: {finding}");
}

#[test]
fn strings_made_for_look_ups_are_first_among_temporary_allocations() {
    let test = "strings_made_for_look_ups";
    let world = ["--world", "stats", "--n", "2000", "--slow", "string-temp"];
    let Some(recorded) = Recorded::of(test, "heap", &world) else { return };
    let guilty = "ground::stats::queue_disc::QueueDisc::drop_before_enqueue_by_string";
    let first = recorded.first("heap", &["heap", "--sort", "temporary"]);
    assert_eq!(first["function"], guilty, "{first}");
    assert!(first["temporary_share"].as_f64().unwrap() > 90.0, "{first}");
    assert!(first["calls_per_step"].as_f64().unwrap() > 100.0, "a short recording has rates, too: {first}");
    let finding = recorded.finding();
    assert_eq!(finding["function"], guilty, "{finding}");
    is_sure(&finding, "allocations-each-step");
    let explained = recorded.run(&["explain", "drop_before_enqueue_by_string", "run"]);
    let tables: Vec<&str> =
        explained["tables"].as_array().unwrap().iter().filter_map(|table| table["table"].as_str()).collect();
    assert!(["explain_costs", "explain_steps", "explain_heap"].iter().all(|one| tables.contains(one)), "{tables:?}");
}

#[test]
fn a_tree_that_is_built_in_each_step_is_first_among_allocations() {
    let test = "a_tree_that_is_built_in_each_step";
    let Some(recorded) = Recorded::of(test, "heap", &["--n", "1000", "--slow", "full-scan"]) else { return };
    let first = recorded.first("heap", &["heap", "--sort", "calls_per_step"]);
    assert_eq!(first["function"], "ground::ecs::EntityGraph::vertices", "{first}");
}

#[test]
fn a_file_that_is_opened_for_each_record_is_first_among_files() {
    let test = "a_file_that_is_opened_for_each_record";
    let world = ["--world", "stats", "--n", "200", "--slow", "reopen"];
    let Some(recorded) = Recorded::of(test, "syscalls", &world) else { return };
    let first = recorded.first("syscall_files", &["syscalls"]);
    let sequence = first["sequence"].as_str().unwrap();
    // Debug builds ask for the descriptor's flags before they close it.
    let calls: Vec<&str> = sequence.split(" × ").next().unwrap().split('-').filter(|call| *call != "fcntl").collect();
    assert_eq!(calls, ["openat", "lseek", "write", "close"], "{first}");
    let finding = recorded.finding();
    assert_eq!(finding["function"], "ground::stats::record_files::append_record", "{finding}");
    is_sure(&finding, "file-opened-each-time");
}

#[test]
fn a_table_that_is_read_for_each_process_is_first_among_files() {
    let test = "a_table_that_is_read_for_each_process";
    let world = ["--world", "monitor", "--n", "10", "--slow", "proc-per-pid"];
    let Some(recorded) = Recorded::of(test, "syscalls", &world) else { return };
    let first = recorded.first("syscall_files", &["syscalls"]);
    assert!(first["file"].as_str().unwrap().starts_with("/proc/[pid]/net/"), "{first}");
    assert!(first["files"].as_u64().unwrap() >= 10, "{first}");
    let finding = recorded.finding();
    assert_eq!(finding["function"], "ground::monitor::connections::read_file", "{finding}");
    is_sure(&finding, "kernel-files-read-again");
}

/// Calls of one thread do not overlap, and a simulation that does the same in each step allocates the same.
#[test]
fn all_dimensions_at_once_agree_with_each_other() {
    let test = "all_dimensions_at_once";
    let world = ["--n", "500", "--robots", "20", "--slow", "full-scan"];
    let Some(recorded) = Recorded::of(test, "heap,syscalls", &world) else { return };
    let capture = &recorded.capture;
    let mut in_calls = vec![0_u64; capture.threads.len()];
    for calls in &capture.system_calls {
        in_calls[calls.thread.index()] += calls.total_ns;
    }
    for (thread, ns) in capture.threads.iter().zip(in_calls) {
        let start = thread.start_ns.or(capture.info.start_ns).unwrap_or(0);
        let life = thread.end_ns.or(capture.info.end_ns).unwrap_or(u64::MAX).saturating_sub(start);
        assert!(ns <= life + life / 100 + 5_000_000, "{}: {ns} ns in calls, lived {life} ns", thread.name);
    }
    let rate = |steps: &str| {
        let shown = stepscope(
            recorded.path(),
            &["show", "run", "--view", "heap", "--owned", "ground::*", "--format", "json", "--steps", steps],
        );
        json(&shown)["tables"][0]["rows"][0]["calls_per_step"].as_f64()
    };
    let count = capture.steps.len();
    let [early, late] = [rate(&format!("1..{}", count / 2)), rate(&format!("{}..", count / 2))];
    let (early, late) = early.zip(late).unwrap_or_else(|| panic!("{early:?} and {late:?} per step of {count}"));
    assert!((early / late - 1.0).abs() < 0.05, "{early} allocations per step, then {late}");
}
