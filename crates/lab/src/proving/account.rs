//! What a run of a proving ground says that it did.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use stepscope_analyze::proof::{Calls, Truth};
use stepscope_model::Phase;

use super::{ProvingError, read_json};

/// The file of an account.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Account {
    /// Hash of all that was simulated.
    pub state: String,
    /// Steps that were done.
    pub steps: u64,
    loading: Part,
    steady: Part,
    /// From the start to the end.
    pub whole: Part,
}

/// What was done in a part of a run.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Part {
    wall_s: f64,
    cpu_s: f64,
    /// Context switches by waiting.
    pub voluntary_switches: u64,
    /// Context switches by others.
    pub involuntary_switches: u64,
    /// What was counted.
    pub counts: BTreeMap<String, u64>,
    scopes: BTreeMap<String, Timed>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Timed {
    calls: u64,
    cpu_ns: u64,
}

impl Account {
    /// Reads it.
    pub fn read(path: &Path) -> Result<Self, ProvingError> {
        read_json(path)
    }

    /// What it says of a phase.
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
    /// Steps that were done in it.
    pub fn steps(&self) -> u64 {
        self.counts.get("steps").copied().unwrap_or(0)
    }
}
