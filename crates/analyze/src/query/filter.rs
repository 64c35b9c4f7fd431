//! [`Filter`]: the part of a capture that a user asks for, and the patterns that name threads and processes.

use std::fmt;
use std::str::FromStr;

use stepscope_model::{Process, Thread};

use crate::query::naming::Naming;
use crate::query::pattern::{Pattern, PatternError};
use crate::query::process_label::process_name;

/// What of a capture to look at. The default is everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Threads, any of these.
    pub threads: Vec<ThreadPattern>,
    /// Processes, any of these.
    pub processes: Vec<ProcessPattern>,
    /// Stacks through any of these functions, by full name or by own qualified name.
    pub functions: Vec<Pattern>,
    /// Stacks through code of any of these modules, by file name.
    pub modules: Vec<Pattern>,
    /// Stacks under owned code, or those that are not.
    pub ownership: Option<Under>,
    /// A part of the recording.
    pub time: Option<TimeRange>,
    /// Some of the simulation's steps.
    pub steps: Option<StepRange>,
    /// The event, by name.
    pub event: Option<String>,
    /// What the lab file calls processes and code. It selects nothing.
    pub naming: Naming,
}

/// On which side of ownership a stack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Under {
    /// An owned function is on the stack.
    Owned,
    /// No owned function is.
    NotOwned,
}

/// A part of the recording, in ns since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First ns that belongs to it.
    pub from_ns: u64,
    /// First ns that no longer does; absent for the rest of the recording.
    pub to_ns: Option<u64>,
}

/// Some of the simulation's steps, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepRange {
    /// The first that belongs to it.
    pub from: u64,
    /// The first that no longer does; absent for the rest.
    pub to: Option<u64>,
}

/// A thread, by tid (a number) or name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadPattern {
    /// The thread of this id.
    Tid(u32),
    /// Threads whose last name matches.
    Name(Pattern),
}

/// A process, by pid (a number) or name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessPattern {
    /// The process of this id.
    Pid(u32),
    /// Processes whose [program name](crate::query::process_label::process_name) or [label](crate::Selection::process_label)
    /// matches.
    ///
    /// [Selection::process_label]: crate::query::select::Selection::process_label
    Name(Pattern),
}

impl FromStr for ThreadPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        text.parse().map(Self::Tid).or_else(|_| text.parse().map(Self::Name))
    }
}

impl FromStr for ProcessPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        text.parse().map(Self::Pid).or_else(|_| text.parse().map(Self::Name))
    }
}

impl fmt::Display for ThreadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tid(tid) => write!(f, "{tid}"),
            Self::Name(pattern) => pattern.fmt(f),
        }
    }
}

impl fmt::Display for ProcessPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "{pid}"),
            Self::Name(pattern) => pattern.fmt(f),
        }
    }
}

impl ThreadPattern {
    /// Whether it is the pattern of a thread.
    pub fn matches(&self, thread: &Thread) -> bool {
        match self {
            Self::Tid(tid) => thread.tid == *tid,
            Self::Name(pattern) => pattern.matches(&thread.name),
        }
    }
}

impl ProcessPattern {
    /// Whether it matches a process with this label.
    pub fn matches(&self, process: &Process, label: &str) -> bool {
        match self {
            Self::Pid(pid) => process.pid == *pid,
            Self::Name(pattern) => pattern.matches(process_name(process)) || pattern.matches(label),
        }
    }
}

/// The filters in words.
pub(crate) fn describe(filter: &Filter) -> Vec<String> {
    fn listed<T: fmt::Display>(what: &str, patterns: &[T]) -> Option<String> {
        let patterns: Vec<String> = patterns.iter().map(T::to_string).collect();
        (!patterns.is_empty()).then(|| format!("{what} {}", patterns.join(" or ")))
    }
    let ownership = filter.ownership.map(|side| match side {
        Under::Owned => "under owned code".to_owned(),
        Under::NotOwned => "not under owned code".to_owned(),
    });
    let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
    let time = filter.time.map(|time| match time.to_ns {
        Some(to) => format!("from {} to {}", seconds(time.from_ns), seconds(to)),
        None => format!("from {}", seconds(time.from_ns)),
    });
    let steps = filter.steps.map(|steps| match steps.to {
        Some(to) if to == steps.from + 1 => format!("step {}", steps.from),
        Some(to) => format!("steps {} to {}", steps.from, to - 1),
        None => format!("steps from {} on", steps.from),
    });
    [
        listed("thread", &filter.threads),
        listed("process", &filter.processes),
        listed("function", &filter.functions),
        listed("module", &filter.modules),
        ownership,
        steps,
        time,
        filter.event.as_ref().map(|event| format!("event {event}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}
