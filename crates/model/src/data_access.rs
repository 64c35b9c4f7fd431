//! Sampled accesses to data, by the place in memory.

use std::sync::Arc;

use crate::ids::{StackId, ThreadId};

/// Bytes of a cache line.
pub const CACHE_LINE_BYTES: u64 = 64;

/// Sampled accesses of one thread, at one stack, to one place in memory, added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataAccess {
    /// The thread.
    pub thread: ThreadId,
    /// Where it was.
    pub stack: Option<StackId>,
    /// Address of the first byte, in the thread's process.
    pub address: u64,
    /// Number of bytes, if it is known.
    pub bytes: Option<u64>,
    /// The global variable at the address, with the offset in it.
    pub object: Option<Arc<str>>,
    /// Samples that read.
    pub reads: u64,
    /// Samples that wrote. An atomic operation reads and writes.
    pub writes: u64,
    /// Samples right behind a load or an atomic operation, whose time was mostly spent on it; `None` if addresses do not come from the code
    /// at CPU samples.
    pub awaited: Option<u64>,
    /// Loads that found the line modified in another core's cache of the same socket (HITM); `None` if the source cannot know it.
    pub local_hitm: Option<u64>,
    /// The same of another socket.
    pub remote_hitm: Option<u64>,
    /// Sum of the latencies that the CPU measured, in its cycles.
    pub latency_cycles: Option<u64>,
}

impl DataAccess {
    /// Number of its cache line.
    pub fn line(&self) -> u64 {
        self.address / CACHE_LINE_BYTES
    }

    /// Whether the address is in the kernel, which all processes share.
    pub fn is_in_kernel(&self) -> bool {
        self.address >> 63 == 1
    }
}
