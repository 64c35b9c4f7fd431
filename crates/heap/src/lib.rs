//! Heap recording: the library that is preloaded into programs, and the tables that it writes.
//!
//! [`LIBRARY`] is a shared library for glibc. It counts allocations at their stacks in memory that the recorder reads with
//! [`TableFile`], so that nothing is lost if the program is killed. `preload/` is its source; it is compiled by this crate's
//! build script.

#[allow(missing_docs)]
pub mod layout;
mod table_file;

pub use table_file::{Snapshot, TableFile};

/// The preloaded library, where it exists: on Linux on x86-64.
#[cfg(has_library)]
pub const LIBRARY: Option<&[u8]> = Some(include_bytes!(env!("STEPSCOPE_LIBRARY")));
/// The preloaded library, where it exists: on Linux on x86-64.
#[cfg(not(has_library))]
pub const LIBRARY: Option<&[u8]> = None;
