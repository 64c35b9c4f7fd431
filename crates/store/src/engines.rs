//! Definitions of a store's tables for query engines.
//!
//! [`ENGINES`] lists the engines. Each writes statements that define one view or table per table of the store: with all
//! columns that any run has (absent ones are null), with the keys of the folders as text (`date` as a date), and in a bucket with
//! complete runs only.

use std::collections::BTreeMap;

use crate::bucket;
use crate::layout::{CAPTURE_TABLE, KEYS, REPETITION, RUN_KEY};
use crate::manifest::{Manifest, TableColumn};
use crate::publish::{LAST_TABLE, is_of_capture};
use crate::store::{RUNS, RunStore};

/// An engine that reads a store in place.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is written for it.
    pub about: &'static str,
    /// Writes the definitions.
    pub define: fn(&Tables) -> String,
}

/// The engines.
pub static ENGINES: &[Engine] = &[
    Engine { name: "duckdb", about: "views, in SQL", define: duckdb },
    Engine { name: "polars", about: "lazy frames, in Python", define: polars },
    Engine { name: "spark", about: "temporary views, in Python", define: spark },
    Engine { name: "clickhouse", about: "views, in SQL", define: clickhouse },
    Engine { name: "trino", about: "tables and their partitions, in SQL (Hive connector)", define: trino },
];

/// The tables of a store.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// The folder or address of the store.
    place: String,
    /// The tables and their columns, those of all runs together.
    tables: BTreeMap<String, Vec<TableColumn>>,
    /// The tables of whole captures: `samples`, `stacks`, ...
    of_captures: Vec<String>,
    /// Folders of partitions, from the store, by table.
    partitions: BTreeMap<String, Vec<String>>,
}

impl Tables {
    /// The tables of these runs of a store.
    pub fn of(store: &RunStore, manifests: &[Manifest]) -> Self {
        let folder = store.name();
        let place = match store.is_remote() {
            true => folder,
            false => std::path::absolute(&folder).map_or(folder, |path| path.display().to_string()),
        };
        let mut tables = Self { place, ..Self::default() };
        for manifest in manifests {
            for (name, columns) in &manifest.tables {
                let known = tables.tables.entry(name.clone()).or_default();
                for column in columns {
                    if !known.iter().any(|one| one.name == column.name) {
                        known.push(column.clone());
                    }
                }
            }
            let run = store.run_folder(&manifest.run).file_name().unwrap_or_default().to_string_lossy().into_owned();
            for file in &manifest.files {
                let Some((folder, name)) = file.path.rsplit_once('/') else { continue };
                if is_of_capture(&file.path) {
                    let table = name.strip_suffix(".parquet").map(str::to_owned);
                    tables.of_captures.extend(table.filter(|table| !tables.of_captures.contains(table)));
                } else if let Some(table) = folder.strip_prefix("table=").and_then(|rest| rest.split('/').next()) {
                    let partitions = tables.partitions.entry(table.to_owned()).or_default();
                    partitions.push(format!("{RUNS}/{run}/{folder}"));
                }
            }
        }
        tables.of_captures.sort();
        tables
    }

    /// Only tables whose names occur in a text: to define those that a statement uses.
    #[must_use]
    pub fn named_in(mut self, text: &str) -> Self {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words: Vec<&str> = text.split(|c| !is_word(c)).collect();
        self.tables.retain(|name, _| words.contains(&name.as_str()));
        let of_captures = std::mem::take(&mut self.of_captures);
        let is_used = |table: &String| words.contains(&raw(table).as_str());
        self.of_captures = of_captures.into_iter().filter(is_used).collect();
        self
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.tables.keys().cloned().chain(self.of_captures.iter().map(|table| raw(table))).collect()
    }

    fn is_remote(&self) -> bool {
        self.place.starts_with(bucket::SCHEME)
    }

    /// Name, pattern of the files, and keys after the usual ones, of every table.
    fn all(&self) -> impl Iterator<Item = (String, String, &'static [&'static str])> + '_ {
        let runs = format!("{}/{RUNS}/*", self.place);
        let below = "*/".repeat(KEYS.len());
        let (analyses, captures) = ((runs.clone(), below.clone()), (runs, below));
        let tables = self.tables.keys().map(move |name| {
            (name.clone(), format!("{}/table={name}/{}part.parquet", analyses.0, analyses.1), &[][..])
        });
        let of_captures = self.of_captures.iter().map(move |name| {
            let path = format!("{}/table={CAPTURE_TABLE}/{}*/{name}.parquet", captures.0, captures.1);
            (raw(name), path, &[REPETITION][..])
        });
        tables.chain(of_captures)
    }
}

/// The name of the view of a capture's own table: a table of an analysis may have the same name.
fn raw(table: &str) -> String {
    format!("raw_{table}")
}

/// A text in single quotes, as SQL and Python write it.
fn sql_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn python_text(text: &str) -> String {
    format!("{text:?}")
}

fn keys(further: &[&'static str]) -> impl Iterator<Item = &'static str> {
    [RUN_KEY, "table"].into_iter().chain(KEYS).chain(further.to_vec())
}

fn duckdb(tables: &Tables) -> String {
    let mut text = String::new();
    for (name, pattern, further) in tables.all() {
        let types =
            keys(further).map(|key| format!("{}: {}", sql_text(key), if key == "date" { "DATE" } else { "VARCHAR" }));
        let types = types.collect::<Vec<_>>().join(", ");
        let complete = complete_runs(tables, &name, |captures| {
            format!("SELECT {RUN_KEY} FROM read_parquet({}, hive_partitioning = true)", sql_text(&captures))
        });
        text.push_str(&format!(
            "CREATE OR REPLACE VIEW {name} AS SELECT * EXCLUDE (\"table\") FROM read_parquet({}, hive_partitioning = true, \
             hive_types = {{{types}}}, union_by_name = true){complete};\n",
            sql_text(&pattern)
        ));
    }
    text
}

/// A condition that leaves out runs of a bucket that are not complete; `select` gives the complete ones.
fn complete_runs(tables: &Tables, name: &str, select: impl Fn(String) -> String) -> String {
    let captures = format!("{}/{RUNS}/*/table={LAST_TABLE}/{}part.parquet", tables.place, "*/".repeat(KEYS.len()));
    match tables.is_remote() && name != LAST_TABLE {
        true => format!(" WHERE {RUN_KEY} IN ({})", select(captures)),
        false => String::new(),
    }
}

fn polars(tables: &Tables) -> String {
    let mut text = "import polars as pl\n\n".to_owned();
    let mut names: Vec<(String, String, &[&str])> = tables.all().collect();
    // The others refer to it.
    names.sort_by_key(|(name, ..)| name != LAST_TABLE);
    for (name, pattern, further) in names {
        let schema = keys(further)
            .map(|key| format!("{}: pl.{}", python_text(key), if key == "date" { "Date" } else { "String" }))
            .collect::<Vec<_>>()
            .join(", ");
        text.push_str(&format!(
            "{name} = pl.scan_parquet({}, hive_partitioning=True, hive_schema={{{schema}}}, missing_columns=\"insert\", \
             extra_columns=\"ignore\")\n",
            python_text(&pattern)
        ));
        if tables.is_remote() && name != LAST_TABLE {
            text.push_str(&format!(
                "{name} = {name}.join({LAST_TABLE}.select(\"{RUN_KEY}\").unique(), on=\"{RUN_KEY}\", how=\"semi\")\n"
            ));
        }
    }
    text
}

fn spark(tables: &Tables) -> String {
    let mut text = "from pyspark.sql import SparkSession\n\nspark = SparkSession.builder.getOrCreate()\n\
                    # Values of keys stay text: a machine `007` is not the number 7.\n\
                    spark.conf.set(\"spark.sql.sources.partitionColumnTypeInference.enabled\", \"false\")\n"
        .to_owned();
    for (name, pattern, _) in tables.all() {
        // Hadoop's client has a name of its own for S3.
        let (base, pattern) = (tables.place.replacen("s3://", "s3a://", 1), pattern.replacen("s3://", "s3a://", 1));
        text.push_str(&format!(
            "spark.read.option(\"basePath\", {}).option(\"mergeSchema\", \"true\").parquet({}).createOrReplaceTempView(\"{name}\")\n",
            python_text(&format!("{base}/{RUNS}")),
            python_text(&pattern),
        ));
        if tables.is_remote() && name != LAST_TABLE {
            text.push_str(&format!(
                "spark.table(\"{name}\").join(spark.table(\"{LAST_TABLE}\").select(\"{RUN_KEY}\").distinct(), \"{RUN_KEY}\", \
                 \"left_semi\").createOrReplaceTempView(\"{name}\")\n"
            ));
        }
    }
    text
}

fn clickhouse(tables: &Tables) -> String {
    let source = |pattern: &str| match tables.is_remote() {
        true => format!("s3({}, 'Parquet')", sql_text(pattern)),
        false => format!("file({}, 'Parquet')", sql_text(pattern)),
    };
    let mut text =
        "-- `file` reads below `user_files_path`: put the store there, or link it.\nSET use_hive_partitioning = 1;\n\
                    SET input_format_parquet_allow_missing_columns = 1;\nSET schema_inference_mode = 'union';\n"
            .to_owned();
    for (name, pattern, _) in tables.all() {
        let complete = complete_runs(tables, &name, |captures| format!("SELECT {RUN_KEY} FROM {}", source(&captures)));
        text.push_str(&format!("CREATE OR REPLACE VIEW {name} AS SELECT * FROM {}{complete};\n", source(&pattern)));
    }
    text
}

fn trino(tables: &Tables) -> String {
    let place = if tables.is_remote() { tables.place.clone() } else { format!("file://{}", tables.place) };
    let mut text = "-- For a catalog `hive` with `hive.non-managed-table-writes-enabled` and `hive.allow-register-partition-procedure`.\n\
                    CREATE SCHEMA IF NOT EXISTS hive.stepscope;\n"
        .to_owned();
    for (name, columns) in &tables.tables {
        let fields = columns.iter().map(|column| format!("\"{}\" {}", column.name, trino_type(&column.kind)));
        let keys: Vec<&str> = [RUN_KEY].into_iter().chain(KEYS).collect();
        let types = keys.iter().map(|key| format!("\"{key}\" {}", if *key == "date" { "DATE" } else { "VARCHAR" }));
        let fields = fields.chain(types).collect::<Vec<_>>().join(", ");
        let by = keys.iter().map(|key| sql_text(key)).collect::<Vec<_>>().join(", ");
        text.push_str(&format!(
            "CREATE TABLE hive.stepscope.\"{name}\" ({fields}) WITH (format = 'PARQUET', external_location = {}, partitioned_by = \
             ARRAY[{by}]);\n",
            sql_text(&format!("{place}/{RUNS}"))
        ));
        for folder in tables.partitions.get(name).into_iter().flatten() {
            let values = folder.split('/').filter_map(|part| part.split_once('=')).filter(|(key, _)| *key != "table");
            let values = values.map(|(_, value)| sql_text(&crate::decode(value))).collect::<Vec<_>>().join(", ");
            text.push_str(&format!(
                "CALL hive.system.register_partition('stepscope', {}, ARRAY[{by}], ARRAY[{values}], {});\n",
                sql_text(name),
                sql_text(&format!("{place}/{folder}"))
            ));
        }
    }
    text
}

fn trino_type(kind: &str) -> &'static str {
    match kind {
        "number" => "DOUBLE",
        "flag" => "BOOLEAN",
        _ => "VARCHAR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Cell;
    use crate::manifest::StoredFile;

    fn one_run(store: &RunStore) -> Tables {
        let cell = Cell { project: "a b".into(), scenario: "s".into(), date: "2026-11-25".into(), ..Cell::default() };
        let mut manifest = Manifest::new("r", "a b");
        let column = TableColumn { name: "self".into(), kind: "number".into(), unit: "ns".into() };
        manifest.tables.insert("hotspots".into(), vec![column]);
        let file = |path: String| StoredFile { path, bytes: 0, crc32: 0 };
        manifest.files = vec![
            file(cell.file("hotspots")),
            file(format!("{}/samples.parquet", cell.capture_folder(1))),
            file(format!("{}/capture.json", cell.capture_folder(1))),
        ];
        Tables::of(store, &[manifest])
    }

    #[test]
    fn only_tables_that_a_statement_names_are_defined() {
        let store = RunStore::at("/data/it's").unwrap();
        let tables = one_run(&store);
        assert_eq!(tables.names(), ["hotspots", "raw_samples"]);
        let text = duckdb(&tables.clone().named_in("select count(*) from hotspots"));
        assert!(text.contains("VIEW hotspots") && !text.contains("raw_samples"), "{text}");
        assert!(text.contains("'/data/it''s/runs/*/table=hotspots/*/*/*/*/*/*/part.parquet'"), "{text}");
        assert!(!text.contains(" WHERE "), "{text}");
        assert_eq!(tables.named_in("select 1").names(), Vec::<String>::new());
    }

    #[test]
    fn trino_registers_the_partitions_that_complete_runs_have() {
        let text = trino(&one_run(&RunStore::at("/data").unwrap()));
        assert!(text.contains("\"self\" DOUBLE, \"run\" VARCHAR, \"project\" VARCHAR"), "{text}");
        assert!(text.contains("ARRAY['r', 'a b', 's', '__HIVE_DEFAULT_PARTITION__'"), "{text}");
        assert!(text.contains("'file:///data/runs/run=r/table=hotspots/project=a%20b/scenario=s/"), "{text}");
    }
}
