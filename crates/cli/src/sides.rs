//! What is compared: sets of captures by path, read, put together by scenario and reduced.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use stepscope_analyze::comparable::{self, Difference, Differences};
use stepscope_analyze::compare::renames::Rename;
use stepscope_analyze::compare::scenarios::{self, Pairing, Scenario};
use stepscope_analyze::compare::{
    ComparedScenario, Options, Reduction, ReductionError, SelectedSide, differences, reduce, tree,
};
use stepscope_analyze::ownership::Ownership;
use stepscope_analyze::{parallel, summary};
use stepscope_convert::ImportOptions;
use stepscope_lab::run::Run;
use stepscope_model::{Capture, CaptureInfo, Note, TreeDifference, disk, note};

use crate::arguments::{LookArguments, ReadingArguments, duration};
use crate::commands::rank::PhaseArgument;
use crate::failure::Failure;
use crate::{load, progress};

/// How captures are compared.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Comparison")]
pub struct CompareArguments {
    /// Only this phase [default: steady if there is any].
    #[arg(long, value_enum)]
    phase: Option<PhaseArgument>,
    /// Only captures of this variant, of runs that have several.
    #[arg(long, value_name = "VARIANT")]
    variant: Option<String>,
    /// A change of at most this much is equivalent to none [default: what the lab file says, else 5%].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    tolerance: Option<f64>,
    /// Seed of the resamples: equal seeds give equal intervals [default: 1].
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Rows with fewer samples on both sides together are not tested [default: 30].
    #[arg(long, value_name = "SAMPLES")]
    least_count: Option<u64>,
    /// A function that has another name after: 'OLD => NEW', each with at most one `*`; repeatable.
    #[arg(long = "rename", value_name = "OLD=>NEW")]
    renames: Vec<Rename>,
    /// A file of renames, one a line; `#` begins a remark.
    #[arg(long = "renames", value_name = "FILE")]
    rename_file: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    /// How long captures were recorded that do not say it, as collapsed stacks: costs are then per second.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    assume_duration: Option<Duration>,
    /// Compare what was recorded on different machines.
    #[arg(long)]
    across_machines: bool,
    /// Compare what was built in different ways, as debug and release.
    #[arg(long)]
    across_builds: bool,
    /// Compare different scenarios or phases.
    #[arg(long)]
    across_scenarios: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.trim().trim_end_matches('%').trim().parse().ok();
    percent
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or_else(|| "write a percentage above 0 and up to 100, e.g. 5%".to_owned())
}

impl CompareArguments {
    /// As usual, of this phase.
    pub fn of_phase(phase: Option<PhaseArgument>) -> Self {
        Self { phase, ..Self::default() }
    }

    /// The same for the analysis; the tolerance, unless told, is `tolerance`.
    pub fn options(&self, tolerance: Option<f64>) -> Result<Options, Failure> {
        let mut renames = self.renames.clone();
        if let Some(path) = &self.rename_file {
            renames.extend(read_renames(path)?);
        }
        let default = Options::default();
        let tolerance = self.tolerance.map(|percent| percent / 100.0).or(tolerance).unwrap_or(default.tolerance);
        let (seed, least_count) = (self.seed.unwrap_or(default.seed), self.least_count.unwrap_or(default.least_count));
        Ok(Options { seed, least_count, tolerance, renames, ..default })
    }

    fn allows(&self, difference: Difference) -> bool {
        match difference {
            Difference::Machine => self.across_machines,
            Difference::Build => self.across_builds,
            Difference::Scenario => self.across_scenarios,
        }
    }
}

fn read_renames(path: &Path) -> Result<Vec<Rename>, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.split('#').next().unwrap_or("").trim()));
    let told = lines.filter(|(_, line)| !line.is_empty());
    told.map(|(line, text)| text.parse().map_err(|error| Failure::Usage(format!("{name}:{line}: {error}")))).collect()
}

/// Remarks on captures that are compared.
struct Remarks {
    /// Differences that would be refused if the user did not allow them.
    allowed: Vec<Note>,
    /// Other differences.
    others: Vec<Note>,
}

/// Captures of several sides.
pub struct Sides {
    names: Vec<String>,
    captures: Vec<Vec<Capture>>,
    ownership: Option<Ownership>,
    tolerance: Option<f64>,
}

impl Sides {
    /// Reads a side a source: a capture, a file of another tool, a folder with captures, a pattern in quotes, or several of
    /// these with commas between. A single run with several variants is a side a variant.
    pub fn read(sources: &[PathBuf], arguments: &CompareArguments, look: &LookArguments) -> Result<Self, Failure> {
        let paths = sources.iter().map(|source| paths_of(source)).collect::<Result<Vec<_>, _>>()?;
        let lab = paths.iter().flatten().find_map(|path| load::lab_beside(path));
        let importing = arguments.reading.options(&look.symbols)?;
        let captures = progress::of_step("reading captures", || read_all(&paths, &importing))?;
        let mut captures: Vec<Vec<Capture>> = captures
            .into_iter()
            .map(|side| side.into_iter().filter(|one| is_of_variant(one, arguments.variant.as_deref())).collect())
            .collect();
        if let [only] = captures.as_mut_slice() {
            captures = by_variant(std::mem::take(only));
        }
        refuse_without_captures(sources, &captures, arguments)?;
        assume_duration(captures.iter_mut().flatten(), arguments.assume_duration);
        let tolerance = lab.as_ref().map(|lab| lab.compare.tolerance_percent / 100.0);
        Ok(Self { names: names(sources, &captures), captures, ownership: lab.map(|lab| lab.owned), tolerance })
    }

    /// The tolerance that the lab file says, as a part.
    pub fn tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    /// Compares each scenario's sides: with the first one, and with their predecessors.
    pub fn compare(
        &self,
        arguments: &CompareArguments,
        look: &LookArguments,
        options: &Options,
    ) -> Result<Compared, Failure> {
        let (scenarios, notes) =
            self.reduce_each(arguments, look, |scenario, sides, remarks| compared(scenario, sides, remarks, options))?;
        Ok(Compared { scenarios, notes })
    }

    /// The call trees of every pair of every scenario, named by scenario and pair where there are several.
    pub fn differences(
        &self,
        arguments: &CompareArguments,
        look: &LookArguments,
        drawing: tree::Drawing,
        options: &Options,
    ) -> Result<Vec<NamedDifference>, Failure> {
        let (trees, _) = self.reduce_each(arguments, look, |scenario, sides, remarks| {
            (scenario.label(), trees(sides, remarks, drawing, options))
        })?;
        Ok(named(trees))
    }

    /// Tables and call trees, from one reduction of each scenario.
    pub fn compare_and_draw(
        &self,
        arguments: &CompareArguments,
        look: &LookArguments,
        drawing: tree::Drawing,
        options: &Options,
    ) -> Result<(Compared, Vec<NamedDifference>), Failure> {
        let (both, notes) = self.reduce_each(arguments, look, |scenario, sides, remarks| {
            let trees = trees(sides, remarks, drawing, options);
            (compared(scenario, sides, remarks, options), (scenario.label(), trees))
        })?;
        let (scenarios, trees) = both.into_iter().unzip();
        Ok((Compared { scenarios, notes }, named(trees)))
    }

    /// Pairs the captures by scenario, reduces each scenario once, and hands it on with the remarks on it. Returns the
    /// results and notes about what is left out.
    fn reduce_each<R>(
        &self,
        arguments: &CompareArguments,
        look: &LookArguments,
        each: impl Fn(&Scenario<'_>, &[SelectedSide<'_>], &Remarks) -> R,
    ) -> Result<(Vec<R>, Vec<Note>), Failure> {
        let owned = look.owned.owned(self.ownership.as_ref())?;
        let filter = look.select.filter();
        let (scenarios, notes) = self.pair(arguments)?;
        let results = scenarios.iter().map(|scenario| {
            let remarks = self.check(scenario, arguments)?;
            let reduction = Reduction::of(scenario, &owned);
            let sides = reduction.select(&self.names, &filter).map_err(|error| match error {
                ReductionError::Select(error) => Failure::from(error),
                error @ ReductionError::Units(_) => Failure::Usage(error.to_string()),
            })?;
            Ok(each(scenario, &sides, &remarks))
        });
        Ok((results.collect::<Result<_, Failure>>()?, notes))
    }

    /// Puts the captures together by scenario; says what is left out.
    fn pair(&self, arguments: &CompareArguments) -> Result<(Vec<Scenario<'_>>, Vec<Note>), Failure> {
        let pairing = Pairing { phase: arguments.phase.map(Into::into), across: arguments.across_scenarios };
        let sides: Vec<&[Capture]> = self.captures.iter().map(Vec::as_slice).collect();
        let (scenarios, notes) = scenarios::pair(&sides, &self.names, pairing);
        if scenarios.is_empty() {
            let notes: Vec<String> = notes.iter().map(Note::to_string).collect();
            return Err(Failure::Usage(format!("the sides have no scenario in common. {}", notes.join(" "))));
        }
        Ok((scenarios, notes))
    }

    /// Refuses what cannot be compared unless the user says so, and gives what is to be said.
    fn check(&self, scenario: &Scenario<'_>, arguments: &CompareArguments) -> Result<Remarks, Failure> {
        let sides = self.names.iter().zip(&scenario.sides);
        let recordings: Vec<(&str, &CaptureInfo)> =
            sides.flat_map(|(name, side)| side.iter().map(|capture| (name.as_str(), &capture.info))).collect();
        let Differences { refused, remarks } = comparable::differences(&recordings);
        if let Some(refusal) = refused.iter().find(|refusal| !arguments.allows(refusal.kind)) {
            return Err(Failure::Usage(refusal.to_string()));
        }
        let allowed = refused.iter().map(|refusal| note!(Limit, "Compared as you asked, although {}.", &refusal.what));
        Ok(Remarks { allowed: allowed.collect(), others: remarks })
    }
}

/// A scenario's tables.
fn compared(
    scenario: &Scenario<'_>,
    sides: &[SelectedSide<'_>],
    remarks: &Remarks,
    options: &Options,
) -> ComparedScenario {
    let remarks = [remarks.allowed.as_slice(), &remarks.others].concat();
    let sides = progress::of_step("analysing", || reduce(sides));
    progress::of_step("comparing", || ComparedScenario::of(scenario, sides, &remarks, options))
}

/// A scenario's call trees.
fn trees(
    sides: &[SelectedSide<'_>],
    remarks: &Remarks,
    drawing: tree::Drawing,
    options: &Options,
) -> Vec<TreeDifference> {
    let mut trees = progress::of_step("joining call trees", || differences(sides, drawing, options));
    for tree in &mut trees {
        for allowed in &remarks.allowed {
            tree.tree.subtitle.push_str(&format!(" \u{b7} {}", allowed.to_string().trim_end_matches('.')));
        }
    }
    trees
}

/// A pair's call trees and its name.
pub type NamedDifference = (String, TreeDifference);

/// Names trees by scenario and pair where there are several.
fn named(scenarios: Vec<(String, Vec<TreeDifference>)>) -> Vec<NamedDifference> {
    let several_scenarios = scenarios.len() > 1;
    let mut all = Vec::new();
    for (scenario, trees) in scenarios {
        let several_pairs = trees.len() > 1;
        for tree in trees {
            let pair = several_pairs.then(|| format!("{} -> {}", tree.base_name, tree.name));
            let scenario = several_scenarios.then(|| scenario.clone());
            all.push(([scenario, pair].into_iter().flatten().collect::<Vec<_>>().join(" \u{b7} "), tree));
        }
    }
    all
}

/// Compared scenarios.
pub struct Compared {
    /// Each scenario.
    pub scenarios: Vec<ComparedScenario>,
    /// Notes about what was left out.
    pub notes: Vec<Note>,
}

/// The captures that a source names.
fn paths_of(source: &Path) -> Result<Vec<PathBuf>, Failure> {
    if source == Path::new("-") || source.is_file() || is_capture(source) {
        return Ok(vec![source.to_owned()]);
    }
    if source.is_dir() {
        return Ok(counted(&Run::open(source)?));
    }
    let text = source.to_string_lossy();
    if text.contains(',') {
        let parts = text.split(',').filter(|part| !part.is_empty()).map(|part| paths_of(Path::new(part)));
        return Ok(parts.collect::<Result<Vec<_>, _>>()?.concat());
    }
    if text.contains(['*', '?', '[', '{']) {
        let found = matching(&text)?;
        return Ok(found.iter().map(|path| paths_of(path)).collect::<Result<Vec<_>, _>>()?.concat());
    }
    Err(Failure::Usage(format!(
        "{text}: there is no such capture, run or file; several are named by a folder, by a pattern in quotes ('runs/before-*'), or with commas between them"
    )))
}

/// The captures of a run that count: of variants that were run in turns, those of whole rounds that were not set aside.
fn counted(run: &Run) -> Vec<PathBuf> {
    let sides = run.sides();
    if sides.is_empty() {
        return run.captures();
    }
    let of = |side: fn(&stepscope_lab::run::Sides) -> &Vec<PathBuf>| sides.iter().flat_map(side).cloned();
    of(|sides| &sides.baseline).chain(of(|sides| &sides.candidate)).collect()
}

fn is_capture(path: &Path) -> bool {
    disk::is_capture(path) || path.join(disk::RAW_LOG_FILE).exists()
}

/// What a pattern matches, in order.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    let found = glob::glob(pattern).map_err(|error| Failure::Usage(format!("{pattern}: {error}")))?;
    let found: Vec<PathBuf> = found.collect::<Result<_, _>>()?;
    match found.is_empty() {
        true => Err(Failure::Usage(format!("{pattern}: nothing matches this pattern"))),
        false => Ok(found),
    }
}

/// Reads the captures of every side, on all CPUs.
fn read_all(paths: &[Vec<PathBuf>], importing: &ImportOptions) -> Result<Vec<Vec<Capture>>, Failure> {
    let all: Vec<&PathBuf> = paths.iter().flatten().collect();
    let mut read = parallel::map(&all, |path| load::capture_with(path, importing)).into_iter();
    paths.iter().map(|side| read.by_ref().take(side.len()).collect()).collect()
}

fn is_of_variant(capture: &Capture, variant: Option<&str>) -> bool {
    variant.is_none_or(|variant| capture.info.variant.as_deref() == Some(variant))
}

/// A side a variant, in the order of the captures.
fn by_variant(captures: Vec<Capture>) -> Vec<Vec<Capture>> {
    let mut sides: Vec<Vec<Capture>> = Vec::new();
    for capture in captures {
        match sides.iter_mut().find(|side| side[0].info.variant == capture.info.variant) {
            Some(side) => side.push(capture),
            None => sides.push(vec![capture]),
        }
    }
    sides
}

fn refuse_without_captures(
    sources: &[PathBuf],
    captures: &[Vec<Capture>],
    arguments: &CompareArguments,
) -> Result<(), Failure> {
    if let Some(variant) = arguments.variant.as_ref().filter(|_| captures.iter().any(Vec::is_empty)) {
        return Err(Failure::Usage(format!("not every side has captures of the variant {variant}")));
    }
    if let Some((source, _)) = sources.iter().zip(captures).find(|(_, captures)| captures.is_empty()) {
        return Err(Failure::Usage(format!("{}: there are no captures in it", source.display())));
    }
    if captures.len() < 2 {
        return Err(Failure::Usage(
            "there is nothing to compare with: name two captures or sets of captures, or a run that has several variants".to_owned(),
        ));
    }
    let mixed = |side: &&Vec<Capture>| by_variant_names(side).len() > 1;
    match captures.iter().zip(sources).find(|(side, _)| mixed(side)) {
        Some((side, source)) if sources.len() > 1 => Err(Failure::Usage(format!(
            "{}: it holds captures of several variants ({}): choose one with --variant, or name its folder",
            source.display(),
            by_variant_names(side).join(", ")
        ))),
        _ => Ok(()),
    }
}

fn by_variant_names(side: &[Capture]) -> Vec<String> {
    let mut names: Vec<String> =
        side.iter().map(|one| one.info.variant.clone().unwrap_or_else(|| "none".to_owned())).collect();
    names.sort();
    names.dedup();
    names
}

fn assume_duration<'a>(captures: impl Iterator<Item = &'a mut Capture>, assumed: Option<Duration>) {
    let Some(assumed) = assumed else { return };
    for info in captures.map(|capture| &mut capture.info).filter(|info| info.wall_ns().is_none()) {
        (info.start_ns, info.end_ns) = (Some(0), Some(assumed.as_nanos() as u64));
    }
}

/// What the sides are called: by variant if those differ, else by path, and no two alike.
fn names(sources: &[PathBuf], captures: &[Vec<Capture>]) -> Vec<String> {
    let variant = |side: &Vec<Capture>| side.first().and_then(|one| one.info.variant.clone());
    let variants: Vec<Option<String>> = captures.iter().map(variant).collect();
    let differ = |names: &[String]| names.iter().enumerate().all(|(at, name)| !names[..at].contains(name));
    if let Some(variants) = variants.into_iter().collect::<Option<Vec<String>>>().filter(|names| differ(names)) {
        return variants;
    }
    let last = |path: &PathBuf| {
        path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    let files: Vec<String> = sources.iter().map(last).collect();
    if files.len() == captures.len() && differ(&files) {
        return files;
    }
    let labels: Vec<String> =
        captures.iter().map(|side| side.first().map_or_else(String::new, summary::label)).collect();
    if sources.len() == captures.len() {
        let paths: Vec<String> = sources.iter().map(|source| source.display().to_string()).collect();
        if differ(&paths) {
            return paths;
        }
    }
    labels.iter().enumerate().map(|(at, label)| format!("{label} ({})", at + 1)).collect()
}
