//! Captures of several machines, merged to one.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use stepscope_assemble::clocks::{self, Source};
use stepscope_assemble::merge::{self, Part};
use stepscope_convert::ImportOptions;
use stepscope_convert::export::started_at_ns;
use stepscope_model::{Capture, CaptureInfo, Clocks, WallReading};

use crate::source::{self, SourceError};

/// Most of a file with exchanges that is read.
const LARGEST_CLOCKS: u64 = 64 << 20;
/// Most captures: a machine has eight bits in the numbers of messages.
const MOST: usize = 256;

/// How captures are merged.
#[derive(Debug, Clone, Default)]
pub struct Merging {
    /// Names of the machines, in the order of the captures. Empty for their host names.
    pub names: Vec<String>,
    /// Files with exchanges from beside the recordings (`stepscope clock measure -o FILE`).
    pub clocks: Vec<PathBuf>,
    /// How far the wall clocks of any two machines may be apart, if the user knows.
    pub wall_clock_error: Option<Duration>,
}

/// Merges captures of several machines. The clock of the first one is that of the result.
///
/// # Errors
/// If one cannot be read, or its clock cannot be aligned.
pub fn merge(paths: &[PathBuf], merging: &Merging) -> Result<Capture, SourceError> {
    if !(2..=MOST).contains(&paths.len()) {
        return usage(format!("{} captures; name two to {MOST}, one of each machine", paths.len()));
    }
    let further: Vec<Clocks> = merging.clocks.iter().map(|path| read_clocks(path)).collect::<Result<_, _>>()?;
    let mut captures = Vec::with_capacity(paths.len());
    for path in paths {
        let mut capture = source::read_one(path, &ImportOptions::default(), &AtomicU64::new(0))?;
        if capture.info.merged.is_some() {
            return usage(format!("{}: merged already; name the captures that it was merged from", path.display()));
        }
        if merging.wall_clock_error.is_some() {
            add_started_at(&mut capture);
        }
        captures.push(capture);
    }
    let names = names(paths, &captures, &merging.names)?;
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let none = Clocks::default();
    let mut sources = Vec::with_capacity(captures.len());
    for (name, capture) in shown.iter().zip(&captures) {
        let Some(window) = window(&capture.info) else {
            return usage(format!("{name}: it does not say when it was recorded, so it has no place in time"));
        };
        sources.push(Source { name, clocks: capture.info.clocks.as_ref().unwrap_or(&none), window });
    }
    let given_ns = merging.wall_clock_error.map(|error| u64::try_from(error.as_nanos()).unwrap_or(u64::MAX));
    let aligned = clocks::align(&sources, &further, given_ns).map_err(|error| {
        SourceError::Usage(format!(
            "{error}. Record one of them with `--clock-of HOST`, while `stepscope clock serve` runs on the other machine. If neither \
             machine has started again since, exchange datagrams now: `stepscope clock measure HOST -o FILE` on one, and merge with \
             `--clocks FILE`. If you know how well the wall clocks agree, give `--wall-clock-error TIME`"
        ))
    })?;
    let parts = names.into_iter().zip(shown).zip(captures.into_iter().zip(aligned));
    let part = |((name, source), (capture, aligned))| Part { name, source, capture, aligned };
    Ok(merge::merge(parts.map(part).collect()))
}

fn usage<T>(message: String) -> Result<T, SourceError> {
    Err(SourceError::Usage(message))
}

/// The recording window with what starts before it.
fn window(info: &CaptureInfo) -> Option<(u64, u64)> {
    let (start, end) = (info.start_ns?, info.end_ns?);
    let first = info.recording_start_ns.unwrap_or(start).min(start);
    (start <= end).then_some((first, end))
}

/// Where the wall clock was not read, the time of the start stands in, if the user vouches for it.
fn add_started_at(capture: &mut Capture) {
    let (Some(unix_ns), Some(time_ns)) = (started_at_ns(capture), capture.info.start_ns) else { return };
    let wall = &mut capture.info.clocks.get_or_insert_default().wall;
    if wall.is_empty() {
        wall.push(WallReading { time_ns, unix_ns, ..WallReading::default() });
    }
}

/// Names of the machines: as given, else their host names, numbered where these are equal.
fn names(paths: &[PathBuf], captures: &[Capture], given: &[String]) -> Result<Vec<String>, SourceError> {
    if !given.is_empty() {
        let distinct: BTreeSet<&String> = given.iter().filter(|name| !name.trim().is_empty()).collect();
        return match given.len() == paths.len() && distinct.len() == given.len() {
            true => Ok(given.to_vec()),
            false => usage(format!(
                "--names: {} names for {} captures; give each machine a name of its own, in the order of the captures",
                distinct.len(),
                paths.len()
            )),
        };
    }
    let mut names: Vec<String> = Vec::new();
    for (path, capture) in paths.iter().zip(captures) {
        let host = capture.info.machine.as_ref().map(|machine| machine.host.clone()).filter(|host| !host.is_empty());
        let of_path = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = host.or_else(of_path).unwrap_or_else(|| "machine".to_owned());
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.push(free.expect("there are more numbers than names"));
    }
    Ok(names)
}

fn read_clocks(path: &Path) -> Result<Clocks, SourceError> {
    let failed = |why: &dyn std::fmt::Display| {
        SourceError::Usage(format!(
            "{}: {why}; name a file that `stepscope clock measure -o FILE` wrote",
            path.display()
        ))
    };
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST_CLOCKS).read_to_end(&mut text));
    read.map_err(|error| failed(&error))?;
    serde_json::from_slice(&text).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use stepscope_model::{ClockId, Machine, disk};

    use super::*;

    fn recorded(folder: &Path, name: &str, host: &str, change: impl FnOnce(&mut Capture)) -> PathBuf {
        let mut capture = Capture::of(CaptureInfo {
            start_ns: Some(1_000_000_000),
            end_ns: Some(3_000_000_000),
            started_at: Some("2026-11-21T10:00:00Z".into()),
            machine: Some(Machine { host: host.into(), ..Machine::default() }),
            ..CaptureInfo::default()
        });
        change(&mut capture);
        let path = folder.join(name);
        disk::write(&capture, &path).unwrap();
        path
    }

    fn names_of(capture: &Capture) -> Vec<&str> {
        capture.info.merged.as_ref().unwrap().machines.iter().map(|machine| machine.name.as_str()).collect()
    }

    #[test]
    fn machines_of_one_host_name_get_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let own = |capture: &mut Capture| {
            let own = Some(ClockId { host: "pi".into(), boot_id: "b".into(), namespace_offset_ns: 0 });
            capture.info.clocks = Some(Clocks { own, ..Clocks::default() });
        };
        let paths = [recorded(folder.path(), "a", "pi", own), recorded(folder.path(), "b", "pi", own)];
        assert_eq!(names_of(&merge(&paths, &Merging::default()).unwrap()), ["pi", "pi-2"]);
        let merging = Merging { names: vec!["left".into(), "right".into()], ..Merging::default() };
        assert_eq!(names_of(&merge(&paths, &merging).unwrap()), ["left", "right"]);
        for names in [vec!["left".to_owned()], vec!["left".into(), "left".into()], vec!["left".into(), " ".into()]] {
            let error = merge(&paths, &Merging { names, ..Merging::default() }).unwrap_err().to_string();
            assert!(error.starts_with("--names: "), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_merged_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| recorded(folder.path(), name, name, |_| ()));
        let error = |paths: &[PathBuf], merging: &Merging| merge(paths, merging).unwrap_err().to_string();
        assert!(error(std::slice::from_ref(&a), &Merging::default()).starts_with("1 captures"));
        let paths = [a.clone(), b.clone()];
        let refused = error(&paths, &Merging::default());
        assert!(
            refused.contains("the wall clock was not recorded in") && refused.contains("--clock-of HOST"),
            "{refused}"
        );
        let timeless = recorded(folder.path(), "c", "c", |capture| capture.info.end_ns = None);
        assert!(error(&[a.clone(), timeless], &Merging::default()).contains("does not say when"));
        // The user knows better.
        let merging = Merging { wall_clock_error: Some(Duration::from_millis(1)), ..Merging::default() };
        let merged = merge(&paths, &merging).unwrap();
        assert_eq!(merged.info.merged.as_ref().unwrap().machines[1].clock.error_ns, 1_000_000);
        let again = folder.path().join("merged");
        disk::write(&merged, &again).unwrap();
        assert!(error(&[again, b], &merging).contains("merged already"));
        let file = folder.path().join("clocks.json");
        std::fs::write(&file, "{").unwrap();
        let damaged = Merging { clocks: vec![file], ..Merging::default() };
        assert!(error(&paths, &damaged).contains("stepscope clock measure -o FILE"));
    }
}
