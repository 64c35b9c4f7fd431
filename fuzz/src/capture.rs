//! Capture folders.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stepscope_convert::import::format_named;
use stepscope_convert::{Source, import};
use stepscope_model::{Capture, Counter, Scope, Step, ThreadId, disk};

use crate::import::options;

thread_local! {
    static FOLDER: Folder = Folder::new();
}

/// Reads a capture folder with one file replaced ([`Folder::read_with`]).
pub fn read(input: &[u8]) {
    FOLDER.with(|folder| folder.read_with(input));
}

/// A capture folder of which one file at a time is replaced.
#[derive(Debug)]
pub struct Folder {
    folder: tempfile::TempDir,
    /// The tables' files and their content.
    tables: Vec<(PathBuf, Vec<u8>)>,
    manifest: Value,
}

impl Folder {
    /// A folder with a row in most tables.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the capture");
        disk::write(&example(), folder.path()).expect("the capture is written");
        let listed = fs::read_dir(folder.path()).expect("the folder is there");
        let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("its entries too").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
        paths.sort();
        let written = |path: PathBuf| fs::read(&path).map(|bytes| (path, bytes)).expect("it was written");
        let tables = paths.into_iter().map(written).collect();
        let text = fs::read(folder.path().join(disk::INFO_FILE)).expect("it was written");
        let manifest = serde_json::from_slice(&text).expect("it is JSON");
        Self { folder, tables, manifest }
    }

    /// Reads the folder with one file replaced: the first byte of `input` is its index, the rest its content.
    ///
    /// `capture.json` gets the new length and checksum of a table; otherwise the reader would stop there.
    pub fn read_with(&self, input: &[u8]) {
        let Some((&which, content)) = input.split_first() else { return };
        let info = self.folder.path().join(disk::INFO_FILE);
        let table = self.tables.get(usize::from(which));
        match table {
            None => write(&info, content),
            Some((path, _)) => {
                let mut manifest = self.manifest.clone();
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let listed = &mut manifest["tables"][&name];
                listed["bytes"] = content.len().into();
                listed["crc32"] = crc32fast::hash(content).into();
                write(&info, manifest.to_string().as_bytes());
                write(path, content);
            }
        }
        let _ = disk::read(self.folder.path());
        if let Some((path, written)) = table {
            write(path, written);
        }
    }

    /// Inputs of [`Folder::read_with`], with names; each replaces one file by itself.
    pub fn seeds(&self) -> Vec<(String, Vec<u8>)> {
        let info = (self.folder.path().join(disk::INFO_FILE), self.manifest.to_string().into_bytes());
        let files = self.tables.iter().chain([&info]).enumerate();
        let seed = |(which, (path, content)): (usize, &(PathBuf, Vec<u8>))| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, [&[which as u8], &content[..]].concat())
        };
        files.map(seed).collect()
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).expect("a file of the temporary folder is written");
}

fn example() -> Capture {
    let recording = include_bytes!("../seeds/perf_data/file.perf.data");
    let mut capture = import(Source::stream("example", &recording[..]), &options(format_named("perf.data")))
        .expect("the seed is valid");
    let thread = ThreadId(0);
    capture.steps.push(Step { index: 0, start_ns: 1, end_ns: 2, sim_time_ns: Some(3), thread });
    capture.scopes.push(Scope { thread, name: "Physics".into(), start_ns: 1, end_ns: 2, depth: 0 });
    let name = "rss_bytes".into();
    capture.counters.push(Counter { time_ns: 1, process: None, thread: Some(thread), name, value: -1 });
    capture
}
