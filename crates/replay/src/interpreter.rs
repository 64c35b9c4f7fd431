//! Runs a call on a copy of the program's memory, instruction by instruction.
//!
//! Jumps, the stack and string instructions are done here. All others run on the CPU itself, with their memory in a scratch
//! buffer.

use std::hash::Hasher as _;
use std::io;
use std::ops::Range;
use std::time::Instant;

use iced_x86::{ConditionCode, Instruction, OpKind, Register};
use rustc_hash::{FxHashMap, FxHasher};

use crate::Stop;
use crate::library::{self, Function};
use crate::memory::Memory;
use crate::native::{Code, R8, R9, RAX, RBP, RCX, RDI, RDX, RSI, RSP, Registers};
use crate::step::{Action, Native, Pushed, SCRATCH, Step, Steps, VECTOR};

/// Bits of the registers with arguments: six general ones, and eight vector registers.
const ARGUMENTS: u32 = 1 << RDI | 1 << RSI | 1 << RDX | 1 << RCX | 1 << R8 | 1 << R9 | 0xff << VECTOR;

/// Bits of the registers with results: two general ones, and two vector registers.
const RESULTS: u32 = 1 << RAX | 1 << RDX | 3 << VECTOR;

/// Bits of the registers that code can get values in: all but the stack pointer.
const REGISTERS: u32 = !(1 << RSP);

/// Inlined code has ended after this number of instructions outside of it: compilers mix it with the code around it.
const OUTSIDE: u32 = 16;

/// Instructions between two looks at the clock.
const LOOK_AT_CLOCK: u64 = 1 << 16;

#[repr(align(64))]
struct Scratch([u8; SCRATCH]);

/// What a call did.
pub struct Done {
    /// Instructions that were run.
    pub instructions: u64,
    /// Hash of all jumps.
    pub path: u64,
    /// The registers that were read before they were written, as they were: the general ones first.
    pub arguments: Vec<u64>,
    /// Bits of the general ones.
    pub reads: u32,
    /// The registers that can hold results, as they are at the end.
    pub results: Vec<u64>,
    /// What of these the caller uses, as far as its next instructions tell; hashed. `None` if it uses nothing.
    pub answer: Option<u64>,
    /// Calls of mathematical functions.
    pub mathematics: Vec<Asked>,
}

/// A call of a mathematical function from outside of their library.
pub struct Asked {
    /// Hash of the function and of the numbers that it reads.
    pub key: u64,
    pub instructions: u64,
}

/// The call of a mathematical function that runs.
struct Asking {
    function: u64,
    /// Where its return address is.
    stack: u64,
    /// The first two vector registers, as they were.
    numbers: [u64; 2],
    /// Bits of those that were neither read nor written, and of those that were read.
    pending: u32,
    read: u32,
    /// Instructions before it.
    before: u64,
}

impl Asking {
    /// Bits of the registers with numbers. Functions of more are rare.
    const NUMBERS: u32 = 3 << VECTOR;

    fn new(registers: &Registers, before: u64) -> Self {
        let numbers = [0, 1].map(|number| registers.vectors.low(number)[0]);
        let stack = registers.general[RSP];
        Self { function: registers.ip, stack, numbers, pending: Self::NUMBERS, read: 0, before }
    }

    fn runs(&mut self, step: &Step) {
        self.read |= self.pending & step.reads;
        self.pending &= !(step.reads | step.writes);
    }

    fn done(self, instructions: u64) -> Asked {
        let mut key = FxHasher::default();
        key.write_u64(self.function);
        for (at, number) in self.numbers.into_iter().enumerate().filter(|(at, _)| self.read >> (VECTOR as usize + at) & 1 != 0) {
            key.write_usize(at);
            key.write_u64(number);
        }
        Asked { key: key.finish(), instructions: instructions - self.before }
    }
}

/// The results of a call that its caller uses.
struct AskedFor {
    /// Bits of their registers.
    registers: u32,
    /// Whether only the lowest byte of RAX is used: a yes or no. The others hold anything.
    is_byte: bool,
}

impl AskedFor {
    /// Hash of the results; `None` if none is used.
    fn answer(&self, registers: &Registers) -> Option<u64> {
        let mut answer = FxHasher::default();
        for (number, bits) in [(RAX, if self.is_byte { 0xff } else { u64::MAX }), (RDX, u64::MAX)] {
            if self.registers >> number & 1 != 0 {
                answer.write_u64(registers.general[number] & bits);
            }
        }
        for number in (0..2).filter(|number| self.registers >> VECTOR >> number & 1 != 0) {
            answer.write_u64(registers.vectors.low(number)[0]);
        }
        (self.registers != 0).then(|| answer.finish())
    }
}

/// Whether a step reads AL alone.
fn reads_byte(step: &Step) -> bool {
    let Action::Native(native) = &step.action else { return false };
    let instruction = &native.instruction;
    (0..instruction.op_count()).any(|at| instruction.op_kind(at) == OpKind::Register && instruction.op_register(at) == Register::AL)
}

/// How far a call is run.
pub struct Limit<'a> {
    /// Instructions at most.
    pub instructions: u64,
    /// When it is given up.
    pub until: Instant,
    /// Addresses of inlined code, which ends outside of them; empty for a function, which ends with its return.
    pub inlined: &'a [Range<u64>],
}

/// Instructions of a program, decoded once.
pub struct Interpreter {
    decoder: Steps,
    steps: Vec<Step>,
    /// By address.
    indices: FxHashMap<u64, usize>,
    library: FxHashMap<u64, Function>,
    /// Where the code of mathematical functions is.
    mathematics: Vec<Range<u64>>,
}

impl Interpreter {
    /// `library` has the functions that are not run but done here, by their addresses.
    ///
    /// # Errors
    /// If there is no memory for code.
    pub fn new(library: FxHashMap<u64, Function>) -> io::Result<Self> {
        Ok(Self {
            decoder: Steps::new(Code::new()?),
            steps: Vec::new(),
            indices: FxHashMap::default(),
            library,
            mathematics: Vec::new(),
        })
    }

    /// Notes calls of the functions at these addresses: their results depend on nothing but numbers.
    #[must_use]
    pub fn with_mathematics(self, mathematics: Vec<Range<u64>>) -> Self {
        Self { mathematics, ..self }
    }

    /// Runs a call, from its first instruction to its end.
    ///
    /// # Errors
    /// If it cannot be run to its end.
    pub fn run(&mut self, registers: &mut Registers, memory: &mut Memory<'_>, limit: &Limit<'_>) -> Result<Done, Stop> {
        let first_stack = registers.general[RSP];
        let initial = registers.clone();
        let is_inlined = !limit.inlined.is_empty();
        let mut pending = if is_inlined { REGISTERS } else { ARGUMENTS };
        let mut outside = 0;
        // The path, the memory and the instructions where inlined code was left last.
        let mut left = (FxHasher::default(), memory.extent(), 0);
        let mut used: u32 = 0;
        let mut path = FxHasher::default();
        let mut scratch = Scratch([0; SCRATCH]);
        let (mut asking, mut mathematics): (Option<Asking>, Vec<Asked>) = (None, Vec::new());
        if self.decoder.code.is_full() {
            self.decoder.code.clear();
            self.steps.clear();
            self.indices.clear();
        }
        let mut at = self.index(registers.ip, memory)?;
        for instructions in 1..=limit.instructions {
            if instructions.is_multiple_of(LOOK_AT_CLOCK) && Instant::now() > limit.until {
                break;
            }
            let step = &self.steps[at];
            if pending != 0 {
                used |= pending & step.reads;
                pending &= !(step.reads | step.writes);
            }
            if let Some(asking) = &mut asking {
                asking.runs(step);
            }
            let mut may_ask = false;
            registers.ip = step.next;
            match &step.action {
                Action::Native(native) => self.decoder.code.native(native, registers, memory, &mut scratch)?,
                Action::Skip => {}
                Action::Address { instruction, register, bytes } => {
                    let address = address(instruction, 1, registers)?;
                    let place = &mut registers.general[*register];
                    *place = match bytes {
                        8 => address,
                        4 => address & 0xffff_ffff,
                        _ => *place & !0xffff | address & 0xffff,
                    };
                }
                Action::Jump(target) => registers.ip = *target,
                Action::Branch { condition, target } => {
                    if holds(*condition, registers.flags) {
                        registers.ip = *target;
                    }
                    path.write_u64(registers.ip);
                }
                Action::JumpTo(instruction) => {
                    may_ask = true;
                    registers.ip = operand(instruction, registers, memory)?;
                    path.write_u64(registers.ip);
                }
                Action::Call(target) => {
                    may_ask = true;
                    push(registers, memory, step.next)?;
                    registers.ip = *target;
                }
                Action::CallTo(instruction) => {
                    may_ask = true;
                    let target = operand(instruction, registers, memory)?;
                    push(registers, memory, step.next)?;
                    registers.ip = target;
                    path.write_u64(target);
                }
                Action::Return { pops } => registers.ip = return_to(registers, memory, *pops)?,
                Action::Push(what) => {
                    let value = match what {
                        Pushed::Register(number) => registers.general[*number],
                        Pushed::Value(value) => *value,
                        Pushed::Memory(instruction) => operand(instruction, registers, memory)?,
                    };
                    push(registers, memory, value)?;
                }
                Action::Pop(number) => {
                    let value = memory.word(registers.general[RSP])?;
                    registers.general[RSP] = registers.general[RSP].wrapping_add(8);
                    registers.general[*number] = value;
                }
                Action::Leave => {
                    registers.general[RSP] = registers.general[RBP];
                    registers.general[RBP] = memory.word(registers.general[RSP])?;
                    registers.general[RSP] = registers.general[RSP].wrapping_add(8);
                }
                Action::Copy { bytes, repeats } => {
                    self::repeat(registers, *repeats, |registers| {
                        let mut unit = [0; 8];
                        let unit = &mut unit[..*bytes as usize];
                        memory.read(registers.general[RSI], unit)?;
                        memory.write(registers.general[RDI], unit)?;
                        registers.general[RSI] = registers.general[RSI].wrapping_add(*bytes);
                        registers.general[RDI] = registers.general[RDI].wrapping_add(*bytes);
                        Ok(())
                    })?;
                }
                Action::Store { bytes, repeats } => {
                    self::repeat(registers, *repeats, |registers| {
                        let unit = registers.general[0].to_le_bytes();
                        memory.write(registers.general[RDI], &unit[..*bytes as usize])?;
                        registers.general[RDI] = registers.general[RDI].wrapping_add(*bytes);
                        Ok(())
                    })?;
                }
                Action::Library(function) => {
                    let function = *function;
                    library::call(function, registers, memory)?;
                    registers.ip = return_to(registers, memory, 0)?;
                }
                Action::End(stop) => return Err(stop.clone()),
            }
            let stack = registers.general[RSP];
            if may_ask && asking.is_none() && self.mathematics.iter().any(|range| range.contains(&registers.ip)) {
                asking = Some(Asking::new(registers, instructions));
            }
            if let Some(done) = asking.take_if(|asking| stack > asking.stack) {
                mathematics.push(done.done(instructions));
            }
            // A loop around inlined code comes back to its start: that is the next call.
            let begins_again = is_inlined && outside > 0 && stack == first_stack && registers.ip == initial.ip;
            if is_inlined && stack == first_stack && !begins_again {
                let is_inside = limit.inlined.iter().any(|range| range.contains(&registers.ip));
                outside = if is_inside { 0 } else { outside + 1 };
                if outside == 1 {
                    left = (path.clone(), memory.extent(), instructions);
                }
            }
            // The return address of the call itself was taken, or inlined code was left.
            if stack > first_stack || outside > OUTSIDE || begins_again {
                let mut instructions = instructions;
                if outside > 0 {
                    path = left.0;
                    memory.cut(left.1);
                    instructions = left.2;
                }
                let arguments = arguments(&initial, used);
                let results = results(registers);
                let path = path.finish();
                let answer = self.asked_for(registers.ip, memory).answer(registers);
                return Ok(Done { instructions, path, arguments, reads: used & 0xffff, results, answer, mathematics });
            }
            let link = &step.links[usize::from(registers.ip != step.next)];
            let (ip, index) = link.get();
            if ip == registers.ip {
                at = index;
                continue;
            }
            let next = self.index(registers.ip, memory)?;
            self.steps[at].links[usize::from(registers.ip != self.steps[at].next)].set((registers.ip, next));
            at = next;
        }
        Err(Stop::TooLong)
    }

    /// The results that code reads from this address on, as far as it goes straight on. If it reads none until it branches or returns, those that
    /// are still there count, too.
    fn asked_for(&mut self, mut ip: u64, memory: &mut Memory<'_>) -> AskedFor {
        /// Instructions that are looked at.
        const AHEAD: usize = 32;
        let (mut pending, mut asked) = (RESULTS, AskedFor { registers: 0, is_byte: false });
        for _ in 0..AHEAD {
            let Ok(at) = self.index(ip, memory) else { break };
            let step = &self.steps[at];
            let new = pending & step.reads;
            asked.registers |= new;
            asked.is_byte |= new & 1 << RAX != 0 && reads_byte(step);
            pending &= !(step.reads | step.writes);
            ip = match step.action {
                Action::Jump(target) => target,
                // A function that is called keeps none of them.
                Action::Call(_) | Action::CallTo(_) | Action::Library(_) => return asked,
                Action::Branch { .. } | Action::Return { .. } | Action::JumpTo(_) | Action::End(_) => break,
                _ => step.next,
            };
            if pending == 0 {
                break;
            }
        }
        if asked.registers == 0 {
            asked.registers = pending;
        }
        asked
    }

    /// Index of the step at an address.
    fn index(&mut self, ip: u64, memory: &mut Memory<'_>) -> Result<usize, Stop> {
        if let Some(index) = self.indices.get(&ip) {
            return Ok(*index);
        }
        if self.decoder.code.is_full() {
            // The next call starts with none.
            return Err(Stop::TooLong);
        }
        let step = match self.library.get(&ip) {
            Some(function) => Step::new(Action::Library(*function), ip, 0, 0),
            None => self.decoder.step(ip, memory)?,
        };
        self.steps.push(step);
        self.indices.insert(ip, self.steps.len() - 1);
        Ok(self.steps.len() - 1)
    }
}

impl Code {
    fn native(
        &self,
        native: &Native,
        registers: &mut Registers,
        memory: &mut Memory<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Stop> {
        let mut place = 0;
        if let Some(operand) = &native.memory {
            place = address(&native.instruction, operand.number, registers)?;
            let bytes = &mut scratch.0[..operand.bytes];
            if operand.read {
                memory.read(place, bytes)?;
            }
        }
        let number = |register: Register| register.full_register().number();
        if native.divides {
            let divisor = match &native.memory {
                Some(operand) => scratch.0[..operand.bytes].iter().any(|byte| *byte != 0),
                None => registers.general[number(native.instruction.op0_register())] != 0,
            };
            if !divisor {
                return Err(Stop::Instruction(native.instruction.ip()));
            }
        }
        let (mut kept, mut kept_stack) = (0, 0);
        if let Some(number) = native.scratch {
            kept = std::mem::replace(&mut registers.general[number], scratch.0.as_mut_ptr() as u64);
        }
        if let Some(number) = native.stack {
            let stack = registers.general[RSP];
            kept_stack = std::mem::replace(&mut registers.general[number], stack);
        }
        // SAFETY: its memory is the scratch buffer, and `Interpreter::native` refuses what may not run.
        unsafe { self.run(native.copied, registers, native.uses) };
        if let Some(number) = native.stack {
            registers.general[RSP] = std::mem::replace(&mut registers.general[number], kept_stack);
        }
        if let Some(number) = native.scratch {
            registers.general[number] = kept;
        }
        match &native.memory {
            Some(operand) if operand.write => memory.write(place, &scratch.0[..operand.bytes]),
            _ => Ok(()),
        }
    }
}

fn arguments(initial: &Registers, used: u32) -> Vec<u64> {
    let general = (0..16).filter(|number| used >> number & 1 != 0).map(|number| initial.general[number]);
    let vectors = (0..16).filter(|number| used >> (VECTOR + number) & 1 != 0);
    general.chain(vectors.flat_map(|number| initial.vectors.low(number as usize))).collect()
}

/// RAX, RDX and the first two vector registers. Inlined code can have its results in others, but its memory tells as much.
fn results(registers: &Registers) -> Vec<u64> {
    let vectors = [0, 1].map(|number| registers.vectors.low(number));
    [registers.general[RAX], registers.general[RDX]].into_iter().chain(vectors.into_iter().flatten()).collect()
}

fn address(instruction: &Instruction, number: u32, registers: &Registers) -> Result<u64, Stop> {
    let value = |register: Register, _, _| match register {
        Register::FS => Some(registers.fs),
        Register::GS => Some(registers.gs),
        segment if segment.is_segment_register() => Some(0),
        part => {
            let full = part.full_register();
            let value = full.is_gpr64().then(|| registers.general[full.number()])?;
            Some(if part.size() == 4 { value & 0xffff_ffff } else { value })
        }
    };
    let address = instruction.virtual_address(number, 0, value);
    address.ok_or_else(|| Stop::Instruction(instruction.ip()))
}

/// The target of an indirect jump or call, or the value of a push.
fn operand(instruction: &Instruction, registers: &Registers, memory: &mut Memory<'_>) -> Result<u64, Stop> {
    if instruction.op0_kind() == OpKind::Register {
        return Ok(registers.general[instruction.op0_register().full_register().number()]);
    }
    memory.word(address(instruction, 0, registers)?)
}

fn push(registers: &mut Registers, memory: &mut Memory<'_>, value: u64) -> Result<(), Stop> {
    registers.general[RSP] = registers.general[RSP].wrapping_sub(8);
    memory.write(registers.general[RSP], &value.to_le_bytes())
}

fn return_to(registers: &mut Registers, memory: &mut Memory<'_>, pops: u64) -> Result<u64, Stop> {
    let mut target = [0; 8];
    memory.peek(registers.general[RSP], &mut target)?;
    registers.general[RSP] = registers.general[RSP].wrapping_add(8 + pops);
    Ok(u64::from_le_bytes(target))
}

/// Does a string instruction once, or as often as RCX says.
fn repeat(
    registers: &mut Registers,
    repeats: bool,
    mut once: impl FnMut(&mut Registers) -> Result<(), Stop>,
) -> Result<(), Stop> {
    const BACKWARDS: u64 = 1 << 10;
    if registers.flags & BACKWARDS != 0 {
        return Err(Stop::Instruction(registers.ip));
    }
    if !repeats {
        return once(registers);
    }
    while registers.general[RCX] != 0 {
        once(registers)?;
        registers.general[RCX] -= 1;
    }
    Ok(())
}

fn holds(condition: ConditionCode, flags: u64) -> bool {
    let flag = |bit: u32| flags >> bit & 1 != 0;
    let (carry, parity, zero, sign, overflow) = (flag(0), flag(2), flag(6), flag(7), flag(11));
    match condition {
        ConditionCode::o => overflow,
        ConditionCode::no => !overflow,
        ConditionCode::b => carry,
        ConditionCode::ae => !carry,
        ConditionCode::e => zero,
        ConditionCode::ne => !zero,
        ConditionCode::be => carry || zero,
        ConditionCode::a => !carry && !zero,
        ConditionCode::s => sign,
        ConditionCode::ns => !sign,
        ConditionCode::p => parity,
        ConditionCode::np => !parity,
        ConditionCode::l => sign != overflow,
        ConditionCode::ge => sign == overflow,
        ConditionCode::le => zero || sign != overflow,
        ConditionCode::g => !zero && sign == overflow,
        ConditionCode::None => false,
    }
}
