//! What the assembler asks about the recorded processes: everything it needs besides records.

use crate::entry::Module;
use crate::unwind_tables::UnwindTables;

/// The live machine, or nothing but the files that a recording names.
pub trait Target {
    /// Unwind tables of code that `pid` has mapped. Asked once for each module.
    fn unwind_tables(&mut self, module: &Module, pid: u32) -> Option<UnwindTables>;

    /// Reads a process' memory; gives how many bytes could be read. The default knows no memory.
    fn read_memory(&mut self, pid: u32, address: u64, into: &mut [u8]) -> usize {
        let _ = (pid, address, into);
        0
    }

    /// The executable and the arguments of the program that `pid` runs.
    fn image(&mut self, pid: u32) -> Option<(String, Vec<String>)> {
        let _ = pid;
        None
    }
}

/// A world in which nothing is known: stacks come from callchains alone.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoTarget;

impl Target for NoTarget {
    fn unwind_tables(&mut self, _: &Module, _: u32) -> Option<UnwindTables> {
        None
    }
}
