//! Segments of a recording that goes on: each is finished by a process of its own, beside the recorder.

use std::collections::VecDeque;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use stepscope_model::disk;

use crate::failure::Failure;

/// Finishes segments one after the other, with low priority, and removes the oldest.
#[derive(Debug)]
pub struct Segments {
    recording: PathBuf,
    /// How many are kept beside the one that is recorded; all if `None`.
    keep: Option<usize>,
    waiting: VecDeque<PathBuf>,
    running: Option<(PathBuf, Child)>,
    failed: Vec<PathBuf>,
}

impl Segments {
    pub fn new(recording: &Path, keep: Option<usize>) -> Self {
        let (waiting, failed) = (VecDeque::new(), Vec::new());
        Self { recording: recording.to_owned(), keep, waiting, running: None, failed }
    }

    /// A segment's log is complete.
    pub fn add(&mut self, segment: &Path) {
        self.waiting.push_back(segment.to_owned());
        self.remove_oldest();
    }

    /// Starts to finish the next segment, if none is being finished. Call it often.
    pub fn look(&mut self) {
        if let Some((segment, child)) = &mut self.running {
            match child.try_wait() {
                Ok(None) => return,
                Ok(Some(status)) if status.success() => {}
                _ => self.failed.push(std::mem::take(segment)),
            }
            self.running = None;
            self.remove_oldest();
        }
        let Some(segment) = self.waiting.pop_front() else { return };
        match finish(&segment) {
            Ok(child) => self.running = Some((segment, child)),
            Err(_) => self.failed.push(segment),
        }
    }

    /// Finishes all segments, and gives those that are left. Fails if some could not be finished.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, Failure> {
        while self.running.is_some() || !self.waiting.is_empty() {
            if let Some((_, child)) = &mut self.running {
                let _ = child.wait();
            }
            self.look();
        }
        self.remove_oldest();
        self.failed.retain(|segment| segment.exists());
        match self.failed.first() {
            None => Ok(disk::segments(&self.recording)),
            Some(segment) => Err(Failure::Failed(format!(
                "{} of the segments could not be finished, first {}; their logs are kept: make room, then `stepscope recover {}`",
                self.failed.len(),
                segment.display(),
                self.recording.display()
            ))),
        }
    }

    /// Removes all but the last segments. While one is being finished, later ones stay too, so that no gap is left.
    fn remove_oldest(&mut self) {
        let Some(keep) = self.keep else { return };
        let segments = disk::segments(&self.recording);
        let excess = segments.len().saturating_sub(keep + 1);
        for segment in &segments[..excess] {
            let is_running = self.running.as_ref().is_some_and(|(running, _)| running == segment);
            if is_running || disk::remove_segment(segment).is_err() {
                return;
            }
            self.waiting.retain(|waiting| waiting != segment);
        }
    }
}

/// Makes the capture of a segment's log in another process. It survives a Ctrl-C and the end of the recorder.
fn finish(segment: &Path) -> io::Result<Child> {
    // The path of the program may lead to another one by now.
    Command::new("/proc/self/exe")
        .args(["recover", "--background"])
        .arg(segment)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}
