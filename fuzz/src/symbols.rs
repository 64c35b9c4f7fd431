//! The symbolizer on bytes.

use object::{Object, ObjectSection};
use stepscope_symbolize::{Options, Symbolizer};

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
pub fn name_functions(file: Vec<u8>) {
    let offsets: Vec<u64> = CODE.step_by(5).collect();
    let named = Symbolizer::new(no_files()).name_bytes("fuzz", file, &offsets);
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
    name_functions(file);
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
