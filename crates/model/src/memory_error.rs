//! Memory errors that a checker found.

use std::sync::Arc;

use crate::ids::{ProcessId, StackId};

/// An error at one stack: of memory, of threads, or other undefined behaviour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryError {
    /// The checker: `memcheck`, `asan`, `ubsan`, `tsan`, ...
    pub tool: Arc<str>,
    /// What is wrong, in words that all checkers share: `use after free`, `heap buffer overflow`, `leak`, `data race`, ...
    pub kind: Arc<str>,
    /// The first report in the checker's words.
    pub message: Arc<str>,
    /// The process of the first report, if it is known.
    pub process: Option<ProcessId>,
    /// Where it happened; of a leak, where the block was allocated.
    pub stack: Option<StackId>,
    /// Where the block was allocated, if the checker says so.
    pub allocated: Option<StackId>,
    /// Where the block was freed, or the other access of a data race.
    pub other: Option<StackId>,
    /// How often it happened, as far as the checker counts; of a leak, the number of blocks.
    pub count: u64,
    /// Bytes of a leak.
    pub bytes: Option<u64>,
    /// At the latest when it happened first, if it is known.
    pub first_ns: Option<u64>,
}
