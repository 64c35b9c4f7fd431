//! [`Symbolizer`]: which code is named how, and what is kept between calls.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::jit::JitCode;
use crate::kernel::Kernel;
use crate::texts::Texts;
use crate::{Code, ModuleNames, debug_files, jit, kernel, module, vdso};

/// Where to look for files, and what was recorded where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Directories that stand for `/` of the recorded processes, tried in order: `/`, a sysroot, `/proc/PID/root` of a
    /// process in a container. The first that holds the file (of the recorded build) is used.
    pub roots: Vec<PathBuf>,
    /// Directories of separate debug files, laid out as `/usr/lib/debug` is, or holding files of the modules' own names.
    pub debug_directories: Vec<PathBuf>,
    /// Stores of files by build-id: those of `perf` (`~/.debug`) and of debuginfod (`~/.cache/debuginfod_client`).
    pub build_id_caches: Vec<PathBuf>,
    /// Folder in which the running kernel's functions are kept for the next time, since it takes the kernel longer to
    /// tell them than a short recording takes otherwise; made when it is needed. `None` keeps nothing.
    pub kernel_cache: Option<PathBuf>,
    /// The kernel that was recorded. `None` means the one running here.
    pub recorded_kernel: Option<RecordedKernel>,
    /// Build-id of the vdso that was recorded, where known. `None` means the one running here.
    pub recorded_vdso: Option<Vec<u8>>,
}

/// A kernel that may not be the one running here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedKernel {
    /// Its build-id, where known.
    pub build_id: Option<Vec<u8>>,
    /// Address of its symbol `_text` (or `_stext`) when it was recorded, where known: tells where the kernel had been
    /// loaded, which changes with every boot.
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

/// Names code. Keeps what several calls share: which kernel was recorded, the maps of generated code, and one copy
/// of each text. Modules are opened anew in each call: ask for all offsets of a module at once.
#[derive(Debug, Default)]
pub struct Symbolizer {
    options: Options,
    texts: Texts,
    kernel: Option<Kernel>,
    jits: FxHashMap<u32, JitCode>,
    jit_dumps: FxHashMap<u32, Vec<PathBuf>>,
}

impl Symbolizer {
    /// A symbolizer that looks for files as told.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Tells where a process writes its jitdump: the file that it mapped executable, named `jit-PID.dump`.
    pub fn add_jit_dump(&mut self, pid: u32, path: impl AsRef<Path>) {
        self.jit_dumps.entry(pid).or_default().push(path.as_ref().to_owned());
        self.jits.remove(&pid);
    }

    /// Names `offsets` (see [`Code`] for what they are), in any order, repeated or not.
    ///
    /// Never fails: what cannot be named is called after its module, and [`ModuleNames::problems`] says why.
    /// Files are mapped into memory; a file that another program truncates meanwhile ends the process with SIGBUS, as
    /// it does for every debugger.
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

    /// Where the file that was mapped as `path` is found here, by the same rules as for names: the first of
    /// [`Options::roots`] and [`Options::build_id_caches`] that holds it in the recorded build. For readers of unwind
    /// tables.
    pub fn find_file(&self, path: &Path, build_id: Option<&[u8]>) -> Option<PathBuf> {
        debug_files::find_image(path, build_id, &self.options).ok().map(|image| image.path().to_owned())
    }
}
