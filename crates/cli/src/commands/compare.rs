//! `stepscope compare`: what changed between sets of captures, and how well that is known.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::compare::{ComparedScenario, Options, of_scenarios, tree};
use stepscope_analyze::{comparable, metrics};
use stepscope_lab::report::{self, Compared as Page};
use stepscope_model::{Table, TreeDifference};
use stepscope_view::report::write_html;
use stepscope_view::{Format, Style, render_all};

use crate::arguments::LookArguments;
use crate::failure::Failure;
use crate::output::{TableArguments, Target};
use crate::progress;
use crate::sides::{CompareArguments, Compared, Sides};

/// The page about a run's comparison, in its folder.
pub const PAGE_FILE: &str = "compare.html";

/// The tables of a run's comparison, in its folder.
const TABLES_FILE: &str = "compare.json";

/// Rows of each table for people: all figures of the whole run.
const ROWS_FOR_PEOPLE: usize = metrics::NAMES.len();

/// Compare captures, or sets of them: what changed, by how much, and how well that is known.
///
/// Each source is a side: a capture, a file that can be imported, a folder with the captures of several runs, a pattern in
/// quotes, or several with commas between. With three sides and more each is compared with the first and with its
/// predecessor. A single run that has several variants is a side a variant.
#[derive(Debug, Args)]
pub struct Compare {
    /// The sides: before, after, and any further ones.
    #[arg(required = true, value_name = "BASE CAND")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    compare: CompareArguments,
    #[command(flatten)]
    look: LookArguments,
    /// Write a page with the tables, pictures of the ratios and a differential flame graph here.
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    #[command(flatten)]
    table: TableArguments,
}

impl Compare {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let extent = if self.output.is_some() { Extent::TablesAndGraphs } else { Extent::Tables };
        let made = make(&self.sources, &self.compare, &self.look, extent)?;
        if let Some(path) = &self.output {
            write_page(path, &made)?;
        }
        self.table.print_at_most(ROWS_FOR_PEOPLE, made.tables)?;
        if let Some(path) = self.output.filter(|path| path != Path::new("-")) {
            eprintln!("\nnext: open {} in a browser", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A comparison, ready to be shown.
struct Made {
    compared: Compared,
    tables: Vec<Table>,
    graphs: Vec<(String, TreeDifference)>,
    options: Options,
}

/// What is made of sources.
enum Extent {
    Tables,
    TablesAndGraphs,
}

fn make(
    sources: &[PathBuf],
    compare: &CompareArguments,
    look: &LookArguments,
    extent: Extent,
) -> Result<Made, Failure> {
    let sides = Sides::read(sources, compare, look)?;
    let options = compare.options(sides.tolerance())?;
    let (compared, graphs) = match extent {
        Extent::Tables => (sides.compare(compare, look, &options)?, Vec::new()),
        Extent::TablesAndGraphs => sides.compare_and_draw(compare, look, tree::Drawing::default(), &options)?,
    };
    Ok(Made { tables: all_tables(&compared), compared, graphs, options })
}

/// Compares the variants of a run, prints what changed, and writes it into the run's folder as a page and as JSON.
pub fn of_run(folder: &Path, compare: &CompareArguments, table: &TableArguments) -> Result<(), Failure> {
    let made = make(&[folder.to_owned()], compare, &LookArguments::default(), Extent::TablesAndGraphs)?;
    let json = Target::of(Some(&folder.join(TABLES_FILE)));
    json.write(|out| {
        render_all(&made.tables, Format::Json, &Style::PLAIN, out).map_err(Failure::writing("the comparison"))
    })?;
    write_page(&folder.join(PAGE_FILE), &made)?;
    table.print_at_most(ROWS_FOR_PEOPLE, made.tables)
}

/// The tables of every scenario and pair.
pub fn all_tables(compared: &Compared) -> Vec<Table> {
    let mut all = of_scenarios(&compared.scenarios);
    if let Some(first) = all.first_mut() {
        first.add_notes(compared.notes.iter().cloned());
    }
    all
}

/// What the page about a comparison holds.
fn page(Made { compared, tables, graphs, options }: &Made) -> Page {
    let runs = || compared.scenarios.iter().flat_map(|one| &one.sides).flat_map(|side| &side.runs);
    let names: Vec<&str> = compared.scenarios[0].sides.iter().map(|side| side.name.as_str()).collect();
    let (last, others) = names.split_last().expect("there are two sides or more");
    let counts: Vec<String> = compared.scenarios[0]
        .sides
        .iter()
        .map(|side| format!("{} ({} captures)", side.name, side.runs.len()))
        .collect();
    let machine = runs().find_map(|run| run.info.machine.as_ref()).map(comparable::machine);
    let builds: BTreeSet<String> = runs().filter_map(|run| run.info.build.as_ref()?.kind.clone()).collect();
    let builds = (!builds.is_empty()).then(|| builds.into_iter().collect::<Vec<_>>().join(", "));
    let facts = [
        ("Sides", Some(counts.join(", "))),
        ("Machine", machine),
        ("Build", builds),
        ("Tolerance", Some(format!("{} %", options.tolerance * 100.0))),
        ("Seed", Some(options.seed.to_string())),
    ];
    let mut warnings: Vec<String> = Vec::new();
    for note in compared.scenarios.iter().flat_map(ComparedScenario::pairs).flat_map(|pair| &pair.notes) {
        let note = note.to_string();
        if !warnings.contains(&note) {
            warnings.push(note);
        }
    }
    Page {
        title: format!("{last} against {}", others.join(" and ")),
        facts: facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
        warnings,
        tables: tables.clone(),
        flame_graphs: graphs.clone(),
        tolerance: options.tolerance,
    }
}

fn write_page(path: &Path, made: &Made) -> Result<(), Failure> {
    let report = progress::of_step("drawing", || report::comparison(&page(made)));
    Target::of(Some(path)).write(|out| write_html(&report, out).map_err(Failure::writing("the page")))
}
