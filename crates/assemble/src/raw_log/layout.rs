//! What packer and reader of a chunk agree on.

use stepscope_model::FlowStage;

/// First byte of each entry. Samples and marks have flags in the upper bits.
pub(super) mod tag {
    pub const START: u8 = 0;
    pub const EVENT: u8 = 1;
    pub const PROCESS: u8 = 2;
    pub const IMAGE: u8 = 3;
    pub const PROCESS_END: u8 = 4;
    pub const EXIT_STATUS: u8 = 5;
    pub const THREAD: u8 = 6;
    pub const THREAD_NAME: u8 = 7;
    pub const THREAD_END: u8 = 8;
    pub const MODULE: u8 = 9;
    pub const FRAME: u8 = 10;
    pub const STACK: u8 = 11;
    pub const SAMPLE: u8 = 12;
    pub const WAIT: u8 = 13;
    pub const COUNTER: u8 = 14;
    pub const LOSSES: u8 = 15;
    pub const END: u8 = 16;
    pub const BEGAN: u8 = 17;
    pub const PROGRAM: u8 = 18;
    pub const STEP_BEGIN: u8 = 19;
    pub const MARK_NAME: u8 = 20;
    pub const MARK_THREAD: u8 = 21;
    pub const SCOPE: u8 = 22;
    pub const STEP_MARK: u8 = 23;
    pub const FRAME_MARK: u8 = 24;
    pub const MARKED_COUNTER: u8 = 25;
    pub const MARKS_LOST: u8 = 26;
    pub const TIMED_STEP_BEGIN: u8 = 27;
    pub const EXIT_USAGE: u8 = 28;
    pub const ALLOCATIONS: u8 = 29;
    pub const SYSTEM_CALLS: u8 = 30;
    /// As a wait, and how many there were.
    pub const WAITS: u8 = 31;
    /// No number of five bits is left. Allocations have no flags.
    pub const DATA_ACCESS: u8 = 0x20 | ALLOCATIONS;
    /// As system calls, and their times.
    pub const CALL_TIMES: u8 = 0x20 | SYSTEM_CALLS;
    pub const WORKING_DIRECTORY: u8 = 0x40 | ALLOCATIONS;
    /// A stage of a message with all its fields.
    pub const FLOW_STAGE: u8 = 0x60 | ALLOCATIONS;
    pub const CLOCK_PEER: u8 = 0x80 | ALLOCATIONS;
    pub const ALLOCATION_BURST: u8 = 0xa0 | ALLOCATIONS;
}

/// Flags of a marked counter that is a stage of a message. Readers of before take it for a reading of its number.
pub(super) const FLOW_STAGES: [(u8, FlowStage); 3] =
    [(0x40, FlowStage::Published), (0x80, FlowStage::Passed), (0xc0, FlowStage::Arrived)];
/// Where these flags are.
pub(super) const FLOW_STAGE: u8 = 0xc0;

pub(super) const SAME_WEIGHT: u8 = 0x20;
pub(super) const SAME_THREAD: u8 = 0x20;
pub(super) const UNTIMED: u8 = 0x40;
pub(super) const NO_CPU: u8 = 0x80;

/// The last mark, from which the next one differs by little.
#[derive(Default)]
pub(super) struct MarkBefore {
    pub time: u64,
    pub thread: u32,
}
