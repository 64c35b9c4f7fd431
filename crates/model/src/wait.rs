//! [`Wait`]: an interval in which a thread was off the CPU.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::ids::{StackId, ThreadId};

/// An off-CPU interval of a thread.
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
