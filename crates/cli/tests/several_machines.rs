//! Clocks of several machines, and captures of them as one.
//!
//! A time namespace stands for the other machine: its `CLOCK_MONOTONIC` is ahead by a known time.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use stepscope_model::{Capture, ClockId, Clocks, Dimension, disk};

use common::{command, json, stepscope, text};

/// What the clock of the namespace is ahead.
const AHEAD_NS: i64 = 5_000_000_000_000;

/// A process that is ended with the test.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child that lives in the namespace ends with its parent.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A clock server in a time namespace, and its address.
fn other_clock(test: &str) -> Option<(Running, String)> {
    let in_namespace = |program: &[&str]| {
        let mut command = Command::new("unshare");
        // As root and as a user, who needs a user namespace.
        command.args(["-U", "-r", "-T", "--monotonic", "5000", "--fork", "--kill-child"]).args(program);
        command
    };
    let probe = in_namespace(&["cat", "/proc/self/timens_offsets"]).output();
    if !probe.is_ok_and(|probe| probe.status.success() && text(&probe.stdout).contains("5000")) {
        println!("skipped: {test}: no time namespaces here (unshare -T)");
        return None;
    }
    let mut server = Running::start(in_namespace(&[env!("CARGO_BIN_EXE_stepscope"), "clock", "serve", "127.0.0.1:0"]));
    let address = server.line();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    Some((server, address))
}

#[test]
fn the_offset_of_a_time_namespace_is_measured_to_the_stated_error() {
    let Some((_server, address)) = other_clock("the_offset_of_a_time_namespace_is_measured_to_the_stated_error") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let measure = ["clock", "measure", &address, "-d", "2s", "-o", "clocks.json", "--format", "json"];
    let table = json(&stepscope(folder.path(), &measure));
    let row = &table["rows"][0];
    let (offset, error) = (row["clock_offset"].as_i64().unwrap(), row["clock_error"].as_i64().unwrap());
    println!("off by {} ns, stated error {error} ns, {row}", offset - AHEAD_NS);
    assert!((offset - AHEAD_NS).abs() <= error, "{row}");
    let kept: Clocks = serde_json::from_slice(&fs::read(folder.path().join("clocks.json")).unwrap()).unwrap();
    assert_eq!(kept.peers[0].clock.namespace_offset_ns, AHEAD_NS);
    assert_eq!(kept.own.unwrap().boot_id, kept.peers[0].clock.boot_id);
    assert_eq!(kept.wall.len(), 2);
}

/// Compiles the program and records its two sides at the same time, as `base` and `robot`. Gives the measured latencies.
fn record(folder: &Path, test: &str, address: &str) -> Option<Vec<u64>> {
    if !stepscope(Path::new("/"), &["doctor"]).status.success() {
        println!("skipped: {test}: this machine records nothing (see stepscope doctor)");
        return None;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-DSTEPSCOPE_MARKS=1", "-I"])
        .arg(sources.join("../../marks/c"))
        .arg(sources.join("tests/several_machines/radio.c"))
        .arg("-o")
        .arg(folder.join("radio"))
        .args(["-lpthread", "-ldl"])
        .status();
    let Ok(compiled) = compiled else {
        println!("skipped: {test}: no gcc to build the program");
        return None;
    };
    assert!(compiled.success(), "radio.c compiles");
    let mut robot = Running::start(command(
        folder,
        &["record", "-o", "robot", "--clock-of", address, "--no-steps", "--", "./radio", "receive"],
    ));
    let port = robot.line().strip_prefix("port ").unwrap().to_owned();
    let base = stepscope(folder, &["record", "-o", "base", "--no-steps", "--", "./radio", "send", &port]);
    assert!(base.status.success(), "{}", text(&base.stderr));
    let lines: Vec<String> = (&mut robot.lines).lines().map(Result::unwrap).collect();
    assert!(robot.child.wait().unwrap().success());
    let latency = |line: &String| line.strip_prefix("latency ")?.parse().ok();
    Some(lines.iter().filter_map(latency).collect())
}

/// Makes a capture one of the namespace: all its times are on the clock there.
fn move_into_namespace(capture: &mut Capture) {
    let ahead = AHEAD_NS as u64;
    let info = &mut capture.info;
    info.start_ns = info.start_ns.map(|ns| ns + ahead);
    info.end_ns = info.end_ns.map(|ns| ns + ahead);
    let clocks = info.clocks.as_mut().unwrap();
    let own = clocks.own.take().unwrap();
    clocks.own = Some(ClockId { namespace_offset_ns: AHEAD_NS, host: "base".into(), ..own });
    clocks.wall.iter_mut().for_each(|reading| reading.time_ns += ahead);
    for process in &mut capture.processes {
        process.start_ns = process.start_ns.map(|ns| ns + ahead);
        process.end_ns = process.end_ns.map(|ns| ns + ahead);
    }
    for thread in &mut capture.threads {
        thread.start_ns = thread.start_ns.map(|ns| ns + ahead);
        thread.end_ns = thread.end_ns.map(|ns| ns + ahead);
        thread.names.iter_mut().for_each(|name| name.time_ns += ahead);
    }
    capture.samples.iter_mut().for_each(|sample| sample.time_ns = sample.time_ns.map(|ns| ns + ahead));
    capture.waits.change_all(|wait| (wait.start_ns, wait.end_ns) = (wait.start_ns + ahead, wait.end_ns + ahead));
    capture.counters.iter_mut().for_each(|counter| counter.time_ns += ahead);
    capture.flows.iter_mut().for_each(|event| event.time_ns += ahead);
}

/// CPU time, weights, and numbers of samples, waits and messages.
fn sums(captures: &[&Capture]) -> [u64; 5] {
    let sum = |of: fn(&Capture) -> u64| captures.iter().map(|capture| of(capture)).sum();
    [
        sum(|one| one.threads.iter().filter_map(|thread| thread.cpu_ns).sum()),
        sum(|one| one.samples.iter().map(|sample| sample.weight).sum()),
        sum(|one| one.samples.len() as u64),
        sum(|one| one.waits.len() as u64),
        sum(|one| one.flows.len() as u64),
    ]
}

#[test]
fn messages_between_two_machines_have_the_latency_that_the_programs_measured() {
    const NAME: &str = "messages_between_two_machines_have_the_latency_that_the_programs_measured";
    let Some((server, address)) = other_clock(NAME) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let Some(mut measured) = record(at, NAME, &address) else { return };
    drop(server);
    measured.sort_unstable();
    assert_eq!(measured.len(), 200);
    let robot = disk::read(&at.join("robot")).unwrap();
    let peers = &robot.info.clocks.as_ref().unwrap().peers;
    assert!(peers.len() == 1 && peers[0].exchanges.len() >= 10, "{peers:?}");
    // Without the exchanges nothing joins the two clocks but NTP, which is not to count here.
    let mut base = disk::read(&at.join("base")).unwrap();
    move_into_namespace(&mut base);
    base.check().unwrap();
    disk::write(&base, &at.join("base")).unwrap();

    let merge = ["merge", "base", "robot", "--names", "base,robot", "-o", "both"];
    let merged = stepscope(at, &merge);
    assert!(merged.status.success(), "{}", text(&merged.stderr));
    let said = text(&merged.stderr);
    assert!(said.contains("note: The clock of robot was aligned to that of base by"), "{said}");
    let both = disk::read(&at.join("both")).unwrap();
    assert_eq!(sums(&[&both]), sums(&[&base, &robot]));
    let machines = &both.info.merged.as_ref().unwrap().machines;
    let (clock, truth) = (machines[1].clock, AHEAD_NS);
    println!("off by {} ns; {clock:?}", clock.offset_ns - truth);
    assert!((clock.offset_ns - truth).unsigned_abs() <= clock.error_ns, "{clock:?}");

    let shown = json(&stepscope(at, &["show", "both", "--view", "flows", "--format", "json"]));
    let row = &shown["tables"][0]["rows"][0];
    assert_eq!((&row["publisher"], &row["subscriber"]), (&"base/radio".into(), &"robot/radio".into()), "{shown}");
    assert_eq!((row["published"].as_u64(), row["arrived"].as_u64()), (Some(200), Some(200)), "{row}");
    let median = row["median"].as_u64().unwrap();
    println!("median: {median} ns, measured by the programs: {} ns", measured[100]);
    // The marks themselves take some of the time.
    assert!(median.abs_diff(measured[100]) <= clock.error_ns + 5_000, "{median} and {}", measured[100]);
    let notes = shown["tables"][0]["notes"].to_string();
    assert!(notes.contains("Latencies between machines are right to"), "{notes}");

    // Every view works.
    let summary = json(&stepscope(at, &["show", "both", "--view", "summary", "--format", "json"]));
    assert_eq!(summary["tables"][1]["table"], "machines");
    assert_eq!(summary["tables"][1]["rows"].as_array().map(Vec::len), Some(2));
    for view in ["hotspots", "threads", "wall", "sched", "resources", "tree", "dimensions", "chains", "cost-tree"] {
        let shown = stepscope(at, &["show", "both", "--view", view, "--format", "json"]);
        assert!(shown.status.success() || view == "cost-tree", "{view}: {}", text(&shown.stderr));
    }
    let of_robot =
        json(&stepscope(at, &["show", "both", "--view", "threads", "--process", "robot/*", "--format", "json"]));
    let rows: &Vec<Value> = of_robot["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["process"].as_str() != Some("base/radio")), "{of_robot}");
    assert!(both.info.dimensions.contains_key(&Dimension::Cpu));

    // A second run needs --force, and never replaces what it reads.
    let again = stepscope(at, &merge);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
    assert!(stepscope(at, &[&merge[..], &["--force"]].concat()).status.success());
    let onto = stepscope(at, &["merge", "base", "robot", "-o", "base", "--force"]);
    assert!(onto.status.code() == Some(2) && text(&onto.stderr).contains("one of the captures to merge"), "{onto:?}");
    assert!(disk::read(&at.join("base")).is_ok());
}

#[test]
fn a_recording_that_needs_a_clock_fails_before_the_program_starts() {
    let folder = tempfile::tempdir().unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = socket.local_addr().unwrap().to_string();
    let failed = stepscope(folder.path(), &["record", "-o", "c", "--clock-of", &silent, "--", "touch", "started"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).contains("run `stepscope clock serve` on that machine"), "{}", text(&failed.stderr));
    assert!(!folder.path().join("started").exists());
    assert!(!folder.path().join("c/capture.json").exists());
}

#[test]
fn captures_without_anything_that_joins_their_clocks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let mut capture = Capture::default();
        (capture.info.start_ns, capture.info.end_ns) = (Some(5), Some(10));
        disk::write(&capture, &folder.path().join(name)).unwrap();
    }
    let refused = stepscope(folder.path(), &["merge", "a", "b", "-o", "both"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("its clock cannot be aligned to that of a") && said.contains("--clock-of HOST"), "{said}");
    assert!(!folder.path().join("both").exists());
}
