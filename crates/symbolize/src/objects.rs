//! Names of global variables.

use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind, SymbolSection};

use crate::demangle::demangle;
use crate::image::{Image, Segments};
use crate::{Options, debug_files};

/// Names the global variables at these places, which ascend: offsets from where the file's start is mapped, by the mapping of its code.
/// `NAME`, or `NAME+0xOFFSET` inside of it.
pub(crate) fn name(path: &Path, build_id: Option<&[u8]>, offsets: &[u64], options: &Options) -> Vec<Option<String>> {
    let Ok(image) = debug_files::find_image(path, build_id, options, &mut Vec::new()) else { return Vec::new() };
    let elf = image.elf();
    let Some(bias) = Segments::of(&elf).code_bias() else { return Vec::new() };
    let addresses: Vec<u64> = offsets.iter().map(|offset| offset.wrapping_add(bias)).collect();
    let mut found: Vec<Option<Variable>> = vec![None; addresses.len()];
    let debug = match elf.symbols().next() {
        Some(_) => None,
        None => debug_files::find_debug_file(&image, options, &mut Vec::new()),
    };
    for elf in [Some(&image), debug.as_ref()].into_iter().flatten().map(Image::elf) {
        add_variables(elf.symbols(), &addresses, &mut found);
        add_variables(elf.dynamic_symbols(), &addresses, &mut found);
    }
    let names = addresses.iter().zip(found).map(|(address, variable)| {
        let Variable { start, name, .. } = variable?;
        let name = demangle(&name);
        Some(match address - start {
            0 => name.into_owned(),
            inside => format!("{name}+{inside:#x}"),
        })
    });
    names.collect()
}

/// A variable that covers an address.
#[derive(Clone)]
struct Variable {
    start: u64,
    bytes: u64,
    name: String,
}

/// Notes the smallest variable that covers each address.
fn add_variables<'data>(
    symbols: impl Iterator<Item = impl ObjectSymbol<'data>>,
    addresses: &[u64],
    found: &mut [Option<Variable>],
) {
    for symbol in symbols.filter(|symbol| symbol.kind() == SymbolKind::Data) {
        let (start, bytes) = (symbol.address(), symbol.size());
        let end = start.saturating_add(bytes);
        let first = addresses.partition_point(|&address| address < start);
        let is_covered = addresses.get(first).is_some_and(|&address| address < end);
        if !is_covered || !matches!(symbol.section(), SymbolSection::Section(_)) {
            continue;
        }
        let Ok(name) = symbol.name() else { continue };
        let covered = addresses[first..].iter().take_while(|address| **address < end).count();
        for place in &mut found[first..first + covered] {
            if place.as_ref().is_none_or(|known| bytes < known.bytes) {
                *place = Some(Variable { start, bytes, name: name.to_owned() });
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::AtomicU64;

    use crate::{Code, Symbolizer};

    #[unsafe(no_mangle)]
    static STEPSCOPE_TEST_COUNTERS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

    #[test]
    fn a_global_variable_of_this_program_has_its_name() {
        let address = STEPSCOPE_TEST_COUNTERS.as_ptr() as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
        let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let of_code = |line: &&str| line.contains(" r-xp ") && line.ends_with(&program);
        let line = maps.lines().find(of_code).unwrap();
        let fields: Vec<&str> = line.split_whitespace().collect();
        let start = number(fields[0].split_once('-').unwrap().0);
        let offset = (address - start).wrapping_add(number(fields[2]));
        let names =
            Symbolizer::default().name_objects(&Code::file(&program), &[offset, offset + 8, offset + 64_000_000]);
        assert_eq!(names[0].as_deref(), Some("STEPSCOPE_TEST_COUNTERS"));
        assert_eq!(names[1].as_deref(), Some("STEPSCOPE_TEST_COUNTERS+0x8"));
        assert_eq!(names[2], None);
    }
}
