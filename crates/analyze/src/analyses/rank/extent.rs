//! [`Extent`]: how much a scenario's captures hold, which turns weights into costs.

use std::collections::BTreeSet;

use stepscope_model::{Column, Kind, Note, NoteValue, note};

use crate::query::basis::{Basis, is_build};
use crate::query::coverage;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::weights::{StackWeights, percent};

/// The weight, steps and duration of captures that are evidence of one scenario.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    captures: usize,
    /// Unit of the weights.
    pub(crate) unit: String,
    /// All weight; with steps, that of the steps.
    pub(crate) total: u128,
    /// Steps, if all captures have some.
    pub(crate) steps: Option<u64>,
    wall_ns: Option<u64>,
    low_coverage: bool,
    /// Captures of builds.
    builds: usize,
    /// Steps within the loading phase, which are no part of its costs' basis.
    loading_steps: usize,
}

impl Extent {
    /// Adds a capture, and returns its weights. With steps, samples outside of them do not count.
    pub(crate) fn add(&mut self, selection: &Selection<'_>) -> StackWeights {
        let loops = Loops::of_costs(selection);
        let count = loops.as_ref().map(|loops| loops.main().count() as u64);
        let first = self.captures == 0;
        // Of several captures all must say, or the sum means nothing.
        let plus = |sum: Option<u64>, part: Option<u64>| if first { part } else { Some(sum?.saturating_add(part?)) };
        self.steps = plus(self.steps, count);
        self.wall_ns = plus(self.wall_ns, selection.wall_ns().filter(|wall| *wall > 0));
        self.low_coverage |= coverage::percent(selection).is_some_and(|percent| percent < coverage::LEAST_PERCENT);
        self.captures += 1;
        self.builds += usize::from(is_build(selection.capture()));
        if loops.is_none() {
            self.loading_steps += Loops::of(selection).map_or(0, |loops| loops.main().count());
        }
        self.unit = selection.event().map_or(String::new(), |event| event.unit.clone());
        let timed = || selection.samples().all(|sample| sample.time_ns.is_some());
        let weights = match loops.filter(|_| timed()) {
            Some(loops) => loops.sample_weights(selection),
            None => StackWeights::of_samples(selection),
        };
        self.total += weights.total().weight;
        weights
    }

    /// The cost of a weight.
    pub(crate) fn cost(&self, weight: u128, basis: Basis) -> f64 {
        let weight_f64 = weight as f64;
        match basis {
            Basis::PerStep => weight_f64 / self.steps.unwrap_or(1) as f64,
            Basis::PerBuild => weight_f64 / self.captures.max(1) as f64,
            Basis::PerSecond => weight_f64 * 1e9 / self.wall_ns.unwrap_or(1) as f64,
            Basis::Share => percent(weight, self.total).unwrap_or(0.0),
        }
    }

    /// Says that steps within the loading phase do not stand for it.
    pub(crate) fn loading_note(&self) -> Option<Note> {
        let steps = NoteValue::plural(self.loading_steps, "step");
        (self.loading_steps > 0).then(|| {
            note!(Fact, "All of the loading phase counts, also outside its {}. See `show --view steps`.", steps)
        })
    }

    /// The scenario's cost, and how much of it is under owned code.
    pub(crate) fn note(&self, under_owned: u128, basis: Basis) -> Note {
        let listed = percent(under_owned, self.total).unwrap_or(0.0);
        let cost = NoteValue::of(self.cost(self.total, basis).round() as u128, &self.unit);
        let of_it = match listed {
            100.0 => "all".to_owned(),
            listed => NoteValue::percent(listed).to_string(),
        };
        match basis {
            Basis::PerStep => {
                let steps = NoteValue::plural(self.steps.unwrap_or(0) as usize, "step");
                note!(Fact, "{} per step ({}), {} of it in the functions listed.", cost, steps, of_it)
            }
            Basis::PerBuild => note!(Fact, "{} per build, {} of it in the functions listed.", cost, of_it),
            Basis::PerSecond => note!(Fact, "{} per second, {} of it in the functions listed.", cost, of_it),
            Basis::Share => note!(Fact, "{} of the weight is in the functions listed.", NoteValue::percent(listed)),
        }
    }

    /// Wall time of all captures, if known.
    pub(crate) fn wall_ns(&self) -> Option<u64> {
        self.wall_ns
    }

    fn is_timed(&self) -> bool {
        !self.low_coverage && self.unit == "ns" && self.wall_ns.is_some()
    }
}

/// The best basis that all scenarios share, each with its label, and a note if it is not per step.
pub(crate) fn common_basis(scenarios: &[(&str, &Extent)], notes: &mut Vec<Note>) -> Basis {
    let named = |is: &dyn Fn(&Extent) -> bool| -> String {
        let named = scenarios.iter().filter(|(_, extent)| is(extent)).map(|(label, _)| *label);
        named.collect::<Vec<_>>().join(", ")
    };
    let units: BTreeSet<&str> = scenarios.iter().map(|(_, extent)| extent.unit.as_str()).collect();
    if scenarios.is_empty() {
        return Basis::Share;
    }
    let low = named(&|extent| extent.low_coverage);
    if !low.is_empty() {
        let least = NoteValue::of(coverage::LEAST_PERCENT, "percent");
        notes.push(note!(Limit, "Costs are shares of samples: coverage is below {} in {}.", least, low));
        return Basis::Share;
    }
    if units.len() > 1 {
        let units: Vec<&str> = units.into_iter().collect();
        notes.push(note!(Limit, "Costs are shares: the scenarios have different units ({}).", units.join(", ")));
        return Basis::Share;
    }
    let has_steps = |extent: &Extent| extent.steps.is_some_and(|steps| steps > 0);
    if scenarios.iter().all(|(_, extent)| has_steps(extent)) {
        return Basis::PerStep;
    }
    if scenarios.iter().all(|(_, extent)| extent.builds > 0 && extent.builds == extent.captures) {
        notes.push(note!(Fact, "Costs are those of whole builds."));
        return Basis::PerBuild;
    }
    let are_stepless = match scenarios {
        [(only, _)] => format!("{only} has no steps"),
        _ if !scenarios.iter().any(|(_, extent)| has_steps(extent)) => "no scenario has steps".to_owned(),
        _ => format!("not all scenarios have steps ({} have none)", named(&|extent| !has_steps(extent))),
    };
    if scenarios.iter().all(|(_, extent)| extent.is_timed()) {
        // Steps within loading have a note of their own.
        if scenarios.iter().any(|(_, extent)| extent.loading_steps == 0) {
            notes.push(note!(Limit, "Costs are per second of wall time: {}.", are_stepless));
        }
        return Basis::PerSecond;
    }
    notes.push(note!(Limit, "Costs are shares: {}, and not all weights are times.", are_stepless));
    Basis::Share
}

/// A column of costs.
pub(crate) fn cost_column(name: &str, unit: &str, basis: Basis, doc: &str) -> Column {
    let kind = match basis {
        Basis::Share => Kind::Percent,
        _ if unit == "ns" => Kind::Duration,
        _ => Kind::Number,
    };
    Column::new(name, kind, basis.unit(unit), doc)
}
