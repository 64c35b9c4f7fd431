//! A folder for tables of a capture that is not complete yet.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{DiskError, hold_log, remove, replace, write};
use crate::capture::Capture;

/// A folder `.NAME.part-RANDOM` beside the folder of a capture, and thus on the same disk. Each has a name of its own, so that programs
/// that make the same capture do not disturb each other. It is removed when this is dropped; what a killed program left of its own, the
/// next one removes.
#[derive(Debug)]
pub struct PartFolder {
    path: PathBuf,
    /// Locked while the folder is in use.
    _held: File,
}

impl PartFolder {
    /// Makes the folder beside `capture`, which need not exist.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it cannot be made.
    pub fn beside(capture: &Path) -> Result<Self, DiskError> {
        let name = capture.file_name().ok_or(io::ErrorKind::InvalidInput.into()).map_err(DiskError::io(capture))?;
        let parent = match capture.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let stem = format!(".{}.part", name.to_string_lossy());
        fs::create_dir_all(parent).map_err(DiskError::io(parent))?;
        remove_abandoned(parent, &stem);
        Self::in_folder(parent, &stem).map_err(DiskError::io(parent))
    }

    fn in_folder(parent: &Path, stem: &str) -> io::Result<Self> {
        let prefix = format!("{stem}-");
        loop {
            let made = tempfile::Builder::new()
                .prefix(&prefix)
                .rand_bytes(RANDOM_LETTERS)
                .permissions(Permissions::from_mode(0o777))
                .tempdir_in(parent)?;
            // Until it is locked, another program can take it for an abandoned one.
            let Ok(held) = File::open(made.path()) else { continue };
            // Without locks, only what killed programs left stays.
            let _ = held.lock();
            if made.path().exists() {
                return Ok(Self { path: made.keep(), _held: held });
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the capture here, and then puts it into the place of what is in `folder`, in one step. Files there that are not of a
    /// capture stay.
    ///
    /// # Errors
    /// [`DiskError::Busy`] if a recorder writes to `folder`; [`DiskError::Io`].
    pub fn complete(self, capture: &Capture, folder: &Path) -> Result<(), DiskError> {
        write(capture, &self.path)?;
        if renameat_with(CWD, &self.path, CWD, folder, RenameFlags::NOREPLACE).is_ok() {
            return Ok(());
        }
        if let Ok(folder) = folder.canonicalize() {
            let held = hold_log(&folder)?;
            if replace::exchange(&self.path, &folder).is_ok() {
                // From here on the path is that of the old capture.
                drop(held);
                remove(&self.path)?;
                return replace::keep_other_files(&self.path, &folder).map_err(DiskError::io(&folder));
            }
        }
        // Some file systems cannot exchange folders, or the folder is a link to another one.
        remove(folder)?;
        write(capture, folder)
    }
}

/// Letters and digits that make the name of a folder its own.
const RANDOM_LETTERS: usize = 8;

/// Removes what killed programs left. What cannot be removed harms nobody.
fn remove_abandoned(parent: &Path, stem: &str) {
    let is_random = |rest: &str| rest.len() == RANDOM_LETTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(stem)?.strip_prefix('-'));
        if !rest.is_some_and(is_random) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if folder.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for PartFolder {
    fn drop(&mut self) {
        // A folder that stays is removed by the next import.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::read;

    fn entries(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_program_left_is_removed_and_so_is_the_folder_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let capture = folder.path().join("robot.capture");
        let left = folder.path().join(".robot.capture.part-a1B2c3D4");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("scopes.parquet"), "half").unwrap();
        fs::create_dir(folder.path().join(".robot.capture.part-other")).unwrap();
        let part = PartFolder::beside(&capture).unwrap();
        assert!(!left.exists());
        assert_eq!(fs::read_dir(part.path()).unwrap().count(), 0);
        drop(part);
        assert_eq!(entries(folder.path()), [".robot.capture.part-other"]);
    }

    #[test]
    fn two_programs_that_make_one_capture_have_folders_of_their_own_and_the_last_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("robot.capture");
        let (first, second) = (PartFolder::beside(&place).unwrap(), PartFolder::beside(&place).unwrap());
        fs::write(first.path().join("scopes.parquet"), "half").unwrap();
        assert!(first.path() != second.path() && entries(second.path()).is_empty());
        let named = |name: &str| {
            let mut capture = Capture::default();
            capture.info.scenario = Some(name.to_owned());
            capture
        };
        second.complete(&named("second"), &place).unwrap();
        assert_eq!(read(&place).unwrap().info.scenario.as_deref(), Some("second"));
        fs::write(place.join("notes.txt"), "of the user").unwrap();
        first.complete(&named("first"), &place).unwrap();
        assert_eq!(read(&place).unwrap().info.scenario.as_deref(), Some("first"));
        assert_eq!(fs::read_to_string(place.join("notes.txt")).unwrap(), "of the user");
        assert_eq!(entries(folder.path()), ["robot.capture"]);
    }
}
