//! Why the system refuses to run a file, and what to do about it.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf;

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such file in any directory of `PATH`.
    #[error("not found in PATH: install it, or give its path{}", hint(.here))]
    NotInPath {
        /// A program of that name in the working directory, which shells do not search either.
        here: Option<PathBuf>,
    },
    /// No such file.
    #[error("no such file: {}: check the path, or build it first", path.display())]
    NoFile {
        /// The path, prefixed by the working directory if one was given.
        path: PathBuf,
    },
    /// It is a directory.
    #[error("{} is a directory: name a program in it", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The file exists but may not be run.
    #[error("{} is not executable: run `chmod +x {}`, or check the rights of its directories", path.display(), path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// The file system forbids running programs.
    #[error("{} is on a file system mounted `noexec`: copy the program elsewhere", path.display())]
    NoExecMount {
        /// The file.
        path: PathBuf,
    },
    /// The interpreter that its first line names does not exist.
    #[error("its interpreter `{interpreter}` (named in its first line) does not exist: {}", interpreter_hint(.interpreter))]
    NoInterpreter {
        /// The interpreter as named.
        interpreter: String,
    },
    /// The dynamic linker that it was built for does not exist.
    #[error(
        "its dynamic linker {loader} does not exist, so it was built for another system: install that system's C \
             library, or build the program here"
    )]
    NoLoader {
        /// The linker's path.
        loader: String,
    },
    /// A program for another CPU architecture.
    #[error("it was built for another CPU architecture ({machine}): build it for {}", std::env::consts::ARCH)]
    OtherMachine {
        /// The architecture.
        machine: String,
    },
    /// Neither an ELF program nor a script whose first line names an interpreter.
    #[error(
        "it is neither a program nor a script that starts with `#!`: add `#!/bin/sh` (or its interpreter) as the \
             first line, or run it as `sh FILE`"
    )]
    NotAProgram,
    /// It is open for writing.
    #[error("the file is open for writing: wait until its build or copy has finished")]
    Busy,
    /// Arguments and environment are larger than the system allows.
    #[error("its arguments and environment are too long: pass them in a file")]
    TooLong,
    /// Any other reason, as the system's message.
    #[error("{}", io::Error::from_raw_os_error(*.errno))]
    Other {
        /// The system's error number.
        errno: i32,
    },
}

fn hint(here: &Option<PathBuf>) -> String {
    here.as_ref().map(|path| format!(" (did you mean `./{}`?)", path.display())).unwrap_or_default()
}

fn interpreter_hint(interpreter: &str) -> &'static str {
    if interpreter.ends_with('\r') {
        "the file has Windows line ends: convert it with `sed -i 's/\\r$//' FILE`"
    } else {
        "install it, or correct the line"
    }
}

/// Where a shell searches if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds the file of a program as a shell does. A name with a `/` is a path (relative to `directory`); any other name
/// is searched for in the directories of `search`.
pub(super) fn find(name: &OsStr, search: Option<&OsStr>, directory: Option<&Path>) -> Result<PathBuf, Refusal> {
    let seen_from = |path: &Path| directory.map_or_else(|| path.to_owned(), |directory| directory.join(path));
    if name.as_bytes().contains(&b'/') {
        return check(&seen_from(Path::new(name))).map(|()| name.into());
    }
    let mut refusal = None;
    for entry in std::env::split_paths(search.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        if name.is_empty() {
            break;
        }
        let relative = if entry.as_os_str().is_empty() { Path::new(".").join(name) } else { entry.join(name) };
        match check(&seen_from(&relative)) {
            Ok(()) => return Ok(relative),
            // A later directory of PATH may still have a program of that name.
            Err(Refusal::NoFile { .. } | Refusal::Directory { .. }) => {}
            Err(other) => refusal = refusal.or(Some(other)),
        }
    }
    let here = Path::new(name);
    let here = (!name.is_empty() && check(&seen_from(here)).is_ok()).then(|| here.to_owned());
    Err(refusal.unwrap_or(Refusal::NotInPath { here }))
}

/// Whether a path leads to a file that this user may run.
fn check(path: &Path) -> Result<(), Refusal> {
    let path_owned = || path.to_owned();
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(Refusal::Directory { path: path_owned() }),
        Ok(_) if may_execute(path) => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(Refusal::NoFile { path: path_owned() }),
        _ => Err(denied(path)),
    }
}

fn may_execute(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path ends in NUL.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0 }
}

fn denied(path: &Path) -> Refusal {
    let is_noexec = CString::new(path.as_os_str().as_bytes()).is_ok_and(|text| {
        let mut mount = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: the path ends in NUL; a zeroed statvfs is valid, and filled in on success.
        unsafe {
            libc::statvfs(text.as_ptr(), mount.as_mut_ptr()) == 0 && mount.assume_init().f_flag & libc::ST_NOEXEC != 0
        }
    });
    let path = path.to_owned();
    if is_noexec { Refusal::NoExecMount { path } } else { Refusal::NotExecutable { path } }
}

/// Why `exec` of an existing file failed with `errno`. `ENOENT` also means that only the interpreter is missing.
pub(super) fn why(path: &Path, errno: i32) -> Refusal {
    match (errno, Format::read(path)) {
        (libc::ENOENT, Some(Format::Script { interpreter })) => Refusal::NoInterpreter { interpreter },
        (libc::ENOENT, Some(Format::Elf { loader: Some(loader), .. })) => Refusal::NoLoader { loader },
        (libc::ENOENT, None) => Refusal::NoFile { path: path.to_owned() },
        (libc::ENOEXEC, Some(Format::Elf { machine: Some(machine), .. })) => Refusal::OtherMachine { machine },
        (libc::ENOEXEC, _) => Refusal::NotAProgram,
        (libc::EACCES, _) => denied(path),
        (libc::ETXTBSY, _) => Refusal::Busy,
        (libc::E2BIG, _) => Refusal::TooLong,
        _ => Refusal::Other { errno },
    }
}

/// The format of a file, by its first bytes.
enum Format {
    Script { interpreter: String },
    Elf { loader: Option<String>, machine: Option<String> },
    Other,
}

impl Format {
    fn read(path: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(64 << 10).read_to_end(&mut bytes).ok()?;
        Some(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Self {
        if let Some(line) = bytes.strip_prefix(b"#!") {
            let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
            let line = line.strip_prefix(b" ").unwrap_or(line);
            // Not trimmed further: a carriage return is part of the name that the kernel searches for.
            let interpreter = line.split(|byte| matches!(byte, b' ' | b'\t')).find(|part| !part.is_empty());
            return Format::Script { interpreter: String::from_utf8_lossy(interpreter.unwrap_or_default()).into() };
        }
        if bytes.starts_with(b"\x7fELF") {
            return Format::Elf { loader: loader(bytes), machine: other_machine(bytes) };
        }
        Format::Other
    }
}

/// The path in the `PT_INTERP` of an ELF file, given the start of the file.
fn loader(bytes: &[u8]) -> Option<String> {
    use object::read::elf::{FileHeader, ProgramHeader};
    fn interpreter<Elf: FileHeader<Endian = object::Endianness>>(bytes: &[u8]) -> Option<String> {
        let header = Elf::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, bytes).ok()?;
        let path = segments.iter().find_map(|segment| segment.interpreter(endian, bytes).ok().flatten())?;
        Some(String::from_utf8_lossy(path).into_owned())
    }
    interpreter::<elf::FileHeader64<_>>(bytes).or_else(|| interpreter::<elf::FileHeader32<_>>(bytes))
}

/// The architecture of an ELF file, if it differs from this machine's.
fn other_machine(bytes: &[u8]) -> Option<String> {
    let field: [u8; 2] = bytes.get(18..20)?.try_into().ok()?;
    let machine = if bytes.get(5) == Some(&2) { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) };
    let name = match elf::Machine(machine) {
        elf::EM_X86_64 => "x86_64",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_386 => "x86",
        elf::EM_ARM => "arm",
        elf::EM_RISCV => "riscv",
        elf::EM_PPC64 => "powerpc64",
        elf::EM_S390 => "s390x",
        _ => return Some(format!("ELF machine {machine}")),
    };
    (name != std::env::consts::ARCH).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn add(&self, name: &str, mode: u32, bytes: &[u8]) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        }

        fn find(&self, name: &str, search: &str) -> Result<PathBuf, Refusal> {
            let search = search.split(':').map(|entry| self.0.path().join(entry));
            find(OsStr::new(name), Some(&std::env::join_paths(search).unwrap()), Some(self.0.path()))
        }
    }

    #[test]
    fn the_first_program_of_that_name_in_the_path_is_found_and_other_files_are_skipped() {
        let files = Files::new();
        files.add("a/tool/file", 0o644, b"");
        files.add("b/tool", 0o644, b"");
        let third = files.add("c/tool", 0o755, b"");
        assert_eq!(files.find("tool", "none:a:b:c"), Ok(third));
        let unable = files.0.path().join("b/tool");
        assert_eq!(files.find("tool", "none:a:b"), Err(Refusal::NotExecutable { path: unable }));
        assert_eq!(files.find("tool", "none:a"), Err(Refusal::NotInPath { here: None }));
        assert_eq!(files.find("", "c"), Err(Refusal::NotInPath { here: None }));
    }

    #[test]
    fn a_program_that_is_only_in_the_working_directory_is_suggested() {
        let files = Files::new();
        files.add("sim", 0o755, b"");
        let refusal = files.find("sim", "none").unwrap_err();
        assert_eq!(refusal.to_string(), "not found in PATH: install it, or give its path (did you mean `./sim`?)");
    }

    #[test]
    fn a_relative_path_starts_in_the_working_directory_of_the_program() {
        let files = Files::new();
        files.add("bin/sim", 0o755, b"");
        assert_eq!(files.find("bin/sim", ""), Ok("bin/sim".into()));
        assert_eq!(files.find("./bin", ""), Err(Refusal::Directory { path: files.0.path().join("./bin") }));
        assert_eq!(files.find("bin/none", ""), Err(Refusal::NoFile { path: files.0.path().join("bin/none") }));
    }

    #[test]
    fn a_missing_interpreter_is_named() {
        let files = Files::new();
        let why_not = |bytes: &[u8]| why(&files.add("x", 0o755, bytes), libc::ENOENT).to_string();
        assert_eq!(
            why_not(b"#! /usr/bin/nope -x\n"),
            "its interpreter `/usr/bin/nope` (named in its first line) does not exist: install it, or correct the line"
        );
        assert!(why_not(b"#!/bin/sh\r\necho\r\n").contains("Windows line ends"));
        assert!(why_not(b"#!").contains("``"));
    }

    #[test]
    fn a_missing_dynamic_linker_is_named() {
        let files = Files::new();
        let bytes = std::fs::read("/bin/sh").unwrap();
        let loader = loader(&bytes).unwrap();
        assert!(loader.starts_with("/lib"), "{loader}");
        assert_eq!(why(&files.add("x", 0o755, &bytes), libc::ENOENT), Refusal::NoLoader { loader });
    }

    #[test]
    fn a_program_for_another_architecture_differs_from_a_file_that_is_no_program() {
        let files = Files::new();
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 20;
        let other = files.add("other", 0o755, &bytes);
        assert_eq!(why(&other, libc::ENOEXEC), Refusal::OtherMachine { machine: "ELF machine 20".into() });
        assert_eq!(why(&files.add("text", 0o755, b"echo"), libc::ENOEXEC), Refusal::NotAProgram);
        assert_eq!(why(&files.add("empty", 0o755, b""), libc::ENOEXEC), Refusal::NotAProgram);
    }

    #[test]
    fn no_truncated_program_makes_the_parser_panic() {
        let bytes = std::fs::read("/bin/sh").unwrap();
        for end in 0..600.min(bytes.len()) {
            let _ = Format::parse(&bytes[..end]);
        }
    }
}
