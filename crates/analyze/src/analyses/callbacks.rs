//! Callbacks: how long each takes, and whether it computes, waits for a CPU, or is blocked.
//!
//! One row per callback, over all threads of its executor. A call lasts from `callback_start` to `callback_end`
//! ([`query::callbacks`](crate::query::callbacks)).
//!
//! - *total*, *median*, percentiles: of the calls. A call within another one counts in both;
//! - *cpu*, *runnable*, *blocked*: what the thread did within the calls, exactly, from context switches; they add up to
//!   *total*. Without switches they are missing;
//! - *function*: the function to which most CPU samples within the calls are attributed, the nearest owned one of a stack; *its share*
//!   is of the samples within the calls. Of calls within each other, a sample belongs to the innermost.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{Columns, Note, NoteValue, StackId, Table, ThreadId, Value, note};
use stepscope_stats::Distribution;

use crate::analyses::flows::why_no_ros2;
use crate::analysis::{Analysis, ReportSection, View};
use crate::query::attributed_place;
use crate::query::callbacks::{Call, Callbacks};
use crate::query::off_cpu::{OffCpu, Spent};
use crate::query::select::Selection;
use crate::query::weights::percent;

#[derive(Default)]
struct Row {
    name: Arc<str>,
    process: String,
    threads: Vec<ThreadId>,
    calls: Vec<u64>,
    /// `None` as soon as it is unknown for a call.
    spent: Option<Spent>,
    samples: FxHashMap<StackId, u64>,
    weight: u64,
}

/// A row that is complete.
struct Shown {
    row: Row,
    calls: Distribution,
    /// The function with most weight, and its weight.
    function: Option<(String, u64)>,
}

struct Rows<'a> {
    selection: &'a Selection<'a>,
    rows: Vec<Row>,
    /// By process and name.
    places: FxHashMap<(String, Arc<str>), usize>,
}

impl<'a> Rows<'a> {
    fn place(&mut self, call: &Call<'_>) -> usize {
        let thread = &self.selection.capture().threads[call.start.thread.index()];
        let process = self.selection.process_label_of(thread).to_owned();
        let key = (process.clone(), call.name().clone());
        *self.places.entry(key).or_insert_with(|| {
            let (name, spent) = (call.name().clone(), Some(Spent::default()));
            self.rows.push(Row { name, process, spent, ..Row::default() });
            self.rows.len() - 1
        })
    }

    fn add(&mut self, call: &Call<'_>, off_cpu: Option<&OffCpu<'_>>) {
        let (thread, range) = (call.start.thread, call.start.time_ns..call.end_ns);
        let place = self.place(call);
        let row = &mut self.rows[place];
        if !row.threads.contains(&thread) {
            row.threads.push(thread);
        }
        row.calls.push(call.duration_ns());
        let spent = off_cpu.and_then(|off_cpu| off_cpu.spent(thread, range));
        row.spent = row.spent.take().zip(spent).map(|(sum, more)| Spent {
            running: sum.running.saturating_add(more.running),
            runnable: sum.runnable.saturating_add(more.runnable),
            blocked: sum.blocked.saturating_add(more.blocked),
        });
    }

    /// Gives each CPU sample to the innermost call around it.
    fn add_samples(&mut self, calls: &[Call<'a>]) {
        let mut by_thread: FxHashMap<ThreadId, Vec<&Call<'a>>> = FxHashMap::default();
        calls.iter().for_each(|call| by_thread.entry(call.start.thread).or_default().push(call));
        by_thread.values_mut().for_each(|calls| calls.sort_by_key(|call| call.start.time_ns));
        // An end that no call before it exceeds: a search backwards stops there.
        let ends: FxHashMap<ThreadId, Vec<u64>> =
            by_thread.iter().map(|(thread, calls)| (*thread, last_ends(calls))).collect();
        for sample in self.selection.samples() {
            let (Some(time_ns), Some(calls)) = (sample.time_ns, by_thread.get(&sample.thread)) else { continue };
            let before = calls.partition_point(|call| call.start.time_ns <= time_ns);
            let open = (0..before).rev().take_while(|&at| ends[&sample.thread][at] > time_ns);
            let Some(call) = open.map(|at| calls[at]).find(|call| call.end_ns > time_ns) else { continue };
            let place = self.place(call);
            let row = &mut self.rows[place];
            row.weight = row.weight.saturating_add(sample.weight);
            if let Some(stack) = sample.stack {
                *row.samples.entry(stack).or_default() += sample.weight;
            }
        }
    }
}

/// For each call the last end of those up to it.
fn last_ends(calls: &[&Call<'_>]) -> Vec<u64> {
    let mut last = 0;
    let up_to = |call: &&Call<'_>| {
        last = last.max(call.end_ns);
        last
    };
    calls.iter().map(up_to).collect()
}

impl Shown {
    fn of(row: Row, selection: &Selection<'_>) -> Self {
        let mut functions: FxHashMap<String, u64> = FxHashMap::default();
        for (stack, weight) in &row.samples {
            *functions.entry(attributed_place::function(selection, Some(*stack))).or_default() += weight;
        }
        let function = functions.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        Self { calls: row.calls.iter().copied().collect(), function, row }
    }

    fn total_ns(&self) -> u64 {
        u64::try_from(self.calls.sum()).unwrap_or(u64::MAX)
    }
}

/// The table `callbacks`: rows by total, then name.
pub fn table(selection: &Selection<'_>) -> Table {
    let callbacks = Callbacks::of(selection);
    let off_cpu = selection.has_switches().then(|| selection.off_cpu());
    let mut rows = Rows { selection, rows: Vec::new(), places: FxHashMap::default() };
    callbacks.calls.iter().for_each(|call| rows.add(call, off_cpu.as_ref()));
    rows.add_samples(&callbacks.calls);
    let mut rows: Vec<Shown> = rows.rows.into_iter().map(|row| Shown::of(row, selection)).collect();
    rows.sort_by(|a, b| {
        let key = |shown: &Shown| (Reverse(shown.total_ns()), shown.row.name.clone(), shown.row.process.clone());
        key(a).cmp(&key(b))
    });
    let exact = |shown: &Shown, part: fn(&Spent) -> u64| Value::from(shown.row.spent.as_ref().map(part));
    let mut table = Columns::<Shown>::new()
        .text("callback", "Node and topic, service or timer; else the function.", |shown| (&*shown.row.name).into())
        .with(crate::columns::process(selection.capture()), |shown| shown.row.process.as_str().into())
        .count("threads", "threads", "Number of threads that called it.", |shown| shown.row.threads.len())
        .count("calls", "", "Number of calls.", |shown| shown.calls.len())
        .duration("total", "Sum of the calls.", Shown::total_ns)
        .duration("median", "Median of the calls.", |shown| shown.calls.median())
        .duration("p95", "95th percentile.", |shown| shown.calls.percentile(95.0))
        .duration("p99", "99th percentile.", |shown| shown.calls.percentile(99.0))
        .duration("max", "Longest call.", |shown| shown.calls.max())
        .duration("running", "Part of `total`: on a CPU. Exact, from context switches.", move |shown| {
            exact(shown, |spent| spent.running)
        })
        .duration("runnable", "Part of `total`: waiting for a CPU.", move |shown| exact(shown, |spent| spent.runnable))
        .duration("blocked", "Part of `total`: blocked.", move |shown| exact(shown, |spent| spent.blocked))
        .text("function", "Function to which most CPU samples within the calls are attributed.", |shown| {
            Value::from(shown.function.as_ref().map(|(name, _)| name.as_str()))
        })
        .percentage("function_share", "Share of the samples within the calls.", |shown| {
            let weight = shown.function.as_ref().map(|(_, weight)| *weight)?;
            percent(weight.into(), shown.row.weight.into())
        })
        .essential("callback calls total median p99 runnable blocked function")
        .detail("threads")
        .table("callbacks", "Callbacks", rows);
    table.add_notes(notes(selection, &callbacks));
    table
}

fn notes(selection: &Selection<'_>, callbacks: &Callbacks<'_>) -> Vec<Note> {
    if callbacks.calls.is_empty() {
        let how =
            note!(Loss, "The capture has no callbacks. `record --with ros2` and traces of ros2_tracing have them.");
        return vec![why_no_ros2(selection).unwrap_or(how)];
    }
    let mut notes = Vec::new();
    if callbacks.incomplete > 0 {
        notes.push(note!(
            Fact,
            "{} of callbacks without the other end are left out.",
            NoteValue::plural(callbacks.incomplete as usize, "start or end")
        ));
    }
    if !selection.has_switches() {
        notes.push(note!(Loss, "Context switches were not recorded, so running and blocked time are unknown."));
    }
    notes
}

/// What callbacks take.
pub const ANALYSIS: Analysis = Analysis {
    title: "Callbacks",
    views: &[View {
        name: "callbacks",
        question: "How long does each callback take, and does it compute, wait for a CPU, or block?",
        tables: |selection, _| vec![table(selection)],
    }],
    report: |selection| ReportSection::of_rows("Callbacks", vec![table(selection)]).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::Event;

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    fn drawing() -> Drawing {
        Drawing::new().window(0..1_000).lived("executor", 0..1_000, None).lived("other", 0..1_000, None).flows(
            "/scan",
            "executor callback_start 1 at 100, executor callback_end at 200
             executor callback_start 2 at 300, executor callback_end at 600
             other callback_start 3 at 300, other callback_end at 350
             executor callback_start 4 at 900",
        )
    }

    #[test]
    fn time_in_callbacks_is_split_into_running_runnable_and_blocked() {
        let drawing =
            drawing().blocked_then_runnable("executor", 320..400, 30, "lock").preempted("executor", 590..620, "");
        let table = drawn::selected(&drawing.capture, &[], table);
        assert_eq!(
            cells(
                &table,
                &["callback", "threads", "calls", "total", "median", "max", "running", "runnable", "blocked"]
            ),
            ["/scan | 2 | 3 | 450 | 100 | 300 | 360 | 40 | 50"]
        );
        assert_eq!(table.notes[0].to_string(), "1 start or end of callbacks without the other end are left out.");
    }

    #[test]
    fn samples_within_calls_name_the_function() {
        let drawing = drawing().folded(
            Event::sampled("cpu-clock", "ns"),
            "@150 executor;main;my::filter 10
             @250 executor;main;my::between 90
             @400 executor;main;my::plan;memcpy 30
             @340 other;main;my::filter 10",
        );
        let table = drawn::selected(&drawing.capture, &["my::"], table);
        assert_eq!(cells(&table, &["function", "function_share", "running"]), ["my::plan | 60 | -"]);
    }
}
