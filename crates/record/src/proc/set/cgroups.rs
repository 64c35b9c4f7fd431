//! Control groups: their folders, and the processes in them.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted, by convention of all distributions.
const ROOT: &str = "/sys/fs/cgroup";

/// How often the folders below a control group are listed again, in refreshes.
const LIST_EVERY: u32 = 8;

/// A control group with those below it.
#[derive(Debug)]
pub(super) struct Cgroup {
    folder: PathBuf,
    /// It and those below it, at the last list.
    folders: Vec<PathBuf>,
    refreshes: u32,
}

impl Cgroup {
    /// The control group of a path: as in `/proc/PID/cgroup`, or below `/sys/fs/cgroup`. Of version 1 or 2.
    pub fn open(path: &str) -> Option<Self> {
        let below = path.strip_prefix(ROOT).unwrap_or(path).trim_matches('/');
        if below.split('/').any(|part| part == "..") {
            return None;
        }
        let has_processes = |folder: &PathBuf| folder.join("cgroup.procs").is_file();
        let folder = hierarchies().into_iter().map(|hierarchy| hierarchy.join(below)).find(has_processes)?;
        Some(Self { folder, folders: Vec::new(), refreshes: 0 })
    }

    /// Ids of the processes in it and below it.
    pub fn pids(&mut self) -> Vec<u32> {
        if self.refreshes.is_multiple_of(LIST_EVERY) {
            self.folders.clear();
            add_folders(&self.folder, &mut self.folders);
        }
        self.refreshes = self.refreshes.wrapping_add(1);
        let texts = self.folders.iter().filter_map(|folder| fs::read_to_string(folder.join("cgroup.procs")).ok());
        // A process outside of our pid namespace is listed as 0.
        texts
            .flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>())
            .filter(|&pid| pid > 0)
            .collect()
    }
}

/// The folders in which control groups may be: that of version 2, and one for each controller of version 1.
pub(super) fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut all = vec![root.to_owned()];
    if !root.join("cgroup.controllers").exists() {
        let mut inside: Vec<PathBuf> =
            fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        inside.sort();
        all.extend(inside);
    }
    all
}

fn add_folders(folder: &Path, all: &mut Vec<PathBuf>) {
    all.push(folder.to_owned());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_folders(&entry.path(), all);
        }
    }
}
