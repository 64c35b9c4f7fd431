//! The state of a walk at one frame, and the stacks that are remembered by it.

use std::collections::VecDeque;

use framehop::{FrameAddress, UnwindRegsNative};
use rustc_hash::FxHashMap;

use super::stack_memory::LIVE_REACH_BYTES;
use crate::entry::FrameRef;

/// What determines the rest of a stack, as long as the memory above the stack pointer stays the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkState {
    pub address: u64,
    pub sp: u64,
    pub fp: u64,
}

impl WalkState {
    pub fn of(address: FrameAddress, registers: &UnwindRegsNative) -> Self {
        #[cfg(target_arch = "x86_64")]
        let fp = registers.bp();
        #[cfg(target_arch = "aarch64")]
        let fp = registers.fp();
        Self { address: address.address(), sp: registers.sp(), fp }
    }

    /// Whether the stack above is the same.
    ///
    /// A frame pointer that does not point into the stack is an ordinary value, as in code without frame pointers, and
    /// determines nothing.
    fn continues_as(self, other: Self) -> bool {
        let is_frame = |state: Self| state.fp.checked_sub(state.sp).is_some_and(|above| above <= LIVE_REACH_BYTES);
        let same_frame = self.fp == other.fp || !is_frame(self) && !is_frame(other);
        self.address == other.address && self.sp == other.sp && same_frame
    }
}

/// The last stacks of a thread that were followed beyond their copy, the newest first.
#[derive(Debug, Default)]
pub(super) struct RememberedStacks(VecDeque<RememberedStack>);

/// The frames of a stack, leaf first, and the state at each.
#[derive(Debug, Default)]
struct RememberedStack {
    /// How many frames rest on the copy alone.
    exact: usize,
    /// Whether the call beyond the copy is certain to have led to the last of those.
    is_certain: bool,
    states: Vec<WalkState>,
    frames: Vec<FrameRef>,
}

impl RememberedStacks {
    /// A loop calls several functions with large frames in turn.
    const MAX: usize = 8;

    /// Remembers a stack; its first `exact` frames come from the copy alone. It replaces the stack that left the copy in the
    /// same state, or else the oldest, and uses its allocations.
    pub fn add(&mut self, exact: usize, is_certain: bool, states: &[WalkState], frames: &[FrameRef]) {
        let same = |known: &RememberedStack| known.states[known.exact - 1].continues_as(states[exact - 1]);
        let replaced = match self.0.iter().position(same) {
            Some(index) => self.0.remove(index),
            None if self.0.len() >= Self::MAX => self.0.pop_back(),
            None => None,
        };
        let mut stack = replaced.unwrap_or_default();
        (stack.exact, stack.is_certain) = (exact, is_certain);
        stack.states.clear();
        stack.states.extend_from_slice(states);
        stack.frames.clear();
        stack.frames.extend_from_slice(frames);
        self.0.push_front(stack);
    }

    /// Whether a certain stack left the copy in this state.
    pub fn has_certain(&self, state: WalkState) -> bool {
        self.0.iter().any(|stack| stack.is_certain && stack.states[stack.exact - 1].continues_as(state))
    }

    /// The frames above the one that was in this state, in the newest stack that passed through it.
    pub fn above(&self, state: WalkState) -> Option<&[FrameRef]> {
        self.0.iter().find_map(|stack| {
            let at = stack.states.iter().position(|known| known.continues_as(state))?;
            Some(&stack.frames[at + 1..])
        })
    }
}

/// The root end of a thread's last very deep stack, and places of that stack from which it follows.
#[derive(Debug, Default)]
pub(super) struct DeepStack {
    /// By stack pointer.
    places: FxHashMap<u64, WalkState>,
    root: Vec<FrameRef>,
}

impl DeepStack {
    /// Frames from one remembered state to the next.
    const INTERVAL: usize = 64;
    const MAX_PLACES: usize = 1 << 14;

    /// Remembers the states below the root end. Those of an earlier stack stay if that had the same root end.
    pub fn add(&mut self, states: &[WalkState], root: &[FrameRef]) {
        if self.root != root || self.places.len() > Self::MAX_PLACES {
            self.places.clear();
            self.root.clear();
            self.root.extend_from_slice(root);
        }
        let below = states.len().saturating_sub(root.len());
        self.places.extend(states[..below].iter().step_by(Self::INTERVAL).map(|state| (state.sp, *state)));
    }

    /// The root end, if a stack in this state has it.
    pub fn root_above(&self, state: WalkState) -> Option<&[FrameRef]> {
        self.places.get(&state.sp).filter(|known| known.continues_as(state)).map(|_| &self.root[..])
    }
}
