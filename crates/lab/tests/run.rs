//! Runs on disk: trials one after the other whatever becomes of each, folders that are found again, and what is refused.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use common::Bed;
use stepscope_lab::event::Event;
use stepscope_lab::execution::Context;
use stepscope_lab::lab_file::TrialFilter;
use stepscope_lab::outcome::{Failure, Outcome, Stage, exit_code};
use stepscope_lab::run::{LATEST, RUN_FILE, Run, RunError};
use stepscope_model::{Phase, disk};

const FOUR_SCENARIOS: &str = r#"
[record]
steady = { warmup_s = 0, duration_s = 0.05 }

[scenario.not_found]
command = ["no-such-simulator"]

[scenario.dies]
command = ["sh", "-c", "echo 'cannot open world' >&2; exit 3"]
ready = { log = "Loaded" }

[scenario.never_ready]
command = ["sh", "-c", "echo waiting; exec sleep 60"]
ready = { log = "Loaded" }
record = { loading = { timeout_s = 5 } }

[scenario.good]
axis = "a world that loads"
command = ["sh", "-c", "echo Loaded; exec sleep 60"]
ready = { log = "Loaded" }
"#;

fn runs(bed: &Bed) -> PathBuf {
    bed.folder.path().join("runs")
}

/// Runs all of a lab file.
fn conduct(bed: &Bed, text: &str, listener: &mut dyn FnMut(&Event<'_>)) -> Run {
    let lab = bed.lab(text);
    let trials = lab.trials(&TrialFilter::default()).unwrap();
    let mut run = Run::create(&runs(bed), &lab, &trials).unwrap();
    let mut listener = |event: &Event<'_>| listener(event);
    run.record(&trials, &mut Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener: &mut listener })
        .unwrap();
    assert_eq!(bed.left_behind(), Vec::<String>::new());
    run
}

fn inside(run: &Run, folders: Vec<PathBuf>) -> Vec<String> {
    folders.iter().map(|folder| folder.strip_prefix(run.folder()).unwrap().display().to_string()).collect()
}

fn failed(outcome: &Outcome) -> &Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn scenarios_that_fail_are_reported_with_their_last_lines_and_the_others_go_on() {
    let bed = Bed::new();
    let run = conduct(&bed, FOUR_SCENARIOS, &mut |_| {});
    let outcomes: Vec<&Outcome> = run.outcomes().collect();
    assert_eq!(exit_code(outcomes.iter().copied()), 1);
    assert_eq!(failed(outcomes[0]).stage, Stage::Launch);
    assert_eq!(
        (failed(outcomes[1]).status, &failed(outcomes[1]).last_lines[..]),
        (Some(3), &["cannot open world".into()][..])
    );
    assert_eq!(failed(outcomes[2]).last_lines, ["waiting"]);
    assert_eq!(*outcomes[3], Outcome::Recorded);
    let captures = ["dies/base/loading", "never_ready/base/loading", "good/base/loading", "good/base/steady"];
    assert_eq!(inside(&run, run.captures()), captures);
}

#[test]
fn a_run_that_is_opened_again_is_the_one_that_was_written() {
    let bed = Bed::new();
    let run = conduct(&bed, FOUR_SCENARIOS, &mut |_| {});
    let again = Run::open(run.folder()).unwrap();
    assert_eq!(again.info(), run.info());
    assert_eq!(again.captures(), run.captures());
    let info = again.info().unwrap();
    assert!(info.ended_at.is_some());
    let good = &info.trials[3];
    assert_eq!((good.label().as_str(), good.axis.as_deref()), ("good", Some("a world that loads")));
    assert_eq!(good.ready_by.as_deref(), Some("output \"Loaded\""));
    assert_eq!(good.captured, [Phase::Loading, Phase::Steady]);
    assert_eq!(fs::read_to_string(run.folder().join("stepscope.toml")).unwrap(), FOUR_SCENARIOS);
}

#[test]
fn the_copied_lab_file_of_a_run_has_the_same_paths_as_the_original() {
    let bed = Bed::new();
    let text = "project.owned.sources = ['src/**']\nscenario.a = { command = ['./sim'] }";
    let lab = bed.lab(text);
    let run = Run::create(&runs(&bed), &lab, &[]).unwrap();
    let again = Run::open(run.folder()).unwrap().lab().unwrap().unwrap();
    assert_eq!((&again.owned, &again.path), (&lab.owned, &lab.path));
    assert!(again.owned.sources.contains(&format!("{}/src/**", bed.folder.path().display())));
    fs::remove_file(run.folder().join("stepscope.toml")).unwrap();
    assert!(run.lab().is_none());
}

#[test]
fn an_interrupt_keeps_the_captures_so_far_and_runs_nothing_more() {
    let bed = Bed::new();
    let text = r#"
        [record]
        steady = { warmup_s = 0, duration_s = 0.05 }
        [scenario.first]
        command = ["sleep", "60"]
        [scenario.second]
        command = ["sh", "-c", "(trap '' TERM INT; sleep 61) & sleep 62"]
        record = { steady = { duration_s = 60 } }
        stop = { interrupt_s = 0.1, terminate_s = 0.1 }
        [scenario.third]
        command = ["sleep", "60"]
    "#;
    let mut launched = 0;
    let run = conduct(&bed, text, &mut |event| match event {
        Event::Launched { .. } => launched += 1,
        Event::Progress { .. } if launched == 2 => bed.interrupt.store(true, Ordering::Relaxed),
        _ => {}
    });
    let outcomes: Vec<&Outcome> = run.outcomes().collect();
    assert_eq!(outcomes, [&Outcome::Recorded, &Outcome::Interrupted, &Outcome::NotRun]);
    assert_eq!(exit_code(outcomes), 130);
    assert_eq!(inside(&run, run.captures()), ["first/base/steady", "second/base/steady"]);
}

#[test]
fn captures_are_in_the_order_of_the_lab_file_and_not_of_the_alphabet() {
    let bed = Bed::new();
    let text = r#"
        [record]
        steady = { warmup_s = 0, duration_s = 0.02 }
        [scenario.z]
        command = ["sleep", "60"]
        [scenario.a]
        command = ["sleep", "60"]
        [variant.slow]
        [variant.fast]
        env = { FIX = "1" }
    "#;
    let run = conduct(&bed, text, &mut |_| {});
    let expected = ["z/slow/steady", "z/fast/steady", "a/slow/steady", "a/fast/steady"];
    assert_eq!(inside(&run, run.captures()), expected);
}

#[test]
fn no_run_writes_into_the_folder_of_another_and_latest_is_the_newest() {
    let bed = Bed::new();
    let text = r#"scenario.a = { command = ["true"] }"#;
    let lab = bed.lab(text);
    let names: Vec<PathBuf> =
        (0..3).map(|_| Run::create(&runs(&bed), &lab, &[]).unwrap().folder().to_owned()).collect();
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2], "{names:?}");
    let latest = fs::canonicalize(runs(&bed).join(LATEST)).unwrap();
    assert_eq!(latest, fs::canonicalize(&names[2]).unwrap());
    // The folder of runs stands for its newest run.
    assert_eq!(fs::canonicalize(Run::open(&runs(&bed)).unwrap().folder()).unwrap(), latest);
}

#[test]
fn a_file_called_latest_is_left_alone() {
    let bed = Bed::new();
    fs::create_dir(runs(&bed)).unwrap();
    fs::write(runs(&bed).join(LATEST), "mine").unwrap();
    Run::create(&runs(&bed), &bed.lab("scenario.a = { command = ['true'] }"), &[]).unwrap();
    assert_eq!(fs::read_to_string(runs(&bed).join(LATEST)).unwrap(), "mine");
}

#[test]
fn a_folder_of_captures_is_a_run_without_a_description() {
    let bed = Bed::new();
    let run = conduct(&bed, FOUR_SCENARIOS, &mut |_| {});
    fs::remove_file(run.folder().join(RUN_FILE)).unwrap();
    let opened = Run::open(run.folder()).unwrap();
    assert_eq!(opened.info(), None);
    let captures = ["dies/base/loading", "good/base/loading", "good/base/steady", "never_ready/base/loading"];
    assert_eq!(inside(&opened, opened.captures()), captures);
    let one = Run::open(&run.folder().join("good/base/steady")).unwrap();
    assert_eq!(one.captures().len(), 1);
}

#[test]
fn a_recording_whose_recorder_was_killed_is_found_to_be_recovered() {
    let bed = Bed::new();
    let run = conduct(&bed, FOUR_SCENARIOS, &mut |_| {});
    let folder = run.folder().join("good/base/steady");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(disk::RAW_LOG_FILE), "what there is").unwrap();
    assert_eq!(inside(&run, run.unfinished()), ["good/base/steady"]);
    assert!(!inside(&run, run.captures()).contains(&"good/base/steady".to_owned()));
}

#[test]
fn a_path_that_is_no_run_is_refused_with_the_reason() {
    let bed = Bed::new();
    let open = |path: &Path| Run::open(path).unwrap_err();
    let folder = bed.folder.path();
    assert!(matches!(open(&folder.join("nowhere")), RunError::Absent { .. }));
    assert!(matches!(open(folder), RunError::NotARun { .. }));
    fs::write(folder.join("file"), "").unwrap();
    assert!(matches!(open(&folder.join("file")), RunError::NotARun { .. }));

    let described = |text: &str| {
        fs::write(folder.join(RUN_FILE), text).unwrap();
        open(folder)
    };
    assert!(matches!(described("{"), RunError::Damaged { .. }));
    assert!(matches!(described("[]"), RunError::Damaged { .. }));
    assert!(matches!(described(r#"{"schema": 1, "trials": {}}"#), RunError::Damaged { .. }));
    assert!(matches!(described(r#"{"schema": 99}"#), RunError::TooNew { found: 99, .. }));
    assert!(matches!(described(r#"{"schema": 99999999999}"#), RunError::TooNew { found: u32::MAX, .. }));
    fs::File::create(folder.join(RUN_FILE)).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(open(folder), RunError::Damaged { .. }));
}

#[test]
fn links_out_of_a_run_are_not_followed() {
    let bed = Bed::new();
    let run = conduct(&bed, FOUR_SCENARIOS, &mut |_| {});
    let before = run.captures().len();
    std::os::unix::fs::symlink(run.folder().join("good"), run.folder().join("linked")).unwrap();
    assert_eq!(run.captures().len(), before);
}
