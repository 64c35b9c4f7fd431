//! Files that hold the functions of tracetools: `libtracetools.so`, or a program that is linked with it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use stepscope_assemble::ros2::Kind;

use crate::launch::Launch;
use crate::proc;

const FILE: &str = "libtracetools.so";
/// What of a function's code is looked at.
const CODE_BYTES: usize = 64;
/// Before the name of each function.
const PREFIX: &str = "ros_trace_";

/// A file with the functions.
#[derive(Debug)]
pub(super) struct Library {
    pub path: PathBuf,
    /// File offsets of the instructions to probe.
    pub functions: HashMap<Kind, u64>,
}

/// The files found so far.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    /// By device and inode: whether it has the functions, and its path.
    known: BTreeMap<(u64, u64), Option<PathBuf>>,
    new: Vec<Library>,
}

impl Libraries {
    /// Those that a program will load, as far as its environment says so.
    pub fn of_launch(launch: &Launch) -> Self {
        let mut libraries = Self::default();
        for (variable, below) in [("LD_LIBRARY_PATH", ""), ("AMENT_PREFIX_PATH", "lib"), ("CMAKE_PREFIX_PATH", "lib")] {
            let Some(paths) = launch.variable(variable) else { continue };
            // Relative paths start from the program's working directory.
            let from_there =
                |path: PathBuf| launch.working_directory().map_or(path.clone(), |folder| folder.join(&path));
            std::env::split_paths(&paths).map(from_there).for_each(|path| libraries.add(&path.join(below).join(FILE)));
        }
        let installed = glob::glob(&format!("/opt/ros/*/lib/{FILE}")).into_iter().flatten().flatten();
        installed.for_each(|path| libraries.add(&path));
        launch.program().into_iter().for_each(|program| libraries.add(&program));
        libraries
    }

    /// Those of running processes.
    pub fn of_running(pids: &[u32]) -> Self {
        let mut libraries = Self::default();
        pids.iter().for_each(|&pid| libraries.add_of_process(pid));
        libraries
    }

    /// Adds those that a process has mapped, as its mount namespace has them.
    pub fn add_of_process(&mut self, pid: u32) {
        self.add(Path::new(&format!("/proc/{pid}/exe")));
        let is_it = |path: &&Path| path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(FILE));
        let maps = proc::maps(pid).unwrap_or_default();
        for path in maps.iter().filter_map(|mapping| mapping.backing.path()).filter(is_it) {
            self.add(&Path::new(&format!("/proc/{pid}/root")).join(path.strip_prefix("/").unwrap_or(path)));
        }
    }

    /// Whether some were found since the last time.
    pub(super) fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Those that were found since the last time.
    pub(super) fn take_new(&mut self) -> Vec<Library> {
        std::mem::take(&mut self.new)
    }

    /// Their paths, in words.
    pub fn described(&self) -> String {
        let paths: Vec<String> = self.known.values().flatten().map(|path| path.display().to_string()).collect();
        paths.join(", ")
    }

    fn add(&mut self, path: &Path) {
        let Ok(metadata) = fs::metadata(path) else { return };
        let key = (metadata.dev(), metadata.ino());
        if self.known.contains_key(&key) {
            return;
        }
        let functions = functions(path).unwrap_or_default();
        // A link of /proc goes away with its process.
        let shown = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        self.known.insert(key, (!functions.is_empty()).then(|| shown.clone()));
        if !functions.is_empty() {
            let same = fs::metadata(&shown).is_ok_and(|other| (other.dev(), other.ino()) == key);
            let path = if same { shown } else { path.to_owned() };
            self.new.push(Library { path, functions });
        }
    }
}

#[cfg(target_arch = "x86_64")]
use super::probe_place::cheapest as place_in;

/// At the start: other machines emulate little.
#[cfg(not(target_arch = "x86_64"))]
fn place_in(_code: &[u8]) -> u64 {
    0
}

/// File offsets of the functions, by the symbols of a file.
fn functions(path: &Path) -> Option<HashMap<Kind, u64>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let mut functions = HashMap::new();
    for symbol in file.dynamic_symbols().chain(file.symbols()).filter(|symbol| symbol.is_definition()) {
        let kind = symbol.name().ok().and_then(|name| Kind::of(name.strip_prefix(PREFIX)?));
        let Some(kind) = kind else { continue };
        let segment = file.segments().find_map(|segment| {
            let within = symbol.address().checked_sub(segment.address())?;
            let (at, bytes) = segment.file_range();
            let code = segment.data().ok()?.get(within as usize..)?;
            (within < bytes).then(|| at + within + place_in(&code[..code.len().min(CODE_BYTES)]))
        });
        segment.map(|offset| functions.insert(kind, offset));
    }
    Some(functions)
}
