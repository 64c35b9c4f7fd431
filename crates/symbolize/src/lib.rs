//! Addresses to frames: the function, what the compiler inlined there, source file and line.
//!
//! Code is addressed by where it lies in its file: [`Code`] names the mapped file (or the kernel, the vdso, generated
//! code) and an *offset* is a position in that file: `address - mapping start + mapping's file offset`. One call names
//! all offsets of one module, so that the module is opened once, only the parts of its debug information that are
//! hit are read, and nothing of it stays in memory:
//!
//! ```
//! use stepscope_symbolize::{Code, Symbolizer};
//!
//! # #[cfg(target_os = "linux")] {
//! let mut symbolizer = Symbolizer::default();
//! let this_program = std::env::current_exe().unwrap();
//! let named = symbolizer.name(&Code::file(&this_program), &[0x40, 0x80]);
//!
//! // One place an offset, in the order given; a place always has at least one frame.
//! assert_eq!(named.places.len(), 2);
//! for place in &named.places {
//!     let innermost = place.frames.last().unwrap();
//!     println!("{} at {:?}:{:?}", innermost.function, innermost.file, innermost.line);
//! }
//! // What stood in the way of better names, if anything did.
//! assert!(named.problems.is_empty());
//! # }
//! ```
//!
//! Names come from the best source that covers an address, in this order: DWARF (in the file, or in a separate file
//! found by build-id or `.gnu_debuglink`; with `dwz` supplements, compressed sections, and split `.dwo`/`.dwp` files),
//! `.symtab`, `.dynsym`, `.gnu_debugdata`. A symbol names an address only if its extent covers it: the
//! nearest earlier export of a stripped library is *not* the function that runs. An address without a name becomes
//! `module+0x<start of its function>` where `.eh_frame` tells the start, so that samples of one nameless function stay
//! together. How names are written is told at [`demangle`].
//!
//! A file whose build-id differs from the recorded one is not used, and the difference is reported as a [`Problem`]:
//! no name is better than a wrong one.

pub mod build;
mod debug_files;
mod demangle;
mod dwarf;
mod entries;
mod function_starts;
mod image;
mod jit;
mod kernel;
mod linkage;
mod module;
mod producers;
mod symbolizer;
mod symbols;
mod texts;
mod vdso;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use demangle::demangle;
pub use entries::{Entry, entries};
pub use producers::producers;
pub use stepscope_model::SymbolSource;
pub use symbolizer::{Options, RecordedKernel, Symbolizer};
pub use vdso::own_vdso;

/// A body of code that has names of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Code {
    /// A mapped file. Offsets are positions in the file.
    File {
        /// Path as mapped, as the process saw it (see [`Options::roots`] for processes in containers).
        path: PathBuf,
        /// Build-id of the file that was mapped, where it is known. A file of another build is not used.
        build_id: Option<Vec<u8>>,
    },
    /// The kernel and its modules. Offsets are addresses.
    Kernel,
    /// The kernel's code in every process. Offsets are positions in its image.
    Vdso,
    /// Code that a process generated, outside any file. Offsets are addresses in that process.
    Jit {
        /// Process id, as seen by us.
        pid: u32,
    },
}

impl Code {
    /// A file whose build-id was not recorded.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Code::File { path: path.as_ref().to_owned(), build_id: None }
    }
}

/// What [`Symbolizer::name`] found out about a module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModuleNames {
    /// The best source of names that the module has.
    pub symbols: SymbolSource,
    /// GNU build-id in hexadecimal: the recorded one, or else that of the file found.
    pub build_id: Option<String>,
    /// One place for each offset, in the order they were given.
    pub places: Vec<Place>,
    /// What stood in the way of better names. Empty for a file that simply has no debug information.
    pub problems: Vec<Problem>,
}

/// An address' names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Address in the module's own address space, as in its symbol table and as disassemblers show it; absent where
    /// the file could not be read. For the kernel and generated code, the address itself.
    pub address: Option<u64>,
    /// The function and what was inlined into it there, outermost first. Never empty; the last is the innermost.
    pub frames: Vec<NamedFrame>,
    /// How the outermost function's name was found.
    pub named_by: NamedBy,
}

/// How a function's name was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NamedBy {
    /// It was not: the name is made of the module's name and an address.
    Nothing,
    /// Only where the function starts is known: the name is made of the module's name and that address.
    FunctionStart,
    /// A symbol table, a JIT's map, or the kernel's list.
    Symbol,
    /// DWARF.
    DebugInfo,
}

/// A function at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFrame {
    /// Its name; see [`demangle`].
    pub function: Arc<str>,
    /// Source file, as the compiler was given it, made absolute by the compiler's directory.
    pub file: Option<Arc<str>>,
    /// Line in it: where the address is for the innermost frame, where the next frame was called for the others.
    pub line: Option<u32>,
    /// Whether the compiler inlined it into the frame before.
    pub inlined: bool,
}

impl NamedFrame {
    /// A function of which only the name is known.
    pub(crate) fn function(name: impl Into<Arc<str>>) -> Self {
        Self { function: name.into(), file: None, line: None, inlined: false }
    }
}

/// Why a module's names are missing or fewer than they could be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is no such file (any more).
    #[error("{path} is not there: its functions have no names; put it back, or name a directory that holds it")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is there but cannot be read.
    #[error("{path} cannot be read ({reason}): its functions have no names; check its permissions")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The file is not an ELF file, or damaged beyond use.
    #[error("{path} is not a readable ELF file ({reason}): its functions have no names")]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is not the one that was recorded.
    #[error(
        "{path} is another build than the one recorded (build-id {found} instead of {recorded}): its names would be \
         wrong and are not used; restore the recorded build, or record again"
    )]
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// Build-id recorded, in hexadecimal.
        recorded: String,
        /// Build-id found, in hexadecimal, or `none`.
        found: String,
    },
    /// A part of the debug information is damaged or missing; the other parts were used.
    #[error("{path}: debug information is incomplete ({reason}); functions may lack inlined frames and lines")]
    IncompleteDebugInfo {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The kernel hides its addresses from us.
    #[error(
        "the kernel's addresses are hidden from this user: kernel functions have no names; run with CAP_SYSLOG or as \
         root, or `sudo sysctl kernel.kptr_restrict=0`"
    )]
    KernelAddressesHidden,
    /// The recorded kernel is not the running one, and its symbols were not found.
    #[error(
        "another kernel was recorded than the one running here, and its symbols are not in ~/.debug: kernel functions \
         have no names; name the file on the recorded machine, or bring its ~/.debug"
    )]
    OtherKernel,
    /// Generated code without a description.
    #[error(
        "process {pid} ran generated code without /tmp/perf-{pid}.map or a jitdump: it has no names; start it with its \
         option for perf (java: -XX:+DumpPerfMapAtExit, node: --perf-basic-prof, python: -X perf)"
    )]
    NoJitMap {
        /// The process.
        pid: u32,
    },
}
