//! Finds calls of Python functions in a running program that repeat an earlier one.
//!
//! The library that is preloaded for Python functions runs a file of ours in the program ([`stepscope_python::LOOK`]), which puts hooks into
//! the functions. They talk by files in a folder: `functions` and `go` are for the program, `results-PID.json` is from it.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::clock;

/// The variable that names the folder.
const VARIABLE: &str = "STEPSCOPE_PYTHON_LOOK";

/// How long the program looks at most, and then for how long its results are waited for.
const LENGTH: Duration = Duration::from_secs(8);
const SPARE: Duration = Duration::from_secs(3);

/// How long a program may take until its functions are there, and the time between two tries.
const START: Duration = Duration::from_secs(15);
const TRY_EVERY: Duration = Duration::from_millis(500);

/// How long other processes of the program are waited for when one has its results.
const OTHERS: Duration = Duration::from_secs(1);

/// Time between two looks at the folder.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Longest file of results. They are written by the program, which may be anything.
const MOST_BYTES: u64 = 1 << 24;

/// The longest time that [`PythonLook::run`] takes.
pub const LONGEST: Duration = START.saturating_add(LENGTH).saturating_add(SPARE);

/// A Python function, as captures name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PythonFunction {
    /// Its qualified name; before Python 3.11 the last part of it.
    pub name: String,
    /// Its source file.
    pub file: String,
}

/// What was seen of a function's calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PythonCalls {
    /// Calls that were compared.
    pub compared: u64,
    /// Of these, calls that repeat an earlier one.
    pub repeated: u64,
    /// The part of the function's time that these take, 0 to 1.
    pub part: f64,
    /// CPU time of a call (median).
    pub call_ns: u64,
    /// What its calls read: arguments, attributes of `self`, globals.
    pub reads: Vec<String>,
    /// Why its calls cannot be compared, if they cannot: "it uses random numbers". Of calls that change what they read it is known
    /// that they repeat nothing.
    pub incomparable: Option<String>,
}

/// A look at the calls of functions, in a program that is launched with its variable.
#[derive(Debug)]
pub struct PythonLook {
    folder: PathBuf,
    functions: Vec<PythonFunction>,
}

/// A file of results.
#[derive(Deserialize)]
struct Results {
    done: bool,
    functions: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    file: String,
    compared: u64,
    repeated: u64,
    compared_ns: i64,
    repeated_ns: i64,
    call_ns: i64,
    reads: Vec<String>,
    incomparable: Option<String>,
}

impl PythonLook {
    /// Writes what the program needs.
    ///
    /// # Errors
    /// If a temporary folder cannot be written.
    pub fn prepare(functions: Vec<PythonFunction>) -> io::Result<Self> {
        let name = format!("stepscope-look-{}-{:x}", std::process::id(), clock::now_ns());
        let look = Self { folder: std::env::temp_dir().join(name), functions };
        fs::create_dir(&look.folder)?;
        // SAFETY: getuid only returns a number.
        let is_root = unsafe { libc::getuid() } == 0;
        // The program may run with the rights of the user who called sudo.
        fs::set_permissions(&look.folder, Permissions::from_mode(if is_root { 0o1777 } else { 0o700 }))?;
        let is_line = |one: &&PythonFunction| !format!("{}{}", one.name, one.file).contains(['\t', '\n']);
        let line = |one: &PythonFunction| format!("{}\t{}\n", one.name, one.file);
        let lines: String = look.functions.iter().filter(is_line).map(line).collect();
        look.write("look.py", stepscope_python::LOOK.as_bytes())?;
        look.write("functions", lines.as_bytes())?;
        // A page, which the program maps.
        look.write("go", &[0; 4096])?;
        Ok(look)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(0o644))
    }

    /// The variable that the program must have, and its value.
    pub fn variable(&self) -> (&'static str, &Path) {
        (VARIABLE, &self.folder)
    }

    /// Lets the program look at calls until enough is known or `stop` is set. One result for each function, in their order: `None` for those that
    /// no process has.
    ///
    /// # Errors
    /// If the start signal cannot be written.
    pub fn run(&self, stop: &AtomicBool) -> io::Result<Vec<Option<PythonCalls>>> {
        use std::os::unix::fs::FileExt as _;
        let go = File::options().write(true).open(self.folder.join("go"))?;
        let (began, mut first, mut tries) = (Instant::now(), None::<Instant>, 0);
        loop {
            let results = self.read();
            if !results.is_empty() {
                first.get_or_insert_with(Instant::now);
            }
            let since = first.map(|first| first.elapsed());
            if since.is_none_or(|since| since < OTHERS) && began.elapsed() >= TRY_EVERY * tries {
                tries += 1;
                go.write_all_at(&[tries.min(0xff) as u8], 0)?;
            }
            let is_over = match since {
                None => began.elapsed() > START,
                Some(since) => since > LENGTH + SPARE || since > OTHERS && results.iter().all(|one| one.done),
            };
            if is_over || stop.load(Ordering::Relaxed) {
                return Ok(self.functions.iter().map(|one| calls_of(one, &results)).collect());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The results of all processes so far.
    fn read(&self) -> Vec<Results> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let results = files.filter(|file| {
            let name = file.file_name();
            let name = name.to_string_lossy();
            let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
            is_file && name.starts_with("results-") && name.ends_with(".json")
        });
        let read = |path: PathBuf| {
            let mut text = Vec::new();
            File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
            serde_json::from_slice(&text).ok()
        };
        results.filter_map(|file| read(file.path())).collect()
    }
}

impl Drop for PythonLook {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The calls of a function in the process that compared most of them. Several functions may have one name: before Python 3.11, those of several
/// classes.
fn calls_of(function: &PythonFunction, results: &[Results]) -> Option<PythonCalls> {
    let of_process = |one: &Results| {
        let rows: Vec<&Row> =
            one.functions.iter().filter(|row| (&row.name, &row.file) == (&function.name, &function.file)).collect();
        let largest = rows.iter().max_by_key(|row| row.compared_ns)?;
        let time: i64 = rows.iter().map(|row| row.compared_ns.max(0)).sum();
        let repeated: i64 = rows.iter().map(|row| row.repeated_ns.max(0)).sum();
        let mut reads = largest.reads.clone();
        reads.truncate(64);
        Some(PythonCalls {
            compared: rows.iter().map(|row| row.compared).sum(),
            repeated: rows.iter().map(|row| row.repeated).sum(),
            part: (repeated as f64 / time.max(1) as f64).min(1.0),
            call_ns: largest.call_ns.max(0) as u64,
            reads,
            incomparable: largest.incomparable.clone(),
        })
    };
    results.iter().filter_map(of_process).max_by_key(|calls| calls.compared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str) -> PythonFunction {
        PythonFunction { name: name.to_owned(), file: "/sim.py".to_owned() }
    }

    #[test]
    fn the_process_that_compared_most_counts_and_functions_of_one_name_are_added_up() {
        let look = PythonLook::prepare(["plan", "init", "other"].map(function).to_vec()).unwrap();
        let row = |name: &str, compared: u32, repeated: u32| {
            format!(
                r#"{{"name": "{name}", "file": "/sim.py", "calls": 9, "compared": {compared}, "repeated": {repeated}, "compared_ns": {compared}00,
                "repeated_ns": {repeated}00, "call_ns": 100, "reads": ["self.map"], "incomparable": null}}"#
            )
        };
        let write = |pid: u32, rows: &[String]| {
            let text = format!(r#"{{"python": "3.11.7", "done": true, "functions": [{}]}}"#, rows.join(", "));
            look.write(&format!("results-{pid}.json"), text.as_bytes()).unwrap();
        };
        write(7, &[row("plan", 4, 4)]);
        write(8, &[row("plan", 40, 10), row("init", 10, 5), row("init", 30, 5)]);
        look.write("results-9.json", b"{").unwrap();
        let found = look.run(&AtomicBool::new(true)).unwrap();
        let short = |calls: &PythonCalls| (calls.compared, calls.repeated, calls.part);
        let found: Vec<_> = found.iter().map(|calls| calls.as_ref().map(short)).collect();
        assert_eq!(found, [Some((40, 10, 0.25)), Some((40, 10, 0.25)), None]);
        let folder = look.folder.clone();
        assert!(fs::read(folder.join("go")).unwrap()[0] == 1, "the start signal is set");
        drop(look);
        assert!(!folder.exists());
    }
}
