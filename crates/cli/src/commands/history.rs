//! `stepscope history`: metrics of all runs over time, and their lasting changes.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use stepscope_analyze::Pattern;
use stepscope_analyze::history::{ChangeSearch, History as Series, Joined, Options, Recording};
use stepscope_app::page;
use stepscope_lab::history::{Store, report};
use stepscope_lab::store;
use stepscope_model::quantity::plural;
use stepscope_model::{Note, Phase, Table};
use stepscope_store::RunStore;

use crate::arguments::{PHASES, choice};
use crate::failure::Failure;
use crate::output::{TableArguments, Target};
use crate::progress;

/// Show metrics over runs, and find lasting changes.
///
/// `stepscope run` and `stepscope ab` add each run to the history in `.stepscope/` beside the lab file; `history add` adds
/// others. Runs may be deleted: their metrics stay. Runs of different machines or kinds of build are separate series unless
/// --across-machines or --across-builds joins them.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct History {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    /// Only scenarios with this name; `*` matches any characters.
    #[arg(long, value_name = "NAME")]
    scenario: Option<Pattern>,
    /// Only metrics with this name, such as `rtf` or `step.*`.
    #[arg(long, value_name = "NAME")]
    metric: Option<Pattern>,
    /// Only variants with this name.
    #[arg(long, value_name = "NAME")]
    variant: Option<Pattern>,
    /// Only this phase.
    #[arg(long, value_parser = choice(PHASES))]
    phase: Option<Phase>,
    /// Join runs of different machines.
    #[arg(long)]
    across_machines: bool,
    /// Join different kinds of builds, such as debug and release.
    #[arg(long)]
    across_builds: bool,
    /// Which tables to show.
    #[arg(long, value_enum, default_value_t)]
    view: View,
    /// Significance level: probability of reporting a change in a series that has none.
    #[arg(long, default_value_t = ChangeSearch::default().alpha, value_name = "PROBABILITY", value_parser = probability)]
    alpha: f64,
    /// Seed of the permutation tests: equal seeds give equal results.
    #[arg(long, default_value_t = ChangeSearch::default().seed, value_name = "NUMBER")]
    seed: u64,
    #[command(flatten)]
    store: StoreArguments,
    /// Show the runs of this store, in place of those of a project: a folder, or s3://BUCKET/PATH.
    #[arg(long = "store", value_name = "DIR|URL", conflicts_with = "project")]
    run_store: Option<String>,
    /// Write an HTML page with a chart per series, instead of tables.
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    #[command(flatten)]
    table: TableArguments,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    Add(Add),
}

/// Add runs or captures to the history. Adding one twice changes nothing.
#[derive(Debug, Args)]
struct Add {
    /// Runs, folders of runs, or captures.
    #[arg(required = true, value_name = "RUN|CAPTURE")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArguments,
}

#[derive(Debug, Args)]
struct StoreArguments {
    /// The folder with the lab file, whose `.stepscope/` holds the history [default: the nearest folder, from here upward,
    /// with a history or a lab file; else this one].
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
}

/// What the tables are about.
struct Source {
    /// The file or the store.
    name: String,
    recordings: Vec<Recording>,
    remarks: Vec<Note>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum View {
    /// Lasting changes, changes of the environment, and a row per series.
    #[default]
    Summary,
    /// A row per run.
    Runs,
    /// A row per metric of a run.
    Values,
}

fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| "write a probability between 0 and 1, e.g. 0.01".to_owned())
}

impl StoreArguments {
    fn store(&self) -> Result<Store, Failure> {
        match &self.project {
            Some(folder) if !folder.is_dir() => {
                Err(Failure::Usage(format!("{}: there is no such folder", folder.display())))
            }
            Some(folder) => Ok(Store::beside(folder)),
            None => Ok(Store::of(Path::new("."))),
        }
    }
}

impl History {
    pub fn run(self) -> Result<ExitCode, Failure> {
        if let Some(HistoryCommand::Add(add)) = &self.command {
            return add.run();
        }
        let Source { name, recordings, remarks } = self.source()?;
        let search = || Series::of(&recordings, &self.options(), remarks);
        let history = progress::of_step("searching for changes", search);
        if history.series.is_empty() {
            return Err(Failure::Usage(format!("nothing has these names; there are {}", names(&recordings))));
        }
        let Some(output) = &self.output else {
            self.table.print(self.tables(&history))?;
            return Ok(ExitCode::SUCCESS);
        };
        let report = report(&history, &name);
        let target = Target::of(Some(output));
        let write = |out: &mut dyn Write| page::write(&report, &[], page::BUDGET, out).map(|_| ());
        if let Some(path) = target.write(|out| write(out).map_err(Failure::writing("the page")))? {
            println!("{}", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The recordings of a store, or of the project.
    fn source(&self) -> Result<Source, Failure> {
        let (name, contents, remarks, hint) = match &self.run_store {
            Some(place) => {
                let store = RunStore::at(place)?;
                let (contents, remarks) = progress::of_step("reading the store", || store::history(&store))?;
                (store.name(), contents, remarks, "`stepscope store add RUN --to DIR` adds runs")
            }
            None => {
                let store = self.store.store()?;
                let (contents, index) = (store.read()?, store.index());
                let remarks = contents.remarks(&index);
                let hint = "`stepscope run` starts one; `stepscope history add RUN` adds earlier runs";
                (index.display().to_string(), contents, remarks, hint)
            }
        };
        if contents.entries.is_empty() {
            remarks.iter().for_each(|remark| eprintln!("note: {remark}"));
            return Err(Failure::Failed(format!("{name}: no history yet. {hint}")));
        }
        Ok(Source { name, recordings: contents.recordings(), remarks })
    }

    fn options(&self) -> Options {
        let joined = |joined: bool| if joined { Joined::Yes } else { Joined::No };
        Options {
            scenario: self.scenario.clone(),
            variant: self.variant.clone(),
            metric: self.metric.clone(),
            phase: self.phase,
            machines: joined(self.across_machines),
            builds: joined(self.across_builds),
            search: ChangeSearch { alpha: self.alpha, seed: self.seed, ..ChangeSearch::default() },
        }
    }

    fn tables(&self, history: &Series) -> Vec<Table> {
        match self.view {
            View::Summary => {
                let mut tables = vec![history.changes(), history.environment(), history.trend()];
                tables.retain(|table| self.table.for_programs() || !table.rows.is_empty());
                tables
            }
            View::Runs => vec![history.runs()],
            View::Values => vec![history.values()],
        }
    }
}

/// Names to choose from.
fn names(recordings: &[Recording]) -> String {
    let all = |of: &dyn Fn(&Recording) -> Vec<String>| -> String {
        let names: BTreeSet<String> = recordings.iter().flat_map(of).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let scenarios = all(&|one| vec![one.scenario.clone()]);
    let metrics = all(&|one| one.figures.iter().map(|figure| figure.name.clone()).collect());
    format!("the scenarios {scenarios} and the metrics {metrics}")
}

impl Add {
    fn run(&self) -> Result<ExitCode, Failure> {
        let store = self.store.store()?;
        let mut count = 0;
        for source in &self.sources {
            let added = progress::of_step("reading captures", || store.add_source(source))?;
            added.notes.iter().for_each(|note| eprintln!("note: {note}"));
            count += added.count;
        }
        println!("{} added to {}", plural(count, "capture"), store.index().display());
        Ok(ExitCode::SUCCESS)
    }
}
