//! The text that `perf script` prints.
//!
//! A sample is a header line and the frames of its stack, leaf first, followed by a blank line. A sample without a call
//! chain is one line that ends in its address. The fields of a header depend on perf's version, on the event and on
//! `-F`. Nothing separates the thread's name, which may contain spaces and numbers, from the next field; see [`line`]
//! for the grammar.
//!
//! Each sample is kept with its period as weight (1 if the period is not printed) and its time. Events are kept apart.
//! Lines of other records (`PERF_RECORD_...`, from `--show-task-events` and similar) are skipped; lost records are
//! counted.

mod line;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{
    Capture, Dimension, DimensionStatus, Event, EventId, Frame, FrameId, Language, Machine, Module, ModuleId, Process,
    ProcessId, Sample, StackId, Thread, ThreadId, ThreadName,
};

use self::line::{Header, Task};
use super::call_tree::CallTreeRows;
use super::lines::Lines;
use super::text::{function_name, text};
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, perf_event};

/// The text that `perf script` prints.
pub struct PerfScript;

impl InputFormat for PerfScript {
    fn name(&self) -> &'static str {
        "perf-script"
    }

    fn describe(&self) -> &'static str {
        "Output of `perf script` with any of its usual fields: each sample with time and period."
    }

    /// Recognises a header with a time or an event, or any line with tab-indented frames below.
    fn recognises(&self, head: Head<'_>) -> bool {
        let mut frames = 0;
        let mut lines = head.lines().filter(|line| !line.starts_with(b"#"));
        head.is_text()
            && lines.any(|line| {
                let is_frame = line.starts_with(b"\t") && line::frame(line).is_some();
                frames = if is_frame { frames + 1 } else { 0 };
                let header = || line::header(line).is_some_and(|header| header.is_certain());
                frames == 2 || (line::ends_a_field(line) && header())
            })
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut lines = Lines::new(input);
        let mut reader = Reader::default();
        loop {
            match lines.next_line() {
                Ok(Some(line)) if line.too_long => reader.malformed.add(line.number, "it is longer than 16 MiB"),
                Ok(Some(line)) => reader.line(line.bytes, line.number, line.ended),
                Ok(None) => return reader.finish(&file),
                Err(source) => return Err(ImportError::Read { file, offset: lines.offset(), source }),
            }
        }
    }
}

#[derive(Default)]
struct Reader {
    capture: Capture,
    malformed: Malformed,
    tasks: Tasks,
    events: Events,
    names: Names,
    machine: Option<Machine>,
    sample: Option<Pending>,
    stack: StackText,
    after_blank: bool,
    /// Whether stacks are on lines of their own.
    has_frame_lines: bool,
    /// Whether the last header holds the sample's only frame.
    has_frame_in_header: bool,
    lines: u64,
}

/// A sample whose frames are being read.
struct Pending {
    time_ns: Option<u64>,
    cpu: Option<u32>,
    thread: ThreadId,
    event: EventId,
    weight: u64,
}

/// The frames of the sample being read, as text, leaf first.
#[derive(Default)]
struct StackText {
    bytes: Vec<u8>,
    frames: Vec<FrameRange>,
}

struct FrameRange {
    text: Range<usize>,
    source: Range<usize>,
    in_kernel_space: bool,
}

impl StackText {
    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }

    fn append(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn push(&mut self, frame: line::FrameLine<'_>) {
        let text = self.append(frame.text);
        self.frames.push(FrameRange { text, source: 0..0, in_kernel_space: frame.in_kernel_space });
    }

    /// Adds the source line that perf prints below a frame to the last frame.
    fn add_source(&mut self, source: &[u8]) {
        let source = self.append(source);
        if let Some(frame) = self.frames.last_mut() {
            frame.source = source;
        }
    }
}

impl Reader {
    fn line(&mut self, line: &[u8], number: u64, ended: bool) {
        self.lines = number;
        if line.iter().all(u8::is_ascii_whitespace) {
            self.end_sample();
            self.after_blank = true;
            return;
        }
        let after_blank = std::mem::take(&mut self.after_blank);
        if !ended {
            return self.cut_line(line, number);
        }
        if line.starts_with(b"#") {
            return self.comment(line);
        }
        if line.starts_with(b"\t") {
            return match line::frame(line) {
                Some(frame) => self.frame(frame, after_blank),
                None => self.malformed.add(number, "it is indented like a frame but has no address"),
            };
        }
        if let Some(header) = line::header(line) {
            return self.header(header);
        }
        if let Some(frame) = line::frame(line).filter(|_| line.starts_with(b" ")) {
            return self.frame(frame, after_blank);
        }
        if let Some(source) = line.strip_prefix(b"  ").filter(|_| !self.stack.frames.is_empty()) {
            return self.stack.add_source(source);
        }
        self.malformed.add(number, "it is neither a sample's header nor a frame");
    }

    /// The file ends within this line. perf ends all its lines, so names and numbers in it may be cut.
    fn cut_line(&mut self, line: &[u8], number: u64) {
        self.malformed.add(number, "the file ends within it");
        let is_of_stack = line.starts_with(b"\t") || (line.starts_with(b" ") && line::header(line).is_none());
        if is_of_stack {
            self.cut_stack();
        }
        self.end_sample();
    }

    /// The file ends within the stack of a sample. Leaves are printed first; without any, the sample is left out.
    fn cut_stack(&mut self) {
        match self.stack.frames.is_empty() {
            true => self.sample = None,
            false => self.capture.info.losses.truncated_stacks += 1,
        }
    }

    /// Handles a last sample without a blank line after it, in a file with stacks on lines of their own.
    fn cut_at_line_end(&mut self) {
        if self.sample.is_none() || !self.has_frame_lines || self.has_frame_in_header {
            return;
        }
        if self.stack.frames.is_empty() {
            self.malformed.add(self.lines, "the file ends before its stack");
        }
        self.cut_stack();
    }

    /// A frame of the last header; after a blank line, of a header without fields.
    fn frame(&mut self, frame: line::FrameLine<'_>, after_blank: bool) {
        if self.sample.is_none() && after_blank {
            self.begin(Header::default());
        }
        (self.has_frame_lines, self.has_frame_in_header) = (true, false);
        self.stack.push(frame);
    }

    fn header(&mut self, header: Header<'_>) {
        self.end_sample();
        match header.record() {
            Some(record) => {
                let lost = &mut self.capture.info.losses.lost_records;
                *lost = lost.saturating_add(record.lost);
            }
            None => self.begin(header),
        }
    }

    fn begin(&mut self, header: Header<'_>) {
        let thread = self.tasks.thread(&header, &mut self.capture);
        let (event, weighs_period) = self.events.of(&header, &mut self.capture);
        let weight = header.period.filter(|_| weighs_period).unwrap_or(1);
        self.stack.clear();
        let frame = header.frame();
        self.has_frame_in_header = frame.is_some();
        if let Some(frame) = frame {
            self.stack.push(frame);
        }
        self.sample = Some(Pending { time_ns: header.time_ns, cpu: header.cpu, thread, event, weight });
    }

    fn end_sample(&mut self) {
        let Some(sample) = self.sample.take() else {
            // Frames of a malformed header are dropped.
            return self.stack.clear();
        };
        let stack = self.names.stack(&self.stack, &mut self.capture);
        self.stack.clear();
        let Pending { time_ns, cpu, thread, event, weight } = sample;
        self.capture.samples.push(Sample { time_ns, thread, cpu, stack, event, weight });
    }

    /// Reads `# hostname : vm`: the header that `perf script --header` prints.
    fn comment(&mut self, line: &[u8]) {
        let line = text(line);
        let Some((key, value)) = line.trim_start_matches(['#', ' ']).split_once(" : ") else { return };
        let machine = self.machine.get_or_insert_default();
        let value = value.trim();
        match key.trim() {
            "hostname" => machine.host = value.to_owned(),
            "os release" => machine.kernel = value.to_owned(),
            "arch" => machine.architecture = value.to_owned(),
            "cpudesc" => machine.cpu = value.to_owned(),
            "nrcpus online" => machine.cores = value.parse().unwrap_or(0),
            "total memory" => {
                let kib = value.strip_suffix(" kB").and_then(|kib| kib.parse::<u64>().ok());
                machine.memory_bytes = kib.unwrap_or(0).saturating_mul(1024);
            }
            _ => {}
        }
    }

    fn finish(mut self, file: &str) -> Result<Capture, ImportError> {
        self.cut_at_line_end();
        self.end_sample();
        let was_read = !self.capture.samples.is_empty();
        self.malformed.settle(&mut self.capture, file, PerfScript.name(), was_read)?;
        sort_by_time(&mut self.capture);
        describe(&mut self.capture, self.machine.filter(|machine| !machine.host.is_empty()));
        Ok(self.capture)
    }
}

/// Orders samples by time if all have one. perf does so unless several files were joined.
fn sort_by_time(capture: &mut Capture) {
    if capture.samples.iter().all(|sample| sample.time_ns.is_some()) {
        capture.samples.sort_by_key(|sample| sample.time_ns);
    }
}

/// Sets what follows from the samples.
fn describe(capture: &mut Capture, machine: Option<Machine>) {
    let info = &mut capture.info;
    info.losses.samples = capture.samples.len() as u64;
    info.start_ns = capture.samples.iter().filter_map(|sample| sample.time_ns).min();
    info.end_ns = capture.samples.iter().filter_map(|sample| sample.time_ns).max();
    if info.start_ns.is_some() {
        info.clock = Some("clock of perf record".to_owned());
    }
    for event in &info.events {
        if let Some(dimension) = perf_event::dimension(event) {
            info.dimensions.insert(dimension, DimensionStatus::Recorded);
        }
    }
    if info.dimensions.contains_key(&Dimension::Cpu) {
        let sampled = capture.samples.iter().filter(|sample| info.events[sample.event.index()].unit == "ns");
        let sampled_ns = sampled.fold(0u64, |sum, sample| sum.saturating_add(sample.weight));
        info.losses.sampled_ns = (sampled_ns > 0).then_some(sampled_ns);
    }
    info.machine = machine.map(|machine| Machine {
        pmu: info.events.iter().any(|event| matches!(&*event.unit, "cycles" | "misses" | "instructions" | "branches")),
        ..machine
    });
}

/// The events seen so far.
#[derive(Default)]
struct Events {
    by_name: FxHashMap<Vec<u8>, (EventId, bool)>,
}

impl Events {
    /// The event of a header, and whether its samples are weighted by period.
    fn of(&mut self, header: &Header<'_>, capture: &mut Capture) -> (EventId, bool) {
        let name = header.event.unwrap_or_default();
        if let Some(&found) = self.by_name.get(name) {
            return found;
        }
        let has_period = header.period.is_some();
        let shown = if name.is_empty() { "samples".into() } else { text(name) };
        let event = if has_period { perf_event::event(&shown) } else { Event::sampled(shown.into_owned(), "samples") };
        let found = (capture.add_event(event), has_period);
        self.by_name.insert(name.to_owned(), found);
        found
    }
}

/// The processes and threads seen so far.
#[derive(Default)]
struct Tasks {
    threads: FxHashMap<Task, ThreadId>,
    processes: FxHashMap<u32, ProcessId>,
}

impl Tasks {
    fn thread(&mut self, header: &Header<'_>, capture: &mut Capture) -> ThreadId {
        let name = text(header.comm);
        if let Some(&thread) = self.threads.get(&header.task) {
            rename(&mut capture.threads[thread.index()], &name, header.time_ns);
            return thread;
        }
        let process = header.task.pid.map(|pid| {
            *self.processes.entry(pid).or_insert_with(|| capture.add_process(Process { pid, ..Process::default() }))
        });
        let thread = capture.add_thread(Thread {
            tid: header.task.tid.unwrap_or(0),
            process,
            name: name.into_owned(),
            ..Thread::default()
        });
        self.threads.insert(header.task, thread);
        thread
    }
}

/// Records that a thread has another name from now on.
fn rename(thread: &mut Thread, name: &str, time_ns: Option<u64>) {
    if thread.name == name {
        return;
    }
    let earlier = std::mem::replace(&mut thread.name, name.to_owned());
    let Some(time_ns) = time_ns else { return };
    if thread.names.is_empty() {
        thread.names.push(ThreadName { time_ns: 0, name: earlier });
    }
    thread.names.push(ThreadName { time_ns, name: name.to_owned() });
}

/// Frames, modules and stacks seen so far.
struct Names {
    rows: CallTreeRows<Box<[u8]>>,
    modules: FxHashMap<String, ModuleId>,
    key: Vec<u8>,
}

impl Default for Names {
    fn default() -> Self {
        Self { rows: CallTreeRows::new(), modules: FxHashMap::default(), key: Vec::new() }
    }
}

impl Names {
    /// The node of a stack. It is built from the root: an inlined frame is in the module of its enclosing frame, which
    /// perf prints after it.
    fn stack(&mut self, stack: &StackText, capture: &mut Capture) -> Option<StackId> {
        let mut node = None;
        let mut outer: &[u8] = &[];
        for range in stack.frames.iter().rev() {
            let frame = line::frame_text(&stack.bytes[range.text.clone()]);
            let source = line::source(&stack.bytes[range.source.clone()]);
            let inlined = frame.inlined || source.is_some_and(|source| source.inlined);
            let module = if inlined { frame.module.unwrap_or(outer) } else { frame.module.unwrap_or_default() };
            if !inlined {
                outer = module;
            }
            let described =
                Described { function: frame.function, module, source, inlined, in_kernel_space: range.in_kernel_space };
            let frame = self.frame(&described, capture);
            node = Some(self.rows.node(node, frame, capture));
        }
        node
    }

    fn frame(&mut self, described: &Described<'_>, capture: &mut Capture) -> FrameId {
        described.key(&mut self.key);
        let modules = &mut self.modules;
        self.rows.frame(&self.key[..], capture, |capture| {
            let frame = described.frame(modules, capture);
            (self.key.as_slice().into(), capture.intern_frame(frame))
        })
    }
}

/// A frame as printed by perf.
struct Described<'a> {
    function: &'a [u8],
    module: &'a [u8],
    source: Option<line::Source<'a>>,
    inlined: bool,
    in_kernel_space: bool,
}

impl Described<'_> {
    /// Bytes that are equal for equal frames.
    fn key(&self, key: &mut Vec<u8>) {
        key.clear();
        key.push(u8::from(self.inlined) | u8::from(self.in_kernel_space) << 1);
        let source = self.source.map_or((&[][..], 0), |source| (source.file, source.line));
        for part in [self.function, self.module, source.0] {
            key.extend_from_slice(part);
            key.push(b'\n');
        }
        key.extend_from_slice(&source.1.to_le_bytes());
    }

    fn frame(&self, modules: &mut FxHashMap<String, ModuleId>, capture: &mut Capture) -> Frame {
        let path = text(self.module);
        let is_known = !path.is_empty() && path != "[unknown]";
        let module = is_known.then(|| {
            *modules
                .entry(path.clone().into_owned())
                .or_insert_with(|| capture.add_module(Module { path: path.clone().into_owned(), ..Module::default() }))
        });
        let function: Arc<str> = match (self.function, module) {
            (b"" | b"[unknown]", Some(module)) => bracketed(capture.modules[module.index()].name()).into(),
            (b"", None) => "[unknown]".into(),
            (function, _) => function_name(&text(function)).into(),
        };
        Frame {
            function,
            module,
            file: self.source.map(|source| capture.intern_text(&text(source.file))),
            line: self.source.map(|source| source.line),
            inlined: self.inlined,
            address: None,
            language: if self.is_kernel(&path) { Language::Kernel } else { Language::Native },
        }
    }

    fn is_kernel(&self, module: &str) -> bool {
        let is_named =
            module.starts_with("[kernel") || module.starts_with("[guest.kernel") || module.contains("vmlinux");
        is_named || (self.in_kernel_space && module != "[vsyscall]")
    }
}

/// `[libfoo.so]`: the name of an unnamed function in collapse scripts. Modules that are no files already have brackets.
fn bracketed(module: &str) -> String {
    if module.starts_with('[') { module.to_owned() } else { format!("[{module}]") }
}

#[cfg(test)]
mod tests;
