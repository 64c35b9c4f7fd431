//! [`Catalogue`]: the switches and controls of the program.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use stepscope_analyze::Ownership;
use stepscope_analyze::proof::{Known, Saves};
use stepscope_model::Phase;
use stepscope_model::output_file::write_durably;

use super::{ProvingError, read_json};

/// Everything that can be slow, and all controls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Catalogue {
    /// Namespaces of the program's own code.
    pub owned: Vec<String>,
    /// The switches.
    pub switches: Vec<Switch>,
    /// The controls, which must not be found.
    pub controls: Vec<Control>,
    /// Marked scopes that the program also counts.
    #[serde(default)]
    pub counted_scopes: Vec<CountedScope>,
    /// Allocations that the program also counts.
    #[serde(default)]
    pub counted_allocations: Vec<CountedAllocations>,
    /// System calls that the program also counts.
    #[serde(default)]
    pub counted_calls: Vec<CountedCalls>,
}

/// A pathology that can be switched on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Its world.
    pub world: String,
    phase: Phase,
    function: String,
    guilty: Vec<String>,
    /// Kinds of findings that are right; any if empty.
    #[serde(default)]
    kinds: Vec<String>,
    seam: Vec<String>,
    saves: String,
    downstream: String,
    /// Arguments that run it, without `--slow`.
    pub arguments: Vec<String>,
}

/// A control: code that must not be found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Control {
    /// Its name.
    pub name: String,
    /// Its world.
    pub world: String,
    /// Why it looks suspicious.
    pub why: String,
    /// Functions that must not be found.
    pub silent: Vec<String>,
    /// Arguments that run it.
    pub arguments: Vec<String>,
}

/// A scope with as many marks as a counter counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountedScope {
    /// The world.
    pub world: String,
    /// The scope's name.
    pub scope: String,
    /// The counter's name in accounts.
    pub counter: String,
}

/// Allocations of a function with all it calls, as many as a counter less others.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountedAllocations {
    /// The world.
    pub world: String,
    /// The function.
    pub function: String,
    /// Temporary ones only.
    pub temporary: bool,
    /// The counter's name in accounts.
    pub counter: String,
    /// Counters to take off.
    pub less: Vec<String>,
}

/// System calls of functions, as many as a counter counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountedCalls {
    /// The world.
    pub world: String,
    /// Parts of the names of the functions that make them.
    pub functions: Vec<String>,
    /// Name of the system call.
    pub call: String,
    /// The counter's name in accounts.
    pub counter: String,
}

impl Catalogue {
    /// Runs the program to get its catalogue.
    ///
    /// # Errors
    /// If it cannot be run, or prints no catalogue.
    pub fn of(program: &Path) -> Result<Self, ProvingError> {
        let output = Command::new(program).args(["list", "--format", "json"]).output();
        let output = output.map_err(|source| ProvingError::Program { program: program.to_owned(), source })?;
        serde_json::from_slice(&output.stdout).map_err(|error| ProvingError::Damaged {
            path: program.to_owned(),
            reason: format!("its catalogue: {error}"),
        })
    }

    /// Reads a [written](Catalogue::write) catalogue.
    pub(super) fn read(path: &Path) -> Result<Self, ProvingError> {
        read_json(path)
    }

    /// Writes it beside the measurements, because another version of the program may have another.
    pub(super) fn write(&self, path: &Path) -> Result<(), ProvingError> {
        let text = serde_json::to_vec_pretty(self).expect("a catalogue is plain data");
        write_durably(path, &text).map_err(|source| ProvingError::File { path: path.to_owned(), source })
    }

    /// Ownership of the program's own code, by name.
    pub(super) fn ownership(&self) -> Ownership {
        Ownership { namespaces: self.owned.clone(), ..Ownership::default() }
    }

    /// The switches with these names; all if none is named.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn select(&self, names: &[String]) -> Result<Vec<&Switch>, ProvingError> {
        if names.is_empty() {
            return Ok(self.switches.iter().collect());
        }
        let find = |name: &String| self.switches.iter().find(|switch| switch.name == *name);
        let unknown = |asked: &String| ProvingError::Unknown {
            asked: asked.clone(),
            known: self.switches.iter().map(|switch| switch.name.as_str()).collect::<Vec<_>>().join(", "),
        };
        names.iter().map(|name| find(name).ok_or_else(|| unknown(name))).collect()
    }

    /// The controls of the worlds that these switches are in.
    pub fn controls_for(&self, switches: &[&Switch]) -> Vec<&Control> {
        let is_asked = |control: &&Control| switches.iter().any(|switch| switch.world == control.world);
        self.controls.iter().filter(is_asked).collect()
    }
}

impl Switch {
    /// Its description.
    pub fn known(&self) -> Known {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        Known {
            name: self.name.clone(),
            phase: self.phase,
            function: self.function.clone(),
            guilty: self.guilty.clone(),
            kinds: self.kinds.clone(),
            seam: self.seam.clone(),
            saves: if self.saves == "wall" { Saves::Wall } else { Saves::Cpu },
            downstream: given(&self.downstream),
        }
    }
}
