//! `stepscope history`: figures of all runs over time, and where they changed for good.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use stepscope_analyze::history::{ChangeSearch, History as Series, Joined, Options, Recording};
use stepscope_analyze::{Filter, Functions, Ownership, Pattern, Selection};
use stepscope_lab::history::{Entry, Place, Store, report};
use stepscope_lab::run::{RUN_FILE, Run};
use stepscope_model::{Table, disk};
use stepscope_view::report::write_html;

use super::count;
use super::rank::PhaseArgument;
use crate::failure::Failure;
use crate::output::{TableArguments, Target};
use crate::progress;

/// Show how the figures of every scenario went from run to run, and where they changed for good.
///
/// `stepscope run` and `stepscope ab` add each run to the history in `.stepscope/` beside the lab file; `history add` adds
/// others. Runs may be deleted: their figures stay. Runs of different machines, or of different kinds of build, are never one
/// series unless told, and then every output says so.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct History {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    /// Only scenarios of this name: `*` stands for any characters.
    #[arg(long, value_name = "NAME")]
    scenario: Option<Pattern>,
    /// Only metrics of this name, such as `rtf` or `step.*`.
    #[arg(long, value_name = "NAME")]
    metric: Option<Pattern>,
    /// Only variants of this name.
    #[arg(long, value_name = "NAME")]
    variant: Option<Pattern>,
    /// Only this phase.
    #[arg(long, value_enum)]
    phase: Option<PhaseArgument>,
    /// Join what was recorded on different machines.
    #[arg(long)]
    across_machines: bool,
    /// Join what was built in different ways, as debug and release.
    #[arg(long)]
    across_builds: bool,
    /// Which tables to show.
    #[arg(long, value_enum, default_value_t)]
    view: View,
    /// A series without a change has one found with at most this probability.
    #[arg(long, default_value_t = ChangeSearch::default().alpha, value_name = "PROBABILITY", value_parser = probability)]
    alpha: f64,
    /// Seed of the permutation tests: equal seeds give equal results.
    #[arg(long, default_value_t = ChangeSearch::default().seed, value_name = "NUMBER")]
    seed: u64,
    #[command(flatten)]
    store: StoreArguments,
    /// Write one HTML page with a chart of each series, instead of tables.
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    #[command(flatten)]
    table: TableArguments,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    Add(Add),
}

/// Add runs, or captures, to the history. Those that are in it already change nothing.
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum View {
    /// The lasting changes, the changes of the environment, and a row a series.
    #[default]
    Summary,
    /// A row a run.
    Runs,
    /// A row a figure of a run.
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
        let store = self.store.store()?;
        let contents = store.read()?;
        let index = store.index();
        if contents.entries.is_empty() {
            contents.remarks(&index).iter().for_each(|remark| eprintln!("note: {remark}"));
            return Err(Failure::Failed(format!(
                "{}: there is no history yet; `stepscope run` begins one, and `stepscope history add RUN` adds runs that there are",
                index.display()
            )));
        }
        let recordings = contents.recordings();
        let search = || Series::of(&recordings, &self.options(), contents.remarks(&index));
        let history = progress::of_step("searching for changes", search);
        if history.series.is_empty() {
            return Err(Failure::Usage(format!("nothing is of these names; there are {}", names(&recordings))));
        }
        let Some(output) = &self.output else {
            self.table.print(self.tables(&history))?;
            return Ok(ExitCode::SUCCESS);
        };
        let page = report(&history, &index.display().to_string());
        Target::of(Some(output)).write(|out| write_html(&page, out).map_err(Failure::writing("the page")))?;
        if output != Path::new("-") {
            println!("{}", output.display());
        }
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self) -> Options {
        let joined = |told: bool| if told { Joined::Yes } else { Joined::No };
        Options {
            scenario: self.scenario.clone(),
            variant: self.variant.clone(),
            metric: self.metric.clone(),
            phase: self.phase.map(Into::into),
            machines: joined(self.across_machines),
            builds: joined(self.across_builds),
            search: ChangeSearch { alpha: self.alpha, seed: self.seed, ..ChangeSearch::default() },
        }
    }

    fn tables(&self, history: &Series) -> Vec<Table> {
        match self.view {
            View::Summary => {
                let mut tables = vec![history.changes(), history.environment(), history.trend()];
                if !self.table.for_programs() {
                    // Said once is enough for people; what is read by programs may be read alone.
                    let notes = history.notes();
                    tables
                        .iter_mut()
                        .rev()
                        .skip(1)
                        .for_each(|table| table.notes.retain(|note| !notes.iter().any(|known| note == known)));
                    tables.retain(|table| !table.rows.is_empty());
                }
                tables
            }
            View::Runs => vec![history.runs()],
            View::Values => vec![history.values()],
        }
    }
}

/// What could be asked for.
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
        let mut added = 0;
        for source in &self.sources {
            added += if disk::is_capture(source) { add_capture(&store, source)? } else { add_runs(&store, source)? };
        }
        println!("{} added to {}", count(added, "capture"), store.index().display());
        Ok(ExitCode::SUCCESS)
    }
}

fn add_capture(store: &Store, capture: &Path) -> Result<usize, Failure> {
    let entries = new_entries(store, capture, None, &[capture.to_owned()])?;
    Ok(store.add(&entries)?)
}

/// Adds a run, or every run in a folder of runs; those that cannot be read are told.
fn add_runs(store: &Store, folder: &Path) -> Result<usize, Failure> {
    let inside = runs_in(folder);
    if inside.is_empty() {
        return add_run(store, &Run::open(folder)?);
    }
    let open = |path: &PathBuf| Run::open(path).inspect_err(|error| eprintln!("note: left out: {error}")).ok();
    let runs: Vec<Run> = inside.iter().filter_map(open).collect();
    runs.iter().map(|run| add_run(store, run)).sum()
}

/// Folders of the runs in a folder that is none itself.
fn runs_in(folder: &Path) -> Vec<PathBuf> {
    if folder.join(RUN_FILE).exists() {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_run = |path: &PathBuf| !path.is_symlink() && path.join(RUN_FILE).is_file();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_run).collect();
    paths.sort();
    paths
}

/// Adds a run's captures, but for those that are in the history already, and gives how many these are.
///
/// Trials that failed or were interrupted are left out: half a loading phase is not a quick one.
pub fn add_run(store: &Store, run: &Run) -> Result<usize, Failure> {
    let failed: Vec<PathBuf> = run.info().map_or_else(Vec::new, |info| {
        let failed = info.trials.iter().filter(|trial| !trial.result.is_recorded());
        failed.map(|trial| run.folder().join(trial.folder())).collect()
    });
    let is_whole = |capture: &PathBuf| !failed.iter().any(|trial| capture.starts_with(trial));
    let (whole, rest): (Vec<PathBuf>, Vec<PathBuf>) = run.captures().into_iter().partition(is_whole);
    if !rest.is_empty() {
        let left_out = count(rest.len(), "capture");
        eprintln!("note: {left_out} of trials that were not completed left out of the history");
    }
    let entries = new_entries(store, run.folder(), Some(run), &whole)?;
    Ok(store.add(&entries)?)
}

/// Adds a run to the history beside its lab file. That this fails does not spoil the run.
pub fn remember(lab: &Path, run: &Run) {
    let store = Store::beside(lab);
    if let Err(failure) = add_run(&store, run) {
        eprintln!("note: the run is not in the history {}:", store.index().display());
        // It says why; the exit code is the run's.
        let _ = failure.report();
    }
}

fn new_entries(store: &Store, folder: &Path, run: Option<&Run>, captures: &[PathBuf]) -> Result<Vec<Entry>, Failure> {
    let known = store.read()?;
    let is_known = |id: &String| known.entries.iter().any(|entry| entry.id == *id);
    let owned = Ownership::default().compile()?;
    let working_tree = run.and_then(|run| run.info()?.working_tree.as_ref());
    let mut entries = Vec::new();
    for path in captures {
        if is_known(&store.id(&disk::read_info(path)?, path)) {
            continue;
        }
        let capture = progress::of_step("reading captures", || disk::read(path))?;
        let functions = Functions::of(&capture, &owned);
        let selection = Selection::new(&capture, &functions, &Filter::default())?;
        let entry = store.entry(&selection, Place { capture: path, run: folder, working_tree });
        match entry.recording.figures.is_empty() {
            true => {
                eprintln!("note: left out: {}: without times and steps there are no figures to follow", path.display())
            }
            false => entries.push(entry),
        }
    }
    Ok(entries)
}
