//! The cost of switches from idle CPUs, from the kernel's account of a launched program.
//!
//! The kernel charges a thread from the moment at which the idle task calls the scheduler, and the record of the switch comes
//! some microseconds later. Two threads that wake each other on an idle machine lack an eighth of their CPU time by records
//! alone. So each run of a thread starts earlier by the same time, but not before the thread was woken, until both accounts
//! agree. Running, runnable and blocked time still add up to each thread's lifetime. If that takes more than [`MOST_NS`] per
//! switch, the difference has another cause, and stays.

use std::ops::Range;

use stepscope_model::{Capture, Wait};

use crate::kernel_account::ExitUsage;

/// The most that the kernel charges for a switch before its record.
const MOST_NS: u64 = 20_000;
const NS_PER_US: u64 = 1_000;
/// The account of a program has what the recorder's child used before it executed the program.
const BEFORE_EXEC_NS: u64 = 1_000_000;

/// How much earlier the runs of a program may start: their number by whole microseconds.
#[derive(Debug, Default)]
pub(crate) struct Rooms([u64; (MOST_NS / NS_PER_US) as usize + 1]);

impl Rooms {
    /// Adds the runs after these waits.
    pub fn add(&mut self, waits: Waited) {
        self.0[(waits.room_ns() / NS_PER_US) as usize] += waits.count;
    }

    /// The cost of a switch in a launched program, if no record was lost. Unknown time may be a part of what is missing.
    pub fn cost_in_ns(&self, capture: &Capture, exit: ExitUsage) -> Option<u64> {
        let losses = &capture.info.losses;
        capture.processes.first().filter(|process| losses.lost_records == 0 && process.pid == exit.pid)?;
        let by_switches_ns = capture.threads.iter().try_fold(0_u64, |sum, thread| sum.checked_add(thread.cpu_ns?))?;
        self.cost_ns(by_switches_ns.checked_add(losses.unknown_cpu_ns.unwrap_or(0))?, exit.cpu_ns)
    }

    /// The cost of a switch for which the runs last as long as the kernel's account says. `None` if there is none.
    fn cost_ns(&self, by_switches_ns: u64, by_kernel_ns: u64) -> Option<u64> {
        let missing_ns = by_kernel_ns.checked_sub(by_switches_ns.saturating_add(BEFORE_EXEC_NS))?;
        let added_ns = |cost_ns: u64| -> u64 {
            let of_room = |(us, &runs): (usize, &u64)| runs.saturating_mul(cost_ns.min(us as u64 * NS_PER_US));
            self.0.iter().enumerate().map(of_room).fold(0, u64::saturating_add)
        };
        (0..=MOST_NS).find(|&cost_ns| added_ns(cost_ns) >= missing_ns)
    }
}

/// Ends a wait earlier by the cost of its switch, as far as it has room. Returns by how much.
pub(crate) fn end_earlier(wait: &mut Wait, cost_ns: u64) -> u64 {
    let waits = Waited::new(wait.start_ns..wait.end_ns, wait.runnable_ns, wait.count);
    let earlier_ns = cost_ns.min(waits.room_ns()) * waits.count;
    wait.end_ns -= earlier_ns;
    wait.runnable_ns = wait.runnable_ns.map(|runnable_ns| runnable_ns - earlier_ns);
    earlier_ns
}

/// A wait, or several that are added up: each counts as the mean of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waited {
    wait_ns: u64,
    runnable_ns: u64,
    pub count: u64,
}

impl Waited {
    pub fn new(range: Range<u64>, runnable_ns: Option<u64>, count: u32) -> Self {
        let (wait_ns, count) = (range.end.saturating_sub(range.start), u64::from(count.max(1)));
        let runnable_ns = runnable_ns.unwrap_or(wait_ns).min(wait_ns);
        Self { wait_ns: wait_ns / count, runnable_ns: runnable_ns / count, count }
    }

    /// The time before the end of each in which the thread may have been switched in: it was runnable.
    pub fn room_ns(self) -> u64 {
        let room_ns = self.runnable_ns.min(self.wait_ns).min(MOST_NS);
        room_ns - room_ns % NS_PER_US
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Process, Thread};

    use super::*;

    /// 50 runs with a room of 30 µs, and 50 with one of 4 µs.
    fn rooms() -> Rooms {
        let mut rooms = Rooms::default();
        for index in 0..100 {
            rooms.add(Waited::new(0..1_000_000, Some(if index % 2 == 0 { 30_000 } else { 4_000 }), 1));
        }
        rooms
    }

    #[test]
    fn each_run_starts_earlier_by_the_same_time_but_not_before_it_was_woken() {
        const CPU_NS: u64 = 90_000_000;
        let cost_ns = |missing_ns| rooms().cost_ns(CPU_NS, CPU_NS + BEFORE_EXEC_NS + missing_ns);
        assert_eq!(cost_ns(0), Some(0));
        assert_eq!(cost_ns(200_000), Some(2_000));
        assert_eq!(cost_ns(50 * 14_000), Some(10_000), "4 µs for one half, 10 µs for the other");
        assert_eq!(cost_ns(50 * 24_000 + 1), None, "more than switches can cost");
        assert_eq!(rooms().cost_ns(CPU_NS, CPU_NS), None, "nothing is missing");
    }

    #[test]
    fn a_little_unknown_time_hides_no_cost() {
        const CPU_NS: u64 = 90_000_000;
        let cost_ns = |unknown_cpu_ns, lost_records| {
            let mut capture = Capture::default();
            capture.add_process(Process { pid: 40, ..Process::default() });
            capture.add_thread(Thread { tid: 40, cpu_ns: Some(CPU_NS), ..Thread::default() });
            let losses = &mut capture.info.losses;
            (losses.unknown_cpu_ns, losses.lost_records) = (Some(unknown_cpu_ns), lost_records);
            rooms().cost_in_ns(&capture, ExitUsage { pid: 40, cpu_ns: CPU_NS + BEFORE_EXEC_NS + 200_000 })
        };
        assert_eq!([0, 100_000, 300_000].map(|unknown_ns| cost_ns(unknown_ns, 0)), [Some(2_000), Some(1_000), None]);
        assert_eq!(cost_ns(0, 1), None, "what is missing may be lost");
    }

    #[test]
    fn a_wait_that_ends_earlier_was_runnable_for_less_time() {
        let mut wait = Wait {
            start_ns: 0,
            end_ns: 50_000,
            thread: stepscope_model::ThreadId(0),
            stack: None,
            state: stepscope_model::WaitState::Blocked,
            runnable_ns: Some(4_200),
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        };
        assert_eq!(end_earlier(&mut wait, 10_000), 4_000);
        assert_eq!((wait.end_ns, wait.runnable_ns), (46_000, Some(200)));
        wait = Wait { runnable_ns: Some(9_999), count: 3, ..wait };
        assert_eq!(end_earlier(&mut wait, 2_000), 6_000, "2 µs before each of three runs");
    }
}
