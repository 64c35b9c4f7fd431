//! What the programs keep, and where.

use std::os::fd::BorrowedFd;

/// Sums are written after this time.
pub(super) const SLICE_NS: i32 = 10_000_000;
/// A place that has a stack gets another one after this time.
pub(super) const AGAIN_NS: i32 = 250_000_000;
/// Threads that have a slot of their own: the lower bits of a thread's id are its number.
pub(super) const SLOTS: u32 = 32 << 10;
/// Stacks that a thread has in a second for any wait or wake-up. Further ones are for places without a recent one.
pub(super) const STACKS_OF_ANY: i32 = 100;
/// The first stacks of a thread in a second are taken without looking for their place: a thread with few waits needs none.
pub(super) const STACKS_WITHOUT_PLACE: i32 = 50;
/// Words of the user's stack that make a place.
pub(super) const WORDS: i16 = 48;

/// Offsets in the kernel's registers of a thread that is in a system call (`struct pt_regs`).
#[cfg(target_arch = "x86_64")]
pub(super) mod registers {
    pub const INSTRUCTION: i16 = 128;
    pub const STACK_POINTER: i16 = 152;
    /// The number of the system call, with as many bits above it; negative in interrupts and faults.
    pub const SYSTEM_CALL: i16 = 120;
    pub const BITS_ABOVE: i32 = 0;
}
#[cfg(target_arch = "aarch64")]
pub(super) mod registers {
    pub const INSTRUCTION: i16 = 256;
    pub const STACK_POINTER: i16 = 248;
    pub const SYSTEM_CALL: i16 = 280;
    pub const BITS_ABOVE: i32 = 32;
}

/// Places on a program's stack.
pub(super) mod at {
    pub const TID: i16 = -4;
    pub const INDEX: i16 = -8;
    pub const NOW: i16 = -16;
    pub const CURRENT: i16 = -24;
    /// The ids of the thread that comes or is woken.
    pub const OTHER: i16 = -32;
    /// The record of a switch, a wake-up or a place.
    pub const RECORD: i16 = -72;
    pub const FLAGS: i16 = RECORD;
    pub const TIME: i16 = RECORD + 8;
    pub const FIRST: i16 = RECORD + 16;
    pub const SECOND: i16 = RECORD + 24;
    pub const KEY: i16 = RECORD + 32;
    /// The key of a place: thread, key.
    pub const PLACE: i16 = -88;
    /// When it had a stack.
    pub const SAMPLED: i16 = -96;
    /// Whether the record gets a stack.
    pub const WITH_STACK: i16 = -104;
    pub const INSTRUCTION: i16 = -112;
    pub const POINTER: i16 = -120;
    /// Whether the thread that leaves ends.
    pub const ENDS: i16 = -128;
    pub const AWAY: i16 = -136;
}

/// The state of a thread. It starts with its next record of sums.
pub(super) mod thread {
    use stepscope_assemble::written_switch as written;

    pub const FLAGS: i16 = 0;
    pub const NOW: i16 = 8;
    pub const IDS: i16 = 16;
    /// Start of the slice; 0 while its switches are written one by one.
    pub const SLICE: i16 = 24;
    /// When it left the CPU; 0 while it runs.
    pub const SINCE: i16 = 32;
    pub const WOKEN: i16 = 40;
    pub const KEY: i16 = 48;
    pub const SUMS: i16 = 56;
    pub const SUM_BYTES: i16 = 32;
    pub const SUMS_END: i16 = SUMS + SUM_BYTES * written::SUMS as i16;
    /// Start of the second that the budget is for.
    pub const WINDOW: i16 = SUMS_END;
    pub const SINGLES: i16 = SUMS_END + 8;
    pub const STACKS: i16 = SUMS_END + 12;
    /// Offset of the sum of the present wait; 0 if it has none.
    pub const SUM_AT: i16 = SUMS_END + 16;
    /// By sum, when its place had a stack.
    pub const SAMPLED: i16 = SUMS_END + 24;
    /// Where its process has code: starts and lengths of two ranges.
    pub const CODE: i16 = SAMPLED + 8 * written::SUMS as i16;
    pub const BYTES: i16 = CODE + 32;
}

/// What the recorder sets.
pub(super) mod setting {
    /// Waits that a thread has one by one in a second.
    pub const SINGLES: i16 = 0;
    /// Stacks that it has in a second.
    pub const STACKS: i16 = 8;
    /// Stacks of places from before this time are unknown by now.
    pub const FORGOTTEN: i16 = 16;
}

/// Where both programs write, and what they look up.
pub(super) struct Tables<'a> {
    pub members: BorrowedFd<'a>,
    /// By slot. A thread whose slot is taken is in [`others`](Self::others).
    pub slots: BorrowedFd<'a>,
    /// By id.
    pub others: BorrowedFd<'a>,
    pub empty: BorrowedFd<'a>,
    pub places: BorrowedFd<'a>,
    pub code: BorrowedFd<'a>,
    pub settings: BorrowedFd<'a>,
    pub scratch: BorrowedFd<'a>,
    pub without_stack: BorrowedFd<'a>,
    pub with_stack: BorrowedFd<'a>,
    /// Offset of a thread's id in the kernel's `task_struct`, with that of its process behind it.
    pub ids_at: i16,
}
