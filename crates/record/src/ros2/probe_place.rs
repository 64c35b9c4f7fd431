//! The place in a function at which a probe costs least.
//!
//! The kernel runs most probed instructions in a copy, one step at a time, which takes a second trap: 10 us in the virtual machine where
//! this was measured. It emulates a few instead (`arch/x86/kernel/uprobes.c`), and then a call costs 1.4 us. So the probe is set at the
//! first of these that each call runs once, before anything changes the arguments.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};

/// How far a place is searched.
const MOST_INSTRUCTIONS: usize = 12;

/// Registers with arguments that are read.
const ARGUMENTS: [Register; 5] = [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8];

/// Offset of the place from the start of the function, whose code this is. 0 if no place is better.
pub(super) fn cheapest(code: &[u8]) -> u64 {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let instructions: Vec<Instruction> = decoder.iter().take(MOST_INSTRUCTIONS).collect();
    for (at, instruction) in instructions.iter().enumerate() {
        if instruction.is_invalid() {
            return 0;
        }
        // A jump back would run it again within a call.
        let is_in_loop = || instructions[at..].iter().any(|later| jumps_back(later, instruction.ip()));
        if is_emulated(instruction) && !is_in_loop() {
            return instruction.ip();
        }
        let changes = |register: Register| ARGUMENTS.contains(&register.full_register());
        let changes_arguments = factory
            .info(instruction)
            .used_registers()
            .iter()
            .any(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) && changes(used.register()));
        if changes_arguments || instruction.flow_control() != FlowControl::Next {
            return 0;
        }
    }
    0
}

fn jumps_back(instruction: &Instruction, ip: u64) -> bool {
    let is_near =
        matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
    is_near && instruction.near_branch_target() <= ip
}

/// What all kernels with uprobes of perf emulate: `push` of a register, `nop` of one byte, jumps and calls of a fixed target.
fn is_emulated(instruction: &Instruction) -> bool {
    let is_branch = matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::Call
    );
    let is_nop = instruction.code() == Code::Nopd && instruction.len() == 1;
    is_nop
        || instruction.code() == Code::Push_r64
        || is_branch && instruction.op0_kind() == iced_x86::OpKind::NearBranch64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_set_at_the_first_emulated_instruction_before_arguments_change() {
        for (name, code, place) in [
            ("push %rbp", &[0x55, 0x48, 0x89, 0xe5][..], 0),
            ("endbr64; push %rbp", &[0xf3, 0x0f, 0x1e, 0xfa, 0x55][..], 4),
            ("push %r12", &[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54][..], 4),
            // As tracepoints of LTTng: mov state(%rip),%eax; test %eax,%eax; jne; ret
            ("a test of a variable", &[0x8b, 0x05, 1, 2, 0, 0, 0x85, 0xc0, 0x75, 0x01, 0xc3][..], 8),
            ("ret", &[0xc3, 0x55][..], 0),
            ("mov %rsi,%rdi; push %rbp", &[0x48, 0x89, 0xf7, 0x55][..], 0),
            ("xor %ecx,%ecx; jmp", &[0x31, 0xc9, 0xeb, 0x10][..], 0),
            // mov $1,%eax; nop; nothing; jump back to the nop
            ("a loop", &[0xb8, 1, 0, 0, 0, 0x90, 0xeb, 0xfd][..], 0),
            ("invalid", &[0x06, 0x55][..], 0),
            ("nothing", &[][..], 0),
        ] {
            assert_eq!(cheapest(code), place, "{name}");
        }
    }
}
