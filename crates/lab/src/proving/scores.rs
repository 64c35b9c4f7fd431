//! Scores of earlier versions of Stepscope.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepscope_model::{Column, Columns, Kind, Table, Value};
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
        let Some(mut lines) = JsonLines::open(&self.path, SCHEMA)? else {
            let mut table = columns().table("prove_history", TITLE, Vec::new() as Vec<Scored<'_>>);
            table.note(format!("{} does not exist: no score was recorded yet.", self.path.display()));
            return Ok(table);
        };
        let (entries, damaged) = lines.read::<Entry>()?;
        let scored = entries.iter().flat_map(|entry| entry.held.iter().map(move |held| Scored { entry, held }));
        let mut table = columns().table("prove_history", TITLE, scored);
        table.add_notes(
            damaged
                .into_iter()
                .map(|damage| format!("{}:{}: skipped: {}.", self.path.display(), damage.line, damage.reason)),
        );
        Ok(table)
    }
}

const TITLE: &str = "Scores over time";

/// A requirement in a run of `prove`.
struct Scored<'a> {
    entry: &'a Entry,
    held: &'a Held,
}

fn columns<'a>() -> Columns<'a, Scored<'a>> {
    let text = |name: &str, doc: &str| Column::new(name, Kind::Text, "", doc);
    let count = |name: &str, doc: &str| Column::new(name, Kind::Count, "", doc);
    let holds = Column::new("holds", Kind::Flag, "", "Whether it reaches its target.");
    let worst = "The largest error in points, the lowest rank, or the largest share.";
    Columns::new()
        .with(text("at", "Time of the run.").essential(), |row: &Scored<'_>| row.entry.at.as_str().into())
        .with(text("tool", "Version of Stepscope."), |row| row.entry.tool.as_str().into())
        .with(text("host", "The machine.").detail(), |row| row.entry.host.as_str().into())
        .with(count("runs", "Runs per setting and way."), |row| u64::from(row.entry.runs).into())
        .with(count("switches", "Number of switches."), |row| row.entry.switches.into())
        .with(text("build", "The program's build."), |row| row.held.build.as_str().into())
        .with(text("what", "The requirement.").essential(), |row| row.held.what.as_str().into())
        .with(count("held", "Cases in which it held.").essential(), |row| row.held.held.into())
        .with(count("of", "All cases.").essential(), |row| row.held.of.into())
        .with(holds, |row| row.held.holds.into())
        .with(Column::new("worst", Kind::Number, "", worst).essential(), |row| row.held.worst.into())
}
