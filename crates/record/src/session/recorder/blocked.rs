//! Where threads are blocked, if the kernel gives this user no stacks at context switches, or only some: from looks at the threads.
//!
//! A look reads the stack of a blocked thread from outside. It does not stop it, and needs the right to read its memory only, which a
//! user has for programs that the recorder launches. Threads are looked at in turn, if their wait has no stack yet. So long waits have
//! stacks, and of short ones a part that is proportional to their time.
//!
//! While stacks at switches are thinned, only threads that had none for a while are looked at: quiet threads have stacks beside
//! busy ones.

use std::time::Instant;

use stepscope_assemble::BlockedThread;

use super::Recorder;
use crate::clock;
use crate::proc::BlockedReader;
use crate::session::plan::Looks;

/// More of a stack is read by the unwinder where needed.
const STACK_BYTES: usize = 8 << 10;
/// Looks in a row that are refused before the recorder gives up.
const MOST_REFUSALS: u32 = 100;

/// While stacks at switches are thinned, a thread without a stack for this long is looked at.
const AWAITED_NS: u64 = 100_000_000;

/// The looks so far.
pub(super) struct BlockedLooks {
    when: Looks,
    max_hz: u64,
    reader: BlockedReader,
    since: Instant,
    /// The last thread that was looked at.
    last: (u32, u32),
    refusals: u32,
    /// Stacks that were seen.
    stacks: u64,
}

impl BlockedLooks {
    pub fn new(when: Looks, max_hz: u64) -> Self {
        Self {
            when,
            max_hz,
            reader: BlockedReader::default(),
            since: Instant::now(),
            last: (0, 0),
            refusals: 0,
            stacks: 0,
        }
    }

    /// The threads for the next looks: as many as allowed, the next ones in turn.
    fn take_next(&mut self, mut threads: Vec<(u32, u32)>, most: usize) -> Vec<(u32, u32)> {
        let next = threads.partition_point(|thread| *thread <= self.last);
        threads.rotate_left(next);
        threads.truncate(most);
        self.last = threads.last().copied().unwrap_or(self.last);
        threads
    }
}

impl Recorder {
    /// Looks at threads that may be blocked.
    pub(super) fn look_at_blocked(&mut self) {
        let Some(looks) = self.looks.as_mut().filter(|looks| looks.refusals < MOST_REFUSALS) else { return };
        let elapsed = std::mem::replace(&mut looks.since, Instant::now()).elapsed();
        let last_stack_before = match looks.when {
            Looks::Always => u64::MAX,
            Looks::WhileThinned if self.thinning.slices > 1 => clock::now_ns().saturating_sub(AWAITED_NS),
            Looks::WhileThinned => return,
        };
        let most = (elapsed.as_secs_f64().min(1.0) * looks.max_hz as f64).ceil() as usize;
        for (pid, tid) in looks.take_next(self.assembler.threads_without_stack(last_stack_before), most) {
            let time_ns = clock::now_ns();
            match looks.reader.read(pid, tid, STACK_BYTES) {
                Ok(None) => {}
                Ok(Some((blocked, copied))) => {
                    looks.refusals = 0;
                    looks.stacks += 1;
                    let (instruction, stack_pointer) = (blocked.instruction, blocked.stack_pointer);
                    let seen = BlockedThread { tid, time_ns, instruction, stack_pointer, copied };
                    self.assembler.see_blocked(&seen, &mut self.sink);
                }
                // A thread that has ended is no refusal.
                Err(error) => looks.refusals += u32::from(error.kind() == std::io::ErrorKind::PermissionDenied),
            }
        }
        if looks.stacks > 0 && looks.when == Looks::Always {
            // Waits without a stack count at those of similar ones.
            self.assembler.note_switch_stack_period((self.sink.waits / looks.stacks).max(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_looked_at_in_turn() {
        let mut looks = BlockedLooks::new(Looks::Always, 100);
        let threads = || (1..6).map(|tid| (1, tid)).collect::<Vec<_>>();
        let mut next = |threads, most| looks.take_next(threads, most).iter().map(|thread| thread.1).collect::<Vec<_>>();
        assert_eq!(next(threads(), 2), [1, 2]);
        assert_eq!(next(threads(), 2), [3, 4]);
        assert_eq!(next(Vec::new(), 2), [0; 0]);
        assert_eq!(next(threads(), 3), [5, 1, 2]);
        assert_eq!(next(threads(), 9), [3, 4, 5, 1, 2]);
    }
}
