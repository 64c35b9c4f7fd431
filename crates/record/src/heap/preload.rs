//! The preloaded library as a file, for one recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stepscope_heap::LIBRARY;
use stepscope_heap::layout::VARIABLE;

use crate::clock;
use crate::launch::Launch;
use crate::library_file::LibraryFile;

/// Where the library makes its tables.
pub(super) const FOLDER: &str = "/dev/shm";

/// The library's file, and where its tables are. Both are removed when it is dropped.
#[derive(Debug)]
pub struct Preload {
    library: LibraryFile,
    table_prefix: String,
    /// Mean bytes between two samples; 0 for every allocation.
    sample_bytes: u64,
}

impl Preload {
    /// Writes the library to a file that only this user may change.
    ///
    /// # Errors
    /// Why programs cannot be recorded with it.
    pub fn new(sample_bytes: u64) -> Result<Self, String> {
        static RECORDINGS: AtomicU32 = AtomicU32::new(0);
        let library = LIBRARY.ok_or("The heap can be recorded on x86-64 only.")?;
        if !Path::new(FOLDER).is_dir() {
            return Err(format!("The heap is recorded through shared memory in {FOLDER}, which is missing."));
        }
        sweep();
        let recording = RECORDINGS.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{recording}", std::process::id());
        let library = LibraryFile::write("heap", library)
            .map_err(|error| format!("The library that counts allocations cannot be written: {error}."))?;
        Ok(Self { library, table_prefix: format!("stepscope-heap-{id}-"), sample_bytes })
    }

    /// The start of the names of its tables.
    pub fn table_prefix(&self) -> &str {
        &self.table_prefix
    }

    /// Removes the library's file.
    pub fn remove_library(&self) {
        self.library.remove();
    }

    /// Lets a program load the library, before all others that the user preloads.
    pub fn add_to(&self, launch: Launch) -> Launch {
        let tables = Path::new(FOLDER).join(&self.table_prefix);
        let value = format!("{};ticks={};every={}", tables.display(), ticks_per_us(), self.sample_bytes);
        self.library.add_to(launch).env(VARIABLE, value)
    }
}

impl Drop for Preload {
    fn drop(&mut self) {
        for path in tables(|name| name.starts_with(&self.table_prefix)) {
            let _ = fs::remove_file(path);
        }
    }
}

fn tables(is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let files = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    files.filter(|file| file.file_name().to_str().is_some_and(&is_wanted)).map(|file| file.path()).collect()
}

/// Removes tables of recorders that were killed.
fn sweep() {
    let is_abandoned = |name: &str| {
        let recorder = name.strip_prefix("stepscope-heap-").and_then(|rest| rest.split('-').next()?.parse().ok());
        recorder.is_some_and(|pid: u32| !crate::proc::exists(pid))
    };
    for path in tables(is_abandoned) {
        let _ = fs::remove_file(path);
    }
}

/// Ticks of the CPU's counter in a microsecond.
fn ticks_per_us() -> u64 {
    const LONG_ENOUGH: Duration = Duration::from_millis(2);
    let (start, start_ns) = (crate::marks::counter(), clock::now_ns());
    std::thread::sleep(LONG_ENOUGH);
    let (end, end_ns) = (crate::marks::counter(), clock::now_ns());
    (end.saturating_sub(start)).saturating_mul(1000).checked_div(end_ns.saturating_sub(start_ns)).unwrap_or(1000).max(1)
}
