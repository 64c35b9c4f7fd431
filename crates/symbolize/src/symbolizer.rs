//! [`Symbolizer`]: names code, and caches what several calls share.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use stepscope_model::Module;

use crate::image::Image;
use crate::jit::JitCode;
use crate::kernel::Kernel;
use crate::options::Options;
use crate::texts::Texts;
use crate::{Code, ModuleNames, Position, Problem, debug_files, jit, kernel, module, objects, vdso};

/// Names code. Caches what several calls share: the recorded kernel, maps of generated code, and interned names. A
/// module is opened in each call, so ask for all offsets of a module at once.
#[derive(Debug, Default)]
pub struct Symbolizer {
    options: Options,
    texts: Texts,
    kernel: Option<Kernel>,
    jits: FxHashMap<u32, JitCode>,
    jit_dumps: FxHashMap<u32, Vec<PathBuf>>,
}

impl Symbolizer {
    /// A symbolizer with these options.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Uses the copies in a folder, in which each folder replaces `/`.
    pub fn add_copies(&mut self, folder: &Path) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        self.options.copies.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        self.options.copies.sort();
    }

    /// Adds the jitdump of a process: the file `jit-PID.dump` that it mapped as executable.
    pub fn add_jit_dump(&mut self, pid: u32, path: impl AsRef<Path>) {
        self.jit_dumps.entry(pid).or_default().push(path.as_ref().to_owned());
        self.jits.remove(&pid);
    }

    /// Names `offsets` in any order; duplicates are allowed. [`Code`] says what the offsets are.
    ///
    /// This never fails: an unnamed offset gets the module's name and its address, and [`ModuleNames::problems`] has
    /// the reason.
    ///
    /// Files are mapped into memory. If another program truncates one meanwhile, this process gets SIGBUS, as any
    /// debugger would.
    pub fn name(&mut self, code: &Code, offsets: &[u64]) -> ModuleNames {
        match code {
            Code::File { path, build_id } => self.name_file(path, build_id.as_deref(), &Position::of_offsets(offsets)),
            Code::Kernel => {
                let kernel = self.kernel.get_or_insert_with(|| kernel::load(&self.options));
                kernel.name(offsets, &mut self.texts)
            }
            Code::Vdso => vdso::name(offsets, &self.options, &mut self.texts),
            Code::Jit { pid } => {
                let dumps = self.jit_dumps.get(pid).map_or(&[][..], Vec::as_slice);
                let jit = self.jits.entry(*pid).or_insert_with(|| jit::load(*pid, dumps, &self.options));
                jit.name(offsets, &mut self.texts)
            }
        }
    }

    /// Names the global variables at these places of a module, which ascend: offsets from where the file's start is mapped, by the
    /// mapping of its code. Gives one name for each, or none at all.
    pub fn name_objects(&mut self, code: &Code, offsets: &[u64]) -> Vec<Option<String>> {
        match code {
            Code::File { path, build_id } => objects::name(path, build_id.as_deref(), offsets, &self.options),
            Code::Kernel | Code::Vdso | Code::Jit { .. } => Vec::new(),
        }
    }

    /// Names positions of a module of a capture. A file with a build-id is not used for a module without one, because it
    /// may be of another build.
    pub fn name_module(&mut self, module: &Module, positions: &[Position]) -> ModuleNames {
        let path = Path::new(&module.path);
        let recorded = module.build_id.as_deref().map(bytes_of);
        let names = self.name_file(path, recorded.as_deref(), positions);
        if recorded.is_some() || names.build_id.is_none() {
            return names;
        }
        let problem = Problem::UnknownBuild(path.to_owned());
        module::nameless(module.name(), positions, problem, &mut self.texts)
    }

    /// Names addresses of a file whose recorded build is unknown: of the file that is there now.
    pub fn name_addresses(&mut self, path: &Path, addresses: &[u64]) -> ModuleNames {
        let positions: Vec<Position> = addresses.iter().map(|&address| Position::Address(address)).collect();
        self.name_file(path, None, &positions)
    }

    /// Names positions of a file. If only the debug file of this build is left, it names addresses.
    fn name_file(&mut self, path: &Path, build_id: Option<&[u8]>, positions: &[Position]) -> ModuleNames {
        let names = module::name_file(path, build_id, positions, &self.options, &mut self.texts);
        let unasked =
            |problem: &Problem| matches!(problem, Problem::NoDebuginfodClient(_) | Problem::NoDebuginfodServer(_));
        // Each further file would wait as long for the same failure.
        self.options.debuginfod &= !names.problems.iter().any(unasked);
        names
    }

    /// Names `offsets` of an ELF file in memory called `name`. This never fails, like [`name`](Self::name).
    pub fn name_bytes(&mut self, name: &str, bytes: Vec<u8>, offsets: &[u64]) -> ModuleNames {
        match Image::from_bytes(Path::new(name), bytes) {
            Ok(image) => {
                module::name_image(&image, name, &Position::of_offsets(offsets), &self.options, &mut self.texts)
            }
            Err(problem) => module::nameless(name, &Position::of_offsets(offsets), problem, &mut self.texts),
        }
    }

    /// Path of the file that was mapped as `path`, for readers of unwind tables.
    ///
    /// It is the first in [`Options::roots`] and [`Options::build_id_caches`] of the recorded build, as for names.
    pub fn find_file(&self, path: &Path, build_id: Option<&[u8]>) -> Option<PathBuf> {
        debug_files::find_image(path, build_id, &self.options, &mut Vec::new())
            .ok()
            .map(|image| image.path().to_owned())
    }
}

pub(crate) fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    digits.map_while(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
