//! Running SQL over a store, with an engine that is installed.
//!
//! Stepscope has no engine of its own: DataFusion would take minutes to build and double the program's size. DuckDB is
//! one small package for the command line or for Python. [`RUNNERS`] lists the ways to start it.

use std::io;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use crate::engines::{ENGINES, Tables};
use crate::program::is_installed;

/// A way to run SQL.
#[derive(Debug, Clone, Copy)]
pub struct Runner {
    /// Its name on the command line.
    pub name: &'static str,
    /// Whether it is installed.
    pub is_there: fn() -> bool,
    /// The command that reads statements from standard input and prints the rows of the last one as a JSON array of
    /// objects.
    pub command: fn() -> Command,
}

/// The ways, in the order in which they are tried.
pub static RUNNERS: &[Runner] = &[
    Runner { name: "duckdb", is_there: || is_installed("duckdb"), command: shell },
    Runner { name: "python", is_there: || python().is_some(), command: script },
];

/// A query could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// No engine is installed.
    #[error(
        "no engine for SQL is installed; install DuckDB: `pip install duckdb`, or its command line from https://duckdb.org"
    )]
    NoEngine,
    /// The chosen engine is not installed.
    #[error("{0} is not installed, or lacks the module duckdb")]
    Absent(&'static str),
    /// The engine could not be started or read.
    #[error("{program}: {source}")]
    Run {
        /// The engine.
        program: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The engine refused the statement.
    #[error("{0}")]
    Refused(String),
}

/// A row of an answer, by column.
pub type Row = Map<String, Value>;

/// Runs a statement over the tables that it names.
///
/// # Errors
/// If no engine is installed, or it refuses the statement.
pub fn run(sql: &str, tables: &Tables, runner: Option<&'static Runner>) -> Result<Vec<Row>, QueryError> {
    let runner = match runner {
        Some(runner) if !(runner.is_there)() => return Err(QueryError::Absent(runner.name)),
        Some(runner) => runner,
        None => RUNNERS.iter().find(|runner| (runner.is_there)()).ok_or(QueryError::NoEngine)?,
    };
    let duckdb = ENGINES.iter().find(|engine| engine.name == "duckdb").expect("the registry has it");
    let definitions = (duckdb.define)(&tables.clone().named_in(sql));
    let statements = format!("{definitions}{};\n", sql.trim().trim_end_matches(';'));
    let failed = |source| QueryError::Run { program: runner.name, source };
    let mut child = (runner.command)()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut input = child.stdin.take().expect("it has a pipe");
    let output = std::thread::scope(|scope| {
        // The engine may print before it has read everything.
        scope.spawn(move || io::Write::write_all(&mut input, statements.as_bytes()));
        child.wait_with_output()
    })
    .map_err(failed)?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() || !stderr.trim().is_empty() {
        return Err(QueryError::Refused(explained(stderr.trim(), tables)));
    }
    if stdout.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&stdout).map_err(|error| failed(io::Error::other(format!("its answer is not JSON: {error}"))))
}

/// The engine's message; if a table is unknown, with the names of those that exist.
fn explained(message: &str, tables: &Tables) -> String {
    match message.contains("does not exist") && message.contains("Table") {
        true => format!("{message}\nThe store has the tables {}.", tables.names().join(", ")),
        false => message.to_owned(),
    }
}

fn shell() -> Command {
    let mut command = Command::new("duckdb");
    // Without the user's own settings, which may print more.
    command.args(["-init", "/dev/null", "-bail", "-json"]);
    command
}

/// Prints rows as DuckDB's own program does.
const SCRIPT: &str = r#"
import json, sys, duckdb
try:
    connection = duckdb.connect()
    answer = None
    for statement in connection.extract_statements(sys.stdin.read()):
        answer = connection.execute(statement)
    names = [column[0] for column in answer.description]
    rows = [dict(zip(names, row)) for row in answer.fetchall()]
    def plain(value):
        return float(value) if type(value).__name__ == "Decimal" else str(value)
    json.dump(rows, sys.stdout, default=plain)
except duckdb.Error as error:
    sys.exit(str(error))
"#;

fn script() -> Command {
    let mut command = Command::new(python().unwrap_or("python3"));
    command.args(["-c", SCRIPT]);
    command
}

/// A Python that has DuckDB.
fn python() -> Option<&'static str> {
    ["python3", "python"].into_iter().find(|program| {
        let mut command = Command::new(program);
        command.args(["-c", "import duckdb"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}
