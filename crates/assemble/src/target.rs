//! What the assembler asks about the recorded processes: all its input besides records.

use crate::entry::Module;
use crate::unwind_tables::UnwindTables;

/// The recorded processes: live ones on this machine, or only the files that a recording names.
pub trait Target {
    /// Unwind tables of a module that `pid` has mapped. The assembler asks once for each module.
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

    /// The program that `pid` runs, where it is known.
    fn image(&mut self, pid: u32) -> Option<Image> {
        let _ = pid;
        None
    }
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
