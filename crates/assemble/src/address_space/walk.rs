//! Stacks through an address space.
//!
//! Every step goes by DWARF where there are unwind tables, also in code with frame pointers: a leaf function often has no
//! prologue, and frame pointers then skip its caller.
//!
//! Where the tables lead out of the copied bytes, the walk reads the live process. That memory may have changed since, so
//! what it finds there counts only if every return address follows a call that can have led to the function below, and the
//! walk reaches a root.
//!
//! Otherwise the walk goes back to the last state that rests on the copy alone, and one of two sources continues it:
//!
//! - the kernel's frame-pointer chain, which is exact, if it passes through that state;
//! - an earlier stack of the same thread that passed through the same state. A process that ended has no memory to read, and
//!   its last samples are continued this way.

use std::collections::hash_map;
use std::ops::Range;

use framehop::{FrameAddress, UnwindRegsNative, Unwinder as _};

use super::frame_source::{Ending, FrameSource, RuleCaches};
use super::stack_memory::{PAGE_BYTES, StackMemory};
use super::state::WalkState;
use super::user_stack::UserStack;
use super::{AddressSpace, Tables};
use crate::calls::{Code, Evidence, ends_in_call, evidence_of_call};
use crate::entry::FrameRef;
use crate::target::Target;

/// No program has deeper stacks for a reason; broken tables can make them endless.
const MAX_FRAMES: usize = 4096;

/// A chain of this length may be cut: the kernel follows 127 frames (`kernel.perf_event_max_stack`), its own included.
const CUT_CHAIN_FRAMES: usize = 96;

/// No code is mapped below this address (`vm.mmap_min_addr`, by default).
const LOWEST_CODE: u64 = 64 << 10;

/// How far the unwind tables led.
struct Walked {
    reached_root: bool,
    /// How many frames rest on the copy alone, if others do not.
    exact: Option<usize>,
    /// Whether the call beyond the copy is certain to have led to the last exact frame.
    is_certain: bool,
    /// Address of the last exact frame.
    last: u64,
    /// The state at each frame.
    states: Vec<WalkState>,
}

impl AddressSpace {
    /// Walks a stack, leaf first, and appends it to `frames`.
    pub fn walk<S: FrameSource>(
        &mut self,
        stack: &UserStack<'_>,
        caches: &mut RuleCaches,
        source: &mut S,
        frames: &mut Vec<FrameRef>,
    ) -> Ending {
        let leaf = frames.len();
        let walked = self.walk_by_tables(stack, caches, source, frames);
        let ending = self.complete(&walked, stack, source, frames, leaf);
        self.states = walked.states;
        ending
    }

    /// Decides what of a walk counts, and continues it from there. `leaf` is the index of the stack's leaf in `frames`.
    fn complete<S: FrameSource>(
        &mut self,
        walked: &Walked,
        stack: &UserStack<'_>,
        source: &mut S,
        frames: &mut Vec<FrameRef>,
        leaf: usize,
    ) -> Ending {
        match (walked.reached_root, walked.exact) {
            (true, None) => return Ending::Root,
            // Not even the page of the stack pointer is in memory: the thread has not used its stack yet, or an exec is
            // replacing the image of the process. No stack is lost.
            (false, _) if stack.has_no_memory() => {
                frames.truncate(leaf + 1);
                return Ending::Root;
            }
            // The live stack may be a later one. A remembered stack whose call is certain is better evidence.
            (true, Some(exact)) if !walked.is_certain && self.remembers(stack.ids.tid, walked.states[exact - 1]) => {
                frames.truncate(leaf + exact);
            }
            (true, Some(exact)) => {
                let remembered = self.remembered.entry(stack.ids.tid).or_default();
                remembered.add(exact, walked.is_certain, &walked.states, &frames[leaf..]);
                return Ending::Continued;
            }
            (false, None) => {}
            (false, Some(exact)) => frames.truncate(leaf + exact),
        }
        let last_exact = walked.exact.and_then(|exact| walked.states.get(exact - 1));
        let remembered = |space: &Self, frames: &mut Vec<FrameRef>| {
            let above = last_exact.and_then(|state| space.remembered.get(&stack.ids.tid)?.above(*state));
            above.map(|above| frames.extend_from_slice(above)).is_some()
        };
        // A deep recursion has a cut chain, too. The chain is exact, but ends before the root.
        if stack.has_stack_pointer() && stack.frame_pointer_chain.len() >= CUT_CHAIN_FRAMES {
            if remembered(self, frames) {
                return Ending::Continued;
            }
            self.follow_frame_pointers(stack, walked.last, source, frames);
            return Ending::Truncated;
        }
        if self.follow_frame_pointers(stack, walked.last, source, frames) || remembered(self, frames) {
            return Ending::Continued;
        }
        Ending::Truncated
    }

    /// The frame at a code address; `None` where nothing executable is mapped.
    fn frame<S: FrameSource>(&mut self, address: u64, pid: u32, source: &mut S) -> Option<FrameRef> {
        if let Some(&frame) = self.frames.get(&address) {
            return Some(frame);
        }
        let mapping = self.find(address)?.clone();
        if let hash_map::Entry::Vacant(unknown) = self.loaded.entry(mapping.range.start) {
            let module = source.framehop_module(&mapping, pid);
            unknown.insert(if module.is_some() { Tables::Present } else { Tables::Missing });
            if let Some(module) = module {
                self.unwinder.add_module(module);
            }
        }
        let frame = source.frame(&mapping, address);
        self.frames.insert(address, frame);
        Some(frame)
    }

    /// Walks as far as unwind tables and readable memory lead.
    fn walk_by_tables<S: FrameSource>(
        &mut self,
        stack: &UserStack<'_>,
        caches: &mut RuleCaches,
        source: &mut S,
        frames: &mut Vec<FrameRef>,
    ) -> Walked {
        let mut registers = stack.registers.native();
        let mut address = FrameAddress::from_instruction_pointer(stack.registers.ip);
        let mut live = std::mem::take(&mut self.live);
        live.clear();
        let mut states = std::mem::take(&mut self.states);
        states.clear();
        let mut walked =
            Walked { reached_root: false, exact: None, is_certain: false, last: stack.registers.ip, states };
        let mut callee = stack.registers.ip;
        loop {
            let lookup = address.address_for_lookup();
            let Some(frame) = self.frame(lookup, stack.ids.pid, source) else { break };
            if let Some(exact) = walked.exact {
                match self.evidence_of_call(address.address(), callee, stack.ids.pid, source) {
                    Evidence::Elsewhere => break,
                    evidence if walked.states.len() == exact => walked.is_certain = evidence == Evidence::Leads,
                    _ => {}
                }
            }
            callee = lookup;
            frames.push(frame);
            walked.states.push(WalkState::of(address, &registers));
            if walked.exact.is_none() {
                walked.last = address.address();
            }
            if walked.states.len() >= MAX_FRAMES {
                break;
            }
            let next = match self.leave_bare_leaf(address, &mut registers, stack, source) {
                Some(caller) => Ok(Some(caller)),
                None => {
                    let mut memory = StackMemory { stack, target: source.target(), live: &mut live };
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
        let before = WalkState::of(address, registers);
        let cache = caches.at(address.address_for_lookup());
        let next = self.unwinder.unwind_frame(address, registers, cache, &mut |address| memory.word(address));
        match next {
            // At the entry of a program all registers are zero, and the number of arguments is in the place of the return
            // address.
            Ok(Some(caller)) if before.fp == 0 && caller < LOWEST_CODE => Ok(None),
            Ok(Some(caller)) => {
                #[cfg(target_arch = "x86_64")]
                leave_realigned(before, caller, registers, memory);
                Ok(Some(caller))
            }
            Ok(None) => Ok(None),
            // Code without tables and without a caller is the start of a program (`_start` of the dynamic loader): the
            // frame pointer of the outermost frame is zero (System V ABI for AMD64, 3.4.1; AAPCS64, 6.4.6).
            Err(framehop::Error::FramepointerUnwindingMovedBackwards) if before.fp == 0 => Ok(None),
            Err(_) => Err(()),
        }
    }

    /// The caller of a leaf without a frame, in code without tables (made by a JIT). Its return address is still where the
    /// call put it; a function with a frame has something else there.
    fn leave_bare_leaf<S: FrameSource>(
        &mut self,
        address: FrameAddress,
        registers: &mut UnwindRegsNative,
        stack: &UserStack<'_>,
        source: &mut S,
    ) -> Option<u64> {
        if address.is_return_address() {
            return None;
        }
        let mapping = self.find(address.address())?;
        if self.loaded.get(&mapping.range.start) == Some(&Tables::Present) {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        let caller = u64::from_le_bytes(stack.copied.get(..8)?.try_into().expect("eight bytes"));
        #[cfg(target_arch = "aarch64")]
        let caller = registers.lr();
        self.find(caller.wrapping_sub(1))?;
        if !self.follows_call(caller, stack.ids.pid, source) {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        {
            registers.set_ip(caller);
            registers.set_sp(registers.sp().wrapping_add(8));
        }
        #[cfg(target_arch = "aarch64")]
        let _ = registers;
        Some(caller)
    }

    /// Appends the part of the frame-pointer chain above the frame that returns to `last`.
    fn follow_frame_pointers<S: FrameSource>(
        &mut self,
        stack: &UserStack<'_>,
        last: u64,
        source: &mut S,
        frames: &mut Vec<FrameRef>,
    ) -> bool {
        let chain = stack.frame_pointer_chain;
        let Some(shared) = chain.iter().rposition(|&address| address == last) else { return false };
        let before = frames.len();
        for &address in &chain[shared + 1..] {
            let Some(frame) = self.frame(address.wrapping_sub(1), stack.ids.pid, source) else { break };
            frames.push(frame);
        }
        frames.len() > before
    }

    /// Whether a certain stack of the thread is remembered that left its copy in this state.
    fn remembers(&self, tid: u32, state: WalkState) -> bool {
        self.remembered.get(&tid).is_some_and(|stacks| stacks.has_certain(state))
    }

    /// Whether the instruction before an address is a call that led to the function at `callee`.
    fn evidence_of_call<S: FrameSource>(&mut self, address: u64, callee: u64, pid: u32, source: &mut S) -> Evidence {
        if !self.follows_call(address, pid, source) {
            return Evidence::Elsewhere;
        }
        if let Some(&known) = self.callers.get(&(address, callee)) {
            return known;
        }
        let mut code = LiveCode { space: self, source, pid };
        let evidence = code.function(callee).and_then(|function| evidence_of_call(address, &function, &mut code));
        if let Some(evidence) = evidence {
            self.callers.insert((address, callee), evidence);
        }
        evidence.unwrap_or(Evidence::Possible)
    }

    /// Whether the instruction before an address can be a call.
    fn follows_call<S: FrameSource>(&mut self, address: u64, pid: u32, source: &mut S) -> bool {
        if let Some(&known) = self.after_call.get(&address) {
            return known;
        }
        let mut code = [0; 8];
        if source.target().read_memory(pid, address.wrapping_sub(8), &mut code) < code.len() {
            return false;
        }
        let follows = ends_in_call(&code);
        self.after_call.insert(address, follows);
        follows
    }
}

/// The code of a running process.
struct LiveCode<'a, S> {
    space: &'a AddressSpace,
    source: &'a mut S,
    pid: u32,
}

impl<S: FrameSource> Code for LiveCode<'_, S> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        self.source.target().read_memory(self.pid, address, into)
    }

    fn function(&mut self, address: u64) -> Option<Range<u64>> {
        self.source.function(self.space.find(address)?, address, self.pid)
    }
}

/// Corrects the stack pointer after a function that realigns its stack, as gcc does for over-aligned locals.
///
/// Such a function stores the address of its arguments below its frame pointer, and copies the return address next to the
/// frame. The tables describe this by an expression that reads memory, which framehop does not evaluate. It goes by the
/// frame pointer instead, which finds the caller but not the caller's stack pointer.
#[cfg(target_arch = "x86_64")]
fn leave_realigned<W: Target>(
    before: WalkState,
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
