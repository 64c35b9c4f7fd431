//! Captures drawn as text, for tests: the input of a test at a glance, as the Firefox Profiler's tests do it.

use std::ops::Range;
use std::sync::Arc;

use stepscope_model::{
    Allocation, Capture, Event, EventId, FlowEvent, Frame, FrameId, Language, Module, ModuleId, Process, ProcessId,
    Sample, StackId, Step, SystemCalls, Thread, ThreadId, Wait, WaitState,
};

use crate::query::functions::Functions;
use crate::query::ownership::{Owned, Ownership};
use crate::query::select::{Filter, Selection};

/// What is owned if these are the namespaces.
pub(crate) fn owned_by(namespaces: &[&str]) -> Owned {
    let namespaces = namespaces.iter().map(|&text| text.to_owned()).collect();
    Ownership { namespaces, ..Ownership::default() }.compile().unwrap()
}

/// A capture of one event whose unit is `ns`, from collapsed stacks: `thread;root;...;leaf WEIGHT` a line. A leading
/// `@TIME ` gives the sample a time. Equal thread names are one thread.
pub(crate) fn folded(text: &str) -> Capture {
    Drawing::new().folded(Event::sampled("cpu-clock", "ns"), text).capture
}

/// A capture from columns that are separated by two spaces or more: the first line names the threads, the last one has the
/// weights, between them are the frames from root to leaf. A frame may say `[lib:PATH]`, `[file:PATH:LINE]`, `[inl]`,
/// `[kernel]`. A column ends at the first line that has nothing where the column starts.
pub(crate) fn columns(text: &str) -> Capture {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let (header, weights) = (lines[0], lines[lines.len() - 1]);
    let mut drawing = Drawing::new();
    let event = drawing.capture.add_event(Event::sampled("cpu-clock", "ns"));
    for start in column_starts(header) {
        let cell = |line: &str| -> String {
            line.get(start..).unwrap_or("").split("  ").next().unwrap_or("").trim().to_owned()
        };
        let thread = drawing.thread(&cell(header));
        let cells: Vec<String> = lines[1..lines.len() - 1].iter().map(|line| cell(line)).collect();
        let frames: Vec<FrameId> =
            cells.iter().take_while(|cell| !cell.is_empty()).map(|cell| drawing.frame(cell)).collect();
        let stack = drawing.capture.intern_stack(frames);
        let weight = cell(weights).parse().expect("the last line of a drawing has the weights");
        drawing.capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight });
    }
    drawing.capture
}

/// Allocations of the first process in an interval: `thread;root;...;leaf CALLS BYTES TEMPORARY LIVE PEAK` a line.
pub(crate) fn allocations(capture: &mut Capture, interval: Range<u64>, text: &str) {
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.rsplitn(6, ' ').collect();
        let numbers: Vec<i64> = words[..5].iter().rev().map(|word| word.parse().unwrap()).collect();
        let [calls, bytes, temporary, live_bytes, peak_bytes] = numbers[..] else { panic!("five numbers: {line}") };
        let stack = words[5];
        let (thread, frames) = stack.split_once(';').unwrap();
        let thread = capture.threads.iter().position(|row| row.name == thread).map(ThreadId::from_index);
        let frames: Vec<_> = frames.split(';').map(|name| capture.intern_function(name)).collect();
        let stack = capture.intern_stack(frames);
        let mut sizes = [0; 12];
        sizes[1] = calls as u32;
        let mut lifetimes = [0; 8];
        lifetimes[0] = temporary as u32;
        capture.allocations.push(Allocation {
            start_ns: interval.start,
            end_ns: interval.end,
            process: ProcessId(0),
            thread,
            stack,
            calls: calls as u64,
            bytes: bytes as u64,
            temporary: temporary as u64,
            frees: temporary as u64,
            freed_bytes: 0,
            foreign_frees: 0,
            foreign_freed_bytes: 0,
            live_blocks: i64::from(live_bytes > 0),
            live_bytes,
            peak_bytes,
            sizes,
            lifetimes,
        });
    }
}

/// System calls of 10 ns each at `thread;root;...;leaf`, the last of which ends at `end_ns`.
pub(crate) fn system_calls(capture: &mut Capture, end_ns: u64, stack: &str, call: &str, count: u64) {
    let (thread, frames) = stack.split_once(';').unwrap();
    let thread = capture.threads.iter().position(|row| row.name == thread).map(ThreadId::from_index);
    let frames: Vec<_> = frames.split(';').map(|name| capture.intern_function(name)).collect();
    let stack = capture.intern_stack(frames);
    capture.system_calls.push(SystemCalls {
        start_ns: end_ns.saturating_sub(10),
        end_ns,
        thread: thread.expect("the thread is drawn"),
        call: call.into(),
        stack,
        file: None,
        count,
        errors: 0,
        total_ns: 10 * count,
        longest_ns: 10,
        bytes: 0,
        last_ns: Some(10),
    });
}

fn column_starts(header: &str) -> Vec<usize> {
    let bytes = header.as_bytes();
    let starts = |at: usize| bytes[at] != b' ' && (at < 2 || &bytes[at - 2..at] == b"  ");
    (0..bytes.len()).filter(|&at| starts(at)).collect()
}

/// A capture that is drawn piece by piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drawing {
    pub(crate) capture: Capture,
}

impl Drawing {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The recording window.
    pub(crate) fn window(mut self, window: Range<u64>) -> Self {
        (self.capture.info.start_ns, self.capture.info.end_ns) = (Some(window.start), Some(window.end));
        self
    }

    /// A process; threads drawn after it belong to it.
    pub(crate) fn process(mut self, pid: u32, executable: &str) -> Self {
        self.capture.add_process(Process { pid, executable: executable.to_owned(), ..Process::default() });
        self
    }

    /// A thread that lived during `life`, with its exact time on a CPU.
    pub(crate) fn lived(mut self, name: &str, life: Range<u64>, cpu_ns: impl Into<Option<u64>>) -> Self {
        let thread = self.thread(name);
        let row = &mut self.capture.threads[thread.index()];
        (row.start_ns, row.end_ns, row.cpu_ns) = (Some(life.start), Some(life.end), cpu_ns.into());
        self
    }

    /// Stages of a topic's messages: `THREAD STAGE NUMBER at TIME`, separated by commas and line ends. Without a number,
    /// that of the stage before.
    pub(crate) fn flows(mut self, topic: &str, text: &str) -> Self {
        let mut flow = None;
        for event in text.split([',', '\n']).map(str::trim).filter(|event| !event.is_empty()) {
            let words: Vec<&str> = event.split_whitespace().collect();
            let [thread, stage, number @ .., "at", time_ns] = &words[..] else { panic!("a stage: {event}") };
            flow = number.first().map(|number| number.parse().expect("a number of a message")).or(flow);
            let thread = self.thread(thread);
            let topic = self.capture.intern_text(topic);
            self.capture.flows.push(FlowEvent {
                time_ns: time_ns.parse().expect("a time is a number"),
                thread,
                topic,
                flow,
                stage: stage.parse().expect("a stage of messages"),
                name: None,
                period_ns: None,
            });
        }
        self.capture.flows.sort_by_key(|event| event.time_ns);
        self
    }

    /// Samples of an event, one a line: see [`folded`].
    pub(crate) fn folded(mut self, event: Event, text: &str) -> Self {
        let event = self.event(event);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (time_ns, line) = match line.strip_prefix('@') {
                Some(line) => {
                    let (time, rest) = line.split_once(' ').expect("a time is followed by a space");
                    (Some(time.parse().expect("a time is a number")), rest)
                }
                None => (None, line),
            };
            let (stack, weight) = line.rsplit_once(' ').expect("a stack is followed by its weight");
            let (thread, frames) = stack.split_once(';').unwrap_or((stack, ""));
            let (thread, stack) = (self.thread(thread), self.stack(frames));
            let weight = weight.parse().expect("a weight is a number");
            self.capture.samples.push(Sample { time_ns, thread, cpu: None, stack, event, weight });
        }
        self
    }

    /// A blocked interval of a thread, at a stack (empty: none recorded).
    pub(crate) fn blocked(self, thread: &str, when: Range<u64>, stack: &str) -> Self {
        self.wait(thread, when, WaitState::Blocked, None, stack)
    }

    /// A blocked interval whose last `runnable_ns` were spent waiting for a CPU.
    pub(crate) fn blocked_then_runnable(self, thread: &str, when: Range<u64>, runnable_ns: u64, stack: &str) -> Self {
        self.wait(thread, when, WaitState::Blocked, Some(runnable_ns), stack)
    }

    /// A preempted interval of a thread.
    pub(crate) fn preempted(self, thread: &str, when: Range<u64>, stack: &str) -> Self {
        let length = when.end - when.start;
        self.wait(thread, when, WaitState::Preempted, Some(length), stack)
    }

    /// Steps of equal length, from `start_ns`, each of which simulates `sim_ns`.
    pub(crate) fn steps(mut self, thread: &str, start_ns: u64, length_ns: u64, count: u64, sim_ns: u64) -> Self {
        let thread = self.thread(thread);
        self.capture.steps.extend((0..count).map(|index| Step {
            index,
            start_ns: start_ns + index * length_ns,
            end_ns: start_ns + (index + 1) * length_ns,
            sim_time_ns: Some((index + 1) * sim_ns),
            thread,
        }));
        self
    }

    /// Sets the CPU on which the last drawn wait ends.
    pub(crate) fn on(mut self, cpu: u32) -> Self {
        self.capture.waits.change_last(|wait| wait.cpu = Some(cpu));
        self
    }

    fn wait(mut self, thread: &str, when: Range<u64>, state: WaitState, runnable_ns: Option<u64>, stack: &str) -> Self {
        let (thread, stack) = (self.thread(thread), self.stack(stack));
        let (start_ns, end_ns) = (when.start, when.end);
        let wait = Wait {
            start_ns,
            end_ns,
            thread,
            stack,
            state,
            runnable_ns,
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        };
        self.capture.waits.push(wait);
        self
    }

    fn event(&mut self, event: Event) -> EventId {
        match self.capture.info.events.iter().position(|known| *known == event) {
            Some(index) => EventId::from_index(index),
            None => self.capture.add_event(event),
        }
    }

    pub(crate) fn thread(&mut self, name: &str) -> ThreadId {
        if let Some(index) = self.capture.threads.iter().position(|thread| thread.name == name) {
            return ThreadId::from_index(index);
        }
        let tid = 100 + self.capture.threads.len() as u32;
        let process = self.capture.processes.len().checked_sub(1).map(stepscope_model::ProcessId::from_index);
        self.capture.add_thread(Thread { tid, process, name: name.to_owned(), ..Thread::default() })
    }

    pub(crate) fn stack(&mut self, frames: &str) -> Option<StackId> {
        let frames: Vec<FrameId> =
            frames.split(';').filter(|name| !name.is_empty()).map(|name| self.frame(name)).collect();
        self.capture.intern_stack(frames)
    }

    fn frame(&mut self, cell: &str) -> FrameId {
        let mut frame = Frame::named("");
        let mut name = cell;
        while let Some((rest, note)) = name.strip_suffix(']').and_then(|text| text.rsplit_once(" [")) {
            if !self.annotate(&mut frame, note) {
                break;
            }
            name = rest.trim_end();
        }
        frame.function = self.capture.intern_text(name);
        self.capture.intern_frame(frame)
    }

    /// Whether `note` is one of ours, and not part of the name as `[clone .cold]` is.
    fn annotate(&mut self, frame: &mut Frame, note: &str) -> bool {
        match note.split_once(':') {
            Some(("lib", path)) => frame.module = Some(self.module(path)),
            Some(("file", place)) => {
                let (file, line) = place.rsplit_once(':').expect("a place is FILE:LINE");
                frame.file = Some(Arc::from(file));
                frame.line = Some(line.parse().expect("a line is a number"));
            }
            _ if note == "inl" => frame.inlined = true,
            _ if note == "kernel" => frame.language = Language::Kernel,
            _ => return false,
        }
        true
    }

    fn module(&mut self, path: &str) -> ModuleId {
        match self.capture.modules.iter().position(|module| module.path == path) {
            Some(index) => ModuleId::from_index(index),
            None => self.capture.add_module(Module { path: path.to_owned(), ..Module::default() }),
        }
    }
}

/// Runs `look` on all of a capture, with these namespaces owned.
pub(crate) fn selected<R>(capture: &Capture, namespaces: &[&str], look: impl FnOnce(&Selection<'_>) -> R) -> R {
    filtered(capture, namespaces, &Filter::default(), look)
}

/// Runs `look` on what a filter selects of a capture, with these namespaces owned.
pub(crate) fn filtered<R>(
    capture: &Capture,
    namespaces: &[&str],
    filter: &Filter,
    look: impl FnOnce(&Selection<'_>) -> R,
) -> R {
    capture.check().expect("a drawn capture is sound");
    let functions = Functions::of(capture, &owned_by(namespaces));
    look(&Selection::new(capture, &functions, filter).expect("the filter selects something"))
}
