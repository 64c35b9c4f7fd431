//! The commands of bpf(2) that [`super::tree_filter`] needs, and the instructions of its programs.
//!
//! Loaders like aya take ELF objects, which want a compiler for them at build time. A dozen instructions each, of which
//! only two numbers depend on the running kernel, are shorter than what loads them.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// One instruction of the kernel's virtual machine (RFC 9669, section 3).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    /// Destination in the lower half, source in the upper.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register: 0 holds results, 1 to 5 arguments, 6 to 9 survive calls, 10 is the end of the program's stack.
pub(super) type Register = u8;
pub(super) const RESULT: Register = 0;
pub(super) const CONTEXT: Register = 6;
pub(super) const STACK: Register = 10;

impl Instruction {
    const fn new(code: u8, to: Register, from: Register, offset: i16, immediate: i32) -> Self {
        Self { code, registers: from << 4 | to, offset, immediate }
    }

    pub const fn copy(to: Register, from: Register) -> Self {
        Self::new(0xbf, to, from, 0, 0)
    }

    pub const fn set(to: Register, value: i32) -> Self {
        Self::new(0xb7, to, 0, 0, value)
    }

    /// Sets the lower 32 bits and clears the upper.
    pub const fn set_u32(to: Register, value: u32) -> Self {
        Self::new(0xb4, to, 0, 0, value as i32)
    }

    pub const fn add(to: Register, value: i32) -> Self {
        Self::new(0x07, to, 0, 0, value)
    }

    pub const fn shift_right(to: Register, bits: i32) -> Self {
        Self::new(0x77, to, 0, 0, bits)
    }

    /// Reads 64 bits at `from + offset`.
    pub const fn load(to: Register, from: Register, offset: i16) -> Self {
        Self::new(0x79, to, from, offset, 0)
    }

    /// Writes the lower 32 bits of `from` to `to + offset`.
    pub const fn store_u32(to: Register, offset: i16, from: Register) -> Self {
        Self::new(0x63, to, from, offset, 0)
    }

    /// Writes a 32-bit number to `to + offset`.
    pub const fn store_number(to: Register, offset: i16, value: i32) -> Self {
        Self::new(0x62, to, 0, offset, value)
    }

    /// Sets a register to a map.
    pub fn map(to: Register, map: BorrowedFd<'_>) -> [Self; 2] {
        const BY_DESCRIPTOR: Register = 1;
        [Self::new(0x18, to, BY_DESCRIPTOR, 0, map.as_raw_fd()), Self::new(0, 0, 0, 0, 0)]
    }

    /// Passes over the next `count` instructions if the register is not zero.
    pub const fn skip_unless_zero(register: Register, count: i16) -> Self {
        Self::new(0x55, register, 0, count, 0)
    }

    pub const fn call(function: Function) -> Self {
        Self::new(0x85, 0, 0, 0, function as i32)
    }

    pub const fn exit() -> Self {
        Self::new(0x95, 0, 0, 0, 0)
    }
}

/// Functions of the kernel that programs may call (`bpf-helpers(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    MapLookup = 1,
    MapUpdate = 2,
    CurrentPidTgid = 14,
    PerfEventOutput = 25,
    ProbeReadKernel = 113,
}

/// What a program is run by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// A perf event that is about to write a sample; returning 0 drops it.
    PerfEvent = 7,
    /// A tracepoint, without regard to the perf events of others at it.
    RawTracepoint = 17,
}

/// What a map keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Map {
    /// Perf events, by CPU.
    PerfEvents = 4,
    /// Values by key; when it is full, what was not used for long makes place.
    RecentlyUsed = 9,
}

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;

#[repr(C)]
#[derive(Default)]
struct MapAttributes {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct ElementAttributes {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramAttributes {
    kind: u32,
    instructions: u32,
    instructions_at: u64,
    license_at: u64,
    log_level: u32,
    log_bytes: u32,
    log_at: u64,
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct TracepointAttributes {
    name_at: u64,
    program: u32,
    padding: u32,
}

/// Runs a command. The attributes' addresses must be those of what lives through the call.
fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of the attributes, and these commands write to kernel objects only.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn descriptor<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: these commands give a new descriptor (closed on exec), which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Makes a map from 32-bit keys to 32-bit values.
pub(super) fn create_map(kind: Map, entries: u32) -> io::Result<OwnedFd> {
    let attributes = MapAttributes { kind: kind as u32, key_bytes: 4, value_bytes: 4, entries, flags: 0 };
    descriptor(MAP_CREATE, &attributes)
}

/// Sets an element of a map.
pub(super) fn set_element(map: BorrowedFd<'_>, key: u32, value: u32) -> io::Result<()> {
    let attributes = ElementAttributes {
        map: map.as_raw_fd() as u32,
        key: &raw const key as u64,
        value: &raw const value as u64,
        ..Default::default()
    };
    bpf(MAP_UPDATE, &attributes).map(|_| ())
}

/// Loads a program, which the kernel checks first.
pub(super) fn load(kind: Program, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    // Functions that read the kernel's memory want a licence that is compatible with the kernel's.
    const LICENSE: &CStr = c"Dual MIT/GPL";
    let attributes = ProgramAttributes {
        kind: kind as u32,
        instructions: instructions.len() as u32,
        instructions_at: instructions.as_ptr() as u64,
        license_at: LICENSE.as_ptr() as u64,
        ..Default::default()
    };
    descriptor(PROG_LOAD, &attributes)
}

/// Runs a program at a tracepoint, as long as the descriptor is open.
pub(super) fn attach(tracepoint: &CStr, program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let attributes = TracepointAttributes {
        name_at: tracepoint.as_ptr() as u64,
        program: program.as_raw_fd() as u32,
        ..Default::default()
    };
    descriptor(RAW_TRACEPOINT_OPEN, &attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_encoded_as_the_standard_draws_them() {
        let bytes = |instruction: Instruction| {
            let Instruction { code, registers, offset, immediate } = instruction;
            (code, registers, offset, immediate)
        };
        assert_eq!(bytes(Instruction::copy(6, 1)), (0xbf, 0x16, 0, 0));
        assert_eq!(bytes(Instruction::load(3, 6, 8)), (0x79, 0x63, 8, 0));
        assert_eq!(bytes(Instruction::store_u32(STACK, -4, RESULT)), (0x63, 0x0a, -4, 0));
        assert_eq!(bytes(Instruction::call(Function::ProbeReadKernel)), (0x85, 0, 0, 113));
        assert_eq!(size_of::<Instruction>(), 8);
    }
}
