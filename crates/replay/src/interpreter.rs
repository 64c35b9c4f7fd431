//! Runs a call on a copy of the program's memory, instruction by instruction.
//!
//! Jumps, the stack and string instructions are done here. All others run on the CPU itself, with their memory in a scratch
//! buffer.

use std::cell::Cell;
use std::hash::Hasher as _;
use std::io;
use std::ops::Range;
use std::time::Instant;

use iced_x86::{
    ConditionCode, CpuidFeature, Decoder, DecoderOptions, Encoder, EncodingKind, FlowControl, Instruction,
    InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use rustc_hash::{FxHashMap, FxHasher};

use crate::Stop;
use crate::library::{self, Function};
use crate::memory::Memory;
use crate::native::{Code, Copied, Uses, R8, R9, RBP, RCX, RDI, RDX, RSI, RSP, Registers};

/// Bytes of the largest operand in memory.
const SCRATCH: usize = 64;

/// Bits of the registers with arguments: six general ones, and eight vector registers.
const ARGUMENTS: u32 = 1 << RDI | 1 << RSI | 1 << RDX | 1 << RCX | 1 << R8 | 1 << R9 | 0xff << VECTOR;

/// Bits of the registers that code can get values in: all but the stack pointer.
const REGISTERS: u32 = !(1 << RSP);

/// Inlined code has ended after this number of instructions outside of it: compilers mix it with the code around it.
const OUTSIDE: u32 = 16;

/// Instructions between two looks at the clock.
const LOOK_AT_CLOCK: u64 = 1 << 16;

/// Position of the first vector register in the masks of [`Step`].
const VECTOR: u32 = 16;

/// An instruction, ready to run.
struct Step {
    action: Action,
    next: u64,
    /// Bits of the general registers and, from [`VECTOR`] on, of the vector registers.
    reads: u32,
    writes: u32,
    /// Address and index of the step that came last after this one: without a jump, and after one.
    links: [Cell<(u64, usize)>; 2],
}

impl Step {
    fn new(action: Action, next: u64, reads: u32, writes: u32) -> Self {
        // No code is at the last address.
        let unknown = || Cell::new((u64::MAX, 0));
        Self { action, next, reads, writes, links: [unknown(), unknown()] }
    }
}

enum Action {
    /// Runs on the CPU.
    Native(Box<Native>),
    Skip,
    Address { instruction: Box<Instruction>, register: usize, bytes: usize },
    Jump(u64),
    Branch { condition: ConditionCode, target: u64 },
    JumpTo(Box<Instruction>),
    Call(u64),
    CallTo(Box<Instruction>),
    Return { pops: u64 },
    Push(Pushed),
    Pop(usize),
    Leave,
    /// Copies `bytes` at a time.
    Copy { bytes: u64, repeats: bool },
    /// Stores RAX.
    Store { bytes: u64, repeats: bool },
    Library(Function),
    /// Nothing that can be replayed.
    End(Stop),
}

enum Pushed {
    Register(usize),
    Value(u64),
    Memory(Box<Instruction>),
}

struct Native {
    instruction: Instruction,
    copied: Copied,
    uses: Uses,
    /// A register that the instruction does not use: it holds the address of the scratch buffer.
    scratch: Option<usize>,
    /// Another one, in place of the stack pointer.
    stack: Option<usize>,
    memory: Option<Operand>,
    divides: bool,
}

/// An operand in memory.
struct Operand {
    number: u32,
    bytes: usize,
    read: bool,
    write: bool,
}

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
    code: Code,
    steps: Vec<Step>,
    /// By address.
    indices: FxHashMap<u64, usize>,
    factory: InstructionInfoFactory,
    library: FxHashMap<u64, Function>,
}

impl Interpreter {
    /// `library` has the functions that are not run but done here, by their addresses.
    ///
    /// # Errors
    /// If there is no memory for code.
    pub fn new(library: FxHashMap<u64, Function>) -> io::Result<Self> {
        Ok(Self {
            code: Code::new()?,
            steps: Vec::new(),
            indices: FxHashMap::default(),
            factory: InstructionInfoFactory::new(),
            library,
        })
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
        // The path and the memory where inlined code was left last.
        let mut left = (FxHasher::default(), memory.extent());
        let mut used: u32 = 0;
        let mut path = FxHasher::default();
        let mut scratch = Scratch([0; SCRATCH]);
        if self.code.is_full() {
            self.code.clear();
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
            registers.ip = step.next;
            match &step.action {
                Action::Native(native) => self.code.native(native, registers, memory, &mut scratch)?,
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
                    registers.ip = operand(instruction, registers, memory)?;
                    path.write_u64(registers.ip);
                }
                Action::Call(target) => {
                    push(registers, memory, step.next)?;
                    registers.ip = *target;
                }
                Action::CallTo(instruction) => {
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
            if is_inlined && stack == first_stack {
                let is_inside = limit.inlined.iter().any(|range| range.contains(&registers.ip));
                outside = if is_inside { 0 } else { outside + 1 };
                if outside == 1 {
                    left = (path.clone(), memory.extent());
                }
            }
            // The return address of the call itself was taken, or inlined code was left.
            if stack > first_stack || outside > OUTSIDE {
                if outside > 0 {
                    path = left.0;
                    memory.cut(left.1);
                }
                let arguments = arguments(&initial, used);
                return Ok(Done { instructions, path: path.finish(), arguments, reads: used & 0xffff });
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

    /// Index of the step at an address.
    fn index(&mut self, ip: u64, memory: &mut Memory<'_>) -> Result<usize, Stop> {
        if let Some(index) = self.indices.get(&ip) {
            return Ok(*index);
        }
        if self.code.is_full() {
            // The next call starts with none.
            return Err(Stop::TooLong);
        }
        let step = self.decode(ip, memory)?;
        self.steps.push(step);
        self.indices.insert(ip, self.steps.len() - 1);
        Ok(self.steps.len() - 1)
    }

    fn decode(&mut self, ip: u64, memory: &mut Memory<'_>) -> Result<Step, Stop> {
        /// Bytes of the longest instruction.
        const LONGEST: usize = 15;
        if let Some(function) = self.library.get(&ip) {
            return Ok(Step::new(Action::Library(*function), ip, 0, 0));
        }
        let mut bytes = [0; LONGEST];
        // The last instruction of a mapping can be shorter.
        let rest = 4096 - ip as usize % 4096;
        if memory.peek(ip, &mut bytes).is_err() {
            memory.peek(ip, &mut bytes[..rest.min(LONGEST)])?;
        }
        let instruction = Decoder::with_ip(64, &bytes, ip, DecoderOptions::NONE).decode();
        let (mut reads, mut writes) = (0, 0);
        for one in self.factory.info(&instruction).used_registers() {
            let Some(bit) = bit(one.register()) else { continue };
            match one.access() {
                OpAccess::Read | OpAccess::CondRead => reads |= bit,
                OpAccess::Write | OpAccess::CondWrite => writes |= bit,
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (reads, writes) = (reads | bit, writes | bit),
                OpAccess::None | OpAccess::NoMemAccess => {}
            }
        }
        // What is pushed is kept for the caller, and what is cleared is not looked at.
        if matches!(instruction.mnemonic(), Mnemonic::Push | Mnemonic::Vzeroupper) {
            reads = 0;
        }
        let action = self.action(&instruction).unwrap_or_else(Action::End);
        Ok(Step::new(action, instruction.next_ip(), reads, writes))
    }

    fn action(&mut self, instruction: &Instruction) -> Result<Action, Stop> {
        let unknown = || Stop::Instruction(format!("{:?}", instruction.code()));
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        if instruction.is_invalid() {
            return Err(unknown());
        }
        let op0 = instruction.op0_kind();
        let boxed = || Box::new(*instruction);
        let general = |register: Register| {
            (register.is_gpr64()).then(|| register.number()).ok_or_else(unknown)
        };
        Ok(match instruction.mnemonic() {
            Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int => return Err(Stop::Kernel),
            Mnemonic::Nop
            | Mnemonic::Endbr64
            | Mnemonic::Pause
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchnta
            | Mnemonic::Prefetchw => Action::Skip,
            Mnemonic::Lea => {
                let register = instruction.op0_register();
                Action::Address {
                    instruction: boxed(),
                    register: register.full_register().number(),
                    bytes: register.size(),
                }
            }
            Mnemonic::Push => Action::Push(match op0 {
                OpKind::Register => Pushed::Register(general(instruction.op0_register())?),
                OpKind::Immediate8to64 | OpKind::Immediate32to64 => Pushed::Value(instruction.immediate(0)),
                OpKind::Memory => Pushed::Memory(boxed()),
                _ => return Err(unknown()),
            }),
            Mnemonic::Pop if op0 == OpKind::Register => Action::Pop(general(instruction.op0_register())?),
            Mnemonic::Leave => Action::Leave,
            Mnemonic::Movsb => Action::Copy { bytes: 1, repeats },
            Mnemonic::Movsw => Action::Copy { bytes: 2, repeats },
            Mnemonic::Movsd if op0 == OpKind::MemoryESRDI => Action::Copy { bytes: 4, repeats },
            Mnemonic::Movsq => Action::Copy { bytes: 8, repeats },
            Mnemonic::Stosb => Action::Store { bytes: 1, repeats },
            Mnemonic::Stosw => Action::Store { bytes: 2, repeats },
            Mnemonic::Stosd => Action::Store { bytes: 4, repeats },
            Mnemonic::Stosq => Action::Store { bytes: 8, repeats },
            _ => match instruction.flow_control() {
                FlowControl::Next => Action::Native(Box::new(self.native(instruction).ok_or_else(unknown)?)),
                FlowControl::UnconditionalBranch if op0 == OpKind::NearBranch64 => {
                    Action::Jump(instruction.near_branch_target())
                }
                FlowControl::ConditionalBranch if instruction.condition_code() != ConditionCode::None => {
                    Action::Branch {
                        condition: instruction.condition_code(),
                        target: instruction.near_branch_target(),
                    }
                }
                FlowControl::IndirectBranch => Action::JumpTo(boxed()),
                FlowControl::Call if op0 == OpKind::NearBranch64 => Action::Call(instruction.near_branch_target()),
                FlowControl::IndirectCall => Action::CallTo(boxed()),
                FlowControl::Return => Action::Return {
                    pops: if instruction.op_count() == 1 { instruction.immediate(0) } else { 0 },
                },
                _ => return Err(unknown()),
            },
        })
    }

    /// Copies an instruction so that it can run here. `None` if it cannot.
    fn native(&mut self, instruction: &Instruction) -> Option<Native> {
        let refused = matches!(
            instruction.mnemonic(),
            Mnemonic::Rdfsbase
                | Mnemonic::Rdgsbase
                | Mnemonic::Wrfsbase
                | Mnemonic::Wrgsbase
                | Mnemonic::Pop
                | Mnemonic::Pushfq
                | Mnemonic::Popfq
                | Mnemonic::Enter
                | Mnemonic::Xlatb
                | Mnemonic::Maskmovq
                | Mnemonic::Maskmovdqu
                | Mnemonic::Vmaskmovdqu
                | Mnemonic::Xgetbv
                | Mnemonic::Rdpkru
                | Mnemonic::Wrpkru
                | Mnemonic::Std
        );
        let is_string = (0..instruction.op_count()).any(|number| {
            !matches!(instruction.op_kind(number), OpKind::Register | OpKind::Memory | OpKind::NearBranch64)
                && !matches!(
                    instruction.op_kind(number),
                    OpKind::Immediate8
                        | OpKind::Immediate8_2nd
                        | OpKind::Immediate16
                        | OpKind::Immediate32
                        | OpKind::Immediate64
                        | OpKind::Immediate8to16
                        | OpKind::Immediate8to32
                        | OpKind::Immediate8to64
                        | OpKind::Immediate32to64
                )
        });
        if refused || is_string || instruction.is_privileged() || instruction.is_vsib() {
            return None;
        }
        let info = self.factory.info(instruction);
        let mut free = [true; 16];
        let mut uses = Uses::General;
        for one in info.used_registers() {
            let register = one.register();
            let full = register.full_register();
            if full.is_gpr64() {
                free[full.number()] = false;
            } else if register.is_vector_register() {
                // Other encodings than that of AVX-512 only clear what they do not reach.
                uses = if uses == Uses::All { uses } else { Uses::Avx };
            } else if !register.is_segment_register() && !register.is_ip() {
                uses = Uses::All;
            }
        }
        let of_x87 = |feature: &CpuidFeature| matches!(feature, CpuidFeature::FPU | CpuidFeature::FPU287 | CpuidFeature::FPU387);
        let is_usual = matches!(instruction.encoding(), EncodingKind::Legacy | EncodingKind::VEX);
        let has_modes = matches!(instruction.mnemonic(), Mnemonic::Ldmxcsr | Mnemonic::Stmxcsr);
        if !is_usual || has_modes || instruction.cpuid_features().iter().any(of_x87) {
            uses = Uses::All;
        }
        let number = (0..instruction.op_count()).find(|number| instruction.op_kind(*number) == OpKind::Memory);
        let accesses: Vec<OpAccess> = info.used_memory().iter().map(|one| one.access()).collect();
        let memory = match number {
            Some(number) => {
                let [access] = accesses[..] else { return None };
                let bytes = instruction.memory_size().size();
                if bytes == 0 || bytes > SCRATCH || tests_bits(instruction, number) {
                    return None;
                }
                // Of what is written in part, the rest is read first.
                let write = !matches!(access, OpAccess::Read | OpAccess::CondRead);
                Some(Operand { number, bytes, read: access != OpAccess::Write, write })
            }
            None if accesses.is_empty() => None,
            None => return None,
        };
        // Registers above the seventh need a prefix, which instructions on AH to DH cannot have.
        free[RSP] = false;
        let has_high = (0..instruction.op_count()).any(|at| {
            instruction.op_kind(at) == OpKind::Register
                && matches!(instruction.op_register(at), Register::AH | Register::BH | Register::CH | Register::DH)
        });
        let order: &[usize] = if has_high { &[3, 6, 7, 0, 1, 2] } else { &[3, 6, 7, 0, 1, 2, 8, 9, 10, 11, 14, 15] };
        let mut chosen = order.iter().copied().filter(|number| free[*number]);
        let mut copy = *instruction;
        let scratch = memory.is_some().then(|| chosen.next());
        if let Some(scratch) = scratch {
            copy.set_memory_base(register(scratch?));
            copy.set_memory_index(Register::None);
            copy.set_memory_index_scale(1);
            copy.set_memory_displacement64(0);
            copy.set_memory_displ_size(0);
            copy.set_segment_prefix(Register::None);
        }
        let uses_stack = |at: &u32| {
            instruction.op_kind(*at) == OpKind::Register && instruction.op_register(*at).full_register() == Register::RSP
        };
        let mut stack = None;
        for at in (0..instruction.op_count()).filter(uses_stack) {
            let number = match stack {
                Some(number) => number,
                None => chosen.next()?,
            };
            stack = Some(number);
            let size = instruction.op_register(at).size();
            copy.set_op_register(at, sized(register(number), size)?);
        }
        let mut encoder = Encoder::new(64);
        encoder.encode(&copy, instruction.ip()).ok()?;
        let copied = self.code.copy(&encoder.take_buffer());
        let divides = matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
        Some(Native { instruction: *instruction, copied, uses, scratch: scratch.flatten(), stack, memory, divides })
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
                return Err(Stop::Instruction("division by zero".to_owned()));
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

/// Whether an instruction may take a bit far from its operand: `bt`, with the bit's number in a register.
fn tests_bits(instruction: &Instruction, memory: u32) -> bool {
    let tests = matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts);
    tests && memory == 0 && instruction.op1_kind() == OpKind::Register
}

fn register(number: usize) -> Register {
    [
        Register::RAX,
        Register::RCX,
        Register::RDX,
        Register::RBX,
        Register::RSP,
        Register::RBP,
        Register::RSI,
        Register::RDI,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ][number]
}

/// The part of a general register with this many bytes.
fn sized(full: Register, bytes: usize) -> Option<Register> {
    Some(match bytes {
        8 => full,
        4 => full.full_register32(),
        _ => return None,
    })
}

fn bit(register: Register) -> Option<u32> {
    let full = register.full_register();
    if full.is_gpr64() {
        return Some(1 << full.number());
    }
    register.is_vector_register().then(|| 1_u32.checked_shl(VECTOR + full.number() as u32)).flatten()
}

fn arguments(initial: &Registers, used: u32) -> Vec<u64> {
    let general = (0..16).filter(|number| used >> number & 1 != 0).map(|number| initial.general[number]);
    let vectors = (0..16).filter(|number| used >> (VECTOR + number) & 1 != 0);
    general.chain(vectors.flat_map(|number| initial.vectors.low(number as usize))).collect()
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
    address.ok_or_else(|| Stop::Instruction(format!("{:?}", instruction.code())))
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
        return Err(Stop::Instruction("a string instruction that runs backwards".to_owned()));
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
