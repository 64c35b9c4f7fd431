//! Monitored processes: what each uses per second, which figures grow, and what the machine did.
//!
//! Three tables, of the readings that [`resources`](mod@super::resources) defines. [`processes`]: one row for each process; totals as
//! rates, levels at their last reading. [`trends`]: one row for each process and level, with its slope. [`machine`]: one row for
//! each quantity of the machine, its control groups, disks and network interfaces. Beside them stand the curves of each figure over
//! time (`over_time`), which the report shows as charts.
//!
//! A slope is that of Theil and Sen with its 95 % interval ([`stepscope_stats::trend`]), over [`POINTS`] values at equal
//! distances, each held from the reading before. A figure *grows* if the intervals of the whole and of both halves are above
//! zero. So neither a start (growth that ends) nor a single step counts, which least squares would take for a leak. The first tenth
//! is left out, because programs allocate when they start.
//!
//! Readings of one process depend on each other, so intervals are narrower than they should be; the condition on both halves makes
//! up for it. A leak that is slower than the noise within the time observed is not found: monitor for longer.

mod over_time;

use std::cmp::Reverse;

use stepscope_model::{Column, Columns, Dimension, Kind, NoteValue, SYSTEM_PID, Table, note};
use stepscope_stats::Estimate;
use stepscope_stats::trend::theil_sen;

use super::resources::{self, Observed, is_total, observed, unit_of};
use crate::analysis::{Analysis, Part, ReportSection, View};
use crate::columns::bounds;
use crate::query::select::Selection;

/// Values of which a slope is made.
const POINTS: usize = 64;

/// The share of the time at the start that slopes leave out.
const START: f64 = 0.1;

/// Levels of which trends are of interest: those that leak.
const TRENDS: [&str; 7] = ["rss_bytes", "pss_bytes", "swap_bytes", "fds", "sockets", "threads", "gpu_memory_bytes"];

const HOUR_NS: f64 = 3.6e12;

/// How a level developed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trend {
    per_hour: Estimate,
    verdict: &'static str,
}

/// The trend of a level. `None` without enough readings.
fn trend(one: &Observed<'_>, quantity: &str) -> Option<Trend> {
    let window = &one.window;
    let begin = window.start + ((window.end - window.start) as f64 * START) as u64;
    let step = (window.end.checked_sub(begin)? / POINTS as u64).max(1);
    let points: Vec<(f64, f64)> = (1..=POINTS as u64)
        .map(|index| begin + index * step)
        .filter_map(|time| Some((time as f64 / HOUR_NS, one.quantities.get(quantity)?.value_at(time)? as f64)))
        .collect();
    let slope = |points: &[(f64, f64)]| theil_sen(points, 0.95);
    let per_hour = slope(&points)?;
    let (first, second) = points.split_at(points.len() / 2);
    let all = |is: fn(&Estimate) -> bool| {
        [Some(per_hour), slope(first), slope(second)].iter().flatten().filter(|one| is(one)).count() == 3
    };
    let verdict = if all(|slope| slope.low > 0.0) {
        "grows"
    } else if all(|slope| slope.high < 0.0) {
        "shrinks"
    } else {
        "steady"
    };
    Some(Trend { per_hour, verdict })
}

/// The processes, without the row that stands for the machine.
fn watched<'a>(selection: &Selection<'a>) -> Vec<Observed<'a>> {
    let mut all = observed(selection);
    all.retain(|one| one.process.pid != SYSTEM_PID);
    all
}

/// The table `monitor`: a row for each process, by CPU time.
pub fn processes(selection: &Selection<'_>) -> Table {
    struct Row<'a, 'b> {
        one: &'b Observed<'a>,
        label: &'b str,
        rss: Option<Trend>,
        fds: Option<Trend>,
    }
    let mut watched = watched(selection);
    watched.sort_by_key(|one| (Reverse(one.cpu_ns()), one.process.pid));
    let rows = watched.iter().map(|one| Row {
        one,
        label: selection.process_label(one.id),
        rss: trend(one, "rss_bytes"),
        fds: trend(one, "fds"),
    });
    let mut columns = Columns::<Row<'_, '_>>::new()
        .text("process", "File name of the executable.", |row| row.label.into())
        .number("pid", "", "Process id.", |row| row.one.process.pid)
        .number("cores", "cores", "CPU time over the observed time: 1 is one core kept busy.", |row| {
            row.one.cpu_ns().and_then(|ns| row.one.per_second(ns)).map(|per_second| per_second / 1e9)
        })
        .text("state", "State of the main thread at the last reading, by the kernel's letter: R runs, S sleeps, D waits for a device.", |row| {
            row.one.last("state").and_then(|letter| u8::try_from(letter).ok()).map(|letter| char::from(letter).to_string()).into()
        })
        .with(Column::count("threads", "threads", "Threads at the last reading."), |row| row.one.last("threads").into());
    for (name, quantity, doc) in [
        ("rss", "rss_bytes", "Resident memory at the last reading."),
        (
            "pss",
            "pss_bytes",
            "Resident memory with shared pages divided by the processes that share them, at the last reading.",
        ),
        ("swap", "swap_bytes", "Memory that was swapped out, at the last reading."),
        ("gpu_memory", "gpu_memory_bytes", "GPU memory at the last reading."),
    ] {
        columns = columns.with(Column::bytes(name, doc), move |row| row.one.last(quantity).into());
    }
    columns = columns
        .with(
            Column::new("rss_per_hour", Kind::Bytes, "bytes/h", "Slope of resident memory per hour (Theil-Sen)."),
            |row| row.rss.map(|trend| trend.per_hour.value).into(),
        )
        .with(Column::count("fds", "fds", "Open file descriptors at the last reading."), |row| {
            row.one.last("fds").into()
        })
        .number("fds_per_hour", "fds/h", "Slope of open file descriptors per hour (Theil-Sen).", |row| {
            row.fds.map(|trend| trend.per_hour.value)
        })
        .with(Column::count("sockets", "sockets", "Sockets among them, at the last reading."), |row| {
            row.one.last("sockets").into()
        });
    for (name, quantity, unit, doc) in RATES {
        let column = match unit {
            "bytes/s" => Column::new(name, Kind::Bytes, unit, doc),
            "percent" => Column::percentage(name, doc),
            unit => Column::number(name, unit, doc),
        };
        let scale = if unit == "percent" { 1e7 } else { 1.0 };
        columns = columns.with(column, move |row| {
            row.one.change(quantity).and_then(|change| row.one.per_second(change)).map(|rate| rate / scale).into()
        });
    }
    columns
        .text("grows", "Figures that grow: see the view `monitor-trends`.", |row| {
            let grow = TRENDS.iter().filter(|quantity| trend(row.one, quantity).is_some_and(|trend| trend.verdict == "grows"));
            grow.copied().collect::<Vec<_>>().join(", ").into()
        })
        .duration("observed", "Time from its first to its last reading.", |row| resources::observed_ns(&row.one.window))
        .essential("process pid cores threads rss fds grows")
        .detail("swap gpu gpu_memory sockets minor_fault_rate major_fault_rate io_read_rate io_write_rate involuntary_rate rss_per_hour fds_per_hour observed")
        .table("monitor", "Monitored processes", rows)
}

/// Totals that the table shows as rates: column, quantity, unit and meaning.
const RATES: [(&str, &str, &str, &str); 10] = [
    ("minor_fault_rate", "minor_faults", "faults/s", "Page faults per second that did not read from storage."),
    ("major_fault_rate", "major_faults", "faults/s", "Page faults per second that read from storage."),
    ("io_read_rate", "io_read_bytes", "bytes/s", "Bytes read from storage per second."),
    ("io_write_rate", "io_write_bytes", "bytes/s", "Bytes written to storage per second."),
    (
        "read_call_rate",
        "io_read_call_bytes",
        "bytes/s",
        "Bytes that read calls returned per second, of files, pipes and terminals.",
    ),
    ("write_call_rate", "io_write_call_bytes", "bytes/s", "Bytes given to write calls per second."),
    ("voluntary_rate", "context_switches_voluntary", "switches/s", "Times per second that threads gave up a CPU."),
    ("involuntary_rate", "context_switches_involuntary", "switches/s", "Times per second that threads were preempted."),
    ("cpu_wait", "run_queue_delay_ns", "percent", "Time that threads waited for a CPU, per time observed."),
    ("gpu", "gpu_ns", "percent", "GPU time per time observed."),
];

/// The table `monitor_trends`: a row for each process and level, growing ones first, then by the size of the change.
pub fn trends(selection: &Selection<'_>) -> Table {
    struct Row<'a, 'b> {
        one: &'b Observed<'a>,
        label: &'b str,
        quantity: &'static str,
        trend: Option<Trend>,
    }
    let watched = watched(selection);
    let mut rows: Vec<Row<'_, '_>> = watched
        .iter()
        .flat_map(|one| {
            let present = TRENDS.into_iter().filter(|quantity| one.quantities.contains_key(*quantity));
            present.map(move |quantity| (one, quantity))
        })
        .map(|(one, quantity)| Row {
            one,
            label: selection.process_label(one.id),
            quantity,
            trend: trend(one, quantity),
        })
        .collect();
    let relative = |row: &Row<'_, '_>| {
        let change =
            row.one.course(row.quantity).map_or(0.0, |course| course.change as f64 / course.first.max(1) as f64);
        (change.abs() * 1e6) as u64
    };
    let order = |row: &Row<'_, '_>| row.trend.map_or(2, |trend| u8::from(trend.verdict != "grows"));
    rows.sort_by_key(|row| (order(row), Reverse(relative(row)), row.one.process.pid));
    let growing = rows.iter().filter(|row| order(row) == 0).count();
    let mut table = Columns::<Row<'_, '_>>::new()
        .text("process", "File name of the executable.", |row| row.label.into())
        .number("pid", "", "Process id.", |row| row.one.process.pid)
        .text("quantity", "What was read; its name ends in its unit.", |row| row.quantity.into())
        .number("first", "", "The first reading.", |row| row.one.course(row.quantity).map(|course| course.first))
        .number("last", "", "The last reading.", |row| row.one.course(row.quantity).map(|course| course.last))
        .number("max", "", "The largest reading.", |row| row.one.course(row.quantity).map(|course| course.max))
        .number("per_hour", "1/h", "Slope per hour (Theil-Sen), without the first tenth of the time.", |row| {
            row.trend.map(|trend| trend.per_hour.value)
        })
        .with_all(bounds(
            "per_hour_",
            |name, doc| Column::number(name, "1/h", doc),
            |row: &Row<'_, '_>| row.trend.map(|trend| trend.per_hour),
        ))
        .text(
            "verdict",
            "Whether it grows or shrinks in the whole time and in both halves of it; else it is steady.",
            |row| row.trend.map(|trend| trend.verdict).into(),
        )
        .essential("process quantity first last per_hour verdict")
        .table("monitor_trends", "Growth of monitored processes", rows);
    table.note(match growing {
        0 => note!(Fact, "No figure grows in the whole time and in both halves of it."),
        growing => {
            note!(Fact, "{} in the whole time and in both halves of it.", NoteValue::plural(growing, "growing figure"))
        }
    });
    table
}

/// The table `monitor_machine`: a row for each quantity of the machine, by name.
pub fn machine(selection: &Selection<'_>) -> Table {
    let all = observed(selection);
    let rows = all
        .iter()
        .filter(|one| one.process.pid == SYSTEM_PID)
        .flat_map(|one| one.quantities.keys().map(move |quantity| (one, *quantity)));
    Columns::<(&Observed<'_>, &str)>::new()
        .text("quantity", "What was read; its name ends in its unit.", |(_, quantity)| {
            quantity.split(':').next().unwrap_or(quantity).into()
        })
        .text(
            "of",
            "Which CPU, disk, network interface or cgroup; `@` is before the id of another network namespace.",
            |(_, quantity)| quantity.split_once(':').map_or("", |(_, instance)| instance).into(),
        )
        .number("first", "", "The first reading.", |(one, quantity)| one.course(quantity).map(|course| course.first))
        .number("last", "", "The last reading.", |(one, quantity)| one.course(quantity).map(|course| course.last))
        .number("max", "", "The largest reading of a level; missing for totals.", |(one, quantity)| {
            one.course(quantity).filter(|_| !is_total(quantity)).map(|course| course.max)
        })
        .number("rate", "1/s", "Change per second of a total; missing for levels.", |(one, quantity)| {
            one.change(quantity).filter(|_| is_total(quantity)).and_then(|change| one.per_second(change))
        })
        .with(
            Column::percentage(
                "share",
                "The same of a total of time, as a share of the time observed; of all CPUs together, 100 % is one CPU.",
            ),
            |(one, quantity)| {
                let change = one.change(quantity).filter(|_| is_total(quantity) && unit_of(quantity) == "ns");
                change.and_then(|change| one.per_second(change)).map(|rate| rate / 1e7).into()
            },
        )
        .essential("quantity of last rate share")
        .table("monitor_machine", "The machine while it was monitored", rows)
}

/// Of a monitor, which also reads the machine: curves of all figures, and the tables.
fn report(selection: &Selection<'_>) -> Vec<ReportSection> {
    let machine = machine(selection);
    if machine.rows.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![Part::Table(processes(selection))];
    parts.extend(over_time::charts(selection));
    parts.extend([Part::Table(trends(selection)), Part::Table(machine)]);
    vec![ReportSection::new("Monitor", parts)]
}

/// What monitored processes and the machine used.
pub const ANALYSIS: Analysis = Analysis {
    title: "Monitor",
    views: &[
        View {
            name: "monitor",
            question: "What does each monitored process use, and which figures of it grow?",
            tables: |selection, _| vec![processes(selection)],
        },
        View {
            name: "monitor-trends",
            question: "Which processes leak memory, descriptors or threads, and how fast?",
            tables: |selection, _| vec![trends(selection)],
        },
        View {
            name: "monitor-machine",
            question: "What did the machine do while processes were monitored?",
            tables: |selection, _| vec![machine(selection)],
        },
        View {
            name: "monitor-time",
            question: "How did each figure develop, of the ten processes with most of it?",
            tables: |selection, _| over_time::tables(selection),
        },
    ],
    needs: &[Dimension::Resources],
    report,
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Counter, ProcessId, SYSTEM};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    const S: u64 = 1_000_000_000;
    const HOUR: u64 = 3600;

    /// An hour of `leaky`, `starter` and the machine.
    fn an_hour() -> Capture {
        let drawing =
            Drawing::new().window(0..HOUR * S).process(0, SYSTEM).process(7, "/opt/leaky").process(8, "/opt/starter");
        let mut capture = drawing.capture;
        let mut add = |time_s: u64, process: usize, name: &str, value: i64| {
            capture.counters.push(Counter {
                time_ns: time_s * S,
                process: Some(ProcessId::from_index(process)),
                thread: None,
                name: name.into(),
                value,
            });
        };
        for time_s in (0..HOUR).step_by(10) {
            let noise = (time_s * 7919 % 13) as i64 * 10;
            add(time_s, 1, "rss_bytes", 1_000_000 + time_s as i64 + noise);
            add(time_s, 1, "cpu_user_ns", (time_s * S / 2) as i64);
            add(time_s, 2, "rss_bytes", if time_s < 600 { time_s as i64 * 1000 } else { 600_000 + noise });
            add(time_s, 0, "disk_read_bytes:sda", time_s as i64 * 512);
            add(time_s, 0, "system_cpu_user_ns", (time_s * 2 * S) as i64);
        }
        for (name, value) in [("cpu_system_ns", 0), ("fds", 9), ("state", 83), ("threads", 4)] {
            add(0, 1, name, value);
        }
        add(5, 0, "memory_available_bytes", 77);
        capture
    }

    #[test]
    fn a_leak_grows_and_memory_taken_at_the_start_does_not() {
        let table = drawn::selected(&an_hour(), &[], trends);
        let verdicts = cells(&table, &["process", "quantity", "verdict"]);
        assert_eq!(
            verdicts,
            [
                "leaky | rss_bytes | grows",
                "starter | rss_bytes | steady",
                "leaky | fds | steady",
                "leaky | threads | steady",
            ]
        );
        let slope = table.get(0, "per_hour").and_then(stepscope_model::quantity::number).unwrap();
        assert!((slope - 3600.0).abs() < 60.0, "{slope}");
        assert_eq!(table.notes, ["1 growing figure in the whole time and in both halves of it."]);
    }

    #[test]
    fn totals_are_rates_and_levels_are_those_of_the_last_reading() {
        let table = drawn::selected(&an_hour(), &[], processes);
        let rows = cells(&table, &["process", "pid", "state", "threads", "fds", "grows"]);
        assert_eq!(rows[0], "leaky | 7 | S | 4 | 9 | rss_bytes");
        assert_eq!(table.rows.len(), 2, "the machine is no process");
        let cores = table.get(0, "cores").and_then(stepscope_model::quantity::number).unwrap();
        assert!((cores - 0.5).abs() < 0.005, "{cores}");
    }

    #[test]
    fn curves_are_of_the_processes_with_most_of_a_figure_at_the_distance_of_its_readings() {
        let mut capture = an_hour();
        for process in 1..3 {
            capture.counters.push(Counter {
                time_ns: S,
                process: Some(ProcessId::from_index(process)),
                thread: None,
                name: "sockets".into(),
                value: 0,
            });
        }
        let tables = drawn::selected(&capture, &[], over_time::tables);
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["monitor_cores", "monitor_rss", "monitor_fds", "monitor_threads"], "no sockets, no curve");
        let cores = &tables[0];
        assert_eq!(cores.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["time", "top_1"]);
        assert_eq!(cores.columns[1].label.as_deref(), Some("leaky"));
        assert_eq!(cores.rows.len(), 299, "the last reading is at 3,590 s");
        assert_eq!(cells(cores, &["time", "top_1"])[1], format!("{} | 0.5", 24 * S));
        let rss = &tables[1];
        assert_eq!(rss.columns[1].label.as_deref(), Some("leaky"), "it has the larger maximum");
        assert_eq!(rss.columns.len(), 3);
        let sections = drawn::selected(&capture, &[], report);
        let charts = sections[0].parts.iter().filter(|part| matches!(part, Part::Chart { .. })).count();
        assert_eq!(charts, 4);
    }

    #[test]
    fn a_recording_without_the_machine_has_no_section() {
        let mut capture = an_hour();
        capture.counters.retain(|counter| counter.process != Some(ProcessId::from_index(0)));
        assert!(drawn::selected(&capture, &[], report).is_empty());
    }

    #[test]
    fn the_machine_has_its_instances_in_a_column_of_their_own() {
        let table = drawn::selected(&an_hour(), &[], machine);
        assert_eq!(
            cells(&table, &["quantity", "of", "last", "max"]),
            [
                format!("disk_read_bytes | sda | {} | -", 3590 * 512),
                "memory_available_bytes |  | 77 | 77".to_owned(),
                format!("system_cpu_user_ns |  | {} | -", 3590 * 2 * S),
            ]
        );
        let share = table.get(2, "share").and_then(stepscope_model::quantity::number).unwrap();
        assert!((share - 200.0).abs() < 2.0, "{share}");
    }
}
