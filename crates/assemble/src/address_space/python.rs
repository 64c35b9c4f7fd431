//! The instruction that a Python frame runs.
//!
//! A program that was launched with our library runs each Python function below a stub of its code object
//! (`crates/python/preload`). The frame below a stub is CPython's evaluator, which keeps a pointer to the next instruction in a
//! register or at a fixed place of its frame. Compilers choose the place, so it is found by looking: it is the one that points
//! into the bytecode of the stub's code object nearly always, and that moves most.
//!
//! Around calls the place is another one than at the leaf of a stack, so both are looked for.
//!
//! A register of the evaluator is where a function that it called saved it, as the unwind tables say. No memory of the process is
//! read but the stubs, so nothing depends on when the sample is looked at.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::AddressSpace;
use super::frame_source::FrameSource;
use super::stack_memory::StackMemory;
use super::state::WalkState;
use crate::registers::{GENERAL, PRESERVED, Saved, SavedRegisters};
use crate::target::Target;

/// The code of a stub: `push rbp; mov rbp, rsp; call rcx; pop rbp; ret`, filled up.
pub const STUB: [u8; 16] =
    [0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc];
/// The instruction that stops at a place (`int3`).
const BREAKPOINT: u8 = 0xcc;
/// From a stub to the address and the length of its bytecode.
const DATA_DISTANCE: u64 = 64 << 10;
/// Bytes of an instruction.
const INSTRUCTION: u64 = 2;

/// Words of the evaluator's frame that are looked at, below its canonical frame address.
const WORDS: u64 = 80;
/// The first places are registers, the others are words of the frame.
const PLACES: usize = GENERAL.len() + WORDS as usize;
/// Frames that are looked at before a place is chosen, and at most.
const FEWEST: u32 = 30;
const MOST: u32 = 4000;

/// What is known about the Python frames of a process.
#[derive(Default)]
pub(super) struct PythonFrames {
    /// By return address in it, the stub, if it is one.
    stubs: FxHashMap<u64, Option<Stub>>,
    /// By address of code, where it saved the registers of its caller.
    saved: FxHashMap<u64, SavedRegisters>,
    /// Of evaluators that called something, and of those at the leaf of a stack: compilers keep the pointer elsewhere around calls.
    looks: [Looks; 2],
}

/// The stub of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stub {
    start: u64,
    bytecode: Range<u64>,
}

/// A stub saves the frame pointer, the second register.
const SAVED_BY_STUB: SavedRegisters = [Saved::Kept, Saved::At(-16), Saved::Kept, Saved::Kept, Saved::Kept, Saved::Kept];

/// How often each place pointed into the bytecode.
struct Looks {
    frames: u32,
    /// How often something was known to be there, and how often a pointer into the bytecode.
    known: [u32; PLACES],
    inside: [u32; PLACES],
    moved: [u32; PLACES],
    last: [u64; PLACES],
    chosen: Option<usize>,
}

impl Default for Looks {
    fn default() -> Self {
        Self { frames: 0, known: [0; PLACES], inside: [0; PLACES], moved: [0; PLACES], last: [0; PLACES], chosen: None }
    }
}

impl PythonFrames {
    /// Forgets code that was replaced.
    pub fn forget(&mut self, range: &Range<u64>) {
        self.stubs.retain(|address, _| !range.contains(address));
        self.saved.retain(|address, _| !range.contains(address));
    }
}

impl Looks {
    /// Looks at all places of a frame. The pointer must be at its place in this part of the frames.
    fn add(&mut self, bytecode: &Range<u64>, percent: u32, value: impl Fn(usize) -> Option<u64>) {
        self.frames += 1;
        for place in 0..PLACES {
            // Its start is known to the evaluator, too, and never moves.
            let Some(value) = value(place) else { continue };
            self.known[place] += 1;
            if !points_into(bytecode, value) {
                continue;
            }
            self.inside[place] += 1;
            self.moved[place] += u32::from(self.last[place] != value);
            self.last[place] = value;
        }
        // Code without unwind tables hides registers.
        let is_likely =
            |place: &usize| self.inside[*place] * 100 >= self.known[*place] * percent && self.known[*place] >= FEWEST;
        let likely = (0..PLACES).filter(is_likely);
        self.chosen = likely.max_by_key(|place| (self.moved[*place], self.inside[*place]));
    }
}

/// Whether an address can be that of the next instruction.
fn points_into(bytecode: &Range<u64>, address: u64) -> bool {
    address > bytecode.start && address <= bytecode.end && (address - bytecode.start).is_multiple_of(INSTRUCTION)
}

impl AddressSpace {
    /// The address that stands for a Python function and the instruction that it runs, see [`with_instruction`]. `states` are
    /// those of the stack so far, the stub's last. `None` if it is no stub, or the instruction is unknown.
    pub(super) fn python_frame<S: FrameSource>(
        &mut self,
        states: &[WalkState],
        memory: &StackMemory<'_>,
        source: &mut S,
    ) -> Option<u64> {
        let (here, [below @ .., evaluator]) = states.split_last()? else { return None };
        let pid = memory.stack.ids.pid;
        let stub = self.stub(here.address, pid, source)?;
        let mut value = |space: &mut Self, place: usize| match place.checked_sub(GENERAL.len()) {
            Some(word) => memory.copied_word(here.sp.wrapping_sub(8 * (word as u64 + 1))),
            None => space.register(place, below, *evaluator, memory, source),
        };
        // At the leaf, the evaluator may be at any instruction of its own, and use the register for something else.
        let (kind, percent) = if below.is_empty() { (1, 50) } else { (0, 90) };
        if self.python.looks[kind].frames < MOST {
            let values: Vec<Option<u64>> = (0..PLACES).map(|place| value(self, place)).collect();
            self.python.looks[kind].add(&stub.bytecode, percent, |place| values[place]);
        }
        let next = value(self, self.python.looks[kind].chosen?).filter(|next| points_into(&stub.bytecode, *next))?;
        Some(with_instruction(stub.start, (next - stub.bytecode.start) / INSTRUCTION - 1))
    }

    /// The stub that a return address leads to.
    fn stub<S: FrameSource>(&mut self, address: u64, pid: u32, source: &mut S) -> Option<Stub> {
        if let Some(known) = self.python.stubs.get(&address) {
            return known.clone();
        }
        let start = address & !(STUB.len() as u64 - 1);
        let mut read = |from: u64| {
            let mut bytes = [0; 16];
            (source.target().read_memory(pid, from, &mut bytes) == bytes.len()).then_some(bytes)
        };
        let mut code = read(start)?;
        // Where the function is the step function, the kernel has put its own instruction there.
        if code[0] == BREAKPOINT {
            code[0] = STUB[0];
        }
        let data = (code == STUB).then(|| read(start.wrapping_add(DATA_DISTANCE))).flatten();
        let stub = data.map(|data| {
            let [start_of_code, bytes] =
                [&data[..8], &data[8..]].map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
            Stub { start, bytecode: start_of_code..start_of_code.saturating_add(bytes) }
        });
        self.python.stubs.insert(address, stub.clone());
        stub
    }

    /// A register that the evaluator has: the next function below that saved it has its value.
    fn register<S: FrameSource>(
        &mut self,
        register: usize,
        below: &[WalkState],
        evaluator: WalkState,
        memory: &StackMemory<'_>,
        source: &mut S,
    ) -> Option<u64> {
        let mut above = evaluator;
        if register >= PRESERVED && !below.is_empty() {
            return None;
        }
        for (index, state) in below.iter().enumerate().rev() {
            // A return address is behind the call, which may be the last instruction.
            let at = state.address.wrapping_sub(u64::from(index > 0));
            match self.saved_registers(at, memory.stack.ids.pid, source)[register] {
                Saved::Kept => above = *state,
                Saved::At(offset) => return memory.copied_word(above.sp.wrapping_add_signed(offset)),
                Saved::Unknown => return None,
            }
        }
        memory.stack.registers.general[register]
    }

    fn saved_registers<S: FrameSource>(&mut self, address: u64, pid: u32, source: &mut S) -> SavedRegisters {
        if let Some(known) = self.python.saved.get(&address) {
            return *known;
        }
        let mapping = self.find(address).cloned();
        let saved = match mapping.and_then(|mapping| source.saved_registers(&mapping, address, pid)) {
            Some(saved) => saved,
            None if self.stub(address, pid, source).is_some() => SAVED_BY_STUB,
            None => [Saved::Unknown; PRESERVED],
        };
        self.python.saved.insert(address, saved);
        saved
    }
}

/// Puts the number of an instruction into the high bits of a stub's address, which addresses of programs do not use. Instructions
/// beyond them have the last number.
fn with_instruction(stub: u64, instruction: u64) -> u64 {
    stub | (instruction + 1).min(0xffff) << 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_that_moves_most_within_the_bytecode_is_chosen() {
        let mut looks = Looks::default();
        let bytecode = 1000..1100;
        for frame in 0..FEWEST as u64 {
            assert_eq!(looks.chosen, None, "too few frames");
            looks.add(&bytecode, 90, |place| match place {
                0 => Some(1000),
                3 => Some(1002),
                5 => Some(1002 + 2 * (frame % 40)),
                7 => Some(1002 + 2 * (frame / 2 % 5)),
                9 => Some(frame),
                11 => Some(1003 + 2 * (frame % 40)),
                _ => None,
            });
        }
        assert_eq!(looks.chosen, Some(5));
    }

    #[test]
    fn a_place_that_points_elsewhere_more_than_one_time_in_ten_is_not_chosen() {
        let mut looks = Looks::default();
        for frame in 0..2 * FEWEST as u64 {
            looks.add(&(1000..1100), 90, |_| Some(if frame % 8 == 0 { 7 } else { 1002 + 2 * (frame % 40) }));
        }
        assert_eq!(looks.chosen, None);
    }

    #[test]
    fn a_register_counts_where_it_is_known() {
        let mut looks = Looks::default();
        for frame in 0..3 * u64::from(FEWEST) {
            looks.add(&(1000..1100), 90, |place| (place == 5 && frame % 3 == 0).then_some(1002 + 2 * (frame % 40)));
        }
        assert_eq!(looks.chosen, Some(5));
    }

    #[test]
    fn the_next_instruction_is_behind_the_start_and_even() {
        let inside = |address| points_into(&(1000..1010), address);
        assert_eq!([1000, 1001, 1002, 1010, 1012].map(inside), [false, false, true, true, false]);
    }

    #[test]
    fn an_instruction_is_in_the_high_bits_of_its_stub() {
        assert_eq!(with_instruction(0x7fff_1230, 0), 0x0001_0000_7fff_1230);
        assert_eq!(with_instruction(0x7fff_1230, 1 << 20), 0xffff_0000_7fff_1230);
    }
}
