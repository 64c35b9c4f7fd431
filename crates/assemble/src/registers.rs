//! The registers that unwinding starts from.

use framehop::UnwindRegsNative;

/// General registers but the stack pointer, by their numbers in DWARF and in the kernel's records. First those that functions leave
/// as they were: `rbx`, `rbp` and `r12` to `r15`; then `rax`, `rdx`, `rcx`, `rsi`, `rdi` and `r8` to `r11`. Only those of x86-64
/// are of use here.
pub(crate) const GENERAL: [(u16, u32); 15] = [
    (3, 1),
    (6, 6),
    (12, 20),
    (13, 21),
    (14, 22),
    (15, 23),
    (0, 0),
    (1, 3),
    (2, 2),
    (4, 4),
    (5, 5),
    (8, 16),
    (9, 17),
    (10, 18),
    (11, 19),
];
/// How many of them functions leave as they were.
pub(crate) const PRESERVED: usize = 6;

/// Where a function saved each of the registers that it has to preserve.
pub(crate) type SavedRegisters = [Saved; PRESERVED];

/// Where a function saved a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saved {
    /// Nowhere, as it does not change the register.
    Kept,
    /// At this distance from its canonical frame address.
    At(i64),
    /// The unwind tables do not say.
    Unknown,
}

/// Instruction pointer, stack pointer, frame pointer, and link register of a user stack's leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub fp: u64,
    /// The link register, where the architecture has one.
    #[cfg_attr(target_arch = "x86_64", allow(dead_code))]
    pub lr: u64,
    /// The registers of [`GENERAL`], where they were recorded.
    pub general: [Option<u64>; GENERAL.len()],
}

/// The general registers and the instruction pointer, by the kernel's numbers: what addresses of data are computed from.
pub const GENERAL_REGISTERS: u64 = 0x00ff_01ff;

/// The registers that stacks need: for unwinding, and for the instruction that a Python function runs.
#[cfg(target_arch = "x86_64")]
pub const STACK_REGISTERS: u64 = GENERAL_REGISTERS;
/// The registers that stacks need.
#[cfg(target_arch = "aarch64")]
pub const STACK_REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32; // FP, LR, SP, PC

/// The value of a register in a record that has those in `mask`, in the order of their numbers.
pub(crate) fn recorded_register(values: &[u64], mask: u64, number: u32) -> Option<u64> {
    let below = mask & (1_u64.checked_shl(number)? - 1);
    (mask >> number & 1 == 1).then(|| values.get(below.count_ones() as usize).copied())?
}

impl Registers {
    /// The stack pointer of sources that record no registers.
    pub const NO_STACK: u64 = u64::MAX;

    /// The registers of a sample, which records those in `mask` in the order of their numbers.
    pub fn of_record(values: &[u64], mask: u64) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        const NUMBERS: [u32; 4] = [8, 7, 6, 8]; // PERF_REG_X86_IP, SP, BP; there is no link register
        #[cfg(target_arch = "aarch64")]
        const NUMBERS: [u32; 4] = [32, 31, 29, 30]; // PERF_REG_ARM64_PC, SP, X29, LR
        let [ip, sp, fp, lr] = NUMBERS.map(|number| recorded_register(values, mask, number));
        let general = GENERAL.map(|(_, number)| recorded_register(values, mask, number));
        Some(Self { ip: ip?, sp: sp?, fp: fp?, lr: lr?, general })
    }

    /// For sources that copy neither registers nor stacks: the walk ends after the first frame, and the call chain
    /// continues it.
    pub fn of_callchain(chain: &[u64]) -> Option<Self> {
        Some(Self { ip: *chain.first()?, sp: Self::NO_STACK, fp: u64::MAX, lr: 0, general: [None; GENERAL.len()] })
    }

    /// Those of a thread that was looked at while it was blocked.
    pub fn without_frame_pointer(ip: u64, sp: u64) -> Self {
        Self { ip, sp, fp: 0, lr: 0, general: [None; GENERAL.len()] }
    }

    #[cfg(target_arch = "x86_64")]
    pub fn native(self) -> UnwindRegsNative {
        UnwindRegsNative::new(self.ip, self.sp, self.fp)
    }

    #[cfg(target_arch = "aarch64")]
    pub fn native(self) -> UnwindRegsNative {
        // Userspace pointers have at most 52 bits; the bits above may be an authentication code.
        let mask = framehop::aarch64::PtrAuthMask(u64::MAX >> 12);
        UnwindRegsNative::new_with_ptr_auth_mask(mask, self.lr, self.sp, self.fp)
    }
}
