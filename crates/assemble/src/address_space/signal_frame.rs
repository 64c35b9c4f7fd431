//! The frame that the kernel puts on the stack when it calls a signal handler.
//!
//! The handler returns to code that calls `rt_sigreturn`. At that point the stack pointer is at the registers of the
//! interrupted code (`struct rt_sigframe` in the kernel). The interrupted code may have another stack: see sigaltstack(2).

use framehop::{FrameAddress, UnwindRegsNative};

use super::stack_memory::StackMemory;
use crate::registers::{GENERAL, Registers};
use crate::target::Target;

#[cfg(target_arch = "x86_64")]
mod layout {
    /// The code: `mov $15, %rax; syscall`, in both of its forms.
    pub const RETURNS: [&[u8]; 2] = [b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", b"\xb8\x0f\0\0\0\x0f\x05"];
    /// Offsets of the saved registers: `uc_mcontext` is at 40.
    pub const IP: u64 = 40 + 16 * 8;
    pub const SP: u64 = 40 + 15 * 8;
    pub const FP: u64 = 40 + 10 * 8;
    pub const LR: u64 = IP;
}

#[cfg(target_arch = "aarch64")]
mod layout {
    /// The code: `mov x8, #139; svc #0`.
    pub const RETURNS: [&[u8]; 1] = [b"\x68\x11\x80\xd2\x01\0\0\xd4"];
    /// Offsets of the saved registers: `siginfo` has 128 bytes, `uc_mcontext` is at 176 behind it, and `regs` is at 8.
    const REGISTERS: u64 = 128 + 176 + 8;
    pub const IP: u64 = REGISTERS + 32 * 8;
    pub const SP: u64 = REGISTERS + 31 * 8;
    pub const FP: u64 = REGISTERS + 29 * 8;
    pub const LR: u64 = REGISTERS + 30 * 8;
}

/// How far around an address [`is_return`] looks.
pub(super) const REACH: usize = 10;

/// Whether `code` is the code that ends a signal handler. The address is in its middle, at [`REACH`]: at the code, before
/// it (a look-up of the return address), at its system call, or after that.
pub(super) fn is_return(code: &[u8; 2 * REACH]) -> bool {
    layout::RETURNS.iter().any(|returns| {
        let starts = [1, 0, 2 - returns.len() as isize, -(returns.len() as isize)];
        starts.into_iter().any(|start| code[(REACH as isize + start) as usize..].starts_with(returns))
    })
}

/// Goes back to the interrupted code.
pub(super) fn leave<W: Target>(
    registers: &mut UnwindRegsNative,
    memory: &mut StackMemory<'_>,
    target: &mut W,
) -> Result<FrameAddress, ()> {
    let frame = registers.sp();
    let mut saved = |offset| memory.word(frame.checked_add(offset).ok_or(())?, target);
    let interrupted = Registers {
        ip: saved(layout::IP)?,
        sp: saved(layout::SP)?,
        fp: saved(layout::FP)?,
        lr: saved(layout::LR)?,
        general: [None; GENERAL.len()],
    };
    memory.bottom = interrupted.sp;
    *registers = interrupted.native();
    Ok(FrameAddress::from_instruction_pointer(interrupted.ip))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_code_that_ends_a_handler_is_recognised_at_each_of_its_addresses() {
        // A return address is looked up one byte before the code.
        for start in [11, 10, 3, 1] {
            let mut code = [0x90; 2 * REACH];
            code[start..start + 9].copy_from_slice(layout::RETURNS[0]);
            assert!(is_return(&code), "{start}");
        }
        assert!(!is_return(&[0x90; 2 * REACH]));
    }
}
