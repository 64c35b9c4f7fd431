//! Symbols, debug information and unwind tables of a program's or library's file.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::{Architecture, Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};
use stepscope_model::{Column, Columns, Kind, SymbolSource, Table};
use stepscope_symbolize::{Code, Symbolizer};

use super::Lack;

/// Why a file cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// It cannot be read.
    #[error("cannot read {}: {source}: check the path and its rights", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It is a script, so a recording would show its interpreter.
    #[error("{} is a script: inspect its interpreter, `{interpreter}`, and the libraries that it loads", path.display())]
    Script {
        /// The file.
        path: PathBuf,
        /// The interpreter's path.
        interpreter: String,
    },
    /// It is not an ELF file.
    #[error("{} is not an ELF program or library ({reason}): name the built file", path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        reason: String,
    },
}

/// Symbols, debug information and unwind tables of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub role: Role,
    /// Its CPU architecture, e.g. `x86_64`.
    pub architecture: String,
    /// GNU build-id in hexadecimal.
    pub build_id: Option<String>,
    /// The best source of function names, including separate debug files.
    pub symbols: SymbolSource,
    /// Problems with better sources of names, e.g. a debug file of another build.
    pub problems: Vec<String>,
    /// Functions in its own symbol table. 0 if it was stripped.
    pub functions: usize,
    /// Exported functions.
    pub exported_functions: usize,
    /// Whether it has compressed names of its other functions (`.gnu_debugdata`), as in Fedora's packages.
    pub mini_debug_info: bool,
    /// Whether the file itself has debug information.
    pub debug_info: bool,
    /// How stacks through it are unwound without frame pointers.
    pub unwind_tables: UnwindTables,
    /// How many functions set up a frame pointer.
    pub frame_pointers: FramePointers,
}

/// The role of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A program, or a library that can run as one.
    Program,
    /// A library.
    Library,
    /// An object file or separate debug information: it cannot run.
    Other,
}

/// Tables by which stacks are unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnwindTables {
    /// `.eh_frame` with its index, which recording uses.
    Indexed,
    /// `.eh_frame` without an index, which takes longer to load.
    Unindexed,
    /// Only `.debug_frame`.
    DebugOnly,
    /// None: unwinding depends on frame pointers.
    None,
}

/// How many of the inspected functions set up a frame pointer. Functions that call nothing need none, so even a program
/// built with `-fno-omit-frame-pointer` does not have all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FramePointers {
    /// Inspected functions: those with a symbol and of some size, at most 4000.
    pub inspected: usize,
    /// Those with a frame pointer.
    pub with: usize,
}

/// Functions inspected at most.
const MAX_INSPECTED: usize = 4000;
/// Smaller functions often need no frame.
const MIN_FUNCTION_BYTES: u64 = 64;
/// Longest prologue.
const PROLOGUE_BYTES: usize = 32;

impl FramePointers {
    /// Whether the file was built with frame pointers. `None` if too few functions could be inspected.
    pub fn likely(self) -> Option<bool> {
        (self.inspected >= 8).then_some(self.with * 2 > self.inspected)
    }
}

impl Binary {
    /// Inspects a file.
    ///
    /// # Errors
    /// [`BinaryError`]
    pub fn inspect(path: &Path) -> Result<Self, BinaryError> {
        let io = |source| BinaryError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.is_dir() {
            return Err(io(io::ErrorKind::IsADirectory.into()));
        }
        if let Some(interpreter) = interpreter(&file).map_err(io)? {
            return Err(BinaryError::Script { path: path.to_owned(), interpreter });
        }
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache)
            .map_err(|error| BinaryError::NotElf { path: path.to_owned(), reason: error.to_string() })?;
        let named = Symbolizer::default().name(&Code::file(path), &[0]);
        let has = |name: &str| elf.section_by_name(name).is_some_and(|section| section.size() > 0);
        Ok(Self {
            path: path.to_owned(),
            role: match elf.kind() {
                ObjectKind::Executable => Role::Program,
                ObjectKind::Dynamic if has(".interp") => Role::Program,
                ObjectKind::Dynamic => Role::Library,
                _ => Role::Other,
            },
            architecture: format!("{:?}", elf.architecture()).to_lowercase(),
            build_id: named.build_id.clone(),
            symbols: named.symbols,
            problems: named.problems.iter().map(ToString::to_string).collect(),
            functions: elf.symbols().filter(is_function).count(),
            exported_functions: elf.dynamic_symbols().filter(is_function).count(),
            mini_debug_info: has(".gnu_debugdata"),
            debug_info: elf.has_debug_symbols(),
            unwind_tables: match (has(".eh_frame"), has(".eh_frame_hdr")) {
                (true, true) => UnwindTables::Indexed,
                (true, false) => UnwindTables::Unindexed,
                _ if has(".debug_frame") => UnwindTables::DebugOnly,
                _ => UnwindTables::None,
            },
            frame_pointers: frame_pointers(&elf),
        })
    }

    /// What a recording of the file would lack.
    pub fn lacks(&self) -> Vec<Lack> {
        let lack = |what: &str, remedy: Option<&str>| Lack { what: what.into(), remedy: remedy.map(str::to_owned) };
        let mut lacks = Vec::new();
        if self.role == Role::Other {
            lacks.push(lack("The file cannot run by itself: inspect the linked program.", None));
        }
        match self.symbols {
            SymbolSource::DebugInfo => {}
            SymbolSource::SymbolTable => lacks.push(lack(
                "Inlined functions and source lines are unknown: the file has no debug information.",
                Some("build with -g (CMake: -DCMAKE_BUILD_TYPE=RelWithDebInfo)"),
            )),
            SymbolSource::DynamicSymbols if !self.mini_debug_info => lacks.push(lack(
                "Only exported functions have names; all others appear as module+0xoffset: the file was stripped.",
                Some("install its debug symbols (on Debian the package ending in -dbgsym), or build with -g"),
            )),
            SymbolSource::DynamicSymbols => {
                lacks.push(lack("Inlined functions and source lines are unknown.", Some("install its debug symbols")))
            }
            _ => lacks.push(lack(
                "Functions have no names and appear as module+0xoffset: the file was stripped.",
                Some("install its debug symbols, or build with -g and do not strip"),
            )),
        }
        if self.unwind_tables == UnwindTables::None || self.unwind_tables == UnwindTables::DebugOnly {
            let what = match self.frame_pointers.likely() {
                Some(true) => "Stacks through this file lose some callers: it has frame pointers but no unwind tables.",
                _ => "Stacks end in this file: it has neither unwind tables nor frame pointers.",
            };
            lacks.push(lack(what, Some("build with -fasynchronous-unwind-tables")));
        }
        lacks.extend(self.problems.iter().map(|problem| lack(problem, None)));
        lacks
    }

    /// One row per property: `property, value`. What a recording would lack is in the notes.
    pub fn table(&self) -> Table {
        let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let pointers = self.frame_pointers;
        let rows = [
            ("kind", format!("{:?}, {}", self.role, self.architecture).to_lowercase()),
            ("build-id", self.build_id.clone().unwrap_or_else(|| "none".to_owned())),
            ("best source of names", self.symbols.describe().to_owned()),
            ("stripped", yes_no(self.functions == 0)),
            ("functions in its symbol table", self.functions.to_string()),
            ("exported functions", self.exported_functions.to_string()),
            ("debug information of its own", yes_no(self.debug_info)),
            ("mini debug information", yes_no(self.mini_debug_info)),
            ("unwind tables", self.unwind_tables.describe().to_owned()),
            (
                "frame pointers",
                match pointers.likely() {
                    Some(true) => format!("likely ({} of {} functions)", pointers.with, pointers.inspected),
                    Some(false) => format!("no ({} of {} functions)", pointers.with, pointers.inspected),
                    None => "unknown: too few functions have names".to_owned(),
                },
            ),
        ];
        let mut table = Columns::new()
            .with(
                Column::new("property", Kind::Text, "", "A property of the file.").essential(),
                |row: &(&str, String)| row.0.into(),
            )
            .with(Column::new("value", Kind::Prose, "", "Its value.").essential(), |row| row.1.clone().into())
            .table("binary", format!("Symbols and unwind tables of {}", self.path.display()), rows);
        table.notes = self.lacks().into_iter().map(Lack::into_note).collect();
        table
    }
}

impl UnwindTables {
    fn describe(self) -> &'static str {
        match self {
            UnwindTables::Indexed => ".eh_frame with index",
            UnwindTables::Unindexed => ".eh_frame without index",
            UnwindTables::DebugOnly => ".debug_frame only",
            UnwindTables::None => "none",
        }
    }
}

/// The name of a symbol source in tables.
trait Describe {
    fn describe(self) -> &'static str;
}

impl Describe for SymbolSource {
    fn describe(self) -> &'static str {
        match self {
            SymbolSource::DebugInfo => "debug information",
            SymbolSource::SymbolTable => "symbol table",
            SymbolSource::DynamicSymbols => "exported functions",
            SymbolSource::JitMap => "JIT map",
            SymbolSource::None => "none",
        }
    }
}

/// The interpreter that a script's first line names.
fn interpreter(file: &File) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    BufReader::new(io::Read::take(file, 256)).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line).trim().to_owned();
    Ok(line.strip_prefix("#!").map(|rest| rest.trim().to_owned()))
}

fn is_function<'data>(symbol: &impl ObjectSymbol<'data>) -> bool {
    symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0
}

/// Inspects the first instructions of functions.
fn frame_pointers<'data>(elf: &impl Object<'data>) -> FramePointers {
    let Some(text) = elf.section_by_name(".text") else { return FramePointers::default() };
    let Ok(code) = text.data() else { return FramePointers::default() };
    let mut starts: Vec<u64> = (elf.symbols().chain(elf.dynamic_symbols()))
        .filter(|symbol| is_function(symbol) && symbol.size() >= MIN_FUNCTION_BYTES)
        .map(|symbol| symbol.address())
        .collect();
    starts.sort_unstable();
    starts.dedup();
    // Evenly spread, because the first functions of a program may all come from one library.
    let stride = starts.len().div_ceil(MAX_INSPECTED).max(1);
    let prologues = starts.iter().step_by(stride).filter_map(|start| {
        let at = usize::try_from(start.checked_sub(text.address())?).ok()?;
        let code = code.get(at..)?;
        Some(&code[..code.len().min(PROLOGUE_BYTES)])
    });
    let mut found = FramePointers::default();
    for prologue in prologues {
        found.inspected += 1;
        found.with += usize::from(sets_frame_pointer(elf.architecture(), prologue));
    }
    found
}

/// Whether a prologue saves the caller's frame pointer and sets its own. Other instructions may come between.
fn sets_frame_pointer(architecture: Architecture, prologue: &[u8]) -> bool {
    match architecture {
        Architecture::X86_64 => {
            // push %rbp; ...; mov %rsp,%rbp (either encoding)
            let push = prologue.iter().position(|&byte| byte == 0x55);
            let set = |bytes: &[u8]| matches!(bytes, [0x48, 0x89, 0xe5] | [0x48, 0x8b, 0xec]);
            push.is_some_and(|push| prologue[push + 1..].windows(3).any(set))
        }
        Architecture::Aarch64 => prologue.chunks_exact(4).any(|word| {
            // mov x29, sp, or add x29, sp, #n
            let instruction = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            instruction & 0xffc0_03ff == 0x9100_03fd
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Builds a small program, or says why it cannot.
    fn build(test: &str, directory: &Path, flags: &[&str]) -> Option<Binary> {
        let source = directory.join("x.c");
        let functions: String = (0..20)
            .map(|i| {
                format!(
                    "int g{i}(int *p, int n);\n__attribute__((noinline)) int f{i}(int *p, int n) {{ int s = {i}; \
                     for (int k = 0; k < n; k++) s += p[k] * g{i}(p, k) / (s | 1); return s; }}\n\
                     __attribute__((noinline)) int g{i}(int *p, int n) {{ return n ? p[n - 1] + f{i}(p, n - 1) : 1; }}\n"
                )
            })
            .collect();
        std::fs::write(&source, format!("{functions}int main(int n, char **v) {{ return f0(&n, n); }}")).unwrap();
        let program = directory.join("x");
        let compiler = Command::new("cc").args(flags).arg("-o").arg(&program).arg(&source).output();
        match compiler {
            Ok(output) if output.status.success() => Some(Binary::inspect(&program).unwrap()),
            _ => {
                println!("skipped: {test}: no C compiler");
                None
            }
        }
    }

    #[test]
    fn a_program_with_symbols_and_unwind_tables_lacks_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let test = "a_program_with_symbols_and_unwind_tables_lacks_nothing";
        let flags = ["-O2", "-g", "-fno-omit-frame-pointer"];
        let Some(binary) = build(test, directory.path(), &flags) else { return };
        assert_eq!((binary.role, binary.symbols, binary.debug_info), (Role::Program, SymbolSource::DebugInfo, true));
        assert_eq!(binary.unwind_tables, UnwindTables::Indexed);
        assert!(binary.functions >= 41 && binary.frame_pointers.likely() == Some(true), "{binary:?}");
        assert_eq!(binary.lacks(), []);
    }

    #[test]
    fn an_optimised_program_has_no_frame_pointers() {
        let directory = tempfile::tempdir().unwrap();
        let test = "an_optimised_program_has_no_frame_pointers";
        let Some(binary) = build(test, directory.path(), &["-O2", "-fomit-frame-pointer"]) else { return };
        assert_eq!(binary.frame_pointers.likely(), Some(false), "{binary:?}");
        assert_eq!(binary.symbols, SymbolSource::SymbolTable);
        assert_eq!(binary.lacks().len(), 1, "no lines");
    }

    #[test]
    fn a_stripped_program_without_unwind_tables_lacks_names_and_stacks() {
        let directory = tempfile::tempdir().unwrap();
        let test = "a_stripped_program_without_unwind_tables_lacks_names_and_stacks";
        let flags = ["-O2", "-s", "-fno-asynchronous-unwind-tables", "-nostartfiles", "-Wl,--entry=main"];
        let Some(binary) = build(test, directory.path(), &flags) else { return };
        assert_eq!((binary.functions, binary.unwind_tables), (0, UnwindTables::None));
        assert_eq!(binary.lacks().len(), 2, "{:?}", binary.lacks());
        assert_eq!(binary.table().notes.len(), 2);
    }

    #[test]
    fn scripts_texts_and_directories_are_refused_with_advice() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |text: &str| {
            let path = directory.path().join("x");
            std::fs::write(&path, text).unwrap();
            Binary::inspect(&path).unwrap_err().to_string()
        };
        assert!(refused("#!/usr/bin/env python3\n").contains("inspect its interpreter, `/usr/bin/env python3`"));
        assert!(refused("hello").contains("is not an ELF program or library"));
        assert!(refused("").contains("is not an ELF program or library"));
        assert!(matches!(Binary::inspect(directory.path()), Err(BinaryError::Io { .. })));
    }

    #[test]
    fn a_damaged_program_does_not_make_the_parser_panic() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let mut bytes = std::fs::read("/bin/sh").unwrap();
        for i in (0..bytes.len().min(8192)).step_by(97) {
            bytes[i] ^= 0x5a;
            std::fs::write(&path, &bytes).unwrap();
            let _ = Binary::inspect(&path);
        }
        std::fs::write(&path, &bytes[..1000]).unwrap();
        let _ = Binary::inspect(&path);
    }

    #[test]
    fn prologues_are_recognised_on_both_architectures() {
        let x86 = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5, 0x53];
        assert!(sets_frame_pointer(Architecture::X86_64, &x86));
        assert!(!sets_frame_pointer(Architecture::X86_64, &x86[..9]));
        let arm = [0xfd, 0x7b, 0xbe, 0xa9, 0xfd, 0x03, 0x00, 0x91];
        assert!(sets_frame_pointer(Architecture::Aarch64, &arm));
        assert!(!sets_frame_pointer(Architecture::Aarch64, &arm[..4]));
    }
}
