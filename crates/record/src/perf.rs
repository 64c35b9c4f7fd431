//! The kernel's perf events: opening them, and reading their rings in the order of time.
//!
//! - `events`: open events, and the rings that they write to
//! - `attributes`: what each kind of event asks of the kernel
//! - `inheritance`: which threads have which events from the thread that started them
//! - `sample_layout`: the layout of records, and whose they are
//! - `ring`: one CPU's ring, and the order of records across CPUs
//! - `tracepoint`, `function_probe`: tracepoints; those of our own at functions
//! - `switch_sums`: BPF programs that record context switches and wake-ups, and add up those of busy threads
//! - `tracepoint_address`: where in the kernel a tracepoint is
//! - `tree_filter`, `bpf`, `btf`: BPF programs that pass only the recorded processes
//! - `core_units`, `counter_groups`: the CPU's counters, by kind of core
//! - `memory_samples`: samples of loads and stores
//! - `system`: the system calls

mod assembly;
mod attributes;
mod bpf;
mod breakpoints;
mod btf;
mod call_rings;
mod core_units;
mod counter_groups;
mod events;
mod function_probe;
mod inheritance;
mod memory_samples;
mod ring;
mod sample_layout;
mod switch_sums;
mod system;
mod system_calls;
mod tracepoint;
mod tracepoint_address;
mod tree_filter;

pub(crate) use breakpoints::{Arrivals, BREAKPOINTS, Breakpoint};
pub(crate) use call_rings::CallRings;
pub use call_rings::CountedCall;
pub(crate) use counter_groups::CounterGroups;
pub(crate) use events::{Events, RecordTaker};
pub(crate) use function_probe::FunctionProbe;
pub(crate) use memory_samples::MemorySampling;
pub(crate) use switch_sums::ThreadBudget;
pub(crate) use system::open_event;
pub(crate) use tracepoint::Tracepoint;
pub(crate) use tracepoint_address::of_switches_and_wake_ups;
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
    /// Context switches and wake-ups of recorded threads, written by BPF programs; some with a stack.
    Written,
    /// Wake-ups, of the whole machine.
    Waking,
    /// Wake-ups by recorded threads, with the waker's stack.
    WakerStack,
    /// Sums of system calls, with the stack of the last call.
    SystemCall,
    /// Page faults served from memory.
    MinorFaults,
    /// Page faults that waited for a device.
    MajorFaults,
    /// Misses of the last-level cache, with stacks.
    CacheMisses,
    /// Instructions, without stacks.
    Instructions,
    /// Loads from memory, with their address and what the CPU says of them.
    Loads,
    /// Stores to memory, likewise.
    Stores,
    /// The start of a simulation step.
    Step,
    /// A call of a function of ROS 2's tracetools.
    Ros2,
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
    /// Registers of user space in samples of CPU time.
    pub registers: UserRegisters,
}

/// Registers of user space in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserRegisters {
    /// Those that unwinding starts from.
    ForStacks,
    /// All general ones.
    General,
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
