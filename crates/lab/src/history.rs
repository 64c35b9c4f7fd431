//! The store of a project's history: what every run said, kept when the runs are deleted.
//!
//! ```text
//! my-simulator/
//!   stepscope.toml
//!   stepscope-runs/...          runs; any of them may be deleted at any time
//!   .stepscope/history.jsonl    one line per capture: its folder, its scenario, its metrics
//! ```
//!
//! The store lies beside the lab file. It is an index that is only ever appended to, a JSON object a line ([`Entry`]), so
//! that it can be read by anything, merged by concatenation, and kept under version control.
//!
//! What must hold:
//!
//! - A capture is in it once, whichever path it was added by: its [`id`](Entry::id) says when and on which machine it began.
//! - Writers do not disturb each other, and an unreadable line is skipped and reported with its number ([`Damage`]).

mod adding;
mod page;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepscope_analyze::basis::Basis;
use stepscope_analyze::history::{Figure, Kept, Recording};
use stepscope_analyze::{Selection, metrics};
use stepscope_model::{CaptureInfo, Note, NoteValue, disk, note};

pub use self::adding::{AddError, Added};
pub(crate) use self::adding::{complete_captures, runs_in};
pub use self::page::report;
pub use crate::json_lines::Damage;
use crate::json_lines::JsonLines;
use crate::lab_file;
use crate::revision::WorkingTree;

/// Name of the folder of a store.
pub const FOLDER: &str = ".stepscope";

/// Name of the index in it.
pub const INDEX: &str = "history.jsonl";

/// Version of a line. Raised when a reader of the old form would misread the new.
const SCHEMA: u32 = 1;

/// A capture, as the store remembers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of this form.
    pub schema: u32,
    /// What tells this capture from all others: when it began, on which machine, and what it is of.
    pub id: String,
    /// Where it lay when it was added: from the folder that holds the store, if it is inside of that.
    pub folder: PathBuf,
    /// What it says.
    #[serde(flatten)]
    pub recording: Recording,
}

/// Where a capture lies.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Folder of the capture.
    pub capture: &'a Path,
    /// Folder of its run; the capture itself if it belongs to none.
    pub run: &'a Path,
    /// The working tree that the run was made from, where that is known.
    pub working_tree: Option<&'a WorkingTree>,
}

/// What a store holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// The captures, in the order in which they were added.
    pub entries: Vec<Entry>,
    /// The lines that were skipped.
    pub damaged: Vec<Damage>,
}

/// The store cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct StoreError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    move |source| StoreError { path: path.to_owned(), source }
}

/// A store, whether it is there already or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The folder that holds the store's folder.
    base: PathBuf,
}

impl Store {
    /// The store in this folder, that of a lab file.
    pub fn beside(base: &Path) -> Self {
        Self { base: base.canonicalize().unwrap_or_else(|_| base.to_owned()) }
    }

    /// The store that someone working in `folder` means: in it or in the nearest folder above that has a store or a lab
    /// file, else in it.
    pub fn of(folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let holds = |folder: &&Path| folder.join(FOLDER).is_dir() || folder.join(lab_file::FILE_NAME).is_file();
        Self { base: folder.ancestors().find(holds).unwrap_or(&folder).to_owned() }
    }

    /// The file that it is in.
    pub fn index(&self) -> PathBuf {
        self.base.join(FOLDER).join(INDEX)
    }

    /// What the store would remember of a capture. `info` alone tells its [`Entry::id`].
    pub fn entry(&self, selection: &Selection<'_>, place: Place<'_>) -> Entry {
        let capture = selection.capture();
        let info = &capture.info;
        let figures = metrics::of(selection, Basis::of(selection)).into_iter().map(Figure::from).collect();
        let built = info.build.as_ref();
        let recording = Recording {
            run: self.relative(place.run).display().to_string(),
            at: info.started_at.clone().unwrap_or_default(),
            scenario: info.scenario.clone().unwrap_or_else(|| capture.info.name()),
            variant: info.variant.clone(),
            phase: info.phase,
            machine: info.machine.clone(),
            build: built.and_then(|build| build.kind.clone()),
            revision: built.and_then(|build| build.revision.clone()).or_else(|| place.working_tree.map(revision)),
            tool: info.tool.clone(),
            figures,
            kept: Kept::There,
        };
        Entry { schema: SCHEMA, id: self.id(info, place.capture), folder: self.relative(place.capture), recording }
    }

    /// The [`Entry::id`] of a capture that lies here.
    pub fn id(&self, info: &CaptureInfo, capture: &Path) -> String {
        let Some(started_at) = &info.started_at else {
            return self.relative(capture).display().to_string();
        };
        let host = info.machine.as_ref().map_or("", |machine| machine.host.as_str());
        let start_ns = info.start_ns.map(|ns| ns.to_string()).unwrap_or_default();
        let label = info.label().unwrap_or_default();
        let repetition = info.repetition.map(|number| format!("#{number}")).unwrap_or_default();
        [started_at, host, &start_ns, &format!("{label}{repetition}")].join(" ").trim_end().to_owned()
    }

    /// The path from the store's base, if it is inside of that; else the whole.
    fn relative(&self, path: &Path) -> PathBuf {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        path.strip_prefix(&self.base).map(Path::to_owned).unwrap_or(path)
    }

    /// Adds what is not in it yet, and gives how many that were.
    ///
    /// # Errors
    /// If the index cannot be made, locked, read or written.
    pub fn add(&self, entries: &[Entry]) -> Result<usize, StoreError> {
        if entries.is_empty() {
            return Ok(0);
        }
        let path = self.index();
        let mut lines = JsonLines::open_to_append(&path, SCHEMA).map_err(at(&path))?;
        let (known, _) = lines.read::<Entry>().map_err(at(&path))?;
        let mut ids: HashSet<&str> = known.iter().map(|entry| entry.id.as_str()).collect();
        let new: Vec<&Entry> = entries.iter().filter(|entry| ids.insert(&entry.id)).collect();
        if !new.is_empty() {
            lines.append(&new).map_err(at(&path))?;
        }
        Ok(new.len())
    }

    /// All entries, none if the store does not exist. Each says whether its capture still exists.
    ///
    /// # Errors
    /// If the index is there and cannot be read.
    pub fn read(&self) -> Result<Contents, StoreError> {
        let path = self.index();
        let Some(mut lines) = JsonLines::open(&path, SCHEMA).map_err(at(&path))? else {
            return Ok(Contents::default());
        };
        let (entries, damaged) = lines.read().map_err(at(&path))?;
        let mut found = Contents { entries, damaged };
        for entry in &mut found.entries {
            let there = disk::is_capture(&self.base.join(&entry.folder));
            entry.recording.kept = if there { Kept::There } else { Kept::Gone };
        }
        Ok(found)
    }
}

impl Contents {
    /// What the captures say.
    pub fn recordings(&self) -> Vec<Recording> {
        self.entries.iter().map(|entry| entry.recording.clone()).collect()
    }

    /// The damaged lines of the file `index`.
    pub fn remarks(&self, index: &Path) -> Vec<Note> {
        let index = index.display().to_string();
        let skipped = |damage: &Damage| {
            note!(Loss, "{}:{}: skipped: {}.", &index, NoteValue::number(damage.line), &damage.reason)
        };
        let mut remarks: Vec<Note> = self.damaged.iter().take(MOST_DAMAGED).map(skipped).collect();
        if let Some(more) = self.damaged.len().checked_sub(MOST_DAMAGED).filter(|more| *more > 0) {
            remarks.push(note!(Loss, "{} more of {} were skipped.", NoteValue::plural(more, "line"), &index));
        }
        remarks
    }
}

/// Damaged lines that are reported one by one.
const MOST_DAMAGED: usize = 5;

fn revision(tree: &WorkingTree) -> String {
    match tree.changed_files {
        0 => tree.revision.clone(),
        files => format!("{}+{files}", tree.revision),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use stepscope_model::Machine;

    use super::*;

    fn numbered(number: usize) -> Entry {
        Entry {
            schema: SCHEMA,
            id: format!("2026-11-21T10:00:00.000Z lab {number}"),
            folder: format!("stepscope-runs/{number}/shapes/base/steady").into(),
            recording: Recording {
                run: format!("stepscope-runs/{number}"),
                at: "2026-11-21T10:00:00.000Z".into(),
                scenario: "shapes".into(),
                variant: None,
                phase: None,
                machine: Some(Machine { host: "lab".into(), ..Machine::default() }),
                build: None,
                revision: None,
                tool: "stepscope 0.1.0".into(),
                figures: vec![Figure {
                    name: "rtf".into(),
                    unit: String::new(),
                    better: None,
                    value: number as f64 / 7.0,
                }],
                kept: Kept::Gone,
            },
        }
    }

    #[test]
    fn added_captures_are_read_back_and_adding_them_again_changes_nothing() {
        let base = tempfile::tempdir().unwrap();
        let store = Store::beside(base.path());
        assert_eq!(store.read().unwrap(), Contents::default());
        assert_eq!(store.add(&[numbered(1), numbered(2), numbered(1)]).unwrap(), 2);
        let written = fs::read(store.index()).unwrap();
        assert_eq!(store.add(&[numbered(2)]).unwrap(), 0);
        assert_eq!(fs::read(store.index()).unwrap(), written);
        assert_eq!(store.read().unwrap().entries, [numbered(1), numbered(2)]);
    }

    #[test]
    fn damaged_lines_are_skipped_with_a_note_and_an_unfinished_line_is_ended() {
        let base = tempfile::tempdir().unwrap();
        let store = Store::beside(base.path());
        store.add(&[numbered(1)]).unwrap();
        let mut text = fs::read_to_string(store.index()).unwrap();
        text.push_str("\n{\"schema\":9,\"id\":\"x\"}\n");
        text.push_str(&"x".repeat(2 << 20));
        text.push_str("\n\u{1}\n{\"schema\":1,\"id\":\"2026");
        fs::write(store.index(), text).unwrap();
        assert_eq!(store.add(&[numbered(2)]).unwrap(), 1);
        let found = store.read().unwrap();
        assert_eq!(found.entries, [numbered(1), numbered(2)]);
        let lines: Vec<usize> = found.damaged.iter().map(|damage| damage.line).collect();
        assert_eq!(lines, [3, 4, 5, 6]);
        assert!(found.damaged[0].reason.contains("newer"), "{:?}", found.damaged[0]);
        let remarks = found.remarks(Path::new("history.jsonl"));
        assert!(remarks[1].starts_with("history.jsonl:4: skipped: it is too long"), "{remarks:?}");
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing_and_add_nothing_twice() {
        let base = tempfile::tempdir().unwrap();
        let store = Store::beside(base.path());
        let added: usize = thread::scope(|scope| {
            let writer = |first: usize| {
                let store = &store;
                scope.spawn(move || -> usize {
                    (first..first + 20)
                        .map(|number| store.add(&[numbered(number), numbered(number + 1)]).unwrap())
                        .sum()
                })
            };
            let writers = [0, 10, 20, 30].map(writer);
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        let found = store.read().unwrap();
        assert_eq!((added, found.entries.len(), found.damaged), (51, 51, Vec::new()));
    }

    #[test]
    fn the_store_is_in_the_nearest_folder_with_a_lab_file_or_a_store() {
        let base = tempfile::tempdir().unwrap();
        let inner = base.path().join("worlds/indoor");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(Store::of(&inner), Store::beside(&inner));
        fs::write(base.path().join(lab_file::FILE_NAME), "").unwrap();
        assert_eq!(Store::of(&inner), Store::beside(base.path()));
        fs::create_dir_all(base.path().join("worlds").join(FOLDER)).unwrap();
        assert_eq!(Store::of(&inner), Store::beside(&base.path().join("worlds")));
    }

    #[test]
    fn a_capture_is_the_same_wherever_it_lies() {
        let store = Store::beside(Path::new("/home/me/lab"));
        let started = CaptureInfo {
            started_at: Some("2026-11-21T10:00:00.000Z".into()),
            start_ns: Some(12),
            scenario: Some("shapes".into()),
            repetition: Some(2),
            ..CaptureInfo::default()
        };
        let id = store.id(&started, Path::new("/here"));
        assert_eq!(id, "2026-11-21T10:00:00.000Z  12 shapes#2");
        assert_eq!(store.id(&started, Path::new("/there")), id);
        let silent = CaptureInfo::default();
        assert_eq!(store.id(&silent, Path::new("/home/me/lab/a.capture")), "a.capture");
    }
}
