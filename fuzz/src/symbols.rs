//! The symbolizer on bytes.

use std::sync::LazyLock;

use object::{Object, ObjectSection};
use stepscope_symbolize::{Code, Options, Symbolizer};

/// A program of three functions, one of them inlined, with DWARF 5. Its code lies at [`CODE`].
const PROGRAM: &[u8] = include_bytes!("../seeds/elf/dwarf-5.elf");

/// The first bytes of a file, with the code of all seeds.
const CODE: std::ops::Range<u64> = 0..0x1100;

/// Options that read no other file of this machine.
pub fn no_files() -> Options {
    Options {
        roots: Vec::new(),
        debug_directories: Vec::new(),
        build_id_caches: Vec::new(),
        kernel_cache: None,
        ..Options::default()
    }
}

/// Names functions all over the code of an ELF file.
pub fn name_functions(file: &[u8]) {
    let offsets: Vec<u64> = CODE.step_by(5).collect();
    let named = Symbolizer::new(no_files()).name_bytes("fuzz", file.to_vec(), &offsets);
    assert_eq!(named.places.len(), offsets.len());
    assert!(named.places.iter().all(|place| !place.frames.is_empty()), "a place without frames");
}

/// Names functions of a program with one section replaced: the first byte of `input` is its index among the debug
/// sections, the rest its content, cut or filled with zeros to the section's size.
pub fn name_with_section(input: &[u8]) {
    let Some((&index, content)) = input.split_first() else { return };
    let Some((_, start, end)) = debug_sections().nth(index.into()) else { return };
    let mut file = PROGRAM.to_vec();
    let section = &mut file[start..end];
    let length = content.len().min(section.len());
    section.fill(0);
    section[..length].copy_from_slice(&content[..length]);
    name_functions(&file);
}

/// Demangles a symbol.
pub fn demangle(symbol: &[u8]) {
    if let Ok(symbol) = std::str::from_utf8(symbol) {
        stepscope_symbolize::demangle(symbol);
    }
}

/// No process has this id, so no file of this machine is read.
const PID: u32 = u32::MAX;

/// Stands for the recorded process's root directory.
static ROOT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("a folder for the files");
    std::fs::create_dir(root.path().join("tmp")).expect("the folder is empty");
    root
});

/// Names generated code by a map for `perf` and by a jitdump, as recorded programs write them; both have this content.
pub fn name_generated_code(content: &[u8]) {
    let (map, dump) = (format!("tmp/perf-{PID}.map"), "tmp/jit.dump");
    for file in [map.as_str(), dump] {
        std::fs::write(ROOT.path().join(file), content).expect("the folder can be written");
    }
    let roots = vec![ROOT.path().to_owned()];
    let mut symbolizer = Symbolizer::new(Options { roots, ..no_files() });
    symbolizer.add_jit_dump(PID, format!("/{dump}"));
    let addresses = [0, 0x1000, 0x1008, 0x2000, u64::MAX];
    let named = symbolizer.name(&Code::Jit { pid: PID }, &addresses);
    assert_eq!(named.places.len(), addresses.len());
    assert!(named.places.iter().all(|place| !place.frames.is_empty()), "a place without frames");
}

/// Inputs of [`name_with_section`], with names; each replaces a section by itself.
pub fn section_seeds() -> Vec<(String, Vec<u8>)> {
    let seed = |(index, (name, start, end)): (usize, (String, usize, usize))| {
        (name, [&[index as u8], &PROGRAM[start..end]].concat())
    };
    debug_sections().enumerate().map(seed).collect()
}

/// Names and places of the program's debug sections.
fn debug_sections() -> impl Iterator<Item = (String, usize, usize)> {
    let program = object::File::parse(PROGRAM).expect("the seed is valid");
    let places: Vec<_> = program
        .sections()
        .filter_map(|section| {
            let name = section.name().ok()?.strip_prefix(".debug_")?.to_owned();
            let (start, size) = section.file_range()?;
            Some((name, start as usize, (start + size) as usize))
        })
        .collect();
    places.into_iter()
}
