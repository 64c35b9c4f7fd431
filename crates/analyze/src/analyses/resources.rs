//! Resources: what each process of the tree used, from readings a few times a second.
//!
//! There are two kinds of readings. A *level* (resident memory, threads, descriptors) has a first, a last and a largest value. A
//! *total* (CPU time, switches, Column::bytes, faults) counts from the start of the process. Its change is from zero for a process
//! that started within the recording, else from the first reading.
//!
//! A reading holds until the next one: a recorder may leave out those that changed nothing. Rates are changes per second of
//! the time in which the process was observed.
//!
//! [`table`] has one row per process and one for all together; [`counters`] has one row per process and quantity, under
//! any name. The largest level of all together is the largest *sum at one moment*, not the sum of the largest: processes
//! that follow one another do not add up. Memory that processes share counts once for each.
//!
//! Levels are known at readings only, except the peak of resident memory: the kernel's is used if it was reached within the
//! recording. CPU time is exact if context switches were recorded; that of `/proc` has steps of 10 ms.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use stepscope_model::{Column, Columns, Dimension, Process, ProcessId, SYSTEM_PID, Table, reading_kind};

use crate::analysis::{Analysis, View};
use crate::query::select::Selection;

/// What the row of all processes is called.
pub const ALL: &str = "(all)";

/// The readings of one quantity of one process, by time.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    readings: Vec<(u64, i64)>,
}

/// What became of a quantity in a range of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Course {
    pub first: i64,
    pub last: i64,
    pub max: i64,
    pub change: i64,
}

impl Series {
    /// The reading that holds at a time: the last one up to it.
    pub fn value_at(&self, time_ns: u64) -> Option<i64> {
        let after = self.readings.partition_point(|(time, _)| *time <= time_ns);
        Some(self.readings[after.checked_sub(1)?].1)
    }

    /// The total at a time between readings, if it grew evenly since the reading before: at most `every_ns` earlier, because a value that
    /// did not change has no reading.
    pub fn total_at(&self, time_ns: u64, every_ns: u64) -> Option<f64> {
        let after = self.readings.partition_point(|(time, _)| *time <= time_ns);
        let (before_ns, before) = self.readings[after.checked_sub(1)?];
        let Some(&(after_ns, total)) = self.readings.get(after) else { return Some(before as f64) };
        let start_ns = before_ns.max(after_ns.saturating_sub(every_ns));
        let share = time_ns.saturating_sub(start_ns) as f64 / (after_ns - start_ns).max(1) as f64;
        Some(before as f64 + total.saturating_sub(before) as f64 * share)
    }

    /// The time of the last reading.
    pub fn last_ns(&self) -> Option<u64> {
        self.readings.last().map(|(time, _)| *time)
    }

    /// The lower quartile of the times between readings that differ: how often it is read, unless it hardly changes.
    pub fn usual_interval_ns(&self) -> Option<u64> {
        let mut intervals: Vec<u64> = self.readings.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        intervals.sort_unstable();
        intervals.get(intervals.len() / 4).copied()
    }

    /// Its course within `window`; `None` if nothing was read by the window's end.
    fn course(&self, window: &Range<u64>, from_zero: bool) -> Option<Course> {
        let inside = self.readings.partition_point(|(time, _)| *time < window.start);
        let after = self.readings.partition_point(|(time, _)| *time < window.end);
        // The reading that held when the window began, else the first one in it.
        let held = inside.checked_sub(1).map(|index| self.readings[index].1);
        let seen = self.readings[inside..after.max(inside)].iter().map(|(_, value)| *value);
        let mut values = held.into_iter().chain(seen).peekable();
        let first = *values.peek()?;
        let (last, max) = values.fold((first, first), |(_, max), value| (value, max.max(value)));
        let base = if from_zero && held.is_none() { 0 } else { first };
        Some(Course { first, last, max, change: last.saturating_sub(base) })
    }
}

/// Whether a quantity counts from the beginning of the process. Counters that programs name themselves are levels, unless their name
/// starts like that of a total.
pub fn is_total(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["cpu_", "io_", "heap_calls", "heap_bytes"];
    match reading_kind(name) {
        Some(kind) => kind.is_total,
        None => PREFIXES.iter().any(|prefix| name.starts_with(prefix)),
    }
}

/// The unit that a quantity's name ends in.
pub fn unit_of(name: &str) -> &'static str {
    let name = name.split(':').next().unwrap_or(name);
    match name {
        _ if name.ends_with("_ns") => "ns",
        _ if name.ends_with("_bytes") => "bytes",
        _ if name.ends_with("_faults") => "faults",
        _ if name.starts_with("context_switches") => "switches",
        _ => "",
    }
}

/// A process of the selection with its readings.
pub(super) struct Observed<'a> {
    pub id: ProcessId,
    pub process: &'a Process,
    /// The part of the selected time in which it lived.
    pub window: Range<u64>,
    pub quantities: BTreeMap<&'a str, Series>,
    exact_cpu_ns: Option<u64>,
}

impl Observed<'_> {
    pub fn course(&self, name: &str) -> Option<Course> {
        self.quantities.get(name)?.course(&self.window, is_total(name) && self.started_inside())
    }

    fn started_inside(&self) -> bool {
        self.process.start_ns.is_some_and(|start| start >= self.window.start)
    }

    pub fn last(&self, name: &str) -> Option<i64> {
        self.course(name).map(|course| course.last)
    }

    /// A change per second of the time in which the process was observed.
    pub fn per_second(&self, change: i64) -> Option<f64> {
        let observed_ns = observed_ns(&self.window);
        (observed_ns > 0).then(|| change as f64 * 1e9 / observed_ns as f64)
    }

    pub fn change(&self, name: &str) -> Option<i64> {
        self.course(name).map(|course| course.change)
    }

    pub fn cpu_ns(&self) -> Option<i64> {
        let read = || Some(self.change("cpu_user_ns")?.saturating_add(self.change("cpu_system_ns")?));
        self.exact_cpu_ns.and_then(|exact| i64::try_from(exact).ok()).or_else(read)
    }

    /// The largest resident memory: of the readings, or the kernel's own peak if it was reached in the window.
    fn peak_rss(&self) -> Option<i64> {
        let seen = self.course("rss_bytes").map(|course| course.max);
        let kept = self.course("peak_rss_bytes").filter(|peak| self.started_inside() || peak.last > peak.first);
        seen.max(kept.map(|peak| peak.last))
    }
}

/// The selected processes with their readings, in the order of the capture.
pub(super) fn observed<'a>(selection: &Selection<'a>) -> Vec<Observed<'a>> {
    let capture = selection.capture();
    let Some(window) = selection.window() else { return Vec::new() };
    let mut selected = vec![!selection.filters_threads(); capture.processes.len()];
    let mut cpu: Vec<Option<u64>> = vec![None; capture.processes.len()];
    let cpu_times = selection.cpu_times();
    for (id, thread) in selection.threads() {
        let Some(process) = thread.process else { continue };
        selected[process.index()] = true;
        if let Some(ns) = cpu_times[id.index()] {
            let sum = &mut cpu[process.index()];
            *sum = Some(sum.unwrap_or(0).saturating_add(ns));
        }
    }
    let of_process = |(index, process): (usize, &'a Process)| Observed {
        id: ProcessId::from_index(index),
        process,
        window: lived(process, &window),
        quantities: BTreeMap::new(),
        exact_cpu_ns: cpu[index],
    };
    let mut observed: Vec<Observed<'a>> = capture.processes.iter().enumerate().map(of_process).collect();
    for counter in capture.counters.iter().filter(|counter| counter.thread.is_none()) {
        let Some(process) = counter.process else { continue };
        let series = observed[process.index()].quantities.entry(&*counter.name).or_default();
        series.readings.push((counter.time_ns, counter.value));
    }
    for series in observed.iter_mut().flat_map(|one| one.quantities.values_mut()) {
        series.readings.sort_by_key(|(time, _)| *time);
    }
    observed.retain(|one| selected[one.id.index()] && !(one.quantities.is_empty() && one.exact_cpu_ns.is_none()));
    observed
}

fn lived(process: &Process, window: &Range<u64>) -> Range<u64> {
    let start = process.start_ns.map_or(window.start, |start| start.max(window.start));
    // A reading at the very end belongs to the window.
    let end = process.end_ns.map_or(window.end, |end| end.min(window.end)).saturating_add(1);
    start..end.max(start)
}

/// The largest sum over all processes of a level, at one moment.
fn largest_together(processes: &[Observed<'_>], name: &str) -> Option<i64> {
    let mut changes: Vec<(u64, usize, i64)> = Vec::new();
    for (index, one) in processes.iter().enumerate() {
        let Some(series) = one.quantities.get(name) else { continue };
        let inside = |(time, _): &&(u64, i64)| *time < one.window.end;
        let clamped = |(time, value): &(u64, i64)| ((*time).max(one.window.start), index, *value);
        changes.extend(series.readings.iter().filter(inside).map(clamped));
        if one.process.end_ns.is_some_and(|end| end < one.window.end) {
            changes.push((one.window.end, index, 0));
        }
    }
    changes.sort_by_key(|(time, ..)| *time);
    let mut levels = vec![0_i64; processes.len()];
    let mut sum = 0_i64;
    let mut largest = None;
    for (at, (time, index, value)) in changes.iter().enumerate() {
        sum = sum.saturating_add(*value).saturating_sub(levels[*index]);
        levels[*index] = *value;
        // Readings of one moment count together.
        if changes.get(at + 1).is_none_or(|next| next.0 > *time) {
            largest = largest.max(Some(sum));
        }
    }
    largest
}

/// The largest resident memory of all selected processes together: the largest sum at one reading, or the peak of one
/// process where that is larger. Absent if it was not read.
pub fn peak_rss_together(selection: &Selection<'_>) -> Option<i64> {
    peak_rss(&observed(selection))
}

fn peak_rss(processes: &[Observed<'_>]) -> Option<i64> {
    largest_together(processes, "rss_bytes").max(processes.iter().filter_map(Observed::peak_rss).max())
}

/// Each counter of processes that is a level, besides resident memory, with the largest sum over all selected processes at one
/// moment.
pub fn largest_levels(selection: &Selection<'_>) -> Vec<(String, f64)> {
    let observed = observed(selection);
    let names: std::collections::BTreeSet<&str> =
        observed.iter().flat_map(|one| one.quantities.keys().map(|name| &**name)).collect();
    let levels = names.into_iter().filter(|name| !is_total(name) && !name.starts_with("rss_"));
    levels.filter_map(|name| Some((name.to_owned(), largest_together(&observed, name)? as f64))).collect()
}

/// By how much a total (`minor_faults`, `context_switches_voluntary`, ...) changed in all selected processes together;
/// absent where it was not read.
pub fn change_together(selection: &Selection<'_>, quantity: &str) -> Option<i64> {
    observed(selection).iter().filter_map(|one| one.change(quantity)).reduce(i64::saturating_add)
}

/// The table `resources`: a row for all processes together, then one each by CPU time, name and id.
pub fn table(selection: &Selection<'_>) -> Table {
    let mut processes = observed(selection);
    processes.retain(|one| one.process.pid != SYSTEM_PID);
    processes.sort_by_key(|one| (Reverse(one.cpu_ns()), selection.process_label(one.id).to_owned(), one.process.pid));
    let together = (!processes.is_empty()).then(|| Row::together(selection, &processes));
    let rows = together.into_iter().chain(processes.iter().map(|one| Row::of(one, selection.process_label(one.id))));
    table_columns().table("resources", "Resources by process", rows)
}

/// Totals of a process that the table shows as their change: name of the quantity, column and meaning.
const CHANGES: [(&str, &str, &str); 6] = [
    ("context_switches_voluntary", "voluntary", "Number of times that threads gave up a CPU."),
    ("context_switches_involuntary", "involuntary", "Number of times that threads were preempted."),
    ("io_read_bytes", "io_read", "Bytes read from storage."),
    ("io_write_bytes", "io_written", "Bytes written to storage."),
    ("minor_faults", "minor_faults", "Page faults without reading from storage."),
    ("major_faults", "major_faults", "Page faults that read from storage."),
];

/// Levels of a process that the table shows.
const LEVELS: [&str; 3] = ["rss_bytes", "threads", "fds"];

/// A level in the window.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    first: Option<i64>,
    last: Option<i64>,
    max: Option<i64>,
}

/// One process, or all together.
struct Row<'a> {
    label: String,
    process: Option<&'a Process>,
    cpu_ns: Option<i64>,
    /// By [`LEVELS`].
    levels: [Level; LEVELS.len()],
    /// By [`CHANGES`].
    changes: [Option<i64>; CHANGES.len()],
    observed_ns: u64,
}

impl<'a> Row<'a> {
    fn of(one: &Observed<'a>, label: &str) -> Self {
        let mut levels = LEVELS.map(|level| {
            let course = one.course(level);
            Level {
                first: course.map(|one| one.first),
                last: course.map(|one| one.last),
                max: course.map(|one| one.max),
            }
        });
        levels[0].max = one.peak_rss();
        Self {
            label: label.to_owned(),
            process: Some(one.process),
            cpu_ns: one.cpu_ns(),
            levels,
            changes: CHANGES.map(|(quantity, ..)| one.change(quantity)),
            observed_ns: observed_ns(&one.window),
        }
    }

    fn together(selection: &Selection<'_>, processes: &[Observed<'_>]) -> Self {
        let sum = |of: &dyn Fn(&Observed<'_>) -> Option<i64>| -> Option<i64> {
            processes.iter().filter_map(of).reduce(i64::saturating_add)
        };
        let level = |level| Level {
            first: level_at_the_start(selection, processes, level),
            last: level_at_the_end(selection, processes, level),
            max: largest_together(processes, level),
        };
        let mut levels = LEVELS.map(level);
        levels[0].max = peak_rss(processes);
        Self {
            label: ALL.to_owned(),
            process: None,
            cpu_ns: sum(&|one| one.cpu_ns()),
            levels,
            changes: CHANGES.map(|(quantity, ..)| sum(&|one| one.change(quantity))),
            observed_ns: selection.wall_ns().unwrap_or(0),
        }
    }

    fn cores(&self) -> Option<f64> {
        (self.observed_ns > 0).then_some(self.cpu_ns? as f64 / self.observed_ns as f64)
    }
}

fn table_columns<'a>() -> Columns<'a, Row<'a>> {
    let threads = |name: &str, doc: &str| Column::count(name, "threads", doc);
    let fds = |name: &str, doc: &str| Column::count(name, "fds", doc);
    let mut all = Columns::<Row<'a>>::new()
        .text("process", "File name of the executable; `(all)` for the processes together.", |row| {
            row.label.as_str().into()
        })
        .number("pid", "", "Process id.", |row| row.process.map(|process| process.pid))
        .duration(
            "cpu",
            "CPU time: exact from context switches if they were recorded, else from /proc in steps of 10 ms.",
            |row| row.cpu_ns,
        )
        .number("cores", "cores", "CPU time over the observed time: 1 is one core kept busy.", |row| row.cores())
        .bytes("rss_first", "Resident memory at the first reading.", |row| row.levels[0].first)
        .bytes("rss_last", "Resident memory at the last reading.", |row| row.levels[0].last)
        .bytes(
            "rss_peak",
            "Largest resident memory. All together: the largest sum at one reading, or the peak of one process.",
            |row| row.levels[0].max,
        )
        .with(threads("threads_first", "Threads at the first reading.").detail(), |row| row.levels[1].first.into())
        .with(threads("threads_last", "Threads at the last reading.").detail(), |row| row.levels[1].last.into())
        .with(threads("threads_max", "Most threads at a reading."), |row| row.levels[1].max.into())
        .with(fds("fds_first", "Open file descriptors at the first reading.").detail(), |row| {
            row.levels[2].first.into()
        })
        .with(fds("fds_last", "Open file descriptors at the last reading.").detail(), |row| row.levels[2].last.into())
        .with(fds("fds_max", "Most open file descriptors at a reading."), |row| row.levels[2].max.into())
        .essential("cpu cores rss_peak")
        .detail("rss_first rss_last");
    for (index, (quantity, name, doc)) in CHANGES.into_iter().enumerate() {
        let column = match unit_of(quantity) {
            "bytes" => Column::bytes(name, doc),
            unit => Column::count(name, unit, doc),
        };
        all = all.with(column, move |row| row.changes[index].into());
    }
    all.duration("observed", "Time from the first to the last reading.", |row| row.observed_ns).number(
        "exit_status",
        "",
        "Exit code, or 128 + signal, if it ended within the recording.",
        |row| row.process.and_then(|process| process.exit_status),
    )
}

pub(super) fn observed_ns(window: &Range<u64>) -> u64 {
    (window.end - window.start).saturating_sub(1)
}

/// The first reading of the processes that were there when the window began, or of the first one that came.
fn level_at_the_start(selection: &Selection<'_>, processes: &[Observed<'_>], name: &str) -> Option<i64> {
    let start = selection.window()?.start;
    let first = processes.iter().map(|one| one.window.start).min()?;
    let there = processes.iter().filter(|one| one.window.start <= start.max(first));
    there.filter_map(|one| Some(one.course(name)?.first)).reduce(i64::saturating_add)
}

/// The last reading of the processes that were there when the window ended, or of the last ones that left.
fn level_at_the_end(selection: &Selection<'_>, processes: &[Observed<'_>], name: &str) -> Option<i64> {
    let end = selection.window()?.end;
    let last = processes.iter().map(|one| one.window.end).max()?;
    let there = processes.iter().filter(|one| one.window.end >= last.min(end));
    there.filter_map(|one| Some(one.course(name)?.last)).reduce(i64::saturating_add)
}

/// The table `counters`: a row for each process and quantity, in the order of processes, then of names.
pub fn counters(selection: &Selection<'_>) -> Table {
    struct Row<'a> {
        label: &'a str,
        process: &'a Process,
        quantity: &'a str,
        course: Course,
        seconds: f64,
    }
    let rows = observed(selection).into_iter().flat_map(|one| {
        let seconds = observed_ns(&one.window) as f64 / 1e9;
        let rows = one.quantities.keys().filter_map(|quantity| {
            Some(Row {
                label: selection.process_label(one.id),
                process: one.process,
                quantity,
                course: one.course(quantity)?,
                seconds,
            })
        });
        rows.collect::<Vec<_>>()
    });
    Columns::<Row<'_>>::new()
        .text("process", "File name of the executable.", |row| row.label.into())
        .number("pid", "", "Process id.", |row| row.process.pid)
        .text("quantity", "What was read; its name ends in its unit.", |row| row.quantity.into())
        .flag("total", "Whether it counts from the start of the process; the others are levels.", |row| {
            is_total(row.quantity)
        })
        .number("first", "", "The first reading, in the quantity's unit.", |row| row.course.first)
        .number("last", "", "The last reading.", |row| row.course.last)
        .number("max", "", "The largest reading.", |row| row.course.max)
        .number(
            "change",
            "",
            "Last less first reading; from 0 for totals of processes that started within the recording.",
            |row| row.course.change,
        )
        .number("rate", "1/s", "The change per second of observed time.", |row| row.course.change as f64 / row.seconds)
        .essential("quantity change")
        .table("counters", "Readings by process and quantity", rows)
}

/// What each process used.
pub const ANALYSIS: Analysis = Analysis {
    title: "Resources",
    views: &[
        View {
            name: "resources",
            question: "How much CPU, memory, threads and I/O did each process use?",
            tables: |selection, _| vec![table(selection)],
        },
        View {
            name: "counters",
            question: "How did each counter of each process change?",
            tables: |selection, _| vec![counters(selection)],
        },
    ],
    needs: &[Dimension::Resources],
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Counter};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};
    use crate::query::select::{Filter, TimeRange};

    const S: u64 = 1_000_000_000;

    /// Readings, one a line: `SECONDS PID QUANTITY VALUE`.
    fn readings(mut capture: Capture, text: &str) -> Capture {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let parts: Vec<&str> = line.split_whitespace().collect();
            let pid: u32 = parts[1].parse().unwrap();
            let process = capture.processes.iter().position(|process| process.pid == pid).map(ProcessId::from_index);
            capture.counters.push(Counter {
                time_ns: parts[0].parse::<u64>().unwrap() * S,
                process,
                thread: None,
                name: parts[2].into(),
                value: parts[3].parse().unwrap(),
            });
        }
        capture
    }

    /// gz was there before and stays; the helper lives from second 2 to 6.
    fn two_processes() -> Capture {
        let mut capture =
            Drawing::new().window(0..10 * S).process(7, "/usr/bin/gz").process(8, "/usr/bin/helper").capture;
        (capture.processes[1].start_ns, capture.processes[1].end_ns) = (Some(2 * S), Some(6 * S));
        capture.processes[1].exit_status = Some(137);
        readings(
            capture,
            "
            0 7 rss_bytes 100
            0 7 cpu_user_ns 1000000000
            0 7 cpu_system_ns 0
            0 7 fds 10
            3 8 rss_bytes 50
            3 8 cpu_user_ns 500000000
            3 8 cpu_system_ns 0
            4 7 rss_bytes 70
            5 8 rss_bytes 60
            5 8 cpu_user_ns 2000000000
            7 7 rss_bytes 120
            9 7 cpu_user_ns 5000000000
            9 7 fds 30
            ",
        )
    }

    #[test]
    fn totals_count_from_zero_for_a_process_that_started_within_the_recording() {
        let table = drawn::selected(&two_processes(), &[], table);
        assert_eq!(
            cells(&table, &["process", "pid", "cpu", "cores", "observed", "exit_status"]),
            [
                "(all) | - | 6000000000 | 0.6 | 10000000000 | -",
                "gz | 7 | 4000000000 | 0.4 | 10000000000 | -",
                "helper | 8 | 2000000000 | 0.5 | 4000000000 | 137",
            ]
        );
    }

    #[test]
    fn the_largest_level_together_is_the_largest_sum_at_one_moment() {
        let table = drawn::selected(&two_processes(), &[], table);
        assert_eq!(
            cells(&table, &["process", "rss_first", "rss_last", "rss_peak", "fds_max"]),
            ["(all) | 100 | 120 | 150 | 30", "gz | 100 | 120 | 120 | 30", "helper | 50 | 60 | 60 | -",]
        );
    }

    #[test]
    fn the_kernels_peak_counts_only_where_it_was_reached_within_the_recording() {
        let capture = readings(two_processes(), "0 7 peak_rss_bytes 900\n3 8 peak_rss_bytes 80");
        let peak = |capture: &Capture| cells(&drawn::selected(capture, &[], table), &["process", "rss_peak"]);
        assert_eq!(peak(&capture)[1..], ["gz | 120", "helper | 80"]);
        let capture = readings(capture, "8 7 peak_rss_bytes 950");
        assert_eq!(peak(&capture)[1..], ["gz | 950", "helper | 80"]);
    }

    #[test]
    fn every_quantity_has_its_course_and_rate() {
        let table = drawn::selected(&two_processes(), &[], counters);
        assert_eq!(
            cells(&table, &["pid", "quantity", "total", "first", "last", "max", "change", "rate"]),
            [
                "7 | cpu_system_ns | true | 0 | 0 | 0 | 0 | 0",
                "7 | cpu_user_ns | true | 1000000000 | 5000000000 | 5000000000 | 4000000000 | 400000000",
                "7 | fds | false | 10 | 30 | 30 | 20 | 2",
                "7 | rss_bytes | false | 100 | 120 | 120 | 20 | 2",
                "8 | cpu_system_ns | true | 0 | 0 | 0 | 0 | 0",
                "8 | cpu_user_ns | true | 500000000 | 2000000000 | 2000000000 | 2000000000 | 500000000",
                "8 | rss_bytes | false | 50 | 60 | 60 | 10 | 2.5",
            ]
        );
    }

    #[test]
    fn a_reading_holds_until_the_next_one_also_across_the_edge_of_a_range() {
        let filter = Filter { time: Some(TimeRange { from_ns: 5 * S, to_ns: Some(8 * S) }), ..Filter::default() };
        let table = drawn::filtered(&two_processes(), &[], &filter, counters);
        assert_eq!(
            cells(&table, &["pid", "quantity", "first", "last", "change"])[2..],
            [
                "7 | fds | 10 | 10 | 0",
                "7 | rss_bytes | 70 | 120 | 50",
                "8 | cpu_system_ns | 0 | 0 | 0",
                "8 | cpu_user_ns | 500000000 | 2000000000 | 1500000000",
                "8 | rss_bytes | 50 | 60 | 10",
            ]
        );
    }

    #[test]
    fn exact_cpu_times_of_threads_are_preferred() {
        let mut capture = Drawing::new()
            .window(0..10)
            .process(7, "/usr/bin/gz")
            .lived("main", 0..10, 4)
            .lived("worker", 0..10, 3)
            .capture;
        capture = readings(capture, "0 7 cpu_user_ns 0\n0 7 cpu_system_ns 0");
        let table = drawn::selected(&capture, &[], table);
        assert_eq!(cells(&table, &["process", "cpu", "cores"]), ["(all) | 7 | 0.7", "gz | 7 | 0.7"]);
    }

    #[test]
    fn missing_readings_are_noted() {
        let tables = drawn::selected(&drawn::folded("main;a 1"), &[], |selection| {
            crate::analysis::tables(&ANALYSIS, &ANALYSIS.views[0], selection, &Default::default())
        });
        assert!(tables[0].rows.is_empty());
        assert_eq!(
            tables[0].notes,
            ["`resources` was not recorded; fix: `stepscope record --dimensions cpu,resources`."]
        );
    }
}
