//! History: runs are added, followed over time, deleted, and never mixed up.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;
use stepscope_model::{Build, Capture, CaptureInfo, Machine, Phase, Step, disk};

use common::{json, simulator, stepscope, text};

/// A run of one capture of `shapes`, on the `day`-th day: 20 steps of this length.
struct Drawn {
    day: usize,
    step_ns: u64,
    kernel: &'static str,
    host: &'static str,
    build: &'static str,
}

impl Drawn {
    fn new(day: usize, step_ns: u64) -> Self {
        Self { day, step_ns, kernel: "6.1", host: "lab", build: "release" }
    }

    fn write(&self, project: &Path) -> PathBuf {
        let steps = 20;
        let mut capture = Capture::default();
        let main = capture.add_thread_named("main");
        capture.steps = (0..steps)
            .map(|index| Step {
                index,
                start_ns: index * self.step_ns,
                end_ns: (index + 1) * self.step_ns,
                sim_time_ns: Some((index + 1) * 1_000_000),
                thread: main,
            })
            .collect();
        capture.info = CaptureInfo {
            scenario: Some("shapes".into()),
            phase: Some(Phase::Steady),
            started_at: Some(format!("2026-11-{:02}T10:00:00.000Z", self.day + 1)),
            start_ns: Some(0),
            end_ns: Some(steps * self.step_ns),
            machine: Some(Machine {
                host: self.host.into(),
                cpu: "EPYC".into(),
                cores: 2,
                kernel: self.kernel.into(),
                ..Machine::default()
            }),
            build: Some(Build {
                kind: Some(self.build.into()),
                told_by: None,
                revision: Some(format!("rev{}", self.day)),
            }),
            ..capture.info
        };
        let run = project.join(format!("stepscope-runs/day-{:02}", self.day));
        let folder = run.join("shapes/base/steady");
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        disk::write(&capture, &folder).unwrap();
        run
    }
}

/// Fourteen days: a step takes 1 ms on the first seven, then 1.25 ms, with a new kernel on the eighth.
fn fourteen_days(project: &Path) {
    let noise = [0, 3_000, 1_000, 6_000, 2_000, 5_000, 4_000];
    for day in 0..14 {
        let step_ns = if day < 7 { 1_000_000 } else { 1_250_000 } + noise[day % 7];
        let kernel = if day < 7 { "6.1" } else { "6.18" };
        Drawn { kernel, ..Drawn::new(day, step_ns) }.write(project);
    }
}

fn runs(project: &Path) -> Vec<String> {
    let entries = fs::read_dir(project.join("stepscope-runs")).unwrap();
    let mut runs: Vec<String> =
        entries.map(|entry| format!("stepscope-runs/{}", entry.unwrap().file_name().to_str().unwrap())).collect();
    runs.sort();
    runs
}

fn add_all(project: &Path) -> String {
    let runs = runs(project);
    let mut arguments = vec!["history", "add"];
    arguments.extend(runs.iter().map(String::as_str));
    let added = stepscope(project, &arguments);
    assert!(added.status.success(), "{}", text(&added.stderr));
    text(&added.stdout)
}

fn tables(project: &Path, arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["history"], arguments, &["--format", "json"]].concat();
    let value = json(&stepscope(project, &arguments));
    match value.get("tables") {
        Some(tables) => tables.as_array().unwrap().clone(),
        None => vec![value],
    }
}

fn notes(table: &Value) -> String {
    table["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_lasting_change_is_shown_with_its_run_and_other_changes_of_that_run() {
    let project = tempfile::tempdir().unwrap();
    fourteen_days(project.path());
    assert!(add_all(project.path()).starts_with("14 captures added to "));
    let tables = tables(project.path(), &["--metric", "step.median"]);
    let [changes, environment, trend] = tables.as_slice() else { panic!("{tables:?}") };
    let change = &changes["rows"][0];
    assert_eq!(
        (&change["scenario"], &change["metric"], &change["run"], &change["direction"]),
        (&"shapes".into(), &"step.median".into(), &"stepscope-runs/day-07".into(), &"worse".into())
    );
    assert_eq!((&change["environment"], &change["revision_before"]), (&"kernel: 6.1 -> 6.18".into(), &"rev6".into()));
    assert_eq!(change["before"], 1_003_000.0);
    assert!((change["ratio"].as_f64().unwrap() - 1.2493).abs() < 1e-3 && change["p"].as_f64().unwrap() <= 0.01);
    assert_eq!(environment["rows"].as_array().unwrap().len(), 1);
    assert_eq!(environment["rows"][0]["what"], "kernel: 6.1 -> 6.18");
    assert_eq!((&trend["rows"][0]["runs"], &trend["rows"][0]["changes"]), (&14.into(), &1.into()));
}

#[test]
fn adding_again_changes_nothing_and_neither_does_another_path_to_the_same_run() {
    let project = tempfile::tempdir().unwrap();
    fourteen_days(project.path());
    add_all(project.path());
    let index = project.path().join(".stepscope/history.jsonl");
    let before = fs::read(&index).unwrap();
    assert!(add_all(project.path()).starts_with("0 captures added to "));
    fs::rename(project.path().join("stepscope-runs"), project.path().join("moved")).unwrap();
    let added = stepscope(project.path(), &["history", "add", "moved/day-03", "moved/day-04/shapes/base/steady"]);
    assert!(text(&added.stdout).starts_with("0 captures added to "), "{}", text(&added.stderr));
    assert_eq!(fs::read(&index).unwrap(), before);
}

#[test]
fn metrics_remain_after_their_runs_are_deleted_and_the_index_lists_deleted_runs() {
    let project = tempfile::tempdir().unwrap();
    fourteen_days(project.path());
    add_all(project.path());
    let before = tables(project.path(), &["--metric", "rtf", "--view", "values"])[0]["rows"].clone();
    for day in 2..5 {
        fs::remove_dir_all(project.path().join(format!("stepscope-runs/day-{day:02}"))).unwrap();
    }
    let values = &tables(project.path(), &["--metric", "rtf", "--view", "values"])[0];
    assert!(notes(values).contains("3 recordings without a folder; their metrics are kept."));
    let folders: Vec<&str> =
        values["rows"].as_array().unwrap().iter().map(|row| row["folder"].as_str().unwrap()).collect();
    assert_eq!(folders[..6], ["there", "there", "gone", "gone", "gone", "there"]);
    for (row, old) in values["rows"].as_array().unwrap().iter().zip(before.as_array().unwrap()) {
        assert_eq!((&row["value"], &row["level"]), (&old["value"], &old["level"]));
    }
    let runs = &tables(project.path(), &["--view", "runs"])[0];
    assert_eq!((&runs["rows"][11]["run"], &runs["rows"][11]["gone"]), (&"stepscope-runs/day-02".into(), &1.into()));
}

#[test]
fn machines_and_builds_are_joined_only_on_request_with_a_note_in_every_output() {
    let project = tempfile::tempdir().unwrap();
    for day in 0..14 {
        let (host, build) = if day < 7 { ("lab", "release") } else { ("laptop", "debug") };
        Drawn { host, build, ..Drawn::new(day, if day < 7 { 1_000_000 } else { 2_000_000 } + day as u64) }
            .write(project.path());
    }
    add_all(project.path());
    for table in tables(project.path(), &["--metric", "wall"]) {
        assert!(notes(&table).contains("Different machines are kept apart"), "{}", table["table"]);
        if table["table"] == "history" {
            assert_eq!(table["rows"].as_array().unwrap().len(), 2);
        } else {
            assert_eq!(table["rows"], Value::Array(Vec::new()), "{}", table["table"]);
        }
    }
    let across = ["--across-machines", "--across-builds"];
    for view in ["summary", "runs", "values"] {
        for table in tables(project.path(), &[&across[..], &["--view", view]].concat()) {
            let notes = notes(&table);
            assert!(
                notes.contains("joined (--across-machines)") && notes.contains("joined (--across-builds)"),
                "{notes}"
            );
        }
    }
    let joined = tables(project.path(), &[&across[..], &["--metric", "wall"]].concat());
    let environment = joined[0]["rows"][0]["environment"].as_str().unwrap();
    assert!(
        environment.contains("machine: lab (EPYC") && environment.contains("build: release -> debug"),
        "{environment}"
    );
    let page = stepscope(project.path(), &["history", "--across-machines", "--across-builds", "-o", "-"]);
    let page = text(&page.stdout);
    assert!(page.contains("joined (--across-machines)") && page.contains("joined (--across-builds)"));
}

#[test]
fn the_page_has_a_chart_of_each_series_and_marks_what_changed() {
    let project = tempfile::tempdir().unwrap();
    fourteen_days(project.path());
    add_all(project.path());
    let written = stepscope(project.path(), &["history", "--metric", "step.m*", "-o", "history.html"]);
    assert_eq!(text(&written.stdout), "history.html\n", "{}", text(&written.stderr));
    let page = fs::read_to_string(project.path().join("history.html")).unwrap();
    // step.mean, step.median, step.max.
    assert_eq!(page.matches(r#"{"kind":"chart""#).count(), 3);
    // Once in each chart; the tables of the overview may name it too.
    assert!(page.matches(r#""kernel: 6.1 -> 6.18""#).count() >= 3);
    assert_eq!(page.matches(r#"{"kind":"steps""#).count(), 3);
    assert!(page.contains("stepscope-runs/day-07"));
}

#[test]
fn damaged_lines_are_noted_and_the_rest_is_shown() {
    let project = tempfile::tempdir().unwrap();
    fourteen_days(project.path());
    add_all(project.path());
    let index = project.path().join(".stepscope/history.jsonl");
    let mut lines: Vec<String> = fs::read_to_string(&index).unwrap().lines().map(str::to_owned).collect();
    lines[4].truncate(100);
    fs::write(&index, lines.join("\n")).unwrap();
    let trend = &tables(project.path(), &["--metric", "rtf"])[2];
    assert_eq!(trend["rows"][0]["runs"], 13);
    assert!(notes(trend).contains("history.jsonl:5: skipped: damaged"), "{}", notes(trend));
    // The run of the damaged line is not in the history, so that it can be added again.
    assert!(add_all(project.path()).starts_with("1 capture added to "));
    assert_eq!(tables(project.path(), &["--metric", "rtf"])[2]["rows"][0]["runs"], 14);
}

#[test]
fn programs_that_add_at_the_same_time_lose_nothing() {
    let project = tempfile::tempdir().unwrap();
    fourteen_days(project.path());
    let runs = runs(project.path());
    thread::scope(|scope| {
        for run in &runs {
            let project = project.path();
            scope.spawn(move || assert!(stepscope(project, &["history", "add", run]).status.success()));
        }
    });
    assert_eq!(tables(project.path(), &["--metric", "rtf"])[2]["rows"][0]["runs"], 14);
}

#[test]
fn a_history_is_found_from_any_folder_of_the_project() {
    let project = tempfile::tempdir().unwrap();
    fourteen_days(project.path());
    fs::write(project.path().join("stepscope.toml"), "").unwrap();
    let inner = project.path().join("worlds/indoor");
    fs::create_dir_all(&inner).unwrap();
    let added = stepscope(&inner, &["history", "add", "../../stepscope-runs/day-00"]);
    assert!(added.status.success(), "{}", text(&added.stderr));
    assert!(project.path().join(".stepscope/history.jsonl").is_file());
    assert_eq!(tables(&inner, &["--metric", "rtf"])[2]["rows"][0]["runs"], 1);
    assert_eq!(
        tables(Path::new("/"), &["--project", project.path().to_str().unwrap(), "--view", "runs"])[0]["rows"][0]["run"],
        "stepscope-runs/day-00"
    );
}

#[test]
fn errors_of_show_and_add_say_what_to_do() {
    let project = tempfile::tempdir().unwrap();
    for (arguments, code, says) in [
        (&["history"][..], 1, "stepscope history add RUN"),
        (&["history", "add"], 2, "RUN|CAPTURE"),
        (&["history", "add", "nowhere"], 1, "no such run"),
        (&["history", "--project", "nowhere"], 2, "no such folder"),
        (&["history", "--alpha", "2"], 2, "between 0 and 1"),
    ] {
        let reported = stepscope(project.path(), arguments);
        assert_eq!(reported.status.code(), Some(code), "{arguments:?}: {}", text(&reported.stderr));
        assert!(text(&reported.stderr).contains(says), "{arguments:?}: {}", text(&reported.stderr));
    }
    Drawn::new(0, 1_000_000).write(project.path());
    add_all(project.path());
    let reported = stepscope(project.path(), &["history", "--scenario", "marina"]);
    assert_eq!(reported.status.code(), Some(2));
    assert!(text(&reported.stderr).contains("the scenarios shapes and the metrics"), "{}", text(&reported.stderr));
}

#[test]
fn damaged_and_newer_runs_are_left_out_with_a_note() {
    let project = tempfile::tempdir().unwrap();
    fourteen_days(project.path());
    for (day, run_file) in [(0, "{\"schema\": 99}"), (1, "{")] {
        fs::write(project.path().join(format!("stepscope-runs/day-{day:02}/run.json")), run_file).unwrap();
    }
    let added = stepscope(project.path(), &["history", "add", "stepscope-runs"]);
    let reported = text(&added.stderr);
    assert!(
        reported.contains("day-00/run.json: schema 99 is newer") && reported.contains("day-01/run.json: damaged"),
        "{reported}"
    );
    fs::write(project.path().join("cpu.folded"), "main;step 5\n").unwrap();
    assert!(stepscope(project.path(), &["import", "cpu.folded"]).status.success());
    let added = stepscope(project.path(), &["history", "add", "cpu.capture"]);
    assert!(
        text(&added.stderr).contains("left out, because it has neither times nor steps"),
        "{}",
        text(&added.stderr)
    );
    assert!(text(&added.stdout).starts_with("0 captures added to "));
}

/// Drives the real recorder: two runs of the bundled simulator, one of which fails.
#[test]
fn a_run_adds_itself_to_the_history_beside_its_lab_file_unless_it_failed() {
    let Some(simulator) = simulator("a_run_adds_itself_to_the_history_beside_its_lab_file_unless_it_failed") else {
        return;
    };
    let project = tempfile::tempdir().unwrap();
    let lab = |line: &str| {
        let head = "record = { steady = { warmup_s = 0.1, duration_s = 0.3 }, loading = { timeout_s = 2 } }\n";
        let command = format!("command = [{:?}, \"run\", \"--n\", \"200\", \"--static\"]", simulator.to_str().unwrap());
        let text = format!("{head}[scenario.shapes]\n{command}\nready = {{ {line} }}\n");
        fs::write(project.path().join("stepscope.toml"), text).unwrap();
        stepscope(project.path(), &["run"])
    };
    let run = lab("log = \"ground: world ready\"");
    assert!(run.status.success(), "{}", text(&run.stderr));
    let failed = lab("log = \"never said\"");
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    assert!(text(&failed.stderr).contains("left out of the history"), "{}", text(&failed.stderr));
    let trend = &tables(project.path(), &["--metric", "wall"])[2];
    let phases: Vec<&str> =
        trend["rows"].as_array().unwrap().iter().map(|row| row["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["loading", "steady"]);
    assert!(trend["rows"].as_array().unwrap().iter().all(|row| row["runs"] == 1));
}
