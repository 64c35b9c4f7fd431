//! [`Capture`]: one recording of one phase of one scenario, in memory.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{EventId, FrameId, ModuleId, ProcessId, StackId, ThreadId};
use crate::info::{CaptureInfo, Event};

/// One recording, of whatever source: the currency between evidence and analyses.
///
/// Rows refer to each other by handles that index the tables. Readers check every handle, so code that is given a
/// capture may index without checking; code that builds one goes through the `add_` and `intern_` functions.
///
/// Two invariants hold: a stack node's parent comes before it, and `waits` of one thread do not overlap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capture {
    /// `capture.json`.
    pub info: CaptureInfo,
    /// Processes, in order of appearance.
    pub processes: Vec<Process>,
    /// Threads, in order of appearance.
    pub threads: Vec<Thread>,
    /// Mapped files.
    pub modules: Vec<Module>,
    /// Functions at places.
    pub frames: Vec<Frame>,
    /// Nodes of the call tree, parents before children.
    pub stacks: Vec<StackNode>,
    /// Samples of all events, by time where times are known.
    pub samples: Vec<Sample>,
    /// Intervals off the CPU, by start within each thread.
    pub waits: Vec<Wait>,
    /// Simulation steps, by index.
    pub steps: Vec<Step>,
    /// Scopes, by start within each thread.
    pub scopes: Vec<Scope>,
    /// Readings over time.
    pub counters: Vec<Counter>,
    interner: Interner,
}

/// A process that lived during the capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent_pid: Option<u32>,
    /// When it started, if within the capture.
    pub start_ns: Option<u64>,
    /// When it ended, if within the capture.
    pub end_ns: Option<u64>,
    /// Its command line, arguments joined as a shell would quote them; the last one where it called exec.
    pub command_line: String,
    /// Path of its executable.
    pub executable: String,
    /// Exit code, or 128 + signal, where it ended within the capture and we could learn it.
    pub exit_status: Option<i32>,
}

/// A thread that lived during the capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// The process it belongs to; absent where the source names no processes.
    pub process: Option<ProcessId>,
    /// Its last name (`comm`).
    pub name: String,
    /// Earlier names with the time each was taken, oldest first. Empty where it never changed.
    pub names: Vec<ThreadName>,
    /// When it started, or the start of the capture if it was there before; absent where times are unknown.
    pub start_ns: Option<u64>,
    /// When it ended, or the end of the capture if it outlived it.
    pub end_ns: Option<u64>,
    /// Exact time on a CPU within the capture, from context switches; absent where they were not recorded.
    pub cpu_ns: Option<u64>,
    /// Exact time waiting on a run queue within the capture (`schedstat` or switches with wake-ups).
    pub runnable_ns: Option<u64>,
}

/// A name a thread took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadName {
    /// When, on the capture's clock.
    pub time_ns: u64,
    /// The name.
    pub name: String,
}

/// A mapped file (or the kernel, or the vdso).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// Path as mapped; `[kernel.kallsyms]`, `[vdso]` and the like for what has no file.
    pub path: String,
    /// GNU build-id in hexadecimal, where there is one.
    pub build_id: Option<String>,
    /// The best source of names that was found for it.
    pub symbols: SymbolSource,
}

impl Module {
    /// The path's last component, which is what tables show and module patterns match.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Where the names of a module's functions came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolSource {
    /// DWARF: functions, inlined functions, lines.
    DebugInfo,
    /// A full symbol table: functions.
    SymbolTable,
    /// Exported functions only, perhaps with `.gnu_debugdata`; others are `module+0x...`.
    DynamicSymbols,
    /// A JIT's map of its code.
    JitMap,
    /// No names at all.
    #[default]
    None,
}

/// The language a frame was written in, as far as it changes how it is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Machine code.
    #[default]
    Native,
    /// The kernel's machine code.
    Kernel,
    /// A Python function.
    Python,
}

/// A function at a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Demangled qualified name without parameter list and return type as far as the source allows; exactly as given
    /// for imported names; `module+0x1234` where the module has no name for the address.
    pub function: Arc<str>,
    /// The module its code is in.
    pub module: Option<ModuleId>,
    /// Source file.
    pub file: Option<Arc<str>>,
    /// Line in it.
    pub line: Option<u32>,
    /// Whether the compiler inlined it into the frame's parent.
    pub inlined: bool,
    /// Address in the module's own address space (as in its symbol table).
    pub address: Option<u64>,
    /// Language.
    pub language: Language,
}

impl Frame {
    /// A frame of which only the function's name is known.
    pub fn named(function: impl Into<Arc<str>>) -> Self {
        Self {
            function: function.into(),
            module: None,
            file: None,
            line: None,
            inlined: false,
            address: None,
            language: Language::Native,
        }
    }
}

/// A node of the call tree: a frame, called from the parent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The caller's node; absent for a root.
    pub parent: Option<StackId>,
    /// The frame.
    pub frame: FrameId,
}

/// One sample (or, for imported sums, one weighed stack).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When, on the capture's clock.
    pub time_ns: Option<u64>,
    /// Which thread.
    pub thread: ThreadId,
    /// On which processor.
    pub cpu: Option<u32>,
    /// Where; absent where the source gives only the thread.
    pub stack: Option<StackId>,
    /// Of what.
    pub event: EventId,
    /// What it stands for, in the event's unit.
    pub weight: u64,
}

/// One interval of a thread's life off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When it was switched out.
    pub start_ns: u64,
    /// When it was switched in again, or ended, or the capture did.
    pub end_ns: u64,
    /// Which thread.
    pub thread: ThreadId,
    /// Where it was, when that was recorded.
    pub stack: Option<StackId>,
    /// Why it was off the CPU.
    pub state: WaitState,
    /// The last part of a blocked interval in which it had been woken and waited for a processor. Absent where
    /// wake-ups were not recorded. A preempted interval is runnable from end to end, and says so here.
    pub runnable_ns: Option<u64>,
    /// The processor that it came to at the end; absent where that is unknown, and where the thread or the capture ended.
    pub cpu: Option<u32>,
    /// Who woke it, if a thread did.
    pub waker: Option<ThreadId>,
    /// Where the waker was.
    pub waker_stack: Option<StackId>,
}

/// Why a thread was off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitState {
    /// It wanted to run; the scheduler chose another.
    Preempted,
    /// It waited for something.
    Blocked,
}

/// One iteration of the simulation loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Number of the step, from 0 at the first one seen or as the simulator counts.
    pub index: u64,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Simulated time at its end, where known.
    pub sim_time_ns: Option<u64>,
    /// The thread that ran the loop.
    pub thread: ThreadId,
}

/// A named interval on a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The thread.
    pub thread: ThreadId,
    /// The scope's name.
    pub name: Arc<str>,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Number of scopes around it on its thread.
    pub depth: u32,
}

/// One reading of a quantity of a process or a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// When.
    pub time_ns: u64,
    /// The process read.
    pub process: Option<ProcessId>,
    /// The thread read, for quantities of threads.
    pub thread: Option<ThreadId>,
    /// What was read, with its unit: `rss_bytes`, `cpu_user_ns`, `threads`, `fds`, `io_read_bytes`, ...
    pub name: Arc<str>,
    /// The reading.
    pub value: i64,
}

/// Finds rows that were added before. Catches up on rows pushed directly, so it need not be stored.
#[derive(Debug, Clone)]
struct Rows<T, I> {
    ids: HashMap<T, I>,
    seen: usize,
}

impl<T, I> Default for Rows<T, I> {
    fn default() -> Self {
        Self { ids: HashMap::new(), seen: 0 }
    }
}

impl<T: Clone + Eq + Hash, I: Copy> Rows<T, I> {
    fn intern(&mut self, row: T, rows: &mut Vec<T>, id: impl Fn(usize) -> I) -> I {
        for (index, row) in rows.iter().enumerate().skip(self.seen) {
            self.ids.entry(row.clone()).or_insert_with(|| id(index));
        }
        let found = *self.ids.entry(row).or_insert_with_key(|row| {
            rows.push(row.clone());
            id(rows.len() - 1)
        });
        self.seen = rows.len();
        found
    }
}

#[derive(Debug, Clone, Default)]
struct Interner {
    strings: HashSet<Arc<str>>,
    frames: Rows<Frame, FrameId>,
    stacks: Rows<StackNode, StackId>,
}

/// An interner is a cache: captures with equal rows are equal.
impl PartialEq for Interner {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Capture {
    /// A capture so described, without rows.
    pub fn of(info: CaptureInfo) -> Self {
        Self { info, ..Self::default() }
    }

    /// Adds an event that samples may refer to. Samples on disk name their event, so a second event of the same name
    /// is called `name#2`.
    pub fn add_event(&mut self, mut event: Event) -> EventId {
        let taken = |name: &str| self.info.events.iter().any(|event| event.name == name);
        if taken(&event.name) {
            let numbered = (2_u32..).map(|number| format!("{}#{number}", event.name)).find(|name| !taken(name));
            event.name = numbered.expect("there are more numbers than events");
        }
        self.info.events.push(event);
        EventId::from_index(self.info.events.len() - 1)
    }

    /// Adds a process.
    pub fn add_process(&mut self, process: Process) -> ProcessId {
        self.processes.push(process);
        ProcessId::from_index(self.processes.len() - 1)
    }

    /// Adds a thread.
    pub fn add_thread(&mut self, thread: Thread) -> ThreadId {
        self.threads.push(thread);
        ThreadId::from_index(self.threads.len() - 1)
    }

    /// Adds a thread of which only the name is known, with a made-up tid that no other thread here has.
    pub fn add_thread_named(&mut self, name: &str) -> ThreadId {
        let tid = self.threads.iter().map(|thread| thread.tid).max().unwrap_or(0) + 1;
        self.add_thread(Thread { tid, name: name.to_owned(), ..Thread::default() })
    }

    /// Adds a module.
    pub fn add_module(&mut self, module: Module) -> ModuleId {
        self.modules.push(module);
        ModuleId::from_index(self.modules.len() - 1)
    }

    /// One shared copy of `text`.
    pub fn intern_text(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.interner.strings.get(text) {
            return shared.clone();
        }
        let shared: Arc<str> = text.into();
        self.interner.strings.insert(shared.clone());
        shared
    }

    /// The frame equal to `frame`, added if it is new.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        self.interner.frames.intern(frame, &mut self.frames, FrameId::from_index)
    }

    /// The frame of which only this name is known.
    pub fn intern_function(&mut self, function: &str) -> FrameId {
        let function = self.intern_text(function);
        self.intern_frame(Frame::named(function))
    }

    /// The node for `frame` called from `parent`, added if it is new.
    pub fn intern_stack_node(&mut self, parent: Option<StackId>, frame: FrameId) -> StackId {
        self.interner.stacks.intern(StackNode { parent, frame }, &mut self.stacks, StackId::from_index)
    }

    /// The stack of these frames, root first. `None` if there are none.
    pub fn intern_stack(&mut self, frames: impl IntoIterator<Item = FrameId>) -> Option<StackId> {
        frames.into_iter().fold(None, |parent, frame| Some(self.intern_stack_node(parent, frame)))
    }

    /// The nodes from a stack's leaf to its root.
    pub fn nodes_of(&self, stack: Option<StackId>) -> impl Iterator<Item = StackId> + '_ {
        std::iter::successors(stack, |node| self.stacks[node.index()].parent)
    }

    /// The frames from a stack's leaf to its root.
    pub fn frames_of(&self, stack: Option<StackId>) -> impl Iterator<Item = FrameId> + '_ {
        self.nodes_of(stack).map(|node| self.stacks[node.index()].frame)
    }

    /// The function's name at a frame.
    pub fn function(&self, frame: FrameId) -> &str {
        &self.frames[frame.index()].function
    }

    /// The event a sample is of.
    pub fn event(&self, event: EventId) -> &Event {
        &self.info.events[event.index()]
    }

    /// The module of a frame.
    pub fn module_of(&self, frame: FrameId) -> Option<&Module> {
        Some(&self.modules[self.frames[frame.index()].module?.index()])
    }

    /// Checks that every handle refers to a row, that parents come before children, that intervals do not end before
    /// they start. What a reader of untrusted bytes must call.
    ///
    /// # Errors
    /// The first broken rule, in a sentence that names the table and the row.
    pub fn check(&self) -> Result<(), String> {
        let refers = |table: &str, row: usize, what: &str, index: Option<usize>, len: usize| match index {
            Some(index) if index >= len => {
                Err(format!("{table} row {row} refers to {what} {index}, of which there are {len}"))
            }
            _ => Ok(()),
        };
        let interval = |table: &str, row: usize, start: u64, end: u64| {
            if end < start {
                Err(format!("{table} row {row} ends at {end} ns before it starts at {start} ns"))
            } else {
                Ok(())
            }
        };
        for (row, thread) in self.threads.iter().enumerate() {
            refers("threads", row, "process", thread.process.map(ProcessId::index), self.processes.len())?;
        }
        for (row, frame) in self.frames.iter().enumerate() {
            refers("frames", row, "module", frame.module.map(ModuleId::index), self.modules.len())?;
        }
        for (row, node) in self.stacks.iter().enumerate() {
            refers("stacks", row, "frame", Some(node.frame.index()), self.frames.len())?;
            refers("stacks", row, "a parent that must come before it,", node.parent.map(StackId::index), row)?;
        }
        let stacks = self.stacks.len();
        let threads = self.threads.len();
        for (row, sample) in self.samples.iter().enumerate() {
            refers("samples", row, "thread", Some(sample.thread.index()), threads)?;
            refers("samples", row, "stack", sample.stack.map(StackId::index), stacks)?;
            refers("samples", row, "event", Some(sample.event.index()), self.info.events.len())?;
        }
        for (row, wait) in self.waits.iter().enumerate() {
            refers("waits", row, "thread", Some(wait.thread.index()), threads)?;
            refers("waits", row, "stack", wait.stack.map(StackId::index), stacks)?;
            refers("waits", row, "waker", wait.waker.map(ThreadId::index), threads)?;
            refers("waits", row, "waker stack", wait.waker_stack.map(StackId::index), stacks)?;
            interval("waits", row, wait.start_ns, wait.end_ns)?;
        }
        for (row, step) in self.steps.iter().enumerate() {
            refers("steps", row, "thread", Some(step.thread.index()), threads)?;
            interval("steps", row, step.start_ns, step.end_ns)?;
        }
        for (row, scope) in self.scopes.iter().enumerate() {
            refers("scopes", row, "thread", Some(scope.thread.index()), threads)?;
            interval("scopes", row, scope.start_ns, scope.end_ns)?;
        }
        for (row, counter) in self.counters.iter().enumerate() {
            refers("counters", row, "process", counter.process.map(ProcessId::index), self.processes.len())?;
            refers("counters", row, "thread", counter.thread.map(ThreadId::index), threads)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_interned_once_and_recursion_makes_new_nodes() {
        let mut capture = Capture::default();
        let a = capture.intern_function("a");
        let b = capture.intern_function("b");
        let first = capture.intern_stack([a, b, a]);
        assert_eq!(capture.intern_stack([a, b, a]), first);
        assert_eq!(capture.stacks.len(), 3);
        let names: Vec<&str> = capture.frames_of(first).map(|frame| capture.function(frame)).collect();
        assert_eq!(names, ["a", "b", "a"]);
        assert_eq!(capture.intern_stack([]), None);
    }

    #[test]
    fn a_parent_after_its_child_is_refused_by_check() {
        let mut capture = Capture::default();
        let frame = capture.intern_function("a");
        capture.stacks.push(StackNode { parent: Some(StackId(0)), frame });
        assert_eq!(
            capture.check().unwrap_err(),
            "stacks row 0 refers to a parent that must come before it, 0, of which there are 0"
        );
    }
}
