//! `stepscope monitor`, from its start to its tables; and one that is killed.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
const STEPSCOPE: &str = env!("CARGO_BIN_EXE_stepscope");

/// A process that is killed when the test ends, with its children: one that stays would keep the test's output open.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: it has no memory effects. The process is not waited for yet, so the id is still that of its group.
        unsafe { libc::kill(-(self.0.id() as i32), libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

fn run(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(STEPSCOPE).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn rows(folder: &Path, view: &str) -> serde_json::Value {
    let (done, out, errors) = run(&["show", folder.to_str().unwrap(), "--view", view, "--format", "json-compact"]);
    assert!(done, "{errors}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_set_of_processes_is_monitored_and_left_running() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("m.capture");
    let csv = folder.path().join("m.csv");
    let mut sleeper = Running::start("sleep", &["600"]);
    let tree = Running::start("sh", &["-c", "sleep 601 & sleep 602; true"]);
    let (done, out, errors) = run(&[
        "monitor",
        "--pid",
        &sleeper.pid(),
        "--tree",
        &tree.pid(),
        "-d",
        "1500ms",
        "--every",
        "200ms",
        "--segment",
        "1s",
        "-o",
        capture.to_str().unwrap(),
        "--csv",
        csv.to_str().unwrap(),
    ]);
    assert!(done, "{errors}");
    assert_eq!(out.trim(), capture.to_str().unwrap());
    assert!(
        capture.join("segment-0001/counters.parquet").is_file() && capture.join("segment-0002/capture.json").is_file()
    );
    let table = rows(&capture, "monitor");
    let pids: Vec<String> = table["rows"].as_array().unwrap().iter().map(|row| row["pid"].to_string()).collect();
    assert!(pids.contains(&sleeper.pid()) && pids.contains(&tree.pid()) && pids.len() == 4, "{table}");
    assert!(rows(&capture, "monitor-machine")["rows"].as_array().unwrap().len() > 10);
    assert!(fs::read_to_string(csv).unwrap().lines().count() > 8);
    assert!(sleeper.0.try_wait().unwrap().is_none(), "it is left running");
}

#[test]
fn a_killed_monitor_loses_at_most_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("m.capture");
    let sleeper = Running::start("sleep", &["600"]);
    let arguments = ["monitor", "--pid", &sleeper.pid(), "--every", "100ms", "-o", capture.to_str().unwrap()];
    let mut monitor = Running::start(STEPSCOPE, &arguments);
    let log = capture.join("segment-0001/raw.log");
    let grew_to = |bytes: u64| fs::metadata(&log).is_ok_and(|log| log.len() > bytes);
    let start = Instant::now();
    while !grew_to(0) && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Each reading is in the file when the next one is made, so that many are.
    let first = fs::metadata(&log).unwrap().len();
    while !grew_to(first + 500) && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    monitor.0.kill().unwrap();
    monitor.0.wait().unwrap();
    let (done, _, errors) = run(&["recover", capture.to_str().unwrap()]);
    assert!(done, "{errors}");
    let table = rows(&capture, "counters");
    assert!(table["rows"].as_array().unwrap().iter().any(|row| row["quantity"] == "pss_bytes"), "{table}");
}

#[test]
fn processes_that_are_missing_are_named() {
    let fails = |arguments: &[&str], message: &str| {
        let (done, _, errors) = run(arguments);
        assert!(!done && errors.contains(message), "{errors}");
    };
    fails(&["monitor"], "name the processes: --pid, --tree, --name, --cgroup or --container");
    fails(&["monitor", "--pid", "4194305"], "there is no process 4194305 to attach to");
    fails(&["monitor", "--name", "no-such-*"], "no running process matches --name no-such-*");
    fails(&["monitor", "--container", "no-such"], "no running container is called no-such");
}

#[test]
fn processes_of_other_users_are_monitored_as_far_as_they_may_be_read() {
    // SAFETY: getuid only returns a number.
    if unsafe { libc::getuid() } != 0 {
        return println!("skipped: processes_of_other_users_are_monitored_as_far_as_they_may_be_read: needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
    let program = folder.path().join("stepscope");
    fs::copy(STEPSCOPE, &program).unwrap();
    let capture = folder.path().join("m.capture");
    let sleeper = Running::start("sleep", &["600"]);
    let output = Command::new(program)
        .args(["monitor", "--pid", &sleeper.pid(), "-d", "300ms", "--every", "100ms", "-o", capture.to_str().unwrap()])
        .current_dir(folder.path())
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("of 1 processes could not be read"), "{errors}");
    let table = rows(&capture, "monitor");
    let row = &table["rows"][0];
    // Newer kernels tell everybody how many descriptors there are, but not what they are.
    assert!(row["rss"].is_number() && row["sockets"].is_null() && row["pss"].is_null(), "{table}");
}
