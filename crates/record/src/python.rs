//! Python functions of launched programs: a library of ours is preloaded, which names them in maps of generated code.

use crate::kept_files::KeptFiles;
use crate::launch::Launch;
use crate::library_file::LibraryFile;

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
             `stepscope record --with python`."
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
            Ok(_) if kept.has_maps() => None,
            Ok(_) => Some(
                "No Python functions were recorded: CPython 3.9 to 3.13 did not run long enough to be sampled, or did not load \
                 the library for them (a static program, or one that runs with more rights than its user)."
                    .to_owned(),
            ),
        }
    }
}
