//! How each cost grows with the size: its law, its exponent and its cost at larger sizes.
//!
//! # Series
//! The captures of a sweep (`stepscope sweep`) have a size and perhaps a number of CPUs. A *series* is one scenario, variant,
//! number of CPUs and phase at several sizes. What is measured once per run has a law of its own:
//!
//! | kind | is |
//! |---|---|
//! | `metric` | a [metric](crate::analyses::metrics) of the whole recording, and the number of threads. Of a loading phase `wall` is the loading time. |
//! | `counter` | the largest reading of a counter that is a level, summed over processes |
//! | `function` | attributed cost of a function, per step, else per second; of a loading phase all of it |
//! | `inclusive` | inclusive cost of a function |
//! | `family` | self cost of a [family](crate::query::family) of functions that are not owned |
//!
//! Functions, callees and families count from [`LEAST_SHARE`] of the cost at any size.
//!
//! # Law
//! [`stepscope_stats::growth`] has the model, its evidence and its limits. A function's cost in a run is a number of samples,
//! so it also scatters by 1 / samples. If a run has no sample of a function, the runs of that size count as one, their mean.
//!
//! # Change
//! Two sweeps of the same scenario compare by their exponents. The interval of the difference combines the distances of both
//! intervals from their estimates (Zou and Donner, *Construction of Confidence Limits About Effect Measures*, Statistics in
//! Medicine 27, 2008). A law changed if the interval excludes 0 after adjustment for the number of rows (Bonferroni: the
//! distances are scaled by the ratio of normal quantiles).
//!
//! # Limits
//! A law holds for the measured sizes. The cost at 2 and 10 times the largest size assumes that the law goes on: no cache
//! is exceeded, no queue fills. A cost per second of a program that uses all of a CPU has no law: use steps.

mod change;
mod chart;
mod fits;
mod measure;
mod tables;

use stepscope_stats::growth::Growth;

pub use change::change;
pub use chart::marks;
pub(crate) use chart::{Curve, curves_table};
pub use fits::{Fits, Options};
pub use measure::series_label;
pub(crate) use measure::{FunctionCosts, LoopCosts, Measure, Measured, Series, series};
pub use tables::table;

/// Least share of the cost, in percent, from which a function or family has a row.
pub const LEAST_SHARE: f64 = 1.0;

/// The law in words: `inconclusive` if the data do not tell.
pub(crate) fn law_name(growth: &Growth) -> String {
    match growth.law() {
        Some(stepscope_stats::Law::Free) => format!("n^{:.2}", growth.exponent.value),
        Some(law) => law.name().to_owned(),
        None => "inconclusive".to_owned(),
    }
}

#[cfg(test)]
mod tests;
