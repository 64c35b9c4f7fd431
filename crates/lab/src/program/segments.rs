//! Long recordings in segments, each of which is a capture of its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stepscope_model::disk;
use stepscope_record::session::{Progress, Recording};

use super::ProgramEvent;

/// Starts a new segment at regular intervals.
pub(super) struct Rotation {
    folder: PathBuf,
    every: Duration,
    number: u32,
    since: Instant,
}

impl Rotation {
    /// The recording has started in [the first segment](Self::first).
    pub fn new(folder: &Path, every: Duration) -> Self {
        Self { folder: folder.to_owned(), every, number: 1, since: Instant::now() }
    }

    pub fn first(folder: &Path) -> PathBuf {
        disk::segment(folder, 1)
    }

    /// Starts the next segment if it is time. If that fails, the present one goes on.
    pub fn look(&mut self, recording: &Recording, progress: &Progress, listener: &mut dyn FnMut(ProgramEvent<'_>)) {
        if progress.over || progress.failure.is_some() || self.since.elapsed() < self.every {
            return;
        }
        let ended = disk::segment(&self.folder, self.number);
        // Not from now on: else segments would be longer than they should be.
        self.since += self.every.max(self.since.elapsed() - self.every);
        match recording.rotate(&disk::segment(&self.folder, self.number + 1)) {
            Ok(()) => {
                self.number += 1;
                listener(ProgramEvent::SegmentEnded(&ended));
            }
            Err(error) => listener(ProgramEvent::NotRotated(&error.to_string())),
        }
    }
}
