//! `ground run --world topology` and `ground topology`, run as programs.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

const GROUND: &str = env!("CARGO_BIN_EXE_ground");

/// A path that no other test uses.
fn path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("topology-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn output(args: &[&str]) -> (bool, String, String) {
    let output = Command::new(GROUND).args(args).output().expect("the program was built with this test");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// The counts of ten steps of 20 nodes, after two warm-up steps.
fn counts(name: &str, more: &[&str]) -> Value {
    let file = path(name);
    let fixed = ["run", "--world", "topology", "--n", "20", "--warm-steps", "2", "--steps", "12", "--account"];
    let (done, _, err) = output(&[&fixed[..], &[file.to_str().expect("it is made of text")], more].concat());
    assert!(done, "{err}");
    let account: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    account["steady"]["counts"].clone()
}

/// In each step, 20 timers fire and 40 messages arrive.
#[test]
fn all_ready_callbacks_run_before_the_next_wait() {
    let built = |name: &str, more: &[&str]| {
        let counts = counts(name, more);
        assert_eq!((&counts["messages_published"], &counts["messages_taken"]), (&200.into(), &400.into()), "{name}");
        counts["wait_sets_built"].as_u64().unwrap_or(0)
    };
    assert_eq!(built("events", &[]), 0);
    // One wait for the timers, one for the messages, one that finds nothing.
    assert_eq!(built("static", &["--executor", "static"]), 10 * 3);
    assert_eq!(built("waitset", &["--executor", "waitset"]), 10 * 3);
    assert_eq!(built("wait-set", &["--slow", "wait-set"]), 10 * 3);
    // One wait per callback, one that finds nothing.
    assert_eq!(built("static-one", &["--executor", "static", "--slow", "one-per-wait"]), 10 * 61);
    assert_eq!(built("all", &["--slow", "all"]), 10 * 61);
    // An explicit executor overrides the switch.
    assert_eq!(built("all-but", &["--executor", "static", "--slow", "all,-one-per-wait"]), 10 * 3);
}

#[test]
fn idle_transport_threads_change_nothing() {
    let counts = counts("idle", &["--transport-threads", "3"]);
    assert_eq!(counts["messages_taken"], 400);
    assert_eq!(counts["datagrams_received"], Value::Null);
}

/// A topology file: one node publishes to another every 5 ms.
fn pair() -> PathBuf {
    let file = path("pair.json");
    let text = r#"{"nodes": [
        {"node_name": "talker", "publishers": [{"topic_name": "t", "msg_type": "stamped10b", "period_ms": 5}]},
        {"node_name": "listener", "executor_id": 1, "subscribers": [{"topic_name": "t", "msg_type": "stamped10b"}]}
    ]}"#;
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_topology_is_reported_as_json_with_its_account_and_in_the_files_of_the_framework() {
    let (topology, folder, account) = (pair(), path("out"), path("account"));
    let [file, out, counted] = [&topology, &folder, &account].map(|path| path.to_str().unwrap());
    for executor in ["waitset", "static", "events"] {
        let run = ["topology", file, "--executor", executor, "--seconds", "0.3", "--format", "json"];
        let (done, json, err) = output(&[&run[..], &["--out", out, "--account", counted]].concat());
        assert!(done, "{err}");
        let report: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(report["conditions"]["executor"], executor);
        assert_eq!((&report["conditions"]["nodes"], &report["conditions"]["executors"]), (&2.into(), &2.into()));
        let subscription = &report["subscriptions"][0];
        assert_eq!((&subscription["node"], &subscription["topic"]), (&"listener".into(), &"/t".into()));
        let received = subscription["received"].as_u64().unwrap();
        assert!(received > 0 && subscription["latency"]["mean_us"].as_f64().unwrap() > 0.0, "{json}");
        let account: Value = serde_json::from_str(&std::fs::read_to_string(&account).unwrap()).unwrap();
        assert_eq!(account["run"]["counts"]["messages_taken"], received);
        let columns = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            let line = text.lines().find(|line| line.contains('_')).unwrap().to_owned();
            line.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(columns("latency_all.txt"), "node topic size_b");
        assert_eq!(columns("latency_total.txt"), "received_msgs mean_us late_msgs");
        assert_eq!(columns("resources.txt"), "time_ms cpu_perc arena_KB");
        assert_eq!(columns("events.txt"), "Time_ms Caller Code");
        assert!(report["events"].as_u64().unwrap() >= 2, "{json}");
    }
}

/// Whether a process handles SIGINT already, by its signal mask in `/proc`.
fn catches_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs until it is interrupted");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux says so");
    u64::from_str_radix(mask.trim(), 16).expect("a mask is hexadecimal") >> (libc::SIGINT - 1) & 1 == 1
}

#[test]
fn an_interrupt_ends_a_topology_with_its_report() {
    let topology = pair();
    let run = ["topology", topology.to_str().unwrap(), "--seconds", "1000"];
    let child = Command::new(GROUND).args(run).stdout(std::process::Stdio::piped()).spawn().unwrap();
    while !catches_interrupts(child.id()) {
        std::thread::yield_now();
    }
    // SAFETY: the child was started here and not yet waited for, so the id is its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("listener") && text.contains("RSS"), "{text}");
}

#[test]
fn errors_say_what_to_do() {
    let (done, _, err) = output(&["topology", "no/such.json"]);
    assert!(!done);
    assert!(
        err.contains("cannot read the topology no/such.json") && err.contains("ground topology FILE.json"),
        "{err}"
    );
    let topology = pair();
    let run = ["topology", topology.to_str().unwrap(), "--middleware", "cyclonedds", "--ipc", "on"];
    let (done, _, err) = output(&run);
    assert!(!done);
    assert!(err.contains("leave out --ipc, or use --ipc off"), "{err}");
    let (done, _, err) = output(&[&run[..4], &["--seconds", "0.1"]].concat());
    assert!(done || err.contains("install its development files"), "{err}");
}
