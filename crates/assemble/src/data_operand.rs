//! The memory operands of the code around a sample, for sampling data addresses in software.
//!
//! A sample's instruction pointer is the instruction that the thread executes next: its registers are those that the operand's
//! address is computed from. The instruction that took the time is mostly the one before, because an interrupt waits until an
//! instruction is complete. So these count:
//!
//! - the instruction at the instruction pointer, whose access is about to be made;
//! - those that certainly follow it, up to a jump or call, as far as nothing before them changes the registers of their
//!   address: of `load; add; store` a CPU may only ever be sampled at the `add`;
//! - the one before it, whose access was just made. It counts only if it certainly was executed last: the function is decoded from its
//!   start, no jump of the function leads to the sampled instruction, none is indirect, and the instruction before neither calls nor
//!   jumps. Its operand counts only if it did not change the registers of its address itself.
//!
//! Accesses relative to the segments of thread-local data, and the implicit ones of `push`, `call` and the like, are left out: they
//! are of the thread's own memory.

use std::ops::Range;
use std::sync::Arc;

/// A memory operand: where its address comes from, and what is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataOperand {
    /// Number of the base register, as the kernel numbers registers.
    base: Option<u8>,
    /// Number and scale of the index register.
    index: Option<(u8, u8)>,
    displacement: u64,
    /// Bytes that are accessed; 0 if it is not known.
    pub bytes: u32,
    pub is_read: bool,
    pub is_write: bool,
    /// Whether the sampled instruction comes right behind it, and had to wait for it: for a load or an atomic operation.
    pub is_awaited: bool,
}

impl DataOperand {
    /// Whether it has the address of another one, from the same registers.
    #[cfg(target_arch = "x86_64")]
    fn is_at(&self, other: &Self) -> bool {
        (self.base, self.index, self.displacement) == (other.base, other.index, other.displacement)
    }

    /// Its address, with the registers of a sample.
    pub fn address(&self, register: impl Fn(u32) -> Option<u64>) -> Option<u64> {
        let value = |number: u8| register(number.into());
        let base = self.base.map_or(Some(0), value)?;
        let index = match self.index {
            Some((number, scale)) => value(number)?.wrapping_mul(scale.into()),
            None => 0,
        };
        Some(base.wrapping_add(index).wrapping_add(self.displacement))
    }
}

/// Longest function that is decoded to find the instruction before a sample.
pub(crate) const MOST_FUNCTION_BYTES: u64 = 64 << 10;
/// Longest instruction.
pub(crate) const MOST_INSTRUCTION_BYTES: u64 = 15;

/// The range of code that is needed for a sample at `ip` in a function.
pub(crate) fn wanted_code(ip: u64, function: Option<&Range<u64>>) -> Range<u64> {
    let function =
        function.filter(|function| function.contains(&ip) && function.end - function.start <= MOST_FUNCTION_BYTES);
    let end = ip.saturating_add(MOST_INSTRUCTION_BYTES);
    function.map_or(ip..end, |function| function.start..function.end.max(end))
}

/// Most instructions that are decoded from a sample on.
#[cfg(target_arch = "x86_64")]
const MOST_FOLLOWING: usize = 8;

/// The operands at `ip`, of the instructions that follow, and of the one before. `code` starts at `start`, which is `ip` or the start of its function.
#[cfg(target_arch = "x86_64")]
pub(crate) fn operands(ip: u64, start: u64, code: &[u8]) -> Arc<[DataOperand]> {
    let mut found = Vec::new();
    let at = usize::try_from(ip.wrapping_sub(start)).ok().and_then(|at| code.get(at..));
    if let Some(code) = at {
        let mut changed = Vec::new();
        for instruction in iced_x86::Decoder::with_ip(64, code, ip, 0).into_iter().take(MOST_FOLLOWING) {
            add_operands(&instruction, &changed, &mut found);
            if instruction.is_invalid() || instruction.flow_control() != iced_x86::FlowControl::Next {
                break;
            }
            changed.extend(changed_by(&instruction));
        }
    }
    if let Some(before) = instruction_before(ip, start, code) {
        let following = found.len();
        add_operands(&before, &changed_by(&before), &mut found);
        let (following, before_it) = found.split_at_mut(following);
        // No CPU waits for a store, nor for a load of what it stores again and again: that is passed on before it is in the cache.
        let is_atomic = before.has_lock_prefix() || before.mnemonic() == iced_x86::Mnemonic::Xchg;
        let is_stored = |load: &DataOperand| following.iter().any(|next| next.is_write && next.is_at(load));
        before_it.iter_mut().for_each(|one| one.is_awaited = is_atomic || !(one.is_write || is_stored(one)));
    }
    found.into()
}

/// Instructions of other architectures are not decoded.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn operands(_: u64, _: u64, _: &[u8]) -> Arc<[DataOperand]> {
    Arc::default()
}

/// The instruction that was certainly executed before `ip`.
#[cfg(target_arch = "x86_64")]
fn instruction_before(ip: u64, start: u64, code: &[u8]) -> Option<iced_x86::Instruction> {
    use iced_x86::{Decoder, FlowControl};

    let mut before = None;
    for instruction in Decoder::with_ip(64, code, start, 0) {
        // Behind the function, or data within it.
        if instruction.is_invalid() {
            break;
        }
        if instruction.next_ip() == ip {
            before = Some(instruction);
        }
        match instruction.flow_control() {
            FlowControl::IndirectBranch | FlowControl::XbeginXabortXend => return None,
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                if instruction.near_branch_target() == ip =>
            {
                return None;
            }
            _ => {}
        }
    }
    before.filter(|before| before.flow_control() == FlowControl::Next)
}

#[cfg(target_arch = "x86_64")]
fn is_write(access: iced_x86::OpAccess) -> bool {
    use iced_x86::OpAccess;

    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// The registers that an instruction changes.
#[cfg(target_arch = "x86_64")]
fn changed_by(instruction: &iced_x86::Instruction) -> Vec<iced_x86::Register> {
    let mut factory = iced_x86::InstructionInfoFactory::new();
    let used = factory.info(instruction).used_registers().iter();
    used.filter(|used| is_write(used.access())).map(|used| used.register().full_register()).collect()
}

/// Adds the memory operands whose registers have not `changed` since, or before, the registers were read.
#[cfg(target_arch = "x86_64")]
fn add_operands(instruction: &iced_x86::Instruction, changed: &[iced_x86::Register], found: &mut Vec<DataOperand>) {
    use iced_x86::{InstructionInfoFactory, OpAccess, Register};

    if instruction.is_invalid() {
        return;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let is_changed = |register: Register| changed.contains(&register.full_register());
    for memory in info.used_memory() {
        let (base, index) = (memory.base(), memory.index());
        let is_implicit = instruction.is_stack_instruction() && base == Register::RSP;
        let is_of_thread = matches!(memory.segment(), Register::FS | Register::GS);
        if is_implicit || is_of_thread || is_changed(base) || is_changed(index) {
            continue;
        }
        let (is_read, is_write) = match memory.access() {
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write | OpAccess::CondWrite => (false, true),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
            OpAccess::None | OpAccess::NoMemAccess => continue,
        };
        let (Some(base), Some(index)) = (numbered(base), numbered(index)) else { continue };
        found.push(DataOperand {
            base,
            index: index.map(|index| (index, memory.scale() as u8)),
            displacement: memory.displacement(),
            bytes: memory.memory_size().size() as u32,
            is_read,
            is_write,
            is_awaited: false,
        });
    }
}

/// The kernel's number of a 64-bit register (`PERF_REG_X86_AX` and on); `Some(None)` for no register, `None` for others.
#[cfg(target_arch = "x86_64")]
fn numbered(register: iced_x86::Register) -> Option<Option<u8>> {
    use iced_x86::Register;

    // In the order of the CPU's numbers: AX, CX, DX, BX, SP, BP, SI, DI, R8 and on.
    const NUMBERS: [u8; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23];
    match register {
        // Relative to the instruction, the displacement is the address.
        Register::None | Register::RIP => Some(None),
        register if register.is_gpr64() => Some(Some(NUMBERS[register.number()])),
        _ => None,
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    const AX: u8 = 0;
    const BX: u8 = 1;
    const DI: u8 = 5;

    /// `address` of each operand with these registers, with r and w.
    fn accesses(ip: u64, code: &[u8]) -> Vec<String> {
        let register = |number: u32| match number as u8 {
            AX => Some(0x1000),
            BX => Some(0x2000),
            DI => Some(0x7000),
            _ => Some(0x100),
        };
        let draw = |operand: &DataOperand| {
            let access = match (operand.is_read, operand.is_write) {
                (true, true) => "rw",
                (true, false) => "r",
                _ => "w",
            };
            let awaited = if operand.is_awaited { " awaited" } else { "" };
            format!("{access}{} {:x}{awaited}", operand.bytes, operand.address(register).unwrap())
        };
        operands(ip, 0x40_0000, code).iter().map(draw).collect()
    }

    /// `lock incq (%rdi)`, `dec %rcx`, `jne` to the first byte or the second instruction.
    const LOOP: [u8; 9] = [0xf0, 0x48, 0xff, 0x07, 0x48, 0xff, 0xc9, 0x75, 0xf7];

    #[test]
    fn what_follows_counts_up_to_a_jump_unless_its_registers_change() {
        // `mov (%rdi), %rax`, `add $1, %rax`, `mov %rax, (%rdi)`, `mov %rax, %rdi`, `mov %rax, (%rdi)`, `jmp` to the next
        // instruction, `mov %rax, (%rbx)`
        let code = [
            0x48, 0x8b, 0x07, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x89, 0x07, 0x48, 0x89, 0xc7, 0x48, 0x89, 0x07, 0xeb, 0x00,
            0x48, 0x89, 0x03,
        ];
        assert_eq!(accesses(0x40_0000, &code), ["r8 7000", "w8 7000"]);
        assert_eq!(
            accesses(0x40_0003, &code),
            ["w8 7000", "r8 7000"],
            "the load was just made, of what is stored next"
        );
        assert_eq!(accesses(0x40_000a, &code), ["w8 7000"], "the store was just made; then %rdi changes");
    }

    #[test]
    fn the_next_instruction_and_the_one_before_it_count() {
        assert_eq!(accesses(0x40_0000, &LOOP), ["rw8 7000"], "about to be made");
        assert_eq!(accesses(0x40_0004, &LOOP), ["rw8 7000 awaited"], "just made");
        // `mov (%rdi), %rax`, `nop`
        assert_eq!(accesses(0x40_0003, &[0x48, 0x8b, 0x07, 0x90]), ["r8 7000 awaited"]);
        assert_eq!(accesses(0x40_0007, &LOOP), Vec::<String>::new(), "the one before has no operand");
    }

    #[test]
    fn the_instruction_before_does_not_count_if_a_jump_leads_here() {
        let mut code = LOOP;
        code[8] = 0xfb; // to 0x40_0004
        assert_eq!(accesses(0x40_0004, &code), Vec::<String>::new());
        // `lock incq (%rdi)`, `nop`, `jmp *%rax`
        let code = [0xf0, 0x48, 0xff, 0x07, 0x90, 0xff, 0xe0];
        assert_eq!(accesses(0x40_0004, &code), Vec::<String>::new(), "an indirect jump leads anywhere");
        // `call *%rdi`, `nop`
        assert_eq!(accesses(0x40_0002, &[0xff, 0xd7, 0x90]), Vec::<String>::new(), "the callee was executed last");
    }

    #[test]
    fn an_address_from_a_register_that_the_instruction_changed_is_unknown() {
        // `mov 8(%rax), %rax`, `mov %rbx, 16(%rax,%rdi,4)`
        let code = [0x48, 0x8b, 0x40, 0x08, 0x48, 0x89, 0x5c, 0xb8, 0x10];
        assert_eq!(accesses(0x40_0000, &code), ["r8 1008"]);
        assert_eq!(accesses(0x40_0004, &code), ["w8 1d010"], "rax + 4 * rdi + 16");
    }

    #[test]
    fn operands_relative_to_the_instruction_have_an_address_and_those_of_the_thread_do_not_count() {
        // `addl $1, 0x10(%rip)`, `mov %fs:0x8, %rax`, `push %rax`, `lea 8(%rax), %rbx`, `movups %xmm0, (%rbx)`
        let code = [
            0x83, 0x05, 0x10, 0, 0, 0, 0x01, 0x64, 0x48, 0x8b, 0x04, 0x25, 8, 0, 0, 0, 0x50, 0x48, 0x8d, 0x58, 0x08,
            0x0f, 0x11, 0x03,
        ];
        assert_eq!(accesses(0x40_0000, &code), ["rw4 400017"]);
        assert_eq!(accesses(0x40_0010, &code), Vec::<String>::new(), "push, after a load from %fs");
        assert_eq!(accesses(0x40_0011, &code), Vec::<String>::new(), "lea, after push");
        assert_eq!(accesses(0x40_0015, &code), ["w16 2000"]);
    }

    #[test]
    fn code_that_is_cut_or_no_code_has_no_operands() {
        for length in 0..LOOP.len() {
            accesses(0x40_0000, &LOOP[..length]);
            accesses(0x40_0007, &LOOP[..length]);
        }
        assert_eq!(accesses(0x40_0000, &[0x06; 16]), Vec::<String>::new());
    }

    #[test]
    fn the_whole_function_is_wanted_unless_it_is_long() {
        assert_eq!(wanted_code(0x1010, Some(&(0x1000..0x1018))), 0x1000..0x101f);
        assert_eq!(wanted_code(0x1010, Some(&(0x1000..0x100_0000))), 0x1010..0x101f);
        assert_eq!(wanted_code(0x1010, None), 0x1010..0x101f);
    }
}
