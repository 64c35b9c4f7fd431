//! Scopes: how long the marked parts of a program take, and whether they run or wait.
//!
//! A scope is an interval that the program names, with a mark or a `GZ_PROFILE`. A scope of 3 ms may run for 3 ms, or wait
//! for a lock for 2.9 ms. If context switches were recorded, its time is split exactly into *running*, *runnable* and
//! *blocked*.
//!
//! One row per name of the scope and name of the thread:
//!
//! - *total*: time in its scopes. A scope within one of the same name (recursion) counts once;
//! - *self*: time in its scopes without the scopes directly within them on the same thread. Self adds up over all rows to
//!   the time in which a thread is in any scope;
//! - *per step*: total within steps of the thread's loop, divided by their number ([`steps`](crate::query::steps));
//! - mean, median, percentiles and maximum: of single calls;
//! - *change*: [Theil-Sen](stepscope_stats::trend) slope of the calls' times, from the first call to the last, in percent of
//!   the median.
//!
//! A scope counts if it lies completely within the selected time.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{Columns, Note, NoteValue, Scope, Table, ThreadId, Value, note};
use stepscope_stats::{Distribution, Estimate, trend};

use crate::analysis::{Analysis, ReportSection, View};
use crate::columns::trend;
use crate::query::off_cpu::{OffCpu, Spent};
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::weights::percent;

const CONFIDENCE: f64 = 0.95;

/// The scopes of one name on threads of one name.
#[derive(Debug, Clone, Default)]
struct Named {
    threads: u64,
    last_thread: Option<ThreadId>,
    calls: Vec<Call>,
    total: u64,
    own: u64,
    in_steps: f64,
    calls_in_steps: f64,
    spent: Spent,
    own_running: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    start_ns: u64,
    ns: u64,
}

/// An open scope, and the time in the scopes directly within it.
struct Open<'a> {
    scope: &'a Scope,
    key: Key<'a>,
    spent: Option<Spent>,
    within: u64,
    running_within: u64,
    is_outermost: bool,
}

/// Name of the scope and of its thread.
type Key<'a> = (&'a str, &'a str);

struct Adding<'a> {
    selection: &'a Selection<'a>,
    loops: Option<Arc<Loops>>,
    off_cpu: Option<OffCpu<'a>>,
    rows: FxHashMap<Key<'a>, Named>,
    open: Vec<Open<'a>>,
    /// Number of open scopes of each name.
    open_by_name: FxHashMap<&'a str, u32>,
    /// Whether an open scope ends after the one around it, as those of a frame mark do.
    crossed: bool,
}

impl<'a> Adding<'a> {
    fn new(selection: &'a Selection<'a>) -> Self {
        let off_cpu = selection.has_switches().then(|| selection.off_cpu());
        Self {
            selection,
            loops: Loops::of(selection),
            off_cpu,
            rows: FxHashMap::default(),
            open: Vec::new(),
            open_by_name: FxHashMap::default(),
            crossed: false,
        }
    }

    /// Adds the scopes of one thread, by start, an outer one before those within it.
    fn add_thread(&mut self, thread: ThreadId, scopes: &[&'a Scope]) {
        let thread_name = self.selection.capture().threads[thread.index()].name.as_str();
        for scope in scopes {
            self.close_until(scope.start_ns);
            let key = (&*scope.name, thread_name);
            let range = scope.start_ns..scope.end_ns;
            let spent = self.off_cpu.as_ref().and_then(|off_cpu| off_cpu.spent(thread, range));
            self.subtract_from_parent(thread, scope);
            self.crossed |= self.open.last().is_some_and(|around| around.scope.end_ns < scope.end_ns);
            let open = self.open_by_name.entry(&scope.name).or_default();
            *open += 1;
            let is_outermost = *open == 1;
            self.open.push(Open { scope, key, spent, within: 0, running_within: 0, is_outermost });
        }
        self.close_until(u64::MAX);
    }

    /// Closes the scopes that end by a moment, innermost first. If scopes crossed, an open one may be above them.
    fn close_until(&mut self, time_ns: u64) {
        while let Some(open) = self.open.pop_if(|open| open.scope.end_ns <= time_ns) {
            self.close(open);
        }
        while self.crossed
            && let Some(place) = self.open.iter().position(|open| open.scope.end_ns <= time_ns)
        {
            let open = self.open.remove(place);
            self.close(open);
        }
        self.crossed &= !self.open.is_empty();
    }

    /// Subtracts an inner scope from the outer scope's own time, up to the end of the outer scope.
    fn subtract_from_parent(&mut self, thread: ThreadId, scope: &Scope) {
        let Some(parent) = self.open.last_mut() else { return };
        let inside: Range<u64> = scope.start_ns..scope.end_ns.min(parent.scope.end_ns);
        parent.within = parent.within.saturating_add(inside.end - inside.start);
        let spent = self.off_cpu.as_ref().and_then(|off_cpu| off_cpu.spent(thread, inside));
        parent.running_within = parent.running_within.saturating_add(spent.map_or(0, |spent| spent.running));
    }

    fn close(&mut self, open: Open<'a>) {
        let Open { scope, key, spent, within, running_within, is_outermost } = open;
        *self.open_by_name.entry(&scope.name).or_default() -= 1;
        let length = scope.end_ns - scope.start_ns;
        let row = self.rows.entry(key).or_default();
        if row.last_thread.replace(scope.thread) != Some(scope.thread) {
            row.threads += 1;
        }
        row.calls.push(Call { start_ns: scope.start_ns, ns: length });
        row.own = row.own.saturating_add(length.saturating_sub(within));
        row.own_running =
            row.own_running.saturating_add(spent.map_or(0, |spent| spent.running).saturating_sub(running_within));
        let of_loop = self.loops.as_ref().map(|loops| loops.of_thread(scope.thread)).filter(|steps| steps.count() > 0);
        if let Some(steps) = of_loop {
            let count = steps.count() as f64;
            row.calls_in_steps += f64::from(u8::from(steps.at(scope.start_ns).is_some())) / count;
            if is_outermost {
                row.in_steps += steps.time_within(&(scope.start_ns..scope.end_ns)) as f64 / count;
            }
        }
        if is_outermost {
            row.total = row.total.saturating_add(length);
            let spent = spent.unwrap_or_default();
            row.spent.running = row.spent.running.saturating_add(spent.running);
            row.spent.runnable = row.spent.runnable.saturating_add(spent.runnable);
            row.spent.blocked = row.spent.blocked.saturating_add(spent.blocked);
        }
    }
}

/// The table `scopes`: rows by total, then name.
pub fn table(selection: &Selection<'_>) -> Table {
    let capture = selection.capture();
    let window = selection.window();
    let is_selected = |scope: &&Scope| {
        let inside = window.as_ref().is_none_or(|window| scope.start_ns >= window.start && scope.end_ns <= window.end);
        inside && selection.has_thread(scope.thread)
    };
    let mut scopes: Vec<&Scope> = capture.scopes.iter().filter(is_selected).collect();
    scopes.sort_by_key(|scope| (scope.thread, scope.start_ns, Reverse(scope.end_ns), scope.depth));
    let mut adding = Adding::new(selection);
    for of_thread in scopes.chunk_by(|a, b| a.thread == b.thread) {
        adding.add_thread(of_thread[0].thread, of_thread);
    }
    let Adding { loops, off_cpu, rows, .. } = adding;
    let mut rows: Vec<Row<'_>> = rows.into_iter().map(Row::of).collect();
    rows.sort_by_key(|row| (Reverse(row.named.total), row.key));
    let exact = |ns: u64| Value::from(off_cpu.is_some().then_some(ns));
    let per_step = |value: f64| Value::from(loops.is_some().then_some(value));
    let mut table = Columns::<Row<'_>>::new()
        .text("scope", "Name of the scope.", |row| row.key.0.into())
        .text("thread", "Last name of the threads with this scope; one row per name.", |row| row.key.1.into())
        .count("threads", "threads", "Number of threads of that name.", |row| row.named.threads)
        .count("calls", "", "Number of calls.", |row| row.calls.len())
        .duration("total", "Time in the scope. A scope within one of the same name counts once.", |row| row.named.total)
        .duration("self", "Time in the scope and in no inner scope.", |row| row.named.own)
        .duration("per_step", "Total per simulation step.", |row| per_step(row.named.in_steps))
        .number("calls_per_step", "", "Calls per simulation step.", |row| per_step(row.named.calls_in_steps))
        .duration("mean", "Mean of the calls.", |row| row.calls.mean())
        .duration("median", "Median of the calls.", |row| row.calls.median())
        .duration("p95", "95th percentile.", |row| row.calls.percentile(95.0))
        .duration("p99", "99th percentile.", |row| row.calls.percentile(99.0))
        .duration("max", "Longest call.", |row| row.calls.max())
        .duration("running", "Part of `total`: on a CPU. Exact, from context switches.", |row| {
            exact(row.named.spent.running)
        })
        .duration("runnable", "Part of `total`: waiting for a CPU.", |row| exact(row.named.spent.runnable))
        .duration("blocked", "Part of `total`: blocked.", |row| exact(row.named.spent.blocked))
        .percentage("blocked_share", "Share of `total`: blocked.", |row| {
            percent(row.named.spent.blocked.into(), row.named.total.into()).filter(|_| off_cpu.is_some())
        })
        .duration("self_running", "Part of `self`: on a CPU.", |row| exact(row.named.own_running))
        .with_all(trend(
            "Change from the first to the last call, in percent of the median (Theil-Sen).",
            |row: &Row<'_>| row.change,
        ))
        .essential("scope thread calls total self per_step blocked_share")
        .detail("threads calls_per_step p95 p99 running runnable blocked self_running")
        .table("scopes", "Scopes", rows);
    table.add_notes(notes(selection, loops.as_deref()));
    table
}

/// A row: its calls as a distribution, and their trend.
struct Row<'a> {
    key: Key<'a>,
    named: Named,
    calls: Distribution,
    change: Option<Estimate>,
}

impl<'a> Row<'a> {
    fn of((key, named): (Key<'a>, Named)) -> Self {
        let calls: Distribution = named.calls.iter().map(|call| call.ns).collect();
        Self { key, change: change(&named.calls, &calls), named, calls }
    }
}

fn change(calls: &[Call], lengths: &Distribution) -> Option<Estimate> {
    let median = lengths.median().filter(|ns| *ns > 0)?;
    let mut calls = calls.to_vec();
    calls.sort_unstable();
    let (first, last) = (calls.first()?.start_ns, calls.last()?.start_ns);
    let points: Vec<(f64, f64)> = calls.iter().map(|call| ((call.start_ns - first) as f64, call.ns as f64)).collect();
    Some(trend::theil_sen(&points, CONFIDENCE)?.times((last - first) as f64 * 100.0 / median as f64))
}

fn notes(selection: &Selection<'_>, loops: Option<&Loops>) -> Vec<Note> {
    if selection.capture().scopes.is_empty() {
        return vec![note!(Loss, "The capture has no scopes. Mark them with `STEPSCOPE_SCOPE`: docs/marks.md.")];
    }
    let mut notes = Vec::new();
    if !selection.has_switches() {
        notes.push(note!(Loss, "Context switches were not recorded, so running and blocked time are unknown."));
    }
    match loops {
        None => notes.push(note!(Limit, "No steps were recorded, so there are no costs per step.")),
        Some(loops) if loops.count() > 1 => notes.push(note!(
            Fact,
            "{}: costs per step are per step of each thread's own loop.",
            NoteValue::plural(loops.count(), "loop")
        )),
        Some(_) => {}
    }
    if selection.filters_stacks() {
        notes.push(note!(Limit, "Filters by function, module and ownership do not apply: scopes have no stacks."));
    }
    notes
}

/// What marked scopes take.
pub const ANALYSIS: Analysis = Analysis {
    title: "Scopes",
    views: &[View {
        name: "scopes",
        question: "How long do the program's marked scopes take, and do they run or wait?",
        tables: |selection, _| vec![table(selection)],
    }],
    report: |selection| ReportSection::of_rows("Scopes", vec![table(selection)]).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::Capture;

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    /// Scopes of a thread, from an outline: `name START..END` a line, two spaces a level.
    fn scoped(mut drawing: Drawing, thread: &str, outline: &str) -> Drawing {
        let thread = drawing.thread(thread);
        for line in outline.lines().filter(|line| !line.trim().is_empty()) {
            let depth = (line.len() - line.trim_start().len()) as u32 / 2;
            let (name, range) = line.trim().rsplit_once(' ').unwrap();
            let (start, end) = range.split_once("..").unwrap();
            let (start_ns, end_ns) = (start.parse().unwrap(), end.parse().unwrap());
            let name = drawing.capture.intern_text(name);
            drawing.capture.scopes.push(Scope { thread, name, start_ns, end_ns, depth });
        }
        drawing
    }

    fn two_steps() -> Capture {
        let drawing = Drawing::new()
            .window(0..1_000)
            .lived("main", 0..1_000, None)
            .lived("worker", 0..1_000, None)
            .steps("main", 100, 100, 2, 1)
            .blocked_then_runnable("main", 120..160, 10, "lock")
            .preempted("main", 230..240, "");
        let drawing = scoped(
            drawing,
            "main",
            "
Step 100..190
  Physics 110..170
    Solve 115..125
    Solve 150..170
  Render 170..180
Step 200..290
  Physics 210..260
",
        );
        scoped(drawing, "worker", "Physics 150..250\n").capture
    }

    #[test]
    fn scopes_are_summed_with_and_without_what_is_within_them() {
        let table = drawn::selected(&two_steps(), &[], table);
        assert_eq!(
            cells(&table, &["scope", "thread", "calls", "total", "self", "per_step", "mean", "max"]),
            [
                "Step | main | 2 | 180 | 60 | 90 | 90 | 90",
                "Physics | main | 2 | 110 | 80 | 55 | 55 | 60",
                "Physics | worker | 1 | 100 | 100 | 50 | 100 | 100",
                "Solve | main | 2 | 30 | 30 | 15 | 15 | 20",
                "Render | main | 1 | 10 | 10 | 5 | 10 | 10",
            ]
        );
    }

    #[test]
    fn waiting_and_computing_scopes_differ() {
        let table = drawn::selected(&two_steps(), &[], table);
        assert_eq!(
            cells(&table, &["scope", "running", "runnable", "blocked", "blocked_share", "self_running"]),
            [
                "Step | 130 | 20 | 30 | 16.666667 | 60",
                "Physics | 60 | 20 | 30 | 27.272727 | 45",
                "Physics | 100 | 0 | 0 | 0 | 100",
                "Solve | 15 | 10 | 5 | 16.666667 | 15",
                "Render | 10 | 0 | 0 | 0 | 10",
            ]
        );
    }

    #[test]
    fn recursion_counts_once_and_every_call_is_counted() {
        let drawing = Drawing::new().window(0..100).lived("main", 0..100, None);
        let capture = scoped(drawing, "main", "Visit 0..50\n  Visit 10..40\n    Visit 20..30\nVisit 60..70\n").capture;
        let table = drawn::selected(&capture, &[], table);
        assert_eq!(cells(&table, &["calls", "total", "self", "running"]), ["4 | 60 | 60 | -"]);
        assert!(table.notes[0].starts_with("Context switches were not recorded"), "{:?}", table.notes);
    }

    #[test]
    fn a_scope_that_outlasts_the_one_around_takes_only_what_is_inside_from_it() {
        let drawing = Drawing::new().window(0..100).lived("main", 0..100, None);
        let capture = scoped(drawing, "main", "A 0..50\n  B 40..70\n").capture;
        let table = drawn::selected(&capture, &[], table);
        assert_eq!(cells(&table, &["scope", "total", "self"]), ["A | 50 | 40", "B | 30 | 30"]);
    }

    /// A frame lasts from one mark to the next, wherever other scopes are.
    #[test]
    fn frames_that_scopes_cross_are_counted_whole() {
        let drawing = Drawing::new().window(0..1_000).lived("main", 0..1_000, None);
        let capture = scoped(drawing, "main", "Frame 0..100\n  Cull 90..110\nFrame 100..200\nFrame 200..300\n").capture;
        let table = drawn::selected(&capture, &[], table);
        assert_eq!(
            cells(&table, &["scope", "calls", "total", "self"]),
            ["Frame | 3 | 300 | 290", "Cull | 1 | 20 | 10"]
        );
    }

    #[test]
    fn the_trend_of_a_growing_scope_is_shown() {
        let mut outline = String::new();
        for call in 0..40_u64 {
            outline.push_str(&format!("Grow {}..{}\n", call * 1_000, call * 1_000 + 100 + call));
        }
        let capture = scoped(Drawing::new().window(0..100_000), "main", &outline).capture;
        let table = drawn::selected(&capture, &[], table);
        // From 100 to 139 with a median of 119.
        assert_eq!(cells(&table, &["change"]), ["32.773109"]);
    }

    #[test]
    fn without_scopes_the_table_says_so() {
        let table = drawn::selected(&drawn::folded("main;a 1"), &[], table);
        assert_eq!(table.notes, ["The capture has no scopes. Mark them with `STEPSCOPE_SCOPE`: docs/marks.md."]);
    }
}
