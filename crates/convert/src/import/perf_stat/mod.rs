//! Counts of `perf stat`, as it prints them for machines: `-x SEPARATOR` ([`csv`]) and `-j` ([`json`]).
//!
//! Both have one row per event, and per interval (`-I`), part of the machine (`-A`, `--per-core`, ...) or thread (`--per-thread`):
//!
//! - the count. perf scales it up if the event had a counter for a part of the time only. `<not counted>` and `<not supported>` are
//!   rows without a count.
//! - a unit, which most events have not. Milliseconds become nanoseconds.
//! - the event
//! - how long it had a counter, and in percent of how long it was asked for
//!
//! In some locales, numbers have decimal commas, with `-x,` too. Metrics that perf computes (`insn per cycle`) are skipped: they
//! follow from the counts.
//!
//! Summaries after intervals (`--summary`) are left out, because they repeat them.

mod csv;
mod json;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stepscope_model::{Capture, Dimension, DimensionStatus, EventCount, Process, Thread, ThreadId};

use self::csv::Separator;
use super::lines::Line;
use super::perf_event;
use super::text::text;
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, each_line};

/// Counts of `perf stat`.
pub struct PerfStat;

impl InputFormat for PerfStat {
    fn name(&self) -> &'static str {
        "perf-stat"
    }

    fn describe(&self) -> &'static str {
        "Counts of `perf stat -x,` or `perf stat -j`: events of the run, of intervals, CPUs or threads."
    }

    /// Recognises a text in which at least half of the lines with content are rows.
    fn recognises(&self, head: Head<'_>) -> bool {
        if !head.is_text() {
            return false;
        }
        let Some(form) = Form::of(head) else { return false };
        let (mut good, mut bad) = (0, 0);
        for line in head.lines().map(|line| text(line).trim().to_owned()).filter(|line| !is_skipped(line)) {
            match form.rows(&line) {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
        }
        good > 0 && good >= bad
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let form = Form::of(input.head()).unwrap_or(Form::Csv(Separator::COMMA));
        let mut reader = Reader::default();
        let malformed = each_line(input, |line, malformed| reader.line(form, line, malformed))?;
        reader.finish(&file, malformed)
    }
}

/// Blank lines, and perf's `# started on ...`.
fn is_skipped(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// How the rows are written.
#[derive(Debug, Clone, Copy)]
enum Form {
    Csv(Separator),
    Json,
}

impl Form {
    fn of(head: Head<'_>) -> Option<Self> {
        let lines: Vec<String> = head.lines().take(200).map(|line| text(line).trim().to_owned()).collect();
        if lines.iter().any(|line| line.starts_with('{') && line.contains("\"event-runtime\"")) {
            return Some(Self::Json);
        }
        let is_row = |separator: Separator| lines.iter().any(|line| matches!(csv::row(line, separator), Ok(Some(_))));
        Separator::ALL.into_iter().find(|separator| is_row(*separator)).map(Self::Csv)
    }

    fn rows(self, line: &str) -> Result<Vec<Row>, String> {
        match self {
            Self::Json => json::rows(line),
            Self::Csv(separator) => Ok(csv::row(line, separator)?.into_iter().collect()),
        }
    }
}

/// A row of either form.
#[derive(Debug, Clone, Default, PartialEq)]
struct Row {
    /// End of the interval, in ns since the start.
    time_ns: Option<u64>,
    is_summary: bool,
    /// A CPU, core, socket or node.
    place: Option<String>,
    /// `name-TID`.
    thread: Option<String>,
    count: Count,
    unit: String,
    event: String,
    running_ns: Option<u64>,
    /// Running time in parts of a million of the time asked for.
    running_ppm: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Count {
    /// Digits, perhaps with decimals.
    Of(String),
    NotCounted,
    #[default]
    NotSupported,
}

impl Count {
    fn read(text: &str) -> Option<Self> {
        match text {
            "<not counted>" => Some(Self::NotCounted),
            "<not supported>" => Some(Self::NotSupported),
            text => scaled(text, 0).map(|_| Self::Of(text.to_owned())),
        }
    }
}

/// A number with a decimal point or comma, times ten to the power of `decimals`, without the rest; `None` if it is no such number or too
/// large.
fn scaled(text: &str, decimals: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(decimals);
    let digits = whole.bytes().chain(fraction);
    digits.into_iter().try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

#[derive(Default)]
struct Reader {
    capture: Capture,
    rows: Vec<Row>,
}

impl Reader {
    fn line(&mut self, form: Form, line: Line<'_>, malformed: &mut Malformed) {
        let content = text(line.bytes);
        let content = content.trim();
        if is_skipped(content) {
            return;
        }
        match form.rows(content) {
            Ok(rows) => self.rows.extend(rows),
            Err(what) => malformed.add(line.number, what),
        }
    }

    fn finish(mut self, file: &str, malformed: Malformed) -> Result<Capture, ImportError> {
        if self.rows.iter().any(|row| row.time_ns.is_some()) {
            self.rows.retain(|row| !row.is_summary);
        }
        let was_read = !self.rows.is_empty();
        let starts = starts(&self.rows);
        if let Some(end) = starts.keys().last() {
            let info = &mut self.capture.info;
            (info.start_ns, info.end_ns, info.clock) = (Some(0), Some(*end), Some("perf stat -I".to_owned()));
        }
        let mut threads = BTreeMap::new();
        for row in std::mem::take(&mut self.rows) {
            let thread = row
                .thread
                .as_ref()
                .map(|label| *threads.entry(label.clone()).or_insert_with(|| add_thread(&mut self.capture, label)));
            let count = self.event_count(&row, thread, row.time_ns.and_then(|time| starts.get(&time).copied()));
            self.capture.event_counts.push(count);
        }
        state(&mut self.capture);
        malformed.settle(&mut self.capture, file, PerfStat.name(), was_read)?;
        Ok(self.capture)
    }

    fn event_count(&mut self, row: &Row, thread: Option<ThreadId>, start_ns: Option<u64>) -> EventCount {
        let (unit, decimals) = match row.unit.as_str() {
            "msec" => ("ns", 6),
            "" => (counted_unit(&row.event), 0),
            "Joules" => ("microjoules", 6),
            other => (other, 0),
        };
        let enabled = |running: u64| match row.running_ppm {
            Some(ppm) if ppm > 0 => u64::try_from(u128::from(running) * 1_000_000 / u128::from(ppm)).ok(),
            _ => None,
        };
        EventCount {
            start_ns,
            end_ns: row.time_ns,
            thread,
            place: row.place.as_deref().map(|place| self.capture.intern_text(place)),
            event: self.capture.intern_text(&row.event),
            unit: self.capture.intern_text(unit),
            count: match &row.count {
                Count::Of(digits) => scaled(digits, decimals),
                _ => None,
            },
            enabled_ns: row.running_ns.and_then(enabled),
            running_ns: row.running_ns,
        }
    }
}

/// The unit of an event that perf gives no unit.
fn counted_unit(event: &str) -> &'static str {
    match perf_event::unit(event) {
        "weight" if event.contains("slots") || event.contains("topdown") => "slots",
        "weight" => "events",
        unit => unit,
    }
}

/// The start of each interval by its end: the end of the one before.
fn starts(rows: &[Row]) -> BTreeMap<u64, u64> {
    let ends: BTreeSet<u64> = rows.iter().filter_map(|row| row.time_ns).collect();
    let before = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().copied().zip(before).collect()
}

/// Adds the thread of a label such as `sleep-1234`.
fn add_thread(capture: &mut Capture, label: &str) -> ThreadId {
    let (name, tid) = label.rsplit_once('-').unwrap_or((label, ""));
    match tid.parse() {
        Ok(tid) => {
            let process = capture.add_process(Process { pid: tid, ..Process::default() });
            capture.add_thread(Thread { tid, process: Some(process), name: name.to_owned(), ..Thread::default() })
        }
        Err(_) => capture.add_thread_named(label),
    }
}

/// States whether the counters of the CPU counted.
fn state(capture: &mut Capture) {
    let is_hardware = |count: &&EventCount| {
        ["cycles", "instructions", "branches", "misses", "references", "slots"].contains(&&*count.unit)
    };
    let rows = || capture.event_counts.iter().filter(is_hardware);
    let without: BTreeSet<Arc<str>> = rows().filter(|row| row.count.is_none()).map(|row| row.event.clone()).collect();
    let names = without.iter().map(|event| format!("`{event}`")).collect::<Vec<_>>().join(", ");
    let status = match (rows().any(|row| row.count.is_some()), without.is_empty()) {
        (true, true) => DimensionStatus::Recorded,
        (true, false) => DimensionStatus::Partial { lacks: vec![format!("Not counted, at least in part: {names}.")] },
        (false, true) => return,
        (false, false) => DimensionStatus::Missing {
            reason: format!("perf could not count {names}: the machine has no such counters."),
            remedy: None,
        },
    };
    capture.info.dimensions.insert(Dimension::Cache, status);
}
