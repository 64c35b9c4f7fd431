//! What this machine and this user can measure, dimension by dimension; what is in the way; what would change it.
//!
//! [`Findings::gather`] finds out by trying: it opens the very events that a recording opens, on itself, and notes what
//! the kernel says. [`judge`] draws the conclusions, and does no I/O. [`Abilities`] is both together, as
//! `stepscope doctor` shows it. What a *binary* can tell about its stacks and names is in [`binary`].
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

use stepscope_model::{Column, Dimension, DimensionStatus, Kind, Machine, Table, Value};

pub mod binary;
mod findings;
mod verdict;

pub use findings::{Capabilities, Findings, KernelNames, Outcome, Pmu, Tracefs};
pub use verdict::judge;

/// Whether a dimension can be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ability {
    /// In full.
    Available,
    /// Not everything that the dimension can hold.
    Partial {
        /// What is missing.
        lacks: Vec<Lack>,
    },
    /// Not at all.
    Missing {
        /// Why.
        reason: String,
        /// The one command that would change it, where there is one.
        remedy: Option<String>,
    },
}

/// Something that a dimension lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is missing and why, in a sentence.
    pub what: String,
    /// The one command that would change it, where there is one.
    pub remedy: Option<String>,
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

    /// What a capture would say of the dimension.
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

/// What this machine and this user can measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Abilities {
    /// The machine.
    pub machine: Machine,
    /// What was found out.
    pub findings: Findings,
    /// What follows for each dimension.
    pub dimensions: BTreeMap<Dimension, Ability>,
}

impl Abilities {
    /// Finds out. Takes some ten milliseconds, and changes nothing.
    pub fn probe() -> Self {
        let machine = crate::machine::describe();
        let findings = Findings::gather();
        let dimensions = judge(&findings, &machine);
        Self { machine, findings, dimensions }
    }

    /// Whether anything can be recorded by observing a program: all dimensions but `resources`, which only needs
    /// `/proc`. If not, `doctor` fails.
    pub fn can_record(&self) -> bool {
        self.dimensions
            .iter()
            .any(|(dimension, ability)| *dimension != Dimension::Resources && ability.word() != "missing")
    }

    /// One row a dimension, or a row for each thing it lacks: `dimension, status, detail, remedy`.
    pub fn table(&self) -> Table {
        let mut table = Table::new(
            "doctor",
            "What this machine and user can measure",
            vec![
                Column::new("dimension", Kind::Text, "", "A kind of evidence."),
                Column::new("status", Kind::Text, "", "`available`, `partial` or `missing`."),
                Column::new("detail", Kind::Text, "", "What is missing, and why."),
                Column::new("remedy", Kind::Text, "", "The one command that would change it."),
            ],
        );
        for (dimension, ability) in &self.dimensions {
            let mut row = |detail: Option<&str>, remedy: Option<&String>| {
                let remedy = remedy.map(String::as_str);
                table.push(vec![dimension.name().into(), ability.word().into(), detail.into(), remedy.into()]);
            };
            match ability {
                Ability::Available => row(None, None),
                Ability::Partial { lacks } => {
                    lacks.iter().for_each(|lack| row(Some(&lack.what), lack.remedy.as_ref()));
                }
                Ability::Missing { reason, remedy } => row(Some(reason), remedy.as_ref()),
            }
        }
        table
    }

    /// What the judgement rests on, one row a fact: `fact, value`.
    pub fn facts(&self) -> Table {
        let columns = vec![
            Column::new("fact", Kind::Text, "", "What was looked at."),
            Column::new("value", Kind::Text, "", "What was found."),
        ];
        let mut table = Table::new("facts", "What this rests on", columns);
        for (fact, value) in self.findings.facts(&self.machine) {
            table.push(vec![fact.into(), Value::Text(value)]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_probed_and_the_tables_name_every_dimension() {
        let abilities = Abilities::probe();
        let table = abilities.table();
        for dimension in Dimension::ALL {
            let of_it = |row: &&stepscope_model::Row| row[0] == Value::from(dimension.name());
            assert!(table.rows.iter().any(|row| of_it(&row)), "{dimension}");
        }
        assert_eq!(abilities.dimensions[&Dimension::Resources], Ability::Available);
        assert!(abilities.facts().rows.len() > 10);
    }

    #[test]
    fn a_lack_is_a_row_of_its_own_with_its_remedy() {
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
