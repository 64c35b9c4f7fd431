//! Finds the code of functions by name.

use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind, SymbolSection};

use crate::image::{Image, Segments};
use crate::{Options, Problem, debug_files, demangle};

/// The entry of a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name, demangled.
    pub name: String,
    /// Its linker symbol.
    pub symbol: String,
    /// File offset of its first instruction.
    pub offset: u64,
}

/// Finds the functions of a file for which `wanted(demangled name, symbol)` is true.
///
/// Entries are ordered by offset, with one entry per offset. Symbols come from the file and its separate debug file.
///
/// # Errors
/// If the file cannot be read.
pub fn entries(path: &Path, options: &Options, wanted: impl Fn(&str, &str) -> bool) -> Result<Vec<Entry>, Problem> {
    let image = Image::open(path)?;
    let debug = debug_files::find_debug_file(&image, options);
    // A debug file has no code, so only the file itself maps addresses to offsets.
    let segments = Segments::of(&image.elf());
    let mut found = Vec::new();
    for elf in debug.iter().chain([&image]).map(Image::elf) {
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            let defined = matches!(symbol.section(), SymbolSection::Section(_));
            let (true, SymbolKind::Text, Ok(linked)) = (defined, symbol.kind(), symbol.name()) else { continue };
            let name = demangle(linked);
            if !wanted(&name, linked) {
                continue;
            }
            if let Some(offset) = segments.offset_of(symbol.address()) {
                found.push(Entry { name: name.into_owned(), symbol: linked.to_owned(), offset });
            }
        }
    }
    found.sort_by(|one, other| (one.offset, &one.name, &one.symbol).cmp(&(other.offset, &other.name, &other.symbol)));
    found.dedup_by_key(|entry| entry.offset);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Symbolizer};

    /// The function to find.
    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn stepscope_entries_of_this_test(number: u32) -> u32 {
        std::hint::black_box(number) + 1
    }

    #[test]
    fn a_function_is_found_by_its_symbol() {
        assert_eq!(stepscope_entries_of_this_test(1), 2);
        let this = std::env::current_exe().unwrap();
        let wanted = |_: &str, symbol: &str| symbol == "stepscope_entries_of_this_test";
        let found = entries(&this, &Options::default(), wanted).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        let named = Symbolizer::default().name(&Code::file(&this), &[found[0].offset]);
        assert!(named.places[0].frames[0].function.contains("stepscope_entries_of_this_test"), "{named:?}");
    }

    #[test]
    fn demangled_names_differ_from_symbols() {
        let this = std::env::current_exe().unwrap();
        let wanted =
            |name: &str, symbol: &str| name.ends_with("demangled_names_differ_from_symbols") && symbol.starts_with("_");
        let found = entries(&this, &Options::default(), wanted).unwrap();
        assert!(!found.is_empty() && found.iter().all(|entry| entry.name.starts_with("stepscope_symbolize::")));
    }

    #[test]
    fn a_file_that_is_not_elf_is_an_error() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = entries(&manifest, &Options::default(), |_, _| true).unwrap_err();
        assert!(matches!(error, Problem::NotElf { .. }), "{error}");
    }
}
