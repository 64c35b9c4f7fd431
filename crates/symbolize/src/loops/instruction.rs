//! [`Operation`]: what an instruction reads and writes, as far as shapes of loops need it.

use iced_x86::{ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// A set of registers: 16 general ones, then 32 vector ones.
pub(super) type Registers = u64;

/// What an instruction does to its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// A copy of a register, or of an address made of registers and a constant.
    Place,
    /// A constant is added, or a register: one place further.
    Advance,
    /// A register times a constant: the offset of an element.
    Scale,
    /// Loaded from memory.
    Load,
    /// A constant.
    Constant,
    /// Any other arithmetic that shapes allow: logic, shifts, conditions.
    Logic,
    /// Comparison: flags only.
    Compare,
    /// Jumps, `nop`, `pause`.
    Nothing,
    /// A call.
    Call,
    /// Arithmetic with work in it, a write to memory, and all else.
    Work,
}

/// A memory operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    /// The registers of its address.
    pub registers: Registers,
    /// Of these, the one that is multiplied, and by how much.
    pub index: Option<(Registers, u32)>,
    pub displacement: u64,
    pub bytes: usize,
    pub is_written: bool,
}

impl Memory {
    /// How many bytes one of a register is in the address.
    pub fn scale(&self, register: Registers) -> u32 {
        match self.index {
            Some((index, scale)) if index == register => scale,
            _ => 1,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub start: u64,
    pub end: u64,
    pub effect: Effect,
    pub reads: Registers,
    pub writes: Registers,
    pub memory: Option<Memory>,
    /// Index of an address, which need not be read.
    pub scaled: Registers,
    /// The constant that is added.
    pub stride: Option<i64>,
    pub mnemonic: Mnemonic,
    pub flow: FlowControl,
    /// Where it jumps to.
    pub target: Option<u64>,
    pub sets_flags: bool,
    /// Whether a constant is among the operands.
    pub has_constant: bool,
    /// Whether its first operand is a byte of a register.
    pub is_of_byte: bool,
}

/// Registers that a call may change.
pub(super) const CHANGED_BY_CALLS: Registers = 0b0000_1111_1100_0111 | !0xffff;

/// `rsp`.
const STACK: Registers = 1 << 4;

/// `rax`.
pub(super) const RESULT: Registers = 1;

fn bit(register: Register) -> Registers {
    let full = register.full_register();
    match () {
        () if full.is_gpr64() => 1 << full.number(),
        () if full.is_vector_register() => 1 << (16 + full.number() % 32),
        () => 0,
    }
}

impl Operation {
    pub fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let info = factory.info(instruction);
        let (mut reads, mut writes) = (0, 0);
        for used in info.used_registers() {
            let bit = bit(used.register());
            match used.access() {
                OpAccess::Read | OpAccess::CondRead => reads |= bit,
                OpAccess::Write => writes |= bit,
                OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                    reads |= bit;
                    writes |= bit;
                }
                _ => {}
            }
        }
        let memory = info.used_memory().first().map(|used| {
            let (base, index) = (bit(used.base()), bit(used.index()));
            Memory {
                registers: base | index,
                index: (index != 0).then_some((index, used.scale())),
                displacement: used.displacement(),
                bytes: used.memory_size().size(),
                is_written: info.used_memory().iter().any(|one| is_write(one.access())),
            }
        });
        let mut one = Self {
            start: instruction.ip(),
            end: instruction.next_ip(),
            effect: Effect::Work,
            reads,
            writes,
            memory,
            scaled: bit(instruction.memory_index()),
            stride: None,
            mnemonic: instruction.mnemonic(),
            flow: instruction.flow_control(),
            target: None,
            sets_flags: instruction.rflags_modified() != 0,
            has_constant: (0..instruction.op_count()).any(|at| is_constant(instruction.op_kind(at))),
            is_of_byte: instruction.op0_register().is_gpr8(),
        };
        if matches!(one.flow, FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch) {
            one.target = Some(instruction.near_branch_target());
        }
        one.effect = one.effect_of(instruction);
        if one.effect == Effect::Call {
            // The return address that it pushes is no part of what a loop does.
            one.reads &= !STACK;
            one.writes &= !STACK;
            one.memory = one.memory.filter(|memory| memory.registers & STACK == 0);
            one.memory.iter_mut().for_each(|memory| memory.is_written = false);
        }
        one
    }

    /// Whether it compares floating-point numbers.
    pub fn is_of_floats(&self) -> bool {
        use Mnemonic as M;
        matches!(
            self.mnemonic,
            M::Ucomiss | M::Ucomisd | M::Comiss | M::Comisd | M::Vucomiss | M::Vucomisd | M::Vcomiss | M::Vcomisd
        )
    }

    fn effect_of(&mut self, instruction: &Instruction) -> Effect {
        use Mnemonic as M;
        if matches!(self.flow, FlowControl::Call | FlowControl::IndirectCall) {
            return Effect::Call;
        }
        if self.memory.is_some_and(|memory| memory.is_written) || instruction.has_lock_prefix() {
            return Effect::Work;
        }
        let loads = self.memory.is_some();
        let is_self = |at: u32| {
            instruction.op_kind(at) == OpKind::Register && instruction.op_register(at) == instruction.op0_register()
        };
        match self.mnemonic {
            M::Nop | M::Pause | M::Endbr64 => Effect::Nothing,
            _ if matches!(self.flow, FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch) => {
                Effect::Nothing
            }
            M::Cmp | M::Test | M::Bt => Effect::Compare,
            _ if self.is_of_floats() => Effect::Compare,
            M::Mov
            | M::Movzx
            | M::Movsx
            | M::Movsxd
            | M::Movss
            | M::Movsd
            | M::Movd
            | M::Movq
            | M::Movaps
            | M::Movups
            | M::Vmovss
            | M::Vmovsd
            | M::Vmovd
            | M::Vmovq
            | M::Vmovaps
            | M::Vmovups
                if loads =>
            {
                Effect::Load
            }
            M::Mov if self.has_constant => Effect::Constant,
            M::Xor | M::Pxor | M::Xorps | M::Sub if is_self(1) => {
                self.reads = 0;
                Effect::Constant
            }
            M::Mov
            | M::Movsxd
            | M::Movzx
            | M::Movsx
            | M::Cdqe
            | M::Movaps
            | M::Movapd
            | M::Vmovaps
            | M::Movq
            | M::Movd => Effect::Place,
            M::Lea => {
                // No memory is read.
                self.memory = None;
                let base = bit(instruction.memory_base());
                if instruction.memory_index() == Register::None && base != 0 {
                    self.stride = Some(instruction.memory_displacement64() as i64).filter(|stride| *stride != 0);
                }
                Effect::Place
            }
            M::Shl | M::Imul if self.has_constant && !loads => Effect::Scale,
            M::Inc => {
                self.stride = Some(1);
                Effect::Advance
            }
            M::Dec => {
                self.stride = Some(-1);
                Effect::Advance
            }
            M::Add | M::Sub if !loads => {
                if self.has_constant {
                    let value = instruction.immediate(1) as i64;
                    self.stride = Some(if self.mnemonic == M::Sub { -value } else { value });
                }
                Effect::Advance
            }
            M::Add | M::Sub | M::And | M::Or | M::Xor | M::Not | M::Neg | M::Shl | M::Shr | M::Sar | M::Cvtss2sd => {
                Effect::Logic
            }
            // Values that a condition sets or moves. Jumps were met before.
            _ if instruction.condition_code() != ConditionCode::None => Effect::Logic,
            _ => Effect::Work,
        }
    }
}

fn is_write(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
}

fn is_constant(kind: OpKind) -> bool {
    use OpKind as K;
    matches!(
        kind,
        K::Immediate8
            | K::Immediate16
            | K::Immediate32
            | K::Immediate64
            | K::Immediate8to16
            | K::Immediate8to32
            | K::Immediate8to64
            | K::Immediate32to64
    )
}
