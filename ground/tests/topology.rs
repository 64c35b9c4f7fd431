//! Nodes that publish and subscribe, as the program's users drive them.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

const GROUND: &str = env!("CARGO_BIN_EXE_ground");

/// A fresh path that no other test uses.
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

/// What ten steps of 20 nodes count after two that are not.
fn counts(name: &str, more: &[&str]) -> Value {
    let file = path(name);
    let fixed = ["run", "--world", "topology", "--n", "20", "--warm-steps", "2", "--steps", "12", "--account"];
    let (done, _, err) = output(&[&fixed[..], &[file.to_str().expect("it is made of text")], more].concat());
    assert!(done, "{err}");
    let account: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    account["steady"]["counts"].clone()
}

/// 20 timers come due in a step, and make 40 messages to be taken.
#[test]
fn all_that_a_wait_found_ready_is_served_before_there_is_another() {
    let built = |name: &str, more: &[&str]| {
        let counts = counts(name, more);
        assert_eq!((&counts["messages_published"], &counts["messages_taken"]), (&200.into(), &400.into()), "{name}");
        counts["wait_sets_built"].as_u64().unwrap_or(0)
    };
    assert_eq!(built("events", &[]), 0);
    // One for the timers, one for the messages, one that finds nothing.
    assert_eq!(built("static", &["--executor", "static"]), 10 * 3);
    assert_eq!(built("waitset", &["--executor", "waitset"]), 10 * 3);
    assert_eq!(built("wait-set", &["--slow", "wait-set"]), 10 * 3);
    // One for each callback, one that finds nothing.
    assert_eq!(built("static-one", &["--executor", "static", "--slow", "one-per-wait"]), 10 * 61);
    assert_eq!(built("all", &["--slow", "all"]), 10 * 61);
}

#[test]
fn idle_transport_threads_change_nothing() {
    let counts = counts("idle", &["--transport-threads", "3"]);
    assert_eq!(counts["messages_taken"], 400);
    assert_eq!(counts["datagrams_received"], Value::Null);
}
