//! Stacks of blocked threads that a look from outside finds, where the source has no stacks at context switches.

use super::{Assembler, Thread};
use crate::address_space::UserStack;
use crate::entry::Sink;
use crate::kernel_record::ThreadIds;
use crate::registers::Registers;
use crate::target::Target;

/// Where a look from outside found a thread blocked.
#[derive(Debug, Clone, Copy)]
pub struct BlockedThread<'a> {
    /// Its id.
    pub tid: u32,
    /// A moment at which it was blocked there.
    pub time_ns: u64,
    /// Its instruction.
    pub instruction: u64,
    /// Its stack pointer.
    pub stack_pointer: u64,
    /// Memory from the stack pointer up.
    pub copied: &'a [u8],
}

impl<W: Target> Assembler<W> {
    /// Process and thread ids, in order, of the threads whose stack is not known for the wait that they may be in, and that had none
    /// since this time. All records until the last look must be added.
    pub fn threads_without_stack(&mut self, since_ns: u64) -> Vec<(u32, u32)> {
        let threads = self.threads.iter_mut().filter(|(_, thread)| thread.exit.is_none());
        let lacks = |thread: &mut Thread| thread.timeline.lacks_stack(since_ns);
        let lacking = threads.filter_map(|(&tid, thread)| lacks(thread).then_some((thread.pid, tid)));
        let mut lacking: Vec<_> = lacking.collect();
        lacking.sort_unstable();
        lacking
    }

    /// Adds where a thread is blocked. Its wait may be recorded later.
    pub fn see_blocked(&mut self, seen: &BlockedThread<'_>, sink: &mut impl Sink) {
        let Some(pid) = self.threads.get(&seen.tid).map(|thread| thread.pid) else { return };
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        let registers = Registers::without_frame_pointer(seen.instruction, seen.stack_pointer);
        let ids = ThreadIds { pid, tid: seen.tid };
        self.walk(&UserStack { ids, registers, copied: seen.copied, frame_pointer_chain: &[] }, &mut frames, sink);
        self.losses.samples += 1;
        let stack = self.interner.stack(&frames, sink);
        self.scratch = frames;
        if let (Some(stack), Some(thread)) = (stack, self.threads.get_mut(&seen.tid)) {
            thread.timeline.see_blocked(seen.time_ns, stack);
        }
    }
}
