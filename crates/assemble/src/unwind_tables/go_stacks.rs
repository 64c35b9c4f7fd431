//! Functions of Go's runtime where a stack ends, though the program goes on on another one.
//!
//! A goroutine has a small stack of its own. The runtime works on the stack of the thread (`g0`): `systemstack` calls a
//! function there, `nanotime1` the vdso, and `asmcgocall` a function in C. They keep the frame pointer of the goroutine, so
//! frame pointers lead back to it. `mcall` and `morestack` clear it: the goroutine may go on on another thread. See
//! `runtime/asm_amd64.s` and `runtime/sys_linux_amd64.s` in Go's sources.

use std::ops::Range;

use stepscope_symbolize::{GoFunction, GoFunctions};

use super::TableEntry;

/// What a program's table of functions says about stacks.
#[derive(Default)]
pub(super) struct GoStacks {
    /// Functions where a stack begins or ends.
    pub entries: Vec<(Range<u64>, TableEntry)>,
    /// The frames of all functions, in the form of `.debug_frame`, for programs that have no such section.
    pub debug_frame: Vec<u8>,
}

/// Reads the table of a program. `text` is where the program's code starts.
pub(super) fn of(table: &[u8], text: u64, has_debug_frame: bool) -> GoStacks {
    let mut stacks = GoStacks::default();
    let Some(functions) = GoFunctions::parse(table, text) else { return stacks };
    // On x86-64 the return address is above the frame. Elsewhere it may be in a register.
    let wants_frames = !has_debug_frame && functions.quantum() == 1;
    if wants_frames {
        stacks.debug_frame.extend(COMMON_ENTRY);
    }
    for function in functions.iter() {
        if wants_frames {
            put_frame(&mut stacks.debug_frame, &function);
        }
        stacks.entries.extend(entry(function.name).map(|entry| (function.range, entry)));
    }
    stacks
}

/// Version 4, addresses of 8 bytes, alignments 1 and -8, return address in column 16: the frame is at `rsp + 8`, the return
/// address below it.
const COMMON_ENTRY: [u8; 20] = [16, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];

fn put_frame(debug_frame: &mut Vec<u8>, function: &GoFunction<'_>) {
    const DEF_CFA_OFFSET: u8 = 0x0e;
    const ADVANCE_LOC4: u8 = 0x04;
    let mut entry = vec![0; 4];
    entry.extend(function.range.start.to_le_bytes());
    entry.extend((function.range.end - function.range.start).to_le_bytes());
    let mut at = function.range.start;
    for (from, size) in function.frame_sizes() {
        if from > at {
            entry.push(ADVANCE_LOC4);
            entry.extend(((from - at) as u32).to_le_bytes());
            at = from;
        }
        entry.push(DEF_CFA_OFFSET);
        let mut rest = size.saturating_add(8);
        while rest >= 0x80 {
            entry.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        entry.push(rest as u8);
    }
    debug_frame.extend((entry.len() as u32).to_le_bytes());
    debug_frame.extend(entry);
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
