//! [`Account`]: what the program counted in a run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use stepscope_analyze::proof::{Calls, Truth};
use stepscope_model::Phase;

use super::{ProvingError, read_json};

/// The file of an account.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Account {
    /// Hash of the simulated state.
    pub state: String,
    /// Number of steps.
    pub steps: u64,
    loading: Part,
    steady: Part,
    /// Duration.
    pub whole: Part,
}

/// The counts of a phase.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Part {
    wall_s: f64,
    cpu_s: f64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Counters by name.
    pub counts: BTreeMap<String, u64>,
    scopes: BTreeMap<String, Timed>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Timed {
    calls: u64,
    cpu_ns: u64,
}

impl Account {
    /// Reads an account.
    pub fn read(path: &Path) -> Result<Self, ProvingError> {
        read_json(path)
    }

    /// The counts of a phase.
    pub fn truth(&self, phase: Phase) -> Truth {
        let part = match phase {
            Phase::Loading => &self.loading,
            Phase::Steady => &self.steady,
        };
        let calls = |timed: &Timed| Calls { calls: timed.calls, cpu_ns: timed.cpu_ns as f64 };
        Truth {
            cpu_ns: 1e9 * part.cpu_s,
            wall_ns: 1e9 * part.wall_s,
            steps: if phase == Phase::Loading { 1.0 } else { part.steps() as f64 },
            functions: part.scopes.iter().map(|(name, timed)| (name.clone(), calls(timed))).collect(),
        }
    }
}

impl Part {
    /// Number of steps in it.
    pub fn steps(&self) -> u64 {
        self.counts.get("steps").copied().unwrap_or(0)
    }
}
