//! What the programs in the kernel may record of context switches, and the sums that they keep.

use super::Recorder;
use crate::clock;
use crate::perf::ThreadBudget;
use crate::session::thinning::Slice;

impl Recorder {
    /// Tells the programs in the kernel where code is, so that they know places.
    pub(super) fn tell_code(&mut self) {
        let Some(sums) = self.events.switch_sums() else { return };
        for (pid, ranges) in self.assembler.changed_code() {
            // If this fails, the places of this process are coarse.
            let _ = sums.set_code(pid, ranges);
        }
    }

    pub(super) fn set_budget(&self) {
        let Some(sums) = self.events.switch_sums() else { return };
        let budget =
            ThreadBudget { single_waits_hz: self.wait_budget.each_hz(), stacks_hz: self.stack_budget.each_hz() };
        // If this fails, the budget stays what it was.
        let _ = sums.set_budget(budget, self.known_since_ns);
    }

    /// Makes the programs in the kernel copy the stack of each place again: those of processes that were unknown are not kept.
    pub(super) fn forget_places(&mut self) {
        self.known_since_ns = clock::now_ns();
        self.set_budget();
    }

    /// Reads the sums of waits that the kernel has and did not write yet: before the end of a log, so that what it writes from now
    /// on is part of the log.
    pub(super) fn read_pending_waits(&mut self) {
        /// What a thread does between the reading of its sums and the time that they are of is not known. It takes microseconds, unless
        /// the recorder waits for a CPU.
        const LONGEST_NS: u64 = 1_000_000;
        const MOST_READINGS: u32 = 5;
        let Some(sums) = self.events.switch_sums() else { return };
        for _ in 0..MOST_READINGS {
            let start_ns = clock::now_ns();
            let pending = sums.pending(self.assembler.tids());
            let now_ns = clock::now_ns();
            self.pending_waits = Some((pending, now_ns));
            if now_ns - start_ns < LONGEST_NS {
                break;
            }
        }
    }

    /// Adds these sums, once all records of the log are added.
    pub(super) fn add_pending_waits(&mut self) {
        if let Some((pending, time_ns)) = self.pending_waits.take() {
            self.assembler.add_pending(pending, time_ns, &mut self.sink);
        }
    }

    pub(super) fn thin(&mut self) {
        if self.events.switch_sums().is_some() {
            return;
        }
        let changed = match self.thinning.next() {
            Slice::Same => return,
            Slice::WithStacks => self.events.resume_stacks(),
            Slice::Without => self.events.rest_stacks(),
        };
        if changed.is_ok() && self.thinning.slices > 1 {
            self.assembler.note_switch_stack_period(self.thinning.slices);
        }
    }
}
