//! [`Reduction`]: a scenario's captures, reduced once for its tables and its call trees.
//!
//! ```text
//! let reduction = Reduction::of(&scenario, &owned);          // functions of every capture
//! let sides = reduction.select(&names, &filter)?;            // with a filter
//! let compared = ComparedScenario::of(&scenario, reduce(&sides), &remarks, &options);   // for tables
//! let trees = differences(&sides, drawing, &options);                                   // for flame graphs
//! ```

use stepscope_model::{Capture, Note, TreeDifference};
use thiserror::Error;

use super::Comparison;
use super::options::Options;
use super::scenarios::Scenario;
use super::side::{SelectedSide, Side};
use super::tree::{self, Drawing};
use crate::parallel;
use crate::query::functions::Functions;
use crate::query::ownership::Owned;
use crate::query::select::{Filter, SelectError, Selection};

/// A scenario's captures with their functions.
#[derive(Debug)]
pub struct Reduction<'a> {
    sides: Vec<Vec<(&'a Capture, Functions)>>,
}

/// Why captures of a scenario cannot be selected together.
#[derive(Debug, Error)]
pub enum ReductionError {
    /// One capture cannot satisfy the filter.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The captures have no unit in common.
    #[error(
        "the captures have samples in different units ({}); choose an event that all of them have with --event",
        .0.join(", ")
    )]
    Units(Vec<String>),
}

impl<'a> Reduction<'a> {
    /// Finds the functions of every capture.
    pub fn of(scenario: &Scenario<'a>, owned: &Owned) -> Self {
        let captures: Vec<&Capture> = scenario.sides.iter().flatten().copied().collect();
        let mut functions = parallel::map(&captures, |capture| Functions::of(capture, owned)).into_iter();
        let sides = scenario.sides.iter().map(|side| side.iter().copied().zip(functions.by_ref()).collect());
        Self { sides: sides.collect() }
    }

    /// What the filter selects of each capture; `names` are those of the sides.
    ///
    /// # Errors
    /// If a capture cannot satisfy the filter, or units differ.
    pub fn select(&self, names: &[String], filter: &Filter) -> Result<Vec<SelectedSide<'_>>, ReductionError> {
        let mut sides = Vec::new();
        for (name, captures) in names.iter().zip(&self.sides) {
            let runs = captures.iter().map(|(capture, functions)| Selection::new(capture, functions, filter));
            sides.push(SelectedSide { name: name.clone(), runs: runs.collect::<Result<_, SelectError>>()? });
        }
        check_units(&sides)?;
        Ok(sides)
    }
}

fn check_units(sides: &[SelectedSide<'_>]) -> Result<(), ReductionError> {
    let runs = sides.iter().flat_map(|side| &side.runs);
    let mut units: Vec<String> = runs.filter_map(|run| run.event()).map(|event| event.unit.clone()).collect();
    units.retain(|unit| !unit.is_empty());
    units.sort();
    units.dedup();
    if units.len() > 1 { Err(ReductionError::Units(units)) } else { Ok(()) }
}

/// A scenario's sides and their comparisons.
#[derive(Debug, Clone)]
pub struct ComparedScenario {
    /// Scenario and phase, as far as they are known.
    pub label: String,
    /// The scenario's name, if the captures have it.
    pub name: Option<String>,
    /// The sides, in the order given.
    pub sides: Vec<Side>,
    /// Each side but the first, compared with the first.
    pub to_first: Vec<Comparison>,
    /// Each side but the first, compared with the one before it.
    pub to_previous: Vec<Comparison>,
}

impl ComparedScenario {
    /// Compares each side with the first and with the one before it. `remarks` are the first notes of every comparison.
    pub fn of(scenario: &Scenario<'_>, sides: Vec<Side>, remarks: &[Note], options: &Options) -> Self {
        let compare = |before: usize, after: usize| {
            let mut comparison = Comparison::of(&sides[before], &sides[after], options);
            comparison.notes.splice(0..0, remarks.iter().cloned());
            comparison
        };
        let to_first: Vec<Comparison> = (1..sides.len()).map(|side| compare(0, side)).collect();
        let previous = |side: usize| if side == 1 { to_first[0].clone() } else { compare(side - 1, side) };
        let to_previous = (1..sides.len()).map(previous).collect();
        Self { label: scenario.label(), name: scenario.name.clone(), sides, to_first, to_previous }
    }

    /// Every compared pair once: with the first side, then with the one before.
    pub fn pairs(&self) -> impl Iterator<Item = &Comparison> {
        // The second side's predecessor is the first.
        self.to_first.iter().chain(self.to_previous.iter().skip(1))
    }
}

/// The call trees of every pair, in the order of [`ComparedScenario::pairs`].
pub fn differences(sides: &[SelectedSide<'_>], drawing: Drawing, options: &Options) -> Vec<TreeDifference> {
    let with_first = (1..sides.len()).map(|side| (0, side));
    let with_previous = (2..sides.len()).map(|side| (side - 1, side));
    let difference =
        |(before, after): (usize, usize)| tree::difference(&sides[before], &sides[after], drawing, options);
    with_first.chain(with_previous).map(difference).collect()
}

#[cfg(test)]
mod tests {
    use stepscope_model::Event;

    use super::*;
    use crate::compare::scenarios::{self, Pairing};
    use crate::compare::side::reduce;
    use crate::drawn::Drawing as Drawn;

    fn capture(unit: &str, samples: u64) -> Capture {
        let event = Event::sampled("cpu-clock", unit);
        Drawn::new().window(0..1_000_000).folded(event, &format!("main;gz::Step {samples}")).capture
    }

    fn pair(sides: &[&[Capture]]) -> Result<(ComparedScenario, Vec<TreeDifference>), ReductionError> {
        let names: Vec<String> = (0..sides.len()).map(|side| format!("variant {side}")).collect();
        let (scenarios, _) = scenarios::pair(sides, &names, Pairing::default());
        let reduction = Reduction::of(&scenarios[0], &Owned::nothing());
        let selected = reduction.select(&names, &Filter::default())?;
        let options = Options { replicates: 100, ..Options::default() };
        let compared = ComparedScenario::of(&scenarios[0], reduce(&selected), &["A remark.".into()], &options);
        Ok((compared, differences(&selected, Drawing::default(), &options)))
    }

    #[test]
    fn one_reduction_gives_tables_and_trees_of_the_same_pairs() {
        let captures = [[capture("ns", 100)], [capture("ns", 200)], [capture("ns", 300)]];
        let sides: Vec<&[Capture]> = captures.iter().map(|side| side.as_slice()).collect();
        let (compared, trees) = pair(&sides).unwrap();
        let of_tables: Vec<(&str, &str)> = compared.pairs().map(|pair| (&*pair.before, &*pair.after)).collect();
        let of_trees: Vec<(&str, &str)> = trees.iter().map(|tree| (&*tree.base_name, &*tree.name)).collect();
        assert_eq!(of_tables, [("variant 0", "variant 1"), ("variant 0", "variant 2"), ("variant 1", "variant 2")]);
        assert_eq!(of_tables, of_trees);
        assert_eq!(compared.to_first[0].notes[0], "A remark.");
    }

    #[test]
    fn captures_in_different_units_are_refused() {
        let error = pair(&[&[capture("ns", 100)], &[capture("cycles", 100)]]).unwrap_err();
        assert!(error.to_string().contains("cycles, ns"), "{error}");
    }
}
