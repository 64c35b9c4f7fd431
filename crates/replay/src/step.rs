//! [`Step`]: an instruction of the program, decoded and ready to run.

use std::cell::Cell;

use iced_x86::{
    ConditionCode, CpuidFeature, Decoder, DecoderOptions, Encoder, EncodingKind, FlowControl, Instruction,
    InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

use crate::Stop;
use crate::library::Function;
use crate::memory::Memory;
use crate::native::{Code, Copied, RSP, Uses};

/// Bytes of the largest operand in memory.
pub(crate) const SCRATCH: usize = 64;

/// Position of the first vector register in the masks of [`Step`].
pub(crate) const VECTOR: u32 = 16;

/// An instruction, ready to run.
pub(crate) struct Step {
    pub action: Action,
    pub next: u64,
    /// Bits of the general registers and, from [`VECTOR`] on, of the vector registers.
    pub reads: u32,
    pub writes: u32,
    /// Address and index of the step that came last after this one: without a jump, and after one.
    pub links: [Cell<(u64, usize)>; 2],
}

impl Step {
    pub fn new(action: Action, next: u64, reads: u32, writes: u32) -> Self {
        // No code is at the last address.
        let unknown = || Cell::new((u64::MAX, 0));
        Self { action, next, reads, writes, links: [unknown(), unknown()] }
    }
}

pub(crate) enum Action {
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

pub(crate) enum Pushed {
    Register(usize),
    Value(u64),
    Memory(Box<Instruction>),
}

pub(crate) struct Native {
    pub instruction: Instruction,
    pub copied: Copied,
    pub uses: Uses,
    /// A register that the instruction does not use: it holds the address of the scratch buffer.
    pub scratch: Option<usize>,
    /// Another one, in place of the stack pointer.
    pub stack: Option<usize>,
    pub memory: Option<Operand>,
    pub divides: bool,
}

/// An operand in memory.
pub(crate) struct Operand {
    pub number: u32,
    pub bytes: usize,
    pub read: bool,
    pub write: bool,
}

/// Makes steps.
pub(crate) struct Steps {
    /// The copies of instructions that run on the CPU.
    pub code: Code,
    factory: InstructionInfoFactory,
}

impl Steps {
    pub fn new(code: Code) -> Self {
        Self { code, factory: InstructionInfoFactory::new() }
    }

    /// The step at an address, whose code is read from `memory`.
    pub fn step(&mut self, ip: u64, memory: &mut Memory<'_>) -> Result<Step, Stop> {
        /// Bytes of the longest instruction.
        const LONGEST: usize = 15;
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
        let unknown = || Stop::Instruction(instruction.ip());
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
        let is_plain = |number: u32| match instruction.op_kind(number) {
            OpKind::Register | OpKind::Memory => true,
            // Others are of string instructions, jumps and segments.
            _ => instruction.try_immediate(number).is_ok(),
        };
        let is_plain = (0..instruction.op_count()).all(is_plain);
        if refused || !is_plain || instruction.is_privileged() || instruction.is_vsib() {
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
