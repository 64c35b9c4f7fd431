//! Two variants in turns: which runs are made in which order, which of them are compared, and what becomes of rounds
//! that fail, are interrupted or are disturbed.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::Bed;
use stepscope_lab::ab::{Disturbed, Options, Plan, record};
use stepscope_lab::event::Event;
use stepscope_lab::execution::Context;
use stepscope_lab::outcome::{Outcome, Stage};
use stepscope_lab::run::{ComparedCaptures, Run, SET_ASIDE};
use stepscope_model::{Phase, disk};

const OPTIONS: Options = Options { runs: 2, warm: 0, seed: 1, patience: Duration::ZERO, disturbed: Disturbed::Again };

/// Scenarios are recorded once they have written to the log, however long a busy machine takes to get there.
const LAB: &str = r#"
[record]
phases = ["steady"]
steady = { warmup_s = 0, duration_s = 0.02 }

[scenario.first]
command = ["sh", "-c", "echo $WHICH >> $LOG; echo up; exec sleep 60"]
env = { WHICH = "A" }
ready = { log = "up" }

[scenario.second]
command = ["sh", "-c", "echo 2$WHICH >> $LOG; echo up; exec sleep 60"]
env = { WHICH = "A" }
ready = { log = "up" }

[variant.after]
env = { WHICH = "B" }
"#;

/// Compares all of a lab file, whose programs may write to `$LOG`.
fn compare(bed: &Bed, text: &str, options: &Options, listener: &mut dyn FnMut(&Event<'_>)) -> Run {
    let mut lab = bed.lab(text);
    for scenario in &mut lab.scenarios {
        scenario.env.insert("LOG".to_owned(), log(bed).display().to_string());
    }
    let plan = Plan::new(lab.pairs(None, None, &[]).unwrap(), options.clone());
    let mut listener = |event: &Event<'_>| listener(event);
    let mut context = Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener: &mut listener };
    let run = record(&bed.folder.path().join("runs"), &lab, plan, &mut context).unwrap();
    assert_eq!(bed.left_behind(), Vec::<String>::new());
    run
}

fn log(bed: &Bed) -> PathBuf {
    bed.folder.path().join("log")
}

/// What the programs wrote, in one line.
fn ran(bed: &Bed) -> String {
    fs::read_to_string(log(bed)).unwrap_or_default().split_whitespace().collect()
}

fn sides_of(run: &Run) -> Vec<(String, Vec<String>, Vec<String>)> {
    let inside = |folders: Vec<PathBuf>| -> Vec<String> {
        folders.iter().map(|folder| folder.strip_prefix(run.folder()).unwrap().display().to_string()).collect()
    };
    let of = |sides: ComparedCaptures| (sides.scenario, inside(sides.baseline), inside(sides.candidate));
    run.sides().into_iter().map(of).collect()
}

#[test]
fn every_round_holds_both_variants_in_the_order_that_was_drawn_scenario_by_scenario() {
    let bed = Bed::new();
    let run = compare(&bed, LAB, &OPTIONS, &mut |_| {});
    let info = run.info().unwrap();
    let ab = info.ab.as_ref().unwrap();
    assert_eq!((ab.baseline.as_str(), ab.candidate.as_str(), ab.runs, ab.seed), ("base", "after", 2, 1));
    let (first, second) = (&ab.order["first"], &ab.order["second"]);
    assert!([first, second].iter().all(|order| ["ABBA", "BAAB"].contains(&order.as_str())), "{ab:?}");
    assert_eq!(ran(&bed), format!("{first}{}", second.replace('A', "2A").replace('B', "2B")));

    let folders = |scenario: &str, variant: &str| -> Vec<String> {
        (1..=2).map(|number| format!("{scenario}/{variant}/{number:02}/steady")).collect()
    };
    let of = |scenario: &str| (scenario.to_owned(), folders(scenario, "base"), folders(scenario, "after"));
    assert_eq!(sides_of(&run), [of("first"), of("second")]);
    let capture = disk::read(&run.folder().join("first/after/02/steady")).unwrap();
    assert_eq!((capture.info.repetition, capture.info.variant.as_deref()), (Some(2), Some("after")));
    assert_eq!(capture.info.phase, Some(Phase::Steady));
    assert_eq!(run.captures().len(), 8);
    assert!(info.trials.iter().all(|trial| trial.before.as_ref().is_some_and(|b| b.others_percent.is_some())));

    let again = Run::open(run.folder()).unwrap();
    assert_eq!((again.info(), again.sides()), (run.info(), run.sides()));
}

#[test]
fn rounds_that_warm_up_are_run_and_not_kept() {
    let bed = Bed::new();
    let run = compare(&bed, LAB, &Options { warm: 1, ..OPTIONS }, &mut |_| {});
    assert_eq!(run.captures().len(), 8);
    let order = run.info().unwrap().ab.as_ref().unwrap().order["first"].clone();
    assert!(ran(&bed).starts_with(&format!("AB{order}2A2B")), "{}", ran(&bed));
    let names = fs::read_dir(run.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name != ".warm-up"));
}

#[test]
fn an_interrupt_keeps_the_rounds_that_are_whole() {
    let bed = Bed::new();
    let mut started = 0;
    let run = compare(&bed, LAB, &Options { runs: 3, ..OPTIONS }, &mut |event| match event {
        Event::TrialStarted { .. } => started += 1,
        Event::Progress { stage: Stage::Steady, .. } if started == 4 => bed.interrupt.store(true, Ordering::Relaxed),
        _ => {}
    });
    let one = |variant: &str| vec![format!("first/{variant}/01/steady")];
    assert_eq!(sides_of(&run), [("first".to_owned(), one("base"), one("after"))]);
    let aside: Vec<&str> = run.info().unwrap().trials.iter().filter_map(|trial| trial.set_aside.as_deref()).collect();
    assert_eq!(aside, ["the round was not completed"; 2]);
    for variant in ["base", "after"] {
        assert!(run.folder().join(SET_ASIDE).join("first").join(variant).join("02/steady").is_dir(), "{variant}");
        assert!(!run.folder().join("first").join(variant).join("02").exists(), "{variant}");
    }
    assert_eq!(run.captures().len(), 2, "what is set aside is not among the captures");
    let outcomes: Vec<&Outcome> = run.outcomes().collect();
    assert_eq!(outcomes[3..5], [&Outcome::Interrupted, &Outcome::NotRun]);
}

#[test]
fn a_variant_that_fails_twice_is_given_up_and_the_next_scenario_goes_on() {
    let bed = Bed::new();
    let text = r#"
        [record]
        phases = ["steady"]
        steady = { warmup_s = 0, duration_s = 0.02 }
        [scenario.first]
        command = ["sh", "-c", "[ $WHICH = A ] || exit 3; echo up; exec sleep 60"]
        env = { WHICH = "A" }
        ready = { log = "up" }
        [scenario.second]
        command = ["sleep", "60"]
        [variant.after]
        env = { WHICH = "B" }
    "#;
    let run = compare(&bed, text, &Options { runs: 4, ..OPTIONS }, &mut |_| {});
    let sides = run.sides();
    assert_eq!(sides.iter().map(|sides| sides.scenario.as_str()).collect::<Vec<_>>(), ["second"]);
    assert_eq!((sides[0].baseline.len(), sides[0].candidate.len()), (4, 4));
    let first = &run.info().unwrap().trials[..8];
    let failed = first.iter().filter(|trial| matches!(trial.result, Outcome::Failed(_))).count();
    let not_run = first.iter().filter(|trial| trial.result == Outcome::NotRun).count();
    assert_eq!((failed, not_run), (2, 4), "a round more is tried, and then no more");
}

/// A lab of one scenario.
fn one_scenario() -> String {
    LAB.replace("[scenario.second]", "[scenario.second_unused]")
        .split("[scenario.second_unused]")
        .next()
        .unwrap()
        .to_owned()
        + "[variant.after]\nenv = { WHICH = \"B\" }\n"
}

/// A bed whose captures have these background loads, in percent, in the order of the runs.
fn shares(shares: &[u64]) -> Bed {
    let bed = Bed::new();
    *bed.recorder.others_percent.lock().unwrap() = shares.iter().copied().collect();
    bed
}

#[test]
fn a_disturbed_round_is_set_aside_for_another_one() {
    let bed = shares(&[1, 1, 2, 50, 1, 1, 2, 1]);
    let run = compare(&bed, &one_scenario(), &Options { runs: 4, ..OPTIONS }, &mut |_| {});
    let (_, baseline, candidate) = sides_of(&run).remove(0);
    let numbers = |folders: &[String]| -> Vec<String> {
        folders.iter().map(|folder| folder.split('/').nth(2).unwrap().to_owned()).collect()
    };
    assert_eq!((numbers(&baseline), numbers(&candidate)), (numbers(&baseline), numbers(&baseline)));
    assert_eq!(numbers(&baseline), ["01", "03", "04", "05"]);
    let aside: Vec<_> = run.info().unwrap().trials.iter().filter(|trial| trial.set_aside.is_some()).collect();
    assert_eq!(aside.len(), 2);
    assert_eq!(aside.iter().filter(|trial| trial.disturbed.is_some()).count(), 1);
    let why = aside.iter().find_map(|trial| trial.disturbed.as_ref().and(trial.set_aside.as_deref())).unwrap();
    let expected = "disturbed: other processes used 50.0 % of the CPU (typical: 1.0 %); the \
                    round was repeated";
    assert_eq!(why, expected);
    assert!(run.folder().join(aside[0].folder()).join("steady").is_dir());
    assert_eq!(ran(&bed).len(), 10);
}

#[test]
fn disturbed_rounds_that_are_kept_are_compared_with_a_note() {
    let bed = shares(&[1, 1, 2, 50, 1, 1, 2, 1]);
    let options = Options { runs: 4, disturbed: Disturbed::Kept, ..OPTIONS };
    let run = compare(&bed, &one_scenario(), &options, &mut |_| {});
    assert_eq!(sides_of(&run)[0].1.len(), 4);
    let disturbed = run.info().unwrap().trials.iter().filter(|trial| trial.disturbed.is_some()).count();
    assert_eq!((disturbed, ran(&bed).len()), (1, 8));
}

#[test]
fn no_more_than_a_quarter_of_the_rounds_is_run_again_and_the_worst_are_replaced() {
    // Rounds 2 and 3 are disturbed, and the one that may be run again is too.
    let bed = shares(&[1, 1, 60, 60, 30, 30, 1, 1, 90, 90]);
    let run = compare(&bed, &one_scenario(), &Options { runs: 4, ..OPTIONS }, &mut |_| {});
    let info = run.info().unwrap();
    let of = |wanted: &dyn Fn(&stepscope_lab::run::TrialInfo) -> bool| -> Vec<u32> {
        info.trials.iter().filter(|trial| wanted(trial)).filter_map(|trial| trial.repetition).collect()
    };
    assert_eq!(of(&|trial| trial.set_aside.is_some()), [5, 5], "the new round is judged as the others are");
    assert_eq!(of(&|trial| trial.disturbed.is_some()), [2, 2, 3, 3, 5, 5]);
    assert_eq!(sides_of(&run)[0].1.len(), 4);
}

#[test]
fn a_failed_build_shows_its_last_lines_and_nothing_is_run() {
    let bed = Bed::new();
    if !repository(bed.folder.path()) {
        println!("skipped: a_failed_build_shows_its_last_lines_and_nothing_is_run: there is no git");
        return;
    }
    let text = r#"
        scenario.a = { command = ["sleep", "60"] }
        variant.old = { revision = "HEAD", build = ["sh", "-c", "echo 'no rule to make sim'; exit 2"] }
    "#;
    let run = compare(&bed, text, &OPTIONS, &mut |_| {});
    assert!(run.captures().is_empty() && run.sides().is_empty());
    let failed: Vec<_> = run
        .outcomes()
        .filter_map(|outcome| match outcome {
            Outcome::Failed(failure) => Some(failure),
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 2);
    assert_eq!((failed[0].stage, failed[0].status), (Stage::Build, Some(2)));
    assert_eq!(failed[0].last_lines, ["no rule to make sim"]);
    assert!(run.folder().join("build-old.log").is_file());
}

/// Makes a repository of what is in the folder. Whether git is there.
fn repository(folder: &Path) -> bool {
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
        command.output().is_ok_and(|output| output.status.success())
    };
    fs::write(folder.join("README"), "a simulator\n").unwrap();
    git(&["init", "--quiet"]) && git(&["add", "README"]) && git(&["commit", "--quiet", "-m", "begin"])
}
