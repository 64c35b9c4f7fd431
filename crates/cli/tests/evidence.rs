//! Allocations and system calls as evidence: what the proving ground does wrong is first in its view, and findings are sure.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use stepscope_model::{Capture, Dimension, DimensionStatus, WaitState, disk};

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

/// Every 20th step makes 500 allocations and 40 system calls more than the others.
#[test]
fn slow_steps_have_their_allocations_and_system_calls() {
    let test = "slow_steps_have_their_allocations_and_system_calls";
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("textures");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compile = Command::new("g++");
    compile
        .args(["-O1", "-g", "-pthread", "-DSTEPSCOPE_MARKS=1", "-I"])
        .arg(root.join("../../marks/c"))
        .arg(root.join("tests/evidence/textures.cc"));
    if !compile.arg("-o").arg(&program).status().is_ok_and(|status| status.success()) {
        println!("skipped: {test}: g++ is missing");
        return;
    }
    let with = ["record", "--with", "heap,syscalls", "-o", "run", "--", program.to_str().unwrap(), "400"];
    let output = stepscope(folder.path(), &with);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = json(&stepscope(folder.path(), &["show", "run", "--view", "slow-steps", "--format", "json"]));
    let tables = shown["tables"].as_array().unwrap();
    let capture = disk::read(&folder.path().join("run")).unwrap();
    for (dimension, name, per_typical, more, guilty) in [
        (Dimension::Heap, "slow_steps_heap", 3.0, 500.0, "load_texture"),
        (Dimension::Syscalls, "slow_steps_syscalls", 0.0, 40.0, "read_texture"),
    ] {
        if let Some(DimensionStatus::Missing { reason, .. }) = capture.info.dimensions.get(&dimension) {
            println!("skipped: {test}: {reason}");
            continue;
        }
        let table = tables.iter().find(|one| one["table"] == name).unwrap_or_else(|| panic!("no {name}"));
        let number = |row: usize, column: &str| table["rows"][row][column].as_f64().unwrap();
        assert_eq!((&table["rows"][0]["function"], &table["rows"][1]["function"]), (&"(all)".into(), &guilty.into()));
        assert_eq!(table["rows"][1]["verdict"], "more", "{table}");
        assert!((number(1, "slow") / more - 1.0).abs() < 0.1 && number(1, "typical") < 0.02 * more, "{table}");
        assert!((number(0, "difference") / more - 1.0).abs() < 0.1, "{table}");
        assert!((number(0, "typical") - per_typical).abs() < 0.5, "{table}");
    }
    let bursts =
        |of: fn(&stepscope_model::AllocationBurst) -> u64| capture.allocation_bursts.iter().map(of).sum::<u64>();
    let all = |of: fn(&stepscope_model::Allocation) -> u64| capture.allocations.iter().map(of).sum::<u64>();
    let both = [bursts(|burst| burst.calls), bursts(|burst| burst.bytes)];
    assert_eq!(both, [all(|row| row.calls), all(|row| row.bytes)]);
}

/// Calls of one thread do not overlap, a thread blocks within calls or page faults, and a simulation that does the same in each step
/// allocates the same.
#[test]
fn all_dimensions_at_once_agree_with_each_other() {
    let test = "all_dimensions_at_once";
    let world = ["--n", "500", "--robots", "20", "--slow", "full-scan"];
    let Some(recorded) = Recorded::of(test, "heap,syscalls", &world) else { return };
    let capture = &recorded.capture;
    let [mut in_calls, mut blocked] = [(); 2].map(|()| vec![0_u64; capture.threads.len()]);
    for calls in &capture.system_calls {
        in_calls[calls.thread.index()] += calls.total_ns;
    }
    // The last wait of a thread may be in a call that did not return.
    let end_ns = capture.info.end_ns.unwrap_or(u64::MAX).saturating_sub(1_000_000);
    for wait in capture.waits.iter().filter(|wait| wait.state == WaitState::Blocked && wait.end_ns < end_ns) {
        blocked[wait.thread.index()] += wait.end_ns - wait.start_ns - wait.runnable_ns.unwrap_or(0);
    }
    for ((thread, ns), blocked_ns) in capture.threads.iter().zip(in_calls).zip(blocked) {
        let start = thread.start_ns.or(capture.info.start_ns).unwrap_or(0);
        let life = thread.end_ns.or(capture.info.end_ns).unwrap_or(u64::MAX).saturating_sub(start);
        assert!(ns <= life + life / 100 + 5_000_000, "{}: {ns} ns in calls, lived {life} ns", thread.name);
        let least = blocked_ns.saturating_sub(life / 20 + 20_000_000);
        assert!(ns >= least, "{}: {ns} ns in calls, blocked {blocked_ns} ns", thread.name);
    }
    let mut timed: BTreeMap<&str, i128> = BTreeMap::new();
    capture.system_calls.iter().for_each(|calls| *timed.entry(&calls.call).or_default() += i128::from(calls.count));
    capture.call_times.iter().for_each(|times| *timed.entry(&times.call).or_default() -= i128::from(times.count));
    assert!(timed.values().all(|more| *more == 0), "calls without a time: {timed:?}");
    // The curve over time and the sums by stack have the same allocations.
    let curve = capture.counters.iter().filter(|counter| &*counter.name == "heap_calls").map(|counter| counter.value);
    let by_stack: u64 = capture.allocations.iter().map(|row| row.calls).sum();
    let last = curve.max().unwrap_or(0) as u64;
    assert!(last <= by_stack && last * 10 >= by_stack * 8, "{last} allocations in the curve, {by_stack} by stack");
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

/// Cache simulation is a recording of its own: the program runs many times slower there. Its cost must be in the same functions.
#[test]
fn simulated_caches_name_the_function_that_other_dimensions_name() {
    let test = "simulated_caches_name_the_function";
    if Command::new("valgrind").arg("--version").output().is_err() {
        return println!("skipped: {test}: valgrind is missing");
    }
    let Some(ground) = simulator(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let ground = ground.to_str().unwrap();
    let world = ["run", "--steps", "30", "--n", "300", "--slow", "full-scan"];
    let record = ["record", "--with", "cache-sim", "-o", "run", "--", ground];
    let output = stepscope(folder.path(), &[&record[..], &world].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let show = ["show", "run", "--view", "hotspots", "--event", "Ir", "--owned", "ground::*"];
    let shown = json(&stepscope(folder.path(), &[&show[..], &["--sort", "attributed", "--format", "json"]].concat()));
    let rows = shown["rows"].as_array().or_else(|| shown["tables"][0]["rows"].as_array()).unwrap();
    let scan = "ground::ecs::";
    assert!(rows.iter().take(4).any(|row| row["function"].as_str().unwrap().starts_with(scan)), "{rows:?}");
}

#[test]
fn counters_on_one_cache_line_are_false_sharing_and_one_for_all_is_contended() {
    let test = "counters_on_one_cache_line";
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/programs/sharing.c");
    let mut compiler = Command::new("gcc");
    let compiled = compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(folder.path().join("shares")).arg(source);
    if !compiled.status().is_ok_and(|status| status.success()) {
        return println!("skipped: {test}: no gcc to build the program");
    }
    // Whether there is a gain: plain stores show no waits for their line.
    for (mode, expected) in [
        ("packed", Some(("false-sharing", "`packed_counters`", false))),
        ("padded", None),
        ("atomic", Some(("contended-data", "`one_counter`", true))),
    ] {
        let record = ["record", "-o", mode, "--", "./shares", mode];
        let output = stepscope(folder.path(), &record);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let capture = disk::read(&folder.path().join(mode)).unwrap();
        if capture.info.losses.private_accesses.is_none() && capture.data_accesses.is_empty() {
            return println!("skipped: {test}: no addresses of data on this machine");
        }
        let owned = ["--owned", "count_*", "--owned", "work", "--format", "json"];
        let found = json(&stepscope(folder.path(), &[&["diagnose", mode][..], &owned].concat()));
        let rows = found["rows"].as_array().unwrap();
        let of_lines = |row: &&Value| row["kind"] == "false-sharing" || row["kind"] == "contended-data";
        let sharing: Vec<&Value> = rows.iter().filter(of_lines).collect();
        assert_eq!(sharing.len(), usize::from(expected.is_some()), "{mode}: {found}");
        if let (Some((kind, variable, has_gain)), [finding]) = (expected, &sharing[..]) {
            assert_eq!(finding["kind"], kind, "{finding}");
            assert!(finding["finding"].as_str().unwrap().contains(variable), "{finding}");
            assert_eq!(finding["gain"] != Value::Null, has_gain, "{finding}");
        }
    }
}
