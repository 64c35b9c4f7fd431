//! Comparison: what changed between sets of recordings, and how well that is known.
//!
//! # Sides
//! A *side* is one or more recordings of the same scenario, phase and variant: one a run. Costs are
//! [per step](crate::query::basis::Basis) where all recordings know their steps, so that sides of different length and different
//! real-time factor can be compared; per second of wall time where not. Only where no durations are known there are shares,
//! and then nothing is tested: shares are compositional, and when one function shrinks all others grow (erratum 14 of the
//! Gazebo study).
//!
//! # Rows and families
//! The figures of the [whole run](crate::analyses::metrics), and for each [`Family`] its rows: functions by what is credited to them,
//! by self and by inclusive cost; threads by name; kinds of code; callers by blocked time. Functions are joined by exact
//! identity, those on one side alone by [`renames`]; what is left is *new* or *vanished*.
//!
//! # How well it is known
//! | a side has | interval | p |
//! |---|---|---|
//! | several runs | [hierarchical bootstrap](stepscope_stats::hierarchical): runs, then blocks of steps; BCa | [permutation](stepscope_stats::permutation) of the runs; at its floor, the tail of Student's t |
//! | one run | of the ratio of two [counts of samples](stepscope_stats::counts) | conditional binomial: *sampling noise only* |
//! | weights that are not counted, in one run | none | none |
//!
//! With three runs or fewer a side, the smallest p that a permutation test can give is 0.1: nothing is ever called changed,
//! and the notes say so. Within a family p becomes q by Benjamini and Hochberg's rule, over the rows with at least
//! [`Options::least_count`] samples.
//!
//! # Verdict
//! *changed* if q is at most [`Options::alpha`] and the interval does not hold "no change"; else *equivalent* if the interval
//! of the ratio lies within the [tolerance](Options::tolerance); else *inconclusive*, with how many more runs a side would.

pub mod evidence;
mod judge;
pub mod renames;
mod rows;
pub mod scenarios;
mod tables;
pub mod tree;

use std::thread;

use stepscope_stats::hierarchical;

use crate::query::basis::Basis;
pub use evidence::{Evidence, Family};
pub use judge::{Judged, Noise};
pub use renames::Rename;
pub use rows::{MetricRow, Row};
pub use tables::{chain, stacked, tables};

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Seed of everything random.
    pub seed: u64,
    /// Resamples of the bootstrap.
    pub replicates: usize,
    /// Of intervals, e.g. 0.95.
    pub confidence: f64,
    /// Changed is what has at most this q.
    pub alpha: f64,
    /// Equivalent is what has changed by at most this part, e.g. 0.05.
    pub tolerance: f64,
    /// Rows with fewer samples on both sides together are not tested.
    pub least_count: u64,
    /// Which function after is which before, as far as the user says it.
    pub renames: Vec<Rename>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            replicates: hierarchical::REPLICATES,
            confidence: 0.95,
            alpha: 0.05,
            tolerance: 0.05,
            least_count: 30,
            renames: Vec::new(),
        }
    }
}

/// Recordings of one variant.
#[derive(Debug, Clone)]
pub struct Side {
    /// What it is called: the variant, else the capture.
    pub name: String,
    /// What each run says. Never empty; all of one basis.
    pub runs: Vec<Evidence>,
}

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
    /// Unit of the samples' weights.
    pub unit: String,
    /// What the intervals know of.
    pub noise: Noise,
    /// The figures of the whole run.
    pub metrics: Vec<MetricRow>,
    /// Remarks for every output, in sentences.
    pub notes: Vec<String>,
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
            judge::decide(rows.iter_mut().map(|row| &mut row.judged), options);
            rows.sort_by(Row::compare);
            rows
        };
        // Thousands of rows are resampled thousands of times.
        let families = thread::scope(|scope| {
            let family = &family;
            let begun = Family::ALL.map(|one| scope.spawn(move || family(one)));
            begun.map(|rows| rows.join().expect("judging does not panic"))
        });
        let mut metrics = rows::of_metrics(before, after, &judge, options);
        judge::decide(metrics.iter_mut().map(|row| &mut row.judged), options);
        let noise = judge.noise().clone();
        let mut notes = noise.notes((before.runs.len(), after.runs.len()), options);
        notes.extend(basis_note(basis));
        Self {
            before: before.name.clone(),
            after: after.name.clone(),
            runs: (before.runs.len(), after.runs.len()),
            basis,
            unit: all().map(|run| run.unit.clone()).next().unwrap_or_default(),
            noise,
            metrics,
            notes,
            families,
        }
    }

    /// The rows of a family: those that changed first, then by the size of the difference.
    pub fn rows(&self, family: Family) -> &[Row] {
        &self.families[family as usize]
    }
}

#[cfg(test)]
mod tests;

fn basis_note(basis: Basis) -> Option<String> {
    match basis {
        Basis::PerStep => None,
        Basis::PerSecond => {
            Some("Costs are per second of wall time: not all captures know their steps. Where the two sides get through different numbers of steps in a second, that is not the cost of a step.".to_owned())
        }
        Basis::Share => Some(
            "Costs are shares of all weight: no durations are known (or coverage is low). When one function shrinks the shares of all others grow, so nothing is tested; tell how long each was recorded with --assume-duration.".to_owned(),
        ),
    }
}
