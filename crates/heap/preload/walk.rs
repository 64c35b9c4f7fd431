//! The stack of a call: walked from the leaf up to what has not changed since the thread's last walk.
//!
//! A walk is a chain of states: address, stack pointer, frame pointer. Each follows from the one before and from the words of
//! the stack that its rule reads. So two walks that reach the same state go on alike as long as these words are equal. The
//! thread keeps the states of its last walk. Once a walk reaches one of them, it compares two words a frame instead of
//! searching unwind tables. The result is that of a full walk, by construction and by test (`verify`).

use crate::cfi::{Kind, Rule};
use crate::layout::{OMITTED_CALLERS, ROOT, UNKNOWN_CALLERS};
use crate::rules::Rules;
use crate::sys;
use crate::table::Table;

/// Frames of a stack, at most. The outermost ones of deeper stacks are omitted.
pub const MAX_FRAMES: usize = 256;

/// Where a walk is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The address after the call, or the interrupted instruction. 0 ends a stack.
    pub address: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// Whether a signal interrupted it here.
    pub interrupted: bool,
}

/// A state of the last walk.
#[derive(Clone, Copy)]
#[repr(C)]
struct Frame {
    address: u64,
    stack_pointer: u64,
    frame_pointer: u64,
    node: u32,
    /// See [`Rule::saved`].
    saved: i16,
    /// Whether two words decide what follows. Otherwise the rule is applied again.
    is_plain: bool,
    interrupted: bool,
}

impl Frame {
    #[inline]
    fn is(&self, state: &State) -> bool {
        self.address == state.address
            && self.stack_pointer == state.stack_pointer
            && self.frame_pointer == state.frame_pointer
            && self.interrupted == state.interrupted
    }

    fn state(&self) -> State {
        State {
            address: self.address,
            stack_pointer: self.stack_pointer,
            frame_pointer: self.frame_pointer,
            interrupted: self.interrupted,
        }
    }
}

/// The last walk of a thread. Zeroed memory is a thread that has not walked yet.
pub struct Walker {
    /// From the root to the leaf.
    frames: [Frame; MAX_FRAMES],
    depth: usize,
    /// New frames, from the leaf on.
    fresh: [Frame; MAX_FRAMES],
    /// Where the stack is known to be readable.
    readable: (u64, u64),
    /// [`Rules::generation`] of the frames.
    generation: u32,
    /// The outermost frames are missing: another walk cannot end at the first one.
    is_cut: bool,
}

/// What a walk found.
pub struct Found {
    pub node: u32,
    /// Whether it is the stack of the walk before.
    pub is_same: bool,
}

/// What follows a state.
enum Next {
    Caller(State),
    Root,
    /// No rule says how to go on.
    Unknown,
}

impl Walker {
    /// The node of the stack that starts here.
    #[inline]
    pub fn walk(&mut self, start: State, rules: &Rules, table: &Table) -> Found {
        if self.generation != rules.generation() || self.is_cut {
            self.generation = rules.generation();
            self.forget();
        }
        let (parent, kept, fresh) = match self.find(start, rules) {
            (_, kept, fresh) if kept + fresh > MAX_FRAMES => {
                self.forget();
                self.find(start, rules)
            }
            found => found,
        };
        let is_same = fresh == 0 && self.depth == kept;
        let node = self.keep(parent, kept, fresh, table);
        Found { node, is_same }
    }

    pub fn forget(&mut self) {
        self.depth = 0;
        self.is_cut = false;
    }

    /// Walks. Gives the parent of the outermost new frame if no old ones are kept, how many old ones are kept, and how many
    /// are new.
    #[inline]
    fn find(&mut self, start: State, rules: &Rules) -> (u32, usize, usize) {
        let mut state = start;
        let mut kept = self.depth;
        let mut fresh = 0;
        loop {
            while kept > 0 && self.frame(kept - 1).stack_pointer < state.stack_pointer {
                kept -= 1;
            }
            let next = if kept > 0 && self.frame(kept - 1).is(&state) {
                let changed = self.changed_caller(kept - 1, rules);
                if changed == 0 {
                    return (ROOT, kept, fresh);
                }
                while kept > changed {
                    if fresh == MAX_FRAMES {
                        return self.cut(fresh);
                    }
                    kept -= 1;
                    *self.fresh_mut(fresh) = *self.frame(kept);
                    fresh += 1;
                }
                state = self.fresh_mut(fresh - 1).state();
                self.next(&state, rules.at(&state))
            } else {
                if fresh == MAX_FRAMES {
                    return self.cut(fresh);
                }
                let rule = rules.at(&state);
                *self.fresh_mut(fresh) = Frame {
                    address: state.address,
                    stack_pointer: state.stack_pointer,
                    frame_pointer: state.frame_pointer,
                    node: 0,
                    saved: rule.saved() as i16,
                    is_plain: matches!(rule.kind(), Kind::FromStackPointer | Kind::FromFramePointer),
                    interrupted: state.interrupted,
                };
                fresh += 1;
                self.next(&state, rule)
            };
            match next {
                Next::Caller(caller) => state = caller,
                Next::Root => return (ROOT, 0, fresh),
                Next::Unknown => return (UNKNOWN_CALLERS, 0, fresh),
            }
        }
    }

    fn cut(&mut self, fresh: usize) -> (u32, usize, usize) {
        self.is_cut = true;
        (OMITTED_CALLERS, 0, fresh)
    }

    #[inline]
    fn frame(&self, index: usize) -> &Frame {
        // SAFETY: all callers stay below the depth.
        unsafe { self.frames.get_unchecked(index) }
    }

    #[inline]
    fn fresh_mut(&mut self, index: usize) -> &mut Frame {
        // SAFETY: all callers stay below MAX_FRAMES.
        unsafe { self.fresh.get_unchecked_mut(index) }
    }

    /// The first frame from this one on whose caller differs from the last walk, or 0.
    #[inline]
    fn changed_caller(&mut self, from: usize, rules: &Rules) -> usize {
        let mut index = from;
        while index > 0 {
            let (frame, caller) = (self.frame(index), self.frame(index - 1));
            let is_same = if frame.is_plain {
                // SAFETY: a full walk would read the same two words.
                unsafe {
                    let at = caller.stack_pointer;
                    let saved = frame.saved;
                    let frame_pointer =
                        if saved == 0 { caller.frame_pointer } else { *(at.wrapping_add(saved as u64) as *const u64) };
                    *(at.wrapping_sub(8) as *const u64) == caller.address && frame_pointer == caller.frame_pointer
                }
            } else {
                let (state, caller) = (frame.state(), *caller);
                matches!(self.next(&state, rules.at(&state)), Next::Caller(state) if caller.is(&state))
            };
            if !is_same {
                return index;
            }
            index -= 1;
        }
        0
    }

    /// The state of the caller.
    fn next(&mut self, state: &State, rule: Rule) -> Next {
        self.try_next(state, rule).unwrap_or(Next::Unknown)
    }

    fn try_next(&mut self, state: &State, rule: Rule) -> Option<Next> {
        if state.address == 0 {
            return Some(Next::Root);
        }
        let (frame, saved) = match rule.kind() {
            Kind::Unknown => return None,
            Kind::Root => return Some(Next::Root),
            Kind::Signal => return self.interrupted(state),
            Kind::FromStackPointer => (state.stack_pointer.wrapping_add(rule.frame() as u64), None),
            Kind::FromFramePointer => (state.frame_pointer.wrapping_add(rule.frame() as u64), None),
            Kind::StoredAtFramePointer => {
                let at = state.frame_pointer.wrapping_add(rule.frame() as u64);
                (self.read(state, at)?, Some(state.frame_pointer.wrapping_add(rule.saved() as u64)))
            }
        };
        if frame <= state.stack_pointer || frame & 7 != 0 {
            return None;
        }
        let address = self.read(state, frame - 8)?;
        let frame_pointer = match (saved, rule.saved()) {
            (Some(at), _) => self.read(state, at)?,
            (None, 0) => state.frame_pointer,
            (None, saved) => self.read(state, frame.wrapping_add(saved as u64))?,
        };
        Some(Next::Caller(State { address, stack_pointer: frame, frame_pointer, interrupted: false }))
    }

    /// The registers that the kernel stored when a signal came: `ucontext_t` at the stack pointer.
    fn interrupted(&mut self, state: &State) -> Option<Next> {
        const FRAME_POINTER: u64 = 40 + 8 * 10;
        const STACK_POINTER: u64 = 40 + 8 * 15;
        const ADDRESS: u64 = 40 + 8 * 16;
        let mut read = |at| self.read(state, state.stack_pointer + at);
        let (frame_pointer, stack_pointer, address) = (read(FRAME_POINTER)?, read(STACK_POINTER)?, read(ADDRESS)?);
        Some(Next::Caller(State { address, stack_pointer, frame_pointer, interrupted: true }))
    }

    /// A word of the stack. `None` if it cannot be read.
    fn read(&mut self, state: &State, at: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        if at & 7 != 0 {
            return None;
        }
        let (mut start, mut end) = self.readable;
        if at < start || at >= end {
            let page = at & !(PAGE - 1);
            let leaf = state.stack_pointer & !(PAGE - 1);
            if !(start..end).contains(&leaf) {
                (start, end) = (leaf, leaf);
            }
            const FAR: u64 = 64 << 20;
            if page < start || page - end.min(page) > FAR {
                // Not on this stack.
                return sys::is_readable(at as usize).then(|| unsafe { *(at as *const u64) });
            }
            while end <= page {
                if !sys::is_readable(end as usize) {
                    return None;
                }
                end += PAGE;
            }
            self.readable = (start, end);
        }
        // SAFETY: the page was read before.
        Some(unsafe { *(at as *const u64) })
    }

    /// Notes the new frames for the next walk. Gives the node of the leaf.
    #[inline]
    fn keep(&mut self, parent: u32, kept: usize, fresh: usize, table: &Table) -> u32 {
        let mut node = if kept > 0 { self.frame(kept - 1).node } else { parent };
        let mut depth = kept;
        for index in (0..fresh).rev() {
            let mut frame = *self.fresh_mut(index);
            if frame.address != 0 {
                node = table.node(node, frame.address + u64::from(frame.interrupted));
            }
            frame.node = node;
            // SAFETY: kept and fresh frames together have room.
            unsafe { *self.frames.get_unchecked_mut(depth) = frame };
            depth += 1;
        }
        self.depth = depth;
        node
    }

    /// Whether the last walk is what a walk without memory gives, and what the compiler's library gives.
    pub fn is_verified(&mut self, start: State, rules: &Rules) -> bool {
        let mut state = start;
        let mut index = self.depth;
        loop {
            if index == 0 {
                return self.is_cut;
            }
            index -= 1;
            if !self.frame(index).is(&state) {
                return false;
            }
            match self.next(&state, rules.at(&state)) {
                Next::Caller(caller) => state = caller,
                Next::Root | Next::Unknown => return index == 0 && crate::verify::agrees(self),
            }
        }
    }

    /// The addresses of the last walk, from the leaf on.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.frames[..self.depth.min(MAX_FRAMES)].iter().rev().map(|frame| frame.address)
    }
}
