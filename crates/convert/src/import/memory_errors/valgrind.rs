//! Valgrind's XML (`--xml=yes`), protocol 4 and later, of memcheck, helgrind and drd.

use std::io::BufReader;

use quick_xml::Reader;
use quick_xml::events::Event;
use rustc_hash::FxHashMap;
use stepscope_model::Capture;

use super::super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed};
use super::{Report, ReportFrame, capture_of, kind};

/// Valgrind's XML.
pub struct Valgrind;

impl InputFormat for Valgrind {
    fn name(&self) -> &'static str {
        "valgrind"
    }

    fn describe(&self) -> &'static str {
        "XML of valgrind (`--xml=yes --xml-file=FILE`): errors of memcheck, helgrind and drd."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        memchr::memmem::find(head.bytes, b"<valgrindoutput").is_some_and(|at| at < 4096)
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut malformed = Malformed::default();
        let found = read(input, &mut malformed);
        let mut capture = capture_of(&found.reports);
        malformed.settle(&mut capture, &file, self.name(), found.was_read)?;
        // Without errors, the file still says that there are none.
        capture
            .info
            .dimensions
            .entry(super::dimension_of(found.tool))
            .or_insert(stepscope_model::DimensionStatus::Recorded);
        if !found.command.is_empty() {
            capture.info.command = found.command;
        }
        Ok(capture)
    }
}

/// What a file holds.
#[derive(Default)]
pub(super) struct Found {
    pub reports: Vec<Report>,
    pub command: Vec<String>,
    pub tool: &'static str,
    /// Whether it is of valgrind at all.
    pub was_read: bool,
}

/// The error that is being read.
#[derive(Default)]
struct Error {
    unique: String,
    kind: String,
    what: String,
    about: String,
    leaked_blocks: Option<u64>,
    leaked_bytes: Option<u64>,
    /// Stacks, each with what the text before it says.
    stacks: Vec<(String, Vec<ReportFrame>)>,
}

/// Deeper elements are ignored. No output of valgrind has them.
const DEEPEST: usize = 64;

/// Reads a file as far as it is complete.
pub(super) fn read(input: Input<'_>, malformed: &mut Malformed) -> Found {
    let mut reader = Reader::from_reader(BufReader::new(input));
    let mut found = Found { tool: "memcheck", ..Found::default() };
    let mut state = State::default();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let position = reader.buffer_position();
        match event {
            Ok(Event::Start(element)) => {
                state.path.push(String::from_utf8_lossy(element.local_name().as_ref()).into_owned());
                state.text.clear();
                found.was_read |= state.path.len() == 1 && state.path[0] == "valgrindoutput";
                state.start();
            }
            Ok(Event::Text(text)) => state.text.push_str(&String::from_utf8_lossy(&text)),
            Ok(Event::GeneralRef(reference)) => state.text.push_str(match &*reference {
                b"lt" => "<",
                b"gt" => ">",
                b"amp" => "&",
                b"quot" => "\"",
                b"apos" => "'",
                _ => "?",
            }),
            Ok(Event::End(_)) => {
                state.end(&mut found, position);
                state.path.pop();
                state.text.clear();
            }
            Ok(Event::Eof) if state.path.is_empty() => break,
            Ok(Event::Eof) => {
                malformed.add(0, "the data end within an element");
                break;
            }
            Ok(_) => {}
            Err(error) => {
                malformed.add(0, format!("byte {position}: {error}"));
                break;
            }
        }
        if state.path.len() > DEEPEST {
            malformed.add(0, format!("byte {position}: its elements are nested too deeply"));
            break;
        }
    }
    found.reports = state.reports();
    found
}

/// Where the reader is.
#[derive(Default)]
struct State {
    path: Vec<String>,
    text: String,
    pid: Option<u32>,
    error: Error,
    frame: ReportFrame,
    directory: Option<String>,
    pair: Count,
    counts: Vec<Count>,
    errors: Vec<(String, Report)>,
}

/// How often an error happened.
#[derive(Default)]
struct Count {
    unique: String,
    count: u64,
}

impl State {
    fn is_at(&self, path: &[&str]) -> bool {
        self.path.len() > path.len() && self.path[1..].iter().zip(path).all(|(is, wanted)| is == wanted)
    }

    fn start(&mut self) {
        match self.path.last().map(String::as_str) {
            Some("error") if self.path.len() == 2 => self.error = Error::default(),
            Some("stack") if self.is_at(&["error"]) => {
                let about = std::mem::take(&mut self.error.about);
                self.error.stacks.push((about, Vec::new()));
            }
            Some("frame") => (self.frame, self.directory) = (ReportFrame::default(), None),
            Some("pair") => self.pair = Count::default(),
            _ => {}
        }
    }

    fn end(&mut self, found: &mut Found, position: u64) {
        let text = self.text.trim().to_owned();
        let Some(name) = self.path.last().cloned() else { return };
        if self.is_at(&["errorcounts", "pair"]) {
            match &*name {
                "count" => self.pair.count = text.parse().unwrap_or(0),
                "unique" => self.pair.unique = text,
                "pair" => self.counts.push(std::mem::take(&mut self.pair)),
                _ => {}
            }
        } else if self.is_at(&["error", "stack"]) {
            self.frame_field(&name, text);
        } else if self.is_at(&["error"]) {
            self.error_field(&name, text);
        } else if self.is_at(&["args", "argv"]) {
            if matches!(&*name, "exe" | "arg") {
                found.command.push(text);
            }
        } else if self.path.len() == 2 {
            match &*name {
                "pid" => self.pid = text.parse().ok(),
                "tool" | "protocoltool" => {
                    found.tool = match &*text {
                        "helgrind" => "helgrind",
                        "drd" => "drd",
                        _ => "memcheck",
                    }
                }
                _ => {}
            }
        }
        if name == "error" && self.path.len() == 2 {
            let error = std::mem::take(&mut self.error);
            self.errors.push((error.unique.clone(), error.report(found.tool, self.pid, position)));
        }
    }

    fn frame_field(&mut self, name: &str, text: String) {
        match name {
            "ip" => self.frame.address = u64::from_str_radix(text.trim_start_matches("0x"), 16).ok(),
            "obj" => self.frame.module = Some(text),
            "fn" => self.frame.function = text,
            "dir" => self.directory = Some(text),
            "file" => self.frame.file = Some(text),
            "line" => self.frame.line = text.parse().ok(),
            "frame" => {
                let mut frame = std::mem::take(&mut self.frame);
                if let (Some(directory), Some(file)) = (self.directory.take(), &mut frame.file) {
                    *file = format!("{directory}/{file}");
                }
                if let Some((_, frames)) = self.error.stacks.last_mut() {
                    frames.push(frame);
                }
            }
            _ => {}
        }
    }

    fn error_field(&mut self, name: &str, text: String) {
        let error = &mut self.error;
        match name {
            "unique" => error.unique = text,
            "kind" => error.kind = text,
            "what" => error.what = text,
            "auxwhat" => error.about = text,
            "text" if self.path.iter().any(|name| name == "xauxwhat") => error.about = text,
            "text" => error.what = text,
            "leakedbytes" => error.leaked_bytes = text.parse().ok(),
            "leakedblocks" => error.leaked_blocks = text.parse().ok(),
            _ => {}
        }
    }

    /// All errors, with the numbers that the file has at its end.
    fn reports(self) -> Vec<Report> {
        let Self { counts, errors, .. } = self;
        let counts: FxHashMap<String, u64> = counts.into_iter().map(|count| (count.unique, count.count)).collect();
        let counted = errors.into_iter().map(|(unique, mut report)| {
            if let (None, Some(&count)) = (report.bytes, counts.get(&unique)) {
                report.count = count.max(1);
            }
            report
        });
        counted.collect()
    }
}

impl Error {
    fn report(self, tool: &'static str, pid: Option<u32>, end: u64) -> Report {
        let about = self.stacks.get(1).map_or(&*self.about, |(about, _)| about).to_owned();
        let kind = kind::of_valgrind(&self.kind, &about);
        let mut stacks = self.stacks.into_iter();
        let stack = stacks.next().map(|(_, frames)| frames).unwrap_or_default();
        let (mut allocated, mut other) = (Vec::new(), Vec::new());
        for (about, frames) in stacks {
            let place = if about.contains("alloc'd") { &mut allocated } else { &mut other };
            if place.is_empty() {
                *place = frames;
            }
        }
        if self.leaked_blocks.is_some() {
            allocated.clone_from(&stack);
        }
        let message = if about.is_empty() { self.what } else { format!("{}; {about}", self.what) };
        let count = self.leaked_blocks.unwrap_or(1);
        Report { tool, kind, message, pid, stack, allocated, other, count, bytes: self.leaked_bytes, end }
    }
}
