//! Writes the report of a run as the text files of the framework.
//!
//! Names, columns and layout are the framework's: columns are padded with spaces to a width. A value without data is `-`
//! instead of `nan`. Further columns follow those of the framework.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::super::latency::Latencies;
use super::super::system::{Outcome, Published};
use super::super::tracker::Tracker;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}")]
pub struct WriteError {
    /// The file or its folder.
    path: PathBuf,
    source: io::Error,
}

/// Writes `latency_all.txt`, `latency_total.txt`, `resources.txt` and `events.txt` into a folder, and creates the folder.
///
/// # Errors
/// If the folder cannot be created or a file cannot be written.
pub fn write(folder: &Path, outcome: &Outcome) -> Result<(), WriteError> {
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

/// A table with the framework's layout.
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
            // The framework puts no space after a cell that is too wide.
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
    let elapsed_s = outcome.resources.elapsed.as_secs_f64();
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
    let counts = [tracker.size_bytes as u64, tracker.received(), tracker.late, tracker.too_late, tracker.lost()];
    let frequency = tracker.frequency_hz().unwrap_or(0.0);
    row([&tracker.node, &tracker.entity], counts, frequency, &tracker.latencies, elapsed_s)
}

/// The row of a publisher. Its latency is the duration of its calls of publish.
fn published_row(published: &Published, elapsed_s: f64) -> Vec<String> {
    let counts = [published.size_bytes as u64, published.durations.count(), 0, 0, 0];
    let frequency = 1.0 / published.period.as_secs_f64();
    row([&published.node, &published.topic], counts, frequency, &published.durations, elapsed_s)
}

/// A row of [`LATENCY_ALL`]; the first of its counts are the bytes of a message.
fn row(names: [&str; 2], counts: [u64; 5], frequency: f64, durations: &Latencies, elapsed_s: f64) -> Vec<String> {
    let bytes = counts[0] as f64 * durations.count() as f64;
    let measured = [
        rounded(durations.mean_us()),
        rounded(durations.sd_us()),
        rounded(durations.min_us()),
        rounded(durations.max_us()),
        format!("{}", (frequency * 1e3).round() / 1e3),
        format!("{:.3}", bytes / elapsed_s.max(1e-9) / 1024.0),
        rounded(durations.percentile_us(0.5)),
        rounded(durations.percentile_us(0.99)),
    ];
    let counts = counts.map(|count| count.to_string());
    names.map(str::to_owned).into_iter().chain(counts).chain(measured).collect()
}

fn latency_total(outcome: &Outcome) -> String {
    let total = outcome.total();
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
    for row in outcome.samples.iter().chain([&outcome.resources]) {
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
    for event in &outcome.events.kept {
        let [at, code] = [event.at.as_millis().to_string(), (event.code as u8).to_string()];
        table.row([&at, &event.caller, &code, &event.description]);
    }
    if outcome.events.dropped > 0 {
        let _ = writeln!(table.text, "# {} further events were dropped", outcome.events.dropped);
    }
    table.text
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn words(text: &str) -> Vec<Vec<&str>> {
        text.lines().map(|line| line.split_whitespace().collect()).collect()
    }

    #[test]
    fn the_files_have_the_columns_of_the_framework() {
        let outcome = example::outcome();
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
        assert_eq!(lines[1].join(" "), "500 1.25 1 2 3 4 6 5 2.00");
        assert_eq!(lines[2].join(" "), "2000 1.25 1 2 3 4 6 5 2.00");
        let events = events(&outcome);
        let lines = words(&events);
        assert_eq!(lines[0].join(" "), "Time_ms Caller Code Description");
        assert_eq!(lines[1].join(" "), "40 /chatter->listener 3 msgs 2 to 3 lost.");
    }
}
