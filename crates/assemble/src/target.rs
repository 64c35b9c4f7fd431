//! What the assembler asks about the recorded processes: all its input besides records.

use crate::entry::Module;
use crate::unwind_tables::UnwindTables;

/// The recorded processes: live ones on this machine, or only the files that a recording names.
pub trait Target {
    /// Unwind tables of a module that `pid` has mapped. The assembler asks again for another process if there are
    /// none.
    fn unwind_tables(&mut self, module: &Module, pid: u32) -> Option<UnwindTables>;

    /// A process mapped a file that describes the code that it generates.
    fn describes_code(&mut self, module: &Module, pid: u32) {
        let _ = (module, pid);
    }

    /// Reads memory of a process, and returns how many bytes it read. The default reads nothing.
    fn read_memory(&mut self, pid: u32, address: u64, into: &mut [u8]) -> usize {
        let _ = (pid, address, into);
        0
    }

    /// The absolute path of a file that a process used, or a name such as `socket:[1234]`.
    fn file_name(&mut self, pid: u32, file: &UsedFile<'_>) -> Option<String> {
        let _ = (pid, file);
        None
    }

    /// The program that `pid` runs, where it is known.
    fn image(&mut self, pid: u32) -> Option<Image> {
        let _ = pid;
        None
    }
}

/// A file that a process used a moment ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedFile<'a> {
    /// Its device, as the kernel numbers it within: the major number in bits 20 and above.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// The descriptor, which may be of another file by now.
    pub descriptor: Option<u32>,
    /// The path by which it was opened.
    pub path: Option<&'a str>,
}

/// The program that a process runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// Path of the executable.
    pub executable: String,
    /// The arguments.
    pub command_line: Vec<String>,
}

/// A target about which nothing is known: stacks come from call chains alone.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoTarget;

impl Target for NoTarget {
    fn unwind_tables(&mut self, _: &Module, _: u32) -> Option<UnwindTables> {
        None
    }
}
