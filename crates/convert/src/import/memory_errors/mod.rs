//! Reports of memory errors: valgrind's XML, and the logs of sanitizers.
//!
//! Both forms become rows of the table `memory_errors`: one for each kind and stack. Kinds have the same words for all checkers
//! ([`kind`]), so that findings of valgrind and AddressSanitizer can be compared.

mod kind;
pub mod logs;
mod sanitizer;
#[cfg(test)]
mod tests;
mod valgrind;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{
    Capture, Dimension, DimensionStatus, Frame, FrameId, MemoryError, Module, ModuleId, Process, ProcessId, StackId,
};

use super::text::function_name;

pub use sanitizer::Sanitizer;
pub use valgrind::Valgrind;

/// An error as a checker reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Report {
    tool: &'static str,
    kind: String,
    message: String,
    pid: Option<u32>,
    /// Leaf first, as all of these.
    stack: Vec<ReportFrame>,
    allocated: Vec<ReportFrame>,
    other: Vec<ReportFrame>,
    count: u64,
    bytes: Option<u64>,
    /// Where the report ends in its file.
    end: u64,
}

/// A frame as a checker writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct ReportFrame {
    function: String,
    module: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    address: Option<u64>,
}

/// What makes reports one row.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    tool: Arc<str>,
    kind: Arc<str>,
    stack: Option<StackId>,
    allocated: Option<StackId>,
}

/// Adds reports to a capture.
struct Rows<'a> {
    capture: &'a mut Capture,
    rows: FxHashMap<Key, usize>,
    modules: FxHashMap<String, ModuleId>,
}

impl<'a> Rows<'a> {
    fn new(capture: &'a mut Capture) -> Self {
        let modules = capture.modules.iter().enumerate();
        let modules = modules.map(|(index, module)| (module.path.clone(), ModuleId::from_index(index))).collect();
        Self { capture, rows: FxHashMap::default(), modules }
    }

    fn add(&mut self, report: &Report, first_ns: Option<u64>) {
        let stack = self.stack(&report.stack);
        let allocated = self.stack(&report.allocated);
        let other = self.stack(&report.other);
        let (tool, kind) = (self.capture.intern_text(report.tool), self.capture.intern_text(&report.kind));
        let key = Key { tool: tool.clone(), kind: kind.clone(), stack, allocated };
        if let Some(&row) = self.rows.get(&key) {
            let row = &mut self.capture.memory_errors[row];
            row.count = row.count.saturating_add(report.count);
            row.bytes = row.bytes.map(|bytes| bytes.saturating_add(report.bytes.unwrap_or(0)));
            return;
        }
        self.rows.insert(key, self.capture.memory_errors.len());
        let process = report.pid.map(|pid| self.process(pid));
        let message = self.capture.intern_text(&report.message);
        let (count, bytes) = (report.count, report.bytes);
        self.capture.memory_errors.push(MemoryError {
            tool,
            kind,
            message,
            process,
            stack,
            allocated,
            other,
            count,
            bytes,
            first_ns,
        });
    }

    fn process(&mut self, pid: u32) -> ProcessId {
        match self.capture.processes.iter().rposition(|process| process.pid == pid) {
            Some(known) => ProcessId::from_index(known),
            None => self.capture.add_process(Process { pid, ..Process::default() }),
        }
    }

    fn stack(&mut self, frames: &[ReportFrame]) -> Option<StackId> {
        let frames: Vec<FrameId> = frames.iter().rev().map(|frame| self.frame(frame)).collect();
        self.capture.intern_stack(frames)
    }

    fn frame(&mut self, frame: &ReportFrame) -> FrameId {
        let module = frame.module.as_ref().map(|path| {
            let add = || self.capture.add_module(Module { path: path.clone(), ..Module::default() });
            *self.modules.entry(path.clone()).or_insert_with(add)
        });
        let function = match (&*frame.function, frame.address) {
            ("", address) => {
                let of = module.map_or("[unknown]", |module| self.capture.modules[module.index()].name());
                format!("{of}+{:#x}", address.unwrap_or(0))
            }
            (name, _) => function_name(without_parameters(name)).into_owned(),
        };
        let file = frame.file.as_ref().map(|file| self.capture.intern_text(file));
        let address = frame.address.filter(|_| frame.function.is_empty());
        self.capture.intern_frame(Frame { module, file, line: frame.line, address, ..Frame::named(function) })
    }
}

/// `leak` of `leak()`, and `ns::f` of `ns::f(int) const`: as the capture's own names.
fn without_parameters(name: &str) -> &str {
    let trimmed = name.strip_suffix(" const").unwrap_or(name);
    if !trimmed.ends_with(')') {
        return name;
    }
    let mut depth = 0;
    for (at, byte) in trimmed.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let name = &trimmed[..at];
            // `operator()` without parameters, and lambdas.
            return if name.is_empty() || name.ends_with("operator") { trimmed } else { name };
        }
    }
    name
}

/// The dimension of a checker's findings.
fn dimension_of(tool: &str) -> Dimension {
    match tool {
        "asan" | "lsan" | "msan" => Dimension::Asan,
        "ubsan" => Dimension::Ubsan,
        "tsan" => Dimension::Tsan,
        _ => Dimension::Memcheck,
    }
}

/// A capture of reports alone, of an imported file.
fn capture_of(reports: &[Report]) -> Capture {
    let mut capture = Capture::default();
    let mut rows = Rows::new(&mut capture);
    reports.iter().for_each(|report| rows.add(report, None));
    for report in reports {
        capture.info.dimensions.insert(dimension_of(report.tool), DimensionStatus::Recorded);
    }
    capture
}
