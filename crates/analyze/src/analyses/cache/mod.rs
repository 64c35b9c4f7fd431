//! Caches: how well the CPU is used, and which functions miss the cache more than their share of CPU time.
//!
//! # Rates
//! - `ipc`: instructions per cycle
//! - `miss_rate`: last-level misses in percent of last-level accesses
//! - `mpki`: last-level misses per 1,000 instructions
//! - `branch_miss_rate`: wrongly predicted branches in percent of all
//! - `retiring`, `bad_speculation`, `frontend`, `backend`: top-down level 1 (Yasin, 2014), in percent of all issue slots, if the CPU
//!   counts slots (Intel since Ice Lake)
//!
//! They are for the whole recording, and for each kind of core of a hybrid CPU. Counted events come first, because they are exact. Else
//! they are sums of sampled periods, which are estimates. If events took turns on the CPU's counters (*multiplexing*), `counted` is the part of
//! the time in which the least counted event had one, and its count is scaled up.
//!
//! # Assessment
//! By the first rule that holds:
//!
//! | condition | assessment |
//! |---|---|
//! | top-down is known | the largest of back end, front end and bad speculation, from 25 % on; else *retiring* |
//! | `mpki` of [`MANY_MPKI`] or more | memory-bound |
//! | `ipc` below [`LOW_IPC`], `mpki` of [`SOME_MPKI`] or more | memory-bound |
//! | `ipc` below [`LOW_IPC`], a branch miss rate of [`MANY_BRANCH_MISSES`] % or more | branch mispredictions |
//! | `ipc` below [`LOW_IPC`] | stalled on something else |
//! | `ipc` of [`HIGH_IPC`] or more | well used |
//! | else | moderate |
//!
//! # Functions
//! `ratio` is a function's share of the cache misses over its share of CPU cost, in the same capture: above [`HOSTILE`] it is *hostile* to
//! the cache, below [`FRIENDLY`] *friendly*. Functions below 0.5 % of the cost are not judged. The interval is that of a ratio of two
//! Poisson counts (see `stepscope_stats::counts`); if it contains 1, the verdict is *inconclusive*. Counts of a simulation are exact, and have
//! no interval.
//!
//! The cost is CPU time or cycles; in a simulation, instructions. Samples of misses lie some instructions after the miss (*skid*), so that
//! a small function may have those of its caller.

mod functions;
mod rates;
mod reading;
#[cfg(test)]
mod tests;

use stepscope_model::{Dimension, Note, NoteValue, note};

use crate::analysis::{Analysis, ReportSection, View};
use crate::query::events;
use crate::query::select::Selection;

pub use functions::by_function;
pub(crate) use rates::whole;
pub use rates::{by_core, by_step, by_thread};

/// Share of misses over share of cost above which a function is hostile to the cache.
pub const HOSTILE: f64 = 1.3;
/// The same below which it is friendly.
pub const FRIENDLY: f64 = 0.7;
/// Misses per 1,000 instructions that are many.
pub const MANY_MPKI: f64 = 10.0;
/// Misses per 1,000 instructions that explain a low IPC.
pub const SOME_MPKI: f64 = 1.0;
/// An IPC below this one is low.
pub const LOW_IPC: f64 = 0.7;
/// An IPC from this one on is high.
pub const HIGH_IPC: f64 = 2.0;
/// Percent of branches whose mispredictions explain a low IPC.
pub const MANY_BRANCH_MISSES: f64 = 3.0;

/// Says that the figures are those of a simulation.
fn simulation_note(selection: &Selection<'_>) -> Option<Note> {
    let events = &selection.capture().info.events;
    events.iter().any(events::is_simulated).then(|| {
        note!(
            Limit,
            "Simulation: valgrind counted instructions and simulated caches. Cycles are unknown, and times of the run mean nothing."
        )
    })
}

/// Says which events took turns.
fn multiplexing_note(selection: &Selection<'_>) -> Option<Note> {
    let shared = |count: &stepscope_model::EventCount| Some((count.enabled_ns?, count.running_ns?));
    let part = |(enabled, running): (u64, u64)| running as f64 * 100.0 / enabled as f64;
    let counts = selection.capture().event_counts.iter().filter(|count| count.count.is_some());
    let parts = counts.filter_map(shared).filter(|(enabled, _)| *enabled > 0).map(part);
    let least = parts.min_by(f64::total_cmp).filter(|least| *least < 99.5)?;
    let least = NoteValue::percent(least);
    Some(note!(
        Limit,
        "Events took turns on the CPU's counters: the least counted one had a counter for {} of the time. Its count is scaled up.",
        least
    ))
}

fn report(selection: &Selection<'_>) -> Vec<ReportSection> {
    let tables = vec![by_core(selection), by_function(selection)];
    ReportSection::of_rows("Cache", tables).map(|section| section.most_rows(100)).into_iter().collect()
}

/// Caches.
pub const ANALYSIS: Analysis = Analysis {
    title: "Cache",
    views: &[
        View {
            name: "cache",
            question: "How well is the CPU used, and which functions miss the cache?",
            tables: |selection, _| vec![by_core(selection), by_function(selection)],
        },
        View {
            name: "cache-threads",
            question: "Which threads use the CPU badly?",
            tables: |selection, _| vec![by_thread(selection)],
        },
        View {
            name: "cache-steps",
            question: "How well is the CPU used in each step?",
            tables: |selection, _| vec![by_step(selection)],
        },
    ],
    needs: &[Dimension::Cache],
    report,
    ..Analysis::NONE
};
