//! The libraries that a program loads, before it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use stepscope_record::proc;

/// Libraries that the dynamic loader would load for `program` with these additional variables: what `ldd` lists.
///
/// Libraries that it opens itself later (plugins) are not among them. Empty for scripts and static programs.
pub fn of_program(program: &Path, environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let Ok(Some(loader)) = stepscope_symbolize::loader(program) else { return Vec::new() };
    let listed = Command::new(loader).arg("--list").arg(program).envs(environment).output();
    listed.map(|output| listed_paths(&output.stdout)).unwrap_or_default()
}

/// Files with code that a running process has mapped.
pub fn of_process(pid: u32) -> Vec<PathBuf> {
    let maps = proc::maps(pid).unwrap_or_default();
    let code = maps.iter().filter(|mapping| mapping.access.execute).filter_map(|mapping| mapping.backing.path());
    code.map(Path::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Paths in lines such as `libsim.so.3 => /opt/sim/lib/libsim.so.3 (0x00007f0000000000)`.
fn listed_paths(listed: &[u8]) -> Vec<PathBuf> {
    let path = |line: &[u8]| {
        let arrow = line.windows(4).position(|part| part == b" => ")?;
        let path = &line[arrow + 4..];
        let end = path.windows(4).rposition(|part| part == b" (0x")?;
        Some(PathBuf::from(OsStr::from_bytes(&path[..end])))
    };
    listed.split(|byte| *byte == b'\n').filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_a_listing_are_read() {
        let listed = b"\tlinux-vdso.so.1 (0x00007ffd0)\n\tlibz.so.1 => /opt/my libs/libz.so.1 (0x00007f1)\n\tlibq.so => not found\n";
        assert_eq!(listed_paths(listed), [Path::new("/opt/my libs/libz.so.1")]);
    }

    #[test]
    fn the_c_library_is_among_the_libraries_of_this_test() {
        let this = std::env::current_exe().unwrap();
        let has_libc = |libraries: &[PathBuf]| {
            libraries
                .iter()
                .any(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libc.")))
        };
        if has_libc(&of_process(std::process::id())) {
            assert!(has_libc(&of_program(&this, &BTreeMap::new())));
        }
        assert_eq!(of_program(Path::new("/nonexistent"), &BTreeMap::new()), Vec::<PathBuf>::new());
    }
}
