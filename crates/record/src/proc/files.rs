//! Reads many small files of `/proc` without allocating for each.

use std::ffi::CStr;
use std::io::{self, Write};

/// A path and a text that are reused from file to file.
#[derive(Debug, Default)]
pub(super) struct Files {
    path: Vec<u8>,
    text: Vec<u8>,
}

impl Files {
    /// The text of a file of a process: `/proc/PID/FILE`.
    pub(super) fn of_process(&mut self, pid: u32, file: &str) -> io::Result<&[u8]> {
        self.path.clear();
        write!(self.path, "/proc/{pid}/{file}")?;
        self.read()
    }

    /// The text of a file of a thread: `/proc/PID/task/TID/FILE`.
    pub(super) fn of_thread(&mut self, pid: u32, tid: u32, file: &str) -> io::Result<&[u8]> {
        self.path.clear();
        write!(self.path, "/proc/{pid}/task/{tid}/{file}")?;
        self.read()
    }

    /// The process id that was given out last in our namespace, to whatever process or thread: the last field of
    /// `/proc/loadavg`. While it stays the same, no process or thread has started anywhere, and there are no new ones
    /// to find. (It could only come round to the same number if every other id were used in between.)
    pub(super) fn newest_pid(&mut self) -> Option<u32> {
        self.path.clear();
        self.path.extend_from_slice(b"/proc/loadavg");
        super::stat::numbers(self.read().ok()?).last()
    }

    /// One `read` after another until the end: the kernel generates these texts at each `open`.
    fn read(&mut self) -> io::Result<&[u8]> {
        self.path.push(0);
        let path = CStr::from_bytes_with_nul(&self.path).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the path ends in NUL; the descriptor is owned by nobody else and closed below.
        let fd = check(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) } as isize)? as i32;
        let mut length = 0;
        let result = loop {
            if self.text.len() < length + 4096 {
                self.text.resize(length + 8192, 0);
            }
            let free = &mut self.text[length..];
            // SAFETY: `free` is valid for writes of its length.
            match check(unsafe { libc::read(fd, free.as_mut_ptr().cast(), free.len()) }) {
                Ok(0) => break Ok(()),
                Ok(count) => length += count as usize,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        // SAFETY: `fd` was opened above.
        unsafe { libc::close(fd) };
        result.map(|()| &self.text[..length])
    }
}

fn check(result: isize) -> io::Result<isize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_longer_than_the_buffer_is_read_whole() {
        let mut files = Files::default();
        let length = files.of_process(std::process::id(), "smaps").unwrap().len();
        assert!(length > 8192, "{length}");
        let stat = files.of_process(std::process::id(), "stat").unwrap();
        assert!(stat.ends_with(b"\n") && stat.len() < 1000, "nothing of the longer text is left");
    }

    #[test]
    fn the_newest_pid_changes_when_a_thread_begins() {
        let mut files = Files::default();
        let before = files.newest_pid().unwrap();
        std::thread::spawn(|| {}).join().unwrap();
        assert_ne!(files.newest_pid().unwrap(), before);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert_eq!(Files::default().of_process(0, "stat").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
