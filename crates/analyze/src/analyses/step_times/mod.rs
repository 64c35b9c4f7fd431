//! The view `steps`: how long steps take, what they consist of, whether they grow, and which stand out.
//!
//! Its tables are `loops`, `steps`, `step_histogram` and `longest_steps`. [`steps`](crate::query::steps)
//! defines what belongs to a step.
//!
//! # Pacing
//! A simulator that keeps a real-time factor sleeps until the next step is due. That time is no cost and hides the cost
//! of the steps, so it is separate: *pacing* is the time in which the loop's thread is blocked and
//!
//! - sleeps voluntarily (class [sleep](WaitClass::Sleep)), or
//! - waits at a condition variable that no thread signals, so that a timer ends the wait (only with wake-ups).
//!
//! At high switch rates, not every wait has a stack. A wait without one is pacing if no thread ended it and at least nine
//! tenths of the time of similar waits with a stack are pacing: waits of the loop's thread that no thread ended.
//!
//! The time from the timer until a CPU is free is scheduler delay, not pacing. A loop that sleeps for another reason
//! looks the same as one that paces itself.
//!
//! # Stalls
//! A stall is a step of more than [`STALL`] times the median of the [`NEIGHBOURS`] steps on either side (fewer at the ends).
//! Neighbours, because all steps of a growing world become long, and none of them is a stall. Known pacing is excluded on
//! both sides.
//!
//! # Levels
//! Steps may alternate between two times, such as 3 and 5 ms. [`two_levels`](stepscope_stats::two_levels) says when these are
//! two levels and not outliers or a trend. A trend within the levels may change them by some quarter; a larger one hides them,
//! and only the trend is reported.
//!
//! # Trend
//! The [Theil-Sen](stepscope_stats::trend) slope of the step times without pacing, with a 95 % confidence interval, as the
//! change from the first to the last step in percent of the median. With two levels, each time is relative to its level, so
//! that the trend is one within the levels. The first step loads what the others use. It is left out
//! here and in all sums except the count.

mod histogram;
mod longest;
mod loops;
mod parts;
mod stalls;
#[cfg(test)]
mod tests;

use stepscope_model::{Dimension, Mark, Note, Table, note};

use crate::analyses::steps_over_time;
use crate::analysis::{Analysis, Part, ReportSection, View};
use crate::notes::found_step_note;
use crate::query::select::Selection;
use crate::query::steps::Loops;
#[cfg(doc)]
use crate::query::wait_class::WaitClass;

pub(crate) use loops::{levels, stalls_after_first};
pub(crate) use parts::StepPart;
pub use parts::{Pacing, StepParts};
pub use stalls::{NEIGHBOURS, STALL, stalls};

/// The tables of the view, in the order they are shown.
pub fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let off_cpu = selection.off_cpu();
    let Some(found) = Loops::of(selection) else {
        let mut table = loops::loops(selection, None, &off_cpu);
        table.note(no_steps(selection));
        return vec![table];
    };
    let parts = StepParts::of(selection, &found, found.main(), &off_cpu);
    let mut loops = loops::loops(selection, Some(&found), &off_cpu);
    loops.add_notes(found_step_note(std::slice::from_ref(selection)));
    vec![
        loops,
        loops::steps(selection, &found, &parts),
        histogram::table(found.main(), &parts),
        longest::table(selection, &found, &parts, &off_cpu),
    ]
}

/// Why there are no costs per step, and what to do.
pub fn no_steps(selection: &Selection<'_>) -> Note {
    if selection.capture().steps.is_empty() {
        return note!(
            Loss,
            "No steps were recorded. Name the step function with `stepscope record --step-function NAME`, or mark steps in \
             the program."
        );
    }
    note!(Limit, "No whole step lies within the selected time.")
}

/// How long steps take.
pub const ANALYSIS: Analysis = Analysis {
    title: "Steps",
    views: &[View {
        name: "steps",
        question: "How long do steps take, do they get longer over time, and which of them stall?",
        tables: |selection, _| tables(selection),
    }],
    needs: &[Dimension::Steps],
    // The loops, a chart over time, the quantities, a histogram and the longest steps.
    report: |selection| {
        let Some(over_time) = steps_over_time::table(selection) else { return Vec::new() };
        let over_time = Part::Chart {
            table: over_time,
            across: "at",
            marks: vec![
                Mark::Band("shortest".into(), "longest".into()),
                Mark::Line("median".into()),
                Mark::Points("stall".into()),
            ],
            caption: "step time since the start: median as a line, shortest to longest, stalls as dots",
        };
        let part = |table: Table| match table.name.as_str() {
            "step_histogram" => Part::Chart {
                table,
                across: "from",
                marks: vec![Mark::Bars { to: "to".into(), height: "steps".into() }],
                caption: "number of steps over their time",
            },
            _ => Part::Table(table),
        };
        let mut parts: Vec<Part> = tables(selection).into_iter().map(part).collect();
        parts.insert(1, over_time);
        vec![ReportSection::new("Steps", parts)]
    },
    ..Analysis::NONE
};
