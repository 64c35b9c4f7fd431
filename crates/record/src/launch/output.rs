//! A program's output, read while it runs.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::LaunchError;
use super::keeper::wait_readable;

/// Called with each line of output, without its newline.
pub type LineWatcher = Box<dyn FnMut(&str) + Send>;

/// Longest line that is kept; the rest of a longer line is dropped from the kept lines (not from the copy).
const LINE_BYTES: usize = 16 << 10;

/// Guards [`OutputReader::catch_up`] against a watcher or a disk that never returns.
const CATCH_UP_GUARD: Duration = Duration::from_secs(10);

/// The last lines that a program printed. Clones share the same lines.
#[derive(Debug, Clone)]
pub struct LastLines {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    lines: Mutex<Lines>,
    /// Notified when bytes were processed, and at the end of the output.
    processed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    keep: usize,
    complete: VecDeque<String>,
    unfinished: Vec<u8>,
    /// Bytes read from the pipe. The pipe is only read under the lock, so this and the pipe are consistent there.
    read_bytes: u64,
    /// Bytes of these that are in the lines, and were passed to the watcher and the copy.
    processed_bytes: u64,
    at_end: bool,
    copy_error: Option<String>,
}

impl LastLines {
    fn new(keep: usize) -> Self {
        let lines = Mutex::new(Lines { keep, ..Lines::default() });
        Self { shared: Arc::new(Shared { lines, ..Shared::default() }) }
    }

    /// A watcher that panics does not make the lines wrong.
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines, oldest first, including an unfinished last line.
    pub fn snapshot(&self) -> Vec<String> {
        let lines = self.lock();
        let unfinished =
            (!lines.unfinished.is_empty()).then(|| String::from_utf8_lossy(&lines.unfinished).into_owned());
        let mut all: Vec<String> = lines.complete.iter().cloned().chain(unfinished).collect();
        all.drain(..all.len().saturating_sub(lines.keep));
        all
    }

    /// Why the copy of the output is incomplete, if it is (a full disk, say).
    pub fn copy_error(&self) -> Option<String> {
        self.lock().copy_error.clone()
    }
}

impl Lines {
    fn finish_line(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.unfinished);
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let line = String::from_utf8_lossy(&bytes).into_owned();
        self.complete.push_back(line.clone());
        if self.complete.len() > self.keep {
            self.complete.pop_front();
        }
        line
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        let free = LINE_BYTES.saturating_sub(self.unfinished.len());
        self.unfinished.extend_from_slice(&bytes[..bytes.len().min(free)]);
    }
}

/// A pipe whose writing end goes to a program.
pub(super) struct Capture {
    pipe: PipeReader,
    lines: LastLines,
    copy: Option<File>,
    watch: Option<LineWatcher>,
}

impl Capture {
    pub(super) fn new(
        keep_lines: usize,
        copy: Option<File>,
        watch: Option<LineWatcher>,
    ) -> Result<(Self, OwnedFd), LaunchError> {
        let (pipe, write_end) = io::pipe().map_err(|source| LaunchError::System { what: "make a pipe", source })?;
        Ok((Self { pipe, lines: LastLines::new(keep_lines), copy, watch }, write_end.into()))
    }

    /// Starts a thread that reads, so that the program never blocks on a full pipe.
    pub(super) fn start(self) -> Result<OutputReader, LaunchError> {
        let system = |source| LaunchError::System { what: "read the program's output", source };
        let pipe = self.pipe.try_clone().map_err(system)?;
        let lines = self.lines.clone();
        std::thread::Builder::new().name("output".into()).spawn(|| self.run()).map_err(system)?;
        Ok(OutputReader { lines, pipe })
    }

    fn run(mut self) {
        // Also when a watcher panics: nobody may wait for this thread then.
        let _end = MarkEnd(self.lines.clone());
        let mut buffer = vec![0; 64 << 10];
        loop {
            // Without bytes, the read would block while it holds the lock.
            if !wait_readable(self.pipe.as_raw_fd(), Duration::MAX) {
                continue;
            }
            let mut lines = self.lines.lock();
            match self.pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    lines.read_bytes += count as u64;
                    drop(lines);
                    self.process(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if !self.lines.lock().unfinished.is_empty() {
            self.end_line();
        }
    }

    fn process(&mut self, bytes: &[u8]) {
        if let Some(copy) = &mut self.copy
            && let Err(error) = copy.write_all(bytes)
        {
            self.lines.lock().copy_error = Some(error.to_string());
            self.copy = None;
        }
        let mut parts = bytes.split(|&byte| byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.lines.lock().extend_line(part);
            if parts.peek().is_some() {
                self.end_line();
            }
        }
        self.lines.lock().processed_bytes += bytes.len() as u64;
        self.lines.shared.processed.notify_all();
    }

    /// Calls the watcher without the lock, so that it may ask for the last lines.
    fn end_line(&mut self) {
        let line = self.lines.lock().finish_line();
        if let Some(watch) = &mut self.watch {
            watch(&line);
        }
    }
}

/// Marks the end of the output when it is dropped.
struct MarkEnd(LastLines);

impl Drop for MarkEnd {
    fn drop(&mut self) {
        self.0.lock().at_end = true;
        self.0.shared.processed.notify_all();
    }
}

/// A program's output while a thread reads it.
#[derive(Debug)]
pub(super) struct OutputReader {
    lines: LastLines,
    pipe: PipeReader,
}

impl OutputReader {
    pub(super) fn last_lines(&self) -> &LastLines {
        &self.lines
    }

    /// Waits until everything printed before this call is processed. What is printed meanwhile does not count, so this
    /// also returns while a process keeps printing.
    pub(super) fn catch_up(&self) {
        let lines = self.lines.lock();
        let printed = lines.read_bytes + self.bytes_in_pipe();
        let behind = |lines: &mut Lines| !lines.at_end && lines.processed_bytes < printed;
        drop(self.lines.shared.processed.wait_timeout_while(lines, CATCH_UP_GUARD, behind));
    }

    fn bytes_in_pipe(&self) -> u64 {
        let mut count = 0;
        // SAFETY: FIONREAD writes one int.
        unsafe { libc::ioctl(self.pipe.as_raw_fd(), libc::FIONREAD, &mut count) };
        u64::try_from(count).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kept lines and the lines that the watcher saw.
    fn captured(keep: usize, chunks: &[&[u8]]) -> (Vec<String>, Vec<String>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let watch: LineWatcher = Box::new(move |line| sender.send(line.to_owned()).unwrap());
        let (capture, write_end) = Capture::new(keep, None, Some(watch)).unwrap();
        let mut write_end = File::from(write_end);
        let reader = capture.start().unwrap();
        for chunk in chunks {
            write_end.write_all(chunk).unwrap();
        }
        drop(write_end);
        let watched = receiver.iter().collect();
        reader.catch_up();
        (reader.last_lines().snapshot(), watched)
    }

    #[test]
    fn the_last_lines_are_kept_and_the_watcher_sees_all() {
        let (kept, seen) = captured(2, &[b"one\ntwo\nth", b"ree\n\nfive"]);
        assert_eq!(kept, ["", "five"]);
        assert_eq!(seen, ["one", "two", "three", "", "five"]);
    }

    #[test]
    fn invalid_utf8_and_windows_line_ends_are_made_readable() {
        let (kept, _) = captured(9, &[b"a\xffb\r\n", "żółw\n".as_bytes()]);
        assert_eq!(kept, ["a\u{fffd}b", "żółw"]);
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let (kept, seen) = captured(3, &[&vec![b'x'; 300_000], b"\nnext\n"]);
        assert_eq!(kept[0].len(), LINE_BYTES);
        assert_eq!((kept[1].as_str(), seen.len()), ("next", 2));
    }

    #[test]
    fn everything_printed_before_a_call_is_in_the_lines_and_an_unfinished_line_too() {
        let (capture, write_end) = Capture::new(2, None, None).unwrap();
        let mut write_end = File::from(write_end);
        let reader = capture.start().unwrap();
        for (text, expected) in [("a\nb\n", ["a", "b"]), ("Enter the name: ", ["b", "Enter the name: "])] {
            write_end.write_all(text.as_bytes()).unwrap();
            reader.catch_up();
            assert_eq!(reader.last_lines().snapshot(), expected);
        }
    }

    #[test]
    fn a_watcher_that_panics_delays_no_other_reader() {
        let (capture, write_end) = Capture::new(2, None, Some(Box::new(|_| panic!("on purpose")))).unwrap();
        let mut write_end = File::from(write_end);
        let reader = capture.start().unwrap();
        write_end.write_all(b"a\nb\n").unwrap();
        reader.catch_up();
        assert!(reader.last_lines().lock().at_end);
    }

    #[test]
    fn a_copy_that_cannot_be_written_is_reported_and_the_lines_go_on() {
        if !std::path::Path::new("/dev/full").exists() {
            println!("skipped: a_copy_that_cannot_be_written_is_reported_and_the_lines_go_on: no /dev/full");
            return;
        }
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (capture, write_end) = Capture::new(2, Some(full), None).unwrap();
        let mut write_end = File::from(write_end);
        let reader = capture.start().unwrap();
        write_end.write_all(b"a\n").unwrap();
        drop(write_end);
        reader.catch_up();
        assert_eq!(reader.last_lines().snapshot(), ["a"]);
        assert!(reader.last_lines().copy_error().unwrap().contains("space"));
    }
}
