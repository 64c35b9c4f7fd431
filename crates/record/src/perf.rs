//! The kernel's perf events: opening them, and reading their rings in the order of time.
//!
//! - `events`: open events, and the rings that they write to
//! - `attributes`: what each kind of event asks of the kernel
//! - `sample_layout`: the layout of records, and whose they are
//! - `ring`: one CPU's ring, and the order of records across CPUs
//! - `tracepoint`, `step_probe`: tracepoints; one of our own at a step function
//! - `tree_filter`, `bpf`, `btf`: BPF programs that pass only the recorded processes
//! - `system`: the system calls

mod attributes;
mod bpf;
mod btf;
mod call_rings;
mod events;
mod ring;
mod sample_layout;
mod step_probe;
mod system;
mod tracepoint;
mod tree_filter;

pub(crate) use call_rings::CallRings;
pub use call_rings::CountedCall;
pub(crate) use events::{Events, RecordTaker};
pub(crate) use step_probe::StepProbe;
pub(crate) use system::open_event;
pub(crate) use tracepoint::Tracepoint;
pub(crate) use tree_filter::WOKEN_AT;

/// The kinds of evidence that [`Events`] records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// No samples: mappings, names, forks, exits and context switches.
    Side,
    /// Time or cycles on a CPU.
    Cpu,
    /// The stack at every n-th context switch.
    SwitchStack,
    /// Wake-ups, of the whole machine.
    Waking,
    /// Wake-ups by recorded threads, with the waker's stack.
    WakerStack,
    /// Page faults served from memory.
    MinorFaults,
    /// Page faults that waited for a device.
    MajorFaults,
    /// The start of a simulation step.
    Step,
}

impl Kind {
    /// Whether the event observes only the recorded processes, even if other events observe the whole machine.
    fn is_of_the_tree(self) -> bool {
        matches!(self, Kind::SwitchStack | Kind::WakerStack)
    }
}

/// The processes and threads that events observe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every process of the machine; others are dropped when records are read. Needs rights.
    Machine,
    /// These threads and what they start.
    Threads(Vec<u32>),
    /// This child, once it executes a program, and what it starts.
    OnExec(u32),
}

impl Scope {
    fn targets(&self) -> Vec<i32> {
        match self {
            Scope::Machine => vec![-1],
            Scope::Threads(threads) => threads.iter().map(|&thread| thread as i32).collect(),
            Scope::OnExec(pid) => vec![*pid as i32],
        }
    }
}

/// How events sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampling {
    pub frequency_hz: u64,
    /// Bytes of user stack in every sample, a multiple of 8.
    pub stack_bytes: u32,
    pub kernel: Kernel,
    pub switches: bool,
}

/// Whether the kernel's share is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kernel {
    /// Samples and stacks of the kernel, too.
    Included,
    /// User space only.
    Excluded,
}

/// The source of wakers' stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakerStacks {
    /// A program of ours at the tracepoint; the raw data have the woken thread's id at [`WOKEN_AT`].
    Written,
    /// The tracepoint's event of each thread.
    OfThreads,
}
