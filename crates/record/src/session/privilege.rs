//! Privileges of the recorder: more file descriptors, and priority on the CPU.

/// Raises the limit on open files: each event needs a descriptor per CPU and thread, and the soft limit is often 1024.
pub fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives both calls; raising the soft limit to the hard one needs no rights.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Raises the priority of the present thread until it is dropped, for a thread that only waits: with more runnable threads
/// than CPUs, it would otherwise end a recording half a second late.
pub(super) struct Urgent {
    raised: bool,
}

impl Urgent {
    pub fn new() -> Self {
        // SAFETY: takes numbers; 0 means this thread.
        let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let is_ordinary = policy == libc::c_long::from(libc::SCHED_OTHER);
        Self { raised: is_ordinary && set_scheduler(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1) }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if !self.raised {
            return;
        }
        // A user with a limit instead of a capability may not take the flag back.
        let _ = set_scheduler(libc::SCHED_OTHER, 0) || set_scheduler(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0);
    }
}

/// Sets the policy of the present thread. By the system call: musl's function does nothing.
fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> bool {
    // SAFETY: the kernel's parameter is one integer, which outlives the call; 0 means this thread.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

/// Lets everything else run first: for work beside a recording, on the CPUs of the recorded program. Call it before the process
/// starts threads.
///
/// With the priority 10 it has a tenth of a CPU that an ordinary thread wants too. With 19, the lowest, a busy machine would starve it: a live view
/// showed nothing for minutes.
pub fn lower_priority() {
    // SAFETY: takes numbers; 0 means this thread. A lower priority needs no rights.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

/// Gives the present thread about half of a CPU, however many threads want it: for work beside a program that goes on, and for which
/// somebody waits. With ordinary priority beside 200 busy threads, it would have a hundredth of a CPU, and take minutes for a second of
/// work. Call it again when the work begins, because the load may have changed.
///
/// Returns how many threads want each CPU if they are many and this user may not raise the priority.
pub fn take_half_of_a_cpu() -> Option<u64> {
    /// With fewer, the work does not take much longer.
    const MANY: f64 = 4.0;
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let others = (runnable(&text)?.saturating_sub(1)) as f64 / cpus as f64;
    let wanted = nice_against(others);
    // SAFETY: takes and gives numbers; 0 means this thread.
    let present = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // A user who lowered the priority wants it so.
    if wanted >= present || present > 0 {
        return None;
    }
    // SAFETY: as above.
    let is_raised = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, wanted) } == 0;
    (!is_raised && others >= MANY).then_some(others as u64)
}

/// The runnable threads of the machine, from `/proc/loadavg`.
fn runnable(loadavg: &str) -> Option<u64> {
    loadavg.split(' ').nth(3)?.split_once('/')?.0.parse().ok()
}

/// The priority at which one thread has as much of a CPU as this many ordinary ones together. Each step counts 1.25 times as much.
fn nice_against(others: f64) -> i32 {
    (-(others.max(1.0).ln() / 1.25_f64.ln()).ceil()).max(-20.0) as i32
}

/// How the recorder competes for CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    /// With real-time priority, before ordinary programs.
    Raised,
    /// With ordinary priority, because this user may not raise it.
    Ordinary,
}

/// Gives the thread real-time priority, so that it keeps up with programs that use every CPU.
///
/// With ordinary priority, even a raised one, it waited up to 20 ms for a CPU on a busy machine, and rings overflowed.
/// It needs little CPU time. What it starts has ordinary priority again.
pub(super) fn raise_priority() -> Priority {
    let real_time = set_scheduler(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1);
    // SAFETY: takes numbers; 0 means this thread.
    match real_time || unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) } == 0 {
        true => Priority::Raised,
        false => Priority::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_counts_as_much_as_all_others() {
        let of: Vec<i32> = [0.0, 1.0, 2.0, 7.0, 56.0, 1e9].map(nice_against).to_vec();
        assert_eq!(of, [0, 0, -4, -9, -19, -20]);
        assert_eq!(runnable("14.53 9.81 5.04 113/412 23371\n"), Some(113));
        assert_eq!(runnable("14.53"), None);
    }
}
