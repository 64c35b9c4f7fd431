//! Names of the kernel's functions, from `/proc/kallsyms` or a copy of it that `perf` kept.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use stepscope_model::SymbolSource;

use crate::debug_files::same_build;
use crate::image::hexadecimal;
use crate::texts::Texts;
use crate::{ModuleNames, NamedBy, NamedFrame, Options, Place, Problem, RecordedKernel, demangle};

/// How kernel code without a name is called. All of it alike: without names, its addresses tell a reader nothing and
/// would tear one function into many.
pub(crate) const NAMELESS: &str = "[kernel]";

/// The kernel's functions, or why they are not known.
#[derive(Debug)]
pub(crate) struct Kernel {
    functions: Functions,
    build_id: Option<String>,
    /// What to add to a recorded address to get the same place in `functions`.
    shift: u64,
    problem: Option<Problem>,
}

/// Functions by address. Some hundred thousand, hence one text for all names.
#[derive(Debug, Default)]
struct Functions {
    starts: Vec<u64>,
    /// Where each name ends in `names`; it starts where the one before ends. Empty for what is not a function.
    ends: Vec<u32>,
    names: String,
    /// Address of `_text`.
    text: Option<u64>,
}

/// No function of the kernel is longer; beyond it lies what the list does not tell.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;

/// Reads the list of functions of the kernel that was recorded.
pub(crate) fn load(options: &Options) -> Kernel {
    let running = running_build_id();
    let Some(recorded) = &options.recorded_kernel else { return Kernel::running(running.as_deref(), None) };
    let is_running = match (&recorded.build_id, &running) {
        (Some(recorded), Some(running)) => same_build(running, recorded),
        // Without build-ids only the place where the kernel was loaded can tell, and it is random: equal by chance
        // once in 512 boots at most.
        _ => recorded.text_address.is_some() && text_address() == recorded.text_address,
    };
    if is_running {
        return Kernel::running(running.as_deref(), recorded.text_address);
    }
    let cached = recorded.build_id.as_deref().and_then(|id| find_cached(id, options));
    let Some(list) = cached.and_then(|path| fs::read(path).ok()) else {
        return Kernel::unknown(recorded, Problem::OtherKernel);
    };
    Kernel::of(&list, recorded.build_id.as_deref(), recorded.text_address)
}

fn find_cached(build_id: &[u8], options: &Options) -> Option<PathBuf> {
    let hex = hexadecimal(build_id);
    let candidates = options.build_id_caches.iter().map(|cache| cache.join("[kernel.kallsyms]").join(&hex));
    candidates.map(|folder| folder.join("kallsyms")).find(|list| list.is_file())
}

/// Build-id of the running kernel: the note of type 3 by "GNU" among its ELF notes.
fn running_build_id() -> Option<Vec<u8>> {
    let notes = fs::read("/sys/kernel/notes").ok()?;
    build_id_of_notes(&notes)
}

fn build_id_of_notes(mut notes: &[u8]) -> Option<Vec<u8>> {
    let word = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    loop {
        let (name_size, size, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let description = 12_usize.checked_add(name_size)?.checked_next_multiple_of(4)?;
        let end = description.checked_add(size)?;
        if kind == 3 && notes.get(12..)?.starts_with(b"GNU\0") {
            return notes.get(description..end).map(<[u8]>::to_vec);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

/// Where the running kernel's code starts; `None` where addresses are hidden.
fn text_address() -> Option<u64> {
    // The kernel makes the list up as it is read, which takes a while; this line is among the first.
    let list = BufReader::new(File::open("/proc/kallsyms").ok()?);
    let is_start = |line: &Vec<u8>| line.ends_with(b" _text") || line.ends_with(b" _stext");
    let line = list.split(b'\n').map_while(Result::ok).find(is_start)?;
    parse_line(&line).map(|line| line.address).filter(|&address| address != 0)
}

impl Kernel {
    fn running(build_id: Option<&[u8]>, recorded_text: Option<u64>) -> Self {
        let list = fs::read(Path::new("/proc/kallsyms")).unwrap_or_default();
        Self::of(&list, build_id, recorded_text)
    }

    fn of(list: &[u8], build_id: Option<&[u8]>, recorded_text: Option<u64>) -> Self {
        let functions = Functions::parse(list);
        let hidden = functions.starts.is_empty();
        let shift = match (functions.text, recorded_text) {
            (Some(here), Some(there)) => here.wrapping_sub(there),
            _ => 0,
        };
        let problem = hidden.then_some(Problem::KernelAddressesHidden);
        Self { functions, build_id: build_id.map(hexadecimal), shift, problem }
    }

    fn unknown(recorded: &RecordedKernel, problem: Problem) -> Self {
        let build_id = recorded.build_id.as_deref().map(hexadecimal);
        Self { functions: Functions::default(), build_id, shift: 0, problem: Some(problem) }
    }

    pub(crate) fn name(&self, addresses: &[u64], texts: &mut Texts) -> ModuleNames {
        let places = addresses.iter().map(|&address| self.place(address, texts)).collect();
        ModuleNames {
            symbols: if self.functions.starts.is_empty() { SymbolSource::None } else { SymbolSource::SymbolTable },
            build_id: self.build_id.clone(),
            places,
            problems: self.problem.iter().cloned().collect(),
        }
    }

    fn place(&self, address: u64, texts: &mut Texts) -> Place {
        let name = self.functions.name_at(address.wrapping_add(self.shift));
        let function = match name {
            Some(name) => texts.intern(&demangle(name)),
            None => texts.intern(NAMELESS),
        };
        Place {
            address: Some(address),
            frames: vec![NamedFrame::function(function)],
            named_by: if name.is_some() { NamedBy::Symbol } else { NamedBy::Nothing },
        }
    }
}

struct Line<'list> {
    address: u64,
    kind: u8,
    name: &'list str,
}

/// `ffffffff81000000 T _text`, with `\t[module]` at the end for modules.
fn parse_line(line: &[u8]) -> Option<Line<'_>> {
    let line = std::str::from_utf8(line).ok()?;
    let (address, rest) = line.split_once(' ')?;
    let (kind, rest) = rest.split_once(' ')?;
    let name = rest.split(['\t', ' ']).next()?;
    Some(Line { address: u64::from_str_radix(address, 16).ok()?, kind: *kind.as_bytes().first()?, name })
}

impl Functions {
    fn parse(list: &[u8]) -> Self {
        let mut lines: Vec<Line<'_>> = list.split(|&byte| byte == b'\n').filter_map(parse_line).collect();
        // Where addresses are hidden, all are zero; some entries (of per-CPU data) are small numbers everywhere.
        if lines.iter().all(|line| !line.is_kernel_address()) {
            return Self::default();
        }
        lines.retain(Line::is_kernel_address);
        lines.sort_by_key(|line| line.address);
        let text = ["_text", "_stext"].iter().find_map(|name| lines.iter().find(|line| line.name == *name));
        let mut functions = Self { text: text.map(|line| line.address), ..Self::default() };
        let mut lines = lines.as_slice();
        while let Some(first) = lines.first() {
            let (same, rest) = lines.split_at(lines.partition_point(|line| line.address == first.address));
            lines = rest;
            let best = same.iter().filter(|line| line.is_function()).max_by_key(|line| line.rank());
            if u32::try_from(functions.names.len() + best.map_or(0, |line| line.name.len())).is_err() {
                break;
            }
            functions.names.push_str(best.map_or("", |line| line.name));
            functions.starts.push(first.address);
            functions.ends.push(functions.names.len() as u32);
        }
        functions
    }

    fn name_at(&self, address: u64) -> Option<&str> {
        let index = self.starts.partition_point(|&start| start <= address).checked_sub(1)?;
        if address - self.starts[index] >= MAX_FUNCTION_BYTES {
            return None;
        }
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.names[start as usize..self.ends[index] as usize]).filter(|name| !name.is_empty())
    }
}

impl Line<'_> {
    /// The upper half of the address space.
    fn is_kernel_address(&self) -> bool {
        self.address >> 63 == 1
    }

    fn is_function(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }

    /// Of several names for one place, the one that `perf` shows: global before local, plain before underscored; the
    /// marks of sections (`_text`, `_stext`) are no functions if anything else is there.
    fn rank(&self) -> (bool, bool, std::cmp::Reverse<usize>, usize) {
        let underscores = self.name.bytes().take_while(|&byte| byte == b'_').count();
        let is_mark = matches!(self.name, "_text" | "_stext" | "startup_64");
        (!is_mark, self.kind.is_ascii_uppercase(), std::cmp::Reverse(underscores), self.name.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000100 t __do_sys_read
ffffffff81000100 T do_sys_read
ffffffff81000200 D some_data
ffffffffc0000000 t nf_hook\t[nf_tables]
";

    fn names(kernel: &Kernel, addresses: &[u64]) -> Vec<String> {
        let named = kernel.name(addresses, &mut Texts::default());
        named.places.iter().map(|place| place.frames[0].function.to_string()).collect()
    }

    #[test]
    fn an_address_belongs_to_the_function_before_it_but_not_across_data() {
        let kernel = Kernel::of(LIST.as_bytes(), None, None);
        assert_eq!(
            names(&kernel, &[0xffffffff_81000105, 0xffffffff_81000205, 0xffffffff_c0000010, 0xffffffff_c0200000, 5]),
            ["do_sys_read", NAMELESS, "nf_hook", NAMELESS, NAMELESS]
        );
        assert_eq!(kernel.name(&[], &mut Texts::default()).problems, []);
    }

    #[test]
    fn addresses_of_an_earlier_boot_are_shifted() {
        let kernel = Kernel::of(LIST.as_bytes(), None, Some(0xffffffff_91000000));
        assert_eq!(names(&kernel, &[0xffffffff_91000105]), ["do_sys_read"]);
    }

    #[test]
    fn hidden_addresses_are_reported_and_give_one_name() {
        let kernel = Kernel::of(b"0000000000000000 T _text\n0000000000000000 T do_sys_read\n", None, None);
        let named = kernel.name(&[0xffffffff_81000105], &mut Texts::default());
        assert_eq!(named.problems, [Problem::KernelAddressesHidden]);
        assert_eq!(named.symbols, SymbolSource::None);
        assert_eq!(&*named.places[0].frames[0].function, "[kernel]");
        assert_eq!(named.places[0].named_by, NamedBy::Nothing);
    }

    #[test]
    fn another_kernel_is_not_named_by_the_running_ones_functions() {
        let recorded = RecordedKernel { build_id: Some(vec![7; 20]), text_address: None };
        let options = Options { recorded_kernel: Some(recorded), build_id_caches: Vec::new(), ..Options::default() };
        let named = load(&options).name(&[0xffffffff_81000105], &mut Texts::default());
        assert_eq!(named.problems, [Problem::OtherKernel]);
        assert_eq!(named.build_id, Some("07".repeat(20)));
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let note = |kind: u32, name: &[u8], description: &[u8]| {
            let sizes = [name.len() as u32, description.len() as u32, kind];
            let mut bytes: Vec<u8> = sizes.iter().flat_map(|size| size.to_ne_bytes()).collect();
            for part in [name, description] {
                bytes.extend_from_slice(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes = [note(0x101, b"Linux\0", &[0; 5]), note(3, b"GNU\0", &[1, 2, 3, 4])].concat();
        assert_eq!(build_id_of_notes(&notes), Some(vec![1, 2, 3, 4]));
        assert_eq!(build_id_of_notes(&notes[..notes.len() - 1]), None);
        assert_eq!(build_id_of_notes(&[0xff; 64]), None);
    }
}
