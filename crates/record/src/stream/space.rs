//! The executable part of a process' address space, and stacks through it.

use std::ops::Range;
use std::sync::Arc;

use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder as _, UnwinderNative};
use rustc_hash::FxHashMap;

use super::entry::{FrameRef, ModuleRef};
use super::world::World;

/// No program has deeper stacks for a reason; broken tables can make them endless.
const MAX_FRAMES: usize = 4096;

/// Where a file, or code without one, is mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub range: Range<u64>,
    /// Offset in the module of the range's start; the absolute address for code without a file.
    pub offset: u64,
    pub module: ModuleRef,
}

/// One process' executable mappings and what has been found out about addresses in them.
pub(super) struct AddressSpace {
    /// By start; never overlapping.
    mappings: Vec<Mapping>,
    /// Starts of the mappings that the unwinder knows.
    loaded: Vec<u64>,
    unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    frames: FxHashMap<u64, FrameRef>,
    after_call: FxHashMap<u64, bool>,
}

impl AddressSpace {
    pub fn new() -> Self {
        Self {
            mappings: Vec::new(),
            loaded: Vec::new(),
            unwinder: UnwinderNative::new(),
            frames: FxHashMap::default(),
            after_call: FxHashMap::default(),
        }
    }

    /// What a forked child starts with.
    pub fn forked(&self) -> Self {
        Self { mappings: self.mappings.clone(), ..Self::new() }
    }

    /// The mappings, by address.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Renumbers modules and forgets frames, for a new numbering of both.
    pub fn renumber(&mut self, mut module: impl FnMut(ModuleRef) -> ModuleRef) {
        for mapping in &mut self.mappings {
            mapping.module = module(mapping.module);
        }
        self.frames.clear();
    }

    /// Maps code; whatever was there before is gone. There is no record of `munmap`, so this is also how unmapped code
    /// disappears: until its addresses are used again it keeps its name, as it must for samples that come late.
    pub fn map(&mut self, new: Mapping) {
        if new.range.is_empty()
            || self
                .mappings
                .binary_search_by_key(&new.range.start, |old| old.range.start)
                .is_ok_and(|index| self.mappings[index] == new)
        {
            return;
        }
        let first = self.mappings.partition_point(|old| old.range.end <= new.range.start);
        let last = self.mappings.partition_point(|old| old.range.start < new.range.end).max(first);
        let mut pieces = Vec::with_capacity(3);
        for old in &self.mappings[first..last] {
            self.unwinder.remove_module(old.range.start);
            self.loaded.retain(|&start| start != old.range.start);
            if old.range.start < new.range.start {
                pieces.push(Mapping { range: old.range.start..new.range.start, ..old.clone() });
            }
            if old.range.end > new.range.end {
                let offset = old.offset + (new.range.end - old.range.start);
                pieces.push(Mapping { range: new.range.end..old.range.end, offset, module: old.module });
            }
        }
        if !self.frames.is_empty() {
            self.frames.retain(|address, _| !new.range.contains(address));
            self.after_call.retain(|address, _| !new.range.contains(address));
        }
        pieces.push(new);
        pieces.sort_by_key(|piece| piece.range.start);
        self.mappings.splice(first..last, pieces);
    }

    /// The mapping that holds an address.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let index = self.mappings.partition_point(|mapping| mapping.range.end <= address);
        self.mappings.get(index).filter(|mapping| mapping.range.contains(&address))
    }
}

/// What the walk needs of the assembler besides the address space.
pub(super) trait Names {
    type World: World;

    /// The frame at an address that a mapping holds.
    fn frame(&mut self, mapping: &Mapping, address: u64) -> FrameRef;

    /// Tables of a mapping's module, for framehop.
    fn framehop_module(&mut self, mapping: &Mapping, pid: u32) -> Option<framehop::Module<Arc<[u8]>>>;

    fn world(&mut self) -> &mut Self::World;
}

/// Unwind rules found before, shared by all processes. framehop's cache is a table of 509 rules; one for each residue
/// of the address makes a larger one.
pub(super) struct RuleCaches(Vec<CacheNative<MayAllocateDuringUnwind>>);

impl RuleCaches {
    const COUNT: usize = 16;

    pub fn new() -> Self {
        Self((0..Self::COUNT).map(|_| CacheNative::new()).collect())
    }

    fn at(&mut self, address: u64) -> &mut CacheNative<MayAllocateDuringUnwind> {
        &mut self.0[(address >> 2) as usize % Self::COUNT]
    }
}

/// The registers that unwinding starts from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub fp: u64,
    /// The link register, where the architecture has one.
    #[cfg_attr(target_arch = "x86_64", allow(dead_code))]
    pub lr: u64,
}

impl Registers {
    #[cfg(target_arch = "x86_64")]
    fn native(self) -> UnwindRegsNative {
        UnwindRegsNative::new(self.ip, self.sp, self.fp)
    }

    #[cfg(target_arch = "aarch64")]
    fn native(self) -> UnwindRegsNative {
        // Userspace pointers have at most 52 bits; what is above may be an authentication code.
        let mask = framehop::aarch64::PtrAuthMask(u64::MAX >> 12);
        UnwindRegsNative::new_with_ptr_auth_mask(mask, self.lr, self.sp, self.fp)
    }
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// At the function that nothing calls.
    Root,
    /// The same, or as far as frame pointers lead, through memory that the copy does not hold.
    Continued,
    /// Before it.
    Truncated,
}

/// The user part of one sample.
pub(super) struct UserStack<'a> {
    pub pid: u32,
    pub registers: Registers,
    /// Memory from the stack pointer up.
    pub copied: &'a [u8],
    /// Whether there was more to copy.
    pub cut: bool,
    /// Return addresses by frame pointers as the kernel saw them, the instruction pointer first.
    pub frame_pointer_chain: &'a [u64],
}

/// Reads words of a stack: from the copy, and beyond its end from the live process.
struct StackMemory<'a, W> {
    stack: &'a UserStack<'a>,
    world: &'a mut W,
    /// Pieces of live memory.
    live: &'a mut Vec<(u64, Vec<u8>)>,
    used_live: bool,
}

const LIVE_PIECE_BYTES: u64 = 4096;
/// How far beyond the copy live memory is trusted to belong to the same stack.
const LIVE_REACH_BYTES: u64 = 8 << 20;

impl<W: World> StackMemory<'_, W> {
    fn word(&mut self, address: u64) -> Result<u64, ()> {
        let offset = address.checked_sub(self.stack.registers.sp).ok_or(())?;
        let copied = self.stack.copied;
        if let Some(bytes) = usize::try_from(offset).ok().and_then(|at| copied.get(at..at.checked_add(8)?)) {
            return Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
        }
        if !self.stack.cut || offset > LIVE_REACH_BYTES {
            return Err(());
        }
        self.live_word(address)
    }

    fn live_word(&mut self, address: u64) -> Result<u64, ()> {
        self.used_live = true;
        let start = address & !(LIVE_PIECE_BYTES - 1);
        let index = match self.live.iter().position(|(piece, _)| *piece == start) {
            Some(index) => index,
            None => {
                let mut bytes = vec![0; LIVE_PIECE_BYTES as usize];
                let read = self.world.read_memory(self.stack.pid, start, &mut bytes);
                bytes.truncate(read);
                self.live.push((start, bytes));
                self.live.len() - 1
            }
        };
        let at = (address - start) as usize;
        let bytes = self.live[index].1.get(at..at + 8).ok_or(())?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }
}

impl AddressSpace {
    /// The frame at a code address; `None` where nothing executable is mapped.
    fn frame<N: Names>(&mut self, address: u64, pid: u32, names: &mut N) -> Option<FrameRef> {
        if let Some(&frame) = self.frames.get(&address) {
            return Some(frame);
        }
        let mapping = self.find(address)?.clone();
        if !self.loaded.contains(&mapping.range.start) {
            self.loaded.push(mapping.range.start);
            if let Some(module) = names.framehop_module(&mapping, pid) {
                self.unwinder.add_module(module);
            }
        }
        let frame = names.frame(&mapping, address);
        self.frames.insert(address, frame);
        Some(frame)
    }

    /// Walks a stack, leaf first, appending to `frames`.
    ///
    /// Every step is by DWARF where there are tables, also in code with frame pointers: a leaf function often has no
    /// prologue, and frame pointers then skip its caller. Where the tables lead out of the copied bytes the walk reads
    /// the live process; as its memory may have changed since, what it finds there counts only if every return
    /// address follows a call and the walk reaches a root. Else the kernel's frame-pointer chain, which is exact,
    /// carries on from the last return address that both walks know.
    pub fn walk<N: Names>(
        &mut self,
        stack: &UserStack<'_>,
        caches: &mut RuleCaches,
        names: &mut N,
        frames: &mut Vec<FrameRef>,
    ) -> Ending {
        let begin = frames.len();
        let mut registers = stack.registers.native();
        let mut address = FrameAddress::from_instruction_pointer(stack.registers.ip);
        let mut live = Vec::new();
        // Number of frames, and their last address, that rest on the copy alone.
        let mut exact = None;
        let mut last = stack.registers.ip;
        let reached_root = loop {
            let lookup = address.address_for_lookup();
            let Some(frame) = self.frame(lookup, stack.pid, names) else { break false };
            if exact.is_some() && !self.follows_call(address.address(), stack.pid, names) {
                break false;
            }
            frames.push(frame);
            last = if exact.is_none() { address.address() } else { last };
            if frames.len() - begin >= MAX_FRAMES {
                break false;
            }
            let mut memory = StackMemory { stack, world: names.world(), live: &mut live, used_live: false };
            let mut read = |address| memory.word(address);
            let next = self.unwinder.unwind_frame(address, &mut registers, caches.at(lookup), &mut read);
            if memory.used_live && exact.is_none() {
                exact = Some(frames.len());
            }
            address = match next.map(|next| next.and_then(FrameAddress::from_return_address)) {
                Ok(Some(address)) => address,
                Ok(None) => break true,
                Err(_) => break false,
            };
        };
        match (reached_root, exact) {
            (true, None) => return Ending::Root,
            (true, Some(_)) => return Ending::Continued,
            (false, None) => {}
            (false, Some(exact)) => frames.truncate(exact),
        }
        self.follow_frame_pointers(stack, last, names, frames)
    }

    /// Appends what the frame-pointer chain has above the frame that returns to `last`.
    fn follow_frame_pointers<N: Names>(
        &mut self,
        stack: &UserStack<'_>,
        last: u64,
        names: &mut N,
        frames: &mut Vec<FrameRef>,
    ) -> Ending {
        let chain = stack.frame_pointer_chain;
        let Some(shared) = chain.iter().rposition(|&address| address == last) else { return Ending::Truncated };
        let before = frames.len();
        for &address in &chain[shared + 1..] {
            let Some(frame) = self.frame(address.wrapping_sub(1), stack.pid, names) else { break };
            frames.push(frame);
        }
        if frames.len() > before { Ending::Continued } else { Ending::Truncated }
    }

    /// Whether the instruction before an address is a call, as far as can be seen.
    fn follows_call<N: Names>(&mut self, address: u64, pid: u32, names: &mut N) -> bool {
        if let Some(&known) = self.after_call.get(&address) {
            return known;
        }
        let mut code = [0; 8];
        let read = names.world().read_memory(pid, address.wrapping_sub(8), &mut code);
        let follows = read == code.len() && ends_in_call(&code);
        self.after_call.insert(address, follows);
        follows
    }
}

/// Whether eight bytes of x86-64 code can end in a call: `e8 rel32`, or `ff /2` with any operand.
#[cfg(target_arch = "x86_64")]
fn ends_in_call(code: &[u8; 8]) -> bool {
    if code[3] == 0xe8 {
        return true;
    }
    // ff /2: ModRM's reg field is 2; the length is what mod and rm ask for.
    (2..=7).any(|length| {
        let at = 8 - length;
        let (opcode, modrm) = (code[at], code[at + 1]);
        let needed = match (modrm >> 6, modrm & 7) {
            (0, 4) => {
                if length == 7 {
                    7
                } else {
                    3
                }
            }
            (0, 5) => 6,
            (0, _) | (3, _) => 2,
            (1, 4) => 4,
            (1, _) => 3,
            (_, 4) => 7,
            _ => 6,
        };
        opcode == 0xff && (modrm >> 3) & 7 == 2 && needed == length
    })
}

/// Whether the last instruction of aarch64 code is `bl` or `blr` (authenticated ones too).
#[cfg(target_arch = "aarch64")]
fn ends_in_call(code: &[u8; 8]) -> bool {
    let word = u32::from_le_bytes([code[4], code[5], code[6], code[7]]);
    word >> 26 == 0b100101 || word & 0xffff_fc1f == 0xd63f_0000 || word & 0xfeff_f800 == 0xd63f_0800
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(drawn: &[(u64, u64, u32)]) -> AddressSpace {
        let mut space = AddressSpace::new();
        for &(start, end, module) in drawn {
            space.map(Mapping { range: start..end, offset: 0, module: ModuleRef(module) });
        }
        space
    }

    fn drawn(space: &AddressSpace) -> Vec<String> {
        let draw = |m: &Mapping| format!("{:x}-{:x} m{}+{:x}", m.range.start, m.range.end, m.module.0, m.offset);
        space.mappings().iter().map(draw).collect()
    }

    #[test]
    fn a_newer_mapping_replaces_what_it_overlaps_and_leaves_the_rest() {
        let space = space(&[(0x1000, 0x5000, 0), (0x6000, 0x9000, 1), (0x2000, 0x3000, 2), (0x4000, 0x7000, 3)]);
        assert_eq!(
            drawn(&space),
            ["1000-2000 m0+0", "2000-3000 m2+0", "3000-4000 m0+2000", "4000-7000 m3+0", "7000-9000 m1+1000"]
        );
    }

    #[test]
    fn an_address_is_found_in_the_mapping_that_holds_it_and_not_past_its_end() {
        let space = space(&[(0x1000, 0x2000, 0), (0x3000, 0x4000, 1)]);
        let module = |address| space.find(address).map(|mapping| mapping.module.0);
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x3fff, 0x4000].map(module),
            [None, Some(0), Some(0), None, Some(1), None]
        );
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn return_addresses_follow_direct_and_indirect_calls_only() {
        let nops = |tail: &[u8]| {
            let mut code = [0x90; 8];
            code[8 - tail.len()..].copy_from_slice(tail);
            ends_in_call(&code)
        };
        assert!(nops(&[0xe8, 1, 2, 3, 4]));
        assert!(nops(&[0xff, 0xd0]), "call *%rax");
        assert!(nops(&[0xff, 0x15, 1, 2, 3, 4]), "call *rel(%rip)");
        assert!(nops(&[0xff, 0x50, 0x18]), "call *0x18(%rax)");
        assert!(nops(&[0xff, 0x54, 0x24, 0x08]), "call *8(%rsp)");
        assert!(!nops(&[0xe9, 1, 2, 3, 4]), "jmp");
        assert!(!nops(&[0xff, 0xe0]), "jmp *%rax");
        assert!(!nops(&[0xc3]), "ret");
    }
}
