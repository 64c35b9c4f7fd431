//! [`Run`]: the folder of a run, opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stepscope_model::output_file::write_durably;
use stepscope_model::{Phase, disk};

use super::info::{RunInfo, SCHEMA, TrialInfo};
use crate::lab_file::{FILE_NAME, LabFile, LabFileError};
use crate::outcome::Outcome;

/// Name of the file that describes a run.
pub const RUN_FILE: &str = "run.json";

/// Default name of the folder of runs.
pub const RUNS_FOLDER: &str = "stepscope-runs";

/// Name of the link to the newest run.
pub const LATEST: &str = "latest";

/// Largest `run.json` that is read.
const LARGEST_RUN_FILE: u64 = 64 << 20;

/// Deepest level of captures below an opened folder: run, scenario, variant, repetition, phase.
const DEPTH: usize = 5;

/// A folder with more captures is not a run.
const MOST_CAPTURES: usize = 100_000;

/// The compared captures of a scenario's phase: one per run, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedCaptures {
    /// The scenario.
    pub scenario: String,
    /// The phase.
    pub phase: Phase,
    /// Folders of the baseline.
    pub baseline: Vec<PathBuf>,
    /// Folders of the candidate.
    pub candidate: Vec<PathBuf>,
}

/// A run could not be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file or folder cannot be created, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path does not exist.
    #[error("{}: no such run; `stepscope run` creates one in {RUNS_FOLDER}/", path.display())]
    Absent {
        /// The path.
        path: PathBuf,
    },
    /// It has no captures.
    #[error("{}: not a run: it holds neither {RUN_FILE} nor captures; give the folder that `stepscope run` named, e.g. {RUNS_FOLDER}/{LATEST}", path.display())]
    NotARun {
        /// The path.
        path: PathBuf,
    },
    /// `run.json` is damaged.
    #[error("{}: damaged: {reason}. Remove this file to read the captures beside it without it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// `run.json` was written by a newer program.
    #[error("{}: schema {found} is newer than this program supports ({SCHEMA}); use a newer stepscope", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
    },
}

pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RunError + '_ {
    move |source| RunError::Io { path: path.to_owned(), source }
}

/// A run on disk.
#[derive(Debug, Clone)]
pub struct Run {
    pub(super) folder: PathBuf,
    pub(super) info: Option<RunInfo>,
}

impl Run {
    /// Opens a run, or any folder with captures. Deleted captures are left out.
    ///
    /// # Errors
    /// If there is no run, or `run.json` is damaged or newer than this program.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(RunError::Absent { path: path.into() });
            }
            Err(error) => return Err(io_error(path)(error)),
            Ok(metadata) if !metadata.is_dir() => return Err(RunError::NotARun { path: path.into() }),
            Ok(_) => {}
        }
        let latest = path.join(LATEST);
        if !path.join(RUN_FILE).exists() && latest.join(RUN_FILE).exists() {
            return Self::open(&latest);
        }
        let run = Self { folder: path.to_owned(), info: read_info(&path.join(RUN_FILE))? };
        if run.info.is_none() && run.captures().is_empty() {
            return Err(RunError::NotARun { path: path.into() });
        }
        Ok(run)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Content of `run.json`; `None` without one.
    pub fn info(&self) -> Option<&RunInfo> {
        self.info.as_ref()
    }

    /// The copy of the lab file, whose paths are relative to the original's folder. `None` without a copy.
    ///
    /// # Errors
    /// If this version cannot read it.
    pub fn lab(&self) -> Option<Result<LabFile, LabFileError>> {
        let copy = self.folder.join(FILE_NAME);
        let original = self.info.as_ref().and_then(|info| info.lab.clone()).unwrap_or_else(|| copy.clone());
        copy.is_file().then(|| LabFile::read_copy(&copy, &original))
    }

    /// Folders of the existing captures, in the order of the trials, then by path.
    pub fn captures(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        find_folders(&self.folder, DEPTH, &disk::is_capture, &mut found);
        self.in_order_of_trials(found)
    }

    /// Folders of recordings without a capture: the recorder was killed, or the disk was full. `stepscope recover` makes the
    /// captures.
    pub fn unfinished(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let unfinished = |path: &Path| !disk::is_capture(path) && path.join(disk::RAW_LOG_FILE).is_file();
        find_folders(&self.folder, DEPTH, &unfinished, &mut found);
        self.in_order_of_trials(found)
    }

    fn in_order_of_trials(&self, mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
        // The order of interleaved runs is random; here small sizes and the baseline come first.
        let mut trials: Vec<&TrialInfo> = self.trials().iter().collect();
        let scenario_of = |trial: &TrialInfo| self.trials().iter().position(|one| one.scenario == trial.scenario);
        let sizes = |trial: &TrialInfo| trial.sweep.values().map(|size| size.to_bits()).collect::<Vec<u64>>();
        trials.sort_by_cached_key(|trial| (scenario_of(trial), sizes(trial)));
        let candidate = self.info.as_ref().and_then(|info| info.ab.as_ref()).map(|ab| ab.candidate.as_str());
        let place_of = |folder: &PathBuf| {
            let inside = folder.strip_prefix(&self.folder).unwrap_or(folder);
            let parts: Vec<_> = inside.iter().filter_map(|part| part.to_str()).collect();
            let is_scenario = |trial: &TrialInfo| parts.first() == Some(&trial.scenario.as_str());
            let is_trial = |trial: &TrialInfo| is_scenario(trial) && parts.get(1) == Some(&trial.variant_name());
            let place = |is: &dyn Fn(&TrialInfo) -> bool| trials.iter().position(|one| is(one)).unwrap_or(usize::MAX);
            match candidate {
                Some(candidate) => (place(&is_scenario), usize::from(parts.get(1) == Some(&candidate))),
                None => (place(&is_trial), 0),
            }
        };
        folders.sort_by_cached_key(|folder| (place_of(folder), folder.clone()));
        folders
    }

    /// The captures of both sides, for each scenario and phase, if variants were interleaved: those of complete rounds that
    /// were not excluded. Deleted captures are left out. Empty for other runs.
    pub fn sides(&self) -> Vec<ComparedCaptures> {
        let Some((info, ab)) = self.info.as_ref().and_then(|info| Some((info, info.ab.as_ref()?))) else {
            return Vec::new();
        };
        let mut all: Vec<ComparedCaptures> = Vec::new();
        for trial in info.trials.iter().filter(|trial| trial.set_aside.is_none() && trial.result.is_recorded()) {
            for &phase in &trial.captured {
                let folder = self.folder.join(trial.folder()).join(phase.to_string());
                if !disk::is_capture(&folder) {
                    continue;
                }
                let known = all.iter().position(|sides| sides.scenario == trial.scenario && sides.phase == phase);
                let index = known.unwrap_or_else(|| {
                    let scenario = trial.scenario.clone();
                    all.push(ComparedCaptures { scenario, phase, baseline: Vec::new(), candidate: Vec::new() });
                    all.len() - 1
                });
                match trial.variant_name() {
                    variant if variant == ab.baseline => all[index].baseline.push(folder),
                    variant if variant == ab.candidate => all[index].candidate.push(folder),
                    _ => {}
                }
            }
        }
        for sides in &mut all {
            sides.baseline.sort();
            sides.candidate.sort();
        }
        let place = |sides: &ComparedCaptures| info.trials.iter().position(|trial| trial.scenario == sides.scenario);
        all.sort_by_key(|sides| (place(sides), sides.phase));
        all
    }

    /// The trials, in the order they were planned.
    pub(crate) fn trials(&self) -> &[TrialInfo] {
        self.info.as_ref().map(|info| info.trials.as_slice()).unwrap_or_default()
    }

    /// The outcomes of the trials.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.info.iter().flat_map(|info| &info.trials).map(|trial| &trial.result)
    }
}

fn read_info(path: &Path) -> Result<Option<RunInfo>, RunError> {
    let damaged = |reason: String| RunError::Damaged { path: path.to_owned(), reason };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(path)(error)),
        Ok(metadata) if metadata.len() > LARGEST_RUN_FILE => {
            return Err(damaged(format!("it has {} bytes", metadata.len())));
        }
        Ok(_) => {}
    }
    let bytes = fs::read(path).map_err(io_error(path))?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    let found = value.get("schema").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if found > u64::from(SCHEMA) {
        return Err(RunError::TooNew { path: path.to_owned(), found: u32::try_from(found).unwrap_or(u32::MAX) });
    }
    serde_json::from_value(value).map(Some).map_err(|error| damaged(error.to_string()))
}

/// Writes a file of a run atomically.
pub(crate) fn write_file(path: &Path, render: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<(), RunError> {
    let mut bytes = Vec::new();
    render(&mut bytes).and_then(|()| write_durably(path, &bytes)).map_err(io_error(path))
}

/// Adds the folders at or below `folder` that are `wanted`. Links are not followed: they may lead anywhere, and the target of
/// `latest` is found anyway.
fn find_folders(folder: &Path, depth: usize, wanted: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    if found.len() >= MOST_CAPTURES {
        return;
    }
    if wanted(folder) {
        found.push(folder.to_owned());
        return;
    }
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // The folder of excluded runs is hidden.
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_folders(&entry.path(), depth - 1, wanted, found);
        }
    }
}
