//! The functions of a kernel's own image, kept from one naming to the next.
//!
//! The kernel makes `/proc/kallsyms` up as it is read: it unpacks each of some hundred thousand names, which takes longer
//! than all else that a short recording asks for. But what its own image holds never changes, except for the
//! place where a boot loads it. So addresses relative to its start (`_text`) are kept, by build-id, in a text that is
//! searched where it lies: lines of 16 hexadecimal digits, a space, and a name (none where no function starts), ascending.
//! Modules, trampolines and compiled BPF come and go, and are not kept.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::list::{Line, MAX_FUNCTION_BYTES, Rank};

/// Raised when what is kept changes its form.
const HEAD: &[u8] = b"stepscope kernel functions 1\n";

/// Where the functions of the kernel of this build-id (in hexadecimal) are kept in `folder`.
pub(super) fn path(folder: &Path, build_id: &str) -> PathBuf {
    folder.join(format!("kernel-{build_id}"))
}

/// What was kept of a kernel.
#[derive(Debug)]
pub(super) struct Kept {
    file: Mmap,
    /// Where its image ends, relative to its start.
    end: u64,
}

impl Kept {
    /// Opens it. `None` if nothing is kept, or not in a form that we write.
    pub fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        // SAFETY: the map is only read, as bytes. The file is put in its place whole and never changed (see `Keeping`).
        let file = unsafe { Mmap::map(&file) }.ok()?;
        let lines = file.strip_prefix(HEAD)?.strip_suffix(b"\n")?;
        let last = &lines[memchr::memrchr(b'\n', lines).map_or(0, |end| end + 1)..];
        let (end, _) = parse(last)?;
        Some(Self { file, end })
    }

    /// Whether what lies at this distance from the start of the kernel is of its own image.
    pub fn covers(&self, relative: u64) -> bool {
        relative < self.end
    }

    /// The function that holds what lies at this distance from the start of the kernel.
    pub fn name_at(&self, relative: u64) -> Option<&str> {
        let lines = &self.file[HEAD.len()..];
        // The line to be found starts in `low..high`; `low` is always the start of one.
        let (mut low, mut high) = (0, lines.len());
        loop {
            let middle = low + (high - low) / 2;
            let start = memchr::memchr(b'\n', &lines[middle..high]).map(|at| middle + at + 1).filter(|&at| at < high);
            let Some(start) = start else { break };
            match parse(line_at(lines, start))? {
                (address, _) if address <= relative => low = start,
                // The line that starts at `middle` itself, if one does, was not looked at.
                _ => high = middle + 1,
            }
        }
        // What is left begins with lines that are not above it: at most the few that the last halving did not tell apart.
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

/// Keeps what goes by, for the next time. Whatever fails, only time is lost.
pub(super) struct Keeping {
    part: PathBuf,
    path: PathBuf,
    out: BufWriter<File>,
    /// Where the kernel's code starts.
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
    /// Among the lines of the image.
    Image,
    /// Behind them.
    Modules,
    /// The lines are not as expected, or cannot be written.
    Failed,
}

impl Keeping {
    pub fn begin(path: &Path, text: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let mut out = BufWriter::with_capacity(1 << 16, File::create(&part)?);
        out.write_all(HEAD)?;
        let path = path.to_owned();
        Ok(Self { part, path, out, text, address: text, rank: None, name: Vec::new(), state: State::Start })
    }

    pub fn line(&mut self, line: &Line<'_>) {
        if self.state == State::Failed || !line.is_kernel_address() {
            return;
        }
        if !line.is_of_image {
            self.state = State::Modules;
            return;
        }
        // Lines of the image are in order, before all others: the kernel searches by that order itself.
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

    /// Puts what was kept in its place, if the list was read to its end.
    pub fn finish(mut self, read: io::Result<()>) {
        self.write_place();
        let is_whole = read.is_ok() && matches!(self.state, State::Image | State::Modules);
        if !is_whole || self.out.flush().is_err() || fs::rename(&self.part, &self.path).is_err() {
            let _ = fs::remove_file(&self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::list::for_each_line;

    const TEXT: u64 = 0xffffffff_81000000;

    fn kept(list: &str) -> Option<Kept> {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder.path().join("cache"), "ab12");
        let mut keeping = Keeping::begin(&path, TEXT).unwrap();
        let read = for_each_line(list.as_bytes(), |line| keeping.line(line));
        keeping.finish(read);
        Kept::open(&path)
    }

    #[test]
    fn every_place_of_the_image_is_found_again_wherever_the_halving_falls() {
        let mut list = format!("0000000000000000 A per_cpu\n{TEXT:016x} T _text\n");
        let names: Vec<String> = (1..=500).map(|number| "f".repeat(1 + number * 7 % 60)).collect();
        for (number, name) in names.iter().enumerate() {
            list += &format!("{:016x} t {name}\n", TEXT + 16 * (number as u64 + 1));
        }
        list += &format!("{:016x} B _end\n{:016x} t hook\t[module]\n", TEXT + 0x10000, TEXT + 0x20000);
        let kept = kept(&list).unwrap();
        assert_eq!(kept.name_at(5), Some("_text"));
        for (number, name) in names.iter().enumerate() {
            for address in [16 * (number as u64 + 1), 16 * (number as u64 + 1) + 15] {
                assert_eq!(kept.name_at(address), Some(name.as_str()), "{address:#x}");
            }
        }
        assert!(kept.covers(0xffff) && !kept.covers(0x10000) && !kept.covers(0x20005));
    }

    #[test]
    fn data_and_the_best_of_several_names_are_kept() {
        let list = "\
ffffffff81000000 T _text
ffffffff81000100 t __do_sys_read
ffffffff81000100 T do_sys_read
ffffffff81000200 D some_data
ffffffff81000300 B _end
";
        let kept = kept(list).unwrap();
        assert_eq!([0x1ff, 0x200, 0x2ff].map(|at| kept.name_at(at)), [Some("do_sys_read"), None, None]);
    }

    #[test]
    fn a_list_that_is_not_in_order_and_a_damaged_file_are_not_kept() {
        assert!(kept("ffffffff81000100 T f\nffffffff81000000 T _text\n").is_none());
        assert!(kept("").is_none());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel-ab12");
        for bytes in [&b""[..], HEAD, b"stepscope kernel functions 1\nxyz\n", b"something else\n"] {
            fs::write(&path, bytes).unwrap();
            assert!(Kept::open(&path).is_none(), "{bytes:?}");
        }
    }
}
