//! A trial that is recorded for real: each phase holds what happened in it, and nothing of the other.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::Bed;
use stepscope_lab::event::Event;
use stepscope_lab::execution::{Bench, execute};
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
        if let Event::Going { stage: Stage::Steady, recording, .. } = event {
            samples_seen = recording.samples;
        }
    };
    let recorder = PerfRecorder::default();
    let mut bench = Bench { recorder: &recorder, interrupt: &bed.interrupt, listener: &mut listener };
    let executed = execute(&trial, &out, &mut bench);
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
