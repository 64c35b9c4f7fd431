//! Imported files that are evidence of one scenario.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use common::{json, row, stepscope, text};

/// Imports a file as a phase of the scenario `shapes`.
fn import(folder: &Path, file: &str, phase: &str, options: &[&str]) -> std::process::Output {
    let named = ["import", file, "--scenario", "shapes", "--phase", phase, "--variant", "before", "--force"];
    stepscope(folder, &[&named[..], options].concat())
}

#[test]
fn cpu_and_cache_files_of_one_scenario_pair_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // `gz::Rare` has 0.0003 % of the CPU, and a third of the misses.
    fs::write(at.join("cpu.folded"), "main;gz::Each 200000\nmain;gz::Write 799997\nmain;gz::Rare 3\n").unwrap();
    fs::write(at.join("misses.folded"), "main;gz::Each 400\nmain;gz::Write 200\nmain;gz::Rare 300\n").unwrap();
    let imported = import(at, "cpu.folded", "steady", &["--dimension", "cpu"]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let imported = import(at, "misses.folded", "steady", &["--dimension", "cache"]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let rank = || -> Value {
        let options = ["--by", "score", "--owned", "gz::*", "--format", "json"];
        json(&stepscope(at, &[&["rank", "cpu.capture", "misses.capture"], &options[..]].concat()))
    };
    let table = rank();
    let evidence = |name: &str| row(&table, name)["evidence"].as_str().unwrap().to_owned();
    assert_eq!(evidence("gz::Each"), "cpu 40/40, cache 20/20");
    assert_eq!(evidence("gz::Write"), "cpu 40/40, cache 0/20");
    assert_eq!(evidence("gz::Rare"), "cpu 0/40, cache 0/20", "below the cost floor");
    // Misses of another phase are kept apart, with a word.
    assert!(import(at, "misses.folded", "loading", &["--dimension", "cache"]).status.success());
    let table = rank();
    assert_eq!(row(&table, "gz::Each")["evidence"], "cpu 40/40");
    assert!(table["notes"].to_string().contains("1 capture of the loading phase"), "{}", table["notes"]);
}

#[test]
fn functions_that_tools_print_differently_pair_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("cpu.folded"), "main;sim::World::find 600000000\nmain;sim::Each<int> 400000000\n").unwrap();
    let simulated = "cmd: ./sim\nevents: Ir DLmr DLmw\nfl=sim.cc\nfn=sim::World::find(char const*) const\n1 600 90 0\n\
                     fn=void sim::Each<int>(int)\n2 400 10 0\nsummary: 1000 100 0\n";
    fs::write(at.join("cg.out"), simulated).unwrap();
    let calls = "1 open(\"/etc/a\", O_RDONLY) = 3 <0.020000>\n > /home/sim/sim(_ZNK3sim5World4findEPKc+0x10) [0x1010]\n \
                 > /home/sim/sim(main+0x10) [0x2010]\n";
    fs::write(at.join("calls.txt"), calls).unwrap();
    for (file, options) in
        [("cpu.folded", &["--unit", "ns", "--dimension", "cpu"][..]), ("cg.out", &[]), ("calls.txt", &[])]
    {
        let imported = import(at, file, "steady", options);
        assert!(imported.status.success(), "{file}: {}", text(&imported.stderr));
    }
    let captures = ["rank", "cpu.capture", "cg.out.capture", "calls.capture"];
    let table =
        json(&stepscope(at, &[&captures[..], &["--by", "score", "--owned", "sim::*", "--format", "json"]].concat()));
    let evidence = |name: &str| row(&table, name)["evidence"].as_str().unwrap().to_owned();
    assert_eq!(evidence("sim::World::find"), "cpu 40/40, cache 10/20, syscalls 3/10", "20 ms of 1 s");
    assert_eq!(evidence("sim::Each<int>"), "cpu 40/40, cache 0/20, syscalls 0/10");
    assert!(table["notes"].to_string().contains("system calls are of another run"), "{}", table["notes"]);
}

#[test]
fn a_capture_gets_a_scenario_in_a_copy_only_if_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("cpu.folded"), "main;f 3\n").unwrap();
    assert!(stepscope(at, &["import", "cpu.folded", "-o", "plain.steps"]).status.success());
    let refused = stepscope(at, &["import", "plain.steps"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("name what was recorded with --scenario and --phase"), "{refused:?}");
    assert!(import(at, "plain.steps", "steady", &["-o", "named.steps"]).status.success());
    let read = |name: &str| stepscope_model::disk::read(&at.join(name)).unwrap();
    assert_eq!(read("named.steps").info.scenario.as_deref(), Some("shapes"));
    assert_eq!((read("plain.steps").info.scenario, read("named.steps").samples.len()), (None, 1));
}

#[test]
fn a_dimension_that_the_file_contradicts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.folded"), "main;a 2\n").unwrap();
    let output = import(folder.path(), "cpu.folded", "steady", &["--unit", "cycles", "--dimension", "cache"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("its samples count cycles, which is no evidence of `cache`"), "{message}");
    let counts =
        "3.70,msec,task-clock,3704195,100.00,,\n8000,,cycles,3704195,100.00,,\n2000,,instructions,3704195,100.00,,\n";
    fs::write(folder.path().join("counts.csv"), counts).unwrap();
    let output = import(folder.path(), "counts.csv", "steady", &[]);
    assert!(text(&output.stderr).contains("3 counts; next: stepscope show counts.capture --view cache"));
    let table =
        json(&stepscope(folder.path(), &["show", "counts.capture", "--view", "cache", "--format", "json-compact"]));
    assert!(table.to_string().contains("low IPC"), "{table}");
}

/// A CTF trace of one thread that calls a callback of ROS 2 this often.
fn write_trace(folder: &Path, calls: u64) {
    let metadata = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = "monotonic"; freq = 1000000000; };
stream {
    event.header := struct { u32 id; integer { size = 64; align = 8; map = clock.monotonic.value; } timestamp; };
    event.context := struct { u32 _vpid; u32 _vtid; };
};
event { name = "ros2:callback_start"; id = 0; fields := struct { u64 _callback; }; };
event { name = "ros2:callback_end"; id = 1; fields := struct { u64 _callback; }; };
"#;
    let mut stream = Vec::new();
    for at in 0..calls * 2 {
        let ids = [(at % 2) as u32, 5, 6].map(u32::to_le_bytes);
        stream.extend([&ids[0][..], &(100 + at * 10).to_le_bytes(), &ids[1], &ids[2], &7_u64.to_le_bytes()].concat());
    }
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("metadata"), metadata).unwrap();
    fs::write(folder.join("channel0_0"), stream).unwrap();
}

#[test]
fn the_import_of_a_trace_leaves_nothing_but_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_trace(&at.join("trace"), 3);
    // What a killed import left.
    fs::create_dir(at.join(".robot.capture.part-a1B2c3D4")).unwrap();
    fs::write(at.join(".robot.capture.part-a1B2c3D4/flows.parquet"), "half").unwrap();
    for calls in [3, 2] {
        write_trace(&at.join("trace"), calls);
        let imported = stepscope(at, &["import", "trace", "-o", "robot.capture", "--force"]);
        assert!(imported.status.success(), "{}", text(&imported.stderr));
        assert!(text(&imported.stderr).contains(&format!("{calls} scopes; next: ")), "{}", text(&imported.stderr));
        let capture = stepscope_model::disk::read(&at.join("robot.capture")).unwrap();
        assert_eq!((capture.scopes.len() as u64, capture.flows.len() as u64), (calls, 2 * calls));
    }
    let mut left: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["robot.capture", "trace"]);
}

#[test]
fn two_imports_to_one_folder_at_a_time_leave_one_whole_capture() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_trace(&at.join("short"), 1_000);
    write_trace(&at.join("long"), 200_000);
    let import = |trace: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepscope"));
        command.args(["import", trace, "-o", "robot.capture", "--force"]).current_dir(at);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let (mut long, mut short) = (import("long"), import("short"));
    assert!(short.wait().unwrap().success() && long.wait().unwrap().success());
    let capture = stepscope_model::disk::read(&at.join("robot.capture")).unwrap();
    let scopes = capture.scopes.iter().count() as u64;
    assert!([1_000, 200_000].contains(&scopes) && capture.flows.iter().count() as u64 == 2 * scopes, "{scopes}");
    let mut left: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["long", "robot.capture", "short"]);
}
