//! Files, memory and command lines of running processes, for the assembler.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use stepscope_assemble::{Image, Module, ModuleKind, Target, UnwindTables, UsedFile};
use stepscope_symbolize::own_vdso;

use crate::kept_files::{KeptFiles, without_suffix};
use crate::proc::{self, Backing};

/// Files, memory and command lines of processes that run now.
#[derive(Debug, Default)]
pub(crate) struct LiveTarget {
    pub kept: KeptFiles,
}

impl Target for LiveTarget {
    fn unwind_tables(&mut self, module: &Module, pid: u32) -> Option<UnwindTables> {
        match module.kind {
            ModuleKind::File => {
                let file = open_mapped(&module.path, pid)?;
                self.kept.keep(&module.path, &file);
                UnwindTables::of_elf(&ReadCache::new(file))
            }
            ModuleKind::Vdso => UnwindTables::of_elf(&*own_vdso()?),
            ModuleKind::Jit(pid) => {
                self.kept.expect_map(pid);
                None
            }
            ModuleKind::Kernel | ModuleKind::StackMarks | ModuleKind::JitDump(_) => None,
        }
    }

    fn describes_code(&mut self, module: &Module, pid: u32) {
        if let Some(file) = open_mapped(&module.path, pid) {
            self.kept.keep(&module.path, &file);
        }
    }

    fn read_memory(&mut self, pid: u32, address: u64, into: &mut [u8]) -> usize {
        proc::read_memory(pid, address, into).unwrap_or(0)
    }

    fn file_name(&mut self, pid: u32, file: &UsedFile<'_>) -> Option<String> {
        let is_it = |path: &Path| {
            fs::metadata(path).is_ok_and(|found| {
                let device = u64::from(libc::major(found.dev())) << 20 | u64::from(libc::minor(found.dev()));
                (device, found.ino()) == (file.device, file.inode)
            })
        };
        // The descriptor may have been closed and given to another file since.
        let link = file.descriptor.map(|descriptor| PathBuf::from(format!("/proc/{pid}/fd/{descriptor}")));
        let opened = || {
            let directory = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            Some(directory.join(file.path?)).filter(|path| is_it(path))
        };
        let name = link.filter(|link| is_it(link)).and_then(|link| fs::read_link(link).ok()).or_else(opened)?;
        Some(name.to_string_lossy().into_owned())
    }

    fn image(&mut self, pid: u32) -> Option<Image> {
        let executable = proc::executable(pid).ok()?.to_string_lossy().into_owned();
        let command_line = proc::command_line(pid).unwrap_or_default();
        Some(Image { executable, command_line })
    }
}

/// Opens the file that a process has mapped: as it sees the path, else as we do, else, where the name is gone, by the
/// mapping itself (which takes CAP_CHECKPOINT_RESTORE).
pub(crate) fn open_mapped(path: &str, pid: u32) -> Option<File> {
    let name = without_suffix(path);
    let in_its_root = PathBuf::from(format!("/proc/{pid}/root{name}"));
    if name == path
        && let Ok(file) = File::open(in_its_root).or_else(|_| File::open(name))
    {
        return Some(file);
    }
    let mappings = proc::maps(pid).ok()?;
    let is_it = |backing: &Backing| backing.path() == Some(Path::new(name));
    let mapping = mappings.iter().find(|mapping| mapping.access.execute && is_it(&mapping.backing))?;
    File::open(format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end)).ok()
}
