//! Names the offsets of one module from its sources, best first.

use std::path::Path;
use std::sync::Arc;

use stepscope_model::SymbolSource;

use crate::function_starts::FunctionStarts;
use crate::go_functions::{GO_FUNCTIONS_SECTIONS, GoFunctions, go_text_start};
use crate::image::{Image, Segments, hexadecimal};
use crate::linkage::Linkage;
use crate::symbols::{self, Table};
use crate::texts::Texts;
use crate::{
    ModuleNames, NamedBy, NamedFrame, Options, Place, Position, Problem, debug_files, demangle, dwarf, packages,
};

/// Names positions of a file.
pub(crate) fn name_file(
    path: &Path,
    build_id: Option<&[u8]>,
    positions: &[Position],
    options: &Options,
    texts: &mut Texts,
) -> ModuleNames {
    let name = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    let mut found = Vec::new();
    let mut names = match debug_files::find_image(path, build_id, options, &mut found) {
        Ok(image) => name_image(&image, name, positions, options, texts),
        Err(problem) => {
            let id = build_id.filter(|id| !id.is_empty());
            let debug = id.and_then(|id| debug_files::find_debug_file_of_missing(path, id, options, &mut found));
            match debug {
                // The segments of a debug file have no offsets of the module.
                Some(debug) => name_in(&debug, &Segments::default(), name, positions, options, texts),
                None => nameless(name, positions, problem, texts),
            }
        }
    };
    names.problems.extend(found);
    let is_named = |place: &Place| place.named_by > NamedBy::FunctionStart;
    if !names.places.iter().all(is_named) && names.places.iter().any(|place| place.address.is_some()) {
        names.package = packages::package_of(Path::new("/"), path);
    }
    if let Some(recorded) = build_id.filter(|id| !id.is_empty()) {
        names.build_id = Some(hexadecimal(recorded));
    }
    names
}

/// Names every position by module and number, because of `problem`.
pub(crate) fn nameless(name: &str, positions: &[Position], problem: Problem, texts: &mut Texts) -> ModuleNames {
    let place = |position: &Position| {
        let (number, address) = match *position {
            Position::Offset(offset) => (offset, None),
            Position::Address(address) => (address, Some(address)),
        };
        let frames = vec![NamedFrame::function(texts.intern(&format!("{name}+{number:#x}")))];
        Place { address, frames, named_by: NamedBy::Nothing }
    };
    ModuleNames {
        symbols: SymbolSource::None,
        places: positions.iter().map(place).collect(),
        problems: vec![problem],
        ..ModuleNames::default()
    }
}

/// Names positions of an open file called `name`.
pub(crate) fn name_image(
    image: &Image,
    name: &str,
    positions: &[Position],
    options: &Options,
    texts: &mut Texts,
) -> ModuleNames {
    name_in(image, &Segments::of(&image.elf()), name, positions, options, texts)
}

fn name_in(
    image: &Image,
    segments: &Segments,
    name: &str,
    positions: &[Position],
    options: &Options,
    texts: &mut Texts,
) -> ModuleNames {
    let elf = image.elf();
    let address_of = |position: &Position| match *position {
        Position::Offset(offset) => segments.address_of(offset).ok_or(offset),
        Position::Address(address) => Ok(address),
    };
    let addresses: Vec<Result<u64, u64>> = positions.iter().map(address_of).collect();
    let mut wanted: Vec<u64> = addresses.iter().filter_map(|address| address.ok()).collect();
    wanted.sort_unstable();
    wanted.dedup();

    let mut naming = Naming::new(image, &elf, name, wanted, texts);
    naming.run(options);
    let place = |address: &Result<u64, u64>| match *address {
        Ok(address) => naming.place(address),
        Err(offset) => naming.outside(offset),
    };
    let places = addresses.iter().map(place).collect();
    ModuleNames {
        symbols: naming.best,
        build_id: image.build_id().map(hexadecimal),
        package: None,
        places,
        problems: naming.problems,
    }
}

/// The names of one batch of addresses, while its sources are read.
struct Naming<'a> {
    image: &'a Image,
    elf: &'a object::File<'a>,
    starts: Option<FunctionStarts<'a>>,
    module: &'a str,
    /// Ascending, without duplicates.
    addresses: Vec<u64>,
    frames: Vec<Vec<NamedFrame>>,
    named_by: Vec<NamedBy>,
    best: SymbolSource,
    problems: Vec<Problem>,
    texts: &'a mut Texts,
}

impl<'a> Naming<'a> {
    fn new(
        image: &'a Image,
        elf: &'a object::File<'a>,
        module: &'a str,
        addresses: Vec<u64>,
        texts: &'a mut Texts,
    ) -> Self {
        Self {
            image,
            elf,
            starts: FunctionStarts::of(elf),
            module,
            frames: vec![Vec::new(); addresses.len()],
            named_by: vec![NamedBy::Nothing; addresses.len()],
            addresses,
            best: SymbolSource::None,
            problems: Vec::new(),
            texts,
        }
    }

    /// Reads the sources, best first. Each names the addresses that the sources before it left unnamed.
    fn run(&mut self, options: &Options) {
        let debug = match dwarf::is_in(self.elf) {
            true => None,
            false if self.addresses.is_empty() => None,
            false => debug_files::find_debug_file(self.image, options, &mut self.problems),
        };
        self.debug_information(debug.as_ref().unwrap_or(self.image), options);
        self.exported_names();
        for image in debug.iter().chain([self.image]) {
            self.symbols(&image.elf(), Table::Full, SymbolSource::SymbolTable);
        }
        self.symbols(self.elf, Table::Dynamic, SymbolSource::DynamicSymbols);
        if self.has_nameless() {
            if let Some(mini) = debug_files::mini_debug_info(self.image) {
                self.symbols(&mini.elf(), Table::Full, SymbolSource::DynamicSymbols);
            }
            self.go_functions();
            self.stubs();
            self.function_starts();
        }
    }

    fn has_nameless(&self) -> bool {
        self.named_by.contains(&NamedBy::Nothing)
    }

    fn debug_information(&mut self, debug: &Image, options: &Options) {
        let elf = debug.elf();
        if !dwarf::is_in(&elf) {
            return;
        }
        self.best = SymbolSource::DebugInfo;
        let found = dwarf::name(debug, &elf, &self.addresses, options, self.texts);
        self.problems.extend(found.problems);
        for (at, frames) in found.frames.into_iter().enumerate().filter(|(_, frames)| !frames.is_empty()) {
            if !frames[0].function.is_empty() {
                self.named_by[at] = NamedBy::DebugInfo;
            }
            self.frames[at] = frames;
        }
    }

    /// Replaces reserved names from debug information by exported names: `__GI___libc_malloc` becomes `malloc`,
    /// `__libc_start_main_impl` becomes `__libc_start_main`. Other tools show the exported names.
    fn exported_names(&mut self) {
        let Some(starts) = &self.starts else { return };
        let is_reserved = |at: &usize| self.frames[*at].first().is_some_and(|frame| frame.function.starts_with("__"));
        let start_of = |at: usize| Some((starts.start_of(self.addresses[at])?, at));
        let reserved: Vec<(u64, usize)> = (0..self.addresses.len()).filter(is_reserved).filter_map(start_of).collect();
        let mut wanted: Vec<u64> = reserved.iter().map(|&(start, _)| start).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return;
        }
        let names = symbols::exported_at(self.elf, &wanted);
        for (start, at) in reserved {
            let name = wanted.binary_search(&start).ok().and_then(|index| names[index]);
            if let Some(name) = name {
                self.frames[at][0].function = self.texts.intern(&demangle(name));
            }
        }
    }

    fn symbols(&mut self, elf: &object::File<'_>, table: Table, source: SymbolSource) {
        let missing = self.nameless();
        if missing.is_empty() && self.best != SymbolSource::None {
            return;
        }
        if self.best == SymbolSource::None && symbols::is_in(elf, table) {
            self.best = source;
        }
        let addresses: Vec<u64> = missing.iter().map(|&at| self.addresses[at]).collect();
        let start_of = |address| self.starts.as_ref().and_then(|starts| starts.start_of(address));
        let found = symbols::find(elf, table, &addresses, start_of);
        for (at, symbol) in missing.into_iter().zip(found) {
            if let Some(symbol) = symbol {
                self.set(at, &demangle(symbol.name), NamedBy::Symbol);
            }
        }
    }

    /// Indices of the addresses without a name.
    fn nameless(&self) -> Vec<usize> {
        (0..self.addresses.len()).filter(|&at| self.named_by[at] == NamedBy::Nothing).collect()
    }

    fn set(&mut self, at: usize, name: &str, by: NamedBy) {
        let name = self.texts.intern(name);
        self.set_shared(at, name, by);
    }

    fn set_shared(&mut self, at: usize, name: Arc<str>, by: NamedBy) {
        self.named_by[at] = by;
        // Debug information may have the line of a function that it does not name.
        match self.frames[at].first_mut() {
            Some(frame) => frame.function = name,
            None => self.frames[at].push(NamedFrame::function(name)),
        }
    }

    fn go_functions(&mut self) {
        let mut tables = GO_FUNCTIONS_SECTIONS.iter().filter_map(|name| self.image.section(name));
        let Some(table) = tables.next() else { return };
        let Some(functions) = GoFunctions::parse(&table, go_text_start(self.elf)) else { return };
        for at in self.nameless() {
            if let Some(name) = functions.name_at(self.addresses[at]) {
                self.set(at, name, NamedBy::Symbol);
            }
        }
        if self.best == SymbolSource::None {
            self.best = SymbolSource::SymbolTable;
        }
    }

    fn stubs(&mut self) {
        let missing = self.nameless();
        let addresses: Vec<u64> = missing.iter().map(|&at| self.addresses[at]).collect();
        let Some(linkage) = Linkage::covering(self.elf, &addresses) else { return };
        for at in missing {
            if let Some(target) = linkage.target_of(self.addresses[at]) {
                let name = format!("{}@plt", demangle(target));
                self.set(at, &name, NamedBy::Symbol);
            }
        }
    }

    fn function_starts(&mut self) {
        for at in self.nameless() {
            let address = self.addresses[at];
            let start = self.starts.as_ref().and_then(|starts| starts.start_of(address));
            let by = if start.is_some() { NamedBy::FunctionStart } else { NamedBy::Nothing };
            let name = format!("{}+{:#x}", self.module, start.unwrap_or(address));
            self.set(at, &name, by);
        }
    }

    fn place(&self, address: u64) -> Place {
        let at = self.addresses.binary_search(&address).expect("all addresses of the batch were collected");
        Place { address: Some(address), frames: self.frames[at].clone(), named_by: self.named_by[at] }
    }

    /// An offset outside all loaded segments: a mapping made by hand, or a damaged file.
    fn outside(&self, offset: u64) -> Place {
        Place {
            address: None,
            frames: vec![NamedFrame::function(format!("{}+{offset:#x}", self.module))],
            named_by: NamedBy::Nothing,
        }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use crate::{Code, Symbolizer};

    unsafe extern "C" {
        fn malloc(size: usize) -> *mut u8;
        fn read(file: i32, into: *mut u8, size: usize) -> isize;
        fn pthread_mutex_lock(mutex: *mut u8) -> i32;
    }

    /// File and file offset of an address of this process.
    fn place(address: u64) -> (String, u64) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
        let place = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = fields[0].split_once('-')?;
            let (start, end) = (number(start), number(end));
            (start..end).contains(&address).then(|| (fields[5].to_owned(), address - start + number(fields[2])))
        };
        maps.lines().find_map(place).unwrap()
    }

    #[test]
    fn functions_of_the_c_library_have_their_exported_names() {
        let functions = [
            ("malloc", malloc as *const ()),
            ("read", read as *const ()),
            ("pthread_mutex_lock", pthread_mutex_lock as *const ()),
        ];
        for (name, function) in functions {
            let (file, offset) = place(function as u64);
            let named = Symbolizer::default().name(&Code::file(&file), &[offset]);
            assert_eq!(&*named.places[0].frames[0].function, name, "in {file}");
        }
    }
}
