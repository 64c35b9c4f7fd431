//! Files of heaptrack: `heaptrack.PROGRAM.PID.zst` (or `.gz`), and raw ones (`heaptrack --raw`).
//!
//! A file is text; numbers are hexadecimal. A line is a record, named by its first character. Both forms have
//!
//! - `v VERSION FORMAT`, first; `X COMMAND`; `I PAGE_SIZE PAGES`
//! - `t IP PARENT`: a node of the call tree, numbered from 1. The parent is the caller, 0 for none.
//! - `c MILLISECONDS` since the start, `R PAGES` of resident memory
//!
//! An interpreted file (what heaptrack writes normally) has names:
//!
//! - `s LENGTH TEXT` (until format 2 `s TEXT`): a text, numbered from 1
//! - `i ADDRESS MODULE [FUNCTION FILE LINE]...`: an instruction; inlined functions first. Trailing numbers may be missing.
//! - `a SIZE NODE`: a kind of allocation, numbered from 0. `+ KIND` allocates, `- KIND` frees.
//!
//! A raw file has addresses, which are named from the files of this machine:
//!
//! - `x LENGTH PATH`, the executable; `m LENGTH PATH ADDRESS [START LENGTH]...`, a module; `m 1 -` forgets all modules
//! - `+ SIZE NODE POINTER` allocates, `- POINTER` frees
//!
//! An allocation is *temporary* if the next event of the program frees such a block. heaptrack has no threads. It calls one
//! more release temporary: that of a block of kind 0 after another release.

mod interpreted;
mod raw;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use stepscope_model::{Capture, Counter, Dimension, DimensionStatus, Process, ProcessId, StackId};

use super::heap_sums::{HeapSums, name_program, signed};
use super::text::text;
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, each_record};
use interpreted::Interpreted;
use raw::Raw;

/// The last format that is known.
const NEWEST_FORMAT: u64 = 3;

/// Files of heaptrack.
pub struct Heaptrack;

impl InputFormat for Heaptrack {
    fn name(&self) -> &'static str {
        "heaptrack"
    }

    fn describe(&self) -> &'static str {
        "Files of heaptrack, interpreted or raw (`heaptrack --raw`): allocations with stacks, the heap over time."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        let mut lines = head.lines();
        let is_version = |line: &[u8]| {
            let mut numbers = Numbers::of(line);
            line.starts_with(b"v ")
                && numbers.next().is_some_and(|version| version >= 0x100)
                && numbers.is_well_formed()
        };
        lines.next().is_some_and(is_version)
            && lines.next().is_none_or(|line| line.len() < 2 || (b"xXIAms#".contains(&line[0]) && line[1] == b' '))
    }

    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut reader = Reader::new();
        let malformed = each_record(input, |line| reader.record(line))?;
        reader.finish(malformed, &file, options)
    }
}

/// Hexadecimal numbers of a line, after its first character.
#[derive(Clone)]
struct Numbers<'a> {
    rest: &'a [u8],
    is_bad: bool,
}

impl<'a> Numbers<'a> {
    fn of(line: &'a [u8]) -> Self {
        Self { rest: line.get(1..).unwrap_or_default(), is_bad: false }
    }

    fn word(&mut self) -> Option<&'a [u8]> {
        let word = self.rest.trim_ascii_start();
        let end = memchr::memchr(b' ', word).unwrap_or(word.len());
        let (word, rest) = word.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Whether all words so far are numbers.
    fn is_well_formed(&self) -> bool {
        !self.is_bad
    }
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let word = self.word()?;
        let digits = std::str::from_utf8(word).ok().filter(|word| !word.starts_with('+'));
        let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        self.is_bad |= number.is_none();
        number
    }
}

/// What is common to both forms.
struct Reader {
    capture: Capture,
    process: ProcessId,
    sums: HeapSums,
    interpreted: Interpreted,
    raw: Option<Raw>,
    format: u64,
    command: String,
    page_bytes: u64,
    time_ns: u64,
    is_attached: bool,
    /// The block of the last event, if it was an allocation.
    last: Option<u64>,
}

/// Why a line is not a record.
type Fault = &'static str;

const NOT_NUMBERS: Fault = "its numbers are not hexadecimal";
const TOO_FEW: Fault = "it has too few numbers";
const UNKNOWN_NODE: Fault = "it refers to a node that the file does not have";

impl Reader {
    fn new() -> Self {
        let mut capture = Capture::default();
        let process = capture.add_process(Process::default());
        Self {
            capture,
            process,
            sums: HeapSums::default(),
            interpreted: Interpreted::default(),
            raw: None,
            format: 0,
            command: String::new(),
            page_bytes: 4096,
            time_ns: 0,
            is_attached: false,
            last: None,
        }
    }

    fn record(&mut self, line: &[u8]) -> Result<(), Fault> {
        let mut numbers = Numbers::of(line);
        let mut number = || numbers.next().ok_or(TOO_FEW);
        match line.first() {
            None | Some(b'#' | b'S') => {}
            Some(b'v') => {
                number()?;
                self.format = number().unwrap_or(1);
            }
            Some(b'X') => self.command = text(line[1..].trim_ascii()).into_owned(),
            Some(b'I') => self.page_bytes = number()?,
            Some(b'A') => self.is_attached = true,
            Some(b'c') => self.reading(number()?),
            Some(b'R') => {
                let bytes = number()?.saturating_mul(self.page_bytes);
                self.count("rss_bytes", signed(bytes));
            }
            Some(b'x') => {
                let path = self.sized(line)?.text;
                self.raw.get_or_insert_default().executable(path);
            }
            Some(b'm') => {
                let Sized { text, rest } = self.sized(line)?;
                self.raw.get_or_insert_default().module(text, rest)?;
            }
            Some(b'+') => self.allocated(numbers)?,
            Some(b'-') => self.freed(numbers)?,
            Some(b't') => match &mut self.raw {
                Some(raw) => raw.node(number()?, number()?)?,
                None => self.interpreted.node(number()?, number()?, &mut self.capture)?,
            },
            Some(b's') => {
                let string = self.sized(line)?.text;
                self.interpreted.text(string, &mut self.capture);
            }
            Some(b'i') => self.interpreted.instruction(numbers, &mut self.capture)?,
            Some(b'a') => self.interpreted.kind(number()?, number()?)?,
            Some(_) => return Err("no record of heaptrack begins so"),
        }
        Ok(())
    }

    /// The text of a record, with its length before it from format 3 on.
    fn sized<'a>(&self, line: &'a [u8]) -> Result<Sized<'a>, Fault> {
        let mut words = Numbers::of(line);
        if self.format < 3 {
            let all = line.get(2..).unwrap_or_default();
            // Only names of modules have more behind them.
            let end = if line[0] == b'm' { memchr::memchr(b' ', all).unwrap_or(all.len()) } else { all.len() };
            return Ok(Sized { text: &all[..end], rest: &all[end..] });
        }
        let length = words.next().ok_or(TOO_FEW)?;
        let all = words.rest.get(1..).unwrap_or_default();
        let length = usize::try_from(length).ok().filter(|&length| length <= all.len());
        let (text, rest) = all.split_at(length.ok_or("it is shorter than its text")?);
        Ok(Sized { text, rest })
    }

    fn allocated(&mut self, mut numbers: Numbers<'_>) -> Result<(), Fault> {
        let first = numbers.next().ok_or(NOT_NUMBERS)?;
        let (place, bytes, block) = match &mut self.raw {
            Some(raw) => raw.allocate(first, numbers.next(), numbers.next())?,
            None => {
                let (place, bytes) = self.interpreted.of_kind(first)?;
                (place, bytes, first)
            }
        };
        self.sums.allocate(place, bytes);
        self.last = Some(block);
        Ok(())
    }

    fn freed(&mut self, mut numbers: Numbers<'_>) -> Result<(), Fault> {
        let block = numbers.next().ok_or(NOT_NUMBERS)?;
        let is_temporary = self.last.take() == Some(block);
        let freed = match &mut self.raw {
            // Blocks from before heaptrack attached are unknown.
            Some(raw) => raw.free(block),
            None => Some(self.interpreted.of_kind(block)?),
        };
        if let Some((place, bytes)) = freed {
            self.sums.free(place, bytes, is_temporary);
        }
        Ok(())
    }

    fn reading(&mut self, milliseconds: u64) {
        self.time_ns = self.time_ns.max(milliseconds.saturating_mul(1_000_000));
        self.count("heap_live_bytes", self.sums.live_bytes);
        self.count("heap_calls", signed(self.sums.calls));
        self.count("heap_bytes", signed(self.sums.bytes));
    }

    fn count(&mut self, name: &str, value: i64) {
        let name: Arc<str> = self.capture.intern_text(name);
        let (time_ns, process) = (self.time_ns, Some(self.process));
        self.capture.counters.push(Counter { time_ns, process, thread: None, name, value });
    }

    fn finish(mut self, malformed: Malformed, file: &str, options: &ImportOptions) -> Result<Capture, ImportError> {
        let stacks: Vec<Option<StackId>> = match self.raw {
            Some(raw) => raw.stacks(&mut self.capture, options),
            None => self.interpreted.stacks(),
        };
        let capture = &mut self.capture;
        let stack_of = |place: usize| stacks.get(place).copied().flatten();
        capture.allocations = self.sums.rows(self.process, self.time_ns, stack_of);
        name_program(capture, self.process, &self.command);
        let info = &mut capture.info;
        info.clock = Some("heaptrack".to_owned());
        (info.start_ns, info.end_ns) = (Some(0), Some(self.time_ns));
        let mut lacks = vec!["heaptrack does not record threads and lifetimes of blocks.".to_owned()];
        if self.is_attached {
            lacks.push("heaptrack attached to a running program: earlier allocations are unknown.".to_owned());
        }
        info.dimensions.insert(Dimension::Heap, DimensionStatus::Partial { lacks });
        if self.format > NEWEST_FORMAT {
            info.notes.push(format!("{file}: format {} of heaptrack is newer than the known ones.", self.format));
        }
        malformed.settle(capture, file, Heaptrack.name(), self.sums.calls > 0)?;
        Ok(self.capture)
    }
}

/// A text, and what follows.
struct Sized<'a> {
    text: &'a [u8],
    rest: &'a [u8],
}
