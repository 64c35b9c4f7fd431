//! [`Options`]: where to look for files.

use std::path::PathBuf;

/// Where to look for files, and which kernel was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Directories that replace `/` of the recorded processes, in order: `/`, a sysroot, `/proc/PID/root` of a process
    /// in a container. The first one with the file (of the recorded build) is used.
    pub roots: Vec<PathBuf>,
    /// Directories that replace `/` with copies of files as they were mapped. They are searched before the roots.
    pub copies: Vec<PathBuf>,
    /// Directories of separate debug files, laid out like `/usr/lib/debug`, or with files named as the modules.
    pub debug_directories: Vec<PathBuf>,
    /// Caches of files by build-id: those of `perf` (`~/.debug`) and debuginfod (`~/.cache/debuginfod_client`).
    pub build_id_caches: Vec<PathBuf>,
    /// Whether to ask debuginfod servers for files by build-id. The default is whether `DEBUGINFOD_URLS` names any. Needs
    /// the program `debuginfod-find`, which keeps what it fetched in the cache above.
    pub debuginfod: bool,
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
            copies: Vec::new(),
            debug_directories: vec![PathBuf::from("/usr/lib/debug")],
            build_id_caches: [perf_cache, debuginfod_cache].into_iter().flatten().collect(),
            debuginfod: std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty()),
            kernel_cache: caches.or_else(|| in_home(".cache")).map(|caches| caches.join("stepscope")),
            recorded_kernel: None,
            recorded_vdso: None,
        }
    }
}
