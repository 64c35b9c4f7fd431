//! [`Timing`]: options that make compilers and configure steps time themselves, and the files that they write.
//!
//! | program | gets | writes |
//! |---|---|---|
//! | clang | `-ftime-trace` | `OBJECT.json` beside the object, which is moved into the capture |
//! | gcc | `-ftime-report -H -wrapper US` | to standard error, which our [shim](crate::compiler_shim) takes out |
//! | cmake | `--profiling-output` | a file in the capture |
//! | cargo | `--timings` | a page in its target folder, which is left there |
//!
//! Only commands that compile a source get them, and none that a configure step tries: such steps read what
//! compilers print.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use stepscope_model::build_command::{self, Kind};

use super::arguments;
use crate::compiler_shim;

/// What to add, and where to collect.
#[derive(Debug, Clone)]
pub struct Timing {
    /// A new folder for the files.
    pub folder: PathBuf,
    /// The `cmake` that knows `--profiling-output`: 3.18 or later.
    pub cmake: Option<PathBuf>,
}

/// What a file of times is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimingKind {
    /// JSON of clang's `-ftime-trace`.
    ClangTrace,
    /// Text of GCC's `-ftime-report` and `-H`.
    GccReport,
    /// JSON of CMake's `--profiling-output`.
    CmakeProfile,
}

/// A file of times of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed {
    /// The process, by its place in the capture.
    pub process: u32,
    /// What the file is.
    pub kind: TimingKind,
    /// Where it is.
    pub path: PathBuf,
    /// The directory that paths in it are relative to.
    pub directory: String,
    /// Whether what the process makes existed before.
    pub made_before: bool,
}

/// A process that is timed.
#[derive(Debug)]
struct Watched {
    process: u32,
    directory: String,
    in_configure: bool,
    made_before: bool,
    file: Option<(TimingKind, PathBuf)>,
    /// Of a shim, the compiler that it started.
    compiler: Option<u32>,
}

/// Adds options to processes as they start, and collects what they write.
#[derive(Debug)]
pub(super) struct Timer {
    timing: Timing,
    shim: Option<String>,
    watched: HashMap<u32, Watched>,
    timed: Vec<Timed>,
}

impl Timer {
    pub fn new(timing: Timing) -> Self {
        let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
        // GCC divides the words of a wrapper at commas.
        let has_no_comma = |path: &String| !path.contains(',') && !timing.folder.to_string_lossy().contains(',');
        Self { shim: program.filter(has_no_comma), timing, watched: HashMap::new(), timed: Vec::new() }
    }

    pub fn begin(&mut self, pid: u32, parent: Option<u32>, process: u32) {
        let parent = parent.and_then(|parent| self.watched.get_mut(&parent));
        let (mut in_configure, mut made_before) = (false, false);
        if let Some(parent) = parent {
            parent.compiler = Some(process);
            (in_configure, made_before) = (parent.in_configure, parent.made_before);
        }
        let directory = String::new();
        let watched = Watched { process, directory, in_configure, made_before, file: None, compiler: None };
        self.watched.insert(pid, watched);
    }

    pub fn execute(&mut self, pid: u32, executable: &str, command: &[String], directory: &str) {
        let Some(watched) = self.watched.get_mut(&pid) else { return };
        watched.directory = directory.to_owned();
        watched.file = None;
        if command.get(1).is_some_and(|argument| argument == compiler_shim::ARGUMENT) {
            watched.file = Some((TimingKind::GccReport, compiler_shim::report(&self.timing.folder, pid)));
            return;
        }
        if let Some(json) = trace_of_compiler(command, directory) {
            watched.file = Some((TimingKind::ClangTrace, json));
            return;
        }
        let in_configure = watched.in_configure;
        let work = build_command::work(command, directory);
        let kind = work.as_ref().map(|work| work.kind);
        watched.in_configure |= kind == Some(Kind::Configure);
        if in_configure {
            return;
        }
        let outputs = work.map(|work| work.outputs).unwrap_or_default();
        let compiles = matches!(kind, Some(Kind::Compile | Kind::CompileAndLink)) && has_source(command);
        let own = build_command::tool(executable);
        let (position, options, file) = if compiles && ["clang", "clang++"].contains(&own) {
            let Some(json) = trace_path(command, &outputs, directory) else { return };
            (1, vec!["-ftime-trace".to_owned()], Some((TimingKind::ClangTrace, json)))
        } else if compiles && ["gcc", "g++"].contains(&own) && !command.iter().any(|one| one == "-wrapper") {
            let Some(shim) = &self.shim else { return };
            let wrapper = format!("{shim},{},{}", compiler_shim::ARGUMENT, self.timing.folder.display());
            (1, ["-wrapper", &wrapper, "-ftime-report", "-H"].map(str::to_owned).to_vec(), None)
        } else if kind == Some(Kind::Configure) && self.timing.cmake.as_deref() == Some(Path::new(executable)) {
            let path = self.timing.folder.join(format!("cmake-{}.json", watched.process));
            let options = [format!("--profiling-output={}", path.display()), "--profiling-format=google-trace".into()];
            (1, options.to_vec(), Some((TimingKind::CmakeProfile, path)))
        } else if own == "cargo" && builds_with_cargo(command) {
            (2, vec!["--timings".to_owned()], None)
        } else {
            return;
        };
        watched.made_before = outputs.iter().any(|path| Path::new(path).exists());
        if arguments::add(pid, position, &options).is_ok() {
            watched.file = file;
        }
    }

    pub fn end(&mut self, pid: u32) {
        let Some(watched) = self.watched.remove(&pid) else { return };
        let Some((kind, path)) = watched.file else { return };
        let process = watched.compiler.filter(|_| kind == TimingKind::GccReport).unwrap_or(watched.process);
        let path = match kind {
            TimingKind::ClangTrace => {
                let kept = self.timing.folder.join(format!("clang-{process}.json"));
                if moved(&path, &kept).is_err() {
                    return;
                }
                kept
            }
            _ if path.exists() => path,
            _ => return,
        };
        let (directory, made_before) = (watched.directory, watched.made_before);
        self.timed.push(Timed { process, kind, path, directory, made_before });
    }

    pub fn finish(self) -> Vec<Timed> {
        self.timed
    }
}

/// Where a compiler writes its trace that a driver started with one: clang runs as a process of its own when it also links.
fn trace_of_compiler(command: &[String], directory: &str) -> Option<PathBuf> {
    let is_traced = command.get(1)? == "-cc1" && command.iter().any(|one| one.starts_with("-ftime-trace"));
    let output = command.iter().position(|one| one == "-o").and_then(|index| command.get(index + 1));
    let json = |path: &String| Path::new(&build_command::absolute(directory, path)).with_extension("json");
    output.filter(|_| is_traced).map(json)
}

/// Where clang writes its trace; `None` if it would replace a file of the project.
fn trace_path(command: &[String], outputs: &[String], directory: &str) -> Option<PathBuf> {
    if command.iter().any(|one| one.starts_with("-ftime-trace")) {
        return None;
    }
    let named = command.iter().any(|one| one == "-o");
    let object = match outputs {
        [output] if named || command.iter().any(|one| one == "-c") => PathBuf::from(output),
        _ => Path::new(directory).join("a.out"),
    };
    let json = object.with_extension("json");
    (!json.exists()).then_some(json)
}

/// Whether a C or C++ source is among the arguments; others compile with options that these do not fit.
fn has_source(command: &[String]) -> bool {
    let ends = [".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".m", ".mm", ".ixx", ".cppm"];
    command.iter().any(|one| !one.starts_with('-') && ends.iter().any(|end| one.ends_with(end)))
}

fn builds_with_cargo(command: &[String]) -> bool {
    let has_subcommand =
        command.get(1).is_some_and(|one| ["build", "b", "check", "c", "test", "rustc"].contains(&one.as_str()));
    has_subcommand && !command.iter().any(|one| one.starts_with("--timings"))
}

/// Moves a file, to another file system too.
fn moved(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::rename(from, to).or_else(|_| {
        fs::copy(from, to)?;
        fs::remove_file(from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_trace_is_beside_the_object_and_replaces_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_str().unwrap();
        let command = words("clang++ -c a.cpp -o o/a.cpp.o");
        let object = folder.path().join("o/a.cpp.o").to_str().unwrap().to_owned();
        let path = || trace_path(&command, std::slice::from_ref(&object), directory);
        assert_eq!(path(), Some(folder.path().join("o/a.cpp.json")));
        std::fs::create_dir(folder.path().join("o")).unwrap();
        std::fs::write(folder.path().join("o/a.cpp.json"), "{}").unwrap();
        assert_eq!(path(), None);
        assert_eq!(trace_path(&words("clang++ -ftime-trace -c b.cpp"), &["/b.o".to_owned()], "/"), None);
    }

    #[test]
    fn a_compiler_below_its_driver_has_a_trace_of_its_own() {
        let command = words("/usr/lib/llvm-14/bin/clang -cc1 -ftime-trace -o /tmp/a-1.o -x c++ a.cpp");
        assert_eq!(trace_of_compiler(&command, "/b"), Some(PathBuf::from("/tmp/a-1.json")));
        assert_eq!(trace_of_compiler(&words("clang -c a.c -o a.o"), "/b"), None);
    }

    #[test]
    fn only_sources_of_c_and_cargos_builds_are_timed() {
        assert!(has_source(&words("g++ -c a.cpp")) && has_source(&words("cc a.c b.o")));
        assert!(!has_source(&words("gcc -c boot.S")) && !has_source(&words("gfortran -c a.f90")));
        assert!(
            builds_with_cargo(&words("cargo build --release")) && !builds_with_cargo(&words("cargo build --timings"))
        );
        assert!(!builds_with_cargo(&words("cargo metadata")));
    }
}
