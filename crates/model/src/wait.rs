//! [`Wait`]: an interval in which a thread was off the CPU.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::ids::{StackId, ThreadId};

/// An off-CPU interval of a thread, or the sum of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Time when it was switched out.
    pub start_ns: u64,
    /// Time when it was switched in, ended, or the capture ended.
    pub end_ns: u64,
    /// Its thread.
    pub thread: ThreadId,
    /// Its stack, if recorded.
    pub stack: Option<StackId>,
    /// Why it was off the CPU.
    pub state: WaitState,
    /// The last part of a blocked interval, in which the thread was woken and waited for a CPU. `None` if wake-ups were
    /// not recorded. Preempted intervals are runnable from start to end.
    pub runnable_ns: Option<u64>,
    /// The CPU on which it continued; `None` if unknown, or if the thread or the capture ended.
    pub cpu: Option<u32>,
    /// The waker, if it was a thread.
    pub waker: Option<ThreadId>,
    /// The waker's stack.
    pub waker_stack: Option<StackId>,
    /// The number of waits in this row. More than one for an aggregated row: the waits of one thread at one stack in a slice of
    /// about 10 ms, which follow each other without a gap. Its blocked and its runnable time are the exact sums; when each
    /// wait was within the slice, and who ended it, is unknown.
    pub count: u32,
}

impl Wait {
    /// Whether the row is a sum of several waits.
    pub fn is_aggregated(&self) -> bool {
        self.count > 1
    }
}

/// Why a thread was off-CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WaitState {
    /// Preempted: runnable, but the scheduler chose another thread.
    Preempted,
    /// Blocked: waiting for something.
    Blocked,
}
