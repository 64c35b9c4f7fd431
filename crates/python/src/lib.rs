//! Python functions in native stacks: the library that is preloaded into programs.
//!
//! [`LIBRARY`] is a shared library for CPython 3.9 to 3.13. Each Python function runs below a few bytes of machine code of its
//! own, which are named in `/tmp/perf-PID.map`. `preload/` is its source; it is compiled by this crate's build script. In
//! programs that are not Python, it does nothing.

/// The preloaded library, where it exists: on Linux on x86-64.
#[cfg(has_library)]
pub const LIBRARY: Option<&[u8]> = Some(include_bytes!(env!("STEPSCOPE_LIBRARY")));
/// The preloaded library, where it exists: on Linux on x86-64.
#[cfg(not(has_library))]
pub const LIBRARY: Option<&[u8]> = None;
