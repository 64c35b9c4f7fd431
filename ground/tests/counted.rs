//! The program's own counts against the kernel's, as `strace` shows them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

const GROUND: &str = env!("CARGO_BIN_EXE_ground");

/// Runs the program under `strace`: calls by name, and the program's account. `None` where that cannot be.
fn traced(name: &str, arguments: &[&str]) -> Option<(BTreeMap<String, u64>, Value)> {
    let file =
        |what: &str| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.{what}", std::process::id()));
    let (calls, account) = (file("strace"), file("json"));
    let run = Command::new("strace")
        .args(["-f", "-qq", "-c", "-U", "calls,name", "-o"])
        .arg(&calls)
        .arg(GROUND)
        .args(["run", "--account"])
        .arg(&account)
        .args(arguments)
        .output();
    if !run.is_ok_and(|run| run.status.success()) {
        println!("skipped: {name}: strace is missing, or may not trace here");
        return None;
    }
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("it was written just now");
    let table = read(&calls);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (count, name) = (words.next()?.parse().ok()?, words.next()?);
        Some((name.to_owned(), count))
    };
    let account: Value = serde_json::from_str(&read(&account)).expect("the account is JSON");
    Some((table.lines().filter_map(row).collect(), account["whole"]["counts"].clone()))
}

#[test]
fn every_datagram_is_a_call_that_the_kernel_saw() {
    let test = "every_datagram_is_a_call_that_the_kernel_saw";
    for slow in ["", "per-update-packet", "thread-per-client"] {
        let world = ["--world", "region", "--n", "200", "--clients", "12", "--steps", "30", "--slow", slow];
        let Some((calls, counts)) = traced(test, &world) else { return };
        let count = |name: &str| counts[name].as_u64().expect("it happened");
        // The clients are in the same process: what the region receives, they sent.
        assert_eq!(
            calls["sendto"],
            count("datagrams_sent") + count("datagrams_received"),
            "{slow}: {calls:?} {counts}"
        );
        assert_eq!(count("datagrams_received"), 12 * 30);
        // One more acknowledges what the client said.
        let updates = if slow == "per-update-packet" { 8 } else { 1 };
        assert_eq!(count("datagrams_sent"), 12 * 30 * (updates + 1));
    }
}
