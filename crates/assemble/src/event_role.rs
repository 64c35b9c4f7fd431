//! What a source records, and what the assembler does with it.

use crate::entry::EventRef;
use crate::step_time::StepTimeSource;

/// Which processes belong to the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Every process that a record names.
    Everything,
    /// The processes that the caller introduced ([`Assembler::add_running`](crate::Assembler::add_running),
    /// [`Assembler::expect_exec`](crate::Assembler::expect_exec)), and their descendants.
    Tree,
}

/// Which scheduler events the source records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switches {
    /// No context switches.
    Unrecorded,
    /// Context switches.
    Recorded,
    /// Context switches and wake-ups.
    WithWakeUps,
}

/// How the assembler uses the samples of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRole {
    /// Each is a sample of this event.
    Sampled {
        /// The event.
        event: EventRef,
        /// Weight of samples that carry no period.
        weight: u64,
    },
    /// The stack of a thread that is about to be switched out.
    SwitchStack,
    /// The current thread, or an interrupt, wakes another: the `sched:sched_waking` tracepoint. A wake-up may come
    /// twice, once with the waker's stack and once without.
    Waking {
        /// Offset of the woken thread's id in the raw data.
        pid_at: usize,
    },
    /// The stack of a waker, written by a BPF program at the same tracepoint right after the wake-up without a stack. The
    /// leaf frames are those of that program.
    WakerStack {
        /// Offset of the woken thread's id in the raw data.
        pid_at: usize,
    },
    /// The current thread hands the CPU to another: the `sched:sched_switch` tracepoint.
    Switch {
        /// Offset in the raw data of the current thread's id. The record itself has none once the thread is removed.
        tid_at: usize,
        /// Offset in the raw data of the state that the current thread is left in (64 bits).
        state_at: usize,
        /// Offset in the raw data of the next thread's id.
        next_tid_at: usize,
    },
    /// The current thread starts a step of the simulation.
    Step {
        /// Where the simulated time comes from.
        time: StepTimeSource,
    },
    /// A record of a sum of system calls, with the stack of the last: its raw data are described in
    /// [`system_call`](crate::system_call).
    SystemCall,
    /// Switches and wake-ups that BPF programs write: the raw data are described in [`written_switch`](crate::written_switch).
    Written,
    /// Samples are ignored; only the event's other records count.
    SideBand,
}
