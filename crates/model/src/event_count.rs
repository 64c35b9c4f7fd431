//! Counts of hardware and software events.

use std::sync::Arc;

use crate::ids::ThreadId;

/// How often an event occurred in an interval: a reading of a counter, or a row of `perf stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCount {
    /// Start of the interval; `None` if the source has only the whole recording.
    pub start_ns: Option<u64>,
    /// End of the interval.
    pub end_ns: Option<u64>,
    /// Its thread; `None` if it counts several.
    pub thread: Option<ThreadId>,
    /// The part of the machine that it counts, such as `CPU3` or `S0-D0-C1`; `None` for all of it.
    pub place: Option<Arc<str>>,
    /// The source's name of the event, such as `cycles` or `cpu_core/LLC-load-misses/`.
    pub event: Arc<str>,
    /// Unit of the count: `cycles`, `misses`, `ns`, ...
    pub unit: Arc<str>,
    /// The count. If other events used the counter for a part of the time, it is scaled up to the whole. `None` if the event was
    /// not counted.
    pub count: Option<u64>,
    /// How long the event was asked for, on a CPU.
    pub enabled_ns: Option<u64>,
    /// How long it had a counter.
    pub running_ns: Option<u64>,
}
