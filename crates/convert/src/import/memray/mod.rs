//! What memray exports of its recordings.
//!
//! - `memray transform csv`: `allocator,num_allocations,size,tid,thread_name,stack_trace`, a row for each thread, allocator and
//!   stack; frames `FUNCTION;FILE;LINE`, separated by `|`, leaf first
//! - `memray transform speedscope`: stacks with bytes and numbers of allocations
//! - `memray transform gprof2dot`: stacks with bytes
//! - `memray flamegraph`, `memray table`: pages with the data as JSON in `packed_data`. Tables have the leaf of each stack only.
//! - `memray stats --json`: totals, sizes, and the functions that allocate most
//!
//! Except for the last, they have the blocks that lived at the peak. `--leaks` and `--temporary-allocations` choose others
//! instead. Only pages say which, in their title. The binary recordings themselves have no stable form: export them.

mod csv;
mod page;
mod profile;
mod stats;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use stepscope_model::{
    Allocation, Capture, Dimension, DimensionStatus, Frame, FrameId, Language, Process, ProcessId, StackId, Thread,
    ThreadId,
};

use super::call_tree::CallTreeRows;
use super::heap_sums::{empty, signed};
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, json};

/// What memray exports.
pub struct Memray;

/// The forms of its exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    Speedscope,
    Gprof2dot,
    Page,
    Stats,
}

impl Form {
    fn of(head: Head<'_>) -> Option<Self> {
        let bytes = head.bytes.trim_ascii_start();
        let has = |text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
        match bytes.first()? {
            _ if bytes.starts_with(csv::HEADER) => Some(Self::Csv),
            b'<' if has("<title>memray") || (has("memray") && has("packed_data = ")) => Some(Self::Page),
            b'{' if has("\"total_num_allocations\"") => Some(Self::Stats),
            // All of memray's profiles begin so.
            b'{' if has("speedscope.app/file-format-schema") && !has("\"unit\"") => Some(Self::Speedscope),
            b'{' if has("\"unit\": \"bytes\"") && has("speedscope.app/file-format-schema") => Some(Self::Speedscope),
            b'{' if has("\"costs\"") && has("\"Memory\"") => Some(Self::Gprof2dot),
            _ => None,
        }
    }
}

impl InputFormat for Memray {
    fn name(&self) -> &'static str {
        "memray"
    }

    fn describe(&self) -> &'static str {
        "Exports of memray: `transform csv`, `speedscope`, `gprof2dot`, `flamegraph` and `table` pages, `stats --json`."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        Form::of(head).is_some()
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut heap = Heap::new();
        let malformed = match Form::of(input.head()) {
            Some(Form::Csv) => csv::read(input, &mut heap)?,
            form => {
                let bytes = json::read_all(input)?;
                let mut malformed = Malformed::default();
                match form {
                    Some(Form::Page) => page::read(&bytes, &mut heap, &mut malformed),
                    Some(Form::Speedscope) => profile::speedscope(&bytes, &mut heap, &mut malformed),
                    Some(Form::Gprof2dot) => profile::gprof2dot(&bytes, &mut heap, &mut malformed),
                    Some(Form::Stats) => stats::read(&bytes, &mut heap, &mut malformed),
                    Some(Form::Csv) | None => {}
                }
                malformed
            }
        };
        heap.finish(malformed, &file)
    }
}

/// Which blocks an export has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Blocks {
    /// Those that lived at the peak.
    #[default]
    AtPeak,
    /// Those that lived at the end.
    Leaked,
    /// Those that were freed at once.
    Temporary,
    /// All.
    All,
}

/// The capture of an export.
struct Heap {
    capture: Capture,
    process: ProcessId,
    rows: CallTreeRows<Frame>,
    sums: FxHashMap<(Option<ThreadId>, Option<StackId>), usize>,
    threads: FxHashMap<String, ThreadId>,
    blocks: Blocks,
    /// Whether the export says which blocks it has.
    says_which: bool,
    lacks: Vec<String>,
    command: String,
}

/// Blocks of a row.
#[derive(Debug, Clone, Copy)]
struct Sum {
    calls: u64,
    bytes: u64,
}

impl Heap {
    fn new() -> Self {
        let mut capture = Capture::default();
        let process = capture.add_process(Process::default());
        Self {
            capture,
            process,
            rows: CallTreeRows::new(),
            sums: FxHashMap::default(),
            threads: FxHashMap::default(),
            blocks: Blocks::default(),
            says_which: false,
            lacks: vec!["Lifetimes of blocks are not exported by memray.".to_owned()],
            command: String::new(),
        }
    }

    fn frame(&mut self, function: &str, file: Option<&str>, line: Option<u32>) -> FrameId {
        let file = file.filter(|file| !file.is_empty()).map(|file| self.capture.intern_text(file));
        let is_python = file.as_deref().is_some_and(|file| file.ends_with(".py") || file.starts_with('<'));
        let language = if is_python { Language::Python } else { Language::Native };
        let function = self.capture.intern_text(function);
        let line = line.filter(|&line| line > 0);
        let frame = Frame { file, line, language, ..Frame::named(function) };
        self.rows.frame(&frame.clone(), &mut self.capture, |capture| {
            capture.frames.push(frame.clone());
            (frame, FrameId::from_index(capture.frames.len() - 1))
        })
    }

    /// The stack of frames, root first.
    fn stack(&mut self, frames: impl IntoIterator<Item = FrameId>) -> Option<StackId> {
        frames.into_iter().fold(None, |caller, frame| Some(self.rows.node(caller, frame, &mut self.capture)))
    }

    fn thread(&mut self, name: &str) -> ThreadId {
        if let Some(known) = self.threads.get(name) {
            return *known;
        }
        let thread = self.capture.add_thread_named(name);
        self.capture.threads[thread.index()].process = Some(self.process);
        self.threads.insert(name.to_owned(), thread);
        thread
    }

    fn add(&mut self, thread: Option<ThreadId>, stack: Option<StackId>, sum: Sum) {
        let rows = &mut self.capture.allocations;
        let row = *self.sums.entry((thread, stack)).or_insert_with(|| {
            rows.push(Allocation { thread, ..empty(self.process, stack) });
            rows.len() - 1
        });
        let row = &mut rows[row];
        row.calls = row.calls.saturating_add(sum.calls);
        row.bytes = row.bytes.saturating_add(sum.bytes);
    }

    fn finish(mut self, malformed: Malformed, file: &str) -> Result<Capture, ImportError> {
        let was_read = !self.capture.allocations.is_empty();
        for row in &mut self.capture.allocations {
            match self.blocks {
                Blocks::AtPeak => row.peak_bytes = signed(row.bytes),
                Blocks::Leaked => (row.live_bytes, row.live_blocks) = (signed(row.bytes), signed(row.calls)),
                Blocks::Temporary => row.temporary = row.calls,
                Blocks::All => {}
            }
        }
        if self.capture.threads.is_empty() {
            self.capture.add_thread(Thread { process: Some(self.process), ..Thread::default() });
        }
        let info = &mut self.capture.info;
        info.command = self.command.split_whitespace().map(str::to_owned).collect();
        self.capture.processes[0].command_line = self.command;
        let which = match self.blocks {
            Blocks::AtPeak => Some("that lived at the peak"),
            Blocks::Leaked => Some("that lived at the end"),
            Blocks::Temporary => Some("that were freed at once"),
            Blocks::All => None,
        };
        if let Some(which) = which {
            self.lacks.insert(0, format!("The file has only the blocks {which}."));
        }
        if !self.says_which {
            info.notes.push(format!(
                "{file}: does not say which blocks it has. They are taken as those of the peak, which memray exports without \
                 --leaks and --temporary-allocations."
            ));
        }
        info.dimensions.insert(Dimension::Heap, DimensionStatus::Partial { lacks: self.lacks });
        malformed.settle(&mut self.capture, file, Memray.name(), was_read)?;
        Ok(self.capture)
    }
}
