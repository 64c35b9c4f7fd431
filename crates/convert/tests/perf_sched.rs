//! The CPU time of threads in a recording of `perf sched record` is what the printed switches of the same recording give.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::{Command, Stdio};

use stepscope_convert::{ImportOptions, Source, import};

const PROGRAM: &str =
    "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.01; n=0; while [ $n -lt 5000 ]; do n=$((n+1)); done; done";

/// `perf script` prints nanoseconds.
const ROUNDING_NS: u64 = 1;

fn perf(folder: &Path, arguments: &[&str]) -> Option<String> {
    let perf = Command::new("perf").current_dir(folder).args(arguments).stderr(Stdio::null()).output().ok()?;
    perf.status.success().then(|| String::from_utf8_lossy(&perf.stdout).into_owned())
}

/// CPU time in ns and number of slices of each thread whose every slice has both of its switches. `perf sched timehist` is
/// no measure: where a switch is lost, it takes a thread to run since the last switch of its CPU, and has given 28 ms to a
/// migration thread that ran for 12 us.
fn by_switches(script: &str) -> HashMap<u32, (u64, u64)> {
    let number = |text: &str, before: &str| text.split_once(before)?.1.split_whitespace().next()?.parse::<u32>().ok();
    let mut running: HashMap<&str, (u32, u64)> = HashMap::new();
    let (mut times, mut incomplete) = (HashMap::<u32, (u64, u64)>::new(), HashSet::new());
    for line in script.lines().filter(|line| line.contains("sched_switch:")) {
        let (cpu, rest) = line.trim().split_once("] ").unwrap();
        let (seconds, ns) = rest.trim().split_once(": ").unwrap().0.split_once('.').unwrap();
        let now_ns = seconds.parse::<u64>().unwrap() * 1_000_000_000 + ns.parse::<u64>().unwrap();
        let (previous, next) = (number(line, "prev_pid=").unwrap(), number(line, "next_pid=").unwrap());
        match running.insert(cpu, (next, now_ns)) {
            Some((thread, since_ns)) if thread == previous => {
                let (cpu_ns, slices) = times.entry(thread).or_default();
                (*cpu_ns, *slices) = (*cpu_ns + now_ns - since_ns, *slices + 1);
            }
            before => incomplete.extend(before.map(|(thread, _)| thread).into_iter().chain([previous])),
        }
    }
    incomplete.extend(running.into_values().map(|(thread, _)| thread));
    times.retain(|thread, _| *thread > 0 && !incomplete.contains(thread));
    times
}

#[test]
fn cpu_times_of_threads_are_those_of_the_printed_switches() {
    let test = "cpu_times_of_threads_are_those_of_the_printed_switches";
    let folder = tempfile::tempdir().unwrap();
    let recorded = perf(folder.path(), &["sched", "record", "-o", "sched.data", "--", "sh", "-c", PROGRAM]);
    let script = ["script", "-i", "sched.data", "--ns", "-F", "cpu,time,event,trace"];
    let Some(script) = recorded.and_then(|_| perf(folder.path(), &script)) else {
        return println!("skipped: {test}: `perf sched record` does not work here");
    };
    let theirs = by_switches(&script);
    let capture = import(Source::open(&folder.path().join("sched.data")).unwrap(), &ImportOptions::default()).unwrap();
    let mut ours: HashMap<u32, u64> = HashMap::new();
    for thread in &capture.threads {
        *ours.entry(thread.tid).or_default() += thread.cpu_ns.unwrap_or(0);
    }
    // Some kernels leave out the switches from a CPU's idle thread, and with them most threads.
    if theirs.is_empty() {
        return println!("skipped: {test}: the recording has all switches of no thread");
    }
    for (thread, (cpu_ns, slices)) in theirs {
        let found = ours.get(&thread).copied().unwrap_or(0);
        assert!(found.abs_diff(cpu_ns) <= ROUNDING_NS * slices, "thread {thread}: {found} ns, {cpu_ns} ns by switches");
    }
}
