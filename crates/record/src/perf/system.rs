//! The system calls of perf events, and the CPUs to open them on.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::bindings::perf_event_attr;
use perf_event_open_sys::{ioctls, perf_event_open};

/// Opens an event of a thread (-1: of every thread) on a CPU.
pub(crate) fn open_event(attr: &mut perf_event_attr, target: i32, cpu: i32) -> io::Result<File> {
    open_with(attr, target, cpu, -1)
}

/// The same as a member of the group that another event leads.
pub(super) fn open_member(attr: &mut perf_event_attr, target: i32, cpu: i32, leader: &File) -> io::Result<File> {
    open_with(attr, target, cpu, leader.as_raw_fd())
}

fn open_with(attr: &mut perf_event_attr, target: i32, cpu: i32, leader: RawFd) -> io::Result<File> {
    // SAFETY: `attr` is initialised, its size set; the kernel reads no further.
    let fd = unsafe { perf_event_open(attr, target, cpu, leader, sys::PERF_FLAG_FD_CLOEXEC as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Makes an event write to the ring of another one.
pub(super) fn set_output(event: &File, leader: RawFd) -> io::Result<()> {
    // SAFETY: both are open events of one CPU.
    if unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), leader) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The number that the kernel gave an event.
pub(super) fn id_of(event: &File) -> io::Result<u64> {
    let mut id = 0;
    // SAFETY: the event is open, and `id` outlives the call.
    if unsafe { ioctls::ID(event.as_raw_fd(), &mut id) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(id)
}

/// The CPUs that are online.
pub(super) fn online_cpus() -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    parse_cpus(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// `0-3,8` and the like.
fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    let ranges: Option<Vec<_>> = (text.trim().split(','))
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .collect();
    Some(ranges?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn online_cpus_are_listed_as_ranges() {
        assert_eq!(parse_cpus("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse_cpus("none"), None);
    }
}
