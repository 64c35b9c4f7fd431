//! How a program was built, from its build folder or its debug information.
//!
//! An unoptimised program spends its time elsewhere than the one that users run, so their results must not be mixed.
//! Sources, in order:
//!
//! 1. The nearest folder above the executable made by a build system: Cargo's `.fingerprint` (the folder's name is the
//!    profile), `CMakeCache.txt` (`CMAKE_BUILD_TYPE`), `meson-info/intro-buildoptions.json` (`buildtype`).
//! 2. The producer in the executable's debug information: the `-O` flag of most units. GCC writes its flags there;
//!    clang and rustc do not.
//!
//! Interpreters and shells come with the system: their build does not matter. If one is the main program, as for a
//! script that launches others, the build is that of the other program with the most CPU time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use stepscope_model::{Build, Capture, command_line};

use crate::producers;

/// Number of folders above the executable that are searched.
const MAX_ANCESTORS: usize = 8;

/// Size limit of a build system's file.
const MAX_BYTES: u64 = 16 << 20;

/// How the main program of a capture was built. `None` if unknown.
pub fn of(capture: &Capture) -> Option<Build> {
    let executable = main_program(capture)?;
    let build_id = capture.modules.iter().find(|module| Path::new(&module.path) == executable);
    let build_id = build_id.and_then(|module| bytes(module.build_id.as_deref()?));
    of_executable(&executable, build_id.as_deref())
}

/// The first program, or the one with the most CPU time if the first only runs others.
fn main_program(capture: &Capture) -> Option<PathBuf> {
    // Their own build does not matter.
    let runs_others = |executable: &Path| {
        executable.file_name().and_then(|name| name.to_str()).is_some_and(command_line::runs_others)
    };
    let is_program = |executable: &Path| executable.is_absolute() && !runs_others(executable);
    let mut cpu_ns = vec![0; capture.processes.len()];
    for thread in &capture.threads {
        if let (Some(process), Some(ns)) = (thread.process, thread.cpu_ns) {
            cpu_ns[process.index()] += ns;
        }
    }
    let programs = capture.processes.iter().map(|process| PathBuf::from(&process.executable)).zip(cpu_ns);
    let mut programs = programs.enumerate().filter(|(_, (executable, _))| is_program(executable)).peekable();
    match programs.peek() {
        Some((0, (first, _))) => Some(first.clone()),
        _ => programs.max_by_key(|(_, (_, cpu_ns))| *cpu_ns).map(|(_, (executable, _))| executable),
    }
}

/// How a program was built. A file of another build than `build_id` is not asked for its debug information.
pub fn of_executable(executable: &Path, build_id: Option<&[u8]>) -> Option<Build> {
    // Links are resolved first: an installed program has no build folder above it.
    let executable = executable.canonicalize().unwrap_or_else(|_| executable.to_owned());
    let folder = executable.ancestors().skip(1).take(MAX_ANCESTORS).find_map(of_folder);
    let (kind, told_by) = match folder {
        Some(BuildKind { kind: Some(kind), by }) => (kind, by),
        // If the build folder does not set the kind, only the compiler's flags show it.
        _ => (switch(&executable, build_id)?, "the compiler's note in the debug information".to_owned()),
    };
    Some(Build { kind: Some(kind), told_by: Some(told_by), revision: None })
}

/// The build kind according to a build folder.
struct BuildKind {
    kind: Option<String>,
    by: String,
}

fn of_folder(folder: &Path) -> Option<BuildKind> {
    if folder.join(".fingerprint").is_dir() {
        let profile = folder.file_name()?.to_str()?.to_lowercase();
        return Some(BuildKind { kind: Some(profile), by: format!("Cargo's folder {}", folder.display()) });
    }
    let cmake = folder.join("CMakeCache.txt");
    if let Some(text) = text(&cmake) {
        return Some(BuildKind { kind: cmake_build_type(&text), by: cmake.display().to_string() });
    }
    let meson = folder.join("meson-info/intro-buildoptions.json");
    let text = text(&meson)?;
    Some(BuildKind { kind: meson_build_type(&text), by: meson.display().to_string() })
}

/// `CMAKE_BUILD_TYPE:STRING=RelWithDebInfo`, in lower case. `None` if empty, which is the default.
fn cmake_build_type(cache: &str) -> Option<String> {
    let mut values = cache.lines().filter_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        (name.split(':').next() == Some("CMAKE_BUILD_TYPE")).then(|| value.trim().to_lowercase())
    });
    values.next().filter(|value| !value.is_empty())
}

fn meson_build_type(options: &str) -> Option<String> {
    let options: serde_json::Value = serde_json::from_str(options).ok()?;
    let option = options.as_array()?.iter().find(|option| option["name"] == "buildtype")?;
    Some(option["value"].as_str()?.to_lowercase())
}

/// The optimisation flag of most units.
fn switch(executable: &Path, build_id: Option<&[u8]>) -> Option<String> {
    let notes = producers(executable, build_id).ok()?;
    let mut units: BTreeMap<&str, usize> = BTreeMap::new();
    for (note, count) in &notes {
        if let Some(switch) = optimisation(note) {
            *units.entry(switch).or_default() += count;
        }
    }
    let most = units.into_iter().max_by_key(|&(_, count)| count)?;
    Some(most.0.to_owned())
}

/// The last `-O` flag in a producer with flags. Without one, `-O0`: GCC's default.
fn optimisation(note: &str) -> Option<&str> {
    let mut words = note.split_ascii_whitespace();
    if !note.starts_with("GNU ") || note.starts_with("GNU AS") {
        return words.rfind(|word| is_optimisation(word));
    }
    Some(words.rfind(|word| is_optimisation(word)).unwrap_or("-O0"))
}

fn is_optimisation(word: &str) -> bool {
    let level = word.strip_prefix("-O");
    level.is_some_and(|level| level.len() <= 4 && level.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn text(path: &Path) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn bytes(hexadecimal: &str) -> Option<Vec<u8>> {
    let digits = hexadecimal.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use stepscope_model::{Module, Process, Thread};

    use super::*;

    /// The build kind of `program` in a folder with these files.
    fn kind_of(files: &[(&str, &str)], program: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let program = folder.path().join(program);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "no program").unwrap();
        let build = of_executable(&program, None)?;
        assert!(build.told_by.is_some());
        build.kind
    }

    #[test]
    fn cmake_kind_is_in_the_cache_of_the_nearest_folder_above() {
        let cache = |kind: &str| format!("# comment\nCMAKE_BUILD_TYPE_X:STRING=no\nCMAKE_BUILD_TYPE:STRING={kind}\n");
        let (outer, inner) = (cache("Release"), cache("RelWithDebInfo"));
        let files = [("build/CMakeCache.txt", outer.as_str()), ("build/sub/CMakeCache.txt", inner.as_str())];
        assert_eq!(kind_of(&files, "build/bin/sim").as_deref(), Some("release"));
        assert_eq!(kind_of(&files, "build/sub/bin/x/sim").as_deref(), Some("relwithdebinfo"));
        assert_eq!(kind_of(&files, "install/bin/sim"), None);
        assert_eq!(kind_of(&[("build/CMakeCache.txt", &cache(""))], "build/sim"), None);
    }

    #[test]
    fn cargo_kind_is_the_folder_of_the_profile() {
        let files = [("target/release/.fingerprint/x", ""), ("target/debug/.fingerprint/x", "")];
        assert_eq!(kind_of(&files, "target/release/sim").as_deref(), Some("release"));
        assert_eq!(kind_of(&files, "target/debug/deps/sim-12").as_deref(), Some("debug"));
        assert_eq!(kind_of(&files, "target/sim"), None);
    }

    #[test]
    fn meson_kind_is_in_its_options() {
        let options = r#"[{"name": "prefix", "value": "/usr"}, {"name": "buildtype", "value": "debugoptimized"}]"#;
        let files = [("build/meson-info/intro-buildoptions.json", options)];
        assert_eq!(kind_of(&files, "build/src/sim").as_deref(), Some("debugoptimized"));
        for damaged in ["", "{}", "[1]", r#"[{"name": "buildtype", "value": 3}]"#] {
            assert_eq!(kind_of(&[("build/meson-info/intro-buildoptions.json", damaged)], "build/sim"), None);
        }
    }

    #[test]
    fn the_producer_has_the_kind_without_a_build_folder() {
        assert_eq!(optimisation("GNU C17 12.2.0 -mtune=generic -g -O1 -O2 -fPIC"), Some("-O2"));
        assert_eq!(optimisation("GNU C++20 13.1 -march=x86-64 -g"), Some("-O0"));
        assert_eq!(optimisation("GNU AS 2.40"), None);
        assert_eq!(optimisation("clang version 16.0.6"), None);
        assert_eq!(optimisation("clang version 16.0.6 -g -Ofast"), Some("-Ofast"));

        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sim.c"), "int main(void) { return 0; }").unwrap();
        for switch in ["-O2", "-O0"] {
            let mut compiler = Command::new("gcc");
            compiler.args(["-g", switch, "-o", "sim", "sim.c"]).current_dir(folder.path());
            if !compiler.status().is_ok_and(|status| status.success()) {
                println!("skipped: the_producer_has_the_kind_without_a_build_folder: there is no gcc");
                return;
            }
            let build = of_executable(&folder.path().join("sim"), None).unwrap();
            assert_eq!(build.kind.as_deref(), Some(switch));
        }
    }

    /// A capture of processes with these executables and CPU times.
    fn capture_of(processes: &[(&str, u64)]) -> Capture {
        let mut capture = Capture::default();
        for &(executable, cpu_ns) in processes {
            let process = capture.add_process(Process { executable: executable.to_owned(), ..Process::default() });
            let thread = Thread { process: Some(process), cpu_ns: Some(cpu_ns), ..Thread::default() };
            capture.add_thread(thread);
        }
        capture
    }

    #[test]
    fn the_main_program_is_the_first_or_the_busiest_child_of_an_interpreter() {
        let main =
            |processes: &[(&str, u64)]| main_program(&capture_of(processes)).map(|path| path.display().to_string());
        assert_eq!(main(&[("/opt/sim", 1), ("/opt/server", 9)]).as_deref(), Some("/opt/sim"));
        let launched = [("/usr/bin/python3.11", 5), ("/opt/idle", 1), ("/opt/busy", 4), ("/bin/sh", 9)];
        assert_eq!(main(&launched).as_deref(), Some("/opt/busy"));
        for interpreter in ["/usr/bin/python3.11", "/bin/sh", "/usr/bin/ruby3.1", "relative/sim", ""] {
            assert_eq!(main(&[(interpreter, 1)]), None, "{interpreter}");
        }
        assert_eq!(main(&[]), None);
    }

    #[test]
    fn the_build_of_a_cargo_program_is_found_from_a_capture() {
        let ours = std::env::current_exe().unwrap();
        let mut capture = capture_of(&[(ours.to_str().unwrap(), 1)]);
        capture.add_module(Module { path: ours.display().to_string(), ..Module::default() });
        let profile = ours.ancestors().nth(2).unwrap().file_name().unwrap().to_str().unwrap();
        assert_eq!(of(&capture).unwrap().kind.as_deref(), Some(profile));
    }
}
