//! `stepscope store`: runs of many machines as one dataset.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use stepscope_analyze::Pattern;
use stepscope_lab::store::{self, AddOptions, AddedRun};
use stepscope_model::output_file::Change;
use stepscope_model::quantity::{plural, weight};
use stepscope_model::{Columns, Table};
use stepscope_store::engines::{ENGINES, Engine, Tables};
use stepscope_store::{Finding, Manifest, RunStore};

use crate::failure::Failure;
use crate::output::TableArguments;
use crate::progress;

/// Keep the tables of runs in a store: partitioned Parquet in a folder or a bucket, which query engines read in place.
///
/// `query`, `history --store` and `store:DIR/KEY=VALUE` in place of a capture read it. docs/store.md describes the layout.
#[derive(Debug, Args)]
pub struct Store {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    Add(Add),
    List(List),
    Check(Check),
    Tables(Definitions),
}

/// Add runs to a store. A run that is there already is not added again.
#[derive(Debug, Args)]
struct Add {
    /// Runs, folders of runs, or captures.
    #[arg(required = true, value_name = "RUN|CAPTURE")]
    sources: Vec<PathBuf>,
    /// The store: a folder, or s3://BUCKET/PATH; created if it does not exist.
    #[arg(long, value_name = "DIR|URL")]
    to: String,
    /// Add the captures, too, so that `compare`, `view` and all other subcommands can read them in the store.
    #[arg(long)]
    samples: bool,
    /// Only the tables of these views, such as `hotspots`; `*` matches any characters; repeatable [default: all].
    #[arg(long = "table", value_name = "VIEW")]
    tables: Vec<Pattern>,
    /// Name of the project [default: the lab file's].
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
}

/// List the runs of a store.
#[derive(Debug, Args)]
struct List {
    /// The store.
    #[arg(value_name = "DIR|URL")]
    store: String,
    #[command(flatten)]
    table: TableArguments,
}

/// Compare every file of a store with its checksum. Exits with 1 if something is wrong.
#[derive(Debug, Args)]
struct Check {
    /// The store.
    #[arg(value_name = "DIR|URL")]
    store: String,
    #[command(flatten)]
    table: TableArguments,
}

/// Print the definitions of a store's tables for a query engine.
#[derive(Debug, Args)]
struct Definitions {
    /// The store.
    #[arg(value_name = "DIR|URL")]
    store: String,
    /// The engine: duckdb, polars, spark, clickhouse or trino.
    #[arg(long = "for", value_name = "ENGINE", value_parser = engine)]
    engine: &'static Engine,
}

fn engine(name: &str) -> Result<&'static Engine, String> {
    let names = || ENGINES.iter().map(|engine| engine.name).collect::<Vec<_>>().join(", ");
    ENGINES.iter().find(|engine| engine.name == name).ok_or_else(|| format!("the engines are {}", names()))
}

impl Store {
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            StoreCommand::Add(add) => add.run(),
            StoreCommand::List(list) => list.run(),
            StoreCommand::Check(check) => check.run(),
            StoreCommand::Tables(definitions) => definitions.run(),
        }
    }
}

impl Add {
    fn run(self) -> Result<ExitCode, Failure> {
        let store = RunStore::at(&self.to)?;
        let options = AddOptions { samples: self.samples, only: self.tables, project: self.project };
        for source in &self.sources {
            let name = format!("adding {}", source.display());
            let added = progress::of_step(&name, || store::add(source, &store, &options))?;
            added.notes.iter().for_each(|note| eprintln!("note: {note}"));
            added.runs.iter().for_each(print_added);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print_added(run: &AddedRun) {
    let what = match run.change {
        Change::Added => "added",
        Change::Replaced => "replaced",
        Change::Unchanged => "unchanged",
    };
    println!("{what} {}: {}, {}", run.run, plural(run.captures, "capture"), weight(run.bytes, "bytes"));
}

/// The runs of a store that exists.
pub fn manifests(store: &RunStore) -> Result<Vec<Manifest>, Failure> {
    store.open()?;
    let listing = store.runs()?;
    listing.problems.iter().for_each(|problem| eprintln!("note: {problem}"));
    Ok(listing.manifests)
}

impl List {
    fn run(self) -> Result<ExitCode, Failure> {
        let mut manifests = manifests(&RunStore::at(&self.store)?)?;
        manifests.sort_by(|a, b| (&b.started_at, &b.run).cmp(&(&a.started_at, &a.run)));
        self.table.print(vec![runs(&manifests)])?;
        Ok(ExitCode::SUCCESS)
    }
}

fn runs(manifests: &[Manifest]) -> Table {
    let distinct = |manifest: &Manifest, of: &dyn Fn(&stepscope_store::Cell) -> String| {
        let mut values: Vec<String> = manifest.captures.iter().map(|capture| of(&capture.cell)).collect();
        values.sort();
        values.dedup();
        values.join(", ")
    };
    Columns::<Manifest>::new()
        .text("run", "The run.", |manifest| manifest.run.as_str().into())
        .text("project", "Its project.", |manifest| manifest.project.as_str().into())
        .text("started_at", "Its start, in UTC.", |manifest| manifest.started_at.as_str().into())
        .text("scenarios", "Its scenarios.", move |manifest| distinct(manifest, &|cell| cell.scenario.clone()).into())
        .text("variants", "Its variants.", move |manifest| distinct(manifest, &|cell| cell.variant.clone()).into())
        .text("machines", "Its machines.", move |manifest| distinct(manifest, &|cell| cell.machine.clone()).into())
        .count("captures", "", "Its captures.", |manifest| manifest.captures.len())
        .count("samples", "", "Captures that are in the store with their samples.", |manifest| {
            manifest.captures.iter().filter(|capture| capture.samples).count()
        })
        .count("tables", "", "Its tables.", |manifest| manifest.tables.len())
        .bytes("bytes", "Size of its files.", |manifest| manifest.bytes())
        .essential("run captures")
        .table("store", "Runs in the store", manifests)
}

impl Check {
    fn run(self) -> Result<ExitCode, Failure> {
        let store = RunStore::at(&self.store)?;
        let count = manifests(&store)?.len();
        let findings = progress::of_step("checking", || store.check())?;
        if findings.is_empty() && !self.table.for_programs() {
            println!("{}: {}, all complete", store.name(), plural(count, "run"));
            return Ok(ExitCode::SUCCESS);
        }
        let table = Columns::<Finding>::new()
            .text("run", "The run, or the folder.", |finding| finding.run.as_str().into())
            .prose("problem", "What is wrong, and what to do.", |finding| finding.problem.as_str().into())
            .table("store_check", "Problems of the store", &findings);
        self.table.print(vec![table])?;
        Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Definitions {
    fn run(self) -> Result<ExitCode, Failure> {
        let store = RunStore::at(&self.store)?;
        let manifests = manifests(&store)?;
        print!("{}", (self.engine.define)(&Tables::of(&store, &manifests)));
        Ok(ExitCode::SUCCESS)
    }
}
