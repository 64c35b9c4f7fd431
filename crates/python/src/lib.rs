//! Python functions in native stacks: the library that is preloaded into programs.
//!
//! [`LIBRARY`] is a shared library for CPython 3.9 to 3.13. Each Python function runs below a few bytes of machine code of its
//! own, which are named in `/tmp/perf-PID.map`. `preload/` is its source; it is compiled by this crate's build script. In
//! programs that are not Python, it does nothing.

/// The preloaded library, where it exists: on Linux on x86-64.
#[cfg(has_library)]
pub const LIBRARY: Option<&[u8]> = Some(include_bytes!(env!("STEPSCOPE_LIBRARY")));
/// A file that runs in such a program to see which calls of functions do the same work again. The library runs it if the variable
/// `STEPSCOPE_PYTHON_LOOK` names the folder that has it, each time that the first byte of the file `go` in there changes.
pub const LOOK: &str = include_str!("../look/look.py");

/// The preloaded library, where it exists: on Linux on x86-64.
#[cfg(not(has_library))]
pub const LIBRARY: Option<&[u8]> = None;
