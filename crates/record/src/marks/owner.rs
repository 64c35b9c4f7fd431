//! Which process a segment belongs to, and whether it has ended.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::proc;

/// Every segment's name begins so; then come the process id, a dash, and a number that is nobody else's.
const PREFIX: &str = "stepscope-marks-";

/// The process that made a segment, by the file's name.
pub fn pid_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

/// In which namespace our process ids mean what they say.
pub fn pid_namespace() -> Option<u64> {
    Some(fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

/// Whether the process that had this id and started then has ended.
pub fn has_ended(pid: u32, start_ticks: u64) -> bool {
    match proc::stat(pid) {
        Err(_) => true,
        Ok(stat) if stat.start_ticks != start_ticks => true,
        Ok(stat) => stat.process_has_ended(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segments_name_has_the_pid() {
        assert_eq!(pid_of("stepscope-marks-4711-00ff00ff00ff00ff"), Some(4711));
        for other in ["stepscope-marks-", "stepscope-marks-x-1", "stepscope-marks-4711", "sem.4711-1"] {
            assert_eq!(pid_of(other), None, "{other}");
        }
    }
}
