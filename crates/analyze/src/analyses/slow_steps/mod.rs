//! Slow steps: the costs of the slowest steps that typical steps do not have.
//!
//! A profile of a whole run shows typical steps; it hides a cost of 20 ms in every 50th step. This analysis splits the steps
//! by time, and compares each function's cost per slow step with its cost per typical step.
//!
//! # Which steps
//! Steps are split by one of two times. Both exclude [pacing](crate::analyses::step_times), so that it works for a loop with
//! a fixed rate, whose steps all take equally long on the clock:
//!
//! - *work*: the time without waits for a CPU. With wake-ups, these are the CPU waits on the
//!   [critical path](crate::analyses::critical_path), including those of other threads; else those of the loop's thread;
//! - *clock*: the whole time.
//!
//! The loop's first step loads what the others use, and is left out. *Typical* steps are those from the 40th to the 60th
//! percentile. Unless the user gives a percentile, *slow* steps are
//!
//! 1. those beyond a *natural gap* in the work: a separate group of steps that do more than all others ([`natural_gap`]);
//! 2. if there is none, those beyond a gap in the time on the clock;
//! 3. if there is none, those on the upper of [two levels](stepscope_stats::two_levels) of the work, then of the time;
//!    typical steps are then the middle ones of the lower level;
//! 4. if there is one level, those from the 95th percentile on, on the clock.
//!
//! Why not always p95: if 2 % of the steps do extra work, the slowest 5 % include 3 % without it, and each cost in the slow
//! set is diluted to two fifths. With the gap, the cost is that of a slow step. Without a gap, `in_slow` is the share of slow
//! steps that have the function. Why work first: on a busy machine, steps are slow because other programs use the CPU; the
//! table of parts shows that delay.
//!
//! # What is compared
//! For each function, the mean per slow step minus the mean per typical step, of
//!
//! - its on-CPU time on all threads: attributed, self and inclusive, as [`hotspots`](crate::analyses::hotspots) defines them
//!   (attributed to the nearest function of the program if nothing is owned);
//! - the blocked time of the *loop's thread* attributed to it, without [pacing](crate::analyses::step_times). For other
//!   threads it would only show that idle threads are idle for longer in longer steps.
//!
//! Samples and waits belong to the step in whose interval they fall ([`steps`](crate::query::steps)).
//!
//! Where they were recorded, allocations and system calls are compared, too: numbers, bytes and time, attributed alike. Each counts for the
//! step at its time. Where only the time of several together is known, they are spread over that time.
//!
//! The 95 % interval is BCa, from [resampling blocks of consecutive steps](stepscope_stats::bootstrap); a step stays in its
//! set. The interval is valid for one row: five of a hundred rows of noise exclude zero.
//!
//! # Order
//! Rows are sorted by the difference in attributed on-CPU time plus that of blocked time. Waits for other threads (locks,
//! conditions, any wait that a thread ended) do not count here: the work of the other thread has rows of its own.

mod comparison;
mod counted;
mod sets;
mod tables;
#[cfg(test)]
mod tests;

use stepscope_model::{CallTree, Dimension, Table, TreeDifference, quantity};
use stepscope_stats::bootstrap::{self, BlockBootstrap};

use crate::analyses::calltree::{self, Evidence, WeightedStack};
use crate::analysis::{Analysis, AnalysisOption, OptionValues, Part, ReportSection, View};
use crate::query::select::Selection;
use crate::query::waits::blocked_ns;

use comparison::Comparison;
use sets::StepKind;
pub use sets::{Measure, Sets, Slow, Split, natural_gap};

/// How slow steps are found and compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Which steps are slow.
    pub slow: Slow,
    /// Resamples for the intervals.
    pub replicates: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { slow: Slow::default(), replicates: bootstrap::REPLICATES }
    }
}

const CONFIDENCE: f64 = 0.95;

/// Fixed, so that equal captures have equal intervals.
const SEED: u64 = 0x5ca1_ab1e;

/// The tables of the view: what steps consist of, then what functions cost in them, then allocations and system calls.
pub fn tables(selection: &Selection<'_>, options: &Options) -> Vec<Table> {
    match Comparison::of(selection, options) {
        Err(why) => vec![tables::without_rows(selection.functions(), why)],
        Ok(comparison) => {
            let bootstrap = BlockBootstrap::new(comparison.sets.of_step.clone(), options.replicates, SEED);
            let mut tables = vec![tables::parts(&comparison, &bootstrap), tables::functions(&comparison, &bootstrap)];
            tables.extend(counted::heap(&comparison, &bootstrap));
            tables.extend(counted::system_calls(&comparison, &bootstrap));
            tables
        }
    }
}

/// The slow and the typical steps of the main loop. `None` if the steps are too few or too equal to split.
pub fn sets(selection: &Selection<'_>) -> Option<Sets> {
    Comparison::of(selection, &Options::default()).ok().map(|comparison| comparison.sets)
}

/// Call trees of slow and of typical steps for a differential flame graph, in ns (or the event's unit) per step.
///
/// The difference of a node's totals is the table's inclusive difference, if the function is at one node only.
///
/// # Errors
/// Why there is nothing to compare, in a sentence.
pub fn trees(
    selection: &Selection<'_>,
    options: &Options,
    tree: &calltree::Options,
    evidence: Evidence,
) -> Result<(CallTree, CallTree), String> {
    let comparison = Comparison::of(selection, options).map_err(|why| why.to_string())?;
    let (what, unit) = calltree::title(selection);
    let of = |kind: StepKind, name: &str| {
        let here = |position: usize| comparison.sets.of_position(position) == Some(kind);
        let count = comparison.count(kind) as u64;
        let steps = quantity::plural(comparison.count(kind), name);
        match evidence {
            Evidence::OnCpu => {
                let samples =
                    selection.samples().filter(|sample| comparison.loops.main_step_of(sample).is_some_and(here));
                let stacks = samples.map(WeightedStack::of_sample);
                let title = format!("{what} per step, {steps}");
                calltree::per_step(selection, tree, &title, unit, count, stacks)
            }
            Evidence::Blocked => {
                let waits = comparison.waits().filter(|of_step| here(of_step.step)).map(|of_step| of_step.wait);
                let stacks = waits.map(|wait| WeightedStack::of_wait(&wait, blocked_ns(&wait)));
                let title = format!("Blocked time of the loop's thread per step, {steps}");
                calltree::per_step(selection, tree, &title, "ns", count, stacks)
            }
        }
    };
    Ok((of(StepKind::Slow, "slow step"), of(StepKind::Typical, "typical step")))
}

/// Which steps are slow.
pub const SLOW_PERCENTILE: AnalysisOption = AnalysisOption {
    name: "slow-percentile",
    value: "PERCENT",
    range: (60.0, 100.0),
    default: "beyond a natural gap in the step times if there is a clear one, else 95",
    doc: "Steps at or above this percentile of step time are slow.",
};

impl Options {
    /// The options that the command line gave.
    pub fn of(values: &OptionValues) -> Self {
        Self { slow: values.get(&SLOW_PERCENTILE).map_or(Slow::Natural, Slow::Percentile), ..Self::default() }
    }
}

/// What slow steps do that typical steps do not.
pub const ANALYSIS: Analysis = Analysis {
    title: "Slow steps",
    views: &[View {
        name: "slow-steps",
        question: "What happens in the slowest steps that does not happen in typical steps?",
        tables: |selection, values| tables(selection, &Options::of(values)),
    }],
    needs: &[Dimension::Steps],
    options: &[SLOW_PERCENTILE],
    also_in: &["flamegraph --slow-steps"],
    report: |selection| {
        let options = Options::default();
        let trees = trees(selection, &options, &calltree::Options::default(), calltree::Evidence::OnCpu);
        let Ok(trees) = trees else { return Vec::new() };
        let tables = tables(selection, &options).into_iter().map(Part::Table);
        let parts = [Part::Difference(difference(&trees))].into_iter().chain(tables).collect();
        vec![ReportSection::new("Slow steps", parts)]
    },
};

/// The call trees of slow steps and of typical steps, compared.
pub fn difference((slow, typical): &(CallTree, CallTree)) -> TreeDifference {
    let mut difference = TreeDifference::of(("slow steps", slow), ("typical steps", typical));
    let (evidence, slow_steps) = slow.title.split_once(", ").unwrap_or(("", &slow.title));
    let (_, typical_steps) = typical.title.split_once(", ").unwrap_or(("", &typical.title));
    difference.tree.title = format!("{evidence}: {slow_steps} against {typical_steps}");
    difference
}
