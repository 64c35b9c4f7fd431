//! The life of a trial, with real programs and a recorder that records nothing: what is recorded when, what becomes of
//! failures, and that nothing is left behind.

mod common;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use common::Bed;
use stepscope_lab::event::{Event, Listener};
use stepscope_lab::execution::{Context, Executed, OUTPUT_FILE, execute};
use stepscope_lab::lab_file::Trial;
use stepscope_lab::outcome::{Failure, Outcome, Stage};
use stepscope_model::{Phase, disk};

/// `[record]` of tests: everything is as short as it can be.
const SHORT: &str = "
[record]
loading = { timeout_s = 60 }
steady = { warmup_s = 0.05, duration_s = 0.1 }
[stop]
interrupt_s = 20
terminate_s = 20
";

fn run_with_listener(bed: &Bed, trial: &Trial, listener: &mut dyn Listener) -> Executed {
    let mut context = Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener };
    let executed = execute(trial, &bed.folder.path().join("out"), &mut context);
    assert_eq!(bed.left_behind(), Vec::<String>::new());
    executed
}

fn run(bed: &Bed, text: &str) -> Executed {
    run_with_listener(bed, &bed.trial(&format!("{text}{SHORT}")), &mut |_: &Event<'_>| {})
}

fn failure(executed: &Executed) -> &Failure {
    match &executed.outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

fn notes(bed: &Bed, phase: &str) -> Vec<String> {
    disk::read(&bed.folder.path().join("out").join(phase)).unwrap().info.notes
}

#[test]
fn values_that_the_program_prints_in_a_phase_are_metrics_of_its_capture() {
    let bed = Bed::new();
    let trial = bed.trial(&format!(
        r#"{SHORT}
        [scenario.shapes]
        command = ["sh", "-c", "echo 'latency: 7 ms'; echo ready; while :; do echo 'latency: 2.5 ms'; sleep 0.01; done"]
        ready = {{ log = "ready" }}
        [metric.latency]
        log = "latency: {{value}} ms"
        [metric.absent]
        csv = "absent.csv"
        column = "value"
        "#
    ));
    run_with_listener(&bed, &trial, &mut |_: &Event<'_>| {});
    let capture = |phase: &str| disk::read(&bed.folder.path().join("out").join(phase)).unwrap().info;
    let (loading, steady) = (capture("loading"), capture("steady"));
    assert_eq!((loading.own_metrics[0].values[0], loading.own_metrics[0].unit.as_str()), (7e6, "ns"));
    assert!(!steady.own_metrics[0].values.is_empty());
    assert!(steady.own_metrics[0].values.iter().all(|value| *value == 2.5e6), "{:?}", steady.own_metrics);
    assert!(steady.notes.iter().any(|note| note.contains("no value of the metric absent")), "{:?}", steady.notes);
}

#[test]
fn both_phases_are_recorded_from_launch_to_ready_and_after_the_warm_up() {
    let bed = Bed::new();
    let trial = bed.trial(&format!(
        r#"{SHORT}
        [scenario.shapes]
        command = ["sh", "-c", "echo loading; echo 'Loaded world'; sleep 60"]
        ready = {{ log = "Loaded world" }}
        "#
    ));
    let mut happened: Vec<String> = Vec::new();
    let executed = run_with_listener(&bed, &trial, &mut |event: &Event<'_>| match event {
        Event::Ready { by, .. } => happened.push(format!("ready by {by}")),
        Event::Progress { stage, .. } if happened.last() != Some(&stage.to_string()) => {
            happened.push(stage.to_string())
        }
        Event::Captured { phase, samples, .. } => happened.push(format!("{phase}: {samples} samples")),
        Event::Stopping => happened.push("stopping".to_owned()),
        _ => {}
    });

    assert_eq!(executed.outcome, Outcome::Recorded);
    assert_eq!(executed.captured, [Phase::Loading, Phase::Steady]);
    assert_eq!(bed.recorder.events(), ["launch loading", "pause", "next steady", "stop"]);
    happened.retain(|what| what != "loading");
    let ready = r#"ready by output "Loaded world""#;
    let expected = [ready, "warm-up", "steady", "stopping", "loading: 1 samples", "steady: 1 samples"];
    assert_eq!(happened, expected);

    let out = bed.folder.path().join("out");
    assert_eq!(fs::read_to_string(out.join(OUTPUT_FILE)).unwrap(), "loading\nLoaded world\n");
    for phase in ["loading", "steady"] {
        let capture = disk::read(&out.join(phase)).unwrap();
        assert_eq!(capture.info.label(), Some(format!("shapes/{phase}")));
        assert!(capture.info.environment.contains_key("STEPSCOPE_TEST_MARKER"));
        assert!(!out.join(phase).join(disk::RAW_LOG_FILE).exists());
    }
}

#[test]
fn without_a_ready_condition_and_warm_up_the_steady_phase_begins_with_the_launch() {
    let bed = Bed::new();
    let executed = run(&bed, r#"scenario.a = { command = ["sleep", "60"], record = { steady = { warmup_s = 0 } } }"#);
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert_eq!(bed.recorder.events(), ["launch steady", "stop"]);
    assert_eq!(executed.captured, [Phase::Steady]);
}

#[test]
fn recordings_before_the_only_wanted_phase_are_not_kept() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sleep", "60"]
        ready = { after_s = 0.05 }
        record = { phases = ["steady"] }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert_eq!(bed.recorder.events(), ["launch -", "pause", "next steady", "stop"]);
    let mut kept: Vec<_> =
        fs::read_dir(bed.folder.path().join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    kept.sort();
    assert_eq!(kept, [OUTPUT_FILE, "steady"]);
}

#[test]
fn loading_alone_ends_when_the_scenario_is_ready() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "touch loaded; sleep 60"]
        ready = { file = "loaded" }
        record = { phases = ["loading"] }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert_eq!(bed.recorder.events(), ["launch loading", "stop"]);
    assert_eq!(executed.ready.unwrap().1, format!("file {}", bed.folder.path().join("loaded").display()));
}

#[test]
fn a_file_that_was_there_before_does_not_make_a_scenario_ready() {
    let bed = Bed::new();
    fs::write(bed.folder.path().join("loaded"), "from the last time").unwrap();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "sleep 0.5; exit 5"]
        ready = { file = "loaded" }
        "#,
    );
    assert_eq!((failure(&executed).stage, failure(&executed).status), (Stage::Loading, Some(5)));
}

#[test]
fn a_port_is_ready_when_the_scenario_listens_on_it() {
    let bed = Bed::new();
    // A port that is free now, and that nobody is given meanwhile as it was used.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let has_python = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !has_python {
        println!("skipped: a_port_is_ready_when_the_scenario_listens_on_it: python3 is not there");
        return;
    }
    let executed = run(
        &bed,
        &format!(
            r#"
            [scenario.a]
            command = ["python3", "-c", "import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(60)"]
            ready = {{ port = {port} }}
            "#
        ),
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert!(executed.ready.unwrap().1.starts_with(&format!("port {port} open in process ")));
}

#[test]
fn a_scenario_that_is_never_ready_fails_with_its_last_lines_and_keeps_what_was_recorded() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "echo one; echo two >&2; sleep 60"]
        ready = { log = "Loaded" }
        record = { loading = { timeout_s = 5.5 } }
        "#,
    );
    let failure = failure(&executed);
    assert_eq!((failure.stage, failure.status), (Stage::Loading, None));
    assert!(failure.reason.starts_with("not ready after 5.5 s"), "{}", failure.reason);
    assert!(failure.reason.contains("no line of its output held \"Loaded\""), "{}", failure.reason);
    assert_eq!(failure.last_lines, ["one", "two"]);
    assert_eq!(executed.captured, [Phase::Loading]);
    assert!(notes(&bed, "loading")[0].starts_with("The scenario failed in its loading stage: not ready"));
}

#[test]
fn a_program_that_dies_early_is_reported_with_its_status_and_what_it_said_last() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "sleep 60 & for i in $(seq 100); do echo line $i; done; echo 'cannot load' >&2; exit 3"]
        ready = { log = "Loaded" }
        "#,
    );
    let failure = failure(&executed);
    assert_eq!((failure.stage, failure.status), (Stage::Loading, Some(3)));
    assert!(failure.reason.starts_with("`sh` exited with status 3 before it was ready, "), "{}", failure.reason);
    assert_eq!(failure.last_lines.len(), 20);
    assert_eq!(failure.last_lines[0], "line 82");
    assert_eq!(failure.last_lines[19], "cannot load");
    assert_eq!(bed.recorder.events(), ["launch loading", "exit 3", "stop"]);
}

#[test]
fn a_program_that_is_killed_is_reported_with_the_signal() {
    let bed = Bed::new();
    let executed = run(&bed, r#"scenario.a = { command = ["sh", "-c", "kill -SEGV $$"], ready = { log = "x" } }"#);
    assert_eq!(failure(&executed).status, Some(139));
    assert!(failure(&executed).reason.contains("was killed by SIGSEGV"), "{}", failure(&executed).reason);
}

#[test]
fn a_program_that_is_ready_and_ends_at_once_was_ready() {
    let bed = Bed::new();
    let executed = run(&bed, r#"scenario.a = { command = ["echo", "Loaded"], ready = { log = "Loaded" } }"#);
    assert_eq!(executed.ready.as_ref().unwrap().1, "output \"Loaded\"");
    assert_eq!(failure(&executed).stage, Stage::WarmUp);
    assert_eq!(executed.captured, [Phase::Loading]);
}

#[test]
fn a_command_that_is_not_found_is_reported_and_leaves_no_capture() {
    let bed = Bed::new();
    let executed = run(&bed, r#"scenario.a = { command = ["no-such-simulator"] }"#);
    assert_eq!(failure(&executed).stage, Stage::Launch);
    assert!(failure(&executed).reason.contains("no-such-simulator"), "{}", failure(&executed).reason);
    assert_eq!(executed.captured, []);
    assert_eq!(bed.recorder.events(), Vec::<String>::new());
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let bed = Bed::new();
    let executed = run(&bed, r#"scenario.a = { command = ["true"], cwd = "nowhere" }"#);
    assert!(failure(&executed).reason.contains("/nowhere"), "{}", failure(&executed).reason);
}

#[test]
fn a_program_that_fails_in_its_steady_phase_keeps_the_capture_and_the_capture_says_so() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "until [ -e fail ]; do sleep 0.01; done; echo 'out of bodies'; exit 4"]
        record = { steady = { warmup_s = 0, duration_s = 60 } }
        drivers = [["sh", "-c", "touch fail; sleep 60"]]
        "#,
    );
    let failure = failure(&executed);
    assert_eq!((failure.stage, failure.status), (Stage::Steady, Some(4)));
    assert_eq!(failure.last_lines, ["out of bodies"]);
    assert_eq!(executed.captured, [Phase::Steady]);
    assert!(notes(&bed, "steady")[0].contains("`sh` exited with status 4 in its steady phase"));
}

#[test]
fn a_program_that_is_done_before_the_time_is_up_is_recorded_and_the_capture_says_so() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "sleep 0.2"]
        record = { steady = { warmup_s = 0, duration_s = 60 } }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert!(notes(&bed, "steady")[0].starts_with("The program ended by itself, with status 0, after "));
    assert_eq!(bed.recorder.events(), ["launch steady", "exit 0", "stop"]);
}

#[test]
fn a_launcher_that_hands_over_and_leaves_has_not_ended() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "(sleep 0.3; echo Loaded; sleep 60) & exit 0"]
        ready = { log = "Loaded" }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
}

#[test]
fn a_program_that_ignores_signals_is_killed_in_the_end_and_this_is_said() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "trap '' INT TERM; echo up; while :; do sleep 60; done"]
        ready = { log = "up" }
        stop = { interrupt_s = 0.1, terminate_s = 0.1 }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert_eq!(executed.notes.len(), 1);
    assert!(executed.notes[0].contains("had to be killed: sh ("), "{}", executed.notes[0]);
}

#[test]
fn daemons_that_leave_their_session_are_ended_too() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "setsid sh -c '(trap \"\" HUP; sleep 61) & sleep 62' & echo up; sleep 60"]
        ready = { log = "up" }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
}

#[test]
fn a_stubborn_child_and_a_daemon_whose_parents_are_gone_are_killed_and_named() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", """
            stubborn='trap "" INT TERM HUP; touch $1; while :; do sleep 60; done'
            sh -c "$stubborn" child child_up &
            (setsid sh -c "$stubborn" daemon daemon_up &)
            until [ -e child_up ] && [ -e daemon_up ]; do sleep 0.01; done
            echo up
            exec sleep 60
        """]
        ready = { log = "up" }
        stop = { interrupt_s = 0.1, terminate_s = 0.1 }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    let [note] = &executed.notes[..] else { panic!("{:?}", executed.notes) };
    assert_eq!(note.matches("sh (").count(), 2, "{note}");
}

#[test]
fn drivers_run_in_their_own_directory_from_ready_to_the_end_with_the_environment_of_the_scenario() {
    let bed = Bed::new();
    fs::create_dir(bed.folder.path().join("clients")).unwrap();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "echo up; sleep 60"]
        env = { WORLD = "shapes", SHOWN = "scenario" }
        ready = { log = "up" }
        drivers = [
            { command = ["sh", "-c", "echo $WORLD $SHOWN $(basename $PWD); sleep 60"], cwd = "clients", env = { SHOWN = "driver" } },
            ["sh", "-c", "setsid sleep 63 & sleep 60"],
        ]
        record = { steady = { duration_s = 1 } }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    let said = fs::read_to_string(bed.folder.path().join("out/driver-1.log")).unwrap();
    assert_eq!(said, "shapes driver clients\n");
}

#[test]
fn a_driver_that_fails_fails_the_scenario_and_its_own_last_lines_are_shown() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "echo up; sleep 60"]
        ready = { log = "up" }
        drivers = [["sleep", "60"], ["sh", "-c", "echo 'no such topic'; exit 7"]]
        record = { steady = { duration_s = 60 } }
        "#,
    );
    let failure = failure(&executed);
    assert_eq!(failure.status, Some(7));
    assert!(failure.reason.starts_with("the driver `sh -c echo 'no such topic'; exit 7` exited with status 7"));
    assert_eq!(failure.last_lines, ["no such topic"]);
}

#[test]
fn a_driver_that_does_its_work_and_ends_well_is_only_noted() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "echo up; sleep 60"]
        ready = { log = "up" }
        drivers = [["true"]]
        record = { steady = { warmup_s = 1 } }
        "#,
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert_eq!(executed.notes, ["The driver `true` ended by itself in the warm-up stage, with status 0."]);
}

#[test]
fn a_driver_that_cannot_be_run_fails_the_scenario_after_its_loading_phase() {
    let bed = Bed::new();
    let executed = run(
        &bed,
        r#"
        [scenario.a]
        command = ["sh", "-c", "echo up; sleep 60"]
        ready = { log = "up" }
        drivers = [["no-such-client"]]
        "#,
    );
    assert_eq!(executed.captured, [Phase::Loading]);
    assert!(failure(&executed).reason.starts_with("driver 1: cannot run `no-such-client`"));
    assert_eq!(failure(&executed).last_lines, Vec::<String>::new());
}

#[test]
fn an_interrupt_keeps_what_was_recorded_so_far() {
    for stage in [Stage::Loading, Stage::WarmUp, Stage::Steady] {
        let bed = Bed::new();
        let ready = if stage == Stage::Loading { "never" } else { "up" };
        let trial = bed.trial(&format!(
            r#"
            [record]
            steady = {{ warmup_s = {}, duration_s = 60 }}
            [scenario.a]
            command = ["sh", "-c", "echo up; sleep 60"]
            ready = {{ log = "{ready}" }}
            "#,
            if stage == Stage::WarmUp { 60 } else { 0 }
        ));
        let executed = run_with_listener(&bed, &trial, &mut |event: &Event<'_>| {
            if matches!(event, Event::Progress { stage: now, .. } if *now == stage) {
                bed.interrupt.store(true, Ordering::Relaxed);
            }
        });
        assert_eq!(executed.outcome, Outcome::Interrupted);
        let expected: &[Phase] =
            if stage == Stage::Steady { &[Phase::Loading, Phase::Steady] } else { &[Phase::Loading] };
        assert_eq!(executed.captured, expected);
        assert_eq!(notes(&bed, "loading"), ["The user interrupted the run in this scenario."]);
    }
}

#[test]
fn a_recording_that_fails_ends_the_scenario() {
    let mut bed = Bed::new();
    bed.recorder.fails_after = Some(2);
    let executed = run(&bed, r#"scenario.a = { command = ["sleep", "60"], ready = { after_s = 30 } }"#);
    assert_eq!(failure(&executed).reason, "the recording failed: the disk is full");
    assert_eq!(executed.captured, [Phase::Loading]);
}

#[test]
fn steps_as_a_condition_are_refused_before_anything_is_launched() {
    let bed = Bed::new();
    let executed = run(&bed, r#"scenario.a = { command = ["sleep", "60"], ready = { steps = 10 } }"#);
    assert_eq!(failure(&executed).stage, Stage::Launch);
    assert!(failure(&executed).reason.contains("the scenario has no `step`"));
    assert!(!bed.folder.path().join("out").exists());
}

#[test]
fn a_panic_leaves_nothing_running() {
    let bed = Bed::new();
    let trial = bed.trial(&format!(
        r#"{SHORT}
        [scenario.a]
        command = ["sh", "-c", "setsid sleep 64 & echo up; sleep 60"]
        ready = {{ log = "up" }}
        drivers = [["sleep", "60"]]
        "#
    ));
    let mut listener = |event: &Event<'_>| {
        if matches!(event, Event::Progress { stage: Stage::Steady, .. }) {
            assert!(!bed.left_behind().is_empty());
            panic!("on purpose");
        }
    };
    let mut context = Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener: &mut listener };
    let result = catch_unwind(AssertUnwindSafe(|| execute(&trial, &bed.folder.path().join("out"), &mut context)));
    assert!(result.is_err());
    assert_eq!(bed.left_behind(), Vec::<String>::new());
}

/// A process named `name` that runs until it is dropped.
struct Node(std::process::Child);

impl Node {
    fn start(folder: &std::path::Path, name: &str) -> Self {
        let program = folder.join(name);
        if !program.exists() {
            std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        }
        Self(std::process::Command::new(program).arg("60").spawn().unwrap())
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn running_processes_are_recorded_in_the_steady_phase_and_go_on() {
    let bed = Bed::new();
    let mut nodes = [Node::start(bed.folder.path(), "sim_node"), Node::start(bed.folder.path(), "map_node")];
    let other = Node::start(bed.folder.path(), "viewer");
    let executed =
        run(&bed, &format!("[scenario.robot]\nattach = {{ name = \"*_node\", pid = [{}] }}\n", other.0.id()));
    assert_eq!((executed.outcome, executed.captured), (Outcome::Recorded, vec![Phase::Steady]));
    assert_eq!(bed.recorder.events(), ["attach steady", "stop"]);
    let attached = bed.recorder.attached.lock().unwrap().clone();
    assert!(nodes.iter().chain([&other]).all(|node| attached.contains(&node.0.id())), "{attached:?}");
    assert!(nodes.iter_mut().all(Node::runs));
}

#[test]
fn names_count_only_for_what_the_command_started_daemons_too() {
    let bed = Bed::new();
    let other = Node::start(bed.folder.path(), "their_node");
    let node = bed.folder.path().join("our_node");
    std::os::unix::fs::symlink("/bin/sleep", &node).unwrap();
    // The launcher ends, and its node starts after that, in a session of its own.
    let script = format!("echo launched; setsid sh -c 'sleep 0.5; exec {} 60' &", node.display());
    let executed = run(
        &bed,
        &format!(
            "[scenario.robot]\ncommand = [\"sh\", \"-c\", \"{script}\"]\nready = {{ log = \"launched\" }}\n\
             attach = {{ name = \"*_node\" }}\n"
        ),
    );
    assert_eq!(executed.outcome, Outcome::Recorded);
    assert_eq!(bed.recorder.events(), ["attach steady", "stop"]);
    let attached = bed.recorder.attached.lock().unwrap().clone();
    assert_eq!(attached.len(), 1);
    assert_ne!(attached[0], other.0.id());
}

#[test]
fn a_set_that_does_not_run_fails_the_launch_before_the_drivers() {
    let bed = Bed::new();
    let executed =
        run(&bed, "[scenario.robot]\nattach = { name = \"no_such_node_*\" }\ndrivers = [[\"sleep\", \"60\"]]\n");
    let failure = failure(&executed);
    assert_eq!(failure.stage, Stage::Launch);
    assert!(failure.reason.contains("no running process matches --name no_such_node_*"), "{}", failure.reason);
}
