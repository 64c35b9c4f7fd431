//! CPU time by context switches, compared with the kernel's own account.
//!
//! The recorder reads each thread's CPU time from `/proc/PID/task/TID/schedstat` twice a second, and a launched program's
//! from `rusage` when it ends. Between two readings of a thread, its time by switches must agree. Where it is larger by
//! more than the readings' error, records were lost: the difference is taken off the thread's CPU time, and counted.
//!
//! A reading may come late or belong to a time before the thread ran, and the account at exit has no such error. So nothing is
//! taken off a program whose time agrees with its account at exit, if no record was lost.

use std::collections::BTreeMap;

use stepscope_model::{Capture, Thread, Wait};

use crate::entry::ThreadRef;

/// The quantity of a thread's CPU time, as the recorder names it.
const THREAD_CPU: &str = "thread_cpu_ns";
/// A running thread's account is brought up to date at each tick, and its reading takes a while.
const READING_ERROR_NS: u64 = 20_000_000;
/// The same error as a share of the time between readings: one percent.
const READING_ERROR_SHARE: u64 = 100;

/// CPU time of a process and of all children that it waited for, at its end (`wait4(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitUsage {
    pub pid: u32,
    pub cpu_ns: u64,
}

/// Each thread's CPU time by switches and by the kernel's readings.
pub(crate) struct KernelAccount {
    /// Absent for threads with fewer than two readings.
    compared: Vec<Option<Compared>>,
    /// Each thread's time off the CPU.
    off_ns: Vec<u64>,
}

impl KernelAccount {
    /// `capture` has threads. Its waits are [added](Self::add) one by one.
    pub fn of(capture: &Capture, readings: &Readings) -> Self {
        let compared = |index| Compared::of(capture, index, readings.0.get(&index)?);
        let threads = capture.threads.len();
        Self { compared: (0..threads).map(compared).collect(), off_ns: vec![0; threads] }
    }

    /// Adds a wait.
    pub fn add(&mut self, wait: &Wait) {
        let off_ns = &mut self.off_ns[wait.thread.index()];
        *off_ns = off_ns.saturating_add(wait.end_ns.saturating_sub(wait.start_ns));
        if let Some(compared) = &mut self.compared[wait.thread.index()] {
            let off_ns = wait.end_ns.min(compared.end_ns).saturating_sub(wait.start_ns.max(compared.start_ns));
            compared.off_ns = compared.off_ns.saturating_add(off_ns);
        }
    }

    /// Notes the time off the CPU that has no wait, because a damaged log lost some. CPU time is then not compared: by the waits
    /// that are left it is too long, and at the thread's end it was exact.
    pub fn count_lost_waits(self, capture: &mut Capture) {
        let lacks = |(thread, off_ns): (&Thread, u64)| {
            let lifetime_ns = thread.end_ns?.saturating_sub(thread.start_ns?);
            Some(lifetime_ns.saturating_sub(thread.cpu_ns?.saturating_add(off_ns)))
        };
        let lacking_ns = capture.threads.iter().zip(self.off_ns).filter_map(lacks).fold(0, u64::saturating_add);
        let losses = &mut capture.info.losses;
        losses.lost_wait_ns = Some(lacking_ns.saturating_sub(losses.unknown_cpu_ns.unwrap_or(0)));
    }

    /// Reconciles each thread's CPU time, and notes the kernel's account of all.
    ///
    /// `stolen_ns` is the time that the hypervisor took: it is in the time by switches, and not in the kernel's account.
    pub fn reconcile(self, capture: &mut Capture, exit: Option<ExitUsage>, stolen_ns: u64) {
        let launched = exit.filter(|exit| capture.processes.first().is_some_and(|process| process.pid == exit.pid));
        let alone = launched.filter(|_| capture.processes.len() == 1);
        let is_confirmed = alone.is_some_and(|exit| {
            capture.info.losses.lost_records == 0
                && excess_at_exit_ns(capture, u64::MAX, exit.cpu_ns, stolen_ns).is_none()
        });
        let (mut account, mut unread_ns) = (None, 0_u64);
        // By thread, the time that no reading covers.
        let mut open_ns = vec![0; capture.threads.len()];
        for ((thread, compared), open_ns) in capture.threads.iter_mut().zip(self.compared).zip(&mut open_ns) {
            let Some(cpu_ns) = thread.cpu_ns else { continue };
            let Some(compared) = compared else {
                unread_ns = unread_ns.saturating_add(cpu_ns);
                *open_ns = cpu_ns;
                continue;
            };
            let by_switches_ns = compared.by_switches_ns();
            *open_ns = cpu_ns.saturating_sub(by_switches_ns);
            let by_kernel_ns = open_ns.saturating_add(compared.by_kernel_ns);
            account = Some(account.unwrap_or(0_u64).saturating_add(by_kernel_ns));
            let excess_ns = by_switches_ns.saturating_sub(compared.by_kernel_ns);
            if excess_ns > compared.error_ns().saturating_add(stolen_ns) && !is_confirmed {
                thread.cpu_ns = Some(by_kernel_ns);
                let unknown_ns = capture.info.losses.unknown_cpu_ns.get_or_insert(0);
                *unknown_ns = unknown_ns.saturating_add(excess_ns);
            }
        }
        // Threads that ended before the first reading have no account. If they are few, their time by switches stands for it.
        let account = account
            .filter(|account| unread_ns < READING_ERROR_NS + account / READING_ERROR_SHARE)
            .map(|account| account.saturating_add(unread_ns));
        if let Some(exit) = alone
            && let Some(excess_ns) = excess_at_exit_ns(capture, sum(&open_ns), exit.cpu_ns, stolen_ns)
        {
            take_off(capture, &open_ns, excess_ns);
        }
        if let Some(most_ns) = time_of_all_cpus_ns(capture) {
            take_off(capture, &open_ns, time_by_switches_ns(capture).saturating_sub(most_ns));
        }
        let any_switches = capture.threads.iter().any(|thread| thread.cpu_ns.is_some());
        capture.info.losses.kernel_cpu_ns = launched.map(|exit| exit.cpu_ns).or(account).filter(|_| any_switches);
    }
}

/// What a process has more by switches than by the kernel's account at its exit, but at most this. `None` within the error.
fn excess_at_exit_ns(capture: &Capture, most_ns: u64, by_kernel_ns: u64, stolen_ns: u64) -> Option<u64> {
    let error_ns = READING_ERROR_NS.saturating_add(by_kernel_ns / READING_ERROR_SHARE).saturating_add(stolen_ns);
    let excess_ns = time_by_switches_ns(capture).saturating_sub(by_kernel_ns).min(most_ns);
    Some(excess_ns).filter(|&excess_ns| excess_ns > error_ns)
}

fn sum(ns: &[u64]) -> u64 {
    ns.iter().copied().fold(0, u64::saturating_add)
}

fn time_by_switches_ns(capture: &Capture) -> u64 {
    capture.threads.iter().filter_map(|thread| thread.cpu_ns).fold(0, u64::saturating_add)
}

/// What all CPUs of the machine have in the recording. Threads that seem to have more are those whose end was lost.
fn time_of_all_cpus_ns(capture: &Capture) -> Option<u64> {
    let cpus = capture.info.machine.as_ref().map(|machine| machine.cores).filter(|&cpus| cpus > 0)?;
    Some(capture.info.wall_ns()?.saturating_mul(cpus.into()))
}

/// Takes this excess off. It can only be in the time that no reading of a thread covers.
fn take_off(capture: &mut Capture, open_ns: &[u64], excess_ns: u64) {
    let all_open_ns = sum(open_ns);
    let part = excess_ns.min(all_open_ns) as f64 / all_open_ns.max(1) as f64;
    for (thread, &open_ns) in capture.threads.iter_mut().zip(open_ns).filter(|_| part > 0.0) {
        let Some(cpu_ns) = &mut thread.cpu_ns else { continue };
        let taken_ns = ((open_ns as f64 * part).ceil() as u64).min(*cpu_ns);
        *cpu_ns -= taken_ns;
        let unknown_ns = capture.info.losses.unknown_cpu_ns.get_or_insert(0);
        *unknown_ns = unknown_ns.saturating_add(taken_ns);
    }
}

/// One thread's CPU time between two readings.
struct Compared {
    start_ns: u64,
    end_ns: u64,
    /// Time off the CPU in between, by switches.
    off_ns: u64,
    by_kernel_ns: u64,
}

impl Compared {
    /// From the thread's start, if that is recorded, or else the first reading, to the last reading.
    fn of(capture: &Capture, thread: usize, readings: &FirstAndLast) -> Option<Self> {
        let thread_row = &capture.threads[thread];
        let recording_ns = capture.info.start_ns.unwrap_or(0);
        let (first_ns, first_cpu_ns) = readings.first;
        // A thread that was found after its start has CPU time from before that.
        let is_since =
            |start_ns: u64| first_cpu_ns <= first_ns.saturating_sub(start_ns).saturating_add(READING_ERROR_NS);
        let started_ns = thread_row.start_ns.filter(|&start_ns| start_ns > recording_ns && is_since(start_ns));
        let (start_ns, before_ns) = started_ns.map_or(readings.first, |start_ns| (start_ns, 0));
        // Time between a reading and the thread's start is neither running nor a wait.
        let start_ns = start_ns.max(thread_row.start_ns.unwrap_or(0));
        let (last_ns, after_ns) = readings.last;
        let end_ns = last_ns.min(thread_row.end_ns.unwrap_or(u64::MAX));
        let by_kernel_ns = after_ns.saturating_sub(before_ns);
        (end_ns > start_ns).then_some(Self { start_ns, end_ns, off_ns: 0, by_kernel_ns })
    }

    fn by_switches_ns(&self) -> u64 {
        (self.end_ns - self.start_ns).saturating_sub(self.off_ns)
    }

    fn error_ns(&self) -> u64 {
        READING_ERROR_NS + (self.end_ns - self.start_ns) / READING_ERROR_SHARE
    }
}

/// The kernel's first and last reading of each thread's CPU time.
#[derive(Debug, Default)]
pub(crate) struct Readings(BTreeMap<usize, FirstAndLast>);

/// Two readings, each with its time.
#[derive(Debug, Clone, Copy)]
struct FirstAndLast {
    first: (u64, u64),
    last: (u64, u64),
}

impl Readings {
    /// Adds a reading of a quantity of a thread, if it is its CPU time.
    pub fn add(&mut self, time_ns: u64, thread: Option<ThreadRef>, name: &str, value: i64) {
        let Some(thread) = thread.filter(|_| name == THREAD_CPU) else { return };
        let reading = (time_ns, u64::try_from(value).unwrap_or(0));
        let known = self.0.entry(thread.0 as usize).or_insert(FirstAndLast { first: reading, last: reading });
        (known.first, known.last) = (known.first.min(reading), known.last.max(reading));
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Machine, Process, ProcessId, WaitState};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A thread from 0 to 1,000 ms that is off the CPU in `off`, and the kernel's readings at these times, all in ms.
    fn drawn(off: &[(u64, u64)], readings: &[(u64, i64)]) -> (Capture, Readings) {
        let mut capture = Capture::default();
        capture.info.start_ns = Some(0);
        capture.add_process(Process { pid: 40, ..Process::default() });
        let off_ns: u64 = off.iter().map(|(start, end)| (end - start) * MS).sum();
        let thread = capture.add_thread(Thread {
            tid: 40,
            process: Some(ProcessId(0)),
            start_ns: Some(0),
            end_ns: Some(1_000 * MS),
            cpu_ns: Some(1_000 * MS - off_ns),
            ..Thread::default()
        });
        capture.waits.extend(off.iter().map(|(start, end)| Wait {
            start_ns: start * MS,
            end_ns: end * MS,
            thread,
            stack: None,
            state: WaitState::Blocked,
            runnable_ns: None,
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        }));
        let mut read = Readings::default();
        for (time, cpu_ms) in readings {
            read.add(time * MS, Some(ThreadRef(0)), THREAD_CPU, cpu_ms * MS as i64);
        }
        (capture, read)
    }

    fn after(
        (mut capture, readings): (Capture, Readings),
        exit: Option<ExitUsage>,
    ) -> (Option<u64>, Option<u64>, Option<u64>) {
        let mut account = KernelAccount::of(&capture, &readings);
        capture.waits.iter().for_each(|wait| account.add(&wait));
        account.reconcile(&mut capture, exit, 0);
        let losses = &capture.info.losses;
        (
            capture.threads[0].cpu_ns.map(|ns| ns / MS),
            losses.unknown_cpu_ns.map(|ns| ns / MS),
            losses.kernel_cpu_ns.map(|ns| ns / MS),
        )
    }

    #[test]
    fn cpu_time_that_agrees_with_the_kernel_stays() {
        let capture = drawn(&[(100, 900)], &[(0, 5_000), (500, 5_100), (990, 5_180)]);
        assert_eq!(after(capture, None), (Some(200), None, Some(190)));
    }

    #[test]
    fn cpu_time_before_a_thread_was_found_is_not_counted() {
        let (mut capture, readings) = drawn(&[(200, 900)], &[(500, 5_000), (990, 5_090)]);
        (capture.threads[0].start_ns, capture.threads[0].cpu_ns) = (Some(100 * MS), Some(200 * MS));
        let (cpu_ms, unknown_ms, _) = after((capture, readings), None);
        assert_eq!((cpu_ms, unknown_ms), (Some(200), None));
    }

    #[test]
    fn a_thread_gets_no_more_than_the_kernel_charged_it() {
        // It ran for 4 ms; the record of its switch-out was lost.
        let capture = drawn(&[(504, 1_000)], &[(0, 70), (480, 74)]);
        assert_eq!(after(capture, None), (Some(28), Some(476), Some(28)));
    }

    #[test]
    fn a_reading_before_a_program_started_takes_nothing_off() {
        let (mut capture, readings) = drawn(&[], &[(100, 1), (900, 701)]);
        capture.info.start_ns = Some(200 * MS);
        (capture.threads[0].start_ns, capture.threads[0].cpu_ns) = (Some(200 * MS), Some(800 * MS));
        assert_eq!(after((capture, readings), None), (Some(800), None, Some(800)));
    }

    #[test]
    fn a_late_reading_takes_nothing_off_a_program_that_agrees_at_its_exit() {
        // The first 80 ms of the 100 ms until the second reading are missing in it.
        let late = || drawn(&[(100, 900)], &[(0, 0), (500, 20)]);
        let exit = ExitUsage { pid: 40, cpu_ns: 201 * MS };
        assert_eq!(after(late(), Some(exit)), (Some(200), None, Some(201)));
        let (mut lossy, readings) = late();
        lossy.info.losses.lost_records = 1;
        assert_eq!(after((lossy, readings), Some(exit)), (Some(120), Some(80), Some(201)));
        assert_eq!(after(late(), None), (Some(120), Some(80), Some(120)), "there is no account at exit");
    }

    #[test]
    fn threads_whose_ends_were_lost_have_no_more_than_all_cpus() {
        let (mut capture, readings) = drawn(&[], &[(100, 100), (400, 400)]);
        (capture.info.end_ns, capture.info.losses.lost_records) = (Some(1_000 * MS), 9);
        capture.info.machine = Some(Machine { cores: 1, ..Machine::default() });
        let first = capture.threads[0].clone();
        capture.add_thread(Thread { tid: 41, cpu_ns: Some(600 * MS), ..first });
        assert_eq!(after((capture.clone(), readings), None), (Some(676), Some(600), None));
        capture.info.machine = Some(Machine { cores: 2, ..Machine::default() });
        let (_, readings) = drawn(&[], &[(100, 100), (400, 400)]);
        assert_eq!(after((capture, readings), None).1, None, "two CPUs have that much");
    }

    #[test]
    fn the_account_at_exit_is_that_of_the_launched_program() {
        let exit = ExitUsage { pid: 40, cpu_ns: 300 * MS };
        assert_eq!(after(drawn(&[(100, 900)], &[]), Some(exit)), (Some(200), None, Some(300)));
        let other = ExitUsage { pid: 41, ..exit };
        assert_eq!(after(drawn(&[(100, 900)], &[]), Some(other)), (Some(200), None, None));
    }

    #[test]
    fn a_lost_switch_after_the_last_reading_is_found_by_the_account_at_exit() {
        // It ran for 10 ms after the reading at 500 ms; the record of its switch-out was lost.
        let exit = ExitUsage { pid: 40, cpu_ns: 110 * MS };
        let lost = || drawn(&[(100, 500)], &[(0, 70), (500, 170)]);
        assert_eq!(after(lost(), Some(exit)), (Some(110), Some(490), Some(110)));
        let (mut with_child, readings) = lost();
        with_child.add_process(Process { pid: 41, ..Process::default() });
        assert_eq!(after((with_child, readings), Some(exit)).0, Some(600), "others may not be in the account");
    }

    #[test]
    fn an_account_that_misses_many_short_threads_is_not_that_of_all() {
        let with_short_threads = |count: u32| {
            let (mut capture, readings) = drawn(&[(100, 900)], &[(0, 5_000), (990, 5_190)]);
            for tid in 1..=count {
                let (start_ns, end_ns) = (Some(10 * MS), Some(15 * MS));
                capture.add_thread(Thread { tid, start_ns, end_ns, cpu_ns: Some(5 * MS), ..Thread::default() });
            }
            after((capture, readings), None).2
        };
        assert_eq!(with_short_threads(2), Some(210));
        assert_eq!(with_short_threads(200), None);
        let unread = drawn(&[(10, 1_000)], &[]);
        assert_eq!(after(unread, None).2, None, "nothing was read");
    }

    #[test]
    fn hostile_readings_change_nothing_else() {
        let capture = drawn(&[(100, 900)], &[(0, i64::MIN / MS as i64), (u64::MAX / MS, i64::MAX / MS as i64)]);
        assert_eq!(after(capture, None).0, Some(200));
    }
}
