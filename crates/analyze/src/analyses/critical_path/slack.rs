//! Slack: how much slower each thread could be without delaying a step.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use stepscope_model::{Columns, Table, Thread, ThreadId, Value};

use super::barriers::Barrier;
use crate::query::functions::{FunctionId, NO_STACK};
use crate::query::select::Selection;

/// One thread at the barriers of one place.
#[derive(Debug, Clone, Copy, Default)]
struct Arrivals {
    last: u64,
    behind_ns: u64,
    waits: u64,
    slack_ns: u64,
    least_slack_ns: Option<u64>,
}

/// A row of the table.
struct Row<'a> {
    waits_at: &'a str,
    thread: &'a Thread,
    arrivals: Arrivals,
}

/// The threads of each place, which arrived last, and how long the others waited.
#[derive(Debug, Default)]
pub(super) struct Slack(FxHashMap<(Option<FunctionId>, ThreadId), Arrivals>);

impl Slack {
    pub(super) fn add(&mut self, barrier: &Barrier) {
        let last = self.0.entry((barrier.waits_at, barrier.last)).or_default();
        last.last += 1;
        last.behind_ns = last.behind_ns.saturating_add(barrier.behind_ns());
        for waiting in &barrier.waiting {
            let arrivals = self.0.entry((barrier.waits_at, waiting.thread)).or_default();
            let ns = waiting.waited_ns;
            arrivals.waits += 1;
            arrivals.slack_ns = arrivals.slack_ns.saturating_add(ns);
            arrivals.least_slack_ns = Some(arrivals.least_slack_ns.map_or(ns, |least| least.min(ns)));
        }
    }

    /// The table `barrier_slack`; none without barriers.
    pub(super) fn table(self, selection: &Selection<'_>) -> Option<Table> {
        (!self.0.is_empty()).then(|| table(selection, self.0))
    }
}

fn table(selection: &Selection<'_>, found: FxHashMap<(Option<FunctionId>, ThreadId), Arrivals>) -> Table {
    let name = |id: &Option<FunctionId>| id.map_or(NO_STACK, |id| &*selection.functions().get(id).name);
    let mut rows: Vec<_> = found.into_iter().collect();
    rows.sort_by_key(|((place, thread), one)| (name(place), Reverse((one.last, one.waits)), *thread));
    let rows = rows.into_iter().map(|((place, thread), arrivals)| Row {
        waits_at: name(&place),
        thread: &selection.capture().threads[thread.index()],
        arrivals,
    });
    let mean = |sum: u64, of: u64| Value::from((of > 0).then(|| sum as f64 / of as f64));
    Columns::<Row<'_>>::new()
        .text("waits_at", "Nearest owned function of the waits, as in the table of barriers.", |row| {
            row.waits_at.into()
        })
        .text("thread", "Last name of the thread.", |row| row.thread.name.as_str().into())
        .number("tid", "", "Thread id.", |row| row.thread.tid)
        .count("arrived_last", "", "How often it arrived last.", |row| row.arrivals.last)
        .duration("behind", "Mean delay after the thread before it, when it arrived last.", move |row| {
            mean(row.arrivals.behind_ns, row.arrivals.last)
        })
        .count("waits", "", "How often it waited for another thread.", |row| row.arrivals.waits)
        .duration(
            "slack",
            "Mean of its waits: how much longer its earlier work could take without delaying a step.",
            move |row| mean(row.arrivals.slack_ns, row.arrivals.waits),
        )
        .duration("slack_min", "Shortest of its waits: the slack in every step.", |row| row.arrivals.least_slack_ns)
        .essential("waits_at thread arrived_last waits slack")
        .detail("tid")
        .table("barrier_slack", "Slack: how much slower each thread could be without delaying a step", rows)
}
