//! Names of kernel functions, from `/proc/kallsyms` or a copy of it that `perf` saved.

mod cache;
mod list;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use stepscope_model::SymbolSource;

use crate::debug_files::same_build;
use crate::image::hexadecimal;
use crate::texts::Texts;
use crate::{ModuleNames, NamedBy, NamedFrame, Options, Place, Problem, demangle};

use cache::{CacheWriter, FunctionCache};
use list::Search;

/// Name of all kernel code without a name. Separate addresses would split functions and mean nothing to readers.
pub(crate) const NAMELESS: &str = "[kernel]";

const LIST: &str = "/proc/kallsyms";

/// A kernel and the source of its function names.
#[derive(Debug)]
pub(crate) struct Kernel {
    source: Source,
    build_id: Option<String>,
    /// Start of its code when recorded. If unknown, the start in the list is used.
    recorded_text: Option<u64>,
}

/// Source of a kernel's function names.
#[derive(Debug)]
enum Source {
    /// The running kernel.
    Running {
        /// Start of its code; `None` if addresses are hidden.
        text: Option<u64>,
        /// Path of the cache.
        cache: Option<PathBuf>,
    },
    /// A copied list.
    Copied(Vec<u8>),
    /// None; the problem says why.
    Unknown(Problem),
}

/// Finds the list of functions of the recorded kernel.
pub(crate) fn load(options: &Options) -> Kernel {
    let running = running_build_id();
    let text = || list::start_of_text(File::open(LIST).ok()?);
    let Some(recorded) = &options.recorded_kernel else { return Kernel::running(running, text(), None, options) };
    let is_running = match (&recorded.build_id, &running) {
        (Some(recorded), Some(running)) => same_build(running, recorded),
        // Without build-ids, only the kernel's load address can identify it. It is random: equal by chance at most once
        // in 512 boots.
        _ => recorded.text_address.is_some() && text() == recorded.text_address,
    };
    if is_running {
        return Kernel::running(running, text(), recorded.text_address, options);
    }
    let cached = recorded.build_id.as_deref().and_then(|id| find_cached(id, options));
    let source = match cached.and_then(|path| fs::read(path).ok()) {
        Some(list) => Source::Copied(list),
        None => Source::Unknown(Problem::OtherKernel),
    };
    let build_id = recorded.build_id.as_deref().map(hexadecimal);
    Kernel { source, build_id, recorded_text: recorded.text_address }
}

fn find_cached(build_id: &[u8], options: &Options) -> Option<PathBuf> {
    let hex = hexadecimal(build_id);
    let candidates = options.build_id_caches.iter().map(|cache| cache.join("[kernel.kallsyms]").join(&hex));
    candidates.map(|folder| folder.join("kallsyms")).find(|list| list.is_file())
}

/// Build-id of the running kernel: the note of type 3 from "GNU" among its ELF notes.
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

/// Names by address.
#[derive(Debug, Default)]
struct Names {
    by_address: FxHashMap<u64, String>,
    symbols: SymbolSource,
    problem: Option<Problem>,
}

impl Names {
    fn none(problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }

    fn of(search: Search) -> Self {
        if !search.has_addresses {
            return Self::none(Problem::KernelAddressesHidden);
        }
        let found = search.finish().into_iter();
        let by_address = found.filter_map(|(address, name)| Some((address, name?))).collect();
        Self { by_address, symbols: SymbolSource::SymbolTable, problem: None }
    }
}

impl Kernel {
    fn running(build_id: Option<Vec<u8>>, text: Option<u64>, recorded_text: Option<u64>, options: &Options) -> Self {
        let build_id = build_id.as_deref().map(hexadecimal);
        let cache = options.kernel_cache.as_ref().zip(build_id.as_ref());
        let cache = cache.map(|(folder, build_id)| cache::path(folder, build_id));
        Self { source: Source::Running { text, cache }, build_id, recorded_text }
    }

    pub(crate) fn name(&self, addresses: &[u64], texts: &mut Texts) -> ModuleNames {
        let (names, shift) = match &self.source {
            Source::Running { text, cache } => {
                let shift = self.shift(*text);
                (self.of_running(&shifted(addresses, shift), *text, cache.as_deref()), shift)
            }
            Source::Copied(list) => {
                let shift = self.shift(list::start_of_text(&list[..]));
                let mut search = Search::of(shifted(addresses, shift));
                list::for_each_line(&list[..], |line| search.line(line)).expect("bytes can be read");
                (Names::of(search), shift)
            }
            Source::Unknown(problem) => (Names::none(problem.clone()), 0),
        };
        let place = |&address: &u64| {
            let name = names.by_address.get(&address.wrapping_add(shift));
            let function = texts.intern(&name.map_or(NAMELESS.into(), |name| demangle(name)));
            Place {
                address: Some(address),
                frames: vec![NamedFrame::function(function)],
                named_by: if name.is_some() { NamedBy::Symbol } else { NamedBy::Nothing },
            }
        };
        ModuleNames {
            symbols: names.symbols,
            build_id: self.build_id.clone(),
            places: addresses.iter().map(place).collect(),
            problems: names.problem.into_iter().collect(),
            ..ModuleNames::default()
        }
    }

    /// Offset from a recorded address to the same code in a list whose code starts at `text`.
    fn shift(&self, text: Option<u64>) -> u64 {
        match (text, self.recorded_text) {
            (Some(here), Some(there)) => here.wrapping_sub(there),
            _ => 0,
        }
    }

    /// Names from the cache, and the rest from the running kernel.
    fn of_running(&self, addresses: &[u64], text: Option<u64>, path: Option<&Path>) -> Names {
        let cache = path.and_then(FunctionCache::open);
        let start = text.or(self.recorded_text);
        let (Some(cache), Some(start)) = (cache, start) else { return self.of_list(addresses.to_vec(), text, path) };
        let (of_image, others): (Vec<u64>, Vec<u64>) =
            addresses.iter().copied().partition(|address| cache.covers(address.wrapping_sub(start)));
        let mut names = Names { symbols: SymbolSource::SymbolTable, ..Names::default() };
        if !others.is_empty() {
            names = self.of_list(others, text, None);
            names.symbols = SymbolSource::SymbolTable;
        }
        let name_at = |address: u64| Some((address, cache.name_at(address.wrapping_sub(start))?.to_owned()));
        names.by_address.extend(of_image.into_iter().filter_map(name_at));
        names
    }

    /// Names from the running kernel's list. Functions of its own image are cached at `path`.
    fn of_list(&self, addresses: Vec<u64>, text: Option<u64>, path: Option<&Path>) -> Names {
        let Ok(list) = File::open(LIST) else { return Names::none(Problem::KernelAddressesHidden) };
        let mut search = Search::of(addresses);
        let mut writer = path.zip(text).and_then(|(path, text)| CacheWriter::create(path, text).ok());
        let read = list::for_each_line(list, |line| {
            search.line(line);
            if let Some(writer) = &mut writer {
                writer.line(line);
            }
        });
        if let Some(writer) = writer {
            writer.finish(read);
        }
        Names::of(search)
    }
}

fn shifted(addresses: &[u64], shift: u64) -> Vec<u64> {
    addresses.iter().map(|address| address.wrapping_add(shift)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordedKernel;

    const SYMBOLS: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000100 t __do_sys_read
ffffffff81000100 T do_sys_read
ffffffff81000200 D some_data
ffffffffc0000000 t nf_hook\t[nf_tables]
";

    fn copied(list: &str, recorded_text: Option<u64>) -> Kernel {
        Kernel { source: Source::Copied(list.as_bytes().to_vec()), build_id: None, recorded_text }
    }

    fn names(kernel: &Kernel, addresses: &[u64]) -> Vec<String> {
        let named = kernel.name(addresses, &mut Texts::default());
        named.places.iter().map(|place| place.frames[0].function.to_string()).collect()
    }

    #[test]
    fn an_address_belongs_to_the_previous_function_unless_data_is_between() {
        let kernel = copied(SYMBOLS, None);
        assert_eq!(
            names(&kernel, &[0xffffffff_81000105, 0xffffffff_81000205, 0xffffffff_c0000010, 0xffffffff_c0200000, 5]),
            ["do_sys_read", NAMELESS, "nf_hook", NAMELESS, NAMELESS]
        );
        assert_eq!(kernel.name(&[], &mut Texts::default()).problems, []);
    }

    #[test]
    fn addresses_of_an_earlier_boot_are_shifted() {
        let kernel = copied(SYMBOLS, Some(0xffffffff_91000000));
        assert_eq!(names(&kernel, &[0xffffffff_91000105]), ["do_sys_read"]);
    }

    #[test]
    fn hidden_addresses_are_reported_and_share_one_name() {
        let kernel = copied("0000000000000000 T _text\n0000000000000000 T do_sys_read\n", None);
        let named = kernel.name(&[0xffffffff_81000105], &mut Texts::default());
        assert_eq!(named.problems, [Problem::KernelAddressesHidden]);
        assert_eq!(named.symbols, SymbolSource::None);
        assert_eq!(&*named.places[0].frames[0].function, "[kernel]");
        assert_eq!(named.places[0].named_by, NamedBy::Nothing);
    }

    #[test]
    fn another_kernel_is_not_named_by_functions_of_the_running_one() {
        let recorded = RecordedKernel { build_id: Some(vec![7; 20]), text_address: None };
        let options = Options { recorded_kernel: Some(recorded), build_id_caches: Vec::new(), ..Options::default() };
        let named = load(&options).name(&[0xffffffff_81000105], &mut Texts::default());
        assert_eq!(named.problems, [Problem::OtherKernel]);
        assert_eq!(named.build_id, Some("07".repeat(20)));
    }

    #[test]
    fn cached_names_equal_those_of_the_running_kernel() {
        let Some(text) = list::start_of_text(File::open(super::LIST).unwrap()) else {
            println!("skipped: cached_names_equal_those_of_the_running_kernel: the kernel's addresses are hidden");
            return;
        };
        if running_build_id().is_none() {
            println!("skipped: cached_names_equal_those_of_the_running_kernel: the kernel shows no build-id");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let with = |kernel_cache| load(&Options { kernel_cache, ..Options::default() });
        let addresses: Vec<u64> = (0..300).map(|number| text + number * 60_007).collect();
        let plain = names(&with(None), &addresses);
        assert!(plain.iter().any(|name| name != NAMELESS));
        for _ in ["written", "read"] {
            assert_eq!(names(&with(Some(folder.path().to_owned())), &addresses), plain);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
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
