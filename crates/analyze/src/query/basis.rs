//! The basis of costs: per step, per second, per build, or as shares.
//!
//! Recordings differ in length and speed. A cost *per step* does not depend on either. Without steps, and in the loading
//! phase, all of whose time counts, costs are *per second of wall time*. A build is one piece of work, so costs are those *of the
//! whole build*: a faster build has a higher rate. All require that samples cover the CPU time: below
//! [50 % coverage](crate::query::coverage::LEAST_PERCENT), and for stacks without a duration, costs are *shares* (erratum 3 of
//! the Gazebo study). Shares are compositional: when one function shrinks, all others grow (erratum 14).

use stepscope_model::Capture;
use stepscope_model::compiler_work::JOBS_MODULE;

use crate::query::coverage;
use crate::query::select::Selection;
use crate::query::steps::Loops;

/// Whether a capture is of a build that `stepscope build` recorded.
pub fn is_build(capture: &Capture) -> bool {
    capture.modules.iter().any(|module| module.path == JOBS_MODULE)
}

/// What costs are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// The number of simulation steps.
    PerStep,
    /// Nothing: the cost of a whole build.
    PerBuild,
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
        if is_build(selection.capture()) {
            return Basis::PerBuild;
        }
        if Loops::of_costs(selection).is_some() && timed() {
            return Basis::PerStep;
        }
        if selection.wall_ns().is_some_and(|wall| wall > 0) { Basis::PerSecond } else { Basis::Share }
    }

    /// The best basis that all of these support.
    pub fn common<'s, 'a: 's>(selections: impl IntoIterator<Item = &'s Selection<'a>>) -> Self {
        let common = |one: Self, other: Self| match (one, other) {
            (Basis::PerStep, Basis::PerBuild) | (Basis::PerBuild, Basis::PerStep) => Basis::PerSecond,
            // Selections with steps and selections with seconds only have seconds in common.
            (one, other) => one.max(other),
        };
        selections.into_iter().map(Self::of).reduce(common).unwrap_or(Basis::Share)
    }

    /// The unit of a cost whose weight is in `unit`.
    pub fn unit(self, unit: &str) -> String {
        match self {
            Basis::PerStep => format!("{unit}/step"),
            Basis::PerBuild => format!("{unit}/build"),
            Basis::PerSecond => format!("{unit}/s"),
            Basis::Share => "percent".to_owned(),
        }
    }
}
