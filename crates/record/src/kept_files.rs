//! Files of recorded processes that may be gone when functions are named.
//!
//! A process in a container has files that no path of ours leads to, a program can be rebuilt or deleted while it runs,
//! and maps of generated code go with their container. Each file stays open while the recording runs. At its end, files
//! that cannot be found by their path any more are copied into the capture's folder.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use stepscope_model::disk;

use crate::proc;

/// Open files, at most.
const MOST_FILES: usize = 1000;

/// The start of the names of maps that generators of code write for `perf`.
const PERF_MAP: &str = "perf";
/// The start of the names of maps that our library writes.
const PYTHON_MAP: &str = "stepscope-python";

/// Open files of recorded processes.
#[derive(Debug, Default)]
pub(crate) struct KeptFiles {
    files: Vec<KeptFile>,
    /// Maps of generated code by process.
    maps: BTreeMap<(u32, &'static str), ExpectedMap>,
}

/// A map of generated code that a process may write.
#[derive(Debug)]
struct ExpectedMap {
    /// Where it would be: the open folder outlives the process and its mounts.
    folder: Option<File>,
    name: String,
    /// The map, once it is there.
    file: Option<File>,
}

impl ExpectedMap {
    fn of(pid: u32, name: &str) -> Self {
        let inner = proc::status(pid).ok().and_then(|status| status.namespace_pids.last().copied()).unwrap_or(pid);
        let folder = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(format!("/proc/{pid}/root/tmp"));
        Self { folder: folder.ok(), name: format!("{name}-{inner}.map"), file: None }
    }

    fn look(&mut self) {
        if let (None, Some(folder)) = (&self.file, &self.folder) {
            self.file = File::open(format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), self.name)).ok();
        }
    }
}

#[derive(Debug)]
struct KeptFile {
    /// Path as the process saw it.
    path: PathBuf,
    file: File,
}

impl KeptFiles {
    /// Keeps a file that a process mapped as `path`.
    pub fn keep(&mut self, path: &str, file: &File) {
        let path = PathBuf::from(without_suffix(path));
        let is_known = |kept: &KeptFile| kept.path == path && are_same(&kept.file.metadata(), &file.metadata());
        if self.files.len() < MOST_FILES
            && !self.files.iter().any(is_known)
            && let Ok(file) = file.try_clone()
        {
            self.files.push(KeptFile { path, file });
        }
    }

    /// Expects that a process writes maps of the code that it generates.
    pub fn expect_map(&mut self, pid: u32) {
        for name in [PERF_MAP, PYTHON_MAP] {
            self.maps.entry((pid, name)).or_insert_with(|| ExpectedMap::of(pid, name));
        }
    }

    /// Whether a process wrote a map of its Python functions.
    pub fn has_python_maps(&self) -> bool {
        self.maps.iter().any(|((_, name), map)| *name == PYTHON_MAP && map.file.is_some())
    }

    /// Opens maps that were written since the last look.
    pub fn look(&mut self) {
        self.maps.values_mut().for_each(ExpectedMap::look);
    }

    /// Copies what cannot be found by its path into a capture's folder. Returns notes about failures.
    pub fn copy_to(&mut self, folder: &Path) -> Vec<String> {
        self.look();
        let maps = self.maps.iter().filter_map(|((pid, name), map)| {
            // Under the name that the process has for us. Ours is removed when the process has ended.
            Some((PathBuf::from(format!("/tmp/{name}-{pid}.map")), map.file.as_ref()?, *name == PYTHON_MAP))
        });
        let files = self.files.iter().map(|kept| (kept.path.clone(), &kept.file, false));
        let mut notes = Vec::new();
        for (path, file, is_ours) in files.chain(maps) {
            if !is_ours && leads_to(&path, file) {
                continue;
            }
            if let Err(error) = copy(&path, file, folder) {
                notes.push(format!(
                    "{}: the file is no longer at its path and could not be copied ({error}), so its functions have no \
                     names.",
                    path.display()
                ));
            }
        }
        notes
    }
}

impl Drop for KeptFiles {
    /// Removes the maps that our library wrote. A process that goes on makes no new one.
    fn drop(&mut self) {
        for ((_, name), ExpectedMap { folder, name: file, .. }) in &self.maps {
            if let (&PYTHON_MAP, Some(folder)) = (name, folder) {
                let _ = fs::remove_file(format!("/proc/self/fd/{}/{file}", folder.as_raw_fd()));
            }
        }
    }
}

/// The path without what the kernel appends when the file was deleted.
pub(crate) fn without_suffix(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

fn leads_to(path: &Path, file: &File) -> bool {
    are_same(&fs::metadata(path), &file.metadata())
}

fn are_same(one: &io::Result<Metadata>, other: &io::Result<Metadata>) -> bool {
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    matches!((one, other), (Ok(one), Ok(other)) if identity(one) == identity(other))
}

/// Copies a file to where its path leads below a root of the capture. Files of one path have different roots.
fn copy(path: &Path, mut file: &File, folder: &Path) -> io::Result<()> {
    let inside = path.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
    let roots = (0..).map(|root: u32| folder.join(disk::FILES_FOLDER).join(root.to_string()));
    let target = roots.map(|root| root.join(inside)).find(|target| !target.exists()).expect("one is free");
    fs::create_dir_all(target.parent().unwrap_or(folder))?;
    io::Seek::rewind(&mut file)?;
    let copied = io::copy(&mut file, &mut File::create(&target)?);
    if copied.is_err() {
        let _ = fs::remove_file(&target);
    }
    copied.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_their_path_does_not_lead_to_are_copied() {
        let (host, capture) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut kept = KeptFiles::default();
        for (name, text) in [("same", "1"), ("deleted", "2"), ("replaced", "3")] {
            let path = host.path().join(name);
            fs::write(&path, text).unwrap();
            kept.keep(
                &format!("{}{}", path.display(), if name == "deleted" { " (deleted)" } else { "" }),
                &File::open(&path).unwrap(),
            );
        }
        fs::remove_file(host.path().join("deleted")).unwrap();
        fs::write(host.path().join("new"), "another build").unwrap();
        fs::rename(host.path().join("new"), host.path().join("replaced")).unwrap();
        assert_eq!(kept.copy_to(capture.path()), Vec::<String>::new());
        let root = capture.path().join(disk::FILES_FOLDER).join("0").join(host.path().strip_prefix("/").unwrap());
        let copied = |name: &str| fs::read_to_string(root.join(name)).ok();
        assert_eq!(["same", "deleted", "replaced"].map(copied), [None, Some("2".to_owned()), Some("3".to_owned())]);
    }
}
