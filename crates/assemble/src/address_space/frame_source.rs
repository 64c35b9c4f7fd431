//! What a walk needs besides the address space, and how it ends.

use std::ops::Range;
use std::sync::Arc;

use framehop::{CacheNative, MayAllocateDuringUnwind};

use super::mapping::Mapping;
use crate::entry::{FrameRef, StackMark};
use crate::registers::SavedRegisters;
use crate::target::Target;
use crate::unwind_tables::TableEntry;

/// Numbers the frames of a walk, and provides unwind tables and live memory.
pub(crate) trait FrameSource {
    type Target: Target;

    /// The frame at an address that a mapping holds.
    fn frame(&mut self, mapping: &Mapping, address: u64) -> FrameRef;

    /// The frame that stands for a mark.
    fn mark(&mut self, mark: StackMark) -> FrameRef;

    /// The unwind-table entry that covers an address.
    fn entry(&mut self, mapping: &Mapping, address: u64, pid: u32) -> Option<TableEntry>;

    /// The unwind tables of a mapping's module, for framehop.
    fn framehop_module(&mut self, mapping: &Mapping, pid: u32) -> Option<framehop::Module<Arc<[u8]>>>;

    /// Where the function at an address saved its caller's registers.
    fn saved_registers(&mut self, mapping: &Mapping, address: u64, pid: u32) -> Option<SavedRegisters>;

    /// The function at an address, by the unwind table of the mapping's module.
    fn function(&mut self, mapping: &Mapping, address: u64, pid: u32) -> Option<Range<u64>>;

    fn target(&mut self) -> &mut Self::Target;
}

/// A stack as a walk found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub ending: Ending,
    /// Whether a caller was guessed.
    pub guessed: bool,
    /// Whether frames were left out.
    pub shortened: bool,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// At the root: the function that nothing calls.
    Root,
    /// At the root, or where frame pointers end, through memory that the copy does not hold.
    Continued,
    /// Before the root.
    Truncated,
}

/// Unwind rules found before, shared by all processes. framehop's cache is a table of 509 rules; several, chosen by the
/// address, make a larger one.
pub(crate) struct RuleCaches(Vec<CacheNative<MayAllocateDuringUnwind>>);

impl RuleCaches {
    const COUNT: usize = 16;

    pub fn new() -> Self {
        Self((0..Self::COUNT).map(|_| CacheNative::new()).collect())
    }

    pub(super) fn at(&mut self, address: u64) -> &mut CacheNative<MayAllocateDuringUnwind> {
        &mut self.0[(address >> 2) as usize % Self::COUNT]
    }
}
