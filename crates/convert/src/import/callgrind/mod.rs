//! Files of callgrind (`callgrind.out.PID`), and of tools that write its format: xdebug, Python's `pyprof2calltree`, gperftools.
//!
//! ```text
//! # callgrind format
//! events: Ir
//! fl=(1) src/world.cpp
//! fn=(1) World::step()
//! 42 100
//! cfn=(2) std::sort
//! calls=3 +10
//! * 900
//! ```
//!
//! - `(1) name` defines a compressed name, `(1)` repeats it. Files, objects and functions have lists of their own, which hold for
//!   the whole file.
//! - A cost line has the positions (a line, an instruction's address, or both), then the function's own cost. `+n`, `-n` and `*` are
//!   relative to the line before.
//! - After `calls=`, the next line has the position of the call and its inclusive cost. `jump=` and `jcnd=` are skipped with
//!   their position.
//! - `fi=` and `fe=` change the file (inlined code), not the function.
//! - Several parts (`part:`) are added up; `thread:` starts the part of a thread.
//!
//! The file has a call *graph*: each call's inclusive cost, but not from which caller of the caller. [`tree`] makes a call tree of
//! it. Own costs, by function and line, are exact.

mod graph;
mod names;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::Arc;

use stepscope_model::{Capture, EventId};

use self::graph::{Function, Graph};
use self::names::Names;
use super::cachegrind::missing;
use super::simulated::{add, add_events, costs, describe, each_content, event_names, header, number, shown};
use super::text::function_name;
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed};

/// Files of callgrind.
pub struct Callgrind;

/// The function: callgrind counts each level of a recursion by itself, as `fib`, `fib'2`.
fn without_level(name: Arc<str>) -> Arc<str> {
    let is_level = |level: &str| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once('\'') {
        Some((function, level)) if is_level(level) && !function.is_empty() => function.into(),
        _ => name,
    }
}

impl InputFormat for Callgrind {
    fn name(&self) -> &'static str {
        "callgrind"
    }

    fn describe(&self) -> &'static str {
        "Files of valgrind's callgrind and of tools that write its format: counts of each line, with calls."
    }

    /// Recognises the first line of callgrind, or the header of other tools: `positions:` or `creator:` with `events:`.
    fn recognises(&self, head: Head<'_>) -> bool {
        let mut lines = head.lines().filter(|line| !line.is_empty());
        if head.bytes.starts_with(b"# callgrind format") {
            return true;
        }
        const KEYS: [&[u8]; 12] = [
            b"#",
            b"version:",
            b"creator:",
            b"pid:",
            b"cmd:",
            b"part:",
            b"desc:",
            b"positions:",
            b"events:",
            b"thread:",
            b"event:",
            b"summary:",
        ];
        let header: Vec<&[u8]> =
            lines.by_ref().take_while(|line| KEYS.iter().any(|key| line.starts_with(key))).collect();
        let has = |key: &[u8]| header.iter().any(|line| line.starts_with(key));
        let names_code =
            || head.lines().any(|line| [&b"fl="[..], b"fn=", b"ob="].iter().any(|key| line.starts_with(key)));
        let is_callgrind = has(b"positions:") || has(b"creator:") || has(b"version:");
        has(b"events:") && (is_callgrind || (!has(b"cmd:") && names_code()))
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut reader = Reader::default();
        let malformed = each_content(input, |line| reader.content(line))?;
        reader.finish(&file, malformed)
    }
}

/// What the next line of numbers is.
#[derive(Default, Clone, Copy, PartialEq)]
enum Next {
    /// The function's own cost.
    #[default]
    Own,
    /// The inclusive cost of a call.
    Call,
    /// The position of a jump.
    Jump,
}

#[derive(Default)]
struct Reader {
    capture: Capture,
    names: Vec<String>,
    events: Vec<EventId>,
    caches: Vec<String>,
    threads: Vec<(Option<u64>, Graph)>,
    sums: Vec<u64>,
    summary: Option<Vec<u64>>,
    /// Whether callgrind wrote the file, which ends in `totals:` then.
    has_totals: bool,
    /// Whether the positions have an address, a line.
    has_address: bool,
    has_line: Option<bool>,
    previous: [u64; 2],
    objects: Names,
    files: Names,
    functions: Names,
    object: Option<Arc<str>>,
    file: Option<Arc<str>>,
    function: Option<usize>,
    called_object: Option<Option<Arc<str>>>,
    called_file: Option<Option<Arc<str>>>,
    called: Option<usize>,
    next: Next,
    was_read: bool,
}

impl Reader {
    fn content(&mut self, line: &str) -> Result<(), String> {
        match line.as_bytes()[0] {
            b'0'..=b'9' | b'+' | b'-' | b'*' => return self.numbers(line),
            _ => {}
        }
        if let Some((key, value)) = line.split_once('=')
            && !key.contains([' ', ':'])
        {
            return self.setting(key.trim(), value.trim());
        }
        self.header(line)
    }

    fn setting(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "fl" | "fi" | "fe" => self.file = self.files.read(value)?,
            "ob" => self.object = self.objects.read(value)?,
            "fn" => {
                let name = self.functions.read(value)?;
                self.function = Some(self.function_of(name, self.object.clone(), self.file.clone()));
                // A cost after `calls=` belongs to the call, so a function before it ends that.
                self.next = Next::Own;
            }
            "cob" => self.called_object = Some(self.objects.read(value)?),
            "cfi" | "cfl" => self.called_file = Some(self.files.read(value)?),
            "cfn" => {
                let name = self.functions.read(value)?;
                let object = self.called_object.take().unwrap_or_else(|| self.object.clone());
                let file = self.called_file.take().unwrap_or_else(|| self.file.clone());
                self.called = Some(self.function_of(name, object, file));
            }
            "calls" => self.next = Next::Call,
            "jump" | "jcnd" => self.next = Next::Jump,
            // A jump's target; its names may be used later.
            "jfi" => drop(self.files.read(value)?),
            "jfn" => drop(self.functions.read(value)?),
            "job" => drop(self.objects.read(value)?),
            "rcalls" | "frfn" | "inclusive" => {}
            _ => return Err(format!("`{}` is no line of callgrind", shown(key))),
        }
        Ok(())
    }

    fn function_of(&mut self, name: Option<Arc<str>>, object: Option<Arc<str>>, file: Option<Arc<str>>) -> usize {
        let name = name.map_or_else(|| "???".into(), without_level);
        self.graph().function(Function { name, object, file })
    }

    fn graph(&mut self) -> &mut Graph {
        if self.threads.is_empty() {
            self.threads.push((None, Graph::default()));
        }
        &mut self.threads.last_mut().expect("one was added").1
    }

    fn header(&mut self, line: &str) -> Result<(), String> {
        let Some((key, value)) = line.split_once(':') else {
            return Err(format!("`{}` is no line of callgrind", shown(line)));
        };
        let value = value.trim();
        match key.trim() {
            "events" if self.names.is_empty() => {
                self.names = event_names(value);
                self.events = add_events(&mut self.capture, &self.names);
            }
            // Parts of one file repeat it.
            "events" if event_names(value) != self.names => return Err("a part has other events".to_owned()),
            "positions" => {
                self.has_address = value.split_ascii_whitespace().any(|position| position == "instr");
                self.has_line = Some(value.split_ascii_whitespace().any(|position| position == "line"));
            }
            "thread" => self.start_thread(number(value).ok_or("the thread is not a number")?),
            "part" => self.previous = [0; 2],
            "creator" => self.has_totals = value.starts_with("callgrind"),
            "totals" => {
                let totals = costs(value.split_ascii_whitespace(), self.names.len())?;
                add(self.summary.get_or_insert_default(), &totals);
            }
            "cmd" => self.capture.info.command = value.split_ascii_whitespace().map(str::to_owned).collect(),
            "desc" if header(value, "Timerange").is_none() && header(value, "Trigger").is_none() => {
                let cache = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
                if value.contains("cache") && !self.caches.contains(&cache) {
                    self.caches.push(cache);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn start_thread(&mut self, thread: u64) {
        let found = self.threads.iter().position(|(known, _)| *known == Some(thread));
        let graph = found.map(|index| self.threads.remove(index)).unwrap_or((Some(thread), Graph::default()));
        self.threads.push(graph);
        (self.function, self.called) = (None, None);
    }

    fn numbers(&mut self, line: &str) -> Result<(), String> {
        let next = std::mem::take(&mut self.next);
        let mut numbers = line.split_ascii_whitespace();
        let mut positions = self.previous;
        if self.has_address {
            positions[0] = position(numbers.next(), self.previous[0])?;
        }
        if self.has_line.unwrap_or(true) {
            positions[1] = position(numbers.next(), self.previous[1])?;
        }
        self.previous = positions;
        let costs = costs(numbers, self.names.len())?;
        let function = self.function.ok_or("costs before the first function")?;
        let source_line = u32::try_from(positions[1]).unwrap_or(0);
        match next {
            Next::Own => {
                let file = self.file.clone();
                add(&mut self.sums, &costs);
                self.graph().add_own(function, file, source_line, &costs);
                self.was_read |= costs.iter().any(|cost| *cost > 0);
            }
            Next::Call => {
                let called = self.called.ok_or("a call before the first called function")?;
                self.graph().add_call(function, called, &costs);
            }
            Next::Jump => {}
        }
        Ok(())
    }

    fn finish(mut self, file: &str, malformed: Malformed) -> Result<Capture, ImportError> {
        let mut cut = tree::Cut::default();
        for (number, graph) in &self.threads {
            if graph.is_empty() {
                continue;
            }
            let name = number.map_or("all threads".to_owned(), |number| format!("thread {number}"));
            let thread = self.capture.add_thread_named(&name);
            tree::add(graph, &self.events, thread, &mut self.capture, &mut cut);
        }
        let tool = if self.names.iter().any(|name| name == "Ir") { "callgrind" } else { "the tool" };
        describe(&mut self.capture, &self.names, tool, &self.caches);
        let notes = &mut self.capture.info.notes;
        if cut.has_calls {
            notes.push(
                "Callgrind has callers one level deep. Deeper call paths are estimates, in proportion to the costs of calls; own \
                 and inclusive costs of functions are exact outside of recursion."
                    .to_owned(),
            );
        }
        if cut.paths {
            notes.push(
                "Call paths of little cost were merged: their costs are at their functions, without callers."
                    .to_owned(),
            );
        }
        if (self.has_totals || self.summary.is_some())
            && let Some(missing) = missing(&self.names, &self.sums, self.summary.as_deref())
        {
            notes.push(format!("{file}: {missing}"));
        }
        malformed.settle(&mut self.capture, file, Callgrind.name(), self.was_read)?;
        Ok(self.capture)
    }
}

/// A position: a number, or relative to the one before.
fn position(text: Option<&str>, previous: u64) -> Result<u64, String> {
    let text = text.ok_or("it has no position")?;
    let position = match text.as_bytes()[0] {
        b'*' if text.len() == 1 => Some(previous),
        b'+' => number(&text[1..]).map(|more| previous.saturating_add(more)),
        b'-' => number(&text[1..]).map(|less| previous.saturating_sub(less)),
        _ => number(text),
    };
    position.ok_or_else(|| format!("`{}` is not a position", shown(text)))
}

/// The name of a function as tables show it.
fn shown_name(function: &Function) -> Arc<str> {
    function_name(&function.name).as_ref().into()
}
