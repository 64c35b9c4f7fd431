//! Builds of the program without names, which show how much the results depend on names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use stepscope_analyze::proof::Build;
use stepscope_analyze::qualified_name::own_name;
use stepscope_symbolize::demangle;

use super::ProvingError;

/// A build of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BuildKind {
    /// Unchanged.
    Plain,
    /// Function names replaced by hashes; no debug information.
    Renamed,
    /// No names and no debug information.
    Stripped,
}

impl BuildKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            BuildKind::Plain => "plain",
            BuildKind::Renamed => "renamed",
            BuildKind::Stripped => "stripped",
        }
    }
}

/// A function in the program's symbol table.
struct Symbol {
    address: u64,
    mangled: String,
}

impl Symbol {
    fn hashed(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.mangled.hash(&mut hasher);
        format!("h{:016x}", hasher.finish())
    }
}

/// The unchanged program.
pub(super) fn plain() -> Build {
    Build { name: BuildKind::Plain.name().to_owned(), shown: None }
}

/// Makes a build in `folder`, with the names that it shows.
pub(super) fn make(kind: BuildKind, program: &Path, folder: &Path) -> Result<(PathBuf, Build), ProvingError> {
    if kind == BuildKind::Plain {
        return Ok((program.to_owned(), plain()));
    }
    let name = kind.name().to_owned();
    let failed = |reason: String| ProvingError::Build { build: kind.name(), reason };
    let symbols = functions(program).map_err(failed)?;
    let stem = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let made = folder.join(format!("{stem}-{name}"));
    let mut objcopy = Command::new("objcopy");
    if kind == BuildKind::Stripped {
        objcopy.arg("--strip-all");
    } else {
        let file = folder.join("renamed.symbols");
        let mut lines = String::new();
        // Static functions of several files may share a name.
        let names: BTreeMap<&str, &Symbol> = symbols.iter().map(|symbol| (symbol.mangled.as_str(), symbol)).collect();
        for symbol in names.values() {
            let _ = writeln!(lines, "{} {}", symbol.mangled, symbol.hashed());
        }
        fs::write(&file, lines).map_err(|source| ProvingError::File { path: file.clone(), source })?;
        objcopy.arg("--strip-debug").arg("--redefine-syms").arg(file);
    }
    run(objcopy.arg(program).arg(&made)).map_err(failed)?;
    let mut shown: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let file = made.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for symbol in &symbols {
        let as_shown = match kind {
            BuildKind::Stripped => format!("{file}+{:#x}", symbol.address),
            _ => symbol.hashed(),
        };
        shown.entry(own_name(&demangle(&symbol.mangled)).into_owned()).or_default().push(as_shown);
    }
    Ok((made, Build { name, shown: Some(shown) }))
}

/// Each name with its address.
fn functions(program: &Path) -> Result<Vec<Symbol>, String> {
    let listed = run(Command::new("nm").args(["--defined-only", "--format=posix"]).arg(program))?;
    let symbol = |line: &str| {
        let mut words = line.split(' ');
        let (mangled, kind, address) = (words.next()?, words.next()?, words.next()?);
        let address = u64::from_str_radix(address, 16).ok()?;
        matches!(kind, "t" | "T" | "w" | "W").then(|| Symbol { address, mangled: mangled.to_owned() })
    };
    Ok(listed.lines().filter_map(symbol).collect())
}

fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}; it is of the package binutils"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
