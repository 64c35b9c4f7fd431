//! Writing a run: first beside its place, then in one step.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub use stepscope_model::output_file::Change;
use stepscope_model::output_file::put_folder;

use crate::layout::{CAPTURE_TABLE, RUN_KEY, encode};
use crate::manifest::{MANIFEST_FILE, Manifest, StoredFile};
use crate::place::{Place, StoreError, at};
use crate::store::{RUNS, RunStore};

/// Folder of runs that are being written.
const STAGING: &str = ".staging";

/// A writer holds this lock while it works. The folder of a writer that has ended can be removed.
const LOCK: &str = ".lock";

/// Table whose rows make a run visible in a bucket.
pub(crate) const LAST_TABLE: &str = "captures";

/// A run that is being written, and not visible yet. Dropping it removes it.
#[derive(Debug)]
pub struct Staging {
    folder: TempDir,
    files: Vec<StoredFile>,
    _held: File,
}

impl Staging {
    fn create(beside: &Path) -> io::Result<Self> {
        fs::create_dir_all(beside)?;
        let folder = tempfile::Builder::new().prefix("run-").tempdir_in(beside)?;
        let held = File::create_new(folder.path().join(LOCK))?;
        // File systems without locks keep what killed writers left until somebody removes it.
        let _ = held.lock();
        Ok(Self { folder, files: Vec::new(), _held: held })
    }

    /// Writes a file of the run. The path is from the run's folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let target = self.target(path)?;
        let write = || -> io::Result<()> {
            let mut file = File::create_new(&target)?;
            file.write_all(bytes)?;
            file.sync_data()
        };
        write().map_err(at(&target))?;
        let crc32 = crc32fast::hash(bytes);
        self.files.push(StoredFile { path: path.to_owned(), bytes: bytes.len() as u64, crc32 });
        Ok(())
    }

    /// Copies a file into the run.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn copy(&mut self, path: &str, from: &Path) -> Result<(), StoreError> {
        let target = self.target(path)?;
        fs::copy(from, &target).map_err(at(&target))?;
        let (bytes, crc32) = checksum(&target).map_err(at(&target))?;
        File::open(&target).and_then(|file| file.sync_data()).map_err(at(&target))?;
        self.files.push(StoredFile { path: path.to_owned(), bytes, crc32 });
        Ok(())
    }

    /// Bytes of all files so far.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn target(&self, path: &str) -> Result<PathBuf, StoreError> {
        let target = self.folder.path().join(path);
        let parent = target.parent().expect("a file lies in a folder");
        fs::create_dir_all(parent).map_err(at(parent))?;
        Ok(target)
    }
}

/// Size and checksum of a file.
pub(crate) fn checksum(path: &Path) -> io::Result<(u64, u32)> {
    let (mut file, mut buffer) = (File::open(path)?, vec![0; 1 << 16]);
    let (mut hasher, mut bytes) = (crc32fast::Hasher::new(), 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((bytes, hasher.finalize())),
            read => {
                hasher.update(&buffer[..read]);
                bytes += read as u64;
            }
        }
    }
}

impl RunStore {
    /// Starts to write a run.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn stage(&self) -> Result<Staging, StoreError> {
        let beside = match &self.place {
            Place::Folder(folder) => folder.join(STAGING),
            Place::Bucket { .. } => std::env::temp_dir(),
        };
        Staging::create(&beside).map_err(at(&beside))
    }

    /// Makes a run visible, whole. One of the same name is replaced.
    ///
    /// # Errors
    /// If it cannot be written. The run of this name is then as it was; in a bucket, it may be invisible until it is added again.
    pub fn publish(&self, staging: Staging, mut manifest: Manifest) -> Result<Change, StoreError> {
        let Staging { folder, mut files, .. } = staging;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        manifest.files = files;
        let text = serde_json::to_vec_pretty(&manifest).expect("a manifest has only text keys");
        let path = folder.path().join(MANIFEST_FILE);
        let write = || -> io::Result<()> {
            let mut file = File::create(&path)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().map_err(at(&path))?;
        let name = format!("{RUN_KEY}={}", encode(&manifest.run));
        match &self.place {
            Place::Folder(store) => {
                let runs = store.join(RUNS);
                fs::create_dir_all(&runs).map_err(at(&runs))?;
                let place = runs.join(name);
                // Temporary folders are private; a store is read by all who may read its folder.
                open_to_readers(folder.path(), &runs).map_err(at(folder.path()))?;
                let _ = fs::remove_file(folder.path().join(LOCK));
                let change = put_folder(folder.path(), &place).map_err(at(&place))?;
                // Its name has moved or holds the old run, which is gone.
                let _ = folder.keep();
                File::open(&runs).and_then(|runs| runs.sync_all()).map_err(at(&runs))?;
                self.remove_abandoned();
                Ok(change)
            }
            Place::Bucket { bucket, .. } => {
                let prefix = format!("{RUNS}/{name}");
                let last = format!("table={LAST_TABLE}/*");
                let change = if bucket.list(&prefix)?.is_empty() { Change::Added } else { Change::Replaced };
                if change == Change::Replaced {
                    // Invisible first, so that no query sees files of both.
                    bucket.remove(&prefix, &[&last, MANIFEST_FILE])?;
                }
                bucket.put_folder(folder.path(), &prefix, &[&last, MANIFEST_FILE, LOCK])?;
                let last = folder.path().join(format!("table={LAST_TABLE}"));
                if last.is_dir() {
                    bucket.put_folder(&last, &format!("{prefix}/table={LAST_TABLE}"), &[])?;
                }
                bucket.put_file(&path, &format!("{prefix}/{MANIFEST_FILE}"))?;
                Ok(change)
            }
        }
    }

    /// Folders that writers left who have ended: killed, or stopped by a full disk.
    pub fn abandoned(&self) -> Vec<PathBuf> {
        let Place::Folder(folder) = &self.place else { return Vec::new() };
        let entries = fs::read_dir(folder.join(STAGING)).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        // A writer creates its lock right after its folder, so a folder without one may be new. It is left alone.
        let is_abandoned = |path: &PathBuf| File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        paths.filter(is_abandoned).collect()
    }

    /// Removes what killed writers left; gives the number of folders.
    pub fn remove_abandoned(&self) -> usize {
        self.abandoned().iter().filter(|folder| fs::remove_dir_all(folder).is_ok()).count()
    }
}

/// Gives a folder the mode of the one that will hold it.
fn open_to_readers(folder: &Path, parent: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::metadata(parent)?.permissions())
}

/// Whether a path in a run belongs to a whole capture.
pub(crate) fn is_of_capture(path: &str) -> bool {
    path.starts_with(&format!("table={CAPTURE_TABLE}/"))
}
