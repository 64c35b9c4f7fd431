//! The CPU time of threads in a recording of `perf sched record` is that of `perf sched timehist`.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use stepscope_convert::{ImportOptions, Source, import};

/// A thread that runs when the recording starts has this much CPU time, at most, that timehist leaves out: it counts from the
/// first switch of each CPU on.
const FIRST_SLICE_MS: f64 = 50.0;

/// Difference in ms from rounding, for each slice.
const ROUNDING_MS: f64 = 0.002;

/// Some of the threads end, and timehist gives their last slices to id -1. Some records are lost, and timehist then takes
/// a thread to run since the last switch of its CPU.
const LEAST_EQUAL: f64 = 0.5;

const PROGRAM: &str =
    "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.01; n=0; while [ $n -lt 5000 ]; do n=$((n+1)); done; done";

fn perf(folder: &Path, arguments: &[&str]) -> Option<String> {
    let perf =
        Command::new("perf").current_dir(folder).arg("sched").args(arguments).stderr(Stdio::null()).output().ok()?;
    perf.status.success().then(|| String::from_utf8_lossy(&perf.stdout).into_owned())
}

/// Number of slices and CPU time in ms by thread. The last slice of a thread that ends has the id -1.
fn timehist(summary: &str) -> HashMap<i64, (f64, f64)> {
    let row = |line: &str| {
        let (name, rest) = line.rsplit_once(']')?;
        let tid = name.rsplit_once('[')?.1.split('/').next()?.parse().ok()?;
        let mut numbers = rest.split_whitespace();
        let (slices, ms) = (numbers.nth(1)?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some((tid, (slices, ms)))
    };
    summary.lines().filter_map(row).collect()
}

#[test]
fn cpu_times_of_threads_are_those_of_timehist() {
    let test = "cpu_times_of_threads_are_those_of_timehist";
    let folder = tempfile::tempdir().unwrap();
    let recorded = perf(folder.path(), &["record", "-o", "sched.data", "--", "sh", "-c", PROGRAM]);
    let summary = recorded.and_then(|_| perf(folder.path(), &["timehist", "-i", "sched.data", "--summary"]));
    let Some(summary) = summary else { return println!("skipped: {test}: `perf sched record` does not work here") };
    let theirs = timehist(&summary);
    let capture = import(Source::open(&folder.path().join("sched.data")).unwrap(), &ImportOptions::default()).unwrap();
    let mut ours: HashMap<i64, f64> = HashMap::new();
    for thread in &capture.threads {
        *ours.entry(thread.tid.into()).or_default() += thread.cpu_ns.unwrap_or(0) as f64 / 1e6;
    }
    assert!(theirs.len() > 3, "{summary}");
    let (mut equal, mut all, mut sum, mut their_sum) = (0, 0, 0.0, 0.0);
    for (tid, (slices, ms)) in theirs.iter().filter(|(tid, _)| **tid > 0) {
        let more = ours.get(tid).copied().unwrap_or(0.0) - ms;
        assert!(more < FIRST_SLICE_MS, "thread {tid}: {ms} ms and {more} more");
        (all, sum, their_sum) = (all + 1, sum + ms + more, their_sum + ms);
        equal += usize::from(more.abs() < ROUNDING_MS * (slices + 1.0));
    }
    assert!(equal as f64 > LEAST_EQUAL * all as f64, "{equal} of {all} are equal: {summary}");
    assert!((0.8..1.3).contains(&(sum / their_sum)), "{sum} and {their_sum} ms: {summary}");
}
