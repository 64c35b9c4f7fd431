//! A library of ours as a file, for one recording: launched programs preload it.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use crate::clock;
use crate::launch::Launch;

/// The file. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct LibraryFile {
    path: PathBuf,
}

impl LibraryFile {
    /// Writes a library to a file that only this user may change.
    ///
    /// # Errors
    /// Why it cannot be written, with the path.
    pub fn write(name: &str, library: &[u8]) -> io::Result<Self> {
        let file = format!("stepscope-{name}-{}-{:x}.so", std::process::id(), clock::now_ns());
        let path = std::env::temp_dir().join(file);
        // Readable for all: the program may run as another user.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path);
        let written = file.and_then(|mut file| {
            let file_of_ours = Self { path: path.clone() };
            file.write_all(library).map(|()| file_of_ours)
        });
        written.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    /// Lets a program load the library, before all others that it would preload.
    pub fn add_to(&self, launch: Launch) -> Launch {
        let mut preloaded = OsString::from(&self.path);
        if let Some(others) = launch.variable("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preloaded.push(":");
            preloaded.push(others);
        }
        launch.env("LD_PRELOAD", preloaded)
    }

    /// Removes the file: programs that start later do without the library.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for LibraryFile {
    fn drop(&mut self) {
        self.remove();
    }
}
