//! Inputs from strangers: every reader of files that other programs wrote, as a [`Target`].
//!
//! `./dev fuzz` searches each target with libFuzzer (`src/main.rs`). `tests/damaged.rs` gives each target damaged copies of its
//! seeds, with the stable compiler and all other tests. Both start from `seeds/NAME/`.
//!
//! A target fails on a panic, including overflow (debug assertions are on), and under libFuzzer on memory beyond the limit in
//! `./dev fuzz`. Each format of [`FORMATS`] is a target by itself; [`OTHERS`] lists the rest.

mod capture;
mod ctf;
mod heap;
mod import;
mod raw_log;
mod store;
mod symbols;

use std::fmt;

use stepscope_convert::import::{FORMATS, InputFormat};

pub use capture::Folder;
pub use symbols::section_seeds;

/// One reader of bytes.
pub struct Target {
    /// Its name, also that of its folder in `seeds/`.
    pub name: String,
    reader: Reader,
}

enum Reader {
    Importer(&'static dyn InputFormat),
    Function(Read),
}

type Read = fn(&[u8]);

/// Readers that are no importers of one file.
const OTHERS: [(&str, Read); 11] = [
    ("capture", capture::read),
    ("ctf", ctf::read),
    ("demangle", symbols::demangle),
    ("dwarf", symbols::name_with_section),
    ("elf", symbols::name_functions),
    ("heap_table", heap::read_table),
    ("jit", symbols::name_generated_code),
    ("lab_file", parse_lab_file),
    ("marks", read_marks),
    ("raw_log", raw_log::read),
    ("store", store::parse),
];

impl Target {
    /// All targets.
    pub fn all() -> Vec<Target> {
        // Traces in folders are the target `ctf`.
        let importers = FORMATS
            .iter()
            .filter(|format| !format.is_a_folder())
            .map(|format| Target { name: format.name().replace(['-', '.'], "_"), reader: Reader::Importer(*format) });
        let others = OTHERS.map(|(name, read)| Target { name: name.into(), reader: Reader::Function(read) });
        importers.chain(others).collect()
    }

    /// Whether it is an importer of one file.
    pub fn is_importer(&self) -> bool {
        matches!(self.reader, Reader::Importer(_))
    }

    /// Reads `bytes`.
    ///
    /// # Panics
    /// If the reader has a defect.
    pub fn read(&self, bytes: &[u8]) {
        match self.reader {
            Reader::Importer(format) => import::import_and_export(format, bytes),
            Reader::Function(read) => read(bytes),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn parse_lab_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = stepscope_lab::lab_file::LabFile::parse("/lab/stepscope.toml".as_ref(), text) {
        // Errors point into the text, so they are written too.
        let _ = error.to_string();
    }
}

/// Segments of marks, which recorded programs write.
fn read_marks(bytes: &[u8]) {
    let _ = stepscope_record::read_segment(bytes);
}
