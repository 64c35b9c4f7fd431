//! The commands of bpf(2) that our programs need, and the instructions of these.
//!
//! Loaders like aya take ELF objects, which want a compiler for them at build time. Programs of a dozen to a hundred
//! instructions, of which few numbers depend on the running kernel, are shorter than what loads them.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

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

    /// If the 64 bits at `to + offset` are [`RESULT`], replaces them by `from`. [`RESULT`] is then what they were.
    pub const fn compare_and_set(to: Register, offset: i16, from: Register) -> Self {
        Self::new(0xdb, to, from, offset, 0xf1)
    }

    /// Adds a register to another.
    pub const fn add_to(to: Register, from: Register) -> Self {
        Self::new(0x0f, to, from, 0, 0)
    }

    /// Subtracts `from` from `to`.
    pub const fn subtract(to: Register, from: Register) -> Self {
        Self::new(0x1f, to, from, 0, 0)
    }

    /// Multiplies by a number.
    pub const fn multiply_by(to: Register, value: i32) -> Self {
        Self::new(0x27, to, 0, 0, value)
    }

    /// Keeps the bits that are set in one of them only.
    pub const fn xor(to: Register, from: Register) -> Self {
        Self::new(0xaf, to, from, 0, 0)
    }

    /// Keeps the bits that are set in a number, too.
    pub const fn and_number(to: Register, value: i32) -> Self {
        Self::new(0x57, to, 0, 0, value)
    }

    /// Keeps the bits that are set in both.
    pub const fn and(to: Register, from: Register) -> Self {
        Self::new(0x5f, to, from, 0, 0)
    }

    /// Sets the bits that are set in either.
    pub const fn or(to: Register, from: Register) -> Self {
        Self::new(0x4f, to, from, 0, 0)
    }

    pub const fn shift_left(to: Register, bits: i32) -> Self {
        Self::new(0x67, to, 0, 0, bits)
    }

    pub const fn shift_right(to: Register, bits: i32) -> Self {
        Self::new(0x77, to, 0, 0, bits)
    }

    /// Reads 64 bits at `from + offset`.
    pub const fn load(to: Register, from: Register, offset: i16) -> Self {
        Self::new(0x79, to, from, offset, 0)
    }

    /// Reads 32 bits at `from + offset`.
    pub const fn load_u32(to: Register, from: Register, offset: i16) -> Self {
        Self::new(0x61, to, from, offset, 0)
    }

    /// Writes the 64 bits of `from` to `to + offset`.
    pub const fn store(to: Register, offset: i16, from: Register) -> Self {
        Self::new(0x7b, to, from, offset, 0)
    }

    /// Writes a number as 64 bits to `to + offset`.
    pub const fn store_wide(to: Register, offset: i16, value: i32) -> Self {
        Self::new(0x7a, to, 0, offset, value)
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

    /// Jumps if `register` compares so to a number.
    pub const fn jump_if(register: Register, jump: Jump, value: i32) -> Self {
        Self::new(0x05 | jump as u8, register, 0, 0, value)
    }

    /// Jumps if `register` compares so to another.
    pub const fn jump_if_to(register: Register, jump: Jump, other: Register) -> Self {
        Self::new(0x0d | jump as u8, register, other, 0, 0)
    }

    pub const fn jump() -> Self {
        Self::new(0x05, 0, 0, 0, 0)
    }

    /// Sets how many instructions a jump passes over.
    pub const fn set_offset(&mut self, count: i16) {
        self.offset = count;
    }

    pub const fn call(function: Function) -> Self {
        Self::new(0x85, 0, 0, 0, function as i32)
    }

    pub const fn exit() -> Self {
        Self::new(0x95, 0, 0, 0, 0)
    }
}

/// When a conditional jump is taken. Numbers are unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    Equal = 0x10,
    Above = 0x20,
    NotBelow = 0x30,
    AnyBit = 0x40,
    NotEqual = 0x50,
    Below = 0xa0,
    NotAbove = 0xb0,
}

/// Functions of the kernel that programs may call (`bpf-helpers(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    KtimeNs = 5,
    CurrentPidTgid = 14,
    PerfEventOutput = 25,
    CurrentTask = 35,
    ProbeReadUser = 112,
    ProbeReadKernel = 113,
    ProbeReadUserText = 114,
    /// The current task, as a structure that can be read.
    CurrentTaskTyped = 158,
    /// The user's registers of a task.
    RegistersOfTask = 175,
}

/// What a program is run by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// A perf event that is about to write a sample; returning 0 drops it.
    PerfEvent = 7,
    /// A tracepoint, without regard to the perf events of others at it.
    RawTracepoint = 17,
    /// The same, with arguments of known types, which can be read.
    Tracing = 26,
}

/// What a map keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Map {
    /// Values by key.
    Hash = 1,
    /// Values by number.
    Array = 2,
    /// Perf events, by CPU.
    PerfEvents = 4,
    /// Values by number, of each CPU its own.
    ArrayOfEachCpu = 6,
    /// Values by key; when it is full, what was not used for long makes place.
    RecentlyUsed = 9,
}

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_NEXT_KEY: libc::c_int = 4;
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

impl ElementAttributes {
    /// Of an element whose key and value are at these addresses.
    fn new<K, V>(map: BorrowedFd<'_>, key: *const K, value: *const V) -> Self {
        Self { map: map.as_raw_fd() as u32, key: key as u64, value: value as u64, ..Self::default() }
    }
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
    name: [u8; 16],
    interface: u32,
    attach_kind: u32,
    /// Descriptions of the program's own types and lines, of which there are none.
    descriptions: [u32; 9],
    attach_type_id: u32,
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
    create_map_of(kind, 4, 4, entries)
}

/// Makes a map of keys and values of these many bytes.
pub(super) fn create_map_of(kind: Map, key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    descriptor(MAP_CREATE, &MapAttributes { kind: kind as u32, key_bytes, value_bytes, entries, flags: 0 })
}

/// Sets an element of a map.
pub(super) fn set_element(map: BorrowedFd<'_>, key: u32, value: u32) -> io::Result<()> {
    bpf(MAP_UPDATE, &ElementAttributes::new(map, &raw const key, &raw const value)).map(|_| ())
}

/// A map by which programs write through the perf event of a CPU.
pub(super) fn output_map(outputs: &[(u32, RawFd)]) -> io::Result<OwnedFd> {
    let cpus = outputs.iter().map(|&(cpu, _)| cpu + 1).max().unwrap_or(1);
    let map = create_map(Map::PerfEvents, cpus)?;
    outputs.iter().try_for_each(|&(cpu, event)| set_element(map.as_fd(), cpu, event as u32))?;
    Ok(map)
}

/// Sets an element of a map whose keys have 32 bits and whose values are these words.
pub(super) fn set_words<const V: usize>(map: BorrowedFd<'_>, key: u32, value: &[u64; V]) -> io::Result<()> {
    let attributes = ElementAttributes {
        map: map.as_raw_fd() as u32,
        key: &raw const key as u64,
        value: value.as_ptr() as u64,
        ..Default::default()
    };
    bpf(MAP_UPDATE, &attributes).map(|_| ())
}

/// The value of a key of 32 bits, of as many words.
pub(super) fn words_of<const V: usize>(map: BorrowedFd<'_>, key: u32) -> Option<[u64; V]> {
    let mut value = [0; V];
    let attributes = ElementAttributes {
        map: map.as_raw_fd() as u32,
        key: &raw const key as u64,
        value: value.as_mut_ptr() as u64,
        ..Default::default()
    };
    bpf(MAP_LOOKUP, &attributes).ok().map(|_| value)
}

/// The value of a key of a map whose keys are `K` and whose values are `V`, of as many words each. `None` if there is no such key.
pub(super) fn element<const K: usize, const V: usize>(map: BorrowedFd<'_>, key: &[u64; K]) -> Option<[u64; V]> {
    let mut value = [0; V];
    let attributes = ElementAttributes::new(map, key, &raw mut value);
    bpf(MAP_LOOKUP, &attributes).ok().map(|_| value)
}

/// The keys of a map, each of `K` words. A map that changes meanwhile may give some twice.
pub(super) fn keys<const K: usize>(map: BorrowedFd<'_>) -> impl Iterator<Item = [u64; K]> {
    let next = move |before: Option<&[u64; K]>| {
        let mut key = [0; K];
        let before = before.map_or(std::ptr::null(), |key| &raw const *key);
        bpf(MAP_NEXT_KEY, &ElementAttributes::new(map, before, &raw mut key)).ok().map(|_| key)
    };
    std::iter::successors(next(None), move |key| next(Some(key)))
}

/// Loads a program, which the kernel checks first.
pub(super) fn load(kind: Program, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    load_at(kind, instructions, 0, 0)
}

/// Loads a program for the tracepoint whose arguments the kernel's type of this id describes.
pub(super) fn load_typed(tracepoint: u32, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    const RAW_TRACEPOINT: u32 = 23;
    load_at(Program::Tracing, instructions, RAW_TRACEPOINT, tracepoint)
}

fn load_at(kind: Program, instructions: &[Instruction], attach_kind: u32, attach_type_id: u32) -> io::Result<OwnedFd> {
    // Functions that read the kernel's memory want a licence that is compatible with the kernel's.
    const LICENSE: &CStr = c"Dual MIT/GPL";
    let attributes = ProgramAttributes {
        kind: kind as u32,
        instructions: instructions.len() as u32,
        instructions_at: instructions.as_ptr() as u64,
        license_at: LICENSE.as_ptr() as u64,
        attach_kind,
        attach_type_id,
        ..Default::default()
    };
    descriptor(PROG_LOAD, &attributes)
}

/// Runs a program at a tracepoint, as long as the descriptor is open.
pub(super) fn attach(tracepoint: &CStr, program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    attach_at(tracepoint.as_ptr() as u64, program)
}

/// Runs a program at the tracepoint that it was [loaded](load_typed) for, as long as the descriptor is open.
pub(super) fn attach_typed(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    attach_at(0, program)
}

fn attach_at(name_at: u64, program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let attributes = TracepointAttributes { name_at, program: program.as_raw_fd() as u32, ..Default::default() };
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
