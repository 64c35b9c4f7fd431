//! System calls of a program whose calls are known: counts are exact, and each has its file and its function.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use stepscope_model::{Capture, Dimension, DimensionStatus, SystemCalls, disk};

use common::{command, json, stepscope, text};

/// Builds a program in a folder. `None` where that is not possible.
fn built(test: &str, name: &str, folder: &Path) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/system_calls/{name}.c"));
    let compiled =
        Command::new("gcc").args(["-O1", "-g", "-pthread", "-o"]).arg(folder.join(name)).arg(source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: {test}: no gcc to build the program");
        return None;
    }
    Some(())
}

/// Builds a program in a folder, and records it there. Gives what it printed. `None` where that is not possible.
fn recorded(test: &str, name: &str, folder: &Path) -> Option<(Capture, String)> {
    built(test, name, folder)?;
    let program = format!("./{name}");
    let output =
        command(folder, &["record", "--dimensions", "cpu,syscalls", "-o", "run", "--", &program]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let capture = disk::read(&folder.join("run")).unwrap();
    if let Some(DimensionStatus::Missing { reason, .. }) = capture.info.dimensions.get(&Dimension::Syscalls) {
        println!("skipped: {test}: {reason}");
        return None;
    }
    Some((capture, text(&output.stdout).to_owned()))
}

/// Calls and errors by name.
fn counts(capture: &Capture) -> BTreeMap<String, (u64, u64)> {
    let mut counts = BTreeMap::new();
    for calls in capture.system_calls.iter() {
        let (count, errors) = counts.entry(calls.call.to_string()).or_insert((0, 0));
        (*count, *errors) = (*count + calls.count, *errors + calls.errors);
    }
    counts
}

#[test]
fn calls_are_counted_exactly_with_their_files_and_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some((capture, _)) = recorded("calls_are_counted_exactly", "calls", folder.path()) else { return };
    let counts = counts(&capture);
    assert_eq!(counts["getppid"], (10_000, 0));
    assert_eq!(counts["lseek"], (2000, 0));
    assert_eq!(counts["write"], (2000, 0));
    assert_eq!(counts["rt_sigreturn"], (300, 0), "the kernel no longer has the number when it returns");
    // The loader looks for libraries by the same call.
    let of_missing = |calls: &&SystemCalls| calls.file.as_deref().is_some_and(|file| file.starts_with("missing-"));
    let failed: u64 = capture.system_calls.iter().filter(of_missing).map(|calls| calls.errors).sum();
    assert_eq!(failed, 10);
    let bytes: u64 = capture.system_calls.iter().filter(|calls| &*calls.call == "write").map(|calls| calls.bytes).sum();
    assert_eq!(bytes, 8000);
    assert!(capture.system_calls.iter().all(|calls| calls.stack.is_some()), "each has a stack");

    let shown = stepscope(
        folder.path(),
        &["show", "run", "--view", "syscalls", "--owned", "save", "--owned", "look", "--format", "tsv"],
    );
    let shown = text(&shown.stdout);
    let line =
        |start: &str| shown.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{start}: {shown}"));
    assert!(line("/records").contains("openat-lseek-write-close × 2,000\tsave"), "{shown}");
    assert!(line("missing-7").contains("newfstatat × 1\tlook"), "{shown}");
    assert!(line("save\tlseek").contains("\t2000\t"), "{shown}");
}

/// A place that uses one file after another has rows for some thousands of them, and one row for the rest. Counts stay exact.
#[test]
fn a_place_with_very_many_files_has_no_row_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let Some((capture, _)) = recorded("a_place_with_very_many_files", "files", folder.path()) else { return };
    let counts = counts(&capture);
    assert_eq!(counts["write"], (12_000, 0));
    let writes = || capture.system_calls.iter().filter(|calls| &*calls.call == "write");
    let of = |is: fn(&str) -> bool| writes().filter(move |calls| calls.file.as_deref().is_some_and(is));
    let sum = |calls: &mut dyn Iterator<Item = &SystemCalls>| calls.map(|calls| calls.count).sum::<u64>();
    assert_eq!(sum(&mut of(|file| file.ends_with("/log"))), 6000, "a file that was known before keeps its row");
    let together = sum(&mut writes().filter(|calls| calls.file.is_none()));
    assert!((1800..=2200).contains(&together), "{together}");
    assert!(writes().filter(|calls| calls.file.is_none()).count() < 500);
    assert!(writes().all(|calls| calls.stack.is_some()));
}

#[test]
fn counts_are_those_of_strace() {
    let folder = tempfile::tempdir().unwrap();
    let Some((capture, _)) = recorded("counts_are_those_of_strace", "calls", folder.path()) else { return };
    fs::remove_file(folder.path().join("records")).unwrap();
    let strace =
        Command::new("strace").args(["-f", "-c", "-o", "summary", "./calls"]).current_dir(folder.path()).status();
    if !strace.is_ok_and(|status| status.success()) {
        println!("skipped: counts_are_those_of_strace: strace does not work here");
        return;
    }
    let summary = fs::read_to_string(folder.path().join("summary")).unwrap();
    let rows = summary.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, numbers) = words.split_last()?;
        let count = numbers.get(3)?.parse().ok()?;
        let errors = numbers.get(4).map_or(Some(0), |errors| errors.parse().ok())?;
        (*name != "total").then(|| ((*name).to_owned(), (count, errors)))
    });
    // Threads wait for each other a varying number of times, and an exec ends in another program.
    let varies = |name: &str| ["futex", "execve", "restart_syscall"].contains(&name);
    let expected: BTreeMap<_, (u64, u64)> = rows.filter(|(name, _)| !varies(name)).collect();
    let found: BTreeMap<_, _> = counts(&capture).into_iter().filter(|(name, _)| !varies(name)).collect();
    assert!(expected.len() > 10, "{summary}");
    assert_eq!(found, expected);
}

/// The 99th percentile of a call in ns, as `show` has it.
fn p99_ns(folder: &Path, capture: &str, call: &str) -> f64 {
    let shown = stepscope(folder, &["show", capture, "--view", "syscalls", "--format", "json"]);
    let found = json(&shown)["tables"].as_array().and_then(|tables| {
        let rows = tables.first()?["rows"].as_array()?;
        rows.iter().find(|row| row["call"] == call)?["p99"].as_f64()
    });
    found.unwrap_or_else(|| panic!("{call}: {}", text(&shown.stdout)))
}

#[test]
fn the_99th_percentile_is_that_of_all_calls() {
    let folder = tempfile::tempdir().unwrap();
    let Some((capture, printed)) = recorded("the_99th_percentile_is_that_of_all_calls", "times", folder.path()) else {
        return;
    };
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    capture.call_times.iter().for_each(|times| *counted.entry(times.call.to_string()).or_default() += times.count);
    let expected: BTreeMap<String, u64> =
        counts(&capture).into_iter().map(|(call, (count, _))| (call, count)).collect();
    assert_eq!(counted, expected, "each call is in one bucket");

    let own_ns: f64 = printed.lines().find_map(|line| line.trim().parse().ok()).unwrap_or_else(|| panic!("{printed}"));
    let p99_ns = p99_ns(folder.path(), "run", "clock_nanosleep");
    println!("p99 {p99_ns} ns, by the program's clock {own_ns} ns");
    // The program's clock also has the way to the kernel and back. Records alone have most waits of 12 ms and few others.
    assert!((0.93 * own_ns..=1.016 * own_ns).contains(&p99_ns), "{p99_ns} ns; by the program's clock {own_ns} ns");
    assert!(p99_ns >= 3e6 * 0.984, "{p99_ns}");
}

#[test]
fn percentiles_are_those_of_strace() {
    let (test, folder) = ("percentiles_are_those_of_strace", tempfile::tempdir().unwrap());
    if built(test, "times", folder.path()).is_none() {
        return;
    }
    let strace =
        Command::new("strace").args(["-f", "-T", "-ttt", "-o", "log", "./times"]).current_dir(folder.path()).output();
    let Some(output) = strace.ok().filter(|output| output.status.success()) else {
        return println!("skipped: {test}: strace does not work here");
    };
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let waits = log.lines().filter(|line| line.contains("clock_nanosleep("));
    let time_ns = |line: &str| (line.rsplit_once('<')?.1.strip_suffix('>')?.parse::<f64>().ok()? * 1e9).round().into();
    let mut waits: Vec<f64> = waits.filter_map(time_ns).collect();
    waits.sort_by(f64::total_cmp);
    assert_eq!(waits.len(), 1_000, "{}", text(&output.stderr));
    stepscope(folder.path(), &["import", "log", "-o", "traced"]);
    assert_eq!(p99_ns(folder.path(), "traced", "clock_nanosleep"), waits[989]);
}

#[test]
fn without_cpu_samples_show_has_the_system_calls() {
    let folder = tempfile::tempdir().unwrap();
    let call = "7 1700000000.000000 getppid() = 1 <0.000010>\n";
    fs::write(folder.path().join("log"), call.repeat(5)).unwrap();
    let shown = stepscope(folder.path(), &["show", "log"]);
    assert!(text(&shown.stdout).starts_with("System calls\n"), "{}", text(&shown.stdout));
    let asked = stepscope(folder.path(), &["show", "log", "--view", "hotspots"]);
    let asked = text(&asked.stdout);
    assert!(asked.contains("fix: `stepscope record --dimensions cpu`."), "{asked}");
}
