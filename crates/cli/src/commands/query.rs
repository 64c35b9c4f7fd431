//! `stepscope query`: SQL over a store.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value as Json;
use stepscope_model::{Column, Kind, Table, Value};
use stepscope_store::RunStore;
use stepscope_store::engines::Tables;
use stepscope_store::query::{self, QueryError, RUNNERS, Row, Runner};

use super::store::manifests;
use crate::failure::Failure;
use crate::output::TableArguments;
use crate::progress;

/// Run SQL over a store, with DuckDB (its command line, or its Python module).
///
/// Each table of the store is a view: those of `show --view`, `diagnose`, `metrics` and `captures`, and `raw_samples`, `raw_stacks`, ... of captures
/// that were added with --samples. Columns `run`, `project`, `scenario`, `phase`, `variant`, `date`, `machine` and `repetition`
/// say what a row is of.
#[derive(Debug, Args)]
pub struct Query {
    /// The statement, e.g. "SELECT date, avg(value) FROM metrics WHERE metric = 'rtf' GROUP BY date".
    #[arg(value_name = "SQL")]
    sql: String,
    /// The store: a folder, or s3://BUCKET/PATH.
    #[arg(long, value_name = "DIR|URL")]
    store: String,
    /// What runs it: duckdb or python [default: the first that is installed].
    #[arg(long, value_name = "ENGINE", value_parser = runner)]
    engine: Option<&'static Runner>,
    #[command(flatten)]
    table: TableArguments,
}

fn runner(name: &str) -> Result<&'static Runner, String> {
    let names = || RUNNERS.iter().map(|runner| runner.name).collect::<Vec<_>>().join(" and ");
    RUNNERS.iter().find(|runner| runner.name == name).ok_or_else(|| format!("the engines are {}", names()))
}

impl Query {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let store = RunStore::at(&self.store)?;
        let manifests = manifests(&store)?;
        let tables = Tables::of(&store, &manifests);
        let answer = progress::of_step("querying", || query::run(&self.sql, &tables, self.engine));
        let rows = answer.map_err(|error| match error {
            QueryError::Refused(message) => Failure::Usage(message),
            error => error.into(),
        })?;
        self.table.print(vec![table(&rows)])?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The rows as a table, with the columns of the first row.
fn table(rows: &[Row]) -> Table {
    let names: Vec<&String> = rows.first().map(|row| row.keys().collect()).unwrap_or_default();
    let column = |name: &&String| {
        let is_number = rows.iter().any(|row| row.get(*name).is_some_and(Json::is_number));
        Column::new(name, if is_number { Kind::Number } else { Kind::Text }, "", "")
    };
    let mut table = Table::new("query", "Answer", names.iter().map(column).collect());
    for row in rows {
        table.push(names.iter().map(|name| value(row.get(*name))).collect());
    }
    table
}

fn value(json: Option<&Json>) -> Value {
    match json {
        None | Some(Json::Null) => Value::Missing,
        Some(Json::Bool(flag)) => (*flag).into(),
        Some(Json::String(text)) => text.as_str().into(),
        Some(Json::Number(number)) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().into(),
        },
        Some(other) => other.to_string().into(),
    }
}
