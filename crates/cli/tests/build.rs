//! `stepscope build`, of real builds by make and g++.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program under test.
const STEPSCOPE: &str = env!("CARGO_BIN_EXE_stepscope");

fn build(folder: &Path, command: &[&str]) -> Output {
    build_with(folder, &[], command)
}

fn build_with(folder: &Path, options: &[&str], command: &[&str]) -> Output {
    let mut stepscope = Command::new(STEPSCOPE);
    stepscope.current_dir(folder).args(["build", "-o", "b.capture", "--force"]).args(options).arg("--").args(command);
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
    // The end waited for the link, it for the archive, and that for a unit, which may have waited for a slot: their paths differ by folder.
    let path = rows(folder.path(), "build-path", "build_path");
    let names: Vec<&str> = path.iter().map(|row| row["job"].as_str().unwrap()).collect();
    let [before @ .., unit, archive, program] = names.as_slice() else { panic!("{names:?}") };
    assert!(unit.starts_with("src/") && [*archive, *program] == ["libx.a", "prog"], "{names:?}");
    assert!(before.len() <= 1, "two units and the program's own: {names:?}");
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

/// Three units that need `<regex>` through one header of the project; a fourth does not.
fn project(folder: &Path) {
    let put = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    put("match.h", "#pragma once\n#include <regex>\nbool match(const char*);\n");
    for name in ["a", "b", "c"] {
        put(&format!("{name}.cpp"), "#include \"match.h\"\nint unused_of() { int x; return 1; }\n");
    }
    put("d.cpp", "#include <cstddef>\nint d() { return 1; }\n");
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !["b.capture", "times"].contains(&name.as_str())).collect();
    names.sort();
    names
}

/// A makefile that was written before: compilers have absolute paths.
fn makefile(folder: &Path, compiler: &str) {
    let path =
        String::from_utf8(Command::new("sh").args(["-c", &format!("command -v {compiler}")]).output().unwrap().stdout)
            .unwrap();
    let rules = format!("all: a.o b.o c.o d.o\n%.o: %.cpp\n\t{} -Wall -O1 -c -o $@ $<\n", path.trim());
    fs::write(folder.join("Makefile"), rules).unwrap();
}

const BUILT: [&str; 10] = ["Makefile", "a.cpp", "a.o", "b.cpp", "b.o", "c.cpp", "c.o", "d.cpp", "d.o", "match.h"];

#[test]
fn gcc_says_where_its_time_went_and_the_project_stays_as_it_is() {
    if let Some(tool) = ["make", "g++"].into_iter().find(|tool| !has(tool)) {
        return println!("skipped: gcc_says_where_its_time_went_and_the_project_stays_as_it_is: no {tool}");
    }
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    makefile(folder.path(), "g++");
    let built = build_with(folder.path(), &["--with-timing"], &["make"]);
    let errors = String::from_utf8(built.stderr).unwrap();
    assert!(built.status.success(), "{errors}");
    assert_eq!(files(folder.path()), BUILT);
    // What the compiler says passes, and its report does not.
    assert_eq!(errors.matches("warning: unused variable").count(), 3, "{errors}");
    assert!(!errors.contains("phase parsing") && !errors.contains(". /usr/include"), "{errors}");
    assert!(errors.contains("3 of 4 units") || errors.contains("3 of 4 units get it through `match.h`"), "{errors}");

    let jobs = rows(folder.path(), "build", "build_jobs");
    let unit = jobs.iter().find(|row| row["job"] == "a.cpp").unwrap();
    let (front, back) = (unit["cpu_front_end"].as_i64().unwrap(), unit["cpu_back_end"].as_i64().unwrap());
    let compiler = unit["cpu_compile"].as_i64().unwrap();
    assert!(front > back && (compiler - front - back).abs() < compiler / 10, "{unit}");
    let headers = rows(folder.path(), "headers", "headers");
    let regex = headers.iter().find(|row| row["header"].as_str().unwrap().ends_with("/regex")).unwrap();
    assert_eq!((&regex["units"], &regex["included_by"]), (&3.into(), &"match.h".into()));
    assert_eq!(regex["included_by_units"], 3);
    // All samples together are the CPU time of the build.
    let hotspots = rows(folder.path(), "hotspots", "hotspots");
    let samples: i64 = hotspots.iter().map(|row| row["self"].as_i64().unwrap()).sum();
    let cpu: i64 = jobs.iter().map(|row| row["cpu"].as_i64().unwrap()).sum();
    assert_eq!(samples, cpu);
}

/// What ClangBuildAnalyzer does: it adds up the durations of the events `Source` by their path.
fn sums_of_sources(built_in: &Path, times: &Path) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for entry in fs::read_dir(times).unwrap() {
        let trace: Value = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        for event in trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == "Source") {
            let path = Path::new(event["args"]["detail"].as_str().unwrap());
            let path = built_in.join(path).canonicalize().unwrap_or_else(|_| path.to_owned());
            *sums.entry(path.to_str().unwrap().to_owned()).or_default() += event["dur"].as_u64().unwrap() * 1000;
        }
    }
    sums
}

#[test]
fn headers_cost_what_clang_says_and_the_project_stays_as_it_is() {
    if let Some(tool) = ["make", "clang++"].into_iter().find(|tool| !has(tool)) {
        return println!("skipped: headers_cost_what_clang_says_and_the_project_stays_as_it_is: no {tool}");
    }
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    makefile(folder.path(), "clang++");
    let built = build_with(folder.path(), &["--with-timing", "--keep-times", "times"], &["make", "-j2"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert_eq!(files(folder.path()), BUILT);
    let sums = sums_of_sources(folder.path(), &folder.path().join("times"));
    let headers = rows(folder.path(), "headers", "headers");
    assert!(headers.len() > 20 && headers.iter().any(|row| row["included_by"] == "match.h"), "{headers:#?}");
    for row in &headers {
        let path = folder.path().join(row["header"].as_str().unwrap()).canonicalize().unwrap();
        assert_eq!(row["compiler_time"].as_u64(), sums.get(path.to_str().unwrap()).copied(), "{row}");
    }
    let templates = rows(folder.path(), "templates", "templates");
    assert!(templates.iter().any(|row| row["template"].as_str().unwrap().starts_with("std::")), "{templates:#?}");
}

#[test]
fn commands_of_cmake_have_their_times() {
    if let Some(tool) = ["cmake", "make", "g++"].into_iter().find(|tool| !has(tool)) {
        return println!("skipped: commands_of_cmake_have_their_times: no {tool}");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("CMakeLists.txt"), "cmake_minimum_required(VERSION 3.10)\nproject(p CXX)\n").unwrap();
    let built = build_with(folder.path(), &["--with-timing"], &["cmake", "-S", ".", "-B", "o"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let commands = rows(folder.path(), "configure", "configure_commands");
    let first = &commands[0];
    assert_eq!((&first["command"], &first["command_place"]), (&"project(p)".into(), &"CMakeLists.txt:2".into()));
    let jobs = rows(folder.path(), "build", "build_jobs");
    let step = jobs.iter().find(|row| row["job_kind"] == "configure").unwrap();
    let own: i64 = commands.iter().map(|row| row["own"].as_i64().unwrap()).sum();
    let cpu = step["cpu"].as_i64().unwrap();
    assert!(own <= cpu && own > cpu * 9 / 10, "{own} of {cpu}");
}
