//! The raw log in a capture's folder belongs to one process at a time: its recorder, or who makes the capture of it.
//!
//! The lock is that of `flock(2)`. The kernel removes it when the last descriptor of the opened file is closed, also after
//! `kill -9`. Recorded programs inherit no descriptor of the log: it closes on exec, and the keeper closes it before. Some
//! network file systems have no locks: there, nothing is refused.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::{DiskError, RAW_LOG_FILE};

/// Creates the raw log in a folder. Until it is dropped, [`hold_log`] fails in other processes.
///
/// # Errors
/// [`DiskError::Busy`] if another process holds the log that is there; [`DiskError::Io`] if it cannot be created.
pub fn create_log(folder: &Path) -> Result<File, DiskError> {
    let path = folder.join(RAW_LOG_FILE);
    let created = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let log = lock(folder, created.map_err(DiskError::io(&path))?)?;
    // Only now is it certain that nobody else writes to it.
    log.set_len(0).map_err(DiskError::io(&path))?;
    Ok(log)
}

/// Opens the raw log in a folder, if there is one. Until it is dropped, no other process can hold it.
///
/// # Errors
/// [`DiskError::Busy`] if another process holds it; [`DiskError::Io`] if it cannot be opened.
pub fn hold_log(folder: &Path) -> Result<Option<File>, DiskError> {
    let path = folder.join(RAW_LOG_FILE);
    // NFS locks only what is open for writing.
    let opened = OpenOptions::new().read(true).write(true).open(&path).or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => File::open(&path),
        _ => Err(error),
    });
    match opened {
        Ok(log) => lock(folder, log).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DiskError::io(&path)(error)),
    }
}

fn lock(folder: &Path, log: File) -> Result<File, DiskError> {
    match log.try_lock() {
        Err(TryLockError::WouldBlock) => Err(DiskError::Busy(folder.to_owned())),
        // Without locks, recording still works.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(log),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_log_has_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        assert!(hold_log(folder.path()).unwrap().is_none(), "there is no log");
        let mut log = create_log(folder.path()).unwrap();
        log.write_all(b"recorded").unwrap();
        assert!(matches!(hold_log(folder.path()), Err(DiskError::Busy(_))));
        assert!(matches!(create_log(folder.path()), Err(DiskError::Busy(_))), "another recorder");
        assert!(matches!(super::super::remove(folder.path()), Err(DiskError::Busy(_))), "record --force");
        assert!(matches!(super::super::open(folder.path()), Err(DiskError::Busy(_))), "a view");
        drop(log);
        assert!(matches!(super::super::open(folder.path()), Err(DiskError::Unfinished(_))));
        let mut held = hold_log(folder.path()).unwrap().unwrap();
        assert!(matches!(hold_log(folder.path()), Err(DiskError::Busy(_))), "a second recover");
        let mut content = String::new();
        held.read_to_string(&mut content).unwrap();
        assert_eq!(content, "recorded", "nothing was removed");
        drop(held);
        super::super::remove(folder.path()).unwrap();
        assert!(hold_log(folder.path()).unwrap().is_none());
    }
}
