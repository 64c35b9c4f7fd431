//! What the app in the browser reads: the document of a report, the columns of each capture, and the page around them.
//!
//! [`Dataset`] is all of it: the manifest and each table by name. A server gives them out one by one; [`page`] writes them
//! into one HTML file.

mod assets;
pub mod dataset;
pub mod document;
pub mod lanes;
pub mod page;
pub mod parquet_table;
pub mod profile;
pub mod shell;

pub use assets::{APP_JS_HASH, app_css, app_js};
pub use dataset::Dataset;
pub use parquet_table::ParquetTable;
pub use profile::{Limits, Profile};
pub use shell::SHELL;
