//! Python functions of launched programs: a library of ours is preloaded, which names them in maps of generated code.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use stepscope_model::Dimension;

use crate::kept_files::KeptFiles;
use crate::launch::Launch;
use crate::library_file::LibraryFile;

/// Which launched programs show their Python functions in stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PythonFunctions {
    /// Commands that are a Python interpreter, or a script of one. Others would load a library for nothing.
    #[default]
    OfInterpreters,
    /// All, also those that embed Python or start it.
    Always,
    /// None.
    Never,
}

impl PythonFunctions {
    /// What a user asks for; `None` of a user who says nothing.
    pub fn asked(asked: Option<bool>) -> Self {
        match asked {
            None => Self::OfInterpreters,
            Some(true) => Self::Always,
            Some(false) => Self::Never,
        }
    }

    /// Whether a program is to load the library.
    pub(crate) fn are_wanted(self, launch: &Launch, dimensions: &BTreeSet<Dimension>) -> bool {
        // These look at all code and all libraries of the program.
        let is_checker =
            |one: &Dimension| matches!(one, Dimension::Memcheck | Dimension::Asan | Dimension::Ubsan | Dimension::Tsan);
        match self {
            Self::OfInterpreters => !dimensions.iter().any(is_checker) && is_python(launch),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Whether a command is a Python interpreter, by the name that it was given or its file has, or a script of one.
fn is_python(launch: &Launch) -> bool {
    let Ok(program) = launch.program() else { return false };
    let file = program.canonicalize().unwrap_or_else(|_| program.clone());
    // A script that chooses a version (pyenv's) has the name of what it starts.
    [&program, &file].into_iter().any(|path| is_interpreter(path))
        || script_interpreter(&file).is_some_and(|path| is_interpreter(&path))
}

/// `python`, `python3`, `python3.11`.
fn is_interpreter(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// The interpreter that a script's first line names.
fn script_interpreter(script: &Path) -> Option<PathBuf> {
    /// As far as the kernel reads (`BINPRM_BUF_SIZE`).
    const READ_BYTES: u64 = 256;
    let mut line = Vec::new();
    BufReader::new(File::open(script).ok()?.take(READ_BYTES)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8_lossy(&line);
    let mut words = line.strip_prefix("#!")?.split_ascii_whitespace();
    let program = words.next()?;
    // `env` and its options and variables stand before the program that it searches for.
    let is_name = |word: &&str| !word.starts_with('-') && !word.contains('=');
    let named = if Path::new(program).ends_with("env") { words.find(is_name)? } else { program };
    Some(PathBuf::from(named))
}

/// The preloaded library, or why programs cannot be recorded with it.
#[derive(Debug)]
pub(crate) struct Python(Result<LibraryFile, String>);

impl Python {
    /// Writes the library to a file.
    pub fn new() -> Self {
        let Some(library) = stepscope_python::LIBRARY else {
            return Self(Err("Python functions can be recorded on Linux on x86-64 only.".to_owned()));
        };
        Self(
            LibraryFile::write("python", library).map_err(|error| {
                format!("Python functions are missing: the library for them cannot be written: {error}.")
            }),
        )
    }

    /// For programs that run already.
    pub fn of_running() -> Self {
        Self(Err("Python functions are recorded from a program's start, by a library that it loads: launch the program with \
             `stepscope record --with python`. CPython 3.12 and 3.13 name them in a running program after \
             `sys.activate_stack_trampoline(\"perf\")`."
            .to_owned()))
    }

    /// Lets a program load the library.
    pub fn add_to(&self, launch: Launch) -> Launch {
        match &self.0 {
            Ok(library) => library.add_to(launch),
            Err(_) => launch,
        }
    }

    /// Removes the library. Its functions are named by the copy that the capture keeps.
    pub fn remove_library(&self) {
        if let Ok(library) = &self.0 {
            library.remove();
        }
    }

    /// Why the capture has no Python functions.
    pub fn note(&self, kept: &KeptFiles) -> Option<String> {
        match &self.0 {
            Err(reason) => Some(reason.clone()),
            Ok(_) if kept.has_python_maps() => None,
            Ok(_) => Some(
                "No Python functions were recorded: CPython 3.9 to 3.13 did not run, or did not load the library for them (a \
                 free-threaded build, a static program, one that runs with more rights than its user). With `-X perf`, CPython \
                 names them itself."
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn are_wanted(program: &Path, dimensions: &[Dimension]) -> bool {
        let dimensions = dimensions.iter().copied().collect();
        PythonFunctions::default().are_wanted(&Launch::new([program]), &dimensions)
    }

    #[test]
    fn python_is_known_by_its_name_its_file_or_the_first_line_of_a_script() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let interpreter = write("python3.11", "");
        let link = folder.path().join("renamed");
        symlink(&interpreter, &link).unwrap();
        let shim = write("python3", "#!/usr/bin/env bash\nexec pyenv exec python3\n");
        let scripts =
            ["#!/usr/bin/python3 -u\n", "#! /usr/bin/env -S A=1 python3.12 -X dev\n", "#!/usr/bin/env python"];
        let scripts = scripts.iter().enumerate().map(|(index, line)| write(&format!("sim{index}"), line));
        for program in scripts.chain([interpreter, link, shim]) {
            assert!(are_wanted(&program, &[Dimension::Cpu, Dimension::Heap]), "{}", program.display());
            assert!(!are_wanted(&program, &[Dimension::Asan]), "the sanitizer's library must come first");
        }
        let others = ["#!/bin/sh\npython3 sim.py\n", "#!/usr/bin/env pypy3\n", "#!", "python3"];
        let others = others.iter().enumerate().map(|(index, line)| write(&format!("other{index}"), line));
        for program in others.chain([write("python3-config", ""), folder.path().join("missing/python3")]) {
            assert!(!are_wanted(&program, &[]), "{}", program.display());
        }
    }

    #[test]
    fn stacks_are_read_with_the_stubs_that_the_library_makes() {
        let stub = &stepscope_assemble::PYTHON_STUB;
        if let Some(library) = stepscope_python::LIBRARY {
            assert!(library.windows(stub.len()).any(|bytes| bytes == stub));
        }
    }

    #[test]
    fn the_user_decides_against_what_the_command_is() {
        let shell = Launch::new(["sh"]);
        assert!(PythonFunctions::Always.are_wanted(&shell, &BTreeSet::new()));
        assert!(!PythonFunctions::default().are_wanted(&shell, &BTreeSet::new()));
        let python = Launch::new(["python3"]);
        assert!(!PythonFunctions::Never.are_wanted(&python, &BTreeSet::new()));
    }
}
