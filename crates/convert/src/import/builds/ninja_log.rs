//! ninja's `.ninja_log`: a line for each output, `START END MTIME OUTPUT HASH`, in ms from the start of its build.
//!
//! ninja appends each build and rewrites the file now and then. A line that ends before the one above it begins another build; the last
//! one is kept. Outputs of one command have the same times and hash.

use stepscope_model::{Capture, Process};

use super::super::{Head, ImportError, ImportOptions, Input, InputFormat, each_record};

/// ninja's log.
pub struct NinjaLog;

const HEADER: &[u8] = b"# ninja log v";

#[derive(Debug, PartialEq, Eq)]
struct Line {
    start_ms: u64,
    end_ms: u64,
    output: String,
    hash: String,
}

impl InputFormat for NinjaLog {
    fn name(&self) -> &'static str {
        "ninja-log"
    }

    fn describe(&self) -> &'static str {
        "ninja's .ninja_log: start and end of each command of the last build."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        head.bytes.starts_with(HEADER)
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut lines: Vec<Line> = Vec::new();
        let mut builds = 0_usize;
        let malformed = each_record(input, |line| {
            if line.starts_with(HEADER) || line.is_empty() {
                return Ok(());
            }
            let line = parsed(line)?;
            if lines.last().is_some_and(|last| line.end_ms < last.end_ms) {
                lines.clear();
                builds += 1;
            }
            lines.push(line);
            Ok(())
        })?;
        let mut capture = Capture::default();
        let mut seen: Vec<(u64, u64, String)> = Vec::new();
        for line in &lines {
            let key = (line.start_ms, line.end_ms, line.hash.clone());
            if seen.last() == Some(&key) {
                continue;
            }
            seen.push(key);
            let in_ns = |ms: u64| Some(ms.saturating_mul(1_000_000));
            capture.add_process(Process {
                pid: capture.processes.len() as u32 + 1,
                start_ns: in_ns(line.start_ms),
                end_ns: in_ns(line.end_ms),
                command_line: line.output.clone(),
                executable: stepscope_model::compiler_work::OUTPUT.to_owned(),
                ..Process::default()
            });
        }
        capture.info.start_ns = Some(0);
        capture.info.end_ns = capture.processes.iter().filter_map(|process| process.end_ns).max();
        if builds > 0 {
            capture.info.notes.push(format!("{file}: the last build of {} was imported.", builds + 1));
        }
        malformed.settle(&mut capture, &file, self.name(), !lines.is_empty())?;
        Ok(capture)
    }
}

fn parsed(line: &[u8]) -> Result<Line, &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
    let mut fields = text.split('\t');
    let mut number = || fields.next().and_then(|field| field.parse().ok()).ok_or("it lacks its start or end");
    let (start_ms, end_ms): (u64, u64) = (number()?, number()?);
    if end_ms < start_ms {
        return Err("it ends before it starts");
    }
    let (_, output, hash) = (fields.next(), fields.next(), fields.next());
    let (output, hash) = (output.ok_or("it lacks its output")?.to_owned(), hash.unwrap_or_default().to_owned());
    Ok(Line { start_ms, end_ms, output, hash })
}
