//! Names of generated code, from the files that its generator writes for `perf`: `/tmp/perf-PID.map` or a jitdump.
//!
//! The library that shows Python functions in stacks writes a map of its own, `/tmp/stepscope-python-PID.map`, with the lines of
//! each function. In the high bits of an address of its code is the number of the instruction of Python that runs, from one on.
//!
//! The kernel's sources describe both: `tools/perf/Documentation/jit-interface.txt` and `jitdump-specification.txt`.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linux_perf_data::Endianness;
use linux_perf_data::jitdump::{JitDumpRawRecord, JitDumpReader, JitDumpRecord, JitDumpRecordType};
use stepscope_model::SymbolSource;

use crate::python_lines::PythonLines;
use crate::texts::Texts;
use crate::{ModuleNames, NamedBy, NamedFrame, Options, Place, Problem};

/// Name of all generated code without a name, see [`crate::kernel::NAMELESS`].
const NAMELESS: &str = "[jit]";

/// Bits of an address, above which is the number of an instruction. Programs use no more (`TASK_SIZE` of x86-64).
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// Size limit of a map. Generators write some megabytes.
const MAX_MAP_BYTES: u64 = 1 << 30;

/// Sizes of records of a jitdump: at least their header, at most far more than a generator's largest function.
const RECORD_BYTES: RangeInclusive<u32> = 16..=64 << 20;

/// The generated functions of one process.
#[derive(Debug)]
pub(crate) struct JitCode {
    pid: u32,
    found: bool,
    /// Ordered by address, then by creation.
    functions: Vec<Function>,
    /// Size of the longest function, which limits how far a search goes back.
    longest: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Function {
    start: u64,
    size: u64,
    /// Order of creation. Later functions replace earlier ones, because generators reuse memory.
    order: usize,
    name: Arc<str>,
    /// Its file and first line.
    line: Option<(Arc<str>, u32)>,
    lines: Option<PythonLines>,
}

/// The generated functions that a running process names in its maps: names and first addresses.
pub fn generated_functions(pid: u32) -> Vec<(Arc<str>, u64)> {
    let JitCode { functions, .. } = load(pid, &[], &Options::default());
    functions.into_iter().map(|function| (function.name, function.start)).collect()
}

/// Reads the map or jitdump of process `pid`.
pub(crate) fn load(pid: u32, dumps: &[PathBuf], options: &Options) -> JitCode {
    let mut functions = Vec::new();
    let mut found = false;
    for name in ["perf", "stepscope-python"] {
        if let Some(text) = map_candidates(name, pid, options).iter().find_map(|path| read_map(path)) {
            found = true;
            parse_map(&text, &mut functions);
        }
    }
    for path in dumps {
        let candidates = in_roots(pid, path, options);
        found |= candidates.iter().any(|candidate| read_dump(candidate, &mut functions));
    }
    JitCode::new(pid, found, functions)
}

/// Candidate paths: in the process's root directory under its inner pid, then in ours.
fn map_candidates(name: &str, pid: u32, options: &Options) -> Vec<PathBuf> {
    let own_root = PathBuf::from(format!("/proc/{pid}/root"));
    let inner = inner_pid(pid).unwrap_or(pid);
    let inside = own_root.join("tmp").join(format!("{name}-{inner}.map"));
    let outside = options.copies.iter().chain(&options.roots);
    let outside = outside.map(|root| root.join("tmp").join(format!("{name}-{pid}.map")));
    std::iter::once(inside).chain(outside).collect()
}

/// A path that a process saw, in its root directory, then in ours.
fn in_roots(pid: u32, path: &Path, options: &Options) -> Vec<PathBuf> {
    let Ok(inside) = path.strip_prefix("/") else { return vec![path.to_owned()] };
    let own_root = PathBuf::from(format!("/proc/{pid}/root"));
    let roots = std::iter::once(&own_root).chain(&options.copies).chain(&options.roots);
    roots.map(|root| root.join(inside)).collect()
}

/// The pid of a process in its own pid namespace.
fn inner_pid(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

fn read_map(path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    if metadata.len() > MAX_MAP_BYTES {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_MAP_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Parses lines `START SIZE NAME`: hexadecimal with or without `0x`; names may contain spaces. Malformed lines are
/// skipped, because a generator may be writing the last one.
fn parse_map(text: &[u8], functions: &mut Vec<Function>) {
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let mut lines = None;
    for line in text.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if let Some(table) = line.strip_prefix("lines ") {
            lines = PythonLines::parse(table);
            continue;
        }
        let mut parts = line.trim_end().splitn(3, ' ');
        let (Some(start), Some(size)) = (parts.next().and_then(number), parts.next().and_then(number)) else {
            continue;
        };
        let Some(name) = parts.next().filter(|name| !name.is_empty()) else { continue };
        let (name, line) = with_line(name);
        functions.push(Function { start, size, order: functions.len(), name: name.into(), line, lines: lines.take() });
    }
}

/// Divides `py::NAME:FILE:LINE`, which the recorder's library writes, into `py::NAME:FILE` and the line. Other names stay.
fn with_line(name: &str) -> (&str, Option<(Arc<str>, u32)>) {
    let divide = || {
        let (function, line) = name.strip_prefix("py::")?.rsplit_once(':')?;
        let (_, file) = function.rsplit_once(':')?;
        Some((name.strip_suffix(line)?.strip_suffix(':')?, (file.into(), line.parse().ok()?)))
    };
    divide().map_or((name, None), |(name, line)| (name, Some(line)))
}

/// Whether a record of line numbers has no room for as many entries as it claims. Its parser reserves memory for all of them.
fn claims_too_much(record: &JitDumpRawRecord<'_>) -> bool {
    /// Address, line, discriminator, and the end of the file's name.
    const LEAST_BYTES: u64 = 17;
    let body = record.body.as_slice();
    let Some(count) = body.get(8..16).and_then(|bytes| bytes.try_into().ok()) else { return false };
    let count = match record.endian {
        Endianness::LittleEndian => u64::from_le_bytes(count),
        Endianness::BigEndian => u64::from_be_bytes(count),
    };
    record.record_type == JitDumpRecordType::JIT_CODE_DEBUG_INFO && count > body.len() as u64 / LEAST_BYTES
}

fn read_dump(path: &Path, functions: &mut Vec<Function>) -> bool {
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let Ok(file) = File::open(path) else { return false };
    let Ok(mut reader) = JitDumpReader::new(BufReader::new(file)) else { return false };
    let mut line = None;
    // Records before damage, or before an unfinished record at the end, are used.
    while let Ok(Some(header)) = reader.next_record_header() {
        if !RECORD_BYTES.contains(&header.total_size) {
            break;
        }
        let Ok(Some(record)) = reader.next_record() else { break };
        if claims_too_much(&record) {
            continue;
        }
        match record.parse() {
            Ok(JitDumpRecord::CodeDebugInfo(info)) => {
                line = (info.entries.first()).map(|entry| {
                    (info.code_addr, String::from_utf8_lossy(&entry.file_path.as_slice()).into(), entry.line)
                });
            }
            Ok(JitDumpRecord::CodeLoad(load)) => {
                let name = String::from_utf8_lossy(&load.function_name.as_slice()).into();
                let of_this = line.take().filter(|(address, ..)| *address == load.code_addr);
                functions.push(Function {
                    start: load.code_addr,
                    size: load.code_bytes.len() as u64,
                    order: functions.len(),
                    name,
                    line: of_this.map(|(_, file, line)| (file, line)),
                    lines: None,
                });
            }
            _ => {}
        }
    }
    true
}

impl JitCode {
    fn new(pid: u32, found: bool, mut functions: Vec<Function>) -> Self {
        functions.sort_by_key(|function| (function.start, function.order));
        let longest = functions.iter().map(|function| function.size).max().unwrap_or(0);
        Self { pid, found, functions, longest }
    }

    pub(crate) fn name(&self, addresses: &[u64], texts: &mut Texts) -> ModuleNames {
        ModuleNames {
            symbols: if self.functions.is_empty() { SymbolSource::None } else { SymbolSource::JitMap },
            places: addresses.iter().map(|&address| self.place(address, texts)).collect(),
            problems: if self.found { Vec::new() } else { vec![Problem::NoJitMap(self.pid)] },
            ..ModuleNames::default()
        }
    }

    fn place(&self, address: u64, texts: &mut Texts) -> Place {
        let (code, instruction) = (address & ADDRESS, (address >> ADDRESS_BITS).checked_sub(1));
        let (frame, named_by) = match self.function_at(address).or_else(|| self.function_at(code)) {
            Some(Function { name, line, lines, .. }) => {
                let (file, first) = line.clone().unzip();
                let running = lines.as_ref().zip(first.zip(instruction));
                // Code that the compiler adds has no line.
                let line = running
                    .map_or(first, |(lines, (first, instruction))| lines.line(first, instruction).or(Some(first)));
                (NamedFrame { function: name.clone(), file, line, inlined: false }, NamedBy::Symbol)
            }
            None => (NamedFrame::function(texts.intern(NAMELESS)), NamedBy::Nothing),
        };
        Place { address: Some(code), frames: vec![frame], named_by }
    }

    fn function_at(&self, address: u64) -> Option<&Function> {
        let end = self.functions.partition_point(|function| function.start <= address);
        let candidates = self.functions[..end].iter().rev();
        candidates
            .take_while(|function| address - function.start < self.longest)
            .filter(|function| address - function.start < function.size)
            .max_by_key(|function| function.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(map: &str, addresses: &[u64]) -> Vec<String> {
        let mut functions = Vec::new();
        parse_map(map.as_bytes(), &mut functions);
        let named = JitCode::new(1, true, functions).name(addresses, &mut Texts::default());
        named.places.iter().map(|place| place.frames[0].function.to_string()).collect()
    }

    #[test]
    fn names_may_contain_spaces_and_later_code_replaces_earlier() {
        let map = "1000 100 LazyCompile:~step /sim.js:3\n0x2000 20 old\n1ff0 40 new code\nbroken\n3000 10 \n4000 1";
        assert_eq!(
            names(map, &[0x1000, 0x10ff, 0x1100, 0x2005, 0x202f, 0x2030, 0x4000]),
            [
                "LazyCompile:~step /sim.js:3",
                "LazyCompile:~step /sim.js:3",
                "[jit]",
                "new code",
                "new code",
                "[jit]",
                "[jit]"
            ]
        );
    }

    #[test]
    fn python_functions_have_lines() {
        let line = |name| with_line(name).1.map(|(file, line)| format!("{file} {line}"));
        assert_eq!(with_line("py::World.step:/srv/a b.py:12").0, "py::World.step:/srv/a b.py");
        assert_eq!(line("py::World.step:/srv/a b.py:12").as_deref(), Some("/srv/a b.py 12"));
        for whole in ["py::step:/srv/a.py", "LazyCompile:~step /sim.js:3", "py::12", "py::step:a.py:x", "py:::"] {
            assert_eq!(with_line(whole), (whole, None));
        }
    }

    #[test]
    fn an_address_with_an_instruction_of_python_has_its_line() {
        let map = "lines b 0204020a\n7f0000001000 10 py::step:/srv/a.py:12\n7f0000001010 10 py::main:/srv/a.py:1\n";
        let mut functions = Vec::new();
        parse_map(map.as_bytes(), &mut functions);
        let code = JitCode::new(1, true, functions);
        let addresses = [0x7f00_0000_1006, 0x0001_7f00_0000_1006, 0x0002_7f00_0000_1006, 0x0002_7f00_0000_1016];
        let places = code.name(&addresses, &mut Texts::default()).places;
        let lines: Vec<_> = places.iter().map(|place| (&*place.frames[0].function, place.frames[0].line)).collect();
        let step = |line| ("py::step:/srv/a.py", Some(line));
        assert_eq!(
            lines,
            [step(12), step(16), step(26), ("py::main:/srv/a.py", Some(1))],
            "the table is of one function"
        );
        assert_eq!(places[1].address, Some(0x7f00_0000_1006));
    }

    #[test]
    fn generated_code_without_a_map_is_reported_with_a_remedy() {
        let options = Options { roots: Vec::new(), ..Options::default() };
        // No process has pid 0.
        let named = load(0, &[], &options).name(&[0x1000], &mut Texts::default());
        assert_eq!(named.problems, [Problem::NoJitMap(0)]);
        assert_eq!(named.symbols, SymbolSource::None);
        assert_eq!(&*named.places[0].frames[0].function, "[jit]");
    }

    #[test]
    fn a_jitdump_has_functions_with_their_first_lines() {
        let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/jit/jit.dump");
        let mut functions = Vec::new();
        assert!(read_dump(Path::new(seed), &mut functions));
        let named = JitCode::new(1, true, functions).name(&[0x1000, 0x100f, 0x1010], &mut Texts::default());
        let shown = |place: &Place| {
            let frame = &place.frames[0];
            (frame.function.to_string(), frame.file.as_deref().map(str::to_owned), frame.line)
        };
        let shown: Vec<_> = named.places.iter().map(shown).collect();
        assert_eq!(
            shown,
            [
                ("step".into(), Some("/srv/sim.js".into()), Some(12)),
                ("look".into(), None, None),
                ("[jit]".into(), None, None)
            ]
        );
    }

    #[test]
    fn extreme_numbers_do_not_overflow() {
        assert_eq!(names("ffffffffffffffff ffffffffffffffff end\n0 1 zero", &[u64::MAX, 0]), ["end", "zero"]);
    }
}
