//! Captures by path: folders of ours, and files of other tools read on the fly.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use stepscope_analyze::{Filter, Functions, Ownership, Selection};
use stepscope_convert::{ImportOptions, Source};
use stepscope_lab::lab_file::{FILE_NAME, LabFile};
use stepscope_lab::run::Run;
use stepscope_model::{Capture, disk};

use crate::arguments::OwnedArguments;
use crate::failure::Failure;
use crate::progress;

/// Reads a capture folder, a file of another tool, or standard input (`-`).
pub fn capture(path: &Path) -> Result<Capture, Failure> {
    capture_with(path, &ImportOptions::default())
}

/// The same, with options for what has to be imported.
pub fn capture_with(path: &Path, options: &ImportOptions) -> Result<Capture, Failure> {
    if path.is_file() || path == Path::new("-") {
        let capture = import(path, options)?;
        capture.info.notes.iter().for_each(|note| eprintln!("note: {note}"));
        return Ok(capture);
    }
    if path.is_dir() && !disk::is_capture(path) && !path.join(disk::RAW_LOG_FILE).exists() {
        let inside = Run::open(path).map(|run| run.captures()).unwrap_or_default();
        if let Some(first) = inside.first() {
            let (name, count) = (path.display(), inside.len());
            return Err(Failure::Usage(format!(
                "{name}: a run of {count} captures: name one of them, such as {}; `stepscope rank` and `report` take the \
                 whole run",
                first.display()
            )));
        }
    }
    Ok(disk::read(path)?)
}

/// What the lab file says is owned, of the run that this capture lies in.
pub fn ownership_beside(capture: &Path) -> Option<Ownership> {
    lab_beside(capture).map(|lab| lab.owned)
}

/// The lab file of the run that this capture lies in, at `RUN/SCENARIO/VARIANT/PHASE` or, where it is one of several runs,
/// at `RUN/SCENARIO/VARIANT/NUMBER/PHASE`.
pub fn lab_beside(capture: &Path) -> Option<LabFile> {
    let capture = capture.canonicalize().ok()?;
    let run = capture.ancestors().skip(3).take(2).find(|folder| folder.join(FILE_NAME).is_file())?;
    Run::open(run).ok()?.lab()?.ok()
}

/// Reads a file of another tool, or standard input (`-`).
pub fn import(path: &Path, options: &ImportOptions) -> Result<Capture, Failure> {
    if path == Path::new("-") && io::stdin().is_terminal() {
        let message = "`-` reads standard input, which is a terminal here; pipe a profile into it, or name a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    let size = path.metadata().ok().map(|metadata| metadata.len());
    let source = Source::open(path)?;
    let name = path.display().to_string();
    let capture = progress::of_bytes(&name, size, |bytes| stepscope_convert::import(source.counting(bytes), options))?;
    Ok(capture)
}

/// Captures of several sources, and the first run among these.
pub struct Loaded {
    /// The captures, in the order of the sources and of the runs' scenarios.
    pub captures: Vec<Capture>,
    /// The first source that is a run.
    pub run: Option<Run>,
    /// Ownership according to that run's lab file.
    pub ownership: Option<Ownership>,
}

impl Loaded {
    /// The functions of each capture, judged by the command line, else by the run's lab file.
    pub fn functions(&self, owned: &OwnedArguments) -> Result<Vec<Functions>, Failure> {
        let owned = owned.owned(self.ownership.as_ref())?;
        Ok(self.captures.iter().map(|capture| Functions::of(capture, &owned)).collect())
    }
}

/// What `filter` selects of each capture.
pub fn selections<'a>(
    captures: &'a [Capture],
    functions: &'a [Functions],
    filter: &Filter,
) -> Result<Vec<Selection<'a>>, Failure> {
    let pairs = captures.iter().zip(functions);
    let selections = pairs.map(|(capture, functions)| Selection::new(capture, functions, filter));
    Ok(selections.collect::<Result<_, _>>()?)
}

/// Reads runs (all their captures), captures and files of other tools.
pub fn all(sources: &[PathBuf]) -> Result<Loaded, Failure> {
    let mut loaded = Loaded { captures: Vec::new(), run: None, ownership: None };
    for source in sources {
        if !source.is_dir() || disk::is_capture(source) || source.join(disk::RAW_LOG_FILE).exists() {
            loaded.captures.push(capture(source)?);
            loaded.ownership = loaded.ownership.or_else(|| ownership_beside(source));
            continue;
        }
        let run = Run::open(source)?;
        loaded.captures.extend(of_run(&run)?);
        for folder in run.unfinished() {
            eprintln!("note: {} is unfinished; `stepscope recover` brings it back", folder.display());
        }
        if loaded.run.is_none() {
            loaded.ownership = run.lab().transpose()?.map(|lab| lab.owned);
            loaded.run = Some(run);
        }
    }
    Ok(loaded)
}

/// The captures of a run that can be read. What cannot be is told and left out, unless that is all there is.
fn of_run(run: &Run) -> Result<Vec<Capture>, Failure> {
    let (mut captures, mut damaged) = (Vec::new(), Vec::new());
    for folder in run.captures() {
        match disk::read(&folder) {
            Ok(capture) => captures.push(capture),
            Err(error) => damaged.push(error),
        }
    }
    if captures.is_empty()
        && let Some(error) = damaged.pop()
    {
        return Err(error.into());
    }
    damaged.iter().for_each(|error| eprintln!("note: {error}; this capture is left out"));
    Ok(captures)
}
