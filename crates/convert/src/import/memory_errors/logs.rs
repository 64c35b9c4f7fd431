//! The logs that checkers wrote beside a recording, added to its capture.
//!
//! They are in a folder, a file for each checker and process: `memcheck.PID`, `asan.PID` and so on. The file [`TIMES`] says how
//! long each was when: so the time of an error is known, to the distance of two readings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use stepscope_model::{Capture, Dimension, DimensionStatus, disk::ERRORS_FOLDER, quantity::plural};

use super::super::{Malformed, Source};
use super::{Rows, sanitizer, valgrind};

/// The file of readings: lines `TIME_NS FILE BYTES`.
pub const TIMES: &str = "times";

/// Adds the reports of all logs in a capture's folder.
pub fn add(folder: &Path, capture: &mut Capture) {
    let folder = folder.join(ERRORS_FOLDER);
    let Ok(entries) = fs::read_dir(&folder) else { return are_elsewhere(capture) };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let times = Times::read(&folder.join(TIMES));
    let mut malformed = Malformed::default();
    let mut logs_of: BTreeMap<Dimension, usize> = BTreeMap::new();
    let mut reports = Vec::new();
    for path in files {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(dimension) = dimension_of_log(name) else { continue };
        *logs_of.entry(dimension).or_default() += 1;
        let input = match Source::open(&path).and_then(Source::into_input) {
            Ok(input) => input,
            Err(error) => {
                malformed.add(0, error);
                continue;
            }
        };
        let mut found = Vec::new();
        if dimension == Dimension::Memcheck {
            found = valgrind::read(input, &mut malformed).reports;
        } else if let Err(error) = sanitizer::read(input, &mut found) {
            malformed.add(0, error);
        }
        let pid = name.split('.').nth(1).and_then(|pid| pid.parse().ok());
        for mut report in found {
            report.pid = report.pid.or(pid);
            let first_ns = times.at(name, report.end);
            reports.push((report, first_ns));
        }
    }
    let mut rows = Rows::new(capture);
    reports.iter().for_each(|(report, first_ns)| rows.add(report, *first_ns));
    capture.info.losses.malformed_records += malformed.count;
    if let Some(first) = malformed.first() {
        let logs = plural(malformed.count as usize, "log");
        capture.info.notes.push(format!("{logs} of memory errors are incomplete; the first: {first}."));
    }
    for (dimension, status) in &mut capture.info.dimensions {
        explain(*dimension, status, logs_of.get(dimension).copied().unwrap_or(0), &capture.processes);
    }
}

/// Earlier captures of a launch have no logs.
fn are_elsewhere(capture: &mut Capture) {
    let dimensions = capture.info.dimensions.iter_mut();
    for (_, status) in
        dimensions.filter(|(dimension, status)| CHECKERS.contains(dimension) && **status == DimensionStatus::Recorded)
    {
        *status = DimensionStatus::Missing {
            reason: "The logs of the checkers are in the last capture of this launch.".to_owned(),
            remedy: None,
        };
    }
}

/// `memcheck.123`
fn dimension_of_log(name: &str) -> Option<Dimension> {
    let (tool, _) = name.split_once('.')?;
    CHECKERS.iter().copied().find(|dimension| dimension.name() == tool)
}

/// The dimensions that have logs.
pub const CHECKERS: [Dimension; 4] = [Dimension::Memcheck, Dimension::Asan, Dimension::Ubsan, Dimension::Tsan];

/// Without a log, a program may have no errors, or no checker.
fn explain(dimension: Dimension, status: &mut DimensionStatus, logs: usize, processes: &[stepscope_model::Process]) {
    let (mark, option) = match dimension {
        Dimension::Asan => ("__asan_init", "address"),
        Dimension::Ubsan => ("__ubsan_handle", "undefined"),
        Dimension::Tsan => ("__tsan_init", "thread"),
        Dimension::Memcheck if logs == 0 && !matches!(status, DimensionStatus::Missing { .. }) => {
            *status = DimensionStatus::Missing { reason: "valgrind wrote no log.".to_owned(), remedy: None };
            return;
        }
        _ => return,
    };
    let has_checker = |process: &stepscope_model::Process| {
        let program = fs::read(&process.executable).unwrap_or_default();
        memchr::memmem::find(&program, mark.as_bytes()).is_some()
    };
    if logs == 0 && *status == DimensionStatus::Recorded && !processes.iter().any(has_checker) {
        *status = DimensionStatus::Missing {
            reason: format!("The program is not built with -fsanitize={option}."),
            remedy: Some(format!("build it with -g -fsanitize={option}")),
        };
    }
}

/// How long each log was when.
struct Times {
    of_file: BTreeMap<String, Vec<Reading>>,
}

struct Reading {
    time_ns: u64,
    bytes: u64,
}

impl Times {
    fn read(path: &Path) -> Self {
        let mut of_file: BTreeMap<String, Vec<Reading>> = BTreeMap::new();
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            let mut words = line.split(' ');
            if let (Some(time), Some(file), Some(bytes)) = (words.next(), words.next(), words.next())
                && let (Ok(time_ns), Ok(bytes)) = (time.parse(), bytes.parse())
            {
                of_file.entry(file.to_owned()).or_default().push(Reading { time_ns, bytes });
            }
        }
        Self { of_file }
    }

    /// When a file first had this many bytes.
    fn at(&self, file: &str, bytes: u64) -> Option<u64> {
        let readings = self.of_file.get(file)?;
        Some(readings.iter().find(|reading| reading.bytes >= bytes)?.time_ns)
    }
}
