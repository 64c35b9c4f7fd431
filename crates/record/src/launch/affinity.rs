//! CPU affinity of a launched program (`sched_setaffinity(2)`).

use std::io;
use std::mem::{MaybeUninit, size_of};

/// The CPUs that this process may use, ascending.
///
/// # Errors
/// If the kernel has more CPUs than a `cpu_set_t` holds (1024).
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set is as large as stated, and zeroed memory is an empty set.
    let set = unsafe {
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        set.assume_init()
    };
    // SAFETY: the index is below the size of the set.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
}

/// Restricts a thread to these CPUs: this one (0), or a process that has not started its program.
pub(crate) fn restrict(pid: u32, cpus: &[usize]) -> io::Result<()> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: zeroed memory is an empty set, and the indices are below its size.
    let set = unsafe {
        for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*cpu, &mut *set.as_mut_ptr());
        }
        set.assume_init()
    };
    // SAFETY: the set is as large as stated.
    match unsafe { libc::sched_setaffinity(pid as libc::pid_t, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
