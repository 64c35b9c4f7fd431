//! Sums of heap allocations.

use crate::ids::{ProcessId, StackId, ThreadId};

/// Classes of block sizes by their largest size in bytes; the last class has all larger blocks.
pub const BLOCK_SIZES: [u64; 11] = [16, 32, 64, 128, 256, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20];

/// Classes of block lifetimes by their longest time; the last class has all longer ones.
pub const BLOCK_LIFETIMES_NS: [u64; 7] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// What one thread allocated and freed at one stack, in an interval.
///
/// Each release counts at the stack where the block was allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Start of the interval.
    pub start_ns: u64,
    /// End of the interval.
    pub end_ns: u64,
    /// The process.
    pub process: ProcessId,
    /// Its thread, if it is known.
    pub thread: Option<ThreadId>,
    /// The stack that allocated.
    pub stack: Option<StackId>,
    /// Allocations in the interval.
    pub calls: u64,
    /// Their bytes, as asked for.
    pub bytes: u64,
    /// Blocks that this thread freed before it allocated again.
    pub temporary: u64,
    /// Blocks that this thread allocated and freed.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Blocks that other threads allocated and this thread freed.
    pub foreign_frees: u64,
    /// Their bytes.
    pub foreign_freed_bytes: u64,
    /// Blocks at the interval's end that live: allocated less freed by this thread since the process started. Negative if it
    /// frees blocks of others.
    pub live_blocks: i64,
    /// Their bytes.
    pub live_bytes: i64,
    /// The part of the process's largest heap up to the interval's end.
    pub peak_bytes: i64,
    /// Allocations by size, see [`BLOCK_SIZES`].
    pub sizes: [u32; BLOCK_SIZES.len() + 1],
    /// Freed blocks by lifetime, see [`BLOCK_LIFETIMES_NS`].
    pub lifetimes: [u32; BLOCK_LIFETIMES_NS.len() + 1],
}

/// Allocations of one thread at one stack that came soon after each other.
///
/// They are among those of [`Allocation`], whose intervals are longer than most steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationBurst {
    /// About when the first one was made.
    pub start_ns: u64,
    /// About when the last one was made.
    pub end_ns: u64,
    /// The process.
    pub process: ProcessId,
    /// Its thread, if it is known.
    pub thread: Option<ThreadId>,
    /// The stack that allocated.
    pub stack: Option<StackId>,
    /// Allocations.
    pub calls: u64,
    /// Their bytes, as asked for.
    pub bytes: u64,
}
