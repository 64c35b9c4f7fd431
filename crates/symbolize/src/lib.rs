//! Turns addresses into frames: function, inlined functions, source file and line.
//!
//! [`Code`] names a mapped file, the kernel, the vdso or generated code. An *offset* is a position in that file:
//! `address - mapping start + file offset of the mapping`. One call names all offsets of a module. It opens the module
//! once, reads only the debug information that is hit, and keeps nothing in memory:
//!
//! ```
//! use stepscope_symbolize::{Code, Symbolizer};
//!
//! # #[cfg(target_os = "linux")] {
//! let mut symbolizer = Symbolizer::default();
//! let this_program = std::env::current_exe().unwrap();
//! let named = symbolizer.name(&Code::file(&this_program), &[0x40, 0x80]);
//!
//! // One place per offset, in the same order; a place has at least one frame.
//! assert_eq!(named.places.len(), 2);
//! for place in &named.places {
//!     let innermost = place.frames.last().unwrap();
//!     println!("{} at {:?}:{:?}", innermost.function, innermost.file, innermost.line);
//! }
//! // Reasons for missing names.
//! assert!(named.problems.is_empty());
//! # }
//! ```
//!
//! The best source that covers an address gives its name:
//!
//! 1. DWARF, in the file or in a separate file found by build-id or `.gnu_debuglink`; including `dwz` supplements,
//!    compressed sections, and split `.dwo`/`.dwp` files
//! 2. `.symtab`, `.dynsym`, `.gnu_debugdata`. A symbol must cover the address: the nearest earlier export of a stripped
//!    library is *not* the function that runs.
//! 3. `.gopclntab` of Go programs
//! 4. `.eh_frame`, which has only starts of functions. The name is `module+0x<start>`, so that all samples of one
//!    unnamed function have the same name.
//!
//! A file whose build-id differs from the recorded one is not used, because wrong names are worse than none. A
//! [`Problem`] reports it. [`demangle`] makes names readable.
//!
//! # Modules
//!
//! | module | knows |
//! |---|---|
//! | `symbolizer`, `options` | [`Symbolizer`]; where to look for files |
//! | `module` | the sources of names of one module, best first |
//! | `dwarf` | debug information: `units`, `unit`, `names`, `lines`, `split` |
//! | `symbols`, `linkage` | symbol tables; stubs (`memcpy@plt`) |
//! | `function_starts` | unwind tables |
//! | `go_functions` | the table of stripped Go programs |
//! | `kernel`, `vdso`, `jit` | code that is in no file |
//! | `debug_files`, `image` | where files are, and ELF in memory |
//! | `packages` | which Debian package a file is from |
//! | `demangle` | readable C++ and Rust names |
//! | `instructions` | the instructions of a function, by `objdump` |
//! | `loops` | what loops of machine code do: search, scan, wait |
//! | `python_source` | what loops of Python sources do |
//! | `entries`, `producers` | functions by name; compilers and their flags |
//! | `texts` | interned names |

pub mod build;
mod debug_files;
mod demangle;
mod dwarf;
mod entries;
mod function_starts;
mod go_functions;
mod image;
mod instructions;
mod jit;
mod kernel;
mod linkage;
mod loops;
mod module;
mod objects;
mod options;
mod packages;
mod producers;
mod python_lines;
mod python_source;
mod symbolizer;
mod symbols;
mod texts;
mod vdso;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use demangle::demangle;
pub use entries::{Entry, InlinedCode, entries, entry_at, inlined_code, inlined_into, loader, starts_of};
pub use go_functions::{GO_FUNCTIONS_SECTIONS, GoFunction, GoFunctions, go_text_start};
pub use image::decompressed;
pub use instructions::{FunctionCode, Instruction, NoInstructions};
pub use jit::generated_functions;
pub use loops::{LoopHead, loop_at, loops_around};
pub use options::{Options, RecordedKernel};
pub use producers::producers;
pub use python_source::python_loops;
pub use stepscope_model::SymbolSource;
pub use symbolizer::Symbolizer;
pub use vdso::own_vdso;

/// Code with its own names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Code {
    /// A mapped file. Offsets are positions in the file.
    File {
        /// Path as the process saw it (see [`Options::roots`] for processes in containers).
        path: PathBuf,
        /// Build-id of the mapped file, if known. A file of another build is not used.
        build_id: Option<Vec<u8>>,
    },
    /// The kernel and its modules. Offsets are addresses.
    Kernel,
    /// Kernel code that is mapped into every process. Offsets are positions in its image.
    Vdso,
    /// Code that a process generated at run time. Offsets are addresses in that process.
    Jit {
        /// Process id in our pid namespace.
        pid: u32,
    },
}

impl Code {
    /// A file without a recorded build-id.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Code::File { path: path.as_ref().to_owned(), build_id: None }
    }
}

/// A position in a mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Position {
    /// Offset in the file.
    Offset(u64),
    /// Address, as in the file's symbol table.
    Address(u64),
}

impl Position {
    pub(crate) fn of_offsets(offsets: &[u64]) -> Vec<Self> {
        offsets.iter().map(|&offset| Self::Offset(offset)).collect()
    }
}

/// The names of a module, from [`Symbolizer::name`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModuleNames {
    /// Best source of names of the module.
    pub symbols: SymbolSource,
    /// GNU build-id in hexadecimal: the recorded one, else that of the file.
    pub build_id: Option<String>,
    /// Debian package that the file is from, if names are missing.
    pub package: Option<String>,
    /// One place per offset, in the same order.
    pub places: Vec<Place>,
    /// Reasons for missing names. A file without debug information is not a problem.
    pub problems: Vec<Problem>,
}

/// The names of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Address in the module, as in its symbol table and in disassemblers; `None` if the file could not be read. For
    /// the kernel and generated code, the address itself.
    pub address: Option<u64>,
    /// The function and the functions inlined there, outermost first. Never empty.
    pub frames: Vec<NamedFrame>,
    /// Source of the outermost function's name.
    pub named_by: NamedBy,
}

/// Source of a function's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NamedBy {
    /// None: the name is the module's name and an address.
    Nothing,
    /// Unwind tables: the name is the module's name and the start of the function.
    FunctionStart,
    /// A symbol table, the map of a JIT, or the kernel's list.
    Symbol,
    /// DWARF.
    DebugInfo,
}

/// A function at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFrame {
    /// Its name; see [`demangle`].
    pub function: Arc<str>,
    /// Source file as given to the compiler, made absolute with the compiler's working directory.
    pub file: Option<Arc<str>>,
    /// Line in it: of the address for the innermost frame, of the call for the others.
    pub line: Option<u32>,
    /// Whether it is inlined into the previous frame.
    pub inlined: bool,
}

impl NamedFrame {
    /// A function with only a name.
    pub(crate) fn function(name: impl Into<Arc<str>>) -> Self {
        Self { function: name.into(), file: None, line: None, inlined: false }
    }
}

/// Why names of a module are missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file does not exist.
    #[error("{0}: not found, so its functions have no names; restore it, or name a directory that has it")]
    Missing(PathBuf),
    /// The file cannot be read.
    #[error("{path}: cannot be read ({reason}), so its functions have no names; check its permissions")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error message.
        reason: String,
    },
    /// The file is not ELF, or is damaged.
    #[error("{path}: not a readable ELF file ({reason}), so its functions have no names")]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is of another build than the recorded one.
    #[error(
        "{path}: another build than the recorded one (build-id {found} instead of {recorded}), so its names are not \
         used; restore the recorded build, or record again"
    )]
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// Build-id recorded, in hexadecimal.
        recorded: String,
        /// Build-id found, in hexadecimal, or `none`.
        found: String,
    },
    /// It is unknown which build was recorded.
    #[error(
        "{0}: the capture has no build-id of it, so a file that has one may be of another build, and its names are not \
         used; record again"
    )]
    UnknownBuild(PathBuf),
    /// Part of the debug information is damaged or missing; the rest was used.
    #[error("{path}: debug information is incomplete ({reason}); functions may lack inlined frames and lines")]
    IncompleteDebugInfo {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The kernel hides its addresses from this user.
    #[error(
        "the kernel hides its addresses from this user, so kernel functions have no names; run as root or with \
         CAP_SYSLOG, or run `sudo sysctl kernel.kptr_restrict=0`"
    )]
    KernelAddressesHidden,
    /// The recorded kernel is not the running one, and its symbols are missing.
    #[error(
        "the recorded kernel is not the running one, and its symbols are not in ~/.debug, so kernel functions have no \
         names; import on the recorded machine, or copy its ~/.debug"
    )]
    OtherKernel,
    /// The program that asks debuginfod servers does not run.
    #[error(
        "DEBUGINFOD_URLS is set, but `debuginfod-find` cannot be run ({0}), so no server was asked; install it \
         (Debian package: debuginfod; Fedora: elfutils-debuginfod-client)"
    )]
    NoDebuginfodClient(String),
    /// A debuginfod server did not answer.
    #[error("no debuginfod server answered ({0}), so no further files were asked for; check DEBUGINFOD_URLS")]
    NoDebuginfodServer(String),
    /// Generated code without a map or jitdump.
    #[error(
        "process {0} ran generated code without /tmp/perf-{0}.map or a jitdump, so it has no names; start it with \
         its option for perf (java: -XX:+DumpPerfMapAtExit, node: --perf-basic-prof, python: -X perf)"
    )]
    NoJitMap(u32),
}
