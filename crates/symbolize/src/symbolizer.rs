//! [`Symbolizer`]: names code, and caches what several calls share.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::image::Image;
use crate::jit::JitCode;
use crate::kernel::Kernel;
use crate::texts::Texts;
use crate::{Code, ModuleNames, debug_files, jit, kernel, module, vdso};

/// Where to look for files, and which kernel was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Directories that replace `/` of the recorded processes, in order: `/`, a sysroot, `/proc/PID/root` of a process
    /// in a container. The first one with the file (of the recorded build) is used.
    pub roots: Vec<PathBuf>,
    /// Directories of separate debug files, laid out like `/usr/lib/debug`, or with files named as the modules.
    pub debug_directories: Vec<PathBuf>,
    /// Caches of files by build-id: those of `perf` (`~/.debug`) and debuginfod (`~/.cache/debuginfod_client`).
    pub build_id_caches: Vec<PathBuf>,
    /// Folder that caches the functions of the running kernel, created if needed. Reading them from the kernel takes
    /// longer than a short recording. `None` disables the cache.
    pub kernel_cache: Option<PathBuf>,
    /// The recorded kernel. `None` means the running one.
    pub recorded_kernel: Option<RecordedKernel>,
    /// Build-id of the recorded vdso, if known. `None` means the running kernel's.
    pub recorded_vdso: Option<Vec<u8>>,
}

/// A recorded kernel, which need not be the running one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedKernel {
    /// Its build-id, if known.
    pub build_id: Option<Vec<u8>>,
    /// Address of its symbol `_text` (or `_stext`) when it was recorded, if known. The kernel is loaded at another
    /// address after each boot.
    pub text_address: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let perf_cache = in_home(".debug");
        let debuginfod_cache = std::env::var_os("DEBUGINFOD_CACHE_PATH")
            .map(PathBuf::from)
            .or_else(|| in_home(".cache/debuginfod_client"));
        let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        Self {
            roots: vec![PathBuf::from("/")],
            debug_directories: vec![PathBuf::from("/usr/lib/debug")],
            build_id_caches: [perf_cache, debuginfod_cache].into_iter().flatten().collect(),
            kernel_cache: caches.or_else(|| in_home(".cache")).map(|caches| caches.join("stepscope")),
            recorded_kernel: None,
            recorded_vdso: None,
        }
    }
}

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
            Code::File { path, build_id } => {
                module::name_file(path, build_id.as_deref(), offsets, &self.options, &mut self.texts)
            }
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

    /// Names `offsets` of an ELF file in memory called `name`. This never fails, like [`name`](Self::name).
    pub fn name_bytes(&mut self, name: &str, bytes: Vec<u8>, offsets: &[u64]) -> ModuleNames {
        match Image::from_bytes(Path::new(name), bytes) {
            Ok(image) => module::name_image(&image, name, offsets, &self.options, &mut self.texts),
            Err(problem) => module::nameless(name, offsets, problem, &mut self.texts),
        }
    }

    /// Path of the file that was mapped as `path`, for readers of unwind tables.
    ///
    /// It is the first in [`Options::roots`] and [`Options::build_id_caches`] of the recorded build, as for names.
    pub fn find_file(&self, path: &Path, build_id: Option<&[u8]>) -> Option<PathBuf> {
        debug_files::find_image(path, build_id, &self.options).ok().map(|image| image.path().to_owned())
    }
}
