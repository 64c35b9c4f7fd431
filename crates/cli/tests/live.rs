//! What viewers of a running recording get, beside the capture that is finished afterwards.

mod common;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;
use stepscope_live::{LiveRecording, Options, Stage};
use stepscope_model::{Capture, StackId, disk};
use stepscope_serve::feed::Update;
use stepscope_serve::{Command, Feed as _};

use common::{command, simulator, text};

/// A busy machine finishes captures slowly.
const PATIENCE: Duration = Duration::from_secs(90);

/// The tables that a page has.
#[derive(Default)]
struct Tables {
    rows: BTreeMap<String, Vec<BTreeMap<String, Field>>>,
    state: Value,
}

impl Tables {
    fn take(&mut self, message: &Bytes) {
        let end = message.iter().position(|byte| *byte == b'\n').expect("a line of JSON");
        let head: Value = serde_json::from_slice(&message[..end]).unwrap();
        if let Some(state) = head.get("live") {
            self.state = state.clone();
            return;
        }
        let table = self.rows.entry(head["table"].as_str().unwrap()["0/".len()..].to_owned()).or_default();
        if let Some(at) = head["at"].as_u64() {
            assert!(at as usize <= table.len(), "{head}: rows are missing");
            table.truncate(at as usize);
        }
        if let Some(since) = head["since"].as_f64() {
            table.retain(|row| number(row, "start") < since);
        }
        let reader = SerializedFileReader::new(message.slice(end + 1..)).unwrap();
        let before = table.len();
        let columns = |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
        table.extend(reader.get_row_iter(None).unwrap().map(|row| columns(row.unwrap())));
        assert_eq!(table.len() - before, head["rows"].as_u64().unwrap() as usize, "{head}");
    }

    fn table(&self, name: &str) -> &[BTreeMap<String, Field>] {
        self.rows.get(name).map_or(&[], Vec::as_slice)
    }

    fn text(&self, table: &str, row: i32, column: &str) -> &str {
        match &self.table(table)[row as usize][column] {
            Field::Str(text) => text,
            other => panic!("{other} in {table}"),
        }
    }

    fn tid(&self, thread: i32) -> u32 {
        integer(&self.table("threads")[thread as usize], "tid") as u32
    }

    /// Functions from the root.
    fn stack(&self, mut stack: i32) -> Vec<&str> {
        let mut functions = Vec::new();
        while stack >= 0 {
            let node = &self.table("stacks")[stack as usize];
            functions.push(self.text("frames", integer(node, "frame"), "function"));
            stack = integer(node, "parent");
        }
        functions.reverse();
        functions
    }
}

fn number(row: &BTreeMap<String, Field>, column: &str) -> f64 {
    match row[column] {
        Field::Double(value) => value,
        ref other => panic!("{other} in {column}"),
    }
}

fn integer(row: &BTreeMap<String, Field>, column: &str) -> i32 {
    match row[column] {
        Field::Int(value) => value,
        ref other => panic!("{other} in {column}"),
    }
}

fn functions(capture: &Capture, stack: Option<StackId>) -> Vec<&str> {
    let mut functions: Vec<&str> = capture.frames_of(stack).map(|frame| capture.function(frame)).collect();
    functions.reverse();
    functions
}

/// Records the simulator.
fn record(folder: &Path, simulator: &Path, duration: &str) -> Child {
    let world = [simulator.to_str().unwrap(), "run", "--n", "300", "--static"];
    let recorder = [&["record", "-o", "capture", "-d", duration, "--"], &world[..]].concat();
    command(folder, &recorder).stdout(Stdio::null()).spawn().unwrap()
}

/// Takes messages until the capture is finished.
fn watch(live: &LiveRecording) -> Tables {
    let mut tables = Tables::default();
    let viewer = live.subscribe();
    viewer.so_far.iter().for_each(|message| tables.take(message));
    let since = Instant::now();
    while tables.state["state"] != "finished" {
        assert!(since.elapsed() < PATIENCE, "{}", tables.state);
        match viewer.updates.take() {
            Some(Update::Message(message)) => tables.take(&message),
            Some(other) => panic!("{other:?}"),
            None => thread::sleep(Duration::from_millis(10)),
        }
    }
    // The last snapshot may come after the last state.
    while let Some(Update::Message(message)) = viewer.updates.take() {
        tables.take(&message);
    }
    tables
}

/// The capture that this sentence names.
fn saved(said: &str) -> Capture {
    let folder = said.split(" are in ").nth(1).and_then(|rest| rest.strip_suffix('.')).expect("it names a folder");
    disk::open(Path::new(folder)).unwrap_or_else(|error| panic!("{said}: {error}"))
}

#[test]
fn viewers_get_the_rows_of_the_finished_capture_and_a_slow_one_disturbs_nobody() {
    let test = "viewers_get_the_rows_of_the_finished_capture_and_a_slow_one_disturbs_nobody";
    let Some(simulator) = simulator(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("capture");
    let live = LiveRecording::follow(&at, Options::default());
    let never_reads = live.subscribe();
    let mut recorder = record(folder.path(), &simulator, "1.5s");
    let tables = watch(&live);
    assert!(recorder.wait().unwrap().success());
    assert!(never_reads.updates.waiting() > 0);
    let finished = disk::open(&at).unwrap();
    let (start_ns, end_ns) = finished.info.start_ns.zip(finished.info.end_ns).unwrap();
    let since = |time_ns: u64| time_ns as i64 - start_ns as i64;
    // What came between the end of the recording and the last look is kept, and no table shows it.
    let is_shown = |start_ns: u64| start_ns < end_ns;
    let tid = |thread: stepscope_model::ThreadId| finished.threads[thread.index()].tid;

    let mut expected: Vec<_> = finished
        .samples
        .iter()
        .map(|sample| (since(sample.time_ns.unwrap()), tid(sample.thread), functions(&finished, sample.stack)))
        .filter(|(.., functions)| functions != &["[not sampled]"])
        .collect();
    let row =
        |row| (number(row, "time") as i64, tables.tid(integer(row, "thread")), tables.stack(integer(row, "stack")));
    let mut given: Vec<_> = tables.table("samples").iter().map(row).collect();
    expected.sort();
    given.sort();
    assert!(given.len() > 100, "{} samples", given.len());
    assert_eq!(given.len(), expected.len());
    assert!(given == expected, "the same samples, with the same stacks");

    let weights =
        tables.table("samples").iter().filter(|row| integer(row, "event") == 0).map(|row| number(row, "weight"));
    assert_eq!(Some(weights.sum::<f64>() as u64), finished.info.losses.sampled_ns);

    let waits = finished.waits.iter().filter(|wait| is_shown(wait.start_ns));
    let mut expected: Vec<_> = waits.map(|wait| (since(wait.start_ns), tid(wait.thread))).collect();
    let row = |row| (number(row, "start") as i64, tables.tid(integer(row, "thread")));
    let mut given: Vec<_> = tables.table("waits").iter().map(row).collect();
    let counts = tables.table("waits").iter().map(|row| integer(row, "count") as usize);
    assert_eq!(counts.sum::<usize>(), expected.len());
    expected.sort_unstable();
    given.sort_unstable();
    // If they are too many for single rows, they are added up.
    assert!(tables.state["summed"] == true || given == expected, "the same waits");

    let sim = |sim: f64| if sim.is_nan() { None } else { Some(sim as u64) };
    let row = |row| (number(row, "start") as i64, number(row, "end") as i64, sim(number(row, "sim")));
    let given: Vec<_> = tables.table("steps").iter().map(row).collect();
    let steps = finished.steps.iter().filter(|step| step.end_ns <= end_ns);
    let steps = steps.map(|step| (since(step.start_ns), since(step.end_ns), step.sim_time_ns));
    let expected: Vec<_> = steps.collect();
    assert!(given.len() > 10, "{} steps", given.len());
    let missing: Vec<_> = expected.iter().filter(|step| !given.contains(step)).collect();
    assert!(given == expected, "{missing:?} of {} steps, the last {:?}", expected.len(), expected.last());

    let scopes = finished.scopes.iter().filter(|scope| is_shown(scope.start_ns));
    assert_eq!(tables.table("scopes").len(), scopes.count());
    assert_eq!(tables.state["lost"], finished.info.losses.lost_records);
    assert_eq!(live.state().stage, Stage::Finished);
}

#[test]
fn the_last_moments_and_everything_so_far_are_saved_while_it_goes_on() {
    let test = "the_last_moments_and_everything_so_far_are_saved_while_it_goes_on";
    let Some(simulator) = simulator(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let live = LiveRecording::follow(&folder.path().join("capture"), Options::default());
    assert!(live.command(Command::Save { seconds: None }).is_err(), "nothing is recorded yet");
    // It is killed earlier.
    let mut recorder = record(folder.path(), &simulator, "60s");
    let since = Instant::now();
    while live.state().until < 0.6e9 {
        assert!(since.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(10));
    }
    let marked = live.command(Command::Mark { text: Some("here".to_owned()) }).unwrap();
    assert!(marked.starts_with("Marked at "), "{marked}");
    let said = live.command(Command::Save { seconds: Some(0.5) }).unwrap();
    let last = saved(&said);
    last.load().unwrap();
    last.check().unwrap();
    let wall_ns = last.info.wall_ns().unwrap();
    assert!(wall_ns <= 500_000_000 && !last.samples.is_empty() && !last.steps.is_empty(), "{wall_ns}");
    let said = live.command(Command::Save { seconds: None }).unwrap();
    let all = saved(&said);
    assert!(all.samples.len() > last.samples.len());
    assert!(all.info.notes.iter().any(|note| note.contains("went on")), "{:?}", all.info.notes);
    let refused = live.command(Command::Stop {}).unwrap_err();
    assert!(refused.contains("Ctrl-C"), "{refused}");
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let since = Instant::now();
    while live.state().stage != Stage::Killed {
        assert!(since.elapsed() < PATIENCE, "{:?}", live.state().stage);
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_live_view_needs_a_program_and_says_so() {
    let output = common::stepscope(Path::new("/"), &["view", "--live"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("view --live -- COMMAND"), "{}", text(&output.stderr));
    let output = common::stepscope(Path::new("/"), &["view"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn nothing_runs_while_there_is_no_address_to_see_it_at() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let arguments = ["view", "--live", "--no-open", "--port", &port, "-o", "capture", "--", "touch", "ran"];
    let output = common::stepscope(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(&format!("port {port} is in use")), "{}", text(&output.stderr));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "the program did not run, and there is no capture");
}
