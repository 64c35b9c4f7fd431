//! The executable part of a process' address space, and stacks through it.

use std::collections::{VecDeque, hash_map};
use std::ops::Range;
use std::sync::Arc;

use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder as _, UnwinderNative};
use rustc_hash::FxHashMap;

use crate::calls::{Code, Evidence, ends_in_call, evidence_of_call};
use crate::entry::{FrameRef, ModuleRef};
use crate::target::Target;

/// No program has deeper stacks for a reason; broken tables can make them endless.
const MAX_FRAMES: usize = 4096;

/// A chain of so many frames may have been cut: the kernel follows 127 (`kernel.perf_event_max_stack`), its own included.
const CUT_CHAIN_FRAMES: usize = 96;

/// Where a file, or code without one, is mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub range: Range<u64>,
    /// Offset in the module of the range's start; the absolute address for code without a file.
    pub offset: u64,
    pub module: ModuleRef,
}

/// One process' executable mappings and what has been found out about addresses in them.
pub(crate) struct AddressSpace {
    /// By start; never overlapping.
    mappings: Vec<Mapping>,
    /// Where the kernel executes copies of instructions that it put breakpoints on.
    out_of_line: Option<Range<u64>>,
    /// Starts of the mappings that the unwinder was told of, and whether there are tables for them.
    loaded: FxHashMap<u64, Tables>,
    unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    frames: FxHashMap<u64, FrameRef>,
    after_call: FxHashMap<u64, bool>,
    /// By return address and an address in the callee, whether the call led there.
    callers: FxHashMap<(u64, u64), Evidence>,
    /// By thread, the last stacks that were followed beyond their copy, the newest first.
    remembered: FxHashMap<u32, VecDeque<Remembered>>,
    live: LivePieces,
    /// States of the last walk, kept for the allocation alone.
    states: Vec<State>,
}

/// Whether a mapping has unwind tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    There,
    Missing,
}

impl AddressSpace {
    pub fn new() -> Self {
        Self {
            mappings: Vec::new(),
            out_of_line: None,
            loaded: FxHashMap::default(),
            unwinder: UnwinderNative::new(),
            frames: FxHashMap::default(),
            after_call: FxHashMap::default(),
            callers: FxHashMap::default(),
            remembered: FxHashMap::default(),
            live: LivePieces::default(),
            states: Vec::new(),
        }
    }

    /// What a forked child starts with.
    pub fn forked(&self) -> Self {
        Self { mappings: self.mappings.clone(), out_of_line: self.out_of_line.clone(), ..Self::new() }
    }

    /// Forgets what was remembered of a thread that ended.
    pub fn forget_thread(&mut self, tid: u32) {
        self.remembered.remove(&tid);
    }

    /// Renumbers modules and forgets frames, for a new numbering of both.
    pub fn renumber(&mut self, mut module: impl FnMut(ModuleRef) -> ModuleRef) {
        for mapping in &mut self.mappings {
            mapping.module = module(mapping.module);
        }
        self.frames.clear();
        self.remembered.clear();
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
            self.loaded.remove(&old.range.start);
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
            self.callers.retain(|(caller, callee), _| !new.range.contains(caller) && !new.range.contains(callee));
        }
        pieces.push(new);
        pieces.sort_by_key(|piece| piece.range.start);
        self.mappings.splice(first..last, pieces);
    }

    /// The kernel mapped a page for copies of instructions.
    pub fn execute_out_of_line(&mut self, range: Range<u64>) {
        self.out_of_line = Some(range);
    }

    /// Whether an address is in a copy of an instruction.
    pub fn is_out_of_line(&self, address: u64) -> bool {
        self.out_of_line.as_ref().is_some_and(|range| range.contains(&address))
    }

    /// The address in the code itself of one in a copy of the instruction at `offset` in a module: copies are in slots,
    /// and what the instruction was to the program, its copy is to the unwinder.
    pub fn back_in_line(&self, copied: u64, offset: u64, is_there: impl Fn(ModuleRef) -> bool) -> u64 {
        let Some(area) = &self.out_of_line else { return copied };
        let holds = |mapping: &&Mapping| {
            let length = mapping.range.end - mapping.range.start;
            is_there(mapping.module) && offset.checked_sub(mapping.offset).is_some_and(|into| into < length)
        };
        let Some(mapping) = self.mappings.iter().find(holds) else { return copied };
        mapping.range.start + (offset - mapping.offset) + (copied - area.start) % SLOT_BYTES
    }

    /// The mapping that holds an address.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let index = self.mappings.partition_point(|mapping| mapping.range.end <= address);
        self.mappings.get(index).filter(|mapping| mapping.range.contains(&address))
    }
}

/// What the walk needs of the assembler besides the address space.
pub(crate) trait Names {
    type Target: Target;

    /// The frame at an address that a mapping holds.
    fn frame(&mut self, mapping: &Mapping, address: u64) -> FrameRef;

    /// Tables of a mapping's module, for framehop.
    fn framehop_module(&mut self, mapping: &Mapping, pid: u32) -> Option<framehop::Module<Arc<[u8]>>>;

    /// The function at an address, by the unwind table of the mapping's module.
    fn function(&mut self, mapping: &Mapping, address: u64, pid: u32) -> Option<Range<u64>>;

    fn world(&mut self) -> &mut Self::Target;
}

/// Unwind rules found before, shared by all processes. framehop's cache is a table of 509 rules; one for each residue
/// of the address makes a larger one.
pub(crate) struct RuleCaches(Vec<CacheNative<MayAllocateDuringUnwind>>);

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
pub(crate) struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub fp: u64,
    /// The link register, where the architecture has one.
    #[cfg_attr(target_arch = "x86_64", allow(dead_code))]
    pub lr: u64,
}

impl Registers {
    /// The stack pointer of sources that record no registers.
    pub const NO_STACK: u64 = u64::MAX;

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
pub(crate) enum Ending {
    /// At the function that nothing calls.
    Root,
    /// The same, or as far as frame pointers lead, through memory that the copy does not hold.
    Continued,
    /// Before it.
    Truncated,
}

/// The user part of one sample.
pub(crate) struct UserStack<'a> {
    pub pid: u32,
    pub tid: u32,
    pub registers: Registers,
    /// Memory from the stack pointer up.
    pub copied: &'a [u8],
    /// Return addresses by frame pointers as the kernel saw them, the instruction pointer first.
    pub frame_pointer_chain: &'a [u64],
}

impl UserStack<'_> {
    /// Whether the kernel was to copy memory and found none.
    fn has_no_memory(&self) -> bool {
        self.copied.is_empty() && self.registers.sp != Registers::NO_STACK
    }
}

/// Reads words of a stack: from the copy, and beyond its end from the live process.
///
/// The copy ends at its size, or before: the kernel copies what is in memory and stops at the first page that is not,
/// as inside a large frame of which only the ends were ever touched.
struct StackMemory<'a, W> {
    stack: &'a UserStack<'a>,
    world: &'a mut W,
    live: &'a mut LivePieces,
}

/// Pieces of live memory, kept from walk to walk for their allocations alone.
#[derive(Default)]
struct LivePieces {
    pieces: Vec<Piece>,
    /// Those that belong to this walk.
    used: usize,
}

/// A piece of memory: so much of what was asked for as could be read.
struct Piece {
    start: u64,
    asked: usize,
    read: usize,
    bytes: Vec<u8>,
}

impl LivePieces {
    fn is_used(&self) -> bool {
        self.used > 0
    }

    /// The piece that holds an address; read now, if there is none.
    fn at(&mut self, address: u64, read: impl FnOnce(u64, &mut [u8]) -> usize) -> &Piece {
        let holds = |piece: &Piece| address.checked_sub(piece.start).is_some_and(|at| at + 8 <= piece.asked as u64);
        if let Some(index) = self.pieces[..self.used].iter().position(holds) {
            return &self.pieces[index];
        }
        // Most walks that leave the copy need a page or two; those that need more go on for long.
        let asked = (PAGE_BYTES as usize) << self.used.min(MAX_PIECE_DOUBLINGS);
        if self.used == self.pieces.len() {
            self.pieces.push(Piece { start: 0, asked: 0, read: 0, bytes: Vec::new() });
        }
        let piece = &mut self.pieces[self.used];
        self.used += 1;
        piece.start = address & !(PAGE_BYTES - 1);
        piece.asked = asked;
        if piece.bytes.len() < asked {
            piece.bytes.resize(asked, 0);
        }
        piece.read = read(piece.start, &mut piece.bytes[..asked]).min(asked);
        piece
    }
}

const PAGE_BYTES: u64 = 4096;
/// Bytes for a copied instruction (`UPROBE_XOL_SLOT_BYTES`).
const SLOT_BYTES: u64 = if cfg!(target_arch = "x86_64") { 128 } else { 4 };
/// No code is mapped below (`vm.mmap_min_addr`, by default).
const LOWEST_CODE: u64 = 64 << 10;
/// Unwinding goes up the stack: each piece that is read is larger than the one before, up to 32 pages.
const MAX_PIECE_DOUBLINGS: usize = 5;
/// Stacks that are remembered for a thread: a loop calls several functions with large frames in turn.
const MAX_REMEMBERED: usize = 8;
/// How far beyond the copy live memory is trusted to belong to the same stack.
const LIVE_REACH_BYTES: u64 = 8 << 20;

impl<W: Target> StackMemory<'_, W> {
    fn word(&mut self, address: u64) -> Result<u64, ()> {
        let offset = address.checked_sub(self.stack.registers.sp).ok_or(())?;
        let copied = self.stack.copied;
        if let Some(bytes) = usize::try_from(offset).ok().and_then(|at| copied.get(at..at.checked_add(8)?)) {
            return Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
        }
        if offset > LIVE_REACH_BYTES {
            return Err(());
        }
        self.live_word(address)
    }

    fn live_word(&mut self, address: u64) -> Result<u64, ()> {
        let (world, pid) = (&mut *self.world, self.stack.pid);
        let piece = self.live.at(address, |start, into| world.read_memory(pid, start, into));
        let at = (address - piece.start) as usize;
        let bytes = piece.bytes[..piece.read].get(at..at + 8).ok_or(())?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }
}

/// What determines the rest of a stack, as long as the memory above the stack pointer stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    address: u64,
    sp: u64,
    fp: u64,
}

impl State {
    fn of(address: FrameAddress, registers: &UnwindRegsNative) -> Self {
        #[cfg(target_arch = "x86_64")]
        let fp = registers.bp();
        #[cfg(target_arch = "aarch64")]
        let fp = registers.fp();
        Self { address: address.address(), sp: registers.sp(), fp }
    }

    /// Whether the stack above is the same. A frame pointer that does not point into the stack is an ordinary value,
    /// as in code without frame pointers, and determines nothing.
    fn continues_as(self, other: Self) -> bool {
        let is_frame = |state: Self| state.fp.checked_sub(state.sp).is_some_and(|above| above <= LIVE_REACH_BYTES);
        let same_frame = self.fp == other.fp || !is_frame(self) && !is_frame(other);
        self.address == other.address && self.sp == other.sp && same_frame
    }
}

/// A stack that was followed beyond its copy: the frames, leaf first, and the state at each.
#[derive(Debug, Default)]
struct Remembered {
    /// Number of frames that rest on the copy alone.
    exact: usize,
    /// Whether the call beyond the copy is certain to have led to the last of those.
    is_certain: bool,
    states: Vec<State>,
    frames: Vec<FrameRef>,
}

/// How far the tables led.
struct Walked {
    reached_root: bool,
    /// Number of frames that rest on the copy alone, if there are others.
    exact: Option<usize>,
    /// Whether the call beyond the copy is certain to have led to the last of those.
    is_certain: bool,
    /// Address of the last of those.
    last: u64,
    states: Vec<State>,
}

impl AddressSpace {
    /// The frame at a code address; `None` where nothing executable is mapped.
    fn frame<N: Names>(&mut self, address: u64, pid: u32, names: &mut N) -> Option<FrameRef> {
        if let Some(&frame) = self.frames.get(&address) {
            return Some(frame);
        }
        let mapping = self.find(address)?.clone();
        if let hash_map::Entry::Vacant(unknown) = self.loaded.entry(mapping.range.start) {
            let module = names.framehop_module(&mapping, pid);
            unknown.insert(if module.is_some() { Tables::There } else { Tables::Missing });
            if let Some(module) = module {
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
    /// the live process. As its memory may have changed since, what it finds there counts only if every return address
    /// follows a call that can have led to the function below, and the walk reaches a root. Else, from the last state that rests on the copy alone,
    /// one of two carries on: the kernel's frame-pointer chain, which is exact, where it passes there; or the rest of
    /// an earlier stack of the thread that was in the same state there (a process that ended has no memory to read).
    pub fn walk<N: Names>(
        &mut self,
        stack: &UserStack<'_>,
        caches: &mut RuleCaches,
        names: &mut N,
        frames: &mut Vec<FrameRef>,
    ) -> Ending {
        let begin = frames.len();
        let walked = self.walk_by_tables(stack, caches, names, frames);
        let ending = self.complete(&walked, stack, names, (frames, begin));
        self.states = walked.states;
        ending
    }

    /// Decides what of a walk counts, and carries on from there. The stack's frames begin at `begin`.
    fn complete<N: Names>(
        &mut self,
        walked: &Walked,
        stack: &UserStack<'_>,
        names: &mut N,
        (frames, begin): (&mut Vec<FrameRef>, usize),
    ) -> Ending {
        match (walked.reached_root, walked.exact) {
            (true, None) => return Ending::Root,
            // Not even the page of the stack pointer is in memory: a thread that has not begun to use its stack, or
            // a process whose image is just being replaced. There is no stack that could be lost.
            (false, _) if stack.has_no_memory() => {
                frames.truncate(begin + 1);
                return Ending::Root;
            }
            // The live stack may be a later one. A remembered stack whose call is certain is better evidence.
            (true, Some(exact)) if !walked.is_certain && self.is_known(stack.tid, walked.states[exact - 1]) => {
                frames.truncate(begin + exact);
            }
            (true, Some(_)) => {
                self.remember(stack.tid, walked, &frames[begin..]);
                return Ending::Continued;
            }
            (false, None) => {}
            (false, Some(exact)) => frames.truncate(begin + exact),
        }
        let known = walked.exact.and_then(|exact| walked.states.get(exact - 1));
        let remembers = |space: &Self, frames: &mut Vec<FrameRef>| {
            known.is_some_and(|state| space.follow_memory(stack.tid, *state, frames))
        };
        // The chain of a deep recursion is cut, too: it is exact, but ends before a root.
        if stack.registers.sp != Registers::NO_STACK && stack.frame_pointer_chain.len() >= CUT_CHAIN_FRAMES {
            if remembers(self, frames) {
                return Ending::Continued;
            }
            self.follow_frame_pointers(stack, walked.last, names, frames);
            return Ending::Truncated;
        }
        if self.follow_frame_pointers(stack, walked.last, names, frames) || remembers(self, frames) {
            return Ending::Continued;
        }
        Ending::Truncated
    }

    /// Walks as far as tables and readable memory lead.
    fn walk_by_tables<N: Names>(
        &mut self,
        stack: &UserStack<'_>,
        caches: &mut RuleCaches,
        names: &mut N,
        frames: &mut Vec<FrameRef>,
    ) -> Walked {
        let mut registers = stack.registers.native();
        let mut address = FrameAddress::from_instruction_pointer(stack.registers.ip);
        let mut live = std::mem::take(&mut self.live);
        live.used = 0;
        let mut states = std::mem::take(&mut self.states);
        states.clear();
        let mut walked =
            Walked { reached_root: false, exact: None, is_certain: false, last: stack.registers.ip, states };
        let mut callee = stack.registers.ip;
        loop {
            let lookup = address.address_for_lookup();
            let Some(frame) = self.frame(lookup, stack.pid, names) else { break };
            if let Some(exact) = walked.exact {
                match self.evidence_of_call(address.address(), callee, stack.pid, names) {
                    Evidence::Elsewhere => break,
                    evidence if walked.states.len() == exact => walked.is_certain = evidence == Evidence::Leads,
                    _ => {}
                }
            }
            callee = lookup;
            frames.push(frame);
            walked.states.push(State::of(address, &registers));
            if walked.exact.is_none() {
                walked.last = address.address();
            }
            if walked.states.len() >= MAX_FRAMES {
                break;
            }
            let next = match self.leave_bare_leaf(address, &mut registers, stack, names) {
                Some(caller) => Ok(Some(caller)),
                None => {
                    let mut memory = StackMemory { stack, world: names.world(), live: &mut live };
                    self.step(address, &mut registers, caches, &mut memory)
                }
            };
            if live.is_used() && walked.exact.is_none() {
                walked.exact = Some(walked.states.len());
            }
            address = match next.map(|next| next.and_then(FrameAddress::from_return_address)) {
                Ok(Some(address)) => address,
                Ok(None) => {
                    walked.reached_root = true;
                    break;
                }
                Err(()) => break,
            };
        }
        self.live = live;
        walked
    }

    /// One step up the stack. `None` at a root.
    fn step<W: Target>(
        &self,
        address: FrameAddress,
        registers: &mut UnwindRegsNative,
        caches: &mut RuleCaches,
        memory: &mut StackMemory<'_, W>,
    ) -> Result<Option<u64>, ()> {
        let before = State::of(address, registers);
        let cache = caches.at(address.address_for_lookup());
        let next = self.unwinder.unwind_frame(address, registers, cache, &mut |address| memory.word(address));
        match next {
            // Where a process enters its program all registers are zero, and the number of its arguments is where a
            // return address would be.
            Ok(Some(caller)) if before.fp == 0 && caller < LOWEST_CODE => Ok(None),
            Ok(Some(caller)) => {
                #[cfg(target_arch = "x86_64")]
                leave_realigned(before, caller, registers, memory);
                Ok(Some(caller))
            }
            Ok(None) => Ok(None),
            // Code without tables that leads to no frame is where a program starts (`_start` of the dynamic loader):
            // the frame pointer of the outermost frame is zero (System V ABI for AMD64, 3.4.1; AAPCS64, 6.4.6).
            Err(framehop::Error::FramepointerUnwindingMovedBackwards) if before.fp == 0 => Ok(None),
            Err(_) => Err(()),
        }
    }

    /// The caller of a function that is running, in code without tables (made by a JIT), that has no frame: its return
    /// address is where a call leaves it. A function with a frame has other things there.
    fn leave_bare_leaf<N: Names>(
        &mut self,
        address: FrameAddress,
        registers: &mut UnwindRegsNative,
        stack: &UserStack<'_>,
        names: &mut N,
    ) -> Option<u64> {
        if address.is_return_address() {
            return None;
        }
        let mapping = self.find(address.address())?;
        if self.loaded.get(&mapping.range.start) == Some(&Tables::There) {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        let caller = u64::from_le_bytes(stack.copied.get(..8)?.try_into().expect("eight bytes"));
        #[cfg(target_arch = "aarch64")]
        let caller = registers.lr();
        self.find(caller.wrapping_sub(1))?;
        if !self.follows_call(caller, stack.pid, names) {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        {
            registers.set_ip(caller);
            registers.set_sp(registers.sp() + 8);
        }
        #[cfg(target_arch = "aarch64")]
        let _ = registers;
        Some(caller)
    }

    /// Appends the rest of an earlier stack of the thread that passed through this state.
    fn follow_memory(&self, tid: u32, state: State, frames: &mut Vec<FrameRef>) -> bool {
        let known = self.remembered.get(&tid).into_iter().flatten().find_map(|remembered| {
            let at = remembered.states.iter().position(|known| known.continues_as(state))?;
            Some(&remembered.frames[at + 1..])
        });
        frames.extend_from_slice(known.unwrap_or_default());
        known.is_some()
    }

    /// Whether a certain stack of the thread is remembered that left the copy in this state.
    fn is_known(&self, tid: u32, state: State) -> bool {
        let leaves_here = |known: &Remembered| known.is_certain && known.states[known.exact - 1].continues_as(state);
        self.remembered.get(&tid).is_some_and(|stacks| stacks.iter().any(leaves_here))
    }

    /// Keeps a stack that was followed beyond its copy. It replaces the one that left the
    /// copy in the same state, or else the oldest.
    fn remember(&mut self, tid: u32, walked: &Walked, frames: &[FrameRef]) {
        let (Some(exact), states) = (walked.exact, &walked.states) else { return };
        let remembered = self.remembered.entry(tid).or_default();
        let same = |known: &Remembered| known.states[known.exact - 1].continues_as(states[exact - 1]);
        let replaced = match remembered.iter().position(same) {
            Some(index) => remembered.remove(index),
            None if remembered.len() >= MAX_REMEMBERED => remembered.pop_back(),
            None => None,
        };
        let mut stack = replaced.unwrap_or_default();
        stack.exact = exact;
        stack.is_certain = walked.is_certain;
        stack.states.clear();
        stack.states.extend_from_slice(states);
        stack.frames.clear();
        stack.frames.extend_from_slice(frames);
        remembered.push_front(stack);
    }

    /// Appends what the frame-pointer chain has above the frame that returns to `last`.
    fn follow_frame_pointers<N: Names>(
        &mut self,
        stack: &UserStack<'_>,
        last: u64,
        names: &mut N,
        frames: &mut Vec<FrameRef>,
    ) -> bool {
        let chain = stack.frame_pointer_chain;
        let Some(shared) = chain.iter().rposition(|&address| address == last) else { return false };
        let before = frames.len();
        for &address in &chain[shared + 1..] {
            let Some(frame) = self.frame(address.wrapping_sub(1), stack.pid, names) else { break };
            frames.push(frame);
        }
        frames.len() > before
    }

    /// Whether the instruction before an address is a call that led to the function at `callee`.
    fn evidence_of_call<N: Names>(&mut self, address: u64, callee: u64, pid: u32, names: &mut N) -> Evidence {
        if !self.follows_call(address, pid, names) {
            return Evidence::Elsewhere;
        }
        if let Some(&known) = self.callers.get(&(address, callee)) {
            return known;
        }
        let mut code = LiveCode { space: self, names, pid };
        let evidence = code.function(callee).and_then(|function| evidence_of_call(address, &function, &mut code));
        if let Some(evidence) = evidence {
            self.callers.insert((address, callee), evidence);
        }
        evidence.unwrap_or(Evidence::Possible)
    }

    /// Whether the instruction before an address is a call, as far as can be seen.
    fn follows_call<N: Names>(&mut self, address: u64, pid: u32, names: &mut N) -> bool {
        if let Some(&known) = self.after_call.get(&address) {
            return known;
        }
        let mut code = [0; 8];
        if names.world().read_memory(pid, address.wrapping_sub(8), &mut code) < code.len() {
            return false;
        }
        let follows = ends_in_call(&code);
        self.after_call.insert(address, follows);
        follows
    }
}

/// The code of a running process.
struct LiveCode<'a, N> {
    space: &'a AddressSpace,
    names: &'a mut N,
    pid: u32,
}

impl<N: Names> Code for LiveCode<'_, N> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        self.names.world().read_memory(self.pid, address, into)
    }

    fn function(&mut self, address: u64) -> Option<Range<u64>> {
        self.names.function(self.space.find(address)?, address, self.pid)
    }
}

/// Corrects the stack pointer after a function that realigns its stack, as gcc does for over-aligned locals where it
/// keeps the address of its arguments: it stores that address below its frame pointer, and copies the return address
/// next to the frame. The tables describe this by an expression that reads memory, which framehop does not evaluate;
/// it then goes by the frame pointer, which finds the caller but not its stack pointer.
#[cfg(target_arch = "x86_64")]
fn leave_realigned<W: Target>(
    before: State,
    caller: u64,
    registers: &mut UnwindRegsNative,
    memory: &mut StackMemory<'_, W>,
) {
    // Below the frame pointer: callee-saved registers, four at most, then the address.
    const SLOTS: u64 = 5;
    if before.fp.checked_add(16) != Some(registers.sp()) {
        return;
    }
    for slot in (1..=SLOTS).map_while(|slot| before.fp.checked_sub(slot * 8)).take_while(|&slot| slot >= before.sp) {
        let Ok(arguments) = memory.word(slot) else { return };
        let is_near = arguments > registers.sp() && arguments - registers.sp() <= PAGE_BYTES && arguments % 8 == 0;
        if is_near && memory.word(arguments - 8) == Ok(caller) {
            registers.set_sp(arguments);
            return;
        }
    }
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
        space.mappings.iter().map(draw).collect()
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
    fn a_copy_of_an_instruction_stands_for_the_instruction() {
        let mut space = space(&[(0x1000, 0x2000, 0), (0x5000, 0x8000, 1)]);
        space.execute_out_of_line(0x7fff_e000..0x7fff_f000);
        assert!(space.is_out_of_line(0x7fff_e083) && !space.is_out_of_line(0x5000));
        let in_line = |address, offset| space.back_in_line(address, offset, |module| module == ModuleRef(1));
        assert_eq!(in_line(0x7fff_e000, 0x1139), 0x6139);
        assert_eq!(in_line(0x7fff_e084, 0x1139), 0x613d, "after it, in the second slot");
        assert_eq!(in_line(0x7fff_e084, 0x9000), 0x7fff_e084, "not mapped there");
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
}
