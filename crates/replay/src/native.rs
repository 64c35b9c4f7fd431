//! Runs one instruction of the program on the CPU, with the registers of the replay.
//!
//! An instruction that is copied here names no memory but the scratch buffer, does not use the stack pointer, and does not jump.
//! So it can change nothing but [`Registers`].

use std::arch::naked_asm;
use std::io;
use std::mem::offset_of;
use std::ptr;

/// Bytes that the CPU may need for its vector registers: x87, SSE, AVX and AVX-512.
const VECTORS_BYTES: usize = 4096;

/// The parts of the vector state that are kept: x87, SSE, AVX, and the three of AVX-512.
const VECTORS: u32 = 0b1110_0111;

/// The modes of SSE with which programs start: to the nearest number, no exceptions.
const USUAL_MODES: u32 = 0x1f80;

/// Bytes for copied instructions. When they are used up, all are copied again.
const CODE_BYTES: usize = 16 << 20;

/// The longest copy: an instruction and a return.
const MOST_BYTES: usize = 16;

/// Positions in [`Registers::general`], by their numbers in instructions.
pub(crate) const RAX: usize = 0;
pub(crate) const RCX: usize = 1;
pub(crate) const RDX: usize = 2;
pub(crate) const RSP: usize = 4;
pub(crate) const RBP: usize = 5;
pub(crate) const RSI: usize = 6;
pub(crate) const RDI: usize = 7;
pub(crate) const R8: usize = 8;
pub(crate) const R9: usize = 9;

/// The registers of a thread.
#[repr(C)]
#[derive(Clone)]
pub struct Registers {
    /// RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub general: [u64; 16],
    /// RFLAGS.
    pub flags: u64,
    /// The next instruction.
    pub ip: u64,
    /// Base address of the thread's own data.
    pub fs: u64,
    /// The other base address.
    pub gs: u64,
    /// All other registers.
    pub vectors: Box<Vectors>,
}

impl Registers {
    /// The stack pointer.
    pub fn stack(&self) -> u64 {
        self.general[RSP]
    }
}

/// The vector registers, as `xsave64` writes them.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Vectors([u8; VECTORS_BYTES]);

/// Which registers an instruction uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uses {
    /// General ones only.
    General,
    /// Those of SSE and AVX, too, but not their modes.
    Avx,
    /// Any.
    All,
}

/// Loads a register of AVX from the area of `XSAVE` at RDX.
macro_rules! load {
    ($number:literal) => {
        concat!(
            "vmovups xmm", $number, ", [rdx + 160 + 16 * ", $number, "]\n",
            "vinsertf128 ymm", $number, ", ymm", $number, ", [rdx + 576 + 16 * ", $number, "], 1"
        )
    };
}

/// Stores it.
macro_rules! store {
    ($number:literal) => {
        concat!(
            "vmovups [rdx + 160 + 16 * ", $number, "], xmm", $number, "\n",
            "vextractf128 [rdx + 576 + 16 * ", $number, "], ymm", $number, ", 1"
        )
    };
}

impl Vectors {
    /// From the kernel's answer to `PTRACE_GETREGSET`. `None` if it has parts in another order or is too short.
    pub fn from_bytes(bytes: &[u8]) -> Option<Box<Self>> {
        /// The header behind the legacy area; its second word is not zero in the compacted format.
        const COMPACTED: std::ops::Range<usize> = 520..528;
        let mut vectors = Box::new(Vectors([0; VECTORS_BYTES]));
        let kept = bytes.len().min(VECTORS_BYTES);
        if kept < 832 || bytes[COMPACTED] != [0; 8] {
            return None;
        }
        vectors.0[..kept].copy_from_slice(&bytes[..kept]);
        let present = u64::from_le_bytes(vectors.0[512..520].try_into().expect("8 bytes")) & u64::from(VECTORS);
        // What is not present has its first value: zero. SSE and AVX are from now on.
        let absent = |part: u64| present & part == 0;
        if absent(2) {
            vectors.0[160..416].fill(0);
            vectors.0[24..28].copy_from_slice(&USUAL_MODES.to_le_bytes());
        }
        if absent(4) {
            vectors.0[576..832].fill(0);
        }
        let present = present | 2 | if is_x86_feature_detected!("avx") { 4 } else { 0 };
        vectors.0[512..520].copy_from_slice(&present.to_le_bytes());
        // No exception of the arithmetic is raised in this process.
        vectors.0[0] |= 0x3f;
        vectors.0[24] |= 0x80;
        vectors.0[25] |= 0x1f;
        Some(vectors)
    }

    /// Whether rounding and denormal numbers are as they usually are.
    fn has_usual_modes(&self) -> bool {
        /// Bits that say what has happened.
        const EVENTS: u32 = 0x3f;
        u32::from_le_bytes(self.0[24..28].try_into().expect("4 bytes")) & !EVENTS == USUAL_MODES
    }

    /// The low 16 bytes of a vector register.
    pub(crate) fn low(&self, number: usize) -> [u64; 2] {
        let at = 160 + number * 16;
        let word = |at: usize| u64::from_le_bytes(self.0[at..at + 8].try_into().expect("8 bytes"));
        [word(at), word(at + 8)]
    }
}

/// Memory for copied instructions.
pub(crate) struct Code {
    start: *mut u8,
    used: usize,
    has_avx: bool,
}

/// Where a copied instruction is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copied(usize);

impl Code {
    pub fn new() -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: new memory, at a place that the kernel chooses.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), CODE_BYTES, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), used: 0, has_avx: is_x86_feature_detected!("avx") })
    }

    pub fn is_full(&self) -> bool {
        self.used + MOST_BYTES > CODE_BYTES
    }

    /// Forgets all copies.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Copies an instruction.
    pub fn copy(&mut self, instruction: &[u8]) -> Copied {
        /// `ret`
        const RETURN: u8 = 0xc3;
        assert!(instruction.len() < MOST_BYTES && !self.is_full(), "an instruction has at most 15 bytes, and space was checked");
        let at = self.used;
        // SAFETY: the range is within the memory, which belongs to this alone.
        unsafe {
            ptr::copy_nonoverlapping(instruction.as_ptr(), self.start.add(at), instruction.len());
            *self.start.add(at + instruction.len()) = RETURN;
        }
        self.used += instruction.len() + 1;
        Copied(at)
    }

    /// Runs a copied instruction.
    ///
    /// # Safety
    /// The instruction reads and writes no memory but what a register with a valid address names. It does not use the stack
    /// pointer, does not jump, and enters no kernel. It uses no other registers than `uses` says.
    pub unsafe fn run(&self, copied: Copied, registers: &mut Registers, uses: Uses) {
        let vectors = &raw mut *registers.vectors;
        // SAFETY: the copy is still there, and the caller vouches for what it does.
        unsafe {
            let code = self.start.add(copied.0);
            match uses {
                Uses::General => enter(registers, code),
                Uses::Avx if self.has_avx && registers.vectors.has_usual_modes() => enter_with_avx(registers, code, vectors),
                Uses::Avx | Uses::All => enter_with_all(registers, code, vectors),
            }
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the memory belongs to this alone.
        unsafe { libc::munmap(self.start.cast(), CODE_BYTES) };
    }
}

/// Loads the registers, calls `code` and stores them. The stack pointer stays.
///
/// `POPF` and `PUSHF` are slow, so the flags go through AH and the overflow flag through an addition.
#[unsafe(naked)]
unsafe extern "C" fn enter(registers: *mut Registers, code: *const u8) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        // [rsp]: code, [rsp + 8]: registers, [rsp + 16]: RDI afterwards
        "sub rsp, 24",
        "mov [rsp], rsi",
        "mov [rsp + 8], rdi",
        "mov rax, [rdi + {flags}]",
        "mov ecx, eax",
        "shr ecx, 11",
        "and ecx, 1",
        "mov ah, al",
        "mov al, cl",
        "add al, 127",
        "sahf",
        "mov rax, [rdi + 0]",
        "mov rcx, [rdi + 8]",
        "mov rdx, [rdi + 16]",
        "mov rbx, [rdi + 24]",
        "mov rbp, [rdi + 40]",
        "mov rsi, [rdi + 48]",
        "mov r8, [rdi + 64]",
        "mov r9, [rdi + 72]",
        "mov r10, [rdi + 80]",
        "mov r11, [rdi + 88]",
        "mov r12, [rdi + 96]",
        "mov r13, [rdi + 104]",
        "mov r14, [rdi + 112]",
        "mov r15, [rdi + 120]",
        "mov rdi, [rdi + 56]",
        "call [rsp]",
        "mov [rsp + 16], rdi",
        "mov rdi, [rsp + 8]",
        "mov [rdi + 0], rax",
        "mov [rdi + 8], rcx",
        "mov [rdi + 16], rdx",
        "mov [rdi + 24], rbx",
        "mov [rdi + 40], rbp",
        "mov [rdi + 48], rsi",
        "mov [rdi + 64], r8",
        "mov [rdi + 72], r9",
        "mov [rdi + 80], r10",
        "mov [rdi + 88], r11",
        "mov [rdi + 96], r12",
        "mov [rdi + 104], r13",
        "mov [rdi + 112], r14",
        "mov [rdi + 120], r15",
        "lahf",
        "seto al",
        "movzx ecx, ah",
        "movzx eax, al",
        "shl eax, 11",
        "or eax, ecx",
        "mov [rdi + {flags}], rax",
        "mov rax, [rsp + 16]",
        "mov [rdi + 56], rax",
        "add rsp, 24",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        flags = const offset_of!(Registers, flags),
    )
}

/// As [`enter`], with the vector registers as AVX has them.
#[unsafe(naked)]
unsafe extern "C" fn enter_with_avx(registers: *mut Registers, code: *const u8, vectors: *mut Vectors) {
    naked_asm!(
        "push rdx",
        load!(0), load!(1), load!(2), load!(3), load!(4), load!(5), load!(6), load!(7),
        load!(8), load!(9), load!(10), load!(11), load!(12), load!(13), load!(14), load!(15),
        "call {enter}",
        "pop rdx",
        store!(0), store!(1), store!(2), store!(3), store!(4), store!(5), store!(6), store!(7),
        store!(8), store!(9), store!(10), store!(11), store!(12), store!(13), store!(14), store!(15),
        "vzeroupper",
        "ret",
        enter = sym enter,
    )
}

/// As [`enter`], with all that `XSAVE` keeps.
#[unsafe(naked)]
unsafe extern "C" fn enter_with_all(registers: *mut Registers, code: *const u8, vectors: *mut Vectors) {
    naked_asm!(
        // [rsp]: vectors, [rsp + 8]: control words
        "sub rsp, 24",
        "mov [rsp], rdx",
        "stmxcsr [rsp + 8]",
        "fnstcw [rsp + 12]",
        "mov rcx, rdx",
        "mov eax, {parts}",
        "xor edx, edx",
        "xrstor64 [rcx]",
        "call {enter}",
        "mov rcx, [rsp]",
        "mov eax, {parts}",
        "xor edx, edx",
        "xsave64 [rcx]",
        // As the compiler expects it: no value in the x87 registers, and its own control words.
        "fninit",
        "fldcw [rsp + 12]",
        "ldmxcsr [rsp + 8]",
        "vzeroupper",
        "add rsp, 24",
        "ret",
        enter = sym enter,
        parts = const VECTORS,
    )
}
