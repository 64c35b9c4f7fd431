//! What a run is reported as: the framework's files, a table to be read, and JSON for programs.
//!
//! The files have the framework's names, columns and layout: columns separated by spaces and padded to a width, counts as
//! they are, and where it writes `nan` a `-`. Some have further columns at the end of theirs.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::latency::Latencies;
use super::system::{Outcome, Published};
use super::tracker::{Total, Tracker};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}")]
pub struct WriteError {
    /// The file, or its folder.
    path: PathBuf,
    source: io::Error,
}

/// Writes `latency_all.txt`, `latency_total.txt`, `resources.txt` and `events.txt` into a folder, which is made.
///
/// # Errors
/// If it cannot be made or written to.
pub fn write_files(folder: &Path, outcome: &Outcome) -> Result<(), WriteError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| WriteError { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let files = [
        ("latency_all.txt", latency_all(outcome)),
        ("latency_total.txt", latency_total(outcome)),
        ("resources.txt", resources(outcome)),
        ("events.txt", events(outcome)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(())
}

/// A table of the framework: widths of its columns, and rows.
struct Padded {
    widths: &'static [usize],
    text: String,
}

impl Padded {
    fn new(widths: &'static [usize]) -> Self {
        Self { widths, text: String::new() }
    }

    fn title(&mut self, title: &str) {
        let _ = write!(self.text, "\n{title} stats:\n");
    }

    fn row<Cell: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = Cell>) {
        for (cell, width) in cells.into_iter().zip(self.widths) {
            let cell = cell.as_ref();
            // The framework runs cells that are too wide into the next; a space keeps them apart.
            let space = if cell.chars().count() >= *width { " " } else { "" };
            let _ = write!(self.text, "{cell:<width$}{space}");
        }
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        self.text.push('\n');
    }
}

fn rounded(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.0}"))
}

fn precise(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.4}"))
}

const LATENCY_ALL: [&str; 15] = [
    "node",
    "topic",
    "size_b",
    "received_msgs",
    "late_msgs",
    "too_late_msgs",
    "lost_msgs",
    "mean_us",
    "sd_us",
    "min_us",
    "max_us",
    "freq_hz",
    "throughput_Kb_per_sec",
    "p50_us",
    "p99_us",
];

fn latency_all(outcome: &Outcome) -> String {
    let elapsed_s = outcome.resources.last().map_or(0.0, |last| last.elapsed.as_secs_f64());
    let mut table = Padded::new(&[15, 15, 10, 15, 10, 15, 10, 10, 10, 10, 10, 10, 22, 10, 10]);
    for (title, trackers) in [("Subscriptions", &outcome.subscriptions), ("Clients", &outcome.clients)] {
        if !trackers.is_empty() {
            table.title(title);
            table.row(LATENCY_ALL);
            trackers.iter().for_each(|tracker| table.row(tracker_row(tracker, elapsed_s)));
        }
    }
    if !outcome.publishers.is_empty() {
        table.title("Publishers");
        table.row(LATENCY_ALL);
        outcome.publishers.iter().for_each(|published| table.row(published_row(published, elapsed_s)));
    }
    table.text
}

fn tracker_row(tracker: &Tracker, elapsed_s: f64) -> Vec<String> {
    let counts = [tracker.received(), tracker.late, tracker.too_late, tracker.lost()];
    let names = [tracker.node.clone(), tracker.entity.clone(), tracker.size_bytes.to_string()];
    let frequency = tracker.frequency_hz().unwrap_or(0.0);
    names
        .into_iter()
        .chain(counts.map(|count| count.to_string()))
        .chain(duration_cells(&tracker.latencies, frequency, tracker.size_bytes, elapsed_s))
        .collect()
}

/// The latency of a publisher is what its calls of publish took.
fn published_row(published: &Published, elapsed_s: f64) -> Vec<String> {
    let names = [published.node.clone(), published.topic.clone(), published.size_bytes.to_string()];
    let counts = [published.durations.count(), 0, 0, 0];
    let frequency = 1.0 / published.period.as_secs_f64();
    names
        .into_iter()
        .chain(counts.map(|count| count.to_string()))
        .chain(duration_cells(&published.durations, frequency, published.size_bytes, elapsed_s))
        .collect()
}

fn duration_cells(durations: &Latencies, frequency: f64, size_bytes: usize, elapsed_s: f64) -> [String; 8] {
    let bytes = size_bytes as f64 * durations.count() as f64;
    [
        rounded(durations.mean_us()),
        rounded(durations.sd_us()),
        rounded(durations.min_us()),
        rounded(durations.max_us()),
        format!("{}", (frequency * 1e3).round() / 1e3),
        format!("{:.3}", bytes / elapsed_s.max(1e-9) / 1024.0),
        rounded(durations.percentile_us(0.5)),
        rounded(durations.percentile_us(0.99)),
    ]
}

fn total(outcome: &Outcome) -> Total {
    Total::of(outcome.subscriptions.iter().chain(&outcome.clients))
}

fn latency_total(outcome: &Outcome) -> String {
    let total = total(outcome);
    let mut table = Padded::new(&[15, 10, 10, 10, 15, 15, 10, 10]);
    table.row([
        "received_msgs",
        "mean_us",
        "late_msgs",
        "late_perc",
        "too_late_msgs",
        "too_late_perc",
        "lost_msgs",
        "lost_perc",
    ]);
    table.row([
        total.received().to_string(),
        rounded(total.latencies.mean_us()),
        total.late.to_string(),
        precise(total.late_percent()),
        total.too_late.to_string(),
        precise(total.too_late_percent()),
        total.lost.to_string(),
        precise(total.lost_percent()),
    ]);
    table.text
}

fn resources(outcome: &Outcome) -> String {
    let mut table = Padded::new(&[15, 10, 15, 15, 15, 15, 15, 15, 15]);
    table.row([
        "time_ms",
        "cpu_perc",
        "arena_KB",
        "in_use_KB",
        "mmap_KB",
        "rss_KB",
        "vsz_KB",
        "peak_rss_KB",
        "user_cpu_perc",
    ]);
    for row in &outcome.resources {
        table.row([
            row.elapsed.as_millis().to_string(),
            format!("{:.2}", row.cpu_percent),
            row.arena_kb.to_string(),
            row.in_use_kb.to_string(),
            row.mmap_kb.to_string(),
            row.rss_kb.to_string(),
            row.vsz_kb.to_string(),
            row.peak_rss_kb.to_string(),
            format!("{:.2}", row.user_percent),
        ]);
    }
    table.text
}

fn events(outcome: &Outcome) -> String {
    let mut table = Padded::new(&[20, 50, 10, 60]);
    table.row(["Time_ms", "Caller", "Code", "Description"]);
    for event in &outcome.events {
        let [at, code] = [event.at.as_millis().to_string(), (event.code as u8).to_string()];
        table.row([&at, &event.caller, &code, &event.description]);
    }
    if outcome.events_left_out > 0 {
        let _ = writeln!(table.text, "# {} further events are left out", outcome.events_left_out);
    }
    table.text
}

/// What was run, for whoever reads the report.
#[derive(Debug, Clone, Serialize)]
pub struct Conditions {
    /// The topology's file.
    pub topology: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of executors, which is that of their threads.
    pub executors: usize,
    /// Which executor.
    pub executor: &'static str,
    /// Whether messages are handed over within the process.
    pub ipc: &'static str,
    /// Over which middleware.
    pub middleware: &'static str,
    /// What is slow besides.
    pub slow: String,
}

/// A run as text.
pub fn text(conditions: &Conditions, outcome: &Outcome) -> String {
    let Conditions { topology, nodes, executors, executor, ipc, middleware, slow } = conditions;
    let mut text = format!(
        "{topology}: {nodes} nodes on {executors} executors; executor {executor}, ipc {ipc}, middleware {middleware}, slow \
         {slow}\n\n"
    );
    let names = |tracker: &Tracker| (tracker.node.len(), tracker.entity.len());
    let all = || outcome.subscriptions.iter().chain(&outcome.clients);
    let (wide, wider) = all().map(names).fold((4, 5), |(a, b), (c, d)| (a.max(c), b.max(d)));
    let head = "received  late  too late  lost  mean us    sd us   p50 us   p99 us    max us";
    let _ = writeln!(text, "{:<wide$}  {:<wider$}  {head}", "node", "topic");
    for tracker in all() {
        let Tracker { node, entity, late, too_late, latencies, .. } = tracker;
        let (received, lost) = (tracker.received(), tracker.lost());
        let _ = write!(text, "{node:<wide$}  {entity:<wider$}  {received:>8} {late:>5} {too_late:>9} {lost:>5}");
        let _ = writeln!(text, "{}", durations_text(latencies));
    }
    let total = total(outcome);
    let (received, late, too_late, lost) = (total.received(), total.late, total.too_late, total.lost);
    let _ = write!(text, "{:<wide$}  {:<wider$}  {received:>8} {late:>5} {too_late:>9} {lost:>5}", "total", "");
    let _ = writeln!(text, "{}", durations_text(&total.latencies));
    if let Some(last) = outcome.resources.last() {
        let _ = writeln!(
            text,
            "\nCPU   {:.2} % of all processors (process / (wall x processors)); {:.2} % user (user / real)\n\
             RSS   {} KiB now, {} KiB at most",
            last.cpu_percent, last.user_percent, last.rss_kb, last.peak_rss_kb
        );
    }
    text
}

fn durations_text(durations: &Latencies) -> String {
    let cell = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
    format!(
        " {:>8} {:>8} {:>8} {:>8} {:>9}",
        cell(durations.mean_us()),
        cell(durations.sd_us()),
        cell(durations.percentile_us(0.5)),
        cell(durations.percentile_us(0.99)),
        cell(durations.max_us()),
    )
}

/// A run as JSON. Percentages and durations of nothing are `null`.
pub fn json(conditions: &Conditions, outcome: &Outcome) -> Value {
    let total = total(outcome);
    let last = outcome.resources.last();
    json!({
        "schema": 1,
        "conditions": conditions,
        "subscriptions": outcome.subscriptions.iter().map(tracker_json).collect::<Vec<_>>(),
        "clients": outcome.clients.iter().map(tracker_json).collect::<Vec<_>>(),
        "publishers": outcome.publishers.iter().map(|published| json!({
            "node": published.node,
            "topic": published.topic,
            "size_bytes": published.size_bytes,
            "frequency_hz": 1.0 / published.period.as_secs_f64(),
            "published": published.durations.count(),
            "duration": durations_json(&published.durations),
        })).collect::<Vec<_>>(),
        "total": {
            "received": total.received(),
            "late": total.late,
            "late_percent": total.late_percent(),
            "too_late": total.too_late,
            "too_late_percent": total.too_late_percent(),
            "lost": total.lost,
            "lost_percent": total.lost_percent(),
            "latency": durations_json(&total.latencies),
        },
        "resources": last.map(|last| json!({
            "wall_s": last.elapsed.as_secs_f64(),
            "cpu_s": last.cpu.as_secs_f64(),
            "cpu_percent_of_all_processors": last.cpu_percent,
            "user_percent_of_wall": last.user_percent,
            "rss_kb": last.rss_kb,
            "peak_rss_kb": last.peak_rss_kb,
        })),
        "events": outcome.events.len() as u64 + outcome.events_left_out,
    })
}

fn tracker_json(tracker: &Tracker) -> Value {
    json!({
        "node": tracker.node,
        "topic": tracker.entity,
        "size_bytes": tracker.size_bytes,
        "frequency_hz": tracker.frequency_hz(),
        "received": tracker.received(),
        "late": tracker.late,
        "too_late": tracker.too_late,
        "lost": tracker.lost(),
        "latency": durations_json(&tracker.latencies),
        "mean_without_too_late_us": tracker.in_time.mean_us(),
    })
}

fn durations_json(durations: &Latencies) -> Value {
    json!({
        "mean_us": durations.mean_us(),
        "sd_us": durations.sd_us(),
        "min_us": durations.min_us(),
        "p50_us": durations.percentile_us(0.5),
        "p99_us": durations.percentile_us(0.99),
        "max_us": durations.max_us(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::events_log::{Code, Event};
    use super::super::message::Header;
    use super::super::resources::Resources;
    use super::*;

    fn outcome() -> Outcome {
        let mut tracker = Tracker::new("listener", "/chatter");
        for (number, us) in [(0, 100), (1, 300), (4, 12_000)] {
            let header = Header { writer: 0, number, stamp_ns: 0, period_ns: 10_000_000 };
            tracker.scan(&header, 10, us * 1_000);
        }
        let mut durations = Latencies::default();
        durations.add(7_000);
        let resources = Resources {
            elapsed: Duration::from_millis(2_000),
            cpu_percent: 1.25,
            user_percent: 2.0,
            cpu: Duration::from_millis(50),
            arena_kb: 1,
            in_use_kb: 2,
            mmap_kb: 3,
            rss_kb: 4,
            peak_rss_kb: 5,
            vsz_kb: 6,
        };
        Outcome {
            subscriptions: vec![tracker, Tracker::new("a_node_of_a_long_name", "/idle")],
            clients: Vec::new(),
            publishers: vec![Published {
                node: "talker".to_owned(),
                topic: "/chatter".to_owned(),
                size_bytes: 10,
                period: Duration::from_millis(10),
                durations,
            }],
            events: vec![Event {
                at: Duration::from_millis(40),
                caller: "/chatter->listener".to_owned(),
                code: Code::Lost,
                description: "msgs 2 to 3 lost.".to_owned(),
            }],
            events_left_out: 0,
            resources: vec![resources],
        }
    }

    fn words(text: &str) -> Vec<Vec<&str>> {
        text.lines().map(|line| line.split_whitespace().collect()).collect()
    }

    #[test]
    fn the_files_have_the_columns_of_the_framework() {
        let outcome = outcome();
        let all = latency_all(&outcome);
        let lines = words(&all);
        assert_eq!(lines[1], ["Subscriptions", "stats:"]);
        assert_eq!(lines[2], LATENCY_ALL);
        let row = "listener /chatter 10 3 0 1 2 4133 5563 100 12000 100 0.015 301 11993";
        assert_eq!(lines[3].join(" "), row);
        assert_eq!(lines[4].join(" "), "a_node_of_a_long_name /idle 0 0 0 0 0 - - - - 0 0.000 - -");
        assert_eq!(lines[6], ["Publishers", "stats:"]);
        assert_eq!(lines[8].join(" "), "talker /chatter 10 1 0 0 0 7 0 7 7 100 0.005 7 7");
        let total = latency_total(&outcome);
        let lines = words(&total);
        assert_eq!(
            lines[0].join(" "),
            "received_msgs mean_us late_msgs late_perc too_late_msgs too_late_perc lost_msgs lost_perc"
        );
        assert_eq!(lines[1].join(" "), "3 4133 0 0.0000 1 33.3333 2 40.0000");
        let resources = resources(&outcome);
        let lines = words(&resources);
        assert_eq!(lines[0][..7].join(" "), "time_ms cpu_perc arena_KB in_use_KB mmap_KB rss_KB vsz_KB");
        assert_eq!(lines[1].join(" "), "2000 1.25 1 2 3 4 6 5 2.00");
        let events = events(&outcome);
        let lines = words(&events);
        assert_eq!(lines[0].join(" "), "Time_ms Caller Code Description");
        assert_eq!(lines[1].join(" "), "40 /chatter->listener 3 msgs 2 to 3 lost.");
    }

    #[test]
    fn nothing_is_null_and_not_nan() {
        let conditions = Conditions {
            topology: "x.json".to_owned(),
            nodes: 2,
            executors: 1,
            executor: "events",
            ipc: "on",
            middleware: "ground",
            slow: "none".to_owned(),
        };
        let json = json(&conditions, &outcome());
        assert_eq!(json["subscriptions"][1]["latency"]["mean_us"], Value::Null);
        assert_eq!(json["total"]["latency"]["mean_us"].as_f64().map(f64::round), Some(4133.0));
        assert_eq!(json["subscriptions"][0]["mean_without_too_late_us"], 200.0);
        let text = text(&conditions, &outcome());
        assert!(text.contains("listener               /chatter         3     0         1     2   4133.3"), "{text}");
        assert!(!text.to_lowercase().contains("nan") && !text.contains("inf"), "{text}");
    }
}
