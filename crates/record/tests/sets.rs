//! Recordings of several running processes, and of those that come later.

mod recorded;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use recorded::captured;
use stepscope_model::{Capture, ProcessId};
use stepscope_record::proc::ProcessSelection;
use stepscope_record::{Options, RecordError, Recording};

/// A shell that computes until the test ends.
struct Busy(Child);

impl Busy {
    fn start(program: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn samples_by_pid(capture: &Capture) -> BTreeMap<u32, usize> {
    let process_of = |id: ProcessId| capture.processes[id.index()].pid;
    let mut samples = BTreeMap::new();
    for sample in &capture.samples {
        if let Some(process) = capture.threads[sample.thread.index()].process {
            *samples.entry(process_of(process)).or_default() += 1;
        }
    }
    samples
}

fn attach(test: &str, selection: ProcessSelection, folder: &Path) -> Option<Recording> {
    match Recording::attach_set(selection, &Options::default(), folder) {
        Ok(recording) => Some(recording),
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Waits until the log has this many samples more, or for a minute.
fn await_samples(recording: &Recording, more: u64) {
    let (begin, start) = (recording.progress().cpu_samples, Instant::now());
    while recording.progress().cpu_samples < begin + more && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn processes_of_a_set_are_recorded_with_those_that_come_later_and_left_running() {
    const TEST: &str = "processes_of_a_set_are_recorded_with_those_that_come_later_and_left_running";
    let folder = tempfile::tempdir().unwrap();
    let name = format!("later{}", std::process::id());
    let program = folder.path().join(&name);
    std::fs::copy("/bin/sh", &program).unwrap();
    let (first, other) = (Busy::start(Path::new("/bin/sh")), Busy::start(Path::new("/bin/sh")));
    let capture_folder = folder.path().join("capture");
    let selection = ProcessSelection {
        pids: vec![first.pid()],
        names: vec![glob::Pattern::new(&format!("{name}*")).unwrap()],
        ..ProcessSelection::default()
    };
    let Some(recording) = attach(TEST, selection, &capture_folder) else { return };
    await_samples(&recording, 50);
    let mut later = Busy::start(&program);
    let start = Instant::now();
    while recording.progress().processes < 2 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    await_samples(&recording, 200);
    recording.stop().unwrap();
    assert!(later.0.try_wait().unwrap().is_none(), "it is left running");
    let capture = captured(&capture_folder);
    let samples = samples_by_pid(&capture);
    assert!(samples.get(&first.pid()).is_some_and(|&count| count > 50), "{samples:?}");
    assert!(samples.contains_key(&later.pid()), "{samples:?}");
    assert!(!samples.contains_key(&other.pid()), "{samples:?}");
    // The thread that came later lives from when it was found.
    let came = capture.threads.iter().find(|thread| thread.tid == later.pid()).unwrap();
    assert!(came.start_ns > capture.info.start_ns, "{came:?}");
}
