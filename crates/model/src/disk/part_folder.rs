//! A folder for tables of a capture that is not complete yet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::DiskError;

/// A folder `.NAME.part` beside the folder of a capture, and thus on the same disk. It is removed when this is dropped; what a killed
/// program left of it, the next one removes.
#[derive(Debug)]
pub struct PartFolder(PathBuf);

impl PartFolder {
    /// Makes the folder beside `capture`, which need not exist.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it cannot be made.
    pub fn beside(capture: &Path) -> Result<Self, DiskError> {
        let name = capture.file_name().ok_or(io::ErrorKind::InvalidInput.into()).map_err(DiskError::io(capture))?;
        let part = capture.with_file_name(format!(".{}.part", name.to_string_lossy()));
        match fs::remove_dir_all(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(DiskError::io(&part)(error)),
            _ => {}
        }
        fs::create_dir_all(&part).map_err(DiskError::io(&part))?;
        Ok(Self(part))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PartFolder {
    fn drop(&mut self) {
        // A folder that stays is removed by the next import.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_program_left_is_removed_and_so_is_the_folder_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let capture = folder.path().join("robot.capture");
        let left = folder.path().join(".robot.capture.part");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("scopes.parquet"), "half").unwrap();
        let part = PartFolder::beside(&capture).unwrap();
        assert_eq!(part.path(), left);
        assert_eq!(fs::read_dir(part.path()).unwrap().count(), 0);
        drop(part);
        assert!(!left.exists() && !capture.exists());
    }
}
