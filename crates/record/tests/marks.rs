//! Marks from programs compiled with `marks/c/stepscope.h`: every mark is in the capture, or is counted as lost.

mod recorded;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use recorded::{captured, record_launched};
use stepscope_model::{Capture, Dimension, DimensionStatus, FlowStage, ProcessId, Scope};
use stepscope_record::launch::Launch;
use stepscope_record::{Options, Recording};

/// The header's folder.
fn header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../marks/c")
}

fn compile(compiler: &str, flags: &[&str], source: &Path, output: &Path) -> Option<bool> {
    let mut command = Command::new(compiler);
    command.args(["-O2", "-g1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DSTEPSCOPE_SHOW_WARNINGS"]).args(flags);
    command.arg("-I").arg(header()).arg(source).arg("-o").arg(output).args(["-ldl", "-lpthread"]);
    command.status().ok().map(|status| status.success())
}

/// The folder with the programs, made once.
fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/marks");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("marks");
    std::fs::create_dir_all(&folder).unwrap();
    let enabled = "-DSTEPSCOPE_MARKS=1";
    let program = compile("g++", &["-std=c++11", enabled], &sources.join("marks.cpp"), &folder.join("marks"))?;
    assert!(program, "marks.cpp compiles without a warning");
    for name in ["one.so", "two.so"] {
        let flags = ["-std=c11", "-shared", "-fPIC", enabled];
        assert!(compile("gcc", &flags, &sources.join("plugin.c"), &folder.join(name))?, "plugin.c compiles");
    }
    Some(folder)
}

/// The recording of a case.
struct Recorded {
    capture: Capture,
    lines: Vec<String>,
}

fn record(test: &str, case: &[&str]) -> Option<Recorded> {
    record_with(test, case, &Options::default())
}

fn record_with(test: &str, case: &[&str], options: &Options) -> Option<Recorded> {
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ or gcc to build the program");
        return None;
    };
    let arguments = case.iter().map(|&argument| match argument.strip_suffix(".so") {
        Some(_) => programs.join(argument).into_os_string(),
        None => argument.into(),
    });
    let command = std::iter::once(programs.join("marks").into_os_string()).chain(arguments);
    record_launch(test, Launch::new(command), options)
}

fn record_launch(test: &str, launch: Launch, options: &Options) -> Option<Recorded> {
    let (pid, capture, lines) = record_launched(test, launch, options)?;
    assert_eq!(segments_of(pid), 0, "nothing is left in shared memory");
    Some(Recorded { capture, lines })
}

fn segments_of(pid: u32) -> usize {
    let prefix = format!("stepscope-marks-{pid}-");
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
}

impl Recorded {
    /// Number of scopes by name and depth.
    fn counts(&self) -> BTreeMap<(&str, u32), usize> {
        let mut counts = BTreeMap::new();
        for scope in &self.capture.scopes {
            *counts.entry((&*scope.name, scope.depth)).or_insert(0) += 1;
        }
        counts
    }

    fn count(&self, name: &str) -> u64 {
        self.capture.scopes.iter().filter(|scope| &*scope.name == name).count() as u64
    }

    /// Number of scopes by process and name. Processes with scopes are numbered in order.
    fn by_process(&self) -> BTreeMap<(usize, &str), usize> {
        let process_of = |scope: &Scope| self.capture.threads[scope.thread.index()].process.unwrap();
        let marking: BTreeSet<ProcessId> = self.capture.scopes.iter().map(process_of).collect();
        let mut counts = BTreeMap::new();
        for scope in &self.capture.scopes {
            let number = marking.range(..process_of(scope)).count();
            *counts.entry((number, &*scope.name)).or_insert(0) += 1;
        }
        counts
    }

    /// Simulated time at the end of each step.
    fn sim_times(&self) -> Vec<u64> {
        self.capture.steps.iter().map(|step| step.sim_time_ns.unwrap()).collect()
    }

    /// The readings of a counter.
    fn readings(&self, counter: &str) -> Vec<i64> {
        self.capture.counters.iter().filter(|row| &*row.name == counter).map(|row| row.value).collect()
    }

    /// Each of N messages was published, passed and arrived.
    fn assert_odometry(&self, messages: u64) {
        let stages: Vec<_> = self.capture.flows.iter().map(|event| (event.flow.unwrap(), event.stage)).collect();
        let expected = [FlowStage::Published, FlowStage::Passed, FlowStage::Arrived];
        let expected: Vec<_> = (0..messages).flat_map(|id| expected.map(|stage| (id, stage))).collect();
        assert_eq!(stages, expected);
        assert!(self.capture.flows.iter().all(|event| &*event.topic == "odometry"));
    }

    fn lost(&self) -> u64 {
        self.capture.info.losses.lost_marks
    }

    /// The number that the program printed after this text.
    fn printed(&self, what: &str) -> u64 {
        let found = self.lines.iter().find_map(|line| line.strip_prefix(what)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("the program did not print `{what}`: {:?}", self.lines))
    }
}

#[test]
fn nested_scopes_have_their_depths() {
    let Some(recorded) = record("nested_scopes_have_their_depths", &["nested"]) else { return };
    let expected = [
        (("even", 1), 5),
        (("explicit", 1), 10),
        (("inner", 2), 20),
        (("middle", 1), 10),
        (("odd", 1), 5),
        (("outer", 0), 10),
    ];
    assert_eq!(recorded.counts(), BTreeMap::from(expected));
    let (start_ns, end_ns) = (recorded.capture.info.start_ns.unwrap(), recorded.capture.info.end_ns.unwrap());
    assert!(recorded.capture.scopes.iter().all(|scope| start_ns <= scope.start_ns && scope.end_ns <= end_ns));
    assert!(recorded.capture.scopes.is_sorted_by_key(|scope| scope.start_ns));
    assert_eq!(recorded.lost(), 0);
}

#[test]
fn steps_are_exactly_those_that_were_marked_with_their_simulated_times() {
    let Some(recorded) = record("steps_are_exactly_those_that_were_marked_with_their_simulated_times", &["steps"])
    else {
        return;
    };
    let Capture { steps, scopes, counters, info, .. } = &recorded.capture;
    assert_eq!(steps.len(), 100);
    for (index, step) in steps.iter().enumerate() {
        assert_eq!((step.index, step.sim_time_ns), (index as u64, Some((index as u64 + 1) * 1_000_000)));
        assert!(step.end_ns - step.start_ns >= 200_000);
    }
    assert!(steps.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    assert_eq!(info.dimensions[&Dimension::Steps], DimensionStatus::Recorded);
    assert!(info.notes.iter().any(|note| note.contains("STEPSCOPE_STEP")), "{:?}", info.notes);
    let contacts: Vec<i64> = counters.iter().filter(|c| &*c.name == "contacts").map(|c| c.value).collect();
    assert_eq!(contacts, (0..=100).map(|i| i * 3 - 7).collect::<Vec<i64>>());
    assert_eq!(recorded.count("Runner::Step"), 101);
    let frames: Vec<_> = scopes.iter().filter(|scope| &*scope.name == "render").collect();
    assert_eq!(frames.len(), 10);
    assert!(frames.iter().all(|frame| frame.end_ns - frame.start_ns >= 2_000_000));
}

#[test]
fn a_scope_chosen_as_the_step_gives_the_steps() {
    let test = "a_scope_chosen_as_the_step_gives_the_steps";
    let options = Options { step_scope: Some("Runner::Step".into()), ..Options::default() };
    let Some(recorded) = record_with(test, &["steps"], &options) else { return };
    let steps = &recorded.capture.steps;
    assert_eq!(steps.len(), 100);
    let mut starts = recorded.capture.scopes.iter().filter(|scope| &*scope.name == "Runner::Step");
    assert!(steps.iter().all(|step| starts.next().map(|scope| scope.start_ns) == Some(step.start_ns)));
    assert!(steps.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
}

#[test]
fn a_step_scope_that_never_occurs_is_named_in_the_capture() {
    let test = "a_step_scope_that_never_occurs_is_named_in_the_capture";
    let options = Options { step_scope: Some("Stepp".into()), ..Options::default() };
    let Some(recorded) = record_with(test, &["nested"], &options) else { return };
    let DimensionStatus::Missing { reason, .. } = &recorded.capture.info.dimensions[&Dimension::Steps] else {
        panic!("{:?}", recorded.capture.info.dimensions);
    };
    assert_eq!(reason, "The program marked no scope named `Stepp`.");
}

#[test]
fn two_thousand_threads_lose_nothing() {
    let Some(recorded) = record("two_thousand_threads_lose_nothing", &["crowd"]) else { return };
    assert_eq!((recorded.count("brief"), recorded.lost()), (6000, 0));
    let mut of_thread = BTreeMap::new();
    for scope in &recorded.capture.scopes {
        *of_thread.entry(scope.thread).or_insert(0) += 1;
    }
    assert_eq!(of_thread.len(), 2000);
    assert!(of_thread.values().all(|&scopes| scopes == 3));
}

#[test]
fn scopes_of_children_belong_to_them() {
    let Some(recorded) = record("scopes_of_children_belong_to_them", &["forks"]) else { return };
    let mut expected = BTreeMap::from([((0, "before"), 1), ((0, "parent"), 3), ((0, "around"), 1)]);
    for child in 1..=3 {
        expected.extend([((child, "child"), 5), ((child, "before"), 2)]);
    }
    assert_eq!(recorded.by_process(), expected);
    assert_eq!(recorded.lost(), 0);
}

#[test]
fn separately_loaded_plugins_mark_on_the_same_threads() {
    let test = "separately_loaded_plugins_mark_on_the_same_threads";
    let Some(recorded) = record(test, &["plugins", "one.so", "two.so"]) else { return };
    // Within the host's scope on the main thread; on other threads without it.
    let plugin = ["plugin", "plugin, named"].map(|name| [((name, 0), 8), ((name, 1), 6)]);
    let expected: BTreeMap<_, _> = plugin.into_iter().flatten().chain([(("host", 0), 1)]).collect();
    assert_eq!(recorded.counts(), expected);
    assert_eq!(recorded.capture.threads.len(), 3);
}

#[test]
fn a_killed_program_loses_none_of_the_scopes_it_finished() {
    let Some(recorded) = record("a_killed_program_loses_none_of_the_scopes_it_finished", &["killed"]) else { return };
    assert_eq!(recorded.printed("finished "), 20_000);
    assert_eq!((recorded.count("finished"), recorded.lost()), (20_000, 0));
    assert_eq!(recorded.count("never finished"), 0);
}

#[test]
fn overflow_is_counted_exactly() {
    let Some(recorded) = record("overflow_is_counted_exactly", &["flood"]) else { return };
    let made = recorded.printed("made ");
    assert_eq!(recorded.count("drop") + recorded.lost(), made);
    assert!(recorded.count("drop") >= 32_767, "{}", recorded.count("drop"));
}

#[test]
fn names_beyond_the_table_are_marks_without_a_name_and_long_ones_are_cut() {
    let test = "names_beyond_the_table_are_marks_without_a_name_and_long_ones_are_cut";
    let Some(recorded) = record(test, &["names", "16383"]) else { return };
    assert_eq!(recorded.capture.scopes.len(), 16_384);
    assert_eq!((recorded.count("entity 0"), recorded.count("entity 16382")), (1, 1));
    assert_eq!(recorded.count(&"y".repeat(511)), 1);
    let Some(recorded) = record(test, &["names", "16390"]) else { return };
    assert_eq!(recorded.count("(no name)"), 7);
    let note = "7 marks have no name: the program used more names than fit.";
    assert!(recorded.capture.info.notes.iter().any(|known| known == note), "{:?}", recorded.capture.info.notes);
}

#[test]
fn marks_before_and_after_an_exec_belong_to_one_process() {
    let Some(recorded) = record("marks_before_and_after_an_exec_belong_to_one_process", &["executes"]) else {
        return;
    };
    assert_eq!((recorded.count("before exec"), recorded.count("outer")), (1, 10));
    assert_eq!(recorded.capture.threads.len(), 1);
}

/// Waits until a recording has 25 steps. The deadline only guards against a hang.
fn wait_for_steps(recording: &Recording) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while recording.progress().steps.is_none_or(|steps| steps < 25) {
        assert!(Instant::now() < deadline, "waited for steps in vain: {:?}", recording.progress());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that runs without being recorded; ended with the test.
struct Running(Child);

impl Running {
    fn start(case: &str) -> Option<Self> {
        let program = programs()?.join("marks");
        let child = Command::new(program).arg(case).stdout(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while segments_of(child.id()) == 0 {
            assert!(Instant::now() < deadline, "the program makes no marks");
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(Self(child))
    }

    /// A recording for as long as `wait` takes, if it can be recorded.
    fn recorded(&self, test: &str, wait: impl FnOnce(&Recording)) -> Option<Capture> {
        let folder = tempfile::tempdir().unwrap();
        let recording = match Recording::attach(self.0.id(), &Options::default(), folder.path()) {
            Ok(recording) => recording,
            Err(error) => {
                println!("skipped: {test}: {error}");
                return None;
            }
        };
        wait(&recording);
        recording.stop().unwrap();
        Some(captured(folder.path()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_running_program_can_be_attached_to_repeatedly() {
    let test = "a_running_program_can_be_attached_to_repeatedly";
    let Some(running) = Running::start("forever") else { return println!("skipped: {test}: no g++") };
    let mut before = None;
    for _ in 0..2 {
        let Some(capture) = running.recorded(test, wait_for_steps) else { return };
        assert!(capture.steps.len() >= 20, "{}", capture.steps.len());
        assert!(capture.scopes.len() >= 20 && capture.scopes.iter().all(|scope| &*scope.name == "work"));
        let sim: Vec<u64> = capture.steps.iter().map(|step| step.sim_time_ns.unwrap()).collect();
        assert!(sim.windows(2).all(|pair| pair[1] == pair[0] + 1_000_000), "no step is missing");
        assert!(
            before.replace(sim[0]).is_none_or(|before| before < sim[0]),
            "marks between two recordings are left out"
        );
        assert_eq!(capture.info.losses.lost_marks, 0);
    }
}

#[test]
fn a_second_recorder_names_the_first() {
    let test = "a_second_recorder_names_the_first";
    let Some(running) = Running::start("forever") else { return println!("skipped: {test}: no g++") };
    let folder = tempfile::tempdir().unwrap();
    let Ok(first) = Recording::attach(running.0.id(), &Options::default(), folder.path()) else {
        return println!("skipped: {test}: the kernel refuses");
    };
    wait_for_steps(&first);
    let Some(second) = running.recorded(test, |_| {}) else { return };
    let pid = std::process::id();
    let note = format!(
        "The marks of process {} were not recorded at first: process {pid} records them already.",
        running.0.id()
    );
    assert!(second.info.notes.contains(&note), "{:?}", second.info.notes);
    first.stop().unwrap();
    assert!(!captured(folder.path()).steps.is_empty());
}

#[test]
fn an_unrecorded_program_leaves_nothing_behind() {
    let test = "an_unrecorded_program_leaves_nothing_behind";
    let Some(programs) = programs() else { return println!("skipped: {test}: no g++") };
    let mut child = Command::new(programs.join("marks")).arg("nested").spawn().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(segments_of(child.id()), 0);
}

/// Shared memory is a small file system of its own, and the recorder is this process, which never reads.
#[test]
fn a_full_shared_memory_harms_no_program() {
    let test = "a_full_shared_memory_harms_no_program";
    let Some(programs) = programs() else { return println!("skipped: {test}: no g++") };
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let start_ticks = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap();
    let greeting = format!("{}:{start_ticks}:1", std::process::id());
    // Room for nothing, for the header, for a part of the rings, and for rings that cannot grow.
    for kib in [4, 24, 48, 200] {
        for case in ["nested", "crowd", "flood", "forks"] {
            let script = format!("mount -t tmpfs -o size={kib}k none /dev/shm && exec \"$0\" {case}");
            let mut command = Command::new("unshare");
            command
                .args(["--mount", "sh", "-c", &script])
                .arg(programs.join("marks"))
                .env("STEPSCOPE_RECORDER", &greeting);
            let output = command.output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            if error.contains("unshare") || error.contains("mount") {
                return println!("skipped: {test}: a file system of its own needs root: {error}");
            }
            assert!(output.status.success(), "{case} in {kib} KiB: {} {error}", output.status);
        }
    }
}

/// Exceeding the limit would kill the program with a signal.
#[test]
fn a_file_size_limit_harms_no_program() {
    let test = "a_file_size_limit_harms_no_program";
    let Some(programs) = programs() else { return println!("skipped: {test}: no g++") };
    for blocks in [0, 16, 4_200] {
        let script = format!("ulimit -f {blocks}; exec \"$0\" nested");
        let output = Command::new("sh").args(["-c", &script]).arg(programs.join("marks")).output().unwrap();
        assert!(output.status.success(), "{blocks} blocks: {}", output.status);
    }
}

/// The header compiles without warnings in every supported standard, enabled and disabled. Disabled, it adds nothing.
#[test]
fn the_header_compiles_in_every_standard() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/marks");
    let object = tempfile::NamedTempFile::new().unwrap();
    let standards =
        [("gcc", "c11"), ("gcc", "c17"), ("gcc", "gnu17"), ("g++", "c++11"), ("g++", "c++17"), ("g++", "c++20")];
    for (compiler, standard) in standards {
        let standard = format!("-std={standard}");
        for enabled in ["-DSTEPSCOPE_MARKS=1", "-DSTEPSCOPE_MARKS=0"] {
            let flags = ["-c", "-g0", "-fPIC", &standard, enabled];
            match compile(compiler, &flags, &sources.join("plugin.c"), object.path()) {
                Some(compiled) => assert!(compiled, "{compiler} {standard} {enabled}"),
                None => return println!("skipped: the_header_compiles_in_every_standard: there is no {compiler}"),
            }
        }
        let bytes = std::fs::read(object.path()).unwrap();
        let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        assert!(!holds(b"stepscope_"), "{compiler} {standard}: no symbol of the marks is left");
    }
}

/// The time between a message's publication and its arrival in another process is what both measured themselves.
#[test]
fn latencies_of_messages_are_those_that_the_programs_measured() {
    let Some(recorded) = record("latencies_of_messages_are_those_that_the_programs_measured", &["flows"]) else {
        return;
    };
    let mut times: BTreeMap<u64, BTreeMap<&str, u64>> = BTreeMap::new();
    for event in &recorded.capture.flows {
        times.entry(event.flow.unwrap()).or_default().insert(event.stage.name(), event.time_ns);
    }
    assert_eq!((times.len(), recorded.lost()), (300, 0));
    let not_arrived: Vec<u64> = times.iter().filter(|(_, of)| !of.contains_key("arrived")).map(|(id, _)| *id).collect();
    assert_eq!(not_arrived, (0..30).map(|ten| ten * 10 + 3).collect::<Vec<u64>>());
    let measured = recorded.lines.iter().filter_map(|line| {
        let (id, ns) = line.strip_prefix("latency ")?.split_once(' ')?;
        Some((id.parse::<u64>().ok()?, ns.parse::<u64>().ok()?))
    });
    let mut differences: Vec<u64> =
        measured.map(|(id, ns)| (times[&id]["arrived"] - times[&id]["published"]).abs_diff(ns)).collect();
    differences.sort_unstable();
    assert_eq!(differences.len(), 270);
    println!("median difference: {} ns, largest: {} ns", differences[135], differences[269]);
    assert!(differences[135] < 5_000, "{differences:?}");
    let threads: BTreeSet<_> = recorded.capture.flows.iter().map(|event| event.thread).collect();
    assert_eq!(threads.len(), 2);
}

#[test]
#[ignore = "run by another test, which records it"]
fn marks_what_it_does() {
    for step in 0..=50i64 {
        match step % 2 {
            0 => stepscope_marks::step!(step as f64 * 0.01),
            _ => stepscope_marks::step!(ns: step * 10_000_000),
        }
        stepscope_marks::scope!("tick");
        stepscope_marks::counter!("step", step);
        std::thread::scope(|scope| {
            scope.spawn(|| drop(stepscope_marks::scope_named(&format!("worker {}", step % 3))));
        });
        drop(stepscope_marks::begin!("inner"));
        stepscope_marks::flow_begin!("odometry", step);
        stepscope_marks::flow_step!("odometry", step);
        stepscope_marks::flow_end!("odometry", step);
    }
}

#[test]
fn a_rust_program_writes_the_same_marks() {
    let program = std::env::current_exe().unwrap().into_os_string();
    let arguments = ["--ignored", "--exact", "marks_what_it_does", "--test-threads=1"].map(Into::into);
    let launch = Launch::new(std::iter::once(program).chain(arguments));
    let Some(recorded) = record_launch("a_rust_program_writes_the_same_marks", launch, &Options::default()) else {
        return;
    };
    let workers = ["worker 0", "worker 1", "worker 2"].map(|name| ((name, 0), 17));
    let expected = BTreeMap::from([(("inner", 1), 51), (("tick", 0), 51)]).into_iter().chain(workers).collect();
    assert_eq!(recorded.counts(), expected);
    assert_eq!(recorded.sim_times(), (1..=50).map(|step| step * 10_000_000).collect::<Vec<u64>>());
    assert_eq!(recorded.readings("step"), (0..=50).collect::<Vec<i64>>());
    let owners: BTreeSet<_> = recorded.capture.scopes.iter().map(|scope| scope.thread).collect();
    assert_eq!((owners.len(), recorded.lost()), (52, 0));
    recorded.assert_odometry(51);
}

/// The sources of the Python module.
fn python_marks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../marks/python")
}

/// Records the Python program with the module in this folder, and checks that it has all marks.
fn check_python_program(test: &str, modules: &Path, is_compiled: bool) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/marks/marks.py");
    let launch = Launch::new(["python3".as_ref(), program.as_os_str(), modules.as_os_str()]);
    // Write no bytecode beside the sources.
    let launch = launch.env("PYTHONDONTWRITEBYTECODE", "1");
    let Some(recorded) = record_launch(test, launch, &Options::default()) else { return };
    assert_eq!(recorded.lines[0], if is_compiled { "compiled: True" } else { "compiled: False" });
    let expected = [
        ((0, "brief"), 300),
        ((0, "contacts"), 101),
        ((0, "fibonacci"), 15),
        ((0, "physics"), 101),
        ((0, "render"), 10),
        ((1, "child"), 1),
        ((1, "contacts"), 1),
    ];
    assert_eq!(recorded.by_process(), BTreeMap::from(expected));
    let depths = recorded.capture.scopes.iter().filter(|scope| &*scope.name == "fibonacci").map(|scope| scope.depth);
    assert_eq!(depths.max(), Some(4));
    assert_eq!(recorded.sim_times(), (1..=100).map(|step| step * 1_000_000).collect::<Vec<u64>>());
    assert_eq!(recorded.readings("contacts"), (-7..=93).collect::<Vec<i64>>());
    let brief = recorded.capture.scopes.iter().filter(|scope| &*scope.name == "brief");
    let owners: BTreeSet<_> = brief.map(|scope| scope.thread).collect();
    assert_eq!((owners.len(), recorded.lost()), (100, 0));
    recorded.assert_odometry(101);
    assert!(recorded.lines.iter().any(|line| line.contains("scale it, and name its unit")), "{:?}", recorded.lines);
}

#[test]
fn a_python_program_writes_the_same_marks() {
    let test = "a_python_program_writes_the_same_marks";
    if Command::new("python3").arg("--version").output().is_err() {
        return println!("skipped: {test}: no python3");
    }
    check_python_program(test, &python_marks(), false);
}

#[test]
fn the_compiled_python_module_writes_the_same_marks() {
    let test = "the_compiled_python_module_writes_the_same_marks";
    let modules = output("compiled-marks");
    let package = modules.join("stepscope_marks");
    std::fs::create_dir_all(&package).unwrap();
    for file in python_marks().join("stepscope_marks").read_dir().unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "py") {
            std::fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let mut build = Command::new("python3");
    build.arg(python_marks().join("compiled.py")).arg(package.join("_compiled.abi3.so"));
    // Python's slots hold functions as data pointers, which -Wpedantic dislikes.
    build.env("CC", "cc -Wall -Wextra -Werror -DSTEPSCOPE_SHOW_WARNINGS").env("PYTHONDONTWRITEBYTECODE", "1");
    let Ok(built) = build.output() else { return println!("skipped: {test}: no python3") };
    let said = String::from_utf8_lossy(&built.stderr);
    if let Some(missing) = said.strip_prefix("missing: ") {
        return println!("skipped: {test}: {missing} is missing");
    }
    assert!(built.status.success(), "{said}");
    check_python_program(test, &modules, true);
}

/// The folder of the adapter for Gazebo.
fn gazebo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../marks/gz")
}

fn output(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn scopes_of_gazebos_profiler_are_recorded_through_the_adapter() {
    let test = "scopes_of_gazebos_profiler_are_recorded_through_the_adapter";
    let program = output("gz-simulation");
    let (adapter, stand_in) = (format!("-I{}", gazebo().display()), format!("-I{}/stand_in", gazebo().display()));
    let flags = ["-std=c++17", "-DSTEPSCOPE_MARKS=1", "-DGZ_PROFILER_ENABLE=1", &adapter, &stand_in];
    match compile("g++", &flags, &gazebo().join("example/simulation.cpp"), &program) {
        Some(compiled) => assert!(compiled),
        None => return println!("skipped: {test}: no g++"),
    }
    let launch = Launch::new([&program]);
    let Some(recorded) = record_launch(test, launch, &Options::default()) else { return };
    let expected = [
        (("Collide", 2), 202),
        (("Physics::Update", 1), 101),
        (("PostUpdate", 1), 101),
        (("RenderingSensor::Update", 0), 30),
        (("SimulationRunner::Step", 0), 101),
    ];
    assert_eq!(recorded.counts(), BTreeMap::from(expected));
    assert_eq!(recorded.sim_times(), (1..=100).map(|step| step * 1_000_000).collect::<Vec<u64>>());
    assert!(recorded.capture.threads.iter().any(|thread| thread.name == "sensors"), "threads take Gazebo's names");
}

#[test]
fn scopes_of_ignition_common_are_recorded_by_preloading() {
    let test = "scopes_of_ignition_common_are_recorded_by_preloading";
    if !Path::new("/usr/include/ignition/common4/ignition/common/Profiler.hh").exists() {
        return println!("skipped: {test}: libignition-common-core-dev is not installed");
    }
    // Its own profiler listens on a port of all addresses, so it gets a network of its own.
    if !Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success()) {
        return println!("skipped: {test}: a network of its own needs root");
    }
    let (preload, program) = (output("stepscope_gz_preload.so"), output("ignition"));
    let flags = ["-shared", "-fPIC", "-DSTEPSCOPE_MARKS=1"];
    assert_eq!(compile("g++", &flags, &gazebo().join("stepscope_gz_preload.cpp"), &preload), Some(true));
    let mut build = Command::new("g++");
    build.args(["-O2", "-w", "-I/usr/include/ignition/common4", "-I/usr/include/ignition/cmake2"]);
    build.args(["-I/usr/include/ignition/math6", "-I/usr/include/ignition/utils1", "-DIGN_PROFILER_ENABLE=1"]);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/marks");
    build.arg("-I").arg(sources.join("debian")).arg(sources.join("ignition.cpp")).arg("-o").arg(&program);
    build.args(["-l:libignition-common4-profiler.so.4", "-l:libignition-common4.so.4"]);
    assert!(build.status().unwrap().success());
    let launch = Launch::new(["unshare".as_ref(), "-n".as_ref(), program.as_os_str()]).env("LD_PRELOAD", preload);
    let options = Options { step_scope: Some("Step".into()), ..Options::default() };
    let Some(recorded) = record_launch(test, launch, &options) else { return };
    assert_eq!(recorded.counts(), BTreeMap::from([(("Step", 0), 11), (("Update", 1), 22)]));
    assert_eq!(recorded.capture.steps.len(), 10);
}
