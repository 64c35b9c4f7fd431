//! What a program prints, read while it runs.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::LaunchError;

/// Called with each line of output, without its end.
pub type LineWatcher = Box<dyn FnMut(&str) + Send>;

/// Longest line that is kept; the rest of a longer one is dropped from the kept lines (not from the copy).
const LINE_BYTES: usize = 16 << 10;

/// The last lines that a program printed. A handle: clones see the same lines.
#[derive(Debug, Clone)]
pub struct LastLines {
    shared: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    keep: usize,
    complete: VecDeque<String>,
    begun: Vec<u8>,
    /// Bytes taken from the pipe so far.
    bytes: u64,
    copy_error: Option<String>,
}

impl LastLines {
    fn new(keep: usize) -> Self {
        Self { shared: Arc::new(Mutex::new(Lines { keep, ..Lines::default() })) }
    }

    /// A panic of a watcher does not make the lines wrong.
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines, oldest first, and what stands of a line that is not finished.
    pub fn snapshot(&self) -> Vec<String> {
        let lines = self.lock();
        let begun = (!lines.begun.is_empty()).then(|| String::from_utf8_lossy(&lines.begun).into_owned());
        let mut all: Vec<String> = lines.complete.iter().cloned().chain(begun).collect();
        all.drain(..all.len().saturating_sub(lines.keep));
        all
    }

    /// Why the copy of the output stops short, if it does (a full disk, say).
    pub fn copy_error(&self) -> Option<String> {
        self.lock().copy_error.clone()
    }
}

impl Lines {
    fn finish_line(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
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
        let free = LINE_BYTES.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&bytes[..bytes.len().min(free)]);
    }
}

/// A pipe whose writing end a program will get.
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

    /// Begins to read, on a thread of its own: a program must never wait because nobody takes what it prints.
    pub(super) fn start(self) -> Result<Capturing, LaunchError> {
        let system = |source| LaunchError::System { what: "read the program's output", source };
        let pipe = self.pipe.try_clone().map_err(system)?;
        let lines = self.lines.clone();
        let thread = std::thread::Builder::new().name("output".into()).spawn(|| self.run()).map_err(system)?;
        Ok(Capturing { lines, pipe, thread: Some(thread) })
    }

    fn run(mut self) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => self.take(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if !self.lines.lock().begun.is_empty() {
            self.end_line();
        }
    }

    fn take(&mut self, bytes: &[u8]) {
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
        self.lines.lock().bytes += bytes.len() as u64;
    }

    /// The watcher is called without the lock, so that it may ask for the last lines.
    fn end_line(&mut self) {
        let line = self.lines.lock().finish_line();
        if let Some(watch) = &mut self.watch {
            watch(&line);
        }
    }
}

/// Output being read.
#[derive(Debug)]
pub(super) struct Capturing {
    lines: LastLines,
    pipe: PipeReader,
    thread: Option<JoinHandle<()>>,
}

impl Capturing {
    pub(super) fn last_lines(&self) -> &LastLines {
        &self.lines
    }

    /// Waits until what was printed so far is read: until the pipe is empty, or its end is reached. At most so long,
    /// as a process that prints without pause may have survived.
    pub(super) fn catch_up(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let is_finished = || self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        while !is_finished() && Instant::now() < deadline {
            let before = self.lines.lock().bytes;
            let waiting = self.waiting_bytes();
            std::thread::sleep(Duration::from_millis(2));
            // Nothing was there, and nothing that the thread had in its hands came in meanwhile.
            if waiting == 0 && self.lines.lock().bytes == before {
                return;
            }
        }
    }

    fn waiting_bytes(&self) -> i32 {
        let mut count = 0;
        // SAFETY: FIONREAD writes one int.
        unsafe { libc::ioctl(self.pipe.as_raw_fd(), libc::FIONREAD, &mut count) };
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(keep: usize, chunks: &[&[u8]]) -> (Vec<String>, Vec<String>) {
        let (tell, told) = std::sync::mpsc::channel();
        let watch: LineWatcher = Box::new(move |line| tell.send(line.to_owned()).unwrap());
        let (capture, write_end) = Capture::new(keep, None, Some(watch)).unwrap();
        let mut write_end = File::from(write_end);
        let capturing = capture.start().unwrap();
        for chunk in chunks {
            write_end.write_all(chunk).unwrap();
        }
        drop(write_end);
        let watched = told.iter().collect();
        capturing.catch_up(Duration::from_secs(10));
        (capturing.last_lines().snapshot(), watched)
    }

    #[test]
    fn the_last_lines_are_kept_and_all_are_seen() {
        let (kept, seen) = captured(2, &[b"one\ntwo\nth", b"ree\n\nfive"]);
        assert_eq!(kept, ["", "five"]);
        assert_eq!(seen, ["one", "two", "three", "", "five"]);
    }

    #[test]
    fn bytes_that_are_not_utf8_and_windows_line_ends_are_made_readable() {
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
    fn a_line_that_is_not_finished_is_shown_too() {
        let (capture, write_end) = Capture::new(2, None, None).unwrap();
        let mut write_end = File::from(write_end);
        let capturing = capture.start().unwrap();
        write_end.write_all(b"a\nb\nEnter the name: ").unwrap();
        while capturing.last_lines().snapshot() != ["b", "Enter the name: "] {
            std::thread::yield_now();
        }
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
        let capturing = capture.start().unwrap();
        write_end.write_all(b"a\n").unwrap();
        drop(write_end);
        capturing.catch_up(Duration::from_secs(10));
        assert_eq!(capturing.last_lines().snapshot(), ["a"]);
        assert!(capturing.last_lines().copy_error().unwrap().contains("space"));
    }
}
