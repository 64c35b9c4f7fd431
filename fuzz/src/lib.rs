//! Parts of several fuzz targets.
//!
//! - [`import_and_export`]: an importer on bytes, then all exporters
//! - [`read_ctf`]: a CTF trace, and all its fields
//! - [`Folder`]: a capture folder with replaced files
//! - [`name_functions`], [`name_with_section`]: the symbolizer on bytes
//!
//! A target fails on a panic, including overflow (debug assertions are on), and on memory beyond the limit in `./dev
//! fuzz`.

mod ctf;
mod folder;
mod import;
mod symbols;

pub use ctf::read_ctf;
pub use folder::Folder;
pub use import::import_and_export;
pub use symbols::{name_functions, name_with_section, no_files, section_seeds};
