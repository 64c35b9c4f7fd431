//! Steps, once all threads of a capture are known: each lasts from one start to the next.
//!
//! A day of recording has tens of millions of starts, so only the latest are kept: as many as may still come out of order.

use std::collections::BTreeMap;

use stepscope_model::{Capture, ProcessId, Step, ThreadId};

/// Starts that are put in order at a time. Records of one CPU, and marks of one thread, can be later than those of another:
/// the difference is far below a quarter of these.
const GROUP: usize = 1 << 16;

/// A loop that makes steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loop {
    /// The calls of a step function in a process, whichever threads run them.
    Process(Option<ProcessId>),
    /// The marks of a thread.
    Thread(ThreadId),
}

/// The start of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepStart {
    pub time_ns: u64,
    pub thread: ThreadId,
    /// The loop that it belongs to.
    pub of: Loop,
    /// Simulated time then.
    pub sim_time_ns: Option<u64>,
}

impl StepStart {
    /// A call of the step function.
    pub fn called(capture: &Capture, thread: ThreadId, time_ns: u64, sim_time_ns: Option<u64>) -> Option<Self> {
        let process = capture.threads.get(thread.index())?.process;
        Some(Self { time_ns, thread, of: Loop::Process(process), sim_time_ns })
    }

    /// A mark. Those before the recording belong to an incomplete step.
    pub fn marked(capture: &Capture, thread: ThreadId, time_ns: u64, sim_time_ns: Option<i64>) -> Option<Self> {
        let is_inside = time_ns >= capture.info.first_interval_ns();
        let sim_time_ns = sim_time_ns.and_then(|ns| u64::try_from(ns).ok());
        is_inside.then_some(Self { time_ns, thread, of: Loop::Thread(thread), sim_time_ns })
    }
}

/// Makes steps of their starts. Time before the first start of a loop and after the last belongs to no complete step.
#[derive(Default)]
pub(crate) struct StepMaker {
    group: Vec<StepStart>,
    /// The step of each loop that has no end yet.
    open: BTreeMap<Loop, Step>,
}

impl StepMaker {
    /// Adds a start, and gives the steps that are complete now.
    pub fn add(&mut self, start: StepStart, take: impl FnMut(Step)) {
        self.group.push(start);
        if self.group.len() >= GROUP {
            self.end(GROUP / 4 * 3, take);
        }
    }

    /// Gives the steps that ended before this time. No earlier start may come later.
    pub fn release(&mut self, until_ns: u64, take: impl FnMut(Step)) {
        self.group.sort_by_key(|start| (start.time_ns, start.thread));
        self.end(self.group.partition_point(|start| start.time_ns < until_ns), take);
    }

    /// Gives the last steps.
    pub fn finish(mut self, take: impl FnMut(Step)) {
        self.end(self.group.len(), take);
    }

    fn end(&mut self, count: usize, mut take: impl FnMut(Step)) {
        self.group.sort_by_key(|start| (start.time_ns, start.thread));
        for start in self.group.drain(..count) {
            let StepStart { time_ns, thread, sim_time_ns, .. } = start;
            let next = |index| Step { index, start_ns: time_ns, end_ns: time_ns, sim_time_ns: None, thread };
            let open = self.open.entry(start.of).or_insert_with(|| next(u64::MAX));
            let before = std::mem::replace(open, next(open.index.wrapping_add(1)));
            if before.index != u64::MAX {
                // The simulated time at the end of a step is that of the next start.
                take(Step { end_ns: time_ns.max(before.start_ns), sim_time_ns, ..before });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_that_come_late_are_put_in_order_and_only_the_latest_are_kept() {
        let (mut maker, mut steps) = (StepMaker::default(), Vec::new());
        let threads = [ThreadId(0), ThreadId(1)];
        let count = 3 * GROUP as u64;
        // Two loops, whose marks are read a thousand at a time.
        for block in 0..count / 1_000 {
            for thread in threads {
                for number in block * 1_000..(block + 1) * 1_000 {
                    let sim_time_ns = Some(number);
                    let start = StepStart { time_ns: 10 * number, thread, of: Loop::Thread(thread), sim_time_ns };
                    maker.add(start, |step| steps.push(step));
                    assert!(maker.group.len() < GROUP);
                }
            }
        }
        maker.finish(|step| steps.push(step));
        for thread in threads {
            let of_thread: Vec<&Step> = steps.iter().filter(|step| step.thread == thread).collect();
            assert_eq!(of_thread.len() as u64, count / 1_000 * 1_000 - 1);
            for (index, step) in (0..).zip(of_thread) {
                let expected =
                    Step { index, start_ns: 10 * index, end_ns: 10 * index + 10, sim_time_ns: Some(index + 1), thread };
                assert_eq!(*step, expected);
            }
        }
    }
}
