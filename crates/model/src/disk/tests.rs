use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::{
    CallTimes, ClockPeer, Clocks, Counter, Event, FlowEvent, FlowStage, Frame, Language, Merged, MergedMachine, Module,
    Process, Sample, Scope, Step, SymbolSource, Thread, ThreadId, ThreadName, Wait, WaitState,
};

/// A capture with a row in every table, with and without optional values.
fn full() -> Capture {
    let mut capture = Capture::default();
    capture.info.command = vec!["sim".into(), "--world".into()];
    let cycles = capture.add_event(Event::sampled("cycles", "cycles"));
    let process = capture.add_process(Process { pid: 7, command_line: "sim --world".into(), ..Process::default() });
    let machine = Some("robot".to_owned());
    capture.add_process(Process { pid: 8, parent_pid: Some(7), exit_status: Some(-1), machine, ..Process::default() });
    capture.info.merged = Some(Merged { machines: vec![MergedMachine::default()], ..Merged::default() });
    capture.info.clocks = Some(Clocks { peers: vec![ClockPeer::default()], ..Clocks::default() });
    let names = vec![ThreadName { time_ns: 3, name: "ruby\t".into() }];
    let main = capture.add_thread(Thread {
        tid: 7,
        process: Some(process),
        name: "sim".into(),
        names,
        start_ns: Some(0),
        end_ns: Some(u64::MAX),
        ..Thread::default()
    });
    let again = capture.add_thread(Thread { tid: 7, name: "a tid reused".into(), ..Thread::default() });
    let module = capture.add_module(Module {
        path: "/opt/sim".into(),
        build_id: Some("00ff".into()),
        symbols: SymbolSource::DynamicSymbols,
        package: Some("sim".into()),
    });
    let run = capture.intern_frame(Frame {
        function: "Run<int, (anonymous namespace)::T>".into(),
        module: Some(module),
        file: Some("run.cc".into()),
        line: Some(12),
        inlined: true,
        address: Some(0x1234),
        language: Language::Kernel,
    });
    let odd = capture.intern_function("std::function<bool ");
    let stack = capture.intern_stack([run, odd, run]);
    capture.samples.push(Sample {
        time_ns: Some(5),
        thread: main,
        cpu: Some(3),
        stack,
        event: cycles,
        weight: u64::MAX,
    });
    capture.samples.push(Sample { time_ns: None, thread: again, cpu: None, stack: None, event: cycles, weight: 0 });
    for (file, stack) in [(Some("/o".into()), stack), (None, None)] {
        let call = "openat".into();
        capture.call_times.push(CallTimes { thread: main, call, stack, file, from_ns: 64, until_ns: 66, count: 3 });
    }
    capture.waits.push(Wait {
        start_ns: 1,
        end_ns: 9,
        thread: main,
        stack,
        state: WaitState::Blocked,
        runnable_ns: Some(2),
        cpu: None,
        waker: Some(again),
        waker_stack: None,
        count: 1,
    });
    capture.steps.push(Step { index: 0, start_ns: 1, end_ns: 2, sim_time_ns: None, thread: main });
    capture.scopes.push(Scope { thread: main, name: "Physics".into(), start_ns: 1, end_ns: 2, depth: 0 });
    let name: std::sync::Arc<str> = "rss_bytes".into();
    capture.counters.push(Counter { time_ns: 1, process: Some(process), thread: None, name, value: -5 });
    let (topic, callback): (std::sync::Arc<str>, std::sync::Arc<str>) = ("/scan".into(), "/planner: /scan".into());
    let (published, flow) = (FlowStage::Published, Some(u64::MAX));
    capture.flows.push(FlowEvent {
        time_ns: 3,
        thread: main,
        topic: topic.clone(),
        flow,
        stage: published,
        name: None,
        period_ns: None,
    });
    let stage = FlowStage::CallbackStart;
    let name = Some(callback);
    capture.flows.push(FlowEvent { time_ns: 4, thread: again, topic, flow: None, stage, name, period_ns: Some(10) });
    capture
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_written_capture_is_read_back_exactly() {
    let folder = tempfile::tempdir().unwrap();
    write(&full(), folder.path()).unwrap();
    assert_eq!(read(folder.path()).unwrap(), full());
}

#[test]
fn an_empty_capture_is_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    write(&Capture::default(), folder.path()).unwrap();
    assert_eq!(read(folder.path()).unwrap(), Capture::default());
}

#[test]
fn a_truncated_capture_is_never_read_as_complete() {
    let whole = tempfile::tempdir().unwrap();
    write(&full(), whole.path()).unwrap();
    for path in files(whole.path()) {
        let bytes = fs::read(&path).unwrap();
        for length in (0..bytes.len() - 1).step_by(7) {
            fs::write(&path, &bytes[..length]).unwrap();
            assert!(read(whole.path()).is_err(), "{} cut to {length} bytes", path.display());
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(read(whole.path()).unwrap(), full());
}

#[test]
fn any_changed_byte_of_a_table_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    write(&full(), folder.path()).unwrap();
    let path = folder.path().join("samples.parquet");
    let bytes = fs::read(&path).unwrap();
    for index in (0..bytes.len()).step_by(5) {
        let mut changed = bytes.clone();
        changed[index] ^= 0x41;
        fs::write(&path, changed).unwrap();
        assert!(matches!(read(folder.path()), Err(DiskError::Damaged { .. })), "byte {index}");
    }
}

#[test]
fn hostile_parquet_with_a_right_checksum_is_an_error_and_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    write(&full(), folder.path()).unwrap();
    let path = folder.path().join("samples.parquet");
    let bytes = fs::read(&path).unwrap();
    for index in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[index] = changed[index].wrapping_add(0x55);
        let table = columns::TableBytes::InMemory(changed.into());
        let _ = catch_unwind(AssertUnwindSafe(|| columns::decode(table, None, |_| Ok(()))));
    }
    let mut capture = full();
    capture.samples[0].thread = ThreadId(1);
    capture.samples[1].thread = ThreadId(0);
    write(&capture, folder.path()).unwrap();
    let crossed = fs::read(&path).unwrap();
    let info = folder.path().join(INFO_FILE);
    let lying = fs::read_to_string(&info).unwrap().replace(&format!("{}", crc32fast::hash(&crossed)), "1");
    fs::write(&info, lying).unwrap();
    assert!(matches!(read(folder.path()), Err(DiskError::Damaged { .. })));
}

#[test]
fn each_kind_of_wrong_folder_gets_its_own_advice() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &Path| read(path).unwrap_err().to_string();
    let absent = message(&folder.path().join("none"));
    assert!(absent.contains("no such capture; record one with"), "{absent}");
    for name in ["rec2.capture", "rec.capture"] {
        write(&full(), &folder.path().join(name)).unwrap();
    }
    let absent = message(&folder.path().join("none"));
    assert!(absent.ends_with("none: no such capture; captures there: rec.capture, rec2.capture"), "{absent}");
    assert!(message(folder.path()).contains("holds no capture.json"));
    fs::write(folder.path().join("a.folded"), "a 1").unwrap();
    assert!(message(&folder.path().join("a.folded")).contains("stepscope import"));
    fs::write(folder.path().join(RAW_LOG_FILE), "").unwrap();
    assert!(message(folder.path()).contains("stepscope recover"));
    write(&full(), folder.path()).unwrap();
    let info = folder.path().join(INFO_FILE);
    let newer = fs::read_to_string(&info).unwrap().replace("\"schema\": 1", "\"schema\": 99");
    fs::write(&info, newer).unwrap();
    assert!(message(folder.path()).contains("schema 99 is newer"));
}

#[test]
fn a_replaced_capture_keeps_the_mode_of_its_folder_and_other_files_in_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("c");
    write(&Capture::default(), &folder).unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("c", parent.path().join("link")).unwrap();
    replace(&full(), &parent.path().join("link")).unwrap();
    assert_eq!(read(&folder).unwrap(), full());
    assert_eq!(fs::read_to_string(folder.join("notes.txt")).unwrap(), "mine");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(files(parent.path()), [folder, parent.path().join("link")], "nothing is left beside it");
}

#[test]
fn damaged_waits_are_noticed_when_they_are_needed_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    write(&full(), folder.path()).unwrap();
    let path = folder.path().join("waits.parquet");
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 0x41;
    fs::write(&path, bytes).unwrap();
    let capture = open(folder.path()).unwrap();
    assert_eq!((capture.samples.len(), capture.waits.len()), (2, 1), "the numbers of rows are in capture.json");
    assert_eq!(*capture.samples, *full().samples);
    assert_eq!(capture.load_error(), None);
    assert_eq!(capture.waits.iter().count(), 0);
    let error = capture.load_error().unwrap();
    assert_eq!(error.to_string(), read(folder.path()).unwrap_err().to_string());
    assert_eq!(error.path, path);
}

#[test]
fn an_opened_capture_is_written_elsewhere_with_the_same_rows() {
    let [from, to] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    write(&full(), from.path()).unwrap();
    let mut opened = open(from.path()).unwrap();
    opened.info.notes.push("copied".into());
    write(&opened, to.path()).unwrap();
    write(&opened, from.path()).unwrap();
    for folder in [&from, &to] {
        let capture = read(folder.path()).unwrap();
        assert_eq!((&capture.samples, &capture.waits), (&full().samples, &full().waits));
        assert_eq!(capture.info.notes, ["copied"]);
    }
}

#[test]
fn long_tables_that_are_written_row_by_row_are_read_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = full();
    capture.samples = Vec::new().into();
    capture.waits = Waits::default();
    (capture.scopes, capture.counters) = Default::default();
    let (mut samples, mut waits, mut scopes, mut counters) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (first_sample, first_wait) = (full().samples[0], full().waits.at(0));
    let mut tables = LongTables::create(folder.path(), &capture).unwrap();
    for number in 0..GROUP_ROWS as u64 * 5 / 4 {
        // Two CPUs, one of which is a little behind.
        let time_ns = Some(if number % 2 == 0 { number } else { number.saturating_sub(100) });
        let sample = Sample { time_ns, ..first_sample };
        let thread = ThreadId((number % 2) as u32);
        let wait = Wait { start_ns: number, end_ns: number + 1, thread, ..first_wait };
        tables.add_sample(&capture, sample).unwrap();
        tables.add_wait(&capture, wait).unwrap();
        let scope = Scope { start_ns: number, end_ns: number + 1, thread, ..full().scopes[0].clone() };
        let counter = Counter { time_ns: number, thread: Some(thread), ..full().counters[0].clone() };
        tables.add_scope(&capture, scope.clone()).unwrap();
        tables.add_counter(&capture, counter.clone()).unwrap();
        samples.push(sample);
        waits.push(wait);
        scopes.push(scope);
        counters.push(counter);
    }
    tables.finish(&mut capture).unwrap();
    write(&capture, folder.path()).unwrap();
    samples.sort_by_key(|sample| sample.time_ns);
    waits.sort_by_key(|wait| (wait.thread, wait.start_ns));
    scopes.sort_by_key(|scope| (scope.thread, scope.start_ns));
    let read = read(folder.path()).unwrap();
    assert!(*read.samples == samples);
    assert!(read.waits == waits.into());
    assert!(*read.scopes == scopes);
    assert!(*read.counters == counters);
}

#[test]
fn shared_texts_are_read_back_whether_they_are_one_or_many_or_large() {
    // One text for all rows, runs and changes of a few, and more texts than a dictionary may have.
    let one = |_| "one".to_owned();
    let few = |row: usize| format!("/topic{}", if row % 1_000 < 500 { row / 1_000 } else { row % 7 });
    let large = |row: usize| format!("{row:0>40}");
    for name in [&one as &dyn Fn(usize) -> String, &few, &large] {
        let mut capture = Capture::default();
        let thread = capture.add_thread(Thread { tid: 7, ..Thread::default() });
        for row in 0..GROUP_ROWS + 40_003 {
            let text = capture.intern_text(&name(row));
            let (time_ns, depth) = (row as u64, 0);
            capture.scopes.push(Scope { thread, name: text.clone(), start_ns: time_ns, end_ns: time_ns, depth });
            let maybe = (row % 5 > 0 && row < GROUP_ROWS).then(|| text.clone());
            let (flow, stage) = (None, FlowStage::Taken);
            capture.flows.push(FlowEvent { time_ns, thread, topic: text, flow, stage, name: maybe, period_ns: None });
        }
        let folder = tempfile::tempdir().unwrap();
        write(&capture, folder.path()).unwrap();
        let read = read(folder.path()).unwrap();
        assert!(read.scopes[..] == capture.scopes[..] && read.flows[..] == capture.flows[..]);
    }
}
