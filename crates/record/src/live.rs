//! Files, memory and command lines of running processes, for the assembler.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
            fs::metadata(path).is_ok_and(|found| (kernel_device(&found), found.ino()) == (file.device, file.inode))
        };
        // The descriptor may have been closed and given to another file since.
        let link = file.descriptor.map(|descriptor| PathBuf::from(format!("/proc/{pid}/fd/{descriptor}")));
        let opened = || {
            // A program that ended was perhaps started in our folder; the inode tells.
            let directory = fs::read_link(format!("/proc/{pid}/cwd")).or_else(|_| std::env::current_dir());
            let directory = directory.unwrap_or_default();
            Some(directory.join(file.path?)).filter(|path| is_it(path))
        };
        let name = link.filter(|link| is_it(link)).and_then(|link| fs::read_link(link).ok()).or_else(opened);
        let found = name.map(|name| name.to_string_lossy().into_owned());
        found.or_else(|| Some(format!("{}:[{}]", nameless_kind(file.device)?, file.inode)))
    }

    fn image(&mut self, pid: u32) -> Option<Image> {
        let executable = proc::executable(pid).ok()?.to_string_lossy().into_owned();
        let command_line = proc::command_line(pid).unwrap_or_default();
        Some(Image { executable, command_line })
    }
}

/// What `/proc` calls files of this device, which have no name in a file system.
fn nameless_kind(device: u64) -> Option<&'static str> {
    static KINDS: OnceLock<[(Option<u64>, &'static str); 2]> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| {
        let device_of = |file: OwnedFd| Some(kernel_device(&File::from(file).metadata().ok()?));
        let socket = UnixDatagram::unbound().ok().and_then(|socket| device_of(socket.into()));
        let pipe = std::io::pipe().ok().and_then(|(end, _)| device_of(end.into()));
        [(socket, "socket"), (pipe, "pipe")]
    });
    kinds.iter().find(|(known, _)| *known == Some(device)).map(|(_, kind)| *kind)
}

/// The device of a file, as the kernel numbers it within.
fn kernel_device(metadata: &fs::Metadata) -> u64 {
    u64::from(libc::major(metadata.dev())) << 20 | u64::from(libc::minor(metadata.dev()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_and_a_pipe_have_names_after_they_are_closed() {
        let name = |file: OwnedFd| {
            let metadata = File::from(file).metadata().unwrap();
            let (device, inode) = (kernel_device(&metadata), metadata.ino());
            let used = UsedFile { device, inode, descriptor: None, path: None };
            (LiveTarget::default().file_name(0, &used), inode)
        };
        let (socket, inode) = name(UnixDatagram::unbound().unwrap().into());
        assert_eq!(socket, Some(format!("socket:[{inode}]")));
        let (pipe, inode) = name(std::io::pipe().unwrap().0.into());
        assert_eq!(pipe, Some(format!("pipe:[{inode}]")));
        let used = UsedFile { device: u64::MAX, inode: 1, descriptor: None, path: None };
        assert_eq!(LiveTarget::default().file_name(0, &used), None);
    }
}
