//! What to record, and how.

use std::collections::BTreeSet;

use stepscope_model::{Dimension, Phase};

pub use stepscope_assemble::{StepPoint, StepTime, TimeArgument, TimeArgumentError};

pub use crate::perf::Kernel;
use crate::python::PythonFunctions;

/// What to record, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Kinds of evidence wanted. The capture names those that are not available, with the reason.
    pub dimensions: BTreeSet<Dimension>,
    /// Samples of CPU use per second and CPU.
    pub frequency_hz: u64,
    /// Bytes of user stack copied into each sample, up to 65,000; `None` for 32 KiB, or less where memory for rings is
    /// limited. Deeper stacks are continued by other means.
    pub stack_bytes: Option<u32>,
    /// Bytes of each CPU's ring, rounded to a power of two, or less where memory is limited.
    pub ring_bytes: usize,
    /// Whether the kernel's part of stacks is recorded.
    pub kernel: Kernel,
    /// Most stacks per second at context switches and wake-ups. Beyond it, stacks are taken in one of n time slices.
    pub max_switch_stacks_hz: u64,
    /// Whether BPF programs record context switches, and add up the waits of threads that switch very often. Without the rights for
    /// it, the kernel's own records are used: each wait is recorded one by one, and of many, some have a stack.
    pub aggregate_waits: bool,
    /// Where each step of the simulation starts; `None` if no function is observed for steps.
    pub step: Option<StepPoint>,
    /// Whether [`Recording::observe_steps`](crate::Recording::observe_steps) will name the function later. Step marks do
    /// not count then.
    pub step_later: bool,
    /// Name of the marked scope whose start begins a new step. Ignored if `step` is set; without either, steps come
    /// from the program's step marks.
    pub step_scope: Option<String>,
    /// Whether the speed of each CPU in use is probed, for comparisons. It takes less than 0.5 % of each.
    pub speed_probe: bool,
    /// Mean bytes between two samples of heap allocations; 0 records each allocation.
    pub heap_sample_bytes: u64,
    /// Whether launched programs show their Python functions.
    pub python: PythonFunctions,
    /// Whether messages and callbacks of ROS 2 are recorded.
    pub ros2: bool,
    /// The machine whose clock is asked for beside the recording, so that captures of both can be merged: `HOST` or `HOST:PORT` of
    /// a [server](crate::clock_exchange::Server).
    pub clock_of: Option<String>,
    /// Scenario, variant and phase to write into the capture.
    pub label: Label,
}

/// The scenario, variant and phase of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// Scenario of the lab file.
    pub scenario: Option<String>,
    /// Variant.
    pub variant: Option<String>,
    /// Phase.
    pub phase: Option<Phase>,
}

impl Default for Options {
    fn default() -> Self {
        use Dimension::{Cpu, Faults, Offcpu, Resources, Sched};
        Self {
            dimensions: BTreeSet::from([Cpu, Offcpu, Sched, Faults, Resources]),
            frequency_hz: 997,
            stack_bytes: None,
            ring_bytes: 8 << 20,
            kernel: Kernel::Included,
            max_switch_stacks_hz: 2_000,
            aggregate_waits: true,
            step: None,
            step_later: false,
            step_scope: None,
            speed_probe: false,
            heap_sample_bytes: 0,
            python: PythonFunctions::default(),
            ros2: false,
            clock_of: None,
            label: Label::default(),
        }
    }
}
