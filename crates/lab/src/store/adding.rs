//! Adding runs to a store.

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_analyze::{Filter, Functions, Ownership, Pattern, Selection};
use stepscope_model::CaptureInfo;
use stepscope_model::disk;
use stepscope_model::output_file::Change;
use stepscope_model::quantity::plural;
use stepscope_store::{Cell, Manifest, RunStore, Staging, StoredCapture};

use super::AddError;
use super::tables::{CaptureRow, Tables};
use crate::history::{Place, Store as History, complete_captures, runs_in};
use crate::lab_file::{BASE, FILE_NAME};
use crate::run::Run;
use crate::source::SourceError;
use crate::stored_captures::LAB_COPY;

/// What to add of a run.
#[derive(Debug, Clone, Default)]
pub struct AddOptions {
    /// Whether the captures themselves are added.
    pub samples: bool,
    /// Views whose tables are added; all if empty.
    pub only: Vec<Pattern>,
    /// Name of the project, for runs that have none.
    pub project: Option<String>,
}

/// Runs that were added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Each run.
    pub runs: Vec<AddedRun>,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
}

/// A run that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedRun {
    /// Its name in the store.
    pub run: String,
    /// Whether it was there before.
    pub change: Change,
    /// Number of captures.
    pub captures: usize,
    /// Bytes of its files.
    pub bytes: u64,
}

/// A run that may be added: its captures and their places.
struct Planned<'a> {
    folder: &'a Path,
    run: Option<&'a Run>,
    captures: Vec<(PathBuf, StoredCapture)>,
    manifest: Manifest,
}

/// Adds a capture, a run, or every run in a folder. A run that is there already, with the same captures, is not read again.
///
/// # Errors
/// If the source cannot be read, or the store not written. Runs that were added before stay.
pub fn add(source: &Path, store: &RunStore, options: &AddOptions) -> Result<Added, AddError> {
    let inside = runs_in(source);
    if !disk::is_capture(source) && inside.is_empty() {
        // Before the store is created: a mistyped name must not leave an empty one.
        Run::open(source).map_err(SourceError::from)?;
    }
    store.create()?;
    store.remove_abandoned();
    let mut added = Added::default();
    if disk::is_capture(source) {
        add_captures(source, None, vec![source.to_owned()], store, options, &mut added)?;
        return Ok(added);
    }
    let runs = if inside.is_empty() { vec![source.to_owned()] } else { inside.clone() };
    for path in runs {
        match Run::open(&path) {
            Ok(run) => {
                let (complete, left_out) = complete_captures(&run);
                if left_out > 0 {
                    added.notes.push(format!(
                        "{}: {} of incomplete trials left out of the store",
                        path.display(),
                        plural(left_out, "capture")
                    ));
                }
                add_captures(run.folder(), Some(&run), complete, store, options, &mut added)?;
            }
            Err(error) if inside.is_empty() => return Err(SourceError::from(error).into()),
            Err(error) => added.notes.push(format!("left out: {error}")),
        }
    }
    Ok(added)
}

fn add_captures(
    folder: &Path,
    run: Option<&Run>,
    captures: Vec<PathBuf>,
    store: &RunStore,
    options: &AddOptions,
    added: &mut Added,
) -> Result<(), AddError> {
    if captures.is_empty() {
        added.notes.push(format!("{}: left out, because it has no complete capture", folder.display()));
        return Ok(());
    }
    let mut planned = Planned::of(folder, run, captures, options)?;
    let known = store.run(&planned.manifest.run);
    if let Some(known) = known.filter(|known| planned.is_in(known)) {
        added.runs.push(AddedRun {
            run: known.run.clone(),
            change: Change::Unchanged,
            captures: known.captures.len(),
            bytes: known.bytes(),
        });
        return Ok(());
    }
    let mut staging = store.stage()?;
    planned.write(&mut staging, options)?;
    let (name, captures) = (planned.manifest.run.clone(), planned.captures.len());
    let bytes = staging.bytes();
    let change = store.publish(staging, planned.manifest)?;
    added.runs.push(AddedRun { run: name, change, captures, bytes });
    Ok(())
}

impl<'a> Planned<'a> {
    fn of(
        folder: &'a Path,
        run: Option<&'a Run>,
        captures: Vec<PathBuf>,
        options: &AddOptions,
    ) -> Result<Self, AddError> {
        let info = run.and_then(Run::info);
        let project = options.project.clone().or_else(|| info.map(|info| info.name.clone()));
        let project = project.filter(|name| !name.is_empty()).unwrap_or_else(|| "unnamed".to_owned());
        let history = History::beside(folder);
        let mut stored = Vec::new();
        for path in captures {
            let info = disk::read_info(&path).map_err(SourceError::from)?;
            let id = history.id(&info, &path);
            let (cell, repetition) = (cell_of(&info, &path, &project), info.repetition.unwrap_or(1));
            let entry = serde_json::Value::Null;
            stored.push((path, StoredCapture { id, cell, repetition, samples: options.samples, entry }));
        }
        let first = stored.iter().map(|(_, capture)| capture).min_by(|a, b| a.id.cmp(&b.id)).expect("it has captures");
        let infos = info.map(|info| info.started_at.clone());
        let started_at = infos.unwrap_or_else(|| first.id.split(' ').next().unwrap_or_default().to_owned());
        let machine = first.cell.machine.clone();
        // What identifies a run stays the same when it is copied, and when a sweep goes on.
        let identity = match info {
            Some(info) => format!("{} {} {}", info.started_at, info.name, first.id),
            None => stored.iter().map(|(_, capture)| capture.id.as_str()).collect::<Vec<_>>().join("\n"),
        };
        let time: String = started_at.chars().take(19).map(|c| if c == ':' { '-' } else { c }).collect();
        let name = format!("{time}Z-{machine}-{:08x}", checksum(&identity));
        let manifest = Manifest { started_at, ..Manifest::new(&name, &project) };
        Ok(Self { folder, run, captures: stored, manifest })
    }

    /// Whether a run of the store has all of these captures already, and their samples if these are asked for.
    fn is_in(&self, known: &Manifest) -> bool {
        known.project == self.manifest.project
            && known.tool == self.manifest.tool
            && self.captures.iter().all(|(_, capture)| {
                known.captures.iter().any(|one| one.id == capture.id && (one.samples || !capture.samples))
            })
    }

    /// Writes all files.
    fn write(&mut self, staging: &mut Staging, options: &AddOptions) -> Result<(), AddError> {
        let lab = self.run.and_then(Run::lab).transpose().map_err(SourceError::from)?;
        let ownership = lab.as_ref().map(|lab| lab.owned.clone()).unwrap_or_else(Ownership::default);
        let owned = ownership.compile().map_err(|error| SourceError::Usage(error.to_string()))?;
        let naming = lab.map(|lab| lab.naming).unwrap_or_default();
        let filter = Filter { naming, ..Filter::default() };
        let history = History::beside(self.folder);
        let working_tree = self.run.and_then(|run| run.info()?.working_tree.as_ref());
        let mut tables = Tables::default();
        for (path, stored) in &mut self.captures {
            let capture = disk::read(path).map_err(SourceError::from)?;
            let functions = Functions::of(&capture, &owned);
            let selection = Selection::new(&capture, &functions, &filter).map_err(SourceError::from)?;
            let mut entry = history.entry(&selection, Place { capture: path, run: self.folder, working_tree });
            entry.recording.run.clone_from(&self.manifest.run);
            entry.folder = stored.cell.capture_folder(stored.repetition).into();
            let row = CaptureRow {
                capture: stored,
                entry: &entry,
                wall_ns: capture.info.wall_ns(),
                step_count: capture.steps.len(),
            };
            tables.add(&selection, &row, &options.only);
            stored.entry = serde_json::to_value(&entry).expect("an entry has only text keys");
            if stored.samples {
                copy_capture(path, stored, staging)?;
            }
        }
        self.manifest.captures = self.captures.iter().map(|(_, capture)| capture.clone()).collect();
        self.manifest.tables = tables.columns();
        for (path, bytes) in tables.files() {
            staging.write(&path, &bytes)?;
        }
        let lab = self.folder.join(FILE_NAME);
        if self.run.is_some() && lab.is_file() {
            staging.copy(LAB_COPY, &lab)?;
        }
        Ok(())
    }
}

/// Copies the files of a capture, and not what else lies in its folder.
fn copy_capture(path: &Path, stored: &StoredCapture, staging: &mut Staging) -> Result<(), AddError> {
    let folder = stored.cell.capture_folder(stored.repetition);
    let read_error = |source| disk::DiskError::Io { path: path.to_owned(), source };
    let entries = fs::read_dir(path).map_err(read_error).map_err(SourceError::from)?;
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let is_of_capture = |name: &String| name == disk::INFO_FILE || name.ends_with(".parquet");
    for name in names.iter().filter(|name| is_of_capture(name)) {
        staging.copy(&format!("{folder}/{name}"), &path.join(name))?;
    }
    Ok(())
}

/// The partition of a capture.
fn cell_of(info: &CaptureInfo, path: &Path, project: &str) -> Cell {
    let of_path = || path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let machine = info.machine.as_ref().map(|machine| machine.host.clone()).filter(|host| !host.is_empty());
    let date = info.started_at.as_deref().and_then(|at| at.get(..10)).unwrap_or("1970-01-01");
    Cell {
        project: project.to_owned(),
        scenario: info.scenario.clone().unwrap_or_else(of_path),
        phase: info.phase.map_or_else(|| "whole".to_owned(), |phase| phase.to_string()),
        variant: info.variant.clone().unwrap_or_else(|| BASE.to_owned()),
        date: date.to_owned(),
        machine: machine.unwrap_or_else(|| "unknown".to_owned()),
    }
}

/// FNV-1a: a short name for a text, the same on every machine.
fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
