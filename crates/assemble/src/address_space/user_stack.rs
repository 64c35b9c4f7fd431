//! The user part of one sample.

use crate::kernel_record::ThreadIds;
use crate::registers::Registers;

/// The registers of a thread, and what was recorded of its stack.
pub(crate) struct UserStack<'a> {
    pub ids: ThreadIds,
    pub registers: Registers,
    /// Memory from the stack pointer up.
    pub copied: &'a [u8],
    /// Return addresses that the kernel found by frame pointers, after the instruction pointer.
    pub frame_pointer_chain: &'a [u64],
}

impl UserStack<'_> {
    /// Whether the source copies stacks.
    pub fn has_stack_pointer(&self) -> bool {
        self.registers.sp != Registers::NO_STACK
    }

    /// Whether the kernel was to copy memory and found none.
    pub fn has_no_memory(&self) -> bool {
        self.copied.is_empty() && self.has_stack_pointer()
    }
}
