//! Messages of the bundled topologies, by uprobes on a stand-in for ROS 2's tracetools and by marks, against what the program
//! measured itself.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use common::{json, simulator, stepscope, text};

/// Builds the stand-in as `libtracetools.so` in the folder.
fn stand_in(folder: &Path, test: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground/tracetools/tracetools.c");
    let library = folder.join("libtracetools.so");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source).status();
    let Ok(compiled) = compiled else {
        println!("skipped: {test}: no cc to build the stand-in for tracetools");
        return None;
    };
    assert!(compiled.success(), "tracetools.c compiles");
    Some(library)
}

fn topology(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground/topologies").join(name)
}

/// What the program says, and the rows of `flows`, by topic and receiving node: received, lost, median in us.
type Edges = BTreeMap<(String, String), (u64, u64, f64)>;

fn said(report: &str) -> Edges {
    // The recorder names the capture after it.
    let mut values = serde_json::Deserializer::from_str(report).into_iter::<Value>();
    let report = values.next().expect("the program writes a report").expect("the report is JSON");
    let one = |tracker: &Value| {
        let key = (tracker["topic"].as_str().unwrap().to_owned(), tracker["node"].as_str().unwrap().to_owned());
        let count = |name: &str| tracker[name].as_u64().unwrap();
        (key, (count("received"), count("lost"), tracker["latency"]["p50_us"].as_f64().unwrap_or(0.0)))
    };
    report["subscriptions"].as_array().unwrap().iter().map(one).collect()
}

fn flows(capture: &Path) -> Vec<Value> {
    let shown = json(&stepscope(capture, &["show", ".", "--view", "flows", "--format", "json"]));
    let tables = shown["tables"].as_array().expect("tables").clone();
    let table = tables.into_iter().find(|table| table["table"] == "flows").expect("the table of flows");
    table["rows"].as_array().unwrap().clone()
}

/// By the names of callbacks: `/node: /topic`. A topic with several publishers has a row for each.
fn seen(rows: &[Value]) -> Edges {
    let mut edges = Edges::new();
    for row in rows {
        let subscriber = row["subscriber"].as_str().unwrap();
        let Some((node, topic)) = subscriber.split_once(": ") else { continue };
        let key = (topic.to_owned(), node.trim_start_matches('/').to_owned());
        let edge = edges.entry(key).or_default();
        edge.0 += row["arrived"].as_u64().unwrap();
        edge.1 += row["lost"].as_u64().unwrap();
        edge.2 = row["median"].as_u64().unwrap() as f64 / 1e3;
    }
    edges
}

/// Counts must be equal. Medians are of clocks that are read a call apart; the bench `benches/traces` has the difference on a quiet
/// machine.
fn agree(seen: &Edges, said: &Edges, what: &str) {
    let (mut furthest, mut names) = (0.0_f64, Vec::new());
    for (key, &(received, lost, median_us)) in said.iter().filter(|(_, edge)| edge.0 > 0) {
        let &(arrived, not_arrived, seen_us) = seen.get(key).unwrap_or_else(|| panic!("{what}: {key:?} in {seen:?}"));
        assert_eq!((arrived, not_arrived), (received, lost), "{what}: {key:?}");
        furthest = furthest.max((seen_us - median_us).abs());
        names.push(key);
    }
    println!("{what}: {} edges; medians differ by up to {furthest:.2} us", names.len());
    assert!(!names.is_empty() && furthest < 1_000.0, "{what}: {furthest} us");
}

/// The bundled program on a topology, which tells the stand-in of its messages.
fn program(ground: &Path, library: &Path, ipc: &str, seconds: &str) -> Vec<String> {
    let file = topology("pub_sub_10b.json");
    let words =
        [ground.as_os_str(), "topology".as_ref(), file.as_os_str(), "--tracetools".as_ref(), library.as_os_str()];
    let words = words.iter().map(|word| word.to_str().unwrap());
    words.chain(["--ipc", ipc, "--seconds", seconds, "--format", "json"]).map(str::to_owned).collect()
}

/// Whether messages could be recorded; says that the test is skipped if not.
fn are_recorded(capture: &Path, test: &str) -> bool {
    let info = std::fs::read_to_string(capture.join("capture.json")).unwrap();
    let refused = info.contains("Messages of ROS 2 were not recorded: the kernel") || info.contains("which needs root");
    if refused {
        println!("skipped: {test}: this user or kernel has no uprobes");
    }
    !refused
}

#[test]
fn uprobes_on_tracetools_count_and_time_messages_as_the_program_does() {
    const NAME: &str = "uprobes_on_tracetools_count_and_time_messages_as_the_program_does";
    let folder = tempfile::tempdir().unwrap();
    let (Some(ground), Some(library)) = (simulator(NAME), stand_in(folder.path(), NAME)) else { return };
    for (ipc, name) in [("on", "within"), ("off", "transport")] {
        let capture = folder.path().join(name);
        let recorded = Command::new(env!("CARGO_BIN_EXE_stepscope"))
            .args(["record", "--with", "ros2", "--dimensions", "resources", "-o"])
            .arg(&capture)
            .arg("--")
            .args(program(&ground, &library, ipc, "1.5"))
            .env("LD_LIBRARY_PATH", folder.path())
            .output()
            .unwrap();
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        if !are_recorded(&capture, NAME) {
            return;
        }
        let rows = flows(&capture);
        agree(&seen(&rows), &said(&text(&recorded.stdout)), name);
        assert!(rows.iter().all(|row| row["publisher"] == "/talker"), "{rows:?}");
        let timers = json(&stepscope(&capture, &["show", ".", "--view", "timers", "--format", "json"]));
        assert!(timers.to_string().contains("timer 10 ms"), "{timers}");
    }
}

#[test]
fn marks_of_a_topology_count_and_time_messages_as_the_program_does() {
    const NAME: &str = "marks_of_a_topology_count_and_time_messages_as_the_program_does";
    let Some(ground) = simulator(NAME) else { return };
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("c");
    let file = topology("pub_sub_10b.json");
    let recorded = Command::new(env!("CARGO_BIN_EXE_stepscope"))
        .args(["record", "--dimensions", "resources", "-o"])
        .arg(&capture)
        .arg("--")
        .arg(ground)
        .arg("topology")
        .arg(file)
        .args(["--seconds", "1.5", "--format", "json"])
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let said = said(&text(&recorded.stdout));
    let (&(received, lost, median_us), rows) = (said.values().next().unwrap(), flows(&capture));
    let count = |name: &str| rows[0][name].as_u64().unwrap();
    assert_eq!(
        (rows.len(), rows[0]["topic"].as_str(), count("arrived"), count("lost")),
        (1, Some("/chatter"), received, lost)
    );
    println!("medians: {} ns, and {median_us} us by the program", count("median"));
    assert!((count("median") as f64 / 1e3 - median_us).abs() < 1_000.0);
}

#[test]
fn topics_of_programs_that_ran_before_the_recording_are_read_from_their_handles() {
    const NAME: &str = "topics_of_programs_that_ran_before_the_recording_are_read_from_their_handles";
    let folder = tempfile::tempdir().unwrap();
    let (Some(ground), Some(library)) = (simulator(NAME), stand_in(folder.path(), NAME)) else { return };
    let words = program(&ground, &library, "off", "60");
    let mut running = Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).spawn().unwrap();
    // Its library is mapped when it runs its first timers.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let capture = folder.path().join("c");
    let pid = running.id().to_string();
    let arguments =
        ["record", "--with", "ros2", "--dimensions", "resources", "--duration", "1s", "--pid", &pid, "-o", "c"];
    let recorded = stepscope(folder.path(), &arguments);
    let state = running.try_wait().unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    assert!(state.is_none(), "the program goes on");
    if !are_recorded(&capture, NAME) {
        return;
    }
    let rows = flows(&capture);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["topic"], &rows[0]["lost"]), (&"/chatter".into(), &0.into()));
    assert!(rows[0]["arrived"].as_u64().unwrap() > 20, "{rows:?}");
}
