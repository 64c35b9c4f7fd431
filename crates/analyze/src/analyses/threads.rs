//! Threads: CPU time by thread and by thread name.
//!
//! Each thread has its exact time on a CPU if context switches were recorded, the weight of its samples, their share of the
//! selected total, and the function with most of its self weight. Many threads may share a name (a pool, a worker a
//! client), and one thread of a pool means little, so there are two tables (erratum 15 of the Gazebo study): [`table`] by
//! thread and [`by_name`].
//!
//! *Coverage* is sampled time over exact CPU time. A sampler with a period of a millisecond misses threads that live
//! shorter. Such a thread has its exact CPU time, no sample, and `sampled` is false.
//!
//! *Busy* is CPU time over lifetime. A loop that is busy 100 % is the bottleneck itself; otherwise `wall` shows what it
//! waits for.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use stepscope_model::{Columns, Counts, Note, NoteValue, Table, ThreadId, note};

use crate::analyses::hotspots::other_events;
use crate::analysis::{Analysis, ReportSection, View};
use crate::columns;
use crate::query::coverage;
use crate::query::select::Selection;
use crate::query::weights::{Amount, WeightByFunction, percent};

/// What one thread did.
#[derive(Debug, Clone, Default)]
struct Usage {
    sampled: Amount,
    cpu_ns: Option<u64>,
    by_leaf: WeightByFunction,
}

impl Usage {
    fn add(&mut self, other: &Usage) {
        self.sampled += other.sampled;
        self.cpu_ns = match (self.cpu_ns, other.cpu_ns) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (known, other) => known.or(other),
        };
        self.by_leaf.add_all(&other.by_leaf);
    }
}

/// Adds up the selected samples by thread row.
fn usages(selection: &Selection<'_>) -> Vec<Usage> {
    let cpu_times = selection.cpu_times();
    let mut usages: Vec<Usage> = cpu_times.into_iter().map(|cpu_ns| Usage { cpu_ns, ..Usage::default() }).collect();
    let Some(event) = selection.event() else { return usages };
    let (capture, functions) = (selection.capture(), selection.functions());
    for sample in selection.samples() {
        let usage = &mut usages[sample.thread.index()];
        usage.sampled += Amount::of(event, sample.weight);
        let leaf = sample.stack.map(|stack| functions.of_node(capture, stack));
        usage.by_leaf.add(leaf, sample.weight.into());
    }
    usages
}

fn unit<'a>(selection: &Selection<'a>) -> &'a str {
    selection.event().map_or("", |event| &event.unit)
}

fn counts_known(selection: &Selection<'_>) -> bool {
    selection.event().is_some_and(|event| event.counts != Counts::Unknown)
}

/// Sampled over exact time in percent, where both are time and the samples are all of the thread's.
fn coverage_percent(selection: &Selection<'_>, usage: &Usage) -> Option<f64> {
    if unit(selection) != "ns" || selection.filters_stacks() {
        return None;
    }
    percent(usage.sampled.weight, u128::from(usage.cpu_ns?))
}

/// The columns that both tables share.
fn usage_columns<'t>(selection: &'t Selection<'_>, total: u128) -> Columns<'t, Usage> {
    let counted = counts_known(selection);
    Columns::<Usage>::new()
        .duration("cpu", "Exact time on a CPU; missing if context switches were not recorded.", |usage| usage.cpu_ns)
        .count("count", "samples", "Number of samples; missing if only sums of weights were imported.", move |usage| {
            counted.then_some(usage.sampled.count)
        })
        .weight("weight", unit(selection), "Weight of the samples.", |usage| usage.sampled.weight)
        .percentage("share", "Weight in percent of the selected total.", move |usage| {
            percent(usage.sampled.weight, total)
        })
        .percentage("coverage", "Sampled time in percent of exact CPU time.", |usage| {
            coverage_percent(selection, usage)
        })
        .text("top_function", "The function with most self weight.", |usage| {
            usage.by_leaf.top(selection.functions()).map(|(name, _)| name).into()
        })
        .percentage("top_share", "Its part of the self weight of the row, in percent.", |usage| {
            usage.by_leaf.top(selection.functions()).and_then(|(_, weight)| percent(weight, usage.sampled.weight))
        })
        .essential("share top_function")
        .detail("count coverage")
}

/// The table `threads`: one row per thread, by weight, then CPU time, then name and id.
pub fn table(selection: &Selection<'_>) -> Table {
    struct Row<'u> {
        id: ThreadId,
        usage: &'u Usage,
        lifetime: Option<u64>,
    }
    let capture = selection.capture();
    let usages = usages(selection);
    let total = usages.iter().map(|usage| usage.sampled.weight).sum();
    let of_thread = |(id, _)| {
        let lifetime = selection.lifetime(id).map(|life| life.end - life.start);
        Row { id, usage: &usages[ThreadId::index(id)], lifetime }
    };
    let mut rows: Vec<Row<'_>> = selection.threads().map(of_thread).collect();
    rows.sort_by_key(|row| {
        let thread = &capture.threads[row.id.index()];
        (Reverse((row.usage.sampled.weight, row.usage.cpu_ns)), thread.name.clone(), thread.tid)
    });
    let pid = |row: &Row<'_>| Some(capture.processes[capture.threads[row.id.index()].process?.index()].pid);
    let busy = |row: &Row<'_>| percent(u128::from(row.usage.cpu_ns?), u128::from(row.lifetime?));
    let mut table = columns::thread(selection)
        .on(|row: &Row<'_>| &row.id)
        .number("pid", "", "Process id.", move |row| pid(row))
        .with_all(usage_columns(selection, total).on(|row: &Row<'_>| row.usage))
        .duration("lifetime", "Lifetime within the selected time.", |row| row.lifetime)
        .percentage("busy", "CPU time in percent of the lifetime: 100 is a thread that never waits.", move |row| {
            busy(row)
        })
        .flag("sampled", "Whether it has any sample. A thread shorter than the sampling period may have none.", |row| {
            !row.usage.by_leaf.is_empty()
        })
        .essential("busy")
        .detail("pid lifetime sampled")
        .table("threads", "Threads", rows);
    table.add_notes(notes(selection, &usages));
    table
}

/// The table `threads_by_name`: threads of one name together, by weight, then CPU time, then name.
pub fn by_name(selection: &Selection<'_>) -> Table {
    #[derive(Default)]
    struct Row<'n> {
        name: &'n str,
        threads: u64,
        usage: Usage,
    }
    let usages = usages(selection);
    let total = usages.iter().map(|usage| usage.sampled.weight).sum();
    let mut names: FxHashMap<&str, Row<'_>> = FxHashMap::default();
    for (id, thread) in selection.threads() {
        let row = names.entry(&thread.name).or_default();
        row.name = &thread.name;
        row.threads += 1;
        row.usage.add(&usages[id.index()]);
    }
    let mut rows: Vec<Row<'_>> = names.into_values().collect();
    rows.sort_by_key(|row| (Reverse((row.usage.sampled.weight, row.usage.cpu_ns)), row.name));
    let mut table = Columns::<Row<'_>>::new()
        .text("thread", "Last name of the threads.", |row| row.name.into())
        .count("threads", "", "Number of threads of this name.", |row| row.threads)
        .with_all(usage_columns(selection, total).on(|row: &Row<'_>| &row.usage))
        .table("threads_by_name", "Threads by name", rows);
    table.add_notes(notes(selection, &usages));
    table
}

fn notes(selection: &Selection<'_>, usages: &[Usage]) -> Vec<Note> {
    let mut notes = unsampled(selection, usages);
    if selection.threads().all(|(id, _)| usages[id.index()].cpu_ns.is_none()) {
        notes.push(note!(Limit, "Context switches were not recorded, so exact CPU time and coverage are unknown."));
    }
    notes.extend(coverage::cpu_notes(selection.capture()));
    notes.extend(other_events(selection));
    notes
}

/// Threads on a CPU of which no sample exists, and their time.
#[derive(Default)]
struct Unsampled {
    threads: usize,
    cpu_ns: u128,
}

impl Unsampled {
    fn add(&mut self, other: &Unsampled) {
        self.threads += other.threads;
        self.cpu_ns += other.cpu_ns;
    }

    /// `317 threads used 57.2 ms of CPU time (19.86 %)`.
    fn described(&self, all_ns: u128) -> String {
        let (threads, cpu) = (NoteValue::plural(self.threads, "thread"), NoteValue::ns(self.cpu_ns));
        let share = NoteValue::percent(percent(self.cpu_ns, all_ns).unwrap_or(0.0));
        format!("{threads} used {cpu} of CPU time ({share})")
    }
}

/// Which threads have no sample, those apart for which the sampled ones of their name stand.
///
/// A clock that samples the whole machine hits some of many short threads, and each hit stands for its neighbours: the
/// name's coverage is then near 100 %. A clock of each thread's own hits none of them, and the name's coverage is low.
fn unsampled(selection: &Selection<'_>, usages: &[Usage]) -> Vec<Note> {
    if selection.filters_stacks() {
        return Vec::new();
    }
    let mut names: FxHashMap<&str, (Usage, Unsampled)> = FxHashMap::default();
    for (id, thread) in selection.threads() {
        let usage = &usages[id.index()];
        let (name, unsampled) = names.entry(&thread.name).or_default();
        name.sampled += usage.sampled;
        name.cpu_ns = name.cpu_ns.unwrap_or(0).checked_add(usage.cpu_ns.unwrap_or(0));
        if let Some(cpu_ns) = usage.cpu_ns.filter(|cpu| *cpu > 0 && usage.by_leaf.is_empty()) {
            unsampled.add(&Unsampled { threads: 1, cpu_ns: cpu_ns.into() });
        }
    }
    let all_ns: u128 = names.values().filter_map(|(name, _)| name.cpu_ns).map(u128::from).sum();
    let (mut unknown, mut stood_for, mut standing) = (Unsampled::default(), Unsampled::default(), Usage::default());
    for (name, unsampled) in names.values().filter(|(_, unsampled)| unsampled.threads > 0) {
        if coverage_percent(selection, name).is_some_and(|coverage| coverage >= coverage::LEAST_PERCENT) {
            stood_for.add(unsampled);
            standing.add(name);
        } else {
            unknown.add(unsampled);
        }
    }
    let mut notes = Vec::new();
    if unknown.threads > 0 {
        let threads = unknown.described(all_ns);
        notes.push(note!(Loss, "{} without any sample: the time is exact, the functions are unknown.", threads));
    }
    if let Some(coverage) = coverage_percent(selection, &standing).filter(|_| stood_for.threads > 0) {
        notes.push(note!(
            Limit,
            "{} without any sample: sampled threads of the same name represent them (coverage of these names: {}).",
            stood_for.described(all_ns),
            NoteValue::percent(coverage)
        ));
    }
    notes
}

/// Who used the CPUs.
pub const ANALYSIS: Analysis = Analysis {
    title: "Threads",
    views: &[
        View {
            name: "threads",
            question: "How much CPU time did each thread use, and in which function?",
            tables: |selection, _| vec![table(selection)],
        },
        View {
            name: "thread-names",
            question: "How much CPU time did threads of each name use?",
            tables: |selection, _| vec![by_name(selection)],
        },
    ],
    report: |selection| ReportSection::of_tables("Threads", vec![table(selection)]).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{Event, Importance};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    fn cpu_clock() -> Event {
        Event::sampled("cpu-clock", "ns")
    }

    #[test]
    fn the_process_is_essential_if_the_capture_has_several() {
        let of_processes = |paths: &[&str]| {
            let mut drawing = Drawing::new();
            for (pid, path) in (7..).zip(paths) {
                drawing = drawing.process(pid, path).folded(cpu_clock(), "main;run 3");
            }
            let table = drawn::selected(&drawing.capture, &[], table);
            table.columns[table.column("process").unwrap()].importance
        };
        assert_eq!(of_processes(&["/bin/sim"]), Importance::Detail);
        assert_eq!(of_processes(&["/bin/sim", "/bin/gui"]), Importance::Essential);
    }

    #[test]
    fn threads_are_listed_with_their_top_function_share_and_coverage() {
        let capture = Drawing::new()
            .process(7, "/usr/bin/gz-sim")
            .lived("main", 0..1_000, 500)
            .lived("worker", 0..1_000, 100)
            .folded(cpu_clock(), "main;run;find 300\nmain;run 180\nworker;poll 120")
            .capture;
        let table = drawn::selected(&capture, &[], table);
        assert_eq!(
            cells(
                &table,
                &[
                    "thread",
                    "process",
                    "pid",
                    "cpu",
                    "count",
                    "weight",
                    "share",
                    "coverage",
                    "top_function",
                    "top_share",
                    "busy"
                ]
            ),
            [
                "main | gz-sim | 7 | 500 | 2 | 480 | 80 | 96 | find | 62.5 | 50",
                "worker | gz-sim | 7 | 100 | 1 | 120 | 20 | 120 | poll | 100 | 10",
            ]
        );
        assert_eq!(table.columns[table.column("cpu").unwrap()].kind, stepscope_model::Kind::Duration);
    }

    #[test]
    fn a_thread_without_samples_has_its_exact_time_and_is_marked() {
        let capture = Drawing::new()
            .lived("main", 0..1_000, 900)
            .lived("short", 10..20, 100)
            .folded(cpu_clock(), "main;a 900")
            .capture;
        let table = drawn::selected(&capture, &[], table);
        assert_eq!(
            cells(&table, &["thread", "cpu", "weight", "sampled", "coverage", "top_function"]),
            ["main | 900 | 900 | true | 100 | a", "short | 100 | 0 | false | 0 | -",]
        );
        assert_eq!(
            table.notes,
            [
                "1 thread used 100 ns of CPU time (10.00 %) without any sample: the time is exact, the functions are unknown."
            ]
        );
    }

    #[test]
    fn short_threads_count_at_the_sampled_threads_of_their_name() {
        let capture = |sampled_ns: u64| {
            let mut capture = Drawing::new()
                .lived("main", 0..1_000, 500)
                .lived("worker", 0..100, 100)
                .lived("short", 100..200, 100)
                .lived("shorter", 200..300, 100)
                .folded(cpu_clock(), &format!("main;run 500\nworker;step {sampled_ns}"))
                .capture;
            capture.threads[2].name = "worker".to_owned();
            capture.threads[3].name = "worker".to_owned();
            capture
        };
        assert_eq!(
            drawn::selected(&capture(302), &[], table).notes,
            [
                "2 threads used 200 ns of CPU time (25.00 %) without any sample: sampled threads of the same name represent them (coverage of these names: 100.67 %)."
            ]
        );
        assert_eq!(
            drawn::selected(&capture(100), &[], by_name).notes,
            [
                "2 threads used 200 ns of CPU time (25.00 %) without any sample: the time is exact, the functions are unknown."
            ]
        );
    }

    /// Erratum 15.
    #[test]
    fn threads_of_one_name_are_also_shown_together() {
        let mut drawing = Drawing::new().lived("worker", 0..10, 4).folded(cpu_clock(), "worker;a 3\nmain;b 4");
        let second = drawing.capture.add_thread(stepscope_model::Thread {
            tid: 900,
            name: "worker".to_owned(),
            cpu_ns: Some(6),
            ..stepscope_model::Thread::default()
        });
        let event = stepscope_model::EventId(0);
        let stack = drawing.capture.samples[0].stack;
        let sample = stepscope_model::Sample { time_ns: None, thread: second, cpu: None, stack, event, weight: 2 };
        drawing.capture.samples.push(sample);
        drawn::selected(&drawing.capture, &[], |selection| {
            let by_name = by_name(selection);
            assert_eq!(
                cells(&by_name, &["thread", "threads", "cpu", "weight", "top_function"]),
                ["worker | 2 | 10 | 5 | a", "main | 1 | - | 4 | b",]
            );
            assert_eq!(cells(&table(selection), &["thread", "weight"]), ["main | 4", "worker | 3", "worker | 2"]);
        });
    }

    #[test]
    fn a_thread_without_stacks_has_no_top_function() {
        let capture = drawn::folded("worker 4");
        let table = drawn::selected(&capture, &[], by_name);
        assert_eq!(cells(&table, &["thread", "top_function", "top_share"]), ["worker | (no stack) | 100"]);
    }

    #[test]
    fn cycles_have_no_coverage() {
        let capture =
            Drawing::new().lived("main", 0..10, 5).folded(Event::sampled("cycles", "cycles"), "main;a 5").capture;
        let table = drawn::selected(&capture, &[], table);
        assert_eq!(cells(&table, &["weight", "coverage"]), ["5 | -"]);
    }
}
