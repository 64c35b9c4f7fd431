//! Comparison: what changed between sets of recordings, and how certain that is.
//!
//! # Sides
//! A *side* is one or more recordings of the same scenario, phase and variant: one per run. Costs are
//! [per step](crate::query::basis::Basis) where all recordings have steps, so that sides of different length and
//! real-time factor can be compared; else per second of wall time. Where no durations are known there are only shares,
//! and nothing is tested: shares are compositional, and when one function shrinks all others grow (erratum 14 of the
//! Gazebo study).
//!
//! # Rows and families
//! The [metrics] of the whole run, and the rows of each [`Family`]: functions by attributed,
//! self and inclusive cost; threads by name; categories of code; callers by blocked time. Functions are matched by
//! exact identity, then by [`renames`]; the rest is *new* or *vanished*.
//!
//! # Statistics
//! | a side has | interval | p |
//! |---|---|---|
//! | several runs | [hierarchical bootstrap](stepscope_stats::hierarchical): runs, then blocks of steps; BCa | [permutation](stepscope_stats::permutation) of the runs; at its floor, the tail of Student's t |
//! | one run | of the ratio of two [counts of samples](stepscope_stats::counts) | conditional binomial: *sampling noise only* |
//! | weights that are not counted, in one run | none | none |
//!
//! With three runs or fewer per side, the smallest p of a permutation test is 0.1: nothing can be *changed*, and the notes
//! say so. Within a family, p becomes q by Benjamini and Hochberg's rule, over the rows with at least
//! [`Options::least_count`] samples. Rows that are zero in every run are not tested. The
//! [headline figures](crate::analyses::metrics::HEADLINES) are a family of their own, so that they need not share their power
//! with other metrics.
//!
//! # The machine's speed
//! Where it was [measured beside](stepscope_model::MACHINE_SPEED) every run, times and costs are
//! [adjusted](stepscope_stats::control_variate) for it, row by row, if that predicts runs better. A note says which, and by how
//! much the intervals got narrower.
//!
//! # Machines
//! Where each of several machines has runs of both sides, as runs on a [cluster](../../../../docs/cluster.md) have, the
//! [differences between machines](stepscope_stats::strata) are taken out, and the machine's speed is not used.
//!
//! # Verdict
//! *changed* if q is at most [`Options::alpha`] and the [adjusted](Adjusted) interval excludes "no change"; else
//! *equivalent* if the 95 % interval of the ratio lies within the [tolerance](Options::tolerance); else *inconclusive*, with
//! an estimate of the extra runs needed per side. Tables show the interval that the verdict rests on: a changed row's
//! excludes "no change", and an inconclusive row's includes it.

mod chain;
pub mod evidence;
mod judge;
mod levels_note;
mod machines;
mod options;
mod reduction;
pub mod renames;
mod rows;
mod scenario_tables;
pub mod scenarios;
mod side;
mod slowness;
mod speed;
mod speed_note;
mod tables;
pub mod tree;

use std::thread;

use stepscope_model::{Note, note};

pub use evidence::{Evidence, Family};
pub use judge::{Adjusted, Assessment, Noise};
pub use options::Options;
pub use reduction::{ComparedScenario, Reduction, ReductionError, differences};
pub use renames::Rename;
pub use rows::{MetricRow, Row};
pub use scenario_tables::of_scenarios;
pub use side::{SelectedSide, Side, reduce};
pub use tables::tables;

use crate::analyses::metrics;
use crate::query::basis::Basis;

/// What changed between two sides.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Name of the side before.
    pub before: String,
    /// Name of the side after.
    pub after: String,
    /// Numbers of runs before and after.
    pub runs: (usize, usize),
    /// What costs are divided by.
    pub basis: Basis,
    /// Rows with fewer samples on both sides together are not tested.
    pub least_count: u64,
    /// Unit of the samples' weights.
    pub unit: String,
    /// The noise that intervals account for.
    pub noise: Noise,
    /// The metrics of the whole run.
    pub metrics: Vec<MetricRow>,
    /// Notes for every output.
    pub notes: Vec<Note>,
    families: [Vec<Row>; Family::ALL.len()],
}

impl Comparison {
    /// Compares two sides.
    ///
    /// # Panics
    /// If a side has no runs, or their bases differ.
    pub fn of(before: &Side, after: &Side, options: &Options) -> Self {
        let basis = before.runs[0].basis;
        let all = || before.runs.iter().chain(&after.runs);
        assert!(all().all(|run| run.basis == basis), "only what is divided by the same can be compared");
        let judge = judge::Judge::new(before, after, options);
        let family = |family| {
            let mut rows = rows::of_family(before, after, family, &judge, options);
            judge::decide(rows.iter_mut().map(|row| &mut row.assessment), options);
            rows.sort_by(Row::compare);
            rows
        };
        // Thousands of rows are resampled thousands of times.
        let families = thread::scope(|scope| {
            let family = &family;
            let workers = Family::ALL.map(|one| scope.spawn(move || family(one)));
            workers.map(|rows| rows.join().expect("judging does not panic"))
        });
        let mut metrics = rows::of_metrics(before, after, &judge, options);
        let has_steps = basis == Basis::PerStep;
        let (headlines, others): (Vec<_>, Vec<_>) =
            metrics.iter_mut().partition(|row| metrics::is_headline(&row.name, has_steps));
        for family in [headlines, others] {
            judge::decide(family.into_iter().map(|row| &mut row.assessment), options);
        }
        let noise = judge.noise().clone();
        let notes = noise.note((before.runs.len(), after.runs.len()), options).into_iter();
        let notes = notes.chain(judge.machines_note(before, after)).chain(basis_note(basis)).collect();
        let mut comparison = Self {
            before: before.name.clone(),
            after: after.name.clone(),
            runs: (before.runs.len(), after.runs.len()),
            basis,
            unit: all().map(|run| run.unit.clone()).next().unwrap_or_default(),
            least_count: options.least_count,
            noise,
            metrics,
            notes,
            families,
        };
        comparison.notes.extend(speed_note::of(&comparison));
        comparison.notes.extend(levels_note::of(&comparison));
        comparison
    }

    /// The rows of a family: those that changed first, then by the size of the difference.
    pub fn rows(&self, family: Family) -> &[Row] {
        &self.families[family as usize]
    }
}

fn basis_note(basis: Basis) -> Option<Note> {
    match basis {
        Basis::PerStep => None,
        Basis::PerBuild => Some(note!(Fact, "Costs are those of whole builds.")),
        Basis::PerSecond => Some(note!(
            Limit,
            "Costs are per second of wall time, because some captures have no steps. If the sides do different numbers of \
             steps per second, compare costs per step instead: record steps."
        )),
        Basis::Share => Some(note!(
            Limit,
            "Costs are shares of all samples, because durations are unknown or coverage is low. When one function shrinks, \
             the shares of all others grow, so nothing is tested. Give the duration with --assume-duration."
        )),
    }
}

#[cfg(test)]
mod tests;
