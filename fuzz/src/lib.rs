//! Parts of several fuzz targets.
//!
//! - [`import_and_export`]: an importer on bytes, then all exporters
//! - [`Folder`]: a capture folder with replaced files
//! - [`name_functions`], [`name_with_section`]: the symbolizer on bytes
//!
//! A target fails on a panic, including overflow (debug assertions are on), and on memory beyond the limit in `./dev
//! fuzz`.

mod folder;
mod import;
mod symbols;

pub use folder::Folder;
pub use import::import_and_export;
pub use symbols::{name_functions, name_with_section, section_seeds};
