//! Comparing sets of captures: read, pair by scenario, reduce once, then tables and call trees.
//!
//! [`CaptureSets::read`] opens a set per source. [`CaptureSets::compare`] pairs the captures of all sets by scenario and phase,
//! refuses what cannot be compared, and selects each capture's samples once; tables and call trees come from the same
//! selection. [`compare_run`] does all of this for a run of `stepscope ab` and writes the results into its folder.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stepscope_analyze::comparable::{self, Difference, Differences};
use stepscope_analyze::compare::scenarios::{self, Pairing, Scenario};
use stepscope_analyze::compare::{
    ComparedScenario, Options, Reduction, ReductionError, differences, of_scenarios, reduce, tree,
};
use stepscope_analyze::{Filter, Functions, Ownership, Selection, parallel};
use stepscope_app::page;
use stepscope_convert::ImportOptions;
use stepscope_model::{Capture, CaptureInfo, Note, Phase, Table, TreeDifference, note};
use stepscope_view::report::{Report, Section};
use stepscope_view::{Format, Style, render_all};

use crate::lab_file::LabFile;
use crate::report::{self, Compared as Page};
use crate::run::{Run, write_file};
use crate::source::{self, SourceError, assume_duration};

/// The page about a run's comparison, in its folder.
pub const PAGE_FILE: &str = "compare.html";

/// A page holds all captures up to this number, else the most typical one of each side, scenario and phase.
const MOST_SHOWN: usize = 8;

/// The tables of a run's comparison, in its folder.
const TABLES_FILE: &str = "compare.json";

/// What to compare of captures, and how they are read.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Only this phase; steady if there is any.
    pub phase: Option<Phase>,
    /// Only captures of this variant.
    pub variant: Option<String>,
    /// How files of other tools are imported.
    pub importing: ImportOptions,
    /// Duration of captures without timestamps.
    pub assumed_duration: Option<Duration>,
    /// Differences that do not prevent the comparison.
    pub across: Vec<Difference>,
    /// Which code is owned; empty: according to the lab file.
    pub owned: Ownership,
    /// Samples to compare.
    pub filter: Filter,
}

/// What a comparison computes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extent {
    /// Whether metrics, functions and threads are compared.
    pub tables: bool,
    /// How call trees are joined, if they are.
    pub trees: Option<tree::Drawing>,
}

/// Sets of captures, each compared with the first set and with its predecessor.
#[derive(Debug)]
pub struct CaptureSets {
    names: Vec<String>,
    captures: Vec<Vec<Capture>>,
    lab: Option<LabFile>,
    notes: Vec<String>,
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Compared {
    /// Each scenario.
    pub scenarios: Vec<ComparedScenario>,
    /// Two call trees in one for each pair, if they were asked for.
    pub trees: Vec<LabelledTree>,
    /// What was left out.
    pub notes: Vec<Note>,
    names: Vec<String>,
}

/// Two call trees in one.
#[derive(Debug)]
pub struct LabelledTree {
    /// Scenario and pair where there are several; else empty.
    pub label: String,
    /// The trees.
    pub difference: TreeDifference,
}

/// What readers must know about a pairing.
struct Remarks {
    /// Differences that would be refused unless allowed.
    allowed: Vec<Note>,
    /// Other differences.
    others: Vec<Note>,
}

impl CaptureSets {
    /// Reads one set per source (see [`source::captures_of`]). A single source with several variants becomes one set per
    /// variant.
    ///
    /// # Errors
    /// If a source cannot be read, or there are fewer than two sets.
    pub fn read(sources: &[PathBuf], request: &Request) -> Result<Self, SourceError> {
        let paths = sources.iter().map(|path| source::captures_of(path)).collect::<Result<Vec<_>, _>>()?;
        let lab = paths.iter().flatten().find_map(|path| source::lab_of_capture(path));
        let all: Vec<&PathBuf> = paths.iter().flatten().collect();
        let read = parallel::map(&all, |path| source::read_one(path, &request.importing, &Default::default()));
        let mut read = read.into_iter().collect::<Result<Vec<Capture>, _>>()?;
        let imported = all.iter().zip(&read).filter(|(path, _)| path.is_file());
        let notes = imported.flat_map(|(_, capture)| capture.info.notes.iter().cloned()).collect();
        if let Some(duration) = request.assumed_duration {
            assume_duration(read.iter_mut().map(|capture| &mut capture.info), duration);
        }
        let is_wanted = |capture: &Capture| match &request.variant {
            Some(variant) => capture.info.variant.as_ref() == Some(variant),
            None => true,
        };
        let mut read = read.into_iter();
        let mut captures: Vec<Vec<Capture>> =
            paths.iter().map(|set| read.by_ref().take(set.len()).filter(is_wanted).collect()).collect();
        if let [only] = captures.as_mut_slice() {
            captures = by_variant(std::mem::take(only));
        }
        refuse_without_captures(sources, &captures, request)?;
        Ok(Self { names: names(sources, &captures), captures, lab, notes })
    }

    /// The tolerance in the lab file of the first capture, as a ratio.
    pub fn tolerance(&self) -> Option<f64> {
        self.lab.as_ref().map(|lab| lab.compare.tolerance_percent / 100.0)
    }

    /// What importing the captures reported.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Compares each scenario's sides: with the first one, and with their predecessors.
    ///
    /// # Errors
    /// If the sets have no scenario in common, or differ in what makes a comparison meaningless.
    pub fn compare(&self, request: &Request, options: &Options, extent: Extent) -> Result<Compared, SourceError> {
        let owned = self.ownership(request).compile().map_err(|error| SourceError::Usage(error.to_string()))?;
        let filter = self.filter(request);
        let pairing = Pairing { phase: request.phase, across: request.across.contains(&Difference::Scenario) };
        let sets: Vec<&[Capture]> = self.captures.iter().map(Vec::as_slice).collect();
        let (scenarios, notes) = scenarios::pair(&sets, &self.names, pairing);
        if scenarios.is_empty() {
            let notes: Vec<String> = notes.iter().map(Note::to_string).collect();
            return Err(SourceError::Usage(format!("the sides have no scenario in common. {}", notes.join(" "))));
        }
        let mut compared = Compared { scenarios: Vec::new(), trees: Vec::new(), notes, names: self.names.clone() };
        for scenario in &scenarios {
            let remarks = self.check(scenario, request)?;
            let reduction = Reduction::of(scenario, &owned);
            let sides = reduction.select(&self.names, &filter).map_err(|error| match error {
                ReductionError::Select(error) => SourceError::Select(error),
                error @ ReductionError::Units(_) => SourceError::Usage(error.to_string()),
            })?;
            if let Some(drawing) = extent.trees {
                let label = (scenarios.len() > 1).then(|| scenario.label());
                let trees = differences(&sides, drawing, options);
                compared.trees.extend(labelled(label, trees, &remarks.allowed));
            }
            if extent.tables {
                let remarks = [remarks.allowed, remarks.others].concat();
                compared.scenarios.push(ComparedScenario::of(scenario, reduce(&sides), &remarks, options));
            }
        }
        Ok(compared)
    }

    /// The request's ownership; what it leaves open is that of the lab file.
    fn ownership(&self, request: &Request) -> Ownership {
        match &self.lab {
            Some(lab) => request.owned.clone().or(&lab.owned),
            None => request.owned.clone(),
        }
    }

    /// The request's filter, with the names of the lab file.
    fn filter(&self, request: &Request) -> Filter {
        let naming = self.lab.as_ref().map(|lab| lab.naming.clone()).unwrap_or_default();
        Filter { naming, ..request.filter.clone() }
    }

    /// Writes the page about a comparison, with the captures that it can be looked at in.
    ///
    /// # Errors
    /// If the ownership or the filter of the request cannot be applied, or the page not written.
    pub fn write_page(&self, report: &Report, request: &Request, out: &mut dyn Write) -> io::Result<()> {
        let owned = self.ownership(request).compile().map_err(io::Error::other)?;
        let filter = self.filter(request);
        let captures = self.of_phase(request.phase);
        let all: Vec<&Capture> = captures.iter().flatten().copied().collect();
        let functions = parallel::map(&all, |capture| Functions::of(capture, &owned));
        let pairs = all.iter().zip(&functions);
        let selections = pairs.map(|(capture, functions)| Selection::new(capture, functions, &filter));
        let mut selections = selections.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let mut report = report.clone();
        report.sections.insert(0, report::of_sides(&selections));
        if selections.len() > MOST_SHOWN {
            let mut rest = selections.into_iter();
            let sides = captures.iter().map(|side| rest.by_ref().take(side.len()).collect::<Vec<_>>());
            selections = sides.flat_map(|side| report::typical(&side)).collect();
        }
        page::write(&report, &selections, page::BUDGET, out).map(|_| ())
    }

    /// The captures of each side.
    fn of_phase(&self, phase: Option<Phase>) -> Vec<Vec<&Capture>> {
        let of_phase = |capture: &&Capture| phase.is_none() || capture.info.phase == phase;
        self.captures.iter().map(|side| side.iter().filter(of_phase).collect()).collect()
    }

    /// Refuses differences that the request does not allow.
    fn check(&self, scenario: &Scenario<'_>, request: &Request) -> Result<Remarks, SourceError> {
        let sides = self.names.iter().zip(&scenario.sides);
        let recordings: Vec<(&str, &CaptureInfo)> =
            sides.flat_map(|(name, side)| side.iter().map(|capture| (name.as_str(), &capture.info))).collect();
        let Differences { refused, remarks } = comparable::differences(&recordings);
        if let Some(refusal) = refused.iter().find(|refusal| !request.across.contains(&refusal.kind)) {
            return Err(SourceError::Usage(refusal.to_string()));
        }
        let allowed = refused.iter().map(|refusal| note!(Limit, "Compared as you asked, although {}.", &refusal.what));
        Ok(Remarks { allowed: allowed.collect(), others: remarks })
    }
}

impl Compared {
    /// The tables of every scenario and pair.
    pub fn tables(&self) -> Vec<Table> {
        let mut all = of_scenarios(&self.scenarios);
        if let Some(first) = all.first_mut() {
            first.add_notes(self.notes.iter().cloned());
        }
        all
    }

    /// The page about the comparison; `tables` are its [`tables`](Self::tables).
    pub fn page(&self, tables: Vec<Table>, options: &Options) -> Report {
        let runs = || self.scenarios.iter().flat_map(|one| &one.sides).flat_map(|side| &side.runs);
        let (last, others) = self.names.split_last().expect("a comparison has two sides or more");
        let sides = self.scenarios.first().map(|one| one.sides.as_slice()).unwrap_or_default();
        let counts: Vec<String> =
            sides.iter().map(|side| format!("{} ({} captures)", side.name, side.runs.len())).collect();
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
        let pairs = self.scenarios.iter().flat_map(ComparedScenario::pairs);
        let warnings = pairs.flat_map(|pair| pair.notes.iter().cloned()).collect();
        report::comparison(&Page {
            title: format!("{last} against {}", others.join(" and ")),
            facts: facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
            warnings,
            tables,
            flame_graphs: self.trees.iter().map(|one| (one.label.clone(), one.difference.clone())).collect(),
            tolerance: options.tolerance,
        })
    }
}

/// Compares the variants of a run, and writes the page and the tables into its folder. Gives the tables.
///
/// # Errors
/// If the captures cannot be read or compared, or the results cannot be written.
pub fn compare_run(folder: &Path, request: &Request) -> Result<Vec<Table>, SourceError> {
    let OfRun { sets, tables, page } = of_run(folder, request)?;
    write_file(&folder.join(TABLES_FILE), |out| render_all(&tables, Format::Json, &Style::PLAIN, out))?;
    write_file(&folder.join(PAGE_FILE), |out| sets.write_page(&page, request, out))?;
    Ok(tables)
}

/// The page that compares the variants of a run.
///
/// # Errors
/// If the captures cannot be read or compared.
pub fn page_of_run(folder: &Path) -> Result<Report, SourceError> {
    Ok(of_run(folder, &Request::default())?.page)
}

/// The report of a run with the comparison of its variants as a section, if it interleaved them: the sentence, then what
/// [`page_of_run`] has. A comparison that is impossible becomes a warning.
pub fn with_comparison(report: Report, run: Option<&Run>) -> Report {
    let Some(run) = run.filter(|run| run.info().is_some_and(|info| info.ab.is_some())) else { return report };
    match page_of_run(run.folder()) {
        Ok(page) => {
            let section = Section::new("Comparison").anchor(SECTION);
            let section = if page.subtitle.is_empty() { section } else { section.note(page.subtitle.as_str()) };
            report.section(page.sections.into_iter().fold(section, Section::section))
        }
        Err(error) => report.warning(note!(Limit, "The variants are not compared: {}.", error.to_string())),
    }
}

/// Name in links of the section with a run's comparison. The app reads the sentence on top from its first note.
pub const SECTION: &str = "comparison";

/// The comparison of a run's variants.
struct OfRun {
    sets: CaptureSets,
    tables: Vec<Table>,
    page: Report,
}

fn of_run(folder: &Path, request: &Request) -> Result<OfRun, SourceError> {
    let sets = CaptureSets::read(&[folder.to_owned()], request)?;
    let default = Options::default();
    let options = Options { tolerance: sets.tolerance().unwrap_or(default.tolerance), ..default };
    let extent = Extent { tables: true, trees: Some(tree::Drawing::default()) };
    let compared = sets.compare(request, &options, extent)?;
    let tables = compared.tables();
    let page = compared.page(tables.clone(), &options);
    Ok(OfRun { sets, tables, page })
}

/// Labels the trees of a scenario's pairs; differences that were allowed are named below each picture.
fn labelled(scenario: Option<String>, trees: Vec<TreeDifference>, allowed: &[Note]) -> Vec<LabelledTree> {
    let several = trees.len() > 1;
    let label = |mut difference: TreeDifference| {
        for note in allowed {
            difference.tree.subtitle.push_str(&format!(" \u{b7} {}", note.to_string().trim_end_matches('.')));
        }
        let pair = several.then(|| format!("{} -> {}", difference.base_name, difference.name));
        let label = [scenario.clone(), pair].into_iter().flatten().collect::<Vec<_>>().join(" \u{b7} ");
        LabelledTree { label, difference }
    };
    trees.into_iter().map(label).collect()
}

/// One set per variant, in the order of the captures.
fn by_variant(captures: Vec<Capture>) -> Vec<Vec<Capture>> {
    let mut sets: Vec<Vec<Capture>> = Vec::new();
    for capture in captures {
        match sets.iter_mut().find(|set| set[0].info.variant == capture.info.variant) {
            Some(set) => set.push(capture),
            None => sets.push(vec![capture]),
        }
    }
    sets
}

fn refuse_without_captures(
    sources: &[PathBuf],
    captures: &[Vec<Capture>],
    request: &Request,
) -> Result<(), SourceError> {
    if let Some(variant) = request.variant.as_ref().filter(|_| captures.iter().any(Vec::is_empty)) {
        return Err(SourceError::Usage(format!("not every side has captures of the variant {variant}")));
    }
    if let Some((source, _)) = sources.iter().zip(captures).find(|(_, captures)| captures.is_empty()) {
        return Err(SourceError::Usage(format!("{}: holds no captures", source.display())));
    }
    if captures.len() < 2 {
        let message =
            "nothing to compare with: name two captures or sets of captures, or a run that has several variants";
        return Err(SourceError::Usage(message.to_owned()));
    }
    let mixed = |set: &&Vec<Capture>| variant_names(set).len() > 1;
    match captures.iter().zip(sources).find(|(set, _)| mixed(set)) {
        Some((set, source)) if sources.len() > 1 => Err(SourceError::Usage(format!(
            "{}: holds captures of several variants ({}); choose one with --variant, or name its folder",
            source.display(),
            variant_names(set).into_iter().collect::<Vec<_>>().join(", ")
        ))),
        _ => Ok(()),
    }
}

fn variant_names(set: &[Capture]) -> BTreeSet<String> {
    set.iter().map(|one| one.info.variant.clone().unwrap_or_else(|| "none".to_owned())).collect()
}

/// Names the sets: by variant if those differ, else by file name, path or label. No two are alike.
fn names(sources: &[PathBuf], captures: &[Vec<Capture>]) -> Vec<String> {
    let differ = |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let variants: Option<Vec<String>> =
        captures.iter().map(|set| set.first().and_then(|one| one.info.variant.clone())).collect();
    let file_name = |path: &PathBuf| {
        path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    let path = |path: &PathBuf| path.display().to_string();
    let by_source = |name: &dyn Fn(&PathBuf) -> String| -> Option<Vec<String>> {
        (sources.len() == captures.len()).then(|| sources.iter().map(name).collect())
    };
    let distinct = [variants, by_source(&file_name), by_source(&path)].into_iter().flatten().find(differ);
    distinct.unwrap_or_else(|| {
        let label = |set: &Vec<Capture>| set.first().map_or_else(String::new, |capture| capture.info.name());
        captures.iter().enumerate().map(|(at, set)| format!("{} ({})", label(set), at + 1)).collect()
    })
}
