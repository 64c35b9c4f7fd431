//! Scores of earlier versions of Stepscope.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepscope_model::{Column, Kind, Table, Value};
use stepscope_record::clock;

use crate::history::Store;
use crate::json_lines::JsonLines;

/// File name of the scores, in the folder of the history.
pub const SCORES: &str = "prove.jsonl";

/// Version of the format of a line.
const SCHEMA: u32 = 1;

/// The score of a run of `prove`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the format.
    pub schema: u32,
    /// Time, RFC 3339 in UTC.
    pub at: String,
    /// Program and version.
    pub tool: String,
    /// Description of the machine.
    pub host: String,
    /// Runs per setting and way.
    pub runs: u32,
    /// Number of switches.
    pub switches: usize,
    /// The requirements.
    pub held: Vec<Held>,
}

/// How often a requirement held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The requirement.
    pub what: String,
    /// The build.
    pub build: String,
    /// Cases in which it held.
    pub held: u64,
    /// All cases.
    pub of: u64,
    /// Whether that is enough; `None` without a target.
    pub holds: Option<bool>,
    /// The largest error, lowest rank or largest share.
    pub worst: Option<f64>,
}

/// The scores of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scores {
    path: PathBuf,
}

impl Entry {
    /// The score of the table `prove`.
    pub fn new(score: &Table, runs: u32, switches: usize) -> Self {
        let text = |row: usize, column: &str| match score.get(row, column) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let count = |row: usize, column: &str| match score.get(row, column) {
            Some(Value::Int(count)) => u64::try_from(*count).unwrap_or(0),
            _ => 0,
        };
        let held = |row: usize| Held {
            what: text(row, "what"),
            build: text(row, "build"),
            held: count(row, "held"),
            of: count(row, "of"),
            holds: match score.get(row, "holds") {
                Some(Value::Bool(holds)) => Some(*holds),
                _ => None,
            },
            worst: match score.get(row, "worst") {
                Some(Value::Float(worst)) => Some(*worst),
                _ => None,
            },
        };
        Self {
            schema: SCHEMA,
            at: clock::utc_now(),
            tool: concat!("stepscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            host: stepscope_record::machine::describe().host,
            runs,
            switches,
            held: (0..score.rows.len()).map(held).collect(),
        }
    }
}

impl Scores {
    /// The scores beside the [store](Store) of a project that contains this folder.
    pub fn of(folder: &Path) -> Self {
        Self { path: Store::of(folder).index().with_file_name(SCORES) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a score.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&self, entry: &Entry) -> io::Result<()> {
        JsonLines::open_to_append(&self.path, SCHEMA)?.append(&[entry])
    }

    /// The scores as a table, oldest first. Notes list unreadable lines.
    ///
    /// # Errors
    /// If the file exists and cannot be read.
    pub fn table(&self) -> io::Result<Table> {
        let mut table = Table::new("prove_history", "Scores over time", columns());
        let Some(mut lines) = JsonLines::open(&self.path, SCHEMA)? else {
            table.note(format!("{} is not there: nothing was scored yet.", self.path.display()));
            return Ok(table);
        };
        let (entries, damaged) = lines.read::<Entry>()?;
        for entry in entries {
            for held in &entry.held {
                table.push(vec![
                    entry.at.as_str().into(),
                    entry.tool.as_str().into(),
                    entry.host.as_str().into(),
                    u64::from(entry.runs).into(),
                    (entry.switches as u64).into(),
                    held.build.as_str().into(),
                    held.what.as_str().into(),
                    held.held.into(),
                    held.of.into(),
                    held.holds.into(),
                    held.worst.into(),
                ]);
            }
        }
        for damage in damaged {
            table.note(format!("{}:{}: skipped: {}.", self.path.display(), damage.line, damage.reason));
        }
        Ok(table)
    }
}

fn columns() -> Vec<Column> {
    let text = |name: &str, doc: &str| Column::new(name, Kind::Text, "", doc);
    let count = |name: &str, doc: &str| Column::new(name, Kind::Count, "", doc);
    vec![
        text("at", "When.").essential(),
        text("tool", "Version of Stepscope."),
        text("host", "Where.").detail(),
        count("runs", "Runs per setting and way."),
        count("switches", "Number of switches."),
        text("build", "The program's build."),
        text("what", "The requirement.").essential(),
        count("held", "Cases in which it held.").essential(),
        count("of", "Of how many.").essential(),
        Column::new("holds", Kind::Flag, "", "Whether that is enough."),
        Column::new("worst", Kind::Number, "", "The largest error in points, the lowest rank, or the largest share.")
            .essential(),
    ]
}
