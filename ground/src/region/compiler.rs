//! The script compiler and its directory of sources, binaries and script states.

use std::collections::HashMap;
use std::fs::{self, DirEntry, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lsl;
use super::vm::Program;
use crate::account::{self, Counter};
use crate::switches::{Switch, Switches};

/// Regions whose script engines share the directory. Only the first one runs.
const REGIONS: u32 = 4;

/// Sources and binaries that each region's engine left in its previous run.
const OLD_SCRIPTS: u32 = 2;

const SOURCE_MARK: &[u8] = b"// LSL source\n";
const BINARY_MARK: &[u8] = b"LSLB";

/// Compiles the scripts of a region.
pub struct ScriptCompiler {
    directory: PathBuf,
    region: u32,
    /// Programs by their text. Empty if everything is compiled again.
    known: HashMap<Arc<str>, Arc<Program>>,
    compiles_again: bool,
}

impl ScriptCompiler {
    /// Deletes the old files of all regions and returns the compiler of the first region.
    ///
    /// # Errors
    /// If the directory cannot be read or written.
    pub fn start(directory: &Path, switches: &Switches) -> io::Result<Self> {
        let recognition = if switches.is_slow(Switch::DirScan) { Recognition::ByContent } else { Recognition::ByName };
        (0..REGIONS).try_for_each(|region| delete_old_files(directory, region, recognition))?;
        Ok(Self {
            directory: directory.to_owned(),
            region: 0,
            known: HashMap::new(),
            compiles_again: switches.is_slow(Switch::Recompile),
        })
    }

    /// The program of a script, compiled if necessary.
    ///
    /// # Errors
    /// If the text is not a script, or its files cannot be written.
    #[inline(never)]
    pub fn perform_script_compile(&mut self, text: &Arc<str>, item_id: u32) -> io::Result<Arc<Program>> {
        if self.compiles_again {
            let program = self.compile_from_lsl(text, &item_id.to_string())?;
            return Ok(Arc::new(program));
        }
        if let Some(known) = self.known.get(text) {
            return Ok(Arc::clone(known));
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let program = Arc::new(self.compile_from_lsl(text, &format!("{:016x}", hasher.finish()))?);
        self.known.insert(Arc::clone(text), Arc::clone(&program));
        Ok(program)
    }

    /// Compiles a script and writes source and binary to the directory.
    #[inline(never)]
    fn compile_from_lsl(&self, text: &str, name: &str) -> io::Result<Program> {
        let _timed = account::scope("ground::region::compiler::ScriptCompiler::compile_from_lsl");
        account::count(Counter::Compilations);
        let path = |kind: &str| self.directory.join(format!("{}{name}.{kind}", prefix(self.region)));
        write_file(&path("source"), &[SOURCE_MARK, text.as_bytes()])?;
        let program = lsl::compile(text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("script {name}: {error}")))?;
        write_file(&path("binary"), &[BINARY_MARK, &program.to_bytes()])?;
        Ok(program)
    }
}

/// How old files are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recognition {
    /// By the first bytes of every file.
    ByContent,
    /// By name.
    ByName,
}

/// Deletes the old sources and binaries of a region. Script states stay.
#[inline(never)]
fn delete_old_files(directory: &Path, region: u32, recognition: Recognition) -> io::Result<()> {
    let _timed = account::scope("ground::region::compiler::delete_old_files");
    let mut old = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_old = match recognition {
            Recognition::ByContent => is_source_or_binary(&entry)? && is_of_region(&entry, region),
            Recognition::ByName => is_of_region(&entry, region) && has_name_of_old_file(&entry),
        };
        if is_old {
            old.push(entry.path());
        }
    }
    old.iter().try_for_each(fs::remove_file)
}

#[inline(never)]
fn is_source_or_binary(entry: &DirEntry) -> io::Result<bool> {
    account::count(Counter::DirectoryEntries);
    if !fs::metadata(entry.path())?.is_file() {
        return Ok(false);
    }
    account::count(Counter::FileOpens);
    account::count(Counter::FileReads);
    let mut head = [0; SOURCE_MARK.len()];
    let length = File::open(entry.path())?.read(&mut head)?;
    Ok(head[..length].starts_with(SOURCE_MARK) || head[..length].starts_with(BINARY_MARK))
}

fn is_of_region(entry: &DirEntry, region: u32) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(prefix(region).as_bytes())
}

fn has_name_of_old_file(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let is_old = [b".source".as_slice(), b".binary"].iter().any(|ending| name.as_encoded_bytes().ends_with(ending));
    if is_old {
        account::count(Counter::DirectoryEntries);
    }
    is_old
}

fn prefix(region: u32) -> String {
    format!("region{region}_")
}

#[inline(never)]
fn write_file(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    account::count(Counter::FileOpens);
    account::count(Counter::FileWrites);
    let written = fs::write(path, parts.concat());
    written.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Creates the directory as an earlier run left it, with a number of script states.
///
/// Equal states are links to one file, because their creation is not measured.
///
/// # Errors
/// If it cannot be written.
#[inline(never)]
pub fn leave_directory(directory: &Path, states: u32) -> io::Result<()> {
    let _timed = account::scope("ground::region::compiler::leave_directory");
    fs::create_dir(directory)?;
    for region in 0..REGIONS {
        for script in 0..OLD_SCRIPTS {
            let path = |kind: &str| directory.join(format!("{}old{script}.{kind}", prefix(region)));
            write_file(&path("source"), &[SOURCE_MARK, b"default { }"])?;
            write_file(&path("binary"), &[BINARY_MARK, b"\0"])?;
        }
    }
    let state = "<State><Running>True</Running></State>\n".repeat(40);
    let mut model = None;
    for script in 0..states {
        let path = directory.join(format!("{}{script}.state", prefix(script % REGIONS)));
        // A file has a limited number of links; then the next state is a new file.
        if let Some(model) = &model
            && fs::hard_link(model, &path).is_ok()
        {
            continue;
        }
        write_file(&path, &[state.as_bytes()])?;
        model = Some(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::TemporaryFolder;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn both_ways_delete_old_sources_and_binaries_and_keep_states() {
        for recognition in [Recognition::ByContent, Recognition::ByName] {
            let folder = TemporaryFolder::new("compiler-test").unwrap();
            let directory = folder.path().join("scripts");
            leave_directory(&directory, 6).unwrap();
            assert_eq!(names(&directory).len(), 4 * 2 * 2 + 6);
            (1..REGIONS).for_each(|region| delete_old_files(&directory, region, recognition).unwrap());
            let rest = names(&directory);
            assert_eq!(rest.len(), 2 * 2 + 6);
            assert!(rest.iter().all(|name| name.starts_with("region0_") || name.ends_with(".state")), "{rest:?}");
        }
    }

    #[test]
    fn a_text_is_compiled_once_or_each_time() {
        let text: Arc<str> = "default { timer() { llSetRot(1); } }".into();
        for (switches, files) in [(Switches::default(), 2), (Switches::only(Switch::Recompile), 6)] {
            let folder = TemporaryFolder::new("compiler-test").unwrap();
            let mut compiler = ScriptCompiler::start(folder.path(), &switches).unwrap();
            let programs = [1, 2, 3].map(|item| compiler.perform_script_compile(&text, item).unwrap());
            assert_eq!(programs[0], programs[2]);
            assert_eq!(names(folder.path()).len(), files);
        }
    }

    #[test]
    fn a_script_that_cannot_be_compiled_is_named_with_the_line() {
        let folder = TemporaryFolder::new("compiler-test").unwrap();
        let mut compiler = ScriptCompiler::start(folder.path(), &Switches::only(Switch::Recompile)).unwrap();
        let error = compiler.perform_script_compile(&"default {\n".into(), 77).unwrap_err();
        assert_eq!(error.to_string(), "script 77: line 1 of the script: expected a name, found the end");
    }
}
