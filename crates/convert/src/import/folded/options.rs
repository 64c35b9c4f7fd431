//! Properties of folded stacks that the file does not state.

use stepscope_model::{Counts, Event};

/// Properties of folded stacks that the file does not state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldedOptions {
    /// Meaning of the first name of a line.
    pub first_frame: FirstFrame,
    /// Whether the first name includes process and thread ids.
    pub thread_ids: ThreadIds,
    /// Unit of the counts.
    pub unit: FoldedUnit,
}

/// Meaning of the first name of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirstFrame {
    /// The thread's name (`comm`), as written by collapse scripts for perf, bcc and bpftrace.
    #[default]
    Thread,
    /// The root function: lines have no thread. All samples belong to one unnamed thread.
    Function,
}

/// Whether the first name of a line includes ids, as `stackcollapse-perf.pl --pid` and `--tid` write them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThreadIds {
    /// `name-PID/TID` if it matches, else the name alone. `name-PID` is ambiguous with a name that ends in a number.
    #[default]
    Detect,
    /// The name alone.
    Absent,
    /// `name-PID`.
    Pid,
    /// `name-PID/TID`.
    PidTid,
}

/// Unit of the counts of folded stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FoldedUnit {
    /// Unknown: a weight of unknown unit.
    #[default]
    Unknown,
    /// Samples. Only then the number of samples is known.
    Samples,
    /// Nanoseconds.
    Nanoseconds,
    /// CPU cycles.
    Cycles,
    /// Cache misses.
    Misses,
    /// Bytes.
    Bytes,
}

impl FoldedUnit {
    /// All units.
    pub const ALL: [FoldedUnit; 6] =
        [Self::Unknown, Self::Samples, Self::Nanoseconds, Self::Cycles, Self::Misses, Self::Bytes];

    /// Its name in captures and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "weight",
            Self::Samples => "samples",
            Self::Nanoseconds => "ns",
            Self::Cycles => "cycles",
            Self::Misses => "misses",
            Self::Bytes => "bytes",
        }
    }

    /// The unit with this [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// The event of samples with these counts.
    pub(super) fn event(&self) -> Event {
        let counts = if *self == Self::Samples { Counts::Weight } else { Counts::Unknown };
        let name = match self {
            Self::Nanoseconds => "time",
            Self::Misses => "cache-misses",
            other => other.name(),
        };
        Event { counts, ..Event::sampled(name, self.name()) }
    }
}
