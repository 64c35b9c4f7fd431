//! What strace prints: each call (`strace -f -T -y`, with any of `-t`, `-tt`, `-ttt`, `-r`, `-k`, `-o`), or a table of sums
//! (`strace -c`).
//!
//! - A call that returned is counted, as `strace -c` does; one that did not return (`exit`, a log that is cut) is not. Calls that
//!   another thread interrupts in the log (`<unfinished ...>`, `<... read resumed>`) are put together.
//! - A call that failed (`= -1 ENOENT`, `= ? ERESTARTSYS`) is an error.
//! - `-T` gives durations; without it, times are unknown and 0. They include strace's own stops, so they are far longer than in a
//!   program that runs alone.
//! - `-y` gives files of descriptors. Without it, only calls by path have files.
//! - `-k` gives stacks.
//! - Each call is a row, up to a million; later ones are added to the last row of the same thread, call, file and stack.

mod line;
mod processes;
mod rows;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Dimension, DimensionStatus, Frame, Module, ModuleId, StackId};

use super::lines::Line;
use super::text::text;
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, each_line};
use line::{Event, Outcome};
use processes::Processes;
use rows::{Call, Rows};

pub use summary::StraceSummary;

/// What strace prints of each call.
pub struct Strace;

impl InputFormat for Strace {
    fn name(&self) -> &'static str {
        "strace"
    }

    fn describe(&self) -> &'static str {
        "Logs of strace (`strace -f -T -y -o FILE`): each system call with its thread, file, duration and result."
    }

    /// Recognises a text if at least half of its lines are of strace, and one of them is a whole call.
    fn recognises(&self, head: Head<'_>) -> bool {
        let (mut calls, mut good, mut bad) = (0, 0, 0);
        for line in head.lines().filter(|line| !line.is_empty() && line::frame(line).is_none()).take(1000) {
            match line::parse(line).map(|line| line.event) {
                Some(Event::Call { outcome: Outcome::Returned(_), .. }) => (calls, good) = (calls + 1, good + 1),
                Some(_) => good += 1,
                None => bad += 1,
            }
        }
        head.is_text() && calls > 0 && good >= bad
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut reader = Reader::default();
        let malformed = each_line(input, |line, malformed| reader.line(line, malformed))?;
        reader.finish(malformed, &file)
    }
}

#[derive(Default)]
struct Reader {
    capture: Capture,
    processes: Processes,
    rows: Rows,
    clock: Clock,
    /// The call of each thread that another thread interrupted in the log.
    unfinished: HashMap<Option<u32>, Unfinished>,
    /// The last call, until its stack is complete.
    last: Option<Call>,
    /// Its frames, leaf first.
    frames: Vec<Frame>,
    modules: FxHashMap<String, ModuleId>,
    calls: u64,
    without_duration: u64,
    without_return: u64,
    /// Whether the table of `strace -C` begins.
    is_over: bool,
}

struct Unfinished {
    name: String,
    arguments: Vec<u8>,
    start_ns: Option<u64>,
}

/// Times of lines.
#[derive(Default)]
struct Clock {
    now_ns: Option<u64>,
    last_ns: u64,
    kind: Option<&'static str>,
}

impl Clock {
    fn read(&mut self, time: Option<line::Time>) -> Option<u64> {
        const DAY_NS: u64 = 86_400_000_000_000;
        let (kind, ns) = match time? {
            line::Time::Epoch(ns) => ("strace -ttt (CLOCK_REALTIME)", ns),
            line::Time::OfDay(ns) => {
                // The clock starts again at midnight.
                let days = self.last_ns / DAY_NS;
                let today = days.saturating_mul(DAY_NS).saturating_add(ns);
                let is_next_day = today.saturating_add(DAY_NS / 2) < self.last_ns;
                ("strace -t (time of day)", if is_next_day { today.saturating_add(DAY_NS) } else { today })
            }
            line::Time::Since(ns) => ("strace -r (since the first call)", self.last_ns.saturating_add(ns)),
        };
        self.last_ns = ns;
        self.kind = Some(kind);
        self.now_ns = Some(ns);
        self.now_ns
    }
}

impl Reader {
    fn line(&mut self, line: Line<'_>, malformed: &mut Malformed) {
        if line.bytes.is_empty() || self.is_over {
            return;
        }
        if line.bytes.starts_with(b"% time") {
            self.is_over = true;
            return;
        }
        if let Some(frame) = line::frame(line.bytes) {
            let frame = self.frame(&frame);
            self.frames.push(frame);
            return;
        }
        self.end_call();
        match line::parse(line.bytes) {
            Some(parsed) => self.event(parsed),
            None if !line.ended => malformed.add(line.number, "the data end within it"),
            None => malformed.add(line.number, "it is no line of strace"),
        }
    }

    fn event(&mut self, line: line::Parsed<'_>) {
        let tid = line.tid;
        let now_ns = self.clock.read(line.time);
        match line.event {
            Event::Call { name, arguments, outcome } => {
                let name = text(name).into_owned();
                match outcome {
                    Outcome::Returned(returned) => self.returned(tid, &name, arguments, &returned, now_ns),
                    Outcome::NoReturn => self.processes.seen(tid, now_ns),
                    Outcome::Unfinished => {
                        self.processes.seen(tid, now_ns);
                        let call = Unfinished { name, arguments: arguments.to_vec(), start_ns: now_ns };
                        self.without_return += u64::from(self.unfinished.insert(tid, call).is_some());
                    }
                }
            }
            Event::Resumed { name, arguments, outcome } => {
                let name = text(name).into_owned();
                let started = self.unfinished.remove(&tid).filter(|started| started.name == name);
                let (mut all, start_ns) = started.map_or((Vec::new(), None), |call| (call.arguments, call.start_ns));
                all.extend_from_slice(arguments);
                match outcome {
                    Outcome::Returned(returned) => {
                        // A call whose start is missing began its duration ago.
                        let before = || Some(now_ns?.saturating_sub(returned.duration_ns.unwrap_or(0)));
                        let start_ns = start_ns.or_else(before);
                        self.returned(tid, &name, &all, &returned, start_ns);
                    }
                    Outcome::NoReturn | Outcome::Unfinished => self.processes.seen(tid, now_ns),
                }
            }
            Event::Exited(status) => {
                self.unfinished.remove(&tid);
                self.processes.exited(tid, status, now_ns);
            }
            Event::Other => {}
        }
    }

    fn returned(
        &mut self,
        tid: Option<u32>,
        name: &str,
        arguments: &[u8],
        returned: &line::Returned<'_>,
        start_ns: Option<u64>,
    ) {
        self.calls += 1;
        self.without_duration += u64::from(returned.duration_ns.is_none());
        let duration_ns = returned.duration_ns.unwrap_or(0);
        let start_ns = start_ns.unwrap_or(0);
        let end_ns = start_ns.saturating_add(duration_ns);
        let has_time = self.clock.now_ns.is_some();
        self.processes.seen(tid, has_time.then_some(end_ns));
        if !returned.has_failed {
            self.processes.called(tid, name, arguments, returned.value);
        }
        let moved = returned.value.filter(|_| rows::moves_bytes(name)).and_then(|bytes| u64::try_from(bytes).ok());
        self.last = Some(Call {
            thread: self.processes.thread(tid, &mut self.capture),
            name: self.capture.intern_text(name),
            file: line::file(name, arguments, returned).map(|file| self.capture.intern_text(&file)),
            start_ns,
            end_ns,
            duration_ns: returned.duration_ns,
            has_failed: returned.has_failed,
            bytes: moved.unwrap_or(0),
        });
    }

    fn frame(&mut self, frame: &line::StackFrame<'_>) -> Frame {
        let path = text(frame.module).into_owned();
        let module = (!path.is_empty()).then(|| {
            let add = || self.capture.add_module(Module { path: path.clone(), ..Module::default() });
            *self.modules.entry(path.clone()).or_insert_with(add)
        });
        let function = match text(frame.function) {
            name if name.is_empty() => {
                format!("{}+{:#x}", path.rsplit('/').next().unwrap_or_default(), frame.address.unwrap_or(0))
            }
            name => super::text::function_name(&name).into_owned(),
        };
        Frame { module, address: frame.address, ..Frame::named(function) }
    }

    /// Adds the last call, with the stack that followed it.
    fn end_call(&mut self) {
        let Some(call) = self.last.take() else {
            self.frames.clear();
            return;
        };
        let frames: Vec<_> = self.frames.drain(..).rev().map(|frame| self.capture.intern_frame(frame)).collect();
        let stack: Option<StackId> = self.capture.intern_stack(frames);
        self.rows.add(call, stack, &mut self.capture.system_calls);
    }

    fn finish(mut self, malformed: Malformed, file: &str) -> Result<Capture, ImportError> {
        self.end_call();
        self.without_return += self.unfinished.len() as u64;
        let last_ns = self.capture.system_calls.iter().map(|calls| calls.end_ns).max();
        let first_ns = self.capture.system_calls.iter().map(|calls| calls.start_ns).min();
        self.processes.finish(&mut self.capture);
        let info = &mut self.capture.info;
        if let Some(kind) = self.clock.kind {
            info.clock = Some(kind.to_owned());
            (info.start_ns, info.end_ns) = (first_ns, last_ns);
        }
        let mut lacks = vec!["strace stops the program at each call: durations are longer than without it.".to_owned()];
        if self.without_duration > 0 {
            lacks.push(format!("{} calls have no duration (`strace -T` records them).", self.without_duration));
        }
        if self.without_return > 0 {
            lacks.push(format!(
                "{} calls had not returned where the log ends; they are not counted.",
                self.without_return
            ));
        }
        lacks.extend(self.rows.remark());
        info.dimensions.insert(Dimension::Syscalls, DimensionStatus::Partial { lacks });
        malformed.settle(&mut self.capture, file, Strace.name(), self.calls > 0)?;
        Ok(self.capture)
    }
}
