//! [`Capture`]: one recording of one phase of one scenario, in memory.

mod check;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::allocation::{Allocation, AllocationBurst};
use crate::call_times::CallTimes;
use crate::data_access::DataAccess;
use crate::event_count::EventCount;
use crate::flow::FlowEvent;
use crate::ids::{EventId, FrameId, ModuleId, ProcessId, StackId, ThreadId};
use crate::info::{CaptureInfo, Event};
use crate::memory_error::MemoryError;
use crate::stored::{LoadError, Stored};
use crate::waits::Waits;

pub(crate) use self::check::Handles;

/// One recording, from any source: all sources produce it, and all analyses read it.
///
/// Rows refer to each other by handles, which are indices of tables. Readers check every handle, so code that gets a
/// capture may index without checks. Build captures with the `add_` and `intern_` functions.
///
/// Two invariants hold: a stack node's parent comes before it, and the `waits` of a thread do not overlap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capture {
    /// The content of `capture.json`.
    pub info: CaptureInfo,
    /// Processes, in order of appearance.
    pub processes: Vec<Process>,
    /// Threads, in order of appearance.
    pub threads: Vec<Thread>,
    /// Mapped files.
    pub modules: Vec<Module>,
    /// Functions at addresses.
    pub frames: Vec<Frame>,
    /// Nodes of the call tree, parents before children.
    pub stacks: Vec<StackNode>,
    /// Samples of all events, by time if known.
    pub samples: Stored<Sample>,
    /// Off-CPU intervals, by start within each thread.
    pub waits: Waits,
    /// Simulation steps, by index.
    pub steps: Stored<Step>,
    /// Scopes, by start within each thread.
    pub scopes: Stored<Scope>,
    /// Readings over time.
    pub counters: Stored<Counter>,
    /// Sums of heap allocations, by end of their interval. Empty if the heap was not recorded.
    pub allocations: Vec<Allocation>,
    /// When they were made, by end. Empty if the source does not say it.
    pub allocation_bursts: Vec<AllocationBurst>,
    /// Counts of events. Empty if none were counted.
    pub event_counts: Vec<EventCount>,
    /// System calls, added up.
    pub system_calls: Stored<SystemCalls>,
    /// Times of system calls, by bucket. Empty if they were not recorded.
    pub call_times: Vec<CallTimes>,
    /// Memory errors, one for each kind and stack.
    pub memory_errors: Vec<MemoryError>,
    /// Sampled accesses to cache lines that several threads use. Empty if none were sampled.
    pub data_accesses: Vec<DataAccess>,
    /// Stages of messages and callbacks, by time. Empty if the source has none.
    pub flows: Stored<FlowEvent>,
    interner: Interner,
}

/// A process that lived during the capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent_pid: Option<u32>,
    /// Start, if within the capture.
    pub start_ns: Option<u64>,
    /// End, if within the capture.
    pub end_ns: Option<u64>,
    /// Command line, quoted as for a shell; after exec, the last one.
    pub command_line: String,
    /// Path of its executable.
    pub executable: String,
    /// Exit code, or 128 + signal, if it ended within the capture and the code is known.
    pub exit_status: Option<i32>,
    /// Working directory at its last exec, where it was recorded: paths of its command line are relative to it.
    pub working_directory: Option<String>,
    /// Name of its machine, if the capture is of several.
    pub machine: Option<String>,
}

/// A thread that lived during the capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Its process; `None` if the source has no processes.
    pub process: Option<ProcessId>,
    /// Its last name (`comm`).
    pub name: String,
    /// Earlier names with their start times, oldest first. Empty if it never changed.
    pub names: Vec<ThreadName>,
    /// Start, or the start of the capture if it is older; `None` without times.
    pub start_ns: Option<u64>,
    /// End, or the end of the capture if it lived longer.
    pub end_ns: Option<u64>,
    /// Exact CPU time within the capture, from context switches; `None` if they were not recorded.
    pub cpu_ns: Option<u64>,
    /// Exact time waiting for a CPU within the capture (`schedstat`, or switches with wake-ups).
    pub runnable_ns: Option<u64>,
}

/// A name of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadName {
    /// Start of the name, on the capture's clock.
    pub time_ns: u64,
    /// The name.
    pub name: String,
}

/// A mapped file (or the kernel, or the vdso).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// Path as mapped; without a file, `[kernel.kallsyms]`, `[vdso]` and so on.
    pub path: String,
    /// GNU build-id in hexadecimal, if there is one.
    pub build_id: Option<String>,
    /// Best source of names.
    pub symbols: SymbolSource,
    /// Debian package that the file is from, if some of its code has no name.
    pub package: Option<String>,
}

impl Module {
    /// The path's last component, which tables show and module patterns match.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Source of a module's function names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SymbolSource {
    /// DWARF: functions, inlined functions, lines.
    DebugInfo,
    /// A full symbol table: functions.
    SymbolTable,
    /// Exported functions, perhaps with `.gnu_debugdata`; others are `module+0x...`.
    DynamicSymbols,
    /// The map that a JIT wrote.
    JitMap,
    /// No names.
    #[default]
    None,
}

/// The language of a frame, as far as tables show it differently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Language {
    /// Machine code.
    #[default]
    Native,
    /// The kernel's machine code.
    Kernel,
    /// A Python function.
    Python,
}

/// A function at an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Demangled qualified name without parameters and return type; names of other tools are as given;
    /// `module+0x1234` without a name.
    pub function: Arc<str>,
    /// The module its code is in.
    pub module: Option<ModuleId>,
    /// Source file.
    pub file: Option<Arc<str>>,
    /// Line in it.
    pub line: Option<u32>,
    /// Whether it is inlined into the frame's parent.
    pub inlined: bool,
    /// Address in the module (as in its symbol table).
    pub address: Option<u64>,
    /// Language.
    pub language: Language,
}

impl Frame {
    /// A frame with only a function name.
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

/// A node of the call tree: a frame called from the parent's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The caller's node; `None` for a root.
    pub parent: Option<StackId>,
    /// The frame.
    pub frame: FrameId,
}

/// A sample or, for imported sums, a weighted stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time on the capture's clock.
    pub time_ns: Option<u64>,
    /// Its thread.
    pub thread: ThreadId,
    /// Its CPU.
    pub cpu: Option<u32>,
    /// Its stack; `None` if the source has only the thread.
    pub stack: Option<StackId>,
    /// Its event.
    pub event: EventId,
    /// Its weight in the event's unit.
    pub weight: u64,
}

/// One iteration of the simulation loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Number of the step, from 0, or as counted by the simulator.
    pub index: u64,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Simulated time at its end, if known.
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
    /// Number of enclosing scopes on its thread.
    pub depth: u32,
}

/// Counters of the machine's speed beside a recording, by kind of work: fixed loops per second on the CPU of a thread.
pub const MACHINE_SPEED: [&str; 3] = ["machine_speed.integer", "machine_speed.cache", "machine_speed.memory"];

/// A reading of a quantity of a process or a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Time.
    pub time_ns: u64,
    /// Its process.
    pub process: Option<ProcessId>,
    /// Its thread, for quantities of threads.
    pub thread: Option<ThreadId>,
    /// The quantity with its unit: `rss_bytes`, `cpu_user_ns`, `threads`, `fds`, `io_read_bytes`, ...
    pub name: Arc<str>,
    /// The reading.
    pub value: i64,
}

/// System calls of one thread from one place to one file, added up from one record to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCalls {
    /// The end of the calls before, or the start of a single call.
    pub start_ns: u64,
    /// The end of the last of them.
    pub end_ns: u64,
    /// Their thread.
    pub thread: ThreadId,
    /// The name of the call, such as `openat`.
    pub call: Arc<str>,
    /// Where the last of them was made.
    pub stack: Option<StackId>,
    /// The path of the last one's file, or a name such as `socket:[1234]`.
    pub file: Option<Arc<str>>,
    /// Number of calls.
    pub count: u64,
    /// Number of calls that failed.
    pub errors: u64,
    /// Time within them, waits included.
    pub total_ns: u64,
    /// At least the longest of them: the longest so far of the same calls.
    pub longest_ns: u64,
    /// Bytes that they read or wrote.
    pub bytes: u64,
    /// Time within the last of them; `None` if it is not known.
    pub last_ns: Option<u64>,
}

/// Finds existing rows. It catches up on rows that were pushed directly, so it need not be stored.
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

/// An interner is a cache, so it does not affect equality.
impl PartialEq for Interner {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Capture {
    /// An empty capture with this description.
    pub fn of(info: CaptureInfo) -> Self {
        Self { info, ..Self::default() }
    }

    /// Adds an event. Samples on disk refer to events by name, so a second event of the same name becomes `name#2`.
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

    /// Adds a thread with only a name. Its tid is made up and unique here.
    pub fn add_thread_named(&mut self, name: &str) -> ThreadId {
        let tid = self.threads.iter().map(|thread| thread.tid).max().unwrap_or(0) + 1;
        self.add_thread(Thread { tid, name: name.to_owned(), ..Thread::default() })
    }

    /// Adds a module.
    pub fn add_module(&mut self, module: Module) -> ModuleId {
        self.modules.push(module);
        ModuleId::from_index(self.modules.len() - 1)
    }

    /// A shared copy of `text`.
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

    /// The frame with only this name, added if it is new.
    pub fn intern_function(&mut self, function: &str) -> FrameId {
        let function = self.intern_text(function);
        self.intern_frame(Frame::named(function))
    }

    /// The node for `frame` called from `parent`, added if it is new.
    pub fn intern_stack_node(&mut self, parent: Option<StackId>, frame: FrameId) -> StackId {
        self.interner.stacks.intern(StackNode { parent, frame }, &mut self.stacks, StackId::from_index)
    }

    /// The stack of these frames, root first. `None` if empty.
    pub fn intern_stack(&mut self, frames: impl IntoIterator<Item = FrameId>) -> Option<StackId> {
        frames.into_iter().fold(None, |parent, frame| Some(self.intern_stack_node(parent, frame)))
    }

    /// Takes all frames and stacks out, so that others can be interned. Samples and waits still refer to the old ones.
    pub fn take_stacks(&mut self) -> (Vec<Frame>, Vec<StackNode>) {
        self.interner = Interner::default();
        (std::mem::take(&mut self.frames), std::mem::take(&mut self.stacks))
    }

    /// Nodes from a stack's leaf to its root.
    pub fn nodes_of(&self, stack: Option<StackId>) -> impl Iterator<Item = StackId> + '_ {
        std::iter::successors(stack, |node| self.stacks[node.index()].parent)
    }

    /// Frames from a stack's leaf to its root.
    pub fn frames_of(&self, stack: Option<StackId>) -> impl Iterator<Item = FrameId> + '_ {
        self.nodes_of(stack).map(|node| self.stacks[node.index()].frame)
    }

    /// The function name of a frame.
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

    /// Reads the long tables (samples, waits, steps, scopes, counters, system calls and flows), if they are still on disk.
    ///
    /// # Errors
    /// What is wrong with their files.
    pub fn load(&self) -> Result<(), LoadError> {
        self.samples.load()?;
        self.waits.0.load()?;
        self.steps.load()?;
        self.scopes.load()?;
        self.counters.load()?;
        self.system_calls.load()?;
        self.flows.load()
    }

    /// Why a long table could not be read, where it was needed. It counted as empty.
    pub fn load_error(&self) -> Option<LoadError> {
        let of_calls = || self.system_calls.error().or_else(|| self.flows.error());
        let of_marks = || self.scopes.error().or_else(|| self.counters.error()).or_else(of_calls);
        self.samples.error().or_else(|| self.waits.0.error()).or_else(|| self.steps.error()).or_else(of_marks)
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
}
