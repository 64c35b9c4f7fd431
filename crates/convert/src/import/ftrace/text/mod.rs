//! The text of ftrace: `/sys/kernel/tracing/trace`, `trace_pipe`, and what `trace-cmd report` prints.

mod fields;
mod line;

use std::collections::BTreeMap;

use stepscope_model::disk::DiskError;
use stepscope_model::quantity::grouped;
use stepscope_model::{Capture, CaptureInfo, Losses, Origin};
use stepscope_symbolize::Symbolizer;

use super::REMEDIES;
use super::event::{Ftrace, Head as EventHead, Kind};
use crate::import::text::text;
use crate::import::trace::{Trace, others};
use crate::import::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, each_line};
use line::{EventLine, TextLine};

/// Number of lines by which the format is recognised.
const LINES_OF_HEAD: usize = 30;

/// Most names of events that are counted one by one. A text with more is damaged.
const MOST_NAMES: usize = 1 << 12;

/// The key of a function in `trace-cmd report`, which has no address there.
const DRAWN: u64 = u64::MAX - 1;

/// The format.
pub struct FtraceText;

impl InputFormat for FtraceText {
    fn name(&self) -> &'static str {
        "ftrace"
    }

    fn describe(&self) -> &'static str {
        "Text of ftrace (`/sys/kernel/tracing/trace`) and of `trace-cmd report`."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        if !head.is_text() {
            return false;
        }
        let mut lines = head.lines().filter(|line| !line.trim_ascii().is_empty()).take(LINES_OF_HEAD);
        lines.any(|line| line.starts_with(b"# tracer: ") || matches!(line::parse(line), Some(TextLine::Event(_))))
    }

    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut reading = Reading::new(options);
        let malformed = each_line(input, |line, malformed| {
            let parsed = if line.ended { line::parse(line.bytes).ok_or("it is no event") } else { cut(line.bytes) };
            match parsed {
                Ok(line) => reading.line(line),
                Err(fault) => malformed.add(line.number, fault),
            }
        })?;
        let first = malformed.first();
        let mut symbolizer = Symbolizer::new(options.symbols.clone());
        let capture = reading.finish(&mut symbolizer)?;
        let mut capture =
            capture.ok_or_else(|| ImportError::Nothing { file: file.clone(), format: self.name(), first })?;
        Malformed::settle(malformed, &mut capture, &file, self.name(), true)?;
        Ok(capture)
    }
}

/// A last line without its end may lack a part of its fields.
fn cut(line: &[u8]) -> Result<TextLine<'_>, &'static str> {
    match line::parse(line) {
        Some(TextLine::Remark) => Ok(TextLine::Remark),
        _ => Err("the data end within it"),
    }
}

struct Reading {
    ftrace: Ftrace<'static>,
    /// Events that fill no table, by name.
    others: BTreeMap<Vec<u8>, u64>,
    lost: u64,
    /// Places where events were lost without a count.
    uncounted: u64,
    /// CPUs that lost events before their next one.
    gaps: Vec<u32>,
}

impl Reading {
    fn new(options: &ImportOptions) -> Self {
        let info = CaptureInfo {
            // The caller sets the file.
            origin: Origin::Imported { format: FtraceText.name().to_owned(), file: String::new() },
            clock: Some("ftrace's clock".to_owned()),
            ..CaptureInfo::default()
        };
        Self {
            ftrace: Ftrace::new(Trace::new(info, options.folder.clone()), b""),
            others: BTreeMap::new(),
            lost: 0,
            uncounted: 0,
            gaps: Vec::new(),
        }
    }

    fn line(&mut self, line: TextLine<'_>) {
        match line {
            TextLine::Event(event) => self.event(&event),
            TextLine::Lost { cpu, events } => {
                self.lost = self.lost.saturating_add(events.unwrap_or(0));
                self.uncounted += u64::from(events.is_none());
                if !self.gaps.contains(&cpu) && self.gaps.len() < MOST_NAMES {
                    self.gaps.push(cpu);
                }
            }
            TextLine::Remark => {}
        }
    }

    fn event(&mut self, line: &EventLine<'_>) {
        let &EventLine { tid, cpu, time_ns, in_interrupt, .. } = line;
        self.ftrace.trace.at(time_ns);
        if let Some(at) = self.gaps.iter().position(|&gap| gap == cpu) {
            self.gaps.swap_remove(at);
            self.ftrace.trace.lose(cpu, time_ns);
        }
        if tid != 0 {
            self.ftrace.trace.describe(tid, line.pid, if line.comm == b"<...>" { b"" } else { line.comm });
        }
        let kind = std::str::from_utf8(line.event).ok().and_then(Kind::of);
        let head = EventHead { time_ns, cpu: Some(cpu), tid, in_interrupt };
        match kind {
            Some(Kind::Marker) => self.ftrace.marker(written(line.fields), tid, time_ns),
            Some(Kind::FunctionEntry) => self.enter(line),
            Some(Kind::FunctionExit) => self.ftrace.leave(tid, Some(DRAWN), time_ns),
            Some(kind) => self.ftrace.event(kind, head, &fields::fields(kind, line.fields)),
            None => self.other(line.event),
        }
    }

    /// `0.350 us | name();` of a function that calls no others, `| name() {` of one that does.
    fn enter(&mut self, line: &EventLine<'_>) {
        let Some(at) = memchr::memchr(b'|', line.fields) else { return self.other(line.event) };
        let (duration, drawn) = (line.fields[..at].trim_ascii(), line.fields[at + 1..].trim_ascii());
        let end = memchr::memchr(b'(', drawn).unwrap_or(drawn.len());
        let name = text(&drawn[..end]);
        let EventLine { tid, time_ns, .. } = *line;
        if drawn.ends_with(b"{") {
            return self.ftrace.enter(tid, DRAWN, name.into(), time_ns);
        }
        // A mark of long durations (`!`, `+`) may come first.
        let digits = duration.strip_suffix(b"us").map(|duration| duration.trim_ascii());
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.split_whitespace().last());
        let us: Option<f64> =
            digits.and_then(|digits| digits.parse().ok()).filter(|us: &f64| us.is_finite() && *us >= 0.0);
        if tid == 0 {
            return;
        }
        let caller = self.ftrace.caller(tid, time_ns);
        let end_ns = time_ns.saturating_add((us.unwrap_or(0.0) * 1e3) as u64);
        self.ftrace.trace.scope(caller, name.into(), time_ns, end_ns);
    }

    fn other(&mut self, name: &[u8]) {
        let name = if name.is_empty() { b"function" } else { name };
        let is_known = self.others.contains_key(name);
        let name = if is_known || self.others.len() < MOST_NAMES { name } else { b"other names" };
        *self.others.entry(name.to_vec()).or_default() += 1;
    }

    fn finish(self, symbolizer: &mut Symbolizer) -> Result<Option<Capture>, DiskError> {
        let mut notes = Vec::new();
        if self.lost > 0 || self.uncounted > 0 {
            let lost = if self.lost > 0 { grouped(self.lost.into()) } else { "an unknown number of".to_owned() };
            notes.push(format!(
                "The tracer lost {lost} events, because its buffers were full: waits and scopes around them are not exact."
            ));
        }
        let names: Vec<(String, u64)> =
            self.others.iter().map(|(name, &count)| (text(name).into_owned(), count)).collect();
        let marker = ("print", self.ftrace.unknown_markers);
        let counts = names.iter().map(|(name, count)| (name.as_str(), *count)).chain([marker]);
        notes.extend(others::note(counts, self.ftrace.trace.events()));
        let losses = Losses { lost_records: self.lost, ..Losses::default() };
        self.ftrace.trace.finish(losses, notes, REMEDIES, symbolizer)
    }
}

/// What a program wrote: the name of the writing function may come first.
fn written(fields: &[u8]) -> &[u8] {
    let fields = fields.strip_prefix(b"tracing_mark_write:").unwrap_or(fields).trim_ascii();
    // Without names of functions, trace-cmd prints the function's address.
    let digits = fields.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    match fields.get(digits) {
        Some(b':') if digits >= 8 => fields[digits + 1..].trim_ascii(),
        _ => fields,
    }
}

#[cfg(test)]
mod tests;
