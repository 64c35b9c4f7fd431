//! The settings of a lab file, with every default filled in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use stepscope_analyze::{Naming, Ownership};
use stepscope_model::{Dimension, Phase};

use super::limits::Limits;
use super::metric::MetricSettings;
use super::sweep::SweepSettings;
use crate::folder_map::FolderMap;
use crate::step::StepFunction;

/// Default file name of a lab file.
pub const FILE_NAME: &str = "stepscope.toml";

/// Name of the variant that changes nothing.
pub const BASE: &str = "base";

/// A lab file, checked, with every default filled in.
#[derive(Debug, Clone)]
pub struct LabFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// `[project] name`: title of the report. By default the name of the file's folder.
    pub name: String,
    /// `[project] owned`. Relative source patterns also match from the file's folder.
    pub owned: Ownership,
    /// `[process_names]` and `[categories]`: what processes and code are called.
    pub naming: Naming,
    /// The scenarios, in the order of the file. Never empty.
    pub scenarios: Vec<Scenario>,
    /// The variants, in the order of the file.
    pub variants: Vec<Variant>,
    /// `[ab]`: how two variants are compared.
    pub ab: AbSettings,
    /// `[compare]`: how captures are compared.
    pub compare: CompareSettings,
    /// `[sweep]`: sizes at which scenarios are run.
    pub sweep: SweepSettings,
    /// `[gate]`: limits of change. Each scenario has its own, which includes these.
    pub limits: Limits,
}

impl LabFile {
    /// Without measurements of the machine's speed.
    pub fn without_speed_probe(mut self) -> Self {
        self.scenarios.iter_mut().for_each(|scenario| scenario.record.speed_probe = false);
        self
    }
}

/// A workload.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its key in the lab file: letters, digits, `_` and `-`.
    pub name: String,
    /// What it stresses, as a sentence.
    pub axis: Option<String>,
    /// Program and arguments. Empty only with `attach`.
    pub command: Vec<String>,
    /// Running processes to record instead of the command's.
    pub attach: Option<Attach>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Variables added to the environment.
    pub env: BTreeMap<String, String>,
    /// The end of loading. Without it, there is no loading phase.
    pub ready: Option<Ready>,
    /// Clients that start when it is ready.
    pub drivers: Vec<Driver>,
    /// How steps are found.
    pub step: Option<StepSource>,
    /// What is recorded.
    pub record: RecordSettings,
    /// How it is stopped.
    pub stop: StopSettings,
    /// Which code is owned.
    pub owned: Ownership,
    /// Limits of change.
    pub limits: Limits,
    /// `[metric]`: values that the program reports itself.
    pub metrics: Vec<MetricSettings>,
}

/// `attach`: running processes, chosen as by the flags of `stepscope record`. A process belongs to the set if any of these matches it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attach {
    /// `pid`: these processes.
    pub pids: Vec<u32>,
    /// `tree`: these processes, with all that descend from them.
    pub trees: Vec<u32>,
    /// `name`: globs over names of programs.
    pub names: Vec<glob::Pattern>,
    /// `cgroup`: control groups.
    pub cgroups: Vec<String>,
    /// `container`: containers by name or id.
    pub containers: Vec<String>,
}

/// The event that ends the loading phase.
#[derive(Debug, Clone)]
pub enum Ready {
    /// `log`: a line of the output contains this text.
    Log(String),
    /// `log_regex`: a line of the output matches.
    LogRegex(Regex),
    /// `port`: a process of the scenario listens on this TCP port.
    Port(u16),
    /// `file`: this file appears; or, if it existed at launch, is replaced or written.
    File(PathBuf),
    /// `steps`: this many simulation steps have ended.
    Steps(u64),
    /// `after_s`: this long after launch.
    After(Duration),
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Ready::Log(a), Ready::Log(b)) => a == b,
            (Ready::LogRegex(a), Ready::LogRegex(b)) => a.as_str() == b.as_str(),
            (Ready::Port(a), Ready::Port(b)) => a == b,
            (Ready::File(a), Ready::File(b)) => a == b,
            (Ready::Steps(a), Ready::Steps(b)) => a == b,
            (Ready::After(a), Ready::After(b)) => a == b,
            _ => false,
        }
    }
}

/// A client that is part of the workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// Program and arguments. Never empty.
    pub command: Vec<String>,
    /// Working directory; by default that of the scenario.
    pub cwd: Option<PathBuf>,
    /// Variables added to the scenario's environment.
    pub env: BTreeMap<String, String>,
}

/// How steps are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepSource {
    /// `scope`: a named scope, e.g. `SimulationRunner::Step`.
    Scope(String),
    /// `function`: each call of this function of the program, or of the file `module`.
    Function(StepFunction),
    /// `"marks"`: the program uses Stepscope's marks.
    Marks,
}

/// What is recorded: `[record]`, overridden by the scenario's own `record`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSettings {
    /// Requested dimensions, each once. A scenario with a `step` also requests `steps`.
    pub dimensions: Vec<Dimension>,
    /// Whether the program runs once more below valgrind, to simulate its caches.
    pub simulates_caches: bool,
    /// Whether Python functions are shown in stacks; `None`: if the command is a Python interpreter.
    pub python: Option<bool>,
    /// Whether messages and callbacks of ROS 2 are recorded.
    pub ros2: bool,
    /// Samples per second of CPU time.
    pub frequency_hz: u64,
    /// Recorded phases, in order of time. Never empty.
    pub phases: Vec<Phase>,
    /// How long a scenario may take to become ready.
    pub loading_timeout: Duration,
    /// Time from ready and the start of the drivers to the steady recording.
    pub warmup: Duration,
    /// Longest time of the steady recording.
    pub duration: Duration,
    /// The steady recording ends after this many steps, so that variants simulate the same interval.
    pub steps: Option<u64>,
    /// Whether the machine's speed is measured beside, so that comparisons can correct for it.
    pub speed_probe: bool,
}

impl RecordSettings {
    /// Whether to record this phase.
    pub fn records(&self, phase: Phase) -> bool {
        self.phases.contains(&phase)
    }
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            dimensions: vec![
                Dimension::Cpu,
                Dimension::Offcpu,
                Dimension::Sched,
                Dimension::Faults,
                Dimension::Resources,
            ],
            simulates_caches: false,
            python: None,
            ros2: false,
            frequency_hz: 997,
            phases: vec![Phase::Loading, Phase::Steady],
            loading_timeout: Duration::from_secs(120),
            warmup: Duration::from_secs(5),
            duration: Duration::from_secs(30),
            steps: None,
            speed_probe: true,
        }
    }
}

/// Time between the signals that stop a program: SIGINT, SIGTERM, SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopSettings {
    /// Time between SIGINT and SIGTERM.
    pub interrupt: Duration,
    /// Time between SIGTERM and SIGKILL.
    pub terminate: Duration,
}

impl Default for StopSettings {
    fn default() -> Self {
        Self { interrupt: Duration::from_secs(5), terminate: Duration::from_secs(5) }
    }
}

/// A named change of the scenarios.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its key in the lab file.
    pub name: String,
    /// Variables that are added to the scenario's environment, or replace its own.
    pub env: BTreeMap<String, String>,
    /// Replaces the scenario's command.
    pub command: Option<Vec<String>>,
    /// Replaces the scenario's set of running processes.
    pub attach: Option<Attach>,
    /// Replaces the scenario's directory.
    pub cwd: Option<PathBuf>,
    /// Replaces the first word of the scenario's command: another program with the same arguments.
    pub program: Option<String>,
    /// Replaces these folders in every path of the scenario.
    pub folders: FolderMap,
    /// Replaces how steps are found.
    pub step: Option<StepSource>,
    /// The revision whose files it uses. It is built first.
    pub source: Option<Source>,
    /// The scenarios it applies to; by default all.
    pub scenarios: Option<Vec<String>>,
}

/// A revision of the lab file's repository, and how to build it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The lab file's folder, in the repository.
    pub folder: PathBuf,
    /// A branch, tag or commit.
    pub revision: String,
    /// Commands, run in order in the lab file's folder of the checkout. Empty if nothing needs to be built.
    pub build: Vec<Vec<String>>,
}

/// `[ab]`: the compared variants, and how often each is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbSettings {
    /// The baseline.
    pub baseline: Option<String>,
    /// The variant under test.
    pub candidate: Option<String>,
    /// Runs of each variant of each scenario, at least 1.
    pub runs: u32,
    /// Warm-up rounds, which are not kept.
    pub warm: u32,
}

impl Default for AbSettings {
    fn default() -> Self {
        Self { baseline: None, candidate: None, runs: 8, warm: 0 }
    }
}

/// `[compare]`: the tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareSettings {
    /// Sides are equivalent if the interval of their ratio is within this many percent of 1.
    pub tolerance_percent: f64,
}

impl Default for CompareSettings {
    fn default() -> Self {
        Self { tolerance_percent: 5.0 }
    }
}

impl Variant {
    /// Whether it changes nothing: it only names the unchanged scenarios.
    pub fn changes_nothing(&self) -> bool {
        let Self { name: _, env, command, attach, cwd, program, folders, step, source, scenarios: _ } = self;
        let unsaid = command.is_none()
            && attach.is_none()
            && cwd.is_none()
            && program.is_none()
            && step.is_none()
            && source.is_none();
        unsaid && env.is_empty() && folders.is_empty()
    }
}

impl LabFile {
    /// The folder of relative paths.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}
