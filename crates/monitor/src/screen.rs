//! A view for the terminal: the busiest processes, redrawn at each reading.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write as _;

use stepscope_model::{Kind, Value, quantity};

use crate::process::{Figure, Values, WatchedProcess};
use crate::sampler::Sampler;

/// Columns of a line beside the process' label, and those of the label.
const OTHERS: usize = 65;
const LEAST_NAME: usize = 15;
const MOST_NAME: usize = 48;

/// Rates since the reading before.
#[derive(Debug, Default)]
pub struct Screen {
    before: HashMap<(u32, u64), Values>,
    machine_before: HashMap<String, i64>,
    before_ns: Option<u64>,
}

/// A line of the table.
struct Row<'a> {
    process: &'a WatchedProcess,
    cpu_percent: f64,
    read: f64,
    written: f64,
}

impl Screen {
    /// The lines of a screen of this size, for the last sample.
    pub fn draw(&mut self, sampler: &Sampler, now_ns: u64, width: usize, height: usize) -> Vec<String> {
        let seconds =
            self.before_ns.map(|before| now_ns.saturating_sub(before) as f64 / 1e9).filter(|&seconds| seconds > 0.0);
        let mut rows: Vec<Row<'_>> = sampler.processes().map(|process| self.row(process, seconds)).collect();
        rows.sort_by_key(|row| {
            (Reverse((row.cpu_percent * 100.0) as u64), Reverse(row.process.get(Figure::Rss)), row.process.pid())
        });
        let mut lines = vec![self.summary(sampler, &rows, seconds)];
        // The wider the terminal, the more of a label is there.
        let name_width = width.saturating_sub(OTHERS).clamp(LEAST_NAME, MOST_NAME);
        lines.push(format!(
            "{:>7} {:<name_width$} S {:>6} {:>4} {:>9} {:>9} {:>4} {:>8} {:>8}",
            "PID", "PROCESS", "CPU %", "THR", "RSS", "PSS", "FDS", "READ/s", "WRITE/s"
        ));
        let room = height.saturating_sub(lines.len() + 1).max(1);
        lines.extend(rows.iter().take(room).map(|row| line(row, sampler.label(row.process), name_width)));
        if rows.len() > room {
            lines.push(format!("{} more processes; Ctrl-C ends", rows.len() - room));
        }
        self.remember(sampler, now_ns);
        lines.into_iter().map(|line| line.chars().take(width).collect()).collect()
    }

    fn row<'a>(&self, process: &'a WatchedProcess, seconds: Option<f64>) -> Row<'a> {
        let before = self.before.get(&(process.pid(), process.start_ticks()));
        let rate = |figure: Figure| {
            let change = process.get(figure)? - before?[figure as usize]?;
            Some(change.max(0) as f64 / seconds?)
        };
        let rate = |figure| rate(figure).unwrap_or(0.0);
        Row {
            process,
            cpu_percent: (rate(Figure::CpuUser) + rate(Figure::CpuSystem)) / 1e7,
            read: rate(Figure::IoReadCalls),
            written: rate(Figure::IoWriteCalls),
        }
    }

    fn summary(&self, sampler: &Sampler, rows: &[Row<'_>], seconds: Option<f64>) -> String {
        let (mut busy, mut cores, mut available) = (0.0, 0, None);
        for (name, value) in sampler.machine() {
            if name.starts_with("core_busy_ns:") {
                cores += 1;
                let before = self.machine_before.get(&**name);
                busy += before.zip(seconds).map_or(0.0, |(before, seconds)| (value - before) as f64 / seconds / 1e7);
            } else if &**name == "memory_available_bytes" {
                available = Some(value);
            }
        }
        let own: f64 = rows.iter().map(|row| row.cpu_percent).sum();
        let mut text = format!("{} processes, {own:.1} % of a CPU; machine: {busy:.0} % of {cores} CPUs", rows.len());
        if let Some(available) = available {
            let _ = write!(text, ", {} available", bytes(available as f64));
        }
        text
    }

    fn remember(&mut self, sampler: &Sampler, now_ns: u64) {
        self.before_ns = Some(now_ns);
        self.before = sampler.processes().map(|one| ((one.pid(), one.start_ticks()), one.values)).collect();
        self.machine_before = sampler.machine().map(|(name, value)| (name.to_string(), value)).collect();
    }
}

fn line(row: &Row<'_>, label: &str, name_width: usize) -> String {
    let process = row.process;
    let count = |figure| process.get(figure).map_or_else(|| quantity::MISSING.to_owned(), |value| value.to_string());
    let size = |figure| process.get(figure).map_or_else(|| quantity::MISSING.to_owned(), |value| bytes(value as f64));
    let name: String = label.chars().map(|one| if one.is_control() { '?' } else { one }).take(name_width).collect();
    let state = process.get(Figure::State).map_or('?', |letter| char::from(letter as u8));
    format!(
        "{:>7} {name:<name_width$} {state} {:>6.1} {:>4} {:>9} {:>9} {:>4} {:>8} {:>8}",
        process.pid(),
        row.cpu_percent,
        count(Figure::Threads),
        size(Figure::Rss),
        size(Figure::Pss),
        count(Figure::Fds),
        bytes(row.read),
        bytes(row.written)
    )
}

fn bytes(value: f64) -> String {
    quantity::quantity(&Value::Float(value), Kind::Bytes).to_string()
}
