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
