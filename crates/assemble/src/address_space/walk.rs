//! Stacks through an address space.
//!
//! Every step goes by DWARF where there are unwind tables, also in code with frame pointers: a leaf function often has no
//! prologue, and frame pointers then skip its caller.
//! Other code, and frames of signal handlers, have modules of their own: `caller` and `signal_frame`.
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
//!
//! A very deep stack keeps its leaf end and its root end. Its root end is remembered, because a walk over all of it takes
//! longer than the time between two samples.

use std::ops::Range;

use framehop::{FrameAddress, UnwindRegsNative, Unwinder as _};

use super::frame_source::{Ending, Found, FrameSource, RuleCaches};
use super::stack_memory::{PAGE_BYTES, StackMemory};
use super::state::WalkState;
use super::user_stack::UserStack;
use super::{AddressSpace, KnownCode, LOWEST_CODE, UnwindsBy, signal_frame};
use crate::calls::{Code, Evidence, ends_in_call, evidence_of_call};
use crate::entry::{FrameRef, StackMark};
use crate::target::Target;
use crate::unwind_tables::TableEntry;

/// Broken tables can make stacks endless. A recursion with small frames fills a stack of 8 MiB with about as many.
const MAX_FRAMES: usize = 1 << 17;

/// What is kept of a deeper stack: its leaf end, and its root end.
const KEPT_LEAF: usize = 768;
const KEPT_ROOT: usize = 256;

/// A chain of this length may be cut: the kernel follows 127 frames (`kernel.perf_event_max_stack`), its own included.
const CUT_CHAIN_FRAMES: usize = 96;

/// A step up the stack.
pub(super) enum Step {
    Caller(FrameAddress),
    /// A caller that may be another one.
    Guess(FrameAddress),
    Root,
    /// A scheduler works on its own stack.
    Scheduler,
    /// The kernel's frame-pointer chain continues. `at_leaf`: the frame pointer has not changed since the leaf.
    Chain {
        at_leaf: bool,
    },
    Lost,
}

/// How far the unwind tables led.
struct Walked {
    reached_root: bool,
    /// Whether a caller was guessed.
    guessed: bool,
    /// How many frames rest on the copy alone, if others do not.
    exact: Option<usize>,
    /// How many frames are certain: those, and the ones beyond whose calls are certain to have led to each other.
    certain: usize,
    /// Address of the last exact frame.
    last: u64,
    /// Whether the frame pointer of the last frame is that of the leaf.
    at_leaf: bool,
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
    ) -> Found {
        let leaf = frames.len();
        let walked = self.walk_up(stack, caches, source, frames);
        let ending = self.complete(&walked, stack, source, frames, leaf);
        self.states = walked.states;
        let shortened = frames.len() - leaf > KEPT_LEAF + KEPT_ROOT;
        if shortened {
            let omitted = leaf + KEPT_LEAF..frames.len() - KEPT_ROOT;
            frames.splice(omitted, [source.mark(StackMark::FramesOmitted)]);
        }
        Found { ending, guessed: walked.guessed, shortened }
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
        let is_certain = walked.exact.is_some_and(|exact| walked.certain > exact);
        match (walked.reached_root, walked.exact) {
            (true, None) => return Ending::Root,
            // Not even the page of the stack pointer is in memory: the thread has not used its stack yet, or an exec is
            // replacing the image of the process. No stack is lost.
            (false, _) if stack.has_no_memory() => {
                frames.truncate(leaf + 1);
                return Ending::Root;
            }
            // The live stack may be a later one. A remembered stack whose call is certain is better evidence.
            (true, Some(exact)) if !is_certain && self.remembers(stack.ids.tid, walked.states[exact - 1]) => {}
            (true, Some(_)) if frames.len() - leaf > KEPT_LEAF + KEPT_ROOT => {
                let root = &frames[frames.len() - KEPT_ROOT..];
                self.deep.entry(stack.ids.tid).or_default().add(&walked.states[KEPT_LEAF..], root);
                return Ending::Continued;
            }
            (true, Some(exact)) => {
                let remembered = self.remembered.entry(stack.ids.tid).or_default();
                remembered.add(exact, is_certain, &walked.states, &frames[leaf..]);
                return Ending::Continued;
            }
            (false, _) => {}
        }
        let exact = walked.exact.unwrap_or(frames.len() - leaf);
        let beyond = frames.split_off(leaf + exact);
        if self.follow_other_sources(walked, stack, source, frames) {
            return Ending::Continued;
        }
        let certain = walked.certain.saturating_sub(exact).min(beyond.len());
        if frames.len() < leaf + exact + certain {
            frames.truncate(leaf + exact);
            frames.extend_from_slice(&beyond[..certain]);
        }
        Ending::Truncated
    }

    /// Continues the exact part of a stack by a remembered stack or by frame pointers, and says whether to a root.
    fn follow_other_sources<S: FrameSource>(
        &mut self,
        walked: &Walked,
        stack: &UserStack<'_>,
        source: &mut S,
        frames: &mut Vec<FrameRef>,
    ) -> bool {
        let last_exact = walked.exact.and_then(|exact| walked.states.get(exact - 1));
        let remembered = |space: &Self, frames: &mut Vec<FrameRef>| {
            let above = last_exact.and_then(|state| space.remembered.get(&stack.ids.tid)?.above(*state));
            above.map(|above| frames.extend_from_slice(above)).is_some()
        };
        // A deep recursion has a cut chain, too. The chain is exact, but ends before the root.
        if stack.has_stack_pointer() && stack.frame_pointer_chain.len() >= CUT_CHAIN_FRAMES {
            if remembered(self, frames) {
                return true;
            }
            self.follow_frame_pointers(stack, walked, source, frames);
            return false;
        }
        self.follow_frame_pointers(stack, walked, source, frames) || remembered(self, frames)
    }

    /// What is known about a code address; `None` where nothing executable is mapped.
    fn code<S: FrameSource>(&mut self, address: u64, pid: u32, source: &mut S) -> Option<KnownCode> {
        if let Some(&known) = self.frames.get(&address) {
            return Some(known);
        }
        let mapping = self.find(address)?.clone();
        if self.loaded.insert(mapping.range.start)
            && let Some(module) = source.framehop_module(&mapping, pid)
        {
            self.unwinder.add_module(module);
        }
        let frame = source.frame(&mapping, address);
        let unwinds_by = match source.entry(&mapping, address, pid) {
            Some(TableEntry::Function) => UnwindsBy::Tables,
            Some(TableEntry::SignalReturn) => UnwindsBy::SignalFrame,
            Some(TableEntry::Start) => UnwindsBy::Root,
            Some(TableEntry::SwitchesStack) => UnwindsBy::FramePointer,
            Some(TableEntry::Scheduler) => UnwindsBy::Scheduler,
            None if returns_from_signal(address, pid, source) => UnwindsBy::SignalFrame,
            None => UnwindsBy::Evidence,
        };
        let known = KnownCode { frame, unwinds_by };
        self.frames.insert(address, known);
        Some(known)
    }

    /// Walks as far as tables, evidence and readable memory lead.
    fn walk_up<S: FrameSource>(
        &mut self,
        stack: &UserStack<'_>,
        caches: &mut RuleCaches,
        source: &mut S,
        frames: &mut Vec<FrameRef>,
    ) -> Walked {
        let mut registers = stack.registers.native();
        let mut address = FrameAddress::from_instruction_pointer(stack.registers.ip);
        let mut memory = StackMemory { stack, live: std::mem::take(&mut self.live), bottom: stack.registers.sp };
        memory.live.clear();
        let mut states = std::mem::take(&mut self.states);
        states.clear();
        let last = stack.registers.ip;
        let mut walked =
            Walked { reached_root: false, guessed: false, exact: None, certain: 0, last, at_leaf: false, states };
        let mut callee = stack.registers.ip;
        loop {
            let lookup = address.address_for_lookup();
            let Some(code) = self.code(lookup, stack.ids.pid, source) else { break };
            if let Some(exact) = walked.exact.filter(|_| address.is_return_address()) {
                match self.evidence_of_call(address.address(), callee, stack.ids.pid, source) {
                    Evidence::Elsewhere => break,
                    Evidence::Leads if walked.certain.max(exact) == walked.states.len() => {
                        walked.certain = walked.states.len() + 1;
                    }
                    _ => {}
                }
            }
            callee = lookup;
            frames.push(code.frame);
            let state = WalkState::of(address, &registers);
            walked.states.push(state);
            if code.unwinds_by == UnwindsBy::Evidence
                && address.is_return_address()
                && let Some(python) = self.python_frame(&walked.states, &memory, source)
                && let Some(mapping) = self.find(lookup).cloned()
                && let Some(last) = frames.last_mut()
            {
                *last = source.frame(&mapping, python);
            }
            if walked.exact.is_none() {
                walked.last = address.address();
            }
            if walked.states.len() >= MAX_FRAMES {
                break;
            }
            if walked.states.len() > KEPT_LEAF + KEPT_ROOT
                && let Some(root) = self.deep.get(&stack.ids.tid).and_then(|deep| deep.root_above(state))
            {
                frames.extend_from_slice(root);
                walked.reached_root = true;
                break;
            }
            let in_chain = || stack.frame_pointer_chain.contains(&address.address());
            let at_leaf = state.fp == stack.registers.fp && stack.frame_pointer_chain.len() > 1;
            let step = match code.unwinds_by {
                // The chain is exact, and the other stack is not in the copy.
                UnwindsBy::FramePointer if address.is_return_address() && (at_leaf || in_chain()) => {
                    Step::Chain { at_leaf: !in_chain() }
                }
                unwinds_by => self.step(unwinds_by, address, &mut registers, caches, &mut memory, source),
            };
            if memory.live.is_used() && walked.exact.is_none() {
                walked.exact = Some(walked.states.len());
            }
            address = match step {
                Step::Caller(caller) => caller,
                Step::Guess(caller) => {
                    // Each frame has a state, also this one.
                    frames.push(source.mark(StackMark::CallersGuessed));
                    walked.states.push(state);
                    walked.guessed = true;
                    caller
                }
                Step::Root => {
                    walked.reached_root = true;
                    break;
                }
                Step::Scheduler => {
                    frames.push(source.mark(StackMark::SchedulerStack));
                    walked.states.push(state);
                    walked.reached_root = true;
                    break;
                }
                Step::Chain { at_leaf } => {
                    walked.at_leaf = at_leaf;
                    break;
                }
                Step::Lost => break,
            };
        }
        self.live = memory.live;
        walked
    }

    /// One step up the stack.
    fn step<S: FrameSource>(
        &mut self,
        unwinds_by: UnwindsBy,
        address: FrameAddress,
        registers: &mut UnwindRegsNative,
        caches: &mut RuleCaches,
        memory: &mut StackMemory<'_>,
        source: &mut S,
    ) -> Step {
        match unwinds_by {
            UnwindsBy::Tables => {}
            UnwindsBy::Root => return Step::Root,
            UnwindsBy::Scheduler if address.is_return_address() => return Step::Scheduler,
            UnwindsBy::FramePointer if address.is_return_address() => {
                return self.leave_by_frame_pointer(address, registers, memory, source.target());
            }
            UnwindsBy::Scheduler | UnwindsBy::FramePointer => {}
            UnwindsBy::SignalFrame => {
                return signal_frame::leave(registers, memory, source.target()).map_or(Step::Lost, Step::Caller);
            }
            UnwindsBy::Evidence => {
                if let Some(step) = self.leave_without_tables(address, registers, memory, source) {
                    return step;
                }
            }
        }
        match self.step_by_tables(address, registers, caches, memory, source.target()) {
            Ok(caller) => caller.and_then(FrameAddress::from_return_address).map_or(Step::Root, Step::Caller),
            Err(()) => Step::Lost,
        }
    }

    /// One step up the stack by unwind tables, or else by the frame pointer. `None` at a root.
    fn step_by_tables<W: Target>(
        &self,
        address: FrameAddress,
        registers: &mut UnwindRegsNative,
        caches: &mut RuleCaches,
        memory: &mut StackMemory<'_>,
        target: &mut W,
    ) -> Result<Option<u64>, ()> {
        let before = WalkState::of(address, registers);
        let cache = caches.at(address.address_for_lookup());
        let mut last_word = None;
        let next = self.unwinder.unwind_frame(address, registers, cache, &mut |address| {
            let word = memory.word(address, target);
            last_word = word.ok();
            word
        });
        match next {
            // At the entry of a program all registers are zero, and the number of arguments is in the place of the return
            // address.
            Ok(Some(caller)) if before.fp == 0 && caller < LOWEST_CODE => Ok(None),
            Ok(Some(caller)) => {
                #[cfg(target_arch = "x86_64")]
                leave_realigned(before, caller, registers, memory, target);
                Ok(Some(caller))
            }
            // A return address of zero ends a stack. Beyond the copy, the program may have used that memory for something else
            // since. Tables that say where a stack ends read nothing.
            Ok(None) if memory.live.is_used() && last_word == Some(0) => Err(()),
            Ok(None) => Ok(None),
            // Code without tables and without a caller is the start of a program (`_start` of the dynamic loader): the
            // frame pointer of the outermost frame is zero (System V ABI for AMD64, 3.4.1; AAPCS64, 6.4.6).
            Err(framehop::Error::FramepointerUnwindingMovedBackwards) if before.fp == 0 => Ok(None),
            Err(_) => Err(()),
        }
    }

    /// Appends the part of the frame-pointer chain above the last exact frame.
    fn follow_frame_pointers<S: FrameSource>(
        &mut self,
        stack: &UserStack<'_>,
        walked: &Walked,
        source: &mut S,
        frames: &mut Vec<FrameRef>,
    ) -> bool {
        let chain = stack.frame_pointer_chain;
        let shared = chain.iter().rposition(|&address| address == walked.last);
        let Some(shared) = shared.or(walked.at_leaf.then_some(0)) else { return false };
        let before = frames.len();
        for &address in &chain[shared + 1..] {
            let Some(code) = self.code(address.wrapping_sub(1), stack.ids.pid, source) else { break };
            frames.push(code.frame);
            if code.unwinds_by == UnwindsBy::Scheduler {
                frames.push(source.mark(StackMark::SchedulerStack));
                break;
            }
        }
        frames.len() > before
    }

    /// Whether a certain stack of the thread is remembered that left its copy in this state.
    fn remembers(&self, tid: u32, state: WalkState) -> bool {
        self.remembered.get(&tid).is_some_and(|stacks| stacks.has_certain(state))
    }

    /// Whether the instruction before an address is a call that led to the function at `callee`.
    fn evidence_of_call<S: FrameSource>(&mut self, address: u64, callee: u64, pid: u32, source: &mut S) -> Evidence {
        self.evidence_of_call_to(address, callee, pid, source, |code| code.function(callee))
    }

    /// The same, for a function that the caller finds.
    pub(super) fn evidence_of_call_to<S: FrameSource>(
        &mut self,
        address: u64,
        callee: u64,
        pid: u32,
        source: &mut S,
        find: impl FnOnce(&mut LiveCode<'_, S>) -> Option<Range<u64>>,
    ) -> Evidence {
        if !self.follows_call(address, pid, source) {
            return Evidence::Elsewhere;
        }
        if let Some(&known) = self.callers.get(&(address, callee)) {
            return known;
        }
        let mut code = LiveCode { space: self, source, pid };
        let evidence = find(&mut code).and_then(|function| evidence_of_call(address, &function, &mut code));
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

/// Whether the code at an address ends a signal handler.
fn returns_from_signal<S: FrameSource>(address: u64, pid: u32, source: &mut S) -> bool {
    let mut code = [0; 2 * signal_frame::REACH];
    let start = address.wrapping_sub(signal_frame::REACH as u64);
    source.target().read_memory(pid, start, &mut code) == code.len() && signal_frame::is_return(&code)
}

/// The code of a running process.
pub(super) struct LiveCode<'a, S> {
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
    memory: &mut StackMemory<'_>,
    target: &mut W,
) {
    // Below the frame pointer: callee-saved registers, four at most, then the address.
    const SLOTS: u64 = 5;
    if before.fp.checked_add(16) != Some(registers.sp()) {
        return;
    }
    for slot in (1..=SLOTS).map_while(|slot| before.fp.checked_sub(slot * 8)).take_while(|&slot| slot >= before.sp) {
        let Ok(arguments) = memory.word(slot, target) else { return };
        let is_near = arguments > registers.sp() && arguments - registers.sp() <= PAGE_BYTES && arguments % 8 == 0;
        if is_near && memory.word(arguments - 8, target) == Ok(caller) {
            registers.set_sp(arguments);
            return;
        }
    }
}
