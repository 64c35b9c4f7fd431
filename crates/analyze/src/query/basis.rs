//! What costs are given in, so that recordings of different length can be compared.
//!
//! A cost *per step* is best: it is what the simulation loop pays, whatever the recording's length and however many steps
//! it got through. The loading phase is not divided into steps: all of its time counts. There, and where no steps are known, cost *per second of wall time* is next. Both need to know that what was
//! sampled is what was used: below [50 % coverage](crate::query::coverage::LEAST_PERCENT), and for stacks without a
//! duration, there are only *shares* (erratum 3 of the Gazebo study), which are compositional: when one
//! function shrinks all others grow (erratum 14).

use crate::query::coverage;
use crate::query::select::Selection;
use crate::query::steps::Loops;

/// What costs are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// The number of simulation steps.
    PerStep,
    /// Seconds of wall time.
    PerSecond,
    /// All of the weight: percent of it.
    Share,
}

impl Basis {
    /// The best one that a capture allows.
    pub fn of(selection: &Selection<'_>) -> Self {
        if coverage::percent(selection).is_some_and(|percent| percent < coverage::LEAST_PERCENT) {
            return Basis::Share;
        }
        let timed = || selection.samples().all(|sample| sample.time_ns.is_some());
        if Loops::of_costs(selection).is_some() && timed() {
            return Basis::PerStep;
        }
        if selection.wall_ns().is_some_and(|wall| wall > 0) { Basis::PerSecond } else { Basis::Share }
    }

    /// The best basis that all of these support.
    pub fn common<'s, 'a: 's>(selections: impl IntoIterator<Item = &'s Selection<'a>>) -> Self {
        // Selections with steps and selections with seconds only have seconds in common.
        selections.into_iter().map(Self::of).max().unwrap_or(Basis::Share)
    }

    /// The unit of a cost whose weight is in `unit`.
    pub fn unit(self, unit: &str) -> String {
        match self {
            Basis::PerStep => format!("{unit}/step"),
            Basis::PerSecond => format!("{unit}/s"),
            Basis::Share => "percent".to_owned(),
        }
    }
}
