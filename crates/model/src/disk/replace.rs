//! Replaces a capture: readers find the old one or the new one, whenever the writer is stopped.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{DiskError, FILES_FOLDER, INFO_FILE, RAW_LOG_FILE, table_files, write};
use crate::capture::Capture;

/// Writes `capture` in place of the one in `folder`. The folder keeps its mode, its owner, and the files that are not of
/// the capture.
///
/// The new capture is written beside the folder. Then the two folders exchange their names, in one step.
///
/// # Errors
/// [`DiskError::Io`]. The old capture is then untouched.
pub fn replace(capture: &Capture, folder: &Path) -> Result<(), DiskError> {
    let folder = &folder.canonicalize().map_err(DiskError::io(folder))?;
    let parent = folder.parent().ok_or_else(|| DiskError::io(folder)(io::ErrorKind::InvalidInput.into()))?;
    let new = tempfile::Builder::new().prefix(".").suffix(".part").tempdir_in(parent).map_err(DiskError::io(parent))?;
    write(capture, new.path())?;
    exchange(new.path(), folder)?;
    // From here on `new` is the path of the old capture.
    keep_other_files(new.path(), folder).map_err(DiskError::io(folder))
}

/// Exchanges a new capture and an old one, in one step. The folder of the new one gets the mode and the owner of the old one.
pub(super) fn exchange(new: &Path, folder: &Path) -> Result<(), DiskError> {
    prepare(new, folder).map_err(DiskError::io(new))?;
    renameat_with(CWD, new, CWD, folder, RenameFlags::EXCHANGE)
        .map_err(|error| DiskError::io(folder)(cannot_exchange(&error.into())))
}

fn cannot_exchange(error: &io::Error) -> io::Error {
    let message =
        format!("its folder cannot be exchanged for a new one ({error}); copy the capture, and name the copy");
    io::Error::new(error.kind(), message)
}

/// Gives the new folder the mode and owner of the old one, and waits until its files are on the disk.
fn prepare(new: &Path, old: &Path) -> io::Result<()> {
    let (is, becomes) = (fs::metadata(new)?, fs::metadata(old)?);
    let other_owner = (is.uid(), is.gid()) != (becomes.uid(), becomes.gid());
    for entry in fs::read_dir(new)? {
        let path = entry?.path();
        if other_owner {
            // Only root may, and who else can write here has no need to.
            let _ = chown(&path, Some(becomes.uid()), Some(becomes.gid()));
        }
        File::open(&path)?.sync_all()?;
    }
    if other_owner {
        let _ = chown(new, Some(becomes.uid()), Some(becomes.gid()));
    }
    fs::set_permissions(new, becomes.permissions())?;
    File::open(new)?.sync_all()
}

/// Moves what is not of the capture.
pub(super) fn keep_other_files(old: &Path, new: &Path) -> io::Result<()> {
    let of_capture =
        |name: &str| [INFO_FILE, RAW_LOG_FILE, FILES_FOLDER].contains(&name) || table_files().any(|file| file == name);
    for entry in fs::read_dir(old)? {
        let name = entry?.file_name();
        if !of_capture(&name.to_string_lossy()) {
            fs::rename(old.join(&name), new.join(&name))?;
        }
    }
    Ok(())
}
