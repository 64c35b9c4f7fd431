//! The region, run as its users run it: what is slow changes how much is done, never what is simulated.

use std::process::Command;

use ground::catalogue::pathologies;
use ground::catalogue::pathology::World;
use serde_json::Value;

const GROUND: &str = env!("CARGO_BIN_EXE_ground");

/// The account of a run.
fn account(name: &str, options: &[&str], slow: &str, steps: u32) -> Value {
    let file = format!("{}/region-{name}-{}.json", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let output = Command::new(GROUND)
        .args(["run", "--world", "region", "--slow", slow, "--steps", &steps.to_string(), "--account", &file])
        .args(options)
        .output()
        .expect("the program was built with this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&file).expect("the program writes its account");
    std::fs::remove_file(&file).expect("it was written just now");
    serde_json::from_str(&text).expect("an account is JSON")
}

/// What was counted in a phase; 0 if it did not happen.
fn counted(account: &Value, phase: &str, what: &str) -> u64 {
    account[phase]["counts"][what].as_u64().unwrap_or(0)
}

/// What was counted in a phase, fast and slow.
fn fast_and_slow(switch: &str, options: &[&str], phase: &str, what: &str) -> [u64; 2] {
    [("fast", ""), ("slow", switch)].map(|(side, slow)| {
        let account = account(&format!("{switch}-{what}-{side}"), options, slow, 11);
        counted(&account, phase, what)
    })
}

#[test]
fn every_switch_alone_and_all_of_them_simulate_the_same() {
    let options: &[&str] = &["--n", "203", "--scripted", "150", "--clients", "5", "--state-files", "20"];
    let state = |slow: &str| account(&format!("state-{slow}"), options, slow, 80)["state"].clone();
    let fast = state("");
    let names = pathologies().filter(|known| known.world == World::Region).map(|known| known.name());
    for slow in names.chain(["all".to_owned()]) {
        assert_eq!(state(&slow), fast, "{slow}");
    }
}

#[test]
fn other_sizes_and_options_simulate_something_else_and_all_slow_the_same() {
    let sizes: [&[&str]; 4] = [
        &["--n", "0", "--clients", "0"],
        &["--n", "60", "--clients", "0"],
        &["--n", "60", "--clients", "3"],
        &["--n", "60", "--clients", "3", "--vertices", "320"],
    ];
    let mut states = Vec::new();
    for (index, options) in sizes.into_iter().enumerate() {
        let state = |slow: &str| account(&format!("size-{index}-{slow}"), options, slow, 60)["state"].to_string();
        states.push(state(""));
        assert_eq!(state("all"), states[index], "{options:?}");
    }
    states.sort();
    states.dedup();
    assert_eq!(states.len(), sizes.len());
}

#[test]
fn items_are_asked_for_once_or_once_for_each_prim() {
    let options = ["--n", "300", "--clients", "0"];
    let [fast, slow] = fast_and_slow("sql-per-prim", &options, "loading", "queries");
    // Six statements make the tables, two fill them, eight add scripts, one commits; then prims, items, scripts.
    assert_eq!((fast, slow), (6 + 2 + 8 + 1 + 3, 6 + 2 + 8 + 1 + 2 + 300));
}

#[test]
fn a_script_is_compiled_once_or_once_for_each_prim_that_holds_it() {
    let options = ["--n", "300", "--scripted", "200", "--clients", "0"];
    assert_eq!(fast_and_slow("recompile", &options, "loading", "compilations"), [8, 200]);
}

#[test]
fn only_files_that_are_deleted_are_looked_at_or_all_by_each_of_the_engines() {
    let options = ["--n", "8", "--clients", "0", "--scripted", "0", "--state-files", "100"];
    // Each of four engines left two sources and two binaries, and deletes them before the next one looks.
    let all = (0..4).map(|deleted| 100 + (4 - deleted) * 4).sum();
    assert_eq!(fast_and_slow("dir-scan", &options, "loading", "directory_entries"), [16, all]);
    // The old files and one state, to which the others are links, are made in any case.
    assert_eq!(fast_and_slow("dir-scan", &options, "loading", "file_opens"), [17, 17 + all]);
}

#[test]
fn a_client_is_sent_one_datagram_a_step_or_one_for_each_update() {
    let options = ["--n", "20", "--clients", "6"];
    // The steady phase is ten steps; one datagram more acknowledges what the client said.
    assert_eq!(fast_and_slow("per-update-packet", &options, "steady", "datagrams_sent"), [60 * (1 + 1), 60 * (8 + 1)]);
}

#[test]
fn every_datagram_of_every_client_is_received_by_one_thread_or_by_many() {
    let options = ["--n", "20", "--clients", "6"];
    assert_eq!(fast_and_slow("thread-per-client", &options, "steady", "datagrams_received"), [60, 60]);
}

#[test]
fn a_run_leaves_nothing_among_the_temporary_files() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("region-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let arguments = ["run", "--world", "region", "--n", "40", "--steps", "3"];
    let output = Command::new(GROUND).args(arguments).env("TMPDIR", &folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Fails if anything is in it.
    std::fs::remove_dir(&folder).unwrap();
}
