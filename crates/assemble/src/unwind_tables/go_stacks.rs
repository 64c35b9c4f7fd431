//! Functions of Go's runtime where a stack ends, though the program goes on on another one.
//!
//! A goroutine has a small stack of its own. The runtime works on the stack of the thread (`g0`): `systemstack` calls a
//! function there, `nanotime1` the vdso, and `asmcgocall` a function in C. They keep the frame pointer of the goroutine, so
//! frame pointers lead back to it. `mcall` and `morestack` clear it: the goroutine may go on on another thread. See
//! `runtime/asm_amd64.s` and `runtime/sys_linux_amd64.s` in Go's sources.

use std::ops::Range;

use stepscope_symbolize::GoFunctions;

use super::TableEntry;

/// The functions in a program's table. `text` is the address of `.text`.
pub(super) fn of(table: &[u8], text: u64) -> Vec<(Range<u64>, TableEntry)> {
    let functions = GoFunctions::parse(table, text);
    let functions = functions.iter().flat_map(GoFunctions::iter);
    functions.filter_map(|(range, name)| Some((range, entry(name)?))).collect()
}

fn entry(name: &str) -> Option<TableEntry> {
    match name.strip_suffix(".abi0").unwrap_or(name) {
        "runtime.goexit" | "runtime.mstart" | "runtime.rt0_go" => Some(TableEntry::Start),
        "runtime.systemstack" | "runtime.asmcgocall" | "runtime.nanotime1" | "runtime.walltime" | "time.now" => {
            Some(TableEntry::SwitchesStack)
        }
        "runtime.mcall" | "runtime.morestack" => Some(TableEntry::Scheduler),
        _ => None,
    }
}
