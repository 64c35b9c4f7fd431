//! Callers of code that has no unwind tables: assembly, a C library built without them, code made by a JIT.
//!
//! In this order:
//!
//! 1. The code only undoes its frame and returns: the frame's size is in the code. Trampolines are like this.
//! 2. A leaf has no frame: its return address is where the call put it.
//! 3. The frame pointer leads to a return address.
//! 4. The stack is searched for a return address. This is a guess, and marked as one.
//!
//! A return address counts only if it follows a call that can have led to this code. Frame pointers may also lead from
//! generated code to generated code.

use std::ops::Range;

use framehop::{FrameAddress, UnwindRegsNative};

use super::frame_source::FrameSource;
use super::stack_memory::{LIVE_REACH_BYTES, StackMemory};
use super::state::WalkState;
use super::walk::Step;
use super::{AddressSpace, LOWEST_CODE};
use crate::calls::Evidence;
use crate::target::Target;

/// How far the stack is searched for a return address.
const SEARCHED_WORDS: u64 = 1024;
/// How much further than a possible return address it is searched for a certain one.
const FURTHER_WORDS: u64 = 64;
/// Longest function without tables. Functions in front of it may have none either.
const LONGEST_FUNCTION: u64 = 64 << 10;

/// What code undoes before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epilogue {
    /// From the stack pointer to the return address.
    bytes: u64,
    /// From the stack pointer to the frame pointer of the caller, if it was saved.
    saved_fp: Option<u64>,
}

/// A return address, and where it is on the stack.
struct Return {
    address: u64,
    slot: u64,
}

impl AddressSpace {
    /// One step up the stack from code without tables. `None` if nothing is found.
    pub(super) fn leave_without_tables<S: FrameSource>(
        &mut self,
        address: FrameAddress,
        registers: &mut UnwindRegsNative,
        memory: &mut StackMemory<'_>,
        source: &mut S,
    ) -> Option<Step> {
        let pid = memory.stack.ids.pid;
        let callee = self.without_tables(address.address_for_lookup(), pid, source)?;
        let state = WalkState::of(address, registers);
        if let Some(epilogue) = self.epilogue(address.address(), pid, source) {
            let slot = state.sp.wrapping_add(epilogue.bytes);
            let caller = memory.word(slot, source.target()).ok()?;
            if self.can_lead(caller, &callee, pid, source) != Evidence::Elsewhere {
                let saved = epilogue.saved_fp.map(|offset| memory.word(state.sp.wrapping_add(offset), source.target()));
                let fp = saved.transpose().ok()?.unwrap_or(state.fp);
                return Some(go_to(Return { address: caller, slot }, fp, registers));
            }
        }
        if !address.is_return_address()
            && let Some(caller) = return_address_of_leaf(state, registers, memory, source)
            && self.can_lead(caller, &callee, pid, source) != Evidence::Elsewhere
        {
            return Some(leave_leaf(caller, state, registers));
        }
        if is_frame(state)
            && let Ok(caller) = memory.word(state.fp.wrapping_add(8), source.target())
            && let Ok(fp) = memory.word(state.fp, source.target())
            && (self.can_lead(caller, &callee, pid, source) != Evidence::Elsewhere
                || fp > state.fp && self.is_generated(caller, pid, source))
        {
            return Some(go_to(Return { address: caller, slot: state.fp.wrapping_add(8) }, fp, registers));
        }
        let found = self.search(state.sp, &callee, memory, source)?;
        let fp = saved_fp(state, found.slot, memory);
        let Step::Caller(caller) = go_to(found, fp, registers) else { return None };
        Some(Step::Guess(caller))
    }

    /// One step to a caller on another stack, by the frame pointer, which points there.
    ///
    /// Tables of Go do not say where frame pointers are saved, so it may still be that of a callee. The frame that returns to
    /// `address` is then further up.
    pub(super) fn leave_by_frame_pointer<W: Target>(
        &self,
        address: FrameAddress,
        registers: &mut UnwindRegsNative,
        memory: &mut StackMemory<'_>,
        target: &mut W,
    ) -> Step {
        const CALLEES: usize = 64;
        let start = WalkState::of(address, registers).fp;
        let frames = std::iter::successors(Some(start), |&frame| memory.copied_word(frame)).take(CALLEES);
        let returns_here = |&frame: &u64| memory.copied_word(frame.wrapping_add(8)) == Some(address.address());
        let callee = { frames }.find(returns_here);
        let frame = callee.and_then(|callee| memory.copied_word(callee)).unwrap_or(start);
        memory.bottom = frame;
        let slot = frame.wrapping_add(8);
        match (memory.word(frame, target), memory.word(slot, target)) {
            (Ok(fp), Ok(address)) => go_to(Return { address, slot }, fp, registers),
            _ => Step::Lost,
        }
    }

    /// Whether code is in no file with tables. Interpreters that are generated, as Java's, enter functions without a call.
    fn is_generated<S: FrameSource>(&self, address: u64, pid: u32, source: &mut S) -> bool {
        self.find(address).is_some_and(|mapping| source.function(mapping, address, pid).is_none())
    }

    /// The addresses up to this one that belong to its function, as far as that is known: from the start of the last function
    /// that has tables. The tables of a function can end before it does, as those of glibc's `clone3`.
    fn without_tables<S: FrameSource>(&self, address: u64, pid: u32, source: &mut S) -> Option<Range<u64>> {
        let mapping = self.find(address)?;
        let before = source.function(mapping, address, pid).map_or(mapping.range.start, |function| function.start);
        Some(before.max(address.saturating_sub(LONGEST_FUNCTION))..address.saturating_add(1))
    }

    /// Searches the stack for a return address, from a stack pointer up. A certain one is better than a possible one. A walk
    /// that has left the copy searches the live stack.
    fn search<S: FrameSource>(
        &mut self,
        sp: u64,
        callee: &Range<u64>,
        memory: &mut StackMemory<'_>,
        source: &mut S,
    ) -> Option<Return> {
        let mut possible: Option<Return> = None;
        let is_copied = memory.copied_word(sp).is_some();
        for slot in (0..SEARCHED_WORDS).map_while(|word| sp.checked_add(word * 8)) {
            if possible.as_ref().is_some_and(|possible| slot - possible.slot > FURTHER_WORDS * 8) {
                break;
            }
            let word = match is_copied {
                true => memory.copied_word(slot),
                false => memory.word(slot, source.target()).ok(),
            };
            let Some(address) = word else { break };
            match self.can_lead(address, callee, memory.stack.ids.pid, source) {
                Evidence::Leads => return Some(Return { address, slot }),
                Evidence::Possible if possible.is_none() => possible = Some(Return { address, slot }),
                _ => {}
            }
        }
        possible
    }

    /// Whether an address follows a call that can have led to code without tables.
    fn can_lead<S: FrameSource>(&mut self, address: u64, callee: &Range<u64>, pid: u32, source: &mut S) -> Evidence {
        if address < LOWEST_CODE || self.find(address.wrapping_sub(1)).is_none() {
            return Evidence::Elsewhere;
        }
        self.evidence_of_call_to(address, callee.end - 1, pid, source, |_| Some(callee.clone()))
    }

    fn epilogue<S: FrameSource>(&mut self, address: u64, pid: u32, source: &mut S) -> Option<Epilogue> {
        if let Some(known) = self.epilogues.get(&address) {
            return *known;
        }
        let mut code = [0; 64];
        let read = source.target().read_memory(pid, address, &mut code);
        let epilogue = decode(&code[..read]);
        if read > 0 {
            self.epilogues.insert(address, epilogue);
        }
        epilogue
    }
}

/// Whether the frame pointer points into the stack.
fn is_frame(state: WalkState) -> bool {
    let above = state.fp.checked_sub(state.sp);
    state.fp.is_multiple_of(8) && above.is_some_and(|above| above <= LIVE_REACH_BYTES)
}

/// The caller's frame pointer, below a return address that was searched for. The code between has saved it there if it
/// uses that register.
fn saved_fp(state: WalkState, slot: u64, memory: &StackMemory<'_>) -> u64 {
    /// Registers that a function saves for its caller.
    const SAVED: u64 = 6;
    let below =
        |fp: u64| fp.checked_sub(slot).is_some_and(|above| above <= LIVE_REACH_BYTES && above.is_multiple_of(8));
    if below(state.fp) {
        return state.fp;
    }
    let saved = (1..=SAVED).filter_map(|word| memory.copied_word(slot.checked_sub(word * 8)?));
    saved.into_iter().find(|&fp| below(fp)).unwrap_or(state.fp)
}

#[cfg(target_arch = "x86_64")]
fn go_to(found: Return, fp: u64, registers: &mut UnwindRegsNative) -> Step {
    *registers = UnwindRegsNative::new(found.address, found.slot.wrapping_add(8), fp);
    FrameAddress::from_return_address(found.address).map_or(Step::Root, Step::Caller)
}

#[cfg(target_arch = "aarch64")]
fn go_to(found: Return, fp: u64, registers: &mut UnwindRegsNative) -> Step {
    registers.set_lr(found.address);
    registers.set_sp(found.slot.wrapping_add(8));
    registers.set_fp(fp);
    FrameAddress::from_return_address(found.address).map_or(Step::Root, Step::Caller)
}

#[cfg(target_arch = "x86_64")]
fn return_address_of_leaf<S: FrameSource>(
    state: WalkState,
    _: &UnwindRegsNative,
    memory: &mut StackMemory<'_>,
    source: &mut S,
) -> Option<u64> {
    memory.word(state.sp, source.target()).ok()
}

#[cfg(target_arch = "aarch64")]
fn return_address_of_leaf<S: FrameSource>(
    _: WalkState,
    registers: &UnwindRegsNative,
    _: &mut StackMemory<'_>,
    _: &mut S,
) -> Option<u64> {
    Some(registers.lr())
}

#[cfg(target_arch = "x86_64")]
fn leave_leaf(caller: u64, state: WalkState, registers: &mut UnwindRegsNative) -> Step {
    go_to(Return { address: caller, slot: state.sp }, state.fp, registers)
}

#[cfg(target_arch = "aarch64")]
fn leave_leaf(caller: u64, _: WalkState, _: &mut UnwindRegsNative) -> Step {
    FrameAddress::from_return_address(caller).map_or(Step::Root, Step::Caller)
}

/// Decodes code that frees its frame, restores registers and returns, and does nothing else but copy registers.
#[cfg(target_arch = "x86_64")]
fn decode(mut code: &[u8]) -> Option<Epilogue> {
    let mut epilogue = Epilogue { bytes: 0, saved_fp: None };
    loop {
        let length = match *code {
            [0xc3, ..] | [0xf3, 0xc3, ..] => return Some(epilogue),
            // add $n, %rsp
            [0x48, 0x83, 0xc4, bytes @ 0..0x80, ..] => {
                epilogue.bytes += u64::from(bytes);
                4
            }
            [0x48, 0x81, 0xc4, a, b, c, d @ 0..0x80, ..] => {
                epilogue.bytes += u64::from(u32::from_le_bytes([a, b, c, d]));
                7
            }
            // pop %rsp
            [0x5c, ..] => return None,
            [register @ 0x58..=0x5f, ..] => {
                epilogue.saved_fp = if register == 0x5d { Some(epilogue.bytes) } else { epilogue.saved_fp };
                epilogue.bytes += 8;
                1
            }
            [0x41, 0x58..=0x5f, ..] => {
                epilogue.bytes += 8;
                2
            }
            // mov %register, %register, but not to %rsp or %rbp
            [prefix @ 0x48..=0x4d, 0x89, operands @ 0xc0..=0xff, ..]
                if prefix & 1 == 1 || !matches!(operands & 7, 4 | 5) =>
            {
                3
            }
            [0x89, operands @ 0xc0..=0xff, ..] if !matches!(operands & 7, 4 | 5) => 2,
            // vzeroupper
            [0xc5, 0xf8, 0x77, ..] => 3,
            _ => return None,
        };
        code = &code[length..];
    }
}

/// Code of other architectures keeps frame pointers.
#[cfg(not(target_arch = "x86_64"))]
fn decode(_: &[u8]) -> Option<Epilogue> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn epilogue(bytes: u64, saved_fp: Option<u64>) -> Option<Epilogue> {
        Some(Epilogue { bytes, saved_fp })
    }

    #[test]
    fn an_epilogue_gives_the_size_of_the_frame() {
        assert_eq!(decode(&[0xc3]), epilogue(0, None));
        assert_eq!(decode(&[0x48, 0x83, 0xc4, 8, 0xc3]), epilogue(8, None), "CPython's perf trampoline");
        let pops = [0x48, 0x81, 0xc4, 0, 1, 0, 0, 0x5b, 0x5d, 0x41, 0x5c, 0xc3];
        assert_eq!(decode(&pops), epilogue(0x118, Some(0x108)), "add $256, %rsp; pop %rbx; pop %rbp; pop %r12");
        assert_eq!(decode(&[0x48, 0x89, 0xd8, 0x5b, 0xc3]), epilogue(8, None), "mov %rbx, %rax");
    }

    #[test]
    fn other_code_is_no_epilogue() {
        let cases: [&[u8]; 6] =
            [&[], &[0x5d], &[0x48, 0x83, 0xc4, 0xf8, 0xc3], &[0x48, 0x89, 0xec, 0xc3], &[0x5c, 0xc3], &[0x75, 3, 0xc3]];
        for code in cases {
            assert_eq!(decode(code), None, "{code:x?}");
        }
    }
}
