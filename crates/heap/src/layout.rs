//! How the preloaded library and the recorder share a table: a file in shared memory.
//!
//! The file is a header page and four arrays: threads, nodes of the call tree, records, and a ring of bursts. A record has the sums of one
//! thread at one node. Only that thread writes it, so that the program needs no lock; the recorder may read it at any time.
//! A burst says when these sums grew.
//! This file is compiled into the library and into the recorder.

/// The first bytes of a table that can be read.
pub const MAGIC: u64 = u64::from_le_bytes(*b"STEPHEAP");
/// Version of this layout.
pub const VERSION: u32 = 2;
/// The variable with the start of the tables' paths. Options follow, divided by `;`.
pub const VARIABLE: &str = "STEPSCOPE_HEAP";

/// Bytes before the threads.
pub const HEADER_BYTES: usize = 4096;
/// Threads of a process with records of their own. Later ones share the last number and its records.
pub const MAX_THREADS: usize = 1 << 11;
/// Nodes of the call tree.
pub const MAX_NODES: usize = 1 << 22;
/// Records.
pub const MAX_RECORDS: usize = 1 << 19;
/// Bursts in the ring: those of two seconds, at least.
pub const MAX_BURSTS: usize = 1 << 13;
/// Where the threads start.
pub const THREADS_AT: usize = HEADER_BYTES;
/// Where the nodes start.
pub const NODES_AT: usize = THREADS_AT + MAX_THREADS * size_of::<Thread>();
/// Where the records start.
pub const RECORDS_AT: usize = NODES_AT + MAX_NODES * size_of::<Node>();
/// Where the bursts start.
pub const BURSTS_AT: usize = RECORDS_AT + MAX_RECORDS * size_of::<Record>();
/// Size of the file. Most of it is never written and takes no memory.
pub const FILE_BYTES: usize = BURSTS_AT + MAX_BURSTS * size_of::<Burst>();

/// The node of stacks without frames, and the parent of root frames.
pub const ROOT: u32 = 0;
/// The parent of frames whose callers are unknown: no unwind table describes them.
pub const UNKNOWN_CALLERS: u32 = 1;
/// The parent of frames of stacks that are too deep.
pub const OMITTED_CALLERS: u32 = 2;
/// Nodes that stand for no frame.
pub const FIRST_NODE: u32 = 3;

/// Why a process has a table but no allocations, or not all.
pub mod flag {
    /// The program brings an allocator of its own, which is called instead of this library.
    pub const OTHER_ALLOCATOR: u32 = 1;
    /// C++ `new` is that of another library, and does not call `malloc`.
    pub const OTHER_NEW: u32 = 2;
    /// No more nodes or records: the rest is counted at nodes above.
    pub const TABLE_FULL: u32 = 4;
    /// Records are samples; sums are estimates.
    pub const SAMPLED: u32 = 8;
}

/// The first page of a table.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: u64,
    /// [`VERSION`]
    pub version: u32,
    /// The process, in its own pid namespace.
    pub pid: u32,
    /// `CLOCK_MONOTONIC` when the table was made.
    pub start_ns: u64,
    /// The CPU's tick counter then.
    pub start_ticks: u64,
    /// See [`flag`].
    pub flags: u32,
    /// Threads so far.
    pub threads: u32,
    /// Nodes so far.
    pub nodes: u32,
    /// Records so far.
    pub records: u32,
    /// Bytes of live blocks.
    pub live_bytes: i64,
    /// The largest value of `live_bytes`.
    pub peak_bytes: i64,
    /// How often `peak_bytes` grew. See [`Record::peak_epoch`].
    pub epoch: u64,
    /// Ticks when it last grew.
    pub peak_ticks: u64,
    /// Calls of `free` with a block that is not known.
    pub unknown_frees: u64,
    /// Allocations that were not counted: of signal handlers within an allocation, and of threads that could not be noted.
    pub missed: u64,
    /// Mean bytes between two samples, or 0 if every allocation is recorded.
    pub sample_bytes: u64,
    /// Blocks whose release was not seen: their address was given out again.
    pub unseen_frees: u64,
    /// Stacks that a second unwinder checked, in tests.
    pub verified: u64,
    /// How many of these differ.
    pub mismatches: u64,
    /// Bursts so far. The ring has the last ones.
    pub bursts: u64,
}

/// A thread of the process.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// 1 if several threads share this number.
    pub shared: u32,
    /// When it first allocated or freed, in ticks.
    pub start_ticks: u64,
    /// Its allocations: all of them. In a recording by samples, those up to its last sample, or until it ended the program.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A node of the call tree.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Node {
    /// The address after the call.
    pub address: u64,
    /// The caller's node.
    pub parent: u32,
    /// 0
    pub unused: u32,
}

/// Classes of sizes: the largest of each but the last.
pub const SIZES: [u64; 11] = [16, 32, 64, 128, 256, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20];
/// Classes of lifetimes: the longest of each but the last, in ns.
pub const LIFETIMES_NS: [u64; 7] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// The sums of one thread at one node.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Record {
    /// Where memory was allocated.
    pub node: u32,
    /// The thread, by its place in the table.
    pub thread: u32,
    /// Allocations.
    pub calls: u64,
    /// Their bytes, as asked for.
    pub bytes: u64,
    /// Those that the same thread freed before it allocated again.
    pub temporary: u64,
    /// Blocks of this node and thread that this thread freed.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Blocks of this node that other threads allocated and this thread freed.
    pub foreign_frees: u64,
    /// Their bytes.
    pub foreign_freed_bytes: u64,
    /// Live bytes at the process's peak, if [`Self::peak_epoch`] is that of the header. Otherwise they have not changed since the
    /// peak: live bytes now.
    pub peak_bytes: i64,
    /// [`Header::epoch`] before the last change.
    pub peak_epoch: u64,
    /// Blocks by size.
    pub sizes: [u32; SIZES.len() + 1],
    /// Freed blocks by lifetime.
    pub lifetimes: [u32; LIFETIMES_NS.len() + 1],
    /// When the present burst began, in ticks. See [`Burst`].
    pub burst_first: u64,
    /// Its last allocation so far.
    pub burst_last: u64,
    /// Reserved.
    pub unused: [u64; 2],
}

impl Record {
    /// Bytes allocated by this thread, less what it freed of this node.
    pub fn live_bytes(&self) -> i64 {
        self.bytes.wrapping_sub(self.freed_bytes).wrapping_sub(self.foreign_freed_bytes) as i64
    }

    /// The part of the process's peak.
    pub fn at_peak(&self, epoch: u64) -> i64 {
        if self.peak_epoch == epoch { self.peak_bytes } else { self.live_bytes() }
    }
}

/// Allocations of a record that come soon after another: what a record counted when its burst was over.
///
/// A burst is over when the record allocates again, and the burst began more than [`BURST_US`] ago, or the last allocation was made more than an eighth
/// of this time ago. If there are many bursts, these times are longer.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Burst {
    /// Its number, from 1 on, written last. The ring's place is used again.
    pub number: u64,
    /// The record.
    pub record: u32,
    /// 0
    pub unused: u32,
    /// Its first allocation.
    pub first_ticks: u64,
    /// Its last one.
    pub last_ticks: u64,
    /// Allocations of the record up to its end.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The longest time of a burst, unless there are many.
pub const BURST_US: u64 = 1_000;

const _: () = assert!(
    size_of::<Burst>() == 64
        && size_of::<Record>() == 192
        && size_of::<Node>() == 16
        && size_of::<Header>() <= HEADER_BYTES
);
