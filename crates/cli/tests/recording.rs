//! Records real programs as a user does, and opens the captures with every subcommand.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use common::{command, json, row, simulator, stepscope, text};

/// A world that costs some CPU in known functions.
const WORLD: &[&str] = &["run", "--n", "1500", "--static", "--slow", "full-scan,pose-map"];

/// Records the simulator for a while into `folder/c`.
fn record(folder: &Path, simulator: &Path, seconds: &str) {
    let mut arguments = vec!["record", "-o", "c", "--duration", seconds, "--", simulator.to_str().unwrap()];
    arguments.extend(WORLD);
    let recorded = stepscope(folder, &arguments);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
}

#[test]
fn the_simulator_is_recorded_and_every_view_and_export_has_something_to_say() {
    let Some(simulator) = simulator("the_simulator_is_recorded_and_every_view_and_export_has_something_to_say") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    record(at, &simulator, "4s");
    let show =
        |view: &str| json(&stepscope(at, &["show", "c", "--view", view, "--owned", "ground::*", "--format", "json"]));
    let summary = &show("summary")["rows"][0];
    let coverage = summary["coverage"].as_f64().unwrap();
    assert!((90.0..110.0).contains(&coverage), "{summary}");
    assert!(summary["unknown_share"].as_f64().unwrap() < 1.0, "{summary}");
    assert!(summary["cpu"].as_u64().unwrap() > 200_000_000, "{summary}");
    let hotspots = show("hotspots");
    let scan = row(&hotspots, "ground::runner::SimulationRunner::process_recreate_entities_remove");
    assert!(scan["inclusive_share"].as_f64().unwrap() > 10.0, "{scan}");
    for view in ["threads", "wall", "sched", "faults", "resources", "tree", "blocked", "edges", "dimensions"] {
        assert!(!show(view)["rows"].as_array().unwrap().is_empty(), "{view}");
    }
    let explained =
        json(&stepscope(at, &["explain", "each_no_cache", "c", "--owned", "ground::*", "--format", "json"]));
    let names: Vec<&str> = explained["tables"].as_array().unwrap().iter().filter_map(|t| t["table"].as_str()).collect();
    for table in ["explain_costs", "explain_callers", "explain_callees", "explain_threads", "explain_leaves"] {
        assert!(names.contains(&table), "{names:?}");
    }
    for (format, begins) in [("folded", "ground"), ("firefox", "{"), ("speedscope", "{"), ("chrome", "{")] {
        let exported = stepscope(at, &["export", "c", "--format", format]);
        assert!(text(&exported.stdout).starts_with(begins), "{format}: {}", text(&exported.stderr));
    }
    for options in [&["--off-cpu"][..], &["--by-thread"], &["--inverted"], &["--faults"], &["--colours", "module"]] {
        let drawn = stepscope(at, &[&["flamegraph", "c"], options].concat());
        assert!(roxmltree::Document::parse(&text(&drawn.stdout)).is_ok(), "{options:?}");
    }
    assert!(stepscope(at, &["report", "c"]).status.success());
    assert!(text(&fs::read(at.join("report.html")).unwrap()).contains("Off-CPU flame graph"));
}

/// Whether steps can be recorded; says that `test` is skipped where not.
fn can_record_steps(test: &str) -> bool {
    let examined = stepscope(Path::new("/"), &["doctor", "--format", "json"]);
    let table: Value = serde_json::from_slice(&examined.stdout).unwrap();
    let can =
        table["rows"].as_array().unwrap().iter().any(|row| row["dimension"] == "steps" && row["status"] == "available");
    if !can {
        println!("skipped: {test}: calls of functions cannot be recorded on this machine (see stepscope doctor)");
    }
    can
}

#[test]
fn steps_are_counted_exactly_and_costs_are_given_per_step() {
    const NAME: &str = "steps_are_counted_exactly_and_costs_are_given_per_step";
    let Some(simulator) = simulator(NAME).filter(|_| can_record_steps(NAME)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let command = |steps| ["--", simulator.to_str().unwrap(), "run", "--n", "400", "--static", "--steps", steps];
    let whole =
        stepscope(at, &[&["record", "-o", "c", "--step-function", "ground_step"][..], &command("600")].concat());
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let summary = json(&stepscope(at, &["show", "c", "--view", "summary", "--format", "json"]));
    assert_eq!(summary["rows"][0]["steps"], 599, "of 600 begins, 599 are followed by another: {summary}");
    assert!(summary["rows"][0]["step_median"].as_u64().unwrap() > 1000, "{summary}");
    let rank = json(&stepscope(at, &["rank", "c", "--owned", "ground::*", "--format", "json"]));
    let cost = rank["columns"].as_array().unwrap().iter().find(|column| column["name"] == "cost").unwrap();
    assert_eq!(cost["unit"], "ns/step");

    let ready = ["record", "-o", "late", "--step-function", "ground_*ep", "--ready", "steps=200"];
    // On a busy machine, the recording begins many steps after the program was ready.
    let late = stepscope(at, &[&ready[..], &command("6000")].concat());
    assert!(text(&late.stderr).contains("(200 steps)"), "{}", text(&late.stderr));
    let summary = json(&stepscope(at, &["show", "late", "--view", "summary", "--format", "json"]));
    assert!((1..=5_799).contains(&summary["rows"][0]["steps"].as_u64().unwrap()), "{summary}");
    assert!(!at.join("late/unwanted.part").exists());
}

#[test]
fn an_interrupt_keeps_the_capture_and_leaves_nothing_running() {
    let Some(simulator) = simulator("an_interrupt_keeps_the_capture_and_leaves_nothing_running") else { return };
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    // The shell says that the simulator was started; its pid tells later whether it is gone.
    let script = format!("{} {} & echo $! > pid; touch ready; wait", simulator.display(), WORLD.join(" "));
    let recorder = command(folder.path(), &["record", "-o", "c", "--", "sh", "-c", &script]).spawn().unwrap();
    while !ready.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    let pid = i32::try_from(recorder.id()).unwrap();
    // SAFETY: no memory is involved, and the child has not been waited for: the pid is still its own.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("interrupted; what was recorded is kept"));
    let simulated = fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(simulated.trim()).exists(), "the simulator is still running");
    let table = json(&stepscope(folder.path(), &["show", "c", "--view", "summary", "--format", "json"]));
    assert!(table["rows"][0]["samples"].as_u64().unwrap() > 10, "{table}");
}

#[test]
fn a_recording_outlives_the_reader_of_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["record", "-o", "c", "--dimensions", "cpu", "--duration", "300ms", "--", "sleep", "30"];
    let mut recorder = command(folder.path(), &arguments).spawn().unwrap();
    // As `head` does after its last line.
    drop((recorder.stdout.take(), recorder.stderr.take()));
    assert!(recorder.wait().unwrap().success());
    assert!(stepscope_model::disk::is_capture(&folder.path().join("c")), "the capture is complete");
}

/// A terminal and a parent such as `timeout` may both send the signal of one Ctrl-C.
#[test]
fn a_signal_that_arrives_twice_is_one_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let script = "touch ready; exec sleep 60";
    let recorder = command(folder.path(), &["record", "-o", "c", "--", "sh", "-c", script]).spawn().unwrap();
    while !folder.path().join("ready").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = i32::try_from(recorder.id()).unwrap();
    for _ in 0..2 {
        // SAFETY: no memory is involved, and the child has not been waited for: the pid is still its own.
        unsafe { libc::kill(pid, libc::SIGINT) };
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    json(&stepscope(folder.path(), &["show", "c", "--view", "summary", "--format", "json"]));
}

#[test]
fn a_running_process_is_attached_to_and_not_ended() {
    let Some(simulator) = simulator("a_running_process_is_attached_to_and_not_ended") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut running = Command::new(simulator).args(WORLD).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("world ready")));
    let pid = running.id().to_string();
    let recorded = stepscope(folder.path(), &["record", "--pid", &pid, "--duration", "1s", "-o", "c"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    assert!(running.try_wait().unwrap().is_none(), "attaching is not ending");
    running.kill().unwrap();
    running.wait().unwrap();
    let hotspots = json(&stepscope(folder.path(), &["show", "c", "--format", "json"]));
    assert!(row(&hotspots, "ground::simulation::ground_step")["inclusive"].as_u64().unwrap() > 0);
}

#[test]
fn a_killed_recorder_leaves_a_log_that_recover_makes_a_capture_of() {
    let Some(simulator) = simulator("a_killed_recorder_leaves_a_log_that_recover_makes_a_capture_of") else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&["record", "-o", "c", "--", simulator.to_str().unwrap()], WORLD].concat();
    let mut recorder = command(folder.path(), &arguments).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let refused = stepscope(folder.path(), &["show", "c"]);
    assert!(text(&refused.stderr).contains("recover"), "{}", text(&refused.stderr));
    let recovered = stepscope(folder.path(), &["recover", "c"]);
    assert!(recovered.status.success(), "{}", text(&recovered.stderr));
    let summary = json(&stepscope(folder.path(), &["show", "c", "--view", "summary", "--format", "json"]));
    let wall_ns = summary["rows"][0]["wall"].as_u64().unwrap();
    assert!(wall_ns > 2_500_000_000, "all but the last second of some four: {wall_ns}");
}

/// Polls a condition until it holds. The deadline only guards against a hang.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the log of the capture `c` has entries.
fn is_recorded(folder: &Path) -> bool {
    fs::metadata(folder.join("c/raw.log")).is_ok_and(|log| log.len() > 100)
}

#[test]
fn nobody_takes_the_log_from_its_recorder() {
    let Some(_) = simulator("nobody_takes_the_log_from_its_recorder") else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = "while ! test -e stop; do :; done";
    let recorder = command(folder.path(), &["record", "-o", "c", "--", "sh", "-c", program]).spawn().unwrap();
    wait_until("the log to grow", || is_recorded(folder.path()));
    for other in [&["recover", "c"][..], &["show", "c"], &["record", "-o", "c", "--force", "--", "true"]] {
        let refused = stepscope(folder.path(), other);
        assert!(!refused.status.success(), "{other:?}");
        assert!(text(&refused.stderr).contains("still at work here"), "{other:?}: {}", text(&refused.stderr));
    }
    fs::write(folder.path().join("stop"), "").unwrap();
    let recorded = recorder.wait_with_output().unwrap();
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let capture = stepscope_model::disk::read(&folder.path().join("c")).unwrap();
    assert_eq!(capture.info.origin, stepscope_model::Origin::Recorded, "{:?}", capture.info.notes);
}

#[test]
fn the_log_of_a_killed_recorder_is_free_though_the_programs_live() {
    let Some(_) = simulator("the_log_of_a_killed_recorder_is_free_though_the_programs_live") else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; sh -c \"trap '' TERM; while ! test -e stop; do :; done\" & wait";
    let mut attached = Command::new("sh").args(["-c", script]).current_dir(folder.path()).spawn().unwrap();
    let pid = attached.id().to_string();
    for program in [&["--pid", &pid][..], &["--", "sh", "-c", script]] {
        let _ = fs::remove_dir_all(folder.path().join("c"));
        let mut recorder = command(folder.path(), &[&["record", "-o", "c"], program].concat()).spawn().unwrap();
        wait_until("the log to grow", || is_recorded(folder.path()));
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        let recovered = stepscope(folder.path(), &["recover", "c"]);
        assert!(recovered.status.success(), "{program:?}: {}", text(&recovered.stderr));
    }
    assert!(attached.try_wait().unwrap().is_none(), "attaching is not ending");
    fs::write(folder.path().join("stop"), "").unwrap();
    attached.wait().unwrap();
}

#[test]
fn a_lab_file_is_run_whole_though_one_scenario_fails() {
    let Some(simulator) = simulator("a_lab_file_is_run_whole_though_one_scenario_fails") else { return };
    let folder = tempfile::tempdir().unwrap();
    let ground = simulator.display();
    let lab = format!(
        r#"
        [project]
        name = "two of four"
        owned = {{ namespaces = ["ground::"] }}
        [record]
        steady = {{ warmup_s = 0.2, duration_s = 1.5 }}
        [scenario.static]
        command = ["{ground}", "run", "--n", "800", "--static", "--slow", "full-scan"]
        ready = {{ log = "ground: world ready" }}
        [scenario.missing]
        command = ["./no-such-simulator"]
        [scenario.dies]
        command = ["sh", "-c", "echo loading the world; echo out of memory >&2; exit 3"]
        ready = {{ log = "never said" }}
        [scenario.dynamic]
        command = ["{ground}", "run", "--n", "300", "--dynamic", "--slow", "full-scan"]
        ready = {{ log = "ground: world ready" }}
        "#
    );
    fs::write(folder.path().join("stepscope.toml"), lab).unwrap();
    let ran = stepscope(folder.path(), &["run", "--format", "json"]);
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    for line in ["no-such-simulator", "out of memory", "status 3"] {
        assert!(said.contains(line), "`{line}` in: {said}");
    }
    let rank: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let first = &rank["rows"][0];
    assert_eq!(first["scenarios"], 2, "{first}");
    let latest = folder.path().join("stepscope-runs/latest");
    for file in ["report.html", "rank.json", "rank.tsv", "run.json", "static/base/steady/capture.json"] {
        assert!(latest.join(file).is_file(), "{file}");
    }
    let ranked =
        json(&stepscope(folder.path(), &["rank", "stepscope-runs/latest", "--by", "score", "--format", "json"]));
    assert!(ranked["rows"].as_array().unwrap().iter().all(|row| row["score"].is_number()));

    // What is good of a run is shown though some of it is damaged.
    let damage = |scenario: &str| {
        for phase in fs::read_dir(latest.join(scenario).join("base")).unwrap().map(|phase| phase.unwrap().path()) {
            if phase.is_dir() {
                fs::write(phase.join("capture.json"), "{").unwrap();
            }
        }
    };
    damage("static");
    let of_the_rest = stepscope(folder.path(), &["rank", "stepscope-runs/latest", "--format", "json"]);
    let said = text(&of_the_rest.stderr);
    assert!(said.contains("static/base/steady") && said.contains("left out"), "{said}");
    assert_eq!(json(&of_the_rest)["rows"][0]["scenarios"], 1);
    ["dynamic", "dies"].into_iter().for_each(damage);
    assert_eq!(stepscope(folder.path(), &["rank", "stepscope-runs/latest"]).status.code(), Some(1));
}

#[test]
fn the_demonstration_records_ranks_and_reports_the_bundled_simulator() {
    if simulator("the_demonstration_records_ranks_and_reports_the_bundled_simulator").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shown = stepscope(folder.path(), &["demo", "--format", "json"]);
    let said = text(&shown.stderr);
    assert!(shown.status.success(), "{said}");
    assert!(said.contains("next: stepscope view"), "{said}");
    let rank: Value = serde_json::from_slice(&shown.stdout).unwrap();
    // Both switches that are on in the steady scenarios are found, ahead of what only carries them.
    let place = |part: &str| {
        let rows = rank["rows"].as_array().unwrap();
        rows.iter().position(|row| row["function"].as_str().unwrap().contains(part)).unwrap_or_else(|| panic!("{part}"))
    };
    assert!(place("rebuild_pose_map") < 4, "{rank}");
    assert!(place("EntityGraph::vertices").min(place("entity_matches")) < 4, "{rank}");
    assert!(folder.path().join("stepscope-runs/latest/report.html").is_file());
}

#[test]
fn functions_that_look_like_steps_are_suggested_with_the_command_that_records_them() {
    const NAME: &str = "functions_that_look_like_steps_are_suggested_with_the_command_that_records_them";
    let Some(simulator) = simulator(NAME) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let program = ["--", simulator.to_str().unwrap(), "run", "--n", "300", "--static"];
    let options = ["record", "--suggest-steps", "--duration", "700ms", "--format", "json"];
    let output = stepscope(at, &[&options[..], &program].concat());
    // The simulator prints on standard output, too.
    let printed = text(&output.stdout);
    let table: Value = serde_json::from_str(&printed[printed.find("{").unwrap_or(0)..])
        .unwrap_or_else(|error| panic!("{error}: {printed}{}", text(&output.stderr)));
    assert_eq!(table["table"], "step_candidates");
    let rows = table["rows"].as_array().unwrap();
    let step = rows.iter().find(|row| row["function"].as_str().unwrap().ends_with("::SimulationRunner::step"));
    let step = step.unwrap_or_else(|| panic!("{table}"));
    assert_eq!(step["thread"], "ground");
    assert_eq!(fs::read_dir(at).unwrap().count(), 0, "a suggestion leaves no capture");
    if !can_record_steps(NAME) {
        return;
    }
    assert!(step["rate"].as_f64().unwrap() > 1.0, "{table}");
    let notes = table["notes"].to_string();
    assert!(notes.contains("stepscope record --step ") && notes.contains("run --n 300 --static"), "{notes}");
}

#[test]
fn the_step_function_of_an_unknown_program_is_found_while_it_is_recorded() {
    const NAME: &str = "the_step_function_of_an_unknown_program_is_found_while_it_is_recorded";
    if simulator(NAME).is_none() || !can_record_steps(NAME) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let source = "volatile double sum;
        __attribute__((noinline)) static void sense(int n) { for (int i = 0; i < n; i++) sum += i; }
        __attribute__((noinline)) static void advance(int n) { for (int i = 0; i < n; i++) sum *= 0.5; }
        __attribute__((noinline)) void advance_world(void) { sense(2000000); advance(3000000); sum += 1; }
        int main(void) { for (;;) advance_world(); }";
    fs::write(at.join("world.c"), source).unwrap();
    let compiled = Command::new("cc").args(["-O1", "-o", "world", "world.c"]).current_dir(at).status();
    assert!(compiled.unwrap().success());
    let mut recording = command(at, &["record", "-o", "c", "-d", "60s", "--", "./world"]).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(recording.stderr.take().unwrap());
    while !said.contains("steps: calls of `advance_world`") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    std::thread::sleep(Duration::from_secs(1));
    let pid = recording.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    lines.read_to_string(&mut said).unwrap();
    assert!(recording.wait().unwrap().success(), "{said}");
    let steps = json(&stepscope(at, &["show", "c", "--view", "steps", "--format", "json"])).to_string();
    assert!(steps.contains("Steps are calls of `advance_world`: `record` found them by their steady rate"), "{steps}");
    let loops = json(&stepscope(at, &["show", "c", "--view", "summary", "--format", "json"])).to_string();
    assert!(loops.contains("steps"), "{loops}");
    let hotspots = json(&stepscope(at, &["show", "c", "--format", "json"]));
    let advance = row(&hotspots, "advance");
    // 3 of 5 million rounds.
    let share = advance["inclusive_share"].as_f64().unwrap();
    assert!((40.0..80.0).contains(&share), "{advance}");
}

#[test]
fn a_program_can_be_interrupted_although_the_recorder_was_started_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    // As a shell starts a job in the background: with SIGINT ignored.
    let in_background = r#"trap '' INT; exec "$0" record -o c -d 300ms -- bash -c 'trap "echo interrupted; exit" INT; while :; do :; done'"#;
    let shell = std::process::Command::new("bash")
        .args(["-c", in_background, env!("CARGO_BIN_EXE_stepscope")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(text(&shell.stdout).contains("interrupted"), "{}{}", text(&shell.stdout), text(&shell.stderr));
}
