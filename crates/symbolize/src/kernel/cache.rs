//! Cache of the functions in a kernel's image.
//!
//! The kernel generates `/proc/kallsyms` on each read and unpacks some hundred thousand names, which takes longer than
//! a short recording. The image itself changes only in its load address. So the cache holds addresses relative to
//! `_text`, one file per build-id. The file is searched in place: ascending lines of 16 hexadecimal digits, a space,
//! and a name (empty where no function starts). Modules, trampolines and compiled BPF change and are not cached.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use stepscope_model::output_file::OutputFile;

use super::list::{Line, MAX_FUNCTION_BYTES, Rank};

/// Incremented when the format changes.
const HEAD: &[u8] = b"stepscope kernel functions 1\n";

/// Path of the cache in `folder` for a kernel's build-id (hexadecimal).
pub(super) fn path(folder: &Path, build_id: &str) -> PathBuf {
    folder.join(format!("kernel-{build_id}"))
}

/// An open cache.
#[derive(Debug)]
pub(super) struct FunctionCache {
    file: Mmap,
    /// End of the image relative to its start.
    end: u64,
}

impl FunctionCache {
    /// Opens a cache. `None` if there is none or its format is unknown.
    pub fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        // SAFETY: the map is only read, as bytes. The file is renamed into place when complete and never changed (see
        // `CacheWriter`).
        let file = unsafe { Mmap::map(&file) }.ok()?;
        let lines = file.strip_prefix(HEAD)?.strip_suffix(b"\n")?;
        let last = &lines[memchr::memrchr(b'\n', lines).map_or(0, |end| end + 1)..];
        let (end, _) = parse(last)?;
        Some(Self { file, end })
    }

    /// Whether an offset from the kernel's start is in its image.
    pub fn covers(&self, relative: u64) -> bool {
        relative < self.end
    }

    /// The function at an offset from the kernel's start.
    pub fn name_at(&self, relative: u64) -> Option<&str> {
        let lines = &self.file[HEAD.len()..];
        // The line starts in `low..high`; `low` is always the start of a line.
        let (mut low, mut high) = (0, lines.len());
        loop {
            let middle = low + (high - low) / 2;
            let start = memchr::memchr(b'\n', &lines[middle..high]).map(|at| middle + at + 1).filter(|&at| at < high);
            let Some(start) = start else { break };
            match parse(line_at(lines, start))? {
                (address, _) if address <= relative => low = start,
                // The line that starts at `middle` was not examined.
                _ => high = middle + 1,
            }
        }
        // At most a few lines remain; take the last one that is not above.
        let mut found = None;
        while low < high {
            let line = line_at(lines, low);
            let (address, name) = parse(line)?;
            if address > relative {
                break;
            }
            found = Some((address, name));
            low += line.len() + 1;
        }
        let (address, name) = found?;
        let name = std::str::from_utf8(name).ok()?;
        (relative - address < MAX_FUNCTION_BYTES && !name.is_empty()).then_some(name)
    }
}

fn line_at(lines: &[u8], start: usize) -> &[u8] {
    let rest = &lines[start..];
    &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
}

fn parse(line: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, name) = line.split_at_checked(16)?;
    let address = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some((address, name.strip_prefix(b" ")?))
}

/// Writes the cache while the list is read. An error costs only time.
pub(super) struct CacheWriter {
    out: OutputFile,
    /// Start of the kernel's code.
    text: u64,
    address: u64,
    rank: Option<Rank>,
    name: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first line.
    Start,
    /// In the image.
    Image,
    /// After the image.
    Modules,
    /// The lines are malformed, or writing failed.
    Failed,
}

impl CacheWriter {
    pub fn create(path: &Path, text: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut out = OutputFile::create(path)?;
        out.write_all(HEAD)?;
        Ok(Self { out, text, address: text, rank: None, name: Vec::new(), state: State::Start })
    }

    pub fn line(&mut self, line: &Line<'_>) {
        if self.state == State::Failed || !line.is_kernel_address() {
            return;
        }
        if !line.is_of_image {
            self.state = State::Modules;
            return;
        }
        // Lines of the image come first and in order: the kernel itself searches by that order.
        if self.state == State::Modules || line.address < self.address {
            self.state = State::Failed;
            return;
        }
        if line.address > self.address {
            self.write_place();
            (self.address, self.rank) = (line.address, None);
            self.name.clear();
        }
        self.state = if self.state == State::Start { State::Image } else { self.state };
        let rank = line.rank();
        if rank.is_some() && rank >= self.rank {
            self.rank = rank;
            self.name.clear();
            self.name.extend_from_slice(line.name);
        }
    }

    fn write_place(&mut self) {
        let written = write!(self.out, "{:016x} ", self.address - self.text)
            .and_then(|()| self.out.write_all(&self.name))
            .and_then(|()| self.out.write_all(b"\n"));
        if written.is_err() {
            self.state = State::Failed;
        }
    }

    /// Moves the cache into place if the list was read completely.
    pub fn finish(mut self, read: io::Result<()>) {
        self.write_place();
        let is_whole = read.is_ok() && matches!(self.state, State::Image | State::Modules);
        if is_whole {
            let _ = self.out.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::list::for_each_line;

    const TEXT: u64 = 0xffffffff_81000000;

    fn cached(list: &str) -> Option<FunctionCache> {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder.path().join("cache"), "ab12");
        let mut writer = CacheWriter::create(&path, TEXT).unwrap();
        let read = for_each_line(list.as_bytes(), |line| writer.line(line));
        writer.finish(read);
        FunctionCache::open(&path)
    }

    #[test]
    fn every_address_of_the_image_is_found_by_the_search() {
        let mut list = format!("0000000000000000 A per_cpu\n{TEXT:016x} T _text\n");
        let names: Vec<String> = (1..=500).map(|number| "f".repeat(1 + number * 7 % 60)).collect();
        for (number, name) in names.iter().enumerate() {
            list += &format!("{:016x} t {name}\n", TEXT + 16 * (number as u64 + 1));
        }
        list += &format!("{:016x} B _end\n{:016x} t hook\t[module]\n", TEXT + 0x10000, TEXT + 0x20000);
        let cache = cached(&list).unwrap();
        assert_eq!(cache.name_at(5), Some("_text"));
        for (number, name) in names.iter().enumerate() {
            for address in [16 * (number as u64 + 1), 16 * (number as u64 + 1) + 15] {
                assert_eq!(cache.name_at(address), Some(name.as_str()), "{address:#x}");
            }
        }
        assert!(cache.covers(0xffff) && !cache.covers(0x10000) && !cache.covers(0x20005));
    }

    #[test]
    fn data_and_the_best_of_several_names_are_cached() {
        let list = "\
ffffffff81000000 T _text
ffffffff81000100 t __do_sys_read
ffffffff81000100 T do_sys_read
ffffffff81000200 D some_data
ffffffff81000300 B _end
";
        let cache = cached(list).unwrap();
        assert_eq!([0x1ff, 0x200, 0x2ff].map(|at| cache.name_at(at)), [Some("do_sys_read"), None, None]);
    }

    #[test]
    fn unordered_lists_and_damaged_files_are_not_cached() {
        assert!(cached("ffffffff81000100 T f\nffffffff81000000 T _text\n").is_none());
        assert!(cached("").is_none());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel-ab12");
        for bytes in [&b""[..], HEAD, b"stepscope kernel functions 1\nxyz\n", b"something else\n"] {
            fs::write(&path, bytes).unwrap();
            assert!(FunctionCache::open(&path).is_none(), "{bytes:?}");
        }
    }
}
