//! What this machine and user can record, dimension by dimension: what is missing, why, and how to fix it.
//!
//! [`Findings::gather`] finds out by trying: it opens the events of a recording on its own process and keeps the kernel's
//! answers. [`judge`] draws the conclusions, without I/O. [`Abilities`] is both together, as `stepscope doctor` shows it.
//! [`binary`] inspects the symbols and unwind tables of a program's file.
//!
//! ```no_run
//! use stepscope_record::abilities::Abilities;
//!
//! let abilities = Abilities::probe();
//! for (dimension, ability) in &abilities.dimensions {
//!     println!("{dimension}: {}", ability.word());
//! }
//! ```

use std::collections::BTreeMap;

use stepscope_model::{Column, Columns, Dimension, DimensionStatus, Kind, Machine, Note, NoteKind, Table};

pub mod binary;
mod findings;
mod verdict;

pub use findings::{Capabilities, Fact, Findings, KernelNames, Outcome, Pmu, Tracefs};
pub use verdict::judge;

/// Whether a dimension can be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ability {
    /// In full.
    Available,
    /// In part.
    Partial {
        /// What is missing.
        lacks: Vec<Lack>,
    },
    /// Not at all.
    Missing {
        /// Why.
        reason: String,
        /// The command that fixes it, if there is one.
        remedy: Option<String>,
    },
}

/// A part of a dimension that is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is not recorded, and why.
    pub what: String,
    /// The command that fixes it, if there is one.
    pub remedy: Option<String>,
}

impl Lack {
    fn into_note(self) -> Note {
        match self.remedy {
            Some(remedy) => Note::new(NoteKind::Limit, "{} Fix: {}.", vec![self.what.into(), remedy.into()]),
            None => Note::new(NoteKind::Limit, "{}", vec![self.what.into()]),
        }
    }
}

impl Ability {
    fn with(lacks: Vec<Lack>) -> Self {
        if lacks.is_empty() { Ability::Available } else { Ability::Partial { lacks } }
    }

    /// `available`, `partial` or `missing`.
    pub fn word(&self) -> &'static str {
        match self {
            Ability::Available => "available",
            Ability::Partial { .. } => "partial",
            Ability::Missing { .. } => "missing",
        }
    }

    /// The dimension's status in a capture.
    pub fn status(&self) -> DimensionStatus {
        match self {
            Ability::Available => DimensionStatus::Recorded,
            Ability::Partial { lacks } => {
                DimensionStatus::Partial { lacks: lacks.iter().map(|lack| lack.what.clone()).collect() }
            }
            Ability::Missing { reason, remedy } => {
                DimensionStatus::Missing { reason: reason.clone(), remedy: remedy.clone() }
            }
        }
    }
}

/// What this machine and user can record.
#[derive(Debug, Clone, PartialEq)]
pub struct Abilities {
    /// The machine.
    pub machine: Machine,
    /// The results of all trials.
    pub findings: Findings,
    /// The ability to record each dimension.
    pub dimensions: BTreeMap<Dimension, Ability>,
}

impl Abilities {
    /// Tries everything. Takes some ten milliseconds and changes nothing.
    pub fn probe() -> Self {
        let machine = crate::machine::describe();
        let findings = Findings::gather();
        let dimensions = judge(&findings, &machine);
        Self { machine, findings, dimensions }
    }

    /// Whether any dimension can be recorded besides `resources`, which only needs `/proc`. If not, `doctor` fails.
    pub fn can_record(&self) -> bool {
        self.dimensions
            .iter()
            .any(|(dimension, ability)| *dimension != Dimension::Resources && ability.word() != "missing")
    }

    /// One row per dimension, or per part that it lacks: `dimension, status, detail, remedy`.
    pub fn table(&self) -> Table {
        let rows = self.dimensions.iter().flat_map(|(dimension, ability)| {
            let row = |detail, remedy| Row { dimension: *dimension, status: ability.word(), detail, remedy };
            match ability {
                Ability::Available => vec![row(None, None)],
                Ability::Partial { lacks } => {
                    lacks.iter().map(|lack| row(Some(&*lack.what), lack.remedy.as_deref())).collect()
                }
                Ability::Missing { reason, remedy } => vec![row(Some(&**reason), remedy.as_deref())],
            }
        });
        Columns::new()
            .with(Column::new("dimension", Kind::Text, "", "A kind of evidence.").essential(), |row: &Row| {
                row.dimension.name().into()
            })
            .with(Column::new("status", Kind::Text, "", "`available`, `partial` or `missing`.").essential(), |row| {
                row.status.into()
            })
            .with(Column::new("detail", Kind::Prose, "", "What is not recorded, and why.").essential(), |row| {
                row.detail.into()
            })
            .with(Column::new("remedy", Kind::Prose, "", "The command that fixes it.").essential(), |row| {
                row.remedy.into()
            })
            .table("doctor", "What this machine and user can record", rows)
    }

    /// The findings behind the abilities, one row per fact: `fact, value`.
    pub fn facts(&self) -> Table {
        Columns::new()
            .with(
                Column::new("fact", Kind::Text, "", "A property of the machine or the user.").essential(),
                |fact: &Fact| fact.name.into(),
            )
            .with(Column::new("value", Kind::Prose, "", "Its value.").essential(), |fact| fact.value.clone().into())
            .table("facts", "Findings", self.findings.facts(&self.machine))
    }
}

/// A row of [`Abilities::table`].
struct Row<'a> {
    dimension: Dimension,
    status: &'static str,
    detail: Option<&'a str>,
    remedy: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use stepscope_model::Value;

    use super::*;

    #[test]
    fn the_table_of_this_machine_has_every_dimension() {
        let abilities = Abilities::probe();
        let table = abilities.table();
        for dimension in Dimension::ALL {
            let is_its = |row: &&stepscope_model::Row| row[0] == Value::from(dimension.name());
            assert!(table.rows.iter().any(|row| is_its(&row)), "{dimension}");
        }
        assert_eq!(abilities.dimensions[&Dimension::Resources], Ability::Available);
        assert!(abilities.facts().rows.len() > 10);
    }

    #[test]
    fn each_lack_has_a_row_with_its_remedy() {
        let lack = |what: &str| Lack { what: what.into(), remedy: Some("do it".into()) };
        let ability = Ability::with(vec![lack("One."), lack("Two.")]);
        assert_eq!(ability.status(), DimensionStatus::Partial { lacks: vec!["One.".into(), "Two.".into()] });
        let abilities = Abilities {
            machine: Machine::default(),
            findings: Findings::default(),
            dimensions: BTreeMap::from([(Dimension::Cpu, ability), (Dimension::Sched, Ability::with(vec![]))]),
        };
        let table = abilities.table();
        assert_eq!(table.rows.len(), 3);
        assert_eq!(table.rows[1], ["cpu".into(), "partial".into(), "Two.".into(), Value::from("do it")]);
        assert_eq!(table.rows[2], ["sched".into(), "available".into(), Value::Missing, Value::Missing]);
    }
}
