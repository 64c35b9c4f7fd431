//! Finds modules, their separate debug files, and the files that those refer to.
//!
//! The conventions are those of GDB ("Debugging Information in Separate Files" in its manual), `perf`
//! (`perf-buildid-cache`) and debuginfod's cache.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use object::Object;

use crate::image::{Image, hexadecimal};
use crate::{Options, Problem};

/// The program that asks debuginfod servers, and caches what they send.
const DEBUGINFOD_CLIENT: &str = "debuginfod-find";

/// Opens the file that was mapped as `path`, in the recorded build.
///
/// # Errors
/// Why the best candidate could not be used. "Other build" takes precedence over "missing".
pub(crate) fn find_image(
    path: &Path,
    build_id: Option<&[u8]>,
    options: &Options,
    problems: &mut Vec<Problem>,
) -> Result<Image, Problem> {
    // The kernel adds a suffix to files that were unlinked while mapped. Another file may have the name now; only a
    // build-id tells them apart.
    let bytes = path.as_os_str().as_bytes();
    let (path, deleted) = match bytes.strip_suffix(b" (deleted)") {
        Some(name) => (Path::new(OsStr::from_bytes(name)), true),
        None => (path, false),
    };
    let mut problem = Problem::Missing(path.to_owned());
    let roots = if deleted && build_id.is_none() { &[] } else { &options.roots[..] };
    for root in options.copies.iter().chain(roots) {
        match Image::open(&below(root, path)).and_then(|image| of_build(image, build_id)) {
            Ok(image) => return Ok(image),
            Err(Problem::Missing(_)) => {}
            Err(found) => problem = found,
        }
    }
    let cached = build_id
        .into_iter()
        .flat_map(|id| options.build_id_caches.iter().flat_map(move |cache| cached_images(cache, id)));
    let mut cached = cached.filter_map(|candidate| of_build(Image::open(&candidate).ok()?, build_id).ok());
    cached.next().or_else(|| fetch("executable", build_id?, options, problems)).ok_or(problem)
}

/// Asks debuginfod servers for a file. `kind` is `executable` or `debuginfo`.
fn fetch(kind: &str, build_id: &[u8], options: &Options, problems: &mut Vec<Problem>) -> Option<Image> {
    if !options.debuginfod || build_id.is_empty() {
        return None;
    }
    let found = match Command::new(DEBUGINFOD_CLIENT).args([kind, &hexadecimal(build_id)]).output() {
        Ok(found) => found,
        Err(error) => {
            problems.push(Problem::NoDebuginfodClient(error.to_string()));
            return None;
        }
    };
    if !found.status.success() {
        let message = String::from_utf8_lossy(&found.stderr);
        // A server that answers and lacks the file is no problem.
        if !message.contains("No such file or directory") {
            problems.push(Problem::NoDebuginfodServer(message.trim().to_owned()));
        }
        return None;
    }
    let path = Path::new(OsStr::from_bytes(found.stdout.trim_ascii_end()));
    of_build(Image::open(path).ok()?, Some(build_id)).ok()
}

fn of_build(image: Image, recorded: Option<&[u8]>) -> Result<Image, Problem> {
    let Some(recorded) = recorded.filter(|id| !id.is_empty()) else { return Ok(image) };
    let found = image.build_id();
    if found.is_some_and(|found| same_build(found, recorded)) {
        return Ok(image);
    }
    Err(Problem::OtherBuild {
        path: image.path().to_owned(),
        recorded: hexadecimal(recorded),
        found: found.map_or("none".to_owned(), hexadecimal),
    })
}

/// Compares build-ids. `perf.data` pads them with zeros to 20 bytes and truncates longer ones.
pub(crate) fn same_build(found: &[u8], recorded: &[u8]) -> bool {
    let common = found.len().min(recorded.len());
    common > 0 && found[..common] == recorded[..common] && recorded[common..].iter().all(|&byte| byte == 0)
}

/// Joins an absolute `path` to a directory that replaces `/`.
fn below(root: &Path, path: &Path) -> PathBuf {
    if !path.is_absolute() {
        return path.to_owned();
    }
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn cached_images(cache: &Path, build_id: &[u8]) -> [PathBuf; 2] {
    let hex = hexadecimal(build_id);
    let (head, tail) = hex.split_at_checked(2).unwrap_or((&hex, ""));
    // perf: .build-id/ab/cdef…/elf. debuginfod: abcdef…/executable.
    [cache.join(".build-id").join(head).join(tail).join("elf"), cache.join(hex.as_str()).join("executable")]
}

/// The separate file with a module's debug information, if there is one.
pub(crate) fn find_debug_file(image: &Image, options: &Options, problems: &mut Vec<Problem>) -> Option<Image> {
    let build_id = image.build_id();
    build_id
        .and_then(|id| find_by_build_id(id, options))
        .or_else(|| find_by_link(image, options))
        .or_else(|| find_by_name(image.path(), build_id?, options))
        .or_else(|| fetch("debuginfo", build_id?, options, problems))
}

/// The debug file of a module that is gone: by build-id, or a build of the same name.
pub(crate) fn find_debug_file_of_missing(
    path: &Path,
    build_id: &[u8],
    options: &Options,
    problems: &mut Vec<Problem>,
) -> Option<Image> {
    find_by_build_id(build_id, options)
        .or_else(|| find_by_name(path, build_id, options))
        .or_else(|| fetch("debuginfo", build_id, options, problems))
}

/// Looks in each directory for a file of the same name and build, such as the build left before stripping.
fn find_by_name(path: &Path, build_id: &[u8], options: &Options) -> Option<Image> {
    let name = path.file_name()?;
    let mut with_extension = name.to_owned();
    with_extension.push(".debug");
    let candidates =
        options.debug_directories.iter().flat_map(|folder| [folder.join(name), folder.join(&with_extension)]);
    let mut candidates = candidates.filter(|candidate| candidate != path);
    candidates.find_map(|path| of_build(Image::open(&path).ok()?, Some(build_id)).ok())
}

fn find_by_build_id(build_id: &[u8], options: &Options) -> Option<Image> {
    let hex = hexadecimal(build_id);
    let (head, tail) = hex.split_at_checked(2)?;
    let system = options.debug_directories.iter().map(|directory| {
        let mut name = tail.to_owned();
        name.push_str(".debug");
        directory.join(".build-id").join(head).join(name)
    });
    let cached = options.build_id_caches.iter().flat_map(|cache| {
        [cache.join(".build-id").join(head).join(tail).join("debug"), cache.join(hex.as_str()).join("debuginfo")]
    });
    system.chain(cached).find_map(|path| of_build(Image::open(&path).ok()?, Some(build_id)).ok())
}

fn find_by_link(image: &Image, options: &Options) -> Option<Image> {
    let elf = image.elf();
    let (name, checksum) = elf.gnu_debuglink().ok()??;
    let name = plain_name(name)?;
    let path = std::path::absolute(image.path()).ok()?;
    let directory = path.parent()?;
    let beside = [directory.join(name), directory.join(".debug").join(name)];
    let central = options.debug_directories.iter().map(|debug| below(debug, directory).join(name));
    beside.into_iter().chain(central).filter(|candidate| *candidate != path).find_map(|candidate| {
        let debug = Image::open(&candidate).ok()?;
        belongs_to(&debug, image, checksum).then_some(debug)
    })
}

/// Compares build-ids if both files have one, else the checksum of the whole debug file.
fn belongs_to(debug: &Image, image: &Image, checksum: u32) -> bool {
    match (debug.build_id(), image.build_id()) {
        (Some(debug), Some(image)) => debug == image,
        _ => crc32fast::hash(debug.bytes()) == checksum,
    }
}

/// A link as a file name. Links that contain a path are rejected, so that they cannot leave the searched directories.
fn plain_name(name: &[u8]) -> Option<&OsStr> {
    let mut components = Path::new(OsStr::from_bytes(name)).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(name)), None) => Some(name),
        _ => None,
    }
}

/// The file to which `dwz` moved the parts shared by several debug files.
pub(crate) fn find_supplement(debug: &Image, options: &Options) -> Option<Result<Image, Problem>> {
    let elf = debug.elf();
    let (name, build_id) = elf.gnu_debugaltlink().ok()??;
    let name = Path::new(OsStr::from_bytes(name));
    let beside = debug.path().parent().map(|directory| directory.join(name));
    let file = name.file_name().unwrap_or_default();
    let shared = options.debug_directories.iter().map(|directory| directory.join(".dwz").join(file));
    let mut problem = Problem::Missing(name.to_owned());
    for candidate in beside.into_iter().chain(shared) {
        match Image::open(&candidate).and_then(|image| of_build(image, Some(build_id))) {
            Ok(image) => return Some(Ok(image)),
            Err(Problem::Missing(_)) => {}
            Err(found) => problem = found,
        }
    }
    Some(find_by_build_id(build_id, options).ok_or(problem))
}

/// The symbol table in `.gnu_debugdata` ("mini debug info"): an ELF file compressed with xz.
pub(crate) fn mini_debug_info(image: &Image) -> Option<Image> {
    let compressed = image.section(".gnu_debugdata")?;
    // xz exceeds a ratio of 1000 only on zeros; symbol tables stay below 10.
    let limit = (compressed.len() as u64).saturating_mul(100).min(1 << 30);
    let mut unpacked = Bounded { bytes: Vec::new(), limit };
    lzma_rs::xz_decompress(&mut compressed.as_ref(), &mut unpacked).ok()?;
    Image::from_bytes(image.path(), unpacked.bytes).ok()
}

/// A buffer with a size limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: u64,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.limit {
            return Err(std::io::Error::other("it unpacks to more than a symbol table can have"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_padded_or_truncated_by_perf_are_equal() {
        let id: Vec<u8> = (1..=20).collect();
        assert!(same_build(&id, &id));
        assert!(same_build(&id[..16], &[&id[..16], &[0; 4]].concat()));
        assert!(same_build(&[&id[..], &[9; 12]].concat(), &id));
        assert!(!same_build(&id[..16], &id));
        assert!(!same_build(&id, &[7; 20]));
        assert!(!same_build(&[], &id));
    }

    #[test]
    fn debug_links_cannot_leave_their_directory() {
        assert_eq!(plain_name(b"libfoo.so.debug"), Some(OsStr::new("libfoo.so.debug")));
        for name in [&b"../secret"[..], b"/etc/passwd", b"a/b", b"", b".."] {
            assert_eq!(plain_name(name), None);
        }
    }

    #[test]
    fn servers_are_asked_only_if_wanted() {
        let mut problems = Vec::new();
        let mut fetch = |debuginfod| {
            let options = Options { debuginfod, ..Options::default() };
            fetch("debuginfo", &[1; 20], &options, &mut problems).is_some()
        };
        // No server has this file, or there is no client.
        assert_eq!((fetch(false), fetch(true)), (false, false));
    }

    #[test]
    fn an_unstripped_file_is_found_by_name_in_a_debug_directory() {
        const TEST: &str = "an_unstripped_file_is_found_by_name_in_a_debug_directory";
        let whole = std::env::current_exe().unwrap();
        if Image::open(&whole).unwrap().build_id().is_none() {
            return println!("skipped: {TEST}: the linker writes no build-ids");
        }
        let (folder, builds) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let stripped = folder.path().join("sim");
        let strip = std::process::Command::new("strip").arg("-o").arg(&stripped).arg(&whole).status();
        if !strip.is_ok_and(|status| status.success()) {
            return println!("skipped: {TEST}: strip is missing (Debian package: binutils)");
        }
        let found = || {
            let debug_directories = vec![builds.path().to_owned()];
            let options = Options { debug_directories, build_id_caches: Vec::new(), ..Options::default() };
            find_debug_file(&Image::open(&stripped).unwrap(), &options, &mut Vec::new())
                .map(|image| image.path().to_owned())
        };
        assert_eq!(found(), None);
        // Same name, another build.
        std::os::unix::fs::symlink("/bin/sh", builds.path().join("sim")).unwrap();
        assert_eq!(found(), None);
        std::os::unix::fs::symlink(&whole, builds.path().join("sim.debug")).unwrap();
        assert_eq!(found(), Some(builds.path().join("sim.debug")));
    }
}
