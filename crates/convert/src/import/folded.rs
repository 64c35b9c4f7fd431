//! Folded (collapsed) stacks: one line per stack, `thread;root;...;leaf COUNT`.
//!
//! `stackcollapse-*.pl`, inferno, bcc and bpftrace scripts write them for flame graphs. The format has no specification
//! and no units. The rules:
//!
//! - The count follows the **last** space. Everything before it is names. They contain spaces, `(` and `<`, may end
//!   with a space, may be empty, and are never trimmed (erratum 7 of the Gazebo study). Only linker symbols of C++ and
//!   Rust change: they are demangled.
//! - Names are separated by `;`. The first is the thread's name. It may be the only one: a sample without a stack.
//! - The unit of counts is unknown. Often they are sums of periods, so that the number of samples is unknown
//!   ([`Counts::Unknown`](stepscope_model::Counts::Unknown), erratum 1), unless the caller gives the unit ([`FoldedUnit`]).
//! - Suffixes from collapse scripts (`_[k]` kernel, `_[i]` inlined) describe the frame and stay in the name.
//!   `[libfoo.so]`, an unnamed function of a library, also sets the frame's module.
//! - Blank lines and lines that begin with `# ` are skipped. Lines may end in `\r\n`.
//!
//! Equal stacks of a thread are added up, so memory is bounded by the number of distinct stacks.

mod leaves;
mod options;
#[cfg(test)]
mod tests;
mod threads;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::quantity::plural;
use stepscope_model::{
    Capture, EventId, Frame, FrameId, Language, Module, ModuleId, Sample, StackId, StackNode, ThreadId,
};

use super::call_tree::CallTreeRows;
use super::lines::{Line, Lines};
use super::text::{function_name, number, text};
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed};

use leaves::{Leaf, Leaves};
pub use options::{FirstFrame, FoldedOptions, FoldedUnit, ThreadIds};
use threads::Threads;

/// Folded stacks.
pub struct Folded;

impl InputFormat for Folded {
    fn name(&self) -> &'static str {
        "folded"
    }

    fn describe(&self) -> &'static str {
        "Folded stacks of stackcollapse-*.pl, inferno, bcc: one line per stack, `thread;root;...;leaf COUNT`."
    }

    /// Recognises a text if at least half of the lines that are neither blank nor comments are records.
    fn recognises(&self, head: Head<'_>) -> bool {
        let (mut good, mut bad) = (0, 0);
        for line in head.lines().filter(|line| !is_skipped(line)) {
            match parse(line) {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
        }
        head.is_text() && good > 0 && good >= bad
    }

    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let damage = input.damage();
        let mut lines = Lines::new(input);
        let mut reader = Reader::new(&options.folded);
        loop {
            match lines.next_line() {
                Ok(Some(line)) if line.too_long => reader.malformed.add(line.number, "it is longer than 16 MiB"),
                Ok(Some(line)) if !line.ended && damage.get().is_some() => {
                    reader.malformed.add(line.number, "the data end within it");
                }
                Ok(Some(line)) => reader.line(line),
                Ok(None) => return reader.finish(&file),
                Err(source) => return Err(ImportError::Read { file, offset: lines.offset(), source }),
            }
        }
    }
}

/// Why a text is refused in which some lines are folded stacks; `None` if none is.
pub(super) fn refusal(head: Head<'_>) -> Option<String> {
    let lines = (1..).zip(head.lines()).filter(|(_, line)| !is_skipped(line));
    let (mut all, mut good, mut first) = (0, 0, None);
    for (number, line) in lines {
        all += 1;
        match parse(line) {
            Ok(_) => good += 1,
            Err(reason) => _ = first.get_or_insert((number, line, reason)),
        }
    }
    let (number, line, reason) = first.filter(|(_, _, reason)| good > 0 || *reason == DECIMAL_COUNT)?;
    let shown: String = text(line).chars().filter(|c| !c.is_control()).take(60).collect();
    Some(format!("{good} of {} are folded stacks; line {number}, `{shown}`, is not: {reason}", plural(all, "line")))
}

fn is_skipped(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace) || line.starts_with(b"# ")
}

const DECIMAL_COUNT: &str = "the count is not an integer; multiply all counts, by 1000 for instance, and round them";

/// Splits a line into names and count.
fn parse(line: &[u8]) -> Result<(&[u8], u64), &'static str> {
    let space = memchr::memrchr(b' ', line).ok_or("it has no space before a count")?;
    let (names, count) = (&line[..space], &line[space + 1..]);
    match number(count) {
        Some(count) => Ok((names, count)),
        None if count.is_empty() => Err("it has no count after the last space"),
        None if count.iter().all(u8::is_ascii_digit) => Err("the count exceeds 64 bits"),
        None if is_decimal(count) => Err(DECIMAL_COUNT),
        None => Err("the text after the last space is not an integer"),
    }
}

fn is_decimal(count: &[u8]) -> bool {
    let mut parts = count.splitn(2, |&byte| byte == b'.');
    let is_digits = |part: Option<&[u8]>| part.is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    is_digits(parts.next()) && is_digits(parts.next())
}

struct Reader<'a> {
    options: &'a FoldedOptions,
    capture: Capture,
    samples: Vec<Sample>,
    event: EventId,
    rows: CallTreeRows<Box<[u8]>>,
    sums: Sums,
    leaves: Leaves,
    threads: Threads,
    modules: HashMap<String, ModuleId>,
    previous: Previous,
    malformed: Malformed,
    lines: u64,
    two_counts: u64,
    renamed: u64,
    /// The number and count of a last line that has no line end.
    unended: Option<(u64, u64)>,
}

/// The row of each thread and stack. Few stacks are of several threads, so a list by stack holds nearly all rows.
#[derive(Default)]
struct Sums {
    /// The row of a stack's first thread, by stack id + 1.
    first: Vec<u32>,
    /// The rows of a stack's other threads.
    further: FxHashMap<(ThreadId, Option<StackId>), u32>,
}

impl Sums {
    const NONE: u32 = u32::MAX;

    fn row_of(&mut self, thread: ThreadId, stack: Option<StackId>, samples: &[Sample]) -> &mut u32 {
        let index = stack.map_or(0, |stack| stack.index() + 1);
        if self.first.len() <= index {
            self.first.resize(index + 1, Self::NONE);
        }
        let first = &mut self.first[index];
        let is_of_another = samples.get(*first as usize).is_some_and(|sample| sample.thread != thread);
        if is_of_another { self.further.entry((thread, stack)).or_insert(Self::NONE) } else { first }
    }
}

/// The names of the previous line. Neighbouring lines share most of their stack, which is not looked up again.
///
/// Collapse scripts sort their lines. As long as lines are in the order of their bytes and of one thread, all lines below one node
/// follow each other, but for a line that ends there: `a;b 1`, `a;b2 1`, `a;b;c 1`. So a node that the previous line does not share
/// is new, unless a line ended there, and such lines are known. From the first line on that is not in order, nodes are looked up, and
/// [`Leaves`] are sorted.
#[derive(Default)]
struct Previous {
    is_out_of_order: bool,
    /// Lengths and nodes of earlier lines that the previous line begins with, and of the previous line.
    ended: Vec<(usize, StackId)>,
    names: Vec<u8>,
    /// End of the thread's name.
    thread_end: usize,
    thread: Option<ThreadId>,
    /// End of each frame's name, and its node.
    nodes: Vec<(usize, StackId)>,
}

impl<'a> Reader<'a> {
    fn new(options: &'a FoldedOptions) -> Self {
        let mut capture = Capture::default();
        let event = capture.add_event(options.unit.event());
        Self {
            options,
            capture,
            samples: Vec::new(),
            event,
            rows: CallTreeRows::new(),
            sums: Sums::default(),
            leaves: Leaves::default(),
            threads: Threads::default(),
            modules: HashMap::new(),
            previous: Previous::default(),
            malformed: Malformed::default(),
            lines: 0,
            two_counts: 0,
            renamed: 0,
            unended: None,
        }
    }

    fn line(&mut self, line: Line<'_>) {
        if is_skipped(line.bytes) {
            return;
        }
        match parse(line.bytes) {
            Ok((names, count)) => {
                self.lines += 1;
                self.unended = (!line.ended).then_some((line.number, count));
                self.two_counts += u64::from(parse(names).is_ok());
                self.add_line(names, count);
            }
            Err(what) => self.malformed.add(line.number, what),
        }
    }

    fn add(&mut self, thread: ThreadId, stack: Option<StackId>, count: u64) {
        let samples = &mut self.samples;
        let row = self.sums.row_of(thread, stack, samples);
        if let Some(sample) = samples.get_mut(*row as usize)
            && let Some(sum) = sample.weight.checked_add(count)
        {
            sample.weight = sum;
            return;
        }
        // New, or a sum beyond 64 bits, which continues in a new row.
        *row = u32::try_from(samples.len()).expect("a table holds fewer than 2^32 rows");
        samples.push(Sample { time_ns: None, thread, cpu: None, stack, event: self.event, weight: count });
    }

    /// Adds the names and the count of a line. Nodes that it shares with the previous line are not looked up again.
    fn add_line(&mut self, names: &[u8], count: u64) {
        let shared = common_prefix(&self.previous.names, names);
        let is_shared = |end: usize| end <= shared && (end == names.len() || names[end] == b';');
        let same_thread = self.names_no_thread() || is_shared(self.previous.thread_end);
        // The shorter one of two of which one begins with the other comes first.
        let rest = self.previous.names.get(shared..).unwrap_or_default().cmp(&names[shared..]);
        let is_first = self.previous.thread.is_none();
        self.previous.is_out_of_order |= !is_first && (!same_thread || rest.is_gt());
        while self.previous.ended.pop_if(|(end, _)| *end > shared).is_some() {}
        let kept = match self.previous.thread {
            Some(_) if same_thread => self.previous.nodes.iter().take_while(|(end, _)| is_shared(*end)).count(),
            _ => {
                self.begin(names);
                0
            }
        };
        self.previous.nodes.truncate(kept);
        self.previous.names.truncate(shared);
        self.previous.names.extend_from_slice(&names[shared..]);

        let (mut end, mut parent) = match self.previous.nodes.last() {
            Some(&(end, node)) => (end, Some(node)),
            None => (self.previous.thread_end, None),
        };
        // The first frame of a line without a thread has no `;` before it.
        let mut start = if self.names_no_thread() && parent.is_none() { 0 } else { end + 1 };
        let thread = self.previous.thread.expect("set by `begin`, at the first line at the latest");
        while start <= names.len() {
            end = memchr::memchr(b';', &names[start..]).map_or(names.len(), |at| start + at);
            let frame = self.frame(&names[start..end]);
            if self.previous.is_out_of_order && end == names.len() {
                return self.leaves.add(Leaf::below(parent, frame, thread, count), self.lines);
            }
            let ended = &self.previous.ended;
            let node = match self.previous.is_out_of_order {
                true => self.rows.node(parent, frame, &mut self.capture),
                false => match ended.iter().rev().find(|(length, _)| *length == end) {
                    Some(&(_, node)) => node,
                    None => CallTreeRows::<Box<[u8]>>::new_node(parent, frame, &mut self.capture),
                },
            };
            self.previous.nodes.push((end, node));
            parent = Some(node);
            start = end + 1;
        }
        if self.previous.is_out_of_order {
            return self.leaves.add(Leaf::at(parent, thread, count, &self.capture), self.lines);
        }
        if let Some(node) = parent.filter(|_| self.previous.ended.last().is_none_or(|(end, _)| *end < names.len())) {
            self.previous.ended.push((names.len(), node));
        }
        self.add(thread, parent, count);
    }

    /// Adds the leaves of lines that were out of order.
    fn add_leaves(&mut self) {
        let leaves = self.leaves.take();
        if leaves.is_empty() {
            return;
        }
        self.rows.index(&self.capture);
        self.samples.reserve_exact(leaves.len());
        self.capture.stacks.reserve_exact(leaves.len());
        let (rows, capture) = (&self.rows, &mut self.capture);
        let mut last: Option<(StackNode, StackId)> = None;
        let mut stack_of = |leaf: &Leaf| {
            let node = leaf.node()?;
            let new = |capture| CallTreeRows::<Box<[u8]>>::new_node(node.parent, node.frame, capture);
            let stack = match last {
                Some((same, stack)) if same == node => stack,
                _ => rows.known(node, capture).unwrap_or_else(|| new(capture)),
            };
            last = Some((node, stack));
            Some(stack)
        };
        let numbered = leaves.into_iter().map(|leaf| (leaf.line, leaf.thread, stack_of(&leaf), leaf.count));
        let mut numbered: Vec<(u32, ThreadId, Option<StackId>, u64)> = numbered.collect();
        // Rows are in the order of the lines, so that an export has it too.
        numbered.sort_unstable_by_key(|(line, ..)| *line);
        for (_, thread, stack, count) in numbered {
            self.add(thread, stack, count);
        }
    }

    fn names_no_thread(&self) -> bool {
        self.options.first_frame == FirstFrame::Function
    }

    /// Reads the thread of a line.
    fn begin(&mut self, names: &[u8]) {
        let end = if self.names_no_thread() { 0 } else { memchr::memchr(b';', names).unwrap_or(names.len()) };
        let label = self.name(&names[..end]).into_owned();
        self.previous.thread_end = end;
        self.previous.thread = Some(self.threads.of(&label, self.options.thread_ids, &mut self.capture));
    }

    fn name<'n>(&mut self, name: &'n [u8]) -> Cow<'n, str> {
        let name = text(name);
        self.renamed += u64::from(matches!(name, Cow::Owned(_)));
        name
    }

    fn frame(&mut self, name: &[u8]) -> FrameId {
        let (modules, renamed) = (&mut self.modules, &mut self.renamed);
        self.rows.frame(name, &mut self.capture, |capture| {
            let key: Box<[u8]> = name.into();
            let name = text(name);
            *renamed += u64::from(matches!(name, Cow::Owned(_)));
            let function = match function_name(&name) {
                Cow::Borrowed(name) => Arc::from(name),
                Cow::Owned(readable) => readable.into(),
            };
            let module = library_of(&name).map(|library| {
                *modules
                    .entry(library.to_owned())
                    .or_insert_with(|| capture.add_module(Module { path: library.to_owned(), ..Module::default() }))
            });
            let frame =
                Frame { module, language: language_of(&name), inlined: is_inlined(&name), ..Frame::named(function) };
            capture.frames.push(frame);
            (key, FrameId::from_index(capture.frames.len() - 1))
        })
    }

    fn finish(mut self, file: &str) -> Result<Capture, ImportError> {
        self.add_leaves();
        self.capture.samples = std::mem::take(&mut self.samples).into();
        self.threads.assign_missing_tids(&mut self.capture);
        self.malformed.settle(&mut self.capture, file, Folded.name(), self.lines > 0)?;
        let info = &mut self.capture.info;
        if self.options.unit == FoldedUnit::Samples {
            let weights = self.capture.samples.iter().map(|sample| sample.weight);
            info.losses.samples = weights.fold(0, u64::saturating_add);
        }
        if self.options.unit == FoldedUnit::Unknown {
            info.notes
                .push("The unit of the folded counts is unknown. If you know it, name it with `--unit`.".to_owned());
        }
        if let Some((number, count)) = self.unended {
            info.notes.push(format!(
                "{file}: line {number}, the last, has no line end. If the file was cut, its count of {count} is too small."
            ));
        }
        if self.two_counts == self.lines && self.lines > 1 {
            info.notes.push(format!(
                "{file}: every line ends in two numbers, as written by difffolded.pl; the first became part of the \
                 function's name. Import the two original files instead."
            ));
        }
        if self.renamed > 0 {
            info.notes.push("Bytes of names that are not UTF-8 are shown as \\xHH.".to_owned());
        }
        Ok(self.capture)
    }
}

/// Length of the common prefix.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 16;
    let steps = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(a, b)| a == b).count() * STEP;
    steps + a[steps..].iter().zip(&b[steps..]).take_while(|(a, b)| a == b).count()
}

/// `libfoo.so.6` of `[libfoo.so.6]`, which collapse scripts write for an unnamed function of a library.
fn library_of(name: &str) -> Option<&str> {
    let library = name.strip_prefix('[')?.strip_suffix(']')?;
    let is_library = library.ends_with(".so") || library.contains(".so.") || library == "kernel.kallsyms";
    (is_library && !library.contains(['[', ']'])).then_some(library)
}

/// Collapse scripts mark kernel functions with `_[k]`.
fn language_of(name: &str) -> Language {
    if has_suffix(name, "_[k]") || name == "[kernel.kallsyms]" { Language::Kernel } else { Language::Native }
}

/// Collapse scripts mark inlined functions with `_[i]`.
fn is_inlined(name: &str) -> bool {
    has_suffix(name, "_[i]")
}

/// Whether a mark follows a name. A mark alone is a name (`_[i]` occurs as one).
fn has_suffix(name: &str, mark: &str) -> bool {
    name.len() > mark.len() && name.ends_with(mark)
}
