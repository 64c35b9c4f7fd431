//! `stepscope compare`: what changed between sets of captures, and how well that is known.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::compare::{chain, stacked, tables};
use stepscope_model::Table;

use crate::arguments::{OwnedArguments, SelectArguments};
use crate::failure::Failure;
use crate::output::TableArguments;
use crate::sides::{CompareArguments, Compared, ComparedScenario, Sides};

/// Rows of each table for people.
const ROWS_FOR_PEOPLE: usize = 12;

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
    select: SelectArguments,
    #[command(flatten)]
    owned: OwnedArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Compare {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let sides = Sides::read(&self.sources, &self.compare)?;
        let options = self.compare.options(sides.tolerance())?;
        let compared = sides.compare(&self.compare, &self.select, &self.owned, &options)?;
        self.output.print_at_most(ROWS_FOR_PEOPLE, all_tables(&compared))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Compares the variants of a run and prints what changed.
pub fn of_run(folder: &Path, compare: &CompareArguments, output: &TableArguments) -> Result<(), Failure> {
    let sides = Sides::read(&[folder.to_owned()], compare)?;
    let options = compare.options(sides.tolerance())?;
    let compared = sides.compare(compare, &SelectArguments::default(), &OwnedArguments::default(), &options)?;
    output.print_at_most(ROWS_FOR_PEOPLE, all_tables(&compared))
}

/// The tables of every scenario and pair; columns tell them apart where there are several.
pub fn all_tables(compared: &Compared) -> Vec<Table> {
    let several_scenarios = compared.scenarios.len() > 1;
    let several_pairs = compared.scenarios.iter().any(|one| one.sides.len() > 2);
    let mut columns = Vec::new();
    if several_scenarios {
        columns.push(("scenario", "The scenario and phase."));
    }
    let scenario = |one: &ComparedScenario| several_scenarios.then(|| one.label.clone());
    let chains = compared.scenarios.iter().filter(|_| several_pairs).map(|one| {
        let table = chain(&one.sides, &one.to_first, &one.to_previous);
        (scenario(one).into_iter().collect(), vec![table])
    });
    let mut all = stacked(&columns, chains.collect());
    if several_pairs {
        columns.push(("variants", "Which side is compared with which: `before -> after`."));
    }
    let pairs = compared.scenarios.iter().flat_map(|one| one.pairs().map(move |pair| (one, pair)));
    let parts = pairs.map(|(one, pair)| {
        let variants = several_pairs.then(|| format!("{} -> {}", pair.before, pair.after));
        (scenario(one).into_iter().chain(variants).collect(), tables(pair))
    });
    all.extend(stacked(&columns, parts.collect()));
    if let Some(first) = all.first_mut() {
        first.notes.extend(compared.notes.iter().cloned());
    }
    all
}
