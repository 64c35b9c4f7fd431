//! What tests of the lab share: a recorder that records nothing but its orders, and a look at what is left behind.

#![allow(dead_code)]

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use stepscope_lab::lab_file::{LabFile, Trial, TrialFilter};
use stepscope_lab::recorder::{Order, Recorder, Recording};
use stepscope_model::{Capture, CaptureInfo, Conditions, Event, Machine, Phase, Sample, disk};
use stepscope_record::launch::{Exit, Launch, Launched};
use stepscope_record::proc::{ProcessSelection, ProcessSet};

use stepscope_record::{Label, LogError, Progress, RecordError, StepPoint};

/// A recorder that launches programs, records nothing, and logs its calls. Its captures hold one sample and their label.
#[derive(Default)]
pub struct FakeRecorder {
    pub events: Arc<Mutex<Vec<String>>>,
    /// If set, a recording reports a failure after this many calls of `progress`.
    pub fails_after: Option<usize>,
    /// The processes that were attached to last.
    pub attached: Mutex<Vec<u32>>,
    /// Background load of each capture, in percent, in the order of the captures; 0 for further ones.
    pub others_percent: Mutex<VecDeque<u64>>,
}

impl FakeRecorder {
    pub fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    fn recording(&self) -> FakeRecording {
        FakeRecording { events: self.events.clone(), looks: AtomicUsize::new(0), fails_after: self.fails_after }
    }
}

impl Recorder for FakeRecorder {
    fn launch(
        &self,
        launch: Launch,
        order: &Order,
        folder: &Path,
    ) -> Result<(Launched, Box<dyn Recording>), RecordError> {
        let recording = self.recording();
        let launched = launch.prepare()?.start()?;
        recording.begin("launch", folder, &order.label);
        Ok((launched, Box::new(recording)))
    }

    fn attach(
        &self,
        selection: ProcessSelection,
        order: &Order,
        folder: &Path,
    ) -> Result<Box<dyn Recording>, RecordError> {
        let recording = self.recording();
        recording.begin("attach", folder, &order.label);
        *self.attached.lock().unwrap() = ProcessSet::open(selection)?.pids();
        Ok(Box::new(recording))
    }

    fn finish(&self, folder: &Path) -> Result<Capture, LogError> {
        let text = fs::read_to_string(folder.join(disk::RAW_LOG_FILE)).expect("a recording started here");
        let mut words = text.split(' ').map(|word| (word != "-").then(|| word.to_owned()));
        let mut word = || words.next().unwrap();
        let (scenario, variant) = (word(), word());
        let phase = word().map(|phase| if phase == "loading" { Phase::Loading } else { Phase::Steady });
        let others = self.others_percent.lock().unwrap().pop_front().unwrap_or(0);
        let mut capture = Capture::of(CaptureInfo {
            scenario,
            variant,
            phase,
            start_ns: Some(0),
            end_ns: Some(100),
            machine: Some(Machine { cores: 1, ..Machine::default() }),
            conditions: Some(Conditions { others_cpu_ns: Some(others), ..Conditions::default() }),
            ..CaptureInfo::default()
        });
        let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
        let thread = capture.add_thread_named("main");
        let (run, step) = (capture.intern_function("sim::Run"), capture.intern_function("sim::Step"));
        let stack = capture.intern_stack([run, step]);
        capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight: 1_000_000 });
        Ok(capture)
    }
}

struct FakeRecording {
    events: Arc<Mutex<Vec<String>>>,
    looks: AtomicUsize,
    fails_after: Option<usize>,
}

impl FakeRecording {
    fn push(&self, what: impl Into<String>) {
        self.events.lock().unwrap().push(what.into());
    }

    fn begin(&self, how: &str, folder: &Path, label: &Label) {
        fs::create_dir_all(folder).unwrap();
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let phase = text(&label.phase.map(|phase| phase.to_string()));
        let label = format!("{} {} {phase}", text(&label.scenario), text(&label.variant));
        fs::write(folder.join(disk::RAW_LOG_FILE), &label).unwrap();
        self.push(format!("{how} {phase}"));
    }
}

impl Recording for FakeRecording {
    fn progress(&self) -> Progress {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        let failed = self.fails_after.is_some_and(|after| looks >= after);
        Progress { failure: failed.then(|| "the disk is full".to_owned()), ..Progress::default() }
    }

    fn pause(&self) -> Result<(), RecordError> {
        self.push("pause");
        Ok(())
    }

    fn begin_next(&self, folder: &Path, label: Label) -> Result<(), RecordError> {
        self.begin("next", folder, &label);
        Ok(())
    }

    fn observe_steps(&self, step: StepPoint) -> Result<(), RecordError> {
        self.push(format!("steps {}", step.function));
        Ok(())
    }

    fn note_exit(&self, _: u32, exit: &Exit) {
        self.push(format!("exit {}", exit.status()));
    }

    fn stop(self: Box<Self>) -> Result<Progress, RecordError> {
        self.push("stop");
        Ok(Progress::default())
    }
}

/// A folder, a fake recorder and an interrupt flag to run lab files with.
pub struct Bed {
    pub folder: tempfile::TempDir,
    pub recorder: FakeRecorder,
    pub interrupt: AtomicBool,
    marker: String,
}

impl Bed {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let marker = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        Self { folder, recorder: FakeRecorder::default(), interrupt: AtomicBool::new(false), marker }
    }

    /// The lab file; every process of its scenarios carries this bed's marker in its environment.
    pub fn lab(&self, text: &str) -> LabFile {
        let path = self.folder.path().join("stepscope.toml");
        let mut lab = LabFile::parse(&path, text).unwrap_or_else(|error| panic!("{error}"));
        for scenario in &mut lab.scenarios {
            scenario.env.insert("STEPSCOPE_TEST_MARKER".to_owned(), self.marker.clone());
        }
        lab
    }

    /// The only trial of a lab file.
    pub fn trial(&self, text: &str) -> Trial {
        let mut trials = self.lab(text).trials(&TrialFilter::default()).unwrap();
        assert_eq!(trials.len(), 1);
        trials.remove(0)
    }

    /// Processes of this bed's scenarios that still run: name and pid.
    pub fn left_behind(&self) -> Vec<String> {
        let wanted = format!("STEPSCOPE_TEST_MARKER={}", self.marker);
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let marked = processes.filter(|path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
        });
        marked
            .map(|path| format!("{} {}", path.display(), fs::read_to_string(path.join("comm")).unwrap_or_default()))
            .collect()
    }
}
