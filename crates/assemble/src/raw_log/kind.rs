//! Kinds of entries, and how many a log has of each.

use std::ops::{Index, IndexMut};

use stepscope_model::quantity::plural;
use strum::{EnumCount, VariantArray};

use crate::entry::Entry;

/// What an entry adds to a recording. Entries of the first kinds are numbered, and later ones refer to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumCount, VariantArray)]
pub enum Kind {
    /// [`Entry::Process`]
    Process,
    /// [`Entry::Thread`]
    Thread,
    /// [`Entry::Module`]
    Module,
    /// [`Entry::Frame`]
    Frame,
    /// [`Entry::Stack`]
    Stack,
    /// [`Entry::Event`]
    Event,
    /// [`Entry::MarkThread`]
    MarkThread,
    /// [`Entry::MarkName`]
    MarkName,
    /// [`Entry::Sample`]
    Sample,
    /// [`Entry::Wait`]
    Wait,
    /// [`Entry::StepStart`] and [`Entry::StepMark`]
    Step,
    /// [`Entry::Scope`] and [`Entry::FrameMark`]
    Scope,
    /// [`Entry::Counter`], [`Entry::MarkedCounter`], [`Entry::FlowMark`], [`Entry::Allocations`], [`Entry::SystemCalls`] and [`Entry::DataAccess`]
    Counter,
    /// Sums so far, of which the last one counts.
    Sum,
    /// All else.
    Other,
}

impl Kind {
    /// All kinds; those that are numbered come first, and none refers to a later one.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// How many kinds are numbered.
    pub(super) const NUMBERED: usize = Self::Sample as usize;

    /// The kind of an entry.
    pub fn of(entry: &Entry) -> Self {
        match entry {
            Entry::Process { .. } => Self::Process,
            Entry::Thread { .. } => Self::Thread,
            Entry::Module(_) => Self::Module,
            Entry::Frame { .. } => Self::Frame,
            Entry::Stack { .. } => Self::Stack,
            Entry::Event(_) => Self::Event,
            Entry::MarkThread { .. } => Self::MarkThread,
            Entry::MarkName { .. } => Self::MarkName,
            Entry::Sample(_) => Self::Sample,
            Entry::Wait(_) => Self::Wait,
            Entry::StepStart { .. } | Entry::StepMark { .. } => Self::Step,
            Entry::Scope { .. } | Entry::FrameMark { .. } => Self::Scope,
            Entry::Counter { .. }
            | Entry::MarkedCounter { .. }
            | Entry::FlowMark { .. }
            | Entry::Allocations(_)
            | Entry::AllocationBurst(_)
            | Entry::SystemCalls(_)
            | Entry::DataAccess(_) => Self::Counter,
            Entry::Losses(_) | Entry::MarksLost { .. } => Self::Sum,
            Entry::Start(_)
            | Entry::WindowStart { .. }
            | Entry::Program { .. }
            | Entry::Image { .. }
            | Entry::WorkingDirectory { .. }
            | Entry::ProcessEnd { .. }
            | Entry::ExitStatus { .. }
            | Entry::ExitUsage { .. }
            | Entry::ThreadName { .. }
            | Entry::ThreadEnd { .. }
            | Entry::ClockPeer(_)
            | Entry::RecordingEnd(_) => Self::Other,
        }
    }

    /// Whether later entries refer to entries of this kind by their number.
    pub fn is_numbered(self) -> bool {
        (self as usize) < Self::NUMBERED
    }

    /// Whether the log repeats entries of this kind, because others cannot be understood without them.
    pub fn is_repeated(self) -> bool {
        self.is_numbered() || self == Self::Other
    }

    /// A number of entries of this kind, in words. `None` for 0, and for kinds that mean nothing by themselves.
    pub(super) fn described(self, count: u64) -> Option<String> {
        let noun = match self {
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Frame => "address",
            Self::Stack => "stack",
            Self::Sample => "sample",
            Self::Wait => "wait",
            Self::Step => "step start",
            Self::Scope => "scope",
            Self::Counter => "counter reading",
            _ => return None,
        };
        (count > 0).then(|| plural(count as usize, noun))
    }
}

/// A number for each [`Kind`] of entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts([u64; Kind::ALL.len()]);

impl Index<Kind> for Counts {
    type Output = u64;

    fn index(&self, kind: Kind) -> &u64 {
        &self.0[kind as usize]
    }
}

impl IndexMut<Kind> for Counts {
    fn index_mut(&mut self, kind: Kind) -> &mut u64 {
        &mut self.0[kind as usize]
    }
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count = count.saturating_add(more));
    }

    /// How many more of each these are. `None` if they are fewer of any.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let mut difference = *self;
        for (count, earlier) in difference.0.iter_mut().zip(earlier.0) {
            *count = count.checked_sub(earlier)?;
        }
        Some(difference)
    }
}
