//! Captures by path: captures, runs, patterns, lists, and files of other tools.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use stepscope_analyze::diagnose::Calls;
use stepscope_analyze::{Filter, Functions, Naming, Owned, Ownership, SelectError, Selection};
use stepscope_assemble::Joiner;
use stepscope_convert::import::is_input_folder;
use stepscope_convert::{ImportError, ImportOptions, Source};
use stepscope_model::disk::{self, DiskError};
use stepscope_model::{Capture, CaptureInfo};
use stepscope_store::StoreError;

use crate::lab_file::{FILE_NAME, LabFile, LabFileError};
use crate::run::{LATEST, RUN_FILE, RUNS_FOLDER, Run, RunError};
use crate::stored_captures;

/// File in a run's folder with the calls that `diagnose --deepen` counted.
pub const CALLS_FILE: &str = "calls.json";

/// Most of such a file that is read.
const LARGEST_CALLS_FILE: u64 = 16 << 20;

/// Captures could not be opened, selected or compared.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The request cannot be served. The message says what to change.
    #[error("{0}")]
    Usage(String),
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] DiskError),
    /// A run cannot be opened.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of another tool cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The lab file of a run cannot be read.
    #[error(transparent)]
    Lab(#[from] LabFileError),
    /// The filter names something that the capture does not have.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A store cannot be read.
    #[error("{0}")]
    Store(StoreError),
    /// A pattern matches something that cannot be read.
    #[error(transparent)]
    Pattern(#[from] glob::GlobError),
}

impl From<StoreError> for SourceError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Usage(message) => Self::Usage(message),
            error => Self::Store(error),
        }
    }
}

/// Captures of several sources, and the first run among these.
#[derive(Debug)]
pub struct Loaded {
    /// The captures, in the order of the sources and of the runs' scenarios.
    pub captures: Vec<Capture>,
    /// The first source that is a run.
    pub run: Option<Run>,
    /// Ownership according to that run's lab file.
    pub ownership: Option<Ownership>,
    /// What that lab file calls processes and code.
    pub naming: Naming,
    /// What `diagnose --deepen` found out about calls of functions, if that run was deepened.
    pub calls: Calls,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
}

impl Loaded {
    fn follow(&mut self, lab: Option<LabFile>) {
        (self.ownership, self.naming) = match lab {
            Some(lab) => (Some(lab.owned), lab.naming),
            None => (None, Naming::default()),
        };
    }

    /// Reads what `diagnose --deepen` found out. A damaged file is left out, with a note.
    fn read_calls(&mut self, folder: &Path) {
        let path = folder.join(CALLS_FILE);
        let file = File::open(&path).and_then(|file| {
            let mut text = Vec::new();
            file.take(LARGEST_CALLS_FILE).read_to_end(&mut text).map(|_| text)
        });
        let Ok(text) = file else { return };
        match serde_json::from_slice(&text) {
            Ok(calls) => self.calls = calls,
            Err(error) => self.notes.push(format!("{}: damaged: {error}; calls are left out", path.display())),
        }
    }

    /// The functions of each capture, each marked as owned or not.
    pub fn functions(&self, owned: &Owned) -> Vec<Functions> {
        self.captures.iter().map(|capture| Functions::of(capture, owned)).collect()
    }
}

/// Reads runs (all their captures), captures, and files of other tools, which are imported with these options.
///
/// # Errors
/// If a source cannot be read, or none of a run's captures can.
pub fn open(sources: &[PathBuf], importing: &ImportOptions) -> Result<Loaded, SourceError> {
    let mut loaded = Loaded {
        captures: Vec::new(),
        run: None,
        ownership: None,
        naming: Naming::default(),
        calls: Calls::default(),
        notes: Vec::new(),
    };
    for source in &in_folders(sources)? {
        if !source.is_dir() || is_capture(source) || is_input_folder(source) {
            let capture = read_one(source, importing, &AtomicU64::new(0))?;
            if source.is_file() || (source.is_dir() && !is_capture(source)) {
                loaded.notes.extend(capture.info.notes.iter().cloned());
            }
            loaded.captures.push(capture);
            if loaded.ownership.is_none() {
                loaded.follow(lab_of_capture(source));
            }
            // Calls belong to a scenario, and captures of commands have none.
            if let [one] = sources
                && is_capture(one)
            {
                loaded.read_calls(one);
            }
            continue;
        }
        let run = Run::open(source)?;
        read_run(&run, &mut loaded)?;
        if loaded.run.is_none() {
            loaded.follow(run.lab().transpose()?);
            loaded.read_calls(run.folder());
            loaded.run = Some(run);
        }
    }
    Ok(loaded)
}

/// The sources, with the folders of captures in place of those that name some of a store.
fn in_folders(sources: &[PathBuf]) -> Result<Vec<PathBuf>, SourceError> {
    let mut folders = Vec::new();
    for source in sources {
        match stored_captures::captures(source) {
            Some(captures) => folders.extend(captures?),
            None => folders.push(source.clone()),
        }
    }
    Ok(folders)
}

/// Adds the captures of a run that can be read, and a note about each that cannot.
fn read_run(run: &Run, loaded: &mut Loaded) -> Result<(), SourceError> {
    let before = loaded.captures.len();
    let mut damaged = Vec::new();
    for folder in run.captures() {
        match disk::read(&folder) {
            Ok(capture) => loaded.captures.push(capture),
            Err(error) => damaged.push(error),
        }
    }
    if loaded.captures.len() == before
        && let Some(error) = damaged.pop()
    {
        return Err(error.into());
    }
    loaded.notes.extend(damaged.iter().map(|error| format!("{error}; this capture is left out")));
    let unfinished =
        |folder: PathBuf| format!("{0} is unfinished; recover it: stepscope recover {0}", folder.display());
    loaded.notes.extend(run.unfinished().into_iter().map(unfinished));
    Ok(())
}

/// Reads a capture folder, a file of another tool, or standard input (`-`). `consumed` counts the bytes read of a file.
///
/// # Errors
/// If there is no capture at the path, or the file cannot be imported.
pub fn read_one(path: &Path, importing: &ImportOptions, consumed: &AtomicU64) -> Result<Capture, SourceError> {
    let capture = open_one(path, importing, consumed)?;
    capture.load().map_err(DiskError::from)?;
    Ok(capture)
}

/// As [`read_one`], but samples and waits of a capture folder are read when they are first used: ask
/// [`Capture::load_error`] before you show a result.
///
/// # Errors
/// As for [`read_one`].
pub fn open_one(path: &Path, importing: &ImportOptions, consumed: &AtomicU64) -> Result<Capture, SourceError> {
    if let Some(captures) = stored_captures::captures(path) {
        let captures = captures?;
        return match &captures[..] {
            [one] => Ok(disk::open(one)?),
            several => Err(SourceError::Usage(format!(
                "{}: {} captures; name one of them with further keys, e.g. run=... and repetition=1",
                path.display(),
                several.len()
            ))),
        };
    }
    if path.is_file() || path == Path::new("-") || (!is_capture(path) && is_input_folder(path)) {
        return import(path, importing, consumed);
    }
    if path.is_dir() && !is_capture(path) {
        let inside = Run::open(path).map(|run| run.captures()).unwrap_or_default();
        if let Some(first) = inside.first() {
            return Err(SourceError::Usage(format!(
                "{}: a run with {} captures; name one of them, e.g. {}. `stepscope rank` and `stepscope report` take the \
                 whole run",
                path.display(),
                inside.len(),
                first.display()
            )));
        }
    }
    let is_divided = !disk::is_capture(path) && !disk::segments(path).is_empty();
    if is_divided { open_segments(path) } else { Ok(disk::open(path)?) }
}

/// Reads the segments of a recording as one capture. A segment that cannot be read is left out, with a note.
fn open_segments(path: &Path) -> Result<Capture, SourceError> {
    let segments = disk::segments(path);
    let (mut joiner, mut damaged) = (Joiner::default(), Vec::new());
    for segment in &segments {
        match disk::read(segment) {
            Ok(capture) => joiner.add(&capture),
            Err(error) => damaged.push(error),
        }
    }
    if damaged.len() == segments.len()
        && let Some(error) = damaged.pop()
    {
        return Err(error.into());
    }
    let mut capture = joiner.finish();
    capture.info.notes.extend(damaged.iter().map(|error| format!("{error}. This segment is left out.")));
    Ok(capture)
}

/// Imports a file of another tool, or standard input (`-`). `consumed` counts the bytes read.
///
/// # Errors
/// If the file cannot be read, or its format is unknown.
pub fn import(path: &Path, importing: &ImportOptions, consumed: &AtomicU64) -> Result<Capture, SourceError> {
    if path == Path::new("-") && io::stdin().is_terminal() {
        let message = "`-` reads standard input, which is a terminal; pipe a profile into it, or name a file";
        return Err(SourceError::Usage(message.to_owned()));
    }
    let source = Source::open(path)?;
    Ok(stepscope_convert::import(source.counting(consumed), importing)?)
}

/// What `filter` selects of each capture.
///
/// # Errors
/// If the filter names something that a capture does not have.
pub fn selections<'a>(
    captures: impl IntoIterator<Item = &'a Capture>,
    functions: &'a [Functions],
    filter: &Filter,
) -> Result<Vec<Selection<'a>>, SelectError> {
    let pairs = captures.into_iter().zip(functions);
    pairs.map(|(capture, functions)| Selection::new(capture, functions, filter)).collect()
}

/// The lab file of the run that holds this capture, which lies at `RUN/SCENARIO/VARIANT/PHASE` or, if it was repeated, at
/// `RUN/SCENARIO/VARIANT/NUMBER/PHASE`, or in a store.
pub fn lab_of_capture(capture: &Path) -> Option<LabFile> {
    if let Some(captures) = stored_captures::captures(capture) {
        return lab_of_capture(captures.ok()?.first()?);
    }
    let capture = capture.canonicalize().ok()?;
    if let Some(copy) = stored_captures::lab_of(&capture) {
        return LabFile::read_copy(&copy, &copy).ok();
    }
    let run = capture.ancestors().skip(3).take(2).find(|folder| folder.join(FILE_NAME).is_file())?;
    Run::open(run).ok()?.lab()?.ok()
}

/// Whether the folder holds a capture, the raw log of an unfinished one, or segments of a recording.
pub fn is_capture(path: &Path) -> bool {
    disk::is_capture(path) || path.join(disk::RAW_LOG_FILE).exists() || !disk::segments(path).is_empty()
}

/// The newest capture in a folder, or the latest of the runs in it, by the time at which it was recorded.
pub fn newest_in(folder: &Path) -> Option<PathBuf> {
    let captures = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| disk::is_capture(path));
    let captures = captures.map(|path| (path.join(disk::INFO_FILE), path));
    let run = folder.join(RUNS_FOLDER).join(LATEST);
    let candidates = captures.chain([(run.join(RUN_FILE), run)]);
    let dated = candidates.filter_map(|(info, path)| Some((info.metadata().ok()?.modified().ok()?, path)));
    dated.max().map(|(_, path)| path)
}

/// Folders and files of the captures that a source names: a capture, a file, a run, a pattern, or several with commas
/// between; or captures of a store. A run with interleaved variants gives only its compared rounds.
///
/// # Errors
/// If a source does not exist.
pub fn captures_of(source: &Path) -> Result<Vec<PathBuf>, SourceError> {
    if let Some(captures) = stored_captures::captures(source) {
        return Ok(captures?);
    }
    if source == Path::new("-") || source.is_file() || is_capture(source) || is_input_folder(source) {
        return Ok(vec![source.to_owned()]);
    }
    if source.is_dir() {
        return Ok(compared_captures(&Run::open(source)?));
    }
    let text = source.to_string_lossy();
    let inside = |parts: &[PathBuf]| -> Result<Vec<PathBuf>, SourceError> {
        Ok(parts.iter().map(|path| captures_of(path)).collect::<Result<Vec<_>, _>>()?.concat())
    };
    if text.contains(',') {
        return inside(&text.split(',').filter(|part| !part.is_empty()).map(PathBuf::from).collect::<Vec<_>>());
    }
    if text.contains(['*', '?', '[', '{']) {
        return inside(&matching(&text)?);
    }
    Err(SourceError::Usage(format!(
        "{text}: no such capture, run or file. To name several, give a folder, a pattern in quotes ('runs/before-*'), or \
         a list with commas"
    )))
}

fn compared_captures(run: &Run) -> Vec<PathBuf> {
    let sides = run.sides();
    if sides.is_empty() {
        return run.captures();
    }
    let baseline = sides.iter().flat_map(|sides| &sides.baseline);
    baseline.chain(sides.iter().flat_map(|sides| &sides.candidate)).cloned().collect()
}

/// Paths that a pattern matches, sorted.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, SourceError> {
    let found = glob::glob(pattern).map_err(|error| SourceError::Usage(format!("{pattern}: {error}")))?;
    let found: Vec<PathBuf> = found.collect::<Result<_, _>>()?;
    match found.is_empty() {
        true => Err(SourceError::Usage(format!("{pattern}: nothing matches this pattern"))),
        false => Ok(found),
    }
}

/// Gives recordings without timestamps this duration, so that their costs are per second.
pub(crate) fn assume_duration<'a>(infos: impl Iterator<Item = &'a mut CaptureInfo>, duration: std::time::Duration) {
    for info in infos.filter(|info| info.wall_ns().is_none()) {
        (info.start_ns, info.end_ns) = (Some(0), Some(duration.as_nanos() as u64));
    }
}
