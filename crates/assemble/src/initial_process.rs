//! Processes that ran before the recording started. The kernel sends no records about them, so the caller describes them.

use std::ops::Range;

use crate::thread_timeline::InitialState;

/// A process that ran before the recording started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitialProcess {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent_pid: Option<u32>,
    /// Its threads.
    pub threads: Vec<InitialThread>,
    /// Its executable mappings.
    pub mappings: Vec<InitialMapping>,
}

/// A thread that ran before the recording started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialThread {
    /// Thread id.
    pub tid: u32,
    /// Name.
    pub name: String,
    /// What it appeared to do.
    pub state: InitialState,
}

/// An executable mapping from before the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialMapping {
    /// Addresses.
    pub range: Range<u64>,
    /// File offset of the range's start.
    pub offset: u64,
    /// Path of the file, as the kernel shows it.
    pub path: String,
    /// Build-id of the file, if known.
    pub build_id: Option<Vec<u8>>,
}
