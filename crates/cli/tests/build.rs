//! `stepscope build`, of real builds by make and g++.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program under test.
const STEPSCOPE: &str = env!("CARGO_BIN_EXE_stepscope");

fn build(folder: &Path, command: &[&str]) -> Output {
    let mut stepscope = Command::new(STEPSCOPE);
    stepscope.current_dir(folder).args(["build", "-o", "b.capture", "--force", "--"]).args(command);
    stepscope.stdin(Stdio::null()).output().unwrap()
}

fn rows(folder: &Path, view: &str, table: &str) -> Vec<Value> {
    let arguments = ["show", "b.capture", "--view", view, "--format", "json-compact"];
    let shown = Command::new(STEPSCOPE).current_dir(folder).args(arguments).output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let alone = std::slice::from_ref(&shown);
    let mut tables = shown["tables"].as_array().map_or(alone, Vec::as_slice).iter();
    let table = tables.find(|one| one["table"] == table).expect("the view has the table");
    table["rows"].as_array().unwrap().clone()
}

fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Seconds of `0m1.230s`.
fn seconds(text: &str) -> f64 {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}

#[test]
fn the_jobs_of_a_build_add_up_to_the_cpu_time_that_its_shell_counts() {
    if let Some(tool) = ["make", "g++", "ar"].into_iter().find(|tool| !has(tool)) {
        return println!("skipped: the_jobs_of_a_build_add_up_to_the_cpu_time_that_its_shell_counts: no {tool}");
    }
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let unit = "#include <regex>\nbool f(const char* s) { return std::regex_match(s, std::regex(\"a*\")); }\n";
    fs::create_dir(folder.path().join("src")).unwrap();
    put("src/a.cpp", &unit.replace("f(", "a("));
    put("src/b.cpp", &unit.replace("f(", "b("));
    put("main.cpp", "bool a(const char*);\nbool b(const char*);\nint main() { return a(\"x\") && b(\"y\"); }\n");
    put(
        "Makefile",
        "prog: main.o libx.a\n\tg++ -o $@ main.o libx.a\n\
         libx.a:\n\t$(MAKE) -C src ../libx.a\n\
         main.o: main.cpp\n\tg++ -c -o $@ $<\n",
    );
    put("src/Makefile", "../libx.a: a.o b.o\n\tar qc $@ a.o b.o\n%.o: %.cpp\n\tg++ -O1 -c -o $@ $<\n");
    let built = build(folder.path(), &["sh", "-c", "make -j2 >&2; times"]);
    let output = String::from_utf8(built.stdout).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // The first line is the shell's own time, the second one that of all that it waited for.
    let counted: f64 = output.lines().take(2).flat_map(|line| line.split(' ')).map(seconds).sum();

    let jobs = rows(folder.path(), "build", "build_jobs");
    let sum = jobs.iter().map(|row| row["cpu"].as_f64().unwrap()).sum::<f64>() / 1e9;
    assert!((sum / counted - 1.0).abs() < 0.02, "{sum} s in jobs, {counted} s by the shell");
    let job = |name: &str| jobs.iter().find(|row| row["job"] == name).unwrap_or_else(|| panic!("{name} in {jobs:#?}"));
    for (name, kind, part) in [
        ("src/a.cpp", "compile", "cpu_compile"),
        ("src/b.cpp", "compile", "cpu_compile"),
        ("main.cpp", "compile", "cpu_compile"),
        ("prog", "link", "cpu_link"),
    ] {
        let row = job(name);
        assert_eq!(row["job_kind"], kind);
        assert!(row[part].as_i64() > Some(0) && row["cpu"].as_i64() >= row[part].as_i64(), "{row}");
        assert!(row["rss_peak"].as_i64() > Some(1 << 20) && row["wall"].as_i64() >= row["cpu_link"].as_i64(), "{row}");
        assert_eq!(row["exit_status"], 0);
    }
    assert!(job("src/a.cpp")["cpu_compile"].as_f64() > Some(0.8 * job("src/a.cpp")["cpu"].as_f64().unwrap()));
    assert!(job("src/a.cpp")["cpu_assemble"].as_i64() > Some(0));
    assert_eq!(job("libx.a")["job_kind"], "archive");
    // The end waited for the link, it for the archive, and that for a unit: their paths differ by folder.
    let path = rows(folder.path(), "build-path", "build_path");
    let names: Vec<&str> = path.iter().map(|row| row["job"].as_str().unwrap()).collect();
    assert!(names[0].starts_with("src/") && names[1..] == ["libx.a", "prog"], "{names:?}");
    let whole = &rows(folder.path(), "build", "build")[0];
    assert!(whole["slots"].as_i64() >= Some(1) && whole["slots"].as_i64() <= Some(2), "{whole}");
}

#[test]
fn a_build_that_fails_ends_with_its_exit_code_and_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let built = build(folder.path(), &["sh", "-c", "sleep 600 & echo $!; exit 3"]);
    assert_eq!(built.status.code(), Some(3), "{}", String::from_utf8_lossy(&built.stderr));
    let output = String::from_utf8(built.stdout).unwrap();
    let pid: u32 = output.lines().next().unwrap().parse().unwrap();
    let still_sleeps = fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|text| text.starts_with("sleep"));
    assert!(!still_sleeps);
    let missing = build(folder.path(), &["no-such-program"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("no-such-program"));
}

#[test]
fn signals_reach_the_processes_of_a_build() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo caught' USR1; kill -USR1 $$; sh -c 'kill -9 $$'; echo $?";
    let built = build(folder.path(), &["sh", "-c", script]);
    let output = String::from_utf8(built.stdout).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[..2], ["caught", "137"], "{output}");
}
