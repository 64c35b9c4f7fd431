//! Entries of Python functions: the library that the recorder preloads gives each one a stub of machine code, in files that are only in
//! memory (`crates/python/preload`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stepscope_assemble::PYTHON_STUB;
use stepscope_record::proc::{self, Mapping};
use stepscope_symbolize::{Entry, generated_functions};

/// Beginning of the name of the files with stubs.
const FILE: &str = "/memfd:stepscope-python";

/// Where a process has stubs.
#[derive(Debug)]
pub(super) struct Stubs {
    pid: u32,
    code: Vec<Mapping>,
}

impl Stubs {
    /// Those of a running process.
    pub fn of_process(pid: u32) -> Self {
        let has_stubs = |path: &Path| path.to_string_lossy().starts_with(FILE);
        let mut code = proc::maps(pid).unwrap_or_default();
        code.retain(|one| one.access.execute && one.backing.path().is_some_and(has_stubs));
        Self { pid, code }
    }

    /// The file of the stub at an address, and the place of its first instruction in it.
    ///
    /// Such a file has no path. Only root can open it, by the addresses where it is mapped.
    pub fn place_of(&self, address: u64) -> Option<(PathBuf, u64)> {
        let mapping = self.code.iter().find(|one| (one.start..one.end).contains(&address))?;
        let file = PathBuf::from(format!("/proc/{}/map_files/{:x}-{:x}", self.pid, mapping.start, mapping.end));
        let first = address - (address - mapping.start) % PYTHON_STUB.len() as u64;
        Some((file, first - mapping.start + mapping.offset))
    }

    /// The Python functions that the process has called, each with its file.
    pub fn entries(&self) -> Vec<(PathBuf, Entry)> {
        if self.code.is_empty() {
            return Vec::new();
        }
        let entry = |(name, address): (Arc<str>, u64)| {
            let (file, offset) = self.place_of(address)?;
            Some((file, Entry { name: name.to_string(), symbol: name.to_string(), offset }))
        };
        generated_functions(self.pid).into_iter().filter_map(entry).collect()
    }
}
