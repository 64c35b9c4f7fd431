//! A trial that is recorded for real: each phase holds what happened in it, and nothing of the other.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::Bed;
use stepscope_lab::event::Event;
use stepscope_lab::execution::{Context, execute};
use stepscope_lab::lab_file::TrialFilter;
use stepscope_lab::outcome::{Outcome, Stage};
use stepscope_lab::recorder::PerfRecorder;
use stepscope_model::{Capture, Dimension, DimensionStatus, Phase, disk};
use stepscope_record::abilities::Abilities;

/// Loads, says so, waits until its driver lets it go, and steps until it is ended. `step_world` runs in a thread and in
/// a child process too.
const SIMULATOR: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sum;

static long cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((noinline)) void load_world(void) {
  while (cpu_ms() < 150) for (int i = 0; i < 100000; i++) sum += i;
}

__attribute__((noinline)) void step_world(void) {
  for (int i = 0; i < 100000; i++) sum += i;
}

static void *run(void *ignored) {
  for (;;) step_world();
  return ignored;
}

int main(void) {
  load_world();
  puts("Loaded world");
  fflush(stdout);
  while (access("go", F_OK) != 0) usleep(1000);
  pthread_t thread;
  pthread_create(&thread, 0, run, 0);
  if (fork() == 0) execl("/bin/sleep", "sleep", "60", (char *)0);
  run(0);
}
"#;

fn build(folder: &Path) -> bool {
    fs::write(folder.join("simulator.c"), SIMULATOR).unwrap();
    let mut compiler = Command::new("cc");
    compiler.current_dir(folder).args(["-O1", "-g", "-o", "simulator", "simulator.c", "-lpthread"]);
    compiler.status().is_ok_and(|status| status.success())
}

/// Names of the functions that CPU time was sampled in.
fn functions(capture: &Capture) -> BTreeSet<&str> {
    let frames = capture.samples.iter().flat_map(|sample| capture.frames_of(sample.stack));
    frames.map(|frame| capture.function(frame)).collect()
}

#[test]
fn each_phase_holds_what_happened_in_it_and_nothing_of_the_other() {
    const NAME: &str = "each_phase_holds_what_happened_in_it_and_nothing_of_the_other";
    let bed = Bed::new();
    if !Abilities::probe().can_record() {
        println!("skipped: {NAME}: this user may not record here");
        return;
    }
    if !build(bed.folder.path()) {
        println!("skipped: {NAME}: there is no C compiler");
        return;
    }
    let trial = bed.trial(
        r#"
        [scenario.real]
        command = ["./simulator"]
        ready = { log = "Loaded world" }
        drivers = [["sh", "-c", "touch go; exec sleep 60"]]
        step = { function = "step_world" }
        record = { steady = { warmup_s = 0.2, duration_s = 0.5 } }
        "#,
    );
    let out = bed.folder.path().join("out");
    let mut samples_seen = 0;
    let mut listener = |event: &Event<'_>| {
        if let Event::Progress { stage: Stage::Steady, recording, .. } = event {
            samples_seen = recording.cpu_samples;
        }
    };
    let recorder = PerfRecorder::default();
    let mut context = Context { recorder: &recorder, interrupt: &bed.interrupt, listener: &mut listener };
    let executed = execute(&trial, &out, &mut context);
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert_eq!(bed.left_behind(), Vec::<String>::new());
    assert!(samples_seen > 0, "a listener sees the recording grow");

    let capture_of = |phase: &str| disk::read(&out.join(phase)).unwrap();
    let (loading, steady) = (capture_of("loading"), capture_of("steady"));
    assert_eq!((loading.info.phase, steady.info.phase), (Some(Phase::Loading), Some(Phase::Steady)));
    assert_eq!(loading.info.scenario.as_deref(), Some("real"));
    let has = |capture: &Capture, function: &str| functions(capture).contains(function);
    assert!(has(&loading, "load_world") && has(&loading, "main"), "{:?}", functions(&loading));
    assert!(!has(&loading, "step_world"));
    assert!(has(&steady, "step_world") && has(&steady, "run"), "{:?}", functions(&steady));
    assert!(!has(&steady, "load_world"));

    // The driver is no part of what is measured; the program's own child is.
    let commands: Vec<&str> = steady.processes.iter().map(|process| process.command_line.as_str()).collect();
    assert!(commands.contains(&"sleep 60"), "{commands:?}");
    assert!(!commands.iter().any(|command| command.contains("touch go")), "{commands:?}");
    let steps = &steady.info.dimensions[&Dimension::Steps];
    match steps {
        DimensionStatus::Recorded => {
            assert!(steady.steps.len() > 1 && loading.steps.is_empty(), "{}", steady.steps.len())
        }
        other => assert!(steady.steps.is_empty(), "{other:?}"),
    }
}

/// Steps of about a millisecond that it marks itself, each with a scope; the simulated time of a mark is the step's number
/// in milliseconds.
const MARKING: &str = r#"
#include <time.h>
#include "stepscope.h"

int main(void) {
  for (long long step = 0;; step++) {
    struct timespec pause = {0, 1000000};
    STEPSCOPE_STEP_NS(step * 1000000);
    STEPSCOPE_SCOPE("Step");
    nanosleep(&pause, 0);
  }
}
"#;

/// Builds the program that marks its steps in the bed's folder, where it can be recorded.
fn can_record_marking(test: &str, bed: &Bed) -> bool {
    if !Abilities::probe().can_record() {
        println!("skipped: {test}: this user may not record here");
        return false;
    }
    fs::write(bed.folder.path().join("marking.c"), MARKING).unwrap();
    let mut compiler = Command::new("cc");
    compiler.current_dir(bed.folder.path()).args(["-O1", "-DSTEPSCOPE_MARKS=1", "-o", "simulator", "marking.c"]);
    compiler.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../marks/c")).arg("-lpthread");
    if !compiler.status().is_ok_and(|status| status.success()) {
        println!("skipped: {test}: there is no C compiler");
        return false;
    }
    true
}

/// The captures of both phases of a program that is ready after twenty steps.
fn marked(test: &str, step: &str) -> Option<[Capture; 2]> {
    let bed = Bed::new();
    if !can_record_marking(test, &bed) {
        return None;
    }
    let trial = bed.trial(&format!(
        r#"
        [scenario.marked]
        command = ["./simulator"]
        ready = {{ steps = 20 }}
        step = {step}
        record = {{ steady = {{ warmup_s = 0.1, duration_s = 0.3 }} }}
        "#
    ));
    let out = bed.folder.path().join("out");
    let recorder = PerfRecorder::default();
    let mut listener = |_: &Event<'_>| {};
    let mut context = Context { recorder: &recorder, interrupt: &bed.interrupt, listener: &mut listener };
    assert_eq!(execute(&trial, &out, &mut context).outcome, Outcome::Recorded);
    Some(["loading", "steady"].map(|phase| disk::read(&out.join(phase)).unwrap()))
}

fn have_no_gaps(capture: &Capture) -> bool {
    capture.steps.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns)
}

#[test]
fn steps_that_a_program_marks_are_counted_while_it_loads_and_whole_in_each_phase() {
    let name = "steps_that_a_program_marks_are_counted_while_it_loads_and_whole_in_each_phase";
    let Some([loading, steady]) = marked(name, r#""marks""#) else { return };
    assert!(loading.steps.len() >= 20 && steady.steps.len() >= 20);
    let milliseconds = |capture: &Capture| -> Vec<u64> {
        capture.steps.iter().map(|step| step.sim_time_ns.unwrap() / 1_000_000).collect()
    };
    let (while_loading, while_steady) = (milliseconds(&loading), milliseconds(&steady));
    assert_eq!(while_loading, (1..=while_loading.len() as u64).collect::<Vec<_>>(), "from the first step on");
    assert!(while_steady[0] > while_loading[while_loading.len() - 1]);
    for capture in [&loading, &steady] {
        assert!(have_no_gaps(capture));
        assert_eq!(capture.info.dimensions[&Dimension::Steps], DimensionStatus::Recorded);
        assert_eq!(capture.info.losses.lost_marks, 0);
    }
}

#[test]
fn steps_start_with_the_scope_that_the_lab_file_names() {
    let name = "steps_start_with_the_scope_that_the_lab_file_names";
    let Some([loading, steady]) = marked(name, r#"{ scope = "Step" }"#) else { return };
    for capture in [&loading, &steady] {
        assert!(capture.steps.len() >= 20 && have_no_gaps(capture), "{}", capture.steps.len());
        let begins: BTreeSet<u64> = capture.scopes.iter().map(|scope| scope.start_ns).collect();
        assert!(capture.steps.iter().all(|step| begins.contains(&step.start_ns)));
    }
}

#[test]
fn variants_with_different_step_functions_record_the_same_number_of_steps() {
    let name = "variants_with_different_step_functions_record_the_same_number_of_steps";
    let bed = Bed::new();
    if !can_record_marking(name, &bed) {
        return;
    }
    const STEPS: usize = 200;
    let lab = bed.lab(&format!(
        r#"
        [scenario.marked]
        command = ["./simulator"]
        ready = {{ steps = 20 }}
        step = "marks"
        record = {{ phases = ["steady"], steady = {{ warmup_s = 0.1, duration_s = 600, steps = {STEPS} }} }}
        [variant.before]
        [variant.after]
        step = {{ scope = "Step" }}
        "#
    ));
    let trials = lab.trials(&TrialFilter::default()).unwrap();
    assert_eq!(trials.len(), 2);
    for (trial, is_scope) in trials.iter().zip([false, true]) {
        let out = bed.folder.path().join(trial.variant.as_ref().unwrap());
        let recorder = PerfRecorder::default();
        let mut listener = |_: &Event<'_>| {};
        let mut context = Context { recorder: &recorder, interrupt: &bed.interrupt, listener: &mut listener };
        let executed = execute(trial, &out, &mut context);
        assert_eq!((&executed.outcome, executed.notes.len()), (&Outcome::Recorded, 0), "{:?}", executed.notes);
        let steady = disk::read(&out.join("steady")).unwrap();
        // The recording is looked at some fifty times a second, so some steps more are in it; 600 s would hold 500,000.
        assert!((STEPS..STEPS * 100).contains(&steady.steps.len()), "{} steps", steady.steps.len());
        assert!(have_no_gaps(&steady));
        let begins: BTreeSet<u64> = steady.scopes.iter().map(|scope| scope.start_ns).collect();
        assert_eq!(steady.steps.iter().all(|step| begins.contains(&step.start_ns)), is_scope);
    }
}

#[test]
fn a_steady_phase_that_is_too_short_for_its_steps_says_how_many_it_has() {
    let name = "a_steady_phase_that_is_too_short_for_its_steps_says_how_many_it_has";
    let bed = Bed::new();
    if !can_record_marking(name, &bed) {
        return;
    }
    let trial = bed.trial(
        r#"
        [scenario.marked]
        command = ["./simulator"]
        step = "marks"
        record = { steady = { warmup_s = 0, duration_s = 0.3, steps = 1000000 } }
        "#,
    );
    let recorder = PerfRecorder::default();
    let mut listener = |_: &Event<'_>| {};
    let mut context = Context { recorder: &recorder, interrupt: &bed.interrupt, listener: &mut listener };
    let executed = execute(&trial, &bed.folder.path().join("out"), &mut context);
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert!(executed.notes[0].contains("of 1000000 steps; `duration_s` limits it"), "{:?}", executed.notes);
}
