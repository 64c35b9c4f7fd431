//! Files of cachegrind (`cachegrind.out.PID`), with the counts of each source line.
//!
//! ```text
//! desc: LL cache:         8388608 B, 64 B, 16-way associative
//! cmd: ./simulator
//! events: Ir Dr D1mr DLmr
//! fl=src/world.cpp
//! fn=World::step()
//! 42 100 20 3 1
//! summary: 100 20 3 1
//! ```
//!
//! - `fl=`, `fi=` and `fe=` name the file of the lines that follow, `fn=` their function. A function has several files if code
//!   of others is inlined into it; inlined functions have no names.
//! - A line has its number (0 if unknown) and one count per event. Missing counts and `.` are zero.
//! - `summary:` is the last line. If it is missing, or differs from the sum of the lines, the file is truncated or damaged.
//!
//! The format has no callers: each stack is one frame. Each event of the file is an event of the capture.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use stepscope_model::{Capture, EventId, Frame, Sample, ThreadId, quantity};

use super::simulated::{add, add_events, costs, describe, each_content, event_names, header, number, shown};
use super::text::function_name;
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed};

/// Files of cachegrind.
pub struct Cachegrind;

impl InputFormat for Cachegrind {
    fn name(&self) -> &'static str {
        "cachegrind"
    }

    fn describe(&self) -> &'static str {
        "Files of valgrind's cachegrind: counts and simulated cache misses of each source line."
    }

    /// Recognises the header: `desc:` and `cmd:`, then `events:`, without `positions:`.
    fn recognises(&self, head: Head<'_>) -> bool {
        let mut has_command = false;
        for line in head.lines().filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
            match line {
                _ if line.starts_with(b"desc:") => {}
                _ if line.starts_with(b"cmd:") => has_command = true,
                _ => return has_command && line.starts_with(b"events:"),
            }
        }
        false
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut reader = Reader::default();
        let malformed = each_content(input, |line| reader.content(line))?;
        reader.finish(&file, malformed)
    }
}

/// A source line of a function.
type Place = (Arc<str>, Option<Arc<str>>, u32);

#[derive(Default)]
struct Reader {
    capture: Capture,
    names: Vec<String>,
    events: Vec<EventId>,
    caches: Vec<String>,
    file: Option<Arc<str>>,
    function: Option<Arc<str>>,
    /// The row of each place in `counts`.
    rows: HashMap<Place, usize>,
    counts: Vec<(Place, Vec<u64>)>,
    summary: Option<Vec<u64>>,
}

impl Reader {
    fn content(&mut self, line: &str) -> Result<(), String> {
        if line.as_bytes()[0].is_ascii_digit() {
            return self.counts(line);
        }
        if let Some(name) = ["fl=", "fi=", "fe="].iter().find_map(|key| line.strip_prefix(key)) {
            self.file = known(name).map(|name| self.capture.intern_text(name));
        } else if let Some(name) = line.strip_prefix("fn=") {
            let name = function_name(known(name).unwrap_or("???"));
            self.function = Some(self.capture.intern_text(&name));
        } else if let Some(names) = header(line, "events") {
            if !self.names.is_empty() {
                return Err("the events are listed twice".to_owned());
            }
            self.names = event_names(names);
            self.events = add_events(&mut self.capture, &self.names);
        } else if let Some(sums) = header(line, "summary") {
            self.summary = Some(costs(sums.split_ascii_whitespace(), self.names.len())?);
        } else if let Some(command) = header(line, "cmd") {
            self.capture.info.command = command.split_ascii_whitespace().map(str::to_owned).collect();
        } else if let Some(cache) = header(line, "desc") {
            self.caches.push(cache.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
        } else {
            return Err(format!("`{}` is no line of cachegrind", shown(line)));
        }
        Ok(())
    }

    fn counts(&mut self, line: &str) -> Result<(), String> {
        let mut numbers = line.split_ascii_whitespace();
        let place = numbers.next().and_then(number).ok_or("it has no line number")?;
        let counts = costs(numbers, self.names.len())?;
        let function = self.function.clone().ok_or("counts before the first function")?;
        let place = (function, self.file.clone(), u32::try_from(place).unwrap_or(0));
        match self.rows.entry(place) {
            Entry::Occupied(row) => add(&mut self.counts[*row.get()].1, &counts),
            Entry::Vacant(row) => {
                self.counts.push((row.key().clone(), counts));
                row.insert(self.counts.len() - 1);
            }
        }
        Ok(())
    }

    fn finish(mut self, file: &str, malformed: Malformed) -> Result<Capture, ImportError> {
        let thread = self.capture.add_thread_named("all threads");
        let mut sums = Vec::new();
        for ((function, source, line), counts) in &self.counts {
            let frame =
                Frame { file: source.clone(), line: (*line > 0).then_some(*line), ..Frame::named(function.clone()) };
            let frame = self.capture.intern_frame(frame);
            let stack = Some(self.capture.intern_stack_node(None, frame));
            add(&mut sums, counts);
            add_samples(&mut self.capture, &self.events, thread, stack, counts);
        }
        describe(&mut self.capture, &self.names, "cachegrind", &self.caches);
        if let Some(missing) = missing(&self.names, &sums, self.summary.as_deref()) {
            self.capture.info.notes.push(format!("{file}: {missing}"));
        }
        malformed.settle(&mut self.capture, file, Cachegrind.name(), !self.counts.is_empty())?;
        Ok(self.capture)
    }
}

/// Adds a row of each event that has a count.
pub(super) fn add_samples(
    capture: &mut Capture,
    events: &[EventId],
    thread: ThreadId,
    stack: Option<stepscope_model::StackId>,
    counts: &[u64],
) {
    for (&event, &weight) in events.iter().zip(counts).filter(|(_, weight)| **weight > 0) {
        capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight });
    }
}

/// A name of a file or function; `None` for `???`.
pub(super) fn known(name: &str) -> Option<&str> {
    (!name.is_empty() && name != "???").then_some(name)
}

/// What a summary has more than its lines, in a sentence.
pub(super) fn missing(names: &[String], sums: &[u64], summary: Option<&[u64]>) -> Option<String> {
    let Some(summary) = summary else {
        return Some("it has no summary, which is its last line: the file is truncated.".to_owned());
    };
    let at = |counts: &[u64], index: usize| counts.get(index).copied().unwrap_or(0);
    let (index, name) = names.iter().enumerate().find(|(index, _)| at(summary, *index) != at(sums, *index))?;
    let (listed, whole) = (quantity::grouped(at(sums, index).into()), quantity::grouped(at(summary, index).into()));
    Some(format!("its lines have {listed} {name}, its summary {whole}: some lines are missing or damaged."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Source, import};

    fn read(text: &str) -> Capture {
        import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
    }

    /// Function, file, line, event and weight of each row.
    fn rows(capture: &Capture) -> Vec<String> {
        let row = |sample: &Sample| {
            let frame = capture.frames_of(sample.stack).next().map(|frame| &capture.frames[frame.index()]).unwrap();
            let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
            let file = frame.file.as_deref().unwrap_or("-");
            format!("{} {file}{line} {} {}", frame.function, capture.event(sample.event).name, sample.weight)
        };
        capture.samples.iter().map(row).collect()
    }

    const FILE: &str = "desc: I1 cache: 32768 B, 64 B, 8-way associative\ndesc: LL cache:  8388608 B, 64 B, 16-way\n\
        cmd: ./sim --n 4\nevents: Ir Dr DLmr\n\
        fl=world.cpp\nfn=World::step(int)\n10 100 20 3\n0 5\nfe=vector.h\n7 40 . 2\n\
        fl=???\nfn=???\n0 1 1 0\nfl=world.cpp\nfn=World::step(int)\n10 1 0 1\nsummary: 147 21 6\n";

    #[test]
    fn counts_belong_to_function_file_and_line() {
        let capture = read(FILE);
        assert_eq!(
            rows(&capture),
            [
                "World::step(int) world.cpp:10 Ir 101",
                "World::step(int) world.cpp:10 Dr 20",
                "World::step(int) world.cpp:10 DLmr 4",
                "World::step(int) world.cpp Ir 5",
                "World::step(int) vector.h:7 Ir 40",
                "World::step(int) vector.h:7 DLmr 2",
                "??? - Ir 1",
                "??? - Dr 1",
            ]
        );
        assert_eq!(capture.info.command, ["./sim", "--n", "4"]);
        assert_eq!(
            capture.info.dimensions[&stepscope_model::Dimension::Cache],
            stepscope_model::DimensionStatus::Recorded
        );
        assert_eq!(capture.info.notes.len(), 2, "{:?}", capture.info.notes);
        assert!(capture.info.notes[1].starts_with("Simulated caches: I1 cache: 32768 B, 64 B, 8-way associative; LL"));
    }

    #[test]
    fn a_truncated_file_keeps_what_is_there_and_says_so() {
        let cut = &FILE[..FILE.find("fl=???").unwrap()];
        let capture = read(cut);
        assert_eq!(rows(&capture).len(), 6);
        assert!(capture.info.notes[2].contains("the file is truncated"), "{:?}", capture.info.notes);
        let damaged = read(&FILE.replace("7 40 . 2\n", "7 40 what 2\n7 1 2 3 4\n"));
        assert_eq!(damaged.info.losses.malformed_records, 2);
        let notes = damaged.info.notes.join("\n");
        assert!(notes.contains("its lines have 107 Ir, its summary 147"), "{notes}");
        assert!(notes.contains("line 10: `what` is not a count"), "{notes}");
    }

    #[test]
    fn sums_do_not_overflow() {
        let most = u64::MAX;
        let capture = read(&format!("cmd: x\nevents: Ir\nfl=a\nfn=f\n1 {most}\n1 {most}\nsummary: {most}\n"));
        assert_eq!(rows(&capture), [format!("f a:1 Ir {most}")]);
    }
}
