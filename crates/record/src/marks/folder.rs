//! Where segments are found.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::layout::{HEADER_BYTES, Layout, Recorder};
use super::owner::{has_ended, pid_namespace, pid_of};

/// A folder's modification time advances in kernel ticks. A second change within this time of the first may not show.
const UNSURE: Duration = Duration::from_millis(50);

/// The folder with the segments of all processes, looked at only when something in it has changed.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    changed: Option<(i64, i64)>,
}

impl Folder {
    /// The one where programs put them.
    pub fn shared_memory() -> Self {
        Self::at(Path::new("/dev/shm"))
    }

    /// Any folder.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), changed: None }
    }

    /// All segments, if any may have come since the last time.
    pub fn look(&mut self) -> Option<Vec<(u32, PathBuf)>> {
        let metadata = fs::metadata(&self.path).ok()?;
        let changed = (metadata.mtime(), metadata.mtime_nsec());
        if self.changed == Some(changed) && !is_recent(changed) {
            return None;
        }
        self.changed = Some(changed);
        self.list().ok()
    }

    fn list(&self) -> io::Result<Vec<(u32, PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)?.flatten() {
            if let Some(pid) = entry.file_name().to_str().and_then(pid_of) {
                found.push((pid, entry.path()));
            }
        }
        Ok(found)
    }

    /// Removes what processes left that died without a recorder, or with one that died as well.
    pub fn sweep(&self) {
        for (pid, path) in self.list().unwrap_or_default() {
            if !crate::proc::exists(pid) && is_abandoned(&path) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn is_recent((seconds, nanoseconds): (i64, i64)) -> bool {
    let since = Duration::new(seconds.max(0) as u64, nanoseconds.max(0) as u32);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A time in the future is that of a clock that was set back.
    now.checked_sub(since).is_none_or(|age| age < UNSURE)
}

fn is_abandoned(path: &Path) -> bool {
    use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let Ok(file) = fs::OpenOptions::new().read(true).custom_flags(flags).open(path) else { return false };
    let mut header = [0; HEADER_BYTES];
    let read = file.read_at(&mut header, 0).unwrap_or(0);
    // One that was never completed belongs to the process of its name, which is gone.
    let Ok(layout) = Layout::parse(&header[..read]) else { return true };
    let recorder = Recorder::parse(&header);
    Some(layout.pid_namespace) == pid_namespace()
        && has_ended(layout.pid, layout.start_ticks)
        && (!recorder.recording || !crate::proc::exists(recorder.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = Folder::at(folder.path());
        assert_eq!(watched.look(), Some(Vec::new()));
        let segment = folder.path().join("stepscope-marks-7-0");
        fs::write(&segment, "").unwrap();
        assert_eq!(watched.look(), Some(vec![(7, segment)]));
        std::thread::sleep(UNSURE * 2);
        assert_eq!(watched.look(), None);
    }

    #[test]
    fn incomplete_segments_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let dead = folder.path().join("stepscope-marks-4194305-0");
        let ours = folder.path().join(format!("stepscope-marks-{}-0", std::process::id()));
        for path in [&dead, &ours] {
            fs::write(path, "").unwrap();
        }
        Folder::at(folder.path()).sweep();
        assert!(!dead.exists() && ours.exists());
    }
}
