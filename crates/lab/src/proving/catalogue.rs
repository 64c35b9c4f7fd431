//! What a proving ground says of itself.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use stepscope_analyze::Ownership;
use stepscope_analyze::proof::{Known, Saves};
use stepscope_model::Phase;
use stepscope_model::output_file::write_durably;

use super::{ProvingError, read_json};

/// Everything that can be slow, and everything that must stay silent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Catalogue {
    /// Namespaces of the program's own code.
    pub owned: Vec<String>,
    /// What can be slow.
    pub switches: Vec<Switch>,
    /// What must stay silent.
    pub controls: Vec<Control>,
    /// Scopes of the program's marks that it counts too.
    #[serde(default)]
    pub counted_scopes: Vec<CountedScope>,
}

/// A switch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// The world that it is in.
    pub world: String,
    phase: Phase,
    function: String,
    guilty: Vec<String>,
    seam: Vec<String>,
    saves: String,
    downstream: String,
    /// What runs it at its size, without `--slow`.
    pub arguments: Vec<String>,
}

/// Something that must stay silent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Control {
    /// What it is called.
    pub name: String,
    /// The world that it is in.
    pub world: String,
    /// Why one might think otherwise.
    pub why: String,
    /// What must not be found.
    pub silent: Vec<String>,
    /// What runs it.
    pub arguments: Vec<String>,
}

/// A scope that is marked as often as a counter counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountedScope {
    /// The world.
    pub world: String,
    /// The scope's name.
    pub scope: String,
    /// The counter's name in accounts.
    pub counter: String,
}

impl Catalogue {
    /// Asks a program for it.
    ///
    /// # Errors
    /// If it cannot be run, or does not answer with a catalogue.
    pub fn of(program: &Path) -> Result<Self, ProvingError> {
        let output = Command::new(program).args(["list", "--format", "json"]).output();
        let output = output.map_err(|source| ProvingError::Program { program: program.to_owned(), source })?;
        serde_json::from_slice(&output.stdout).map_err(|error| ProvingError::Damaged {
            path: program.to_owned(),
            reason: format!("its catalogue: {error}"),
        })
    }

    /// Reads one that was [written](Catalogue::write).
    pub(super) fn read(path: &Path) -> Result<Self, ProvingError> {
        read_json(path)
    }

    /// Keeps it beside what was measured: another version of the program may say otherwise.
    pub(super) fn write(&self, path: &Path) -> Result<(), ProvingError> {
        let text = serde_json::to_vec_pretty(self).expect("a catalogue is plain data");
        write_durably(path, &text).map_err(|source| ProvingError::File { path: path.to_owned(), source })
    }

    /// What is the program's own code, by name.
    pub(super) fn ownership(&self) -> Ownership {
        Ownership { namespaces: self.owned.clone(), ..Ownership::default() }
    }

    /// The switches of these names; all of them for none.
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
            seam: self.seam.clone(),
            saves: if self.saves == "wall" { Saves::Wall } else { Saves::Cpu },
            downstream: given(&self.downstream),
        }
    }
}
