//! Compilers of a file, from debug information: name, version, and with GCC the flags.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use gimli::{AttributeValue, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::{Object, ObjectSection};

use crate::Problem;
use crate::image::{self, Image};

/// Number of units to read, spread over the file. Enough to know how most of it was built.
const MAX_UNITS: usize = 256;

/// Compressed sections larger than this when unpacked are skipped, because unpacking takes too long.
const MAX_UNPACKED_BYTES: u64 = 128 << 20;

/// Counts the compilation units by producer (`DW_AT_producer`) in a file's own debug information.
///
/// Only a sample of units is read from large files. The result is empty without debug information, or if the file is of
/// another build than `build_id`.
///
/// # Errors
/// If the file cannot be read or is not ELF.
pub fn producers(path: &Path, build_id: Option<&[u8]>) -> Result<BTreeMap<String, usize>, Problem> {
    let image = Image::open(path)?;
    if build_id.is_some_and(|wanted| image.build_id().is_some_and(|found| found != wanted)) {
        return Ok(BTreeMap::new());
    }
    Ok(counted(&image.elf()).unwrap_or_default())
}

/// `None` if the debug information is damaged before the first unit.
fn counted(elf: &object::File<'_>) -> Option<BTreeMap<String, usize>> {
    let load = |id: SectionId| -> Result<Cow<'_, [u8]>, std::convert::Infallible> {
        use SectionId::{DebugAbbrev, DebugInfo, DebugLineStr, DebugStr};
        let read = matches!(id, DebugAbbrev | DebugInfo | DebugLineStr | DebugStr) && !is_too_large(elf, id.name());
        Ok(read.then(|| image::section(elf, id.name())).flatten().unwrap_or_default())
    };
    let sections = match DwarfSections::load(load) {
        Ok(sections) => sections,
        Err(never) => match never {},
    };
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));

    let mut units = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        units.push(header);
    }
    let mut counts = BTreeMap::new();
    for header in units.iter().step_by(units.len().div_ceil(MAX_UNITS).max(1)) {
        let Ok(abbreviations) = dwarf.abbreviations(header) else { continue };
        let mut entries = header.entries(&abbreviations);
        let Ok(Some(unit)) = entries.next_dfs() else { continue };
        let producer = match unit.attr_value(gimli::DW_AT_producer) {
            Some(AttributeValue::String(text)) => Some(text),
            Some(AttributeValue::DebugStrRef(offset)) => dwarf.string(offset).ok(),
            Some(AttributeValue::DebugLineStrRef(offset)) => dwarf.line_string(offset).ok(),
            _ => None,
        };
        if let Some(producer) = producer {
            *counts.entry(String::from_utf8_lossy(producer.slice()).into_owned()).or_insert(0) += 1;
        }
    }
    Some(counts)
}

fn is_too_large(elf: &object::File<'_>, name: &str) -> bool {
    let packed = elf.section_by_name(name).and_then(|section| section.compressed_data().ok());
    packed.is_some_and(|data| {
        data.format != object::CompressionFormat::None && data.uncompressed_size > MAX_UNPACKED_BYTES
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_flags_of_gcc_are_found_per_unit() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("main.c", "int f(int); int main(void) { return f(1); }");
        write("f.c", "int f(int x) { return x; }");
        let cc = |arguments: &[&str]| {
            let mut command = Command::new("gcc");
            command.args(arguments).current_dir(folder.path());
            command.status().is_ok_and(|status| status.success())
        };
        let built = cc(&["-g", "-O2", "-c", "main.c"])
            && cc(&["-g", "-O0", "-c", "f.c"])
            && cc(&["main.o", "f.o", "-o", "plain"])
            && cc(&["main.o", "f.o", "-o", "packed", "-Wl,--compress-debug-sections=zlib"])
            && cc(&["-s", "main.o", "f.o", "-o", "stripped"]);
        if !built {
            println!("skipped: the_flags_of_gcc_are_found_per_unit: there is no gcc");
            return;
        }
        for name in ["plain", "packed"] {
            let found = producers(&folder.path().join(name), None).unwrap();
            let with = |switch: &str| -> usize {
                let holds = |(text, _): &(&String, &usize)| text.split(' ').any(|word| word == switch);
                found.iter().filter(holds).map(|(_, count)| count).sum()
            };
            assert_eq!((with("-O2"), with("-O0")), (1, 1), "{found:?}");
        }
        assert_eq!(producers(&folder.path().join("stripped"), None).unwrap(), BTreeMap::new());
        assert_eq!(producers(&folder.path().join("plain"), Some(b"another build")).unwrap(), BTreeMap::new());
        assert!(producers(&folder.path().join("f.c"), None).is_err());
    }
}
