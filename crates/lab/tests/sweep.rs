//! Sweeps: which points are run in which order, and what becomes of those that were not run.

mod common;

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::Bed;
use stepscope_lab::event::Event;
use stepscope_lab::execution::Context;
use stepscope_lab::lab_file::TrialFilter;
use stepscope_lab::run::Run;
use stepscope_lab::sweep::{Options, Plan, record, resume};
use stepscope_model::disk;

const OPTIONS: Options = Options { runs: 2, seed: 1, budget: None, precision_percent: None, patience: Duration::ZERO };

const LAB: &str = r#"
[record]
phases = ["steady"]
steady = { warmup_s = 0, duration_s = 0.02 }

[sweep]
n = [10, 20, 110]

[scenario.crowd]
command = ["sh", "-c", "echo {n} >> log; echo up; exec sleep 60"]
ready = { log = "up" }

[scenario.other]
command = ["true"]
"#;

fn plan(bed: &Bed, options: &Options) -> Plan {
    Plan::new(&bed.lab(LAB), &TrialFilter::default(), options.clone()).unwrap()
}

fn sweep(bed: &Bed, options: &Options, listener: &mut dyn FnMut(&Event<'_>)) -> Run {
    let mut listener = |event: &Event<'_>| listener(event);
    let mut context = Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener: &mut listener };
    let run = record(&bed.folder.path().join("runs"), &bed.lab(LAB), plan(bed, options), &mut context).unwrap();
    assert_eq!(bed.left_behind(), Vec::<String>::new());
    run
}

/// The sizes that were run, in order.
fn ran(bed: &Bed) -> Vec<u32> {
    let text = fs::read_to_string(bed.folder.path().join("log")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn each_round_runs_each_size_once_and_captures_name_their_size() {
    let bed = Bed::new();
    assert_eq!(plan(&bed, &OPTIONS).left_out, ["other"]);
    let run = sweep(&bed, &OPTIONS, &mut |_| ());
    let ran = ran(&bed);
    for round in ran.chunks(3) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [10, 20, 110]);
    }
    let sizes: Vec<f64> = run.captures().iter().map(|capture| disk::read(capture).unwrap().info.sweep["n"]).collect();
    assert_eq!(
        (ran.len(), sizes),
        (6, vec![10.0, 10.0, 20.0, 20.0, 110.0, 110.0]),
        "captures are in the order of sizes"
    );
    let capture = disk::read(&run.folder().join("crowd/n=20/02/steady")).unwrap();
    assert_eq!(capture.info.sweep["n"], 20.0);
    assert_eq!(capture.info.variant.as_deref(), Some("n=20"));
    assert!(run.info().unwrap().trials.iter().all(|trial| trial.result.is_recorded()));
}

#[test]
fn an_interrupted_sweep_goes_on_with_what_was_not_recorded() {
    let bed = Bed::new();
    let mut started = 0;
    let run = sweep(&bed, &OPTIONS, &mut |event| {
        started += usize::from(matches!(event, Event::TrialStarted { .. }));
        if started == 4 {
            bed.interrupt.store(true, Ordering::Relaxed);
        }
    });
    let recorded = |run: &Run| run.info().unwrap().trials.iter().filter(|trial| trial.result.is_recorded()).count();
    assert_eq!(recorded(&run), 3);
    bed.interrupt.store(false, Ordering::Relaxed);
    let run = Run::open(run.folder()).unwrap();
    let plan = Plan::of_run(&run, &run.lab().unwrap().unwrap(), OPTIONS).unwrap();
    let mut listener = |_: &Event<'_>| ();
    let mut context = Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener: &mut listener };
    let run = resume(run, plan, &mut context).unwrap();
    assert_eq!((recorded(&run), run.captures().len()), (6, 6));
}

#[test]
fn a_budget_that_is_used_up_leaves_complete_trials_and_says_so() {
    let bed = Bed::new();
    let run = sweep(&bed, &Options { budget: Some(Duration::ZERO), ..OPTIONS }, &mut |_| ());
    assert_eq!(run.info().unwrap().trials.len(), 0);
    let ended = &run.info().unwrap().sweep.as_ref().unwrap().ended_early;
    assert_eq!(ended, &["crowd ended early: the budget is used up; `--resume` continues."]);
}

#[test]
fn a_lab_file_without_axes_cannot_be_swept() {
    let bed = Bed::new();
    let lab = bed.lab("[scenario.a]\ncommand = [\"true\"]");
    let error = Plan::new(&lab, &TrialFilter::default(), OPTIONS).unwrap_err();
    assert!(error.to_string().contains("no [sweep]"), "{error}");
}
