//! Stores: runs are added whole or not at all, once, by any number of writers, and read like their folders.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use stepscope_model::{Capture, CaptureInfo, Counts, Event, Machine, Phase, Sample, Step, disk};

use common::{command, json, stepscope, text};

/// A run of one capture of `shapes`: 40 steps of 1 ms, with `percent` samples of `World::Step` among 100 of `main`.
fn draw(project: &Path, day: usize, host: &str, variant: &str, percent: u64) -> PathBuf {
    let mut capture = Capture::default();
    let event = capture.add_event(Event { counts: Counts::OnePerRow, ..Event::weighed("cpu-clock", "ns") });
    let main = capture.add_thread_named("main");
    let names = ["main", "World::Step", "World::Draw"].map(|name| capture.intern_function(name));
    for index in 0..400 {
        let leaf = if index % 100 < percent { names[1] } else { names[2] };
        let stack = capture.intern_stack([names[0], leaf]);
        let time_ns = Some(index * 100_000);
        capture.samples.push(Sample { time_ns, thread: main, cpu: None, stack, event, weight: 100_000 });
    }
    capture.steps = (0..40)
        .map(|index| Step {
            index,
            start_ns: index * 1_000_000,
            end_ns: (index + 1) * 1_000_000,
            sim_time_ns: None,
            thread: main,
        })
        .collect();
    capture.info = CaptureInfo {
        scenario: Some("shapes".into()),
        variant: Some(variant.into()),
        phase: Some(Phase::Steady),
        started_at: Some(format!("2026-{:02}-{:02}T10:00:00.000Z", 1 + day / 28, 1 + day % 28)),
        start_ns: Some(0),
        end_ns: Some(40_000_000),
        machine: Some(Machine { host: host.into(), cpu: "EPYC".into(), cores: 2, ..Machine::default() }),
        ..capture.info
    };
    let run = project.join(format!("runs/{host}-{variant}-{day:03}"));
    let folder = run.join(format!("shapes/{variant}/steady"));
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    disk::write(&capture, &folder).unwrap();
    let started_at = capture.info.started_at.as_ref().unwrap();
    let info = format!(r#"{{"schema": 1, "tool": "t", "name": "sim", "started_at": "{started_at}", "trials": []}}"#);
    fs::write(run.join("run.json"), info).unwrap();
    run
}

fn succeed(project: &Path, arguments: &[&str]) -> String {
    let output = stepscope(project, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn listed(project: &Path) -> BTreeSet<String> {
    let table = json(&stepscope(project, &["store", "list", "data", "--format", "json"]));
    table["rows"].as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap().to_owned()).collect()
}

/// The files of a store that a pattern over all runs finds, from the store.
fn files(store: &Path) -> Vec<String> {
    let pattern = store.join("runs/**/*.parquet");
    let found = glob::glob(pattern.to_str().unwrap()).unwrap();
    found.map(|path| path.unwrap().strip_prefix(store).unwrap().display().to_string()).collect()
}

#[test]
fn a_run_is_laid_out_by_keys_and_is_added_once() {
    let project = tempfile::tempdir().unwrap();
    draw(project.path(), 0, "lab 1", "base", 20);
    let add = ["store", "add", "runs/lab 1-base-000", "--to", "data"];
    let first = succeed(project.path(), &add);
    assert!(first.starts_with("added 2026-01-01T10-00-00Z-lab 1-"), "{first}");
    let keys = "project=sim/scenario=shapes/phase=steady/variant=base/date=2026-01-01/machine=lab%201";
    let files = files(&project.path().join("data"));
    for table in ["hotspots", "metrics", "captures"] {
        let found = files.iter().any(|file| file.ends_with(&format!("/table={table}/{keys}/part.parquet")));
        assert!(found, "{table}: {files:?}");
    }
    let again = succeed(project.path(), &add);
    assert_eq!(again, first.replacen("added", "unchanged", 1));
    // With its samples it is more than before.
    let samples = succeed(project.path(), &[&add[..], &["--samples"]].concat());
    assert!(samples.starts_with("replaced"), "{samples}");
    assert!(succeed(project.path(), &add).starts_with("unchanged"), "a run with samples keeps them");
    assert_eq!(listed(project.path()).len(), 1);
    assert!(succeed(project.path(), &["store", "check", "data"]).contains("1 run, all complete"));
}

#[test]
fn writers_at_the_same_time_add_every_run_once() {
    let project = tempfile::tempdir().unwrap();
    (0..6).for_each(|day| drop(draw(project.path(), day, "lab", "base", 20)));
    thread::scope(|scope| {
        for writer in 0..3 {
            let project = project.path();
            scope.spawn(move || {
                for day in (0..6).map(|day| (day + 2 * writer) % 6) {
                    succeed(project, &["store", "add", &format!("runs/lab-base-{day:03}"), "--to", "data"]);
                }
            });
        }
    });
    assert_eq!(listed(project.path()).len(), 6);
    assert!(succeed(project.path(), &["store", "check", "data"]).contains("6 runs, all complete"));
    assert_eq!(fs::read_dir(project.path().join("data/.staging")).unwrap().count(), 0);
}

#[test]
fn a_killed_writer_leaves_whole_runs_only() {
    let project = tempfile::tempdir().unwrap();
    (0..8).for_each(|day| drop(draw(project.path(), day, "lab", "base", 20)));
    for kill in 0..12 {
        let mut writer =
            command(project.path(), &["store", "add", "runs", "--samples", "--to", "data"]).spawn().unwrap();
        thread::sleep(Duration::from_millis(15 * kill));
        writer.kill().unwrap();
        writer.wait().unwrap();
        // Files that a pattern finds belong to runs that are complete.
        let complete = if project.path().join("data/stepscope-store.json").exists() {
            let check = stepscope(project.path(), &["store", "check", "data", "--format", "json"]);
            let check: Value = serde_json::from_slice(&check.stdout).unwrap();
            let rows = check["rows"].as_array().unwrap();
            let left = |row: &&Value| row["problem"].as_str().unwrap().starts_with("a writer that was stopped");
            assert_eq!(rows.iter().filter(left).count(), rows.len(), "{rows:?}");
            listed(project.path()).len()
        } else {
            0
        };
        let runs: BTreeSet<String> =
            files(&project.path().join("data")).iter().map(|file| file.split('/').nth(1).unwrap().to_owned()).collect();
        assert_eq!(runs.len(), complete);
    }
    succeed(project.path(), &["store", "add", "runs", "--samples", "--to", "data"]);
    assert_eq!(listed(project.path()).len(), 8);
    assert!(succeed(project.path(), &["store", "check", "data"]).contains("8 runs, all complete"));
}

#[test]
fn a_full_disk_leaves_whole_runs_only() {
    let project = tempfile::tempdir().unwrap();
    (0..40).for_each(|day| drop(draw(project.path(), day, "lab", "base", 20)));
    let data = project.path().join("data");
    fs::create_dir(&data).unwrap();
    let mount = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).arg(&data).output().is_ok_and(|output| output.status.success())
    };
    if !mount("mount", &["-t", "tmpfs", "-o", "size=1m", "tmpfs"]) {
        println!("skipped: a_full_disk_leaves_whole_runs_only: needs the right to mount");
        return;
    }
    let added = stepscope(project.path(), &["store", "add", "runs", "--samples", "--to", "data"]);
    let check = stepscope(project.path(), &["store", "check", "data"]);
    let complete = listed(project.path()).len();
    let unmounted = mount("umount", &[]);
    assert!(unmounted);
    assert!(text(&added.stderr).contains("No space left on device"), "{}", text(&added.stderr));
    assert_eq!(added.status.code(), Some(1));
    assert!(text(&check.stdout).contains("all complete"), "{}{}", text(&check.stdout), text(&check.stderr));
    assert!(complete > 0 && complete < 40, "{complete}");
}

#[test]
fn a_damaged_file_and_one_that_does_not_belong_are_found() {
    let project = tempfile::tempdir().unwrap();
    draw(project.path(), 0, "lab", "base", 20);
    succeed(project.path(), &["store", "add", "runs", "--to", "data"]);
    let data = project.path().join("data");
    let metrics = files(&data).into_iter().find(|file| file.contains("table=metrics")).unwrap();
    let mut bytes = fs::read(data.join(&metrics)).unwrap();
    bytes[20] ^= 1;
    fs::write(data.join(&metrics), bytes).unwrap();
    fs::write(data.join(metrics.replace("part", "other")), "x").unwrap();
    let check = stepscope(project.path(), &["store", "check", "data", "--columns", "problem"]);
    let problems = text(&check.stdout);
    assert_eq!(check.status.code(), Some(1));
    assert!(problems.contains("its checksum differs") && problems.contains("not in the manifest"), "{problems}");
    let none = stepscope(project.path(), &["store", "list", "runs"]);
    assert!(text(&none.stderr).contains("not empty and not a store"), "{}", text(&none.stderr));
    assert!(text(&stepscope(project.path(), &["store", "list", "absent"]).stderr).contains("no store here"));
}

#[test]
fn the_history_of_a_store_is_that_of_its_runs() {
    let project = tempfile::tempdir().unwrap();
    (0..4).for_each(|day| drop(draw(project.path(), day, "lab", "base", 20 + day as u64)));
    succeed(project.path(), &["history", "add", "runs", "--project", "."]);
    succeed(project.path(), &["store", "add", "runs", "--to", "data", "--samples"]);
    let values = |arguments: &[&str]| -> Vec<Value> {
        let arguments = [&["history", "--view", "values", "--format", "json"], arguments].concat();
        let table = json(&stepscope(project.path(), &arguments));
        let mut rows = table["rows"].as_array().unwrap().clone();
        // Folders differ, figures do not.
        rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("run")));
        rows
    };
    let of_store = values(&["--store", "data"]);
    assert!(of_store.len() > 20, "{}", of_store.len());
    assert_eq!(of_store, values(&["--project", "."]));
    let empty = stepscope(project.path(), &["history", "--store", "absent"]);
    assert!(text(&empty.stderr).contains("no store here"), "{}", text(&empty.stderr));
}

#[test]
fn captures_of_a_store_are_compared_and_shown_as_their_folders_are() {
    let project = tempfile::tempdir().unwrap();
    for day in 0..5 {
        draw(project.path(), day, "lab", "before", 40 + day as u64 % 2);
        draw(project.path(), day, "lab", "after", 20 + day as u64 % 2);
    }
    succeed(project.path(), &["store", "add", "runs", "--samples", "--to", "data"]);
    let compared = |sides: [&str; 2]| {
        let mut value =
            json(&stepscope(project.path(), &["compare", sides[0], sides[1], "--seed", "1", "--format", "json"]));
        for table in value["tables"].as_array_mut().unwrap() {
            drop(table.as_object_mut().unwrap().remove("notes"));
        }
        value["tables"].clone()
    };
    let of_store = compared(["store:data/variant=before", "store:data/variant=after"]);
    assert_eq!(of_store, compared(["runs/lab-before-*", "runs/lab-after-*"]));
    let show = |source: &str| json(&stepscope(project.path(), &["show", source, "--format", "json"]))["rows"].clone();
    assert_eq!(show("store:data/variant=after/date=2026-01-03"), show("runs/lab-after-002/shapes/after/steady"));
    let several = stepscope(project.path(), &["show", "store:data/variant=after"]);
    assert!(text(&several.stderr).contains("5 captures; name one of them"), "{}", text(&several.stderr));
    let unknown = stepscope(project.path(), &["compare", "store:data/variant=x", "store:data/variant=after"]);
    assert!(text(&unknown.stderr).contains("no capture has these keys"), "{}", text(&unknown.stderr));
    succeed(project.path(), &["store", "add", "runs/lab-after-000", "--to", "thin"]);
    let thin = stepscope(project.path(), &["show", "store:thin"]);
    assert!(text(&thin.stderr).contains("without samples"), "{}", text(&thin.stderr));
}

/// Whether a query can run here; says that `test` is skipped if not.
fn has_engine(test: &str) -> bool {
    let has = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let found = has("duckdb", &["--version"]) || has("python3", &["-c", "import duckdb"]);
    if !found {
        println!("skipped: {test}: DuckDB is not installed (pip install duckdb)");
    }
    found
}

#[test]
fn a_query_without_an_engine_says_what_to_install() {
    let project = tempfile::tempdir().unwrap();
    draw(project.path(), 0, "lab", "base", 20);
    succeed(project.path(), &["store", "add", "runs", "--to", "data"]);
    let query = ["query", "SELECT 1", "--store", "data"];
    let output = command(project.path(), &query).env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("pip install duckdb"), "{}", text(&output.stderr));
}

#[test]
fn a_query_gives_what_show_gives() {
    if !has_engine("a_query_gives_what_show_gives") {
        return;
    }
    let project = tempfile::tempdir().unwrap();
    (0..3).for_each(|day| drop(draw(project.path(), 27 * day, "007", "base", 20 + day as u64)));
    succeed(project.path(), &["store", "add", "runs", "--to", "data", "--samples"]);
    let query = |sql: &str| json(&stepscope(project.path(), &["query", sql, "--store", "data", "--format", "json"]));
    let answer = query(
        "SELECT strftime(date, '%Y-%m') AS month, machine, sum(self) AS self FROM hotspots WHERE function = 'World::Step' \
         GROUP BY ALL ORDER BY month, self",
    );
    let rows = answer["rows"].as_array().unwrap();
    let found: Vec<(&str, &str, f64)> = rows
        .iter()
        .map(|row| (row["month"].as_str().unwrap(), row["machine"].as_str().unwrap(), row["self"].as_f64().unwrap()))
        .collect();
    // 400 samples of 100 us, of which 20 to 22 % are in this function; the name of the machine stays text.
    assert_eq!(found, [("2026-01", "007", 16_400_000.0), ("2026-02", "007", 8_800_000.0)]);
    assert_eq!(query("SELECT count(*) AS n FROM raw_samples")["rows"][0]["n"], 1200);
    let refused = stepscope(project.path(), &["query", "SELECT * FROM hotspot", "--store", "data"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("The store has the tables "), "{}", text(&refused.stderr));
}
