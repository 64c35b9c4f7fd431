//! Finds the code of functions by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, OsStr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol, SymbolKind, SymbolSection};

use crate::function_starts::FunctionStarts;
use crate::image::{Image, Segments};
use crate::texts::Texts;
use crate::{Options, Problem, debug_files, demangle, dwarf};

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
    let debug = debug_files::find_debug_file(&image, options, &mut Vec::new());
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

/// The function that starts at `address`, as in names like `libsim.so+0x1f30` of stripped files.
///
/// `None` if no function starts there: a probe inside an instruction would break the program.
///
/// # Errors
/// If the file cannot be read.
pub fn entry_at(path: &Path, address: u64) -> Result<Option<Entry>, Problem> {
    let image = Image::open(path)?;
    let elf = image.elf();
    let starts = FunctionStarts::of(&elf).and_then(|starts| starts.start_of(address));
    let offset = Segments::of(&elf).offset_of(address).filter(|_| starts == Some(address));
    let module = path.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{module}+{address:#x}");
    Ok(offset.map(|offset| Entry { symbol: name.clone(), name, offset }))
}

/// File offsets of the functions that hold these addresses; `None` where the unwind tables know none.
///
/// # Errors
/// If the file cannot be read.
pub fn starts_of(path: &Path, addresses: &[u64]) -> Result<Vec<Option<u64>>, Problem> {
    let image = Image::open(path)?;
    let elf = image.elf();
    let (starts, segments) = (FunctionStarts::of(&elf), Segments::of(&elf));
    let start = |address: &u64| segments.offset_of(starts.as_ref()?.start_of(*address)?);
    Ok(addresses.iter().map(start).collect())
}

/// The dynamic loader that a program asks for; `None` for static programs and libraries.
///
/// # Errors
/// If the file cannot be read.
pub fn loader(path: &Path) -> Result<Option<PathBuf>, Problem> {
    let image = Image::open(path)?;
    let section = image.section(".interp");
    let path = section.as_deref().and_then(|bytes| CStr::from_bytes_until_nul(bytes).ok());
    Ok(path.filter(|path| !path.is_empty()).map(|path| PathBuf::from(OsStr::from_bytes(path.to_bytes()))))
}

/// Functions whose name is `wanted` and that are inlined, each with the functions with an entry that it is inlined into.
///
/// Empty without debug information.
///
/// # Errors
/// If the file cannot be read.
pub fn inlined_into(
    path: &Path,
    options: &Options,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<BTreeMap<String, BTreeSet<String>>, Problem> {
    let image = Image::open(path)?;
    let separate = separate_debug(&image, options);
    let debug = separate.as_ref().unwrap_or(&image);
    let (elf, mut texts) = (debug.elf(), Texts::default());
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if !dwarf::is_in(&elf) {
        return Ok(found);
    }
    let calls = dwarf::inlined_calls(debug, &elf, options, &mut texts, wanted);
    for frames in dwarf::name(debug, &elf, &calls, options, &mut texts).frames {
        let Some((outermost, inlined)) = frames.split_first() else { continue };
        for frame in inlined.iter().filter(|frame| wanted(&frame.function)) {
            found.entry(frame.function.to_string()).or_default().insert(outermost.function.to_string());
        }
    }
    Ok(found)
}

/// The file with the debug information of another one that has none itself.
fn separate_debug(image: &Image, options: &Options) -> Option<Image> {
    if dwarf::is_in(&image.elf()) { None } else { debug_files::find_debug_file(image, options, &mut Vec::new()) }
}

/// The code of an inlined call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedCode {
    /// File offset of its first instruction.
    pub entry: u64,
    /// Its file offsets. Instructions of the function around it may be between them.
    pub code: Vec<Range<u64>>,
}

/// The code of inlined functions: for each address, the inlined call of the function with this name that holds it.
///
/// `None` where the file's debug information knows none. Split debug information is not searched.
///
/// # Errors
/// If the file cannot be read.
pub fn inlined_code(
    path: &Path,
    options: &Options,
    places: &[(u64, &str)],
) -> Result<Vec<Option<InlinedCode>>, Problem> {
    let image = Image::open(path)?;
    let segments = Segments::of(&image.elf());
    let separate = separate_debug(&image, options);
    let debug = separate.as_ref().unwrap_or(&image);
    let (elf, mut texts) = (debug.elf(), Texts::default());
    if !dwarf::is_in(&elf) {
        return Ok(vec![None; places.len()]);
    }
    let offsets = |range: &Range<u64>| {
        let start = segments.offset_of(range.start)?;
        Some(start..start + (range.end - range.start))
    };
    let found = dwarf::inlined_at(debug, &elf, options, &mut texts, places).into_iter().map(|call| {
        let call = call?;
        Some(InlinedCode {
            entry: segments.offset_of(call.entry)?,
            code: call.code.iter().filter_map(offsets).collect(),
        })
    });
    Ok(found.collect())
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

    #[inline(never)]
    fn mangled_in_this_test(number: u32) -> u32 {
        std::hint::black_box(number) + 2
    }

    #[test]
    fn demangled_names_differ_from_symbols() {
        assert_eq!(mangled_in_this_test(1), 3);
        let this = std::env::current_exe().unwrap();
        let wanted = |name: &str, symbol: &str| name.ends_with("mangled_in_this_test") && symbol.starts_with("_");
        let found = entries(&this, &Options::default(), wanted).unwrap();
        assert!(!found.is_empty() && found.iter().all(|entry| entry.name.starts_with("stepscope_symbolize::")));
    }

    #[inline(always)]
    fn inlined_in_this_test(number: u32) -> u32 {
        std::hint::black_box(number).wrapping_mul(7)
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn stepscope_caller_of_the_inlined(number: u32) -> u32 {
        inlined_in_this_test(number) + 1
    }

    #[test]
    fn an_inlined_function_is_found_with_the_function_it_is_inlined_into() {
        assert_eq!(stepscope_caller_of_the_inlined(1), 8);
        let this = std::env::current_exe().unwrap();
        let found = inlined_into(&this, &Options::default(), &|name| name.ends_with("inlined_in_this_test")).unwrap();
        let callers: Vec<&String> = found.values().flatten().collect();
        assert!(callers.iter().any(|name| name.contains("stepscope_caller_of_the_inlined")), "{found:?}");
    }

    #[test]
    fn the_code_of_an_inlined_call_begins_at_its_entry() {
        assert_eq!(stepscope_caller_of_the_inlined(1), 8);
        let this = std::env::current_exe().unwrap();
        let options = Options::default();
        let wanted = |_: &str, symbol: &str| symbol == "stepscope_caller_of_the_inlined";
        let caller = entries(&this, &options, wanted).unwrap().remove(0);
        let offsets: Vec<u64> = (0..64).map(|byte| caller.offset + byte).collect();
        let named = Symbolizer::default().name(&Code::file(&this), &offsets);
        let places = named.places.iter().filter_map(|place| {
            let inlined = place.frames.iter().find(|frame| frame.function.ends_with("inlined_in_this_test"))?;
            Some((place.address?, inlined.function.to_string()))
        });
        let (address, name) = places.into_iter().next().expect("it is inlined");
        let found = inlined_code(&this, &options, &[(address, &name), (address, "another")]).unwrap();
        let call = found[0].as_ref().expect("the debug information has it");
        assert!(call.code.iter().any(|range| range.contains(&call.entry)), "{call:x?}");
        assert!(
            call.code.iter().all(|range| range.start >= caller.offset && range.end <= caller.offset + 256),
            "{call:x?}"
        );
        assert_eq!(found[1], None);
    }

    #[test]
    fn only_the_start_of_a_function_is_an_entry() {
        let this = std::env::current_exe().unwrap();
        let wanted = |_: &str, symbol: &str| symbol == "stepscope_entries_of_this_test";
        let by_name = entries(&this, &Options::default(), wanted).unwrap().remove(0);
        let named = Symbolizer::default().name(&Code::file(&this), &[by_name.offset]);
        let address = named.places[0].address.unwrap();
        let found = entry_at(&this, address).unwrap().unwrap();
        assert_eq!(found.offset, by_name.offset);
        assert!(found.name.ends_with(&format!("+{address:#x}")), "{found:?}");
        assert_eq!(entry_at(&this, address + 1).unwrap(), None);
    }

    #[test]
    fn a_file_that_is_not_elf_is_an_error() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = entries(&manifest, &Options::default(), |_, _| true).unwrap_err();
        assert!(matches!(error, Problem::NotElf { .. }), "{error}");
    }
}
