//! The settings of a lab file, with every default filled in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use stepscope_analyze::Ownership;
use stepscope_analyze::process_label::ProcessNameRule;
use stepscope_model::{Dimension, Phase};

use super::limits::Limits;
use super::metric::MetricSettings;
use crate::folder_map::FolderMap;
use crate::step::StepFunction;

/// The name a lab file has unless one is given.
pub const FILE_NAME: &str = "stepscope.toml";

/// The variant's name under which a scenario is recorded as it is written.
pub const BASE: &str = "base";

/// A lab file, checked, with every default filled in.
#[derive(Debug, Clone)]
pub struct LabFile {
    /// Where it was read from, absolute.
    pub path: PathBuf,
    /// Its text, as read.
    pub text: String,
    /// `[project] name`: heads the report. The name of the file's folder unless given.
    pub name: String,
    /// `[project] owned`; relative source globs are also meant from the file's folder.
    pub owned: Ownership,
    /// `[process_names]`: names of processes; the first rule that matches counts.
    pub process_names: Vec<ProcessNameRule>,
    /// The scenarios, in the order of the file. Never empty.
    pub scenarios: Vec<Scenario>,
    /// The variants, in the order of the file.
    pub variants: Vec<Variant>,
    /// `[ab]`: how two variants are compared.
    pub ab: AbSettings,
    /// `[compare]`: how captures are compared.
    pub compare: CompareSettings,
    /// `[gate]`: what may change by how much. Each scenario has its own, in which this is merged.
    pub limits: Limits,
}

/// A workload.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The key it has in the lab file: letters, digits, `_` and `-`.
    pub name: String,
    /// What it stresses, in a sentence.
    pub axis: Option<String>,
    /// Program and arguments. Never empty.
    pub command: Vec<String>,
    /// Directory it runs in.
    pub cwd: PathBuf,
    /// Variables added to the environment.
    pub env: BTreeMap<String, String>,
    /// When loading is over. Without it there is no loading phase.
    pub ready: Option<Ready>,
    /// Clients attached once it is ready.
    pub drivers: Vec<Driver>,
    /// What marks a simulation step.
    pub step: Option<StepSource>,
    /// What is recorded of it.
    pub record: RecordSettings,
    /// How it is stopped.
    pub stop: StopSettings,
    /// Which code is owned.
    pub owned: Ownership,
    /// What may change by how much.
    pub limits: Limits,
    /// `[metric]`: values that the program reports itself.
    pub metrics: Vec<MetricSettings>,
}

/// The event that ends the loading phase.
#[derive(Debug, Clone)]
pub enum Ready {
    /// `log`: a line of its output holds this text.
    Log(String),
    /// `log_regex`: a line of its output matches.
    LogRegex(Regex),
    /// `port`: a process of the scenario listens on this TCP port.
    Port(u16),
    /// `file`: this file appears, or is replaced or written if it was there at launch.
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

/// A client that must be attached for the intended workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// Program and arguments. Never empty.
    pub command: Vec<String>,
    /// Directory it runs in; that of the scenario unless given.
    pub cwd: Option<PathBuf>,
    /// Variables added to the scenario's environment.
    pub env: BTreeMap<String, String>,
}

/// What marks one iteration of the simulation loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepSource {
    /// `scope`: a named scope, e.g. `SimulationRunner::Step`.
    Scope(String),
    /// `function`: each call of this function, of the program or of the file that `module` names.
    Function(StepFunction),
    /// `"marks"`: the program includes our marks.
    Marks,
}

/// What is recorded: `[record]`, overridden by the scenario's own `record`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSettings {
    /// Kinds of evidence asked for, without repetition. A scenario with a `step` asks for `steps` too.
    pub dimensions: Vec<Dimension>,
    /// Samples per second of CPU time.
    pub frequency_hz: u64,
    /// Phases recorded, in the order they happen. Never empty.
    pub phases: Vec<Phase>,
    /// How long a scenario may take to become ready.
    pub loading_timeout: Duration,
    /// Time between ready (and the start of the drivers) and the steady recording.
    pub warmup: Duration,
    /// Longest time of the steady recording.
    pub duration: Duration,
    /// The steady recording ends after this many steps, so that variants simulate the same interval.
    pub steps: Option<u64>,
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
            frequency_hz: 997,
            phases: vec![Phase::Loading, Phase::Steady],
            loading_timeout: Duration::from_secs(120),
            warmup: Duration::from_secs(5),
            duration: Duration::from_secs(30),
            steps: None,
        }
    }
}

/// How long each signal is given before the next, stronger one: SIGINT, SIGTERM, SIGKILL.
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

/// A named way to run the same scenarios: what it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variant {
    /// The key it has in the lab file.
    pub name: String,
    /// Variables added to the scenario's environment, or replacing those it sets.
    pub env: BTreeMap<String, String>,
    /// Replaces the scenario's command.
    pub command: Option<Vec<String>>,
    /// Replaces the scenario's directory.
    pub cwd: Option<PathBuf>,
    /// Replaces the first word of the scenario's command: another program with the same arguments.
    pub program: Option<String>,
    /// Folders that others stand in for, in every path that the scenario names.
    pub folders: FolderMap,
    /// Replaces what marks a step.
    pub step: Option<StepSource>,
    /// The revision whose files it takes, built first.
    pub source: Option<Source>,
    /// The scenarios it applies to; all unless given.
    pub scenarios: Option<Vec<String>>,
}

/// A revision of the repository that the lab file lies in, and how to build it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The lab file's folder, which lies in the repository.
    pub folder: PathBuf,
    /// What git is asked for: a branch, a tag, a commit.
    pub revision: String,
    /// Commands, run one after the other in the lab file's folder of a checkout of its own. Empty where nothing needs to
    /// be built.
    pub build: Vec<Vec<String>>,
}

/// `[ab]`: which variants are compared, and how often each is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbSettings {
    /// The variant that is compared with.
    pub baseline: Option<String>,
    /// The variant under test.
    pub candidate: Option<String>,
    /// Runs of each variant of each scenario, at least 1.
    pub runs: u32,
    /// Rounds that are run before these, and not kept.
    pub warm: u32,
}

impl Default for AbSettings {
    fn default() -> Self {
        Self { baseline: None, candidate: None, runs: 8, warm: 0 }
    }
}

/// `[compare]`: when a difference is none.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareSettings {
    /// Ratios whose interval lies within 1 plus or minus this many percent are equivalent.
    pub tolerance_percent: f64,
}

impl Default for CompareSettings {
    fn default() -> Self {
        Self { tolerance_percent: 5.0 }
    }
}

impl Variant {
    /// Whether it changes nothing, and so only gives a name to the scenarios as they are written.
    pub fn changes_nothing(&self) -> bool {
        let Self { name: _, env, command, cwd, program, folders, step, source, scenarios: _ } = self;
        let unsaid = command.is_none() && cwd.is_none() && program.is_none() && step.is_none() && source.is_none();
        unsaid && env.is_empty() && folders.is_empty()
    }
}

impl LabFile {
    /// The folder that relative paths start from.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}
