//! What the assembler tells, in the order it learns it: the content of a raw log.
//!
//! Processes, threads, modules, frames and stack nodes are numbered from 0 in the order of their entries; every other
//! entry refers to them by these numbers, and only to entries before it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stepscope_model::{
    BLOCK_LIFETIMES_NS, BLOCK_SIZES, CaptureInfo, ClockPeer, Dimension, DimensionStatus, Event, FlowStage, Losses,
    RecordingCost, WaitState, WallReading,
};

use crate::data_source::Hitm;
use crate::machine_reading::MachineReading;
use crate::system_call::Amount;

macro_rules! refs {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
    )*};
}

refs! {
    /// The n-th [`Entry::Process`].
    ProcessRef
    /// The n-th [`Entry::Thread`].
    ThreadRef
    /// The n-th [`Entry::Module`].
    ModuleRef
    /// The n-th [`Entry::Frame`].
    FrameRef
    /// The n-th [`Entry::Stack`].
    StackRef
    /// The n-th [`Entry::Event`].
    EventRef
    /// The n-th [`Entry::MarkThread`].
    MarkThreadRef
    /// The n-th [`Entry::MarkName`].
    MarkNameRef
}

/// One thing learnt while recording.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// What is known about the recording from its start. Comes first, and once.
    Start(Box<CaptureInfo>),
    /// The launched program was executed: the recording window starts here, and not when the recorder got ready.
    WindowStart {
        /// When.
        time_ns: u64,
    },
    /// The launched program, as it began.
    Program {
        /// Program and arguments.
        command: Vec<String>,
        /// Where it ran.
        working_directory: Option<String>,
        /// The variables that change how programs run.
        environment: BTreeMap<String, String>,
    },
    /// What samples may be samples of.
    Event(Event),
    /// A process.
    Process {
        /// Its id.
        pid: u32,
        /// The process that forked it, or its parent's pid where that is not recorded.
        parent_pid: Option<u32>,
        /// When it was forked, if after the start.
        start_ns: Option<u64>,
    },
    /// The program that a process runs, again after every exec.
    Image {
        /// The process.
        process: ProcessRef,
        /// Path of the executable.
        executable: String,
        /// The arguments.
        command_line: Vec<String>,
    },
    /// Where a process worked when it executed its program.
    WorkingDirectory {
        /// The process.
        process: ProcessRef,
        /// The path.
        path: String,
    },
    /// A process ended.
    ProcessEnd {
        /// The process.
        process: ProcessRef,
        /// When.
        time_ns: u64,
    },
    /// How a process ended, if known.
    ExitStatus {
        /// Its id; the last process that had it is meant.
        pid: u32,
        /// Exit code, or 128 + signal.
        status: i32,
    },
    /// What the program used until its end, by the kernel's account (`wait4(2)`).
    ExitUsage {
        /// The id of its process.
        pid: u32,
        /// CPU time of the process and of the children that it waited for.
        cpu_ns: u64,
        /// Largest resident memory, where it is that of the program.
        peak_rss_bytes: Option<u64>,
    },
    /// A thread.
    Thread {
        /// Its id.
        tid: u32,
        /// Its process.
        process: ProcessRef,
        /// When it began, or the start of the capture.
        start_ns: Option<u64>,
        /// Its name then.
        name: String,
    },
    /// A thread took a name.
    ThreadName {
        /// The thread.
        thread: ThreadRef,
        /// When.
        time_ns: u64,
        /// The name.
        name: String,
    },
    /// A thread, or what was recorded of it, ended.
    ThreadEnd {
        /// The thread.
        thread: ThreadRef,
        /// When.
        time_ns: Option<u64>,
        /// Its exact time on a CPU, where context switches were recorded.
        cpu_ns: Option<u64>,
        /// Its time on run queues, where wake-ups were recorded.
        runnable_ns: Option<u64>,
    },
    /// Where code comes from.
    Module(Module),
    /// A place in code.
    Frame {
        /// Where its code is; absent where nothing was mapped.
        module: Option<ModuleRef>,
        /// The file offset in a file, the offset in the vdso's image, else the absolute address. Callers lie inside
        /// the call instruction.
        offset: u64,
    },
    /// A call: a frame, called from `parent`'s.
    Stack {
        /// The caller; absent for a root.
        parent: Option<StackRef>,
        /// The place.
        frame: FrameRef,
    },
    /// One sample.
    Sample(Sample),
    /// One interval off the CPU.
    Wait(Wait),
    /// A step of the simulation begins.
    StepStart {
        /// When.
        time_ns: u64,
        /// The thread that runs the loop.
        thread: ThreadRef,
        /// The simulated time then, where it is known.
        sim_time_ns: Option<u64>,
    },
    /// A reading of a quantity of a process or a thread.
    Counter {
        /// When.
        time_ns: u64,
        /// Which process.
        process: ProcessRef,
        /// Which of its threads, for quantities of threads.
        thread: Option<ThreadRef>,
        /// What, with its unit.
        name: String,
        /// The reading.
        value: i64,
    },
    /// System calls of one thread from one place, added up.
    SystemCalls(Box<SystemCalls>),
    /// A sampled access to data.
    DataAccess(Box<DataAccess>),
    /// A name that marks have.
    MarkName {
        /// The name.
        name: String,
    },
    /// A thread that marks something. One thread may have several of these.
    MarkThread {
        /// Its process' id.
        pid: u32,
        /// Its id.
        tid: u32,
        /// A time at which it lived, to tell it from others that had its id.
        time_ns: u64,
    },
    /// A scope that ended.
    Scope {
        /// On which thread.
        thread: MarkThreadRef,
        /// Its name.
        name: MarkNameRef,
        /// Start.
        start_ns: u64,
        /// End.
        end_ns: u64,
    },
    /// A step ended, and the next one began.
    StepMark {
        /// The thread that runs the loop.
        thread: MarkThreadRef,
        /// When.
        time_ns: u64,
        /// Simulated time then, if the program gave it.
        sim_time_ns: Option<i64>,
    },
    /// An iteration of another loop ended, and the next one began.
    FrameMark {
        /// The thread that runs the loop.
        thread: MarkThreadRef,
        /// The loop's name.
        name: MarkNameRef,
        /// When.
        time_ns: u64,
    },
    /// A reading that the program gave.
    MarkedCounter {
        /// The thread that gave it.
        thread: MarkThreadRef,
        /// What, with its unit.
        name: MarkNameRef,
        /// When.
        time_ns: u64,
        /// The reading.
        value: i64,
    },
    /// A message was published, passed a place, or arrived.
    FlowMark {
        /// The thread that marked it.
        thread: MarkThreadRef,
        /// The topic.
        name: MarkNameRef,
        /// When.
        time_ns: u64,
        /// Number of the message in its topic; absent for callbacks without one.
        flow: Option<u64>,
        /// Which of these.
        stage: FlowStage,
        /// The node that published, or the callback, where it is known.
        by: Option<MarkNameRef>,
        /// Period of the timer that calls the callback.
        period_ns: Option<u64>,
    },
    /// Sums of heap allocations.
    Allocations(Box<Allocations>),
    /// When some of them were made.
    AllocationBurst(AllocationBurst),
    /// Marks that were made and had no room so far; the last one counts.
    MarksLost {
        /// How many.
        count: u64,
    },
    /// Datagrams exchanged with another machine since the last such entry.
    ClockPeer(Box<ClockPeer>),
    /// What is lost so far; the last one counts.
    Losses(Box<Losses>),
    /// The recording ended as it should.
    RecordingEnd(Box<RecordingEnd>),
}

/// Where code comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    /// How its code is found.
    pub kind: ModuleKind,
    /// Path as mapped, or a name in brackets.
    pub path: String,
    /// Build-id, if the kernel gave it.
    pub build_id: Option<Vec<u8>>,
}

/// How a module's code is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// In a file.
    File,
    /// The kernel and its modules.
    Kernel,
    /// The kernel's code mapped into every process.
    Vdso,
    /// Anonymous executable memory of the process with this pid.
    Jit(u32),
    /// None: the file describes the code that the process with this pid generated (`jit-PID.dump`).
    JitDump(u32),
    /// None: its frames say how a stack was found. Their offsets are those of [`StackMark`].
    StackMarks,
}

/// A frame that stands for no function, but says how the stack was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StackMark {
    /// The caller was searched for on the stack.
    CallersGuessed = 0,
    /// The middle of a very deep stack was left out.
    FramesOmitted = 1,
    /// A scheduler in the program runs on a stack of its own, for no task.
    SchedulerStack = 2,
    /// The raw log lost what is here.
    Lost = 3,
}

impl StackMark {
    /// The name of its frame.
    pub fn name(offset: u64) -> &'static str {
        const CALLERS_GUESSED: u64 = StackMark::CallersGuessed as u64;
        const SCHEDULER_STACK: u64 = StackMark::SchedulerStack as u64;
        const LOST: u64 = StackMark::Lost as u64;
        match offset {
            LOST => "[lost]",
            CALLERS_GUESSED => "[callers guessed]",
            SCHEDULER_STACK => "[on the scheduler's stack]",
            _ => "[frames omitted]",
        }
    }
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub time_ns: Option<u64>,
    /// Which thread.
    pub thread: ThreadRef,
    /// The CPU.
    pub cpu: Option<u32>,
    /// Where.
    pub stack: Option<StackRef>,
    /// Of what.
    pub event: EventRef,
    /// What it stands for.
    pub weight: u64,
}

/// One interval off the CPU; see [`stepscope_model::Wait`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Switched out.
    pub start_ns: u64,
    /// Switched in.
    pub end_ns: u64,
    /// Which thread.
    pub thread: ThreadRef,
    /// Where it was.
    pub stack: Option<StackRef>,
    /// Why it was off.
    pub state: WaitState,
    /// Woken but not running.
    pub runnable_ns: Option<u64>,
    /// The CPU on which it continued.
    pub cpu: Option<u32>,
    /// Who woke it.
    pub waker: Option<ThreadRef>,
    /// Where the waker was.
    pub waker_stack: Option<StackRef>,
    /// How many waits it stands for.
    pub count: u32,
}

/// What a thread allocated and freed at a stack; see [`stepscope_model::Allocation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocations {
    /// Start of the interval.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// The process.
    pub process: ProcessRef,
    /// Which thread.
    pub thread: Option<ThreadRef>,
    /// Where.
    pub stack: Option<StackRef>,
    /// In the interval.
    pub sums: AllocationSums,
    /// Live blocks at its end.
    pub live_blocks: i64,
    /// Their bytes.
    pub live_bytes: i64,
    /// The part of the peak so far.
    pub peak_bytes: i64,
}

/// Allocations of a thread at a stack, soon after each other; see [`stepscope_model::AllocationBurst`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationBurst {
    /// Its first allocation.
    pub start_ns: u64,
    /// Its last one.
    pub end_ns: u64,
    /// The process.
    pub process: ProcessRef,
    /// Which thread.
    pub thread: Option<ThreadRef>,
    /// Where.
    pub stack: Option<StackRef>,
    /// Allocations.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Sums over allocations and releases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocationSums {
    /// Allocations.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Temporary blocks.
    pub temporary: u64,
    /// Freed by the thread that allocated them.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Freed by this thread, and allocated by others.
    pub foreign_frees: u64,
    /// Their bytes.
    pub foreign_freed_bytes: u64,
    /// Allocations by size.
    pub sizes: [u32; BLOCK_SIZES.len() + 1],
    /// Freed blocks by lifetime.
    pub lifetimes: [u32; BLOCK_LIFETIMES_NS.len() + 1],
}

/// System calls of one thread from one place, added up; see [`stepscope_model::SystemCalls`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCalls {
    /// After the calls before.
    pub start_ns: u64,
    /// The end of the last of them.
    pub end_ns: u64,
    /// Which thread.
    pub thread: ThreadRef,
    /// The call's name.
    pub call: String,
    /// Where the last of them was made.
    pub stack: Option<StackRef>,
    /// The file of the last of them, where it has one.
    pub file: Option<String>,
    /// How many, and what they took.
    pub amount: Amount,
    /// The time of the last of them.
    pub last_ns: Option<u64>,
    /// Buckets of the times of all calls of this place in the log, and how many there are in each. At the log's end only: the calls have
    /// other rows.
    pub times: Vec<(u64, u64)>,
}

/// A sampled access to data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataAccess {
    /// Which thread.
    pub thread: ThreadRef,
    /// Where it was.
    pub stack: Option<StackRef>,
    /// Address of the first byte.
    pub address: u64,
    /// Number of bytes; 0 if it is not known.
    pub bytes: u32,
    /// Whether it read.
    pub is_read: bool,
    /// Whether it wrote.
    pub is_write: bool,
    /// Whether the sample came right behind it, and its time was mostly spent on it: a load or an atomic operation.
    pub is_awaited: bool,
    /// What it cost, where the CPU says so.
    pub cost: Option<AccessCost>,
    /// The mapped file that the address may be a global variable of, and the offset from where the start of that file is mapped.
    pub object: Option<(ModuleRef, u64)>,
}

/// What a sampled access cost, by the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCost {
    /// Whether another core had modified the line.
    pub hitm: Hitm,
    /// Cycles from its start until the data were there; 0 if the CPU does not say.
    pub latency_cycles: u64,
}

/// What is known when a recording ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingEnd {
    /// The end of the recording window.
    pub end_ns: Option<u64>,
    /// What recording cost.
    pub cost: Option<RecordingCost>,
    /// Remarks for the reader of results.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The function whose calls are the steps, if the recorder found it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_step: Option<String>,
    /// What dimensions turned out to lack, by name.
    #[serde(default)]
    pub dimensions: BTreeMap<Dimension, DimensionStatus>,
    /// The whole machine at the start of the window and at its end.
    #[serde(default)]
    pub machine: Option<(MachineReading, MachineReading)>,
    /// The wall clock at the end of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<WallReading>,
    /// What the CPU's counters counted in the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CountedEvent>,
}

/// The count of an event in the recording window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedEvent {
    /// Its name, such as `cycles` or `cpu_core/cycles/`.
    pub event: String,
    /// Its unit.
    pub unit: String,
    /// The count, scaled up to the enabled time; `None` if it was not counted.
    pub count: Option<u64>,
    /// How long the event was asked for, on a CPU.
    pub enabled_ns: u64,
    /// How long it had a counter.
    pub running_ns: u64,
}

/// Takes entries: a raw log, or what builds a capture in memory.
pub trait Sink {
    /// Takes the next entry.
    fn take(&mut self, entry: Entry);
}

impl Sink for Vec<Entry> {
    fn take(&mut self, entry: Entry) {
        self.push(entry);
    }
}
