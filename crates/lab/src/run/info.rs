//! [`RunInfo`]: the content of `run.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepscope_model::quantity::plural;
use stepscope_model::{Machine, Phase};

use crate::conditions::{Before, During, busy_percent};
use crate::lab_file::BASE;
use crate::outcome::Outcome;
use crate::revision::WorkingTree;

/// Version of `run.json`. Raised when a reader of the old form would misread the new.
pub(super) const SCHEMA: u32 = 1;

/// Folder of excluded runs.
pub const SET_ASIDE: &str = ".set-aside";

/// The content of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of this form.
    pub schema: u32,
    /// Program and version that made the run.
    pub tool: String,
    /// Name of the project, from the lab file.
    pub name: String,
    /// Path of the lab file. A copy is beside `run.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<PathBuf>,
    /// The comparison, if variants were interleaved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ab: Option<AbInfo>,
    /// How sizes were swept, where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepInfo>,
    /// The working tree of the lab file's repository, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_tree: Option<WorkingTree>,
    /// Start, RFC 3339 in UTC.
    pub started_at: String,
    /// End; absent while it continues, and if it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The trials, in the order they were planned.
    pub trials: Vec<TrialInfo>,
}

/// How two variants were interleaved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AbInfo {
    /// The baseline.
    pub baseline: String,
    /// The variant under test.
    pub candidate: String,
    /// Requested runs of each variant of each scenario.
    pub runs: u32,
    /// Warm-up rounds, which are not kept.
    #[serde(default)]
    pub warm: u32,
    /// Seed of the random order of the rounds.
    pub seed: u64,
    /// The order of each scenario's rounds, one letter per run: A is the baseline, B the candidate.
    pub order: BTreeMap<String, String>,
}

/// How sizes were swept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepInfo {
    /// The values of each axis.
    pub axes: BTreeMap<String, Vec<f64>>,
    /// Runs of each point that were asked for.
    pub runs: u32,
    /// What the order within rounds was drawn with.
    pub seed: u64,
    /// Scenarios that were swept.
    pub scenarios: Vec<String>,
    /// Why it ended before all runs, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_early: Vec<String>,
}

/// A trial: one execution of a scenario, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialInfo {
    /// The scenario.
    pub scenario: String,
    /// The variant; absent without variants in the lab file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Number of the repetition, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<u32>,
    /// Where it lies on the axes of a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, f64>,
    /// The commit it was built from, if the lab built it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The node that ran it, if a scheduler chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What the scenario stresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Running processes that it recorded, as flags of `stepscope record`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<String>,
    /// Working directory.
    pub cwd: String,
    /// Variables that the lab file set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Commands of the drivers.
    #[serde(default)]
    pub drivers: Vec<Vec<String>>,
    /// How it ended.
    pub result: Outcome,
    /// Time from launch until it was ready, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_after_ns: Option<u64>,
    /// The condition that was met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_by: Option<String>,
    /// Phases with a capture.
    #[serde(default)]
    pub captured: Vec<Phase>,
    /// The machine just before, if it was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
    /// Background load while it was recorded.
    #[serde(default)]
    pub during: During,
    /// Why it is [disturbed](crate::conditions), if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// Why it was excluded from the comparison, if it was. Its captures are then below [`SET_ASIDE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
    /// Notes, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl TrialInfo {
    /// `scenario`, or `scenario/variant`, and with repetitions `scenario/variant #3`.
    pub fn label(&self) -> String {
        let variant = self.variant.as_ref().map(|variant| format!("/{variant}")).unwrap_or_default();
        let repetition = self.repetition.map(|number| format!(" #{number}")).unwrap_or_default();
        format!("{}{variant}{repetition}", self.scenario)
    }

    /// Its current folder in the run.
    pub fn folder(&self) -> PathBuf {
        let inside = self.first_folder();
        if self.set_aside.is_some() { Path::new(SET_ASIDE).join(inside) } else { inside }
    }

    /// The folder it was recorded into.
    pub(super) fn first_folder(&self) -> PathBuf {
        let folder = Path::new(&self.scenario).join(self.variant_name());
        match self.repetition {
            Some(number) => folder.join(format!("{number:02}")),
            None => folder,
        }
    }

    /// The variant's name; `base` without variants in the lab file.
    pub fn variant_name(&self) -> &str {
        self.variant.as_deref().unwrap_or(BASE)
    }
}

impl RunInfo {
    /// Notes about the machine during the run, for readers of its comparison.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let compared = || self.trials.iter().filter(|trial| trial.set_aside.is_none());
        if let Some(share) = busy_percent(compared().map(|trial| &trial.during)) {
            remarks.push(format!(
                "Other processes used {share:.0} % of the CPU (median; drivers count as others). A quieter machine would \
                 resolve smaller changes."
            ));
        }
        let replaced =
            self.trials.iter().filter(|trial| trial.set_aside.is_some() && trial.disturbed.is_some()).count();
        if replaced > 0 {
            remarks.push(format!("{} had a high background load and was repeated.", plural(replaced, "run")));
        }
        for trial in compared() {
            if let Some(why) = &trial.disturbed {
                remarks.push(format!("{} was kept although noisy: {why}.", trial.label()));
            }
            let governor = trial.notes.iter().filter(|note| note.contains("governor"));
            remarks.extend(governor.map(|note| format!("{}: {note}", trial.label())));
        }
        if let Some(tree) = self.working_tree.as_ref().filter(|tree| tree.changed_files > 0)
            && self.trials.iter().any(|trial| trial.revision.is_some())
        {
            remarks.push(format!(
                "The variant without a revision includes uncommitted changes: {} differ from commit {}.",
                plural(tree.changed_files, "file"),
                tree.revision.get(..10).unwrap_or(&tree.revision)
            ));
        }
        remarks
    }
}
