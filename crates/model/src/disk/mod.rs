//! A capture on disk: a folder of `capture.json` and Parquet tables (zstd), readable by pandas, polars, DuckDB, Spark.
//!
//! `capture.json` is written last, by rename, and lists every table with its size and checksum. So a folder is a
//! complete capture only if it has `capture.json` and the tables match the list. The remains of a killed recorder, a
//! full disk or an incomplete copy are never taken for a capture.
//!
//! Captures are untrusted. They contain no paths to follow: tables have fixed names inside the folder. Lengths and
//! handles are checked before use.

mod allocation_bursts;
mod allocations;
mod call_times;
mod columns;
mod data_accesses;
mod dictionary;
mod event_counts;
mod long_tables;
mod memory_errors;
mod part_folder;
mod raw_log;
mod replace;
mod segments;
mod table_form;
mod table_writer;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use long_tables::LongTables;
use long_tables::{GROUP_ROWS, LongRow};
use table_form::TableForm;
use table_writer::{TableWriter, Written};

use crate::capture::{Capture, Counter, Sample, Scope, Step, SystemCalls};
use crate::flow::FlowEvent;
use crate::info::{CaptureInfo, SCHEMA};
use crate::output_file::write_durably;
use crate::stored::{LoadError, StoredFile};
use crate::waits::{PackedWait, Waits};

pub use part_folder::PartFolder;
pub use raw_log::{create_log, hold_log};
pub use replace::replace;
pub use segments::{segment, segments};

/// Name of the information file: a folder with this file is a capture.
pub const INFO_FILE: &str = "capture.json";

/// Name of the log that a recorder writes while it runs, for `stepscope recover`.
pub const RAW_LOG_FILE: &str = "raw.log";

/// Folder beside the raw log with copies of files that the log names. Each folder in it stands for `/`.
pub const FILES_FOLDER: &str = "files";

/// Folder of the logs that checkers of memory errors wrote.
pub const ERRORS_FOLDER: &str = "errors";

/// Why a capture could not be read or written.
#[derive(Debug, Error)]
pub enum DiskError {
    /// The folder or a file in it could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder does not exist.
    #[error("{}: no such capture; {}", path.display(), instead(path, beside))]
    Absent {
        /// The folder.
        path: PathBuf,
        /// The captures beside it.
        beside: Vec<String>,
    },
    /// The path exists but is not a capture.
    #[error("{}: not a capture: {reason}", path.display())]
    NotACapture {
        /// The path.
        path: PathBuf,
        /// What it is, and what to do.
        reason: String,
    },
    /// The recorder did not finish.
    #[error("{}: the recording did not finish; recover it with `stepscope recover {}`", .0.display(), .0.display())]
    Unfinished(PathBuf),
    /// Another process writes the raw log, or makes a capture of it.
    #[error("{}: a recorder or `stepscope recover` is still at work here; try again when it has ended", .0.display())]
    Busy(PathBuf),
    /// Written by a newer program.
    #[error("{}: schema {found} is newer than this program reads ({SCHEMA}); use a newer stepscope", path.display())]
    TooNew {
        /// The folder.
        path: PathBuf,
        /// Its schema.
        found: u32,
    },
    /// A file is truncated or altered.
    #[error(transparent)]
    Damaged(#[from] LoadError),
}

impl DiskError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged(LoadError { path: path.to_owned(), reason: reason.to_string() })
    }
}

/// The content of `capture.json`: the description of the capture and the list of its tables.
#[derive(Serialize, Deserialize)]
struct Manifest {
    #[serde(flatten)]
    info: CaptureInfo,
    tables: BTreeMap<String, TableFile>,
}

/// A table as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TableFile {
    rows: u64,
    bytes: u64,
    crc32: u32,
}

impl From<Written> for TableFile {
    fn from(Written { rows, bytes, crc32 }: Written) -> Self {
        Self { rows, bytes, crc32 }
    }
}

impl From<&StoredFile> for TableFile {
    fn from(file: &StoredFile) -> Self {
        Self { rows: file.rows, bytes: file.bytes, crc32: file.crc32 }
    }
}

/// Writes a capture to `folder`, created if needed.
///
/// # Errors
/// [`DiskError::Io`] if a file cannot be written; the folder is then not a capture.
pub fn write(capture: &Capture, folder: &Path) -> Result<(), DiskError> {
    fs::create_dir_all(folder).map_err(DiskError::io(folder))?;
    let info_path = folder.join(INFO_FILE);
    match fs::remove_file(&info_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(DiskError::io(&info_path)(error)),
        _ => {}
    }
    let mut listed = BTreeMap::new();
    for table in tables::TABLES {
        if table.is_optional && (table.len)(capture) == 0 {
            continue;
        }
        listed.insert(table.name.to_owned(), write_table(table, capture, folder)?);
    }
    listed.insert(Sample::TABLE.to_owned(), long_tables::write(capture, &capture.samples, folder)?);
    listed.insert(PackedWait::TABLE.to_owned(), long_tables::write(capture, &capture.waits.0, folder)?);
    listed.insert(Step::TABLE.to_owned(), long_tables::write(capture, &capture.steps, folder)?);
    listed.insert(Scope::TABLE.to_owned(), long_tables::write(capture, &capture.scopes, folder)?);
    listed.insert(Counter::TABLE.to_owned(), long_tables::write(capture, &capture.counters, folder)?);
    listed.insert(SystemCalls::TABLE.to_owned(), long_tables::write(capture, &capture.system_calls, folder)?);
    if !capture.flows.is_empty() {
        listed.insert(FlowEvent::TABLE.to_owned(), long_tables::write(capture, &capture.flows, folder)?);
    }
    let mut manifest = Manifest { info: capture.info.clone(), tables: listed };
    manifest.info.schema = SCHEMA;
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| DiskError::damaged(&info_path, error))?;
    write_durably(&info_path, format!("{text}\n").as_bytes()).map_err(DiskError::io(&info_path))
}

fn write_table(table: &TableForm, capture: &Capture, folder: &Path) -> Result<TableFile, DiskError> {
    let path = folder.join(table.file());
    let write = || {
        let mut writer = TableWriter::create(&path, table.name, &(table.columns)(capture, 0..0))?;
        let rows = (table.len)(capture);
        for start in (0..rows).step_by(GROUP_ROWS) {
            writer.write(&(table.columns)(capture, start..rows.min(start + GROUP_ROWS)))?;
        }
        writer.close()
    };
    Ok(write().map_err(DiskError::io(&path))?.into())
}

/// Removes a capture, the remains of a recording, or its segments. The folder stays, with its mode and owner, and so do all files that
/// are not of a capture.
///
/// # Errors
/// [`DiskError::Busy`] if a recorder writes there; [`DiskError::Io`] if a file cannot be removed.
pub fn remove(folder: &Path) -> Result<(), DiskError> {
    let _held = hold_log(folder)?;
    // The information first: without it the rest is no capture.
    for file in [INFO_FILE.to_owned(), RAW_LOG_FILE.to_owned()].into_iter().chain(table_files()) {
        let path = folder.join(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(DiskError::io(&path)(error)),
            _ => {}
        }
    }
    remove_files(folder)?;
    remove_folder(&folder.join(ERRORS_FOLDER))?;
    segments(folder).iter().try_for_each(|segment| remove_segment(segment))
}

/// Removes a segment with its folder.
///
/// # Errors
/// [`DiskError::Busy`] if a recorder writes there; [`DiskError::Io`] if a file cannot be removed.
pub fn remove_segment(folder: &Path) -> Result<(), DiskError> {
    remove(folder)?;
    fs::remove_dir(folder).map_err(DiskError::io(folder))
}

/// Removes the raw log of a capture that was written, and the copies of files beside it.
///
/// # Errors
/// [`DiskError::Io`] if a file cannot be removed.
pub fn remove_log(folder: &Path) -> Result<(), DiskError> {
    let log = folder.join(RAW_LOG_FILE);
    fs::remove_file(&log).map_err(DiskError::io(&log))?;
    remove_files(folder)
}

/// Names of the files of all tables.
fn table_files() -> impl Iterator<Item = String> {
    let marks = [Step::TABLE, Scope::TABLE, Counter::TABLE, FlowEvent::TABLE];
    let long = [Sample::TABLE, PackedWait::TABLE, SystemCalls::TABLE].into_iter().chain(marks);
    tables::TABLES.iter().map(|table| table.name).chain(long).map(|table| format!("{table}.parquet"))
}

fn remove_files(folder: &Path) -> Result<(), DiskError> {
    remove_folder(&folder.join(FILES_FOLDER))
}

fn remove_folder(folder: &Path) -> Result<(), DiskError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DiskError::io(folder)(error)),
        _ => Ok(()),
    }
}

/// Reads the capture in `folder`.
///
/// # Errors
/// See [`DiskError`]: missing, not a capture, unfinished, too new, damaged.
pub fn read(folder: &Path) -> Result<Capture, DiskError> {
    let capture = open(folder)?;
    capture.load()?;
    Ok(capture)
}

/// Opens the capture in `folder`. Long tables (samples, waits, steps, scopes, counters, system calls and flows) are read when they are first used.
/// A damaged one counts as empty: ask [`Capture::load_error`] before you show a result.
///
/// # Errors
/// As for [`read`], without the content of long tables.
pub fn open(folder: &Path) -> Result<Capture, DiskError> {
    let manifest = read_manifest(folder)?;
    let mut capture = Capture::of(manifest.info);
    for table in tables::TABLES {
        let path = folder.join(table.file());
        let Some(listed) = manifest.tables.get(table.name) else { continue };
        read_table(table, &path, listed, &mut capture).map_err(|reason| DiskError::damaged(&path, reason))?;
    }
    capture.check().map_err(|reason| DiskError::damaged(folder, reason))?;
    capture.samples = long_tables::open(folder, manifest.tables.get(Sample::TABLE), &capture)?;
    capture.waits = Waits(long_tables::open(folder, manifest.tables.get(PackedWait::TABLE), &capture)?);
    capture.steps = long_tables::open(folder, manifest.tables.get(Step::TABLE), &capture)?;
    capture.scopes = long_tables::open(folder, manifest.tables.get(Scope::TABLE), &capture)?;
    capture.counters = long_tables::open(folder, manifest.tables.get(Counter::TABLE), &capture)?;
    capture.system_calls = long_tables::open(folder, manifest.tables.get(SystemCalls::TABLE), &capture)?;
    capture.flows = long_tables::open(folder, manifest.tables.get(FlowEvent::TABLE), &capture)?;
    Ok(capture)
}

fn read_table(table: &TableForm, path: &Path, listed: &TableFile, capture: &mut Capture) -> Result<(), String> {
    long_tables::verify(path, listed)?;
    let mut found = 0;
    long_tables::unwinding(|| {
        long_tables::read_file(path, None, |rows| {
            found += rows.len() as u64;
            (table.read)(&rows, capture)
        })
    })?;
    long_tables::check_rows(found, listed.rows)
}

/// Reads only `capture.json`, for lists of captures.
///
/// # Errors
/// As for [`read`], without the tables.
pub fn read_info(folder: &Path) -> Result<CaptureInfo, DiskError> {
    Ok(read_manifest(folder)?.info)
}

/// Whether `path` is a finished capture, without reading it.
pub fn is_capture(path: &Path) -> bool {
    path.join(INFO_FILE).is_file()
}

fn read_manifest(folder: &Path) -> Result<Manifest, DiskError> {
    let path = folder.join(INFO_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Err(why_not_a_capture(folder, &path, error)),
    };
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let version: Version = serde_json::from_str(&text)
        .map_err(|error| DiskError::damaged(&path, format!("not a capture.json: {error}")))?;
    if version.schema > SCHEMA {
        return Err(DiskError::TooNew { path: folder.to_owned(), found: version.schema });
    }
    serde_json::from_str(&text).map_err(|error| DiskError::damaged(&path, error))
}

/// The names of the captures in the folder where a capture is missing, in order.
fn captures_beside(missing: &Path) -> Vec<String> {
    let parent = missing.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().filter(|entry| is_capture(&entry.path()));
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What to read or do instead of a missing capture.
fn instead(path: &Path, beside: &[String]) -> String {
    const MOST: usize = 5;
    match beside {
        [] => format!("record one with `stepscope record -o {}`", path.display()),
        [first @ .., _] if first.len() >= MOST => {
            format!("captures there: {}, {} more", beside[..MOST].join(", "), beside.len() - MOST)
        }
        _ => format!("captures there: {}", beside.join(", ")),
    }
}

fn why_not_a_capture(folder: &Path, info: &Path, error: io::Error) -> DiskError {
    let path = folder.to_owned();
    if !folder.exists() {
        return DiskError::Absent { beside: captures_beside(folder), path };
    }
    if folder.is_file() {
        let reason = format!("it is a file; `stepscope import {}` reads those of other tools", path.display());
        return DiskError::NotACapture { path, reason };
    }
    if error.kind() != io::ErrorKind::NotFound {
        return DiskError::io(info)(error);
    }
    if folder.join(RAW_LOG_FILE).exists() {
        return match hold_log(folder) {
            Err(busy @ DiskError::Busy(_)) => busy,
            _ => DiskError::Unfinished(path),
        };
    }
    DiskError::NotACapture { path, reason: "the folder holds no capture.json".to_owned() }
}

#[cfg(test)]
mod tests;
