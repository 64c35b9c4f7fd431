//! Checkers of memory errors beside a recording: valgrind, and the sanitizers that a program is built with.
//!
//! They write logs into a temporary folder, to which the present capture has a link ([`ERRORS_FOLDER`]): the last capture of a
//! launch has the errors of all, as leaks are found at the end. The recorder only notes how long each log was when, so that each
//! error has a time. When the capture is made, its link becomes a folder with the logs. A killed recorder loses none.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use stepscope_convert::import::memory_errors::logs;
use stepscope_model::disk::ERRORS_FOLDER;
use stepscope_model::{Dimension, DimensionStatus};

use crate::clock;
use crate::launch::Launch;

/// How often the lengths of logs are read: the times of errors are at most this late.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The logs of a launched program.
pub struct ErrorLogs {
    folder: PathBuf,
    /// The link to it in the present capture.
    link: PathBuf,
    times: File,
    lengths: BTreeMap<OsString, u64>,
    looked: Option<Instant>,
    is_under_valgrind: bool,
}

/// What became of the wanted checkers.
#[derive(Default)]
pub struct Prepared {
    pub logs: Option<ErrorLogs>,
    pub dimensions: BTreeMap<Dimension, DimensionStatus>,
}

/// The start of the names of temporary folders.
const TEMPORARY: &str = "stepscope-errors-";

/// Removes the folder of the logs of a program that could not be run.
pub fn remove(capture: &Path) {
    let Some(folder) = linked(capture) else { return };
    let _ = fs::remove_dir_all(folder);
    let _ = fs::remove_file(capture.join(ERRORS_FOLDER));
    let _ = fs::remove_dir(capture);
}

/// Moves the logs into the capture's folder.
pub fn keep(capture: &Path) {
    let Some(from) = linked(capture) else { return };
    let link = capture.join(ERRORS_FOLDER);
    if fs::remove_file(&link).is_err() || fs::create_dir(&link).is_err() {
        return;
    }
    for log in fs::read_dir(&from).into_iter().flatten().flatten() {
        // A log that cannot be copied stays where it is.
        if fs::copy(log.path(), link.join(log.file_name())).is_ok() {
            let _ = fs::remove_file(log.path());
        }
    }
    let _ = fs::remove_dir(from);
}

/// The temporary folder that a capture's link leads to. Links to elsewhere are not ours.
fn linked(capture: &Path) -> Option<PathBuf> {
    let folder = fs::read_link(capture.join(ERRORS_FOLDER)).ok()?;
    let is_ours = folder.file_name()?.to_str()?.starts_with(TEMPORARY) && fs::symlink_metadata(&folder).ok()?.is_dir();
    is_ours.then_some(folder)
}

/// Lets a program run below the wanted checkers, with their logs in the capture's folder.
pub fn prepare(launch: Launch, wanted: &BTreeSet<Dimension>, capture: &Path) -> (Launch, Prepared) {
    let checkers: Vec<Dimension> = logs::CHECKERS.into_iter().filter(|checker| wanted.contains(checker)).collect();
    let mut prepared = Prepared::default();
    if checkers.is_empty() {
        return (launch, prepared);
    }
    let logs = match ErrorLogs::new(capture) {
        Ok(logs) => logs,
        Err(error) => {
            let reason = format!("The folder for the logs cannot be made: {error}.");
            let missing = |checker| (checker, DimensionStatus::Missing { reason: reason.clone(), remedy: None });
            prepared.dimensions = checkers.into_iter().map(missing).collect();
            return (launch, prepared);
        }
    };
    let (mut launch, mut logs) = (launch, logs);
    for checker in checkers {
        let status = match checker {
            Dimension::Memcheck if !launch.has_in_path("valgrind") => DimensionStatus::Missing {
                reason: "valgrind is not installed.".to_owned(),
                remedy: Some("sudo apt install valgrind".to_owned()),
            },
            Dimension::Memcheck => {
                logs.is_under_valgrind = true;
                launch = launch.below(valgrind(&logs.folder));
                DimensionStatus::Recorded
            }
            sanitizer => {
                launch = with_options(launch, sanitizer, &logs.folder);
                DimensionStatus::Recorded
            }
        };
        prepared.dimensions.insert(checker, status);
    }
    prepared.logs = Some(logs);
    (launch, prepared)
}

/// The command that runs a program below memcheck. `VALGRIND_OPTS` adds the user's options.
fn valgrind(folder: &Path) -> Vec<OsString> {
    let mut log = OsString::from("--xml-file=");
    log.push(folder.join("memcheck.%p"));
    let options =
        ["--tool=memcheck", "--xml=yes", "--leak-check=full", "--trace-children=yes", "--child-silent-after-fork=yes"];
    let options = options.into_iter().map(OsString::from);
    [OsString::from("valgrind")].into_iter().chain(options).chain([log]).collect()
}

/// Adds the log to the user's own options of a sanitizer.
fn with_options(launch: Launch, sanitizer: Dimension, folder: &Path) -> Launch {
    let (variable, defaults) = match sanitizer {
        Dimension::Asan => ("ASAN_OPTIONS", ""),
        Dimension::Ubsan => ("UBSAN_OPTIONS", "print_stacktrace=1"),
        _ => ("TSAN_OPTIONS", ""),
    };
    let mut options = OsString::from(defaults);
    if let Some(own) = launch.variable(variable).filter(|own| !own.is_empty()) {
        if !options.is_empty() {
            options.push(":");
        }
        options.push(own);
    }
    if !options.is_empty() {
        options.push(":");
    }
    options.push("log_path=");
    options.push(folder.join(sanitizer.name()));
    launch.env(variable, options)
}

impl ErrorLogs {
    fn new(capture: &Path) -> std::io::Result<Self> {
        static LAUNCHES: AtomicU32 = AtomicU32::new(0);
        let launch = LAUNCHES.fetch_add(1, Ordering::Relaxed);
        let name = format!("{TEMPORARY}{}-{launch}-{:x}", std::process::id(), clock::now_ns());
        let folder = std::path::absolute(std::env::temp_dir())?.join(name);
        fs::create_dir(&folder)?;
        fs::create_dir_all(capture)?;
        let link = capture.join(ERRORS_FOLDER);
        symlink(&folder, &link)?;
        // The program may run as another user.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?;
        let times = OpenOptions::new().create(true).append(true).open(folder.join(logs::TIMES))?;
        Ok(Self { folder, link, times, lengths: BTreeMap::new(), looked: None, is_under_valgrind: false })
    }

    /// The next capture has the logs.
    pub fn continue_in(&mut self, capture: &Path) {
        let link = capture.join(ERRORS_FOLDER);
        if symlink(&self.folder, &link).is_ok() {
            let _ = fs::remove_file(std::mem::replace(&mut self.link, link));
        }
    }

    /// Notes logs that have become longer, if it is time.
    pub fn look(&mut self) {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return;
        }
        self.looked = Some(Instant::now());
        let now_ns = clock::now_ns();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let (name, length) = (entry.file_name(), entry.metadata().map_or(0, |log| log.len()));
            if name == logs::TIMES || self.lengths.get(&name) == Some(&length) {
                continue;
            }
            // A reading that is not written is a time that is not known.
            let _ = writeln!(self.times, "{now_ns} {} {length}", name.to_string_lossy());
            self.lengths.insert(name, length);
        }
    }

    /// What a reader of any result must know.
    pub fn note(&self) -> Option<String> {
        self.is_under_valgrind.then(|| {
            "The program ran under valgrind (memcheck), which makes it 10 to 50 times slower: times and shares are not those \
             of a bare run."
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_user_are_kept_and_ours_come_last() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::new(["sim"]).env("UBSAN_OPTIONS", "halt_on_error=1:log_path=mine");
        let wanted = BTreeSet::from([Dimension::Ubsan, Dimension::Asan]);
        let (launch, prepared) = prepare(launch, &wanted, folder.path());
        let logs = fs::read_link(folder.path().join("errors")).unwrap();
        let expected =
            format!("print_stacktrace=1:halt_on_error=1:log_path=mine:log_path={}", logs.join("ubsan").display());
        assert_eq!(launch.variable("UBSAN_OPTIONS").unwrap().to_str().unwrap(), expected);
        assert!(launch.variable("ASAN_OPTIONS").unwrap().to_str().unwrap().ends_with("/asan"));
        assert!(prepared.dimensions.values().all(|status| *status == DimensionStatus::Recorded));
        remove(folder.path());
        assert!(!logs.exists() && !folder.path().exists());
    }

    #[test]
    fn a_missing_valgrind_is_a_missing_dimension_and_the_program_runs_bare() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::new(["sim"]).env("PATH", folder.path());
        let (launch, prepared) = prepare(launch, &BTreeSet::from([Dimension::Memcheck]), folder.path());
        assert_eq!(launch.command(), ["sim"]);
        assert!(matches!(prepared.dimensions[&Dimension::Memcheck], DimensionStatus::Missing { .. }));
        remove(folder.path());
    }

    #[test]
    fn the_last_capture_keeps_the_logs_and_when_they_changed() {
        let (first, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut logs = ErrorLogs::new(first.path()).unwrap();
        logs.continue_in(folder.path());
        assert!(!first.path().join("errors").is_symlink());
        fs::write(logs.folder.join("asan.7"), "abc").unwrap();
        for _ in 0..2 {
            logs.looked = None;
            logs.look();
        }
        keep(folder.path());
        assert!(!logs.folder.exists());
        let times = fs::read_to_string(folder.path().join("errors/times")).unwrap();
        assert_eq!(times.lines().count(), 1);
        assert!(times.ends_with(" asan.7 3\n"));
    }
}
